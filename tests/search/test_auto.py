"""Auto: as good as Focus at least, honest about what it has proven, and an answer however little time there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from support import brute
from support.examples import forests
from support.forests import SEEDS
from support.judge import check
from support.questions import random_question, stump
from support.small_problems import DISTANCES, small_problem
from treefocus import Auto, Euclidean, Exact, Explainer, Focus, Forest, Mahalanobis, Status, kernels
from treefocus.model.forest import Floats
from treefocus.problem.problem import Examples, Problem
from treefocus.problem.question import Question
from treefocus.search import Run, auto

many = forests(4)
ONE = Run(n_jobs=1)


class OwnDistance:
    """A user's own: squared differences."""

    def value(self, z: Floats, y: Floats) -> Floats:
        return np.nansum((y - z) ** 2, axis=1)

    def gradient(self, z: Floats, y: Floats) -> Floats:
        return np.nan_to_num(2.0 * (y - z))


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_auto_is_never_farther_than_focus(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    auto, focus = Auto().solve(problem, ONE), Focus(iterations=300).solve(problem, ONE)
    for i, question in enumerate(brute.questions_of(problem)):
        if np.isfinite(focus.distance[i]):
            assert auto.distance[i] <= focus.distance[i] * (1 + 1e-8) + 1e-10, brute.show(question)


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_without_a_proof_nothing_is_called_more_than_it_is(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    check(problem, Auto(prove=False).solve(problem, ONE), is_finished=False)


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_hardly_any_time_still_gives_valid_points_and_honest_bounds(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    check(problem, Auto().solve(problem, replace(ONE, time_limit=1e-4)), is_finished=False)
    check(problem, Auto(time_limit=1e-6).solve(problem, ONE), is_finished=False)


@many
@given(seed=SEEDS)
def test_training_rows_to_start_from_change_no_claim(seed: int) -> None:
    names = list(DISTANCES)
    bare = small_problem(seed, names[seed % len(names)])
    problem = replace(bare, examples=Examples.of(bare.forest, np.nan_to_num(small_rows(bare, seed))))
    check(problem, Auto().solve(problem, ONE), is_finished=True)
    check(problem, Auto(prove=False).solve(problem, ONE), is_finished=False)


def small_rows(problem: Problem, seed: int) -> Floats:
    """Rows around the problem's own."""
    rows = np.repeat(problem.batch.rows, 10, axis=0)
    return rows + np.random.default_rng(seed).normal(0.0, 2.0, rows.shape) * problem.batch.scale


@pytest.mark.parametrize("seed", range(8))
def test_a_users_own_distance_is_found_without_a_claim(seed: int) -> None:
    explainer, rows = random_question(seed, n_rows=10, distance=OwnDistance())
    found = explainer.explain(rows)
    for i, status in enumerate(found.status):
        assert status in (Status.FOUND, Status.NOT_FOUND, Status.INVALID)
        if status is Status.FOUND:
            assert found.lower_bound[i] == 0.0
            assert found.outcome[i] != found.predicted[i]
    assert any(status is Status.FOUND for status in found.status)


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev", "l0", "cosine", "mahalanobis"])
def test_a_model_that_says_the_same_everywhere_has_no_answer(distance: str) -> None:
    same = stump(leaf_value=[[1.0, 0.0], [1.0, 0.0]])
    rows = np.random.default_rng(0).uniform(0.0, 1.0, (20, 2))
    found = Explainer(same, rows, distance=distance).explain(rows)
    assert all(status is Status.INFEASIBLE for status in found.status)
    assert np.isinf(found.lower_bound).all()
    assert np.isnan(found.points).all()


def test_two_leaves_that_no_value_tells_apart_have_no_answer() -> None:
    """Both thresholds round to the same float32: the leaf between them is empty."""
    between = Forest(
        feature=[0, 0, -1, -1, -1],
        threshold=[0.1 + 1e-10, 0.1, 0.0, 0.0, 0.0],
        left=[1, 2, -1, -1, -1],
        right=[4, 3, -1, -1, -1],
        default_left=[False] * 5,
        tree_start=[0, 5],
        leaf_value=[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        base_score=[0.0, 0.0],
        classes=["no", "yes"],
        n_features=1,
        input_dtype="float32",
    )
    rows = np.array([[0.0], [0.1], [0.5]])
    found = Explainer(between, scale=None).explain(rows)
    assert all(status is Status.INFEASIBLE for status in found.status)


@pytest.mark.parametrize("seed", range(6))
def test_several_classes_through_the_front_door(seed: int) -> None:
    """Every row to every class: what comes back is that class, the closest of all is the answer to no target."""
    explainer, rows = random_question(seed, n_rows=12, distance="manhattan")
    forest = explainer.forest
    any_other = explainer.explain(rows)
    nearest = np.full(len(rows), np.inf)
    for target in forest.classes:
        found = explainer.explain(rows, target=target)
        assert all(status in (Status.OPTIMAL, Status.INFEASIBLE, Status.INVALID) for status in found.status)
        answered = np.array([status is Status.OPTIMAL for status in found.status])
        assert (found.outcome[answered] == target).all()
        assert (forest.classes[kernels.predict(forest, found.points[answered])] == target).all()
        counts = answered & (found.predicted != target)
        nearest[counts] = np.minimum(nearest[counts], found.distance[counts])
    for i, status in enumerate(any_other.status):
        if status is Status.OPTIMAL:
            assert any_other.distance[i] == pytest.approx(nearest[i], rel=1e-7, abs=1e-9)
        else:
            assert nearest[i] == np.inf


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", [Euclidean(), Mahalanobis(np.array([[1.0, 0.6], [0.6, 1.0]]))])
def test_a_box_without_sides_is_searched_to_its_end(seed: int, distance: Euclidean | Mahalanobis) -> None:
    """No data, no bounds: every feature may go anywhere."""
    rows = np.random.default_rng(seed).normal(size=(10, 2))
    explainer = Explainer(stump(), distance=distance, scale=None)
    found = explainer.explain(rows)
    assert all(status is Status.OPTIMAL for status in found.status)
    problem = Question(
        explainer.forest, rows, space=explainer.space, distance=explainer.distance, constraints=(),
        schema=explainer.schema, grain=np.zeros(2, np.int8), target=None,
    ).problem()  # fmt: skip
    for i, question in enumerate(brute.questions_of(problem)):
        assert found.distance[i] == pytest.approx(brute.optimum(question), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_few_thresholds_need_no_seeds_and_prove_the_same(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    plain = Auto(time_limit=None).solve(problem, ONE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "FEW_THRESHOLDS", -1)
        with_seeds = Auto(time_limit=None).solve(problem, ONE)
    check(problem, with_seeds, is_finished=True)
    assert plain.status.tolist() == with_seeds.status.tolist()
    np.testing.assert_allclose(plain.distance, with_seeds.distance, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("distance", ["manhattan", "mahalanobis"])
def test_without_a_clock_the_answers_hang_on_the_boxes_alone(distance: str) -> None:
    rows, labels = make_classification(600, 12, n_informative=10, random_state=3)
    model = RandomForestClassifier(60, max_depth=7, random_state=3).fit(rows, labels)
    explainer = Explainer(model, rows, distance=distance)
    strategy = Auto(time_limit=None, node_limit=200)
    alone, together = (explainer.explain(rows[:20], strategy=strategy, n_jobs=n_jobs) for n_jobs in (1, 3))
    parts = [explainer.explain(rows[i : i + 5], strategy=strategy) for i in range(0, 20, 5)]
    assert Status.BOUNDED in alone.status.tolist()
    for name in ("points", "lower_bound", "distance"):
        assert getattr(alone, name).tobytes() == getattr(together, name).tobytes()
        assert getattr(alone, name).tobytes() == b"".join(getattr(part, name).tobytes() for part in parts)


def test_without_room_for_the_search_nothing_is_claimed() -> None:
    problem = small_problem(3, "euclidean", n_rows=6)
    needed = kernels.memory_of(problem.forest)
    assert 0 < needed.descent < needed.search
    with pytest.warns(UserWarning, match=r"^No proof was tried: this model takes .* GB, and memory_limit is .* GB\.$"):
        found = Exact(memory_limit=needed.search / 2).solve(problem, Run(n_jobs=2))
    assert set(found.status) == {Status.NOT_FOUND}
    assert (found.lower_bound == 0).all()
    with pytest.warns(UserWarning, match="No proof was tried"):
        found = Auto(memory_limit=needed.search / 2).solve(problem, Run(n_jobs=2))
    assert set(found.status) <= {Status.BOUNDED, Status.NOT_FOUND}
    assert problem.is_valid(found.points)[found.has_answer].all()
    assert (found.lower_bound == 0).all()


def test_room_for_one_thread_proves_as_much_as_room_for_many() -> None:
    for seed in range(5):
        problem = small_problem(seed, "manhattan", n_rows=8)
        tight = kernels.memory_of(problem.forest).search * 1.01
        narrow = Exact(memory_limit=tight).solve(problem, Run(n_jobs=2))
        wide = Exact().solve(problem, Run(n_jobs=2))
        np.testing.assert_array_equal(narrow.status, wide.status)
        np.testing.assert_allclose(narrow.distance, wide.distance, rtol=1e-9)
