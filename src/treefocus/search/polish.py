"""Polish: from any answer to one that no move of one feature, and no trade between two, can improve."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Run


def polished(
    problem: Problem,
    points: Floats,
    run: Run,
    *,
    with_trades: bool = True,
    seconds: float = inf,
    memory: float = 1e9,
    steps: NDArray[np.int64] | None = None,
) -> Floats:
    """The points, improved by moves of one feature and, unless told otherwise, by trades between two.

    seconds, of each row; memory: bytes that this may take; a forest that does not fit leaves the points as they are.
    steps: (n_rows,) of work, which grow.

    Distances that couple features have no cells to walk: there each feature is brought home as far as it helps.
    """
    norms = problem.distance.norms
    if run.is_interrupted:
        return points
    if norms is not None:
        return kernels.polish(
            problem.forest, norms, problem.batch, points,
            with_trades=with_trades, seconds=seconds, memory=memory, steps=steps,
            n_jobs=run.n_jobs, on_interrupt=run.interruption,
        )  # fmt: skip
    best = points.copy()
    with run.kept():
        _bring_home(problem, best)
    return best


def _bring_home(problem: Problem, best: Floats) -> None:
    """Distances that couple features: bring one feature after another home, as long as it is an answer and cheaper."""
    cost = np.where(problem.is_valid(best), problem.distance_to(best), np.inf)
    rows = problem.batch.first
    for _ in range(3):
        before = cost.copy()
        for f in range(rows.shape[1]):
            for share in (1.0, 0.5):
                trial = best.copy()
                trial[:, f] += share * (rows[:, f] - trial[:, f])
                trial = problem.batch.snapped(trial)
                moved = np.where(problem.is_valid(trial), problem.distance_to(trial), np.inf)
                better = moved < cost
                best[better], cost[better] = trial[better], moved[better]
        if not (cost < before).any():
            break
