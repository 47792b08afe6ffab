"""One row's answer: what changes, and what is proven about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput
from treefocus.explanation import json as interchange
from treefocus.explanation import menu, predictions, round_numbers, why_not
from treefocus.explanation.answers import Answers
from treefocus.explanation.certificate import certify
from treefocus.explanation.change import Change, plain
from treefocus.explanation.decision_map import DecisionMap, decision_map, map_columns
from treefocus.explanation.factors import Factor, factors_of
from treefocus.explanation.facts import facts_of
from treefocus.explanation.frame import change_columns
from treefocus.explanation.menu import Levers, Menu
from treefocus.explanation.predictions import likelihood_of
from treefocus.explanation.reasons import Reason
from treefocus.explanation.region import Region, is_sliver, region_of
from treefocus.explanation.why_not import Price, WhyNot
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats
from treefocus.problem.coded import coding_record
from treefocus.problem.plausibility import Likeness, likeness_of
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.tolerance import Tolerance
from treefocus.render import html, letter, plot, text
from treefocus.render import table as tables
from treefocus.render.phrases import DEFAULT
from treefocus.schema.schema import Schema
from treefocus.search.base import Outcome, Status
from treefocus.search.limits import SearchLimits
from treefocus.tables.frames import frame_of


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

    batch: Answers  # of which this is row i
    i: int

    # --- what was asked

    @property
    def label(self) -> Any:
        """The row's name in its table."""
        return plain(self.batch.labels[self.i])

    @property
    def row(self) -> Floats:
        """(n_features,) the row, categories as numbers."""
        return np.asarray(self.batch.table.values[self.i])

    @property
    def cells(self) -> tuple[Any, ...]:
        """The row as it was written, where it holds categories; else empty."""
        return () if self.labels is None else self.batch.table.row(self.i)

    @property
    def labels(self) -> Labels | None:
        """Per column its categories, None where no column has any."""
        return self.batch.table.labels

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        return self.batch.schema

    @property
    def question(self) -> Question:
        """What was asked, of this row alone."""
        group, place = self.batch.asked_of(self.i)
        return group.question.of_row(place)

    @cached_property
    def problem(self) -> Problem:
        """The same as a search takes it."""
        group, place = self.batch.asked_of(self.i)
        return group.problem.subset(np.array([place]))

    @property
    def limits(self) -> SearchLimits | None:
        """Of the search that proved it."""
        return self.batch.found.limits

    # --- what was found

    @property
    def status(self) -> Status:
        """How the row came out."""
        return self.batch.status[self.i]  # type: ignore[no-any-return]

    @property
    def why(self) -> Reason:
        """Why the row came out so."""
        return self.batch.why[self.i]

    @property
    def reason(self) -> str:
        """Why the row came out so, in English."""
        return str(self.why)

    @property
    def counterfactual(self) -> Floats | None:
        """(n_features,) the answer, categories as numbers; None where there is none."""
        return self.batch.points[self.i] if self.status.has_answer else None

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The features that have to move, the largest change first."""
        return self.batch.changes(self.i)

    @property
    def distance(self) -> float | None:
        """How far the answer is, None where there is none."""
        return float(self.batch.distance[self.i]) if self.status.has_answer else None

    @property
    def distance_name(self) -> str:
        """By what that is measured."""
        return self.batch.distance_name

    @property
    def lower_bound(self) -> float:
        """Proven: no answer is closer than this; infinity where none exists."""
        return float(self.batch.lower_bound[self.i])

    @property
    def gap(self) -> float | None:
        """How much smaller, at most, a change could be: (distance - lower_bound) / distance; None without a change."""
        return float(self.batch.gap[self.i]) if self.status.has_answer else None

    @property
    def larger(self) -> float | None:
        """By how much, as a share, round numbers make the change larger; None where they were not asked for."""
        known = self.batch.larger
        return None if known is None or np.isnan(known[self.i]) else float(known[self.i])

    @property
    def held(self) -> tuple[int, int] | None:
        """How many of how many other models give the answer the wanted outcome; None where they were not asked."""
        known = self.batch.held
        return None if known is None or np.isnan(known.share[self.i]) else (known.counted(self.i), known.n_models)

    @property
    def price(self) -> float | None:
        """How many times the smallest change this one is; None where no more was asked for, or nobody knows."""
        if self.batch.smallest is None or self.distance is None:
            return None
        smallest = float(self.batch.smallest[self.i])
        return self.distance / smallest if smallest > 0 else None

    @property
    def is_demanding(self) -> bool:
        """Whether more was asked for than that the model gives the wanted outcome: other models, or room to move."""
        return self.batch.is_demanding(self.i)

    @property
    def tolerance(self) -> Tolerance | None:
        """The room to move that was asked for, None where none was, or nobody knows any more."""
        return self.batch.asked_of(self.i)[0].question.tolerance if self.batch.groups else None

    @cached_property
    def is_sliver(self) -> bool:
        """Whether the answer's region is narrower, in some changed column, than the data's own numbers are apart."""
        if self.counterfactual is None or not self.batch.groups:
            return False
        return is_sliver(self.problem, self.region(), self._changed())

    @property
    def others(self) -> tuple[Explanation, ...]:
        """Further ways out, as far as they were asked for, with or without an answer."""
        return tuple(Explanation(other, self.i) for other in self.batch.others)

    @property
    def ways(self) -> tuple[Explanation, ...]:
        """The ways out that were found, cheapest first; each does without a feature that an earlier one needs."""
        first = Explanation(replace(self.batch, others=()), self.i)
        return tuple(way for way in (first, *self.others) if way.status.has_answer)

    @property
    def is_last_way(self) -> bool:
        """Whether it is proven that there is no other way out besides `ways`; False where fewer were asked for."""
        return any(way.status is Status.INFEASIBLE for way in self.others)

    # --- what the model says

    @property
    def predicted(self) -> Any:
        """The class or the number of the row, None where the model cannot read it."""
        return plain(self.batch.predicted[self.i])

    @property
    def outcome(self) -> Any:
        """The class or the number that the counterfactual gets, None where there is none."""
        return plain(self.batch.outcome[self.i])

    @property
    def is_value(self) -> bool:
        """Whether the answers are predicted numbers, not classes."""
        return self.batch.is_value

    @property
    def favoured(self) -> Any:
        """The class whose probability was asked for, None where none was."""
        return self.batch.favoured_of(self.i)

    @property
    def likelihood(self) -> tuple[float, float | None] | None:
        """Its probability before and after."""
        return likelihood_of(self.batch.model_says, self.i)

    @property
    def pictured_class(self) -> Any:
        """The class whose probability a picture shows: the one asked for, or the outcome."""
        if self.favoured is not None:
            return self.favoured
        return self.predicted if self.outcome is None else self.outcome

    def probabilities(self) -> list[float]:
        """The model's probability of the outcome: of the row, and as the changes are applied one after the other."""
        model = self.problem.model
        every = predictions.probabilities(model, self._steps())
        return [float(value) for value in every[:, predictions.class_index(model, self.pictured_class)]]

    def predictions(self) -> list[float]:
        """The number that the model predicts: for the row, and as the changes are applied one after the other."""
        return [float(value) for value in predictions.predictions(self.problem.model, self._steps())]

    def _steps(self) -> Floats:
        """(n_changes + 1, n_features) the row, and with each change on top of those before."""
        points = np.repeat(self.row[None, :], len(self.changes) + 1, axis=0)
        for step, (j, change) in enumerate(zip(self._changed(), self.changes, strict=True), start=1):
            is_number = not change.is_category and isinstance(change.shown, Real)
            points[step:, j] = change.shown if is_number else self.batch.points[self.i, j]
        return points

    def _changed(self) -> list[int]:
        """The columns of the changes."""
        return [self.schema.index(change.feature) for change in self.changes]

    # --- what else can be asked about it

    def under(self, question: Question, found: Outcome) -> Explanation:
        """The same row under another question, of this row alone, and what was found there."""
        return Explanation(self.batch.of_row(self.i, question, found), 0)

    def rounded(self, digits: int = 2, *, extra: float = 0.1) -> Explanation:
        """The answer in round numbers that still flip and obey, of so many significant digits where that can be.

        extra: by how much, as a share, the change may be larger. `larger` of the result says by how much it is.
        """
        question = self.question
        if self.counterfactual is None:
            return self
        made = round_numbers.rounded(self.batch, self.i, question, self.problem, digits, extra)
        others = tuple(round_numbers.rounded_way(other, self.i, digits, extra) for other in self.batch.others)
        return Explanation(replace(made, others=others), 0)

    def factors(self) -> tuple[Factor, ...]:
        """What weighed most against the wanted answer, the largest gain first.

        Of every column, by how much the model's score for that answer rises when this column alone takes the value that
        is typical of training rows with that answer; columns that gain nothing are left out.
        """
        return factors_of(self.question, self.problem, self.batch.table, self.i)

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

    def menu(
        self, levers: Levers, *, at_most: int = 2, time_limit: float | None = None, n_jobs: int | None = None
    ) -> Menu[Explanation]:
        """What each named group of columns can do alone, and unions of up to `at_most` of them together.

        levers: {"money": ["income", "savings"], "history": ["late_payments"]}; the other columns stay as they are.
        time_limit: seconds for each of them, 1 if not given.
        """
        return menu.menu(self, levers, at_most, time_limit, n_jobs)

    @cached_property
    def plausibility(self) -> Likeness:
        """How like the training rows the answer is: outlier factor, isolation, and the nearest of them."""
        if self.counterfactual is None:
            raise InvalidInput(f"Row {self.label!r} has no answer that could be like the data: {self.reason}.")
        return likeness_of(self.problem, self.counterfactual)

    def region(self) -> Region:
        """A box around the answer in which the model's answer provably stays: a leeway a changed feature."""
        if self.counterfactual is None:
            raise InvalidInput(f"Row {self.label!r} has no answer around which there could be a region: {self.reason}.")
        return region_of(self.problem, self.counterfactual, self._changed(), self.schema, self.labels)

    def certificate(self, proof: bool = False, *, time: str | None = None) -> dict[str, Any]:
        """The answer with all that is needed to check it, for `json.dump`, `treefocus verify` and `treefocus check`.

        Parameters
        ----------
        proof : bool
            Whether to add the proof that nothing is closer, or that there is no answer, which takes about as long again
            as the search. `treefocus check`, a program that shares no code with the search, reads it. Where none can
            be written down (docs/proof.md), the certificate has none.
        time : str, optional
            When it was made, in ISO 8601, which it then holds; the same call gives the same certificate.
        """
        if self.status is Status.INVALID:
            raise InvalidInput(f"Row {self.label!r} has nothing to certify: {self.reason}.")
        point, bound, target = self.counterfactual, self.lower_bound, self.question.target
        found = (point, self.distance, bound, self.status)
        told = coding_record(self.schema, self.problem.model) | ({} if time is None else {"time": time})
        return certify(self.problem, *found, self.limits, target, with_proof=proof, larger=self.larger, told=told)

    def map(self, x: str | int | None = None, y: str | int | None = None, *, path: bool = True) -> DecisionMap:
        """The model's answer over two features, by default those that change most, with the path of FOCUS."""
        columns = map_columns(self.schema, self._changed(), (x, y))
        return decision_map(self.problem, self.schema, self.counterfactual, columns, path)

    # --- how it is shown

    def to_text(self, language: str = DEFAULT, *, proof: bool = False) -> str:
        """The answer as sentences, in English ("en"), German ("de") or French ("fr").

        proof: whether they also say how we know that no smaller change would be enough, with distance and bound.
        """
        return text.sentence(self, language, with_proof=proof)

    def to_letter(
        self,
        language: str = DEFAULT,
        *,
        template: str | Path = "plain",
        recipient: str | None = None,
        sender: str | None = None,
        fields: Mapping[str, str] | None = None,
        digits: int | None = 2,
    ) -> str:
        """The answer as a letter to the person the row is about; the schema has its words.

        Parameters
        ----------
        language : str
            "en", "de" or "fr".
        template : str or Path
            "plain", "eu", "us", or a text file with ${fields}; docs/letters.md says what each covers.
        recipient, sender : str, optional
            Names for greeting and signature.
        fields : mapping, optional
            What only the sender can say: date, role, contact, authority, creditor, bureau, score. What is not given
            stands as a marked blank; an empty text leaves its paragraph out.
        digits : int, optional
            Significant digits of round numbers, as `rounded` gives them; None for the numbers as they are, as they
            stay in answers that were read from JSON, which have no model to ask.
        """
        letter.check_given(fields or {})
        text_of_template = letter.template_of(template, language)
        answer = self if digits is None or not self.batch.groups else self.rounded(digits)
        facts = facts_of(self.batch, self.i, answer, letter.fields_of(text_of_template))
        return letter.letter(facts, text_of_template, language, recipient, sender, fields)

    def to_frame(self) -> Any:
        """The changes as a DataFrame (pandas, polars or pyarrow, whichever is installed), a line a changed feature."""
        return frame_of(change_columns([self]))

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values for JSON."""
        return interchange.row_record(self.batch, self.i)

    def answered(self) -> tuple[Any, ...] | None:
        """The counterfactual with categories as they are written; None where there is none."""
        return self.batch.written(self.i)

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

    def __repr__(self) -> str:
        return f"Explanation(row={self.label!r}, {self.status.name}, distance={self.distance})"
