"""Auto: seeds from FOCUS and the training rows, polish, then proof. What a user gets who names no strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.rules import AtMostRule
from treefocus.model.forest import Floats
from treefocus.problem.distances import FewestFeatures, Manhattan
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Strategy, check_positive
from treefocus.search.examples import near_examples, nearest_examples
from treefocus.search.focus import Focus
from treefocus.search.limits import WORK, SearchLimits, check_time_limit, seconds_left
from treefocus.search.polish import polished
from treefocus.search.proven import proven
from treefocus.search.tolerant import with_room

# One short descent is enough where a short search settles the row. For others there are several, that see the forest
# differently: a soft one that looks far, sharp ones that look close.
FIRST_SEED = (Focus(sigma=30.0, beta=0.01, alpha=0.03, iterations=30, retry=False, polish=False),)
SEEDS = tuple(
    Focus(sigma=sigma, beta=0.01, alpha=0.02, iterations=75, retry=False, polish=False) for sigma in (5.0, 10.0, 30.0)
)
FIRST_LOOK = 100  # boxes a row before any seed, which prove most rows where there are few thresholds,
JOINT_LOOK = 1_000  # the same of several models of few nodes, all of which seeds and polish ask,
LONG_LOOK = 30_000  # the same beside an isolation forest, whose many thresholds make seeds and prices dear
FEW_NODES = 4_000  # of one of several models, on average
FEW_THRESHOLDS = 64  # at most so many; there seeds would cost more than the proof
NODE_STEPS = 4  # of work, of a node in an iteration of a descent
LARGEST_SEED = WORK // 3  # steps; the model that takes more for the first descent is searched without it,
LARGEST_FURTHER = WORK // 65  # and without the further ones: polish and the search find more in the same time
MANY_NODES = 10_000  # of a forest: the search of a row takes so long that more starts cost little beside it,
FURTHER_EXAMPLES = 20  # so many training rows, where the nearest one alone is not enough
SEED_TIME = 0.5  # of a time limit: what may be gone when another seed is begun


@dataclass(frozen=True)
class Auto(Strategy):
    """A close answer first, then the proof that it is the closest, or a closer one: the longer, the better.

    Seeds, polish and a short search come first. From the best of that the search goes on, for the proof and for closer
    answers at once, until everything is proven or a limit is met. More work never gives an answer that is farther, or a
    bound that is lower.

    Parameters
    ----------
    time_limit : float, optional
        Seconds a row; the tighter of this one and `explain(time_limit=...)` counts. None for no clock.
    memory_limit : float
        Bytes for the process.
    prove : bool
        False stops after seeds, polish and a short search: close, and fast, without a claim.
    node_limit : int, optional
        Boxes a row.
    work_limit : int, optional
        Steps of work a row; the same call gives the same answers on every machine. About a second by default, which
        counts only if no other limit is told. None for no limit.

    Examples
    --------
    >>> from treefocus import Auto
    >>> Auto(work_limit=2_000_000_000).work_limit
    2000000000
    """

    proves: ClassVar[bool] = True

    time_limit: float | None = None
    memory_limit: float = 1e9
    prove: bool = True
    node_limit: int | None = None
    work_limit: int | None = WORK

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit, "Auto.time_limit")
        given = (name for name in ("node_limit", "work_limit") if getattr(self, name) is not None)
        check_positive(self, "memory_limit", *given)

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Seed, polish, prove."""
        limits = SearchLimits.of(self, run.time_limit, run.n_parts)
        if problem.room is not None:
            return with_room(self, problem, limits, run.on(len(problem)))
        run = replace(run.on(len(problem)), time_limit=limits.time_limit, n_parts=1)
        if problem.distance.norms is None and problem.distance.compiled is None:
            return Outcome.of_points(problem, self.seeded(problem, run).points)
        return self._searched(limits, problem, run)

    def _searched(self, limits: SearchLimits, problem: Problem, run: Run) -> Outcome:
        """One stage after another, each for the rows that are not settled and have work left."""
        n_rows = len(problem)
        found, spent, left = Outcome.nothing(problem), kernels.Spent.nothing(n_rows), np.arange(n_rows)
        found = replace(found, limits=limits, is_undecided=np.zeros(n_rows, bool))
        stages: list[_Stage] = [self._quick, self._close]
        if problem.relaxed is not None and self.prove:  # an isolation forest stands beside the model
            stages.insert(0, self._look_long)
        elif _is_joint_of_few(problem) or len(kernels.grid_of(problem.forest).threshold) <= FEW_THRESHOLDS:
            stages.insert(0, self._look)
        if self.prove:
            stages.append(self._rest)
        for stage in stages:
            if not left.size or run.is_interrupted:
                break
            part, own, going_on = problem.subset(left), spent.of(left), run.on(len(left))
            if stage not in (self._look, self._look_long, self._quick):  # every row was heard of by then
                going_on = going_on.after(n_rows)
            incumbent = Incumbent(part, found.points[left], found.distance[left])
            before = found.lower_bound[left]
            result = stage(limits, part, incumbent, going_on, own)
            spent.put(left, own)
            is_open = ~result.is_settled
            # What was proven before holds still.
            has_risen = is_open & (before > result.lower_bound)
            result.lower_bound[has_risen] = np.minimum(before, np.nan_to_num(result.distance, nan=np.inf))[has_risen]
            found = found.replaced(left, result)
            is_open &= own.steps < (limits.work_limit or np.inf)
            left = left[is_open & (own.boxes < (limits.node_limit or np.inf))]
        return replace(found, limits=limits)

    def _look(
        self, limits: SearchLimits, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> Outcome:
        """A look without seeds, where there are few thresholds, or where several small models make seeds dear."""
        most = JOINT_LOOK if _is_joint_of_few(problem) else FIRST_LOOK
        few = replace(limits, node_limit=min(most, limits.node_limit or most))
        return proven(problem, incumbent, replace(run, progress=None), few, spent, kernels.SHORT_TRY)

    def _look_long(
        self, limits: SearchLimits, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> Outcome:
        """A long look without seeds and prices, under a limit on the isolation score."""
        few = replace(limits, node_limit=min(LONG_LOOK, limits.node_limit or LONG_LOOK))
        return proven(problem, incumbent, replace(run, progress=None), few, spent, patience=LONG_LOOK)

    def _quick(
        self, limits: SearchLimits, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> Outcome:
        """One seed, polished, and a short search that settles most rows."""
        self._start(problem, incumbent, run, spent)
        return proven(problem, incumbent, run, limits, spent, kernels.SHORT_TRY)

    def _close(
        self, limits: SearchLimits, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> Outcome:
        """More seeds, polished before and after another short search."""
        every = np.arange(len(problem))
        self._descend(SEEDS, problem, incumbent, run, spent, every, with_trades=False)
        if problem.distance.norms is not None and len(problem.forest.feature) >= MANY_NODES:
            self._learn_more(problem, incumbent, run, spent)
        else:
            self._learn(problem, incumbent, run, spent, every, with_trades=False)
        self._offer(incumbent.points, problem, incumbent, run, spent, every)
        found = proven(problem, incumbent, run, limits, spent, kernels.SHORT_TRY)
        self._offer(found.points, problem, incumbent, run, spent, every)
        return found.improved(incumbent)

    def _rest(
        self, limits: SearchLimits, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> Outcome:
        """The search to its end, or to the limit."""
        return proven(problem, incumbent, run, limits, spent, kernels.REST)

    def seeded(self, problem: Problem, run: Run) -> Incumbent:
        """The best of a descent and the training rows, polished."""
        incumbent, spent = Incumbent(problem), kernels.Spent.nothing(len(problem))
        self._start(problem, incumbent, run, spent)
        self._learn(problem, incumbent, run, spent, np.arange(len(problem)))
        return incumbent

    def _start(self, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> None:
        """A first answer: of one descent; where it has none, of a training row, or of many descents."""
        every = np.arange(len(problem))
        self._descend(FIRST_SEED, problem, incumbent, run, spent, every)
        if any(isinstance(rule, AtMostRule) for rule in problem.batch.rules.all) and not run.is_interrupted:
            with run.kept():
                few = self._with_few_changes(problem, replace(run, progress=None), spent)
                self._offer(few, problem, incumbent, run, spent, every)
        self._learn(problem, incumbent, run, spent, incumbent.missing)
        self._descend((Focus(polish=False),), problem, incumbent, run, spent, incumbent.missing)

    def _descend(
        self,
        seeds: tuple[Focus, ...],
        problem: Problem,
        incumbent: Incumbent,
        run: Run,
        spent: kernels.Spent,
        rows: NDArray[np.intp],
        with_trades: bool = True,
    ) -> None:
        """Start some rows from where descents came to."""
        if not rows.size:
            return
        with run.kept():
            for seed, points in self._descents(seeds, problem.subset(rows), replace(run, progress=None)):
                spent.steps[rows] += NODE_STEPS * seed.iterations * len(problem.forest.feature)
                self._offer(points, problem, incumbent, run, spent, rows, with_trades)

    def _learn(
        self,
        problem: Problem,
        incumbent: Incumbent,
        run: Run,
        spent: kernels.Spent,
        rows: NDArray[np.intp],
        with_trades: bool = True,
    ) -> None:
        """Start some rows from the nearest training row that has the wanted answer."""
        if problem.examples is None or not rows.size or run.is_interrupted:
            return
        with run.kept():
            part = problem.subset(rows)
            points, is_start = nearest_examples(part, run)
            is_start = is_start if is_start.all() else part.is_valid(points)
            spent.steps[rows] += problem.examples.rows.size
            points = np.where(is_start[:, None], points, np.nan)
            self._offer(points, problem, incumbent, run, spent, rows, with_trades)

    def _learn_more(self, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> None:
        """Start every row from several near training rows, one after another."""
        if problem.examples is None or run.is_interrupted:
            return
        with run.kept():
            spent.steps[:] += problem.examples.rows.size
            starts = near_examples(problem, run, FURTHER_EXAMPLES)
            # As many at once as give every thread a row.
            n_together = -(-kernels.n_threads(run.n_jobs) // len(problem))
            while not run.is_interrupted and _has_time(run) and (together := list(islice(starts, n_together))):
                points = [np.where(is_start[:, None], points, np.nan) for points, is_start in together]
                self._offer_several(points, problem, incumbent, run, spent)

    def _offer(
        self,
        points: Floats,
        problem: Problem,
        incumbent: Incumbent,
        run: Run,
        spent: kernels.Spent,
        rows: NDArray[np.intp],
        with_trades: bool = True,
    ) -> None:
        """Offer points for some rows, polished."""
        steps = spent.steps[rows]
        better = polished(
            problem.subset(rows), points, run,
            with_trades=with_trades, seconds=_seconds(run), memory=self.memory_limit, steps=steps,
        )  # fmt: skip
        spent.steps[rows] = steps
        incumbent.offer(better, rows)

    def _offer_several(
        self, points: list[Floats], problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent
    ) -> None:
        """Offer several points for every row, brought home."""
        n_rows = len(problem)
        steps = np.zeros(len(points) * n_rows, np.int64)
        better = polished(
            problem.subset(np.tile(np.arange(n_rows), len(points))), np.concatenate(points), run,
            with_trades=False, seconds=_seconds(run), memory=self.memory_limit, steps=steps,
        )  # fmt: skip
        spent.steps[:] += steps.reshape(len(points), n_rows).sum(axis=0)
        for own in np.split(better, len(points)):
            incumbent.offer(own)

    def _with_few_changes(self, problem: Problem, run: Run, spent: kernels.Spent) -> Floats:
        """Answers that change few features, wherever they are, in half the time: a descent changes all of them."""
        few = replace(problem, distance=FewestFeatures().fitted(problem.forest.n_features, None))
        seconds = None if run.time_limit is None else run.time_limit / 2
        limits = SearchLimits(seconds, None, self.memory_limit)
        return proven(few, Incumbent(few), run, limits, spent, kernels.SHORT_TRY).points

    def _descents(self, seeds: tuple[Focus, ...], problem: Problem, run: Run) -> Iterator[tuple[Focus, Floats]]:
        """The answers of each seed that the model's size allows; a short one also where no search is possible."""
        forest, memory = problem.forest, kernels.memory_of(problem.forest)
        if memory.descent > self.memory_limit:
            return
        n_threads = min(kernels.n_threads(run.n_jobs), int(self.memory_limit // memory.descent))
        if problem.distance.compiled is None and problem.distance.norms is not None:
            # No descent on this distance: the Manhattan distance stands in for the seeds.
            problem = replace(problem, distance=Manhattan().fitted(forest.n_features, None))
        can_search = memory.search <= self.memory_limit
        for seed in seeds:
            is_needed = seed in FIRST_SEED and not can_search
            largest = LARGEST_FURTHER if seed in SEEDS else LARGEST_SEED
            is_small = NODE_STEPS * seed.iterations * len(forest.feature) <= largest
            if (is_needed or (is_small and _has_time(run))) and not run.is_interrupted:
                own = replace(run, n_jobs=n_threads)
                yield seed, seed.solve(problem, own).points if seed.retry else seed.descended(problem, own)


_Stage = Callable[[SearchLimits, Problem, Incumbent, Run, kernels.Spent], Outcome]


def _is_joint_of_few(problem: Problem) -> bool:
    """Whether several models have to agree, of few nodes each."""
    return bool(problem.also) and len(problem.forest.feature) <= FEW_NODES * (1 + len(problem.also))


def _seconds(run: Run) -> float:
    return seconds_left(run.time_limit, run.clock)


def _has_time(run: Run) -> bool:
    """Whether another seed may be begun."""
    return run.time_limit is None or run.clock is None or run.clock.spent <= SEED_TIME * run.time_limit
