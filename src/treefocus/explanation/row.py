"""One row's answer: what changes, and what is proven about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput
from treefocus.explanation import decision_map, predictions, why_not
from treefocus.explanation import json as interchange
from treefocus.explanation.certificate import certify
from treefocus.explanation.change import Change, changes_of, plain
from treefocus.explanation.decision_map import DecisionMap
from treefocus.explanation.predictions import told_of
from treefocus.explanation.reasons import ByStatus, Reason
from treefocus.explanation.region import Region, region_of
from treefocus.explanation.rounding import rounded_point, shortest_in_cell
from treefocus.explanation.why_not import Price, WhyNot
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats
from treefocus.problem.plausibility import Likeness, likeness_of
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.render import html, plot, text
from treefocus.render import table as tables
from treefocus.render.phrases import DEFAULT
from treefocus.schema.schema import Schema
from treefocus.search.base import Outcome, Status
from treefocus.search.limits import SearchLimits
from treefocus.tables.frames import frame_of
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table

NO_WORDS = Schema(())


@dataclass(frozen=True, eq=False)
class Explanation:
    """One row's answer.

    Attributes
    ----------
    status : Status
        How the row came out: proven to be the smallest change, with a bound, found, or why not.
    predicted, outcome : a class or a number
        Before and after the change, None where there is none.
    changes : tuple of Change
        The features that have to move.
    distance, lower_bound : float
        How far the answer is, None where there is none, and how far every answer is at least.
    reason : str
        The status as a sentence, or the row's own.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import explain
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
    >>> one = explain(model, data[:1], data)[0]
    >>> one.predicted, one.outcome, one.status.name
    ('low', 'high', 'OPTIMAL')
    """

    label: Any  # the row's name in its table
    row: Floats
    counterfactual: Floats | None
    changes: tuple[Change, ...]
    predicted: Any
    outcome: Any  # the class the counterfactual gets, None where there is none
    status: Status
    why: Reason
    distance: float | None
    lower_bound: float
    distance_name: str
    schema: Schema = NO_WORDS
    batch: Problem | None = None  # the question it answers; None where the explanation was read from JSON
    position: int = 0  # of the row in the question
    limits: SearchLimits | None = None  # of the search that proved it
    question: Question | None = None  # the same as the user put it
    others: tuple[Explanation, ...] = ()  # further ways out, as far as they were asked for, with or without an answer
    cells: tuple[Any, ...] = ()  # the row as it was written, where it holds categories
    labels: Labels | None = None  # per column its categories
    is_value: bool = False  # the answers are predicted numbers, not classes
    favoured: Any = None  # the class whose probability was asked for
    likelihood: tuple[float, float | None] | None = None  # its probability before and after
    table: Table | None = None  # that was asked about
    place: int = 0  # of the row in the table
    larger: float | None = None  # by how much, as a share, round numbers make the change larger

    @property
    def reason(self) -> str:
        """Why the row came out so, in English."""
        return str(self.why)

    @cached_property
    def problem(self) -> Problem:
        """The question it answers, of this row alone."""
        if self.batch is None and self.question is not None:
            return self.question.of_row(self.position).problem()
        return predictions.known(self.batch).subset(np.array([self.position]))

    @property
    def ways(self) -> tuple[Explanation, ...]:
        """The ways out that were found, cheapest first; each does without a feature that an earlier one needs."""
        return tuple(way for way in (replace(self, others=()), *self.others) if way.status.has_answer)

    @property
    def is_last_way(self) -> bool:
        """Whether it is proven that there is no other way out besides `ways`; False where fewer were asked for."""
        return any(way.status is Status.INFEASIBLE for way in self.others)

    @property
    def gap(self) -> float | None:
        """How much smaller, at most, a change could be: (distance - lower_bound) / distance; None without a change."""
        return gap_of(self.distance, self.lower_bound)

    def to_text(self, language: str = DEFAULT) -> str:
        """The answer as sentences, in English ("en"), German ("de") or French ("fr")."""
        return text.sentence(self, language)

    def to_letter(self, language: str = DEFAULT, *, recipient: str | None = None, sender: str | None = None) -> str:
        """The answer as a letter to the person the row is about; the schema has its words."""
        return text.letter(self, language, recipient, sender)

    def to_frame(self) -> Any:
        """The changes as a DataFrame (pandas, polars or pyarrow, whichever is installed), a line a changed feature."""
        return frame_of(change_columns([self]))

    def why_not(self, *, time_limit: float | None = None, n_jobs: int | None = None) -> WhyNot[Explanation]:
        """The smallest set of constraints without which this row would have an answer, and that answer.

        time_limit: seconds for each of the looks that this takes, 1 if not given.
        """
        return why_not.why_not(self, time_limit, n_jobs)

    def price_of_constraints(self, *, time_limit: float | None = None, n_jobs: int | None = None) -> tuple[Price, ...]:
        """What each constraint costs this row, the dearest first: the smallest change without it.

        time_limit: seconds for each constraint, 1 if not given.
        """
        return why_not.price_of_constraints(self, time_limit, n_jobs)

    @cached_property
    def plausibility(self) -> Likeness:
        """How like the training rows the answer is: outlier factor, isolation, and the nearest of them."""
        if self.counterfactual is None:
            raise InvalidInput(f"Row {self.label!r} has no answer that could be like the data: {self.reason}.")
        return likeness_of(self.problem, self.counterfactual)

    def region(self) -> Region:
        """A box around the answer in which the model's answer provably stays: a tolerance a changed feature."""
        if self.counterfactual is None:
            raise InvalidInput(f"Row {self.label!r} has no answer around which there could be a region: {self.reason}.")
        changed = [self.schema.index(change.feature) for change in self.changes]
        return region_of(self.problem, self.counterfactual, changed, self.schema, self.labels)

    def rounded(self, digits: int = 2, *, extra: float = 0.1) -> Explanation:
        """The answer in round numbers that still flip and obey, of so many significant digits where that can be.

        extra: by how much, as a share, the change may be larger. `larger` of the result says by how much it is.
        """
        if self.counterfactual is None or self.question is None:
            predictions.known(self.batch)
            return self
        measure = self.question.plausibility
        point = rounded_point(self.problem, self.counterfactual, digits, extra, measure)
        distance = self.problem.distance_to(point[None])
        found = Outcome(point[None], distance, np.minimum(distance, self.lower_bound), _graded(self, distance))
        made = self.under(self.question.of_row(self.position), replace(found, limits=self.limits))
        return replace(made, larger=_larger(float(distance[0]), self.distance))

    def under(self, question: Question, found: Outcome) -> Explanation:
        """The same row under another question, of this row alone, and what was found there."""
        problem, status = question.problem(), found.status[0]
        shown, parts = shortest_in_cell(problem, found.points)[0], problem.batch.changes(found.points)[0]
        told = told_of(problem.model, question.target)
        likelihood = told.likelihood(problem.batch.rows, found)
        has_answer, table = status.has_answer, self.table
        assert table is not None, "a question comes with its table"
        return replace(
            self,
            counterfactual=found.points[0] if has_answer else None,
            changes=changes_of(self.schema, table, self.place, found.points[0], shown, parts) if has_answer else (),
            outcome=plain(told.answers(found.points, found.has_answer)[0]),
            status=status,
            why=ByStatus(status),
            distance=float(found.distance[0]) if has_answer else None,
            lower_bound=float(found.lower_bound[0]),
            batch=problem,
            position=0,
            limits=found.limits,
            question=question,
            others=(),
            likelihood=None if likelihood is None else before_and_after(likelihood[0]),
        )

    def probabilities(self) -> list[float]:
        """The model's probability of the outcome: of the row, and as the changes are applied one after the other."""
        model = self.problem.model
        every = predictions.probabilities(model, self._along())
        return [float(value) for value in every[:, predictions.class_index(model, self.told)]]

    def predictions(self) -> list[float]:
        """The number that the model predicts: for the row, and as the changes are applied one after the other."""
        return [float(value) for value in predictions.predictions(self.problem.model, self._along())]

    @property
    def told(self) -> Any:
        """The class that a picture of probabilities tells of: the one asked for, or the outcome."""
        if self.favoured is not None:
            return self.favoured
        return self.predicted if self.outcome is None else self.outcome

    def _along(self) -> Floats:
        """(n_changes + 1, n_features) the row, and with each change on top of those before."""
        points = np.repeat(self.row[None, :], len(self.changes) + 1, axis=0)
        for step, change in enumerate(self.changes, start=1):
            j = self.schema.index(change.feature)
            is_number = not change.is_category and change.shown is not None
            points[step:, j] = change.shown if is_number or self.counterfactual is None else self.counterfactual[j]
        return points

    def map(self, x: str | int | None = None, y: str | int | None = None, *, path: bool = True) -> DecisionMap:
        """The model's answer over two features, by default those that change most, with the path of FOCUS."""
        ranked = [self.schema.index(change.feature) for change in self.changes]
        ranked += [j for j in range(len(self.schema)) if j not in ranked]
        chosen = [None if name is None else self.schema.index(name) for name in (x, y)]
        free = (j for j in ranked if j not in chosen)
        first, second = (next(free, 0) if j is None else j for j in chosen)
        return decision_map.decision_map(self.problem, self.schema, self.counterfactual, (first, second), path)

    def plot(self, ax: Any = None, *, language: str = DEFAULT) -> Any:
        """The changes as signed bars (needs matplotlib); returns the axes."""
        return plot.change_bars(self, ax, language)

    def plot_waterfall(self, ax: Any = None, *, language: str = DEFAULT) -> Any:
        """How the model's probability, or its predicted number, moves as the changes are applied; returns the axes."""
        return plot.waterfall(self, self.predictions() if self.is_value else self.probabilities(), ax, language)

    def plot_map(
        self,
        x: str | int | None = None,
        y: str | int | None = None,
        ax: Any = None,
        *,
        path: bool = True,
        language: str = DEFAULT,
    ) -> Any:
        """The model's answer over two features, with the row, the answer and the path of FOCUS; returns the axes."""
        return plot.decision_map(self, self.map(x, y, path=path), ax, language)

    def _repr_html_(self) -> str:
        return html.changes_table(self)

    def __rich__(self) -> Any:
        return tables.changes_table(self)

    def certificate(self) -> dict[str, Any]:
        """The answer with all that is needed to check it, for `json.dump` and `treefocus verify`."""
        if self.status is Status.INVALID:
            raise InvalidInput(f"Row {self.label!r} has nothing to certify: {self.reason}.")
        point, bound = self.counterfactual, self.lower_bound
        target = None if self.question is None else self.question.of_row(self.position).target
        return certify(self.problem, point, self.distance, bound, self.status, self.limits, target)

    def answered(self) -> tuple[Any, ...] | None:
        """The counterfactual with categories as they are written; None where there is none."""
        if self.counterfactual is None:
            return None
        cells: list[Any] = [None if np.isnan(value) else float(value) for value in self.counterfactual]
        for j, own in enumerate(self.labels or ()):
            if own is not None:
                is_kept = self.counterfactual[j] == self.row[j]
                cells[j] = self.cells[j] if is_kept else label_of(self.counterfactual[j], own)
        return tuple(cells)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values for JSON."""
        answered = self.answered()
        record = {
            "row": interchange.name(plain(self.label)),
            "predicted": interchange.name(plain(self.predicted)),
            "outcome": interchange.name(plain(self.outcome)),
            "status": self.status.name,
            "reason": self.reason,
            "distance": interchange.number(self.distance),
            "lower_bound": _finite(self.lower_bound),
            "gap": self.gap,
            "changes": [change.to_dict() for change in self.changes],
            "counterfactual": None if answered is None else [interchange.cell(cell) for cell in answered],
            "values": [interchange.cell(cell) for cell in self.cells] if self.cells else interchange.numbers(self.row),
        }
        if self.likelihood is not None:
            record["likelihood"] = list(self.likelihood)
        return record | ({"ways": [_of_way(way.to_dict()) for way in self.others]} if self.others else {})

    def __repr__(self) -> str:
        return f"Explanation(row={self.label!r}, {self.status.name}, distance={self.distance})"


def _of_way(record: dict[str, Any]) -> dict[str, Any]:
    """What the record of a further way says besides the row's own."""
    return {key: value for key, value in record.items() if key not in ("row", "predicted", "values")}


