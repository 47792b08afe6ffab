"""Columns whose values are chosen cell by cell: categories, and numbers that may be, or become, missing."""

from __future__ import annotations

import numpy as np

from treefocus import kernels
from treefocus.forest import Bools, Floats, Forest
from treefocus.kernels.inputs import Choices, Int8s
from treefocus.schema import snapped_down


def choices_of(
    forest: Forest,
    rows: Floats,
    low: Floats,
    high: Floats,
    *,
    scale: Floats,
    grain: Int8s,
    typical: Floats,
    may_be_missing: Bools,
    is_kept: bool = False,
    is_listed: dict[int, Bools] | None = None,
    domain: dict[int, Bools] | None = None,
) -> Choices:
    """What each row may choose, inside its box [low, high]: (n_rows, n_features), category numbers included.

    `typical` stands for an unknown value that becomes known. A value may stay missing; it may become missing where
    `may_be_missing`. `is_kept`: all stay as they are, because the distance cannot measure them. `is_listed` says, by
    column, which categories the constraints name, where they do, and `domain` which may be moved to.
    """
    grid = kernels.grid_of(forest)
    columns = np.flatnonzero(grid.has_sets)
    if not columns.size:
        return Choices.none(len(rows))
    labels = forest.categories.labels if forest.categories is not None else (None,) * forest.n_features
    codes = grid.encode(forest, rows)
    values, deltas = [], []
    for j in columns.tolist():
        box = low[:, j, None], high[:, j, None]
        own = labels[j]
        if own is not None:
            value, delta = _of_categories(rows[:, j, None], *box, len(own))
            if is_listed is not None and j in is_listed:
                delta[:, np.append(~is_listed[j], False)] = np.inf
            if domain is not None and j in domain:
                delta[(delta > 0) & np.append(~domain[j], False)] = np.inf
        else:
            cells = slice(grid.cell_start[j], grid.cell_start[j + 1] - 1)  # without the missing value's
            is_own = codes[:, j, None] == np.arange(cells.stop - cells.start)
            value, delta = _of_numbers(
                grid.low[cells], grid.high[cells], is_own, rows[:, j, None], *box, scale[j], int(grain[j]), typical[j]
            )
        missing = np.where(np.isnan(rows[:, j]), 0.0, 1.0 if may_be_missing[j] else np.inf)
        delta[(delta > 0) & is_kept] = np.inf
        values.append(np.column_stack([value, np.full(len(rows), np.nan)]))
        deltas.append(np.column_stack([delta, missing]))
    start = np.concatenate([[0], np.cumsum([value.shape[1] for value in values])])
    is_category = np.array([labels[j] is not None for j in columns])
    value, delta = (np.ascontiguousarray(np.concatenate(parts, axis=1)) for parts in (values, deltas))
    return Choices(columns, is_category, start.astype(np.intp), value, delta)


def _of_categories(own: Floats, low: Floats, high: Floats, n_labels: int) -> tuple[Floats, Floats]:
    """Every category of the box, at a distance of 1; an unseen one only where it is the row's own."""
    number = np.arange(n_labels + 1.0)
    allowed = (number >= low) & (number <= high) & (number < n_labels)
    delta = np.where(allowed, 1.0, np.inf)
    delta[number == own] = 0.0
    delta[(number == own) & ~((own >= low) & (own <= high))] = np.inf  # the constraints say that it cannot stay
    return np.broadcast_to(number, delta.shape).copy(), delta


def _of_numbers(
    cell_low: Floats,
    cell_high: Floats,
    is_own: Bools,
    own: Floats,
    low: Floats,
    high: Floats,
    scale: float,
    grain: int,
    typical: float,
) -> tuple[Floats, Floats]:
    """The closest allowed value of every cell; from an unknown value, the one closest to the typical, at 1."""
    from_ = np.where(np.isnan(own), typical, own)
    below = -snapped_down(-np.maximum(cell_low, low), grain)
    above = snapped_down(np.minimum(cell_high, high), grain)
    is_inside = is_own & (own >= low) & (own <= high)
    with np.errstate(invalid="ignore"):
        value = np.where(is_inside, own, np.clip(from_, below, np.maximum(below, above)))
        value = np.where(np.isnan(own), -snapped_down(-value, grain), value)
        delta = np.where(np.isnan(own), 1.0, np.abs(value - own) / scale)
    delta[~is_inside & ~((below <= above) & (value <= above))] = np.inf
    return np.asarray(value), np.asarray(delta)
