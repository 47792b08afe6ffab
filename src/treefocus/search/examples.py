"""Training rows that already have the wanted answer: the nearest of them is a point to start from."""

from __future__ import annotations

import numpy as np

from treefocus.forest import Floats
from treefocus.problem import Problem

_TRIES = 10  # the nearest so many, once brought into the row's box, are checked


def nearest_examples(problem: Problem) -> Floats:
    """(n_rows, n_features) each row's closest example that is valid once brought into its box, else the row itself."""
    batch = problem.batch
    points = batch.first.copy()
    if problem.examples is None:
        return points
    examples, answer = problem.examples.rows, problem.examples.answer
    candidates = np.repeat(points[None], _TRIES, axis=0)
    chosen = batch.choices.column[batch.choices.is_category]
    for i in range(len(points)):
        wanted = answer == batch.target[i] if batch.target[i] >= 0 else answer != batch.origin[i]
        if not wanted.any():
            continue
        inside = np.clip(examples[wanted], batch.low[i], batch.high[i])
        inside[:, chosen] = examples[wanted][:, chosen]
        away = np.nansum(np.abs(batch.changes_of(i, inside)), axis=1)
        n_tries = min(_TRIES, len(away))
        nearest = np.argpartition(away, n_tries - 1)[:n_tries]
        candidates[:n_tries, i] = inside[nearest[np.lexsort((nearest, away[nearest]))]]
    is_open = np.ones(len(points), bool)
    for candidate in candidates:
        snapped = batch.snapped(candidate)
        found = is_open & problem.is_valid(snapped)
        points[found] = snapped[found]
        is_open &= ~found
    return points
