"""Around a point without the wanted outcome, a box of cells on which a model provably refuses it everywhere.

Every tree reaches some of its leaves in a box. Where the sum of the best of them is not enough, nothing in the box is.
The box starts as the point's own cell and grows column by column, each side as far as that holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.model.forest import Bools, Floats, Forest, Ints

_LARGEST = 40_000_000  # leaves times columns: in larger models a box is the point's own cell
_SAFE = 1e-6  # of a probability's odds
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Refused:
    """A box of points that a model refuses: numbers between two ends, a missing value alone, a set of categories."""

    low: Floats  # (n_features,) NaN where the value is missing
    high: Floats  # (n_features,)
    categories: dict[int, Bools]  # by column, (n_cells,)


@dataclass(eq=False)
class LeafBoxes:
    """Where every leaf of a forest lies on its grid."""

    low: Ints  # (n_leaves, n_features) first cell
    high: Ints
    takes_missing: Bools  # (n_leaves, n_features) whether a missing value comes there
    cells: dict[int, Bools]  # by column of categories, (n_leaves, n_cells)
    tree: Ints  # (n_leaves,)
    margin: float  # by how much a sum can be off


_leaves: WeakKeyDictionary[Forest, LeafBoxes] = WeakKeyDictionary()


def leaves_of(forest: Forest) -> LeafBoxes:
    """The leaves' boxes, derived once."""
    if forest not in _leaves:
        _leaves[forest] = _derived(forest)
    return _leaves[forest]


def _derived(forest: Forest) -> LeafBoxes:
    grid, n_nodes = kernels.grid_of(forest), len(forest.left)
    n_cells = np.diff(grid.cell_start)
    low = np.zeros((n_nodes, forest.n_features), np.int32)
    high = np.tile((n_cells - 1).astype(np.int32), (n_nodes, 1))
    missing = np.ones((n_nodes, forest.n_features), bool)
    cells = {int(j): np.ones((n_nodes, n_cells[j]), bool) for j in np.flatnonzero(grid.has_sets)}
    sets = np.unpackbits(grid.sets.astype("<u8").view(np.uint8), axis=1, bitorder="little").astype(bool)
    level = np.asarray(forest.tree_start[:-1], np.intp)
    while level.size:
        inner = level[forest.left[level] >= 0]
        feature, by_set = forest.feature[inner], grid.set_of_node[inner] >= 0
        split = grid.split[inner] - grid.start[feature]
        for child, is_left in ((forest.left[inner], True), (forest.right[inner], False)):
            low[child], high[child], missing[child] = low[inner], high[inner], missing[inner]
            missing[child, feature] &= forest.default_left[inner] == is_left
            plain, own = child[~by_set], feature[~by_set]
            if is_left:
                high[plain, own] = np.minimum(high[plain, own], split[~by_set])
            else:
                low[plain, own] = np.maximum(low[plain, own], split[~by_set] + 1)
            for j, mask in cells.items():
                mask[child] = mask[inner]
                chosen = by_set & (feature == j)
                members = sets[grid.set_of_node[inner[chosen]]][:, : n_cells[j]]
                mask[child[chosen]] &= members if is_left else ~members
        level = np.concatenate([forest.left[inner], forest.right[inner]]).astype(np.intp)
    is_leaf = forest.left < 0
    first: Columns = (np.cumsum(is_leaf) - is_leaf)[forest.tree_start[:-1]]
    size = np.maximum.reduceat(np.abs(forest.leaf_value), first, axis=0).sum() + np.abs(forest.base_score).sum()
    margin = 16 * float(np.finfo(forest.score_dtype).eps) * (forest.n_trees + 2) * float(size + 1e-300)
    return LeafBoxes(
        low[is_leaf], high[is_leaf], missing[is_leaf], {j: mask[is_leaf] for j, mask in cells.items()},
        forest.tree_of_leaf, margin,
    )  # fmt: skip


