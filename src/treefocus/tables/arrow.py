"""Columns of Arrow tables as floats: every type that holds numbers, in whatever chunks and dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treefocus.model.forest import Floats
from treefocus.schema.dates import Counting, read_date

if TYPE_CHECKING:
    import pyarrow as pa


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values; of a dictionary, that of its words."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def holds_numbers(kind: pa.DataType) -> bool:
    """Whether a column of this type can be read as numbers; one of nothing can."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(value_type(kind)) for test in tests)


def holds_dates(kind: pa.DataType) -> bool:
    """Whether a column of this type can be read as dates, as such or as text."""
    from pyarrow import types

    tests = (types.is_date, types.is_timestamp, types.is_string, types.is_large_string, types.is_null)
    return any(test(value_type(kind)) for test in tests)


def numbers_of_dates(column: Any, counting: Counting) -> tuple[Floats, dict[int, str]]:
    """(n_rows,) the dates of a column as they are counted, NaN for null; infinity, and the cell, where it is none."""
    values, wrong = np.full(len(column), np.nan), {}
    for i, cell in enumerate(column.to_pylist()):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        moment = read_date(cell) if isinstance(cell, str) else cell
        values[i] = np.inf if moment is None else counting.number(moment)
        if moment is None:
            wrong[i] = str(cell)
    return values, wrong


def holds_whole_numbers(kind: pa.DataType) -> bool:
    """Whether its values are whole numbers, or truths."""
    from pyarrow import types

    return bool(types.is_integer(value_type(kind)) or types.is_boolean(value_type(kind)))


def holds_singles(kind: pa.DataType) -> bool:
    """Whether its values are floats of less than 64 bits."""
    from pyarrow import types

    return bool(types.is_floating(value_type(kind)) and not types.is_float64(value_type(kind)))


def floats_of(column: Any) -> Floats:
    """(n_rows,) the numbers of a column, NaN for null; a whole number beyond 2^53 as the nearest float."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(column.type):
        column = compute.cast(column, column.type.value_type)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_decimal(column.type):  # Arrow's own cast is off by a bit now and then
        return np.array([np.nan if value is None else float(value) for value in column.to_pylist()], np.float64)
    floats = compute.cast(column, pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False) if isinstance(floats, pa.Array) else floats.to_numpy())
