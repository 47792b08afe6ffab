"""The source model itself, where it is at hand: it judges every answer before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.grid import readable
from treefocus.model.source import Answer, Source, remembered
from treefocus.problem.problem import Problem
from treefocus.problem.targets import Interval, Probability, Score
from treefocus.search.base import Outcome, Status
from treefocus.search.confirmed import Confirm, sure

Own = Callable[[Floats], Bools]  # (n_rows,) whether the source model's own numbers are what is asked for


@dataclass(frozen=True, eq=False)
class Judge:
    """A forest, and what its source model says of rows; None where the model is not at hand."""

    forest: Forest
    predict: Answer | None
    scores: Answer | None
    probabilities: Answer | None
    also: tuple[Judge, ...] = ()  # of other models that have to give the wanted outcome, too

    @classmethod
    def of(cls, source: Source, also: Sequence[Source] = ()) -> Judge:
        """The judge of a model, with those of others."""
        others = tuple(cls.of(one) for one in also)
        return cls(source.forest, source.predict, source.scores, source.probabilities, others)

    def remembering(self) -> Judge:
        """The same, which asks its model once about the same points, to confirm them and to have the last word."""

        def kept(answer: Answer | None) -> Answer | None:
            return None if answer is None else remembered(answer)

        also = tuple(one.remembering() for one in self.also)
        return Judge(self.forest, kept(self.predict), kept(self.scores), kept(self.probabilities), also)

    def confirming(self, target: Any) -> Confirm:
        """What confirms answers: the source model's own number where it is at hand, else what is sure without it."""
        if not all(judge._is_at_hand(target) for judge in (self, *self.also)):
            return sure if not self.also else self._sure(target)
        return lambda problem, points: (
            problem.obeys(points)
            & self._says_so(target, problem, points)
            & _is_like_data(problem, points)
            & _has_room(problem, points)
        )

    def overrule(self, target: Any, problem: Problem, outcome: Outcome) -> list[int]:
        """Take back what the model cannot read, and what it does not confirm itself where it is at hand; the rows."""
        answered = np.flatnonzero(outcome.has_answer)
        points = outcome.points[answered]
        wrong = answered[~self._says_so(target, problem.subset(answered), points)]
        outcome.points[wrong], outcome.distance[wrong], outcome.lower_bound[wrong] = np.nan, np.nan, 0.0
        outcome.status[wrong] = Status.NOT_FOUND
        return wrong.tolist()  # type: ignore[no-any-return]

    def _is_at_hand(self, target: Any) -> bool:
        """Whether the model itself can be asked about such a target."""
        return self._own_answer(target) is not None or (
            self.predict is not None and not isinstance(target, Probability | Interval)
        )

    def _sure(self, target: Any) -> Confirm:
        """What is sure of all models, and confirmed by those that are at hand."""
        return lambda problem, points: sure(problem, points) & self._says_so(target, problem, points)

    def _says_so(self, target: Any, problem: Problem, points: Floats) -> Bools:
        """(n_rows,) which points the model reads, and says itself of them what is asked for where it is at hand."""
        problem = problem.relaxed or problem
        own, labels = self._own_answer(target), None
        if problem.forest.members and own is None and not isinstance(target, Probability | Interval):
            labels = self.forest.classes[problem.batch.target]
        each = [judge._agrees(own_of, labels, problem, points) for judge, own_of in self._asked(target)]
        return np.asarray(np.all(each, axis=0))

    def _asked(self, target: Any) -> list[tuple[Judge, Own | None]]:
        return [(judge, judge._own_answer(target)) for judge in (self, *self.also)]

    def _agrees(self, own: Own | None, labels: Any, problem: Problem, points: Floats) -> Bools:
        """(n_rows,) the same of this model alone; labels: (n_rows,) the wanted classes, where several have to agree."""
        is_answer = np.asarray(readable(points, self.forest).all(axis=1))
        read = np.flatnonzero(is_answer)
        if self.predict is None or not read.size:
            return is_answer
        asked = points[read]
        if labels is not None:
            is_answer[read] = np.asarray(self.predict(asked)) == labels[read]
            return is_answer
        of_class = problem.batch.subset(read).is_flipped
        is_answer[read] = of_class(self._decided(problem, asked)) if own is None else own(asked)
        return is_answer

    def _own_answer(self, target: Any) -> Own | None:
        """Whether the source model's own numbers are what is asked for; None for classes, and without the model."""
        if isinstance(target, tuple) and self.forest.decision == "value":
            target = Interval(*target)
        if isinstance(target, Probability):
            own, least = self.probabilities, float(target.at_least)
            label = target.label.item() if isinstance(target.label, np.generic) else target.label
            column = self.forest.classes.tolist().index(label)
            return None if own is None else lambda points: own(points)[:, column].astype(np.float64) >= least
        if isinstance(target, Interval):
            asked = self.scores if isinstance(target, Score) else self.predict
            return None if asked is None else lambda points: _lies_in(target, asked(points))
        return None

    def _decided(self, problem: Problem, points: Floats) -> Ints:
        """(n_rows,) the class by the source model's own answers."""
        is_of_classes = problem.forest.decision == self.forest.decision and problem.forest.cut == self.forest.cut
        if self.predict is None or not is_of_classes:
            return kernels.predict(problem.forest, points)
        said = self.predict(points)
        position = {label: index for index, label in enumerate(self.forest.classes.tolist())}
        return np.array([position[label] for label in said.tolist()], np.int32)


def _is_like_data(problem: Problem, points: Floats) -> Bools:
    """(n_rows,) whether each point obeys the limit of plausibility that is part of the problem, by its own measure."""
    return np.ones(len(points), bool) if problem.isolation is None else problem.isolation.holds(points)


def _has_room(problem: Problem, points: Floats) -> Bools:
    """(n_rows,) whether each point has the room to move that was asked for, as far as can be told for sure."""
    if problem.room is None:
        return np.ones(len(points), bool)
    form = problem.sure()
    return np.zeros(len(points), bool) if form is None else form.has_room(points)


def _lies_in(interval: Interval, values: Any) -> Bools:
    """(n_rows,) whether each of the model's own numbers lies in the interval."""
    own = np.asarray(values, np.float64).reshape(len(values), -1)[:, 0]
    return np.asarray((own >= interval.low) & (own <= interval.high))
