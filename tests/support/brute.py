"""The smallest change by brute force: every cell of the threshold grid, one after another, in plain NumPy.

Nothing here comes from the search or the kernels: the trees are walked node by node, the cells are cut from their own
thresholds, and the closest point of a cell is a formula. A cell is a product of intervals ("pieces"), one a feature:

- a sum of norms takes, in every feature, the piece's closest value;
- Mahalanobis tries every choice of which features sit on their low side, on their high side, or between (3^d of them)
  and solves for those between: the optimum is one of the choices, and each of them is a point of the box;
- cosine looks for the ray through the box that is closest to z: the distance from z to s * box is a convex piecewise
  quadratic of the one number s, solved piece by piece; where no ray points towards z, the best point is a corner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.problem.distances import (
    Chebyshev,
    Cosine,
    Distance,
    Euclidean,
    FewestFeatures,
    Mahalanobis,
    Manhattan,
    Sum,
)
from treefocus.problem.problem import Problem
from treefocus.schema.schema import FLOAT32, INTEGER, LISTED


@dataclass(frozen=True, eq=False)
class RowQuestion:
    """What is asked of one row."""

    forest: Forest
    row: Floats  # (d,)
    low: Floats  # (d,)
    high: Floats  # (d,)
    grain: NDArray[np.int8]  # (d,)
    offset: Floats  # (d,)
    scale: Floats  # (d,)
    distance: Distance
    origin: int
    target: int  # -1 for any class but `origin`
    may_leave: Bools  # (d,) a missing value may become known
    may_lack: Bools  # (d,) a value may be missing: stay so, or become so
    listed: dict[int, Floats]  # values of the columns that take only some
    strict: Bools  # (d,) the row's own value counts only if it is listed
    named: dict[int, Bools]  # which categories of a column may be chosen, the last one unseen
    rules: tuple[Any, ...]
    decides: Forest | None = None  # what the prediction is, where the forest has trees besides
    is_plausible: Callable[[Floats], Bools] | None = None  # (n,) whether each point is like the data
    room: Any = None  # to move, by column: above_share, above_units, below_share, below_units

    @property
    def is_category(self) -> Bools:
        categories = self.forest.categories
        return np.zeros(len(self.row), bool) if categories is None else categories.is_categorical

    @property
    def z(self) -> Floats:
        return (self.row - self.offset) / self.scale

    def flips(self, predicted: Ints) -> Bools:
        return predicted == self.target if self.target >= 0 else predicted != self.origin

    def answers(self, points: Floats) -> Bools:
        """(n,) whether each point has the wanted prediction, and is like the data; room to move aside."""
        flips = self.flips(predict(self.forest if self.decides is None else self.decides, points))
        return flips if self.is_plausible is None else flips & self.is_plausible(points)


def questions_of(problem: Problem) -> Iterator[RowQuestion]:
    """The problem, row by row."""
    batch, choices = problem.batch, problem.batch.choices
    may_leave = np.zeros(problem.forest.n_features, bool)
    may_leave[choices.column] = problem.model.takes_missing
    for i in range(len(problem)):
        may_lack = np.isnan(batch.rows[i]) & ~(batch.low[i] > batch.high[i])
        named = {
            int(f): np.isfinite(choices.delta[i, begin : end - 1])
            for f, begin, end in zip(choices.column, choices.start[:-1], choices.start[1:], strict=True)
        }
        may_lack[choices.column] = np.isfinite(choices.delta[i, choices.start[1:] - 1])
        yield RowQuestion(
            problem.forest, batch.rows[i], batch.low[i], batch.high[i], batch.grain, batch.offset, batch.scale,
            problem.distance, int(batch.origin[i]), int(batch.target[i]), may_leave, may_lack,
            {f: batch.lists.of(f) for f in np.flatnonzero(batch.grain == LISTED).tolist()}, batch.lists.is_strict,
            named, batch.rules.all, None if problem.relaxed is None else problem.relaxed.forest, _limit_of(problem),
            problem.room,
        )  # fmt: skip


def _limit_of(problem: Problem) -> Callable[[Floats], Bools] | None:
    """The limit on the isolation score, by the measure's own number."""
    isolation = problem.isolation
    if isolation is None:
        return None
    assert isolation.measured is not None
    measured, limit = isolation.measured, isolation.limit
    return lambda points: measured(points) <= limit


