"""Confirmed: another strategy's answers, where the model's own number decides and not ours.

Close to what is asked for, the library's number and ours may differ in their last digits. So the loosened question is
searched first, which leaves out nothing that could be an answer: what it proves is proven. An answer counts if it is
confirmed. Where it is not, the question as it was asked is searched, and then the tightened one; what comes out of them
is an answer, and between it and the proven bound lies what nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Status, Strategy

Confirm = Callable[[Problem, Floats], Bools]  # (n_rows,) whether each of the points is an answer to the problem's rows


def sure(problem: Problem, points: Floats) -> Bools:
    """(n_rows,) whether each point is an answer for sure, as far as can be told without the model itself."""
    form = problem.sure()
    return np.zeros(len(points), bool) if form is None else form.is_valid(points)


@dataclass(frozen=True)
class Confirmed(Strategy):
    """Search with another strategy, and give only what is confirmed."""

    strategy: Strategy
    confirm: Confirm = sure

    @property
    def time_limit(self) -> float | None:
        """Seconds a row, of the other strategy."""
        return getattr(self.strategy, "time_limit", None)

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """The loosened question first, and the others for rows whose answer is not confirmed."""
        if problem.slack is None:
            return self.strategy.solve(problem, run)
        found = self.strategy.solve(problem.loosened(), run)
        left = self._unconfirmed(problem, found)
        for form in (problem, problem.tightened()):
            if left.size and form is not None and not run.is_interrupted:
                part = form.subset(left)
                again = self.strategy.solve(part, run.after(len(problem)).on(len(left)))
                wrong = self._unconfirmed(problem.subset(left), again)
                found = found.replaced(left, _bounded(found, left, again, wrong))
                left = left[~found.has_answer[left]]
        return found.replaced(left, _nothing(found, left)) if left.size else found

    def _unconfirmed(self, problem: Problem, found: Outcome) -> NDArray[np.intp]:
        answered = np.flatnonzero(found.has_answer)
        if not answered.size:
            return answered
        return answered[~self.confirm(problem.subset(answered), found.points[answered])]


def _bounded(found: Outcome, left: NDArray[np.intp], again: Outcome, wrong: NDArray[np.intp]) -> Outcome:
    """What a stricter question found, under the bounds of the loosened one."""
    result = _nothing(found, left)
    bound = result.lower_bound
    good = again.has_answer
    good[wrong] = False
    result.points[good], result.distance[good] = again.points[good], again.distance[good]
    result.status[good] = again.status[good]
    is_open = good & (again.status == Status.OPTIMAL) & (bound < again.distance)
    result.status[is_open] = Status.BOUNDED
    bound[good] = np.minimum(bound[good], again.distance[good])
    return result


def _nothing(found: Outcome, left: NDArray[np.intp]) -> Outcome:
    """Rows for which nothing is confirmed: the bound is all that is known."""
    bound = np.minimum(found.lower_bound[left], np.finfo(np.float64).max)
    points, distance = np.full_like(found.points[left], np.nan), np.full(len(left), np.nan)
    return Outcome(points, distance, bound, np.full(len(left), Status.NOT_FOUND, object), found.history, found.limits)
