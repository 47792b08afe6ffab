"""FOCUS (Lucic et al., 2022): gradient descent on a differentiable copy of the forest until the real one flips.

Every split becomes a sigmoid of steepness sigma, the vote a softmax with temperature tau. From x, Adam descends on

    f~(y | x') while the real forest still says y, plus beta * d(x, x') always,

in the scaled space, clipped to the allowed box after each step, and the closest point that really flipped is kept.
Rows that a first pass leaves unflipped go through RETRIES, a fixed schedule of other parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from treefocus import kernels
from treefocus.errors import reject
from treefocus.kernels import reference
from treefocus.kernels.inputs import Batch, Descent, SoftForest
from treefocus.model.forest import Floats, Forest
from treefocus.model.variants import variant
from treefocus.model.voices import Voice
from treefocus.problem.joint import has_common_scores
from treefocus.problem.problem import Problem
from treefocus.search.base import History, Incumbent, Outcome, Run, Strategy, check_positive, check_whole
from treefocus.search.examples import nearest_examples
from treefocus.search.polish import polished

Leaf = Literal["distribution", "vote"]

# Rows that resist: a softer forest sees farther and the pull back to x is weaker; the last one is sharp again, for
# thresholds that stand close together. Whoever still resists starts from the nearest training row of another class.
RETRIES: tuple[dict[str, Any], ...] = (
    {"sigma": 5.0, "tau": 3.0, "beta": 1e-3, "alpha": 0.01},
    {"sigma": 2.0, "tau": 1.0, "beta": 1e-4, "alpha": 0.02},
    {"sigma": 30.0, "tau": 3.0, "beta": 1e-4, "alpha": 0.02},
)


@dataclass(frozen=True)
class Focus(Strategy):
    """The paper's method. sigma, tau, beta and alpha are its names; the defaults need no tuning.

    Parameters
    ----------
    sigma : float
        How steep the soft splits are.
    tau : float, optional
        How steep the softmax is; None takes the scores as they are, without one.
    beta : float
        What the distance weighs in the loss.
    alpha : float
        The step of the descent.
    iterations : int
        Steps of the descent.
    leaf : str
        "distribution" as the paper writes, "vote" (the leaf's majority class) as the authors' program does.
    soft_trees : int, optional
        Only that many first trees enter the soft forest.
    batch_mean : bool
        Whether gradients are divided by the number of rows, as the authors' program does (an answer then depends on
        how many rows are asked at once).
    normalise : bool
        Whether the tree weights are divided by their sum, so that tau means the same for every forest.
    retry : bool
        Whether rows that resist go through the schedule.
    polish : bool
        Whether answers are improved move by move afterwards (see `treefocus.search.polish`).
    history : bool
        Whether the outcome has one.

    Examples
    --------
    >>> from treefocus import Focus
    >>> Focus(sigma=5, iterations=200).sigma
    5
    """

    sigma: float = 10.0
    tau: float | None = 3.0
    beta: float = 0.01
    alpha: float = 0.005
    iterations: int = 1000
    leaf: Leaf = "distribution"
    soft_trees: int | None = None
    batch_mean: bool = False
    normalise: bool = True
    retry: bool = True
    polish: bool = True
    history: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "sigma", "beta", "alpha", *(() if self.tau is None else ("tau",)))
        check_whole(self, "iterations", *(() if self.soft_trees is None else ("soft_trees",)))
        if self.leaf not in ("distribution", "vote"):
            reject("Focus.leaf", "'distribution' or 'vote'", repr(self.leaf))

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """One pass over all rows, then the schedule over those that resist."""
        incumbent = Incumbent(problem)
        trace = np.full((len(problem), self.iterations), np.inf) if self.history else None
        incumbent.offer(self._descend(problem, problem.batch, run, trace))
        if self.retry:
            self._insist(problem, incumbent, run)
        if self.polish:
            incumbent.offer(polished(problem, incumbent.points, run))
        return incumbent.outcome(None if trace is None else _history(trace))

    def descended(self, problem: Problem, run: Run) -> Floats:
        """Where one pass came to, NaN where it flipped nothing, for who looks at points before they count."""
        return self._descend(problem, problem.batch, run, None)

    def _insist(self, problem: Problem, incumbent: Incumbent, run: Run) -> None:
        """The schedule, over the rows without an answer."""
        quiet = replace(run, progress=None)
        for parameters in RETRIES:
            left = incumbent.missing
            if left.size and not run.is_interrupted:
                part = problem.subset(left)
                incumbent.offer(replace(self, **parameters)._descend(part, part.batch, quiet, None), left)
        left = incumbent.missing
        if left.size and problem.examples is not None and not run.is_interrupted:
            part = problem.subset(left)
            batch = replace(part.batch, first=nearest_examples(part, run)[0])
            incumbent.offer(self._descend(part, batch, quiet, None), left)

    def _descend(self, problem: Problem, batch: Batch, run: Run, trace: Floats | None) -> Floats:
        forest = problem.forest
        if not has_common_scores(forest):
            return np.full_like(batch.rows, np.nan)
        if forest.missing_is_choice is not None:  # numbers move, and what is missing stays
            forest = variant(forest, missing_is_choice=None)
            batch = replace(batch, choices=batch.choices.only(batch.choices.is_category))
        soft = self.soft_forest(forest, batch)
        gradient_scale = 1.0 / max(len(problem), 1) if self.batch_mean else 1.0
        descent = Descent(float(self.beta), float(self.alpha), int(self.iterations), gradient_scale)
        compiled = problem.distance.compiled
        if compiled is not None:
            return kernels.descend(
                forest,
                soft,
                compiled,
                descent,
                batch,
                trace=trace,
                n_jobs=run.n_jobs,
                progress=run.progress,
                on_interrupt=run.interruption,
            )[0]
        return reference.descend(
            forest, soft, problem.distance, descent, batch,
            trace=trace, soft_loss=kernels.soft_loss, predict=kernels.predict, on_interrupt=run.interruption,
        )[0]  # fmt: skip

    def soft_forest(self, forest: Forest, batch: Batch) -> SoftForest:
        """The differentiable copy, in the space in which distance is measured; kept for the next rows."""
        kept = _soft.setdefault(forest, {})
        key = self, batch.offset.tobytes(), batch.scale.tobytes()
        soft = kept.get(key)
        if soft is None:
            soft = self._softened(forest, batch)
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = soft
        return soft

    def _softened(self, forest: Forest, batch: Batch) -> SoftForest:
        grid = kernels.grid_of(forest)
        feature = np.repeat(np.arange(forest.n_features), np.diff(grid.start))
        return SoftForest(
            threshold=(grid.threshold - batch.offset[feature]) / batch.scale[feature],
            value=_leaf_values(forest, self.leaf, self.normalise),
            n_trees=forest.n_trees if self.soft_trees is None else int(self.soft_trees),
            sigma=float(self.sigma),
            tau=1.0 if self.tau is None else float(self.tau),
            use_softmax=self.tau is not None,
        )


_KEPT = 8  # soft copies of a forest
_soft: WeakKeyDictionary[Forest, dict[tuple[Focus, bytes, bytes], SoftForest]] = WeakKeyDictionary()


def _leaf_values(forest: Forest, leaf: Leaf, normalise: bool) -> Floats:
    """(n_leaves, n_outputs) omega * T(y | j)."""
    values = forest.leaf_value / forest.divisor if forest.leaf_distribution is None else forest.leaf_distribution
    if forest.members or forest.voices:
        values = values * _scales(forest)[forest.tree_of_leaf][:, None]
    if leaf == "vote":
        if forest.tree_weight is None or forest.decision != "argmax":
            reject("Focus.leaf", f"'distribution' for {forest.source}, whose leaves do not vote", repr(leaf))
        votes = np.eye(forest.n_outputs)[values.argmax(axis=1)]
        values = votes * forest.tree_weight[forest.tree_of_leaf][:, None]
    if normalise:
        values = values / _total_weight(forest, values)
    return np.ascontiguousarray(values)


def _scales(forest: Forest) -> Floats:
    """(n_trees,) what each tree's values are multiplied by, where several models agree or are averaged."""
    own, tree, score = np.ones(forest.n_trees), 0, 0
    for rule in forest.members or [forest]:
        for one in rule.voices or [rule]:
            last = tree + one.n_trees
            slope = _slope(forest, one, slice(tree, last), score) / rule.divisor if isinstance(one, Voice) else 1.0
            own[tree:last] = slope / one.divisor
            tree, score = last, score + (1 if isinstance(one, Voice) else one.n_outputs)
    return own


