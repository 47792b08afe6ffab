"""The question: a forest, rows, what counts as an answer, and what an answer costs.

Valid always means the hard forest, never the soft one. This is the only place that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.choices import choices_of
from treefocus.constraints import Constraint
from treefocus.distances import Distance
from treefocus.errors import InvalidInput, reject
from treefocus.forest import Bools, Floats, Forest, Ints
from treefocus.kernels.inputs import Batch
from treefocus.schema import Schema, snapped_down
from treefocus.targets import put, variant

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


def _openness(
    forest: Forest, rows: Floats, constraints: Sequence[Constraint], schema: Schema, distance: Distance
) -> tuple[Bools, Bools, Bools]:
    """(n_features,) which columns hold categories, which may become missing, and in which missing is a choice."""
    is_category = np.zeros(forest.n_features, bool)
    if forest.categories is not None:
        is_category = forest.categories.is_categorical
    may_be_missing = np.zeros(forest.n_features, bool)
    for constraint in constraints:
        constraint.allow_missing(may_be_missing, schema)
    if may_be_missing.any() and not forest.takes_missing:
        raise InvalidInput(f"A {forest.source} does not take missing values, so that none may become missing.")
    if distance.norms is None:
        if may_be_missing.any():
            raise InvalidInput(f"MayBeMissing needs a distance that is a sum over columns, {distance!r} is not.")
        return is_category, may_be_missing, is_category  # what is missing cannot be measured, and stays
    return is_category, may_be_missing, may_be_missing | (np.isnan(rows).any(axis=0) & forest.takes_missing)


def _boxes(
    rows: Floats,
    space: Space,
    constraints: Sequence[Constraint],
    schema: Schema,
    grain: NDArray[np.int8],
    is_category: Bools,
    is_open: Bools,
) -> tuple[Floats, Floats]:
    """(n_rows, n_features) the box of every row, NaN where a value is missing and stays so."""
    known = np.where(np.isnan(rows), np.where(is_open, space.low, 0.0), rows)
    space_low, space_high = np.where(is_category, -np.inf, space.low), np.where(is_category, np.inf, space.high)
    is_frozen = np.isnan(rows) & ~is_open
    low = np.where(is_frozen, np.nan, np.minimum(space_low, known))
    high = np.where(is_frozen, np.nan, np.maximum(space_high, np.where(np.isnan(rows), space_high, known)))
    with np.errstate(invalid="ignore"):
        for constraint in constraints:
            constraint.narrow(rows, low, high, schema)
        low = np.where(low == rows, low, -snapped_down(-low, grain))
        high = np.where(high == rows, high, snapped_down(high, grain))
    return low, high


@dataclass(frozen=True, eq=False)
class Examples:
    """Training rows and what the forest says of them."""

    rows: Floats  # (n_examples, n_features)
    answer: Ints  # (n_examples,)

    @classmethod
    def of(cls, forest: Forest, rows: Floats) -> Examples:
        """The rows with their predicted classes; asked again, the same."""
        known = _examples.get(forest)
        if known is None or known.rows is not rows:
            _examples[forest] = known = cls(rows, kernels.predict(forest, rows))
        return known


_examples: WeakKeyDictionary[Forest, Examples] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a search strategy may know."""

    forest: Forest  # that decides: the model's own, or a variant of it with the question built in
    batch: Batch
    distance: Distance
    model: Forest
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
        examples: Floats | None = None,
    ) -> Problem:
        """Put the question for these rows. A value outside the domain may stay; if it moves, towards the domain.

        A missing value may stay or become known, and a known one may become missing where a constraint allows it.
        `examples`: training rows.
        """
        model = forest
        forest, targets = put(target, forest, len(rows))
        is_category, may_be_missing, is_open = _openness(forest, rows, constraints, schema, distance)
        if (is_open & ~is_category).any():
            forest = variant(forest, missing_is_choice=is_open & ~is_category)
        low, high = _boxes(rows, space, constraints, schema, grain, is_category, is_open)
        choices = choices_of(
            forest, rows, low, high, scale=space.scale, grain=grain, may_be_missing=may_be_missing,
            typical=space.typical if space.typical is not None else np.zeros(forest.n_features),
            is_kept=distance.norms is None,
        )  # fmt: skip
        with np.errstate(invalid="ignore"):
            first = np.where(np.isnan(rows), np.nan, np.clip(rows, low, np.maximum(low, high)))
        first = np.where(is_category, rows, first)
        origin = kernels.predict(forest, rows)
        batch = Batch(rows, low, high, space.offset, space.scale, grain, origin, targets, first, choices)
        return cls(forest, batch, distance, model, None if examples is None else Examples.of(forest, examples))

    def __len__(self) -> int:
        return len(self.batch.rows)

    @property
    def has_value(self) -> Bools:
        """(n_rows, n_features) False where the constraints contradict each other and leave no value."""
        has_value = np.asarray(~(self.batch.low > self.batch.high))
        choices = self.batch.choices
        for column, begin, end in zip(choices.column, choices.start[:-1], choices.start[1:], strict=True):
            has_value[:, column] = np.isfinite(choices.delta[:, begin:end]).any(axis=1)
        return has_value

    @property
    def has_box(self) -> Bools:
        """(n_rows,) whether every column has a value."""
        return np.asarray(self.has_value.all(axis=1))

    def is_valid(self, points: Floats) -> Bools:
        """(n_rows,) whether each point gets the wanted answer from the hard forest and obeys every constraint."""
        flips = self.batch.is_flipped(kernels.predict(self.forest, points))
        return np.asarray(flips & self.batch.is_allowed(points) & self.batch.is_on_grain(points))

    def distance_to(self, points: Floats) -> Floats:
        """(n_rows,) what each point costs."""
        batch = self.batch
        with np.errstate(over="ignore"):  # of a value near the end of float64: as far as can be
            if self.distance.is_shift_invariant:  # a change too small to show next to the value itself still counts
                moved = batch.changes(points)
                return self.distance.value(np.where(np.isnan(moved), np.nan, 0.0), moved)
            start, reached = batch.start, batch.to_z(points)
            start[:, batch.choices.column] = reached[:, batch.choices.column] = np.nan  # kept as they are
            return self.distance.value(start, reached)

    def subset(self, chosen: NDArray[np.intp]) -> Problem:
        """The same question for some of the rows."""
        return replace(self, batch=self.batch.subset(chosen))

    def keeping(self, is_kept: Bools) -> Problem:
        """The same question with some values, (n_rows, n_features), left as they are."""
        return replace(self, batch=self.batch.keeping(is_kept))
