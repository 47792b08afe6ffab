"""Feature Tweaking (Tolomei et al., KDD 2017): move x into one leaf of one tree, and hope that the ensemble follows.

For every tree that votes as the ensemble does, and every leaf of it that votes otherwise, walk the path to that leaf:
each condition that does not hold is made to hold with a margin, x_f = threshold - epsilon or threshold + epsilon. Of
all these candidates the closest one that flips the whole ensemble is the answer. A tree's leaf need not carry the
ensemble along, so on ensembles many rows get no answer; on a single tree it is the optimum but for the margin.

Conditions are met in the order of the path: where a leaf is thinner than the margin, the last condition wins and the
candidate misses its leaf. That is what the published figures rest on (887 of 1,470 rows of Wine's AdaBoost at
epsilon 0.1). Unlike there, a candidate never leaves the allowed box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.grid import as_input
from treefocus.problem.problem import Problem
from treefocus.search.base import Outcome, Run, Strategy, check_positive, require_numbers, require_one_model
from treefocus.search.candidates import closest_valid


@dataclass(frozen=True)
class FeatureTweaking(Strategy):
    """A baseline of the paper.

    Parameters
    ----------
    epsilon : float
        The margin to a threshold, in the space in which distance is measured.

    Examples
    --------
    >>> from treefocus import FeatureTweaking
    >>> FeatureTweaking(epsilon=0.01)
    FeatureTweaking(epsilon=0.01)
    """

    epsilon: float = 0.001

    def __post_init__(self) -> None:
        check_positive(self, "epsilon")

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Propose a candidate a leaf that changes its tree's vote, keep the closest that flips the ensemble."""
        require_one_model(problem, "FeatureTweaking")
        paths = Paths.of(problem.forest)

        def propose(part: Problem) -> tuple[Floats, Bools]:
            return paths.tweaked(part, self.epsilon * part.batch.scale), paths.changes_vote(part)

        return Outcome.of_points(problem, closest_valid(problem, propose, len(paths.vote), run))


@dataclass(frozen=True, eq=False)
class Paths:
    """The way to every leaf, from the root down, padded to the longest."""

    forest: Forest
    feature: Ints  # (n_leaves, depth), -1 where the path has ended
    threshold: Floats  # (n_leaves, depth)
    goes_left: Bools  # (n_leaves, depth) the condition is x <= threshold, else x > threshold
    default_left: Bools  # (n_leaves, depth) where a missing value goes
    vote: NDArray[np.intp]  # (n_leaves,) the class each leaf is for

    @classmethod
    def of(cls, forest: Forest) -> Paths:
        """The paths of a forest whose trees vote."""
        if forest.tree_weight is None or forest.decision != "argmax":
            raise InvalidInput(
                f"FeatureTweaking needs trees that vote for a class; those of {forest.source} add to a score."
            )
        require_numbers(forest, "FeatureTweaking")
        parent = np.full(len(forest.left), -1)
        inner = np.flatnonzero(forest.left >= 0)
        parent[forest.left[inner]] = inner
        parent[forest.right[inner]] = inner
        upward, node = [], np.flatnonzero(forest.left < 0)
        while (parent[node] >= 0).any():
            above = parent[node]
            upward.append((above, (above >= 0) & (forest.left[above] == node)))
            node = np.where(above >= 0, above, node)
        n_leaves = forest.n_leaves
        nodes = np.array([step for step, _ in reversed(upward)], np.intp).reshape(-1, n_leaves).T
        left = np.array([side for _, side in reversed(upward)], bool).reshape(-1, n_leaves).T
        on_path = nodes >= 0
        values = forest.leaf_value if forest.leaf_distribution is None else forest.leaf_distribution
        return cls(
            forest,
            np.where(on_path, forest.feature[nodes], -1).astype(np.int32),
            np.where(on_path, forest.threshold[nodes], 0.0),
            left,
            np.asarray(on_path & forest.default_left[nodes]),
            values.argmax(axis=1),
        )

    def holds(self, step: int, values: Floats) -> Bools:
        """(n_rows, n_leaves) whether these values, one a leaf, meet the conditions at one step; True past the end."""
        seen = as_input(values, self.forest.input_dtype)
        is_left = np.where(np.isnan(seen), self.default_left[:, step], seen <= self.threshold[:, step])
        return np.asarray((is_left == self.goes_left[:, step]) | (self.feature[:, step] < 0))

    def changes_vote(self, problem: Problem) -> Bools:
        """(n_rows, n_leaves) whether a leaf has the wanted vote, in a tree that votes as the ensemble does."""
        batch = problem.batch
        is_reached = np.ones((len(problem), len(self.vote)), bool)
        for step in range(self.feature.shape[1]):
            is_reached &= self.holds(step, batch.rows[:, self.feature[:, step]])
        tree = self.forest.tree_of_leaf
        row, leaf = np.nonzero(is_reached)
        tree_vote = np.empty((len(problem), self.forest.n_trees), np.intp)
        tree_vote[row, tree[leaf]] = self.vote[leaf]
        agrees = tree_vote[:, tree] == batch.origin[:, None]
        target = batch.target[:, None]
        return np.asarray(agrees & np.where(target >= 0, self.vote == target, self.vote != batch.origin[:, None]))

    def tweaked(self, problem: Problem, margin: Floats) -> Floats:
        """(n_rows, n_leaves, n_features) the rows, moved as each leaf's path asks; `margin` in the user's units."""
        rows = problem.batch.rows
        points = np.repeat(rows[:, None, :], len(self.vote), axis=1)
        leaves = np.arange(len(self.vote))
        for step in range(self.feature.shape[1]):
            feature = self.feature[:, step]
            value = points[:, leaves, feature]
            away = np.where(self.goes_left[:, step], -margin[feature], margin[feature])
            is_kept = self.holds(step, value)
            points[:, leaves, feature] = np.where(is_kept, value, self.threshold[:, step] + away)
        return points
