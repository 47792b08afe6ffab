"""One model, the rows beside it, and questions about rows: what the API and the page have in common. Knows no HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from treefocus import kernels
from treefocus.adapters import translate
from treefocus.app.limits import Limits
from treefocus.app.question import ExplainOptions
from treefocus.app.workers import Errand
from treefocus.errors import reject
from treefocus.explainer import Explainer
from treefocus.explanation import predictions
from treefocus.explanation.batch import Explanations
from treefocus.explanation.change import told_value
from treefocus.explanation.json import cell
from treefocus.explanation.training import beside_smallest
from treefocus.model.fingerprint import fingerprint
from treefocus.model.forest import Floats
from treefocus.model.grid import readable
from treefocus.options import EXPLAINER, SERVICE, named, names_at
from treefocus.problem.targets import Probability, one_a_row, put
from treefocus.schema.schema import Schema
from treefocus.tables.cells import Cell, CellTable, table_of_cells, table_of_codes
from treefocus.tables.table import Table

MARGINS = (50, 60, 70, 80, 90)  # per cent that "make it safer" offers
COMPARED = ("euclidean", "manhattan", "cosine", "mahalanobis")
_EXPLAINERS = 16  # kept, the last used; each holds up to 10,000 examples


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the model says of rows."""

    labels: list[Any]  # (n_rows,) a class or a number, None where the model cannot read the row
    probabilities: list[list[float] | None]  # (n_rows,) of (n_classes,), None where there are none


@dataclass(frozen=True, eq=False)
class Offer:
    """An answer that is at least so probable, in per cent, or holds for that share of future models; or neither."""

    percent: int | None
    hold: float | None
    found: Explanations


