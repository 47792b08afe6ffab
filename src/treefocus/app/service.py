"""One model, the rows beside it, and questions about rows: what the API and the page have in common. Knows no HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

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
from treefocus.model.fingerprint import fingerprint
from treefocus.model.forest import Floats
from treefocus.model.grid import readable
from treefocus.options import EXPLAINER, SERVICE, named, names_at
from treefocus.problem.targets import Probability, one_a_row, put
from treefocus.schema.schema import Schema
from treefocus.tables.cells import Cell, CellTable, table_of_cells, table_of_codes
from treefocus.tables.table import Table

COMPARED = ("euclidean", "manhattan", "cosine", "mahalanobis")
_EXPLAINERS = 16  # kept, the last used; each holds up to 10,000 examples


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the model says of rows."""

    labels: list[Any]  # (n_rows,) a class or a number, None where the model cannot read the row
    probabilities: list[list[float] | None]  # (n_rows,) of (n_classes,), None where there are none


class Service:
    """Answers for the API and the page.

    model: as for `Explainer`. data: training rows. rows: those that people pick from. asked: what is asked where a
    caller does not say otherwise; its constraints hold unless the caller gives their own. ids: the rows' own names.
    also: other models that have to give the wanted outcome of every answer, too.
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
        self._companions = {"also": tuple(also), "labels": labels, "refits": tuple(refits)}
        self.limits = limits or Limits()
        self.on_answer: list[Callable[[Explanations], None]] = []  # who hears of answers
        self.asked = asked or ExplainOptions()
        given = translate(model).forest
        self.predicts_number = given.decision == "value"
        self.classes: list[Any] = given.classes.tolist()
        if self.asked.target is not None:
            put(self.asked.target, given, 1)  # a target that no call could be answered with is reported here
        self._explainers = lru_cache(_EXPLAINERS)(self._built)
        explainer = self.explainer(self.asked)
        self.schema, self.space, self.forest = explainer.schema, explainer.space, explainer.forest
        self.has_order = explainer.has_order.tolist()
        self.rows = explainer.table_of(rows)
        if ids is not None and len(ids) != len(self.rows.values):
            reject("ids", f"a name for each of the {len(self.rows.values)} rows", len(ids))
        self.ids = None if ids is None else tuple(ids)
        self.labels = explainer.labels
        self._labels = None if self.forest.categories is None else self.labels
        self.fingerprint = fingerprint(given)
        self._others = [fingerprint(forest) for forest in explainer.also]
        self.identity = self._identity()
        self.predictions = self.predict(self.rows.values)

    def explainer(self, question: ExplainOptions) -> Explainer:
        """The explainer for a question; kept, for its making takes longer than most answers."""
        return self._explainers(**{name: _frozen(getattr(question, name)) for name in _OF_EXPLAINERS})

    def _built(self, **options: Any) -> Explainer:
        given = {name: _THAWED[name](own) if name in _THAWED else own for name, own in options.items()}
        return Explainer(self._model, self._data, schema=self._schema, **self._companions, **given)

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
        return replace(question, hold=self.explainer(question).hold_for_people(question.target))

    def compared(self, row: CellTable, question: ExplainOptions, errand: Errand, label: Any) -> dict[str, Explanations]:
        """One row under the four distances that people know."""
        return {
            name: self.explain(row, replace(question, distance=name, n=1), errand, labels=[label]) for name in COMPARED
        }

    def safer(
        self, row: CellTable, question: ExplainOptions, margins: Sequence[int], errand: Errand, label: Any
    ) -> dict[int, Explanations]:
        """One row, with the wanted class at least so probable, in per cent."""
        wanted = question.target.label if isinstance(question.target, Probability) else question.target
        return {
            percent: self.explain(
                row, replace(question, target=Probability(wanted, percent / 100), n=1), errand, labels=[label]
            )
            for percent in margins
        }

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
