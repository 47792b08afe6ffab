"""Where distance is measured, and the domain answers stay in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Floats

SCALES = ("range", "std", "mad")
LARGEST_STEP = 1e140  # of a change, in the space in which distance is measured: its square is a number still


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
            return _checked(cls(np.zeros(n_features), np.ones(n_features), low, high, typical), data)
        if not isinstance(scale, str):
            try:
                sizes = np.broadcast_to(np.asarray(scale, np.float64), (n_features,)).copy()
            except (TypeError, ValueError):
                reject("scale", f"a number, or one a feature ({n_features})", repr(scale))
            bad = sizes[~(np.isfinite(sizes) & (sizes > 0))]
            if bad.size:
                reject("scale", "finite numbers above 0", bad[0])
            return _checked(cls(np.zeros(n_features), sizes, low, high, typical), data)
        if scale not in SCALES:
            reject("scale", f"one of {SCALES}, None or an array", repr(scale))
        if data is None:
            raise InvalidInput(f"scale={scale!r} needs data=; without data give scale=None or an array.")
        with np.errstate(over="ignore"):
            centre, size = _spread(data, scale)
        if not np.isfinite(size).all():
            reject("data", f"a table whose {scale} is a finite number in every column, or give scale=", "one too large")
        return cls(centre, np.where(size > 0, size, 1.0), low, high, typical)

    def within(self, *limits: tuple[Floats, Floats] | Floats | None) -> Space:
        """The same with a domain inside these, each (low, high) of (n_features,) or nothing."""
        low, high = self.low, self.high
        for one in limits:
            if one is not None:
                low, high = np.maximum(low, one[0]), np.minimum(high, one[1])
        return replace(self, low=low, high=high)

    def to_z(self, values: Floats) -> Floats:
        """The values in the space in which distance is measured."""
        return (values - self.offset) / self.scale


def _checked(space: Space, data: Floats | None) -> Space:
    """The space, if the data are numbers in it whose squares can be added up."""
    with np.errstate(over="ignore"):
        largest = 0.0 if data is None else float(np.nanmax(np.abs(data) / space.scale))
    if largest > LARGEST_STEP:
        reject("scale", f"so large that no value is more than {LARGEST_STEP:g} times it, or 'range'", f"{largest:g}")
    return space


def _spread(data: Floats, scale: str) -> tuple[Floats, Floats]:
    if scale == "range":
        low = np.nanmin(data, axis=0)
        return low, np.nanmax(data, axis=0) - low
    most = np.nanmax(np.abs(data), axis=0)
    most = np.where(most > 0, most, 1.0)  # so that squares of very large and very small numbers are numbers still
    deviation = np.nanstd(data / most, axis=0) * most
    if scale == "std":
        return np.nanmean(data / most, axis=0) * most, deviation
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