# ---- the model


def leaves_of(forest: Forest, points: Floats) -> Ints:
    """(n, n_trees) the number of the leaf that each point reaches in each tree."""
    compared = seen(forest, points)
    number = np.cumsum(forest.left < 0) - 1
    every = np.arange(len(points))
    leaves = np.empty((len(points), forest.n_trees), np.int64)
    for tree, root in enumerate(forest.tree_start[:-1]):
        node = np.full(len(points), root, np.int64)
        while (forest.left[node] >= 0).any():
            value = compared[every, np.maximum(forest.feature[node], 0)]
            is_below = value <= forest.threshold[node]
            if forest.categories is not None:
                number_of = forest.categories.set_of_node[node]
                in_set = [n >= 0 and v in forest.categories.members(n) for n, v in zip(number_of, value, strict=True)]
                is_below = np.where(number_of >= 0, in_set, is_below)
            to_left = np.where(np.isnan(value), forest.default_left[node], is_below)
            below = np.where(to_left, forest.left[node], forest.right[node])
            node = np.where(forest.left[node] >= 0, below, node)
        leaves[:, tree] = number[node]
    return leaves


def predict(forest: Forest, points: Floats) -> Ints:
    """(n,) index of the class."""
    if forest.voices:
        mean = _mean(forest, points)
        return (mean > forest.cut if forest.decision == "above" else mean >= forest.cut).astype(np.int32)
    value = forest.leaf_value.astype(forest.score_dtype)
    total = np.repeat(forest.base_score[None, :].astype(forest.score_dtype), len(points), axis=0)
    for leaf in leaves_of(forest, points).T:
        total = total + value[leaf]
    scores = total.astype(np.float64) / forest.divisor
    if forest.decision == "argmax":
        return scores.argmax(axis=1).astype(np.int32)
    if forest.decision == "likely":
        if forest.link == "softmax":
            share = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores = share / share.sum(axis=1, keepdims=True)
        return (scores[:, forest.favoured] >= forest.cut).astype(np.int32)
    one = scores[:, 0]
    if forest.decision == "between":
        return ((one >= forest.cut) & (one <= forest.cut_high)).astype(np.int32)
    return (one > forest.cut if forest.decision == "above" else one >= forest.cut).astype(np.int32)


def _mean(forest: Forest, points: Floats) -> Floats:
    """(n,) the weighted mean of what the voices show."""
    leaves, total, tree = leaves_of(forest, points), np.zeros(len(points)), 0
    for voice, base in zip(forest.voices, forest.base_score, strict=True):
        score = np.full(len(points), base, voice.score_dtype)
        for leaf in leaves[:, tree : tree + voice.n_trees].T:
            score = score + forest.leaf_value[leaf, 0].astype(voice.score_dtype)
        value = score.astype(np.float64) / voice.divisor
        if voice.link == "sigmoid":
            value = 1.0 / (1.0 + np.exp(-value))
        for name, *numbers in voice.maps:
            if name == "platt":
                value = 1.0 / (1.0 + np.exp(numbers[0] * value + numbers[1]))
            elif name == "isotonic":
                value = np.interp(value, *numbers)
            else:
                value = ((value > numbers[0]) if name == "above" else (value >= numbers[0])).astype(float)
        total, tree = total + voice.weight * value, tree + voice.n_trees
    return total / forest.divisor


# ---- the cells


