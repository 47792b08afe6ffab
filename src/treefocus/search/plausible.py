"""Plausible: the answers of another strategy, as far as they are like the data; where one is not, another that is.

The other strategy's answer counts if it obeys the limit. Otherwise, and where strangeness costs, candidates are its
further ways out, and the nearest training rows that have the wanted answer, each of them pulled back towards the row,
feature by feature, as long as it stays valid and plausible. The proven lower bound is that of the problem without
plausibility, and holds with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Floats
from treefocus.problem.plausibility import Measure, is_within, neighbours_of
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Status, Strategy
from treefocus.search.ways import ways_out

FURTHER = 2  # ways out that are looked at besides the first
_EXAMPLES = 20  # training rows to start from, a row
_PULLS = (0.0, 0.25, 0.5, 0.75, 0.9)  # of a feature's change, that are tried in its place


@dataclass(frozen=True)
class Plausible(Strategy):
    """Search with another strategy, and give only what the measure's limit allows; its cost counts like distance."""

    strategy: Strategy
    measure: Measure

    @property
    def time_limit(self) -> float | None:
        """Seconds a row, of the other strategy."""
        return getattr(self.strategy, "time_limit", None)

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Search, then look on where the answer is too strange."""
        neighbours_of(problem)
        found = self.strategy.solve(problem, run)
        answered = np.flatnonzero(found.has_answer)
        if not answered.size:
            return found
        score = np.full(len(problem), np.inf)
        score[answered] = self.measure.score(problem, found.points[answered])
        is_open = found.has_answer & (~is_within(self.measure, score) | (self.measure.cost > 0))
        left = np.flatnonzero(is_open)
        if not left.size:
            return found
        return found.replaced(left, self._looked_on(problem.subset(left), found, left, run))

    def _looked_on(self, problem: Problem, found: Outcome, left: NDArray[np.intp], run: Run) -> Outcome:
        names = ("points", "distance", "lower_bound", "status")
        first = replace(found, history=None, **{name: getattr(found, name)[left] for name in names})
        further = run.after(len(found.status))
        ways = ways_out(problem, first, self.strategy, further, 1 + FURTHER)
        points, status = np.full_like(first.points, np.nan), np.full(len(left), Status.NOT_FOUND, object)
        distance, bound = np.full(len(left), np.nan), np.minimum(first.lower_bound, np.finfo(np.float64).max)
        with further.kept():
            for i in range(0 if further.is_interrupted else len(left)):
                if further.progress is not None:
                    further.progress(i)
                one = problem.subset(np.array([i]))
                known = [way.points[i] for way in ways if way.status[i].has_answer]
                best = self._best(one, np.concatenate([np.array(known), _pulled(one, self.measure)]))
                if best is None:
                    continue
                is_same = np.array_equal(best, first.points[i], equal_nan=True)
                is_optimal = first.status[i] is Status.OPTIMAL
                points[i], distance[i] = best, one.distance_to(best[None])[0]
                bound[i] = min(bound[i], distance[i])
                status[i] = Status.BOUNDED if is_optimal and not is_same else first.status[i]
        return Outcome(points, distance, bound, status, found.history, found.limits)

    def _best(self, one: Problem, points: Floats) -> Floats | None:
        """The cheapest of the candidates that obey the limit."""
        asked = one.subset(np.zeros(len(points), np.intp))
        score = self.measure.score(one, points)
        fits = asked.is_valid(points) & is_within(self.measure, score)
        if not fits.any():
            return None
        with np.errstate(over="ignore"):
            total = (asked.distance_to(points) + self.measure.cost * score)[fits]
        return np.asarray(points[fits][int(total.argmin())])


def _pulled(one: Problem, measure: Measure) -> Floats:
    """(n, n_features) training rows that are answers to the one row, pulled back towards it feature by feature."""
    batch, examples = one.batch, one.examples
    assert examples is not None
    target = int(batch.target[0])
    alike = examples.rows[examples.answer == target if target >= 0 else examples.answer != batch.origin[0]]
    is_category = batch.is_category
    inside = np.where(is_category | np.isnan(batch.low[0]), alike, np.clip(alike, batch.low[0], batch.high[0]))
    inside = np.where(np.isnan(batch.low[0]) & ~is_category, batch.rows[0], inside)
    every = one.subset(np.zeros(len(inside), np.intp))
    nearest = np.argsort(every.distance_to(inside), kind="stable")[:_EXAMPLES]
    every = one.subset(np.zeros(len(nearest), np.intp))
    points = every.batch.snapped(inside[nearest])
    fits = every.is_valid(points) & is_within(measure, measure.score(one, points))
    points = points[fits]
    if not len(points):
        return points
    every = one.subset(np.zeros(len(points), np.intp))
    for j in np.argsort(-np.abs(np.nan_to_num(every.batch.changes(points))).sum(axis=0), kind="stable"):
        is_done = np.zeros(len(points), bool)
        for share in _PULLS:
            tried = points.copy()
            own = batch.rows[0, j]
            tried[:, j] = own if share == 0.0 or is_category[j] else own + share * (points[:, j] - own)
            tried = every.batch.snapped(tried)
            closer = ~is_done & every.is_valid(tried) & is_within(measure, measure.score(one, tried))
            points[closer] = tried[closer]
            is_done |= closer
            if is_category[j]:
                break
    return points
