"""Audits without all rows in memory: of record batches as they come, and of answers in parts.

A batch's audit is a few sums a group, and sums add up: 100 million rows are audited in the memory of one batch. On a
cluster, audit each part with `first_row` at the number of its first row, and `merged` gives the audit of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from treefocus.errors import InvalidInput, reject
from treefocus.explainer import Explainer
from treefocus.explanation.audit.audit import Audit, AuditFrame, audit_of
from treefocus.explanation.audit.groups import keyed_rows
from treefocus.explanation.audit.preclusion import SAMPLE, PreclusionSample
from treefocus.explanation.audit.reading import KIND_OF
from treefocus.explanation.audit.sums import ALREADY, HELPED, AuditedRows, GroupSums
from treefocus.scale.answers import OWN_COLUMNS
from treefocus.scale.batches import Task
from treefocus.scale.manifest import load
from treefocus.search.base import Status
from treefocus.tables.columns import check_columns

_ROWS = 16_384  # of a part that are read at a time
_KINDS = {status.name: kind for status, kind in KIND_OF.items()}


def audit_batches(
    explainer: Explainer,
    batches: Iterable[pa.RecordBatch],
    groups: str | Sequence[str] = (),
    *,
    reference: Mapping[str, Any] | None = None,
    min_group: int = 0,
    level: float = 0.95,
    why: int = SAMPLE,
    first_row: int = 0,
    **options: Any,
) -> Audit:
    """Explain record batches one after the other and keep nothing of them but the sums of their audit.

    Parameters
    ----------
    explainer : Explainer
        Who answers.
    batches : iterable of pyarrow.RecordBatch
        As for `explain_batches`.
    groups : column or sequence of columns
        Columns of the batches that say to whom the rows belong; they need not be the model's.
    reference, min_group, level, why, first_row
        As in `Explanations.audit`.
    **options
        Those of `explain_batches`.

    Returns
    -------
    Audit
        The same, up to the rounding of sums, as that of all rows at once.
    """
    columns = [groups] if isinstance(groups, str) else list(groups)
    task = Task.of(explainer, **options)
    audit: Audit | None = None
    for batch in batches:
        check_columns("The input", batch.schema.names, columns, may_have_others=True)
        found, _ = task.explained(batch)
        part = audit_of(
            found, {name: batch.column(name).to_pylist() for name in columns}, own_column=_no_column,
            reference=reference, min_group=min_group, level=level, why=why, first_row=first_row, n_jobs=task.n_jobs,
            asked_before=None if audit is None else audit.sample,
        )  # fmt: skip
        audit = Audit(part.frame, part.sums, part.sample) if audit is None else audit.merged(part)
        first_row += batch.num_rows
    if audit is None:
        raise InvalidInput("batches must hold at least one batch, got none.")
    return audit


def audit_answers(
    folder: str | Path,
    groups: str | Sequence[str] = (),
    *,
    reference: Mapping[str, Any] | None = None,
    min_group: int = 0,
    level: float = 0.95,
) -> Audit:
    """The audit of answers in parts, a folder of `explain_file` or `treefocus explain -o FOLDER`.

    Parameters
    ----------
    folder : path
        With all of its parts.
    groups : column or sequence of columns
        Columns that the answers carry along (`keep`).
    reference, min_group, level
        As in `Explanations.audit`. Which constraints stand in the way cannot be asked without the model: `why` is not
        there.

    Returns
    -------
    Audit
        Of all rows.
    """
    folder = Path(folder)
    columns = [groups] if isinstance(groups, str) else list(groups)
    parts = _parts_of(folder)
    schema = parquet.read_schema(parts[0])
    check_columns(f"{folder} (answers carry along what --keep names)", schema.names, columns, may_have_others=True)
    features = _features_of(schema)
    frame = AuditFrame(
        tuple(columns), tuple(features), ("",) * len(features), "distance",
        tuple((reference or {}).items()), min_group, level,
    )  # fmt: skip
    sums: dict[tuple[Any, ...], GroupSums] = {}
    first_row = 0
    for batch in _batches(parts, columns):
        rows = _audited_rows(batch, features, first_row)
        first_row += batch.num_rows
        for key, own in keyed_rows({name: batch.column(name).to_pylist() for name in columns}, len(rows.kind)).items():
            part = GroupSums.of(rows.subset(own))
            sums[key] = sums[key] + part if key in sums else part
    if not sums:
        raise InvalidInput(f"{folder} holds no answers.")
    return Audit(frame, sums, PreclusionSample(0))


def _no_column(name: str) -> list[Any]:
    reject("groups", "columns of the batches", repr(name))


def _parts_of(folder: Path) -> list[Path]:
    manifest = load(folder)
    if not manifest.is_complete:
        raise InvalidInput(f"{folder} is not complete; the command that writes it goes on where it was.")
    return [folder / part.name for part in manifest.parts]


def _features_of(schema: pa.Schema) -> list[str]:
    """The features, from the columns of the counterfactuals."""
    names = schema.names[schema.get_field_index("gap") + 1 : schema.get_field_index("changes")]
    return [name.removesuffix(" (value)") if name.removesuffix(" (value)") in OWN_COLUMNS else name for name in names]


def _batches(parts: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    wanted = list(dict.fromkeys([*columns, "status", "distance", "lower_bound", "changes"]))
    for path in parts:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(_ROWS, columns=wanted)


def _audited_rows(batch: pa.RecordBatch, features: Sequence[str], first_row: int) -> AuditedRows:
    """What an audit reads of answers as they are kept."""
    n_rows, status = batch.num_rows, batch.column("status").to_pylist()
    distance, bound = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("distance", "lower_bound"))
    kind = np.array([_KINDS[name] for name in status], np.int8)
    shape = (n_rows, len(features))
    moved, step, share = np.zeros(shape, bool), np.full(shape, np.nan), np.zeros(shape)
    lists = batch.column("changes")
    counts = np.diff(np.asarray(lists.offsets))
    counts = np.where(np.asarray(lists.is_null()), 0, counts)
    flat = lists.flatten()
    i = np.repeat(np.arange(n_rows), counts)
    place = {name: j for j, name in enumerate(features)}
    j = np.array([place[name] for name in flat.field("feature").to_pylist()], np.intp)
    moved[i, j] = True
    share[i, j] = _numbers(flat, "share")
    step[i, j] = _numbers(flat, "shown") - _numbers(flat, "before")
    kind[(kind == HELPED) & ~moved.any(axis=1)] = ALREADY
    is_proven = np.array([name == Status.OPTIMAL.name for name in status], bool)
    low = np.where(is_proven, distance, np.minimum(bound, distance))
    number = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    return AuditedRows(number, kind, low, distance, moved, step, share)


def _numbers(structs: pa.StructArray, name: str) -> Any:
    return structs.field(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
