"""The user's tables: pandas, polars or NumPy in, a float matrix inside, the same kind of table out again."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats
from treefocus.schema import ANY_FLOAT, FLOAT32, INTEGER

TABLE_FILES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as float64, and what is needed to give answers in the shape they came in."""

    values: Floats  # (n_rows, n_columns), NaN where missing
    names: tuple[str, ...] | None
    grain: NDArray[np.int8]  # (n_columns,) ANY_FLOAT, FLOAT32 or INTEGER
    native: Any

    def like(self, values: Floats) -> Any:
        """`values` as the same kind of table, with the same names, dtypes and index; a row of NaN is a row of nulls.

        A table from a text file has no kind: its values come back as a matrix.
        """
        if self.names is None:
            dtype = self.native.dtype
            if np.issubdtype(dtype, np.floating):
                return values.astype(np.float32 if dtype == np.float16 else dtype)  # float16 could not hold the answer
            return values.astype(dtype) if np.isfinite(values).all() else values
        if isinstance(self.native, _Columns):
            return values
        frame = nw.from_native(self.native, eager_only=True)
        if nw.dependencies.is_pandas_dataframe(self.native):
            return _pandas_like(self.native, values)
        backend = nw.get_native_namespace(frame)
        columns = [
            nw.new_series(name, _nullable(values[:, j], dtype), dtype, backend=backend)
            for j, (name, dtype) in enumerate(frame.schema.items())
        ]
        return nw.concat([column.to_frame() for column in columns], how="horizontal").to_native()

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """(n_columns,) the smallest and the largest value that a column of its dtype holds."""
        if isinstance(self.native, _Columns):
            dtypes = ["float64"] * self.values.shape[1]
        elif self.names is None:
            dtypes = [str(self.native.dtype)] * self.values.shape[1]
        else:
            dtypes = [str(dtype).lower() for dtype in nw.from_native(self.native, eager_only=True).schema.values()]
        limits = np.array([_limits_of(dtype) for dtype in dtypes], np.float64).reshape(-1, 2)
        return limits[:, 0], limits[:, 1]

    def select(self, names: Sequence[str]) -> Table:
        """The same rows with only these columns, in this order; for tables with names."""
        if self.names is None:
            raise InvalidInput("Columns can be selected by name only from a table with names.")
        chosen = [self.names.index(name) for name in names]
        native = (
            _Columns(tuple(names))
            if isinstance(self.native, _Columns)
            else nw.from_native(self.native, eager_only=True).select(*names).to_native()
        )
        return Table(np.ascontiguousarray(self.values[:, chosen]), tuple(names), self.grain[chosen], native)


def as_table(rows: Any, parameter: str) -> Table:
    """Read a pandas or polars DataFrame, a NumPy array or nested lists; a `Table` is one already."""
    if isinstance(rows, Table):
        return rows
    try:
        frame = nw.from_native(rows, eager_only=True, pass_through=True)
    except ValueError as error:  # two columns of one name
        raise InvalidInput(f"{parameter} cannot be read as a table: {_one_line(error)}.") from error
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, rows, parameter)
    try:
        array = np.asarray(rows)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its values are of dtype {array.dtype}")
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
    kept = [name for name in read_names(path) if name not in ignore]
    if not kept:
        raise InvalidInput(f"{path} has no column left: all are ignored.")
    doubled = sorted({name for name in kept if kept.count(name) > 1})
    if doubled:
        reject(str(path), "a table of columns with different names", f"{', '.join(doubled)} more than once")
    with _complaining(path):
        return _read_parquet(path, kept) if path.suffix == ".parquet" else _read_text(path, ignore)


def read_names(path: str | Path) -> tuple[str, ...]:
    """The names of the columns of a .csv, .tsv or .parquet file."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    with _complaining(path):
        if path.suffix == ".parquet":
            return tuple(import_pyarrow("Reading").read_schema(path).names)
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file, delimiter=_delimiter(path)), None)
    if not header:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    return tuple(header)


def write_columns(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length to a .csv, .tsv or .parquet file; None is an empty cell or a null."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if path.suffix == ".parquet":
        import_pyarrow("Writing").write_table(_arrow_table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=_delimiter(path), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def check_suffix(path: Path, allowed: Sequence[str]) -> None:
    """The file's name must end in one of these."""
    if path.suffix not in allowed:
        reject(str(path), f"a file whose name ends in {', '.join(allowed)}", repr(path.suffix))


