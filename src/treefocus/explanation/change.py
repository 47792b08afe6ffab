"""What has to change: one feature, before and after, and how much of the whole that is."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from treefocus.explanation.json_values import cell, number
from treefocus.explanation.rounding import difference, short_before
from treefocus.model.forest import Floats
from treefocus.schema.schema import FLOAT32, Feature, Schema
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
    days: float | None = None  # how far a date moves

    @property
    def before_shown(self) -> Any:
        """The value before in no more digits than the column has, or else in as few as the change needs."""
        is_number = isinstance(self.before, Real) and isinstance(self.shown, Real)
        if self.is_category or isinstance(self.before, bool) or not is_number:
            return self.before
        return short_before(self.before, self.shown, self.decimals)

    @property
    def moved(self) -> float | None:
        """How far a number moves, as it is told; None for a category, a date, and what is or becomes missing."""
        if self.is_category or not (isinstance(self.before, Real) and isinstance(self.shown, Real)):
            return None
        return difference(float(self.before_shown), float(self.shown))

    @property
    def is_down(self) -> bool:
        """Whether a number shrinks, or a date comes earlier."""
        return (self.days or 0.0) < 0 or (self.moved is not None and bool(self.after < self.before))

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
            *_values(table, i, j, point[j], shown[j], schema.features[j], is_boolean[j]),
            share=float(part[j] / total),
            unit=schema.features[j].unit,
            part=float(parts[j]),
            is_category=table.labels_of(j) is not None,
            decimals=schema.features[j].decimals,
            days=_days(schema.features[j], row[j], point[j]),
        )
        for j in map(int, order)
    )


def _values(
    table: Table, i: int, j: int, point: float, shown: float, feature: Feature, is_boolean: bool
) -> tuple[Any, Any, Any]:
    """Before, after and what is shown of it, in one column."""
    before, own = table.cell(i, j), table.labels_of(j)
    if own is not None:
        after = label_of(point, own)
        return before, after, after
    before = None if before is None else as_written(before, table.grain[j])
    after = None if np.isnan(point) else told_value(float(point), feature, is_boolean)
    if is_boolean or feature.kind == "boolean":
        return as_truth(before), after, after
    if after is None or isinstance(after, float):
        return told_value(before, feature), after, None if after is None else float(shown)
    return told_value(before, feature), after, after


def told_value(value: float | None, feature: Feature, is_boolean: bool = False) -> Any:
    """A number of a column as its owner knows it: a truth, a date, or the number."""
    if value is None:
        return None
    if is_boolean or feature.kind == "boolean":
        return as_truth(value)
    return value if feature.counting is None else feature.counting.told(value, feature.kind)


def _days(feature: Feature, before: float, after: float) -> float | None:
    """How many days a date moves, None where it is no date, or one of them is missing."""
    if feature.counting is None or np.isnan(before) or np.isnan(after):
        return None
    return float(after - before) / feature.counting.per_day


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
