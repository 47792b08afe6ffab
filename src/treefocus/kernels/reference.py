"""A NumPy twin of every compiled kernel: slow, short, and next to the paper. The tests hold the two together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.kernels.inputs import Batch, Descent, Int8s, SoftForest
from treefocus.model.forest import Floats, Forest, Ints
from treefocus.model.grid import Grid
from treefocus.model.maps import mapped
from treefocus.model.members import EVERY_CLASS, Member
from treefocus.model.voices import Voice

_LINK_UNITS = 8.0  # what a library's sigmoid can be off, in units in the last place


class Differentiable(Protocol):
    """A distance: value and gradient for a batch."""

    def value(self, z: Floats, y: Floats) -> Floats:
        """(n_rows,) d(z, y)."""

    def gradient(self, z: Floats, y: Floats) -> Floats:
        """(n_rows, n_features) derivative of d(z, y) with respect to y."""


def leaves(forest: Forest, rows: Floats) -> Ints:
    """(n_rows, n_trees) the leaf every row reaches in every tree."""
    grid = Grid.of(forest)
    codes = grid.encode(forest, rows)
    leaf_number = np.cumsum(forest.left < 0) - 1
    reached = np.empty((len(rows), forest.n_trees), np.int32)
    for tree, root in enumerate(forest.tree_start[:-1]):
        node = np.full(len(rows), root)
        while (inner := np.flatnonzero(forest.left[node] >= 0)).size:
            at = node[inner]
            to_left = grid.goes_left(forest, at, codes[inner, forest.feature[at]])
            node[inner] = np.where(to_left, forest.left[at], forest.right[at])
        reached[:, tree] = leaf_number[node]
    return reached


def hard_scores(forest: Forest, rows: Floats) -> Floats:
    """(n_rows, n_outputs) the model's own scores, added up tree after tree."""
    reached = leaves(forest, rows)
    rules = forest.members or forest.voices
    if not rules:
        return _added_up(forest, forest.base_score, forest.leaf_value, reached)
    scores, tree, score = [], 0, 0
    for one in [own for rule in rules for own in (rule.voices if isinstance(rule, Member) else ()) or [rule]]:
        width = 1 if isinstance(one, Voice) else one.n_outputs
        base, value = forest.base_score[score : score + width], forest.leaf_value[:, :width]
        scores.append(_added_up(one, base, value, reached[:, tree : tree + one.n_trees]))
        tree, score = tree + one.n_trees, score + width
    sums = np.concatenate(scores, axis=1)
    return sums if forest.members else mean_shown(forest, sums)


def mean_shown(rule: Forest | Member, sums: Floats) -> Floats:
    """(n_rows, 1) the mean of what the voices show, from the sum of each; taken as the library takes it."""
    total = np.zeros((len(sums), 1))
    for m, one in enumerate(rule.voices):
        total += one.weight * voice_shown(one, sums[:, m : m + 1])
    return total / rule.divisor


def voice_shown(voice: Voice, sums: Floats) -> Floats:
    """What a voice shows for its sums."""
    value = _linked(voice, sums + voice.moved * voice.rounding)
    if voice.link != "identity":
        value = value + voice.moved * _LINK_UNITS * np.finfo(voice.score_dtype).eps / 2 * np.abs(value)
    return mapped(voice.maps, value)


def _added_up(rule: Forest | Member | Voice, base: Floats, value: Floats, reached: Ints) -> Floats:
    scores = np.tile(base, (len(reached), 1)).astype(rule.score_dtype)
    for leaf in reached.T:
        scores += value[leaf].astype(rule.score_dtype)
    return np.asarray(scores.astype(np.float64) / rule.divisor)


def decide(forest: Forest | Member, scores: Floats) -> Ints:
    """(n_rows,) the class that comes out of the scores."""
    if isinstance(forest, Forest) and forest.members:
        return _agreed(forest, scores)
    if isinstance(forest, Member) and forest.voices:
        scores = mean_shown(forest, scores)
    if forest.decision == "argmax":
        return np.asarray(np.argmax(scores, axis=1), dtype=np.int32)
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number; say which answer is wanted with an interval.")
    score = shown(forest, scores)[:, forest.favoured] if forest.decision == "likely" else scores[:, 0]
    yes = score > forest.cut if forest.decision == "above" else score >= forest.cut
    if forest.decision == "between":
        yes &= score <= forest.cut_high
    return np.asarray(yes, dtype=np.int32)


