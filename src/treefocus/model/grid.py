"""The cells on which a forest is constant.

Sort the unique thresholds of a feature, t_0 < t_1 < ...: they cut the axis into cells (-inf, t_0], (t_0, t_1], ...
A value's code is its cell's number, the count of thresholds below it. Every node then reads `code <= split`,
every point is a vector of small integers, and no comparison of floats is left to go wrong.

The categories of a categorical feature are its cells, one more stands for the unseen ones, and nodes read "the cell is
in my set". Such a feature, and a numeric one whose missing value can be chosen, has a last cell for the missing value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Bools, Floats, Forest, Ints

MISSING = -1  # the code of a missing value


@dataclass(frozen=True, eq=False)
class Grid:
    """Thresholds per feature, as the model sees them: rounded down to a value of its input dtype."""

    start: Ints  # (n_features + 1,) where a feature's thresholds begin
    threshold: Floats  # (n_thresholds,) ascending within a feature
    split: Ints  # (n_nodes,) index into `threshold`, -1 at a leaf and at a split by a set
    cell_start: Ints  # (n_features + 1,) where a feature's cells begin
    low: Floats  # (n_cells,) smallest float64 that the model's cast brings into each cell, NaN for a missing value's
    high: Floats  # (n_cells,) largest of them
    has_sets: Bools  # (n_features,) whose nodes split by sets of cells, the last cell for the missing value
    set_of_node: Ints  # (n_nodes,) the set of cells that go left, -1 where a threshold decides
    sets: NDArray[np.uint64]  # (n_sets, n_words) bit c of a set: cell c goes left

    @classmethod
    def of(cls, forest: Forest) -> Grid:
        """Derive the grid of a forest."""
        start, values, split = _thresholds(forest)
        has_sets = np.zeros(forest.n_features, bool)
        if forest.categories is not None:
            has_sets |= forest.categories.is_categorical
        if forest.missing_is_choice is not None:
            has_sets |= forest.missing_is_choice
        low, high = [], []
        for f in range(forest.n_features):
            own = values[start[f] : start[f + 1]]
            if forest.categories is not None and forest.categories.labels[f] is not None:
                ends = np.arange(len(own) + 1.0)
                below, above = ends, ends
            else:
                last, first = cell_ends(own, forest.input_dtype)
                below, above = np.concatenate([[-np.inf], first]), np.concatenate([last, [np.inf]])
            missing = [np.nan] * int(has_sets[f])
            low.append(np.concatenate([below, missing]))
            high.append(np.concatenate([above, missing]))
        cell_start = np.concatenate([[0], np.cumsum([len(cells) for cells in low])]).astype(np.int32)
        set_of_node, sets = _sets(forest, has_sets, split - start[np.maximum(forest.feature, 0)], np.diff(cell_start))
        split = np.where(set_of_node >= 0, -1, split).astype(np.int32)
        return cls(
            start, values, split, cell_start, np.concatenate(low), np.concatenate(high), has_sets, set_of_node, sets
        )

    def encode(self, forest: Forest, rows: Floats) -> Ints:
        """(n_rows, n_features) codes of the rows."""
        seen = as_input(rows, forest.input_dtype)
        codes = np.empty(rows.shape, np.int32)
        for f in range(forest.n_features):
            codes[:, f] = np.searchsorted(self.threshold[self.start[f] : self.start[f + 1]], seen[:, f], side="left")
        missing = np.where(self.has_sets, np.diff(self.cell_start) - 1, MISSING)
        return np.where(np.isnan(rows), missing, codes).astype(np.int32)

    def goes_left(self, forest: Forest, node: Ints, code: Ints) -> Bools:
        """Whether each of these inner nodes sends the code it is given left; both (n,)."""
        below = code <= self.split[node] - self.start[forest.feature[node]]
        left = np.where(code == MISSING, forest.default_left[node], below)
        by_set = np.flatnonzero(self.set_of_node[node] >= 0)
        cell = code[by_set]
        word = self.sets[self.set_of_node[node[by_set]], cell // 64]
        left[by_set] = (word >> (cell % 64).astype(np.uint64)) & np.uint64(1)
        return left


def _thresholds(forest: Forest) -> tuple[Ints, Floats, Ints]:
    """Thresholds per feature, and each node's; between categories they stand halfway."""
    inner = np.flatnonzero(forest.left >= 0)
    feature = forest.feature[inner]
    threshold = floor_to(forest.threshold[inner], forest.input_dtype)
    if forest.categories is not None:
        is_numeric = forest.categories.set_of_node[inner] < 0
        inner, feature, threshold = inner[is_numeric], feature[is_numeric], threshold[is_numeric]
    n_nodes = len(inner)
    if forest.categories is not None:
        for f in np.flatnonzero(forest.categories.is_categorical):
            between = np.arange(forest.categories.n_labels(int(f))) + 0.5
            feature = np.concatenate([feature, np.full(len(between), f, np.int32)])
            threshold = np.concatenate([threshold, between])
    order = np.lexsort((threshold, feature))
    feature, threshold = feature[order], threshold[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(is_first) - 1
    split = np.full(len(forest.left), -1, np.int32)
    split[inner] = number[:n_nodes]
    start = np.searchsorted(feature[is_first], np.arange(forest.n_features + 1)).astype(np.int32)
    values = np.ascontiguousarray(threshold[is_first])
    return start, values, split


def _sets(forest: Forest, has_sets: Bools, code_split: Ints, n_cells: Ints) -> tuple[Ints, NDArray[np.uint64]]:
    """Every node's set of cells that go left, the missing value's among them, equal ones shared."""
    of_node = np.full(len(forest.left), -1, np.int32)
    if not has_sets.any():
        return of_node, np.zeros((0, 1), np.uint64)
    n_words = (int(n_cells[has_sets].max()) + 63) // 64
    nodes = np.flatnonzero((forest.left >= 0) & has_sets[np.maximum(forest.feature, 0)])
    bits = np.zeros((len(nodes), n_words * 64), bool)
    for i, node in enumerate(nodes):
        number = -1 if forest.categories is None else int(forest.categories.set_of_node[node])
        if number >= 0 and forest.categories is not None:
            bits[i, forest.categories.members(number)] = True
        else:
            bits[i, : code_split[node] + 1] = True
        bits[i, n_cells[forest.feature[node]] - 1] = forest.default_left[node]
    packed = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    unique, inverse = np.unique(packed, axis=0, return_inverse=True)
    of_node[nodes] = np.asarray(inverse).reshape(-1)
    return of_node, np.ascontiguousarray(unique)


def readable(rows: Floats, *forests: Forest) -> Bools:
    """(n_rows, n_features) which values the models all read: finite ones, missing and unseen ones where they take them.

    A value too large for `input_dtype` is not one of them.
    """
    return np.asarray(np.all([_read_by(forest, rows) for forest in forests], axis=0))


def _read_by(forest: Forest, rows: Floats) -> Bools:
    takes_missing = np.full(forest.n_features, forest.takes_missing)
    if forest.refuses_missing is not None:
        takes_missing &= ~forest.refuses_missing
    is_number = np.isfinite(as_input(rows, forest.input_dtype))
    if forest.reads is not None:
        is_number &= (rows >= forest.reads[0]) & (rows <= forest.reads[1])
    result = is_number | (np.isnan(rows) & takes_missing)
    if forest.categories is not None:
        refuses = forest.categories.refuses_unseen
        for f in np.flatnonzero(forest.categories.is_categorical).tolist():
            top = forest.categories.n_labels(f) - int(refuses is not None and refuses[f])
            with np.errstate(invalid="ignore"):
                is_known = (rows[:, f] >= 0) & (rows[:, f] <= top) & (rows[:, f] == np.rint(rows[:, f]))
            result[:, f] &= is_known | np.isnan(rows[:, f])
    return np.asarray(result)


def as_input(values: Floats, input_dtype: str) -> Floats:
    """The values as the model sees them, in float64 again."""
    if input_dtype == "float64":
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def floor_to(values: Floats, input_dtype: str) -> Floats:
    """The largest value of `input_dtype` not above each value."""
    if input_dtype == "float64":
        return values + 0.0
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
        down = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > values, down, nearest).astype(np.float64) + 0.0


