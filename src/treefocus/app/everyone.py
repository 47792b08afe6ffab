"""What a visitor sees of everyone: answers, audit and actions of many rows, and who stands behind each bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.app.workers import Errand
from treefocus.explanation.actions.plan import Plan
from treefocus.explanation.audit.audit import Audit
from treefocus.explanation.batch import Explanations
from treefocus.explanation.change import plain
from treefocus.model.forest import Bools
from treefocus.render.actions import steps_text
from treefocus.render.audit import between, name_of, number, share
from treefocus.render.phrases import catalogue
from treefocus.search.base import Status

AT_MOST = 3  # actions
WHY = 20  # rows without a way out that are asked why
_MOST_VALUES = 6  # of a column of numbers, before it is put into bands
_MOST_FEATURES = 12


@dataclass(frozen=True)
class Bar:
    """A bar of a chart, and the rows behind it."""

    name: str
    told: str
    width: float  # 0 to 1
    rows: tuple[int, ...]  # the server's numbers of them


@dataclass(frozen=True, eq=False)
class Everyone:
    """Many rows of the server's, answered and audited."""

    found: Explanations
    numbers: NDArray[np.intp]  # (n_rows,) the server's numbers of the rows
    groups: dict[str, list[Any]]
    audit: Audit
    plan: Plan | None

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return self.audit.to_dict()

    def burdens(self) -> list[Bar]:
        """What is asked of each group, as its mean distance."""
        return self._bars("burden", number)

    def preclusions(self) -> list[Bar]:
        """The share of each group without a way out; behind a bar stand those without one."""
        return self._bars("preclusion", share) if self.audit.whole.preclusion[1] > 0 else []

    def features(self) -> list[Bar]:
        """How often each feature is asked to change, the most asked-for first."""
        names, moved = self.found.schema.names, self.found.is_moved & self.found.has_answer[:, None]
        return [
            Bar(one["feature"], share(one["share"]), one["share"], self._numbers(moved[:, names.index(one["feature"])]))
            for one in self._facts["features"][:_MOST_FEATURES]
        ]

    def actions(self) -> list[Bar]:
        """The plan's actions; behind each stand those whom it helps."""
        if self.plan is None:
            return []
        units = {feature.name: feature.unit for feature in self.found.schema.features}
        return [
            Bar(
                steps_text(one.record()["steps"], units), f"{one.helped:,} of {one.asked:,}",
                one.helped / max(one.asked, 1), tuple(self.numbers[self.plan.rows[np.isfinite(one.cost)]].tolist()),
            )
            for one in self.plan.actions
        ]  # fmt: skip

    def _bars(self, measure: str, told: Any) -> list[Bar]:
        lines = [one for one in (self._facts["whole"], *self._facts["groups"]) if not one["is_hidden"]]
        known = [one for one in lines if one[measure][0] is not None]
        most = max((one[measure][1] for one in known), default=0.0) or 1.0
        has_none = np.array([status in (Status.INFEASIBLE, Status.NOT_FOUND) for status in self.found.status], bool)
        is_asked = self.found.is_moved.any(axis=1) & self.found.has_answer
        behind = has_none if measure == "preclusion" else is_asked
        return [
            Bar(
                name_of(one["columns"], one["labels"]), between(one[measure], told), one[measure][1] / most,
                self._numbers(behind & self._members(one)),
            )
            for one in known
        ]  # fmt: skip

    def _members(self, group: dict[str, Any]) -> Bools:
        inside = np.ones(len(self.numbers), bool)
        for column, label in zip(group["columns"], group["labels"], strict=True):
            inside &= np.array([own == label for own in self.groups[column]], bool)
        return inside

    def _numbers(self, chosen: Bools) -> tuple[int, ...]:
        return tuple(self.numbers[np.flatnonzero(chosen)].tolist())


def everyone(
    service: Service, rows: Sequence[int], columns: Sequence[str], question: ExplainOptions, errand: Errand
) -> Everyone:
    """Answer these rows of the server's, audit them by these columns, and find actions for them."""
    names = [service.name_of(i) for i in rows]
    found = service.explain(service.table_of([service.written(i) for i in rows]), question, errand, labels=names)
    groups = {name: banded(found, name) for name in columns}
    audit = found.audit(groups or None, why=0 if question.plausibility is not None else WHY, n_jobs=1)
    errand.heard(len(rows))
    plan = None
    if question.plausibility is None:
        plan = service.explainer(question).actions(found, at_most=AT_MOST)
    return Everyone(found, np.array(rows, np.intp), groups, audit, plan)


def banded(found: Explanations, name: str) -> list[Any]:
    """A column of the rows as groups: its categories, its few numbers, or a band for each quarter of the rows."""
    j = found.schema.index(name)
    values = found.table.values[:, j]
    if found.table.labels_of(j) is not None:
        return [plain(found.table.cell(i, j)) for i in range(len(found))]
    known = values[~np.isnan(values)]
    if len(np.unique(known)) <= _MOST_VALUES:
        return [None if np.isnan(value) else int(value) if value.is_integer() else value for value in values.tolist()]
    cuts = np.unique(np.quantile(known, (0.25, 0.5, 0.75), method="nearest"))
    written = catalogue().number
    names = [f"up to {written(cuts[0])}"]
    names += [f"above {written(a)}, up to {written(b)}" for a, b in pairwise(cuts.tolist())]
    names.append(f"above {written(cuts[-1])}")
    places = np.searchsorted(cuts, np.nan_to_num(values), side="left")
    return [None if np.isnan(value) else names[k] for value, k in zip(values, places, strict=True)]
