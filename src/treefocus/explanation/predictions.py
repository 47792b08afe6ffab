"""What the model itself says of rows and answers, in the terms of the question: a class, a number, or a probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.kernels import reference
from treefocus.model.forest import Floats, Forest
from treefocus.model.shares import has_shares
from treefocus.problem.question import Group, scattered
from treefocus.problem.targets import Interval, Probability
from treefocus.search.base import Outcome, Status


@dataclass(frozen=True, eq=False)
class Predicted:
    """What the model says of rows and of their answers."""

    before: NDArray[Any]  # (n_rows,) the class or the number of each row, None where the model cannot read it
    after: NDArray[Any]  # (n_rows,) of each answer, None where there is none
    is_value: bool = False  # numbers that it predicts, or raw scores, and not classes
    favoured: Any = None  # the class whose probability was asked for
    likelihood: Floats | None = None  # (n_rows, 2) its probability before and after, NaN where there is none
    favoured_of: tuple[Any, ...] | None = None  # the class, one a row, where they differ

    @classmethod
    def of(cls, model: Forest, target: Any, rows: Floats, outcome: Outcome) -> Predicted:
        """For a question with this target, its rows and what was found."""
        is_read, n_rows = outcome.status != Status.INVALID, len(rows)
        points, is_asked = np.concatenate([rows, outcome.points]), np.concatenate([is_read, outcome.has_answer])
        favoured = target.label if isinstance(target, Probability) else None
        favoured = favoured.item() if isinstance(favoured, np.generic) else favoured
        answers, likelihood = np.full(2 * n_rows, None, object), None
        if is_asked.any() and is_number(model, target):
            answers[is_asked] = predictions(model, points[is_asked]).tolist()
        elif is_asked.any():
            answers[is_asked] = model.classes[kernels.predict(model, points[is_asked])]
        if favoured is not None:
            of_point = np.full(2 * n_rows, np.nan)
            of_point[is_asked] = probabilities(model, points[is_asked])[:, class_index(model, favoured)]
            likelihood = np.ascontiguousarray(of_point.reshape(2, n_rows).T)
        return cls(answers[:n_rows], answers[n_rows:], is_number(model, target), favoured, likelihood)

    @classmethod
    def scattered(cls, groups: Sequence[Group], of_group: Sequence[Predicted]) -> Predicted:
        """One of the predictions for groups of rows that were asked different questions."""
        first = of_group[0]
        is_same = all(one.favoured == first.favoured for one in of_group)
        return cls(
            scattered(groups, [one.before for one in of_group]),
            scattered(groups, [one.after for one in of_group]),
            first.is_value,
            first.favoured if is_same else None,
            None if first.likelihood is None else scattered(groups, [one.likelihood for one in of_group]),
            None if is_same else tuple(scattered(groups, [[one.favoured] * len(one.before) for one in of_group])),
        )


def likelihood_of(says: Predicted, i: int) -> tuple[float, float | None] | None:
    """The probability of the class asked for in row i, before and after; None where none was, and for no answer."""
    if says.likelihood is None or says.before[i] is None:
        return None
    before, after = says.likelihood[i].tolist()
    return before, None if np.isnan(after) else after


def is_number(model: Forest, target: Any) -> bool:
    """Whether the model's answer to a question with this target is a number, and not a class."""
    if isinstance(target, Probability):
        return False
    return model.decision == "value" or isinstance(target, Interval)


def probabilities(forest: Forest, rows: Floats) -> Floats:
    """(n_rows, n_classes) what the source model's `predict_proba` says, as far as the forest knows.

    Where the forest has a link, by that; shares of votes are probabilities already, weighted votes and raw scores go
    through a softmax, a single score through a sigmoid around its cut.
    """
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number and has no probabilities; see predictions().")
    scores = kernels.hard_scores(forest, rows)
    if forest.n_outputs == 1 and (forest.link == "sigmoid" or forest.maps or forest.voices):
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
