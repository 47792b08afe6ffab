"""The question: a forest, rows, what counts as an answer, and what an answer costs.

Valid always means the hard forest, never the soft one. This is the only place that says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.variants import variant
from treefocus.problem.around import Around, looked_around
from treefocus.problem.distances import Distance
from treefocus.problem.isolation import Isolation
from treefocus.problem.joint import Companion
from treefocus.problem.outlier_limit import OutlierLimit
from treefocus.problem.targets import Slack
from treefocus.problem.tolerance import Room


@dataclass(frozen=True, eq=False)
class Examples:
    """Training rows and what the forest says of them."""

    rows: Floats  # (n_examples, n_features)
    answer: Ints  # (n_examples,)

    @classmethod
    def of(cls, forest: Forest, rows: Floats) -> Examples:
        """The rows with their predicted classes; asked again, the same, and with it all that is derived from it."""
        with _one_at_a_time:
            kept = _examples.setdefault(forest, [])
            known = next((one for one in kept if one.rows is rows), None)
        if known is None:
            known = cls(rows, kernels.predict(forest, rows))
            with _one_at_a_time:
                kept[:] = [known, *kept[: _KEPT - 1]]
        return known


_KEPT = 8  # sets of rows of a forest: explainers that differ in their options have their own
_examples: WeakKeyDictionary[Forest, list[Examples]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # a server asks from several threads


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a search strategy may know."""

    forest: Forest  # that decides: the model's own, or a variant of it with the question built in
    batch: Batch
    distance: Distance
    model: Forest
    examples: Examples | None = None  # training rows, to start from
    slack: Slack | None = None  # where the library's own number may differ from ours in its last digits
    also: tuple[Companion, ...] = ()  # other models whose trees the forest has, too: all have to agree
    isolation: Isolation | None = None  # whose limit every answer obeys: the forest has its trees, too
    relaxed: Problem | None = None  # the same without that limit: what is proven of it holds here
    room: Room | None = None  # to move, that every answer has to have
    outliers: OutlierLimit | None = None  # on the local outlier factor of an answer, which `Plausible` keeps

    def __len__(self) -> int:
        return len(self.batch.rows)

    @property
    def has_value(self) -> Bools:
        """(n_rows, n_features) False where the constraints contradict each other and leave no value."""
        has_value = np.asarray(~(self.batch.low > self.batch.high))
        choices = self.batch.choices
        for column, begin, end in zip(choices.column, choices.start[:-1], choices.start[1:], strict=True):
            has_value[:, column] = np.isfinite(choices.delta[:, begin:end]).any(axis=1)
        return has_value

    @property
    def has_box(self) -> Bools:
        """(n_rows,) whether every column has a value."""
        return np.asarray(self.has_value.all(axis=1))

    def is_valid(self, points: Floats) -> Bools:
        """(n_rows,) whether each point gets the wanted answer from the hard forest and obeys every constraint."""
        is_answer = self.batch.is_answer(kernels.predict(self.forest, points), points)
        if self.isolation is not None and is_answer.any():
            is_answer &= self.isolation.holds(points)
        return self.has_room(points, is_answer) if self.room is not None else is_answer

    def has_room(self, points: Floats, is_asked: Bools | None = None) -> Bools:
        """(n_rows,) whether those of the points that are asked about, answers, have the room to move, proven."""
        has_room = np.ones(len(points), bool) if is_asked is None else is_asked.copy()
        rows = np.flatnonzero(has_room)
        if self.room is not None and rows.size:
            has_room[rows] = self.subset(rows).looked_around(points[rows]).is_clean
        return has_room

    def looked_around(self, points: Floats, **limits: Any) -> Around:
        """What is in the boxes around points, of which each is an answer to its row."""
        assert self.room is not None
        forest, batch = (self.relaxed or self).forest, (self.relaxed or self).batch
        return looked_around(forest, batch, points, self.room.boxes(batch, points), **limits)

    def without_room(self) -> Problem:
        """The same for answers that need no room to move."""
        relaxed = None if self.relaxed is None else self.relaxed.without_room()
        return self if self.room is None else replace(self, room=None, relaxed=relaxed)

    def obeys(self, points: Floats) -> Bools:
        """(n_rows,) whether each point obeys every constraint."""
        return self.batch.obeys(points)

    def cost_of(self, points: Floats, below: Floats | float = np.inf, rows: NDArray[np.intp] | None = None) -> Floats:
        """(n_points,) what each point costs the row it is offered to, one of `rows` or its own.

        Infinity where it is invalid, or no cheaper than `below`: such points need not be judged.
        """
        part = self if rows is None else self.subset(rows)
        cost = part.distance_to(points)
        is_cheaper = cost < below
        if is_cheaper.any():
            is_cheaper &= part.is_valid(points)
        return np.where(is_cheaper, cost, np.inf)

    def distance_to(self, points: Floats) -> Floats:
        """(n_rows,) what each point costs."""
        return self.distance.measured(self.batch, points)

    def parts(self) -> list[tuple[NDArray[np.intp], Problem]]:
        """The problem, row numbers and question, once for each set of columns in which rows can be missing a value.

        So that an answer depends on its row alone, and rows without missing values are searched as plain numbers.
        """
        choices = self.batch.choices
        if self.forest.missing_is_choice is None:
            return [(np.arange(len(self)), self)]
        is_missing = np.isnan(self.batch.rows[:, choices.column])
        pattern = (choices.may_be_missing | is_missing) & ~choices.is_category
        patterns, which = np.unique(pattern, axis=0, return_inverse=True)
        rows_of = [np.flatnonzero(np.asarray(which).reshape(-1) == number) for number in range(len(patterns))]
        return [
            (rows, self.subset(rows).with_missing_choices(own)) for rows, own in zip(rows_of, patterns, strict=True)
        ]

    def with_missing_choices(self, kept: Bools) -> Problem:
        """The same where missing is a choice in fewer of the choices' columns; in the others it stays as it is."""
        choices = self.batch.choices
        mask = np.zeros(self.forest.n_features, bool)
        mask[choices.column[kept & ~choices.is_category]] = True
        forest = variant(self.forest, missing_is_choice=mask if mask.any() else None)
        batch = replace(self.batch, choices=choices.only(kept | choices.is_category))
        examples = None if self.examples is None else Examples.of(forest, self.examples.rows)
        relaxed = None if self.relaxed is None else self.relaxed.with_missing_choices(kept)
        return replace(self, forest=forest, batch=batch, examples=examples, relaxed=relaxed)

    def loosened(self) -> Problem:
        """The same, and no point is left out that the library's own number could make an answer: for proofs."""
        if self.slack is None:
            return self
        relaxed = None if self.relaxed is None else self.relaxed.loosened()
        return replace(self._cut_at(self.slack.loose), isolation=None, relaxed=relaxed)

    def tightened(self) -> Problem | None:
        """The same with only such points as are answers by the library's own number; None where none surely is."""
        if self.slack is None or self.slack.strict is None:
            return self if self.slack is None else None
        relaxed = None if self.relaxed is None else self.relaxed.tightened()
        return replace(self._cut_at(self.slack.strict), relaxed=relaxed)

    def sure(self) -> Problem | None:
        """The form that decides where the library itself cannot be asked; None where nothing can be said for sure."""
        return self if self.slack is None or self.slack.is_exact else self.tightened()

    def _cut_at(self, cuts: tuple[tuple[str, Any], ...]) -> Problem:
        forest, batch = variant(self.forest, **dict(cuts)), self.batch
        if (batch.target >= 0).all() and self.relaxed is None:  # rows that want any class but their own keep it
            batch = replace(batch, origin=kernels.predict(forest, batch.rows))
        examples = None if self.examples is None else Examples.of(forest, self.examples.rows)
        return replace(self, forest=forest, batch=batch, examples=examples, slack=None)

    def subset(self, chosen: NDArray[np.intp]) -> Problem:
        """The same question for some of the rows, or for all."""
        if len(chosen) == len(self) and (chosen == np.arange(len(self))).all():
            return self
        relaxed = None if self.relaxed is None else self.relaxed.subset(chosen)
        return replace(self, batch=self.batch.subset(chosen), relaxed=relaxed)

    def keeping(self, is_kept: Bools) -> Problem:
        """The same question with some values, (n_rows, n_features), left as they are."""
        relaxed = None if self.relaxed is None else self.relaxed.keeping(is_kept)
        return replace(self, batch=self.batch.keeping(is_kept), relaxed=relaxed)
