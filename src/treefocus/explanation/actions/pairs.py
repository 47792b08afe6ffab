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

from treefocus.explanation.actions.steps import Action, after
from treefocus.explanation.answers import Answers
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.confirmed import Confirm, sure

Rows = NDArray[np.intp]
FIFTIETHS = tuple(k / 50 for k in range(1, 50))  # parts of the way, where people go only as far as it takes
_MOST_PAIRS = 20_000  # of actions and people that are decided at once


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

    @property
    def problem(self) -> Problem:
        """What most of them are asked; there has to be somebody."""
        return max((problem for _, problem, _ in self._parts), key=len)

    def some(self, chosen: Rows) -> Applicants:
        """Some of them."""
        return Applicants(self.answers, self.rows[chosen], self._confirming, self.is_gradual)

    def effect(self, action: Action, *, is_confirmed: bool = False) -> Effect:
        """What an action does for each of them; is_confirmed: whether the model itself is asked."""
        cost, allowed = self._effects([action], is_confirmed)
        return Effect(cost[0], allowed[0])

    def costs(self, actions: Sequence[Action]) -> Floats:
        """(n_actions, n_rows) by the forest."""
        size = max(_MOST_PAIRS // max(len(self), 1), 1)
        blocks = [self._effects(actions[k : k + size], False)[0] for k in range(0, len(actions), size)]
        return np.concatenate([np.empty((0, len(self))), *blocks])

    def _effects(self, actions: Sequence[Action], is_confirmed: bool) -> tuple[Floats, Bools]:
        """(n_actions, n_rows) what each costs whom, and whom it is allowed for."""
        shape = len(actions), len(self)
        cost, allowed = np.full(shape, np.inf), np.zeros(shape, bool)
        for places, problem, confirm in self._parts:
            asked: Confirm = confirm if is_confirmed else sure
            every = problem.subset(np.tile(np.arange(len(problem)), len(actions)))
            points = after(actions, every.batch)
            obeyed = every.obeys(points)
            own = _costs(every, points, np.full(len(points), np.inf), obeyed, asked)
            if self.is_gradual:
                own = _least(every, actions, own, asked)
            cost[:, places], allowed[:, places] = own.reshape(shape[0], -1), obeyed.reshape(shape[0], -1)
        return cost, allowed


def _costs(problem: Problem, points: Floats, below: Floats, obeyed: Bools, confirm: Confirm) -> Floats:
    """(n_rows,) what each point costs; `below` where it is forbidden, not enough, or no cheaper than that."""
    cost = below.copy()
    asked = np.flatnonzero(obeyed)
    own = problem.subset(asked).distance_to(points[asked])
    asked, own = asked[own < below[asked]], own[own < below[asked]]
    if asked.size:
        is_enough = confirm(problem.subset(asked), points[asked])
        cost[asked[is_enough]] = own[is_enough]
    return cost


def _least(problem: Problem, actions: Sequence[Action], whole: Floats, confirm: Confirm) -> Floats:
    """(n_rows,) the least that is enough: a part of the action's way, without the steps that are not needed then.

    whole: what the whole way costs each row of each action's block.
    """
    cost, nearest = whole.copy(), after(actions, problem.batch)
    is_helped = np.isfinite(whole)
    most = max((len(action.steps) for action in actions), default=0)
    trials: list[Callable[[], Floats]] = [partial(after, actions, problem.batch, part) for part in FIFTIETHS]
    trials += [partial(_without, nearest, problem.batch.rows, actions, place) for place in range(most)]
    for trial in trials if is_helped.any() else ():
        points = trial()
        own = _costs(problem, points, cost, is_helped & problem.obeys(points), confirm)
        is_nearer = own < cost
        cost[is_nearer], nearest[is_nearer] = own[is_nearer], points[is_nearer]
    return cost


def _without(points: Floats, rows: Floats, actions: Sequence[Action], place: int) -> Floats:
    """The points with the column of each action's step at this place as it is in the rows."""
    points = points.copy()
    for own, before, action in zip(np.split(points, len(actions)), np.split(rows, len(actions)), actions, strict=True):
        if place < len(action.steps):
            column = action.steps[place].column
            own[:, column] = before[:, column]
    return points
