"""From a model and rows to explanations: the whole story on one screen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.adapters import translate
from treefocus.adapters.trust import trusted
from treefocus.constraints.kinds import Constraint, OneOf
from treefocus.constraints.text import as_constraints
from treefocus.errors import InvalidInput, reject
from treefocus.explanation import predictions
from treefocus.explanation.batch import Explanations, joined, timed
from treefocus.explanation.predictions import told_of
from treefocus.explanation.reasons import (
    AlreadyThere,
    ByStatus,
    NoAllowedValue,
    NoOtherWay,
    NotConfirmed,
    Reason,
    Undecided,
    Unreadable,
)
from treefocus.explanation.rounding import shortest_in_cell
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats, Ints
from treefocus.model.grid import readable
from treefocus.options import EXPLAINER, check, named
from treefocus.problem.compile import dry_run, with_domains
from treefocus.problem.distances import Distance, as_distance, weighted
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure
from treefocus.problem.problem import Problem
from treefocus.problem.question import Group, Question
from treefocus.problem.space import Space
from treefocus.problem.targets import Interval, Probability, Score
from treefocus.problem.words import held_words, widened
from treefocus.schema.schema import ANY_FLOAT, INTEGER, Schema, fitted_to, schema_of
from treefocus.search import Outcome, Run, Status, Strategy, as_strategy
from treefocus.search.base import Interruption, solved
from treefocus.search.confirmed import Confirm, Confirmed, sure
from treefocus.search.limits import Clock, now
from treefocus.search.plausible import Plausible
from treefocus.search.ways import ways_out, without_answers
from treefocus.tables.columns import check_columns
from treefocus.tables.labels import Coding
from treefocus.tables.onehot import FoldedTable, Folding
from treefocus.tables.table import Table, as_table

Reasons = dict[int, Reason]  # of rows that have one besides their status
EXAMPLES = 10_000  # training rows kept to start from


class Explainer:
    """Answers, for a trained tree ensemble: what is the smallest change to this row that changes the prediction?

    Parameters
    ----------
    model : fitted model or Forest
        Of a supported library.
    data : table, optional
        Training rows, from which scale, domain and covariance are taken.
    distance : str, Distance or an object with value and gradient
        What small means: "euclidean" (default), "manhattan", "chebyshev", "l0", "cosine" or "mahalanobis".
    constraints : str, constraint or a sequence of them
        What an answer may not do: `Fixed`, `Increasing`, `Decreasing`, `Range`, `OneOf`, `MayBeMissing`, `Together`,
        `AtMost`, `Linear` and `Implies`, or the same in words, "income <= 2 * savings".
    scale : str, float, array or None
        What a change of 1 means in each column: the "range" of the data (default), its "std" or "mad", None for the
        values as they are, or sizes.
    bounds : (low, high), optional
        Domain of the answers, each side a number or one a column; the range of the data if not given.
    schema : Schema, optional
        What the columns are: names, kinds, units.
    plausibility : LocalOutlierFactor or IsolationScore, optional
        How like the training rows an answer has to be, as a limit or as a cost.
    weights : mapping of columns to float, optional
        What a change of a column weighs, 1 if not given: the factor of the change under Manhattan, Chebyshev and
        FewestFeatures, of its square under Euclidean and Mahalanobis (4 makes a change count twice), of the products
        under Cosine.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import Explainer
    >>> data = pd.DataFrame({"income": [20.0, 30.0, 50.0, 60.0], "debt": [5.0, 1.0, 4.0, 2.0]})
    >>> model = DecisionTreeClassifier().fit(data, ["declined", "declined", "approved", "approved"])
    >>> explainer = Explainer(model, data, constraints="debt fixed")
    >>> found = explainer.explain(data[:2])
    >>> [one.outcome for one in found]
    ['approved', 'approved']
    """

    def __init__(
        self,
        model: Any,
        data: Any = None,
        *,
        distance: str | Distance | Any = "euclidean",
        constraints: str | Constraint | Sequence[str | Constraint] = (),
        scale: Any = "range",
        bounds: Any = None,
        schema: Schema | None = None,
        plausibility: Measure | None = None,
        weights: Mapping[str | int, float] | None = None,
    ) -> None:
        source, columns = trusted(translate(model)), None if schema is None else schema.columns
        given = None if data is None else as_table(data, "data", Coding.of(source.forest, columns))
        source = widened(source, given)
        self._folding = Folding.of(schema, source.forest)
        self._coding = Coding.of(source.forest, columns)
        source = source if self._folding is None else self._folding.source(source)
        self.forest, self._own_predict, self._own_scores = source.forest, source.predict, source.scores
        self._own_probabilities = source.probabilities
        n_features = self.forest.n_features
        self.constraints = as_constraints(constraints)
        table = None if given is None else self._table(given, "data")
        self.schema, self._names = self._named(schema, table)
        known = None if table is None else self._known(table)
        self.space = with_domains(Space.of(known, scale, bounds, n_features), self.schema, self.forest)
        measured = as_distance(distance)
        if weights is not None:
            measured = weighted(measured, _by_column(weights, self.schema))
        self.distance = measured.fitted(n_features, None if known is None else self.space.to_z(known))
        self.distance_name = distance if isinstance(distance, str) else type(distance).__name__
        self._orders = _first_known(n_features, None if table is None else table.orders, source.orders)
        # A column that does not exist is reported here, and one without an order, unless rows may still bring it.
        dry_run(self.constraints, self.schema, self.forest, self.labels if table is None else self._orders)
        self._has_data = table is not None
        self._integer = np.array([feature.kind == "integer" for feature in self.schema.features])
        self._has_fractions = _has_fractions(self.schema, self.constraints) & ~self._integer
        if table is not None:
            self._integer |= self._is_whole(table)
        self._examples = None if known is None else _spread_out(known[~np.isnan(known).any(axis=1)])
        if plausibility is not None and not isinstance(plausibility, LocalOutlierFactor | IsolationScore):
            reject("plausibility", "LocalOutlierFactor(...), IsolationScore(...) or None", repr(plausibility))
        if plausibility is not None and self._examples is None:
            raise InvalidInput("plausibility= needs data=: the training rows that an answer should be like.")
        self.plausibility = plausibility

    def explain(
        self,
        X: Any,
        target: Any = None,
        strategy: str | Strategy = "auto",
        *,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int], None] = False,
        seed: int = 0,
        n: int = 1,
        on_interrupt: str = "raise",
    ) -> Explanations:
        """Explain every row of X: pandas, polars or NumPy, the same comes back.

        Parameters
        ----------
        X : table
            The rows.
        target : a class, Probability, Interval, Score or a list with one a row, optional
            The class to reach, or what is to be predicted; any other class if not given.
        strategy : str or strategy
            How to search: a name, or an object such as Focus(sigma=5).
        time_limit : float, optional
            Seconds a row, from this call on; where the strategy was told some, too, the tighter limit counts
            (`treefocus.search.limits` has the rule).
        n_jobs : int, optional
            Threads; all cores if not given.
        progress : bool or callable
            Whether a bar shows how many rows are done, or who hears of it: a function that takes their number.
        seed : int
            Start of the random numbers, where any are used.
        n : int
            How many ways out to look for, a row; each does without a feature that an earlier one needs (`ways`).
        on_interrupt : str
            What happens when Ctrl-C has stopped the search: "raise" KeyboardInterrupt, or "return" what was found by
            then, with a warning; rows that the search did not reach have no answer, or no proof.

        Returns
        -------
        Explanations
            An answer a row, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from treefocus import Explainer
        >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
        >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
        >>> Explainer(model, data).explain(data[:1], target="high")[0].status.name
        'OPTIMAL'
        """
        began = now()
        chosen = as_strategy(strategy)
        if self.plausibility is not None:
            chosen = Plausible(chosen, self.plausibility)
        table = _checked(self._table(X, "X"), "X", self.forest.n_features, self._names)
        check(time_limit=time_limit, n=n, on_interrupt=on_interrupt)
        interruption = Interruption() if on_interrupt == "return" else None
        groups = self._question(table, target).groups()
        clock = Clock(len(table.values), kernels.n_threads(n_jobs), began=began)
        started = Run(seed, n_jobs, time_limit, None, interruption, clock).on(len(table.values))
        pieces, n_before = [], 0
        with _bar(progress, len(table.values)) as report:
            for group in groups:
                run = replace(started.again(len(group.rows)), progress=report).behind(n_before)
                pieces.append(self._explained(table, group, chosen, run, int(n)))
                n_before += len(group.rows)
        if interruption is not None and interruption.has_come:
            warnings.warn("The search was interrupted; rows it did not reach have no answer or no proof.", stacklevel=2)
        whole = pieces[0] if len(pieces) == 1 else joined(pieces, groups, len(table.values))
        return timed(whole, now() - began)

    def _explained(self, table: Table, group: Group, strategy: Strategy, run: Run, n: int) -> Explanations:
        """The answers to rows that are asked the same."""
        question, problem = group.question, group.question.problem()
        confirm = self._confirming(question.target)
        outcome, reasons = self._settle(table, group, problem, confirm)
        is_open = np.flatnonzero(outcome.status == Status.NOT_FOUND)
        others = [without_answers(outcome) for _ in range(n - 1)]
        if is_open.size:
            part, chosen = problem.subset(is_open), Confirmed(strategy, confirm)
            found = solved(chosen, part, run)
            ways = [found, *(Outcome.nothing(part) for _ in range(n - 1))]
            with run.kept():
                ways = ways_out(part, found, chosen, run, n) if n > 1 else ways
            outcome, *others = (one.replaced(is_open, way) for one, way in zip((outcome, *others), ways, strict=True))
        further = [self._explanations(table, question, problem, one, _no_other(one, reasons)) for one in others]
        return replace(self._explanations(table, question, problem, outcome, reasons), others=tuple(further))

    def _table(self, rows: Any, parameter: str) -> Table:
        """The rows, one-hot groups folded."""
        table, folding = as_table(rows, parameter, self._coding), self._folding
        if self._coding is not None and not isinstance(table, FoldedTable):
            table = table.recoded(self._coding.for_columns(table.names, table.values.shape[1]))
        if folding is None or isinstance(table, FoldedTable):
            return table
        return folding.table(_checked(table, parameter, folding.model.n_features, folding.names))

    def table_of(self, rows: Any) -> Table:
        """The rows as the search takes them: categories by their labels, one-hot groups folded."""
        return self._table(rows, "rows")

    @property
    def folding(self) -> Folding | None:
        """Which columns of a table stand behind the schema's, None where it has no one-hot group."""
        return self._folding

    def _question(self, table: Table, target: Any) -> Question:
        """What is asked, under the limits of the table's dtypes and of what the model reads."""
        is_readable = np.asarray(readable(self.forest, table.values).all(axis=1))
        whole = self._integer | self._is_whole(table)
        grain = np.where(whole, INTEGER, np.where(table.grain == INTEGER, ANY_FLOAT, table.grain)).astype(np.int8)
        low, high = table.limits
        if self.forest.reads is not None:
            low, high = np.maximum(low, self.forest.reads[0]), np.minimum(high, self.forest.reads[1])
        space = replace(self.space, low=np.maximum(self.space.low, low), high=np.minimum(self.space.high, high))
        return Question(
            self.forest,
            np.where(is_readable[:, None], table.values, 0.0),
            space=space,
            distance=self.distance,
            constraints=self.constraints,
            schema=self.schema,
            grain=grain,
            target=target,
            examples=self._examples,
            plausibility=self.plausibility,
            orders=self._orders if self._has_data else _first_known(len(grain), self._orders, table.orders),
        )

    def _is_whole(self, table: Table) -> Bools:
        """(n_features,) columns of whole numbers; where a file only seems to hold them, unless fractions are listed."""
        return np.asarray((table.grain == INTEGER) & (table.has_dtypes | ~self._has_fractions))

    def _settle(self, table: Table, group: Group, problem: Problem, confirm: Confirm) -> tuple[Outcome, Reasons]:
        """The rows that need no search, and why: unreadable, already there, or without an allowed value."""
        values = table.values[group.rows]
        is_read = readable(self.forest, values)
        is_readable = np.asarray(is_read.all(axis=1))
        outcome = Outcome.nothing(problem)
        already = _is_there(problem, confirm) & is_readable
        outcome.points[already] = problem.batch.rows[already]
        outcome.distance[already] = 0.0
        outcome.status[already] = Status.OPTIMAL
        contradicted = ~problem.has_box & is_readable
        outcome.status[contradicted], outcome.lower_bound[contradicted] = Status.INFEASIBLE, np.inf
        outcome.status[~is_readable] = Status.INVALID
        reasons: Reasons = dict.fromkeys(np.flatnonzero(already).tolist(), AlreadyThere())
        names = self.schema.names
        for i in np.flatnonzero(contradicted):
            reasons[int(i)] = NoAllowedValue(tuple(names[j] for j in np.flatnonzero(~problem.has_value[i])))
        for i in np.flatnonzero(~is_readable):
            row = int(group.rows[i])
            cells = (f"{names[j]} = {_written(table, row, int(j))}" for j in np.flatnonzero(~is_read[i]))
            reasons[int(i)] = Unreadable(tuple(cells))
        return outcome, reasons

    def _confirming(self, target: Any) -> Confirm:
        """What confirms answers: the source model's own number where it is at hand, else what is sure without it."""
        own = self._own_answer(target)
        if own is None:
            return sure
        return lambda problem, points: problem.obeys(points) & own(points)

    def _own_answer(self, target: Any) -> Callable[[Floats], Bools] | None:
        """Whether the source model's own numbers are what is asked for; None for classes, and without the model."""
        if isinstance(target, tuple) and self.forest.decision == "value":
            target = Interval(*target)
        if isinstance(target, Probability):
            own, least = self._own_probabilities, float(target.at_least)
            label = target.label.item() if isinstance(target.label, np.generic) else target.label
            column = predictions.class_index(self.forest, label)
            return None if own is None else lambda points: own(points)[:, column].astype(np.float64) >= least
        if isinstance(target, Interval):
            asked = self._own_scores if isinstance(target, Score) else self._own_predict
            return None if asked is None else lambda points: _lies_in(target, asked(points))
        return None

    def _check_on_model(self, question: Question, problem: Problem, outcome: Outcome, reasons: Reasons) -> None:
        """Ask the source model itself, where it is at hand; a row on which it disagrees is not returned."""
        answered = np.flatnonzero(outcome.has_answer)
        if self._own_predict is None or not answered.size:
            return
        own, points = self._own_answer(question.target), outcome.points[answered]
        if own is not None:
            is_answer = own(points)
        else:
            is_answer = problem.batch.subset(answered).is_flipped(self._decided(problem, points))
        wrong = answered[~is_answer]
        outcome.points[wrong], outcome.distance[wrong], outcome.lower_bound[wrong] = np.nan, np.nan, 0.0
        outcome.status[wrong] = Status.NOT_FOUND
        reasons.update(dict.fromkeys(wrong.tolist(), NotConfirmed()))

    def _decided(self, problem: Problem, points: Floats) -> Ints:
        """(n_rows,) the class by the source model's own answers."""
        is_of_classes = problem.forest.decision == self.forest.decision and problem.forest.cut == self.forest.cut
        if self._own_predict is None or not is_of_classes:
            return kernels.predict(problem.forest, points)
        said = self._own_predict(points)
        position = {label: index for index, label in enumerate(self.forest.classes.tolist())}
        return np.array([position[label] for label in said.tolist()], np.int32)

    def _explanations(
        self,
        table: Table,
        question: Question,
        problem: Problem,
        outcome: Outcome,
        reasons: Reasons,
    ) -> Explanations:
        self._check_on_model(question, problem, outcome, reasons)
        told = told_of(self.forest, question.target)
        return Explanations(
            table=table,
            schema=self.schema,
            points=outcome.points,
            shown=shortest_in_cell(problem, outcome.points),
            parts=problem.batch.changes(outcome.points),
            predicted=told.answers(problem.batch.rows, outcome.status != Status.INVALID),
            outcome=told.answers(outcome.points, outcome.has_answer),
            found=outcome,
            why=_reasons(outcome, reasons),
            distance_name=self.distance_name,
            problem=problem,
            seconds=0.0,
            question=question,
            is_value=told.is_value,
            favoured=told.favoured,
            likelihood=told.likelihood(problem.batch.rows, outcome),
        )

    def _named(self, schema: Schema | None, table: Table | None) -> tuple[Schema, tuple[str, ...] | None]:
        """The schema, and the names every table must have: the model's, else the schema's, else the data's."""
        n_features, names = self.forest.n_features, self.forest.feature_names
        if schema is not None and len(schema) != n_features:
            reject("schema", f"of {n_features} columns", len(schema))
        if schema is not None and names is not None and names != schema.names:
            reject("schema", f"of the model's columns {', '.join(names)}", ", ".join(schema.names))
        names = names if schema is None else schema.names
        if table is not None:
            names = _checked(table, "data", n_features, names).names or names
        held = held_words(self.forest, table, self.constraints, names)
        if schema is not None:
            return fitted_to(schema, self.labels, held), names
        labels = tuple(held.get(j, own) for j, own in enumerate(self.labels))
        return schema_of(names or tuple(f"feature {j}" for j in range(n_features)), labels), names

    def _known(self, table: Table) -> Floats:
        """(n_rows, n_features) the data with NaN for what is no number, at least one number in every column."""
        known = np.where(np.isfinite(table.values), table.values, np.nan)
        empty = np.flatnonzero(np.isnan(known).all(axis=0))
        if empty.size:
            names = ", ".join(self.schema.names[j] for j in empty)
            raise InvalidInput(
                f"data must be a table with at least one number in every column, got none in {names}: scale and domain "
                "come from there. Give rows in which they are known, or leave out data and give scale= and bounds=."
            )
        return known

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names that every table must have, None where the model knows its columns by number only."""
        return self._names if self._folding is None else self._folding.names

    @property
    def column_labels(self) -> Labels:
        """Per column of a table its categories, None where it holds numbers; one-hot groups are not folded here."""
        return self.labels if self._folding is None else self._folding.labels

    @property
    def labels(self) -> Labels:
        """Per column its categories, None where it holds numbers."""
        known = self.forest.categories
        return (None,) * self.forest.n_features if known is None else known.labels

    @property
    def has_order(self) -> Bools:
        """(n_features,) whether a column can be asked to grow or to shrink: numbers, and categories in an order."""
        draft = dry_run((), self.schema, self.forest, self._orders)
        return np.array([own is None or draft.order_of(j) is not None for j, own in enumerate(draft.labels)], bool)

    @property
    def whole_columns(self) -> Bools:
        """(n_features,) whether a column is answered in whole numbers, whatever table comes."""
        return self._integer

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: arrays and words. The source model stays behind."""
        return self.__dict__ | {"_own_predict": None, "_own_scores": None, "_own_probabilities": None}

    def __repr__(self) -> str:
        return f"Explainer({self.forest!r}, distance={self.distance_name!r}, constraints={list(self.constraints)})"


