"""Numbers people can read: the shortest that stay in the same cell, so that the model cannot tell them apart.

Values of one row depend on each other where a rule ties columns together: a row is told in short numbers only if, as a
whole, it obeys every constraint and gets the same answer. Otherwise each value is shortened by itself, as long as the
row stays one that does, and the others are told as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import product
from numbers import Integral, Real

import numpy as np

from treefocus import kernels
from treefocus.errors import reject
from treefocus.model.forest import Bools, Floats
from treefocus.model.grid import as_input
from treefocus.problem.plausibility import Measure, is_within
from treefocus.problem.problem import Problem
from treefocus.schema.schema import FLOAT32, INTEGER, LISTED, STEPPED

_TOLERANCE = 0.005  # how far, as a share of the change, a shorter number may stray
_DIGITS = 16  # more are never shorter than the number itself
Rounding = Callable[[Floats], Floats]
_NEAREST: tuple[Rounding, ...] = (np.rint, np.floor, np.ceil)
_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # exact, so that one product or quotient rounds once


def shortest_in_cell(problem: Problem, points: Floats) -> Floats:
    """(n_rows, n_features) the points, every changed value as short as its cell, its box and the constraints allow."""
    shown = _each_short(problem, points, _NEAREST)
    shortened = np.flatnonzero(((shown != points) & ~np.isnan(points)).any(axis=1))
    if not shortened.size:
        return shown
    broken = shortened[~_is_answer(problem.subset(shortened), points[shortened], shown[shortened])]
    if broken.size:
        shown[broken] = _one_by_one(problem.subset(broken), points[broken])
    return shown


def short_before(before: float, shown: float, decimals: int | None = None) -> float:
    """A row's own value for people: to so many decimals, or to as few as tell the change to half a per cent."""
    tolerance = _TOLERANCE * abs(shown - before)
    for digits in range(decimals or 0, _DIGITS):
        short = round(before, digits)
        if abs(short - before) <= tolerance and (short < shown) == (before < shown):
            return short
    return before


def difference(before: float, after: float) -> float:
    """How far it is from one number to another, both as they are written: 0.1 from 0.2 to 0.3."""
    return float(Decimal(repr(after)) - Decimal(repr(before)))


def _each_short(problem: Problem, points: Floats, ways: tuple[Rounding, ...]) -> Floats:
    """(n_rows, n_features) the points, every changed value as short as its cell and its box allow."""
    batch, forest = problem.batch, problem.forest
    grid = kernels.grid_of(forest)
    can_be_short = ~np.isin(batch.grain, (INTEGER, LISTED, STEPPED))
    can_be_short &= ~batch.is_category
    i, j = np.nonzero((points != batch.rows) & ~np.isnan(points) & can_be_short)
    cell = grid.cell_start[j] + grid.encode(forest, points)[i, j]
    value = points[i, j]
    shown = points.copy()
    for column in np.flatnonzero(batch.is_single & (batch.grain == STEPPED)).tolist():  # 0.1, not 0.10000000149011612
        short = replace(batch.lists.steps_of(column), is_single=False).nearest(points[:, column])
        shown[:, column] = np.where(points[:, column] == batch.rows[:, column], points[:, column], short)
    shown[i, j] = shortest(
        value,
        low=np.maximum(grid.low[cell], batch.low[i, j]),
        high=np.minimum(grid.high[cell], batch.high[i, j]),
        tolerance=_TOLERANCE * np.abs(value - np.nan_to_num(batch.rows[i, j])),
        is_float32=batch.grain[j] == FLOAT32,
        ways=ways,
    )
    return shown


