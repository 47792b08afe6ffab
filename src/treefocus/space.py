"""Where distance is measured, and the domain answers stay in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats

SCALES = ("range", "std", "mad")


@dataclass(frozen=True, eq=False)
class Space:
    """Where distance is measured, z = (x - offset) / scale, and the domain answers stay in, in the user's units."""

    offset: Floats  # (n_features,)
    scale: Floats  # (n_features,)
    low: Floats  # (n_features,)
    high: Floats  # (n_features,)
    typical: Floats | None = None  # (n_features,) what stands for an unknown value, where there is data

    @classmethod
    def of(cls, data: Floats | None, scale: Any, bounds: Any, n_features: int) -> Space:
        """From `scale` ("range", "std", "mad", None or an array) and `bounds` ((low, high) or None), by the data."""
        low, high = _bounds(bounds, data, n_features)
        typical = None if data is None else np.clip(np.nanmedian(data, axis=0), low, high)
        if scale is None:
            return cls(np.zeros(n_features), np.ones(n_features), low, high, typical)
        if not isinstance(scale, str):
            try:
                sizes = np.broadcast_to(np.asarray(scale, np.float64), (n_features,)).copy()
            except (TypeError, ValueError):
                reject("scale", f"a number, or one a feature ({n_features})", repr(scale))
            bad = sizes[~(np.isfinite(sizes) & (sizes > 0))]
            if bad.size:
                reject("scale", "finite numbers above 0", bad[0])
            return cls(np.zeros(n_features), sizes, low, high, typical)
        if scale not in SCALES:
            reject("scale", f"one of {SCALES}, None or an array", repr(scale))
        if data is None:
            raise InvalidInput(f"scale={scale!r} needs data=; without data give scale=None or an array.")
        centre, size = _spread(data, scale)
        return cls(centre, np.where(size > 0, size, 1.0), low, high, typical)

    def to_z(self, values: Floats) -> Floats:
        """The values in the space in which distance is measured."""
        return (values - self.offset) / self.scale


def _spread(data: Floats, scale: str) -> tuple[Floats, Floats]:
    if scale == "range":
        low = np.nanmin(data, axis=0)
        return low, np.nanmax(data, axis=0) - low
    deviation = np.nanstd(data, axis=0)
    if scale == "std":
        return np.nanmean(data, axis=0), deviation
    median = np.nanmedian(data, axis=0)
    spread = np.nanmedian(np.abs(data - median), axis=0)
    return median, np.where(spread > 0, spread, deviation)


def _bounds(bounds: Any, data: Floats | None, n_features: int) -> tuple[Floats, Floats]:
    if bounds is None:
        if data is None:
            return np.full(n_features, -np.inf), np.full(n_features, np.inf)
        return np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    try:
        low, high = (np.broadcast_to(np.asarray(side, np.float64), (n_features,)).copy() for side in bounds)
    except (TypeError, ValueError):
        reject("bounds", f"(low, high), each a number or one a feature ({n_features})", repr(bounds))
    if not (low <= high).all():
        reject("bounds", "a low below its high for every feature", f"{low} and {high}")
    return low, high
