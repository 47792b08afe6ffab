"""The exact search against three independent judges: brute force, the leaves of single trees, and a MILP."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from support import brute
from support.brute import RowQuestion
from support.examples import forests
from support.forests import SEEDS, paper_dir
from support.judge import ABSOLUTE, RELATIVE, check
from support.paper import paper_model, paper_rows
from support.questions import any_number
from support.small_problems import DISTANCES, small_problem
from treefocus import Auto, Exact, Explainer, FewestFeatures, Forest, Mahalanobis, Manhattan, Range, Status
from treefocus.model.forest import Decision, Floats
from treefocus.problem.question import Question
from treefocus.schema.schema import ANY_FLOAT
from treefocus.search import Run

many, some = forests(20), forests(10)

# Brute force


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_exact_says_what_brute_force_says(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    check(problem, Exact().solve(problem, Run(n_jobs=1)), is_finished=True)


@pytest.mark.parametrize("distance", DISTANCES)
@some
@given(seed=SEEDS)
def test_auto_says_what_brute_force_says(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    check(problem, Auto().solve(problem, Run(n_jobs=1)), is_finished=True)


@pytest.mark.parametrize("distance", DISTANCES)
@some
@given(seed=SEEDS)
def test_a_search_that_is_stopped_claims_no_more_than_it_knows(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance, n_rows=3)
    for node_limit in (1, 5, 50):
        outcome = Exact(node_limit=node_limit).solve(problem, Run(n_jobs=1))
        check(problem, outcome, is_finished=False, who=f"node_limit {node_limit}")


@some
@given(seed=SEEDS)
def test_more_threads_change_no_bit(seed: int) -> None:
    names = list(DISTANCES)
    problem = small_problem(seed, names[seed % len(names)], n_rows=12)
    for strategy in (Exact(), Exact(node_limit=20)):
        one, three = (strategy.solve(problem, Run(n_jobs=n_jobs)) for n_jobs in (1, 3))
        assert one.points.tobytes() == three.points.tobytes()
        assert one.distance.tobytes() == three.distance.tobytes()
        assert one.lower_bound.tobytes() == three.lower_bound.tobytes()
        assert (one.status == three.status).all()


@some
@given(seed=SEEDS)
def test_rows_do_not_depend_on_their_neighbours(seed: int) -> None:
    names = list(DISTANCES)
    problem = small_problem(seed, names[seed % len(names)])
    together = Exact().solve(problem, Run(n_jobs=1))
    for i in range(len(problem)):
        alone = Exact().solve(problem.subset(np.array([i])), Run(n_jobs=1))
        assert alone.points[0].tobytes() == together.points[i].tobytes()
        assert alone.lower_bound[0] == together.lower_bound[i]


# What went wrong once


def either(first: float, second: float, **changes: Any) -> Forest:
    """Two stumps: "yes" if feature 0 is above `first` or feature 1 above `second`."""
    arguments: dict[str, Any] = {
        "feature": [0, -1, -1, 1, -1, -1],
        "threshold": [first, 0.0, 0.0, second, 0.0, 0.0],
        "left": [1, -1, -1, 4, -1, -1],
        "right": [2, -1, -1, 5, -1, -1],
        "default_left": [False] * 6,
        "tree_start": [0, 3, 6],
        "leaf_value": [[0.0], [1.0], [0.0], [1.0]],
        "base_score": [0.0],
        "classes": ["no", "yes"],
        "n_features": 2,
        "decision": "above",
        "cut": 0.5,
    }
    return Forest(**arguments | changes)


@pytest.mark.parametrize("distance", ["l0", Manhattan() + 0.1 * FewestFeatures()])
def test_a_change_too_small_to_show_in_the_scaled_space_still_counts(distance: Any) -> None:
    """LightGBM's own zero, 1e-35: the change to get past it is lost beside the offset of the scaled space."""
    data = np.array([[-5.0, -5.0], [5.0, 5.0]])
    found = Explainer(either(1e-35, 1e-35), data, distance=distance).explain(np.zeros((1, 2)), strategy="exact")
    assert found.status[0] is Status.OPTIMAL
    assert found.distance[0] == pytest.approx(1.0 if distance == "l0" else 0.1)


@pytest.mark.parametrize("strategy", ["exact", "auto", "focus"])
@pytest.mark.parametrize("distance", ["manhattan", "cosine", Mahalanobis(np.eye(2))])
def test_float32_columns_obey_a_bound_that_no_float32_meets(distance: Any, strategy: str) -> None:
    """The float32 next to 0.7 is below it."""
    rows = np.array([[0.1, 0.2]], np.float32)
    explainer = Explainer(either(0.5, 0.5), distance=distance, scale=None, bounds=(0, 1), constraints=Range(0, 0.7, 1))
    found = explainer.explain(rows, strategy=strategy)
    assert found.status[0].has_answer
    value = found.points[0, 0]
    assert value >= 0.7
    assert value == np.float32(value)


