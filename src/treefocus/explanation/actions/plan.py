"""The plan: few actions for many people, what they do for whom, and how far any such actions could get."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.explanation.actions.affordable import is_affordable
from treefocus.explanation.actions.pairs import Applicants, Rows
from treefocus.explanation.actions.selection import Selection
from treefocus.explanation.actions.sorting import SortingTree, sorting_tree
from treefocus.explanation.actions.steps import Action
from treefocus.explanation.answers import Answers
from treefocus.explanation.change import plain
from treefocus.model.forest import Floats
from treefocus.render import actions as told
from treefocus.render import actions_plot
from treefocus.search.base import Status
from treefocus.search.confirmed import Confirm
from treefocus.tables.frames import frame_of

MOST_ROWS = 1_000  # by which actions are chosen; they are measured on all


@dataclass(frozen=True, eq=False)
class PlannedAction:
    """One action of a plan, and what it does for everybody.

    Attributes
    ----------
    action : Action
        Its steps.
    cost : array of shape (n_rows,)
        What it costs each of those asked; infinity where it does not help.
    helped : int
        How many it helps.
    assigned : int
        For how many of these it is the cheapest of the plan.
    mean_cost : float
        Of those for whom it is the cheapest.
    forbidden : int
        For how many it is not allowed: it would break a constraint.
    too_dear : int
        For how many it would be enough, and costs more than `most_cost` or `mean_cost` leaves room for.
    """

    action: Action
    cost: Floats
    helped: int
    assigned: int
    mean_cost: float
    forbidden: int
    too_dear: int
    asked: int

    @property
    def insufficient(self) -> int:
        """For how many it is allowed, and not enough."""
        return self.asked - self.helped - self.forbidden - self.too_dear

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "steps": [
                {"feature": step.feature, "kind": step.kind, "value": plain(step.told)} for step in self.action.steps
            ],
            "helped": self.helped, "assigned": self.assigned, "forbidden": self.forbidden,
            "too_dear": self.too_dear, "insufficient": self.insufficient, "asked": self.asked,
            "mean_cost": self.mean_cost if np.isfinite(self.mean_cost) else None,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Plan:
    """Few actions that get as many people as possible the wanted answer.

    Attributes
    ----------
    actions : tuple of PlannedAction
        Those that help most people first.
    coverage : float
        The share of those asked whom one of them helps; checked on the model, person by person.
    mean_cost : float
        What that costs them, each by their cheapest action; NaN where there are none.
    upper_bound : float
        Proven: no actions whatsoever, however many, help a larger share of them (within `most_cost` and `mean_cost`).
    is_optimal : bool
        Whether it is proven that no other choice among the actions that were looked at helps more of the people by whom
        they were chosen.
    curve : tuple of (int, float)
        The coverage of the best choice of one action, of two, and so on.
    tree : SortingTree
        Who should do what, in at most three questions.
    """

    answers: Answers
    rows: Rows
    actions: tuple[PlannedAction, ...]
    upper_bound: float
    is_optimal: bool
    curve: tuple[tuple[int, float], ...]
    looked_at: int
    chosen_by: int
    wanted: dict[str, Any]

    @cached_property
    def cost(self) -> Floats:
        """(n_actions, n_asked) what each action costs each of those asked; infinity where it does not help."""
        return np.array([one.cost for one in self.actions]).reshape(len(self.actions), len(self.rows))

    @property
    def coverage(self) -> float:
        """The share of those asked whom one of the actions helps."""
        return float((self.assigned >= 0).mean()) if len(self.rows) else float("nan")

    @property
    def mean_cost(self) -> float:
        """Of those helped, each by their cheapest action."""
        return _mean_least(self.cost)

    @cached_property
    def assigned(self) -> NDArray[np.intp]:
        """(n_asked,) the number of the cheapest action that helps, -1 where none does."""
        if not self.actions:
            return np.full(len(self.rows), -1)
        return np.where(np.isfinite(self.cost).any(axis=0), self.cost.argmin(axis=0), -1)

    @cached_property
    def tree(self) -> SortingTree:
        """Who should do what, in at most three questions about what is known of them."""
        values = self.answers.table.values[self.rows]
        return sorting_tree(values, self.cost, self.answers.schema.names, self.answers.table.labels)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self, path: str | Path | None = None) -> str:
        """As JSON, written to `path` if given."""
        text = json.dumps(self._facts, default=str, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @cached_property
    def _facts(self) -> dict[str, Any]:
        units = {feature.name: feature.unit for feature in self.answers.schema.features}
        return {
            "format": "treefocus-plan-1",
            "distance": self.answers.distance_name,
            "asked": len(self.rows),
            "coverage": _number(self.coverage),
            "mean_cost": _number(self.mean_cost),
            "upper_bound": _number(self.upper_bound),
            "is_optimal": self.is_optimal,
            "looked_at": self.looked_at,
            "chosen_by": self.chosen_by,
            "wanted": self.wanted,
            "curve": [list(point) for point in self.curve],
            "units": units,
            "actions": [one.record() for one in self.actions],
            "tree": {
                "coverage": _number(self.tree.coverage),
                "mean_cost": _number(self.tree.mean_cost),
                "root": told.tree_record(self.tree.root),
            },
        }

    def to_text(self) -> str:
        """The plan as sentences."""
        return told.plan_text(self._facts)

    def to_frame(self) -> Any:
        """A line a person: the action that is cheapest for them, and what it costs; empty where none helps."""
        labels = self.answers.labels
        least = self.cost.min(axis=0) if self.actions else np.full(len(self.rows), np.inf)
        return frame_of(
            {
                "row": [plain(labels[i]) for i in self.rows.tolist()],
                "action": [int(k) + 1 if k >= 0 else None for k in self.assigned.tolist()],
                "cost": [float(own) if np.isfinite(own) else None for own in least.tolist()],
                "smallest_possible": [_number(own) for own in self.answers.lower_bound[self.rows].tolist()],
            }
        )

    def plot(self, ax: Any = None) -> Any:
        """Coverage against the number of actions, and the proven bound (needs matplotlib); returns the axes."""
        return actions_plot.coverage_curve(self._facts, ax)

    def plot_map(self, ax: Any = None) -> Any:
        """Which action helps whom, and at what cost; returns the axes."""
        return actions_plot.people_map(self.cost, ax)

    def __repr__(self) -> str:
        return self.to_text()


def plan_of(
    answers: Answers,
    confirming: Callable[[Any], Confirm],
    at_most: int,
    cover: float | None,
    most_cost: float | None,
    mean_cost: float | None,
    gradual: bool,
) -> Plan:
    """The plan for the rows of these answers; confirming: who decides, for what is asked."""
    _check(answers, at_most, cover, most_cost, mean_cost)
    is_there = answers.has_answer & ~answers.is_moved.any(axis=1)
    is_read = np.array([status is not Status.INVALID for status in answers.status], bool)
    rows = np.flatnonzero(is_read & ~is_there)
    limit, mean = (np.inf if own is None else float(own) for own in (most_cost, mean_cost))
    everybody = Applicants(answers, rows, confirming, gradual)
    spread = np.unique(np.linspace(0, max(len(rows) - 1, 0), min(MOST_ROWS, len(rows))).astype(np.intp))
    few = everybody.some(spread)
    search = Selection(few, limit, mean, at_most, None if cover is None else int(np.ceil(cover * len(few) - 1e-9)))
    choice = search.run()
    chosen = [search.actions[k] for k in choice.chosen]
    planned = _planned(everybody, chosen, limit, mean)
    return Plan(
        answers, rows, planned,
        upper_bound=_upper_bound(answers, rows, limit, mean),
        is_optimal=choice.is_optimal, curve=search.curve(len(chosen)), looked_at=len(search.actions),
        chosen_by=len(few),
        wanted={
            "at_most": at_most, "cover": cover, "most_cost": most_cost, "mean_cost": mean_cost,
            "gradual": bool(gradual),
        },
    )  # fmt: skip


def _upper_bound(answers: Answers, rows: Rows, limit: float, mean: float) -> float:
    """The share that any actions whatsoever could help: nobody pays less than the proven bound of their own row."""
    least = np.where(answers.status[rows] == Status.INFEASIBLE, np.inf, np.maximum(answers.lower_bound[rows], 0.0))
    least = np.where(np.isnan(least), 0.0, least)
    is_reachable = np.isfinite(least) & ~(least > limit * (1 + 1e-9))
    if np.isfinite(mean):
        is_reachable &= is_affordable(np.where(is_reachable, least, np.inf), mean * (1 + 1e-9))
    return float(is_reachable.mean()) if len(rows) else float("nan")


def _planned(people: Applicants, actions: list[Action], limit: float, mean: float) -> tuple[PlannedAction, ...]:
    """What the actions do for everybody, by the model itself; those that help most first."""
    effects = [people.effect(action, is_confirmed=True) for action in actions]
    costs = [np.where(effect.cost > limit, np.inf, effect.cost) for effect in effects]
    if costs and np.isfinite(mean):
        is_kept = is_affordable(np.min(costs, axis=0), mean)
        costs = [np.where(is_kept, cost, np.inf) for cost in costs]
    helped = [int(np.isfinite(cost).sum()) for cost in costs]
    order = sorted(range(len(actions)), key=lambda k: (-helped[k], k))
    every = np.array([costs[k] for k in order]).reshape(len(order), len(people))
    cheapest = every.argmin(axis=0) if len(order) else np.zeros(len(people), np.intp)
    found = []
    for place, k in enumerate(order):
        own = (cheapest == place) & np.isfinite(every[place])
        own_mean = float(every[place][own].mean()) if own.any() else float("nan")
        forbidden = int((~effects[k].is_allowed).sum())
        dear = int(np.isfinite(effects[k].cost).sum()) - helped[k]
        found.append(
            PlannedAction(actions[k], costs[k], helped[k], int(own.sum()), own_mean, forbidden, dear, len(people))
        )
    return tuple(found)


def _mean_least(cost: Floats) -> float:
    least = cost.min(axis=0) if len(cost) else np.empty(0)
    least = least[np.isfinite(least)]
    return float(least.mean()) if least.size else float("nan")


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _check(
    answers: Answers, at_most: int, cover: float | None, most_cost: float | None, mean_cost: float | None
) -> None:
    if not isinstance(at_most, Integral) or isinstance(at_most, bool) or at_most < 1:
        reject("at_most", "a whole number from 1 up", repr(at_most))
    if cover is not None and not (isinstance(cover, Real) and 0 < float(cover) <= 1):
        reject("cover", "a share above 0, up to 1", repr(cover))
    for name, value in (("most_cost", most_cost), ("mean_cost", mean_cost)):
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            reject(name, "a distance above 0", repr(value))
    if not answers.groups:
        raise InvalidInput("Actions need the model, and explanations read from JSON have none; explain the rows again.")
    if any(group.question.plausibility is not None for group in answers.groups):
        raise InvalidInput("Actions do not know plausibility=: make an Explainer without it.")
