"""Which factors weighed most against a row: what each of them alone would gain, put where it usually is.

Of every column: its typical value among the training rows that have the wanted answer (the middle one of numbers, the
most frequent of categories), and by how much the model's own score for that answer rises when this column alone takes
that value. Columns that gain are the factors, the largest gain first. They say why the score is what it is; what would
change the answer is another question, and the counterfactual's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput
from treefocus.explanation import predictions
from treefocus.explanation.change import as_written, told_value
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.targets import ANY_OTHER, Interval, Probability
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table


@dataclass(frozen=True)
class Factor:
    """One column: its value, the typical one of rows with the wanted answer, and what taking that alone gains.

    The gain is in the probability of the wanted answer; of predicted numbers, in their own units.
    """

    feature: str
    value: Any
    typical: Any
    gain: float


def factors_of(question: Question, problem: Problem, table: Table, i: int) -> tuple[Factor, ...]:
    """The factors of row i of a table, the largest gain first; `question` and `problem` are the row's."""
    wanted = _wanted_rows(problem)
    row = problem.batch.rows[0]
    typical = np.array([_typical(wanted[:, j], is_word) for j, is_word in enumerate(problem.batch.is_category)])
    points = np.concatenate([row[None], np.repeat(row[None], len(row), axis=0)])
    np.fill_diagonal(points[1:], typical)
    score = _score(question, problem, points)
    gain = np.where(np.isnan(typical), 0.0, score[1:] - score[0])
    order = np.argsort(-gain, kind="stable")
    return tuple(
        Factor(
            question.schema.features[j].name,
            table.cell(i, j) if table.labels_of(j) is not None else _written(question, table, j, row[j]),
            _written(question, table, j, typical[j]),
            float(gain[j]),
        )
        for j in map(int, order)
        if gain[j] > 0
    )


def _wanted_rows(problem: Problem) -> Floats:
    """(n, n_features) the training rows that have the wanted answer."""
    if problem.examples is None:
        raise InvalidInput("The factors of an answer need training rows: Explainer(model, data).")
    reach, answer = int(problem.batch.target[0]), problem.examples.answer
    is_wanted = answer != problem.batch.origin[0] if reach == ANY_OTHER else answer == reach
    if not is_wanted.any():
        raise InvalidInput("The factors of an answer need training rows that have the wanted answer; none has.")
    return np.asarray(problem.examples.rows[is_wanted])


def _typical(values: Floats, is_word: bool) -> float:
    """The middle one of some numbers, or the most frequent category; NaN where none is known."""
    known = values[~np.isnan(values)]
    if not known.size:
        return float("nan")
    if is_word:
        codes, counts = np.unique(known, return_counts=True)
        return float(codes[np.argmax(counts)])
    return float(np.quantile(known, 0.5, method="lower"))  # one that a row has


def _score(question: Question, problem: Problem, points: Floats) -> Floats:
    """(n,) how near the model is to the wanted answer: its probability, or minus how far a number is from it."""
    model, target = problem.model, question.target
    if predictions.is_number(model, target):
        number = predictions.predictions(model, points)
        wanted = target if isinstance(target, Interval) else Interval(*target)
        return -np.maximum(np.maximum(wanted.low - number, number - wanted.high), 0.0)
    shares = predictions.probabilities(model, points)
    if isinstance(target, Probability):
        return np.asarray(shares[:, predictions.class_index(model, target.label)])
    reach = int(problem.batch.target[0])
    return np.asarray(1.0 - shares[:, problem.batch.origin[0]] if reach == ANY_OTHER else shares[:, reach])


def _written(question: Question, table: Table, j: int, value: float) -> Any:
    """A value of a column as people write it."""
    own = table.labels_of(j)
    if own is not None or np.isnan(value):
        return None if own is None else label_of(value, own)
    number = as_written(value, table.grain[j])
    return told_value(number, question.schema.features[j], bool(table.is_boolean[j]))
