"""Tables going out: answers in the shape of the user's table, and columns as a DataFrame of its library.

A column comes as floats with NaN for null, or, where it holds categories, as a list of its own values with None.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Floats
from treefocus.tables.labels import is_null


def frame_of(columns: dict[str, list[Any]], like: Any = None) -> Any:
    """Columns as a DataFrame of the same library as another table, else of one that is installed."""
    frame = nw.from_native(like, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.from_dict(columns, backend=nw.get_native_namespace(frame)).to_native()
    for name in ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(columns, backend=importlib.import_module(name)).to_native()
        except ImportError:
            continue
    raise ImportError("to_frame needs pandas, polars or pyarrow; records() gives plain columns without them.")


Column = Floats | list[Any]


def matrix_like(dtype: np.dtype[Any], values: Floats, columns: Sequence[Column]) -> NDArray[Any]:
    """A matrix of that dtype, or of one that can hold the answer."""
    if any(isinstance(column, list) for column in columns):
        mixed = mixed_matrix(columns, len(values))
        if dtype.kind == "O":
            return mixed
        if dtype.kind in "US":
            return mixed if any(cell is None for cell in mixed.flat) else mixed.astype(dtype.kind)
        values = mixed.astype(np.float64)
    if np.issubdtype(dtype, np.floating):
        return values.astype(np.float32 if dtype == np.float16 else dtype)  # float16 could not hold the answer
    return values.astype(dtype) if np.isfinite(values).all() else values


def mixed_matrix(columns: Sequence[Column], n_rows: int) -> NDArray[Any]:
    """Numbers and categories side by side."""
    result = np.empty((n_rows, len(columns)), object)
    for j, column in enumerate(columns):
        result[:, j] = column
    return result


def pandas_like(native: Any, columns: Sequence[Column]) -> Any:
    """A pandas DataFrame; plain integers and booleans become nullable ones where a null is needed."""
    result = {}
    for j, name in enumerate(native.columns):
        dtype, own = native.dtypes.iloc[j], columns[j]
        if isinstance(own, list):
            dtype = _pandas_holding(dtype, own)
            own = np.array([*own, None], object)[:-1]
        elif getattr(dtype, "kind", "") not in "biuf":  # it held nothing, and cannot hold numbers
            dtype = own.dtype
        column = type(native)({name: own}, index=native.index, dtype=own.dtype)[name]
        is_plain_integer = getattr(dtype, "kind", "") in "iub" and isinstance(dtype, np.dtype)
        if is_plain_integer and column.isna().any():
            dtype = "boolean" if dtype.kind == "b" else "Int64"
        result[name] = column.astype("float32" if dtype == np.float16 else dtype)
    return type(native)(result, index=native.index)


def frame_like(frame: nw.DataFrame[Any], columns: Sequence[Column]) -> Any:
    """A polars DataFrame, a pyarrow Table, or any other that narwhals makes from columns."""
    backend = nw.get_native_namespace(frame)
    made = []
    for column, (name, dtype) in zip(columns, frame.schema.items(), strict=True):
        values = column if isinstance(column, list) else _nullable(column, dtype)
        dtype = _dtype_of(values) if dtype == nw.Unknown or _is_other(dtype, column) else dtype
        made.append(nw.new_series(name, values, _holding(dtype, values), backend=backend))
    return nw.concat([series.to_frame() for series in made], how="horizontal").to_native()


def _nullable(column: Floats, dtype: Any) -> list[float | None]:
    """The values as Python's own of that kind, None where missing."""
    kind = bool if dtype == nw.Boolean else int if dtype.is_integer() else float
    return [None if np.isnan(value) else kind(value) for value in column.tolist()]


def _is_other(dtype: Any, column: Column) -> bool:
    """Whether a column of that dtype held nothing, and now holds numbers that it cannot."""
    is_number = dtype.is_numeric() or dtype == nw.Boolean
    return not isinstance(column, list) and not is_number and not np.isnan(column).all()


def _dtype_of(values: Sequence[Any]) -> Any:
    """A dtype for values of a column whose own says nothing; none where they say nothing either."""
    known = [value for value in values if not is_null(value)]
    return None if not known else nw.String() if isinstance(known[0], str) else nw.Float64()


def _holding(dtype: Any, column: Sequence[Any]) -> Any:
    """A dtype that can hold the column: an Enum that lacks a category gets it."""
    if dtype is None or dtype != nw.Enum:
        return dtype
    known = list(dtype.categories)
    added = dict.fromkeys(label for label in column if not is_null(label) and label not in known)
    return nw.Enum([*known, *added]) if added else dtype


def _pandas_holding(dtype: Any, column: Sequence[Any]) -> Any:
    """The same for pandas, whose categories live in the dtype."""
    if getattr(dtype, "categories", None) is None:
        return dtype
    known = dtype.categories.tolist()
    added = [label for label in dict.fromkeys(column) if not is_null(label) and label not in known]
    return type(dtype)([*known, *added], dtype.ordered) if added else dtype
