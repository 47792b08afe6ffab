"""The cells of a column as a proof has them: ranges of allowed numbers, categories, the missing value (docs/proof.md).

Numbers are cut finer than the model cuts them: at its thresholds, at the ends of conditions, at the values where the
search has split, and at the row's own value, which is a cell of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.inputs import Batch
from treefocus.kernels.rules import ImpliesRule
from treefocus.model.forest import Floats, Forest
from treefocus.model.grid import as_input
from treefocus.schema.schema import LISTED

_LAST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class ProofCells:
    """The cells of one column, those that hold an allowed value, in ascending order, a missing value's last."""

    begin: Floats  # (n_cells,) where each begins, the smallest number for the first; NaN for a missing value
    first: Floats  # (n_cells,) the first allowed value of each; a category's number; NaN for a missing value
    last: Floats  # (n_cells,) and the last
    code: NDArray[np.intp]  # (n_cells,) the cell of the model's grid in which each lies
    is_own: NDArray[np.bool_]  # (n_cells,) whether it is the row's own value

    @classmethod
    def of(cls, forest: Forest, batch: Batch, column: int, at: Iterable[float]) -> ProofCells:
        """Of a column of the batch's only row; `at` are further numbers at which cells begin."""
        choices, own = batch.choices, batch.rows[0, column]
        place = np.flatnonzero(choices.column == column)
        may_be = np.zeros(0, bool)
        if place.size:
            may_be = np.isfinite(choices.delta[0, choices.start[place[0]] : choices.start[place[0] + 1]])
            if choices.is_category[place[0]]:
                return cls._of_categories(may_be, own)
        grid = kernels.grid_of(forest)
        cuts = grid.threshold[grid.start[column] : grid.start[column + 1]]
        numbers = cls._of_numbers(first_above(cuts, forest.input_dtype), batch, column, at)
        is_frozen = bool(np.isnan(own)) and not place.size
        if is_frozen:
            numbers = numbers.only(np.zeros(len(numbers.begin), bool))
        if is_frozen or (may_be.size and may_be[-1]):
            return numbers.with_missing(len(cuts) + 1, is_own=bool(np.isnan(own)))
        return numbers

    @classmethod
    def _of_categories(cls, may_be: NDArray[np.bool_], own: float) -> ProofCells:
        code = np.flatnonzero(may_be)
        number = np.where(code == len(may_be) - 1, np.nan, code.astype(np.float64))
        return cls(number, number, number, code, (number == own) | (np.isnan(number) & np.isnan(own)))

    @classmethod
    def _of_numbers(cls, firsts: Floats, batch: Batch, column: int, at: Iterable[float]) -> ProofCells:
        own = float(batch.rows[0, column])
        after = np.nextafter(own, np.inf)
        starts = np.array([*firsts, *at, *_conditions(batch, column), *((own, after) if np.isfinite(own) else ())])
        begin = np.unique(np.concatenate([[-_LAST], starts[np.isfinite(starts)]])) + 0.0
        end = np.append(np.nextafter(begin[1:], -np.inf), _LAST)
        first, last = _inside(batch, column, begin, end)
        is_own = begin == own
        listed = batch.lists.of(column)
        may_stay = batch.low[0, column] <= own <= batch.high[0, column]
        may_stay &= bool(not batch.lists.is_strict[column] or (listed == own).any())
        first, last = np.where(is_own, own, first), np.where(is_own, own, last)
        cells = cls(begin, first, last, np.searchsorted(firsts, begin, side="right"), is_own)
        return cells.only(np.where(is_own, may_stay, first <= last))

    def only(self, kept: NDArray[np.bool_]) -> ProofCells:
        """Some of them."""
        return ProofCells(self.begin[kept], self.first[kept], self.last[kept], self.code[kept], self.is_own[kept])

    def merged(self, own: float, reach: float) -> ProofCells:
        """The same, with all numbers farther than that from the row's own in one cell a side."""
        is_far = np.maximum(self.first - own, own - self.last) > reach  # a missing value and a missing row: nothing
        side = np.where(is_far, np.sign(self.first - own), 0.0)
        is_next = np.append(False, (side[1:] != 0) & (side[1:] == side[:-1]))
        end = np.append(np.flatnonzero(~is_next)[1:], len(side)) - 1
        kept = self.only(~is_next)
        return ProofCells(kept.begin, kept.first, self.last[end], kept.code, kept.is_own)

    def with_missing(self, code: int, *, is_own: bool) -> ProofCells:
        """The same and a missing value."""
        begin, first, last = (np.append(own, np.nan) for own in (self.begin, self.first, self.last))
        return ProofCells(begin, first, last, np.append(self.code, code), np.append(self.is_own, is_own))


def first_above(thresholds: Floats, input_dtype: str) -> Floats:
    """The first float64 that is above each threshold as the model sees it."""
    if input_dtype == "float64":
        return np.nextafter(thresholds, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.nextafter(thresholds.astype(np.float32), np.float32(np.inf)).astype(np.float64)
        middle = thresholds + (above - thresholds) / 2
        is_up = as_input(middle, "float32") > thresholds
    first = np.where(is_up, middle, np.nextafter(middle, np.inf))
    return np.where(np.isfinite(above), first, np.inf)


def _conditions(batch: Batch, column: int) -> list[float]:
    """Where the conditions of rules begin, and where what is above them does."""
    conditions = [one for rule in batch.rules.all if isinstance(rule, ImpliesRule) for one in (rule.cause, rule.effect)]
    own = [one for one in conditions if one.column == column and one.categories is None]
    return [end for one in own for end in (one.low, float(np.nextafter(one.high, np.inf)))]


def _inside(batch: Batch, column: int, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The first and the last allowed number of every range, the first above the last where there is none."""
    if not batch.low[0, column] <= batch.high[0, column]:  # nothing is within, as of a missing value that may only fall
        return np.full(len(begin), np.inf), np.full(len(begin), -np.inf)
    low = np.maximum(begin, batch.low[0, column])
    high = np.minimum(end, batch.high[0, column])
    if batch.grain[column] == LISTED:
        listed = np.sort(batch.lists.of(column))
        first = np.append(listed, np.inf)[np.searchsorted(listed, low)]
        return first, np.append(-np.inf, listed)[np.searchsorted(listed, high, side="right")]
    wide = np.ones(batch.rows.shape[1]) * low[:, None], np.ones(batch.rows.shape[1]) * high[:, None]
    first, last = batch.lists.inside(*wide, batch.grain)
    return first[:, column], last[:, column]
