"""Relations between columns, as the kernels take them, and their truth in plain NumPy.

What they mean, and how the exact search uses them, stands in cpp/treefocus/rules.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Bools, Floats, Ints
from treefocus.model.grid import Grid

_ULPS = 2 * np.finfo(np.float64).eps  # how far rounding may bring a sum above its bound, relative to its largest term


def _n_changed(rows: Floats, points: Floats, columns: Ints) -> Ints:
    """(n_rows,) how many of the columns have another value."""
    before, after = rows[:, columns], points[:, columns]
    return np.asarray(((before != after) & ~(np.isnan(before) & np.isnan(after))).sum(axis=1))


@dataclass(frozen=True, eq=False)
class AtMostRule:
    """No more than `n` of the columns change."""

    columns: Ints
    n: int

    def holds(self, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys."""
        return np.asarray(_n_changed(rows, points, self.columns) <= self.n)


@dataclass(frozen=True, eq=False)
class TogetherRule:
    """The columns change all or not at all."""

    columns: Ints

    def holds(self, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys."""
        n_changed = _n_changed(rows, points, self.columns)
        return np.asarray((n_changed == 0) | (n_changed == len(self.columns)))


@dataclass(frozen=True, eq=False)
class Cells:
    """A condition on one column: a value from low to high, or some of its categories."""

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

    def on(self, grid: Grid) -> tuple[float, float, NDArray[np.uint8]]:
        """The values from and to, or a mask over the column's cells."""
        if self.categories is None:
            return self.low, self.high, np.empty(0, np.uint8)
        mask = np.zeros(grid.cell_start[self.column + 1] - grid.cell_start[self.column], np.uint8)
        mask[: len(self.categories)] = self.categories
        return 0.0, 0.0, mask


@dataclass(frozen=True, eq=False)
class ImpliesRule:
    """Where a value meets the cause, another meets the effect."""

    cause: Cells
    effect: Cells

    def holds(self, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys."""
        return ~self.cause.has(points[:, self.cause.column]) | self.effect.has(points[:, self.effect.column])


@dataclass(frozen=True, eq=False)
class LinearRule:
    """sum of coefficient * value <= bound; asks nothing where one of the values is missing."""

    columns: Ints
    coefficient: Floats
    bound: float

    def holds(self, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys."""
        terms = points[:, self.columns] * self.coefficient
        largest = np.maximum(abs(self.bound), np.abs(terms).max(axis=1))
        return np.asarray(~(terms.sum(axis=1) > self.bound + _ULPS * largest))


Rule = AtMostRule | TogetherRule | ImpliesRule | LinearRule
_KINDS: dict[type[Rule], str] = {
    AtMostRule: "AtMost", TogetherRule: "Together", ImpliesRule: "Implies", LinearRule: "Linear",
}  # fmt: skip


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
        return ImpliesRule(_cells(record["cause"]), _cells(record["effect"]))
    columns = np.array(record["columns"], np.int32)
    if kind == "AtMost":
        return AtMostRule(columns, int(record["n"]))
    if kind == "Together":
        return TogetherRule(columns)
    return LinearRule(columns, np.array(record["coefficient"], np.float64), float(record["bound"]))


def _cells(record: dict[str, Any]) -> Cells:
    named = record["categories"]
    named = None if named is None else np.array(named, bool)
    return Cells(int(record["column"]), float(record["low"]), float(record["high"]), named)


@dataclass(frozen=True, eq=False)
class Rules:
    """All relations of a question."""

    all: tuple[Rule, ...] = field(default=())

    def hold(self, rows: Floats, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys every one: as numbers of the user, whatever a model makes of them."""
        obeyed = np.ones(len(points), bool)
        for rule in self.all:
            obeyed &= rule.holds(rows, points)
        return obeyed

    def to_record(self) -> list[dict[str, Any]]:
        """As plain lists, for JSON."""
        return [{"kind": _KINDS[type(rule)]} | _plain(rule) for rule in self.all]

    @classmethod
    def from_record(cls, record: list[dict[str, Any]]) -> Rules:
        """From what `to_record` gave."""
        return cls(tuple(_rule(one) for one in record))
