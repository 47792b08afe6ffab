"""What constraints write into: the box, the lists and the rules of every row's answer, as far as they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from numbers import Integral, Real
from typing import Any

import numpy as np

from treefocus.constraints import words
from treefocus.errors import InvalidInput, reject
from treefocus.kernels import rules
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats
from treefocus.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Draft:
    """What constraints write into: what the answers to some rows may be, column by column."""

    rows: Floats  # (n_rows, n_features) in the user's units, a category as its number
    low: Floats  # (n_rows, n_features) NaN leaves nothing but a missing value
    high: Floats  # (n_rows, n_features)
    schema: Schema
    labels: Labels  # per column: its categories, None where it is numeric
    orders: Labels  # per column: its categories in their order, None where none is known besides the schema's
    may_be_missing: Bools  # (n_features,)
    is_fixed: Bools  # (n_features,)
    listed: dict[int, Floats] = field(default_factory=dict)  # numeric columns that take only these values
    named: dict[int, Bools] = field(default_factory=dict)  # (n_labels,) which categories of a column are allowed
    ranks: dict[int, Floats] = field(default_factory=dict)  # (n_labels + 1,) of the categories of ordered columns
    barred: dict[int, Bools] = field(default_factory=dict)  # (n_rows, n_labels + 1) categories that a row may not take
    rules: list[rules.Rule] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        rows: Floats,
        low: Floats,
        high: Floats,
        schema: Schema,
        labels: Labels | None,
        orders: Labels | None = None,
    ) -> Draft:
        """A draft without constraints."""
        nothing: Labels = (None,) * rows.shape[1]
        is_not = np.zeros(rows.shape[1], bool)
        return cls(rows, low, high, schema, labels or nothing, orders or nothing, is_not, is_not.copy())

    @property
    def may_become_missing(self) -> Bools:
        """(n_features,) columns in which a known value may become missing: a fixed one never."""
        return np.asarray(self.may_be_missing & ~self.is_fixed)

    @property
    def must_be_known(self) -> Bools:
        """(n_features,) columns that must end up at a listed value, so that what is missing there must become known."""
        is_listed = np.zeros(len(self.labels), bool)
        is_listed[[*self.listed, *self.named]] = True
        return np.asarray(is_listed & ~self.may_be_missing)

    def columns(self, names: Iterable[Any]) -> list[int]:
        """The positions of columns."""
        return self.schema.positions(names)

    def number(self, column: int, what: str) -> int:
        """The column, if it holds numbers."""
        if self.labels[column] is not None:
            reject(what, "about a column of numbers", f"{self.schema.names[column]!r}, which holds categories")
        return column

    def value(self, column: int, value: Any, what: str) -> float:
        """A number as it is, or a date as the column counts it."""
        if not isinstance(value, date):
            return float(value)
        counting = self.schema.features[column].counting
        if counting is None:
            reject(what, f"about numbers, for {self.schema.names[column]!r} holds no dates", words.value(value))
        return counting.number(value)

    def days(self, columns: Sequence[int], total: float) -> int:
        """What a day is in a sum of columns: 1 where none holds dates; else all must be dates, and cancel."""
        countings = {self.schema.features[j].counting for j in columns}
        if countings == {None}:
            return 1
        own = countings.pop()
        if countings or own is None or total != 0:
            dated = next(self.schema.names[j] for j in columns if self.schema.features[j].is_date)
            reject("Linear", "about no dates, or about the days between dates that are counted alike", repr(dated))
        return own.per_day

    def categories(self, column: int, values: Iterable[Any], what: str) -> Bools:
        """(n_labels,) which of a column's categories are among the values."""
        own = self.labels[column] or ()
        are_texts = all(isinstance(label, str) for label in own)
        wanted = [str(int(v)) if are_texts and isinstance(v, Integral) else v for v in values]  # as a table's are read
        unknown = [value for value in wanted if value not in own]
        if unknown:
            reject(what, f"about categories of {self.schema.names[column]!r}: {_shown(own)}", repr(unknown[0]))
        return np.array([label in wanted for label in own], bool)

    def only_towards(self, names: Sequence[Any], sign: int, kind: str) -> None:
        """The columns may stay, or move that way (1 up, -1 down) in their order; what is missing stays so."""
        for column, name in zip(self.columns(names), names, strict=True):
            self._only_towards(column, sign, f"{kind}({name!r})")

    def _only_towards(self, column: int, sign: int, what: str) -> None:
        own = self.rows[:, column]
        if self.labels[column] is None:
            if sign * self._direction(column, what) > 0:
                self.low[:, column] = np.maximum(self.low[:, column], own)
            else:
                self.high[:, column] = np.minimum(self.high[:, column], own)
            return
        rank = sign * self._ranked(column, what)  # NaN for what has no place in the order: an unseen category, say
        with np.errstate(invalid="ignore"):
            from_ = np.append(rank, np.nan)[np.where(np.isnan(own), len(rank), own).astype(np.intp)]
            is_barred = ~(rank >= from_[:, None]) & (np.arange(len(rank)) != own[:, None])
        self.barred[column] = is_barred | self.barred.get(column, np.zeros_like(is_barred))

    def _direction(self, column: int, what: str) -> int:
        """1 where a column of numbers grows with its numbers, -1 where the schema orders them the other way."""
        feature = self.schema.features[column]
        steps = np.diff(np.array(feature.values, np.float64)) if feature.kind == "ordinal" else np.ones(1)
        if not ((steps > 0).all() or (steps < 0).all()):
            reject(what, "about numbers that the schema lists from one end to the other", repr(feature.values))
        return 1 if (steps > 0).all() else -1

    def _ranked(self, column: int, what: str) -> Floats:
        """(n_labels + 1,) the place of every category in the order, NaN where it has none; unseen ones come last."""
        if column not in self.ranks:
            labels, order = self.labels[column] or (), self.order_of(column)
            if order is None:
                name = self.schema.names[column]
                raise InvalidInput(
                    f"{what} needs an order of the categories {_shown(labels)}, and nobody has said one: give it in "
                    f"the schema, Feature({name!r}, 'ordinal', values=[...]) with the first one first, or as an "
                    "ordered dtype of the table."
                )
            place = {label: float(k) for k, label in enumerate(order)}
            self.ranks[column] = np.array([*(place.get(label, np.nan) for label in labels), np.nan])
        return self.ranks[column]

    def order_of(self, column: int) -> Sequence[Any] | None:
        """A column's categories in their order: the schema's, else one that came with the model or the table."""
        feature, labels = self.schema.features[column], self.labels[column] or ()
        if feature.kind == "ordinal":
            return feature.values
        if self.orders[column] is not None:
            return self.orders[column]
        return sorted(labels) if all(isinstance(label, Real) for label in labels) else None


def _shown(labels: tuple[Any, ...]) -> str:
    shown = ", ".join(map(str, labels[:8]))
    return shown if len(labels) <= 8 else f"{shown} and {len(labels) - 8} more"
