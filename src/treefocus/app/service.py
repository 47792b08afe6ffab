"""One model, the rows beside it, and questions about rows: what the API and the page have in common. Knows no HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from treefocus import kernels, summaries
from treefocus.adapters import translate
from treefocus.app.limits import Limits
from treefocus.app.workers import Errand
from treefocus.certificate import fingerprint
from treefocus.coding import Coding, encode, label_of
from treefocus.constraint_words import written
from treefocus.constraints import Constraint
from treefocus.distances import NAMED as DISTANCES
from treefocus.errors import InvalidInput, reject
from treefocus.explainer import Explainer
from treefocus.explanation import Explanations
from treefocus.folding import Folding
from treefocus.forest import Floats
from treefocus.grid import readable
from treefocus.schema import Schema
from treefocus.search import NAMED as STRATEGIES
from treefocus.tables import Table
from treefocus.targets import as_targets

Cell = float | str | bool | None
COMPARED = ("euclidean", "manhattan", "cosine", "mahalanobis")
_UNSEEN = object()  # stands for a category that the model does not know
_EXPLAINERS = 16  # kept, the last used; each holds up to 10,000 examples


@dataclass(frozen=True)
class Question:
    """What is asked about rows: the options of `Explainer` and of `Explainer.explain`."""

    distance: str = "manhattan"
    constraints: tuple[Constraint, ...] = ()
    target: Any = field(default=None, hash=False)
    strategy: str = "auto"
    time_limit: float | None = 1.0
    seed: int = 0
    n: int = 1  # ways out
    scale: Any = field(default="range", hash=False)
    bounds: Any = field(default=None, hash=False)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the model says of rows."""

    labels: list[Any]  # (n_rows,) a class, None where the model cannot read the row
    probabilities: list[list[float] | None]  # (n_rows,) of (n_classes,)


