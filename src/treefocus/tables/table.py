"""The user's tables: pandas, polars or NumPy in, a float matrix inside, the same kind of table out again.

A column of categories is read where the model has labels for it (`tables.labels`); any other must hold numbers, or
dates (`tables.dates`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Labels, are_categories
from treefocus.model.forest import Bools, Floats
from treefocus.schema.dates import AS_READ, Counting
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER
from treefocus.tables import arrow, dates, frames
from treefocus.tables.dates import Counts
from treefocus.tables.labels import Coding, decode, encode, encode_text, is_null, label_of, label_or_text
from treefocus.tables.rows import as_frame


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as float64, and what is needed to give answers in the shape they came in."""

    is_folded: ClassVar[bool] = False  # whether its columns are the schema's, with one-hot groups as one each
    values: Floats  # (n_rows, n_columns), NaN where missing; categories as numbers
    names: tuple[str, ...] | None
    grain: NDArray[np.int8]  # (n_columns,) ANY_FLOAT, FLOAT32 or INTEGER
    native: Any
    labels: Labels | None = None  # per column its categories, None where it holds numbers
    given: tuple[str, ...] | None = None  # its names in the user's order, where that is another
    counts: Counts = ()  # per column how its dates are counted, None where it holds none; nothing if none does

    def like(self, values: Floats) -> Any:
        """`values` as the same kind of table, with the same names, dtypes and index; a row of NaN is a row of nulls.

        A table from a text file has no kind: its values come back as a matrix.
        """
        columns = [self._like(j, values[:, j]) for j in range(values.shape[1])]
        if isinstance(self.native, TextColumns):
            return values if not self.native.cells else frames.mixed_matrix(columns, len(values))
        if self.names is None:
            return frames.matrix_like(self.native.dtype, values, columns)
        if nw.dependencies.is_pandas_dataframe(self.native):
            made = frames.pandas_like(self.native, columns)
        else:
            made = frames.frame_like(nw.from_native(self.native, eager_only=True), columns)
        return made if self.given is None else nw.from_native(made, eager_only=True).select(*self.given).to_native()

    def _like(self, column: int, values: Floats) -> Floats | list[Any]:
        if self.labels_of(column) is not None:
            return self.labelled(column, values)
        return values if self.counts_of(column) is None else self.dated(column, values)

    def dated(self, column: int, values: Floats) -> list[Any]:
        """The dates behind a column's numbers, as they were written where they did not change."""
        counting = self.counts_of(column) or AS_READ
        return dates.written(values, counting, self.values[:, column], self._cells(column))

    def counts_of(self, column: int) -> Counting | None:
        """How the dates of a column are counted, None where it holds none."""
        return self.counts[column] if self.counts else None

    def expecting(self, counts: Counts) -> Table:
        """The same rows, in which columns of nothing at all that hold dates elsewhere hold dates."""
        own = [
            known or (wanted if self._is_blank(j) else None)
            for j, (known, wanted) in enumerate(zip(self.counts or (None,) * len(counts), counts, strict=True))
        ]
        return replace(self, counts=dates.or_nothing(own))

    def _is_blank(self, column: int) -> bool:
        """Whether a column is empty and its dtype says nothing of what it could hold."""
        dtype = self._dtypes[column]
        return dtype in (nw.Object, nw.String, nw.Unknown) and bool(np.isnan(self.values[:, column]).all())

    def counted(self, counts: Counts) -> Table:
        """The same rows with their dates counted in other ways, column by column."""
        if not self.counts or counts == self.counts:
            return self
        values = self.values.copy()
        for j, own in enumerate(self.counts):
            if own is not None and (wanted := counts[j]) not in (own, None):
                values[:, j] = dates.recounted(values[:, j], own, wanted)
        return replace(self, values=values, counts=tuple(
            own and (counts[j] or own) for j, own in enumerate(self.counts)))  # fmt: skip

    def labelled(self, column: int, values: Floats) -> list[Any]:
        """The categories behind a column's numbers, as they were written where they did not change."""
        labels = self.labels_of(column) or ()
        return decode(values, labels, self.values[:, column], self._cells(column))

    def row(self, row: int) -> tuple[Any, ...]:
        """A row as it was written."""
        return tuple(self.cell(row, column) for column in range(self.values.shape[1]))

    def cell(self, row: int, column: int) -> Any:
        """One cell as it was written: a number or a category, None where it is missing."""
        value = self.values[row, column]
        if np.isnan(value):
            return None
        labels = self.labels_of(column)
        if labels is None:
            return float(value)
        known = label_of(value, labels)
        return self._cells(column)[row] if known is None else known

    def labels_of(self, column: int) -> tuple[Any, ...] | None:
        """A column's categories, None where it holds numbers."""
        return None if self.labels is None else self.labels[column]

    def _cells(self, column: int) -> list[Any]:
        """A column as it was written."""
        if isinstance(self.native, TextColumns):
            return self.native.cells[self.native.names[column]]
        if self.names is None:
            return list(self.native[:, column].tolist())
        return list(nw.from_native(self.native, eager_only=True)[:, column].to_list())

    def only(self, row: int) -> Table:
        """One row alone."""
        native, kept = self.native, [row]
        if isinstance(native, TextColumns):
            native = replace(native, cells={name: [cells[row]] for name, cells in native.cells.items()})
        elif self.names is None:
            native = native[kept]
        elif nw.dependencies.is_pandas_dataframe(native):
            native = native.iloc[kept]
        else:
            native = nw.from_native(native, eager_only=True)[kept].to_native()
        return replace(self, values=self.values[kept], native=native)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """(n_columns,) the smallest and the largest value that a column of its dtype holds."""
        if isinstance(self.native, TextColumns):
            dtypes = ["float64"] * self.values.shape[1]
        elif self.names is None:
            return self._of_labels(np.tile(_limits_of(str(self.native.dtype)), (self.values.shape[1], 1)))
        else:
            dtypes = [str(dtype).lower() for dtype in nw.from_native(self.native, eager_only=True).schema.values()]
        return self._of_labels(np.array([_limits_of(dtype) for dtype in dtypes], np.float64).reshape(-1, 2))

    def _of_labels(self, limits: Floats) -> tuple[Floats, Floats]:
        """The columns' limits, where categories have as many numbers as labels."""
        for j, own in enumerate(self.labels or ()):
            if own is not None:
                limits[j] = 0, len(own) - 1
        return limits[:, 0], limits[:, 1]

    @property
    def is_boolean(self) -> Bools:
        """(n_columns,) whether a column holds True and False."""
        n_columns = int(self.values.shape[1])
        if isinstance(self.native, TextColumns):
            return np.array([name in self.native.booleans for name in self.native.names], bool)
        if self.names is None:
            return np.full(n_columns, self.native.dtype == np.bool_)
        dtypes = nw.from_native(self.native, eager_only=True).schema.values()
        return np.array([dtype == nw.Boolean for dtype in dtypes], bool)

    @property
    def is_zoned(self) -> Bools:
        """(n_columns,) whether a column holds moments in a time zone, which are then read in UTC."""
        return np.array([bool(getattr(dtype, "time_zone", None)) for dtype in self._dtypes], bool)

    @property
    def holds_days(self) -> Bools:
        """(n_columns,) whether a column's dtype holds days, without a time."""
        return np.array([dtype == nw.Date for dtype in self._dtypes], bool)

    @property
    def _dtypes(self) -> list[Any]:
        """Per column its dtype, None where it has none of its own."""
        if self.names is None or isinstance(self.native, TextColumns):
            return [None] * int(self.values.shape[1])
        return list(nw.from_native(self.native, eager_only=True).schema.values())

    @property
    def has_dtypes(self) -> bool:
        """Whether its columns say what they can hold; those of a text file only seem to hold whole numbers."""
        return not isinstance(self.native, TextColumns)

    def unseen(self, column: int) -> list[Any]:
        """The cells of a column that hold a category without a label."""
        is_unseen = self.values[:, column] == len(self.labels_of(column) or ())
        if not is_unseen.any():  # the usual case, in which no cell needs to be read
            return []
        return [cell for cell, is_one in zip(self._cells(column), is_unseen.tolist(), strict=True) if is_one]

    def recoded(self, labels: Labels) -> Table:
        """The same rows by other labels, column by column."""
        if self.labels is None or labels == self.labels:
            return self
        values, native = self.values.copy(), self.native
        for j, own in enumerate(labels):
            if own is None or own == self.labels[j]:
                continue
            cells = self._cells(j)
            if isinstance(native, TextColumns):
                texts = ["" if cell is None else str(cell) for cell in cells]
                values[:, j] = encode_text(texts, own)
                known = [label_or_text(c, own, t) for c, t in zip(values[:, j], texts, strict=True)]
                native = replace(native, cells={**native.cells, native.names[j]: known})
            else:
                values[:, j] = encode(cells, own)
        return replace(self, values=values, native=native, labels=labels)

    @property
    def orders(self) -> Labels:
        """Per column its categories in their order, None where its dtype has none."""
        if self.names is None or isinstance(self.native, TextColumns):
            return (None,) * int(self.values.shape[1])
        frame: nw.DataFrame[Any] = nw.from_native(self.native, eager_only=True)
        return tuple(_order_of(frame[:, j].to_native()) for j in range(self.values.shape[1]))

    def in_order(self, names: Sequence[str] | None) -> Table:
        """The same rows with the columns in this order, if they are the same; answers keep the user's."""
        if names is None or self.names is None or self.names == tuple(names) or set(self.names) != set(names):
            return self
        return replace(self.select(names), given=self.names)

    def select(self, names: Sequence[str]) -> Table:
        """The same rows with only these columns, in this order; for tables with names."""
        if self.names is None:
            raise InvalidInput("Columns can be selected by name only from a table with names.")
        chosen = [self.names.index(name) for name in names]
        native = (
            replace(self.native, names=tuple(names))
            if isinstance(self.native, TextColumns)
            else nw.from_native(self.native, eager_only=True).select(*names).to_native()
        )
        labels = None if self.labels is None else tuple(self.labels[j] for j in chosen)
        values, counts = np.ascontiguousarray(self.values[:, chosen]), dates.chosen(self.counts, chosen)
        return Table(values, tuple(names), self.grain[chosen], native, labels, counts=counts)


