"""What every search strategy has in common: a frozen record of parameters that turns a Problem into an Outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.problem import Problem
from treefocus.problem.question import Group, scattered
from treefocus.search.limits import Clock, DefaultSeconds, DefaultWork, SearchLimits

Progress = Callable[[int], None]


class Status(Enum):
    """How a row came out; the text is the sentence shown."""

    OPTIMAL = "the smallest change there is, proven"
    BOUNDED = "a change, with a proven bound on how much smaller one could be"
    FOUND = "a change, perhaps not the smallest"
    INFEASIBLE = "no change that obeys the constraints gets the wanted answer, which is proven"
    NOT_FOUND = "no change was found, and none was ruled out"
    INVALID = "the row cannot be read by the model"

    if not TYPE_CHECKING:
        __hash__ = object.__hash__  # by identity; that of Enum is slow, and there is one for every row

    @property
    def has_answer(self) -> bool:
        """Whether a counterfactual comes with this status."""
        return self in (Status.OPTIMAL, Status.BOUNDED, Status.FOUND)


@dataclass(frozen=True, eq=False)
class History:
    """How a search went: after each iteration, the share of rows found and their mean distance (NaN before any)."""

    share_found: Floats  # (n_iterations,)
    mean_distance: Floats  # (n_iterations,)


@dataclass
class Interruption:
    """Of a search that keeps what it has when Ctrl-C comes: whether it has come."""

    has_come: bool = False

    def __call__(self) -> None:
        """It has come; what a kernel calls."""
        self.has_come = True

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Around work that Ctrl-C ends, and that leaves what is done behind."""
        try:
            yield
        except KeyboardInterrupt:
            self()


