"""The closest answer to one row, by looking everywhere.

Every column is cut into pieces: between the model's thresholds, at the row's own value, and at every number that a
constraint names. On a piece nothing can be told apart but by sums and distances, so that whether a point is allowed is
asked of one value a piece, of `meaning`. A box is a product of pieces; all of them are looked at, at once. Where a sum
is bounded (`Linear`), or the distance couples columns, the closest point of a box is a small program:

- all choices of which constraints hold with equality are tried, and each solved (quadratic and linear programs have
  their optimum among them);
- the largest of several changes is a linear program, solved by HiGHS.

Whatever is found counts only as a witness: a point that `meaning` calls an answer in so many words, asked of the model
itself. A weak witness makes the oracle miss a false claim; it never makes a true claim false.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import Implies, Linear, OneOf, Range
from treefocus.constraints.kinds import AtMost, Together
from treefocus.model.forest import Bools, Floats
from truth.meaning import Question, combined, one_less_cosine

AROUND = 20.0  # whole numbers beyond the data that are looked at where the domain has no end
FAR = 1e3  # the same of other numbers, in ranges of the data
MOST_BOXES = 400_000
TINY = float(np.finfo(np.float32).tiny)
MOST_WITH_ROOM = 3_000  # boxes with the wanted answer, around which there is looked for others
MOST_EXACT = 4  # of the points that solve a program, the nearest ones, from which sums are made to come out exactly
MOST_PROGRAMS = 300  # a row; boxes beyond are left out, nearest first


@dataclass(frozen=True, eq=False)
class Witness:
    """An answer, and what it costs."""

    point: Floats
    cost: float


@dataclass(frozen=True, eq=False)
class Pieces:
    """One column, cut."""

    low: Floats  # (n,) NaN for a missing value
    high: Floats  # (n,)
    size: Floats  # (n,) the smallest change to it, in the scaled space
    changed: Bools  # (n,)


class TooManyBoxesError(Exception):
    """There are more boxes than can be looked at."""


def nearest(question: Question, *, only_whether: bool = False) -> Witness | None:
    """The closest answer, None where there is none; `only_whether` takes any."""
    found = _nearest(question, only_whether)
    if found is not None and not question.is_witness(found.point):
        raise AssertionError(f"the model does not say of {found.point} what it says of its cell")
    return found


def _nearest(question: Question, only_whether: bool) -> Witness | None:
    pieces = [_pieces(question, j) for j in range(len(question.row))]
    shape = tuple(len(own.low) for own in pieces)
    if np.prod(shape) > MOST_BOXES:
        raise TooManyBoxesError(int(np.prod(shape)))
    if 0 in shape:
        return None
    is_open = question.wanted_boxes([own.low for own in pieces])
    is_open = is_open & _obeying(question, pieces, shape)
    if question.tolerance is not None and is_open.sum() > MOST_WITH_ROOM:
        raise TooManyBoxesError(int(is_open.sum()))
    boxes = np.argwhere(is_open)
    if not len(boxes):
        return None
    low, high, size, changed = (
        np.stack([getattr(own, name)[boxes[:, j]] for j, own in enumerate(pieces)], axis=1)
        for name in ("low", "high", "size", "changed")
    )
    bound, point = _closest(question, low, high, size, changed)
    sums = [one for one in question.constraints if isinstance(one, Linear)]
    if not sums:
        return _first(question, np.argsort(bound, kind="stable"), point, only_whether)
    return _under_sums(question, sums, low, high, point, bound, only_whether)


def _first(question: Question, order: NDArray[np.intp], points: Floats, only_whether: bool) -> Witness | None:
    """The first of the points that is a witness, the nearest one of the next few."""
    best: Witness | None = None
    for k in order:
        if best is not None and (only_whether or question.cost(points[k][None])[0] >= best.cost):
            return best
        if question.is_allowed(points[k]) and question.has_room(points[k]):
            cost = float(question.cost(points[k][None])[0])
            best = Witness(points[k], cost) if best is None or cost < best.cost else best
    return best


# ---- pieces


def _pieces(question: Question, j: int) -> Pieces:
    column, own = question.columns[j], float(question.row[j])
    if column.is_category:
        values = np.arange(float(len(column.values)))
        low = high = values if np.isnan(own) or own in values else np.append(values, own)
    elif column.is_finite:
        values = _held(question, j)
        low = high = values if np.isnan(own) else np.union1d(values, [own])
    else:
        low, high = _cut(question, j)
    if np.isnan(own) or j in question.may_become_missing:
        low, high = np.append(low, np.nan), np.append(high, np.nan)
    alone = [one for one in question.constraints if _is_alone(one, column.name)]
    kept = [
        k
        for k, value in enumerate(low)
        if question.says_column(j, float(value)) is True
        and all(question.says_alone(one, j, float(value)) for one in alone)
    ]
    low, high = low[kept], high[kept]
    if np.isnan(own):
        changed = ~np.isnan(low)
        return Pieces(low, high, changed.astype(np.float64), changed)
    near = np.clip(own, low, high)
    changed = np.isnan(low) | (near != own)
    size = np.where(np.isnan(low) | column.is_category, changed, np.abs(near - own) / question.scale[j])
    return Pieces(low, high, size.astype(np.float64), changed)


def _held(question: Question, j: int) -> Floats:
    """The values of a column that holds few; of whole numbers without end, those around the data."""
    column, own = question.columns[j], question.row[j]
    if column.kind == "step" and not np.isnan(own):
        step, first = Decimal(str(column.step)), Decimal(str(column.values[0]))
        ends = [min(own, column.values[0]), max(own, column.values[-1])]
        k, last = (int(np.rint((end - column.values[0]) / float(step))) for end in ends)
        return np.array([float(first + step * n) for n in range(k, last + 1)])
    if not column.is_whole:
        return np.array(column.values, np.float64)
    low, high = max(question.low[j], column.values[0] - AROUND), min(question.high[j], column.values[-1] + AROUND)
    low, high = (low, high) if np.isnan(own) else (min(low, own), max(high, own))  # from outside, towards the domain
    return np.arange(np.ceil(low), np.floor(high) + 1.0)


def _is_alone(constraint: Any, name: str) -> bool:
    """Whether a constraint is about this one column alone."""
    if isinstance(constraint, Range | OneOf):
        return constraint.column == name
    kinds = ("Fixed", "Increasing", "Decreasing")
    return type(constraint).__name__ in kinds and name in constraint.columns


def _cut(question: Question, j: int) -> tuple[Floats, Floats]:
    """The pieces of a column of any numbers: between thresholds, and every number that is named by itself."""
    own, name = float(question.row[j]), question.columns[j].name
    held = question.model.data[:, j]
    far = FAR * float(np.nanmax(held) - np.nanmin(held))
    ends = [max(question.low[j], np.nanmin(held) - far), min(question.high[j], np.nanmax(held) + far)]
    ends += [] if np.isnan(own) else [own]
    first, last = min(ends), max(ends)
    named = {own, question.low[j], question.high[j], *question.room_ends(j)}
    for one in question.constraints:
        if isinstance(one, Range) and one.column == name:
            shift = [own + share * abs(own) for share in (one.low, one.high)]
            named |= set(shift) if one.relative else {one.low, one.high}
        elif isinstance(one, OneOf) and one.column == name:
            named |= set(one.values) | {float(np.float32(value)) for value in one.values}
        elif isinstance(one, Implies):
            for condition in (one.cause, one.effect):
                if condition.column == name:
                    named |= {condition.low, condition.high, *(condition.values or ())}
    singles = np.array(sorted(float(v) for v in named if np.isfinite(v) and first <= v <= last))
    cuts = question.cuts(j)
    stops = np.concatenate([cuts, singles, np.nextafter(singles, -np.inf)])  # each piece ends at one of these
    stops = np.unique(stops[(stops >= first) & (stops < last)])
    low = np.concatenate([[first], np.nextafter(stops, np.inf)])
    high = np.concatenate([stops, [last]])
    if question.columns[j].is_whole:
        is_own = (low == own) & (high == own)
        low, high = np.where(is_own, low, np.ceil(low)), np.where(is_own, high, np.floor(high))
        low, high = low[low <= high], high[low <= high]
    if question.columns[j].kind == "float32":
        is_own = (low == own) & (high == own)
        low, high = np.where(is_own, low, -_single_below(-low)), np.where(is_own, high, _single_below(high))
        low, high = low[low <= high], high[low <= high]
    is_own = (low == own) & (high == own)
    low, high = np.where(is_own, low, -_no_denormal(-low)), np.where(is_own, high, _no_denormal(high))
    return low[low <= high], high[low <= high]


def _no_denormal(values: Floats) -> Floats:
    """The next number down where a value is a denormal of float32: those are no answers, as some libraries read 0."""
    return np.where((values > 0) & (values < TINY), 0.0, np.where((values < 0) & (values > -TINY), -TINY, values))


def _single_below(values: Floats) -> Floats:
    """The largest float32 numbers that are not above these."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)


