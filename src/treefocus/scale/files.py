"""Files of any size: rows in batches from a file, answers in parts to a folder, and on from there after a kill.

Memory holds a few batches and one part. Every part is a function of its rows, so the folder ends in the same bytes
however many threads worked on it and however often it was started again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from treefocus.errors import InvalidInput, reject
from treefocus.explainer import Explainer
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import Rows, Task, answered
from treefocus.scale.draft import drop_draft, load_draft, save_draft
from treefocus.scale.fingerprint import explainer_fingerprints
from treefocus.scale.manifest import Manifest, Part
from treefocus.scale.sources import FileSource, Place, open_source
from treefocus.search import Status
from treefocus.storage.lock import held
from treefocus.tables.text import STANDARD, TextFormat

PART_ROWS, PART_VALUES = 50_000, 5_000_000  # rows of a part, and values of its features, at most
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
    share: float  # of the input


def explain_file(
    explainer: Explainer,
    path: str | Path,
    folder: str | Path,
    *,
    part_rows: int | None = None,
    text: TextFormat = STANDARD,
    progress: Callable[[Advance], None] | None = None,
    **options: Any,
) -> Manifest:
    """Explain the rows of a .parquet, .csv or .tsv file into Parquet parts in a folder; goes on where it stopped.

    text: how a .csv or .tsv file is written. options: those of `explain_batches`. A row that cannot be read is answered
    INVALID with a reason; a file that cannot be read is refused before any work. At the end the answers are counted
    against the file: its lines, or the rows that it tells of.
    """
    task = Task.of(explainer, **options)
    folder = Path(folder)
    source = _source(task, Path(path), text)
    schema = task.schema(source.schema)
    question = _question(task, source, _part_rows(part_rows, explainer.forest.n_features))
    if text != STANDARD:
        question["text"] = asdict(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder, f"Another run is writing to {folder}."):
            manifest = manifests.opened(folder, question)
            manifests.tidy(folder, manifest)
            if not manifest.is_complete:
                _Work(task, source, schema, folder, manifest, progress).run()
            return manifest
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}.") from error


def first_reasons(manifest: Manifest, folder: Path, most: int) -> list[str]:
    """Why the first rows that could not be read could not."""
    found: list[str] = []
    n_before = 0
    for part in manifest.parts:
        if len(found) < most and part.status.get(Status.INVALID.name):
            table = parquet.read_table(folder / part.name, columns=["status", "reason"])
            pairs = zip(table["status"].to_pylist(), table["reason"].to_pylist(), strict=True)
            told = ((i, reason) for i, (status, reason) in enumerate(pairs, n_before) if status == Status.INVALID.name)
            found += [f"row {i}: {reason}" for i, reason in told]
        n_before += part.rows
    return found[:most]


def _source(task: Task, path: Path, text: TextFormat) -> FileSource:
    explainer = task.explainer
    names = explainer.column_names
    if names is None:
        raise InvalidInput(f"The model does not know the names of its columns, so they cannot be found in {path}.")
    has_words = [any(isinstance(label, str) for label in labels or ()) for labels in explainer.labels]
    dates = [feature.name for feature in explainer.schema.features if feature.is_date]
    words = [name for name, is_it in zip(names, has_words, strict=True) if is_it or name in dates]
    return open_source(path, names, task.keep, words, text)


def _question(task: Task, source: FileSource, part_rows: int) -> dict[str, Any]:
    """What the answers depend on; a folder with another one holds other answers."""
    return {
        "input": source.fingerprint(),
        **explainer_fingerprints(task.explainer),
        "target": None if task.target is None else str(task.target),
        "strategy": task.strategy.to_text(),
        "time_limit": task.time_limit,
        "seed": task.seed,
        "keep": list(task.keep),
        "part_rows": part_rows,
    }


def _part_rows(asked: int | None, n_features: int) -> int:
    if asked is None:
        return max(1, min(PART_ROWS, PART_VALUES // n_features))
    if asked < 1:
        reject("part_rows", "at least 1", asked)
    return asked


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


class _Work:
    """One run over a file: batches go out, answers come back in order, parts and drafts are written."""

    def __init__(
        self,
        task: Task,
        source: FileSource,
        schema: pa.Schema,
        folder: Path,
        manifest: Manifest,
        progress: Callable[[Advance], None] | None,
    ) -> None:
        self.task, self.source, self.schema = task, source, schema
        self.folder, self.manifest, self.progress = folder, manifest, progress
        self.part_rows: int = manifest.question["part_rows"]
        most = max(1, min(BATCH_ROWS, BATCH_VALUES // task.explainer.forest.n_features))
        self.pace = _Pace(most, self.part_rows)
        self.behind: deque[Place] = deque()  # the place behind each batch that is under way
        kept = load_draft(folder, schema, len(manifest.parts))
        self.waiting, self.place = kept if kept is not None else ([], manifest.place)
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
        self.source.check_end(self.end, self.counts.total())
        if self.waiting or not self.manifest.parts:
            self._write_part()
        self.manifest.is_complete = True
        manifests.save(self.manifest, self.folder)

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
        for rows, behind in self.source.read(self.place, self.pace.size):
            self.end = behind
            if rows.batch.num_rows:
                self.behind.append(behind)
                yield rows

    def _tell(self, batch: pa.RecordBatch) -> None:
        self.counts.update(_counted(batch["status"]))
        if self.progress is not None:
            total, found = self.counts.total(), sum(self.counts[name] for name in _ANSWERED)
            self.progress(Advance(total, total - self.n_before, found, self.source.share(self.place)))

    def _keep(self) -> None:
        if self.manifest.parts and self.place == self.manifest.place:  # stopped while the manifest was told of a part
            manifests.save(self.manifest, self.folder)
        elif self.waiting:
            save_draft(self.folder, self.schema, self.waiting, len(self.manifest.parts), self.place)

    def _write_part(self) -> None:
        table = pa.Table.from_batches(self.waiting, self.schema).combine_chunks()  # the bytes may not tell of batches
        self.waiting = table.to_batches()  # which lets go of the smaller ones
        parts, number = manifests.parts_in(self.folder), len(self.manifest.parts)
        parts.write(number, lambda path: _write_table(table, path))
        counts = _counted(table["status"])
        status = {one.name: counts[one.name] for one in Status if counts.get(one.name)}
        self.manifest.parts.append(Part(parts.name(number), len(table), status, self.place))
        manifests.save(self.manifest, self.folder)
        self.waiting = []
        drop_draft(self.folder)


def _counted(status: Any) -> dict[str, int]:
    return {one["values"]: one["counts"] for one in status.value_counts().to_pylist()}


def _write_table(table: pa.Table, path: Path) -> None:
    repeated = ["predicted", "outcome", "status", "reason"]
    parquet.write_table(table, path, compression="zstd", compression_level=1, use_dictionary=repeated)