@dataclass(frozen=True)
class Run:
    """How to work, as opposed to what to look for: nothing here changes an answer except `time_limit` and `seed`."""

    seed: int = 0
    n_jobs: int | None = None
    time_limit: float | None = None  # seconds a row; what `limits` makes of it counts
    progress: Progress | None = None  # hears how many rows are done
    interruption: Interruption | None = None  # what is done is kept when Ctrl-C comes; None: it is raised
    clock: Clock | None = None  # of the rows that are worked on; None: it starts with the search
    n_parts: int = 1  # searches that a row's work is for

    @property
    def is_interrupted(self) -> bool:
        """Whether nothing more should be begun."""
        return self.interruption is not None and self.interruption.has_come

    def kept(self) -> AbstractContextManager[None]:
        """Around work that leaves what is done behind: Ctrl-C ends it, and goes on only where nothing is to be kept."""
        return nullcontext() if self.interruption is None else self.interruption.heard()

    def on(self, n_rows: int) -> Run:
        """The same for work on so many rows, while the clock goes on."""
        if self.clock is not None and self.clock.n_rows == n_rows:
            return self
        clock = Clock(n_rows, kernels.n_threads(self.n_jobs)) if self.clock is None else self.clock.on(n_rows)
        return replace(self, clock=clock)

    def again(self, n_rows: int, n_before: int) -> Run:
        """The same for work on so many of the rows, whose turn comes now; the others before count for progress."""
        if self.clock is not None and self.clock.n_rows == n_rows:  # all of them: no time went to others
            return self
        clock = None if self.clock is None else self.clock.again(n_rows)
        listener = self.progress
        if listener is None or not n_before:
            return replace(self, clock=clock)
        return replace(self, clock=clock, progress=lambda n_done: listener(n_before + n_done))

    def after(self, n_done: int) -> Run:
        """The same for more work on rows of which all are done: whoever listens hears their number, and may end it."""
        listener = self.progress
        return self if listener is None else replace(self, progress=lambda _: listener(n_done))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a strategy found, row by row."""

    points: Floats  # (n_rows, n_features), NaN where none
    distance: Floats  # (n_rows,), NaN where none
    lower_bound: Floats  # (n_rows,) proven: no valid point is closer; infinity where none exists
    status: NDArray[np.object_]  # (n_rows,) of Status
    history: History | None = None
    limits: SearchLimits | None = None  # of a search that proves
    is_undecided: Bools | None = None  # (n_rows,) the search ended, and left boxes that no split decides

    @classmethod
    def nothing(cls, problem: Problem, is_infeasible: Bools | None = None) -> Outcome:
        """No point for any row: none was found, or there is none.

        This is not `of_points` of NaN: a row in which everything may be missing is an answer like others.
        """
        points = np.full_like(problem.batch.rows, np.nan)
        infeasible = np.zeros(len(points), bool) if is_infeasible is None else is_infeasible
        status = np.full(len(points), Status.NOT_FOUND, dtype=object)
        status[infeasible] = Status.INFEASIBLE
        return cls(points, np.full(len(points), np.nan), np.where(infeasible, np.inf, 0.0), status)

    @classmethod
    def of_points(cls, problem: Problem, points: Floats, history: History | None = None) -> Outcome:
        """Points without a proof. One that is not valid is dropped here, whoever found it."""
        valid = problem.is_valid(points)
        points = np.where(valid[:, None], points, np.nan)
        status = np.full(len(points), Status.NOT_FOUND, dtype=object)
        status[valid] = Status.FOUND
        distance = np.where(valid, problem.distance_to(points), np.nan)
        return cls(points, distance, np.zeros(len(points)), status, history)

    @property
    def has_answer(self) -> Bools:
        """(n_rows,) whether a counterfactual comes with the row's status."""
        return self._is(Status.OPTIMAL, Status.BOUNDED, Status.FOUND)

    @property
    def gap(self) -> Floats:
        """(n_rows,) how much smaller, at most, each point could be, as a share of its distance; NaN without one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.maximum(0.0, (self.distance - self.lower_bound) / self.distance)
        return np.where(self.distance == 0, 0.0, gap)

    @property
    def is_settled(self) -> Bools:
        """(n_rows,) whether no search could say more: proven smallest, or proven impossible."""
        return self._is(Status.OPTIMAL, Status.INFEASIBLE)

    def _is(self, *wanted: Status) -> Bools:
        is_wanted = np.zeros(len(self.status), bool)
        for status in wanted:
            is_wanted |= self.status == status
        return is_wanted

    def replaced(self, rows: NDArray[np.intp], found: Outcome) -> Outcome:
        """The same with what was found for some of the rows; its history and limits count from here."""
        self.points[rows], self.distance[rows] = found.points, found.distance
        self.lower_bound[rows], self.status[rows] = found.lower_bound, found.status
        is_undecided = np.zeros(len(self.status), bool) if self.is_undecided is None else self.is_undecided.copy()
        is_undecided[rows] = False if found.is_undecided is None else found.is_undecided
        return replace(self, history=found.history, limits=found.limits, is_undecided=is_undecided)

    def improved(self, incumbent: Incumbent) -> Outcome:
        """The same bounds with points that may be closer."""
        has_point = np.isfinite(incumbent.distance)
        distance = np.where(has_point, incumbent.distance, np.nan)
        bound = np.where(has_point, np.minimum(self.lower_bound, incumbent.distance), self.lower_bound)
        return replace(self, points=incumbent.points, distance=distance, lower_bound=bound)


def joined(groups: Sequence[Group], outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of those of groups of rows, which were asked different questions."""
    names = ("points", "distance", "lower_bound", "status")
    of_rows = {name: scattered(groups, [getattr(one, name) for one in outcomes]) for name in names}
    return Outcome(**of_rows, limits=outcomes[0].limits)


