"""What the model itself says of rows and answers, in the terms of the question: a class, a number, or a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.kernels import reference
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.problem import Problem
from treefocus.problem.targets import Interval, Probability, has_shares
from treefocus.search.base import Outcome, Status


@dataclass(frozen=True, eq=False)
class Told:
    """A model, and what is told of it."""

    model: Forest
    is_value: bool = False  # the number that it predicts, or its raw score, and not a class
    favoured: Any = None  # the class whose probability is asked for

    def answers(self, rows: Floats, is_told: Bools) -> NDArray[Any]:
        """(n_rows,) the class or the number for each row, None for those of which nothing is told."""
        answers = np.full(len(rows), None, object)
        chosen = np.flatnonzero(is_told)
        if chosen.size and self.is_value:
            answers[chosen] = predictions(self.model, rows[chosen]).tolist()
        elif chosen.size:
            answers[chosen] = self.model.classes[kernels.predict(self.model, rows[chosen])]
        return answers

    def likelihood(self, rows: Floats, outcome: Outcome) -> Floats | None:
        """(n_rows, 2) the probability of the favoured class before and after, NaN where there is none."""
        if self.favoured is None:
            return None
        column = class_index(self.model, self.favoured)
        result = np.full((len(rows), 2), np.nan)
        told = (rows, outcome.status != Status.INVALID), (outcome.points, outcome.has_answer)
        for side, (points, is_told) in enumerate(told):
            result[is_told, side] = probabilities(self.model, points[is_told])[:, column]
        return result


def told_of(model: Forest, target: Any) -> Told:
    """What to tell, for a question with this target."""
    if isinstance(target, Probability):
        label = target.label.item() if isinstance(target.label, np.generic) else target.label
        return Told(model, favoured=label)
    return Told(model, is_value=model.decision == "value" or isinstance(target, Interval))


def probabilities(forest: Forest, rows: Floats) -> Floats:
    """(n_rows, n_classes) what the source model's `predict_proba` says, as far as the forest knows.

    Where the forest has a link, by that; shares of votes are probabilities already, weighted votes and raw scores go
    through a softmax, a single score through a sigmoid around its cut.
    """
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number and has no probabilities; see predictions().")
    scores = kernels.hard_scores(forest, rows)
    if forest.n_outputs == 1 and forest.link == "sigmoid":
        second = reference.shown(forest, scores)[:, 0].astype(forest.score_dtype)
        return np.stack([1 - second, second], axis=1).astype(np.float64)
    if forest.n_outputs == 1:
        with np.errstate(over="ignore"):
            second = 1.0 / (1.0 + np.exp(forest.cut - scores[:, 0]))
        return np.stack([1.0 - second, second], axis=1)
    if forest.link in ("softmax", "sigmoid") or has_shares(forest):
        return reference.shown(forest, scores)
    if forest.tree_weight is not None and forest.leaf_distribution is None and (forest.leaf_value >= 0).all():
        total = scores.sum(axis=1, keepdims=True)
        return np.asarray(scores / np.where(total > 0, total, 1.0))
    if forest.leaf_distribution is not None:  # weighted votes, as AdaBoost counts them
        scores = scores / (forest.n_classes - 1)
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def predictions(forest: Forest, rows: Floats) -> Floats:
    """(n_rows,) the number that a model with a single score shows: what a regressor predicts, else the raw score."""
    scores = kernels.hard_scores(forest, rows)
    return (reference.shown(forest, scores) if forest.decision == "value" else scores)[:, 0]


def class_index(forest: Forest, label: Any) -> int:
    """The position of a class among the forest's."""
    return int(forest.classes.tolist().index(label))


def known(problem: Problem | None) -> Problem:
    """The question, which explanations that were read from a file do not have."""
    if problem is None:
        raise InvalidInput("This needs the model, and explanations read from JSON have none; explain the rows again.")
    return problem