def refused_around(
    forest: Forest, point: Floats, wanted: int, domain: tuple[Floats, Floats], order: Columns
) -> Refused:
    """A box around a point that the forest refuses.

    wanted: the class to reach, or, as -1 - k, any but class k. `order`: the columns in the order in which it grows.
    """
    grid = kernels.grid_of(forest)
    code = grid.encode(forest, point[None])[0].astype(np.intp)
    box = _Growing(forest, point, code, wanted, grid.has_sets) if forest.leaf_value.size else None
    ends = _codes(forest, domain, np.diff(grid.cell_start))
    if box is not None and box.can_grow:
        for j in order.tolist():
            if not np.isnan(point[j]) or grid.has_sets[j]:
                box.grow(j, int(ends[0][j]), int(ends[1][j]))
    first, last = (code, code) if box is None else (box.first, box.last)
    cells = {} if box is None else box.cells
    low, high = point.copy(), point.copy()
    numbers = np.flatnonzero(~np.isnan(point) & ~grid.has_sets)
    low[numbers] = np.fmax(grid.low[grid.cell_start[numbers] + first[numbers]], domain[0][numbers])
    high[numbers] = np.fmin(grid.high[grid.cell_start[numbers] + last[numbers]], domain[1][numbers])
    low[numbers], high[numbers] = np.fmin(low, point)[numbers], np.fmax(high, point)[numbers]
    return Refused(low, high, cells)


def _codes(forest: Forest, domain: tuple[Floats, Floats], n_cells: Columns) -> tuple[Columns, Columns]:
    """The cells of the domain's ends; where it has none, and in columns of categories, the first and the last one."""
    known = [np.nan_to_num(end, nan=0.0, posinf=1e300, neginf=-1e300) for end in domain]
    if forest.input_dtype == "float32":
        known = [np.clip(end, -3e38, 3e38) for end in known]
    grid = kernels.grid_of(forest)
    first, last = (grid.encode(forest, end[None])[0].astype(np.intp) for end in known)
    return first, np.minimum(last, n_cells - 1)


class _Growing:
    """A box of cells that grows as long as the best leaves in it are not enough."""

    def __init__(self, forest: Forest, point: Floats, code: Columns, wanted: int, has_sets: Bools) -> None:
        self.first, self.last, self.has_sets = code.copy(), code.copy(), has_sets
        n_cells = np.diff(kernels.grid_of(forest).cell_start)
        self.cells = {int(j): np.arange(n_cells[j]) == code[j] for j in np.flatnonzero(has_sets)}
        self.can_grow = not forest.voices and forest.n_leaves * forest.n_features <= _LARGEST  # voices are no sum
        if not self.can_grow:
            return
        self.leaves, self.n_trees = leaves_of(forest), forest.n_trees
        own = self.leaves
        self.is_off = np.where(np.isnan(point), ~own.takes_missing, (own.low > code) | (own.high < code))
        for j, mask in own.cells.items():
            self.is_off[:, j] = ~mask[:, code[j]]
        self.n_off = self.is_off.sum(axis=1)
        self.can_grow = self._choose(_leads(forest, wanted))

    def _choose(self, leads: list[tuple[Floats, Floats]]) -> bool:
        """Take the reason for the refusal that is the clearest at the point."""
        best = np.inf
        for lead, base in leads:
            self.lead, self.base = lead, base
            self.most = self._most(np.flatnonzero(self.n_off == 0), np.full((self.n_trees, lead.shape[1]), -np.inf))
            worst = float(self._total(self.most).max())
            if worst < best:
                best, kept = worst, (lead, base, self.most)
        if not best < -self.leaves.margin:
            return False
        self.lead, self.base, self.most = kept
        return True

    def _most(self, leaves: Columns, most: Floats) -> Floats:
        most = most.copy()
        np.maximum.at(most, self.leaves.tree[leaves], self.lead[leaves])
        return most

    def _total(self, most: Floats) -> Floats:
        return np.asarray(most.sum(axis=0) + self.base)

    def _is_refused(self, leaves: Columns) -> bool:
        return bool((self._total(self._most(leaves, self.most)) < -self.leaves.margin).all())

    def grow(self, j: int, first: int, last: int) -> None:
        """Both sides of a column of numbers, up to its domain's ends; or one category after the other."""
        if self.has_sets[j]:
            return self._grow_categories(j)
        near = np.flatnonzero((self.n_off == 1) & self.is_off[:, j])
        above = near[self.leaves.low[near, j] > self.last[j]]
        above = above[np.argsort(self.leaves.low[above, j], kind="stable")]
        n = self._reach(above)
        top = max(last, int(self.last[j])) if n == len(above) else int(self.leaves.low[above[n], j]) - 1
        self.last[j] = min(top, max(last, int(self.last[j])))
        self.most = self._most(above[self.leaves.low[above, j] <= self.last[j]], self.most)
        below = near[self.leaves.high[near, j] < self.first[j]]
        below = below[np.argsort(-self.leaves.high[below, j], kind="stable")]
        n = self._reach(below)
        bottom = min(first, int(self.first[j])) if n == len(below) else int(self.leaves.high[below[n], j]) + 1
        self.first[j] = max(bottom, min(first, int(self.first[j])))
        self.most = self._most(below[self.leaves.high[below, j] >= self.first[j]], self.most)
        self._update(j, (self.leaves.low[:, j] > self.last[j]) | (self.leaves.high[:, j] < self.first[j]))
        return None

    def _reach(self, leaves: Columns) -> int:
        """How many of the leaves, in this order, may be reached besides, so that it stays refused."""
        low, high = 0, len(leaves)
        if self._is_refused(leaves):
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_refused(leaves[:middle]) else (low, middle)
        return low

    def _grow_categories(self, j: int) -> None:
        mask = self.leaves.cells[j]
        for cell in np.flatnonzero(~self.cells[j]):
            near = np.flatnonzero((self.n_off == 1) & self.is_off[:, j] & mask[:, cell])
            if self._is_refused(near):
                self.cells[j][cell] = True
                self.most = self._most(near, self.most)
                self._update(j, self.is_off[:, j] & ~mask[:, cell])

    def _update(self, j: int, is_off: Bools) -> None:
        self.n_off += is_off.astype(np.int64) - self.is_off[:, j]
        self.is_off[:, j] = is_off


