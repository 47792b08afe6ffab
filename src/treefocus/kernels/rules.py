"""Relations between columns, as the kernels take them, and their truth in plain NumPy.

What they mean, and how the exact search uses them, stands in cpp/treefocus/rules.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.forest import Bools, Floats, Forest, Ints
from treefocus.grid import Grid, as_input

_TOLERANCE = 1e-9  # of a sum, relative to its terms


@dataclass(frozen=True, eq=False)
class AtMost:
    """No more than `n` of the columns change."""

    columns: Ints
    n: int

    def holds(self, rows: Floats, points: Floats, moved: Bools) -> Bools:
        """(n_rows,) whether each point obeys."""
        before, after = rows[:, self.columns], points[:, self.columns]
        is_changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
        return np.asarray(is_changed.sum(axis=1) <= self.n)


@dataclass(frozen=True, eq=False)
class Together:
    """The columns move to another cell all or not at all."""

    columns: Ints

    def holds(self, rows: Floats, points: Floats, moved: Bools) -> Bools:
        """(n_rows,) whether each point obeys; `moved` (n_rows, n_features) says which values are in another cell."""
        n_moved = moved[:, self.columns].sum(axis=1)
        return np.asarray((n_moved == 0) | (n_moved == len(self.columns)))


@dataclass(frozen=True, eq=False)
class Cells:
    """Some cells of one column: a value from low to high as the model sees it, or some of its categories."""

    column: int
    low: float
    high: float
    categories: Bools | None = None  # (n_labels,)

    def has(self, values: Floats) -> Bools:
        """(n_rows,) whether each value is in one of them; a missing one never is."""
        if self.categories is None:
            return np.asarray((values >= self.low) & (values <= self.high))
        number = np.where(np.isnan(values), len(self.categories), values).astype(np.intp)
        return np.append(self.categories, False)[np.minimum(number, len(self.categories))]

    def on(self, grid: Grid) -> tuple[int, int, NDArray[np.uint8]]:
        """The codes from and to, or a mask over the column's cells."""
        first, end = grid.cell_start[self.column], grid.cell_start[self.column + 1]
        if self.categories is not None:
            mask = np.zeros(end - first, np.uint8)
            mask[: len(self.categories)] = self.categories
            return 0, 0, mask
        inside = (grid.low[first:end] >= self.low) & (grid.high[first:end] <= self.high)
        if grid.has_sets[self.column]:
            return 0, 0, inside.astype(np.uint8)
        codes = np.flatnonzero(inside)
        no_mask = np.empty(0, np.uint8)
        return (int(codes[0]), int(codes[-1]), no_mask) if codes.size else (1, 0, no_mask)


@dataclass(frozen=True, eq=False)
class Implies:
    """Where a value is in the cells of the cause, another is in those of the effect."""

    cause: Cells
    effect: Cells

    def holds(self, rows: Floats, points: Floats, moved: Bools) -> Bools:
        """(n_rows,) whether each point obeys; values as the model sees them."""
        return ~self.cause.has(points[:, self.cause.column]) | self.effect.has(points[:, self.effect.column])


@dataclass(frozen=True, eq=False)
class Linear:
    """sum of coefficient * value <= bound; asks nothing where one of the values is missing."""

    columns: Ints
    coefficient: Floats
    bound: float

    def holds(self, rows: Floats, points: Floats, moved: Bools) -> Bools:
        """(n_rows,) whether each point obeys."""
        terms = points[:, self.columns] * self.coefficient
        size = abs(self.bound) + np.abs(terms).sum(axis=1)
        return np.asarray(~(terms.sum(axis=1) > self.bound + _TOLERANCE * size))


Rule = AtMost | Together | Implies | Linear


def _plain(rule: Rule | Cells) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for own in fields(rule):
        value = getattr(rule, own.name)
        if isinstance(value, Cells):
            value = _plain(value)
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, float) and not np.isfinite(value):
            value = str(value)  # JSON has no infinities
        record[own.name] = value
    return record


def _rule(record: dict[str, Any]) -> Rule:
    kind = record["kind"]
    if kind == "Implies":
        return Implies(_cells(record["cause"]), _cells(record["effect"]))
    columns = np.array(record["columns"], np.int32)
    if kind == "AtMost":
        return AtMost(columns, int(record["n"]))
    if kind == "Together":
        return Together(columns)
    return Linear(columns, np.array(record["coefficient"], np.float64), float(record["bound"]))


def _cells(record: dict[str, Any]) -> Cells:
    named = record["categories"]
    named = None if named is None else np.array(named, bool)
    return Cells(int(record["column"]), float(record["low"]), float(record["high"]), named)


@dataclass(frozen=True, eq=False)
class Rules:
    """All relations of a question."""

    all: tuple[Rule, ...] = field(default=())

    def hold(self, forest: Forest, grid: Grid, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys every one."""
        obeyed = np.ones(len(points), bool)
        if self.all:
            moved = grid.encode(forest, rows) != grid.encode(forest, points)
            seen = as_input(points, forest.input_dtype)
            for rule in self.all:
                obeyed &= rule.holds(rows, seen if isinstance(rule, Implies) else points, moved)
        return obeyed

    def to_record(self) -> list[dict[str, Any]]:
        """As plain lists, for JSON."""
        return [{"kind": type(rule).__name__} | _plain(rule) for rule in self.all]

    @classmethod
    def from_record(cls, record: list[dict[str, Any]]) -> Rules:
        """From what `to_record` gave."""
        return cls(tuple(_rule(one) for one in record))