def as_table(rows: Any, parameter: str, coding: Coding | None = None) -> Table:
    """Read a pandas or polars frame, an Arrow table, a NumPy array, nested lists or one row; a `Table` is one."""
    if isinstance(rows, Table):
        return rows
    rows = as_frame(rows, parameter)
    try:
        is_frame = not isinstance(rows, np.ndarray)
        frame = nw.from_native(rows, eager_only=True, pass_through=True) if is_frame else None
    except ValueError as error:  # two columns of one name
        raise InvalidInput(f"{parameter} cannot be read as a table: {one_line(error)}.") from error
    if isinstance(frame, nw.DataFrame):
        return _from_frame(frame, rows, parameter, coding)
    try:
        array = np.asarray(rows) if coding is None else _with_labels(rows)
        labels = None if coding is None or array.ndim != 2 else coding.for_columns(None, array.shape[1])
        values = _numbers_of(array, labels)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{parameter} must be a table of numbers; this one cannot be read as such: {error}."
        ) from error
    if array.ndim != 2:
        hint = "; for one row use row.reshape(1, -1)" if array.ndim == 1 else ""
        reject(parameter, f"two-dimensional, rows by columns{hint}", f"{array.ndim} dimensions")
    grain = np.full(array.shape[1], _grain_of(array.dtype), np.int8)
    grain[are_categories(labels, len(grain))] = INTEGER
    return Table(np.ascontiguousarray(values), None, grain, array, labels)


