"""Many files as one source of rows, in order, each counted on its own; folders such as `year=2026` are columns."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from treefocus.errors import InvalidInput, reject
from treefocus.scale.batches import Rows
from treefocus.scale.inputs import STDIN, Named, RowFile, files_of, shown_of
from treefocus.scale.lines import Lines
from treefocus.scale.sources import UNREADABLE, ParquetSource, Place, RowSource, Size, TextSource, unreadable
from treefocus.tables.columns import check_columns
from treefocus.tables.text import STANDARD, TextFormat, complaint_of, records


class RowFiles(RowSource):
    """The rows of files that lie side by side."""

    def __init__(
        self, name: str, sources: Sequence[RowSource], partitions: Sequence[dict[str, Any]], order: Sequence[str]
    ) -> None:
        self.name, self._sources = name, sources
        self._partitions = [{key: pa.scalar(value, kind) for key, (value, kind) in own.items()} for own in partitions]
        self._order = list(order)
        self.comes_once = any(source.comes_once for source in sources)
        self.schema = self._common_schema()
        counts = [source.n_rows for source in sources]
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)

    def read(self, place: Place, size: Size) -> Generator[tuple[Rows, Place], None, None]:
        """File by file; one of which not every row was read is an error."""
        for number in range(place.file, len(self._sources)):
            source = self._sources[number]
            if number != place.file:
                place = Place(place.row, file=number, first=place.row)
            for rows, behind in source.read(place, size):
                place = behind
                yield replace(rows, batch=self._with_partition(rows.batch, number)), place
            source.check_end(place)

    def seek(self, row: int) -> Place:
        """The place of a row, where all files know how many they have."""
        first = 0
        for number, source in enumerate(self._sources):
            n_rows = source.n_rows or 0
            if row < first + n_rows or number == len(self._sources) - 1:
                return Place(row, file=number, first=first)
            first += n_rows
        return Place(row)

    def count(self) -> int:
        """What the last file says of itself; the others were asked when they were read."""
        return self._sources[-1].count()

    def fingerprint(self) -> str:
        """Of every file."""
        if len(self._sources) == 1:
            return self._sources[0].fingerprint()
        digest = hashlib.sha256()
        for source, partition in zip(self._sources, self._partitions, strict=True):
            digest.update(f"{source.fingerprint()} {partition}\n".encode())
        return digest.hexdigest()

    def share(self, place: Place) -> float | None:
        """In rows where they are known, else in files."""
        if self.n_rows is not None:
            return place.row / max(self.n_rows, 1)
        own = self._sources[place.file].share(place)
        return None if own is None else (place.file + own) / len(self._sources)

    def _common_schema(self) -> pa.Schema:
        found = []
        for source, partition in zip(self._sources, self._partitions, strict=True):
            fields = [*source.schema, *(pa.field(key, value.type) for key, value in partition.items())]
            found.append(pa.schema(fields).remove_metadata())
        try:
            common = pa.unify_schemas(found, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInput(
                f"{self.name} holds files whose columns differ: {' '.join(str(error).split())}."
            ) from error
        return pa.schema([common.field(name) for name in self._order])

    def _with_partition(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """A file's rows under the schema of all."""
        partition = self._partitions[number]
        columns = []
        for field in self.schema:
            if field.name in partition:
                column = pa.repeat(partition[field.name], len(batch))
            else:
                column = batch.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def open_dataset(
    named: Named, features: Sequence[str], keep: Sequence[str], words: Sequence[str] = (), text: TextFormat = STANDARD
) -> RowFiles:
    """The rows of what was named; refuses what cannot be read or lacks columns, before any work.

    words: the features that hold text, which matters where files are all text. text: how these are written.
    """
    if named == STDIN:
        return _of_stdin(features, keep, words, text)
    files = files_of(named)
    partitions = _partitions_of(files)
    order = (*keep, *features)
    sources: list[RowSource] = []
    for file, partition in zip(files, partitions, strict=True):
        names = names_in(file, text)
        check_columns(file.name, (*names, *partition), order, may_have_others=True)
        doubled = [name for name in order if (*names, *partition).count(name) > 1]
        if doubled:
            reject(file.name, "a table of columns with different names", f"{', '.join(doubled)} more than once")
        own, kept = ([name for name in part if name not in partition] for part in (features, keep))
        try:
            is_parquet = file.suffix == ".parquet"
            sources.append(
                ParquetSource(file, own, kept) if is_parquet else TextSource(file, names, own, kept, words, text)
            )
        except UNREADABLE as error:
            raise unreadable(file.name, " as a table", error) from error
    used = [{key: value for key, value in own.items() if key in order} for own in partitions]
    return RowFiles(shown_of(named) if len(files) > 1 else files[0].name, sources, used, order)