def _agreed(forest: Forest, scores: Floats) -> Ints:
    """The class that all members give, the last one where they do not."""
    own, score = [], 0
    for one in forest.members:
        own.append(np.array(one.to_class, np.int32)[decide(one, scores[:, score : score + one.n_scores])])
        score += one.n_scores
    is_same = np.all([(said == own[0]) | (said == EVERY_CLASS) for said in own], axis=0) & (own[0] >= 0)
    return np.asarray(np.where(is_same, own[0], forest.n_classes - 1), np.int32)


def shown(forest: Forest | Member, scores: Floats) -> Floats:
    """(n_rows, n_outputs) what the library shows for these scores: probabilities, or the predicted value.

    In the number type in which the library adds scores up. A sigmoid is the library's own to the last bit (all of them
    take the C library's exponential, as scipy does), powers and a softmax up to a few units in the last place.
    """
    return mapped(forest.maps, _linked(forest, scores)) if forest.maps else _linked(forest, scores)


def _linked(forest: Forest | Member | Voice, scores: Floats) -> Floats:
    """(n_rows, n_outputs) the scores after the link."""
    if forest.link == "identity":
        return scores
    own = scores.astype(forest.score_dtype)
    with np.errstate(over="ignore", under="ignore"):
        if forest.link == "sigmoid":
            from scipy.special import expit  # not cheap to import

            return np.asarray(expit(own), np.float64)
        if forest.link == "exp":
            return np.asarray(np.exp(own.astype(np.float64)).astype(own.dtype), np.float64)
        share = np.exp((own - own.max(axis=1, keepdims=True)).astype(np.float64)).astype(own.dtype)
        total = share.sum(axis=1, keepdims=True, dtype=np.float64).astype(own.dtype)
        return np.asarray(share / total, np.float64)


def predict(forest: Forest, rows: Floats) -> Ints:
    """(n_rows,) index of the predicted class."""
    return decide(forest, hard_scores(forest, rows))


def soft_loss(forest: Forest, soft: SoftForest, z: Floats, label: Ints, sign: Int8s) -> tuple[Floats, Floats]:
    """The paper's prediction loss on the soft forest, and its gradient.

    The loss is f~(label | z) where sign is 1 (leave that class), 1 - f~(label | z) where it is -1 (reach it).
    """
    grid = Grid.of(forest)
    n_rows = len(z)
    every_row = np.arange(n_rows)
    scores = np.zeros((n_rows, forest.n_outputs))
    slopes = np.zeros((n_rows, forest.n_outputs, forest.n_features))  # d score / d z
    leaf_number = np.cumsum(forest.left < 0) - 1

    def codes_of(f: int) -> Ints:
        """The cells of a feature that splits by sets."""
        own = soft.threshold[grid.start[f] : grid.start[f + 1]]
        codes = np.where(np.isnan(z[:, f]), len(own) + 1, np.searchsorted(own, z[:, f], side="left"))
        return codes.astype(np.int32)

    def visit(node: int, activation: Floats, slope: Floats) -> None:
        """t~_j and its derivative, from the root to every leaf."""
        if forest.left[node] < 0:
            value = soft.value[leaf_number[node]]
            scores[:] += activation[:, None] * value
            slopes[:] += value[None, :, None] * slope[:, None, :]
            return
        f = forest.feature[node]
        missing = np.isnan(z[:, f])
        if grid.has_sets[f]:  # routed as the model routes it, and no slope
            to_left = grid.goes_left(forest, np.full(n_rows, node), codes_of(f)).astype(np.float64)
            missing = np.ones(n_rows, bool)
        else:
            with np.errstate(over="ignore"):
                to_left = 1.0 / (1.0 + np.exp(soft.sigma * (z[:, f] - soft.threshold[grid.split[node]])))
            to_left = np.where(missing, forest.default_left[node], to_left)
        own = np.zeros_like(slope)
        own[:, f] = np.where(missing, 0.0, -soft.sigma * to_left * (1.0 - to_left))
        for child, share, turn in (
            (forest.left[node], to_left, own),
            (forest.right[node], 1.0 - to_left, -own),
        ):
            visit(child, activation * share, slope * share[:, None] + activation[:, None] * turn)

    for root in forest.tree_start[: min(soft.n_trees, forest.n_trees)]:
        visit(root, np.ones(n_rows), np.zeros((n_rows, forest.n_features)))

    if forest.n_outputs == 1:  # one score for class 1 against class 0
        scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        slopes = np.concatenate([np.zeros_like(slopes), slopes], axis=1)
    if soft.use_softmax or forest.n_outputs == 1:
        shifted = soft.tau * (scores - scores.max(axis=1, keepdims=True))
        share = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
        probability = share[every_row, label]
        mean_slope = np.einsum("nk,nkd->nd", share, slopes)
        gradient = soft.tau * probability[:, None] * (slopes[every_row, label] - mean_slope)
    else:
        probability, gradient = scores[every_row, label], slopes[every_row, label]
    return np.where(sign > 0, probability, 1.0 - probability), np.where(sign > 0, 1.0, -1.0)[:, None] * gradient


