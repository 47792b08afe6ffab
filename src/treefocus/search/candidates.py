"""Among many proposed points of a row, the closest that is valid: what the baselines that propose have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Run

# From a problem of a few rows: points (n_rows, n_candidates, n_features), and which of them count.
Propose = Callable[[Problem], tuple[Floats, Bools]]

_VALUES = 1_500_000  # numbers proposed at a time
_BLOCK = 16  # candidates of a row that are put to the forest at first; doubled as long as none is valid


def closest_valid(problem: Problem, propose: Propose, n_candidates: int, run: Run) -> Floats:
    """(n_rows, n_features) each row's closest valid candidate, NaN where none is; the first proposed wins a tie.

    Candidates are brought onto the columns' grain and into the row's box. The nearest are put to the forest first,
    so most of them never are.
    """
    n_rows, n_features = problem.batch.rows.shape
    points = np.full((n_rows, n_features), np.nan)
    step = max(1, _VALUES // max(1, n_candidates * n_features))
    with run.kept():
        for begin in range(0, n_rows, step):
            part = problem.subset(np.arange(begin, min(begin + step, n_rows)))
            proposed, counts = propose(part)
            points[begin : begin + step] = _closest(part, *_placed(part, proposed, counts))
            if run.progress is not None:
                run.progress(min(begin + step, n_rows))
    return points


def _placed(problem: Problem, proposed: Floats, counts: Bools) -> tuple[Floats, Floats]:
    """The candidates where they may stand, and their distances, infinity where one does not count."""
    batch = problem.batch
    wide = replace(batch, rows=batch.rows[:, None, :], low=batch.low[:, None, :], high=batch.high[:, None, :])
    placed = wide.snapped(proposed)
    shape = placed.shape
    start = np.broadcast_to(wide.start, shape).reshape(-1, shape[2])
    distance = problem.distance.value(start, wide.to_z(placed).reshape(-1, shape[2])).reshape(shape[:2])
    return placed, np.where(counts, distance, np.inf)


def _closest(problem: Problem, candidates: Floats, distance: Floats) -> Floats:
    points = np.full_like(problem.batch.rows, np.nan)
    order = np.argsort(distance, axis=1, kind="stable")
    n_counting = np.isfinite(distance).sum(axis=1)
    first, size = 0, _BLOCK
    left = np.flatnonzero(n_counting > 0)
    while left.size:
        chosen = order[left, first : first + size]
        offered = candidates[left[:, None], chosen]
        asked = problem.subset(np.repeat(left, chosen.shape[1]))
        valid = asked.is_valid(offered.reshape(-1, offered.shape[2])).reshape(chosen.shape)
        valid &= first + np.arange(chosen.shape[1]) < n_counting[left][:, None]
        hit = valid.any(axis=1)
        points[left[hit]] = offered[hit, valid[hit].argmax(axis=1)]
        first, size = first + size, 2 * size
        left = left[~hit & (n_counting[left] > first)]
    return points