def round_up(values: Floats) -> Floats:
    """The smallest float32 not below each value."""
    near = values.astype(np.float32)
    return np.where(near < values, np.nextafter(near, np.float32(np.inf)), near).astype(np.float64)


def round_down(values: Floats) -> Floats:
    return -round_up(-values)


def pieces(question: RowQuestion, f: int, *, single: bool = False) -> Floats:
    """(2, n) low and high ends of the intervals of allowed values that neither the model nor a rule can tell apart.

    A model that rounds its input to float32 takes the float64 values beside a threshold with it. single: integers one
    by one.
    """
    forest, x = question.forest, question.row[f]
    unknown = np.full((2, 1), np.nan)
    if is_coupled(question.distance) and (question.is_category[f] or np.isnan(x)):
        may_stay = question.may_lack[f] if np.isnan(x) else question.named[f][int(x)]
        return np.full((2, int(may_stay)), x)  # cannot be measured, and does not move
    unknown = unknown[:, : int(question.may_lack[f])]
    if np.isnan(x) and (not question.may_leave[f] or np.isnan(question.low[f])):
        return unknown
    if question.is_category[f]:
        assert forest.categories is not None
        known = np.flatnonzero(question.named[f]).astype(float)
        return np.append(np.stack([known, known]), unknown, axis=1)
    if question.grain[f] == LISTED:
        own = question.listed[f]
        own = own[(own >= question.low[f]) & (own <= question.high[f])]
        if question.low[f] <= x <= question.high[f] and not question.strict[f]:
            own = np.union1d(own, [x])
        return np.append(np.stack([own, own]), unknown, axis=1)
    threshold = forest.threshold[(forest.left >= 0) & (forest.feature == f)]
    is_float32 = forest.input_dtype == "float32"
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        last, after = beside(np.unique(threshold), is_float32)
        last, after = _with_breaks(question, f, last, after)
        is_inside = (np.append(-np.inf, after) <= question.high[f]) & (np.append(last, np.inf) >= question.low[f])
        low = np.maximum(np.append(-np.inf, after), question.low[f])
        high = np.minimum(np.append(last, np.inf), question.high[f])
        if question.grain[f] == INTEGER:
            low, high = np.ceil(low), np.floor(high)
        elif question.grain[f] == FLOAT32:
            low, high = round_up(low), round_down(high)
    kept = is_inside & (low <= high) & (low < np.inf) & (high > -np.inf)
    found = np.stack([low, high])[:, kept]
    if question.grain[f] == INTEGER and single:
        values = [np.arange(a, b + 1.0) for a, b in found.T]
        found = np.tile(np.concatenate([*values, np.empty(0)]), (2, 1))
    found = np.append(found, unknown, axis=1)
    may_stay = question.low[f] <= x <= question.high[f]
    if may_stay and not ((found[0] <= x) & (x <= found[1])).any():
        found = np.append(found, [[x], [x]], axis=1)
    return found


def _with_breaks(question: RowQuestion, f: int, last: Floats, after: Floats) -> tuple[Floats, Floats]:
    """The same, cut also where rules see a difference: around the row's own value, and at the ends of conditions."""
    first = [question.row[f], np.nextafter(question.row[f], np.inf)] if question.rules or question.room else []
    first += _where_room_ends(question, f, last, after) if question.room else []
    for rule in question.rules:
        if type(rule).__name__.removesuffix("Rule") == "Implies":
            for cells in (rule.cause, rule.effect):
                if cells.column == f and cells.categories is None:
                    first += [cells.low, np.nextafter(cells.high, np.inf)]
    extra = np.array([value for value in first if np.isfinite(value)])
    extra = extra[~((extra[:, None] > last) & (extra[:, None] <= after)).any(axis=1)]  # not where a cell ends anyway
    last, after = np.append(last, np.nextafter(extra, -np.inf)), np.append(after, extra)
    order = np.unique(after, return_index=True)[1]
    return last[order], after[order]


