"""Is an answer like the data? Local outlier factor (as in DACE) and isolation forests, as a limit or as a cost.

A limit on the isolation score is part of the question, and `isolation_of` is what it asks (see `isolation`).

Both look at the training rows in the space in which distance is measured, summed over features; a different category
counts as 1, a missing value as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from threading import Lock
from weakref import WeakKeyDictionary, finalize

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.adapters import translate
from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.isolation import Isolation, in_columns, score_of
from treefocus.problem.outlier_limit import OutlierLimit
from treefocus.problem.problem import Examples, Problem

_EXAMPLES = 1000  # training rows that are looked at, evenly over the data
_CHUNK = 2**22  # numbers held at once


class Neighbours:
    """Training rows as points, and how dense they lie."""

    def __init__(self, problem: Problem) -> None:
        examples, batch = _examples(problem), problem.batch
        self.is_category: Bools = batch.is_category
        self.offset: Floats = batch.offset
        self.scale: Floats = batch.scale
        chosen = np.unique(np.linspace(0, len(examples.rows) - 1, min(len(examples.rows), _EXAMPLES)).astype(np.intp))
        self.rows, first = np.unique(examples.rows[chosen], axis=0, return_index=True)
        self.number = chosen[first]  # (n_examples,) which of the training rows they are
        if len(self.rows) < 2:
            raise InvalidInput("Plausibility needs data= with at least two different rows.")
        self.points = self.to_space(self.rows)
        self._densities: dict[int, tuple[Floats, Floats]] = {}

    def to_space(self, rows: Floats) -> Floats:
        """Rows in the space in which distance is measured; categories stay numbers."""
        return np.asarray(np.where(self.is_category, rows, (rows - self.offset) / self.scale))

    def away(self, points: Floats) -> Floats:
        """(n_points, n_examples) how far each point is from each training row."""
        result = np.empty((len(points), len(self.points)))
        step = max(1, _CHUNK // max(self.points.size, 1))
        for begin in range(0, len(points), step):
            gap = np.abs(points[begin : begin + step, None, :] - self.points[None])
            gap[..., self.is_category] = gap[..., self.is_category] > 0
            result[begin : begin + step] = np.nansum(gap, axis=2)
        return result

    def density(self, k: int) -> tuple[Floats, Floats]:
        """(n_examples,) each one's distance to its k-th neighbour, and its local reachability density."""
        if k not in self._densities:
            away = self.away(self.points)
            np.fill_diagonal(away, np.inf)
            nearest, distance = _nearest(away, k)
            reach = np.maximum(distance, distance[nearest, -1])
            self._densities[k] = distance[:, -1], 1.0 / reach.mean(axis=1)
        return self._densities[k]


@dataclass(frozen=True)
class LocalOutlierFactor:
    """How much sparser the data are at a point than around its nearest training rows: 1 is like them, more is stranger.

    Parameters
    ----------
    limit : float, optional
        Answers above it are not given.
    cost : float
        What 1 of it costs, in units of distance.
    neighbours : int
        Training rows it is compared with; 1, as in DACE.

    Examples
    --------
    >>> from treefocus import LocalOutlierFactor
    >>> LocalOutlierFactor(limit=1.5)
    LocalOutlierFactor(limit=1.5, cost=0.0, neighbours=1)
    """

    limit: float | None = None
    cost: float = 0.0
    neighbours: int = 1

    def __post_init__(self) -> None:
        _check(self)
        if not (isinstance(self.neighbours, Integral) and self.neighbours > 0):
            reject("LocalOutlierFactor.neighbours", "a whole number above 0", repr(self.neighbours))

    def score(self, problem: Problem, points: Floats) -> Floats:
        """(n_points,) of each point, in the user's units."""
        known = neighbours_of(problem)
        k = min(int(self.neighbours), len(known.points) - 1)
        radius, density = known.density(k)
        nearest, distance = _nearest(known.away(known.to_space(points)), k)
        reach = np.maximum(distance, radius[nearest]).mean(axis=1)
        return np.asarray(density[nearest].mean(axis=1) * reach)


@dataclass(frozen=True)
class IsolationScore:
    """How easily random cuts part a point from the data (scikit-learn's isolation forest): 0.5 is usual, 1 is alone.

    Parameters
    ----------
    limit : float, optional
        Answers above it are not given.
    cost : float
        What 1 of it costs, in units of distance.
    trees, seed : int
        Of the forest.

    Examples
    --------
    >>> from treefocus import IsolationScore
    >>> IsolationScore(limit=0.6)
    IsolationScore(limit=0.6, cost=0.0, trees=100, seed=0)
    """

    limit: float | None = None
    cost: float = 0.0
    trees: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self)
        if not (isinstance(self.trees, Integral) and self.trees > 0):
            reject("IsolationScore.trees", "a whole number above 0", repr(self.trees))
        if not (isinstance(self.seed, Integral) and 0 <= self.seed < 2**32):
            reject("IsolationScore.seed", "a whole number from 0 to 4294967295", repr(self.seed))

    def score(self, problem: Problem, points: Floats) -> Floats:
        """(n_points,) of each point, in the user's units."""
        known = neighbours_of(problem)
        forest, usual = _isolated(known, self.trees, self.seed)
        return score_of(kernels.hard_scores(forest, np.nan_to_num(known.to_space(points)))[:, 0], usual)


