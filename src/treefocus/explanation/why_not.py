"""What constraints do to one row: which of them leave it without an answer, and what each of them costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from treefocus.constraints.kinds import Constraint
from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats
from treefocus.problem.question import Question
from treefocus.render import recourse
from treefocus.render.phrases import DEFAULT
from treefocus.render.views import RowView
from treefocus.search.base import Outcome, Run, Status
from treefocus.search.conflicts import (
    answer_to,
    models_in_the_way,
    single,
    smallest_removal,
    without,
    without_models,
)
from treefocus.search.limits import DefaultSeconds, check_time_limit, time_limit_of

_SECONDS = DefaultSeconds(1.0)  # for each look, unless something else is asked for


class Answer(RowView, Protocol):
    """A row's answer that knows its question and can be given under another one; see `row.Explanation`."""

    @property
    def question(self) -> Question:
        """What was asked, of this row alone; an error where nobody knows."""
        ...

    @property
    def reason(self) -> str:
        """Why the row came out so."""
        ...

    @property
    def counterfactual(self) -> Floats | None:
        """The answer, None where there is none."""
        ...

    def under(self, question: Question, found: Outcome) -> Self:
        """The same row under another question."""
        ...


A = TypeVar("A", bound=Answer)
B = TypeVar("B", bound=Answer, covariant=True)


@dataclass(frozen=True, eq=False)
class WhyNot(Generic[B]):
    """The smallest set of constraints without which a row has an answer, and that answer.

    Where it has one if some of the models of `also=` are not asked, these are named instead. Empty where it has one
    anyway; None where it has none without any constraint either, for the bounds. Where answers
    have to be like the data (`plausibility=`), all this is about such answers.
    """

    constraints: tuple[Constraint, ...] | None
    is_proven: bool  # fewer will not do; of None: the bounds leave no answer
    explanation: B | None
    models: tuple[int, ...] = ()  # where models and not constraints are in the way: which of `also=`, counted from 0

    def to_text(self, language: str = DEFAULT) -> str:
        """The same as sentences."""
        return recourse.why_not(self, language)

    @property
    def written(self) -> tuple[str, ...]:
        """The constraints as they could have been written."""
        return tuple(constraint.to_text() for constraint in self.constraints or ())


@dataclass(frozen=True)
class Price:
    """What one constraint costs: the smallest change without it.

    saving: by how much, as a share, the change would be smaller; 1 - distance / the distance with it. Infinity where
    there is no change with it, and one without; 0 where it changes nothing.
    """

    constraint: Constraint
    distance: float | None  # None where there is no answer without it either
    saving: float
    is_proven: bool  # that the change without it is the smallest, or that there is none

    def to_text(self, language: str = DEFAULT) -> str:
        """The same as a sentence."""
        return recourse.price(self, language)

    @property
    def written(self) -> str:
        """The constraint as it could have been written."""
        return self.constraint.to_text()


def why_not(explanation: A, time_limit: float | None, n_jobs: int | None) -> WhyNot[A]:
    """Which constraints leave the row without an answer."""
    question = asked_again(explanation)
    if explanation.status.has_answer:
        return WhyNot((), True, explanation)
    run = looks(time_limit, n_jobs)
    if question.also:
        models, is_proven = models_in_the_way(question, run)
        if models:
            question = without_models(question, models)
            return WhyNot((), is_proven, explanation.under(question, answer_to(question, run)), models)
    removal = smallest_removal(question, run)
    if removal.constraints is None:
        return WhyNot(None, removal.is_proven, None)
    question = without(question, removal.constraints)
    found = answer_to(question, run)
    return WhyNot(removal.constraints, removal.is_proven, explanation.under(question, found))


def price_of_constraints(explanation: Answer, time_limit: float | None, n_jobs: int | None) -> tuple[Price, ...]:
    """What each constraint costs, the dearest first."""
    question = asked_again(explanation)
    run = looks(time_limit, n_jobs)
    prices = []
    for constraint in single(question.constraints):
        found = answer_to(without(question, [constraint]), run, explanation.counterfactual)
        has_answer = found.status[0].has_answer
        distance = float(found.distance[0]) if has_answer else None
        is_proven = found.status[0] in (Status.OPTIMAL, Status.INFEASIBLE)
        prices.append(Price(constraint, distance, _saving(explanation.distance, distance), is_proven))
    return tuple(sorted(prices, key=lambda price: -price.saving))


def looks(time_limit: float | None, n_jobs: int | None) -> Run:
    """One look after the other, each of which has the whole time."""
    check_time_limit(time_limit)
    return Run(n_jobs=n_jobs, time_limit=time_limit_of(_SECONDS, time_limit))


def _saving(before: float | None, after: float | None) -> float:
    if after is None:
        return 0.0
    if before is None:
        return np.inf
    return max(0.0, 1.0 - after / before) if before > 0 else 0.0


def asked_again(explanation: Answer) -> Question:
    """What was asked of a row that the model can read."""
    question = explanation.question
    if explanation.predicted is None:
        raise InvalidInput(f"Row {explanation.label!r} cannot be read by the model: {explanation.reason}.")
    return question