def _slope(forest: Forest, voice: Voice, trees: slice, score: int) -> float:
    """How much a voice's part of the mean rises with its sum, from its least to its largest."""
    is_own = (forest.tree_of_leaf >= trees.start) & (forest.tree_of_leaf < trees.stop)
    tree, value = forest.tree_of_leaf[is_own], forest.leaf_value[is_own, 0]
    first = np.flatnonzero(np.diff(tree, prepend=-1))
    ends = [forest.base_score[score] + ends.reduceat(value, first).sum() for ends in (np.minimum, np.maximum)]
    sums = np.array(ends)[:, None] / voice.divisor
    low, high = reference.voice_shown(voice, sums)[:, 0]
    return voice.weight * float(high - low) / max(float(sums[1, 0] - sums[0, 0]), 1e-12)


def _total_weight(forest: Forest, values: Floats) -> float:
    """The trees' weights together: their votes', or the largest leaves' where trees do not vote."""
    if forest.tree_weight is not None:
        return float(forest.tree_weight.sum())
    largest = np.zeros(forest.n_trees)
    np.maximum.at(largest, forest.tree_of_leaf, np.abs(values).max(axis=1))
    return float(largest.sum()) or 1.0


def _history(trace: Floats) -> History:
    found = np.isfinite(trace)
    count = found.sum(axis=0)
    with np.errstate(invalid="ignore"):
        mean = np.where(found, trace, 0.0).sum(axis=0) / count
    return History(share_found=count / max(len(trace), 1), mean_distance=mean)
