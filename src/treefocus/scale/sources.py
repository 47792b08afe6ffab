"""Sources of rows, read from any row on in batches: Parquet by row group, text by line."""

from __future__ import annotations

import hashlib
import re
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats
from treefocus.scale.batches import Rows
from treefocus.scale.inputs import RowFile
from treefocus.scale.lines import BUFFER, Lines
from treefocus.tables.text import STANDARD, Record, TextFormat, complaint_of, records, shown

_BLOCK_ROWS, _BLOCK_VALUES = 16_384, 1_000_000  # rows and values decoded at a time
UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowException)  # what a file that is no such file raises


@dataclass(frozen=True)
class Place:
    """Where in the input to go on: a row, and for text the byte at which it starts and the lines before it.

    others: those of the lines that begin no row: names, empty ones, and lines inside a cell. file: the number of the
    file, to which byte and lines belong, and `first` the row with which it begins. digest: of all before, where the
    input cannot be looked at beforehand.
    """

    row: int = 0
    byte: int = 0
    line: int = 0
    others: int = 0
    file: int = 0
    first: int = 0
    digest: str = ""


Size = Callable[[int], int]  # from the number of the next row to how many rows the next batch takes


class RowSource(ABC):
    """Rows: the model's columns and those to keep."""

    name: str  # as messages call it
    schema: pa.Schema  # of its batches
    n_rows: int | None  # where it is known beforehand
    comes_once = False  # and cannot be looked at beforehand

    @abstractmethod
    def read(self, place: Place, size: Size) -> Generator[tuple[Rows, Place], None, None]:
        """Batches from a place on, each with the place after it; `size` says how many rows go into the next one.

        A batch may be empty; the place after the last one is the end.
        """

    @abstractmethod
    def count(self) -> int:
        """What the input says of its size by itself, to hold the rows that were read against: rows, or lines."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash by which another input is noticed, as far as that can be told beforehand."""

    @abstractmethod
    def share(self, place: Place) -> float | None:
        """How much of the input lies before a place, from 0 to 1; None where nobody knows."""

    def check_end(self, place: Place) -> None:
        """Refuse an end at which not every row was read."""
        total = self.count()
        if total != place.row - place.first + place.others:
            what = "lines" if self.n_rows is None else "rows"
            raise InvalidInput(
                f"{self.name} has {total:,} {what}, of which {place.others:,} are no rows, but "
                f"{place.row - place.first:,} rows were answered up to line {place.line:,}: the file is not the one "
                "that was begun with."
            )

    def check_answered(self, place: Place) -> None:
        """Refuse rows that come once and are not those up to a place, all of which are answered.

        Of others the fingerprint has told it.
        """
        if not self.comes_once:
            return
        end = place
        for _, end in self.read(place, lambda _: _BLOCK_ROWS):
            if end.row > place.row:
                break
        if end.row != place.row:
            raise InvalidInput(
                f"The rows of {self.name} are not the {place.row:,} of which the folder holds the answers; give "
                "another folder."
            )


def unreadable(name: str, where: str, error: Exception) -> InvalidInput:
    """What is said of a file that breaks."""
    return InvalidInput(f"{name} cannot be read{where}: {' '.join(str(error).split()).rstrip('.')}.")


class ParquetSource(RowSource):
    """A Parquet file; it knows its rows and row groups."""

    def __init__(self, file: RowFile, features: Sequence[str], keep: Sequence[str]) -> None:
        self.file, self.name = file, file.name
        self._columns = [*keep, *features]
        self._block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // max(len(self._columns), 1)))
        with file.raw() as raw, parquet.ParquetFile(raw) as opened:
            self.n_rows = opened.metadata.num_rows
            groups = [opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups)]
            self.schema = pa.schema([opened.schema_arrow.field(name) for name in self._columns])
        self._first_row = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)

    def count(self) -> int:
        """The rows that the file's own footer tells of."""
        with self.file.raw() as raw, parquet.ParquetFile(raw) as opened:
            return int(opened.metadata.num_rows)

    def fingerprint(self) -> str:
        """Of blocks of the file."""
        return self.file.fingerprint()

    def share(self, place: Place) -> float:
        """In rows."""
        return (place.row - place.first) / max(self.n_rows or 0, 1)

    def read(self, place: Place, size: Size) -> Generator[tuple[Rows, Place], None, None]:
        """From the row group that holds the row; a file that breaks on the way is reported with the row."""
        start = place.row - place.first
        group = max(int(np.searchsorted(self._first_row, start, side="right")) - 1, 0)
        row = int(self._first_row[group])
        groups = list(range(group, len(self._first_row) - 1))
        try:
            with self.file.raw() as raw, parquet.ParquetFile(raw, pre_buffer=False, buffer_size=BUFFER) as opened:
                batches = opened.iter_batches(
                    self._block_rows, row_groups=groups, columns=self._columns, use_threads=False
                )
                for whole in batches:
                    batch = whole.select(self._columns).slice(max(start - row, 0))
                    row += len(whole) - len(batch)
                    while len(batch):
                        piece = batch.slice(0, size(place.first + row))
                        batch = batch.slice(len(piece))
                        row += len(piece)
                        yield Rows(piece), replace(place, row=place.first + row)
        except UNREADABLE as error:
            raise unreadable(self.name, f" beyond row {row}", error) from error


