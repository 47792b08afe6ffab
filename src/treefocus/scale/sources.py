"""Files of rows, read from any row on in batches: Parquet by row group, text by byte offset."""

from __future__ import annotations

import csv
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from treefocus.errors import InvalidInput, reject
from treefocus.scale.batches import Rows
from treefocus.tables.columns import check_columns
from treefocus.tables.files import TABLE_FILES, check_suffix, delimiter, read_names

_SAMPLES, _SAMPLE = 64, 65_536  # blocks of a file, and bytes a block, that its fingerprint reads
_BLOCK_ROWS, _BLOCK_VALUES = 16_384, 1_000_000  # rows and values decoded at a time
_BUFFER = 1 << 20  # bytes read at a time
_LONGEST_CELL = 80  # characters of a bad cell that its reason shows


@dataclass(frozen=True)
class Place:
    """Where in a file to go on: a row, and for text the byte at which it starts and the lines before it."""

    row: int = 0
    byte: int = 0
    line: int = 0


Size = Callable[[int], int]  # from the number of the next row to how many rows the next batch takes


class FileSource(ABC):
    """A file of rows: the model's columns and those to keep."""

    path: Path
    schema: pa.Schema  # of its batches
    n_rows: int | None  # where the file tells

    @abstractmethod
    def read(self, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """Batches from a place on, each with the place after it; `size` says how many rows go into the next one."""

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


def open_source(path: Path, features: Sequence[str], keep: Sequence[str], words: Sequence[str] = ()) -> FileSource:
    """The file's rows; refuses a file that cannot be read or lacks columns, before any work.

    words: the features that hold text, which matters where the file is all text.
    """
    check_suffix(path, TABLE_FILES)
    names = read_names(path)
    check_columns(str(path), names, (*features, *keep), may_have_others=True)
    doubled = [name for name in (*features, *keep) if names.count(name) > 1]
    if doubled:
        reject(str(path), "a table of columns with different names", f"{', '.join(doubled)} more than once")
    try:
        if path.suffix == ".parquet":
            return ParquetSource(path, features, keep)
        return TextSource(path, names, features, keep, words)
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
    """A .csv or .tsv file. A cell that is no number makes its row unreadable, with a reason, and nothing else."""

    n_rows = None

    def __init__(
        self, path: Path, names: Sequence[str], features: Sequence[str], keep: Sequence[str], words: Sequence[str]
    ) -> None:
        self.path = path
        self._names = tuple(names)
        self._kept = [(names.index(name), True) for name in keep]
        self._features = [(names.index(name), name in words) for name in features]
        kinds = [pa.string() if is_text else pa.float64() for _, is_text in (*self._kept, *self._features)]
        self.schema = pa.schema([pa.field(name, kind) for name, kind in zip((*keep, *features), kinds, strict=True)])
        self._start = next(self._records(Place()))[1]  # behind the header

    def read(self, place: Place, size: Size) -> Iterator[tuple[Rows, Place]]:
        """Rows from a byte on."""
        row, wanted = place.row, size(place.row)
        after = self._start if place.byte == 0 else place
        cells: list[list[str]] = []
        lines: list[int] = []
        for record, behind in self._records(after):
            if record:
                cells.append(record)
                lines.append(after.line + 1)
            after = behind
            if len(cells) == wanted:
                row += len(cells)
                yield self._rows(cells, lines), Place(row, after.byte, after.line)
                cells, lines, wanted = [], [], size(row)
        if cells:
            yield self._rows(cells, lines), Place(row + len(cells), after.byte, after.line)

    def _records(self, place: Place) -> Iterator[tuple[list[str], Place]]:
        """Records with the place behind each; bytes that are no UTF-8 become marks in their cell."""
        byte, line = place.byte, place.line
        with self.path.open("rb") as file:
            file.seek(byte)

            def counted() -> Iterator[str]:
                nonlocal byte, line
                for raw in file:
                    byte, line = byte + len(raw), line + 1
                    text = raw.decode("utf-8", "replace").replace("\0", "\ufffd")
                    yield text.removeprefix("\ufeff") if line == 1 else text

            reader = csv.reader(counted(), delimiter=delimiter(self.path))
            while True:
                try:
                    record = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:  # a cell beyond all measure
                    record = [f"{error}"] * (len(self._names) + 1)
                yield record, Place(0, byte, line)

    def _rows(self, cells: list[list[str]], lines: list[int]) -> Rows:
        reasons: dict[int, str] = {}
        width = len(self._names)
        for i, record in enumerate(cells):
            if len(record) != width:
                reasons[i] = f"line {lines[i]}: {width} cells were expected, {len(record)} came"
                cells[i] = [*record[:width], *[""] * (width - len(record))]
        columns = []
        for j, is_text in (*self._kept, *self._features):
            texts = [record[j] for record in cells]
            values = _words(texts) if is_text else self._column(texts, j, lines, reasons)
            columns.append(pa.array(values))
        return Rows(pa.RecordBatch.from_arrays(columns, schema=self.schema), reasons)

    def _column(self, texts: list[str], j: int, lines: list[int], reasons: dict[int, str]) -> np.ndarray[Any, Any]:
        try:
            values = np.array(texts, np.float64)
        except ValueError:
            values = np.array([_number(text) for text in texts])
            for i in np.flatnonzero(np.isinf(values)).tolist():
                if i not in reasons and not _is_infinite(texts[i]):
                    shown = texts[i] if len(texts[i]) <= _LONGEST_CELL else texts[i][:_LONGEST_CELL] + "..."
                    reasons[i] = f"line {lines[i]}, column {self._names[j]!r}: {shown!r} is not a number"
        for i in reasons:  # infinity is a value that no model reads
            values[i] = np.inf
        return values


def _words(texts: list[str]) -> pa.Array:
    """An empty cell is a missing one."""
    return pa.array([text if text.strip() else None for text in texts], pa.string())


def _number(text: str) -> float:
    """The number, NaN for an empty cell, infinity for what is none."""
    try:
        return float(text) if text.strip() else np.nan
    except ValueError:
        return np.inf


def _is_infinite(text: str) -> bool:
    try:
        return bool(np.isinf(float(text)))
    except ValueError:
        return False
