"""An isolation forest as a model that every answer has to please: its trees in the user's columns, and one cut.

The score of an isolation forest falls as the sum of path lengths rises, so that a limit on the score is a limit on a
sum over trees: what a model of two classes asks. The forest has seen points in the space in which distance is measured,
rounded to float32. A value goes left there up to a last number of the column; so the trees split at these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import reject
from treefocus.model.categories import Categories, Labels
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.grid import cell_ends, floor_to
from treefocus.model.ranks import middle, rank, ranked
from treefocus.model.variants import variant

_UNITS = 16  # in the last place, by which powers and quotients of two libraries may differ
_STEPS = 66  # halvings of all float64 numbers


@dataclass(frozen=True, eq=False)
class Isolation:
    """An isolation forest, and the score up to which a point is like its rows."""

    forest: Forest  # in the user's columns; its classes are: too strange, or perhaps not
    usual: float  # the sum of path lengths of which the score is a half
    limit: float
    measured: Callable[[Floats], Floats] | None = None  # (n,) the score as the measure itself takes it

    @classmethod
    def of(
        cls, trees: Forest, usual: float, limit: float, measured: Callable[[Floats], Floats] | None = None
    ) -> Isolation:
        """Of the sums of path lengths of trees in the user's columns."""
        cut = least_sum(usual, limit) - _slack(usual, limit)
        asked = variant(trees, decision="at_least", cut=cut, classes=np.array([False, True]))
        return cls(asked, usual, limit, measured)

    def holds(self, points: Floats) -> Bools:
        """(n_points,) whether the score of each obeys the limit."""
        score = score_of(kernels.hard_scores(self.forest, points)[:, 0], self.usual)
        holds = np.asarray(score <= self.limit)
        return holds if self.measured is None else holds & (self.measured(points) <= self.limit)

    def to_record(self) -> dict[str, Any]:
        """As plain values: the limit, and the forest that it is about."""
        return {"kind": "isolation score", "limit": self.limit, "usual": self.usual, "forest": self.forest.to_record()}

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Isolation:
        """What `to_record` wrote."""
        if record["kind"] != "isolation score":
            reject(
                "The certificate's plausibility", "'isolation score' or 'local outlier factor'", repr(record["kind"])
            )
        usual, limit, trees = float(record["usual"]), float(record["limit"]), Forest.from_record(record["forest"])
        if not (np.isfinite([usual, limit]).all() and usual > 0 and limit > 0):
            reject("The certificate's plausibility", "a limit and a usual sum above 0", (limit, usual))
        if (trees.n_features, trees.n_outputs, trees.n_classes) != (n_features, 1, 2) or trees.divisor != 1.0:
            reject("The certificate's plausibility", f"a forest of {n_features} columns, with one sum", repr(trees))
        return cls.of(trees, usual, limit)

    @property
    def strict(self) -> Forest:
        """The same, and what passes obeys the limit for sure."""
        return variant(self.forest, cut=least_sum(self.usual, self.limit) + _slack(self.usual, self.limit))


def score_of(paths: Floats, usual: float) -> Floats:
    """(n,) the score of sums of path lengths: 0.5 is usual, 1 is alone."""
    return np.asarray(2.0 ** (-paths / usual))


def least_sum(usual: float, limit: float) -> float:
    """The smallest sum of path lengths of which the score obeys the limit."""
    return -usual * float(np.log2(limit))


def _slack(usual: float, limit: float) -> float:
    """By how much the sum can miss that for the rounding of quotients and powers."""
    unit = float(np.finfo(np.float64).eps)
    return _UNITS * unit * (abs(least_sum(usual, limit)) + 2.0 * usual)


def in_columns(forest: Forest, labels: Labels | None, offset: Floats, scale: Floats) -> Forest:
    """A forest of points in the space in which distance is measured, for rows in the user's units.

    A missing value is 0 there, a category its number.
    """
    inner = np.flatnonzero(forest.left >= 0)
    feature = forest.feature[inner]
    last = floor_to(forest.threshold[inner], forest.input_dtype)
    is_category = np.array([labels is not None and labels[f] is not None for f in range(forest.n_features)])
    threshold = np.zeros(len(forest.left))
    end = cell_ends(last, forest.input_dtype)[0]
    threshold[inner] = np.where(is_category[feature], 0.0, _last_below(end, offset[feature], scale[feature]))
    default_left = np.zeros(len(forest.left), bool)
    default_left[inner] = last >= 0.0
    return replace(
        forest,
        threshold=threshold,
        default_left=default_left,
        input_dtype="float64",
        takes_missing=True,
        reads=None,
        feature_names=None,
        categories=None if labels is None or not is_category.any() else _sets(forest, labels, inner, is_category, last),
        source="isolation forest",
    )


def _sets(forest: Forest, labels: Labels, inner: NDArray[np.intp], is_category: Bools, last: Floats) -> Categories:
    """Of the columns of categories: the numbers up to a threshold go left, the unseen ones' among them."""
    sets: list[range | None] = [None] * len(forest.left)
    for node, most in zip(inner.tolist(), last.tolist(), strict=True):
        own = labels[int(forest.feature[node])]
        if own is not None:
            sets[node] = range(int(np.clip(np.floor(most) + 1, 0, len(own) + 1)))
    return Categories.of_sets(labels, sets)


def _last_below(end: Floats, offset: Floats, scale: Floats) -> Floats:
    """(n,) the largest number x of each with (x - offset) / scale <= end, as a computer subtracts and divides."""
    most = np.finfo(np.float64).max
    low, high = (np.full(end.shape, rank(np.array(own))) for own in (-most, most))
    with np.errstate(over="ignore"):
        for _ in range(_STEPS):
            between = middle(low, high)
            is_left = (ranked(between) - offset) / scale <= end
            low, high = np.where(is_left, between, low), np.where(is_left, high, between)
    return ranked(low)