def _obeying(question: Question, pieces: list[Pieces], shape: tuple[int, ...]) -> Bools:
    """Which boxes obey the constraints between columns, sums aside."""
    allowed = np.ones(shape, bool)
    d = len(shape)

    def along(j: int, values: Any) -> Any:
        return np.asarray(values).reshape([-1 if k == j else 1 for k in range(d)])

    changed = [along(j, own.changed) for j, own in enumerate(pieces)]
    for one in question.constraints:
        if isinstance(one, AtMost):
            named = [question.place(name) for name in one.columns] if one.columns else range(d)
            allowed = allowed & (sum((changed[j].astype(int) for j in named), np.zeros(shape, int)) <= one.n)
        elif isinstance(one, Together):
            named = [question.place(name) for name in one.columns]
            count = sum((changed[j].astype(int) for j in named), np.zeros(shape, int))
            allowed = allowed & ((count == 0) | (count == len(named)))
        elif isinstance(one, Implies):
            met = []
            for condition in (one.cause, one.effect):
                j = question.place(condition.column)
                met.append(along(j, [question.meets_alone(condition, j, float(v)) for v in pieces[j].low]))
            allowed = allowed & (~met[0] | met[1])
    for own in question.left_alone:
        kept = np.zeros(shape, bool)
        for j in own:
            kept = kept | ~changed[j]
        allowed = allowed & kept
    return allowed


