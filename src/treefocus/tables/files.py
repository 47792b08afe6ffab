"""Tables in files: .csv, .tsv and .parquet, read and written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import are_categories
from treefocus.schema.dates import AS_READ, read_date
from treefocus.schema.schema import ANY_FLOAT, INTEGER
from treefocus.tables.dates import or_nothing
from treefocus.tables.labels import Coding, encode_text, label_or_text
from treefocus.tables.table import Table, TextColumns, as_table, one_line
from treefocus.tables.text import STANDARD, Record, TextFormat, complaint_of, guarded, is_truth, records, shown

TABLE_FILES = (".csv", ".tsv", ".parquet")


def read_table(
    path: str | Path, ignore: Sequence[str] = (), coding: Coding | None = None, text: TextFormat = STANDARD
) -> Table:
    """Read a .csv, .tsv or .parquet file, without the columns named in `ignore`; categories by the coding."""
    path = Path(path)
    kept = [name for name in read_names(path, text) if name not in ignore]
    if not kept:
        raise InvalidInput(f"{path} has no column left: all are ignored.")
    doubled = sorted({name for name in kept if kept.count(name) > 1})
    if doubled:
        reject(str(path), "a table of columns with different names", f"{', '.join(doubled)} more than once")
    with _complaining(path):
        if path.suffix == ".parquet":
            return as_table(import_pyarrow("Reading").read_table(path, columns=list(kept)), str(path), coding)
        return _read_text(path, ignore, coding, text)


def read_columns(path: str | Path, ignore: Sequence[str] = (), text: TextFormat = STANDARD) -> Any:
    """The columns of a file for which no model is known: a pyarrow table, or arrays by name; text stays text."""
    path = Path(path)
    kept = [name for name in read_names(path, text) if name not in ignore]
    with _complaining(path):
        if path.suffix == ".parquet":
            return import_pyarrow("Reading").read_table(path, columns=kept)
        header, *rows = _records(path, text)
        place = {name: j for j, name in enumerate(header.cells)}
        columns = {name: [row.cells[place[name]].strip() for row in rows] for name in kept}
        return {name: _numbers_or_text(cells, text) for name, cells in columns.items()}


def _numbers_or_text(cells: list[str], text: TextFormat) -> NDArray[Any]:
    numbers = [text.number(cell) for cell in cells]
    if any(map(is_truth, cells)):
        are_words = [is_truth(cell) or not cell for cell in cells]
        return (
            np.array(numbers, bool) if all(cells) and all(are_words) else np.array([c or None for c in cells], object)
        )
    if any(number is None for number in numbers):
        return np.array([cell or None for cell in cells], object)
    return np.array(numbers, np.float64)


def read_names(path: str | Path, text: TextFormat = STANDARD) -> tuple[str, ...]:
    """The names of the columns of a .csv, .tsv or .parquet file."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    with _complaining(path):
        if path.suffix == ".parquet":
            return tuple(import_pyarrow("Reading").read_schema(path).names)
        header = next(_records(path, text), None)  # what follows the names is not looked at
    if header is None:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    return tuple(header.cells)


