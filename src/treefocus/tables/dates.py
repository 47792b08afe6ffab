"""Columns of dates: read from any library's dtypes, from date objects and from text, and written as they came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any

import narwhals as nw
import numpy as np

from treefocus.model.forest import Floats
from treefocus.schema.dates import AS_READ, Counting, dates_of, iso, micros_of

Counts = tuple[Counting | None, ...]  # per column how its dates are counted; nothing where no column holds any


def or_nothing(counts: Sequence[Counting | None]) -> Counts:
    """The countings of a table's columns, none at all where no column holds dates."""
    return tuple(counts) if any(own is not None for own in counts) else ()


def chosen(counts: Counts, columns: Sequence[int]) -> Counts:
    """Those of some columns."""
    return or_nothing([counts[j] for j in columns]) if counts else ()


def holds_dates(dtype: Any) -> bool:
    """Whether a column of that dtype holds dates, also where it is empty."""
    return isinstance(dtype, nw.Datetime) or dtype == nw.Date


def read_series(column: nw.Series[Any]) -> Floats | None:
    """(n_rows,) the dates of a column, counted as `AS_READ`, NaN where missing; None where it holds others."""
    if isinstance(column.dtype, nw.Datetime):
        known = column.dt.timestamp("us").to_list()
        return _counted([None if micros is None or micros != micros else int(micros) for micros in known])
    if column.dtype not in (nw.Date, nw.Object, nw.String):
        return None
    return read_cells(column.to_list())


def read_cells(cells: list[Any]) -> Floats | None:
    """(n,) the dates that cells hold, as such or as text; None where one holds another thing."""
    known = dates_of(cells)
    return None if known is None else _counted([None if own is None else micros_of(own) for own in known])


def _counted(micros: Sequence[int | None]) -> Floats:
    values = np.full(len(micros), np.nan)
    is_known = np.array([own is not None for own in micros], bool)
    values[is_known] = AS_READ.numbers(np.array([own for own in micros if own is not None], np.int64))
    return values


def recounted(values: Floats, own: Counting, wanted: Counting) -> Floats:
    """The same dates counted in another way."""
    made, is_known = np.full(len(values), np.nan), np.isfinite(values)
    made[is_known] = wanted.numbers(own.micros(values[is_known]))
    return made


def written(values: Floats, counting: Counting, before: Floats, cells: Sequence[Any]) -> list[Any]:
    """Numbers as dates of the cells' kind; where a number is as it was `before`, the cell as it was written."""
    like = next((cell for cell in cells if cell is not None and cell == cell), None)
    return [
        cell if value == old else None if value != value else _of_kind(counting.moment(value), like)
        for value, old, cell in zip(values.tolist(), before.tolist(), cells, strict=True)
    ]


def _of_kind(moment: datetime, like: Any) -> Any:
    """A moment as another cell is written: as text, as a day, or in a time zone."""
    is_day = moment.time() == time()
    if isinstance(like, str):
        return iso(moment.date() if is_day and len(like.strip()) == len("2020-01-05") else moment)
    if isinstance(like, datetime):
        return moment if like.tzinfo is None else moment.replace(tzinfo=UTC).astimezone(like.tzinfo)
    return moment.date() if is_day and isinstance(like, date) else moment
