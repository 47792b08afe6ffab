"""The question: a forest, rows, what counts as an answer, and what an answer costs.

Valid always means the hard forest, never the soft one. This is the only place that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.constraints import Constraint
from treefocus.distances import Distance
from treefocus.errors import InvalidInput, reject
from treefocus.forest import Bools, Floats, Forest, Ints
from treefocus.grid import floor_to
from treefocus.kernels.inputs import Batch
from treefocus.schema import FLOAT32, INTEGER, Schema
from treefocus.targets import as_targets

SCALES = ("range", "std", "mad")


@dataclass(frozen=True, eq=False)
class Space:
    """Where distance is measured, z = (x - offset) / scale, and the domain answers stay in, in the user's units."""

    offset: Floats  # (n_features,)
    scale: Floats  # (n_features,)
    low: Floats  # (n_features,)
    high: Floats  # (n_features,)

    @classmethod
    def of(cls, data: Floats | None, scale: Any, bounds: Any, n_features: int) -> Space:
        """From `scale` ("range", "std", "mad", None or an array) and `bounds` ((low, high) or None), by the data."""
        low, high = _bounds(bounds, data, n_features)
        if scale is None:
            return cls(np.zeros(n_features), np.ones(n_features), low, high)
        if not isinstance(scale, str):
            try:
                sizes = np.broadcast_to(np.asarray(scale, np.float64), (n_features,)).copy()
            except (TypeError, ValueError):
                reject("scale", f"a number, or one a feature ({n_features})", repr(scale))
            bad = sizes[~(np.isfinite(sizes) & (sizes > 0))]
            if bad.size:
                reject("scale", "finite numbers above 0", bad[0])
            return cls(np.zeros(n_features), sizes, low, high)
        if scale not in SCALES:
            reject("scale", f"one of {SCALES}, None or an array", repr(scale))
        if data is None:
            raise InvalidInput(f"scale={scale!r} needs data=; without data give scale=None or an array.")
        centre, size = _spread(data, scale)
        return cls(centre, np.where(size > 0, size, 1.0), low, high)

    def to_z(self, values: Floats) -> Floats:
        """The values in the space in which distance is measured."""
        return (values - self.offset) / self.scale


def _down_to_grain(values: Floats, grain: NDArray[np.int8]) -> Floats:
    """The largest value that each column can hold, not above the given one."""
    single = np.where(grain == FLOAT32, floor_to(values, "float32"), values)
    return np.where(grain == INTEGER, np.floor(values), single)


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


@dataclass(frozen=True, eq=False)
class Examples:
    """Training rows and what the forest says of them."""

    rows: Floats  # (n_examples, n_features)
    answer: Ints  # (n_examples,)

    @classmethod
    def of(cls, forest: Forest, rows: Floats) -> Examples:
        """The rows with their predicted classes."""
        return cls(rows, kernels.predict(forest, rows))


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a search strategy may know."""

    forest: Forest
    batch: Batch
    distance: Distance
    examples: Examples | None = None  # training rows, to start from

    @classmethod
    def ask(
        cls,
        forest: Forest,
        rows: Floats,
        *,
        space: Space,
        distance: Distance,
        constraints: Sequence[Constraint],
        schema: Schema,
        grain: NDArray[np.int8],
        target: Any,
        examples: Examples | None = None,
    ) -> Problem:
        """Put the question for these rows. A value outside the domain may stay; if it moves, towards the domain."""
        known = np.where(np.isnan(rows), 0.0, rows)
        low = np.where(np.isnan(rows), np.nan, np.minimum(space.low, known))
        high = np.where(np.isnan(rows), np.nan, np.maximum(space.high, known))
        with np.errstate(invalid="ignore"):
            for constraint in constraints:
                constraint.narrow(rows, low, high, schema)
            low = np.where(low == rows, low, -_down_to_grain(-low, grain))
            high = np.where(high == rows, high, _down_to_grain(high, grain))
            first = np.where(np.isnan(rows), np.nan, np.clip(rows, low, np.maximum(low, high)))
        origin = kernels.predict(forest, rows)
        targets = as_targets(target, forest, len(rows))
        batch = Batch(rows, low, high, space.offset, space.scale, grain, origin, targets, first)
        return cls(forest, batch, distance, examples)

    def __len__(self) -> int:
        return len(self.batch.rows)

    @property
    def has_box(self) -> Bools:
        """(n_rows,) False where the constraints contradict each other."""
        return np.asarray(~(self.batch.low > self.batch.high).any(axis=1))

    def is_valid(self, points: Floats) -> Bools:
        """(n_rows,) whether each point gets the wanted answer from the hard forest and obeys every constraint."""
        found = ~np.isnan(points).all(axis=1) | np.isnan(self.batch.rows).all(axis=1)
        flips = self.batch.is_flipped(kernels.predict(self.forest, points))
        return np.asarray(found & flips & self.batch.is_allowed(points) & self.batch.is_on_grain(points))

    def distance_to(self, points: Floats) -> Floats:
        """(n_rows,) what each point costs."""
        batch = self.batch
        with np.errstate(over="ignore"):  # of a value near the end of float64: as far as can be
            if self.distance.is_shift_invariant:  # a change too small to show next to the value itself still counts
                nowhere = np.where(np.isnan(batch.rows), np.nan, 0.0)
                return self.distance.value(nowhere, (points - batch.rows) / batch.scale)
            return self.distance.value(batch.start, batch.to_z(points))

    def subset(self, chosen: NDArray[np.intp]) -> Problem:
        """The same question for some of the rows."""
        return replace(self, batch=self.batch.subset(chosen))
