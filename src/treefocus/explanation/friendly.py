"""Answers in round numbers, which may leave the optimum's cell: they still flip, obey, and cost little more.

Every changed number gets candidates of few significant digits beside it, and one more digit after another as long as
there is none that will do. All combinations are asked, or, where they are many, the features one after the other. The
exact number is always a candidate, so that what comes out is never worse than valid.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import product
from numbers import Integral, Real

import numpy as np

from treefocus.errors import reject
from treefocus.model.forest import Floats
from treefocus.problem.plausibility import Measure, is_within
from treefocus.problem.problem import Problem
from treefocus.schema.schema import INTEGER

_MORE = 3  # further digits that are tried
_EXACT = 16  # how long an exact number counts
_MOST = 20_000  # combinations that are asked at once


def rounded_point(
    problem: Problem, point: Floats, digits: int = 2, extra: float = 0.1, measure: Measure | None = None
) -> Floats:
    """(n_features,) an answer to the problem's one row near `point`, of `digits` digits where that can be.

    extra: by how much, as a share, it may be further away. measure: how like the data it has to be.
    """
    if not (isinstance(digits, Integral) and digits > 0):
        reject("digits", "a whole number above 0", repr(digits))
    if not (isinstance(extra, Real) and extra >= 0):
        reject("extra", "a share of at least 0", repr(extra))
    options = _options(problem, point, int(digits))
    most = float(problem.distance_to(point[None])[0]) * (1.0 + float(extra)) * (1 + 1e-12)
    if np.prod([float(len(own)) for own in options.values()]) <= _MOST:
        return _best(problem, point, options, most, measure)
    for column, own in options.items():
        point = _best(problem, point, {column: own}, most, measure)
    return point


def _options(problem: Problem, point: Floats, digits: int) -> dict[int, dict[float, int]]:
    """For each changed number, its candidates and by how many digits each is too long."""
    batch = problem.batch
    is_number = ~batch.is_category
    moved = np.flatnonzero((point != batch.rows[0]) & ~np.isnan(point) & is_number & (point != 0))
    largest = moved[np.argsort(-np.abs(batch.changes(point[None])[0, moved]), kind="stable")]
    options = {}
    for j in map(int, largest):
        own: dict[float, int] = {}
        for length in range(digits, digits + _MORE + 1):
            for value in _beside(float(point[j]), length, is_whole=bool(batch.grain[j] == INTEGER)):
                moved_to = point.copy()
                moved_to[j] = value
                own.setdefault(float(batch.snapped(moved_to[None])[0, j]), length - digits)
        own.setdefault(float(point[j]), _EXACT)
        options[j] = own
    return options


def _beside(value: float, digits: int, is_whole: bool) -> list[float]:
    """The two numbers of so many digits, or whole ones, on either side of a value."""
    if is_whole and abs(value) < 10**digits:
        return [float(np.floor(value)), float(np.ceil(value))]
    sides = (ROUND_FLOOR, ROUND_CEILING)
    return [float(Context(digits, side).create_decimal_from_float(value)) for side in sides]


def _best(
    problem: Problem, point: Floats, options: dict[int, dict[float, int]], most: float, measure: Measure | None
) -> Floats:
    """The combination of fewest surplus digits, and of those the closest, that is valid and near enough."""
    combinations = list(product(*(own.items() for own in options.values())))
    points = np.repeat(point[None], len(combinations), axis=0)
    points[:, list(options)] = [[value for value, _ in chosen] for chosen in combinations]
    surplus = np.array([sum(length for _, length in chosen) for chosen in combinations])
    distance = problem.subset(np.zeros(len(points), np.intp)).distance_to(points)
    sure = problem.sure()
    fits = distance <= most
    fits &= False if sure is None else sure.subset(np.zeros(len(points), np.intp)).is_valid(points)
    if measure is not None:
        fits &= is_within(measure, measure.score(problem, points))
    fits |= (points == point).sum(axis=1) + np.isnan(point).sum() == len(point)  # as it was
    ranked = np.lexsort((distance, surplus, ~fits))
    return np.asarray(points[ranked[0]])
