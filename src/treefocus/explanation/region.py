"""Around an answer, a box in which the model's answer provably stays the same: how exactly one has to hit it.

In a box, each tree reaches some of its leaves. If the answer holds even when every tree gives the worst of these, it
holds everywhere in the box. The box starts as the answer's own cell of the threshold grid, on which the model is
constant, and grows in the features that change: each side in turn, by steps that double as long as the worst case still
holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels import reference
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.grid import Grid
from treefocus.model.members import EVERY_CLASS, Member
from treefocus.problem.problem import Problem
from treefocus.render import recourse
from treefocus.render.phrases import DEFAULT
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, LISTED, Schema

_NEARLY = 1e-6  # of the distance of two numbers, by which it may be off
_SHOWN = 4  # digits of the ends that are told
Labels = tuple[tuple[Any, ...] | None, ...] | None


@dataclass(frozen=True)
class Leeway:
    """Where a feature may end up, both ends included; the other features of the region anywhere in theirs.

    An end is None where the model has no threshold beyond it: the answer then holds as far as values go.
    """

    feature: str
    low: float | None
    high: float | None
    shown: tuple[float, float] = (np.nan, np.nan)  # both ends in few digits, rounded inward
    categories: tuple[Any, ...] = ()  # that do, of a column of categories


@dataclass(frozen=True, eq=False)
class Region:
    """A box around an answer, proven to get the same answer everywhere in it."""

    leeways: tuple[Leeway, ...]  # of the features that change, the largest change first
    low: Floats  # (n_features,) NaN where the value is missing
    high: Floats  # (n_features,)
    categories: dict[int, Bools]  # by column, which of its cells belong to the box
    schema: Schema

    def contains(self, points: Floats) -> Bools:
        """(n_points,) whether each lies in the box."""
        inside = ((points >= self.low) & (points <= self.high)) | (np.isnan(points) & np.isnan(self.low))
        for column, allowed in self.categories.items():
            cell = np.where(np.isnan(points[:, column]), len(allowed) - 1, points[:, column]).astype(np.intp)
            inside[:, column] = allowed[np.clip(cell, 0, len(allowed) - 1)]
        return np.asarray(inside.all(axis=1))

    def to_text(self, language: str = DEFAULT) -> str:
        """The leeways as a sentence."""
        return recourse.region(self, language)


@dataclass(eq=False)
class _Box:
    """Cells of the grid: a range of codes a feature, a set where it has sets."""

    first: NDArray[np.intp]  # (n_features,)
    last: NDArray[np.intp]  # (n_features,)
    is_open: Bools  # (n_features, n_cells) read where a feature has sets

    def copy(self) -> _Box:
        return _Box(self.first.copy(), self.last.copy(), self.is_open.copy())


_MEAN_MARGIN = 1e-7  # of a mean of probabilities or votes, for what exponentials round


class _Worst:
    """The worst that a forest's trees can say in a box."""

    def __init__(self, forest: Forest, grid: Grid, is_missing: Bools) -> None:
        self.forest, self.grid, self.is_missing = forest, grid, is_missing
        self.width = int(np.diff(grid.cell_start).max())
        words = np.ascontiguousarray(grid.sets.astype("<u8")).view(np.uint8)
        bits = np.unpackbits(words, axis=1, bitorder="little").astype(bool)
        self.members = np.zeros((len(grid.sets), self.width), bool)
        self.members[:, : min(self.width, bits.shape[1])] = bits[:, : self.width]
        self.leaf_start: NDArray[np.intp] = (np.cumsum(forest.left < 0) - (forest.left < 0))[forest.tree_start[:-1]]
        size = np.maximum.reduceat(np.abs(forest.leaf_value), self.leaf_start, axis=0).sum()
        dtypes = [one.score_dtype for one in forest.members] or [forest.score_dtype]
        dtypes += [voice.score_dtype for rule in forest.members or [forest] for voice in rule.voices]
        unit = max(np.finfo(dtype).eps for dtype in dtypes)
        self.margin = 8 * unit * (forest.n_trees + 2) * float(size + np.abs(forest.base_score).sum() + 1e-300)

    def reached(self, box: _Box) -> Bools:
        """(n_leaves,) the leaves that some point of the box reaches."""
        forest, grid = self.forest, self.grid
        is_reached = np.zeros(len(forest.left), bool)
        level = np.asarray(forest.tree_start[:-1], np.intp)
        while level.size:
            is_reached[level] = True
            inner = level[forest.left[level] >= 0]
            feature = forest.feature[inner]
            split = grid.split[inner] - grid.start[feature]
            left, right = box.first[feature] <= split, box.last[feature] > split
            missing = self.is_missing[feature]
            left = np.where(missing, forest.default_left[inner], left)
            right = np.where(missing, ~forest.default_left[inner], right)
            by_set = np.flatnonzero(grid.set_of_node[inner] >= 0)
            members = self.members[grid.set_of_node[inner[by_set]]]
            is_open = box.is_open[feature[by_set]]
            left[by_set], right[by_set] = (members & is_open).any(axis=1), (~members & is_open).any(axis=1)
            level = np.concatenate([forest.left[inner[left]], forest.right[inner[right]]]).astype(np.intp)
        return np.asarray(is_reached[forest.left < 0])

    def least(self, value: Floats, base: float, is_reached: Bools) -> float:
        """The smallest sum of one leaf's value a tree."""
        return float(np.minimum.reduceat(np.where(is_reached, value, np.inf), self.leaf_start).sum() + base)

    def holds(self, box: _Box, answer: int) -> bool:
        """Whether every point of the box gets this class, from every model where several have to agree."""
        is_reached, tree, score = self.reached(box), 0, 0
        if not self.forest.members:
            return self._gives(self.forest, self.forest.leaf_value, self.forest.base_score, answer, is_reached)
        for one in self.forest.members:
            is_own = (self.forest.tree_of_leaf >= tree) & (self.forest.tree_of_leaf < tree + one.n_trees)
            value = np.where(is_own[:, None], self.forest.leaf_value[:, : one.n_outputs], 0.0)
            base = self.forest.base_score[score : score + one.n_scores]
            own = answer if answer in one.to_class else EVERY_CLASS
            if not self._gives(one, value, base, one.to_class.index(own), is_reached, tree):
                return False
            tree, score = tree + one.n_trees, score + one.n_scores
        return True

    def _mean(self, rule: Forest | Member, base: Floats, first_tree: int, side: int, is_reached: Bools) -> float:
        """What the voices show in the mean at least, or at most with -1, where their trees begin at the first one."""
        tree_of_leaf, sums, tree = self.forest.tree_of_leaf, [], first_tree
        for voice, start in zip(rule.voices, base, strict=True):
            is_own = (tree_of_leaf >= tree) & (tree_of_leaf < tree + voice.n_trees)
            value = side * np.where(is_own, self.forest.leaf_value[:, 0], 0.0)
            least = self.least(value, side * float(start), is_reached) - self.margin
            sums.append(side * least / voice.divisor)
            tree += voice.n_trees
        return float(reference.mean_shown(rule, np.array([sums]))[0, 0])

    def _gives(
        self, forest: Forest | Member, value: Floats, base: Floats, answer: int, is_reached: Bools, first_tree: int = 0
    ) -> bool:
        """Whether a model with these values of the leaves gives the class, whatever leaves of those are reached."""
        margin = self.margin
        if forest.voices:
            if answer == 1:
                return self._mean(forest, base, first_tree, 1, is_reached) > forest.cut + _MEAN_MARGIN
            return self._mean(forest, base, first_tree, -1, is_reached) < forest.cut - _MEAN_MARGIN
        if forest.decision == "argmax" or (forest.decision == "likely" and forest.link == "softmax"):
            own = answer if forest.decision == "argmax" else forest.favoured
            leads = [
                (sign * self.least(sign * (value[:, own] - value[:, k]), sign * float(base[own] - base[k]), is_reached))
                for sign in ((1,) if forest.decision == "argmax" or answer == 1 else (-1,))
                for k in range(forest.n_outputs)
                if k != own
            ]
            if forest.decision == "argmax":
                return bool(min(leads) > margin)
            share = 1.0 / (1.0 + np.exp(-np.array(leads) / forest.divisor).sum())
            return bool(share > forest.cut + 1e-6 if answer == 1 else share < forest.cut - 1e-6)
        column = forest.favoured if forest.decision == "likely" else 0
        low = self.least(value[:, column], float(base[column]), is_reached) / forest.divisor
        high = -self.least(-value[:, column], -float(base[column]), is_reached) / forest.divisor
        margin /= forest.divisor
        if forest.decision == "between":
            if answer == 1:
                return bool(low > forest.cut + margin and high < forest.cut_high - margin)
            return bool(high < forest.cut - margin or low > forest.cut_high + margin)
        return bool(low > forest.cut + margin if answer == 1 else high < forest.cut - margin)