# ---- the closest point of a box


def _closest(question: Question, low: Floats, high: Floats, size: Floats, changed: Bools) -> tuple[Floats, Floats]:
    """(n,) what the closest point of each box costs, and (n, d) that point; sums aside."""
    row, measure = question.row, question.measure
    any_value = np.where(np.isnan(row), low, np.clip(row, low, high))
    if measure.parts:
        return combined(measure, question.weights, size, changed), any_value
    cost, point = _coupled(question, low, high, any_value)
    for j in np.flatnonzero([column.is_whole for column in question.columns]):  # the best is next to the best number
        if (low[:, j] == high[:, j]).all():
            continue
        tried = []
        for rounded in (np.floor, np.ceil):
            held = np.where(low[:, j] < high[:, j], np.clip(rounded(point[:, j]), low[:, j], high[:, j]), low[:, j])
            ends = low.copy(), high.copy()
            ends[0][:, j] = ends[1][:, j] = held
            tried.append((*_coupled(question, *ends, any_value), *ends))
        chosen = (tried[0][0] > tried[1][0]).astype(int), np.arange(len(low))
        cost, point, low, high = (np.stack([one[k] for one in tried])[chosen] for k in range(4))
    for j in [j for j, column in enumerate(question.columns) if column.kind == "float32"]:
        near = np.clip(point[:, j].astype(np.float32).astype(np.float64), low[:, j], high[:, j])
        point[:, j] = np.where(point[:, j] == question.row[j], point[:, j], near)
    return cost, point