@dataclass(frozen=True)
class TextColumns:
    """Stands where a DataFrame would: the table came from a file and goes back to one."""

    names: tuple[str, ...]
    cells: Mapping[str, list[Any]] = field(default_factory=dict)  # of the columns of categories and of dates
    booleans: frozenset[str] = frozenset()  # the columns of True and False


def _from_frame(frame: nw.DataFrame[Any], native: Any, parameter: str, coding: Coding | None) -> Table:
    values = np.empty(frame.shape, dtype=np.float64)
    grain = np.zeros(frame.shape[1], np.int8)
    names = tuple(str(name) for name in frame.columns)
    labels = None if coding is None else coding.for_columns(names, len(names))
    counts: list[Counting | None] = [None] * len(names)
    for j, (name, dtype) in enumerate(frame.schema.items()):
        own = None if labels is None else labels[j]
        if own is not None:
            values[:, j] = _codes(frame.get_column(name), own)
            grain[j] = INTEGER
            continue
        if _is_empty(frame.get_column(name)):
            values[:, j], counts[j] = np.nan, AS_READ if dates.holds_dates(dtype) else None
            continue
        known = _known_numbers(frame.get_column(name))
        if known is not None:
            values[:, j], grain[j] = known
            continue
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            known_dates = dates.read_series(frame.get_column(name))
            if known_dates is None:
                reject(f"{parameter}: column {name!r}", "numeric", f"dtype {dtype}")
            values[:, j], counts[j] = known_dates, AS_READ
            continue
        values[:, j] = frame.get_column(name).cast(nw.Float64).to_numpy()
        if dtype == nw.Boolean or dtype.is_integer():
            grain[j] = INTEGER
        elif str(dtype) in ("Float32", "Float16"):
            grain[j] = FLOAT32
    return Table(values, names, grain, native, labels, counts=dates.or_nothing(counts))


