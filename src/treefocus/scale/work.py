"""One run over a source of rows: batches go out, answers come back in order, parts and drafts are written."""

from __future__ import annotations

import gzip
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from treefocus.errors import InvalidInput
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import CERTIFICATE, Rows, Task, answered
from treefocus.scale.dataset import RowFiles
from treefocus.scale.draft import drop_draft, load_draft, save_draft
from treefocus.scale.manifest import Manifest, Part
from treefocus.scale.provenance import now, part_metadata
from treefocus.scale.sources import Place, RowSource
from treefocus.search import Status
from treefocus.storage.parts import Parts

BATCH_ROWS, BATCH_VALUES = 8_192, 1_000_000  # of a batch
BATCH_SECONDS = 0.5  # what a batch should take: progress and Ctrl-C wait no longer, however hard the rows are
DRAFT_SECONDS = 30.0  # how often the part under way is kept

_ANSWERED = [status.name for status in Status if status.has_answer]


@dataclass(frozen=True)
class Advance:
    """How far the work has come."""

    rows: int  # answered in this folder
    rows_now: int  # answered by this run
    found: int  # with a counterfactual
    share: float | None  # of the input; None where nobody knows how long it is
    status: Mapping[str, int] = field(default_factory=dict)  # rows per status


class _Pace:
    """How many rows go into the next batch: what was done lately in `BATCH_SECONDS`, and none of another part."""

    def __init__(self, most: int, part_rows: int) -> None:
        self._most, self._part_rows = most, part_rows
        self._rows = min(most, 256)
        self._last = time.monotonic()

    def size(self, row: int) -> int:
        """For the batch that starts at that row."""
        return min(self._rows, self._part_rows - row % self._part_rows)

    def heard(self, n_rows: int) -> None:
        """So many rows came back."""
        now = time.monotonic()
        rate = n_rows / max(now - self._last, 1e-9)
        self._last = now
        self._rows = max(1, min(int(rate * BATCH_SECONDS), 2 * self._rows, self._most))