def next_above(values: Floats, input_dtype: str) -> Floats:
    """The next value of `input_dtype` above each threshold.

    Above 0 it is the first that is no denormal of float32, because some libraries take those for 0, and models of both
    types can stand in one grid; unless thresholds are such small numbers themselves: then the data are, and the library
    reads them.
    """
    dtype = np.float32 if input_dtype == "float32" else np.float64
    tiny = np.finfo(np.float32).tiny
    with np.errstate(over="ignore", under="ignore"):
        up = np.nextafter(values.astype(dtype), dtype(np.inf))
    if ((values != 0) & (np.abs(values) < tiny)).any():
        return np.asarray(up, dtype=np.float64)
    up = np.where((up > 0) & (up < tiny), tiny, up)
    return np.asarray(np.where((up < 0) & (up > -tiny), 0.0, up), dtype=np.float64)


def cell_ends(thresholds: Floats, input_dtype: str) -> tuple[Floats, Floats]:
    """The last float64 of the cell below each threshold, and the first of the cell above it.

    A float32 model rounds what it is given: a cell ends at the last number that still rounds into it.
    """
    above = next_above(thresholds, input_dtype)
    if input_dtype == "float64":
        return thresholds, above
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        is_next = np.nextafter(thresholds.astype(np.float32), np.float32(np.inf)) == above
        middle = thresholds + (above - thresholds) / 2
        goes_up = middle.astype(np.float32) > thresholds
        last = np.where(goes_up, np.nextafter(middle, -np.inf), middle)
        first = np.nextafter(last, np.inf)
    is_plain = is_next & np.isfinite(above)  # denormals, where they are left out, belong to neither side
    return np.where(is_plain, last, thresholds), np.where(is_plain, first, above)
