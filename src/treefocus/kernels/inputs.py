"""What kernels take besides a forest: plain frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from treefocus.forest import Floats, Ints
from treefocus.schema import FLOAT32, INTEGER

Int8s = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class SoftForest:
    """The differentiable copy of a forest, in the space in which distance is measured."""

    threshold: Floats  # (n_thresholds,) the grid's thresholds in that space
    value: Floats  # (n_leaves, n_outputs) leaf values with the tree weights in them
    n_trees: int  # the first n_trees take part
    sigma: float
    tau: float
    use_softmax: bool = True


class Metric(IntEnum):
    """Distances that the compiled descent knows."""

    EUCLIDEAN = 0
    MANHATTAN = 1
    COSINE = 2
    MAHALANOBIS = 3
    MAHALANOBIS_SQUARED = 4


@dataclass(frozen=True, eq=False)
class CompiledDistance:
    """A distance as the compiled core takes it."""

    metric: Metric
    weight: Floats  # (n_features,)
    inverse: Floats  # (n_features, n_features) inverse covariance, (0, 0) where there is none


@dataclass(frozen=True, eq=False)
class Norms:
    """A distance made of parts that the exact search can take apart by feature.

    For delta = |y - z|: sum of l1 delta + sqrt(sum of l2 delta^2) + max of linf delta + sum of l0 [delta > 0].
    """

    weights: Floats  # (4, n_features) rows l1, l2, linf, l0, zeros where a part is absent


@dataclass(frozen=True)
class Descent:
    """The parameters of FOCUS's loop."""

    beta: float
    alpha: float
    iterations: int
    gradient_scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to move, the boxes they may move in, and what counts as flipped."""

    rows: Floats  # (n_rows, n_features) in the user's units
    low: Floats  # (n_rows, n_features)
    high: Floats  # (n_rows, n_features)
    offset: Floats  # (n_features,) z = (x - offset) / scale
    scale: Floats  # (n_features,)
    grain: Int8s  # (n_features,) ANY_FLOAT, FLOAT32 or INTEGER
    origin: Ints  # (n_rows,) the class to leave
    target: Ints  # (n_rows,) the class to reach, -1 for any other
    first: Floats  # (n_rows, n_features) where to start

    def is_flipped(self, predicted: Ints) -> NDArray[np.bool_]:
        """(n_rows,) whether these predictions are what is asked for."""
        return np.asarray(np.where(self.target >= 0, predicted == self.target, predicted != self.origin))

    def is_allowed(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether every value lies in its box."""
        inside = (points >= self.low) & (points <= self.high)
        unchanged_missing = np.isnan(points) & np.isnan(self.rows)
        return np.asarray((inside | unchanged_missing).all(axis=1))

    def is_on_grain(self, points: Floats) -> NDArray[np.bool_]:
        """(n_rows,) whether every changed value is one that its column can hold."""
        return np.asarray(((self.snapped(points) == points) | np.isnan(points)).all(axis=1))

    def to_z(self, points: Floats) -> Floats:
        """The points in the space in which distance is measured; an unchanged value stays exactly where it was."""
        return self.start + (points - self.rows) / self.scale

    def from_z(self, z: Floats) -> Floats:
        """Back to the user's units."""
        return self.rows + (z - self.start) * self.scale

    @property
    def start(self) -> Floats:
        """(n_rows, n_features) the rows in the space in which distance is measured."""
        return (self.rows - self.offset) / self.scale

    def snapped(self, points: Floats) -> Floats:
        """The points with every changed value on its column's grain, inside the box."""
        with np.errstate(over="ignore"):
            on_grain = np.where(self.grain == FLOAT32, points.astype(np.float32).astype(np.float64), points)
        on_grain = np.where(self.grain == INTEGER, np.rint(points), on_grain)
        return np.where(points == self.rows, points, np.clip(on_grain, self.low, self.high))

    def subset(self, chosen: NDArray[np.intp]) -> Batch:
        """The same question for some of the rows."""
        return Batch(
            self.rows[chosen], self.low[chosen], self.high[chosen], self.offset, self.scale, self.grain,
            self.origin[chosen], self.target[chosen], self.first[chosen],
        )  # fmt: skip
