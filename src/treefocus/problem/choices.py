"""Columns whose values are chosen cell by cell: categories, and numbers that may be, or become, missing."""

from __future__ import annotations

import numpy as np

from treefocus import kernels
from treefocus.constraints.kinds import Draft
from treefocus.kernels.inputs import Choices, Int8s, Lists, nearest_of
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.grid import Grid, as_input
from treefocus.schema.schema import LISTED, snapped_down


def choices_of(
    forest: Forest,
    draft: Draft,
    *,
    scale: Floats,
    grain: Int8s,
    lists: Lists,
    typical: Floats,
    is_kept: bool = False,
    domain: dict[int, Bools] | None = None,
) -> Choices:
    """What each row of the draft may choose.

    `typical` stands for an unknown value that becomes known. A value may stay missing, unless the column must be known;
    it may become missing where the draft says so. `is_kept`: all stay as they are, because the distance cannot measure
    them. `domain` says, by column, which categories may be moved to.
    """
    grid = kernels.grid_of(forest)
    columns = np.flatnonzero(grid.has_sets)
    rows = draft.rows
    if not columns.size:
        return Choices.none(len(rows))
    codes = grid.encode(forest, rows)
    values, deltas = [], []
    for j in columns.tolist():
        if draft.labels[j] is not None:
            value, delta = _of_categories(draft, j)
            if domain is not None and j in domain:
                delta[(delta > 0) & np.append(~domain[j], False)] = np.inf
        else:
            column = _Column(grid, forest, j, scale[j], int(grain[j]), typical[j])
            value, delta = column.choices(draft, codes[:, j], lists)
        delta[(delta > 0) & is_kept] = np.inf
        values.append(np.column_stack([value, np.full(len(rows), np.nan)]))
        deltas.append(np.column_stack([delta, _of_missing(draft, j)]))
    start = np.concatenate([[0], np.cumsum([value.shape[1] for value in values])])
    is_category = np.array([draft.labels[j] is not None for j in columns])
    value, delta = (np.ascontiguousarray(np.concatenate(parts, axis=1)) for parts in (values, deltas))
    return Choices(columns, is_category, start.astype(np.intp), value, delta)


def _of_missing(draft: Draft, j: int) -> Floats:
    """(n_rows,) how far a missing value is."""
    stays = np.inf if draft.must_be_known[j] else 0.0
    return np.where(np.isnan(draft.rows[:, j]), stays, 1.0 if draft.may_become_missing[j] else np.inf)


def _of_categories(draft: Draft, j: int) -> tuple[Floats, Floats]:
    """Every category that is allowed, at a distance of 1; an unseen one only where it is the row's own."""
    own, low, high = (values[:, j, None] for values in (draft.rows, draft.low, draft.high))
    n_labels = len(draft.labels[j] or ())
    number = np.arange(n_labels + 1.0)
    delta = np.where((number >= low) & (number <= high) & (number < n_labels), 1.0, np.inf)
    delta[number == own] = 0.0
    delta[(number == own) & ~((own >= low) & (own <= high))] = np.inf  # the constraints say that it cannot stay
    if j in draft.barred:
        delta[draft.barred[j]] = np.inf
    if j in draft.named:
        delta[:, np.append(~draft.named[j], True)] = np.inf
    return np.broadcast_to(number, delta.shape).copy(), delta


class _Column:
    """A column of numbers, cell by cell."""

    def __init__(self, grid: Grid, forest: Forest, j: int, scale: float, grain: int, typical: float) -> None:
        cells = slice(grid.cell_start[j], grid.cell_start[j + 1] - 1)  # without the missing value's
        self.cell_low, self.cell_high = grid.low[cells], grid.high[cells]
        self.threshold = grid.threshold[grid.start[j] : grid.start[j + 1]]
        self.input_dtype = forest.input_dtype
        self.j, self.scale, self.grain, self.typical = j, scale, grain, typical

    def choices(self, draft: Draft, code: Ints, lists: Lists) -> tuple[Floats, Floats]:
        """The closest allowed value of every cell; from an unknown value, the one closest to the typical, at 1."""
        own, low, high = (values[:, self.j, None] for values in (draft.rows, draft.low, draft.high))
        may_stay = (own >= low) & (own <= high)
        if lists.is_strict[self.j]:
            may_stay &= np.isin(own, lists.of(self.j))
        stays = may_stay & (code[:, None] == np.arange(len(self.cell_low)))
        from_ = np.where(np.isnan(own), self.typical, own)
        if self.grain == LISTED:
            value = self._listed(lists.of(self.j), from_, low, high)
        else:
            value = self._closest(from_, low, high, np.isnan(own))
        value = np.where(stays, own, value)
        delta = np.where(np.isnan(own), 1.0, np.abs(value - own) / self.scale)
        return value, np.where(np.isnan(value), np.inf, delta)

    def _closest(self, from_: Floats, low: Floats, high: Floats, is_unknown: Bools) -> Floats:
        """(n_rows, n_cells) the value of each cell, on the column's grain, closest to the given; NaN where none is."""
        below = -snapped_down(-np.maximum(self.cell_low, low), self.grain)
        above = snapped_down(np.minimum(self.cell_high, high), self.grain)
        with np.errstate(invalid="ignore"):
            value = np.clip(from_, below, np.maximum(below, above))
            value = np.where(is_unknown, -snapped_down(-value, self.grain), value)
            return np.where((below <= above) & (value <= above), value, np.nan)

    def _listed(self, listed: Floats, from_: Floats, low: Floats, high: Floats) -> Floats:
        """(n_rows, n_cells) the listed value of each cell closest to the given; NaN where none is."""
        cell = np.searchsorted(self.threshold, as_input(listed, self.input_dtype), side="left")
        columns = [nearest_of(listed[cell == c], from_, low, high) for c in range(len(self.cell_low))]
        return np.concatenate(columns, axis=1)
