"""Answers with room to move: the closest point around which a whole box gets the wanted outcome.

The plain question is asked first. If some point of the box around its answer is refused, that point grows to a box that
the model refuses everywhere (`refused`), and with it all answers are taken away whose own boxes reach it. What is left
are parts of the domain, at most two a column, each of them a plain question again (`parts`). The part with the least
bound comes next, until no part could hold anything closer than the best answer so far. So what is proven of the parts
is proven of the answer: it is the closest one, or there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Floats
from treefocus.problem.around import Decider, deciders
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Status
from treefocus.search.limits import SearchLimits, seconds_left
from treefocus.search.parts import Subdomain, cut, put_to_parts
from treefocus.search.proven import proven
from treefocus.search.refused import Refused, refused_around
from treefocus.search.sought import Sought

if TYPE_CHECKING:
    from treefocus.search.base import Strategy

AT_ONCE = 4  # parts of a row that are searched in one round
ROUND, BOXES = 1_000_000, 50  # steps of work that a part takes besides its search, and the boxes that it counts as
_SAFE = 4e-10  # as a share: a bound on a cost that was added up here
_PUSHES = np.array([1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0])  # times the change, that are tried


def with_room(strategy: Strategy, problem: Problem, limits: SearchLimits, run: Run) -> Outcome:
    """Answer a problem whose answers have to have room to move, with a strategy that proves plain ones."""
    plain = problem.without_room()
    half = None if limits.time_limit is None else limits.time_limit / 2
    found = strategy.solve(plain, replace(run, time_limit=half, n_parts=2 * run.n_parts))
    answered = np.flatnonzero(found.has_answer)
    if not answered.size or run.is_interrupted:
        return found if not answered.size else found.replaced(answered, _nothing(found, answered))
    around = problem.subset(answered).looked_around(found.points[answered], n_jobs=run.n_jobs)
    left = answered[~around.is_clean]
    if not left.size:
        return found
    search = _BestFirst(problem.subset(left), found, left, around.bad[~around.is_clean], around.by[~around.is_clean])
    run = run.after(len(problem)).on(len(left)) if run.progress is not None else run.on(len(left))
    return found.replaced(left, search.outcome(limits, run))


def refused_near(decider: Decider, batch: Batch, point: Floats, bad: Floats) -> Refused:
    """The box around a point that the decider refuses, near an answer to the batch's only row."""
    is_changed = batch.changes(point[None])[0] != 0
    order = np.argsort(is_changed, kind="stable")
    target, origin = decider.wanted(batch)
    wanted = int(target[0]) if target[0] >= 0 else -1 - int(origin[0])
    return refused_around(decider.forest, bad, wanted, (batch.low[0], batch.high[0]), order)


def _nothing(found: Outcome, rows: NDArray[np.intp]) -> Outcome:
    """Rows of which only a bound is known: nobody has looked around their answers."""
    points, distance = np.full_like(found.points[rows], np.nan), np.full(len(rows), np.nan)
    bound = np.minimum(found.lower_bound[rows], np.finfo(np.float64).max)
    return Outcome(points, distance, bound, np.full(len(rows), Status.NOT_FOUND, object), None, found.limits)


