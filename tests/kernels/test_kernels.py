"""Kernels: the compiled ones and their NumPy twins, against each other and against first principles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.forests import SEEDS, adversarial_rows, forests_with_rows, random_forest
from support.small_problems import small_problem
from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.kernels import reference
from treefocus.kernels.inputs import Batch, Choices, CompiledDistance, Descent, Lists, Metric, SoftForest
from treefocus.kernels.rules import Rules
from treefocus.model.forest import Decision, Floats, Forest, Ints
from treefocus.model.grid import Grid
from treefocus.model.variants import variant
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER

BACKENDS = pytest.mark.parametrize("backend", [kernels, reference], ids=["compiled", "reference"])


# The model itself.


def scores_by_hand(forest: Forest, row: Floats) -> Floats:
    """Walk every tree by comparing floats, as the Forest's docstring says."""
    seen = row.astype(forest.input_dtype).astype(np.float64)
    leaf_number = np.cumsum(forest.left < 0) - 1
    scores = forest.base_score.copy()
    for root in forest.tree_start[:-1]:
        node = root
        while forest.left[node] >= 0:
            value = seen[forest.feature[node]]
            goes_left = forest.default_left[node] if np.isnan(value) else value <= forest.threshold[node]
            node = forest.left[node] if goes_left else forest.right[node]
        scores += forest.leaf_value[leaf_number[node]]
    return scores / forest.divisor


@BACKENDS
@given(case=forests_with_rows())
def test_scores_are_those_of_a_walk_by_hand(backend: ModuleType, case: tuple[Forest, Floats]) -> None:
    forest, rows = case
    expected = np.array([scores_by_hand(forest, row) for row in rows])
    np.testing.assert_array_equal(backend.hard_scores(forest, rows), expected)


@BACKENDS
@given(case=forests_with_rows())
def test_class_comes_out_of_the_scores(backend: ModuleType, case: tuple[Forest, Floats]) -> None:
    forest, rows = case
    for row, predicted in zip(rows, backend.predict(forest, rows), strict=True):
        scores = scores_by_hand(forest, row).tolist()
        expected = {
            "argmax": scores.index(max(scores)),
            "above": int(scores[0] > forest.cut),
            "at_least": int(scores[0] >= forest.cut),
        }
        assert predicted == expected[forest.decision]


@BACKENDS
@given(SEEDS)
@settings(max_examples=10)
def test_a_score_on_either_cut_lies_between_them(backend: ModuleType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, decision="above")
    rows = adversarial_rows(forest, rng, 30)
    scores = [scores_by_hand(forest, row)[0] for row in rows]
    low, high = sorted(float(score) for score in rng.choice(scores, 2))
    between = variant(forest, decision="between", cut=low, cut_high=high)
    np.testing.assert_array_equal(backend.predict(between, rows), [low <= score <= high for score in scores])


@given(SEEDS, st.integers(1, 3))
@settings(max_examples=10)
def test_scores_do_not_depend_on_threads_or_company(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=20, max_depth=5, n_classes=n_classes + 1, takes_missing=True)
    rows = adversarial_rows(forest, rng, 700)
    scores = kernels.hard_scores(forest, rows, n_jobs=1)
    np.testing.assert_array_equal(kernels.hard_scores(forest, rows, n_jobs=2), scores)
    order = rng.permutation(700)
    np.testing.assert_array_equal(kernels.hard_scores(forest, rows[order], n_jobs=1), scores[order])
    np.testing.assert_array_equal(kernels.hard_scores(forest, rows[:1], n_jobs=1), scores[:1])


@BACKENDS
def test_no_rows_give_no_scores(backend: ModuleType) -> None:
    forest = random_forest(np.random.default_rng(0))
    assert backend.hard_scores(forest, np.empty((0, 3))).shape == (0, 2)
    assert backend.predict(forest, np.empty((0, 3))).shape == (0,)


def test_rows_need_not_be_contiguous() -> None:
    rng = np.random.default_rng(0)
    forest = random_forest(rng)
    rows = adversarial_rows(forest, rng, 40)
    np.testing.assert_array_equal(
        kernels.hard_scores(forest, np.asfortranarray(rows)[::2]), kernels.hard_scores(forest, rows[::2])
    )


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="rows has the wrong shape on axis 1"):
        kernels.hard_scores(random_forest(np.random.default_rng(0), n_features=3), np.zeros((2, 4)))