def test_a_value_that_only_the_cast_to_float32_takes_across_is_an_answer() -> None:
    """Around 1.6e9 float32 knows every 128th number: 1.6e9 + 65 is read as 1.6e9 + 128, beyond the threshold."""
    model = either(1.6e9, 1.6e9, input_dtype="float32")
    row, across = np.array([[1.6e9 - 10, 0.0]]), np.array([[1.6e9 + 65, 0.0]])
    assert brute.predict(model, np.vstack([row, across])).tolist() == [0, 1]
    near = Explainer(model, distance="manhattan", scale=None, bounds=(0, 1.6e9 + 100)).explain(row, strategy="exact")
    assert near.status[0] is not Status.INFEASIBLE


@pytest.mark.parametrize("decision", ["above", "argmax"])
def test_a_sum_in_float32_may_drift_as_far_as_rounding_allows(decision: Decision) -> None:
    """To 1 in float32, 5.9e-8 adds nothing and 6e-8 adds 1.2e-7, a thousand times: two scores drift twice as far."""
    n_trees = 1000
    root = 3 * np.arange(n_trees)
    left, right = (np.stack([root + side, -np.ones(n_trees), -np.ones(n_trees)], axis=1).ravel() for side in (1, 2))
    is_above = decision == "above"
    model = Forest(
        feature=[0, -1, -1] * n_trees,
        threshold=[0.5, 0.0, 0.0] * n_trees,
        left=left,
        right=right,
        default_left=[False] * 3 * n_trees,
        tree_start=3 * np.arange(n_trees + 1),
        leaf_value=([[0.0], [6e-8]] if is_above else [[0.0, 0.0], [5.9e-8, 6e-8]]) * n_trees,
        base_score=[1.0] if is_above else [1.0 + n_trees * 1.15e-7, 1.0],
        classes=["no", "yes"],
        n_features=1,
        decision=decision,
        cut=1.0 + n_trees * 6e-8 + 3.5e-5 if is_above else 0.0,
        score_dtype="float32",
    )
    assert brute.predict(model, np.array([[0.0], [1.0]])).tolist() == [0, 1]
    found = Explainer(model, scale=None).explain(np.zeros((1, 1)), strategy="exact")
    assert found.status[0] is Status.OPTIMAL
    assert found.distance[0] == pytest.approx(0.5)


@pytest.mark.parametrize("nearer", [0, 1])
@pytest.mark.parametrize("squared", [False, True])
def test_mahalanobis_tells_tiny_changes_apart(nearer: int, squared: bool) -> None:
    threshold = np.full(2, 3e-9)
    threshold[nearer] = 1e-9
    distance = Mahalanobis(np.eye(2), squared=squared)
    explainer = Explainer(either(*threshold), distance=distance, scale=None, bounds=(-1, 1))
    found = explainer.explain(np.zeros((1, 2)), strategy="exact")
    assert found.status[0] is Status.OPTIMAL
    assert found.distance[0] == pytest.approx(1e-18 if squared else 1e-9, rel=1e-6)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("size", [1e6, 1e9, np.inf])
def test_mahalanobis_is_proven_however_large_the_box(size: float, squared: bool) -> None:
    """The free feature follows the other one; its slope is 0 but for rounding, which must not count times the box."""
    distance = Mahalanobis(np.array([[1.0, 0.6], [0.6, 1.0]]), squared=squared)
    explainer = Explainer(either(0.5, 5.0), distance=distance, scale=None, bounds=(-size, size))
    found = explainer.explain(np.random.default_rng(0).normal(size=(50, 2)), strategy="exact")
    assert all(status is Status.OPTIMAL for status in found.status)


@pytest.mark.parametrize("size", [10.0, 100.0, 1000.0])
def test_cosine_is_proven_in_a_large_box(size: float) -> None:
    explainer = Explainer(either(0.5, 5.0), distance="cosine", scale=None, bounds=(-size, size))
    found = explainer.explain(np.random.default_rng(0).uniform(-1.0, 0.5, (50, 2)), strategy="exact")
    for status, distance in zip(found.status, found.distance, strict=True):
        assert status is Status.OPTIMAL or distance > 1 - ABSOLUTE


# The leaves of a single tree

