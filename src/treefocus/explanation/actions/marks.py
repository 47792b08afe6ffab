"""Values at which a model's answer can change: where the cells begin and end on which its forest is constant.

The best action of any kind goes just as far as one of these values, or by what lies between somebody and one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treefocus import kernels
from treefocus.explanation.actions.pairs import Applicants
from treefocus.explanation.actions.steps import AT_LEAST, AT_MOST, BY, SET, ActionStep
from treefocus.explanation.rounding import shortest
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER, LISTED

_SHARES = (0.0002, 0.005)  # of a change of 1, by which a mark may be further in its cell, for fewer digits
_OFFSETS = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34])  # places from a step's own value, on each side
_SPREAD = 8  # values over the whole range
_MOST_ROWS = 100  # between which and a mark a step by so much may lie


@dataclass(frozen=True, eq=False)
class Marks:
    """Of each column that holds numbers and may change, where steps of every kind may lead."""

    values: dict[tuple[int, str], Floats]  # of a column and a kind of step, ascending
    names: tuple[str, ...]

    @classmethod
    def of(cls, people: Applicants) -> Marks:
        """For what most of these people are asked."""
        problem, found = people.problem, dict[tuple[int, str], Floats]()
        batch, grid = problem.batch, kernels.grid_of(problem.forest)
        few = batch.rows[np.unique(np.linspace(0, len(batch.rows) - 1, _MOST_ROWS).astype(np.intp))]
        for j in np.flatnonzero(~batch.is_category & (batch.high > batch.low).any(axis=0)).tolist():
            own = slice(grid.cell_start[j], grid.cell_start[j + 1])
            begins, ends = _inside(problem, j, grid.low[own], grid.high[own])
            rows = few[~np.isnan(few[:, j]), j]
            up = np.maximum.outer(begins, rows) - rows
            down = np.minimum.outer(ends, rows) - rows
            is_whole = bool(batch.grain[j] == INTEGER)
            found[j, AT_LEAST], found[j, AT_MOST] = begins, ends
            found[j, SET] = np.unique(np.concatenate([begins, ends]))
            found[j, BY] = np.unique(np.concatenate([_short(up[up > 0], is_whole), _short(down[down < 0], is_whole)]))
        return cls(found, tuple(people.answers.schema.names))

    @property
    def columns(self) -> list[int]:
        """Those that have marks."""
        return sorted({column for column, _ in self.values})

    def near(self, column: int, kind: str, value: float) -> list[ActionStep]:
        """The steps to the values next to this one."""
        own = self.values[column, kind]
        places = np.searchsorted(own, value) + np.concatenate([-_OFFSETS, _OFFSETS])
        return self._steps(column, kind, own[np.unique(places[(places >= 0) & (places < len(own))])])

    def spread(self, column: int, kind: str) -> list[ActionStep]:
        """Steps to a few values over the whole range."""
        own = self.values[column, kind]
        places = np.unique(np.linspace(0, max(len(own) - 1, 0), min(_SPREAD, len(own))).astype(np.intp))
        return self._steps(column, kind, own[places])

    def _steps(self, column: int, kind: str, values: Floats) -> list[ActionStep]:
        return [ActionStep(column, kind, float(value), self.names[column]) for value in values]


def _inside(problem: Problem, j: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Where a column's cells begin and end, as far as any row may go, in numbers of few digits that it can hold."""
    batch = problem.batch
    low = np.maximum(low, np.nanmin(batch.low[:, j]))
    high = np.minimum(high, np.nanmax(batch.high[:, j]))
    kept = np.isfinite(low) & np.isfinite(high)
    low, high = low[kept], high[kept]
    if batch.grain[j] == LISTED:
        listed = batch.lists.of(j)
        first, last = np.searchsorted(listed, low, side="left"), np.searchsorted(listed, high, side="right") - 1
        kept = first <= last
        return listed[first[kept]], listed[last[kept]]
    wide = np.zeros((2, len(low), len(batch.scale)))
    wide[0, :, j], wide[1, :, j] = low, high
    from_, to = batch.lists.inside(wide[0], wide[1], batch.grain)
    kept = from_[:, j] <= to[:, j]
    low, high = from_[kept, j], to[kept, j]
    if batch.grain[j] not in (ANY_FLOAT, FLOAT32):
        return low, high
    is_single = np.full(len(low), batch.grain[j] == FLOAT32)
    tolerances = [np.full(len(low), share * batch.scale[j]) for share in _SHARES]
    begins, ends = ([shortest(end, low, high, own, is_single) for own in tolerances] for end in (low, high))
    return np.unique(begins), np.unique(ends)


def _short(steps: Floats, is_whole: bool) -> Floats:
    """The steps in three digits, none shorter than it was."""
    if is_whole or not steps.size:
        return np.unique(steps)
    power = 10.0 ** (np.floor(np.log10(np.abs(steps))) - 2)
    return np.unique([float(f"{step:.3g}") for step in np.sign(steps) * np.ceil(np.abs(steps) / power) * power])
