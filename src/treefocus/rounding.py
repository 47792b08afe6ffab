"""Numbers people can read: the shortest that stay in the same cell, so that the model cannot tell them apart."""

from __future__ import annotations

import numpy as np

from treefocus import kernels
from treefocus.forest import Bools, Floats
from treefocus.grid import as_input
from treefocus.problem import Problem
from treefocus.schema import FLOAT32, INTEGER

_TOLERANCE = 0.005  # how far, as a share of the change, a shorter number may stray
_DIGITS = 16  # more are never shorter than the number itself
_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # exact, so that one product or quotient rounds once


def shortest_in_cell(problem: Problem, points: Floats) -> Floats:
    """(n_rows, n_features) the points, every changed value as short as its cell, its box and its grain allow."""
    batch, forest = problem.batch, problem.forest
    grid = kernels.grid_of(forest)
    is_number = np.ones(points.shape[1], bool)
    is_number[batch.choices.column[batch.choices.is_category]] = False
    i, j = np.nonzero((points != batch.rows) & ~np.isnan(points) & (batch.grain != INTEGER) & is_number)
    cell = grid.cell_start[j] + grid.encode(forest, points)[i, j]
    value = points[i, j]
    shown = points.copy()
    shown[i, j] = shortest(
        value,
        low=np.maximum(grid.low[cell], batch.low[i, j]),
        high=np.minimum(grid.high[cell], batch.high[i, j]),
        tolerance=_TOLERANCE * np.abs(value - np.nan_to_num(batch.rows[i, j])),
        is_float32=batch.grain[j] == FLOAT32,
    )
    return shown


def shortest(value: Floats, low: Floats, high: Floats, tolerance: Floats, is_float32: Bools) -> Floats:
    """(n,) the numbers of fewest digits within [low, high] and `tolerance` of each value, else the value itself.

    Where `is_float32` the number has to lie within [low, high] after a cast to float32, too.
    """
    result = value.copy()
    left = np.flatnonzero(np.isfinite(value) & (value != 0))
    exponent = np.zeros(len(value), np.int64)
    exponent[left] = np.floor(np.log10(np.abs(value[left])))
    for digits in range(1, _DIGITS + 1):
        if not left.size:
            break
        for rounded in (np.rint, np.floor, np.ceil):
            step = exponent[left] - digits + 1
            power = _POWERS[np.minimum(np.abs(step), len(_POWERS) - 1)]
            with np.errstate(over="ignore"):  # on the side that is not taken
                candidate = rounded(np.where(step >= 0, value[left] / power, value[left] * power))
                number = np.where(step >= 0, candidate * power, candidate / power)
            stored = np.where(is_float32[left], as_input(number, "float32"), number)
            fits = (np.abs(step) < len(_POWERS)) & (np.abs(number - value[left]) <= tolerance[left])
            for bounded in (number, stored):
                fits &= (low[left] <= bounded) & (bounded <= high[left])
            result[left[fits]] = number[fits]
            left = left[~fits]
    return result
