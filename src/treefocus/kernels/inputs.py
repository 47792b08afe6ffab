"""What kernels take besides a forest: plain frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from treefocus.kernels.rules import Rules
from treefocus.model.forest import Floats, Ints
from treefocus.schema.schema import FLOAT32, INTEGER, LISTED, STEPPED, snapped_inside
from treefocus.schema.steps import StepColumns, Steps

Int8s = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class SoftForest:
    """The differentiable copy of a forest, in the space in which distance is measured."""

    threshold: Floats  # (n_thresholds,) the grid's thresholds in that space
    value: Floats  # (n_leaves, n_outputs) leaf values with the tree weights in them
    n_trees: int  # the first n_trees take part
    sigma: float
    tau: float
    use_softmax: bool = True


class Metric(IntEnum):
    """Distances that the compiled descent knows."""

    EUCLIDEAN = 0
    MANHATTAN = 1
    COSINE = 2
    MAHALANOBIS = 3
    MAHALANOBIS_SQUARED = 4


@dataclass(frozen=True, eq=False)
class CompiledDistance:
    """A distance as the compiled core takes it."""

    metric: Metric
    weight: Floats  # (n_features,)
    inverse: Floats  # (n_features, n_features) inverse covariance, (0, 0) where there is none


@dataclass(frozen=True, eq=False)
class Norms:
    """A distance made of parts that the exact search can take apart by feature.

    For delta = |y - z|: sum of l1 delta + sqrt(sum of l2 delta^2) + max of linf delta + sum of l0 [delta > 0].
    """

    weights: Floats  # (4, n_features) rows l1, l2, linf, l0, zeros where a part is absent


@dataclass(frozen=True)
class Descent:
    """The parameters of FOCUS's loop."""

    beta: float
    alpha: float
    iterations: int
    gradient_scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Choices:
    """Columns whose values are chosen cell by cell: categories, and numbers that may be or become missing.

    The last two cells of a categorical column are an unseen category and a missing one; the last of a numeric column
    is a missing value.
    """

    column: NDArray[np.intp]  # (n_columns,)
    is_category: NDArray[np.bool_]  # (n_columns,) else numeric
    start: NDArray[np.intp]  # (n_columns + 1,) where a column's cells begin
    value: Floats  # (n_rows, n_cells) what stands for the cell, NaN for a missing value
    delta: Floats  # (n_rows, n_cells) how far it is in the space in which distance is measured, infinity: not allowed

    @classmethod
    def none(cls, n_rows: int) -> Choices:
        """For batches of plain numbers."""
        no_cells = np.empty((n_rows, 0))
        no_columns = np.empty(0, np.intp)
        return cls(no_columns, np.empty(0, bool), np.zeros(1, np.intp), no_cells, no_cells)

    def is_allowed(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether every category, and every missing value, is one that may be chosen."""
        allowed = np.ones(len(points), bool)
        for i, column in enumerate(self.column):
            missing = self.start[i + 1] - 1
            value = points[:, column]
            cell = np.where(
                np.isnan(value), missing, self.start[i] + np.nan_to_num(value) if self.is_category[i] else -1
            )
            is_cell = (cell >= self.start[i]) & (cell <= missing) & (cell == np.rint(cell))
            delta = self.delta[np.arange(len(points)), np.where(is_cell, cell, 0).astype(np.intp)]
            is_number = ~np.isnan(value) & ~self.is_category[i]  # the box decides
            allowed &= is_number | (is_cell & np.isfinite(delta))
        return allowed

    def keeping(self, is_kept: NDArray[np.bool_]) -> Choices:
        """The same with nothing but its own cell to choose where a value, (n_rows, n_features), is kept."""
        is_closed = np.repeat(is_kept[:, self.column], np.diff(self.start), axis=1) & (self.delta > 0)
        return replace(self, delta=np.where(is_closed, np.inf, self.delta))

    @property
    def may_be_missing(self) -> NDArray[np.bool_]:
        """(n_rows, n_columns) whether a missing value is one of the choices."""
        return np.isfinite(self.delta[:, self.start[1:] - 1])

    def only(self, columns: NDArray[np.bool_]) -> Choices:
        """The same for some of the columns, (n_columns,)."""
        cells = np.repeat(columns, np.diff(self.start))
        start = np.concatenate([[0], np.cumsum(np.diff(self.start)[columns])]).astype(np.intp)
        value, delta = (np.ascontiguousarray(table[:, cells]) for table in (self.value, self.delta))
        return Choices(self.column[columns], self.is_category[columns], start, value, delta)

    def subset(self, chosen: NDArray[np.intp]) -> Choices:
        """The same for some of the rows."""
        return replace(self, value=self.value[chosen], delta=self.delta[chosen])


@dataclass(frozen=True, eq=False)
class Lists:
    """Columns of grain LISTED with the values that they can hold, of grain STEPPED with the four numbers of `Steps`."""

    start: Ints  # (n_features + 1,) where a column's values begin
    value: Floats  # (n_values,) ascending within a listed column
    is_strict: NDArray[np.bool_]  # (n_features,) a row's own value counts only if it is listed
    _stepped: dict[bytes, tuple[NDArray[np.intp], StepColumns | None]] = field(
        default_factory=dict, repr=False
    )  # by grain

    @classmethod
    def none(cls, n_features: int) -> Lists:
        """For batches without."""
        return cls(np.zeros(n_features + 1, np.int32), np.empty(0), np.zeros(n_features, bool))

    def of(self, column: int) -> Floats:
        """A listed column's values, or a stepped one's numbers."""
        return self.value[self.start[column] : self.start[column + 1]]

    def steps_of(self, column: int) -> Steps:
        """What a column of grain STEPPED holds."""
        return Steps.from_numbers(self.of(column))

    def stepped(self, grain: Int8s) -> tuple[NDArray[np.intp], StepColumns | None]:
        """The columns of grain STEPPED, and what they hold; None without any."""
        key = grain.tobytes()
        if key not in self._stepped:
            columns = np.flatnonzero(grain == STEPPED)
            numbers = self.value[self.start[columns][:, None] + np.arange(4)] if columns.size else None
            self._stepped[key] = columns, None if numbers is None else StepColumns.from_numbers(numbers)
        return self._stepped[key]

    def inside(self, low: Floats, high: Floats, grain: Int8s) -> tuple[Floats, Floats]:
        """(..., n_features) the ends of boxes, moved inwards to values that each column can hold; of lists, any."""
        from_, to = snapped_inside(low, high, grain)
        columns, steps = self.stepped(grain)
        if steps is not None:
            from_[..., columns], to[..., columns] = steps.inside(low[..., columns], high[..., columns])
        return from_, to

    def nearest(self, column: int, values: Floats, low: Floats, high: Floats) -> Floats:
        """The listed value nearest to each, between low and high; a missing value stays missing."""
        found = nearest_of(self.of(column), values, low, high)
        return np.where(np.isnan(found), np.clip(values, low, high), found)


def nearest_of(listed: Floats, values: Floats, low: Floats, high: Floats) -> Floats:
    """The listed value, of ascending ones, that is nearest to each, between low and high; NaN where there is none."""
    inside = np.clip(values, low, high)
    above = np.searchsorted(listed, inside, side="left")
    up = np.append(listed, np.inf)[above]
    down = np.append(-np.inf, listed)[np.searchsorted(listed, inside, side="right")]
    up, down = np.where(up <= high, up, np.inf), np.where(down >= low, down, -np.inf)
    found = np.where(inside - down <= up - inside, down, up)
    return np.where(np.isfinite(found) & ~np.isnan(inside), found, np.nan)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to move, the boxes they may move in, and what counts as flipped."""

    rows: Floats  # (n_rows, n_features) in the user's units
    low: Floats  # (n_rows, n_features)
    high: Floats  # (n_rows, n_features)
    offset: Floats  # (n_features,) z = (x - offset) / scale
    scale: Floats  # (n_features,)
    grain: Int8s  # (n_features,) ANY_FLOAT, FLOAT32, INTEGER, LISTED or STEPPED
    origin: Ints  # (n_rows,) the class to leave
    target: Ints  # (n_rows,) the class to reach, -1 for any other
    first: Floats  # (n_rows, n_features) where to start
    choices: Choices
    lists: Lists
    rules: Rules
    disagreed: int = -1  # the class of points on which several models do not agree, which is no answer

    @cached_property
    def is_category(self) -> NDArray[np.bool_]:
        """(n_features,) which columns hold categories."""
        mask = np.zeros(self.rows.shape[1], bool)
        mask[self.choices.column[self.choices.is_category]] = True
        return mask

    @cached_property
    def is_single(self) -> NDArray[np.bool_]:
        """(n_features,) which columns hold float32 values, or steps as such."""
        mask, (columns, steps) = self.grain == FLOAT32, self.lists.stepped(self.grain)
        if steps is not None:
            mask[columns] = steps.is_single
        return np.asarray(mask)

    def is_flipped(self, predicted: Ints) -> NDArray[np.bool_]:
        """(n_rows,) whether these predictions are what is asked for."""
        is_other = (predicted != self.origin) & (predicted != self.disagreed)
        return np.asarray(np.where(self.target >= 0, predicted == self.target, is_other))

    def is_answer(self, predicted: Ints, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether these predictions are what is asked for, of points that obey every constraint."""
        return np.asarray(self.is_flipped(predicted) & self.obeys(points))

    def obeys(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether each point obeys every constraint."""
        obeyed = self.is_allowed(points) & self.is_on_grain(points)
        return obeyed & self.rules.hold(self.rows, points) if self.rules.all else obeyed

    def is_allowed(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether every value lies in its box."""
        inside = (points >= self.low) & (points <= self.high)
        inside |= np.isnan(points) & np.isnan(self.rows) & ~(self.low > self.high)
        column = self.choices.column
        inside[..., column] |= np.isnan(points[..., column]) | self.choices.is_category
        return np.asarray(inside.all(axis=1) & self.choices.is_allowed(points))

    def is_on_grain(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether every changed value is one that its column can hold."""
        fits = (points == self.rows) | np.isnan(points) | self.is_category
        columns = np.flatnonzero(~fits.all(axis=0))  # most columns of an answer stay as they are
        if columns.size:
            fits[:, columns] |= self._holds(columns, points[:, columns])
        for column in np.flatnonzero((self.grain == LISTED) | self.lists.is_strict).tolist():
            own = points[:, column]
            is_kept = (own == self.rows[:, column]) & (not self.lists.is_strict[column])
            fits[:, column] &= np.isin(own, self.lists.of(column)) | np.isnan(own) | is_kept
        return np.asarray(fits.all(axis=1))

    def changes(self, points: Floats) -> Floats:
        """(n_rows, n_features) how far each value moved, in the space in which distance is measured, with its sign.

        Another category, and a value that becomes known or unknown, count as a change of 1.
        """
        moved = (points - self.rows) / self.scale
        column = self.choices.column
        before, after = self.rows[..., column], points[..., column]
        is_number = ~np.isnan(before) & ~np.isnan(after) & ~self.choices.is_category
        is_other = (before != after) & ~(np.isnan(before) & np.isnan(after))
        moved[..., column] = np.where(is_number, moved[..., column], is_other)
        return np.asarray(moved)

    def changes_of(self, row: int, points: Floats) -> Floats:
        """(n_points, n_features) the same for several points of one row."""
        return self.subset(np.full(len(points), row)).changes(points)

    def to_z(self, points: Floats) -> Floats:
        """The points in the space in which distance is measured; an unchanged value stays exactly where it was."""
        return self.start + (points - self.rows) / self.scale

    def from_z(self, z: Floats) -> Floats:
        """Back to the user's units."""
        return self.rows + (z - self.start) * self.scale

    @property
    def start(self) -> Floats:
        """(n_rows, n_features) the rows in the space in which distance is measured."""
        return (self.rows - self.offset) / self.scale

    def snapped(self, points: Floats) -> Floats:
        """The points with every changed value on its column's grain, inside the box."""
        kept = points == self.rows
        kept &= ~self.lists.is_strict | np.isnan(points)
        kept[..., self.choices.column] |= self.choices.is_category
        is_moved = ~kept.all(axis=tuple(range(kept.ndim - 1)))  # most columns of an answer stay as they are
        columns = np.flatnonzero(is_moved)
        if not columns.size:
            return points.copy()
        found = points.copy()
        on_grain = self._on_grain(columns, is_moved, points[..., columns])
        inside = np.clip(on_grain, self.low[..., columns], self.high[..., columns])
        found[..., columns] = np.where(kept[..., columns], points[..., columns], inside)
        return found

    def _on_grain(self, columns: NDArray[np.intp], is_asked: NDArray[np.bool_], values: Floats) -> Floats:
        """Values of some columns as the columns hold them."""
        grain = self.grain[columns]
        with np.errstate(over="ignore"):
            on_grain = np.where(grain == FLOAT32, values.astype(np.float32).astype(np.float64), values)
        on_grain = np.where(grain == INTEGER, np.rint(values), on_grain)
        for place in np.flatnonzero(grain == LISTED).tolist():
            column = columns[place]
            on_grain[..., place] = self.lists.nearest(
                column, values[..., place], self.low[..., column], self.high[..., column]
            )
        stepped, steps = self.lists.stepped(self.grain)
        if steps is not None and (is_stepped := is_asked[stepped]).any():
            places = grain == STEPPED
            on_grain[..., places] = steps.only(is_stepped).nearest(values[..., places])
        return on_grain

    def _holds(self, columns: NDArray[np.intp], values: Floats) -> NDArray[np.bool_]:
        """Whether values of some columns are on the columns' grain; any are, of lists."""
        grain = self.grain[columns]
        with np.errstate(over="ignore"):
            holds = (grain != FLOAT32) | (values.astype(np.float32) == values)
        holds &= (grain != INTEGER) | (np.rint(values) == values)
        stepped, steps = self.lists.stepped(self.grain)
        if steps is not None and (places := grain == STEPPED).any():
            holds[:, places] = steps.only(np.isin(stepped, columns)).hold(values[:, places])
        return np.asarray(holds)

    def keeping(self, is_kept: NDArray[np.bool_]) -> Batch:
        """The same question with some values, (n_rows, n_features), left as they are; missing ones stay missing."""
        low = np.where(is_kept, np.maximum(self.low, self.rows), self.low)
        high = np.where(is_kept, np.minimum(self.high, self.rows), self.high)
        first = np.where(is_kept, self.rows, self.first)
        return replace(self, low=low, high=high, first=first, choices=self.choices.keeping(is_kept))

    def subset(self, chosen: NDArray[np.intp]) -> Batch:
        """The same question for some of the rows."""
        return Batch(
            self.rows[chosen], self.low[chosen], self.high[chosen], self.offset, self.scale, self.grain,
            self.origin[chosen], self.target[chosen], self.first[chosen], self.choices.subset(chosen),
            self.lists, self.rules, self.disagreed,
        )  # fmt: skip