class Service:
    """Answers for the API and the page.

    model: as for `Explainer`. data: training rows. rows: those that people pick from. asked: what is asked where a
    caller does not say otherwise; its constraints hold unless the caller gives their own. ids: the rows' own names.
    also: other models that have to give the wanted outcome of every answer, too. labels, refits: as for `Explainer`, so
    that answers can be asked to hold; models are trained and a margin is calibrated before the first question comes.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        rows: Table,
        *,
        schema: Schema | None = None,
        asked: ExplainOptions | None = None,
        limits: Limits | None = None,
        title: str = "treefocus",
        ids: Sequence[str] | None = None,
        also: Sequence[Any] = (),
        labels: Any = None,
        refits: Sequence[Any] = (),
    ) -> None:
        self._model, self._data, self._schema, self.title = model, data, schema, title
        self._companions: dict[str, Any] = {"also": tuple(also), "labels": labels, "refits": tuple(refits)}
        self.limits = limits or Limits()
        self.on_answer: list[Callable[[Explanations], None]] = []  # who hears of answers
        self.asked = asked or ExplainOptions()
        given = translate(model).forest
        self.predicts_number = given.decision == "value"
        self.classes: list[Any] = given.classes.tolist()
        if self.asked.target is not None:
            put(self.asked.target, given, 1)  # a target that no call could be answered with is reported here
        self._explainers = lru_cache(_EXPLAINERS)(self._built)
        self._first = explainer = self.explainer(self.asked)
        self._prepare(explainer)
        self._in_round_numbers: WeakKeyDictionary[Explanations, Explanations] = WeakKeyDictionary()
        self.schema, self.space, self.forest = explainer.schema, explainer.space, explainer.forest
        self.has_order = explainer.has_order.tolist()
        self.rows = explainer.table_of(rows)
        if ids is not None and len(ids) != len(self.rows.values):
            reject("ids", f"a name for each of the {len(self.rows.values)} rows", len(ids))
        self.ids = None if ids is None else tuple(ids)
        self.labels = explainer.labels
        self._labels = None if self.forest.categories is None else self.labels
        self.fingerprint = fingerprint(given)
        others = (*explainer.also, *([] if explainer.pool is None else [explainer.pool]))
        self._others = [fingerprint(forest) for forest in others]
        self.identity = self._identity()
        self.predictions = self.predict(self.rows.values)

    def explainer(self, question: ExplainOptions) -> Explainer:
        """The explainer for a question; kept, for its making takes longer than most answers."""
        return self._explainers(**{name: _frozen(getattr(question, name)) for name in _OF_EXPLAINERS})

    def _built(self, **options: Any) -> Explainer:
        given = {name: _THAWED[name](own) if name in _THAWED else own for name, own in options.items()}
        return Explainer(self._model, self._data, schema=self._schema, **self._companions, **given)

    def _prepare(self, explainer: Explainer) -> None:
        """Train what answers that hold take, once for all explainers, and calibrate the first question's margin."""
        self._companions |= {"labels": None, "refits": explainer.refits}
        promise = self.asked.hold
        if promise is None and explainer.refits:
            promise = self.hold_for_people(self.asked.target)
        if promise is not None:
            explainer.prepare(self.asked.target, promise)

    def hold_for_people(self, target: Any) -> float | None:
        """The promise under which people are answered by default; None where none can be made for this target."""
        return self._first.hold_for_people(target)

    def _identity(self) -> str:
        """What answers depend on besides the call: the model, the space of the data, the defaults."""
        digest = hashlib.sha256(f"{self.fingerprint} {self.asked.text} {self.schema!r}".encode())
        digest.update(" ".join(self._others).encode())
        for side in (self.space.low, self.space.high, self.space.scale, self.space.offset):
            digest.update(np.ascontiguousarray(side).tobytes())
        return digest.hexdigest()

    def check(self, question: ExplainOptions, n_rows: int) -> None:
        """Refuse now what could not be answered later."""
        each = one_a_row(question.target, self.forest, n_rows)
        for target in (question.target,) if each is None else dict.fromkeys(each):
            put(target, self.forest, n_rows)
        target = question.target
        if isinstance(target, list):
            target = each[0] if each else None
        self.explain(self.table_of([]), replace(question, target=target))

    def explain(
        self, rows: CellTable, question: ExplainOptions, errand: Errand | None = None, *,
        labels: Sequence[Any] | None = None, n_jobs: int = 1,
    ) -> Explanations:  # fmt: skip
        """The answers; `labels` are the rows' names, else 0, 1, ...."""
        self.limits.check_seconds(question.time_limit)
        self.limits.check_ways(question.n)
        self.limits.check_measure(question.plausibility)
        limit = self.asked.time_limit if question.time_limit is None else question.time_limit
        found = self.explainer(question).explain(
            rows, question.target, question.strategy, time_limit=limit, n_jobs=n_jobs,
            seed=question.seed, progress=False if errand is None else errand.heard, n=question.n, hold=question.hold,
            tolerance=question.tolerance,
        )  # fmt: skip
        for hear in self.on_answer:
            hear(found)
        return found.labelled(labels)

    def for_people(self, question: ExplainOptions) -> ExplainOptions:
        """The question as it is put for a letter: with a margin, where none was asked for and there can be one."""
        if question.hold is not None:
            return question
        return replace(question, hold=self.hold_for_people(question.target))

    def answer(self, row: CellTable, question: ExplainOptions, errand: Errand, label: Any) -> Explanations:
        """One row's answer as the page tells it: with its price where more than the smallest change is asked for, a
        probability, say; and, where there are refits, with how many of them agree.
        """
        found = self.explain(row, question, errand, labels=[label])
        if isinstance(question.target, Probability):
            smallest = self.explain(row, _smallest(question), errand, labels=[label])
            found = beside_smallest(found, smallest)
        return found if found.held is not None else self._measured(found)

    def in_round_numbers(self, found: Explanations) -> Explanations:
        """One row's answer in round numbers, worked out once; as it is where there is none."""
        if not found.has_answer[0]:
            return found
        if found not in self._in_round_numbers:
            self._in_round_numbers[found] = self._measured(cast(Explanations, found[0].rounded().batch))
        return self._in_round_numbers[found]

    def _measured(self, found: Explanations) -> Explanations:
        return self._first.measured(found) if not self.predicts_number and found.has_answer.any() else found

    def compared(self, row: CellTable, question: ExplainOptions, errand: Errand, label: Any) -> dict[str, Explanations]:
        """One row under the four distances that people know."""
        return {
            name: self.explain(row, replace(question, distance=name, n=1), errand, labels=[label]) for name in COMPARED
        }

    def safer(
        self, row: CellTable, question: ExplainOptions, hold: float | None, errand: Errand, label: Any
    ) -> list[Offer]:
        """One row's smallest change to the wanted class, then with more and more probability, then one that holds."""
        smallest = self.explain(row, _smallest(question), errand, labels=[label])
        plain = replace(_smallest(question), tolerance=question.tolerance)
        wanted: list[tuple[int | None, float | None]] = [(None, None)]
        wanted += [(percent, None) for percent in MARGINS if percent > self._percent(smallest, plain.target)]
        wanted += [] if hold is None else [(None, hold)]
        offers = []
        for percent, own in wanted:
            target = plain.target if percent is None else Probability(plain.target, percent / 100)
            asked = replace(plain, target=target, hold=own)
            found = smallest if asked == _smallest(question) else self.explain(row, asked, errand, labels=[label])
            offers.append(Offer(percent, own, self._measured(beside_smallest(found, smallest))))
        return offers

    def _percent(self, found: Explanations, label: Any) -> float:
        """How probable a class is at one row's answer; 100 where there is no answer or no probability."""
        if not found.has_answer[0]:
            return 100.0
        shares = self.predict(found.points).probabilities[0]
        return 100.0 if shares is None else 100 * shares[self.classes.index(label)]

    def predict(self, values: Floats) -> Predictions:
        """Class and probabilities of every row, in the order of `classes`; or its number."""
        is_readable = np.asarray(readable(values, self.forest).all(axis=1))
        known = np.where(is_readable[:, None], values, 0.0)
        if self.predicts_number:
            numbers = predictions.predictions(self.forest, known).tolist()
            return Predictions(_where(is_readable, numbers), [None] * len(numbers))
        labels = [self.classes[k] for k in kernels.predict(self.forest, known).tolist()]
        shares = predictions.probabilities(self.forest, known).tolist()
        return Predictions(_where(is_readable, labels), _where(is_readable, shares))

    @cached_property
    def spread(self) -> tuple[float, float, float]:
        """The smallest, the middle and the largest of the numbers that are predicted for the rows, 0 without rows."""
        known = [number for number in self.predictions.labels if number is not None] or [0.0]
        return min(known), float(np.median(known)), max(known)

    def table_of(self, rows: Sequence[Mapping[str, Cell] | Sequence[Cell]]) -> CellTable:
        """Rows that came as objects by column name, or as lists in the model's order, as they are written there.

        A cell is a number, a category of the column, or None where it is missing.
        """
        booleans = [feature.name for feature in self.schema.features if feature.kind == "boolean"]
        countings = {one.name: one.counting for one in self.schema.features if one.counting is not None}
        return table_of_cells(rows, self.schema.names, self._labels, booleans, countings)

    def name_of(self, i: int) -> int | str:
        """How a row of the server's is called in every output: its number and, where rows have one, its own name."""
        return i if self.ids is None else f"{i} ({self.ids[i]})"

    def written(self, i: int) -> list[Cell]:
        """A row of the server's as a caller would write it."""
        features = self.schema.features
        return [
            cell(told_value(value, own) if own.is_date else value)
            for value, own in zip(self.rows.row(i), features, strict=True)
        ]

    def row_of(self, values: Floats) -> CellTable:
        """One row, (n_features,), whose categories stand by their codes, as the page holds them."""
        return table_of_codes(values[None, :], self._labels)


def _smallest(question: ExplainOptions) -> ExplainOptions:
    """The question for the smallest change to the class that is wanted, and no more."""
    target = question.target.label if isinstance(question.target, Probability) else question.target
    return replace(question, target=target, hold=None, tolerance=None, n=1)


def _where(is_known: Any, values: list[Any]) -> list[Any]:
    return [value if known else None for value, known in zip(values, is_known, strict=True)]


def _frozen(option: Any) -> Any:
    """Lists and mappings as tuples, so that they can be keys."""
    if isinstance(option, dict):
        return tuple(option.items())
    return tuple(map(_frozen, option)) if isinstance(option, list | tuple) else option


_THAWED: dict[str, Callable[[Any], Any]] = {
    "scale": lambda scale: list(scale) if isinstance(scale, tuple) else scale,
    "weights": lambda weights: None if weights is None else dict(weights),
}
_OF_EXPLAINERS = tuple(name for name in named(EXPLAINER) if name in names_at(SERVICE))
