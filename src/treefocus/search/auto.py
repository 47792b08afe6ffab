"""Auto: seeds from FOCUS and the training rows, polish, then proof. What a user gets who names no strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.rules import AtMostRule
from treefocus.model.forest import Floats
from treefocus.problem.distances import FewestFeatures, Manhattan
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Strategy, check_positive
from treefocus.search.exact import Exact
from treefocus.search.examples import nearest_examples
from treefocus.search.focus import Focus
from treefocus.search.limits import WORK, check_time_limit, seconds_left, time_limit_of, work_limit_of
from treefocus.search.polish import polished

# One short descent is enough where a short search settles the row. For others there are several, that see the forest
# differently: a soft one that looks far, sharp ones that look close.
FIRST_SEED = (Focus(sigma=10.0, beta=0.01, alpha=0.03, iterations=50, retry=False, polish=False),)
SEEDS = tuple(
    Focus(sigma=sigma, beta=0.01, alpha=0.02, iterations=75, retry=False, polish=False) for sigma in (5.0, 10.0, 30.0)
)
FIRST_LOOK = 100  # boxes a row before any seed, which prove most rows where there are few thresholds,
FEW_THRESHOLDS = 64  # at most so many; there seeds would cost more than the proof
NODE_STEPS = 13  # of work, of a node in an iteration of a descent
LARGEST_SEED = WORK // 3  # steps; the model that takes more for a descent is searched without it
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
        limit = time_limit_of(self.time_limit, run.time_limit)
        work = work_limit_of(self.work_limit, self.time_limit, run.time_limit, self.node_limit, n_parts=run.n_parts)
        run = replace(run.on(len(problem)), time_limit=limit, n_parts=1)
        if problem.distance.norms is None and problem.distance.compiled is None:
            return Outcome.of_points(problem, self.seeded(problem, run).points)
        exact = Exact(node_limit=self.node_limit, memory_limit=self.memory_limit, work_limit=work)
        return self._searched(exact, problem, run)

    def _searched(self, exact: Exact, problem: Problem, run: Run) -> Outcome:
        """One stage after another, each for the rows that are not settled and have work left."""
        found, spent, limits = Outcome.nothing(problem), kernels.Spent.nothing(len(problem)), exact.limits(run)
        found = replace(found, limits=limits, is_undecided=np.zeros(len(problem), bool))
        stages: list[_Stage] = [self._quick, self._close]
        if len(kernels.grid_of(problem.forest).threshold) <= FEW_THRESHOLDS:
            stages.insert(0, self._look)
        if self.prove:
            stages.append(self._rest)
        for stage in stages:
            is_open = ~found.is_settled & (spent.steps < (exact.work_limit or np.inf))
            is_open &= spent.boxes < (exact.node_limit or np.inf)
            left = np.flatnonzero(is_open) if stage is not stages[0] else np.arange(len(problem))
            if not left.size or run.is_interrupted:
                break
            part, own, going_on = problem.subset(left), spent.of(left), run.on(len(left))
            if stage not in (self._look, self._quick):  # every row was heard of by then
                going_on = going_on.after(len(problem))
            incumbent = Incumbent.of(part, found.points[left], found.distance[left])
            before = found.lower_bound[left]
            result = stage(exact, part, incumbent, going_on, own)
            spent.put(left, own)
            # What was proven before holds still.
            has_risen = ~result.is_settled & (before > result.lower_bound)
            result.lower_bound[has_risen] = np.minimum(before, np.nan_to_num(result.distance, nan=np.inf))[has_risen]
            found = found.replaced(left, result)
        return replace(found, limits=limits)

    def _look(self, exact: Exact, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> Outcome:
        """A look without seeds, where there are few thresholds."""
        node_limit = FIRST_LOOK if exact.node_limit is None else min(FIRST_LOOK, exact.node_limit)
        look = replace(exact, node_limit=node_limit)
        return look.prove(problem, incumbent, replace(run, progress=None), spent, kernels.SHORT_TRY)

    def _quick(self, exact: Exact, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> Outcome:
        """One seed, and a short search that settles most rows."""
        self._seed(problem, incumbent, FIRST_SEED, run, spent)
        return exact.prove(problem, incumbent, run, spent, kernels.SHORT_TRY)

    def _close(self, exact: Exact, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> Outcome:
        """More seeds, polished before and after another short search."""
        polish = partial(polished, problem, run=run, memory=self.memory_limit, steps=spent.steps)
        self._seed(problem, incumbent, SEEDS, run, spent)
        incumbent.offer(polish(incumbent.points, seconds=_seconds(run)))
        found = exact.prove(problem, incumbent, run, spent, kernels.SHORT_TRY)
        incumbent.offer(polish(found.points, seconds=_seconds(run)))
        return found.improved(incumbent)

    def _rest(self, exact: Exact, problem: Problem, incumbent: Incumbent, run: Run, spent: kernels.Spent) -> Outcome:
        """The search to its end, or to the limit."""
        return exact.prove(problem, incumbent, run, spent, kernels.REST)

    def seeded(self, problem: Problem, run: Run) -> Incumbent:
        """The best of a descent and the training rows, with the cheap half of polish."""
        incumbent = Incumbent(problem)
        self._seed(problem, incumbent, FIRST_SEED, run, kernels.Spent.nothing(len(problem)))
        return incumbent

    def _seed(
        self, problem: Problem, incumbent: Incumbent, seeds: tuple[Focus, ...], run: Run, spent: kernels.Spent
    ) -> None:
        """Several starts, with the cheap half of polish: a search over boxes follows."""
        quiet = replace(run, progress=None)
        is_first = seeds is FIRST_SEED

        def offer(points: Floats, part: Problem = problem, rows: NDArray[np.intp] | None = None) -> None:
            steps = spent.steps if rows is None else spent.steps[rows]
            better = polished(
                part, points, quiet,
                with_trades=False, seconds=_seconds(quiet), memory=self.memory_limit, steps=steps,
            )  # fmt: skip
            incumbent.offer(better, rows)
            if rows is not None:
                spent.steps[rows] = steps

        with run.kept():
            for seed, points in self._descents(seeds, problem, quiet):
                spent.steps[:] += NODE_STEPS * seed.iterations * len(problem.forest.feature)
                offer(points)
            if is_first and problem.examples is not None and not run.is_interrupted:
                examples, is_start = nearest_examples(problem, quiet)
                is_start = is_start if is_start.all() else problem.is_valid(examples)
                spent.steps[:] += problem.examples.rows.size
                offer(np.where(is_start[:, None], examples, np.nan))
            has_at_most = any(isinstance(rule, AtMostRule) for rule in problem.batch.rules.all)
            if is_first and has_at_most and not run.is_interrupted:
                offer(self._with_few_changes(problem, quiet, spent))
            left = incumbent.missing
            if is_first and left.size:
                part = problem.subset(left)
                for seed, points in self._descents((Focus(polish=False),), part, quiet):
                    spent.steps[left] += NODE_STEPS * seed.iterations * len(problem.forest.feature)
                    offer(points, part, left)

    def _with_few_changes(self, problem: Problem, run: Run, spent: kernels.Spent) -> Floats:
        """Answers that change few features, wherever they are, in half the time: a descent changes all of them."""
        few = replace(problem, distance=FewestFeatures().fitted(problem.forest.n_features, None))
        seconds = None if run.time_limit is None else run.time_limit / 2
        exact = Exact(seconds, memory_limit=self.memory_limit)
        return exact.prove(few, Incumbent(few), run, spent, kernels.SHORT_TRY).points

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
            is_small = NODE_STEPS * seed.iterations * len(forest.feature) <= LARGEST_SEED
            if (is_needed or (is_small and _has_time(run))) and not run.is_interrupted:
                yield seed, seed.solve(problem, replace(run, n_jobs=n_threads)).points


_Stage = Callable[[Exact, Problem, Incumbent, Run, kernels.Spent], Outcome]


def _seconds(run: Run) -> float:
    return seconds_left(run.time_limit, run.clock)


def _has_time(run: Run) -> bool:
    """Whether another seed may be begun."""
    return run.time_limit is None or run.clock is None or run.clock.spent <= SEED_TIME * run.time_limit
