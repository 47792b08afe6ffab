"""What other models say of answers, each by its own predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.explanation.answers import Answers
from treefocus.explanation.stability import Stability
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.targets import Interval, Score


def stability_of(answers: Answers, models: Sequence[Any]) -> Stability:
    """What these models say of the answers, in the user's own table."""
    if not isinstance(models, Sequence) or not len(models):
        reject("models", "a list of one model or more", repr(models)[:80])
    has_answer = np.asarray(answers.has_answer, bool)
    points = np.where(has_answer[:, None], answers.points, answers.table.values)
    table = answers.table.like(points)
    return Stability.of(np.array([_agrees(model, answers, table, points) for model in models]), has_answer)


def _agrees(model: Any, answers: Answers, table: Any, points: Floats) -> Bools:
    """(n_rows,) whether a model gives each answer the class that it has, or a number where it was asked for."""
    if isinstance(model, Forest):
        if model.n_features != points.shape[1]:
            reject("models", f"of {points.shape[1]} columns", model.n_features)
        said = model.classes[kernels.predict(model, points)] if model.decision != "value" else None
        values = kernels.hard_scores(model, points)[:, 0]
    elif hasattr(model, "predict"):
        said = values = np.asarray(model.predict(table)).reshape(len(points))
    else:
        reject("models", "fitted models with predict, or forests", type(model).__name__)
    if not answers.is_value:
        return np.array([a == b for a, b in zip(_plain(said), _plain(answers.outcome), strict=True)], bool)
    return _lies_in(answers, np.asarray(values, np.float64))


def _lies_in(answers: Answers, values: Floats) -> Bools:
    """(n_rows,) whether numbers lie where they were asked to."""
    inside = np.zeros(len(values), bool)
    for group in answers.groups:
        target = group.question.target
        target = Interval(*target) if isinstance(target, tuple) else target
        if isinstance(target, Score) or not isinstance(target, Interval):
            raise InvalidInput("Raw scores of different models mean different things; ask about classes or intervals.")
        own = values[group.rows]
        inside[group.rows] = (own >= target.low) & (own <= target.high)
    return inside


def _plain(labels: Any) -> list[Any]:
    return [one.item() if isinstance(one, np.generic) else one for one in labels]