def explain(model: Any, X: Any, data: Any = None, **options: Any) -> Explanations:
    """Explain rows in one call: the options of `Explainer` and `Explainer.explain` together.

    Parameters
    ----------
    model : fitted model or Forest
        Of a supported library.
    X : table
        The rows.
    data : table, optional
        Training rows, from which scale, domain and covariance are taken.
    **options
        Those of `Explainer` and of `Explainer.explain`, by name.

    Returns
    -------
    Explanations
        An answer a row, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import explain
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
    >>> explain(model, data[:1], data, distance="manhattan", target="high")[0].outcome
    'high'
    """
    building = {name: options.pop(name) for name in named(EXPLAINER) if name in options}
    return Explainer(model, data, **building).explain(X, **options)


def _by_column(weights: Mapping[str | int, float], schema: Schema) -> Floats:
    """(n_features,) the weights, 1 for a column without one."""
    all_weights = np.ones(len(schema))
    for name, weight in weights.items():
        if not (isinstance(weight, Real) and np.isfinite(float(weight)) and float(weight) > 0):
            reject(f"weights[{name!r}]", "a finite number above 0", repr(weight))
        all_weights[schema.index(name)] = float(weight)
    return all_weights


def _has_fractions(schema: Schema, constraints: Sequence[Constraint]) -> Bools:
    """(n_features,) columns of which the schema's steps or values, or a list, name a number that is not whole."""
    named = [[*own.values, *([own.step, own.low] if own.step else [])] for own in schema.features]
    for one in constraints:
        if isinstance(one, OneOf):
            named[schema.index(one.column)] += one.values
    return np.array([any(isinstance(v, float) and not v.is_integer() for v in own) for own in named], bool)


