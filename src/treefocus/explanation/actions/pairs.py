"""What an action does for a person: whether it is allowed, whether it is enough, and what it costs.

Every pair is decided by the forest, whose answers are those of the model; pairs that are counted in the end are asked
of the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.explanation.actions.steps import Action
from treefocus.explanation.answers import Answers
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.confirmed import Confirm, sure

Rows = NDArray[np.intp]
FIFTIETHS = tuple(k / 50 for k in range(1, 50))  # parts of the way, where people go only as far as it takes


@dataclass(frozen=True, eq=False)
class Effect:
    """What one action does for some rows."""

    cost: Floats  # (n_rows,) infinity where it does not help
    is_allowed: Bools  # (n_rows,) whether it obeys every constraint


class Applicants:
    """The rows that actions are for, and who confirms that an action is enough."""

    def __init__(
        self, answers: Answers, rows: Rows, confirming: Callable[[Any], Confirm], is_gradual: bool = False
    ) -> None:
        """rows: numbers in the batch of those that do not have what is wanted.

        is_gradual: whether each of them goes only as far as it takes.
        """
        self.answers, self.rows, self._confirming, self.is_gradual = answers, rows, confirming, is_gradual
        place = np.full(len(answers), -1)
        place[rows] = np.arange(len(rows))
        self._parts: list[tuple[Rows, Problem, Confirm]] = []
        for group in answers.groups:
            inside = np.flatnonzero(place[group.rows] >= 0)
            if inside.size:
                confirm = confirming(group.question.target)
                self._parts.append((place[group.rows[inside]], group.problem.subset(inside), confirm))

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, chosen: Rows) -> Applicants:
        """Some of them."""
        return Applicants(self.answers, self.rows[chosen], self._confirming, self.is_gradual)

    def effect(self, action: Action, *, is_confirmed: bool = False) -> Effect:
        """What an action does for each of them; is_confirmed: whether the model itself is asked."""
        cost, allowed = np.full(len(self), np.inf), np.zeros(len(self), bool)
        for places, problem, confirm in self._parts:
            asked: Confirm = confirm if is_confirmed else sure
            points = action.applied(problem.batch)
            allowed[places], cost[places] = problem.obeys(points), _costs(problem, points, asked)
            if self.is_gradual:
                helped = np.flatnonzero(np.isfinite(cost[places]))
                cost[places[helped]] = _least(problem.subset(helped), action, cost[places[helped]], asked)
        return Effect(cost, allowed)

    def costs(self, actions: Sequence[Action]) -> Floats:
        """(n_actions, n_rows) by the forest."""
        found = np.empty((len(actions), len(self)))
        for k, action in enumerate(actions):
            found[k] = self.effect(action).cost
        return found


def _costs(problem: Problem, points: Floats, confirm: Confirm) -> Floats:
    """(n_rows,) what each point costs; infinity where it is forbidden, or not enough."""
    cost = np.full(len(points), np.inf)
    helped = np.flatnonzero(problem.obeys(points))
    if helped.size:
        helped = helped[confirm(problem.subset(helped), points[helped])]
        cost[helped] = problem.subset(helped).distance_to(points[helped])
    return cost


def _least(problem: Problem, action: Action, whole: Floats, confirm: Confirm) -> Floats:
    """(n_rows,) the least that is enough: a part of the action's way, without the steps that are not needed then.

    whole: what the whole way costs each row.
    """
    batch, cost, nearest = problem.batch, whole.copy(), action.applied(problem.batch)
    trials: list[Callable[[], Floats]] = [partial(action.applied, batch, fraction) for fraction in FIFTIETHS]
    trials += [partial(_without, nearest, batch.rows, step.column) for step in action.steps]
    for trial in trials if len(cost) else ():
        points = trial()
        own = _costs(problem, points, confirm)
        is_nearer = own < cost
        cost[is_nearer], nearest[is_nearer] = own[is_nearer], points[is_nearer]
    return cost


def _without(points: Floats, rows: Floats, column: int) -> Floats:
    """The points with one column as it is in the rows."""
    points = points.copy()
    points[:, column] = rows[:, column]
    return points