Measure = LocalOutlierFactor | IsolationScore


@dataclass(frozen=True)
class Likeness:
    """What is reported of an answer."""

    local_outlier_factor: float  # 1 is like the nearest training rows, more is stranger
    isolation: float  # 0.5 is usual, 1 is alone
    nearest: float  # distance to the nearest training row, summed over features in the scaled space
    nearest_alike: float  # the same, of those with the wanted answer; infinity where there is none
    nearest_before: float  # from the row as it was to its nearest training row


def likeness_of(problem: Problem, point: Floats) -> Likeness:
    """How like the data an answer to the problem's one row is."""
    problem = problem.relaxed or problem
    known = neighbours_of(problem)
    away = known.away(known.to_space(np.stack([point, problem.batch.rows[0]])))
    target = int(problem.batch.target[0])
    answer = _examples(problem).answer[known.number]
    alike = answer == target if target >= 0 else answer != problem.batch.origin[0]
    return Likeness(
        float(LocalOutlierFactor().score(problem, point[None])[0]),
        float(IsolationScore().score(problem, point[None])[0]),
        float(away[0].min()),
        float(away[0][alike].min(initial=np.inf)),
        float(away[1].min()),
    )


_Key = tuple[int, bytes, bytes, bytes]
_known: dict[_Key, Neighbours] = {}
_forests: WeakKeyDictionary[Neighbours, dict[tuple[int, int], tuple[Forest, float]]] = WeakKeyDictionary()
_in_columns: WeakKeyDictionary[Forest, dict[Labels | None, Forest]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # scikit-learn changes the process's warnings while it fits


def neighbours_of(problem: Problem) -> Neighbours:
    """The training rows of a problem, made ready once, whatever is asked of the model."""
    rows, batch = _examples(problem).rows, problem.batch
    key = id(rows), batch.is_category.tobytes(), batch.offset.tobytes(), batch.scale.tobytes()
    with _one_at_a_time:
        if key not in _known:
            _known[key] = Neighbours(problem)
            finalize(rows, _known.pop, key, None)
        return _known[key]


def isolation_of(measure: Measure | None, problem: Problem) -> Isolation | None:
    """What a limit on the isolation score asks of answers to a problem; None where it is a cost, or another measure.

    A cost is no limit on where an answer may be: what has both is looked for as what has a cost.
    """
    if not isinstance(measure, IsolationScore) or measure.limit is None or measure.cost > 0:
        return None
    known = neighbours_of(problem)
    forest, usual = _isolated(known, measure.trees, measure.seed)
    labels = None if problem.forest.categories is None else problem.forest.categories.labels
    with _one_at_a_time:
        made = _in_columns.setdefault(forest, {})
        if labels not in made:
            made[labels] = in_columns(forest, labels, known.offset, known.scale)
    return Isolation.of(made[labels], usual, float(measure.limit), partial(measure.score, problem))


def outlier_limit_of(measure: Measure | None) -> OutlierLimit | None:
    """The limit on the local outlier factor, if that is what the measure has."""
    if not isinstance(measure, LocalOutlierFactor) or measure.limit is None:
        return None
    return OutlierLimit(float(measure.limit), int(measure.neighbours))


def _isolated(known: Neighbours, trees: int, seed: int) -> tuple[Forest, float]:
    """The isolation forest, whose scores are sums of path lengths, and the sum that is usual."""
    with _one_at_a_time:
        made = _forests.setdefault(known, {})
        if (trees, seed) not in made:
            from sklearn.ensemble import IsolationForest  # not cheap to import

            from treefocus.adapters.sklearn_isolation import usual_sum

            model = IsolationForest(n_estimators=trees, random_state=seed).fit(np.nan_to_num(known.points))
            made[trees, seed] = translate(model).forest, usual_sum(model)
        return made[trees, seed]


def _examples(problem: Problem) -> Examples:
    if problem.examples is None:
        raise InvalidInput("Plausibility needs data=: the training rows that an answer should be like.")
    return problem.examples


def _nearest(away: Floats, k: int) -> tuple[NDArray[np.intp], Floats]:
    """(n, k) the k nearest and their distances, nearest first."""
    nearest = np.argsort(away, axis=1, kind="stable")[:, :k]
    return nearest, np.take_along_axis(away, nearest, axis=1)


def _check(measure: Measure) -> None:
    name = type(measure).__name__
    if measure.limit is not None and not (isinstance(measure.limit, Real) and measure.limit > 0):
        reject(f"{name}.limit", "a number above 0, or None", repr(measure.limit))
    if not (isinstance(measure.cost, Real) and np.isfinite(measure.cost) and measure.cost >= 0):
        reject(f"{name}.cost", "a finite number of at least 0", repr(measure.cost))


def is_within(measure: Measure, score: Floats) -> Bools:
    """(n,) whether each score obeys the limit."""
    return np.asarray(score <= (np.inf if measure.limit is None else measure.limit))
