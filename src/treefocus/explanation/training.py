"""What `hold=` takes: refits, made once and kept, and the question that they and a margin make harder.

Refits are given, or made of the model, the training rows and their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.explanation.batch import Explanations
from treefocus.explanation.holding import N_REFITS, N_ROWS, Holding, has_law, margin_by_law
from treefocus.explanation.refits import refits
from treefocus.model.forest import Floats, Forest
from treefocus.model.source import Source
from treefocus.problem.joint import Companion
from treefocus.problem.question import Question
from treefocus.problem.targets import Interval, Probability, Score, as_targets
from treefocus.search import Auto, Run
from treefocus.search.base import solved


@dataclass(eq=False)
class Training:
    """How the model can be trained again, and the refits once they were."""

    model: Any = None
    data: Any = None
    labels: Any = None
    models: tuple[Any, ...] = ()  # that were trained again already
    names: Sequence[str] | None = None
    fitted: Callable[[Sequence[Any]], tuple[Source, ...]] | None = None  # models as rows of the first one take them
    kept: Holding | None = None
    lock: Any = field(default_factory=Lock, repr=False)  # a server asks from several threads

    @property
    def can_refit(self) -> bool:
        """Whether there are refits, or what they are made of."""
        return self.kept is not None or self.labels is not None or bool(self.models)

    def holding(self) -> Holding:
        """The refits in their three parts."""
        with self.lock:
            if self.kept is None:
                assert self.fitted is not None, "who can refit knows how models are read"
                self.kept = Holding.of(self.fitted(list(self.again())))
            return self.kept

    def again(self) -> tuple[Any, ...]:
        """The models that were trained again, now where that is not done yet; none without labels."""
        if not self.models and self.labels is not None:
            if self.data is None:
                raise InvalidInput("labels= needs data=: the training rows that they are the labels of.")
            table = self.data
            if self.names is not None and hasattr(table, "columns"):
                table = table[list(self.names)]
            self.models = tuple(refits(self.model, table, self.labels, N_REFITS))
        return self.models

    def asked(self, question: Question, hold: float, n_jobs: int | None) -> Question:
        """The question with a companion that is ahead by a margin: pooled refits, or the forest itself by its law."""
        labels = wanted_labels(question)
        if not self.can_refit:
            ahead = Companion(question.forest, margin_by_law(question.forest, hold))
            return replace(question, also=(*question.also, ahead))
        holding = self.holding()
        margins = [self._margin(question, hold, label, n_jobs) for label in dict.fromkeys(labels)]
        return replace(question, also=(*question.also, Companion(holding.pool, max(margins, default=0.0))))

    def can_hold(self, forest: Forest, target: Any) -> bool:
        """Whether `hold=` can be asked for: with a class as target, and refits or a forest whose votes have a law."""
        if forest.decision == "value" or isinstance(target, Probability | Interval | Score):
            return False
        wants_one = target is not None and not isinstance(target, list | tuple)
        return (wants_one or forest.n_classes == 2) and (self.can_refit or has_law(forest))

    def _margin(self, question: Question, hold: float, label: Any, n_jobs: int | None) -> float:
        holding = self.holding()
        rows = calibration_rows(question.forest, question.examples, label)

        def answered(margin: float, some: slice) -> Floats:
            asked = replace(question, rows=rows[some], target=label)
            asked = replace(asked, also=(*question.also, Companion(holding.pool, margin)))
            found = solved(Auto(prove=False), asked.problem(), Run(n_jobs=n_jobs))
            return np.asarray(found.points[found.has_answer])

        return holding.margin(hold, label, answered, len(rows))

    def prepare(self, question: Question, hold: float) -> None:
        """Train what that takes, and calibrate its margins, on rows of the data."""
        rows = calibration_rows(question.forest, question.examples, None)
        self.asked(replace(question, rows=rows), hold, None)

    def measured(self, found: Explanations) -> Explanations:
        """The answers with what refits say of them that had no part in any; as they are where there are no refits."""
        if not self.can_refit:
            return found
        held = self.holding().measured(found.points, list(found.outcome), np.asarray(found.has_answer, bool))
        return replace(found, held=held)

    def portable(self) -> Training:
        """The same to be sent elsewhere: with forests in place of live models, once the refits are made."""
        return self if self.kept is None else Training(kept=self.kept.without_models())

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, and without the model where there is nothing to train it with."""
        own = self.__dict__ if self.can_refit else Training().__dict__
        return {name: value for name, value in own.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"lock": Lock()}


def beside_smallest(found: Explanations, smallest: Explanations) -> Explanations:
    """The answers with how far the smallest changes are, so that they can say how many times that they are."""
    return replace(found, smallest=np.where(smallest.has_answer, smallest.distance, np.nan))


def wanted_labels(question: Question) -> list[Any]:
    """(n_rows,) the class that each row wants, of a question that asks for classes."""
    forest, target = question.forest, question.target
    if forest.decision == "value" or isinstance(target, Probability | Interval):
        raise InvalidInput("hold= is a margin itself, for a class as target=, not for a probability or a number.")
    targets = as_targets(target, forest, len(question.rows))
    if (targets < 0).any() and forest.n_classes != 2:
        raise InvalidInput("hold= takes the class that is wanted, target=, where a model has more than two.")
    wanted = np.where(targets >= 0, targets, 1 - kernels.predict(forest, question.rows))
    return [forest.classes.tolist()[k] for k in wanted]


def calibration_rows(forest: Forest, examples: Floats | None, label: Any) -> Floats:
    """Some rows of the data that do not have the wanted class yet, in an order by chance, the same ones every time."""
    if examples is None:
        raise InvalidInput("hold= needs data=: rows on which its margin is calibrated.")
    others = np.flatnonzero(forest.classes[kernels.predict(forest, examples)] != label)
    if not others.size:
        return examples[:0]
    chosen = np.random.default_rng(0).choice(others, min(N_ROWS, len(others)), replace=False)
    return np.asarray(examples[chosen])
