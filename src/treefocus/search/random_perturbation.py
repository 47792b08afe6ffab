"""Random Perturbation: shake x in many random ways, and keep the closest of those that flip the model.

The baseline that knows nothing of the model but its answers (in the spirit of Laugel et al., 2017, who draw in growing
spheres). A draw is a random direction over a random choice of features, with a length that is spread evenly over the
orders of magnitude between `smallest` and `largest`. Every row gets the same draws, so that its answer depends on
the seed and not on the rows it is asked with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treefocus.errors import reject
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Strategy, check_positive
from treefocus.search.candidates import closest_valid


@dataclass(frozen=True)
class RandomPerturbation(Strategy):
    """A baseline: random moves in the scaled space.

    Parameters
    ----------
    draws : int
        Moves a row.
    smallest, largest : float
        Their Euclidean lengths.

    Examples
    --------
    >>> from treefocus import RandomPerturbation
    >>> RandomPerturbation(draws=10)
    RandomPerturbation(draws=10, smallest=0.001, largest=1.0)
    """

    draws: int = 1000
    smallest: float = 0.001
    largest: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "draws", "smallest", "largest")
        if self.smallest > self.largest:
            reject("RandomPerturbation.smallest", f"at most largest ({self.largest})", self.smallest)

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Draw once, try every draw on every row."""
        moves = self.moves(problem.forest.n_features, run.seed) * problem.batch.scale

        def propose(part: Problem) -> tuple[Floats, Bools]:
            points = part.batch.rows[:, None, :] + moves
            return points, np.ones(points.shape[:2], bool)

        return Outcome.of_points(problem, closest_valid(problem, propose, self.draws, run))

    def moves(self, n_features: int, seed: int) -> Floats:
        """(draws, n_features) the perturbations, in the scaled space."""
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=(self.draws, n_features))
        n_moved = rng.integers(1, n_features + 1, size=(self.draws, 1))
        rank = rng.random((self.draws, n_features)).argsort(axis=1).argsort(axis=1)
        direction[rank >= n_moved] = 0.0
        length = np.exp(rng.uniform(np.log(self.smallest), np.log(self.largest), size=(self.draws, 1)))
        return np.asarray(direction * (length / np.linalg.norm(direction, axis=1, keepdims=True)))