def beside(threshold: Floats, is_float32: bool) -> tuple[Floats, Floats]:
    """The last float64 below each threshold, and the first above; no denormals, which some libraries take for 0."""
    last = np.unique(round_down(threshold) if is_float32 else threshold) + 0.0
    dtype = np.float32 if is_float32 else np.float64
    after = np.nextafter(last.astype(dtype), dtype(np.inf)).astype(np.float64)
    tiny = float(np.finfo(np.float32).tiny)
    after = np.where((after > 0) & (after < tiny), tiny, np.where((after < 0) & (after > -tiny), 0.0, after))
    return _rounded_to(last, after) if is_float32 else (last, after)


def seen(forest: Forest, values: Floats) -> Floats:
    """The values as the model compares them."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64) if forest.input_dtype == "float32" else values


def _rounded_to(last: Floats, after: Floats) -> tuple[Floats, Floats]:
    """The last float64 value that rounds to the float32 `last`, and the first that rounds to its neighbour `after`."""
    middle = last + (after - last) / 2
    goes_up = middle.astype(np.float32) > last
    is_plain = np.isfinite(after) & (np.abs(last) > 0) & (np.abs(after) > 0)  # around 0 denormals are left out
    last_wide = np.where(goes_up, np.nextafter(middle, -np.inf), middle)
    after_wide = np.where(goes_up, middle, np.nextafter(middle, np.inf))
    return np.where(is_plain, last_wide, last), np.where(is_plain, after_wide, after)


def cells(question: RowQuestion, **options: bool) -> tuple[Floats, Floats]:
    """(n_cells, d) low and high ends of all cells that hold an allowed value."""
    ends = [pieces(question, f, **options) for f in range(len(question.row))]
    grid = np.meshgrid(*[np.arange(own.shape[1]) for own in ends], indexing="ij")
    low, high = np.stack([own[:, index.ravel()] for own, index in zip(ends, grid, strict=True)], axis=2)
    return low, high


def n_cells(forest: Forest) -> int:
    """How many cells the grid has."""
    inner = forest.left >= 0
    count = [len(np.unique(forest.threshold[inner & (forest.feature == f)])) + 2 for f in range(forest.n_features)]
    if forest.categories is not None:
        count = [max(own, forest.categories.n_labels(f) + 2) for f, own in enumerate(count)]
    return int(np.prod(count))


# ---- the distances


def measure(question: RowQuestion, points: Floats) -> Floats:
    """(n,) what each point costs."""
    delta = (points - question.row) / question.scale
    is_other = (points != question.row) & ~(np.isnan(points) & np.isnan(question.row))
    return _value(question.distance, question, np.where(np.isnan(delta) | question.is_category, is_other, delta))


def _value(distance: Distance, question: RowQuestion, delta: Floats) -> Floats:
    if isinstance(distance, Sum):
        return np.asarray(sum(factor * _value(part, question, delta) for factor, part in distance.parts))
    if isinstance(distance, Euclidean):
        return np.sqrt((distance.w * delta**2).sum(axis=1))
    if isinstance(distance, Manhattan):
        return np.asarray((distance.w * np.abs(delta)).sum(axis=1))
    if isinstance(distance, Chebyshev):
        return np.asarray((distance.w * np.abs(delta)).max(axis=1))
    if isinstance(distance, FewestFeatures):
        return np.asarray((distance.w * (delta != 0)).sum(axis=1))
    if isinstance(distance, Mahalanobis):
        assert distance.inverse is not None
        square = np.maximum(np.einsum("nf,fg,ng->n", delta, distance.inverse, delta), 0.0)
        return square if distance.squared else np.sqrt(square)
    assert isinstance(distance, Cosine)
    z = np.where(np.isnan(question.row) | question.is_category, 0.0, question.z)
    return 1.0 - _cosines(distance.w, z, z + delta)


def _cosines(w: Floats, z: Floats, y: Floats) -> Floats:
    """(n,) cosines between z and each y; 0 between zero and another, 1 between zero and zero."""
    zz, yy, zy = (w * z * z).sum(), (w * y * y).sum(axis=1), (w * z * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = zy / np.sqrt(zz) / np.sqrt(yy)
    return np.where((zz == 0) | (yy == 0), np.where(zz == yy, 1.0, 0.0), np.minimum(cosine, 1.0))


def is_coupled(distance: Distance) -> bool:
    """Whether the closest point of a cell is not the closest in every feature."""
    return isinstance(distance, Mahalanobis | Cosine)


def inside(question: RowQuestion, low: Floats, high: Floats) -> Floats:
    """(n_cells, d) the value of each cell closest to the row's; any of it where the row has none."""
    any_value = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    any_value = np.where(np.isnan(low), np.nan, any_value)
    return np.where(np.isnan(question.row), any_value, np.clip(question.row, low, high))