# Threads.


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_impossible_number_of_threads_is_refused(n_jobs: int) -> None:
    with pytest.raises(InvalidInput, match=f"n_jobs must be None, -1 or at least 1, got {n_jobs}"):
        kernels.n_threads(n_jobs)


def test_number_of_threads(every_core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert every_core >= 1
    without = kernels.n_threads(None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert kernels.n_threads(None) == 3
    assert kernels.n_threads(5) == 5
    for unusable in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", unusable)
        assert kernels.n_threads(None) == without


# The soft forest.


@dataclass(frozen=True)
class SoftCase:
    """Arguments of soft_loss."""

    forest: Forest
    soft: SoftForest
    z: Floats
    label: Ints
    sign: Any

    def __call__(self, backend: ModuleType, **options: Any) -> tuple[Floats, Floats]:
        loss, gradient = backend.soft_loss(self.forest, self.soft, self.z, self.label, self.sign, **options)
        return loss, gradient

    def at(self, chosen: Any) -> SoftCase:
        """The same question for some of the rows."""
        return replace(self, z=self.z[chosen], label=self.label[chosen], sign=self.sign[chosen])

    @property
    def size(self) -> float:
        """A bound on the gradient."""
        return float(self.soft.sigma * max(self.soft.tau, 1.0) * np.abs(self.soft.value).max() * self.forest.n_trees)


def soft_case(
    seed: int,
    n_classes: int,
    *,
    decision: Decision = "argmax",
    sigma: float = 2.0,
    tau: float = 1.5,
    use_softmax: bool = True,
    n_trees: int = 3,
    n_rows: int = 40,
    spread: float = 1.0,
) -> SoftCase:
    """A forest of five trees, of which `n_trees` take part, and rows with missing values."""
    rng = np.random.default_rng(seed)
    forest = random_forest(
        rng, 4, 5, 4, n_classes, decision=decision, takes_missing=True, n_thresholds=6, spread=spread
    )
    value = rng.normal(size=forest.leaf_value.shape)
    soft = SoftForest(Grid.of(forest).threshold, value, n_trees, sigma, tau, use_softmax)
    z = adversarial_rows(forest, rng, n_rows)
    label = rng.integers(0, forest.n_classes, n_rows).astype(np.int32)
    return SoftCase(forest, soft, z, label, rng.choice(np.array([-1, 1], np.int8), n_rows))


@st.composite
def soft_cases(draw: st.DrawFn, *, n_rows: int = 40, is_smooth: bool = False) -> SoftCase:
    """One score, two or more; with and without softmax; from gentle slopes to steps."""
    return soft_case(
        draw(SEEDS),
        draw(st.integers(2, 4)),
        decision=draw(st.sampled_from(["argmax", "above"])),
        sigma=draw(st.sampled_from([0.5, 3.0] if is_smooth else [0.5, 3.0, 100.0, 1e4])),
        tau=draw(st.sampled_from([0.2, 1.0, 4.0])),
        use_softmax=draw(st.booleans()),
        n_trees=draw(st.integers(0, 6)),
        n_rows=n_rows,
        spread=draw(st.sampled_from([0.05, 1.0] if is_smooth else [0.05, 1.0, 1e3, 1e6])),
    )


@given(soft_cases())
@settings(max_examples=150)
def test_soft_loss_is_the_references(case: SoftCase) -> None:
    loss, gradient = case(kernels)
    expected_loss, expected_gradient = case(reference)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-13 * case.size)


@BACKENDS
@given(case=soft_cases(n_rows=12, is_smooth=True))
def test_gradient_meets_finite_differences(backend: ModuleType, case: SoftCase) -> None:
    _, gradient = case(backend)
    step = 1e-5
    for f in range(case.forest.n_features):
        up, down = (case.z + side * step * (np.arange(4) == f) for side in (1, -1))
        slope = (replace(case, z=up)(reference)[0] - replace(case, z=down)(reference)[0]) / (2 * step)
        is_missing = np.isnan(case.z[:, f])
        np.testing.assert_array_equal(gradient[is_missing, f], 0.0)
        np.testing.assert_allclose(gradient[~is_missing, f], slope[~is_missing], rtol=1e-6, atol=1e-8 * case.size)


@BACKENDS
@given(case=soft_cases())
def test_leaving_a_class_is_the_opposite_of_reaching_it(backend: ModuleType, case: SoftCase) -> None:
    loss, gradient = case(backend)
    other_loss, other_gradient = replace(case, sign=-case.sign)(backend)
    np.testing.assert_allclose(other_loss, 1.0 - loss, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other_gradient, -gradient, rtol=1e-9, atol=1e-13 * case.size)


@BACKENDS
@pytest.mark.parametrize("decision", ["argmax", "above"])
def test_steep_slopes_become_the_hard_forest(backend: ModuleType, decision: Decision) -> None:
    for seed in range(10):
        case = soft_case(seed, 3, decision=decision, sigma=1e12, tau=60.0, n_trees=5)
        z = np.random.default_rng(1_000 + seed).normal(size=case.z.shape)
        forest = replace(
            case.forest, leaf_value=case.soft.value, base_score=np.zeros(case.forest.n_outputs), cut=0.0, divisor=1.0
        )
        predicted = reference.predict(forest, z)
        loss, _ = replace(case, z=z, label=predicted, sign=np.ones(len(z), np.int8))(backend)
        assert (loss >= 1.0 / forest.n_classes).all()


@given(soft_cases(n_rows=100))
@settings(max_examples=30)
def test_soft_loss_does_not_depend_on_threads_or_company(case: SoftCase) -> None:
    loss, gradient = case(kernels, n_jobs=1)
    order = np.random.default_rng(0).permutation(100)
    alone = [case.at([i])(kernels, n_jobs=1) for i in (0, 7, 99)]
    for same_loss, same_gradient, rows in (
        (*case(kernels, n_jobs=2), np.arange(100)),
        (*case.at(order)(kernels, n_jobs=2), order),
        (*case.at(order[:37])(kernels, n_jobs=1), order[:37]),
        (*(np.concatenate(parts) for parts in zip(*alone, strict=True)), np.array([0, 7, 99])),
    ):
        np.testing.assert_array_equal(same_loss, loss[rows])
        np.testing.assert_array_equal(same_gradient, gradient[rows])


# The descent.


@dataclass(frozen=True)
class LocalDistance:
    """The compiled core's distances once more, from their formulas; a missing value counts for nothing."""

    compiled: CompiledDistance

    def _delta(self, z: Floats, y: Floats) -> Floats:
        return np.where(np.isnan(z), 0.0, y - z)

    def value(self, z: Floats, y: Floats) -> Floats:
        delta, weight = self._delta(z, y), self.compiled.weight
        match self.compiled.metric:
            case Metric.EUCLIDEAN:
                return np.sqrt((weight * delta**2).sum(axis=1))
            case Metric.MANHATTAN:
                return (weight * np.abs(delta)).sum(axis=1)
            case Metric.COSINE:
                zz, yy, zy = self._products(z, y)
                return np.maximum(0.0, 1.0 - zy / np.sqrt(zz * yy))
        squared = np.maximum(((delta @ self.compiled.inverse) * delta).sum(axis=1), 0.0)
        return np.sqrt(squared) if self.compiled.metric == Metric.MAHALANOBIS else squared

    def gradient(self, z: Floats, y: Floats) -> Floats:
        delta, weight = self._delta(z, y), self.compiled.weight
        match self.compiled.metric:
            case Metric.EUCLIDEAN:
                return weight * delta / np.sqrt((weight * delta**2).sum(axis=1, keepdims=True) + 1e-10)
            case Metric.MANHATTAN:
                return weight * np.sign(delta)
            case Metric.COSINE:
                zz, yy, zy = (product[:, None] for product in self._products(z, y))
                slope = weight * (zy / yy * y - z) / np.sqrt(zz * yy)
                return np.where(np.isnan(z), 0.0, slope)
        slope = np.where(np.isnan(z), 0.0, np.where(np.isnan(z), 0.0, delta + 1e-10) @ self.compiled.inverse)
        if self.compiled.metric == Metric.MAHALANOBIS_SQUARED:
            return 2.0 * slope
        return slope / np.sqrt(np.maximum((delta * slope).sum(axis=1, keepdims=True), 0.0) + 1e-10)

    def _products(self, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        z, y = np.where(np.isnan(z), 0.0, z), np.where(np.isnan(z), 0.0, y)
        weight = self.compiled.weight
        return (weight * z * z).sum(axis=1), (weight * y * y).sum(axis=1), (weight * z * y).sum(axis=1)


@dataclass(frozen=True)
class Question:
    """Arguments of descend."""

    forest: Forest
    soft: SoftForest
    distance: CompiledDistance
    descent: Descent
    batch: Batch

    def compiled(self, **options: Any) -> tuple[Floats, Floats]:
        return kernels.descend(self.forest, self.soft, self.distance, self.descent, self.batch, **options)

    def by_reference(self, **options: Any) -> tuple[Floats, Floats]:
        distance = LocalDistance(self.distance)
        return reference.descend(self.forest, self.soft, distance, self.descent, self.batch, **options)


def question(
    seed: int,
    metric: Metric = Metric.EUCLIDEAN,
    *,
    n_classes: int = 2,
    n_rows: int = 30,
    iterations: int = 30,
    missing: float = 0.1,
    is_grained: bool = True,
    decision: Decision = "argmax",
) -> Question:
    """Rows to move in a box, over columns of any floats, float32 values and integers, some of them fixed."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 4, 6, 3, n_classes, decision=decision, takes_missing=True, n_thresholds=5, spread=3.0)
    grain = np.array([ANY_FLOAT, FLOAT32, INTEGER, ANY_FLOAT] if is_grained else [ANY_FLOAT] * 4, np.int8)
    offset, scale = rng.normal(size=4), rng.uniform(0.5, 8.0, 4)
    rows = on_grain(rng.normal(0.0, 3.0, (n_rows, 4)), grain)
    rows[rng.random(rows.shape) < missing] = np.nan
    low, high = rows - rng.integers(0, 12, rows.shape), rows + rng.integers(0, 12, rows.shape)
    low, high = (np.where(rng.random(rows.shape) < 0.3, side * np.inf, end) for side, end in ((-1, low), (1, high)))
    origin = reference.predict(forest, rows)
    other = ((origin + rng.integers(1, forest.n_classes, n_rows)) % forest.n_classes).astype(np.int32)
    grid = Grid.of(forest)
    column = np.repeat(np.arange(4), np.diff(grid.start))
    root = rng.normal(size=(4, 4))
    return Question(
        forest,
        SoftForest((grid.threshold - offset[column]) / scale[column], forest.leaf_value, 6, 4.0, 2.0),
        CompiledDistance(metric, rng.uniform(0.5, 2.0, 4), root @ root.T + np.eye(4)),
        Descent(0.05, 0.07, iterations, gradient_scale=1.0 if seed % 2 else 1.0 / n_rows),
        Batch(
            rows, on_grain(low, grain), on_grain(high, grain), offset, scale, grain, origin,
            np.where(rng.random(n_rows) < 0.5, other, -1).astype(np.int32), rows,
            Choices.none(n_rows), Lists.none(4), Rules(),
        ),
    )  # fmt: skip


def on_grain(values: Floats, grain: Any) -> Floats:
    """The values as their columns may hold them."""
    values = np.where(grain == FLOAT32, values.astype(np.float32).astype(np.float64), values)
    return np.where(grain == INTEGER, np.rint(values), values)


def assert_answers(asked: Question, best: Floats, best_distance: Floats) -> None:
    """Every point is flipped, in its box and on its grain, at the distance named; or there is none."""
    is_found = np.isfinite(best_distance)
    assert np.isnan(best[~is_found]).all()
    assert (best_distance[~is_found] == np.inf).all()
    batch, points = asked.batch.subset(np.flatnonzero(is_found)), best[is_found]
    assert batch.is_flipped(kernels.predict(asked.forest, points)).all()
    assert batch.is_allowed(points).all()
    np.testing.assert_array_equal(np.isnan(points), np.isnan(batch.rows))
    np.testing.assert_array_equal(np.where(points == batch.rows, points, on_grain(points, batch.grain)), points)
    measured = LocalDistance(asked.distance).value(batch.start, batch.to_z(points))
    np.testing.assert_allclose(best_distance[is_found], measured, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("seed", [1, 3, 4, 5, 6, 8])
def test_descent_is_the_references(metric: Metric, seed: int) -> None:
    asked = question(seed, metric, n_classes=2 + seed % 3, is_grained=seed % 2 == 0)
    best, best_distance = asked.compiled()
    expected, expected_distance = asked.by_reference()
    assert 5 < np.isfinite(expected_distance).sum() < 30
    np.testing.assert_allclose(best_distance, expected_distance, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(best, expected, rtol=1e-9, atol=1e-9)


@given(SEEDS, st.sampled_from(Metric), st.integers(2, 4), st.sampled_from(["argmax", "above", "at_least"]))
def test_answers_are_flipped_and_allowed(seed: int, metric: Metric, n_classes: int, decision: Decision) -> None:
    asked = question(seed, metric, n_classes=n_classes, decision=decision)
    assert_answers(asked, *asked.compiled())


@given(SEEDS, st.sampled_from(Metric))
@settings(max_examples=15)
def test_answers_of_the_reference_are_flipped_and_allowed(seed: int, metric: Metric) -> None:
    asked = question(seed, metric, n_rows=10)
    assert_answers(asked, *asked.by_reference())


@pytest.mark.parametrize("run", [Question.compiled, Question.by_reference], ids=["compiled", "reference"])
@given(seed=SEEDS)
@settings(max_examples=20)
def test_answers_from_another_start_are_allowed(run: Any, seed: int) -> None:
    asked = question(seed, n_rows=10, iterations=2)
    shift = np.random.default_rng(seed).normal(0.0, 4.0, asked.batch.rows.shape)
    first = np.clip(asked.batch.rows + shift, asked.batch.low, asked.batch.high)
    asked = replace(asked, batch=replace(asked.batch, first=first))
    assert_answers(asked, *run(asked))


@given(SEEDS, st.sampled_from(Metric))
@settings(max_examples=20)
def test_descent_does_not_depend_on_threads_or_company(seed: int, metric: Metric) -> None:
    asked = question(seed, metric, n_rows=150, n_classes=3)
    best, best_distance = asked.compiled(n_jobs=1)
    order = np.random.default_rng(seed).permutation(150)
    for chosen, n_jobs in ((np.arange(150), 2), (order, 2), (order[:11], 1), (order[:1], 1)):
        part = replace(asked, batch=asked.batch.subset(chosen))
        same, same_distance = part.compiled(n_jobs=n_jobs)
        np.testing.assert_array_equal(same, best[chosen])
        np.testing.assert_array_equal(same_distance, best_distance[chosen])


@pytest.mark.parametrize("run", [Question.compiled, Question.by_reference], ids=["compiled", "reference"])
def test_trace_is_the_best_distance_so_far(run: Any) -> None:
    asked = question(0, n_rows=20)
    trace = np.full((20, 30), np.nan)
    _, best_distance = run(asked, trace=trace)
    np.testing.assert_array_equal(trace[:, -1], best_distance)
    assert (trace[:, 1:] <= trace[:, :-1]).all()
    short = replace(asked, descent=replace(asked.descent, iterations=10))
    np.testing.assert_array_equal(trace[:, 9], run(short)[1])


def test_an_error_in_progress_stops_the_descent() -> None:
    asked = question(0, n_rows=2, iterations=100_000_000)

    def fail(n_done: int) -> None:
        raise KeyboardInterrupt(n_done)

    with pytest.raises(KeyboardInterrupt):
        asked.compiled(progress=fail)


def test_no_rows_need_no_descent() -> None:
    asked = question(0)
    nobody = replace(asked, batch=asked.batch.subset(np.arange(0)))
    best, best_distance = nobody.compiled()
    assert best.shape == (0, 4)
    assert best_distance.shape == (0,)


@pytest.mark.parametrize("seed", range(40))
def test_nearest_examples_are_the_references(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = small_problem(seed, "euclidean", n_rows=6)
    examples = adversarial_rows(problem.forest, rng, 60)
    answer = kernels.predict(problem.forest, examples)
    for n_wanted in (1, 10, 100):
        found = kernels.nearest(problem.forest, problem.batch, examples, answer, n_wanted, n_jobs=1)
        expected = reference.nearest(problem.batch, examples, answer, n_wanted)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            found, kernels.nearest(problem.forest, problem.batch, examples, answer, n_wanted, 2)
        )