def _graded(before: Explanation, distance: Floats) -> np.ndarray[Any, Any]:
    """(1,) the status of an answer that may be further away than the one before."""
    is_further = bool(distance[0] > (before.distance or 0.0))
    status = Status.BOUNDED if before.status is Status.OPTIMAL and is_further else before.status
    return np.array([status, None], object)[:1]


def _larger(distance: float, before: float | None) -> float:
    return max(0.0, distance / before - 1.0) if before else 0.0


def before_and_after(likelihood: Floats) -> tuple[float, float | None]:
    """Two probabilities, the second None where there is no answer."""
    before, after = likelihood.tolist()
    return before, None if np.isnan(after) else after


def gap_of(distance: float | None, lower_bound: float) -> float | None:
    """(distance - lower_bound) / distance, 0 for a distance of 0, None without one."""
    if distance is None or np.isnan(distance):
        return None
    return float(max(0.0, (distance - lower_bound) / distance)) if distance > 0 else 0.0


def change_columns(explanations: Iterable[Explanation]) -> dict[str, list[Any]]:
    """Changes as columns, a line a changed feature, rows in their order and the largest change first.

    Where further ways out were asked for, the column "way" numbers them. Where categories change, before and after are
    text, and the column "change" is empty.
    """
    lines, names = [], ["row", "feature", "before", "after", "change", "share", "unit"]
    for one in explanations:
        ways = one.ways if one.others else (one,)
        names = [*names, "way"] if one.others and "way" not in names else names
        for number, way in enumerate(ways, start=1):
            for c in way.changes:
                lines.append((one.label, c.feature, c.before, c.shown, c.moved, c.share, c.unit, number))
    columns: dict[str, list[Any]] = {name: [line[k] for line in lines] for k, name in enumerate(names)}
    values = (*columns["before"], *columns["after"])
    if any(not isinstance(value, Real) for value in values if value is not None):
        for key in ("before", "after"):
            columns[key] = [None if value is None else str(value) for value in columns[key]]
    return columns


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
