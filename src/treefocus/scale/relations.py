"""Rows that another library reads: DuckDB, polars, Arrow, Delta, Iceberg. They come once, as batches of Arrow.

Nobody can look at such an input beforehand, so every place in it holds a hash of all rows before: a run that goes on
reads past them and notices rows that are not those that were begun with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from treefocus.errors import InvalidInput, reject
from treefocus.scale.batches import Rows
from treefocus.scale.sources import UNREADABLE, Place, RowSource, Size, unreadable
from treefocus.tables.arrow import floats_of, holds_numbers
from treefocus.tables.columns import check_columns

_BLOCK_ROWS = 16_384  # rows asked for at a time, where the other library lets us say
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}  # which not everybody reads


class RelationSource(RowSource):
    """Batches of Arrow in an order that is the same every time."""

    n_rows, comes_once = None, True

    def __init__(self, relation: Any, features: Sequence[str], keep: Sequence[str]) -> None:
        self.name = _name_of(relation)
        self._columns = list(dict.fromkeys([*keep, *features]))
        self._reader = reader_of(relation, self._columns)
        check_columns(self.name, self._reader.schema.names, self._columns, may_have_others=True)
        fields = [self._reader.schema.field(name) for name in self._columns]
        self.schema = pa.schema([field.with_type(_VIEWS.get(field.type, field.type)) for field in fields])
        self._n_seen = 0

    def read(self, place: Place, size: Size) -> Generator[tuple[Rows, Place], None, None]:
        """From the first row on; those that are done are read past."""
        digest, row, done = RowDigest(len(self._columns)), 0, place.row
        try:
            for whole in self._reader:
                self._n_seen += len(whole)
                batch = whole.select(self._columns).cast(self.schema)
                while len(batch):
                    piece = batch.slice(0, min(size(row), done - row) if row < done else size(row))
                    batch, row = batch.slice(len(piece)), row + len(piece)
                    told = digest.updated(piece)
                    if row == done and told != place.digest:
                        raise InvalidInput(f"The rows of {self.name} are not those that were begun with.")
                    if row > done:
                        yield Rows(piece), replace(place, row=row, digest=told)
        except UNREADABLE as error:
            raise unreadable(self.name, f" beyond row {row}", error) from error
        yield Rows(pa.RecordBatch.from_pylist([], self.schema)), Place(row, digest=digest.updated(None))

    def count(self) -> int:
        """The rows of the batches as they came."""
        return self._n_seen

    def fingerprint(self) -> str:
        """Of the columns alone."""
        return hashlib.sha256(str(self.schema).encode()).hexdigest()

    def share(self, place: Place) -> None:
        """Nobody knows."""


class RowDigest:
    """A hash of rows that does not hang on the batches in which they come."""

    def __init__(self, n_columns: int) -> None:
        self._columns = [hashlib.sha256() for _ in range(n_columns)]

    def updated(self, batch: pa.RecordBatch | None) -> str:
        """The hash with these rows behind the others."""
        for digest, column in zip(self._columns, batch.columns if batch is not None else (), strict=False):
            if holds_numbers(column.type):
                digest.update(np.ascontiguousarray(floats_of(column)).tobytes())
            else:
                digest.update("\x1e".join(map(repr, column.to_pylist())).encode("utf-8", "surrogatepass") + b"\x1e")
        return hashlib.sha256(b"".join(digest.digest() for digest in self._columns)).hexdigest()


def reader_of(relation: Any, columns: Sequence[str]) -> pa.RecordBatchReader:
    """A reader of the relation's batches, of these columns alone where the library lets us say."""
    if hasattr(relation, "to_pyarrow_dataset"):  # deltalake.DeltaTable
        relation = relation.to_pyarrow_dataset()
    if hasattr(relation, "scanner"):  # pyarrow.dataset.Dataset
        _check(relation, relation.schema.names, columns)
        return relation.scanner(columns=list(columns), batch_size=_BLOCK_ROWS).to_reader()
    if hasattr(relation, "collect_schema") and hasattr(relation, "collect"):  # polars.LazyFrame
        _check(relation, relation.collect_schema().names(), columns)
        return _of_lazy_frame(relation.select(list(columns)))
    if hasattr(relation, "scan") and hasattr(relation, "metadata_location"):  # pyiceberg.table.Table
        relation = relation.scan()
    if hasattr(relation, "projection") and hasattr(relation, "to_arrow_batch_reader"):  # pyiceberg.table.DataScan
        _check(relation, [column.name for column in relation.projection().fields], columns)
        return relation.select(*columns).to_arrow_batch_reader()
    if isinstance(relation, pa.RecordBatchReader):
        return relation
    if hasattr(relation, "__arrow_c_stream__"):  # DuckDB, polars and pandas frames, Arrow tables
        return pa.RecordBatchReader.from_stream(relation)
    allowed = (
        "a path, a DuckDB relation, a polars LazyFrame, a table, dataset or reader of Arrow, a Delta or Iceberg table"
    )
    reject("The input", allowed, type(relation).__name__)


def _of_lazy_frame(frame: Any) -> pa.RecordBatchReader:
    """Bit by bit where this polars can, else at once."""
    if not hasattr(frame, "collect_batches"):
        return pa.RecordBatchReader.from_stream(frame.collect())
    batches = frame.collect_batches(chunk_size=_BLOCK_ROWS, maintain_order=True)
    schema = frame.limit(0).collect().to_arrow().schema
    arrow = (batch for piece in batches for batch in piece.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, arrow)


def _name_of(relation: Any) -> str:
    """What messages and the manifest call it: of a table that has versions also which of them was read."""
    kind = f"the {type(relation).__name__}"
    if hasattr(relation, "table_uri") and hasattr(relation, "version"):  # deltalake.DeltaTable
        return f"{kind} {relation.table_uri} at version {relation.version()}"
    if hasattr(relation, "metadata_location") and hasattr(relation, "current_snapshot"):  # pyiceberg.table.Table
        snapshot = relation.current_snapshot()
        return f"{kind} {'.'.join(relation.name())}" + (f" at snapshot {snapshot.snapshot_id}" if snapshot else "")
    return kind


def _check(relation: Any, names: Sequence[str], columns: Sequence[str]) -> None:
    check_columns(f"the {type(relation).__name__}", names, columns, may_have_others=True)
