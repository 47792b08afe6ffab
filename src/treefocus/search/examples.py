"""Training rows that already have the wanted answer: the nearest of them is a point to start from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from treefocus import kernels
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Run

_TRIES = 10  # the nearest so many, once brought into the row's box, are checked


def nearest_examples(problem: Problem, run: Run) -> tuple[Floats, Bools]:
    """Each row's closest example that is valid once brought into its box, else the row itself; and which have one."""
    points, is_open = problem.batch.first.copy(), np.ones(len(problem), bool)
    for candidate, is_known in near_examples(problem, run, _TRIES):
        found = is_open & is_known
        points[found] = candidate[found]
        is_open &= ~found
        if not is_open.any():
            break
    return points, ~is_open


def near_examples(problem: Problem, run: Run, n: int) -> Iterator[tuple[Floats, Bools]]:
    """Each row's n closest examples, brought into its box, one after another, and which of them are valid there."""
    if problem.examples is None:
        return
    batch = problem.batch
    examples = problem.examples.rows
    answer = problem.examples.answer
    if problem.forest.members:
        examples, answer = examples[answer != batch.disagreed], answer[answer != batch.disagreed]
    index = kernels.nearest(problem.forest, batch, examples, answer, n, run.n_jobs)
    chosen = np.flatnonzero(batch.is_category)
    for number in index.T:
        if not (number >= 0).any():
            return
        candidate = np.clip(examples[number], batch.low, batch.high)
        candidate[:, chosen] = examples[number][:, chosen]
        snapped = batch.snapped(candidate)
        yield snapped, (number >= 0) & problem.is_valid(snapped)
