"""Columns of small tables: what each can hold, and how its values are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from treefocus import Feature, Schema
from treefocus.model.forest import Floats

KINDS = ("continuous", "integer", "step", "list", "category", "one-hot", "missing", "whole floats", "large", "float32")
WORDS = ("rent", "own", "free", "castle")
UNSEEN = "unseen"  # a label that no model was fitted on; in the oracle the number after the last
SIZES = ("S", "M", "L", "XL")  # their order is not that of the alphabet


@dataclass(frozen=True)
class Column:
    """One column as the user knows it; in the oracle a category is the number of its label in `values`."""

    name: str
    kind: str  # of KINDS, but "missing", which any kind can have besides
    values: tuple[Any, ...] = ()  # all that it can hold, in their order; () where that is every number of its domain
    has_missing: bool = False
    is_ordered: bool = False  # of categories
    step: float | None = None
    has_whole_values: bool = False  # of large numbers
    digits: int = 2  # of the numbers that are drawn
    unit: float = 1.0  # by which they are multiplied

    @property
    def is_category(self) -> bool:
        return self.kind in ("category", "one-hot")

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole ones."""
        return self.kind in ("integer", "whole floats") or self.has_whole_values

    @property
    def is_finite(self) -> bool:
        return bool(self.values)

    @property
    def tags(self) -> tuple[str, ...]:
        """The kinds of columns that it stands for."""
        return (self.kind, "missing") if self.has_missing else (self.kind,)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its columns in the table: several of a one-hot group."""
        return tuple(f"{self.name}_{label}" for label in self.values) if self.kind == "one-hot" else (self.name,)

    def drawn(self, rng: np.random.Generator, n: int) -> Floats:
        """(n,) values as the oracle writes them; every one that the column can hold occurs."""
        if self.is_category:
            numbers = np.arange(len(self.values), dtype=np.float64)
        elif self.values:
            numbers = np.array(self.values, np.float64)
        else:
            numbers = rng.choice(_grid(self), size=min(12, n), replace=False)
        values = np.concatenate([numbers, rng.choice(numbers, n - len(numbers))])
        rng.shuffle(values)
        return values

    def feature(self, *, with_labels: bool = True) -> Feature:
        """What a schema says of it; of categories without an order, `with_labels` or nothing."""
        if self.kind == "step":
            return Feature(self.name, "step", step=self.step, low=self.values[0], high=self.values[-1])
        if self.kind == "list":
            return Feature(self.name, values=self.values)
        if self.kind == "one-hot":
            return Feature(self.name, "one-hot", columns=self.fields, values=self.values)
        if self.kind == "category":
            if not self.is_ordered and not with_labels:
                return Feature(self.name, "categorical")
            return Feature(self.name, "ordinal" if self.is_ordered else "categorical", values=self.values)
        return Feature(self.name, "integer" if self.is_whole else "continuous")


def _grid(column: Column) -> Floats:
    """Numbers from which those of a continuous column are drawn."""
    if column.kind == "large":
        return column.unit * (1.6e9 + 37.0 * np.arange(200))
    numbers = np.round(np.linspace(-1, 1, 201) * 10 ** (2 - column.digits), column.digits)
    if column.kind == "float32":
        numbers = numbers.astype(np.float32).astype(np.float64)
    return numbers * column.unit


def _whole(name: str, first: int, last: int, kind: str = "integer", **more: Any) -> Column:
    return Column(name, kind, tuple(float(v) for v in range(first, last + 1)), **more)


def _step(name: str, step: float, first: int, last: int, **more: Any) -> Column:
    values = tuple(float(Decimal(str(step)) * k) for k in range(first, last + 1))
    return Column(name, "step", values, step=step, **more)


_NUMBER = Column("", "continuous")
_LARGE = Column("", "large")
_SECONDS = Column("", "large", has_whole_values=True)
_FLOATS = _whole("", 0, 4, "whole floats")
_SINGLE = Column("", "float32")
_LIST = Column("", "list", (0.1, 0.48, 1.0, 2.7, 5.0))
_WORDS = Column("", "category", WORDS[:3])
_SIZES = Column("", "category", SIZES, is_ordered=True)
_GROUP = Column("", "one-hot", WORDS[:3])

DESIGNS: dict[str, tuple[Column, ...]] = {
    "numbers": (_NUMBER, replace(_NUMBER, digits=1), _NUMBER),
    "integers": (_whole("", 0, 6), _whole("", -3, 3), _whole("", 10, 14)),
    "mixed": (_NUMBER, _whole("", 0, 5), _LIST),
    "finite": (_step("", 0.5, -3, 3), _LIST, _FLOATS),
    "seconds": (_SECONDS, _whole("", 0, 4), _NUMBER),
    "huge and tiny": (replace(_NUMBER, unit=1e30), replace(_NUMBER, unit=1e-30), _whole("", 0, 4)),
    "singles": (_SINGLE, _whole("", 0, 4), replace(_SINGLE, digits=1)),
    "missing singles": (replace(_SINGLE, has_missing=True), _NUMBER, replace(_LIST, has_missing=True)),
    "large": (_LARGE, _NUMBER, _FLOATS),
    "words": (_WORDS, _NUMBER, _whole("", 0, 4)),
    "sizes": (_SIZES, _step("", 0.05, 0, 6), _whole("", 1, 4, "whole floats")),
    "group": (_GROUP, _NUMBER, _whole("", 0, 4)),
    "group of lists": (_GROUP, _LIST, _step("", 5.0, 0, 4)),
    "missing numbers": (replace(_NUMBER, has_missing=True), replace(_FLOATS, has_missing=True), _NUMBER),
    "missing steps": (_step("", 0.5, 0, 5, has_missing=True), replace(_LIST, has_missing=True), _whole("", 0, 3)),
    "missing words": (replace(_WORDS, has_missing=True), replace(_NUMBER, has_missing=True), _whole("", 0, 4)),
    "missing large": (replace(_LARGE, has_missing=True), replace(_SIZES, has_missing=True), _LIST),
    "missing four": (replace(_LARGE, has_missing=True), replace(_NUMBER, has_missing=True), _LIST, _whole("", 0, 3)),
    "parted by missing": (
        _whole("", 0, 1, "whole floats", has_missing=True), Column("", "list", (0.5, 2.0), has_missing=True), _NUMBER,
    ),
    "missing group": (_GROUP, replace(_NUMBER, has_missing=True), replace(_FLOATS, has_missing=True)),
}  # fmt: skip
DESIGNS = {
    design: tuple(replace(column, name="abcd"[j]) for j, column in enumerate(columns))
    for design, columns in DESIGNS.items()
}


def frame_of(columns: Sequence[Column], points: Floats) -> pd.DataFrame:
    """The points as the user's table, with the dtypes that the columns have."""
    made: dict[str, Any] = {}
    for j, column in enumerate(columns):
        value = points[:, j]
        if column.kind == "one-hot":
            for k, field in enumerate(column.fields):
                made[field] = (value == k).astype(np.int64)
        elif column.kind == "category":
            codes = np.where(np.isnan(value), -1, value).astype(np.int64)
            labels = [*column.values, *([UNSEEN] if (codes == len(column.values)).any() else [])]
            made[column.name] = pd.Categorical.from_codes(codes, categories=labels)
        elif (
            (column.kind == "integer" or column.has_whole_values)
            and not np.isnan(value).any()
            and (value == np.rint(value)).all()
        ):
            made[column.name] = value.astype(np.int64)
        elif column.kind == "float32":
            made[column.name] = value.astype(np.float32)
        else:
            made[column.name] = value
    return pd.DataFrame(made)