class Work:
    """A run from where a folder's manifest and draft say it stopped."""

    def __init__(
        self,
        task: Task,
        source: RowSource,
        folder: Path,
        manifest: Manifest,
        progress: Callable[[Advance], None] | None,
        packs: Path | None = None,
    ) -> None:
        self.task, self.source, self.schema = task, source, task.schema(source.schema)
        self.folder, self.manifest, self.progress = folder, manifest, progress
        self.packs = None if packs is None else Parts(packs, ".jsonl.gz", 5)
        self.part_rows: int = manifest.question["part_rows"]
        most = max(1, min(BATCH_ROWS, BATCH_VALUES // task.explainer.forest.n_features))
        self.pace = _Pace(most, self.part_rows)
        self.behind: deque[Place] = deque()  # the place behind each batch that is under way
        self.n_parts = None if source.n_rows is None else -(-source.n_rows // self.part_rows)
        self.n_own = None if source.n_rows is None else self._own_rows(source.n_rows)
        kept = load_draft(folder, self.schema, self._next_part())
        self.waiting, self.place = kept if kept is not None else ([], self._start())
        self.end = self.place  # of what was read
        self.counts = Counter(manifest.counts())
        for batch in self.waiting:
            self.counts.update(batch["status"].to_pylist())
        self.n_before = self.counts.total()

    def run(self) -> None:
        """To the end, or until it is stopped; what is done by then is kept."""
        try:
            self._answer_all()
        except BaseException:
            self._keep()
            raise
        self._check_end()
        has_no_rows = self.end.row == 0 and not self.source.n_rows
        if self.waiting or (has_no_rows and self.manifest.shard.number == 1 and not self.manifest.parts):
            self._write_part()
        self.manifest.is_complete = True
        self.manifest.run["finished"] = now()
        manifests.save(self.manifest, self.folder)

    def _next_part(self) -> int:
        """The number of the part that this shard writes next."""
        shard, done = self.manifest.shard, len(self.manifest.parts)
        return shard.number - 1 + done * shard.count if self.n_parts is None else shard.span(self.n_parts)[0] + done

    def _start(self) -> Place:
        """Where to go on: behind the last part, or where the first of this shard begins."""
        first = self._next_part() * self.part_rows
        if self.manifest.parts or first == 0 or self.n_parts is None:
            return self.manifest.place
        return self.source.seek(first) if isinstance(self.source, RowFiles) else Place(first)

    def _own_rows(self, n_rows: int) -> int:
        """How many of the first rows are this shard's to answer."""
        parts = range(-(-n_rows // self.part_rows))
        own = [part for part in parts if self.manifest.shard.owns(part, self.n_parts)]
        return sum(min(self.part_rows, n_rows - part * self.part_rows) for part in own)

    def _check_end(self) -> None:
        """Rows in are rows out."""
        asked = self._own_rows(self.end.row) if self.n_own is None else self.n_own
        if asked != self.counts.total():
            raise InvalidInput(
                f"{self.source.name} has {asked:,} rows to answer, but {self.counts.total():,} were answered: the "
                "input is not the one that was begun with."
            )

    def _answer_all(self) -> None:
        kept_at = time.monotonic()
        if self.waiting and self.place.row % self.part_rows == 0:  # stopped just before it was written
            self._write_part()
        with closing(answered(self.task, self._batches())) as answers:
            for batch in answers:
                self.place = self.behind.popleft()
                self.waiting.append(batch)
                self.pace.heard(len(batch))
                self._tell(batch)
                if self.place.row % self.part_rows == 0:
                    self._write_part()
                    kept_at = time.monotonic()
                elif time.monotonic() - kept_at > DRAFT_SECONDS:
                    self._keep()
                    kept_at = time.monotonic()

    def _batches(self) -> Iterator[Rows]:
        shard = self.manifest.shard
        last = None if self.n_parts is None else shard.span(self.n_parts)[1]
        with closing(self.source.read(self.place, self.pace.size)) as read:
            for rows, behind in read:
                self.end = behind
                n_rows = rows.batch.num_rows
                part = (behind.row - n_rows) // self.part_rows
                if last is not None and n_rows and part >= last:
                    return  # the rest is that of other shards
                if n_rows and shard.owns(part, self.n_parts):
                    self.behind.append(behind)
                    yield rows

    def _tell(self, batch: pa.RecordBatch) -> None:
        self.counts.update(_counted(batch["status"]))
        if self.progress is not None:
            total, found = self.counts.total(), sum(self.counts[name] for name in _ANSWERED)
            self.progress(Advance(total, total - self.n_before, found, self._share(total), dict(self.counts)))

    def _share(self, done: int) -> float | None:
        return self.source.share(self.place) if self.n_own is None else done / max(self.n_own, 1)

    def _keep(self) -> None:
        if self.manifest.parts and self.place == self.manifest.place:  # stopped while the manifest was told of a part
            manifests.save(self.manifest, self.folder)
        elif self.waiting:
            save_draft(self.folder, self.schema, self.waiting, self._next_part(), self.place)

    def _write_part(self) -> None:
        table = pa.Table.from_batches(self.waiting, self.schema).combine_chunks()  # the bytes may not tell of batches
        self.waiting = table.to_batches()  # which lets go of the smaller ones
        parts, number = manifests.parts_in(self.folder), self._next_part()
        answers, packed = self._write_certificates(table, number)
        answers = answers.replace_schema_metadata(part_metadata(self.manifest, number))
        parts.write(number, lambda path: _write_table(answers, path))
        counts = _counted(table["status"])
        status = {one.name: counts[one.name] for one in Status if counts.get(one.name)}
        written = parts.path(number)
        told = (manifests.sha256_of(written), written.stat().st_size, packed)
        self.manifest.parts.append(Part(parts.name(number), len(table), status, self.place, *told))
        manifests.save(self.manifest, self.folder)
        self.waiting = []
        drop_draft(self.folder)

    def _write_certificates(self, table: pa.Table, number: int) -> tuple[pa.Table, str]:
        """The answers without their certificates, which go into a file of their own, and that file's hash."""
        if self.packs is None:
            return table, ""
        lines = [line or "null" for line in table[CERTIFICATE].to_pylist()]
        data = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        self.packs.write(number, data)
        return table.drop_columns([CERTIFICATE]), manifests.sha256_of(self.packs.path(number))


def _counted(status: Any) -> dict[str, int]:
    return {one["values"]: one["counts"] for one in status.value_counts().to_pylist()}


def _write_table(table: pa.Table, path: Path) -> None:
    repeated = ["predicted", "outcome", "status", "reason"]
    parquet.write_table(table, path, compression="zstd", compression_level=1, use_dictionary=repeated)