def _coupled(question: Question, low: Floats, high: Floats, any_value: Floats) -> tuple[Floats, Floats]:
    """The same under a distance that couples columns, of any numbers."""
    row, measure = question.row, question.measure
    known = np.flatnonzero(~np.isnan(row) & np.array([not c.is_category for c in question.columns]))
    point = any_value.copy()
    step_low, step_high = ((end - row)[:, known] / question.scale[known] for end in (low, high))
    if measure.name == "cosine":
        z = question.start[known]
        cost, best = _smallest_angle(question.weights[known], z, z + step_low, z + step_high)
        best = best - z
    else:
        cost, best = _smallest_quadratic(question.inverse[np.ix_(known, known)], step_low, step_high)
        cost = cost if measure.is_squared else np.sqrt(cost)
    point[:, known] = np.clip(row[known] + best * question.scale[known], low[:, known], high[:, known])
    return cost, point


def _smallest_quadratic(q: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(n,) the least of u' q u over each box, and (n, d) where; every choice of sides is tried."""
    n, d = low.shape
    best, where = np.full(n, np.inf), low.copy()
    for side in product((-1, 0, 1), repeat=d):
        chosen = np.array(side)
        u = np.where(chosen < 0, low, high)
        free, held = np.flatnonzero(chosen == 0), np.flatnonzero(chosen != 0)
        if free.size:
            u[:, free] = -np.linalg.solve(q[np.ix_(free, free)], q[np.ix_(free, held)] @ u[:, held].T).T
        u = np.clip(u, low, high)
        value = np.einsum("nf,fg,ng->n", u, q, u)
        better = value < best
        best, where = np.where(better, value, best), np.where(better[:, None], u, where)
    return np.maximum(best, 0.0), where


def _smallest_angle(w: Floats, z: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(n,) the least of 1 - cos(z, y) over y in each box, and (n, d) where: z times a number, clipped to the box."""
    n = len(low)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.concatenate([low / z, high / z, np.zeros((n, 1)), np.full((n, 1), 1e6)], axis=1)
    ends = np.sort(np.where(np.isfinite(ends) & (ends >= 0), ends, 0.0), axis=1)
    tried = [*ends.T, *((ends[:, 1:] + ends[:, :-1]) / 2).T]
    for k in range(ends.shape[1] - 1):
        middle = (ends[:, k] + ends[:, k + 1]) / 2
        y = middle[:, None] * z
        is_free = (y > low) & (y < high)
        held = np.where(is_free, 0.0, np.clip(y, low, high))
        zy, yy = (w * z * held).sum(axis=1), (w * held * held).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = yy / zy
        tried.append(np.clip(np.where(np.isfinite(best), best, middle), ends[:, k], ends[:, k + 1]))
    cost, where = np.full(n, np.inf), low.copy()
    corners = [np.where(np.array(side), low, high) for side in product((True, False), repeat=low.shape[1])]
    for y in (*(np.clip(mu[:, None] * z, low, high) for mu in tried), *corners):
        value = one_less_cosine(w, z, y)
        better = value < cost
        cost, where = np.where(better, value, cost), np.where(better[:, None], y, where)
    return cost, where


# ---- sums


def _under_sums(
    question: Question, sums: list[Linear], low: Floats, high: Floats, point: Floats, bound: Floats, only_whether: bool
) -> Witness | None:
    """The closest answer where sums are bounded: box by box, the nearest first."""
    matrix = np.zeros((len(sums), low.shape[1]))
    for k, one in enumerate(sums):
        for name, coefficient in one.coefficients.items():
            matrix[k, question.place(name)] = float(coefficient)
    limit = np.array([one.at_most for one in sums])
    used = [np.flatnonzero(own) for own in matrix]
    least = [(np.minimum(matrix[k, f] * low[:, f], matrix[k, f] * high[:, f])).sum(axis=1) for k, f in enumerate(used)]
    at_point = [(matrix[k, f] * point[:, f]).sum(axis=1) for k, f in enumerate(used)]  # NaN where one is missing
    size = [np.abs(matrix[k, f] * point[:, f]).sum(axis=1) + abs(limit[k]) for k, f in enumerate(used)]
    possible = np.all([~(least[k] > limit[k] + 1e-9 * size[k]) for k in range(len(sums))], axis=0)
    is_met = np.all([~(at_point[k] > limit[k] + 1e-9 * size[k]) for k in range(len(sums))], axis=0)
    is_single = (low == high) | np.isnan(low)
    best: Witness | None = None
    n_programs = 0
    for k in np.argsort(bound, kind="stable"):
        if not possible[k]:
            continue
        if best is not None and (only_whether or bound[k] >= best.cost):
            break
        if is_met[k] and question.is_allowed(point[k]):
            tried = [point[k]]
        elif is_single[k].all() or n_programs >= MOST_PROGRAMS:
            continue
        else:
            n_programs += 1
            tried = _programs(question, matrix, limit, low[k], high[k], np.inf if best is None else best.cost)
        costs = question.cost(np.array(tried).reshape(len(tried), low.shape[1]))
        for one, cost in zip(tried, costs.tolist(), strict=True):
            is_closer = (best is None or cost < best.cost) and _is_inside(one, low[k], high[k])
            if is_closer and question.is_allowed(one) and question.has_room(one):
                best = Witness(one, cost)
    return best


def _is_inside(point: Floats, low: Floats, high: Floats) -> bool:
    """Whether a point lies in a box."""
    return bool((((point >= low) & (point <= high)) | (np.isnan(point) & np.isnan(low))).all())


def _programs(
    question: Question, matrix: Floats, limit: Floats, low: Floats, high: Floats, below: float
) -> list[Floats]:
    """Points of one box that obey the sums, among them the closest, as near as can be told; none far above `below`."""
    held = np.where(np.isnan(low), np.nan, low)
    free = np.flatnonzero(high > low)
    if not free.size:
        return [held]
    bound = [k for k in range(len(limit)) if not np.isnan(held[matrix[k] != 0]).any()]
    rest = np.array(
        [limit[k] - sum(matrix[k, j] * held[j] for j in np.flatnonzero(matrix[k]) if j not in free) for k in bound]
    )
    a = np.concatenate([matrix[np.ix_(bound, free)], np.eye(len(free)), -np.eye(len(free))])
    b = np.concatenate([rest, high[free], -low[free]])
    scale = question.scale[free]
    a, b = a * scale, b - a @ _origin(question, free, low, high)  # in steps from the row, scaled
    found = []
    points = []
    for u in _candidates(question, a, b, free, held, low, high):
        point = held.copy()
        point[free] = np.clip(_origin(question, free, low, high) + u * scale, low[free], high[free])
        points.append(point)
    costs = question.cost(np.array(points)) if points else np.empty(0)
    for k in np.argsort(costs, kind="stable")[:MOST_EXACT]:
        if costs[k] > below * (1 + 1e-6):
            break
        point = points[k]
        found += [point, *_exact(question, point, free, low, high), *_single(question, point, free)]
        for j in [j for j in free if question.columns[j].is_whole][:1]:  # the best is next to the best number
            for rounded in (np.floor, np.ceil):
                ends = low.copy(), high.copy()
                ends[0][j] = ends[1][j] = np.clip(rounded(point[j]), low[j], high[j])
                found += _programs(question, matrix, limit, *ends, below)
    return found


def _single(question: Question, point: Floats, free: NDArray[np.intp]) -> list[Floats]:
    """The point again with float32 numbers where the columns hold them, rounded to either side."""
    columns = [j for j in free if question.columns[j].kind == "float32"]
    found = []
    for is_up in product((False, True), repeat=len(columns)) if columns else ():
        made = point.copy()
        for j, up in zip(columns, is_up, strict=True):
            made[j] = (-_single_below(-point[j : j + 1]) if up else _single_below(point[j : j + 1]))[0]
        found.append(made)
    return found


def _origin(question: Question, free: NDArray[np.intp], low: Floats, high: Floats) -> Floats:
    """Where steps begin: at the row's own values, at an end of the piece where there are none."""
    return np.where(np.isnan(question.row[free]), low[free], question.row[free])


def _candidates(
    question: Question, a: Floats, b: Floats, free: NDArray[np.intp], held: Floats, low: Floats, high: Floats
) -> list[Floats]:
    """Steps u of the free columns with a u <= b; among them the closest."""
    w = question.weights[free] * ~np.isnan(question.row[free])
    measure, n = question.measure, len(free)
    parts = {part: factor for factor, part in measure.parts}
    if measure.name == "cosine":
        return _toward_ray(question, a, b, free, held)
    if measure.is_coupled:
        known = [j for j in range(len(held)) if j not in free and not np.isnan(question.row[j])]
        known = [j for j in known if not question.columns[j].is_category]
        steps = (held[known] - question.row[known]) / question.scale[known]
        return _vertices(question.inverse[np.ix_(free, free)], question.inverse[np.ix_(free, known)] @ steps, a, b)
    sign = np.sign(np.where(np.isnan(question.row[free]), 0.0, (low + high)[free] / 2 - question.row[free]))
    slope = parts.get("l1", 0.0) * w * sign
    tiny = 1e-9 * np.eye(n)
    if "linf" in parts:
        return _largest(parts["linf"] * w, slope, sign, a, b)
    if "l2" not in parts:
        return _vertices(tiny, slope, a, b)
    found = _vertices(np.diag(w) + tiny, np.zeros(n), a, b)
    if "l1" in parts:  # the same for several prices between the two
        for price in np.geomspace(1e-3, 1e2, 26):
            found += _vertices(np.diag(w) + tiny, price * slope, a, b)
    return found


def _vertices(q: Floats, slope: Floats, a: Floats, b: Floats) -> list[Floats]:
    """The least of u' q u / 2 + slope' u under a u <= b: every choice of constraints that hold with equality."""
    size = np.abs(a).max(axis=1)
    size = np.where(size > 0, size, 1.0)  # so that no constraint is larger than another
    a, b = a / size[:, None], b / size
    n, slack = len(slope), 1e-9 * (1.0 + np.abs(b))
    best: tuple[float, Floats] | None = None
    for size in range(n + 1):
        chosen = _choices(len(b), size)
        if not len(chosen):
            continue
        system = np.zeros((len(chosen), n + size, n + size))
        right = np.zeros((len(chosen), n + size))
        system[:, :n, :n], right[:, :n] = q, -slope
        system[:, n:, :n], right[:, n:] = a[chosen], b[chosen]
        system[:, :n, n:] = np.swapaxes(a[chosen], 1, 2)
        is_regular = np.abs(np.linalg.det(system)) > 1e-12
        if not is_regular.any():
            continue
        u = np.linalg.solve(system[is_regular], right[is_regular][..., None])[:, :n, 0]
        fits = (u @ a.T <= b + slack).all(axis=1)
        if fits.any():
            value = 0.5 * np.einsum("nf,fg,ng->n", u[fits], q, u[fits]) + u[fits] @ slope
            k = int(value.argmin())
            if best is None or value[k] < best[0]:
                best = float(value[k]), u[fits][k]
    return [] if best is None else [best[1]]


@lru_cache(maxsize=200)
def _choices(n: int, size: int) -> NDArray[np.intp]:
    """All choices of so many of n."""
    made = list(combinations(range(n), size))
    return np.array(made, np.intp).reshape(len(made), size)


def _largest(weight: Floats, slope: Floats, sign: Floats, a: Floats, b: Floats) -> list[Floats]:
    """The least of slope' u + t with t at least weight * |u|: a linear program."""
    from scipy.optimize import linprog

    n = len(weight)
    rows = np.block([[a, np.zeros((len(b), 1))], [np.diag(weight * sign), -np.ones((n, 1))]])
    limits = [(None, None)] * n + [(0, None)]
    made = linprog(np.append(slope, 1.0), rows, np.append(b, np.zeros(n)), bounds=limits, method="highs")
    return [made.x[:n]] if made.status == 0 else []


def _toward_ray(question: Question, a: Floats, b: Floats, free: NDArray[np.intp], held: Floats) -> list[Floats]:
    """The smallest angle: the least |v| with z' v = 1 among the multiples v = t y of the points y of the box."""
    known = np.array(
        [j for j in range(len(held)) if not np.isnan(question.row[j]) and not question.columns[j].is_category]
    )
    z = question.start[known]
    w, n = question.weights[known], len(known)
    at = ((held - question.space.offset) / question.scale)[known]
    rows, right = [], []
    for own, end in zip(a, b, strict=True):  # own' (y - z) <= end  becomes  own' v - (end + own' z) t <= 0
        full = np.zeros(n)
        full[np.searchsorted(known, free)] = own
        rows.append(np.append(full, -(end + full @ z)))
        right.append(0.0)
    for k, j in enumerate(known):
        if j not in free:
            for side in (1.0, -1.0):
                rows.append(side * np.append(np.eye(n)[k], -at[k]))
                right.append(0.0)
    for side in (1.0, -1.0):
        rows.append(side * np.append(w * z, 0.0))
        right.append(side)
    rows.append(np.append(np.zeros(n), -1.0))
    right.append(-1e-9)
    q = np.diag(np.append(w, 1e-12))
    found = []
    for v in _active(q, np.array(rows), np.array(right)):
        if v[-1] > 0:
            found.append((v[:n] / v[-1] - z)[np.searchsorted(known, free)])
    return found


def _active(q: Floats, a: Floats, b: Floats) -> list[Floats]:
    """The least of v' q v under a v <= b, by SLSQP from several starts."""
    from scipy.optimize import linprog, minimize

    n = len(q)
    start = linprog(np.zeros(n), a, b, bounds=[(None, None)] * n, method="highs")
    if start.status != 0:
        return []
    made = minimize(
        lambda v: float(v @ q @ v), start.x, jac=lambda v: 2 * q @ v, method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda v: b - a @ v, "jac": lambda v: -a}],
        options={"maxiter": 200, "ftol": 1e-15},
    )  # fmt: skip
    return [made.x, start.x]


