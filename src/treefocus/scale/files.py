"""Tables of any size: rows in batches from files, answers in parts to a folder, and on from there after a kill.

Memory holds a few batches and one part. Every part is a function of its rows, so the folder ends in the same bytes
however many threads worked on it and however often it was started again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pyarrow import parquet

from treefocus.errors import InvalidInput, StorageFailed, reject
from treefocus.explainer import Explainer
from treefocus.model.fingerprint import fingerprint
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import PLAIN, WITH_PROOF, Task
from treefocus.scale.dataset import open_dataset
from treefocus.scale.fingerprint import explainer_fingerprints
from treefocus.scale.manifest import Manifest
from treefocus.scale.provenance import run_record
from treefocus.scale.relations import RelationSource
from treefocus.scale.shards import WHOLE, Shard
from treefocus.scale.sources import RowSource
from treefocus.scale.work import Advance, Work
from treefocus.search import Status
from treefocus.storage.lock import held
from treefocus.tables.text import STANDARD, TextFormat

PART_ROWS, PART_VALUES = 50_000, 5_000_000  # rows of a part, and values of its features, at most


def explain_file(
    explainer: Explainer,
    path: Any,
    folder: str | Path,
    *,
    part_rows: int | None = None,
    text: TextFormat = STANDARD,
    shard: str | Shard = WHOLE,
    certificates: str | Path | None = None,
    proof: bool = False,
    allow_upgrade: bool = False,
    model_file: str | Path | None = None,
    told: Mapping[str, Any] | None = None,
    progress: Callable[[Advance], None] | None = None,
    **options: Any,
) -> Manifest:
    """Explain the rows of a table into Parquet parts in a folder; goes on where it stopped.

    A row that cannot be read is answered INVALID with a reason; a file that cannot be read is refused before any work.
    At the end the answers are counted against the input: its lines, or the rows that it tells of.

    Parameters
    ----------
    explainer : Explainer
        What answers.
    path : str, Path, a list of these, or a table
        A .parquet, .csv, .tsv, .csv.gz or .tsv.gz file, a folder of such, a glob, "-" for text on the standard input,
        each also as s3://, gs://, abfs://, hf:// and what fsspec knows; or a DuckDB relation, a polars LazyFrame, a
        dataset, table or reader of Arrow, a Delta or an Iceberg table, whose rows come in the same order every time.
    folder : str or Path
        Where the answers go.
    part_rows : int, optional
        Rows a part.
    text : TextFormat
        How .csv and .tsv files are written.
    shard : str or Shard
        "3/16" answers the third of sixteen shares; `merge` puts them together.
    certificates : str or Path, optional
        A folder for certificates, a file a part and a line a row; with `proof` they hold their proofs.
    allow_upgrade : bool
        Whether a folder that another version of treefocus has begun is continued.
    model_file : str or Path, optional
        Where the model was read from, for the manifest.
    told : mapping, optional
        Options in words, for the manifest.
    progress : callable, optional
        Hears an `Advance` after every batch.
    **options
        Those of `explain_batches`.
    """
    if proof and certificates is None:
        reject("proof", "False unless certificates names a folder", proof)
    task = Task.of(explainer, **options)
    if certificates is not None:
        task = replace(task, certificates=WITH_PROOF if proof else PLAIN)
    folder, source = Path(folder), _source(task, path, text)
    task.schema(source.schema)  # refused now, not after the folder is made
    question = _question(task, source, _part_rows(part_rows, explainer.forest.n_features))
    if text != STANDARD:
        question["text"] = asdict(text)
    share = shard if isinstance(shard, Shard) else Shard.of(shard)
    model = None if model_file is None else Path(model_file)
    new = Manifest(question, run=run_record(task, source.name, folder, model, told or {}), shard=share)
    packs = None if certificates is None else Path(certificates)
    if packs is not None:
        new.run["certificates"] = os.path.relpath(packs, folder)
    try:
        for needed in filter(None, (folder, packs)):
            needed.mkdir(parents=True, exist_ok=True)
        with held(folder, f"Another run is writing to {folder}."):
            manifest = manifests.opened(folder, new, allow_upgrade=allow_upgrade)
            manifests.tidy(folder, manifest)
            if manifest.is_complete and manifest.shard == WHOLE:
                source.check_answered(manifest.place)
            if not manifest.is_complete:
                task = replace(task, made_at=manifest.run["started"])
                Work(task, source, folder, manifest, progress, packs).run()
            manifests.mark(manifest, folder)
            return manifest
    except OSError as error:
        raise StorageFailed(f"{folder} cannot be written: {error.strerror or error}.") from error


def first_reasons(manifest: Manifest, folder: Path, most: int) -> list[str]:
    """Why the first rows that could not be read could not."""
    found: list[str] = []
    part_rows = manifest.question["part_rows"]
    for part in manifest.parts:
        if len(found) < most and part.status.get(Status.INVALID.name):
            table = parquet.read_table(folder / part.name, columns=["status", "reason"])
            pairs = enumerate(zip(table["status"].to_pylist(), table["reason"].to_pylist(), strict=True))
            first = part.number * part_rows
            found += [f"row {first + i}: {reason}" for i, (status, reason) in pairs if status == Status.INVALID.name]
    return found[:most]


def _source(task: Task, named: Any, text: TextFormat) -> RowSource:
    explainer = task.explainer
    names = explainer.column_names
    if names is None:
        raise InvalidInput(f"The model does not know the names of its columns, so they cannot be found in {named}.")
    if not isinstance(named, str | Path | list | tuple):
        return RelationSource(named, names, task.keep)
    has_words = [any(isinstance(label, str) for label in labels or ()) for labels in explainer.column_labels]
    dates = [feature.name for feature in explainer.schema.features if feature.is_date]
    words = [name for name, is_it in zip(names, has_words, strict=True) if is_it or name in dates]
    return open_dataset(named, names, task.keep, words, text)


def _question(task: Task, source: RowSource, part_rows: int) -> dict[str, Any]:
    """What the answers depend on; a folder with another one holds other answers."""
    question = {
        "input": source.fingerprint(),
        **explainer_fingerprints(task.explainer),
        "target": None if task.target is None else str(task.target),
        "strategy": task.strategy.to_text(),
        "time_limit": task.time_limit,
        "seed": task.seed,
        "keep": list(task.keep),
        "part_rows": part_rows,
        **({} if task.hold is None else {"hold": _held(task)}),
        **({} if task.tolerance is None else {"tolerance": task.tolerance.to_text()}),
    }
    return question | ({"certificates": task.certificates} if task.certificates else {})


def _held(task: Task) -> dict[str, Any]:
    """What is promised, and on which pool of refits it rests."""
    pool = task.explainer.pool
    return {"share": task.hold, "pool": None if pool is None else fingerprint(pool)}


def _part_rows(asked: int | None, n_features: int) -> int:
    if asked is None:
        return max(1, min(PART_ROWS, PART_VALUES // n_features))
    if asked < 1:
        reject("part_rows", "at least 1", asked)
    return asked
