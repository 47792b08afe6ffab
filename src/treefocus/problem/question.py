"""All that a problem is made of, so that it can be put again: for one row alone, or with fewer constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.constraints.kinds import Constraint
from treefocus.kernels.inputs import Batch
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats, Forest
from treefocus.problem.compile import allowed
from treefocus.problem.distances import Distance
from treefocus.problem.plausibility import Measure
from treefocus.problem.problem import Examples, Problem
from treefocus.problem.space import Space
from treefocus.problem.targets import one_a_row, put
from treefocus.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Question:
    """What was asked of a batch, in the user's terms; `problem()` is the same as a search takes it."""

    forest: Forest
    rows: Floats  # (n_rows, n_features)
    space: Space
    distance: Distance
    constraints: tuple[Constraint, ...]
    schema: Schema
    grain: NDArray[np.int8]
    target: Any
    examples: Floats | None = None
    plausibility: Measure | None = None  # how like the data an answer has to be, which is no part of the problem
    orders: Labels | None = None  # per column its categories in their order, where the schema does not say one

    def problem(self) -> Problem:
        """Put the question for these rows. A value outside the domain may stay; if it moves, towards the domain.

        A missing value may stay or become known, and a known one may become missing where a constraint allows it.
        `examples`: training rows. `orders`: per column its categories in their order, where the schema has none.
        """
        forest, rows, space = self.forest, self.rows, self.space
        asked = put(self.target, forest, len(rows))
        may = allowed(
            asked.forest,
            rows,
            space=space,
            distance=self.distance,
            constraints=self.constraints,
            schema=self.schema,
            grain=self.grain,
            orders=self.orders,
        )
        with np.errstate(invalid="ignore"):
            first = np.where(np.isnan(rows), np.nan, np.clip(rows, may.low, np.maximum(may.low, may.high)))
        batch = Batch(
            rows,
            may.low,
            may.high,
            space.offset,
            space.scale,
            may.grain,
            kernels.predict(may.forest, rows),
            asked.target,
            np.where(may.is_category, rows, first),
            may.choices,
            may.lists,
            may.rules,
        )
        batch = replace(batch, first=batch.snapped(batch.first))
        known = None if self.examples is None else Examples.of(may.forest, self.examples)
        return Problem(may.forest, batch, self.distance, forest, known, asked.slack)

    def of_row(self, i: int) -> Question:
        """The question of one row."""
        target = self.target
        is_one_a_row = self.forest.decision != "value" and np.ndim(target) > 0 and len(target) == len(self.rows)
        return replace(self, rows=self.rows[[i]], target=[list(target)[i]] if is_one_a_row else target)

    def groups(self) -> tuple[Group, ...]:
        """The question by target, where every row has a probability or an interval of its own; else as it is."""
        wanted = one_a_row(self.target, self.forest, len(self.rows))
        if wanted is None:
            return (Group(np.arange(len(self.rows)), self),)
        rows_of: dict[Any, list[int]] = {}
        for i, target in enumerate(wanted):
            rows_of.setdefault(target, []).append(i)
        if not rows_of:
            return (Group(np.arange(0), replace(self, target=next(iter(self.target)))),)
        return tuple(
            Group(np.array(rows), replace(self, rows=self.rows[rows], target=target))
            for target, rows in rows_of.items()
        )

    def under(self, constraints: tuple[Constraint, ...]) -> Question:
        """The same question under other constraints."""
        return replace(self, constraints=constraints)


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of a batch that are asked the same."""

    rows: NDArray[np.intp]  # their numbers in the batch
    question: Question