BUNDLED: dict[str, Callable[..., Any]] = {"cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
SEPARABLE: dict[str, Callable[[Floats], Floats]] = {
    "euclidean": lambda delta: np.sqrt((delta**2).sum(axis=1)),
    "manhattan": lambda delta: np.abs(delta).sum(axis=1),
    "chebyshev": lambda delta: np.abs(delta).max(axis=1),
    "l0": lambda delta: (delta != 0).sum(axis=1).astype(np.float64),
}


@cache
def bundled(name: str) -> tuple[Floats, Any]:
    """Rows of a bundled data set, float32 values in float64, and their classes."""
    X, y = BUNDLED[name](return_X_y=True)
    return X.astype(np.float32).astype(np.float64), y


def leaf_boxes(model: DecisionTreeClassifier) -> tuple[Floats, Floats, Any]:
    """(n_leaves, d) smallest and largest values that reach each leaf once rounded to float32, and the leaf's class."""
    tree = model.tree_
    low, high, label = [], [], []

    def visit(node: int, a: Floats, b: Floats) -> None:
        if tree.children_left[node] < 0:
            low.append(a)
            high.append(b)
            label.append(model.classes_[tree.value[node][0].argmax()])
            return
        f = tree.feature[node]
        last, after = brute.beside(tree.threshold[node : node + 1], is_float32=True)
        below, above = b.copy(), a.copy()
        below[f] = min(b[f], last[0])
        above[f] = max(a[f], after[0])
        visit(tree.children_left[node], a, below)
        visit(tree.children_right[node], above, b)

    d = model.n_features_in_
    visit(0, np.full(d, -np.inf), np.full(d, np.inf))
    return np.array(low), np.array(high), np.array(label)


@pytest.mark.parametrize("distance", SEPARABLE)
@pytest.mark.parametrize("data", BUNDLED)
def test_a_single_tree_is_solved_leaf_by_leaf(data: str, distance: str) -> None:
    X, y = bundled(data)
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    low, high, label = leaf_boxes(model)
    smallest, largest = X.min(axis=0), X.max(axis=0)
    low, high = np.maximum(low, smallest), np.minimum(high, largest)
    scale = np.where(largest > smallest, largest - smallest, 1.0)
    found = Explainer(model, X, distance=distance, schema=any_number(X)).explain(X, strategy="exact")
    for row, said, status, claimed in zip(X, model.predict(X), found.status, found.distance, strict=True):
        other = (label != said) & (low <= high).all(axis=1)
        best = SEPARABLE[distance]((np.clip(row, low[other], high[other]) - row) / scale).min()
        assert status is Status.OPTIMAL
        assert claimed == pytest.approx(best, rel=RELATIVE, abs=ABSOLUTE)


# The optimum of the paper's single trees, averaged over all test rows.
PAPER = {
    "wine": {"euclidean": 0.2680, "manhattan": 0.2680},
    "heloc": {"euclidean": 0.1184, "manhattan": 0.1335},
    "compas": {"euclidean": 0.0809, "manhattan": 0.0849},
    "shopping": {"euclidean": 0.1182, "manhattan": 0.1193},
}


@pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
@pytest.mark.parametrize("data", PAPER)
def test_the_papers_single_trees(data: str, distance: str) -> None:
    folder = paper_dir()
    rows = paper_rows(folder, data, "test")
    explainer = Explainer(paper_model(folder, data, "dt"), distance=distance, scale=None, bounds=(0, 1))
    found = explainer.explain(rows, strategy="exact")
    assert all(status is Status.OPTIMAL for status in found.status)
    assert np.mean(found.distance) == pytest.approx(PAPER[data][distance], abs=5.1e-5)


# A mixed-integer program


def smallest_by_milp(question: RowQuestion, to: int) -> tuple[float, Floats]:
    """The least Manhattan distance to an answer of class `to`, and a point there, by HiGHS.

    Binary b[f, i]: the value lies in the feature's i-th piece or below. Leaves: one a tree, and all leaves under a
    split's left side together need its b, those under its right side its complement. A feature's cost is a sum of
    steps, each paid by the b it crosses. Ties count as answers here: the optimum is a lower bound, and the point tells.
    """
    forest = question.forest
    ends = [brute.pieces(question, f) for f in range(forest.n_features)]
    first = np.concatenate([[0], np.cumsum([own.shape[1] - 1 for own in ends])]).astype(int)
    n_binary, n_leaves = int(first[-1]), forest.n_leaves
    leaf_of = np.cumsum(forest.left < 0) - 1
    cost, constant = np.zeros(n_binary + n_leaves), 0.0
    rows: list[tuple[dict[int, float], float, float]] = []  # coefficients, low, high

    for f, own in enumerate(ends):
        value = np.clip(question.row[f], own[0], own[1])
        step = np.abs(value - question.row[f]) / question.scale[f]
        home = int(step.argmin())
        constant += step[home]
        for i in range(own.shape[1] - 1):  # crossing from piece i to i + 1, or back
            b = first[f] + i
            if i >= home:
                cost[b] -= step[i + 1] - step[i]
                constant += step[i + 1] - step[i]
            else:
                cost[b] += step[i] - step[i + 1]
            if i + 1 < own.shape[1] - 1:
                rows.append(({b: 1.0, b + 1: -1.0}, -np.inf, 0.0))

    for tree in range(forest.n_trees):
        begin, end = forest.tree_start[tree], forest.tree_start[tree + 1]
        leaves = leaf_of[begin:end][forest.left[begin:end] < 0]
        rows.append(({n_binary + leaf: 1.0 for leaf in leaves}, 1.0, 1.0))

    def below(node: int) -> list[int]:
        if forest.left[node] < 0:
            return [int(leaf_of[node])]
        return below(forest.left[node]) + below(forest.right[node])

    for node in np.flatnonzero(forest.left >= 0):
        f = forest.feature[node]
        n_left = int((brute.seen(forest, ends[f][1]) <= forest.threshold[node]).sum())  # pieces that go left
        left = {n_binary + leaf: 1.0 for leaf in below(forest.left[node])}
        right = {n_binary + leaf: 1.0 for leaf in below(forest.right[node])}
        if n_left == 0:
            rows.append((left, -np.inf, 0.0))
        elif n_left == ends[f].shape[1]:
            rows.append((right, -np.inf, 0.0))
        else:
            b = int(first[f]) + n_left - 1
            rows.append((left | {b: -1.0}, -np.inf, 0.0))
            rows.append((right | {b: 1.0}, -np.inf, 1.0))

    if forest.decision == "argmax":
        for other in set(range(forest.n_classes)) - {to}:
            ahead = forest.leaf_value[:, to] - forest.leaf_value[:, other]
            need = float(forest.base_score[other] - forest.base_score[to])
            rows.append(({n_binary + leaf: float(ahead[leaf]) for leaf in range(n_leaves)}, need, np.inf))
    else:
        need = float(forest.cut * forest.divisor - forest.base_score[0])
        side = (need, np.inf) if to == 1 else (-np.inf, need)
        rows.append(({n_binary + leaf: float(forest.leaf_value[leaf, 0]) for leaf in range(n_leaves)}, *side))

    matrix = lil_array((len(rows), n_binary + n_leaves))
    for i, (coefficients, _, _) in enumerate(rows):
        for j, coefficient in coefficients.items():
            matrix[i, j] = coefficient
    result = milp(
        cost,
        integrality=np.r_[np.ones(n_binary), np.zeros(n_leaves)],
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix.tocsr(), [row[1] for row in rows], [row[2] for row in rows]),
        options={"mip_rel_gap": 0.0, "time_limit": 60.0},
    )
    if result.status == 2:
        return np.inf, np.full_like(question.row, np.nan)
    assert result.status == 0, result.message
    inside = result.x[:n_binary] < 0.5
    piece = [int(inside[first[f] : first[f + 1]].sum()) for f in range(len(ends))]
    point = np.array([np.clip(question.row[f], own[0, piece[f]], own[1, piece[f]]) for f, own in enumerate(ends)])
    return float(brute.measure(question, point[None, :])[0]), point


