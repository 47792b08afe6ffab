"""Training rows that already have the wanted answer: the nearest of them is a point to start from."""

from __future__ import annotations

import numpy as np

from treefocus import kernels
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Run

_TRIES = 10  # the nearest so many, once brought into the row's box, are checked


def nearest_examples(problem: Problem, run: Run) -> tuple[Floats, Bools]:
    """Each row's closest example that is valid once brought into its box, else the row itself; and which have one."""
    batch = problem.batch
    points, is_open = batch.first.copy(), np.ones(len(batch.first), bool)
    has_example = ~is_open
    if problem.examples is None:
        return points, has_example
    examples = problem.examples.rows
    answer = problem.examples.answer
    if problem.forest.members:
        examples, answer = examples[answer != batch.disagreed], answer[answer != batch.disagreed]
    index = kernels.nearest(problem.forest, batch, examples, answer, _TRIES, run.n_jobs)
    chosen = np.flatnonzero(batch.is_category)
    for number in index.T:
        is_open &= number >= 0
        if not is_open.any():
            break
        candidate = np.clip(examples[number], batch.low, batch.high)
        candidate[:, chosen] = examples[number][:, chosen]
        snapped = batch.snapped(candidate)
        found = is_open & problem.is_valid(snapped)
        points[found] = snapped[found]
        has_example |= found
        is_open &= ~found
    return points, has_example