def region_of(problem: Problem, point: Floats, changed: Iterable[int], schema: Schema, labels: Labels) -> Region:
    """The region around an answer to the problem's one row; `changed` features grow, in this order."""
    if problem.relaxed is not None and not problem.is_valid(point[None])[0]:  # a row that stays as it is
        problem = problem.relaxed
    forest, batch = problem.forest, problem.batch
    grid = kernels.grid_of(forest)
    code = grid.encode(forest, point[None])[0].astype(np.intp)
    n_cells = np.diff(grid.cell_start)
    is_missing = np.isnan(point) & ~grid.has_sets
    worst = _Worst(forest, grid, is_missing)
    box = _Box(code.copy(), code.copy(), np.arange(worst.width)[None, :] == code[:, None])
    is_category = batch.is_category
    answer = int(kernels.predict(forest, point[None])[0])
    order = [j for j in changed if not np.isnan(point[j])]
    numbers = [j for j in order if not is_category[j]]
    lowest, highest = _ends(problem, grid, n_cells)
    box = _grown(worst, box, answer, numbers, (lowest, highest))
    for j in order:
        if is_category[j]:
            box = _with_categories(worst, box, answer, j, problem)
    low, high = _values(problem, grid, box, point, numbers)
    cells = {int(j): box.is_open[j, : n_cells[j]].copy() for j in np.flatnonzero(is_category)}
    is_open = np.array([box.first == 0, box.last == n_cells - 1 - grid.has_sets])
    told = [
        _leeway(
            schema.names[j],
            (float(low[j]), float(high[j])),
            is_open[:, j],
            cells.get(j),
            None if labels is None else labels[j],
        )
        for j in order
    ]
    return Region(tuple(told), low, high, cells, schema)