def _exact(question: Question, point: Floats, free: NDArray[np.intp], low: Floats, high: Floats) -> list[Floats]:
    """The point again, in numbers of few bits, in which sums come out exactly, one column making up for the others.

    A third of a number has no end: of three numbers that follow each other, one can be divided by three.
    """
    sums = [one for one in question.constraints if isinstance(one, Linear)]
    grain = 2.0 ** np.round(np.log2(question.scale[free]) - 34)
    is_low = point[free] - low[free] < high[free] - point[free]
    short = np.where(is_low, np.ceil(point[free] / grain), np.floor(point[free] / grain)) * grain
    inward = np.where(is_low, grain, -grain)
    found = []
    for n_steps in range(3):
        base = point.copy()
        base[free] = short + n_steps * inward
        found.append(base)
        for one in sums:
            named = {question.place(name): Fraction(float(c)) for name, c in one.coefficients.items()}
            if any(np.isnan(base[j]) for j in named):
                continue
            for j in named:
                if j in free:
                    rest = sum(c * Fraction(base[k]) for k, c in named.items() if k != j)
                    made = base.copy()
                    made[j] = float((Fraction(one.at_most) - rest) / named[j])
                    below = made.copy()  # a sum that rounding leaves above its bound
                    below[j] -= float(np.sign(named[j])) * 4 * np.spacing(max(abs(made[j]), grain.max()))
                    found += [own for own in (made, below) if low[j] <= own[j] <= high[j]]
    return found
