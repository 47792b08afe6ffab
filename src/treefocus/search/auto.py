"""Auto: seeds from FOCUS and the training rows, polish, then proof. What a user gets who names no strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from treefocus.distances import Manhattan
from treefocus.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Strategy, check_positive
from treefocus.search.exact import Exact
from treefocus.search.examples import nearest_examples
from treefocus.search.focus import Focus
from treefocus.search.polish import polished

# One short descent is enough to start a proof. Without one, several that see the forest differently: a soft one that
# looks far, sharp ones that look close.
FIRST_SEED = (Focus(sigma=10.0, beta=0.01, alpha=0.03, iterations=50, retry=False, polish=False),)
SEEDS = tuple(
    Focus(sigma=sigma, beta=0.01, alpha=0.01, iterations=150, retry=False, polish=False) for sigma in (5.0, 10.0, 30.0)
)
SHORT_SEARCH = 5000  # boxes a row that belong to the heuristic part


@dataclass(frozen=True)
class Auto(Strategy):
    """The optimum where the time allows, an honest gap otherwise.

    time_limit: seconds a row for the proof, unless `explain(time_limit=...)` says otherwise. prove=False stops after
    seeds, polish and a short search: close, and fast, without a claim.
    """

    time_limit: float = 1.0
    memory_limit: float = 1e9
    prove: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "time_limit", "memory_limit")

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Seed, polish, prove."""
        incumbent = seeded(problem, run, FIRST_SEED if self.prove else SEEDS)
        if problem.distance.norms is None and problem.distance.compiled is None:
            return Outcome.of_points(problem, incumbent.points)
        limit = self.time_limit if run.time_limit is None else run.time_limit
        node_limit = None if self.prove else SHORT_SEARCH
        exact = Exact(time_limit=limit, node_limit=node_limit, memory_limit=self.memory_limit)
        if self.prove:
            return exact.prove(problem, incumbent, run)
        incumbent.offer(polished(problem, incumbent.points, run))
        found = exact.prove(problem, incumbent, run)
        incumbent.offer(polished(problem, found.points, run))
        return found.improved(incumbent)


def seeded(problem: Problem, run: Run, seeds: tuple[Focus, ...] = FIRST_SEED) -> Incumbent:
    """The best of several starts; a search over boxes follows, so only the cheap half of polish is spent on each."""
    quiet = replace(run, progress=None)
    incumbent = Incumbent(problem)
    guide = problem
    if problem.distance.compiled is None and problem.distance.norms is not None:
        # No descent on this distance: the Manhattan distance stands in for the seeds.
        guide = replace(problem, distance=Manhattan().fitted(problem.forest.n_features, None))
    for seed in seeds:
        incumbent.offer(polished(problem, seed.solve(guide, quiet).points, quiet, with_trades=False))
    if problem.examples is not None:
        examples = nearest_examples(problem)
        is_start = problem.is_valid(examples)
        starts = np.where(is_start[:, None], examples, np.nan)
        incumbent.offer(polished(problem, starts, quiet, with_trades=False))
    left = incumbent.missing
    if left.size:
        part = problem.subset(left)
        found = Focus(polish=False).solve(guide.subset(left), quiet).points
        incumbent.offer(polished(part, found, quiet, with_trades=False), left)
    return incumbent