class _BestFirst:
    """Best-first over the parts of every row."""

    def __init__(
        self, problem: Problem, found: Outcome, left: NDArray[np.intp], bad: Floats, by: NDArray[np.intp]
    ) -> None:
        self.problem, self.plain = problem, problem.without_room()
        self.steps, self.boxes = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
        self.rows = [Sought[Subdomain](i) for i in range(len(left))]
        self.deciders = deciders((problem.relaxed or problem).forest)
        self.is_searchable = problem.distance.norms is not None or problem.distance.compiled is not None
        self.first = found.points[left]
        for i, row in enumerate(self.rows):
            whole = Subdomain.whole(
                self.plain.batch, i, float(min(found.lower_bound[left[i]], found.distance[left[i]]))
            )
            self._cut(row, whole, self.first[i], bad[i], int(by[i]))

    def outcome(self, limits: SearchLimits, run: Run) -> Outcome:
        """Search until every row is settled, or a limit is met."""
        with run.kept():
            self._push(run)
            while self.is_searchable and not run.is_interrupted:
                if limits.time_limit is not None and run.clock is not None and run.clock.spent >= limits.time_limit:
                    break
                going = [row for row in self.rows if row.is_open and self._has_work(row.number, limits)]
                if not going:
                    break
                if run.progress is not None:
                    run.progress(len(self.rows) - len(going))
                self._round(going, limits, run)
        return self._told(limits)

    def _has_work(self, i: int, limits: SearchLimits) -> bool:
        """Whether a row has something left of its steps and of its boxes."""
        return bool(self.steps[i] < (limits.work_limit or np.inf) and self.boxes[i] < (limits.node_limit or np.inf))

    def _round(self, going: list[Sought[Subdomain]], limits: SearchLimits, run: Run) -> None:
        """Search some parts of every row that is open, and look around what is found."""
        asked = [(row, part) for row in going for part in row.next(AT_ONCE)]
        numbers = np.array([row.number for row, _ in asked])
        problem = put_to_parts(self.plain, numbers, [part for _, part in asked])
        is_possible = problem.has_box
        asked = [one for one, is_there in zip(asked, is_possible, strict=True) if is_there]
        if not asked:
            return
        numbers, problem = numbers[is_possible], problem.subset(np.flatnonzero(is_possible))
        known = np.array([row.distance for row, _ in asked])
        points = np.stack([self.first[row.number] if row.point is None else row.point for row, _ in asked])
        points = np.where(np.isfinite(known)[:, None], points, np.nan)
        spent = kernels.Spent(self.boxes[numbers], self.steps[numbers])
        found = proven(problem, Incumbent(problem, points, known.copy()), run, limits, spent)
        np.add.at(self.steps, numbers, spent.steps - self.steps[numbers] + ROUND)
        np.add.at(self.boxes, numbers, spent.boxes - self.boxes[numbers] + BOXES)
        is_new = found.has_answer & (found.distance < known)
        settled = (found.status == Status.OPTIMAL) | (found.status == Status.INFEASIBLE)
        for k in np.flatnonzero(~is_new & ~settled):
            row, part = asked[k]
            row.leave(max(part.bound, float(found.lower_bound[k])))
        new = np.flatnonzero(is_new)
        if not new.size:
            return
        around = self.problem.subset(numbers[new]).looked_around(
            found.points[new], steps=limits.work_limit or 0, seconds=seconds_left(limits.time_limit, run.clock),
            n_jobs=run.n_jobs,
        )  # fmt: skip
        np.add.at(self.steps, numbers[new], around.steps)
        for place, k in enumerate(new):
            row, part = asked[k]
            point, bound = found.points[k], max(part.bound, float(found.lower_bound[k]))
            if around.is_clean[place]:
                row.offer(point, float(found.distance[k]))
                if not settled[k]:
                    row.leave(bound)
            elif around.by[place] < 0:
                row.leave(bound)
            else:
                own = replace(part, bound=bound)
                self._cut(row, own, point, around.bad[place], int(around.by[place]))

    def _cut(self, row: Sought[Subdomain], part: Subdomain, point: Floats, bad: Floats, by: int) -> None:
        """Replace a part by what is left of it without the answers whose room reaches a refused box."""
        if by < 0:
            row.leave(part.bound)
            return
        assert self.problem.room is not None
        one = self.plain.subset(np.array([row.number]))
        batch = one.batch
        refused = refused_near(self.deciders[by], batch, point, bad)
        made = [piece for _, piece in cut(part, batch, self.problem.room, point, refused)]
        if not made:
            return
        low, high = np.stack([each.low for each in made]), np.stack([each.high for each in made])
        own = batch.rows[0]
        nearest = np.where(np.isnan(own) | batch.is_category, own, np.clip(own, low, high))
        cost = np.zeros(len(made))
        if one.distance.norms is not None:
            cost = one.subset(np.zeros(len(made), np.intp)).distance_to(nearest) * (1 - _SAFE)
        for each, least in zip(made, cost.tolist(), strict=True):
            row.add(replace(each, bound=max(part.bound, least)))

    def _push(self, run: Run) -> None:
        """The first answers, moved further in the same direction, until they have room: something to begin with."""
        n = len(_PUSHES)
        numbers = np.repeat(np.arange(len(self.rows)), n)
        part = self.problem.subset(numbers)
        batch, first = part.batch, self.first[numbers]
        moved = part.room.moves(batch, first) if part.room is not None else np.zeros_like(first, bool)
        times = np.tile(_PUSHES, len(self.rows))[:, None]
        pushed = batch.snapped(np.where(moved, batch.rows + times * (first - batch.rows), first))
        distance = part.distance_to(pushed)
        fits = np.flatnonzero(self.plain.subset(numbers).is_valid(pushed))
        if not fits.size:
            return
        around = part.subset(fits).looked_around(pushed[fits], n_jobs=run.n_jobs)
        np.add.at(self.steps, numbers[fits], around.steps)
        for k in fits[around.is_clean]:
            self.rows[numbers[k]].offer(pushed[k], float(distance[k]))

    def _told(self, limits: SearchLimits) -> Outcome:
        """What is proven of each row."""
        points = np.full_like(self.first, np.nan)
        distance, bound = np.full(len(self.rows), np.nan), np.zeros(len(self.rows))
        status = np.full(len(self.rows), Status.NOT_FOUND, object)
        for i, row in enumerate(self.rows):
            point, distance[i], bound[i], status[i] = row.told()
            if point is not None:
                points[i] = point
            if status[i] is Status.BOUNDED and not self.is_searchable:
                status[i] = Status.FOUND
        return Outcome(points, distance, bound, status, limits=limits)
