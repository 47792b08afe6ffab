"""A menu of levers: what each named group of columns can do alone, and small unions of them together.

Every line is a question of its own, the row's question with all other columns fixed, answered by the exact search: the
smallest change with those columns alone, proven or bounded, or that there is provably none. What a smaller union can do
a larger one can, so answers of the smaller are where the search of the larger starts; and where all levers together can
do nothing, none of them can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, Generic

import numpy as np

from treefocus.errors import reject
from treefocus.explanation.why_not import A, B, asked_again, looks
from treefocus.problem.fitting import fixed_besides
from treefocus.problem.question import Question
from treefocus.render import plot, recourse
from treefocus.render.phrases import DEFAULT
from treefocus.search.base import Outcome, Status
from treefocus.search.conflicts import answer_to
from treefocus.tables.frames import frame_of

Levers = Mapping[str, str | int | Sequence[str | int]]


@dataclass(frozen=True, eq=False)
class MenuItem(Generic[B]):
    """What some levers can do together, all other columns as they are.

    Attributes
    ----------
    levers : tuple of str
        Their names.
    needed : tuple of str
        Those of them whose columns the answer changes; fewer than `levers` where one more gives nothing.
    explanation : Explanation
        The answer, or why there is none.
    """

    levers: tuple[str, ...]
    needed: tuple[str, ...]
    explanation: B

    @property
    def status(self) -> Status:
        """How it came out: OPTIMAL, BOUNDED, INFEASIBLE (proven: they cannot do it) or NOT_FOUND."""
        return self.explanation.status

    @property
    def distance(self) -> float | None:
        """How far the answer is, None where there is none."""
        return self.explanation.distance


@dataclass(frozen=True, eq=False)
class Menu(Generic[B]):
    """Every lever and small union of levers, in the order in which they were named, the smaller unions first."""

    items: tuple[MenuItem[B], ...]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, levers: int | str | Iterable[str]) -> MenuItem[B]:
        """An item by its place, by its lever, or by its levers."""
        if isinstance(levers, int):
            return self.items[levers]
        wanted = {levers} if isinstance(levers, str) else set(levers)
        for item in self.items:
            if set(item.levers) == wanted:
                return item
        raise KeyError(levers)

    def to_text(self, language: str = DEFAULT) -> str:
        """A sentence a line."""
        return recourse.menu(self.items, language)

    def to_frame(self) -> Any:
        """The lines as a DataFrame: levers, status, distance, lower bound, and what would change."""
        return frame_of(self.records())

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name."""
        return {
            "levers": [" + ".join(item.levers) for item in self.items],
            "needed": [" + ".join(item.needed) for item in self.items],
            "status": [item.status.name for item in self.items],
            "distance": [item.distance for item in self.items],
            "lower_bound": [item.explanation.lower_bound for item in self.items],
            "changes": [recourse.changes(item.explanation) for item in self.items],
        }

    def plot(self, ax: Any = None, *, language: str = DEFAULT) -> Any:
        """How far each line's change is, as bars, and which lines can do nothing (needs matplotlib); returns axes."""
        return plot.menu_bars(self.items, ax, language)

    def __repr__(self) -> str:
        return self.to_text()


def menu(explanation: A, levers: Levers, at_most: int, time_limit: float | None, n_jobs: int | None) -> Menu[A]:
    """What the levers can do, alone and in unions of up to `at_most`."""
    question, run = asked_again(explanation), looks(time_limit, n_jobs)
    columns = _columns_of(levers, question)
    if not isinstance(at_most, Integral) or isinstance(at_most, bool) or at_most < 1:
        reject("at_most", "a whole number from 1 up", repr(at_most))
    unions = [union for size in range(1, int(at_most) + 1) for union in combinations(levers, size)]

    def asked(union: Iterable[str]) -> Question:
        free = sorted({j for name in union for j in columns[name]})
        return question.under((*question.constraints, *fixed_besides(free, question.schema)))

    everything = answer_to(asked(levers), run)
    is_hopeless = everything.status[0] is Status.INFEASIBLE
    found: dict[tuple[str, ...], Outcome] = {}
    for union in unions:
        is_all = len(union) == len(levers)
        known = _closest(found, union)
        found[union] = everything if is_all or is_hopeless else answer_to(asked(union), run, known)
    return Menu(
        tuple(
            MenuItem(union, _needed(union, columns, question, outcome), explanation.under(asked(union), outcome))
            for union, outcome in found.items()
        )
    )


def _columns_of(levers: Levers, question: Question) -> dict[str, list[int]]:
    """The positions of every lever's columns."""
    if not isinstance(levers, Mapping) or not levers:
        reject("levers", 'names with their columns, {"money": ["income", "savings"]}', repr(levers))
    found = {}
    for name, own in levers.items():
        listed = [own] if isinstance(own, str | int) else list(own)
        if not isinstance(name, str) or not listed:
            reject(f"levers[{name!r}]", "a name with at least one column", repr(own))
        found[name] = question.schema.positions(listed)
    return found


def _closest(found: Mapping[tuple[str, ...], Outcome], union: tuple[str, ...]) -> Any:
    """The closest answer of a smaller union, None where none has one."""
    smaller = [
        outcome for levers, outcome in found.items() if set(levers) < set(union) and outcome.status[0].has_answer
    ]
    return min(smaller, key=lambda outcome: float(outcome.distance[0])).points[0] if smaller else None


def _needed(
    union: tuple[str, ...], columns: Mapping[str, list[int]], question: Question, outcome: Outcome
) -> tuple[str, ...]:
    """The levers without which the answer could not be had: the fewest whose columns hold all that changes."""
    if not outcome.status[0].has_answer:
        return union
    row, point = question.rows[0], outcome.points[0]
    changed = set(np.flatnonzero((row != point) & ~(np.isnan(row) & np.isnan(point))).tolist())
    for size in range(len(union) + 1):
        for some in combinations(union, size):
            if changed <= {j for name in some for j in columns[name]}:
                return some
    return union