def points_of(columns: Sequence[Column], frame: pd.DataFrame) -> Floats:
    """(n_rows, n_columns) a table of the user's, as the oracle writes it; NaN where a cell is empty.

    A one-hot group with none or several of its columns set is NaN, which its column does not allow.
    """
    points = np.full((len(frame), len(columns)), np.nan)
    for j, column in enumerate(columns):
        if column.kind == "one-hot":
            held = frame[list(column.fields)].to_numpy(np.float64, na_value=np.nan)
            is_one = (np.isin(held, (0.0, 1.0)).all(axis=1)) & (held.sum(axis=1) == 1)
            points[is_one, j] = held[is_one].argmax(axis=1)
        elif column.kind == "category":
            points[:, j] = [code_of(column, None if pd.isna(cell) else cell) for cell in frame[column.name]]
        else:
            points[:, j] = frame[column.name].to_numpy(np.float64, na_value=np.nan)
    return points


def schema_of(columns: Sequence[Column], *, with_labels: bool = True) -> Schema:
    """What the user says of the columns."""
    return Schema([column.feature(with_labels=with_labels) for column in columns])


def code_of(column: Column, cell: Any) -> float:
    """A value as the oracle writes it, from the user's; -1 for a label that the column does not have."""
    if cell is None:
        return float("nan")
    if not column.is_category:
        return float(cell)
    labels = (*column.values, UNSEEN)
    return float(labels.index(cell)) if cell in labels else -1.0


def cell_of(column: Column, value: float) -> Any:
    """A value as the user writes it: a number, a label, None where it is missing."""
    if np.isnan(value):
        return None
    return (*column.values, UNSEEN, "no label of this column")[int(value)] if column.is_category else float(value)