class Service:
    """Answers for the API and the page.

    model: as for `Explainer`. data: training rows. rows: those that people pick from. asked: what is asked where a
    caller does not say otherwise; its constraints hold unless the caller gives their own.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        rows: Table,
        *,
        schema: Schema | None = None,
        asked: Question | None = None,
        limits: Limits | None = None,
        title: str = "treefocus",
    ) -> None:
        self._model, self._data, self._schema, self.title = model, data, schema, title
        self.limits = limits or Limits()
        self.asked = asked or Question()
        given = translate(model).forest
        self.classes: list[Any] = given.classes.tolist()
        if not self.classes:
            raise InvalidInput("The server answers for models that predict classes; this one predicts a value.")
        self._explainers = lru_cache(_EXPLAINERS)(self._built)
        explainer = self.explainer(self.asked)
        self.schema, self.space, self.forest = explainer.schema, explainer.space, explainer.forest
        self._folding = Folding.of(schema, given)
        self.rows = rows if self._folding is None else self._folding.table(rows)
        coding = Coding.of(self.forest, self.schema.names)
        self.labels = (None,) * len(self.schema) if coding is None else coding.labels
        self.fingerprint = fingerprint(given)
        self.identity = self._identity()
        self.predictions = self.predict(self.rows.values)

    def explainer(self, question: Question) -> Explainer:
        """The explainer for a question; kept, for its making takes longer than most answers."""
        options = (_frozen(question.scale), _frozen(question.bounds))
        return self._explainers(question.distance, question.constraints, *options)

    def _built(self, distance: str, constraints: tuple[Constraint, ...], scale: Any, bounds: Any) -> Explainer:
        return Explainer(
            self._model, self._data, distance=distance, constraints=constraints, scale=_thawed(scale), bounds=bounds,
            schema=self._schema,
        )  # fmt: skip

    def _identity(self) -> str:
        """What answers depend on besides the call: the model, the space of the data, the defaults."""
        digest = hashlib.sha256(f"{self.fingerprint} {self.asked!r} {self.schema!r}".encode())
        for side in (self.space.low, self.space.high, self.space.scale, self.space.offset):
            digest.update(np.ascontiguousarray(side).tobytes())
        return digest.hexdigest()

    def check(self, question: Question, n_rows: int) -> None:
        """Refuse now what could not be answered later."""
        as_targets(question.target, self.forest, n_rows)
        self.explain(np.empty((0, len(self.schema))), replace(question, target=None))

    def explain(
        self, values: Floats, question: Question, errand: Errand | None = None, *, labels: Sequence[Any] | None = None,
        n_jobs: int = 1,
    ) -> Explanations:  # fmt: skip
        """The answers; `labels` are the rows' names, else 0, 1, ...."""
        self.limits.check_seconds(question.time_limit)
        self.limits.check_ways(question.n)
        limit = self.asked.time_limit if question.time_limit is None else question.time_limit
        found = self.explainer(question).explain(
            self._as_written(values), question.target, question.strategy, time_limit=limit, n_jobs=n_jobs,
            seed=question.seed, progress=False if errand is None else errand.heard, n=question.n,
        )  # fmt: skip
        return found if labels is None else _labelled(found, tuple(labels))

    def _as_written(self, values: Floats) -> Any:
        """The rows as they stand in the user's table: categories by their labels, one-hot groups column by column."""
        every = self.labels
        if self._folding is not None:
            values, every = self._folding.unfolded(values), self._folding.labels
        if all(labels is None for labels in every):
            return values
        rows = values.astype(object)
        for j, labels in enumerate(every):
            if labels is not None:
                rows[:, j] = [None if code != code else _label(code, labels) for code in values[:, j]]
        return rows

    def compared(self, row: Floats, question: Question, errand: Errand, label: Any) -> dict[str, Explanations]:
        """One row, (1, n_features), under the four distances that people know."""
        return {
            name: self.explain(row, replace(question, distance=name, n=1), errand, labels=[label]) for name in COMPARED
        }

    def predict(self, values: Floats) -> Predictions:
        """Class and probabilities of every row, in the order of `classes`."""
        is_readable = np.asarray(readable(self.forest, values).all(axis=1))
        known = np.where(is_readable[:, None], values, 0.0)
        predicted = kernels.predict(self.forest, known).tolist()
        shares = summaries.probabilities(self.forest, known).tolist()
        labels = [self.classes[k] if ok else None for k, ok in zip(predicted, is_readable, strict=True)]
        return Predictions(labels, [share if ok else None for share, ok in zip(shares, is_readable, strict=True)])

    def values_of(self, rows: Sequence[Mapping[str, Cell] | Sequence[Cell]]) -> Floats:
        """(n_rows, n_features) rows that came as objects by column name, or as lists in the model's order.

        A cell is a number, a category of the column, or None where it is missing.
        """
        values = np.full((len(rows), len(self.schema)), np.nan)
        for i, row in enumerate(rows):
            cells = self._in_order(i, row) if isinstance(row, Mapping) else row
            if len(cells) != len(self.schema):
                reject(f"rows[{i}]", f"{len(self.schema)} values long", len(cells))
            values[i] = [self._number(i, j, cell) for j, cell in enumerate(cells)]
        return values

    def _number(self, i: int, j: int, cell: Cell) -> float:
        labels = self.labels[j]
        if labels is not None:
            return float(encode([cell], labels)[0])
        if isinstance(cell, str | bool):
            reject(f"rows[{i}].{self.schema.names[j]}", "a number", repr(cell))
        return np.nan if cell is None else float(cell)

    def _in_order(self, i: int, row: Mapping[str, Cell]) -> list[Cell]:
        names = self.schema.names
        unknown = [name for name in row if name not in self.schema]
        missing = [name for name in names if name not in row]
        if unknown or missing:
            problems = [f"{', '.join(unknown)} unknown"] if unknown else []
            problems += [f"{', '.join(missing)} missing"] if missing else []
            raise InvalidInput(
                f"rows[{i}] must have the columns the model was trained on: {'; '.join(problems)}; null is a missing "
                "value."
            )
        return [row[name] for name in names]

    def card(self) -> dict[str, Any]:
        """The model in numbers and words, for people who write programs."""
        forest, low, high = self.forest, self.space.low.tolist(), self.space.high.tolist()
        features = [
            {
                "name": feature.name, "kind": feature.kind, "unit": feature.unit, "description": feature.description,
                "low": low[j] if np.isfinite(low[j]) else None, "high": high[j] if np.isfinite(high[j]) else None,
            }
            for j, feature in enumerate(self.schema.features)
        ]  # fmt: skip
        return {
            "title": self.title,
            "fingerprint": self.fingerprint,
            "source": forest.source,
            "classes": self.classes,
            "features": features,
            "trees": len(forest.tree_start) - 1,
            "nodes": len(forest.feature),
            "leaves": int((forest.feature < 0).sum()),
            "takes_missing": forest.takes_missing,
            "constraints": [written(constraint) for constraint in self.asked.constraints],
            "distances": list(DISTANCES),
            "strategies": list(STRATEGIES),
            "defaults": {
                "distance": self.asked.distance, "strategy": self.asked.strategy, "target": self.asked.target,
                "time_limit": self.asked.time_limit,
            },
            "limits": {
                "rows_per_call": self.limits.rows_per_call, "rows_per_job": self.limits.rows_per_job,
                "seconds_per_row": self.limits.seconds_per_row, "body_bytes": self.limits.body_bytes,
                "jobs_open": self.limits.jobs_open,
            },
        }  # fmt: skip


def _labelled(found: Explanations, labels: tuple[Any, ...]) -> Explanations:
    others = tuple(replace(other, row_labels=labels) for other in found.others)
    return replace(found, row_labels=labels, others=others)


def _label(code: float, labels: Sequence[Any]) -> Any:
    known = label_of(code, labels)
    return _UNSEEN if known is None else known


def _frozen(option: Any) -> Any:
    """Lists as tuples, so that they can be keys."""
    return tuple(map(_frozen, option)) if isinstance(option, list | tuple) else option


def _thawed(scale: Any) -> Any:
    return list(scale) if isinstance(scale, tuple) else scale