def import_pyarrow(doing: str) -> Any:
    """`pyarrow.parquet`, or an error that says how to get it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput(f"{doing} .parquet needs pyarrow: pip install pyarrow.") from error
    return parquet


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
        elif str(dtype) in ("Float32", "Float16"):
            grain[j] = FLOAT32
    return Table(values, tuple(str(name) for name in frame.columns), grain, native)


def _grain_of(dtype: np.dtype[Any]) -> int:
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return INTEGER
    return FLOAT32 if dtype in (np.float32, np.float16) else ANY_FLOAT


def _limits_of(dtype: str) -> tuple[float, float]:
    if dtype.startswith("bool"):
        return 0, 1
    if "int" not in dtype:
        return -np.inf, np.inf
    low, high = (
        (0, 2 ** int(dtype[4:]) - 1)
        if dtype[0] == "u"
        else (-(2 ** (int(dtype[3:]) - 1)), 2 ** (int(dtype[3:]) - 1) - 1)
    )
    return max(low, -(2**53)), min(high, 2**53)  # float64 does not hold every whole number beyond


def _pandas_like(native: Any, values: Floats) -> Any:
    columns = {}
    for j, name in enumerate(native.columns):
        dtype = native.dtypes.iloc[j]
        column = type(native)({name: values[:, j]}, index=native.index)[name]
        is_plain_integer = getattr(dtype, "kind", "") in "iub" and isinstance(dtype, np.dtype)
        if is_plain_integer and np.isnan(values[:, j]).any():
            dtype = "boolean" if dtype.kind == "b" else "Int64"
        columns[name] = column.astype("float32" if dtype == np.float16 else dtype)
    return type(native)(columns, index=native.index)


def _nullable(column: Floats, dtype: Any) -> list[float | None]:
    """The values as Python's own of that kind, None where missing."""
    kind = bool if dtype == nw.Boolean else int if dtype.is_integer() else float
    return [None if np.isnan(value) else kind(value) for value in column.tolist()]


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file's content, or in reading it, as one sentence."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError, csv.Error) as error:  # pyarrow's own errors are of these kinds
        raise InvalidInput(f"{path} cannot be read as a table: {_one_line(error)}.") from error


def _read_parquet(path: Path, kept: Sequence[str]) -> Table:
    return as_table(import_pyarrow("Reading").read_table(path, columns=list(kept)), str(path))


def _arrow_table(columns: Mapping[str, Sequence[Any]]) -> Any:
    import pyarrow

    return pyarrow.table({name: list(column) for name, column in columns.items()})


def _read_text(path: Path, ignore: Sequence[str]) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=_delimiter(path))
        header = next(reader)
        kept = [j for j, name in enumerate(header) if name not in ignore]
        values = np.array([_numbers(path, reader.line_num, header, cells, kept) for cells in reader if cells])
    values = values.reshape(-1, len(kept))
    names = tuple(header[j] for j in kept)
    is_whole = ~np.isnan(values).any(axis=0) & (values == np.rint(values)).all(axis=0) & (len(values) > 0)
    return Table(values, names, np.where(is_whole, INTEGER, ANY_FLOAT).astype(np.int8), _Columns(names))


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix == ".tsv" else ","


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _numbers(path: Path, line: int, header: list[str], cells: list[str], kept: list[int]) -> list[float]:
    if len(cells) != len(header):
        raise InvalidInput(f"{path}, line {line}: {len(header)} cells were expected, {len(cells)} came.")
    numbers = []
    for j in kept:
        try:
            numbers.append(float(cells[j]) if cells[j].strip() else np.nan)
        except ValueError:
            raise InvalidInput(f"{path}, line {line}, column {header[j]!r}: {cells[j]!r} is not a number.") from None
    return numbers