def is_sliver(problem: Problem, region: Region, changed: Iterable[int]) -> bool:
    """Whether a region is narrower in some of these columns than the training rows' different numbers are apart.

    A column of whole numbers, steps or listed values can be hit as exactly as it is told, and rows without data, or
    with two different numbers, say nothing of their precision.
    """
    if problem.examples is None:
        return False
    is_fine = (problem.batch.grain == ANY_FLOAT) | (problem.batch.grain == FLOAT32)
    for j in changed:
        if is_fine[j] and not problem.batch.is_category[j] and not np.isnan(region.low[j]):
            apart = np.diff(np.unique(problem.examples.rows[:, j]))
            apart = apart[apart > 0]  # NaN is no number
            if apart.size > 1 and region.high[j] - region.low[j] < apart.min() * (1 - _NEARLY):
                return True
    return False


def _ends(problem: Problem, grid: Grid, n_cells: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(n_features,) the first and the last cell that the row may be in."""
    sides = problem.batch.low, problem.batch.high
    known = [np.nan_to_num(end, nan=0.0, posinf=1e300, neginf=-1e300) for end in sides]
    if problem.forest.input_dtype == "float32":
        known = [np.clip(end, -3e38, 3e38) for end in known]
    first, last = (grid.encode(problem.forest, end)[0].astype(np.intp) for end in known)
    return first, np.minimum(last, n_cells - 1 - grid.has_sets)


def _grown(
    worst: _Worst, box: _Box, answer: int, order: list[int], ends: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> _Box:
    """The box, grown on each side in turn by steps that double where they hold and halve where they do not."""
    steps = {(j, side): 1 for j in order for side in (1, -1)}
    has_failed: set[tuple[int, int]] = set()
    while steps:
        for key in list(steps):
            j, side = key
            room = int(ends[1][j] - box.last[j]) if side > 0 else int(box.first[j] - ends[0][j])
            step = min(steps[key], room)
            if step <= 0:
                del steps[key]
                continue
            larger = box.copy()
            if side > 0:
                larger.last[j] += step
            else:
                larger.first[j] -= step
            larger.is_open[j, larger.first[j] : larger.last[j] + 1] = True
            if worst.holds(larger, answer):
                box, steps[key] = larger, step if key in has_failed else 2 * step
            elif step == 1:
                del steps[key]
            else:
                has_failed.add(key)
                steps[key] = step // 2
    return box


def _with_categories(worst: _Worst, box: _Box, answer: int, j: int, problem: Problem) -> _Box:
    """The box with every other category of a column that does, one after the other."""
    choices = problem.batch.choices
    place = int(np.flatnonzero(choices.column == j)[0])
    allowed = np.isfinite(choices.delta[0, choices.start[place] : choices.start[place + 1]])
    for cell in np.flatnonzero(allowed[:-1]):
        larger = box.copy()
        larger.is_open[j, cell] = True
        if worst.holds(larger, answer):
            box = larger
    return box


def _values(problem: Problem, grid: Grid, box: _Box, point: Floats, numbers: list[int]) -> tuple[Floats, Floats]:
    """(n_features,) the ends of the box, numbers that the columns can hold; an unchanged value has no room."""
    low, high, batch = point.copy(), point.copy(), problem.batch
    for j in numbers:
        begin = grid.cell_start[j]
        low[j] = max(grid.low[begin + box.first[j]], batch.low[0, j])
        high[j] = min(grid.high[begin + box.last[j]], batch.high[0, j])
        if batch.grain[j] == LISTED:
            listed = batch.lists.of(j)
            inside = np.append(listed[(listed >= low[j]) & (listed <= high[j])], point[j])
            low[j], high[j] = inside.min(), inside.max()
    ends = batch.lists.inside(low, high, batch.grain)
    return np.where(low != point, ends[0], low), np.where(high != point, ends[1], high)


def _leeway(
    name: str, ends: tuple[float, float], is_open: Bools, cells: Bools | None, labels: tuple[Any, ...] | None
) -> Leeway:
    if cells is not None:
        own = labels if labels is not None else tuple(range(len(cells)))
        return Leeway(
            name, None, None, categories=tuple(label for label, is_in in zip(own, cells, strict=False) if is_in)
        )
    low, high = ends
    shown = _inward(low, high, -1), _inward(high, low, 1)
    shown = shown if shown[0] <= shown[1] else ends
    return Leeway(name, None if is_open[0] else low, None if is_open[1] else high, shown=shown)


def _inward(end: float, other: float, side: int) -> float:
    """An end in few digits, rounded towards the other one but not beyond it."""
    if not np.isfinite(end) or end == 0:
        return end
    short = float(Context(_SHOWN, ROUND_FLOOR if side > 0 else ROUND_CEILING).create_decimal(repr(float(end))))
    return short if min(end, other) <= short <= max(end, other) else end
