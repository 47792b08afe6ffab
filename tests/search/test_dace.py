"""DACE: its program against every point of its action set, its outlier factor by hand, and never below the optimum."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS, paper_dir, random_forest
from support.questions import stump
from treefocus import Auto, Dace, Explainer, Fixed, Forest, InvalidInput, Mahalanobis, Status, kernels
from treefocus.evaluation import datasets
from treefocus.evaluation.paper import BY_ID
from treefocus.evaluation.reproduce import ask
from treefocus.search.base import Run
from treefocus.search.dace import _Costs, finer_grid


def explainer_of(forest: Forest, data: Any, **options: Any) -> Explainer:
    return Explainer(forest, data, scale=None, bounds=(0.0, 1.0), distance=Mahalanobis(), **options)


def test_one_split_is_crossed_where_it_is_cheapest() -> None:
    data = np.random.default_rng(0).random((40, 2))
    found = explainer_of(stump(0.5), data).explain(np.array([[0.3, 0.6]]), strategy=Dace(0.0, steps=0))
    np.testing.assert_allclose(found.counterfactuals, [[0.5, 0.6]], atol=1e-6)
    assert found.counterfactuals[0, 0] > 0.5


def test_the_nearest_row_and_its_density_by_hand() -> None:
    # |.|_1: a-b 0.1, b-c 0.7, a-c 0.8. Nearest: a-b, b-a, c-b. Reach of c from b is 0.7, its density 1 / 0.7.
    data = np.array([[0.1, 0.1], [0.2, 0.1], [0.6, 0.4]])
    problem = _problem(stump(0.5), data, [[0.3, 0.6]])
    costs = _Costs.of(problem, 1.0, 3, seed=0)
    np.testing.assert_allclose(costs.rows, data)
    np.testing.assert_allclose(costs.reach, [0.1, 0.1, 0.7])
    np.testing.assert_allclose(costs.density, [10.0, 10.0, 1 / 0.7])
    np.testing.assert_allclose(costs.factor.T @ costs.factor, problem.distance.inverse)


def _problem(forest: Forest, data: Any, rows: Any) -> Any:
    caught = {}

    class Spy(Dace):
        def solve(self, problem: Any, run: Run) -> Any:
            caught["problem"] = problem
            return Dace(0.0, steps=0).solve(problem, run)

    explainer_of(forest, data).explain(np.array(rows), strategy=Spy())
    return caught["problem"]


def objective(costs: _Costs, start: Any, z: Any) -> float:
    """DACE's objective of a point, from its definition."""
    away = np.abs(z - costs.rows).sum(axis=1)
    nearest = np.flatnonzero(away <= away.min() + 1e-9)
    outlier = min(max(away[n], costs.reach[n]) * costs.density[n] for n in nearest)
    return float(np.abs(costs.factor @ (z - start)).sum() + costs.lambda_ * outlier)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_program_finds_the_best_of_its_action_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = random_forest(rng, n_features=2, n_trees=3, max_depth=2, spread=0.3)
    forest = Forest(**{**vars(made), "threshold": np.clip(np.abs(made.threshold), 0.05, 0.95)})
    data, rows = rng.random((30, 2)), rng.random((2, 2))
    lambda_ = float(rng.choice([0.0, 0.1, 1.0]))
    problem = _problem(forest, data, rows)
    strategy = Dace(lambda_, examples=5, steps=2, gap=0.0)
    found = strategy.solve(problem, Run(seed=1)).points
    costs = _Costs.of(problem, lambda_, 5, seed=1)
    grid = finer_grid(forest, data, 2)
    for i, row in enumerate(rows):
        values = []
        for f in range(2):
            own = slice(grid.start[f] + f, grid.start[f + 1] + f + 1)
            low, high = np.maximum(grid.low[own], 0.0), np.minimum(grid.high[own], 1.0)
            values.append(np.clip(row[f], low, high)[low <= high])
        points = np.array(list(product(*values)))
        # A class that wins by less than the program's margin, as in a tie, may be passed over.
        scores = np.sort(kernels.hard_scores(forest, points), axis=1)
        flips = kernels.predict(forest, points) != kernels.predict(forest, row[None])[0]
        flips &= scores[:, -1] - scores[:, -2] > 1e-4
        if np.isnan(found[i]).all() or not flips.any():
            assert not flips.any()
            continue
        best = min(objective(costs, row, point) for point in points[flips])
        assert objective(costs, row, found[i]) <= best + 1e-5


def test_an_outlier_costs() -> None:
    # Two ways to flip: alone at x = 0.5 (near), or among the data at y > 0.8; lambda decides.
    forest = _either(0.45, 0.8)
    rng = np.random.default_rng(1)
    data = np.concatenate([rng.uniform([0.0, 0.82], [0.05, 0.95], (30, 2)), rng.uniform(0.0, [0.05, 0.3], (30, 2))])
    explainer = Explainer(forest, data, scale=None, bounds=(0.0, 1.0), distance=Mahalanobis(covariance=np.eye(2)))
    row = np.array([[0.03, 0.2]])
    cheap = explainer.explain(row, strategy=Dace(0.0)).points[0]
    usual = explainer.explain(row, strategy=Dace(10.0)).points[0]
    assert cheap[0] > 0.45
    assert cheap[1] == 0.2
    assert usual[1] > 0.8


