"""The cells on which a forest is constant.

Sort the unique thresholds of a feature, t_0 < t_1 < ...: they cut the axis into cells (-inf, t_0], (t_0, t_1], ...
A value's code is its cell's number, the count of thresholds below it. Every node then reads `code <= split`,
every point is a vector of small integers, and no comparison of floats is left to go wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treefocus.forest import Floats, Forest, Ints

MISSING = -1  # the code of a missing value


@dataclass(frozen=True, eq=False)
class Grid:
    """Thresholds per feature, as the model sees them: rounded down to a value of its input dtype."""

    start: Ints  # (n_features + 1,) where a feature's thresholds begin
    threshold: Floats  # (n_thresholds,) ascending within a feature
    split: Ints  # (n_nodes,) index into `threshold`, -1 at a leaf
    low: Floats  # (n_thresholds + n_features,) smallest value of each cell; feature f's begin at start[f] + f
    high: Floats  # (n_thresholds + n_features,) largest value of each cell

    @classmethod
    def of(cls, forest: Forest) -> Grid:
        """Derive the grid of a forest."""
        inner = np.flatnonzero(forest.left >= 0)
        feature = forest.feature[inner]
        threshold = floor_to(forest.threshold[inner], forest.input_dtype)
        pairs = np.unique(np.stack([feature.astype(np.float64), threshold], axis=1), axis=0)
        start = np.searchsorted(pairs[:, 0], np.arange(forest.n_features + 1)).astype(np.int32)
        values = np.ascontiguousarray(pairs[:, 1])
        split = np.full(len(forest.left), -1, np.int32)
        for f in np.unique(feature):
            mine = feature == f
            split[inner[mine]] = start[f] + np.searchsorted(values[start[f] : start[f + 1]], threshold[mine])
        low, high = [], []
        for f in range(forest.n_features):
            own = values[start[f] : start[f + 1]]
            low.append(np.concatenate([[-np.inf], next_above(own, forest.input_dtype)]))
            high.append(np.concatenate([own, [np.inf]]))
        return cls(start, values, split, np.concatenate(low), np.concatenate(high))

    def encode(self, forest: Forest, rows: Floats) -> Ints:
        """(n_rows, n_features) codes of the rows."""
        seen = as_input(rows, forest.input_dtype)
        codes = np.empty(rows.shape, np.int32)
        for f in range(forest.n_features):
            codes[:, f] = np.searchsorted(self.threshold[self.start[f] : self.start[f + 1]], seen[:, f], side="left")
        codes[np.isnan(rows)] = MISSING
        return codes


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
    """The next value of `input_dtype` above each value, never a denormal (some libraries flush those to 0)."""
    dtype = np.float32 if input_dtype == "float32" else np.float64
    tiny = np.finfo(dtype).tiny
    with np.errstate(over="ignore"):
        up = np.nextafter(values.astype(dtype), dtype(np.inf))
    up = np.where((up > 0) & (up < tiny), tiny, up)
    return np.asarray(np.where((up < 0) & (up > -tiny), 0.0, up), dtype=np.float64)