def _leads(forest: Forest, wanted: int) -> list[tuple[Floats, Floats]]:
    """Reasons to refuse: what leaves add to sums, and where these begin; one is enough, if all its sums are < 0."""
    value, base, divisor = forest.leaf_value, forest.base_score, forest.divisor
    if forest.decision == "argmax":
        if wanted >= 0:
            others = [k for k in range(forest.n_outputs) if k != wanted]
            return [((value[:, wanted] - value[:, k])[:, None], base[[wanted]] - base[k]) for k in others]
        kept = -1 - wanted
        others = [k for k in range(forest.n_outputs) if k != kept]
        return [(value[:, others] - value[:, [kept]], base[others] - base[kept])]
    is_yes = (wanted == 1) if wanted >= 0 else (-1 - wanted == 0)
    if forest.decision == "likely" and forest.link == "softmax":
        return _of_shares(forest, is_yes)
    column = forest.favoured if forest.decision == "likely" else 0
    score, start = value[:, [column]], base[[column]]
    cut = forest.cut * divisor
    if forest.decision != "between":
        return [(score, start - cut)] if is_yes else [(-score, cut - start)]
    high = forest.cut_high * divisor
    if is_yes:
        return [(score, start - cut), (-score, high - start)]
    return [(np.hstack([-score, score]), np.concatenate([cut - start, start - high]))]


def _of_shares(forest: Forest, is_yes: bool) -> list[tuple[Floats, Floats]]:
    """Of a probability that is a softmax share: it is too small where one other class is far enough ahead."""
    value, base, own = forest.leaf_value, forest.base_score, forest.favoured
    others = [k for k in range(forest.n_outputs) if k != own]
    odds = float(np.log(forest.cut / (1 - forest.cut)))
    if is_yes:
        less = (odds - _SAFE) * forest.divisor
        return [((value[:, own] - value[:, k])[:, None], base[[own]] - base[k] - less) for k in others]
    more = (odds + float(np.log(len(others))) + _SAFE) * forest.divisor
    return [(value[:, others] - value[:, [own]], base[others] - base[own] + more)]
