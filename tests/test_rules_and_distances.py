"""Where rules meet distances: every claim is held against all points of small problems, asked of the model itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from support.questions import any_number
from treefocus import (
    AtMost,
    Condition,
    Exact,
    Explainer,
    Feature,
    Implies,
    Linear,
    Range,
    Schema,
    Status,
    Together,
)
from treefocus.constraints.kinds import Constraint
from treefocus.model.forest import Floats
from treefocus.search.auto import Auto

DISTANCES = ["euclidean", "manhattan", "chebyshev", "l0", "cosine", "mahalanobis"]
SIDE = 7  # values a column
Rule = Callable[[Floats, Floats], Any]  # of points (n, 3) and the row: which of them obey

RULES: dict[str, tuple[list[Constraint], Rule]] = {
    "at most one": ([AtMost(1)], lambda v, x: (v != x).sum(axis=1) <= 1),
    "a sum": ([Linear({0: 1, 1: 1}, at_most=7)], lambda v, x: v[:, 0] + v[:, 1] <= 7),
    "two sums": (
        [Linear({0: 1, 1: 1}, at_most=7), Linear({1: -1, 2: 1}, at_most=0)],
        lambda v, x: (v[:, 0] + v[:, 1] <= 7) & (v[:, 2] <= v[:, 1]),
    ),
    "an equation": (
        [Linear({0: 3, 1: -1}, at_most=0), Linear({0: -3, 1: 1}, at_most=0)],
        lambda v, x: 3 * v[:, 0] == v[:, 1],
    ),
    "a sum and at most two": (
        [Linear({0: 1, 1: 1}, at_most=7), AtMost(2)],
        lambda v, x: (v[:, 0] + v[:, 1] <= 7) & ((v != x).sum(axis=1) <= 2),
    ),
    "together": ([Together(0, 2)], lambda v, x: (v[:, 0] != x[0]) == (v[:, 2] != x[2])),
    "together and a sum": (
        [Together(0, 2), Linear({0: 1, 1: -1}, at_most=1)],
        lambda v, x: ((v[:, 0] != x[0]) == (v[:, 2] != x[2])) & (v[:, 0] - v[:, 1] <= 1),
    ),
    "a condition": (
        [Implies(Condition(0, low=3), Condition(1, low=2, high=4))],
        lambda v, x: (v[:, 0] < 3) | ((v[:, 1] >= 2) & (v[:, 1] <= 4)),
    ),
}


def measured(name: str, explainer: Explainer, points: Floats, row: Floats) -> Floats:
    """(n,) the distances, from their formulas."""
    scale = explainer.space.scale
    delta = (points - row) / scale
    if name == "euclidean":
        return np.sqrt((delta**2).sum(axis=1))
    if name == "manhattan":
        return np.asarray(np.abs(delta).sum(axis=1))
    if name == "chebyshev":
        return np.asarray(np.abs(delta).max(axis=1))
    if name == "l0":
        return np.asarray((delta != 0).sum(axis=1).astype(float))
    if name == "mahalanobis":
        inverse: Any = explainer.distance
        return np.sqrt(np.maximum(np.einsum("nf,fg,ng->n", delta, inverse.inverse, delta), 0.0))
    z, y = (row - explainer.space.offset) / scale, (points - explainer.space.offset) / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = y @ z / (np.linalg.norm(y, axis=1) * np.linalg.norm(z))
    is_zero = (y == 0).all(axis=1)
    return 1.0 - np.where(is_zero, float((z == 0).all()), np.where((z == 0).all(), 0.0, np.minimum(cosine, 1.0)))


def table(seed: int) -> tuple[Floats, DecisionTreeClassifier]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, SIDE, (80, 3)).astype(float)
    X[0], X[1] = 0.0, SIDE - 1.0
    y = (X @ rng.normal(size=3) + rng.normal(size=80) > 0).astype(int)
    return X, DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("rule", RULES)
def test_whole_numbers_are_decided_and_every_claim_is_true(rule: str, distance: str) -> None:
    constraints, obeys = RULES[rule]
    grid = np.array(list(product(range(SIDE), repeat=3)), float)
    for seed in range(6):
        X, model = table(seed)
        explainer = Explainer(model, X.astype(int), distance=distance, constraints=constraints)
        rows = X[2:5]
        found = explainer.explain(rows.astype(int), strategy="exact")
        answer = model.predict(grid)
        for i, row in enumerate(rows):
            good = (answer != model.predict(row[None])[0]) & obeys(grid, row)
            if not good.any():
                assert found.status[i] is Status.INFEASIBLE
                continue
            best = measured(distance, explainer, grid[good], row).min()
            assert found.status[i] is Status.OPTIMAL, (seed, i, best)
            assert found.distance[i] == pytest.approx(best, rel=1e-7, abs=1e-9)
            assert obeys(np.asarray(found.counterfactuals)[[i]].astype(float), row)[0]


@pytest.mark.parametrize("distance", ["mahalanobis", "cosine"])
def test_at_most_one_change_has_an_answer_where_one_column_can_flip(distance: str) -> None:
    n_answers = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 9, (60, 3))
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, X @ rng.normal(size=3) > 0)
        found = Explainer(model, X, distance=distance, constraints=[AtMost(1)]).explain(X[:1])
        tried = np.repeat(X[:1], 300, axis=0)
        for f in range(3):
            tried[100 * f : 100 * (f + 1), f] = np.linspace(X[:, f].min(), X[:, f].max(), 100)
        if (model.predict(tried) != model.predict(X[:1])).any():
            n_answers += 1
            assert found.status[0] is Status.OPTIMAL
            assert (np.asarray(found.counterfactuals)[0] != X[0]).sum() == 1
    assert n_answers > 8


@pytest.mark.parametrize("distance", ["manhattan", "l0", "euclidean"])
@pytest.mark.parametrize("bounds", [None, (-np.inf, np.inf)])
def test_a_sum_without_ends_is_no_obstacle(distance: str, bounds: Any) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 9, (60, 3))
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 0] > 4.5)
        rule = Linear({0: 1, 1: 1}, at_most=float(X[0, :2].sum()))  # it may not grow; the second column may fall
        explainer = Explainer(model, scale=None, bounds=bounds, distance=distance, constraints=[rule])
        found = explainer.explain(X[:1])
        assert found.status[0].has_answer
        assert distance == "l0" or found.status[0] is Status.OPTIMAL
        answer = np.asarray(found.counterfactuals)[0]
        assert answer[:2].sum() <= X[0, :2].sum() * (1 + 1e-15)


def two_thresholds(at: float) -> DecisionTreeClassifier:
    """A tree of float32 input that says yes where both columns are above a number."""
    X = np.array([[a, b] for a in (0.0, 2.0 * at) for b in (0.0, 2.0 * at)])
    return DecisionTreeClassifier(random_state=0).fit(X, X.min(axis=1) > 0)


def test_a_condition_is_about_the_number_itself() -> None:
    # 0.48 is no float32: its cast lies above it, and the condition still holds for 0.48 itself.
    model = two_thresholds(0.3)
    rule = Implies(Condition(0, low=0.48), Condition(1, high=0.1))
    rows = np.array([[0.48, 0.0], [0.1, 0.0]])
    found = Explainer(model, scale=None, bounds=(0, 1), distance="manhattan", constraints=[rule]).explain(rows)
    for i, answer in enumerate(np.asarray(found.counterfactuals)):
        assert found.status[i] is Status.OPTIMAL
        assert model.predict(answer[None])[0]
        assert answer[0] < 0.48
    # And 0.1 itself is allowed where at most 0.1 is.
    rule = Implies(Condition(0, low=0.2), Condition(1, low=0.1, high=0.1))
    found = Explainer(model, scale=None, bounds=(0, 1), distance="manhattan", constraints=[rule]).explain(rows[1:])
    assert found.status[0] is Status.INFEASIBLE
    low = two_thresholds(0.05)
    rules = [rule, Range(0, 0.3, 0.3)]
    found = Explainer(low, scale=None, bounds=(0, 1), distance="manhattan", constraints=rules).explain([[0.3, 0.0]])
    assert found.status[0] is Status.OPTIMAL
    assert np.asarray(found.counterfactuals)[0, 1] == 0.1


def test_no_smaller_change_means_no_number_of_the_column() -> None:
    # Seconds of an epoch are far apart as float32 values: the model sees every 128th of them.
    start = 1_700_000_000.0
    X = (start + np.arange(0, 2_000_000, 1000.0))[:, None]
    model = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > start + 1_000_000)
    edge = float(model.tree_.threshold[0])
    for dtype in (float, np.int64):
        row = np.array([[np.floor(edge) - 500]]).astype(dtype)
        found = Explainer(model, X, scale=None, distance="manhattan", schema=any_number(X)).explain(row)
        seconds = np.arange(2000.0)
        flips = model.predict(row + seconds[:, None]) != model.predict(row)
        smallest = seconds[flips.argmax()]
        assert found.status[0] is Status.OPTIMAL
        assert smallest - 1 < found.distance[0] <= smallest
        if dtype is not float:
            assert found.distance[0] == smallest


def test_few_changes_are_found_where_counting_finds_them() -> None:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(100, random_state=0).fit(X, y)
    rows = X[y == 0][:6]
    few = Explainer(model, X, distance="l0").explain(rows, strategy=Auto(time_limit=None, node_limit=300))
    for n in (3, 5):
        found = Explainer(model, X, distance="manhattan", constraints=[AtMost(n)]).explain(
            rows, strategy=Auto(time_limit=None, node_limit=300)
        )
        has_few = np.array([status.has_answer for status in few.status]) & (few.distance <= n)
        assert has_few.any()
        assert all(status.has_answer for status in found.status[has_few])


@pytest.mark.parametrize("size", [1e300, 1e-310])
@pytest.mark.parametrize("distance", DISTANCES)
def test_very_large_and_very_small_numbers_are_numbers(size: float, distance: str) -> None:
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(200, 3)), -1, 1)
    y = X[:, 0] + X[:, 1] > 0
    X = X * size
    with np.errstate(over="ignore"):
        model = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    found = Explainer(model, X, distance=distance).explain(X[:5])
    assert all(status.has_answer for status in found.status)
    assert (model.predict(np.asarray(found.counterfactuals)) != model.predict(X[:5])).all()


def test_a_scale_that_squares_cannot_bear_is_refused() -> None:
    X = np.array([[0.0], [1e200]])
    model = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=1).fit(X, [0, 1])
    with pytest.raises(ValueError, match="scale must be so large that no value is more than 1e\\+140 times it"):
        Explainer(model, X, scale=None)


def test_a_step_back_forgets_nothing_under_the_largest_change() -> None:
    # Chebyshev under a sum, continuous: against a fine grid of points, none of which may be closer than what is proven.
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 1, (80, 2))
        model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, rng.random(80) < X[:, 0])
        rule = Linear({0: 1, 1: 1}, at_most=1.0)
        explainer = Explainer(model, scale=None, bounds=(0, 1), distance="chebyshev", constraints=[rule])
        found = explainer.explain(X[:3], strategy=Exact())
        a = np.linspace(0, 1, 201)
        points = np.array(list(product(a, a)))
        points = points[points.sum(axis=1) <= 1]
        said = model.predict(points)
        for i in range(3):
            flips = points[said != model.predict(X[[i]])[0]]
            closest = np.abs(flips - X[i]).max(axis=1).min() if len(flips) else np.inf
            assert found.lower_bound[i] <= closest + 1e-12
            assert found.status[i] is not Status.INFEASIBLE or closest == np.inf


def test_a_day_is_a_day() -> None:
    # "end - start <= 86400" on seconds of an epoch: three seconds more are no rounding.
    rng = np.random.default_rng(0)
    start = 1_700_000_000.0 + rng.integers(0, 10**6, 200)
    X = np.column_stack([start, start + rng.integers(0, 86_400, 200)])
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5).fit(X, X[:, 1] - X[:, 0] > 43_200)
    found = Explainer(model, X, distance="manhattan", constraints=["end - start <= 86400"],
                      schema=Schema([Feature("start"), Feature("end")])).explain(X[:30])  # fmt: skip
    answers = np.asarray(found.counterfactuals)
    has_answer = np.array([status.has_answer for status in found.status])
    assert has_answer.any()
    assert (answers[has_answer, 1] - answers[has_answer, 0] <= 86_400).all()


def test_columns_that_nearly_determine_each_other_leave_no_bound_above_an_answer() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(300, 1))
        X = np.hstack([base, base + 1e-6 * rng.normal(size=(300, 1)), rng.normal(size=(300, 1))])
        model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, base[:, 0] + X[:, 2] > 0)
        explainer = Explainer(model, X, distance="mahalanobis")
        found = explainer.explain(X[:3])
        tried = X[:3, None, :] + (X[None, :, :] - X[:3, None, :]) * rng.random((3, 300, 1))
        for i in range(3):
            flips = tried[i][model.predict(tried[i]) != model.predict(X[[i]])[0]]
            distance = measured("mahalanobis", explainer, flips, X[i])
            assert found.lower_bound[i] <= distance.min() * (1 + 1e-9)


def test_memory_is_planned_alike_for_any_number_of_threads() -> None:
    X = np.random.default_rng(0).normal(size=(400, 6))
    model = RandomForestClassifier(60, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    explainer = Explainer(model, X, distance="manhattan")
    answers = [
        explainer.explain(X[:6], strategy=Exact(node_limit=3000, memory_limit=2.2e7), n_jobs=n_jobs)
        for n_jobs in (1, 8, 16)
    ]
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0].distance, other.distance)
        np.testing.assert_array_equal(answers[0].lower_bound, other.lower_bound)


def test_together_is_about_values() -> None:
    X = np.random.default_rng(0).integers(0, 6, (100, 3))
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 0] > 2)  # the third column is in no split
    found = Explainer(model, X, distance="manhattan", constraints=[Together(0, 2)]).explain(X[:5])
    assert all(status is Status.OPTIMAL for status in found.status)
    assert ((np.asarray(found.counterfactuals) != X[:5])[:, [0, 2]]).all()


@pytest.mark.parametrize("distance", ["manhattan", "euclidean", "mahalanobis"])
def test_a_sum_of_whole_numbers_is_decided_on_large_grids(distance: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 25, (300, 3))  # 15,625 points
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, X.sum(axis=1) > 36)
    grid = np.array(list(product(range(25), repeat=3)), float)
    rule = Linear({0: 2, 1: 3, 2: -1}, at_most=17)
    explainer = Explainer(model, X, distance=distance, constraints=[rule, Range(0, 0, 24)])
    found = explainer.explain(X[:4], strategy="exact")
    good = grid @ [2, 3, -1] <= 17
    for i, row in enumerate(X[:4].astype(float)):
        flips = grid[good & (model.predict(grid) != model.predict(row[None])[0])]
        assert found.status[i] is Status.OPTIMAL
        assert found.distance[i] == pytest.approx(measured(distance, explainer, flips, row).min(), rel=1e-7)


def test_what_cannot_be_decided_is_said_with_its_reason() -> None:
    X = np.random.default_rng(0).uniform(0, 9, (100, 3))
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, X[:, 0] + X[:, 2] > 9)
    rules = [Linear({0: 1, 1: -1}, at_most=0), Linear({0: -1, 1: 1}, at_most=0)]
    found = Explainer(model, X, distance="cosine", constraints=rules).explain(X[:8])
    undecided = [one for one in found if one.status in (Status.BOUNDED, Status.NOT_FOUND)]
    assert undecided
    assert all("cannot decide" in one.reason for one in undecided)


@pytest.mark.parametrize("distance", DISTANCES[:-1])
@pytest.mark.parametrize("rules", [[], [Linear({0: 1, 1: 1}, at_most=7)], [AtMost(2)]], ids=["free", "sum", "at most"])
def test_whole_numbers_without_an_end_come_to_an_end(rules: list[Constraint], distance: str) -> None:
    X, model = table(3)
    explainer = Explainer(model, scale=None, distance=distance, constraints=rules)
    found = explainer.explain((X[2:6] * 1_000_000).astype(int), strategy=Exact(node_limit=20_000))
    assert all(status is not Status.FOUND for status in found.status)
    assert (found.lower_bound <= np.where(np.isnan(found.distance), np.inf, found.distance)).all()