def _either(first: float, second: float) -> Forest:
    """yes where x > first or y > second."""
    return Forest(
        feature=np.array([0, 1, -1, -1, -1]), threshold=np.array([first, second, 0.0, 0.0, 0.0]),
        left=np.array([1, 2, -1, -1, -1]), right=np.array([4, 3, -1, -1, -1]), default_left=np.zeros(5, bool),
        tree_start=np.array([0, 5]), leaf_value=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), base_score=np.zeros(2),
        classes=np.array(["no", "yes"]), n_features=2, tree_weight=np.ones(1),
    )  # fmt: skip


def test_constraints_and_whole_numbers_hold() -> None:
    data = np.random.default_rng(0).integers(0, 10, (40, 2))
    explainer = Explainer(stump(4.5), data, scale=None, distance=Mahalanobis(), constraints=[Fixed(1)])
    found = explainer.explain(np.array([[2, 7]]), strategy=Dace(0.1))
    assert found.counterfactuals.tolist() == [[5, 7]]
    explainer = Explainer(stump(4.5), data, scale=None, distance=Mahalanobis(), constraints=[Fixed(0)])
    assert explainer.explain(np.array([[2, 7]]), strategy=Dace(0.1)).status[0] is Status.NOT_FOUND


def test_of_several_classes_the_closest_is_reached() -> None:
    forest = random_forest(np.random.default_rng(3), n_features=2, n_classes=3, spread=0.4)
    rng = np.random.default_rng(0)
    rows, data = rng.random((3, 2)), rng.random((40, 2))
    any_other = explainer_of(forest, data).explain(rows, strategy=Dace(0.0, steps=0))
    for i in range(3):
        targets = [k for k in forest.classes if k != any_other.predicted[i]]
        each = [explainer_of(forest, data).explain(rows[i : i + 1], k, strategy=Dace(0.0, steps=0)) for k in targets]
        distances = [one.distance[0] for one in each if one.has_answer[0]]
        assert any_other.has_answer[i] == bool(distances)
        if distances:
            assert any_other.distance[i] == pytest.approx(min(distances))


def test_misuse_is_said() -> None:
    with pytest.raises(InvalidInput, match="Dace needs data="):
        Explainer(stump(0.5), scale=None).explain([[0.1, 0.2]], strategy=Dace())
    with pytest.raises(InvalidInput, match="two different rows"):
        explainer_of(stump(0.5), np.full((5, 2), 0.5)).explain([[0.1, 0.2]], strategy=Dace())
    with pytest.raises(InvalidInput, match=r"Dace\.lambda_ must be a finite number of at least 0, got -1"):
        Dace(-1)
    with pytest.raises(InvalidInput, match=r"Dace\.time_limit"):
        Dace(time_limit=0)


SLOW = [pytest.param(name, marks=pytest.mark.campaign) for name in ("wine-dt", "compas-ab", "shopping-dt")]


@pytest.mark.parametrize("name", ["compas-dt", *SLOW])
def test_on_the_paper_s_models_it_is_valid_and_never_below_the_optimum(name: str) -> None:
    folder, setting = paper_dir(), BY_ID[f"{name}-mahalanobis"]
    split = datasets.load(setting.dataset, folder)
    problem = ask(setting, datasets.load_model(split, setting.model, folder), split).subset(np.arange(0, 1400, 140))
    found = Dace(0.001, time_limit=20).solve(problem, Run())
    optimum = Auto().solve(problem, Run())
    assert all(status is Status.OPTIMAL for status in optimum.status)
    share = (setting.published.baseline_found or 0) / len(split.X_test)
    assert (~np.isnan(found.distance)).mean() >= share
    assert (found.distance >= optimum.distance * (1 - 1e-9)).all()


def test_a_row_with_a_missing_value_gets_no_answer() -> None:
    data = np.random.default_rng(0).random((20, 2))
    explainer = explainer_of(stump(0.5, takes_missing=True), data)
    found = explainer.explain(np.array([[0.3, np.nan], [0.3, 0.4]]), strategy=Dace(0.0))
    assert [status.name for status in found.status] == ["NOT_FOUND", "FOUND"]


@pytest.mark.parametrize("decision", ["above", "at_least"])
def test_a_single_score_is_brought_over_its_cut(decision: Any) -> None:
    rng = np.random.default_rng(7)
    forest = random_forest(rng, n_features=2, n_trees=4, decision=decision, spread=0.4)
    data = rng.uniform(-1.0, 1.0, (60, 2))
    rows = data[:6]
    explainer = Explainer(forest, data, scale=None, distance=Mahalanobis())
    found = explainer.explain(rows, strategy=Dace(0.0))
    both = np.unique(kernels.predict(forest, data)).size == 2
    assert found.has_answer.any() == both
    answered = found.has_answer
    assert (kernels.predict(forest, found.points[answered]) != kernels.predict(forest, rows[answered])).all()
