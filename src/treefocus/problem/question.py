"""All that a problem is made of, so that it can be put again: for one row alone, or with fewer constraints."""

from __future__ import annotations

from collections.abc import Sequence
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
from treefocus.problem.isolation import Isolation
from treefocus.problem.joint import Companion, put_to_all, put_within
from treefocus.problem.plausibility import Measure, isolation_of, outlier_limit_of
from treefocus.problem.problem import Examples, Problem
from treefocus.problem.space import Space
from treefocus.problem.targets import Interval, Probability, as_targets, one_a_row
from treefocus.problem.tolerance import Room, Tolerance
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
    plausibility: Measure | None = None  # how like the data an answer has to be; a limit on isolation is searched under
    orders: Labels | None = None  # per column its categories in their order, where the schema does not say one
    also: tuple[Companion, ...] = ()  # other models that have to give the wanted outcome, too
    tolerance: Tolerance | None = None  # around an answer, in which every point gets the wanted outcome, too

    def problem(self) -> Problem:
        """Put the question for these rows. A value outside the domain may stay; if it moves, towards the domain.

        A missing value may stay or become known, and a known one may become missing where a constraint allows it.
        `examples`: training rows. `orders`: per column its categories in their order, where the schema has none.
        """
        plain = self._problem(None)
        isolation = isolation_of(self.plausibility, plain)
        if isolation is not None:
            return self._problem(isolation, plain)
        return replace(plain, outliers=outlier_limit_of(self.plausibility))

    def _problem(self, isolation: Isolation | None, relaxed: Problem | None = None) -> Problem:
        """The question as it is without the limit of an isolation forest, or with it."""
        forest, rows, space = self.forest, self.rows, self.space
        origin = kernels.predict(forest, rows) if self._is_of_classes and self._is_by_class else None
        asked = put_to_all(self.target, forest, self.also, len(rows), origin)
        asked = asked if isolation is None else put_within(asked, isolation)
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
            kernels.predict(may.forest, rows) if relaxed is None else relaxed.batch.origin,
            asked.target,
            np.where(may.is_category, rows, first),
            may.choices,
            may.lists,
            may.rules,
            may.forest.n_classes - 1 if may.forest.members else -1,
        )
        batch = replace(batch, first=batch.snapped(batch.first))
        known = None if self.examples is None else Examples.of(may.forest, self.examples)
        room = None if self.tolerance is None else Room.of(self.tolerance, self.schema, may.is_category)
        return Problem(
            may.forest, batch, self.distance, forest, known, asked.slack, self.also, isolation, relaxed, room
        )

    def of_row(self, i: int) -> Question:
        """The question of one row."""
        target = self.target
        is_one_a_row = self.forest.decision != "value" and np.ndim(target) > 0 and len(target) == len(self.rows)
        return replace(self, rows=self.rows[[i]], target=[list(target)[i]] if is_one_a_row else target)

    def groups(self) -> tuple[Group, ...]:
        """The question by target, where every row has a probability or an interval of its own; else as it is."""
        wanted = one_a_row(self.target, self.forest, len(self.rows))
        if wanted is None and self._is_split and len(self.rows):
            return self._by_class()
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

    @property
    def is_demanding(self) -> bool:
        """Whether more is asked for than that the model gives the wanted outcome."""
        return bool(self.also) or self.tolerance is not None

    @property
    def _is_of_classes(self) -> bool:
        """Whether a class is asked for."""
        return self.forest.decision != "value" and not isinstance(self.target, Probability | Interval)

    @property
    def _is_by_class(self) -> bool:
        """Whether what is asked of a row hangs on its own class."""
        return bool(self.also) or bool(self.forest.rounding)

    @property
    def _is_split(self) -> bool:
        """Whether rows that want different classes are asked one class after another.

        So that what rounding could do, or a margin, is added on one side.
        """
        has_side = any(one.margin or one.forest.rounding for one in self.also) or bool(self.forest.rounding)
        return has_side and self._is_of_classes

    def _by_class(self) -> tuple[Group, ...]:
        """Rows that want the same class, or to leave the same one: what rounding could do is added on one side."""
        targets, origin = as_targets(self.target, self.forest, len(self.rows)), kernels.predict(self.forest, self.rows)
        key = np.where(targets >= 0, targets, -1 - origin)
        labels = self.forest.classes.tolist()
        groups = []
        for own in dict.fromkeys(key.tolist()):
            rows = np.flatnonzero(key == own)
            target = labels[own] if own >= 0 else None
            groups.append(Group(rows, replace(self, rows=self.rows[rows], target=target)))
        return tuple(groups)

    def under(self, constraints: tuple[Constraint, ...]) -> Question:
        """The same question under other constraints."""
        return replace(self, constraints=constraints)


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of a batch that are asked the same."""

    rows: NDArray[np.intp]  # their numbers in the batch
    question: Question

    @property
    def problem(self) -> Problem:
        """The question as a search takes it, put once.

        Not a `cached_property`: that of Python 3.11 has one lock for all groups, so that threads would wait for each
        other, and a process that is forked meanwhile for ever.
        """
        if "_problem" not in self.__dict__:
            self.__dict__["_problem"] = self.question.problem()
        own: Problem = self.__dict__["_problem"]
        return own


def scattered(groups: Sequence[Group], of_group: Sequence[Any]) -> Any:
    """(n_rows, ...) the lines of every group where they belong: arrays, or lists of whatever there is."""
    first = of_group[0]
    shape, kind = (first.shape[1:], first.dtype) if isinstance(first, np.ndarray) else ((), object)
    whole = np.empty((sum(len(group.rows) for group in groups), *shape), kind)
    for group, lines in zip(groups, of_group, strict=True):
        for_rows = lines if isinstance(lines, np.ndarray) else np.array([*lines, None], object)[:-1]
        whole[group.rows] = for_rows
    return whole
