"""Which constraints stand in the way: the smallest set without which there is an answer.

A conflict is a set of constraints that no answer obeys together; whatever is removed must meet every conflict. So take
the smallest set that meets all conflicts known so far and look whether there is an answer without it. If there is, no
smaller set will do. If not, what is left holds another conflict: make it small by leaving out what it does not need,
and go on. With room to move this does not follow, since fewer constraints make more room, in which more can go wrong:
there every set is looked at, the smallest first. Whether there is an answer at all is asked with a distance of 0
everywhere, so that the search ends at the first; where answers have to be like the data by their outlier factor, by the
search that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import ClassVar

import numpy as np

from treefocus.constraints.kinds import Constraint, Decreasing, Fixed, Increasing, MayBeMissing
from treefocus.model.forest import Floats
from treefocus.problem.distances import FewestFeatures
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.search.auto import Auto
from treefocus.search.base import Incumbent, Outcome, Run, Status, Strategy, solved
from treefocus.search.confirmed import Confirmed, sure
from treefocus.search.exact import Exact
from treefocus.search.plausible import Plausible

_SPLIT = (Fixed, Increasing, Decreasing)  # each column is a constraint of its own
Numbers = frozenset[int]
_MOST_TRIED, _LARGEST_TRIED = 8, 2  # numbers of which every set is looked at, and the size of sets of more


@dataclass(frozen=True)
class Removal:
    """Constraints without which there is an answer; None where there is none without any of them either."""

    constraints: tuple[Constraint, ...] | None
    is_proven: bool  # no smaller set will do; without any: there is no answer at all


def single(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints one by one: `Fixed("a", "b")` is two. What allows rather than forbids is left out."""
    found: list[Constraint] = []
    for constraint in constraints:
        if isinstance(constraint, _SPLIT):
            found += [type(constraint)(column) for column in constraint.columns]
        elif not isinstance(constraint, MayBeMissing):
            found.append(constraint)
    return tuple(dict.fromkeys(found))


def without(question: Question, removed: Iterable[Constraint]) -> Question:
    """The question with all but these of its single constraints."""
    gone = set(removed)
    allowances = tuple(one for one in question.constraints if isinstance(one, MayBeMissing))
    return question.under((*allowances, *(one for one in single(question.constraints) if one not in gone)))


def smallest_removal(question: Question, run: Run) -> Removal:
    """The smallest set of constraints without which the one row of the question has an answer.

    What the run's time limit leaves open at a look counts as no answer, and is not proven.
    """
    constraints = single(question.constraints)
    find = _smallest if question.tolerance is None else _first
    removed, is_proven = find(
        len(constraints), lambda gone: _look(without(question, [constraints[k] for k in gone]), run)
    )
    return Removal(None if removed is None else tuple(constraints[k] for k in sorted(removed)), is_proven)


def models_in_the_way(question: Question, run: Run) -> tuple[tuple[int, ...] | None, bool]:
    """The fewest of the other models without which the one row has an answer, by number; and whether that is proven.

    None where it has no answer without any of them either.
    """
    removed, is_proven = _smallest(len(question.also), lambda gone: _look(without_models(question, gone), run))
    return None if removed is None else tuple(sorted(removed)), is_proven


def without_models(question: Question, removed: Iterable[int]) -> Question:
    """The question to all but these of the other models."""
    gone = set(removed)
    return replace(question, also=tuple(one for k, one in enumerate(question.also) if k not in gone))


def _smallest(n: int, look: Callable[[Numbers], Status]) -> tuple[Numbers | None, bool]:
    """The smallest of the sets of numbers below n without which a look finds an answer, and whether that is proven."""
    every, open_looks = frozenset(range(n)), 0

    def has_answer(removed: Numbers) -> bool:
        nonlocal open_looks
        status = look(removed)
        open_looks += status is Status.NOT_FOUND
        return status.has_answer

    if not has_answer(every):
        return None, open_looks == 0
    conflicts: list[Numbers] = []
    while True:
        removed = smallest_hitting_set(conflicts)
        if has_answer(removed):
            return removed, open_looks == 0
        conflict = every - removed
        for k in sorted(conflict):
            if len(conflict) > 1 and not has_answer(every - conflict | {k}):
                conflict -= {k}
        conflicts.append(conflict)


def _first(n: int, look: Callable[[Numbers], Status]) -> tuple[Numbers | None, bool]:
    """The same where a set may find an answer and a larger one none: by trying all, of many numbers the small ones."""
    is_proven, most = True, n if n <= _MOST_TRIED else _LARGEST_TRIED
    for removed in chain.from_iterable(combinations(range(n), size) for size in range(most + 1)):
        status = look(frozenset(removed))
        if status.has_answer:
            return frozenset(removed), is_proven
        is_proven &= status is not Status.NOT_FOUND
    if most < n and look(frozenset(range(n))).has_answer:
        return frozenset(range(n)), False
    return None, is_proven and most == n


def smallest_hitting_set(sets: Sequence[Numbers]) -> Numbers:
    """One of the smallest sets that meet all of these, none of which is empty."""
    for size in range(len(sets) + 1):
        found = _hit(sets, frozenset(), size)
        if found is not None:
            return found
    raise AssertionError("an empty set cannot be met")


def _hit(sets: Sequence[Numbers], chosen: Numbers, size: int) -> Numbers | None:
    left = [own for own in sets if not own & chosen]
    if not left:
        return chosen
    if size == 0:
        return None
    smallest: Numbers = min(left, key=len)
    for number in sorted(smallest):
        found = _hit(left, chosen | {number}, size - 1)
        if found is not None:
            return found
    return None


def answer_to(question: Question, run: Run, known: Floats | None = None) -> Outcome:
    """The answer to the one row of a question, plausible where that is asked, from a known one if there is one."""
    problem = question.problem()
    if not problem.has_box[0]:
        return Outcome.nothing(problem, np.array([True]))
    is_searchable = problem.distance.norms is not None or problem.distance.compiled is not None
    chosen: Strategy = _From(known) if is_searchable else Auto()
    if question.plausibility is not None:
        chosen = Plausible(chosen, question.plausibility)
    return solved(Confirmed(chosen), problem, run)


@dataclass(frozen=True, eq=False)
class _From(Strategy):
    """The exact search of one row, from a point that may be an answer."""

    proves: ClassVar[bool] = True

    point: Floats | None

    def solve(self, problem: Problem, run: Run) -> Outcome:
        incumbent = Incumbent(problem)
        if self.point is not None:
            incumbent.offer(np.repeat(self.point[None], len(problem), axis=0))
        return Exact().prove(problem, incumbent, run)


def _look(question: Question, run: Run) -> Status:
    """Whether the row has an answer, wherever it is."""
    problem = question.problem()
    if not problem.has_box[0]:
        return Status.INFEASIBLE
    wants_other = problem.batch.target[0] < 0
    if not wants_other and sure(problem, problem.batch.rows)[0]:
        return Status.OPTIMAL
    if question.plausibility is not None and problem.isolation is None:
        return answer_to(question, run).status[0]  # type: ignore[no-any-return]
    nowhere = replace(problem, relaxed=None, distance=FewestFeatures(np.zeros(problem.forest.n_features)))
    return solved(Confirmed(Exact()), nowhere, run).status[0]  # type: ignore[no-any-return]
