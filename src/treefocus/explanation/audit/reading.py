"""From answers to what an audit keeps of them."""

from __future__ import annotations

import numpy as np

from treefocus.explanation.answers import Answers
from treefocus.explanation.audit.sums import ALREADY, HELPED, OPEN, PRECLUDED, UNREADABLE, AuditedRows
from treefocus.model.categories import are_categories
from treefocus.search.base import Status

KIND_OF = {
    Status.OPTIMAL: HELPED,
    Status.BOUNDED: HELPED,
    Status.FOUND: HELPED,
    Status.INFEASIBLE: PRECLUDED,
    Status.NOT_FOUND: OPEN,
    Status.INVALID: UNREADABLE,
}


def audited_rows(answers: Answers, first_row: int = 0) -> AuditedRows:
    """What an audit reads of these answers, whose rows are numbered from `first_row` on."""
    table, has_answer = answers.table, np.asarray(answers.has_answer)
    moved = answers.is_moved & has_answer[:, None]
    kind = np.array([KIND_OF[status] for status in answers.status], np.int8)
    kind[has_answer & ~moved.any(axis=1)] = ALREADY
    parts = np.where(moved, np.abs(np.nan_to_num(answers.parts)), 0.0)
    total = parts.sum(axis=1, keepdims=True)
    n_moved = np.maximum(moved.sum(axis=1, keepdims=True), 1)
    step = answers.shown - table.values
    step[:, are_categories(table.labels, table.values.shape[1])] = np.nan
    is_proven = np.array([status is Status.OPTIMAL for status in answers.status], bool)
    bound = np.minimum(answers.lower_bound, answers.distance)
    return AuditedRows(
        number=np.arange(first_row, first_row + len(answers), dtype=np.uint64),
        kind=kind,
        low=np.where(is_proven, answers.distance, bound),
        high=np.asarray(answers.distance),
        moved=moved,
        step=step,
        share=np.divide(parts, total, out=moved / n_moved, where=total > 0),
    )
