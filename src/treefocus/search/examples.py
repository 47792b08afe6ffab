"""Training rows that already have the wanted answer: the nearest of them is a point to start from."""

from __future__ import annotations

import numpy as np

from treefocus import kernels
from treefocus.forest import Floats
from treefocus.problem import Problem

_CHUNK = 256  # rows compared with all examples at a time


def nearest_examples(problem: Problem) -> Floats:
    """(n_rows, n_features) each row's closest example that is valid once brought into its box, else the row itself."""
    batch = problem.batch
    points = batch.first.copy()
    if problem.examples is None:
        return points
    answer = kernels.predict(problem.forest, problem.examples)
    size = 1.0 / batch.scale
    for begin in range(0, len(batch.rows), _CHUNK):
        for i in range(begin, min(begin + _CHUNK, len(batch.rows))):
            wanted = answer == batch.target[i] if batch.target[i] >= 0 else answer != batch.origin[i]
            if not wanted.any():
                continue
            inside = np.clip(problem.examples[wanted], batch.low[i], batch.high[i])
            away = np.nansum(np.abs((inside - batch.rows[i]) * size), axis=1)
            for candidate in np.argsort(away, kind="stable")[:10]:
                one = problem.subset(np.array([i]))
                point = one.batch.snapped(inside[candidate][None, :])
                if one.is_valid(point)[0]:
                    points[i] = point[0]
                    break
    return points
