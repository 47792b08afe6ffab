"""Files of rows, read from any row on in batches: Parquet by row group, text by byte offset."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Floats
from treefocus.scale.batches import Rows
from treefocus.tables.columns import check_columns
from treefocus.tables.files import TABLE_FILES, check_suffix, read_names
from treefocus.tables.text import STANDARD, Record, TextFormat, complaint_of, records, shown

_SAMPLES, _SAMPLE = 64, 65_536  # blocks of a file, and bytes a block, that its fingerprint reads
_BLOCK_ROWS, _BLOCK_VALUES = 16_384, 1_000_000  # rows and values decoded at a time
_BUFFER = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class Place:
    """Where in a file to go on: a row, and for text the byte at which it starts and the lines before it.

    others: those of the lines that begin no row: names, empty ones, and lines inside a cell.
    """

    row: int = 0
    byte: int = 0
    line: int = 0
    others: int = 0


Size = Callable[[int], int]  # from the number of the next row to how many rows the next batch takes


class FileSource(ABC):
    """A file of rows: the model's columns and those to keep."""

    path: Path
    schema: pa.Schema  # of its batches
    n_rows: int | None  # where the file tells

    @abstractmethod
    def read(self, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """Batches from a place on, each with the place after it; `size` says how many rows go into the next one.

        A batch may be empty; the place after the last one is the end of the file.
        """

    @abstractmethod
    def count(self) -> int:
        """What the file says of its size by itself, to hold the rows that were read against: rows, or lines."""

    def check_end(self, place: Place, n_answers: int) -> None:
        """Refuse an end at which not every row of the file has its answer."""
        total = self.count()
        if n_answers != place.row or total != place.row + place.others:
            what = "lines" if self.n_rows is None else "rows"
            raise InvalidInput(
                f"{self.path} has {total:,} {what}, of which {place.others:,} are no rows, but {n_answers:,} rows were "
                f"answered up to line {place.line:,}: the file is not the one that was begun with."
            )

    def share(self, place: Place) -> float:
        """How much of the file lies before a place, from 0 to 1."""
        whole = self.path.stat().st_size if self.n_rows is None else self.n_rows
        return (place.byte if self.n_rows is None else place.row) / max(whole, 1)

    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over it: enough to notice that it is another file."""
        size = self.path.stat().st_size
        digest = hashlib.sha256(str(size).encode())
        with self.path.open("rb") as file:
            for start in np.unique(np.linspace(0, max(size - _SAMPLE, 0), _SAMPLES).astype(np.int64)).tolist():
                file.seek(start)
                digest.update(file.read(_SAMPLE))
        return digest.hexdigest()


def open_source(
    path: Path, features: Sequence[str], keep: Sequence[str], words: Sequence[str] = (), text: TextFormat = STANDARD
) -> FileSource:
    """The file's rows; refuses a file that cannot be read or lacks columns, before any work.

    words: the features that hold text, which matters where the file is all text. text: how that is written.
    """
    check_suffix(path, TABLE_FILES)
    names = read_names(path, text)
    check_columns(str(path), names, (*features, *keep), may_have_others=True)
    doubled = [name for name in (*features, *keep) if names.count(name) > 1]
    if doubled:
        reject(str(path), "a table of columns with different names", f"{', '.join(doubled)} more than once")
    try:
        if path.suffix == ".parquet":
            return ParquetSource(path, features, keep)
        return TextSource(path, names, features, keep, words, text)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as a table: {' '.join(str(error).split())}.") from error


class ParquetSource(FileSource):
    """A Parquet file; it knows its rows and row groups."""

    def __init__(self, path: Path, features: Sequence[str], keep: Sequence[str]) -> None:
        self.path = path
        self._columns = [*keep, *features]
        self._block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // len(self._columns)))
        with parquet.ParquetFile(path) as file:
            self.n_rows = file.metadata.num_rows
            groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            self.schema = pa.schema([file.schema_arrow.field(name) for name in self._columns])
        self._first_row = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)

    def count(self) -> int:
        """The rows that the file's own footer tells of."""
        with parquet.ParquetFile(self.path) as file:
            return int(file.metadata.num_rows)

    def read(self, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """From the row group that holds the row; a file that breaks on the way is reported with the row."""
        group = max(int(np.searchsorted(self._first_row, place.row, side="right")) - 1, 0)
        row = int(self._first_row[group])
        groups = list(range(group, len(self._first_row) - 1))
        try:
            with parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                batches = file.iter_batches(
                    self._block_rows, row_groups=groups, columns=self._columns, use_threads=False
                )
                for whole in batches:
                    batch = whole.select(self._columns).slice(max(place.row - row, 0))
                    row += len(whole) - len(batch)
                    while len(batch):
                        piece = batch.slice(0, size(row))
                        batch = batch.slice(len(piece))
                        row += len(piece)
                        yield Rows(piece), Place(row)
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())
            raise InvalidInput(f"{self.path} cannot be read beyond row {row}: {reason}.") from error


class TextSource(FileSource):
    """A .csv or .tsv file. A cell that is no number makes its row unreadable, with a reason, and nothing else.

    Lines in which every quote is where it should be are read by Arrow's own reader, which takes nothing that
    `TextFormat.number` would not. Where it finds something that it cannot read the lines are read one by one.
    """

    n_rows = None

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        features: Sequence[str],
        keep: Sequence[str],
        words: Sequence[str],
        text: TextFormat = STANDARD,
    ) -> None:
        self.path, self._text, self._delimiter = path, text, text.delimiter_of(path)
        self._names = tuple(names)
        self._columns = [(names.index(name), True) for name in keep]
        self._columns += [(names.index(name), name in words) for name in features]
        kinds = [pa.string() if is_text else pa.float64() for _, is_text in self._columns]
        self.schema = pa.schema([pa.field(name, kind) for name, kind in zip((*keep, *features), kinds, strict=True)])

    def read(self, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """Rows from a byte on."""
        with self.path.open("rb") as file:
            if place.byte == 0:
                place = self._header(file)
            while True:
                file.seek(place.byte)
                lines = list(islice(file, size(place.row)))
                rows, place = self._of_plain(lines, place) or self._one_by_one(lines, file, place, size(place.row))
                yield rows, place
                if not lines:
                    return

    def count(self) -> int:
        """The lines of the file, by nothing but their ends."""
        total, last = 0, b""
        with self.path.open("rb") as file:
            while block := file.read(_BUFFER):
                total += block.count(b"\n")
                last = block[-1:]
        return total + (last not in (b"", b"\n"))

    def _header(self, file: BinaryIO) -> Place:
        """Behind the line of names, and what comes before it."""
        for record, place in self._records([], file, Place(), None):
            if not record.is_empty:
                return replace(place, row=0, others=place.line)
        return Place()

    def _of_plain(self, lines: list[bytes], place: Place) -> tuple[Rows, Place] | None:
        """Lines that have nothing special about them, read at once; None where some have."""
        data = b"".join(lines)
        is_plain = b"(" not in data and data.count(b"\r") == data.count(b"\r\n")  # it would read nan(1)
        if not is_plain or (b'"' in data and b'"' in self._quoted.sub(b"", data)):
            return None
        try:
            data = data.decode(self._text.encoding).encode()
            options = csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self._numbered)
            table = csv.read_csv(pa.BufferReader(data), options, *self._options)
        except (UnicodeError, pa.ArrowException):
            return None
        n_empty = sum(not line.strip(b"\r\n") for line in lines)
        if table.num_rows != len(lines) - n_empty:
            return None
        columns = [_plain(column.combine_chunks()) for column in table.columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        n_bytes = sum(map(len, lines))
        return Rows(batch), Place(
            place.row + table.num_rows, place.byte + n_bytes, place.line + len(lines), place.others + n_empty
        )

    @cached_property
    def _quoted(self) -> re.Pattern[bytes]:
        """A cell in quotes, without any inside and on one line."""
        mark = re.escape(self._delimiter.encode())
        return re.compile(rb'(?:(?<=%b)|(?<=\n)|\A)"[^"\r\n]*"(?=%b|\r?\n|\Z)' % (mark, mark))

    @cached_property
    def _numbered(self) -> list[str]:
        """Names for Arrow's reader: a column is its number, since two may have one name."""
        return [f"f{j}" for j in range(len(self._names))]

    @cached_property
    def _options(self) -> tuple[csv.ParseOptions, csv.ConvertOptions]:
        kinds = {self._numbered[j]: pa.string() if is_text else pa.float64() for j, is_text in self._columns}
        return csv.ParseOptions(delimiter=self._delimiter), csv.ConvertOptions(
            column_types=kinds, include_columns=[self._numbered[j] for j, _ in self._columns], null_values=[""],
            strings_can_be_null=True, decimal_point=self._text.decimal,
        )  # fmt: skip

    def _one_by_one(self, lines: list[bytes], file: BinaryIO, place: Place, n_rows: int) -> tuple[Rows, Place]:
        """The next rows, and why some cannot be read; a quoted cell may take lines that are not among these yet."""
        found: list[Record] = []
        for record, behind in self._records(lines, file, place, len(self._names)):
            place = behind
            if not record.is_empty:
                found.append(record)
            if len(found) == n_rows:
                break
        return self._rows(found), place

    def _records(
        self, lines: list[bytes], file: BinaryIO, place: Place, width: int | None
    ) -> Iterator[tuple[Record, Place]]:
        """Records with the place behind each."""
        sizes: deque[int] = deque()

        def decoded() -> Iterator[str]:
            for number, line in enumerate(chain(lines, file), place.line + 1):
                sizes.append(len(line))
                yield self._text.decoded(line, number, self.path)

        for record in records(decoded(), place.line + 1, self._delimiter, width):
            n_bytes = sum(sizes.popleft() for _ in range(record.n_lines))
            n_rows = 0 if record.is_empty else 1
            place = Place(
                place.row + n_rows, place.byte + n_bytes, place.line + record.n_lines,
                place.others + record.n_lines - n_rows,
            )  # fmt: skip
            yield record, place

    def _rows(self, found: list[Record]) -> Rows:
        width = len(self._names)
        reasons = {i: reason for i, record in enumerate(found) if (reason := complaint_of(record, width))}
        columns = []
        for j, is_text in self._columns:
            texts = [record.cells[j] if j < len(record.cells) else "" for record in found]
            values = _words(texts) if is_text else self._column(texts, j, found, reasons)
            columns.append(pa.array(values))
        return Rows(pa.RecordBatch.from_arrays(columns, schema=self.schema), reasons)

    def _column(self, texts: list[str], j: int, found: list[Record], reasons: dict[int, str]) -> Floats:
        values = np.empty(len(texts))
        for i, cell in enumerate(texts):
            number = self._text.number(cell)
            if number is None and i not in reasons:
                reasons[i] = f"line {found[i].line}, column {self._names[j]!r}: {shown(cell)} is not a number"
            values[i] = np.nan if number is None else number
        for i in reasons:  # infinity is a value that no model reads
            values[i] = np.inf
        return values


def _words(texts: list[str]) -> pa.Array:
    """An empty cell is a missing one."""
    return pa.array([text if text.strip() else None for text in texts], pa.string())


def _plain(column: pa.Array) -> pa.Array:
    """A column of Arrow's reader as the other one has it."""
    if column.type == pa.float64():
        return column.fill_null(np.nan)
    return pc.if_else(pc.utf8_is_space(column), pa.scalar(None, pa.string()), column)
