"""Rows that come cell by cell, as JSON and forms bring them: by the schema's columns, a one-hot group in one cell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from treefocus.errors import reject
from treefocus.model.categories import Labels, are_categories
from treefocus.model.forest import Floats
from treefocus.schema.dates import Counting, read_date
from treefocus.schema.schema import ANY_FLOAT, INTEGER
from treefocus.tables.columns import check_columns
from treefocus.tables.labels import encode, label_or_text
from treefocus.tables.table import Table

Cell = float | str | bool | None  # a number, a category, nothing
UNKNOWN = "unknown"  # a category that the model has not seen, where nobody says how it is written


@dataclass(frozen=True, eq=False)
class CellTable(Table):
    """A table whose columns are the schema's: what came is the native table."""

    is_folded: ClassVar[bool] = True

    def part(self, rows: slice) -> CellTable:
        """Some of the rows."""
        return replace(self, values=self.values[rows], native=self.native[rows])


def table_of_cells(
    rows: Sequence[Mapping[str, Cell] | Sequence[Cell]],
    names: tuple[str, ...],
    labels: Labels | None,
    booleans: Collection[str] = (),
    countings: Mapping[str, Counting] | None = None,
) -> CellTable:
    """Rows by column name, or as lists in the columns' order; None is a missing value.

    labels: per column its categories, None where it holds numbers. booleans: the columns of True and False. countings:
    the columns of dates, which come as text or as the numbers that the model reads.
    """
    written = np.empty((len(rows), len(names)), object)
    for i, row in enumerate(rows):
        if isinstance(row, Mapping):
            check_columns(f"rows[{i}]", tuple(row), names, hint="; null is a missing value")
            written[i] = [row[name] for name in names]
        elif len(row) != len(names):
            reject(f"rows[{i}]", f"{len(names)} values long", len(row))
        else:
            written[i] = row
    values = np.empty(written.shape)
    for j, name in enumerate(names):
        own, cells = None if labels is None else labels[j], written[:, j].tolist()
        if own is None:
            values[:, j] = _numbers(cells, name, (countings or {}).get(name), may_be_boolean=name in booleans)
        else:
            values[:, j] = encode(cells, own)
            written[:, j] = [label_or_text(code, own, cell) for code, cell in zip(values[:, j], cells, strict=True)]
    return _table(values, written, labels)


def table_of_codes(values: Floats, labels: Labels | None) -> CellTable:
    """Rows of numbers in which categories stand by their codes already."""
    written = values.astype(object)
    for j, own in enumerate(labels or ()):
        if own is not None:
            written[:, j] = [label_or_text(code, own, UNKNOWN) for code in values[:, j]]
    return _table(values, written, labels)


def _numbers(cells: Sequence[Cell], name: str, counting: Counting | None, *, may_be_boolean: bool) -> list[float]:
    found = []
    for i, cell in enumerate(cells):
        moment = read_date(cell) if counting is not None and isinstance(cell, str) else None
        if moment is None and (isinstance(cell, str) or (isinstance(cell, bool) and not may_be_boolean)):
            wanted = "a number" if counting is None else 'a date such as "2020-01-31"'
            reject(f"rows[{i}].{name}", wanted, repr(cell))
        is_date = moment is not None and counting is not None
        found.append(counting.number(moment) if is_date else np.nan if cell is None else float(cell))  # type: ignore[union-attr, arg-type]
    return found


def _table(values: Floats, written: Any, labels: Labels | None) -> CellTable:
    grain = np.where(are_categories(labels, values.shape[1]), INTEGER, ANY_FLOAT).astype(np.int8)
    return CellTable(values, None, grain, values if labels is None else written, labels)
