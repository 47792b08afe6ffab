"""The answers to a batch as data, and the one place that knows how they are made of rows, questions and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.explanation.change import Changes, changes_of
from treefocus.explanation.predictions import Predicted
from treefocus.explanation.reasons import Reason, reasons_of
from treefocus.explanation.rounding import shortest_in_cell
from treefocus.explanation.stability import Stability
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.problem import Problem
from treefocus.problem.question import Group, Question, scattered
from treefocus.schema.schema import Schema
from treefocus.search.base import Outcome, joined
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table

_NO_MODEL = "This needs the model, and explanations read from JSON have none; explain the rows again."


@dataclass(frozen=True, eq=False)
class Description:
    """How answers are told: what the model says of them, in which numbers, and what each feature does."""

    says: Predicted
    shown: Floats  # (n_rows, n_features) the points in the shortest numbers of the same cells
    parts: Floats  # (n_rows, n_features) each feature's part of the change in the scaled space

    @classmethod
    def of(cls, group: Group, found: Outcome) -> Description:
        """Of a group's answers."""
        question, problem, points = group.question, group.problem, found.points
        says = Predicted.of(question.forest, question.target, question.rows, found)
        return cls(says, shortest_in_cell(problem, points), problem.batch.changes(points))


Describe = Callable[[], Description]


class _Later:
    """The description of what was found, made when it is asked for: who only wants the points waits for no words."""

    def __init__(self, groups: tuple[Group, ...], outcomes: Sequence[Outcome]) -> None:
        self._groups, self._outcomes = groups, outcomes
        self._made: Description | None = None

    def __call__(self) -> Description:
        if self._made is None:  # made twice by two threads it is the same twice
            self._made = self._make()
        return self._made

    def _make(self) -> Description:
        each = [Description.of(group, found) for group, found in zip(self._groups, self._outcomes, strict=True)]
        if len(each) == 1:
            return each[0]
        return Description(
            Predicted.scattered(self._groups, [one.says for one in each]),
            scattered(self._groups, [one.shown for one in each]),
            scattered(self._groups, [one.parts for one in each]),
        )


