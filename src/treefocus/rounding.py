"""Numbers people can read: the shortest ones that stay in the same cell, so that the model cannot tell the difference."""

from __future__ import annotations

import math

import numpy as np

from treefocus import kernels
from treefocus.forest import Floats
from treefocus.problem import Problem
from treefocus.schema import ANY_FLOAT

_TOLERANCE = 0.005  # how far, as a share of the change, a shorter number may stray


def shortest_in_cell(problem: Problem, points: Floats) -> Floats:
    """(n_rows, n_features) the points with every changed value as short as its cell, its box and good taste allow."""
    shown = points.copy()
    batch, forest = problem.batch, problem.forest
    grid = kernels.grid_of(forest)
    with np.errstate(invalid="ignore"):
        changed = (points != batch.rows) & ~np.isnan(points)
    codes = grid.encode(forest, points)
    for i, j in zip(*np.nonzero(changed), strict=True):
        cell = grid.start[j] + j + codes[i, j]
        low, high = max(grid.low[cell], batch.low[i, j]), min(grid.high[cell], batch.high[i, j])
        if batch.grain[j] == ANY_FLOAT:
            shown[i, j] = shortest(points[i, j], low, high, _TOLERANCE * abs(points[i, j] - batch.rows[i, j]))
    return shown


def shortest(value: float, low: float, high: float, tolerance: float) -> float:
    """The number of fewest digits within [low, high] and `tolerance` of the value; the value itself if none is shorter."""
    if value == 0 or not math.isfinite(value):
        return value
    exponent = math.floor(math.log10(abs(value)))
    for digits in range(1, 17):
        step = exponent - digits + 1
        scaled = value / 10.0**step if step >= 0 else value * 10.0**-step
        for candidate in (round(scaled), math.floor(scaled), math.ceil(scaled)):
            number = float(f"{candidate}e{step}")
            if low <= number <= high and abs(number - value) <= tolerance:
                return number
    return value
