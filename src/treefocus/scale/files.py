"""Files of any size: rows in batches from a file, answers in parts to a folder, and on from there after a kill.

Memory holds a few batches and one part. Every part is a function of its rows, so the folder ends in the same bytes
however many threads worked on it and however often it was started again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from treefocus.errors import InvalidInput, reject
from treefocus.explainer import Explainer
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import Rows, Task, answered
from treefocus.scale.fingerprint import explainer_fingerprints
from treefocus.scale.manifest import Manifest, Part
from treefocus.scale.sources import Place, Source, open_source
from treefocus.search import Status

PART_ROWS, PART_VALUES = 100_000, 10_000_000  # rows of a part, and values of its features, at most
BATCH_ROWS, BATCH_VALUES = 8_192, 1_000_000  # of a batch

_ANSWERED = pa.array([status.name for status in Status if status.has_answer])


@dataclass(frozen=True)
class Advance:
    """How far the work has come: rows of this folder and of this run, those with an answer, the share of the input."""

    rows: int
    rows_now: int
    found: int
    share: float


def explain_file(
    explainer: Explainer,
    path: str | Path,
    folder: str | Path,
    *,
    part_rows: int | None = None,
    progress: Callable[[Advance], None] | None = None,
    **options: Any,
) -> Manifest:
    """Explain the rows of a .parquet, .csv or .tsv file into Parquet parts in a folder; goes on where it stopped.

    options: those of `explain_batches`. A row that cannot be read is answered INVALID with a reason; a file that cannot
    be read is refused before any work.
    """
    task = Task.of(explainer, **options)
    folder = Path(folder)
    source = _source(task, Path(path))
    question = _question(task, source, _part_rows(part_rows, explainer.forest.n_features))
    schema = task.schema(source.schema)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with manifests.held(folder):
            return _work(task, source, schema, folder, question, progress)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}.") from error


def _source(task: Task, path: Path) -> Source:
    explainer = task.explainer
    names = explainer.column_names
    if names is None:
        raise InvalidInput(f"The model does not know the names of its columns, so they cannot be found in {path}.")
    words = [name for name, own in zip(names, explainer.labels, strict=True) if any(isinstance(x, str) for x in own or ())]
    return open_source(path, names, task.keep, words)


def _work(
    task: Task,
    source: Source,
    schema: pa.Schema,
    folder: Path,
    question: dict[str, Any],
    progress: Callable[[Advance], None] | None,
) -> Manifest:
    manifest = manifests.opened(folder, question)
    manifests.tidy(folder, manifest)
    if manifest.is_complete:
        return manifest
    part_rows = question["part_rows"]
    places: deque[Place] = deque()  # behind each batch that is under way
    tally = Tally(manifest, progress)
    waiting: list[pa.RecordBatch] = []
    place = manifest.place
    for answers in answered(task, _noted(source, place, _batch_rows(task), part_rows, places)):
        place = places.popleft()
        waiting.append(answers)
        tally.add(answers, source.share(place))
        if place.row % part_rows == 0:
            _write_part(waiting, schema, folder, manifest, place)
            waiting = []
    if waiting or not manifest.parts:
        _write_part(waiting, schema, folder, manifest, place)
    manifest.is_complete = True
    manifests.save(manifest, folder)
    return manifest


class Tally:
    """Counts the answers and tells of them."""

    def __init__(self, manifest: Manifest, progress: Callable[[Advance], None] | None) -> None:
        counts = manifest.counts()
        self._before = sum(counts.values())
        self._rows = self._before
        self._found = sum(counts.get(name, 0) for name in _ANSWERED.to_pylist())
        self._progress = progress

    def add(self, answers: pa.RecordBatch, share: float) -> None:
        """Count a batch."""
        self._rows += len(answers)
        self._found += pc.sum(pc.is_in(answers["status"], _ANSWERED)).as_py() or 0
        if self._progress is not None:
            self._progress(Advance(self._rows, self._rows - self._before, self._found, share))


def _noted(
    source: Source, place: Place, batch_rows: int, part_rows: int, places: deque[Place]
) -> Iterator[Rows]:
    """The batches; the place behind each is put down in `places`."""
    for rows, behind in source.read(place, batch_rows, part_rows):
        places.append(behind)
        yield rows


def _write_part(
    batches: list[pa.RecordBatch], schema: pa.Schema, folder: Path, manifest: Manifest, place: Place
) -> None:
    table = pa.Table.from_batches(batches, schema).combine_chunks()  # the bytes may not tell of batches
    name = f"part-{len(manifest.parts):05d}.parquet"
    manifests.write_atomically(folder / name, lambda path: _write_table(table, path))
    counts = Counter(table["status"].to_pylist())
    status = {one.name: counts[one.name] for one in Status if counts[one.name]}
    manifest.parts.append(Part(name, len(table), status, place))
    manifests.save(manifest, folder)


def _write_table(table: pa.Table, path: Path) -> None:
    repeated = ["predicted", "outcome", "status", "reason"]
    parquet.write_table(table, path, compression="zstd", compression_level=1, use_dictionary=repeated)


def _question(task: Task, source: Source, part_rows: int) -> dict[str, Any]:
    """What the answers depend on; a folder with another one holds other answers."""
    return {
        "input": source.fingerprint(),
        **explainer_fingerprints(task.explainer),
        "target": None if task.target is None else str(task.target),
        "strategy": repr(task.strategy),
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


def _batch_rows(task: Task) -> int:
    return max(1, min(BATCH_ROWS, BATCH_VALUES // task.explainer.forest.n_features))
