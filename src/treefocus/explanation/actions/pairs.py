"""What an action does for a person: whether it is allowed, whether it is enough, and what it costs.

Every pair is decided by the forest, whose answers are those of the model; pairs that are counted in the end are asked
of the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.explanation.actions.steps import Action
from treefocus.explanation.answers import Answers
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.confirmed import Confirm, sure

Rows = NDArray[np.intp]
# Parts of the way, where people go only as far as it takes: while actions are looked for, and when they are measured.
TENTHS = tuple(k / 10 for k in range(1, 10))
FIFTIETHS = tuple(k / 50 for k in range(1, 50))


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
            allowed[places], own = _at(problem, action, 1.0, asked)
            helped = np.flatnonzero(np.isfinite(own))
            parts = FIFTIETHS if is_confirmed else TENTHS
            for fraction in parts if self.is_gradual else ():
                _, nearer = _at(problem.subset(helped), action, fraction, asked)
                own[helped] = np.minimum(own[helped], nearer)
            cost[places] = own
        return Effect(cost, allowed)

    def costs(self, actions: Sequence[Action]) -> Floats:
        """(n_actions, n_rows) by the forest."""
        found = np.empty((len(actions), len(self)))
        for k, action in enumerate(actions):
            found[k] = self.effect(action).cost
        return found


def _at(problem: Problem, action: Action, fraction: float, confirm: Confirm) -> tuple[Bools, Floats]:
    """Whether this part of an action's way is allowed for each row, and what it costs; infinity for no help."""
    points = action.applied(problem.batch, fraction)
    obeys, cost = problem.obeys(points), np.full(len(points), np.inf)
    helped = np.flatnonzero(obeys)
    if helped.size:
        helped = helped[confirm(problem.subset(helped), points[helped])]
        cost[helped] = problem.subset(helped).distance_to(points[helped])
    return obeys, cost
