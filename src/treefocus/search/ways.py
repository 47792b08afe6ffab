"""Several ways out of a row: the best answer, then the best that does not need all that an earlier one changes.

Let C_1, C_2, ... be the sets of features that the answers so far change. The next one must leave, of every C_i, at
least one feature as it is. To leave the features of a set K as they are is a problem of the usual kind, with K fixed.
So the next way is the best answer over all K that meet every C_i. As in Murty's ranking of assignments, the parts K
are kept: when a new answer changes C, a part that meets C stays as it is, solved, and any other is replaced by one part
for each feature of C. What is proven of the parts is then proven of the way: nothing is closer than the smallest of
their bounds.

A search that does not prove its answers may find a closer way after a farther one. The ways are returned cheapest
first, and each is held against those returned before it: one that changes all that an earlier one changes is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Status, Strategy, solved
from treefocus.search.limits import SearchLimits, time_limit_of

Columns = frozenset[int]


@dataclass(frozen=True, eq=False)
class _Part:
    """The answer that leaves some features as they are."""

    kept: Columns
    point: Floats  # (n_features,) NaN where none
    distance: float  # infinity where none
    lower_bound: float
    status: Status


@dataclass(eq=False)
class _Row:
    """A row, the parts of which its next way is the best, and its ways so far."""

    number: int
    values: Floats
    parts: list[_Part]
    ways: list[_Part] = field(default_factory=list)

    def changed(self, point: Floats) -> Columns:
        """The features that a point changes."""
        is_same = (point == self.values) | (np.isnan(point) & np.isnan(self.values))
        return frozenset(np.flatnonzero(~is_same).tolist())

    def split(self, changed: Columns) -> list[Columns]:
        """Replace the parts that allow all of these features to change; returns what has to be solved."""
        opened = [part for part in self.parts if not part.kept & changed]
        self.parts = [part for part in self.parts if part.kept & changed]
        wanted = {part.kept | {f}: part for part in opened for f in sorted(changed)}
        known = [part.kept for part in self.parts]
        asked = []
        for kept in sorted(wanted, key=lambda columns: (len(columns), sorted(columns))):
            if any(other <= kept for other in known):
                continue  # a part of a part
            known.append(kept)
            parent = wanted[kept]
            if parent.status.has_answer and not self.changed(parent.point) & kept:
                self.parts.append(replace(parent, kept=kept))  # its answer leaves them as they are anyway
            elif parent.status is not Status.INFEASIBLE:
                asked.append(kept)
        return asked

    def best(self) -> _Part:
        """The best of the parts, with what is proven of all of them."""
        nothing = _Part(frozenset(), np.full_like(self.values, np.nan), np.inf, np.inf, Status.INFEASIBLE)
        best = min(self.parts, key=lambda part: part.distance, default=nothing)
        bound = min((part.lower_bound for part in self.parts), default=np.inf)
        is_proven = all(part.status in (Status.OPTIMAL, Status.INFEASIBLE) for part in self.parts)
        if not best.status.has_answer:
            status = Status.INFEASIBLE if is_proven else Status.NOT_FOUND
        elif is_proven or best.status is Status.FOUND:
            status = best.status
        else:
            status = Status.OPTIMAL if bound >= best.distance else Status.BOUNDED
        return replace(best, status=status, lower_bound=min(bound, best.distance))

    def unknown(self) -> _Part:
        """Of a way that nobody looked for."""
        return _Part(frozenset(), np.full_like(self.values, np.nan), np.inf, 0.0, Status.NOT_FOUND)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to ask: no answer, or one that changes nothing."""
        return not self.ways[-1].status.has_answer or not self.changed(self.ways[-1].point)

    def told(self) -> list[_Part]:
        """The ways with an answer, cheapest first, none of which changes all that one before it changes."""
        found = [way for way in self.ways if way.status.has_answer]
        ranked = sorted(found, key=lambda way: way.distance)
        if all(a is b for a, b in zip(found, ranked, strict=True)):
            return self._apart(found)
        is_proven = all(way.status is Status.OPTIMAL for way in found)
        if is_proven and len(self._apart(ranked)) < len(
            found
        ):  # distances that differ by no more than their last digits
            return self._apart(found)
        return self._apart(ranked if is_proven else [_known_of_all(way, found) for way in ranked])

    def _apart(self, ways: list[_Part]) -> list[_Part]:
        """Those that do without some feature of each before them."""
        kept: list[_Part] = []
        for way in ways:
            if not any(self.changed(other.point) <= self.changed(way.point) for other in kept):
                kept.append(way)
        return kept

    def beyond(self) -> _Part:
        """What is known of a further way than those told."""
        last = self.ways[-1]
        if not last.status.has_answer:
            return last
        if not self.changed(last.point):  # nothing less can be asked for
            return _Part(frozenset(), np.full_like(last.point, np.nan), np.inf, np.inf, Status.INFEASIBLE)
        return self.unknown()