class Strategy(ABC):
    """A way to search. Frozen: all state of a search is in its Outcome."""

    proves: ClassVar[bool] = False  # whether it searches all there is, whatever forests the problem is made of

    @abstractmethod
    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Answer the problem, every row of it."""

    def to_text(self) -> str:
        """All that it was told, by name; what gives way to another limit is told as a default."""
        if not is_dataclass(self):
            return repr(self)
        parameters = {one.name: getattr(self, one.name) for one in fields(self)}
        values = (
            f"{name}={value!r}{' by default' * isinstance(value, DefaultSeconds | DefaultWork)}"
            for name, value in parameters.items()
        )
        return f"{type(self).__name__}({', '.join(values)})"


def solved(strategy: Strategy, problem: Problem, run: Run) -> Outcome:
    """The problem, solved part by part (see `Problem.parts`)."""
    n_rows, n_done, parts = len(problem), 0, problem.parts()
    run = run.on(n_rows)
    if len(parts) == 1 and not run.is_interrupted:
        with run.kept():
            return strategy.solve(parts[0][1], run)
    whole = Outcome.nothing(problem)
    for rows, part in parts:
        if run.is_interrupted:
            break
        with run.kept():
            whole = whole.replaced(rows, strategy.solve(part, run.again(len(rows), n_done)))
        n_done += len(rows)
    return whole


def _or_infinity(distance: Floats) -> Floats:
    return np.where(np.isnan(distance), np.inf, distance)


class Incumbent:
    """The best valid point of every row so far; of answers that were looked at before, NaN where there is none."""

    def __init__(self, problem: Problem, points: Floats | None = None, distance: Floats | None = None) -> None:
        self.problem = problem
        self.points = np.full_like(problem.batch.rows, np.nan) if points is None else points
        self.distance = np.full(len(problem), np.inf) if distance is None else _or_infinity(distance)

    def offer(self, points: Floats, chosen: NDArray[np.intp] | None = None) -> None:
        """Keep those points, of the `chosen` rows or of all, that are valid and closer than what was there."""
        rows = np.arange(len(self.points)) if chosen is None else chosen
        distance = self.problem.cost_of(points, self.distance[rows], chosen)
        closer = np.isfinite(distance)
        self.points[rows[closer]] = points[closer]
        self.distance[rows[closer]] = distance[closer]

    def outcome(self, history: History | None = None) -> Outcome:
        """What was kept, without a proof: it is valid, and its cost is known."""
        has_point = np.isfinite(self.distance)
        status = np.full(len(self.points), Status.NOT_FOUND, dtype=object)
        status[has_point] = Status.FOUND
        distance = np.where(has_point, self.distance, np.nan)
        return Outcome(self.points, distance, np.zeros(len(self.points)), status, history)

    @property
    def missing(self) -> NDArray[np.intp]:
        """The rows without a point."""
        return np.flatnonzero(~np.isfinite(self.distance))


def require_numbers(forest: Forest, method: str) -> None:
    """Refuse a forest that splits on categories, for a method that was made for thresholds."""
    if forest.categories is not None:
        raise InvalidInput(f"{method} knows splits on numbers only, and the {forest.source} splits on categories.")


def require_one_model(problem: Problem, strategy: str) -> None:
    """Refuse a question to several models, or to one that is a mean of several through curves."""
    if problem.forest.voices:
        raise InvalidInput(
            f"{strategy} searches sums over trees, and a {problem.forest.source} is none; 'auto' takes it."
        )
    if problem.forest.members:
        raise InvalidInput(f"{strategy} searches for one model, without also=, hold= or tolerance=; 'auto' takes them.")


def check_positive(owner: object, *names: str) -> None:
    """Each named parameter must be a finite number above 0."""
    for name in names:
        value = getattr(owner, name)
        if not (isinstance(value, Real) and np.isfinite(float(value)) and float(value) > 0):
            reject(f"{type(owner).__name__}.{name}", "a finite number above 0", value)


def check_whole(owner: object, *names: str) -> None:
    """Each named parameter must be a whole number above 0."""
    for name in names:
        value = getattr(owner, name)
        if not (isinstance(value, Integral) and int(value) > 0):
            reject(f"{type(owner).__name__}.{name}", "a whole number above 0", value)