def _known_numbers(column: nw.Series[Any]) -> tuple[Floats, int] | None:
    """The numbers and the grain of an Arrow column, and of decimals, for which pandas has objects only."""
    native = column.to_native()
    if hasattr(getattr(native, "dtype", None), "pyarrow_dtype"):  # of pandas, which lets Arrow keep it
        native = native.array.__arrow_array__()
    kind = getattr(native, "type", None) if type(native).__module__.startswith("pyarrow") else None
    if kind is not None and arrow.holds_numbers(kind):
        of_float = FLOAT32 if arrow.holds_singles(kind) else ANY_FLOAT
        return arrow.floats_of(native), INTEGER if arrow.holds_whole_numbers(kind) else of_float
    if getattr(native, "dtype", None) != np.dtype(object):
        return None
    cells = [None if is_null(cell) else cell for cell in column.to_list()]
    if not all(cell is None or isinstance(cell, Decimal) for cell in cells):
        return None
    return np.array([np.nan if cell is None else float(cell) for cell in cells]), ANY_FLOAT


def _is_empty(column: nw.Series[Any]) -> bool:
    """Whether a column holds nothing but nulls, so that its dtype says nothing of its values."""
    is_number = column.dtype.is_numeric() or column.dtype == nw.Boolean
    return not is_number and column.null_count() == len(column) and (len(column) > 0 or column.dtype == nw.Unknown)


def _codes(column: nw.Series[Any], labels: Sequence[Any]) -> Floats:
    """The numbers of a column's categories; pandas has them numbered already, only otherwise."""
    native = column.to_native()
    if nw.dependencies.is_pandas_series(native) and hasattr(native, "cat"):
        number = np.append(encode(native.cat.categories.tolist(), labels), np.nan)  # -1 is missing
        return np.asarray(number[native.cat.codes.to_numpy()])
    return encode(column.to_list(), labels)


def _order_of(column: Any) -> tuple[Any, ...] | None:
    """The categories of an ordered dtype: pandas' and Arrow's say that they are, polars' Enum always is."""
    dtype: Any = getattr(column, "dtype", None)
    if nw.dependencies.is_polars_series(column):
        return tuple(dtype.categories.to_list()) if type(dtype).__name__ == "Enum" else None
    if nw.dependencies.is_pyarrow_chunked_array(column):
        if not getattr(column.type, "ordered", False) or not column.num_chunks:
            return None
        return tuple(column.unify_dictionaries().chunk(0).dictionary.to_pylist())
    return tuple(dtype.categories.tolist()) if getattr(dtype, "ordered", False) else None


def _with_labels(rows: Any) -> NDArray[Any]:
    """The rows as an array in which numbers stay numbers next to text."""
    array = np.asarray(rows)
    return array if isinstance(rows, np.ndarray) or array.dtype.kind not in "US" else np.asarray(rows, object)


def _numbers_of(array: NDArray[Any], labels: Labels | None) -> Floats:
    if labels is None or all(own is None for own in labels):
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its values are of dtype {array.dtype}")
        return array.astype(np.float64)
    if array.dtype.kind not in "biufOUS":
        raise TypeError(f"its values are of dtype {array.dtype}")
    values = np.empty(array.shape)
    for j, own in enumerate(labels):
        values[:, j] = array[:, j].astype(np.float64) if own is None else encode(array[:, j].tolist(), own)
    return values


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


def one_line(error: Exception) -> str:
    """An error's text without its line breaks."""
    return " ".join(str(error).split())