def closest(question: RowQuestion, low: Floats, high: Floats) -> Floats:
    """(n_cells,) distance from the row to each cell."""
    distance, row, scale = question.distance, question.row, question.scale
    if not is_coupled(distance):
        return measure(question, inside(question, low, high))
    known = ~np.isnan(row) & ~question.is_category
    step_low, step_high = ((end - row)[:, known] / scale[known] for end in (low, high))
    if isinstance(distance, Mahalanobis):
        assert distance.inverse is not None
        square = _smallest_quadratic(distance.inverse[np.ix_(known, known)], step_low, step_high)
        return square if distance.squared else np.sqrt(square)
    assert isinstance(distance, Cosine)
    z = question.z[known]
    return 1.0 - _largest_cosine(distance.w[known], z, z + step_low, z + step_high)


def _smallest_quadratic(q: Floats, low: Floats, high: Floats) -> Floats:
    """(n,) min of u' q u over each box low <= u <= high."""
    best = np.full(len(low), np.inf)
    for side in product((-1, 0, 1), repeat=low.shape[1]):
        chosen = np.array(side)
        u = np.where(chosen < 0, low, high)
        free, fixed = np.flatnonzero(chosen == 0), np.flatnonzero(chosen != 0)
        possible = np.isfinite(u[:, fixed]).all(axis=1)
        u[:, fixed] = np.where(possible[:, None], u[:, fixed], 0.0)
        if free.size:
            pull = -u[:, fixed] @ q[np.ix_(fixed, free)]
            u[:, free] = np.linalg.solve(q[np.ix_(free, free)], pull.T).T
        u = np.clip(u, low, high)
        possible &= np.isfinite(u).all(axis=1)
        u = np.where(possible[:, None], u, 0.0)
        best = np.where(possible, np.minimum(best, np.einsum("nf,fg,ng->n", u, q, u)), best)
    return np.maximum(best, 0.0)