def write_columns(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length to a .csv, .tsv or .parquet file; None is an empty cell or a null."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if path.suffix == ".parquet":
        import_pyarrow("Writing").write_table(_arrow_table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=STANDARD.delimiter_of(path), lineterminator="\n")
        writer.writerow(map(guarded, columns))
        writer.writerows(map(guarded, row) for row in zip(*columns.values(), strict=True))


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


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file's content, or in reading it, as one sentence."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError, csv.Error) as error:  # pyarrow's own errors are of these kinds
        raise InvalidInput(f"{path} cannot be read as a table: {one_line(error)}.") from error


def _arrow_table(columns: Mapping[str, Sequence[Any]]) -> Any:
    import pyarrow

    return pyarrow.table({name: list(column) for name, column in columns.items()})


def _read_text(path: Path, ignore: Sequence[str], coding: Coding | None, text: TextFormat) -> Table:
    found = _records(path, text)
    header = next(found).cells
    kept = [j for j, name in enumerate(header) if name not in ignore]
    names = tuple(header[j] for j in kept)
    labels = None if coding is None else coding.for_columns(names, len(names))
    texts: dict[int, list[str]] = {kept[k]: [] for k, own in enumerate(labels or ()) if own is not None}
    truths = _Truths()
    rows = [_numbers(path, row, header, kept, texts, text, truths) for row in found]
    truths.check(path, header)
    values = np.array(rows).reshape(-1, len(kept))
    cells: dict[str, list[Any]] = {header[j]: truths.dates[j] for j in truths.dates}
    for k, j in enumerate(kept):
        if labels is not None and (own := labels[k]) is not None:
            values[:, k] = encode_text(texts[j], own)
            cells[names[k]] = [label_or_text(c, own, t) for c, t in zip(values[:, k], texts[j], strict=True)]
    is_whole = ~np.isnan(values).any(axis=0) & (values == np.rint(values)).all(axis=0) & (len(values) > 0)
    counts = [AS_READ if j in truths.dates else None for j in kept]
    is_whole &= np.array([own is None for own in counts], bool)
    is_whole |= are_categories(labels, len(kept))
    grain = np.where(is_whole, INTEGER, ANY_FLOAT).astype(np.int8)
    booleans = frozenset(header[j] for j in truths.first)
    return Table(values, names, grain, TextColumns(names, cells, booleans), labels, counts=or_nothing(counts))


def _records(path: Path, text: TextFormat) -> Iterator[Record]:
    """The names of a text file's columns, and its rows; one that cannot be read is refused with its line."""
    width = None
    with path.open("rb") as file:
        lines = (text.decoded(line, number, path) for number, line in enumerate(file, 1))
        for record in records(lines, 1, text.delimiter_of(path)):
            if record.is_empty:
                continue
            width = len(record.cells) if width is None else width
            complaint = complaint_of(record, width)
            if complaint:
                raise InvalidInput(f"{path}, {complaint}.")
            yield record


class _Truths:
    """Which columns of a text file say True and False, or dates; a column says one of them, or holds numbers."""

    def __init__(self) -> None:
        self.first: dict[int, tuple[int, str]] = {}  # by column the first line that does, and what it says
        self.dates: dict[int, list[str | None]] = {}  # by column its cells
        self.has_numbers: set[int] = set()
        self._first_date: dict[int, tuple[int, str]] = {}
        self._n_rows = 0

    def hear(self, column: int, line: int, cell: str) -> None:
        """A cell that was read as a number."""
        if is_truth(cell):
            self.first.setdefault(column, (line, cell))
        elif column in self.dates and not cell.strip():
            self.dates[column].append(None)
        elif cell.strip():
            self.has_numbers.add(column)

    def dated(self, column: int, line: int, cell: str) -> float | None:
        """The number of a cell's date, None where it holds none."""
        moment = read_date(cell)
        if moment is None:
            return None
        self._first_date.setdefault(column, (line, cell))
        self.dates.setdefault(column, [None] * self._n_rows).append(cell.strip())
        return AS_READ.number(moment)

    def end_row(self) -> None:
        """Every cell of a row was heard."""
        self._n_rows += 1

    def check(self, path: Path, header: list[str]) -> None:
        """Refuse a column that holds two of them."""
        for j, (line, cell) in (self.first | self._first_date).items():
            if j in self.has_numbers or (j in self.first and j in self._first_date):
                raise InvalidInput(f"{path}, line {line}, column {header[j]!r}: {shown(cell)} is not a number.")


def _numbers(
    path: Path,
    row: Record,
    header: list[str],
    kept: list[int],
    texts: dict[int, list[str]],
    text: TextFormat,
    truths: _Truths,
) -> list[float]:
    """A row's numbers; the cells of columns of categories are put aside."""
    numbers = []
    for j in kept:
        cell = row.cells[j]
        if j in texts:
            texts[j].append(cell)
        number = 0.0 if j in texts else text.number(cell)
        if number is None:
            number = truths.dated(j, row.line, cell)
        elif j not in texts:
            truths.hear(j, row.line, cell)
        if number is None:
            raise InvalidInput(f"{path}, line {row.line}, column {header[j]!r}: {shown(cell)} is not a number.")
        numbers.append(number)
    truths.end_row()
    return numbers