def _one_by_one(problem: Problem, points: Floats) -> Floats:
    """The points with as many of their values short, to the nearest, down or up, as each row allows."""
    every_short = [_each_short(problem, points, ways) for ways in (_NEAREST, (np.floor,), (np.ceil,))]
    shown, is_left = points.copy(), ~np.isnan(points)
    has_changed = True
    while has_changed:  # what one value forbids, another that has been shortened may allow
        has_changed = False
        for short in every_short:
            for column in np.flatnonzero((is_left & (short != points)).any(axis=0)):
                rows = np.flatnonzero(is_left[:, column] & (short[:, column] != points[:, column]))
                tried = shown[rows]
                tried[:, column] = short[rows, column]
                fits = rows[_is_answer(problem.subset(rows), points[rows], tried)]
                shown[fits, column] = short[fits, column]
                is_left[fits, column] = False
                has_changed |= bool(fits.size)
    return shown


def _is_answer(problem: Problem, points: Floats, shown: Floats) -> Bools:
    """(n_rows,) whether what is shown gets the answer of the points and obeys, as told and as a table would hold it."""
    batch, forest = problem.batch, problem.forest
    is_cast = batch.is_single & (shown != batch.rows)
    if not is_cast.any():
        answer, of_shown = kernels.predict(forest, np.concatenate([points, shown])).reshape(2, -1)
        return problem.has_room(shown, np.asarray((of_shown == answer) & batch.obeys(shown)))
    held = np.where(is_cast, as_input(shown, "float32"), shown)
    answer, of_shown, of_held = kernels.predict(forest, np.concatenate([points, shown, held])).reshape(3, -1)
    same = (of_shown == answer) & (of_held == answer)
    boxed = np.where(batch.grain == STEPPED, held, shown)  # a box ends at the steps as the table holds them
    obeys = batch.is_allowed(boxed) & batch.rules.hold(batch.rows, shown)
    return problem.has_room(held, np.asarray(same & obeys & batch.obeys(held)))


def shortest(
    value: Floats,
    low: Floats,
    high: Floats,
    tolerance: Floats,
    is_float32: Bools,
    ways: tuple[Rounding, ...] = _NEAREST,
) -> Floats:
    """(n,) the numbers of fewest digits within [low, high] and `tolerance` of each value, else the value itself.

    Where `is_float32` the number has to lie within [low, high] after a cast to float32, too. Of one length, the `ways`
    of rounding are tried in their order.
    """
    result = value.copy()
    left = np.flatnonzero(np.isfinite(value) & (value != 0))
    exponent = np.zeros(len(value), np.int64)
    exponent[left] = np.floor(np.log10(np.abs(value[left])))
    for digits in range(1, _DIGITS + 1):
        if not left.size:
            break
        for rounded in ways:
            step = exponent[left] - digits + 1
            power = _POWERS[np.minimum(np.abs(step), len(_POWERS) - 1)]
            with np.errstate(over="ignore"):  # on the side that is not taken
                candidate = rounded(np.where(step >= 0, value[left] / power, value[left] * power))
                number = np.where(step >= 0, candidate * power, candidate / power)
            stored = as_input(number, "float32") if is_float32.any() else number
            stored = np.where(is_float32[left], stored, number)
            fits = (np.abs(step) < len(_POWERS)) & (np.abs(number - value[left]) <= tolerance[left])
            for bounded in (number, stored):
                fits &= (low[left] <= bounded) & (bounded <= high[left])
            result[left[fits]] = number[fits]
            left = left[~fits]
    return result


_MORE = 3  # further digits that are tried
_EXACT = 16  # how long an exact number counts
_MOST = 20_000  # combinations that are asked at once


def rounded_point(
    problem: Problem,
    point: Floats,
    digits: int = 2,
    extra: float = 0.1,
    measure: Measure | None = None,
    kept: Collection[int] = (),
) -> Floats:
    """(n_features,) an answer to the problem's one row near `point`, of `digits` digits where that can be.

    extra: by how much, as a share, it may be further away. measure: how like the data it has to be. kept: columns that
    are left as they are.
    """
    if not (isinstance(digits, Integral) and digits > 0):
        reject("digits", "a whole number above 0", repr(digits))
    if not (isinstance(extra, Real) and extra >= 0):
        reject("extra", "a share of at least 0", repr(extra))
    options = {j: own for j, own in _options(problem, point, int(digits)).items() if j not in kept}
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