def _largest_cosine(w: Floats, z: Floats, low: Floats, high: Floats) -> Floats:
    """(n,) the largest cosine between z and the points of each box."""
    n, d = low.shape
    has_zero = ((low <= 0) & (high >= 0)).all(axis=1)
    if d == 0 or not (z != 0).any():
        return np.where(has_zero, 1.0, 0.0)
    best = np.full(n, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # |z - s * box|^2 changes its form where s * low or s * high passes a component of z.
        turns = np.concatenate([z / low, z / high], axis=1)
        turns = np.sort(np.where(np.isfinite(turns) & (turns > 0), turns, np.inf), axis=1)
        turns = np.concatenate([np.zeros((n, 1)), turns, np.full((n, 1), np.inf)], axis=1)
        for begin, end in zip(turns.T[:-1], turns.T[1:], strict=True):
            inside = np.where(np.isfinite(end), (begin + end) / 2, 2 * begin + 1)[:, None]
            is_below, is_above = z < inside * low, z > inside * high
            side = np.where(is_below, low, np.where(is_above, high, 0.0))
            s = (w * z * side).sum(axis=1) / (w * side**2).sum(axis=1)
            s = np.where(np.isnan(s), inside[:, 0], s)
            s = np.clip(s, np.where(begin > 0, begin, inside[:, 0] * 1e-9), end)[:, None]
            ray = np.clip(z, s * low, s * high)
            cosine = np.where(np.isfinite(s[:, 0]), _cosines(w, z, ray), -np.inf)
            best = np.fmax(best, np.where((ray != 0).any(axis=1), cosine, -np.inf))
    for side in product((False, True), repeat=d):
        corner = np.where(side, high, low)
        possible = np.isfinite(corner).all(axis=1)
        cosine = _cosines(w, z, np.where(possible[:, None], corner, 0.0))
        best = np.fmax(best, np.where(possible, cosine, -np.inf))
    return np.where(has_zero, np.maximum(best, 0.0), best)


# ---- the rules


def obeys(question: RowQuestion, points: Floats) -> Bools:
    """(n,) whether each point obeys the relations between columns."""
    good = np.ones(len(points), bool)
    for rule in question.rules:
        kind = type(rule).__name__.removesuffix("Rule")
        for i, point in enumerate(points):
            if kind == "AtMost":
                n = sum(not _same(point[f], question.row[f]) for f in rule.columns)
                good[i] &= n <= rule.n
            elif kind == "Together":
                changed = {_same(point[f], question.row[f]) for f in rule.columns}
                good[i] &= len(changed) == 1
            elif kind == "Implies":
                good[i] &= not _meets(rule.cause, point) or _meets(rule.effect, point)
            else:
                terms = [c * point[f] for f, c in zip(rule.columns, rule.coefficient, strict=True)]
                good[i] &= bool(np.isnan(sum(terms)) or sum(terms) <= rule.bound + 1e-9)
    return good


def _same(a: float, b: float) -> bool:
    return bool(a == b or (np.isnan(a) and np.isnan(b)))


def _meets(cells: Any, point: Floats) -> bool:
    value = point[cells.column]
    if np.isnan(value):
        return False
    if cells.categories is None:
        return bool(cells.low <= value <= cells.high)
    return bool(value < len(cells.categories) and cells.categories[int(value)])


# ---- the answer


def optimum(question: RowQuestion) -> float:
    """The distance of the closest answer, infinity where there is none.

    Under the coupled distances a float32 grain counts as any float.
    """
    low, high = cells(question, single=is_coupled(question.distance))
    if not len(low):
        return float("inf")
    points = inside(question, low, high)
    answers = question.answers(points) & obeys(question, points)
    if not answers.any():
        return float("inf")
    cost, points = closest(question, low[answers], high[answers]), points[answers]
    if question.room is None:
        return float(cost.min())
    by_cost = np.argsort(cost, kind="stable")
    return next((float(cost[k]) for k in by_cost if has_room(question, points[k])), float("inf"))


# ---- room to move


def reach(question: RowQuestion, f: int, value: float) -> tuple[float, float]:
    """How far down and up from an answer's value it has to hold; the domain's ends aside."""
    room, own = question.room, question.row[f]
    if np.isnan(value) or np.isnan(own) or value == own or question.is_category[f]:
        return value, value
    change, size = abs(value - own), 4 * np.finfo(float).eps * (abs(value) + abs(own))
    beyond = room.above_share[f] * change + room.above_units[f]
    short = room.below_share[f] * change + room.below_units[f]
    beyond, short = (way + size if way > 0 else 0.0 for way in (beyond, short))
    if value > own:
        return max(value - short, own), value + beyond
    return value - beyond, min(value + short, own)


def within_reach(question: RowQuestion, f: int, value: float) -> Floats:
    """A value of every piece of a column that who acts on an answer may end up in."""
    low, high = reach(question, f, value)
    if not low < high:
        return np.array([value])
    held = pieces(replace(question, room=None), f)
    held = held[:, ~np.isnan(held[0])]
    first, last = np.maximum(held[0], low), np.minimum(held[1], high)
    if question.grain[f] == INTEGER:
        first = np.ceil(first)
    elif question.grain[f] == FLOAT32:
        first = round_up(first)
    elif question.grain[f] == LISTED:
        first = np.where(np.isin(held[0], question.listed[f]), held[0], np.inf)
        last = np.where(held[0] >= low, last, -np.inf)
    return np.append(first[first <= last], value)


def has_room(question: RowQuestion, point: Floats) -> bool:
    """Whether all points around an answer have the wanted prediction."""
    values = [within_reach(question, f, point[f]) for f in range(len(point))]
    every = np.stack([own.ravel() for own in np.meshgrid(*values, indexing="ij")], axis=1)
    forest = question.forest if question.decides is None else question.decides
    return bool(question.flips(predict(forest, every)).all())


def _where_room_ends(question: RowQuestion, f: int, last: Floats, after: Floats) -> list[float]:
    """Beside all values of answers from which the room ends just before or just after a cell's end."""
    room, own = question.room, question.row[f]
    if question.grain[f] == INTEGER:
        last, after = np.floor(last), np.ceil(after)
    elif question.grain[f] == FLOAT32:
        last, after = round_down(last), round_up(after)
    found = []
    for end in np.concatenate([last, after]):
        for share, units in ((room.above_share[f], room.above_units[f]), (-room.below_share[f], -room.below_units[f])):
            if (share or units) and np.isfinite(share):
                size = (abs(end - own) - units) / (1 + share)
                for side in (1.0, -1.0) if end == own else (np.sign(end - own),):
                    value = own + size * side
                    width = 64 * np.spacing(max(abs(value), abs(own))) / (1 + share)
                    found += [value - width, value + width]
    return [float(value) for value in found if np.isfinite(value)]


def faults(question: RowQuestion, point: Floats, distance: float) -> list[str]:
    """What is wrong with an answer: nothing, hopefully."""
    found = []
    known = ~np.isnan(point) & ~question.is_category
    was_known = ~np.isnan(question.row)
    if (np.isnan(point) & ~question.may_lack).any():
        return ["a value is missing that may not"]
    if (~np.isnan(point) & ~was_known & ~question.may_leave).any():
        return ["a missing value is filled that may not"]
    for f in np.flatnonzero(question.is_category & ~np.isnan(point)):
        if point[f] not in pieces(question, f)[0]:
            found.append("a category that is not allowed")
    if not obeys(question, point[None, :])[0]:
        found.append("breaks a rule")
    for f, own in question.listed.items():
        if not np.isnan(point[f]) and point[f] not in own and (question.strict[f] or point[f] != question.row[f]):
            found.append("a value that is not listed")
    moved = known & (point != question.row)
    if not question.answers(point[None, :])[0]:
        found.append("the prediction does not flip")
    if question.room is not None and not has_room(question, point):
        found.append("there is no room to move")
    if ((point < question.low) | (point > question.high))[known].any():
        found.append("outside its box")
    whole = point == np.round(point)
    with np.errstate(over="ignore"):
        fits = point == point.astype(np.float32).astype(np.float64)
    if (moved & (question.grain == INTEGER) & ~whole).any():
        found.append("an integer is none")
    if (moved & (question.grain == FLOAT32) & ~fits).any():
        found.append("a float32 is none")
    own = float(measure(question, point[None, :])[0])
    if not np.isclose(own, distance, rtol=1e-7, atol=1e-9):
        found.append(f"its distance is {own}, not {distance}")
    return found


def show(question: RowQuestion) -> dict[str, Any]:
    """The question's arrays, for the report of a failure."""
    names = ("row", "low", "high", "grain", "offset", "scale", "distance", "origin", "target")
    return {name: getattr(question, name) for name in names}