FORESTS: dict[str, tuple[str, Any]] = {
    "forest, cancer": ("cancer", RandomForestClassifier(20, max_depth=4, random_state=0)),
    "forest, iris": ("iris", RandomForestClassifier(30, max_depth=3, random_state=0)),
    "forest, wine": ("wine", RandomForestClassifier(15, max_depth=3, random_state=0)),
    "boosting, cancer": ("cancer", GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0)),
    "boosting, wine": ("wine", GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0)),
}


@pytest.mark.parametrize("name", FORESTS)
def test_a_milp_finds_the_same_optimum(name: str) -> None:
    data, model = FORESTS[name]
    X, y = bundled(data)
    explainer = Explainer(model.fit(X, y), X, distance="manhattan")
    problem = Question(
        explainer.forest, X[:: len(X) // 3][:3].copy(), space=explainer.space, distance=explainer.distance,
        constraints=(), schema=explainer.schema, grain=np.full(X.shape[1], ANY_FLOAT, np.int8), target=None,
    ).problem()  # fmt: skip
    outcome = Exact().solve(problem, Run(n_jobs=1))
    for i, question in enumerate(brute.questions_of(problem)):
        others = [to for to in range(problem.forest.n_classes) if to != question.origin]
        optima = [smallest_by_milp(question, to) for to in others]
        smallest, point = min(optima, key=lambda found: found[0])
        assert outcome.status[i] is Status.OPTIMAL
        assert not brute.faults(question, outcome.points[i], outcome.distance[i])
        assert outcome.distance[i] >= smallest - 1e-6
        if question.flips(brute.predict(question.forest, point[None, :]))[0]:  # else a tie that is no answer
            assert outcome.distance[i] == pytest.approx(smallest, rel=1e-6, abs=1e-6)