def wished(forest: Forest, batch: Batch) -> tuple[Ints, Int8s]:
    """(n_rows,) the class the soft forest is to reach (sign -1) or to leave (sign 1).

    Into an interval, or out of it, a score goes up or down.
    """
    has_target = batch.target >= 0
    label = np.where(has_target, batch.target, batch.origin)
    sign = np.where(has_target, -1, 1)
    if forest.decision in ("between", "likely"):
        is_wanted = np.where(has_target, batch.target == 1, batch.origin == 0)
        label = np.full_like(label, 1 if forest.decision == "between" else forest.favoured)
        sign = np.where(is_wanted, -1, 1)
        if forest.decision == "between":
            is_low = hard_scores(forest, batch.first)[:, 0] < forest.cut
            sign = np.where(is_low == is_wanted, -1, 1)
    return label.astype(np.int32), sign.astype(np.int8)


def descend(
    forest: Forest,
    soft: SoftForest,
    distance: Differentiable,
    descent: Descent,
    batch: Batch,
    *,
    trace: Floats | None = None,
    progress: Callable[[int], None] | None = None,
    soft_loss: Callable[..., tuple[Floats, Floats]] = soft_loss,
    predict: Callable[[Forest, Floats], Ints] = predict,
    on_interrupt: Callable[[], None] | None = None,
) -> tuple[Floats, Floats]:
    """FOCUS: Adam on f~ + beta * distance while the real model has not flipped, on the distance alone while it has.

    Returns the closest flipped point seen of every row (NaN where none) and its distance (infinity where none).
    Ctrl-C ends the loop and calls `on_interrupt`, or is raised where there is none.
    """
    start = batch.start
    y = batch.to_z(batch.first)
    still = batch.choices.column  # these stay where they start, and cost nothing while the others move
    start[:, still] = y[:, still] = (batch.first[:, still] - batch.offset[still]) / batch.scale[still]
    mean, square = np.zeros_like(y), np.zeros_like(y)
    best = np.full_like(y, np.nan)
    best_distance = np.full(len(y), np.inf)
    label, sign = wished(forest, batch)
    moves = ~np.isnan(y)
    moves[:, still] = False

    def look() -> NDArray[np.bool_]:
        points = batch.snapped(batch.from_z(y))
        points[:, still] = batch.first[:, still]
        flipped = batch.is_flipped(predict(forest, points))
        seen = batch.to_z(points)
        seen[:, still] = start[:, still]
        now = distance.value(start, seen)
        closer = flipped & (now < best_distance)
        best[closer], best_distance[closer] = points[closer], now[closer]
        return flipped

    flipped = look()
    try:
        for t in range(1, descent.iterations + 1):
            gradient = np.where(moves, descent.beta * distance.gradient(start, y), 0.0)
            active = np.flatnonzero(~flipped)
            if active.size:
                gradient[active] += soft_loss(forest, soft, y[active], label[active], sign[active])[1]
            gradient *= descent.gradient_scale
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            rate = descent.alpha * np.sqrt(1.0 - 0.999**t) / (1.0 - 0.9**t)
            y = y - rate * mean / (np.sqrt(square) + 1e-8)
            points = batch.from_z(y)
            inside = np.clip(points, batch.low, batch.high)
            y = np.where((inside == points) | ~moves, y, batch.to_z(inside))
            flipped = look()
            if trace is not None:
                trace[:, t - 1] = best_distance
            if progress is not None:
                progress(t)
    except KeyboardInterrupt:
        if on_interrupt is None:
            raise
        on_interrupt()
    return best, best_distance


def nearest(batch: Batch, examples: Floats, answer: Ints, n_wanted: int) -> Ints:
    """(n_rows, n_wanted) the examples with a wanted answer that are nearest once in the row's box; -1: no more.

    The distance is Manhattan's, whatever the user's: these are only points to start from.
    """
    index = np.full((len(batch.rows), n_wanted), -1, np.int32)
    chosen = np.flatnonzero(batch.is_category)
    for i in range(len(index)):
        wanted = answer == batch.target[i] if batch.target[i] >= 0 else answer != batch.origin[i]
        inside = np.clip(examples, batch.low[i], batch.high[i])
        inside[:, chosen] = examples[:, chosen]
        away = np.where(wanted, np.nansum(np.abs(batch.changes_of(i, inside)), axis=1), np.inf)
        order = np.lexsort((np.arange(len(away)), away))[: min(n_wanted, int(wanted.sum()))]
        index[i, : len(order)] = order
    return index