class TextSource(RowSource):
    """A .csv or .tsv file. A cell that is no number makes its row unreadable, with a reason, and nothing else.

    Lines in which every quote is where it should be are read by Arrow's own reader, which takes nothing that
    `TextFormat.number` would not. Where it finds something that it cannot read the lines are read one by one.
    """

    n_rows = None

    def __init__(
        self,
        file: RowFile,
        names: Sequence[str],
        features: Sequence[str],
        keep: Sequence[str],
        words: Sequence[str],
        text: TextFormat = STANDARD,
        stream: Lines | None = None,
    ) -> None:
        self.file, self.name, self._text, self._stream = file, file.name, text, stream
        self.comes_once = stream is not None
        self._delimiter = text.delimiter_of(file)
        self._names = tuple(names)
        self._columns = [(names.index(name), True) for name in keep]
        self._columns += [(names.index(name), name in words) for name in features]
        kinds = [pa.string() if is_text else pa.float64() for _, is_text in self._columns]
        self.schema = pa.schema([pa.field(name, kind) for name, kind in zip((*keep, *features), kinds, strict=True)])
        self._n_packed = 0  # bytes read of a packed file, as they lie there

    def read(self, place: Place, size: Size) -> Generator[tuple[Rows, Place], None, None]:
        """Rows from a byte on; of a stream, which comes from its beginning, what is done is skipped."""
        if self._stream is not None:
            yield from self._read_stream(self._stream, place, size)
            return
        try:
            with self.file.unpacked() as (file, raw):
                file.seek(place.byte)
                for found in self._read_lines(Lines(file), place, size):
                    self._n_packed = raw.tell()
                    yield found
        except UNREADABLE as error:
            raise unreadable(self.name, f" beyond line {place.line}", error) from error

    def _read_stream(self, lines: Lines, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """The same, with a hash of all that was read in every place."""
        lines.skip(place.byte)
        if place.byte and lines.digest() != place.digest:
            raise InvalidInput(f"The rows on {self.name} are not those that were begun with; give another folder.")
        for rows, behind in self._read_lines(lines, place, size):
            yield rows, replace(behind, digest=lines.digest())

    def _read_lines(self, lines: Lines, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        if place.byte == 0:
            place = self._header(lines, place)
        while taken := lines.take(size(place.row)):
            found = self._of_plain(taken, place)
            if found is None:
                lines.unread(taken)
                found = self._one_by_one(lines, place, size(place.row))
            place = found[1]
            yield found
        yield Rows(pa.RecordBatch.from_pylist([], self.schema)), place

    def count(self) -> int:
        """The lines of the file, by nothing but their ends."""
        if self._stream is not None:
            return self._stream.n_ends
        total, last = 0, b""
        with self.file.unpacked() as (file, _):
            while block := file.read(BUFFER):
                total += block.count(b"\n")
                last = block[-1:]
        return total + (last not in (b"", b"\n"))

    def fingerprint(self) -> str:
        """Of blocks of the file; a stream is known by its names alone."""
        if self._stream is None:
            return self.file.fingerprint()
        return hashlib.sha256(repr(self._names).encode()).hexdigest()

    def share(self, place: Place) -> float | None:
        """In bytes."""
        if self._stream is not None:
            return None
        return (self._n_packed if self.file.is_packed else place.byte) / max(self.file.size(), 1)

    def _header(self, lines: Lines, place: Place) -> Place:
        """Behind the line of names, and what comes before it."""
        with closing(self._records(lines, place, None)) as all_behind:
            for record, behind in all_behind:
                if not record.is_empty:
                    return replace(behind, row=place.row, others=behind.line)
        return place

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
        return Rows(batch), _moved(place, table.num_rows, n_bytes, len(lines))

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

    def _one_by_one(self, lines: Lines, place: Place, n_rows: int) -> tuple[Rows, Place]:
        """The next rows, and why some cannot be read."""
        found: list[Record] = []
        with closing(self._records(lines, place, len(self._names))) as all_behind:
            for record, behind in all_behind:
                place = behind
                if not record.is_empty:
                    found.append(record)
                if len(found) == n_rows:
                    break
        return self._rows(found), place

    def _records(self, lines: Lines, place: Place, width: int | None) -> Generator[tuple[Record, Place], None, None]:
        """Records with the place behind each; lines that were looked at and belong to none of them come again."""
        looked_at: deque[bytes] = deque()

        def decoded() -> Iterator[str]:
            for number, line in enumerate(lines, place.line + 1):
                looked_at.append(line)
                yield self._text.decoded(line, number, self.name)

        try:
            for record in records(decoded(), place.line + 1, self._delimiter, width):
                n_bytes = sum(len(looked_at.popleft()) for _ in range(record.n_lines))
                place = _moved(place, 0 if record.is_empty else 1, n_bytes, record.n_lines)
                yield record, place
        finally:
            lines.unread(list(looked_at))

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


def _moved(place: Place, n_rows: int, n_bytes: int, n_lines: int) -> Place:
    return replace(
        place,
        row=place.row + n_rows,
        byte=place.byte + n_bytes,
        line=place.line + n_lines,
        others=place.others + n_lines - n_rows,
    )


def _words(texts: list[str]) -> pa.Array:
    """An empty cell is a missing one."""
    return pa.array([text if text.strip() else None for text in texts], pa.string())


def _plain(column: pa.Array) -> pa.Array:
    """A column of Arrow's reader as the other one has it."""
    if column.type == pa.float64():
        return column.fill_null(np.nan)
    return pc.if_else(pc.utf8_is_space(column), pa.scalar(None, pa.string()), column)
