"""Small random problems of every kind, few enough cells for brute force, shared by the tests of the searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from support.brute import n_cells
from support.forests import adversarial_rows, random_forest
from treefocus.constraints.kinds import (
    AtMost,
    Condition,
    Constraint,
    Decreasing,
    Fixed,
    Implies,
    Increasing,
    MayBeMissing,
    OneOf,
    Range,
    Together,
)
from treefocus.model.categories import Categories
from treefocus.model.forest import Floats, Forest
from treefocus.model.voices import Voice
from treefocus.problem.distances import Chebyshev, Cosine, Distance, Euclidean, FewestFeatures, Mahalanobis, Manhattan
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.space import Space
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER, Schema

Rng = np.random.Generator
MOST_CELLS = 2000


def _weights(rng: Rng, d: int) -> Floats:
    return np.round(rng.uniform(0.2, 3.0, d), 1)


def _covariance(rng: Rng, d: int) -> Floats:
    mix = rng.normal(size=(d, d))
    return np.asarray(mix @ mix.T / d + 0.05 * np.eye(d))


NORMS: dict[str, Callable[[Rng, int], Distance]] = {
    "euclidean": lambda rng, d: Euclidean(),
    "manhattan": lambda rng, d: Manhattan(),
    "chebyshev": lambda rng, d: Chebyshev(),
    "l0": lambda rng, d: FewestFeatures(),
    "weighted euclidean": lambda rng, d: Euclidean(_weights(rng, d)),
    "weighted manhattan": lambda rng, d: Manhattan(_weights(rng, d)),
    "weighted chebyshev": lambda rng, d: Chebyshev(_weights(rng, d)),
    "weighted l0": lambda rng, d: FewestFeatures(_weights(rng, d)),
    "manhattan + 0.1 l0": lambda rng, d: Manhattan() + 0.1 * FewestFeatures(),
    "euclidean + chebyshev": lambda rng, d: Euclidean() + Chebyshev(),
    "manhattan and euclidean by halves": lambda rng, d: 0.5 * Manhattan() + 0.5 * Euclidean(),
    "weighted sum of all": lambda rng, d: (
        0.3 * Manhattan(_weights(rng, d)) + 0.5 * Euclidean(_weights(rng, d)) + Chebyshev() + 0.2 * FewestFeatures()
    ),
}
COUPLED: dict[str, Callable[[Rng, int], Distance]] = {
    "mahalanobis": lambda rng, d: Mahalanobis(_covariance(rng, d)),
    "mahalanobis squared": lambda rng, d: Mahalanobis(_covariance(rng, d), squared=True),
    "weighted mahalanobis": lambda rng, d: Mahalanobis(_covariance(rng, d), weights=_weights(rng, d)),
    "cosine": lambda rng, d: Cosine(),
    "weighted cosine": lambda rng, d: Cosine(_weights(rng, d)),
}
DISTANCES = NORMS | COUPLED


def small_forest(rng: Rng, *, spread: float = 1.0) -> Forest:
    """1 to 6 trees of depth 3 at most over 2 to 4 features; in many of them ties are common."""
    while True:
        d = int(rng.integers(2, 5))
        decision = rng.choice(["argmax", "argmax", "above", "at_least"])
        forest = random_forest(
            rng,
            n_features=d,
            n_trees=int(rng.integers(1, 7)),
            max_depth=int(rng.integers(1, 4)),
            n_classes=int(rng.integers(2, 6)),
            decision=decision,
            input_dtype=rng.choice(["float32", "float64"]),
            takes_missing=bool(rng.random() < 0.3),
            n_thresholds=int(rng.integers(1, {2: 12, 3: 8, 4: 5}[d])),
            spread=spread,
        )
        if decision == "argmax" and rng.random() < 0.4:
            votes = np.eye(forest.n_classes)[rng.integers(forest.n_classes, size=forest.n_leaves)]
            forest = replace(forest, leaf_value=votes, base_score=np.zeros(forest.n_classes))
        if rng.random() < 0.2:
            forest = replace(forest, score_dtype="float32")
        if rng.random() < 0.4:
            forest = with_categories(rng, forest)
        if forest.n_outputs == 1 and rng.random() < 0.4:
            forest = with_voices(rng, forest)
        elif rng.random() < 0.2:
            forest = asked_otherwise(rng, forest)
        if n_cells(forest) <= MOST_CELLS:
            return forest


def with_categories(rng: Rng, forest: Forest) -> Forest:
    """The forest with some of its columns turned into categories, two to five of them."""
    is_category = rng.random(forest.n_features) < 0.6
    labels = [tuple(range(int(rng.integers(2, 6)))) if is_one else None for is_one in is_category]
    sets = []
    for f in forest.feature:
        own = None if f < 0 else labels[f]
        sets.append(None if own is None else np.flatnonzero(rng.random(len(own) + 1) < 0.5).tolist())
    threshold = np.where([own is None for own in sets], forest.threshold, 0.0)
    return replace(forest, threshold=threshold, categories=Categories.of_sets(labels, sets))


def with_voices(rng: Rng, forest: Forest) -> Forest:
    """The forest as a mean of what one to three parts of it show: through curves, or as votes."""
    ends = np.sort(rng.integers(0, forest.n_trees + 1, int(rng.integers(1, 4))))
    is_vote = rng.random() < 0.4
    voices = []
    for n_trees in np.diff(ends, prepend=0):
        steps = np.cumsum(rng.choice([0.0, 0.25, 0.5], 4))
        curves: list[tuple[Any, ...]] = [
            ("platt", -float(rng.uniform(0.3, 4.0)), float(rng.normal())),
            ("isotonic", (-1.0, -0.2, 0.3, 1.1), tuple((steps / max(steps[-1], 1.0)).tolist())),
            ("isotonic", (0.0,), (0.6,)),
        ]
        vote = (str(rng.choice(["above", "at_least"])), float(rng.integers(-1, 2) / 4))
        voices.append(
            Voice(
                int(n_trees), divisor=float(rng.choice([1.0, 2.0])), weight=float(rng.choice([1.0, 2.0])),
                score_dtype=str(rng.choice(["float32", "float64"])),
                link="identity" if is_vote else str(rng.choice(["identity", "sigmoid"])),
                maps=(vote if is_vote else curves[int(rng.integers(3))],),
            )
        )  # fmt: skip
    total = sum(one.weight for one in voices)
    cut = 0.5 if is_vote else float(rng.choice([0.31, 0.47, 0.62]))
    base = rng.integers(-1, 2, len(voices)) / 4
    return replace(forest, voices=tuple(voices), base_score=base, divisor=total, cut=cut, score_dtype="float64")


def asked_otherwise(rng: Rng, forest: Forest) -> Forest:
    """The forest with two classes, inside and outside of an interval or of a probability."""
    yes_no = np.array([False, True])
    if forest.decision == "argmax":
        link = rng.choice(["identity", "softmax"])
        favoured, cut = int(rng.integers(forest.n_outputs)), float(rng.choice([0.31, 0.47, 0.62]))
        return replace(forest, decision="likely", link=link, favoured=favoured, cut=cut, divisor=1.0, classes=yes_no)
    return replace(
        forest, decision="between", cut_high=forest.cut + float(rng.choice([0.0, 0.25, 1.0])), classes=yes_no
    )


def small_problem(seed: int, distance: str, n_rows: int = 4) -> Problem:
    """A forest, rows beside its thresholds, and everything else a question can have."""
    return small_question(seed, distance, n_rows).problem()


def small_question(seed: int, distance: str, n_rows: int = 4) -> Question:
    """The same as it is asked."""
    rng = np.random.default_rng(seed)
    is_coupled = distance in COUPLED
    forest = small_forest(rng, spread=float(rng.choice([1.0, 3.0] if is_coupled else [1e-3, 1.0, 3.0, 1e6])))
    d = forest.n_features
    rows = adversarial_rows(forest, rng, n_rows)
    if forest.categories is not None:
        for f in np.flatnonzero(forest.categories.is_categorical):
            own = rng.integers(0, forest.categories.n_labels(int(f)) + 1, n_rows)  # the last one is unseen
            rows[:, f] = np.where(np.isnan(rows[:, f]), np.nan, own)
    grain = _grain(rng, d, most_integers=2 if is_coupled else d)
    rows = np.where((grain == INTEGER) & (rng.random(rows.shape) < 0.7), np.rint(rows), rows)
    rows = np.where((grain == FLOAT32) & (rng.random(rows.shape) < 0.7), rows.astype(np.float32), rows)
    return Question(
        forest,
        np.ascontiguousarray(rows, np.float64),
        space=_space(rng, forest, is_bounded=is_coupled),
        distance=DISTANCES[distance](rng, d).fitted(d, None),
        constraints=_constraints(rng, forest, is_coupled),
        schema=Schema.of_names(f"feature {f}" for f in range(d)),
        grain=grain,
        target=None if rng.random() < 0.7 else rng.choice(forest.classes, n_rows),
    )


def _grain(rng: Rng, d: int, most_integers: int) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    grain = np.zeros(d, np.int8) if rng.random() < 0.5 else rng.choice([ANY_FLOAT, FLOAT32, INTEGER], d).astype(np.int8)
    grain[np.flatnonzero(grain == INTEGER)[most_integers:]] = FLOAT32
    return grain


def _ends(forest: Forest) -> tuple[Floats, Floats]:
    """(d,) the smallest and the largest threshold of each feature."""
    own = [forest.threshold[forest.feature == f] for f in range(forest.n_features)]
    return np.array([[t.min(initial=0.0), t.max(initial=0.0)] for t in own]).T


def _space(rng: Rng, forest: Forest, is_bounded: bool) -> Space:
    low, high = _ends(forest)
    d, room = forest.n_features, 0.5 * (high - low) + 1.0
    offset = rng.normal(0.0, 1.0, d) if rng.random() < 0.5 else low - room
    scale = rng.uniform(0.1, 3.0, d) if rng.random() < 0.5 else np.ones(d)
    if not is_bounded and rng.random() < 0.4:
        return Space(offset, scale, np.full(d, -np.inf), np.full(d, np.inf))
    return Space(offset, scale, low - room * rng.uniform(0.0, 1.0, d), high + room * rng.uniform(0.0, 1.0, d))


def _constraints(rng: Rng, forest: Forest, is_coupled: bool) -> list[Constraint]:
    """In half of the problems none, else on every second column; ranges may leave the rows out, or leave nothing."""
    low, high = _ends(forest)
    found: list[Constraint] = []
    if rng.random() < 0.5:
        return found
    if forest.takes_missing and not is_coupled and rng.random() < 0.5:
        found.append(MayBeMissing(int(rng.integers(forest.n_features))))
    for f in range(forest.n_features):
        kind = rng.choice(["none", "none", "none", "none", "none", "fixed", "up", "down", "range", "range"])
        if kind == "fixed":
            found.append(Fixed(f))
        elif kind == "up":
            found.append(Increasing(f))
        elif kind == "down":
            found.append(Decreasing(f))
        elif kind == "range" and forest.categories is not None and forest.categories.labels[f] is not None:
            own = [label for label in forest.categories.labels[f] or () if rng.random() < 0.6]
            found += [OneOf(f, own)] if own else []
        elif kind == "range" and rng.random() < 0.4:
            room = high[f] - low[f] + 1.0
            found.append(OneOf(f, np.round(rng.uniform(low[f] - room, high[f] + room, int(rng.integers(1, 6))), 1)))
        elif kind == "range":
            room = high[f] - low[f] + 1.0
            own = [*rng.uniform(low[f] - room, high[f] + room, 3), *forest.threshold[forest.feature == f]]
            a, b = np.sort(rng.choice(own, 2))
            found.append(Range(f, low=float(a), high=float(b)) if rng.random() < 0.7 else Range(f, low=float(a)))
    if not is_coupled:
        found += relations(rng, forest)
    return found


def relations(rng: Rng, forest: Forest) -> list[Constraint]:
    """Rules between columns, of every kind that cells can decide."""
    found: list[Constraint] = []
    some = rng.choice(forest.n_features, int(rng.integers(2, forest.n_features + 1)), replace=False).tolist()
    if rng.random() < 0.2:
        found.append(AtMost(int(rng.integers(0, 3)), *(some if rng.random() < 0.5 else [])))
    if rng.random() < 0.2:
        found.append(Together(*some))
    if rng.random() < 0.3:
        found.append(Implies(_condition(rng, forest, some[0]), _condition(rng, forest, some[1])))
    return found


def _condition(rng: Rng, forest: Forest, f: int) -> Condition:
    labels = None if forest.categories is None else forest.categories.labels[f]
    if labels is not None:
        return Condition(f, values=tuple(label for label in labels if rng.random() < 0.5))
    low, high = _ends(forest)
    ends = np.sort(rng.uniform(low[f] - 1.0, high[f] + 1.0, 2))
    ends = np.round(ends, 1) if rng.random() < 0.5 else ends
    kind = rng.integers(3)
    return Condition(f, low=float(ends[0]) if kind != 1 else -np.inf, high=float(ends[1]) if kind != 0 else np.inf)
