"""What has to change: one feature, before and after, and how much of the whole that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.explanation.json_values import cell, number
from treefocus.explanation.rounding import difference, short_before
from treefocus.model.forest import Floats
from treefocus.schema.schema import FLOAT32, Schema
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table


@dataclass(frozen=True)
class Change:
    """One feature that has to move: a number, a category, or None for a missing value, before and after.

    `shown` is the shortest number that the model cannot tell from `after`, at most 0.5 % of the change away from it,
    that the constraints allow in the row as it is told; where there is none, `after` itself.
    """

    feature: str
    before: Any
    after: Any
    shown: Any
    share: float  # of the total change, measured in the scaled space
    unit: str = ""
    part: float = 0.0  # the change in the scaled space
    is_category: bool = False
    decimals: int | None = None  # that the column has, where that is known

    @property
    def before_shown(self) -> Any:
        """The value before in no more digits than the column has, or else in as few as the change needs."""
        if self.is_category or isinstance(self.before, bool) or self.before is None or self.shown is None:
            return self.before
        return short_before(self.before, self.shown, self.decimals)

    @property
    def moved(self) -> float | None:
        """How far a number moves, as it is told; None for a category, and where a value is or becomes missing."""
        if self.is_category or self.before is None or self.shown is None:
            return None
        return difference(float(self.before_shown), float(self.shown))

    @property
    def is_down(self) -> bool:
        """Whether a number shrinks."""
        return self.moved is not None and bool(self.after < self.before)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        record = {
            "feature": self.feature, "before": cell(self.before), "after": cell(self.after),
            "shown": cell(self.shown), "share": self.share, "unit": self.unit,
            "part": number(self.part),
        }  # fmt: skip
        return record | {"is_category": True} if self.is_category else record


Changes = tuple[Change, ...]


def changes_of(schema: Schema, table: Table, i: int, point: Floats, shown: Floats, parts: Floats) -> Changes:
    """The changes from row i of a table to a point, the others (n_features,), the largest first."""
    row, part = table.values[i], np.abs(parts)
    moved = np.flatnonzero((row != point) & ~(np.isnan(row) & np.isnan(point)))
    order = moved[np.argsort(-part[moved], kind="stable")]
    total = part[moved].sum()
    is_boolean = table.is_boolean
    if not total > 0:  # changes too small to be measured
        part, total = np.ones_like(part), float(len(moved))
    return tuple(
        Change(
            schema.features[j].name,
            *_values(table, i, j, point[j], shown[j], is_boolean[j] or schema.features[j].kind == "boolean"),
            share=float(part[j] / total),
            unit=schema.features[j].unit,
            part=float(parts[j]),
            is_category=table.labels_of(j) is not None,
            decimals=schema.features[j].decimals,
        )
        for j in map(int, order)
    )


def _values(table: Table, i: int, j: int, point: float, shown: float, is_boolean: bool) -> tuple[Any, Any, Any]:
    """Before, after and what is shown of it, in one column."""
    before, own = table.cell(i, j), table.labels_of(j)
    if own is not None:
        after = label_of(point, own)
        return before, after, after
    before = None if before is None else as_written(before, table.grain[j])
    if is_boolean:
        after = None if np.isnan(point) else as_truth(float(point))
        return as_truth(before), after, after
    return before, *((None, None) if np.isnan(point) else (float(point), float(shown)))


def as_truth(value: float | None) -> bool | float | None:
    """0 and 1 of a boolean column as False and True; what else a row may hold there stays."""
    return bool(value) if value in (0, 1) else value


def as_written(value: float, grain: int) -> float:
    """A float32 value as its owner wrote it: 0.1, and not 0.10000000149011612."""
    return float(str(np.float32(value))) if grain == FLOAT32 else float(value)


def plain(value: Any) -> Any:
    """A label as Python's own value."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value