def _first_known(n_columns: int, *orders: Labels | None) -> Labels:
    """Per column the first order that is known."""
    known = [own for own in orders if own is not None]
    return tuple(next((own[j] for own in known if own[j] is not None), None) for j in range(n_columns))


def _checked(table: Table, parameter: str, n_features: int, wanted: tuple[str, ...] | None) -> Table:
    """The table, if it has the wanted columns in the wanted order; where one side has no names, as many columns."""
    names = table.names
    if names is None or wanted is None:
        if table.values.shape[1] != n_features:
            reject(parameter, f"{n_features} columns wide", table.values.shape[1])
        return table
    check_columns(parameter, names, wanted)
    if names != wanted:
        raise InvalidInput(f"{parameter} has the model's columns in another order; use {parameter}[{list(wanted)}].")
    return table


def _is_there(problem: Problem, confirm: Confirm) -> Bools:
    """(n_rows,) whether each row is an answer as it is."""
    rows = problem.batch.rows
    if problem.slack is None:
        return np.asarray((problem.batch.target == problem.batch.origin) & problem.is_valid(rows))
    is_there = problem.loosened().is_valid(rows)
    near = np.flatnonzero(is_there)
    if near.size:
        is_there[near] = confirm(problem.subset(near), rows[near])
    return is_there