@dataclass(frozen=True, eq=False)
class Answers:
    """The rows that were asked about, what was asked, what was found, and what the model says of it."""

    table: Table
    schema: Schema
    found: Outcome
    described: Description | Describe  # or how to make it, when somebody asks
    why: tuple[Reason, ...]
    distance_name: str
    groups: tuple[Group, ...] = ()  # the questions and their rows; none where the answers were read from JSON
    seconds: float = 0.0
    row_labels: tuple[Any, ...] | None = None  # where the table does not have them
    others: tuple[Self, ...] = ()  # every row's second way out, third, ..., as far as they were asked for
    held: Stability | None = None  # what other models say of the answers, where they were asked
    smallest: Floats | None = None  # (n_rows,) the distance of the smallest change, where more was asked for
    demanding: Bools | None = None  # (n_rows,) whether more was asked for, where there are no groups that say so
    larger: Floats | None = None  # (n_rows,) by how much, as a share, round numbers make the changes larger

    @classmethod
    def of(
        cls,
        table: Table,
        groups: tuple[Group, ...],
        found: Sequence[tuple[Outcome, tuple[Reason, ...]]],
        distance_name: str,
    ) -> Self:
        """What was found for the rows of a table, group by group, and why it is so."""
        outcomes, reasons = zip(*found, strict=True)
        is_one = len(groups) == 1
        return cls(
            table=table,
            schema=groups[0].question.schema,
            found=outcomes[0] if is_one else joined(groups, outcomes),
            described=_Later(groups, outcomes),
            why=reasons[0] if is_one else tuple(scattered(groups, reasons)),
            distance_name=distance_name,
            groups=groups,
        )

    def of_row(self, i: int, question: Question, found: Outcome) -> Self:
        """One row alone under another question, of this row, and what was found there."""
        groups = (Group(np.arange(1), question),)
        made = type(self).of(self.table.only(i), groups, [(found, reasons_of(found))], self.distance_name)
        return replace(made, schema=self.schema, row_labels=(self.labels[i],))

    @property
    def description(self) -> Description:
        """How the answers are told; made once."""
        return self.described() if callable(self.described) else self.described

    def timed(self, seconds: float) -> Self:
        """The same, with how long it took."""
        return replace(self, seconds=seconds, others=tuple(other.timed(seconds) for other in self.others))

    def __len__(self) -> int:
        return len(self.found.points)

    # --- what was asked

    @property
    def problem(self) -> Problem | None:
        """The question as a search takes it; None where rows were asked different ones, or nobody knows any more."""
        return self.groups[0].problem if len(self.groups) == 1 else None

    @property
    def question(self) -> Question | None:
        """The question as the user put it; None where rows were asked different ones, or nobody knows any more."""
        return self.groups[0].question if len(self.groups) == 1 else None

    def asked_of(self, i: int) -> tuple[Group, int]:
        """The group of row i, and its place there."""
        if not self.groups:
            raise InvalidInput(_NO_MODEL)
        number, place = self._places[i].tolist()
        return self.groups[number], place

    def is_demanding(self, i: int) -> bool:
        """Whether more was asked of row i than the model's own answer: other models, a margin, or room to move."""
        if self.groups:
            return self.asked_of(i)[0].question.is_demanding
        return self.demanding is not None and bool(self.demanding[i])

    @property
    def model(self) -> Forest:
        """The forest that was asked."""
        if not self.groups:
            raise InvalidInput(_NO_MODEL)
        return self.groups[0].question.forest

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """(n_rows, 2) the group of each row, and its place there."""
        places = np.empty((len(self), 2), np.intp)
        for number, group in enumerate(self.groups):
            places[group.rows, 0], places[group.rows, 1] = number, np.arange(len(group.rows))
        return places

    @property
    def labels(self) -> Any:
        """(n_rows,) the rows' names: a DataFrame's index, else 0, 1, ..."""
        if self.row_labels is not None:
            return self.row_labels
        index = getattr(self.table.native, "index", None)
        return range(len(self)) if index is None or callable(index) else index

    # --- what was found

    @property
    def points(self) -> Floats:
        """(n_rows, n_features) the answers, NaN where there is none."""
        return self.found.points

    @property
    def status(self) -> Any:
        """(n_rows,) of Status."""
        return self.found.status

    @property
    def distance(self) -> Floats:
        """(n_rows,) how far each answer is, NaN where there is none."""
        return self.found.distance

    @property
    def lower_bound(self) -> Floats:
        """(n_rows,) proven: no answer is closer than this; infinity where none exists."""
        return self.found.lower_bound

    @property
    def gap(self) -> Floats:
        """(n_rows,) how much smaller, at most, each change could be, as a share of it; NaN where there is none."""
        return self.found.gap

    @property
    def has_answer(self) -> Any:
        """(n_rows,) whether there is a counterfactual."""
        return self.found.has_answer

    @cached_property
    def is_moved(self) -> Bools:
        """(n_rows, n_features) whether a value changes, where there is an answer."""
        rows = self.table.values
        return np.asarray((rows != self.points) & ~(np.isnan(rows) & np.isnan(self.points)))

    def changes(self, i: int) -> Changes:
        """What has to change in row i, the largest first."""
        if not self.status[i].has_answer:
            return ()
        return changes_of(self.schema, self.table, i, self.points[i], self.shown[i], self.parts[i])

    def written(self, i: int) -> tuple[Any, ...] | None:
        """The answer to row i with categories as they are written; None where there is none."""
        if not self.status[i].has_answer:
            return None
        point, row = self.points[i], self.table.values[i]
        cells: list[Any] = [None if np.isnan(value) else float(value) for value in point]
        for j, labels in enumerate(self.table.labels or ()):
            if labels is not None:
                cells[j] = self.table.cell(i, j) if point[j] == row[j] else label_of(point[j], labels)
        return tuple(cells)

    @property
    def shown(self) -> Floats:
        """(n_rows, n_features) the points in the shortest numbers of the same cells."""
        return self.description.shown

    @property
    def parts(self) -> Floats:
        """(n_rows, n_features) each feature's part of the change in the scaled space."""
        return self.description.parts

    # --- what the model says

    @property
    def model_says(self) -> Predicted:
        """What the model says of the rows and of their answers."""
        return self.description.says

    @property
    def predicted(self) -> NDArray[Any]:
        """(n_rows,) labels or numbers before, None where the model cannot read the row."""
        return self.model_says.before

    @property
    def outcome(self) -> NDArray[Any]:
        """(n_rows,) labels or numbers after, None where there is no answer."""
        return self.model_says.after

    @property
    def is_value(self) -> bool:
        """Whether the answers are predicted numbers, not classes."""
        return self.model_says.is_value

    @property
    def favoured(self) -> Any:
        """The class whose probability was asked for; None where none was, or rows were asked for different ones."""
        return self.model_says.favoured

    @property
    def likelihood(self) -> Floats | None:
        """(n_rows, 2) the probability of the class that was asked for, before and after; NaN where there is none."""
        return self.model_says.likelihood

    def favoured_of(self, i: int) -> Any:
        """The class whose probability was asked for in row i."""
        says = self.model_says
        return says.favoured if says.favoured_of is None else says.favoured_of[i]
