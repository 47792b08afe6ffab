"""From a model and rows to explanations: the whole story on one screen."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.adapters import translate
from treefocus.adapters.trust import trusted
from treefocus.constraints.kinds import Constraint
from treefocus.constraints.text import as_constraints
from treefocus.errors import InvalidInput, reject
from treefocus.explanation.actions.plan import Plan, plan_of
from treefocus.explanation.bands import Bands, named_bands
from treefocus.explanation.batch import Explanations
from treefocus.explanation.reasons import NotConfirmed, Reason, reasons_of
from treefocus.explanation.settled import no_other, settled
from treefocus.explanation.training import Training, beside_smallest
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Forest, read_json
from treefocus.model.grid import readable
from treefocus.model.source import Source
from treefocus.options import EXPLAINER, HOLD_FOR_PEOPLE, check
from treefocus.options import named as options_of
from treefocus.problem.companions import companions
from treefocus.problem.compile import dry_run, with_domains
from treefocus.problem.distances import Distance, full_name
from treefocus.problem.fitting import distance_of, examples_of, fixed_besides, labels_of, numbers_of
from treefocus.problem.joint import Companion
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure
from treefocus.problem.question import Group, Question
from treefocus.problem.reading import Reading, opened
from treefocus.problem.saved import read_state, state_record
from treefocus.problem.space import Space
from treefocus.problem.targets import as_asked
from treefocus.problem.tolerance import Tolerance, as_tolerance
from treefocus.render.progress import progress_bar
from treefocus.schema.schema import Schema
from treefocus.search import Outcome, Run, Status, Strategy, as_strategy
from treefocus.search.base import Interruption, solved
from treefocus.search.confirmed import Confirmed
from treefocus.search.judge import Judge
from treefocus.search.limits import Clock, now
from treefocus.search.plausible import Plausible
from treefocus.search.ways import ways_out, without_answers
from treefocus.storage.atomic import write_whole
from treefocus.tables.table import Table


class Explainer:
    """Answers, for a trained tree ensemble: what is the smallest change to this row that changes the prediction?

    Parameters
    ----------
    model : fitted model or Forest
        Of a supported library.
    data : table, optional
        Training rows, from which scale, domain and covariance are taken.
    distance : str, Distance or an object with value and gradient
        What small means: "manhattan" (default; few features change), "euclidean", "chebyshev", "l0", "cosine" or
        "mahalanobis"; "l1", "l2" and "linf" are the first three by their other names.
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
    vary : column or sequence of columns, optional
        The only columns that may change, by name or number; all of them if not given. The same as `Fixed` of all
        others, which `constraints` then holds.
    also : model or sequence of models, optional
        Other models that have to give the wanted outcome, too: last year's, say, or some that were trained again; of
        the same columns and any supported libraries. The closest answer for all of them is found, and proven.
    labels : array, optional
        The labels of the training rows, with which the model is trained again for `explain(hold=...)`; one a row of
        `data`.
    refits : sequence of models, optional
        The model as it was trained again, for hold, where that is done already; `treefocus.refits` does it.

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

    forest: Forest
    schema: Schema
    constraints: tuple[Constraint, ...]
    distance: Distance
    distance_name: str
    space: Space
    plausibility: Measure | None

    def __init__(
        self,
        model: Any,
        data: Any = None,
        *,
        distance: str | Distance | Any = "manhattan",
        constraints: str | Constraint | Sequence[str | Constraint] = (),
        scale: Any = "range",
        bounds: Any = None,
        schema: Schema | None = None,
        plausibility: Measure | None = None,
        weights: Mapping[str | int, float] | None = None,
        vary: str | int | Sequence[str | int] | None = None,
        also: Any = (),
        labels: Any = None,
        refits: Sequence[Any] = (),
    ) -> None:
        check(vary=vary)
        source, rows = opened(trusted(translate(model)), data, schema)
        self.constraints = as_constraints(constraints)
        self._reading, table = Reading.of(source, schema, rows, self.constraints)
        folding, self.schema, self.forest = self._reading.folding, self._reading.schema, self._reading.forest
        names = source.forest.feature_names or (None if schema is None else schema.columns)
        fitted = partial(companions, model=source.forest, names=names, table=rows, folding=folding)
        self._also = fitted(also)
        self._training = Training(model, data, labels, tuple(refits), names, fitted)
        self._judge = Judge.of(source if folding is None else folding.source(source), self._also)
        self.constraints += fixed_besides(vary, self.schema)
        known = None if table is None else numbers_of(table, self.schema.names)
        n_features = self.forest.n_features
        self.space = with_domains(Space.of(known, scale, bounds, n_features), self.schema, self.forest)
        self.distance = distance_of(distance, weights, self.schema, None if known is None else self.space.to_z(known))
        self.distance_name = full_name(distance) if isinstance(distance, str) else type(distance).__name__
        if self.forest.decision != "value" and not self._also:  # what is asked of a number makes a forest of its own
            kernels.prepare(self.forest)
        self._examples = None if known is None else examples_of(known)
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
        hold: float | None = None,
        tolerance: Tolerance | float | str | None = None,
    ) -> Explanations:
        """Explain every row of X: pandas, polars or NumPy, the same comes back.

        Parameters
        ----------
        X : table or row
            The rows, by the model's columns in any order; a Series or a dict is one row.
        target : a class, Probability, Interval, Score or a list with one a row, optional
            The class to reach, or what is to be predicted; any other class if not given. ("approved", 0.8) is
            Probability("approved", 0.8).
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
        hold : float, optional
            The share of future models that has to give the wanted class, too: 0.95, say, of models that are trained
            again with other seeds and on other draws of the rows. It takes `labels=` or `refits=`; of forests that vote
            the law of their votes has to do without. `found.held` has what was measured, `found[0].price` its cost.
        tolerance : Tolerance, float or str, optional
            Room to move, in which every point gets the wanted outcome, too: `Tolerance(above=0.2)` is an answer that
            may be overshot by a fifth of the change in all its columns together, "income above 500" one by 500 units.
            That is proven, and the smallest such change is looked for (docs/holds.md).

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
        target = as_asked(target, self.forest)
        chosen = as_strategy(strategy)
        if self.plausibility is not None:
            chosen = Plausible(chosen, self.plausibility)
        table = self._reading.complete(X, "X")
        check(time_limit=time_limit, n=n, on_interrupt=on_interrupt, hold=hold)
        n_jobs = kernels.n_threads(n_jobs)
        interruption = Interruption() if on_interrupt == "return" else None
        question = self._question(table, target, as_tolerance(tolerance))
        asked = question if hold is None else self._training.asked(question, float(hold), n_jobs)
        groups = asked.groups()
        n_rows, n_before, every_group = len(table.values), 0, []
        clock = Clock(n_rows, n_jobs, began=began).on(n_rows)
        with progress_bar(progress, n_rows) as report:
            run = Run(seed, n_jobs, time_limit, report, interruption, clock)
            for group in groups:
                every_group.append(self._ways(table, group, chosen, run.again(len(group.rows), n_before), int(n)))
                n_before += len(group.rows)
        if interruption is not None and interruption.has_come:
            warnings.warn("The search was interrupted; rows it did not reach have no answer or no proof.", stacklevel=2)
        first, *others = (
            Explanations.of(table, groups, found, self.distance_name) for found in zip(*every_group, strict=True)
        )
        seconds = now() - began
        found = replace(first, others=tuple(one.timed(seconds) for one in others), seconds=seconds)
        if hold is None and question.tolerance is None:
            return found
        smallest = self.explain(table, target, strategy, time_limit=time_limit, n_jobs=n_jobs, seed=seed)
        found = beside_smallest(found, smallest)
        return (found if hold is None else self.measured(found)).timed(now() - began)

    def measured(self, found: Explanations) -> Explanations:
        """Answers with what refits say that had no part in any of them, in `held`; the same where there are none."""
        return self._training.measured(found)

    def __call__(self, X: Any, target: Any = None, strategy: str | Strategy = "auto", **options: Any) -> Explanations:
        """`explain`, for who is used to calling explainers."""
        return self.explain(X, target, strategy, **options)

    def bands(self, X: Any, bands: Any, strategy: str | Strategy = "auto", **options: Any) -> Bands:
        """The smallest change of every row into each of several bands, such as the classes of a rating.

        The rows are read once, and what was found for one band is where the searches of the next ones start.

        Parameters
        ----------
        X : table of rows
            As in `explain`, as are strategy and options.
        bands : mapping of names to targets, or a sequence of targets
            `{"A": Score(low=2), "B": Score(0, 2)}`; anything that `explain` takes as one target.

        Returns
        -------
        Bands
            `found["A"]` are the Explanations of band A; `to_frame()` has a line a row and band.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import GradientBoostingRegressor
        >>> from treefocus import Explainer, Interval
        >>> data = np.arange(40.0)[:, None]
        >>> explainer = Explainer(GradientBoostingRegressor().fit(data, data[:, 0]), data)
        >>> found = explainer.bands(data[:1], {"middle": Interval(10, 20), "high": Interval(low=30)})
        >>> found["middle"][0].status.name, found["high"][0].status.name
        ('OPTIMAL', 'OPTIMAL')
        """
        table, searched, found = self.table_of(X), copy(self), {}
        for name, target in named_bands(bands).items():
            found[name] = searched.explain(table, target, strategy, **options)
            points = found[name].points[found[name].has_answer]
            if self.plausibility is None and len(points):  # with it, examples say what the data are like
                known = searched._examples
                searched._examples = points if known is None else np.concatenate([known, points])
        return Bands(found)

    def actions(
        self,
        rows: Any,
        target: Any = None,
        at_most: int = 3,
        *,
        cover: float | None = None,
        most_cost: float | None = None,
        mean_cost: float | None = None,
        gradual: bool = False,
        **options: Any,
    ) -> Plan:
        """At most so many actions, the same for everybody, that get as many rows as possible the wanted answer.

        Parameters
        ----------
        rows : table or Explanations
            The people, or what this explainer has answered them; then target and options are those of that call.
        target : a class, Probability, Interval or Score
            What they want, as in `explain`.
        at_most : int
            How many actions there may be.
        cover : float, optional
            The opposite question: the share of rows to help, by as few actions as possible; `at_most` is then not
            looked at.
        most_cost : float, optional
            What an action may cost a person, as a distance; who would have to pay more is not counted as helped.
        mean_cost : float, optional
            What those helped may pay on average. Everybody is asked for their cheapest action; whom that is too dear
            for the mean is left out, the dearest first.
        gradual : bool
            Whether everybody goes only as far as it takes, in fifty steps, instead of the whole action.
        **options
            Further ones of `explain`.

        Returns
        -------
        Plan
            The `actions`, their `coverage`, its `upper_bound`, whom each helps, and a tree that sorts people to
            actions.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from treefocus import Explainer
        >>> ages = np.array([[20.0], [30.0], [50.0], [60.0]])
        >>> tree = DecisionTreeClassifier().fit(ages, ["low", "low", "high", "high"])
        >>> plan = Explainer(tree, ages).actions(ages, "high", at_most=1)
        >>> plan.coverage, plan.upper_bound, len(plan.actions)
        (1.0, 1.0, 1)
        """
        found = rows if isinstance(rows, Explanations) else self.explain(rows, target, **options)
        return plan_of(found, self._judge.confirming, at_most, cover, most_cost, mean_cost, gradual)

    def _ways(
        self, table: Table, group: Group, strategy: Strategy, run: Run, n: int
    ) -> list[tuple[Outcome, tuple[Reason, ...]]]:
        """What is found for rows that are asked the same, and why it is so: the first way out, the second, ..."""
        problem, target = group.problem, group.question.target
        judge = self._judge.remembering()
        confirm = judge.confirming(target)
        outcome, reasons = settled(table, group, confirm)
        is_open = np.flatnonzero(outcome.status == Status.NOT_FOUND)
        ways = [outcome, *(without_answers(outcome) for _ in range(n - 1))]
        if is_open.size:
            part, chosen = problem.subset(is_open), Confirmed(strategy, confirm)
            found = [solved(chosen, part, run), *(Outcome.nothing(part) for _ in range(n - 1))]
            if n > 1:
                with run.kept():
                    found = ways_out(part, found[0], chosen, run, n)
            ways = [way.replaced(is_open, own) for way, own in zip(ways, found, strict=True)]
        whys = [reasons, *(no_other(way, reasons) for way in ways[1:])]
        wrong = [dict.fromkeys(judge.overrule(target, problem, way), NotConfirmed()) for way in ways]
        return [(way, reasons_of(way, why | no)) for way, why, no in zip(ways, whys, wrong, strict=True)]

    def prepare(self, target: Any, hold: float) -> None:
        """Train what `hold=` takes, and calibrate its margins for this target, so that no call has to."""
        self._training.prepare(self._question(self.table_of(np.empty((0, self.forest.n_features))), target), hold)

    def hold_for_people(self, target: Any = None) -> float | None:
        """The promise under which people are answered by default; None where none can be made for this target.

        The smallest change ends just behind the line. Letters and the demo ask for more, unless they are told what to
        ask; `explain` itself does not.
        """
        can_hold = self._training.can_hold(self.forest, as_asked(target, self.forest))
        return HOLD_FOR_PEOPLE if can_hold else None

    def table_of(self, rows: Any) -> Table:
        """The rows as the search takes them: categories by their labels, one-hot groups folded."""
        return self._reading.table(rows, "rows")

    def _question(self, table: Table, target: Any, tolerance: Tolerance | None = None) -> Question:
        """What is asked, under the limits of the table's dtypes and of what the model reads."""
        forests = (self.forest, *self.also)
        is_readable = np.asarray(readable(table.values, *forests).all(axis=1))
        return Question(
            self.forest,
            np.where(is_readable[:, None], table.values, 0.0),
            space=self.space.within(table.limits, *(forest.reads for forest in forests)),
            distance=self.distance,
            constraints=self.constraints,
            schema=self.schema,
            grain=self._reading.grain_of(table),
            target=target,
            examples=self._examples,
            plausibility=self.plausibility,
            orders=self._reading.orders_of(table),
            also=tuple(Companion(one.forest) for one in self._also),
            tolerance=None if tolerance is None or tolerance.is_none else tolerance,
        )

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names that every table must have, None where the model knows its columns by number only."""
        return self._reading.column_names

    @property
    def also(self) -> tuple[Forest, ...]:
        """The other models that have to give the wanted outcome, too."""
        return tuple(one.forest for one in self._also)

    @property
    def pool(self) -> Forest | None:
        """What `hold=` asks besides the model: its refits, pooled, made when it is asked for; None without any."""
        return self._training.holding().pool if self._training.can_refit else None

    @property
    def refits(self) -> tuple[Any, ...]:
        """The model as it was trained again, for `hold=`: by whoever gave `refits=`, or now, with `labels=`."""
        return self._training.again()

    @property
    def judges(self) -> list[Forest]:
        """The refits that had no part in any answer under `hold=`; `found.stability(explainer.judges)` asks them."""
        if not self._training.can_refit:
            raise InvalidInput("Refits say what holds: give Explainer labels= of the training rows, or refits=.")
        return [one.forest for one in self._training.holding().measuring]

    @property
    def column_labels(self) -> Labels:
        """Per column of a table its categories, None where it holds numbers; one-hot groups are not folded here."""
        return self._reading.column_labels

    @property
    def labels(self) -> Labels:
        """Per column its categories, None where it holds numbers."""
        return labels_of(self.forest)

    @property
    def has_order(self) -> Bools:
        """(n_features,) whether a column can be asked to grow or to shrink: numbers, and categories in an order."""
        return self._reading.has_order

    @property
    def whole_columns(self) -> Bools:
        """(n_features,) whether a column is answered in whole numbers, whatever table comes."""
        return self._reading.integer

    def save(self, path: str | Path) -> None:
        """Write it as one JSON file, compressed if the name ends in .gz: model, columns, rules, what the data said.

        Nothing in it runs. `load_explainer` reads it; that one answers alike, and checks answers on the forest.
        """
        data = json.dumps(state_record(self.__getstate__()), allow_nan=False).encode()
        write_whole(Path(path), gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: arrays and words. The source model stays behind."""
        also = tuple(Source(one.forest) for one in self._also)
        own = {name: value for name, value in self.__dict__.items() if name != "_reading"}
        return (
            own
            | self._reading.state()
            | {"_also": also, "_judge": Judge.of(Source(self.forest), also), "_training": self._training.portable()}
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._reading = Reading.of_state(state)
        apart = self._reading.state().keys() - {"schema"}
        self.__dict__.update({name: value for name, value in state.items() if name not in apart})

    def __copy__(self) -> Explainer:
        """The same once more, which asks the source model, too."""
        made = Explainer.__new__(Explainer)
        made.__dict__.update(self.__dict__)
        return made

    def __repr__(self) -> str:
        return f"Explainer({self.forest!r}, distance={self.distance_name!r}, constraints={list(self.constraints)})"


def load_explainer(path: str | Path) -> Explainer:
    """Read an explainer that `Explainer.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file; compressed if its name ends in .gz.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import Explainer, load_explainer
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> explainer = Explainer(DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"]), data)
    >>> explainer.save("explainer.json")
    >>> load_explainer("explainer.json").explain(data[:1])[0].outcome
    'high'
    """
    made = Explainer.__new__(Explainer)
    made.__setstate__(read_state(read_json(path)))
    made._judge, made._training = Judge.of(Source(made.forest), made._also), Training()
    dry_run(made.constraints, made.schema, made.forest, made._reading.orders)
    if made.forest.decision != "value":
        kernels.prepare(made.forest)
    return made


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
    building = {name: options.pop(name) for name in options_of(EXPLAINER) if name in options}
    return Explainer(model, data, **building).explain(X, **options)