def _lies_in(interval: Interval, values: Any) -> Bools:
    """(n_rows,) whether each of the model's own numbers lies in the interval."""
    own = np.asarray(values, np.float64).reshape(len(values), -1)[:, 0]
    return np.asarray((own >= interval.low) & (own <= interval.high))


def _reasons(outcome: Outcome, reasons: Reasons) -> tuple[Reason, ...]:
    """Why each row came out so: its own reason, else its status's."""
    of_status: dict[Status, Reason] = {status: ByStatus(status) for status in Status}
    found = [of_status[status] for status in outcome.status]
    for i in np.flatnonzero(outcome.is_undecided if outcome.is_undecided is not None else []).tolist():
        if outcome.status[i] in Undecided.of:
            found[i] = Undecided(outcome.status[i])
    for i, reason in reasons.items():
        found[i] = reason
    return tuple(found)


def _no_other(outcome: Outcome, reasons: Reasons) -> Reasons:
    """Why rows have no further way out."""
    proven = np.flatnonzero(outcome.status == Status.INFEASIBLE).tolist()
    return dict.fromkeys(proven, NoOtherWay()) | reasons


def _written(table: Table, row: int, column: int) -> str:
    cell = table.cell(row, column)
    return "nan" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _spread_out(examples: Floats) -> Floats:
    """At most EXAMPLES rows, evenly over the data."""
    if len(examples) <= EXAMPLES:
        return examples
    return examples[np.linspace(0, len(examples) - 1, EXAMPLES).astype(np.intp)]


@contextmanager
def _bar(progress: bool | Callable[[int], None], n_rows: int) -> Iterator[Callable[[int], None] | None]:
    """The function that hears progress: the user's, a bar's, or none."""
    if not progress:
        yield None
    elif callable(progress):
        yield progress
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("explaining", total=n_rows)
            yield lambda done: bar.update(task, completed=done)
            bar.update(task, completed=n_rows)