def _of_stdin(features: Sequence[str], keep: Sequence[str], words: Sequence[str], text: TextFormat) -> RowFiles:
    """Text that comes through a pipe, once."""
    file = RowFile("the standard input", "stdin.csv")
    lines = Lines(sys.stdin.buffer, is_hashed=True)
    names = _header_of(file, lines, text)
    check_columns(file.name, names, (*features, *keep), may_have_others=True)
    source = TextSource(file, names, features, keep, words, text, lines)
    return RowFiles(file.name, [source], [{}], (*keep, *features))


def names_of(named: Named, text: TextFormat = STANDARD) -> tuple[str, ...]:
    """The columns of what was named, by its first file and the folders above it; none of the standard input."""
    if named == STDIN:
        return ()
    first = files_of(named)[0]
    return (*names_in(first, text), *(key for key, _ in first.partition))


def names_in(file: RowFile, text: TextFormat = STANDARD) -> tuple[str, ...]:
    """The columns of one file."""
    try:
        if file.suffix == ".parquet":
            with file.raw() as raw, parquet.ParquetFile(raw) as opened:
                return tuple(opened.schema_arrow.names)
        with file.unpacked() as (opened, _):
            return _header_of(file, Lines(opened), text)
    except UNREADABLE as error:
        raise unreadable(file.name, " as a table", error) from error


def _header_of(file: RowFile, lines: Lines, text: TextFormat) -> tuple[str, ...]:
    """The names in the first line that holds anything; all that was looked at comes again."""
    looked_at: list[bytes] = []

    def decoded() -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            looked_at.append(line)
            yield text.decoded(line, number, file.name)

    try:
        found = (record for record in records(decoded(), 1, text.delimiter_of(file)) if not record.is_empty)
        header = next(found, None)
    finally:
        lines.unread(looked_at)
    if header is None:
        raise InvalidInput(f"{file.name} is empty; a table starts with a line of column names.")
    complaint = complaint_of(header, len(header.cells))
    if complaint:
        raise InvalidInput(f"{file.name}, {complaint}.")
    return tuple(header.cells)


def _partitions_of(files: Sequence[RowFile]) -> list[dict[str, Any]]:
    """For every file what its folders say: a value and its type, the same type in all files."""
    kinds: dict[str, pa.DataType] = {}
    for key in dict.fromkeys(key for file in files for key, _ in file.partition):
        texts = [value for file in files for name, value in file.partition if name == key and value is not None]
        kinds[key] = _kind_of(texts)
    found = []
    for file in files:
        own: dict[str, Any] = {}
        for key, value in file.partition:
            cast = {pa.int64(): int, pa.float64(): float}.get(kinds[key], str)
            own[key] = (None if value is None else cast(value), kinds[key])
        found.append(own)
    return found


def _kind_of(texts: Sequence[str]) -> pa.DataType:
    if all(text.lstrip("-").isdecimal() and str(int(text)) == text and len(text) < 19 for text in texts):
        return pa.int64()
    return pa.float64() if all(STANDARD.number(text) is not None for text in texts) else pa.string()
