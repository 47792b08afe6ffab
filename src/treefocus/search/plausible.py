"""Plausible: the answers of another strategy, as far as they are like the data; where one is not, another that is.

A limit on the isolation score is part of the problem, which has the isolation forest's trees beside the model's, and a
twin without them, `relaxed`. The twin comes first: its search is the faster one, what it proves holds here, and most of
its answers obey the limit. Only rows whose answer does not are searched again, under the limit, from box to box: what
comes out is proven like anything else.

A limit on the local outlier factor is kept by a search of its own (`inliers`), for rows whose answer breaks it.

Any other measure is asked about points. The other strategy's answer counts if it obeys the limit. Otherwise, and where
strangeness costs, candidates are its further ways out, and the nearest training rows that have the wanted answer, each
of them pulled back towards the row, feature by feature, as long as it stays valid and plausible. The proven lower bound
is that of the problem without plausibility, and holds with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Floats
from treefocus.problem.plausibility import LocalOutlierFactor, Measure, is_within, neighbours_of
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Status, Strategy
from treefocus.search.inliers import among_the_data
from treefocus.search.limits import SearchLimits, time_limit_of, work_limit_of
from treefocus.search.ways import ways_out

FURTHER = 2  # ways out that are looked at besides the first
_EXAMPLES = 20  # training rows to start from, a row
_SAME = 1e-8  # as a share: a distance and a bound that differ by less are the same, as in the exact search
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
        if problem.relaxed is not None:
            return self._within(problem, problem.relaxed, run)
        neighbours_of(problem)
        is_proven = self._is_proven(problem)
        found = self.strategy.solve(problem, self._in_half_the_time(run) if is_proven else run)
        answered = np.flatnonzero(found.has_answer)
        if not answered.size:
            return found
        score = np.full(len(problem), np.inf)
        score[answered] = self.measure.score(problem, found.points[answered])
        is_open = found.has_answer & (~is_within(self.measure, score) | (self.measure.cost > 0))
        left = np.flatnonzero(is_open)
        if not left.size:
            return found
        if is_proven and not run.is_interrupted:
            found = found.replaced(left, self._among_the_data(problem, found, left, run))
            left = left[found.status[left] == Status.NOT_FOUND]
        if not left.size:
            return found
        if run.is_interrupted:
            return found.replaced(left, _without_points(found, left))
        bound = found.lower_bound[left]
        return found.replaced(left, _risen(self._looked_on(problem.subset(left), found, left, run), bound))

    def _is_proven(self, problem: Problem) -> bool:
        """Whether the limit can be proven under: it is one on the local outlier factor, and no cost counts."""
        is_searchable = problem.distance.norms is not None or problem.distance.compiled is not None
        is_asked = isinstance(self.measure, LocalOutlierFactor) and self.measure.limit is not None
        return is_asked and not self.measure.cost and self.strategy.proves and is_searchable and problem.room is None

    def _among_the_data(self, problem: Problem, found: Outcome, left: NDArray[np.intp], run: Run) -> Outcome:
        """Rows whose answer is too strange, searched for one that is not."""
        assert isinstance(self.measure, LocalOutlierFactor)
        part, limits = problem.subset(left), self._limits(run)
        further = run.after(len(problem)).on(len(left))
        known = np.full_like(part.batch.rows, np.nan)
        with further.kept():
            for i in range(len(left)):
                one = part.subset(np.array([i]))
                best = self._best(one, np.stack([*_pulled(one, self.measure), one.batch.rows[0]]))
                known[i] = known[i] if best is None else best
        names = ("points", "distance", "lower_bound", "status")
        first = replace(found, history=None, is_undecided=None, **{name: getattr(found, name)[left] for name in names})
        return among_the_data(part, self.measure, first, known, limits, further)

    def _limits(self, run: Run) -> SearchLimits:
        """What the other strategy may use."""
        own = {name: getattr(self.strategy, name, None) for name in ("time_limit", "node_limit", "work_limit")}
        memory = getattr(self.strategy, "memory_limit", 1e9)
        seconds = time_limit_of(own["time_limit"], run.time_limit)
        others = own["time_limit"], run.time_limit, own["node_limit"]
        work = work_limit_of(own["work_limit"], *others, n_parts=run.n_parts)
        return SearchLimits(seconds, own["node_limit"], memory, work)

    def _within(self, problem: Problem, relaxed: Problem, run: Run) -> Outcome:
        """The question without the limit, and with it for rows whose answer breaks it."""
        found = self.strategy.solve(relaxed, self._in_half_the_time(run))
        is_done = found.has_answer & problem.is_valid(found.points)
        left = np.flatnonzero((found.status != Status.INFEASIBLE) & ~is_done)
        if not left.size or run.is_interrupted:
            return found.replaced(left, _without_points(found, left)) if left.size else found
        part, further = problem.subset(left), run.after(len(problem)).on(len(left))
        again = self.strategy.solve(part, further) if self.strategy.proves else _without_points(found, left)
        again = _risen(again, found.lower_bound[left])
        nowhere = np.flatnonzero(again.status == Status.NOT_FOUND)
        if nowhere.size and not run.is_interrupted:
            looked = self._looked_on(part.subset(nowhere), found, left[nowhere], run)
            again = again.replaced(nowhere, _risen(looked, again.lower_bound[nowhere]))
        return found.replaced(left, again)

    def _in_half_the_time(self, run: Run) -> Run:
        """Of a clock, half: what is left is for rows whose answer is too strange."""
        limit = time_limit_of(self.time_limit, run.time_limit)
        return run if limit is None else replace(run, time_limit=limit / 2)

    def _looked_on(self, problem: Problem, found: Outcome, left: NDArray[np.intp], run: Run) -> Outcome:
        names = ("points", "distance", "lower_bound", "status")
        first = replace(found, history=None, **{name: getattr(found, name)[left] for name in names})
        further = run.after(len(found.status))
        n_ways = 1 if self.strategy.proves and problem.relaxed is not None else 1 + FURTHER
        ways = ways_out(problem.relaxed or problem, first, self.strategy, further, n_ways)
        points, status = np.full_like(first.points, np.nan), np.full(len(left), Status.NOT_FOUND, object)
        distance, bound = np.full(len(left), np.nan), np.minimum(first.lower_bound, np.finfo(np.float64).max)
        with further.kept():
            for i in range(0 if further.is_interrupted else len(left)):
                if further.progress is not None:
                    further.progress(i)
                one = problem.subset(np.array([i]))
                known = [way.points[i] for way in ways if way.status[i].has_answer]
                best = self._best(one, np.stack([*known, *_pulled(one, self.measure), problem.batch.rows[i]]))
                if best is None:
                    continue
                is_same = np.array_equal(best, first.points[i], equal_nan=True)
                is_optimal = first.status[i] is Status.OPTIMAL
                points[i], distance[i] = best, one.distance_to(best[None])[0]
                bound[i] = min(bound[i], distance[i])
                status[i] = Status.BOUNDED if is_optimal and not is_same else first.status[i]
                if not status[i].has_answer:
                    status[i] = Status.FOUND
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


def _without_points(found: Outcome, rows: NDArray[np.intp]) -> Outcome:
    """Rows whose answers do not count: what is proven is all that is known."""
    bound = np.minimum(found.lower_bound[rows], np.finfo(np.float64).max)
    points, distance = np.full_like(found.points[rows], np.nan), np.full(len(rows), np.nan)
    return Outcome(points, distance, bound, np.full(len(rows), Status.NOT_FOUND, object), found.history, found.limits)


def _risen(found: Outcome, bound: Floats) -> Outcome:
    """The same with what was proven before, which may say more, or settle a row."""
    has_answer = found.has_answer
    least = np.maximum(found.lower_bound, bound)
    least = np.where(has_answer, np.minimum(least, found.distance), least)
    is_open = found.status == Status.BOUNDED
    status = found.status.copy()
    status[(found.status == Status.FOUND) & (least > 0)] = Status.BOUNDED
    status[is_open & (least >= found.distance * (1.0 - _SAME))] = Status.OPTIMAL
    least = np.where(status == Status.OPTIMAL, found.distance, least)
    return replace(found, lower_bound=least, status=status)


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
