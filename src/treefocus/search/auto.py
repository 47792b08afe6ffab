"""Auto: seeds from FOCUS and the training rows, polish, then proof. What a user gets who names no strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from treefocus import kernels
from treefocus.kernels.rules import AtMostRule
from treefocus.model.forest import Floats
from treefocus.problem.distances import FewestFeatures, Manhattan
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Strategy, check_positive
from treefocus.search.exact import Exact
from treefocus.search.examples import nearest_examples
from treefocus.search.focus import Focus
from treefocus.search.limits import DefaultSeconds, check_time_limit, time_limit_of
from treefocus.search.polish import polished

# One short descent is enough to start a proof. Without one, several that see the forest differently: a soft one that
# looks far, sharp ones that look close.
FIRST_SEED = (Focus(sigma=10.0, beta=0.01, alpha=0.03, iterations=50, retry=False, polish=False),)
SEEDS = tuple(
    Focus(sigma=sigma, beta=0.01, alpha=0.02, iterations=75, retry=False, polish=False) for sigma in (5.0, 10.0, 30.0)
)
SHORT_SEARCH = 3000  # boxes a row that belong to the heuristic part
FIRST_LOOK = 100  # boxes a row before any seed, which prove most rows where there are few thresholds,
FEW_THRESHOLDS = 64  # at most so many; there seeds would cost more than the proof
STEPS_PER_SECOND = 25_000_000  # nodes times iterations of a descent that a second of time limit allows: a third of it,
NO_CLOCK = 10.0  # which counts as so many seconds where there is none; beyond, the search starts without that seed


@dataclass(frozen=True)
class Auto(Strategy):
    """The optimum where the time allows, an honest gap otherwise.

    Parameters
    ----------
    time_limit : float, optional
        Seconds a row; the tighter of this one and `explain(time_limit=...)` counts, and 1 only where neither is given;
        None for no clock of its own. Seeds take of that time, and the proof has what is left.
    memory_limit : float
        Bytes for the process.
    prove : bool
        False stops after seeds, polish and a short search: close, and fast, without a claim.
    node_limit : int, optional
        Boxes a row for the proof; with it and without a clock the answers are the same on every machine.

    Examples
    --------
    >>> from treefocus import Auto
    >>> Auto(time_limit=None, node_limit=20_000).node_limit
    20000
    """

    time_limit: float | None = DefaultSeconds(1.0)
    memory_limit: float = 1e9
    prove: bool = True
    node_limit: int | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit, "Auto.time_limit")
        check_positive(self, "memory_limit", *(() if self.node_limit is None else ("node_limit",)))

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Seed, polish, prove."""
        run = replace(run.on(len(problem)), time_limit=time_limit_of(self.time_limit, run.time_limit))
        if problem.distance.norms is None and problem.distance.compiled is None:
            return Outcome.of_points(problem, self.seeded(problem, run).points)
        exact = Exact(node_limit=self.node_limit, memory_limit=self.memory_limit)
        return self._proven(exact, problem, run) if self.prove else self._close(exact, problem, run)

    def _proven(self, exact: Exact, problem: Problem, run: Run) -> Outcome:
        """Seeds and proof; where there are few thresholds, for what a look without seeds leaves open."""
        if len(kernels.grid_of(problem.forest).threshold) > FEW_THRESHOLDS:
            return exact.prove(problem, self.seeded(problem, run), run)
        node_limit = FIRST_LOOK if exact.node_limit is None else min(FIRST_LOOK, exact.node_limit)
        found = replace(exact, node_limit=node_limit).solve(problem, replace(run, progress=None))
        left = np.flatnonzero(~found.is_settled)
        if left.size:
            part, going_on = problem.subset(left), run.on(len(left))
            incumbent = self.seeded(part, going_on)
            incumbent.offer(found.points[left])
            found = found.replaced(left, exact.prove(part, incumbent, going_on))
        return replace(found, limits=exact.limits(run))

    def _close(self, exact: Exact, problem: Problem, run: Run) -> Outcome:
        """Seeds, polished before and after a short search."""
        node_limit = SHORT_SEARCH if exact.node_limit is None else min(SHORT_SEARCH, exact.node_limit)
        incumbent = self.seeded(problem, run)
        incumbent.offer(polished(problem, incumbent.points, run, memory=self.memory_limit))
        found = replace(exact, node_limit=node_limit).prove(problem, incumbent, run)
        incumbent.offer(polished(problem, found.points, run, memory=self.memory_limit))
        return found.improved(incumbent)

    def seeded(self, problem: Problem, run: Run) -> Incumbent:
        """The best of several starts, with the cheap half of polish: a search over boxes follows."""
        quiet = replace(run, progress=None)
        polish = partial(polished, run=quiet, with_trades=False, memory=self.memory_limit)
        incumbent = Incumbent(problem)
        with run.kept():
            for points in self._descents(FIRST_SEED if self.prove else SEEDS, problem, quiet):
                incumbent.offer(polish(problem, points))
            if problem.examples is not None and not run.is_interrupted:
                examples = nearest_examples(problem, quiet)
                is_start = problem.is_valid(examples)
                incumbent.offer(polish(problem, np.where(is_start[:, None], examples, np.nan)))
            if any(isinstance(rule, AtMostRule) for rule in problem.batch.rules.all) and not run.is_interrupted:
                incumbent.offer(polish(problem, self._with_few_changes(problem, quiet)))
            left = incumbent.missing
            if left.size:
                part = problem.subset(left)
                for points in self._descents((Focus(polish=False),), part, quiet):
                    incumbent.offer(polish(part, points), left)
        return incumbent

    def _with_few_changes(self, problem: Problem, run: Run) -> Floats:
        """Answers that change few features, wherever they are, in half the time: a descent changes all of them."""
        few = replace(problem, distance=FewestFeatures().fitted(problem.forest.n_features, None))
        seconds = None if run.time_limit is None else run.time_limit / 2
        return Exact(seconds, SHORT_SEARCH, self.memory_limit).solve(few, run).points

    def _descents(self, seeds: tuple[Focus, ...], problem: Problem, run: Run) -> Iterator[Floats]:
        """The answers of each seed that the model's size allows; a short one also where no search is possible."""
        forest, memory = problem.forest, kernels.memory_of(problem.forest)
        if memory.descent > self.memory_limit:
            return
        n_threads = min(kernels.n_threads(run.n_jobs), int(self.memory_limit // memory.descent))
        if problem.distance.compiled is None and problem.distance.norms is not None:
            # No descent on this distance: the Manhattan distance stands in for the seeds.
            problem = replace(problem, distance=Manhattan().fitted(forest.n_features, None))
        can_search = memory.search <= self.memory_limit
        most_steps = STEPS_PER_SECOND * (NO_CLOCK if run.time_limit is None else run.time_limit)
        for seed in seeds:
            is_needed = seed in FIRST_SEED and not can_search
            if (is_needed or seed.iterations * len(forest.feature) <= most_steps) and not run.is_interrupted:
                yield seed.solve(problem, replace(run, n_jobs=n_threads)).points
