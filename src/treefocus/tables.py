"""The user's tables: pandas, polars or NumPy in, a float matrix inside, the same kind of table out again."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats
from treefocus.schema import ANY_FLOAT, FLOAT32, INTEGER


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as float64, and what is needed to give answers in the shape they came in."""

    values: Floats  # (n_rows, n_columns), NaN where missing
    names: tuple[str, ...] | None
    grain: NDArray[np.int8]  # (n_columns,) ANY_FLOAT, FLOAT32 or INTEGER
    native: Any

    def like(self, values: Floats) -> Any:
        """`values` as the same kind of table, with the same names, dtypes and index; a row of NaN is a row of nulls."""
        if self.names is None:
            dtype = self.native.dtype
            if np.issubdtype(dtype, np.floating):
                return values.astype(dtype)
            return values.astype(dtype) if np.isfinite(values).all() else values
        frame = nw.from_native(self.native, eager_only=True)
        if nw.dependencies.is_pandas_dataframe(self.native):
            return _pandas_like(self.native, values)
        schema = frame.schema
        columns = [
            nw.new_series(name, _nullable(values[:, j]), schema[name], backend=nw.get_native_namespace(frame))
            for j, name in enumerate(self.names)
        ]
        return nw.concat([column.to_frame() for column in columns], how="horizontal").to_native()

    def column(self, name: str, values: Sequence[Any]) -> Any:
        """One more column for this kind of table."""
        return nw.new_series(name, values, backend=nw.get_native_namespace(nw.from_native(self.native)))


def as_table(rows: Any, parameter: str) -> Table:
    """Read a pandas or polars DataFrame, a NumPy array or nested lists."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, rows, parameter)
    try:
        array = np.asarray(rows)
        values = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{parameter} must be a table of numbers; this one cannot be read as such: {error}."
        ) from error
    if array.ndim != 2:
        hint = "; for one row use row.reshape(1, -1)" if array.ndim == 1 else ""
        reject(parameter, f"two-dimensional, rows by columns{hint}", f"{array.ndim} dimensions")
    grain = np.full(array.shape[1], _grain_of(array.dtype), np.int8)
    return Table(np.ascontiguousarray(values), None, grain, array)


def read_table(path: str | Path, ignore: Sequence[str] = ()) -> Table:
    """Read a .csv, .tsv or .parquet file of numbers, without the columns named in `ignore`."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    if path.suffix == ".parquet":
        return _read_parquet(path, ignore)
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        header = next(reader, None)
        if not header:
            raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
        kept = [j for j, name in enumerate(header) if name not in ignore]
        values = np.array([_numbers(path, reader.line_num, header, cells, kept) for cells in reader if cells])
    values = values.reshape(-1, len(kept))
    names = tuple(header[j] for j in kept)
    is_whole = (
        ~np.isnan(values).any(axis=0) & (values == np.rint(values)).all(axis=0) if len(values) else False
    )
    grain = np.where(is_whole, INTEGER, ANY_FLOAT) * np.ones(len(names), np.int8)
    return Table(values, names, grain.astype(np.int8), _Columns(names))


@dataclass(frozen=True)
class _Columns:
    """Stands where a DataFrame would: the table came from a file and goes back to one."""

    names: tuple[str, ...]


def _from_frame(frame: nw.DataFrame[Any], native: Any, parameter: str) -> Table:
    values = np.empty(frame.shape, dtype=np.float64)
    grain = np.zeros(frame.shape[1], np.int8)
    for j, (name, dtype) in enumerate(frame.schema.items()):
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            reject(f"{parameter}: column {name!r}", "numeric", f"dtype {dtype}")
        values[:, j] = frame.get_column(name).cast(nw.Float64).to_numpy()
        if dtype == nw.Boolean or dtype.is_integer():
            grain[j] = INTEGER
        elif dtype == nw.Float32:
            grain[j] = FLOAT32
    return Table(values, tuple(str(name) for name in frame.columns), grain, native)


def _grain_of(dtype: np.dtype[Any]) -> int:
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return INTEGER
    return FLOAT32 if dtype in (np.float32, np.float16) else ANY_FLOAT


def _pandas_like(native: Any, values: Floats) -> Any:
    columns = {}
    for j, name in enumerate(native.columns):
        dtype = native.dtypes.iloc[j]
        column = type(native)({name: values[:, j]}, index=native.index)[name]
        is_plain_integer = getattr(dtype, "kind", "") in "iub" and isinstance(dtype, np.dtype)
        if is_plain_integer and np.isnan(values[:, j]).any():
            dtype = "boolean" if dtype.kind == "b" else "Int64"
        columns[name] = column.astype(dtype)
    return type(native)(columns, index=native.index)


def _nullable(column: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in column.tolist()]


def _read_parquet(path: Path, ignore: Sequence[str]) -> Table:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput("Reading .parquet needs pyarrow: pip install pyarrow.") from error
    table = parquet.read_table(path)
    return as_table(table.select([name for name in table.column_names if name not in ignore]), str(path))


def _numbers(path: Path, line: int, header: list[str], cells: list[str], kept: list[int]) -> list[float]:
    if len(cells) != len(header):
        raise InvalidInput(f"{path}, line {line}: {len(header)} cells were expected, {len(cells)} came.")
    numbers = []
    for j in kept:
        try:
            numbers.append(float(cells[j]) if cells[j].strip() else np.nan)
        except ValueError:
            raise InvalidInput(
                f"{path}, line {line}, column {header[j]!r}: {cells[j]!r} is not a number."
            ) from None
    return numbers