def ways_out(problem: Problem, first: Outcome, strategy: Strategy, run: Run, n: int) -> list[Outcome]:
    """The answers `first` and up to n - 1 further ways a row, cheapest first; an outcome for each.

    A row without a further way is INFEASIBLE there, which is proven, or NOT_FOUND.
    """
    rows = [_Row(i, problem.batch.rows[i], [_part(frozenset(), first, i)]) for i in range(len(problem))]
    for row in rows:
        row.ways = list(row.parts)
    limits = first.limits
    for _ in range(2 * (n - 1)):  # more than n - 1 only where a way had to be left out
        going = [row for row in rows if not row.is_done and len(row.told()) < n]
        if run.is_interrupted or not going:
            break
        asked = [(row, kept) for row in going for kept in row.split(row.changed(row.ways[-1].point))]
        if asked:
            found = _solved(problem, asked, strategy, run)
            limits = limits or found.limits
            for k, (row, kept) in enumerate(asked):
                row.parts.append(_part(kept, found, k))
        for row in going:
            row.ways.append(row.best())
    told = [[*row.told(), *[row.beyond()] * n][:n] for row in rows]
    ways = [_outcome([own[k] for own in told], limits) for k in range(n)]
    return [replace(ways[0], history=first.history), *ways[1:]]


def without_answers(outcome: Outcome) -> Outcome:
    """A copy for a further way: a row that is where it should be has no other."""
    has_answer = outcome.has_answer
    status = outcome.status.copy()
    status[has_answer] = Status.INFEASIBLE
    bound = np.where(has_answer, np.inf, outcome.lower_bound)
    points = np.where(has_answer[:, None], np.nan, outcome.points)
    return Outcome(points, np.where(has_answer, np.nan, outcome.distance), bound, status)


def _solved(problem: Problem, asked: list[tuple[_Row, Columns]], strategy: Strategy, run: Run) -> Outcome:
    """Every part of every row in one batch; the parts of a row share its time and its work."""
    numbers = np.array([row.number for row, _ in asked])
    is_kept = np.zeros((len(asked), problem.forest.n_features), bool)
    for k, (_, kept) in enumerate(asked):
        is_kept[k, sorted(kept)] = True
    batch = problem.subset(numbers).keeping(is_kept)
    is_possible = batch.has_box
    result = Outcome.nothing(batch, ~is_possible)
    chosen = np.flatnonzero(is_possible)
    if not chosen.size:
        return result
    limit = time_limit_of(getattr(strategy, "time_limit", None), run.time_limit)
    n_parts = int(np.bincount(numbers).max())
    if limit is not None:
        limit /= n_parts
    further = replace(run.after(len(problem)), time_limit=limit, clock=None, n_parts=n_parts)
    return result.replaced(chosen, solved(strategy, batch.subset(chosen), further))


def _part(kept: Columns, found: Outcome, k: int) -> _Part:
    distance = float(found.distance[k]) if found.status[k].has_answer else np.inf
    return _Part(kept, found.points[k], distance, float(found.lower_bound[k]), found.status[k])


def _known_of_all(way: _Part, ways: list[_Part]) -> _Part:
    """A way of which, as its turn has come sooner or later than it was found, only what is known of all is known."""
    bound = min(one.lower_bound for one in ways)
    status = Status.BOUNDED if way.status is Status.OPTIMAL and bound < way.distance else way.status
    return replace(way, lower_bound=min(bound, way.distance), status=status)


def _outcome(ways: Iterable[_Part], limits: SearchLimits | None) -> Outcome:
    ways = list(ways)
    status = np.array([*(way.status for way in ways), None], object)[:-1]
    distance = np.array([way.distance if way.status.has_answer else np.nan for way in ways])
    bound = np.array([way.lower_bound for way in ways])
    return Outcome(np.array([way.point for way in ways]), distance, bound, status, limits=limits)
