"""What a letter tells of a row, computed before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.explanation.answers import Answers
from treefocus.explanation.change import as_written, told_value
from treefocus.explanation.factors import Factor, factors_of
from treefocus.render.views import RowView

MOST_REASONS = 4


@dataclass(frozen=True, eq=False)
class LetterFacts:
    """The answer, in round numbers where they were asked for, and what else the fields of a template need."""

    answer: RowView
    cells: tuple[tuple[str, Any], ...] = ()  # every column with the row's value
    factors: tuple[Factor, ...] = ()  # the principal ones
    n_trees: int = 0


def facts_of(answers: Answers, i: int, answer: RowView, fields: frozenset[str]) -> LetterFacts:
    """The facts that some fields of a letter about row i need; `answer` is what the letter tells of it."""
    factors: tuple[Factor, ...] = ()
    if "reasons" in fields:
        group, place = answers.asked_of(i)
        problem = group.problem.subset(np.array([place]))
        factors = factors_of(group.question.of_row(place), problem, answers.table, i)
    cells = tuple((feature.name, _cell(answers, i, j)) for j, feature in enumerate(answers.schema.features))
    n_trees = answers.model.n_trees if "procedure" in fields else 0
    return LetterFacts(answer, cells, factors[:MOST_REASONS], n_trees)


def _cell(answers: Answers, i: int, j: int) -> Any:
    table, value = answers.table, answers.table.cell(i, j)
    if value is None or table.labels_of(j) is not None:
        return value
    number = as_written(value, table.grain[j])
    return told_value(number, answers.schema.features[j], bool(table.is_boolean[j]))
