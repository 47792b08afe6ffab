"""The question: the space, the boxes, and what counts as an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.forests import SEEDS, adversarial_rows
from support.questions import random_question, stump
from treefocus import Euclidean, Fixed, Increasing, InvalidInput, MayBeMissing, Range, kernels
from treefocus.model.forest import Floats, Forest
from treefocus.problem.problem import Examples, Problem
from treefocus.problem.question import Question
from treefocus.problem.space import Space
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER, Schema

DATA = np.array([[0.0, 10.0, 5.0], [1.0, 30.0, 5.0], [4.0, 20.0, 5.0], [3.0, np.nan, 5.0]])


# The space


def test_scale_by_range_is_the_papers_unit_cube() -> None:
    space = Space.of(DATA, "range", None, 3)
    z = space.to_z(DATA)
    np.testing.assert_allclose(np.nanmin(z, axis=0), 0.0)
    np.testing.assert_allclose(np.nanmax(z, axis=0), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(space.scale, [4.0, 20.0, 1.0])


def test_scale_by_standard_deviation() -> None:
    space = Space.of(DATA, "std", None, 3)
    np.testing.assert_allclose(space.offset, [2.0, 20.0, 5.0])
    np.testing.assert_allclose(space.scale, [np.std([0, 1, 4, 3]), np.std([10, 30, 20]), 1.0])


def test_scale_by_median_absolute_deviation_falls_back_on_the_standard_deviation() -> None:
    data = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [9.0, 8.0]])
    space = Space.of(data, "mad", None, 2)
    np.testing.assert_allclose(space.offset, [2.5, 0.0])
    np.testing.assert_allclose(space.scale, [np.median([2.5, 1.5, 1.5, 6.5]), np.std([0, 0, 0, 8])])


def test_no_scale_leaves_the_values_as_they_are() -> None:
    space = Space.of(DATA, None, None, 3)
    np.testing.assert_array_equal(space.to_z(DATA), DATA)


@pytest.mark.parametrize("scale", [[2.0, 5.0, 0.5], np.array([2, 5, 0.5], np.float32), (2, 5, 0.5)])
def test_scale_by_an_array(scale: Any) -> None:
    space = Space.of(None, scale, None, 3)
    np.testing.assert_allclose(space.to_z(np.array([[2.0, 5.0, 0.5]])), 1.0)
    np.testing.assert_allclose(Space.of(None, 4.0, None, 3).scale, 4.0)


@pytest.mark.parametrize("scale", ["range", "std", "mad"])
def test_a_constant_feature_has_scale_1(scale: str) -> None:
    assert Space.of(DATA, scale, None, 3).scale[2] == 1.0


@pytest.mark.parametrize(
    ("data", "bounds", "low", "high"),
    [
        (DATA, None, [0.0, 10.0, 5.0], [4.0, 30.0, 5.0]),
        (None, None, [-np.inf] * 3, [np.inf] * 3),
        (DATA, (0, 1), [0.0] * 3, [1.0] * 3),
        (DATA, ([0, 1, 2], 9), [0.0, 1.0, 2.0], [9.0] * 3),
        (None, (-np.inf, [1, 2, 3]), [-np.inf] * 3, [1.0, 2.0, 3.0]),
    ],
)
def test_bounds_come_from_the_user_or_the_data(data: Any, bounds: Any, low: list[float], high: list[float]) -> None:
    space = Space.of(data, None, bounds, 3)
    np.testing.assert_array_equal(space.low, low)
    np.testing.assert_array_equal(space.high, high)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scale": "minmax"}, r"^scale must be one of \('range', 'std', 'mad'\), None or an array, got 'minmax'\.$"),
        ({"scale": 0.0}, r"^scale must be finite numbers above 0, got 0\.0\.$"),
        ({"scale": [1.0, -2.0, 1.0]}, r"^scale must be finite numbers above 0, got -2\.0\.$"),
        ({"scale": [1.0, np.inf, 1.0]}, r"^scale must be finite numbers above 0, got inf\.$"),
        ({"scale": [1.0, 2.0]}, r"^scale must be .*\b3\b"),
        ({"data": None}, r"^scale='range' needs data=; without data give scale=None or an array\.$"),
        ({"bounds": 3}, r"^bounds must be \(low, high\), each a number or one a feature \(3\), got 3\.$"),
        ({"bounds": (0, 1, 2)}, r"^bounds must be \(low, high\), .* got \(0, 1, 2\)\.$"),
        ({"bounds": ([0, 1], 2)}, r"^bounds must be \(low, high\), .* got \(\[0, 1\], 2\)\.$"),
        ({"bounds": ("a", "b")}, r"^bounds must be \(low, high\), .* got \('a', 'b'\)\.$"),
        ({"bounds": (1, 0)}, r"^bounds must be a low below its high for every feature"),
        ({"bounds": (0, np.nan)}, r"^bounds must be a low below its high for every feature"),
    ],
)
def test_bad_spaces_are_refused(options: dict[str, Any], text: str) -> None:
    arguments = {"data": DATA, "scale": "range", "bounds": None, "n_features": 3} | options
    with pytest.raises(InvalidInput, match=text):
        Space.of(**arguments)


# The boxes


def ask(rows: Any, forest: Forest | None = None, **options: Any) -> Problem:
    rows = np.asarray(rows, np.float64)
    n_features = rows.shape[1]
    arguments: dict[str, Any] = {
        "space": Space.of(None, None, (0.0, 10.0), n_features),
        "distance": Euclidean().fitted(n_features, None),
        "constraints": (),
        "schema": Schema.of_names(f"x{j}" for j in range(n_features)),
        "grain": np.full(n_features, ANY_FLOAT, np.int8),
        "target": None,
    }
    return Question(forest or stump(n_features=n_features), rows, **arguments | options).problem()


def test_a_value_outside_the_domain_may_stay_or_come_closer() -> None:
    batch = ask([[-5.0, 25.0]]).batch
    np.testing.assert_array_equal(batch.low, [[-5.0, 0.0]])
    np.testing.assert_array_equal(batch.high, [[10.0, 25.0]])
    np.testing.assert_array_equal(batch.first, batch.rows)


def test_a_constraint_may_force_the_first_point_away_from_the_row() -> None:
    batch = ask([[2.0, 3.0]], constraints=[Range("x1", 5.0, 6.0)]).batch
    np.testing.assert_array_equal(batch.first, [[2.0, 5.0]])


def test_boxes_of_whole_numbers_end_on_whole_numbers_or_the_row() -> None:
    grain = np.array([INTEGER, INTEGER], np.int8)
    batch = ask([[2.0, 3.5]], grain=grain, constraints=[Range("x0", 0.3, 7.7), Increasing("x1")]).batch
    np.testing.assert_array_equal(batch.low, [[1.0, 3.5]])
    np.testing.assert_array_equal(batch.high, [[7.0, 10.0]])


def test_a_missing_value_may_stay_missing_or_become_known() -> None:
    problem = ask([[0.2, np.nan]], forest=stump(takes_missing=True))
    assert problem.has_box.tolist() == [True]
    assert problem.is_valid(np.array([[0.7, np.nan]])).tolist() == [True]
    assert problem.is_valid(np.array([[0.7, 0.0]])).tolist() == [True]
    assert problem.distance_to(np.array([[0.2, 0.0]])).tolist() == [1.0]
    np.testing.assert_allclose(problem.distance_to(np.array([[0.7, np.nan]])), [0.5])


def test_a_fixed_missing_value_stays_missing() -> None:
    problem = ask([[0.2, np.nan]], forest=stump(takes_missing=True), constraints=[Fixed("x1")])
    assert problem.has_box.tolist() == [True]
    assert problem.is_valid(np.array([[0.7, np.nan]])).tolist() == [True]
    assert problem.is_valid(np.array([[0.7, 0.0]])).tolist() == [False]


def test_a_value_becomes_missing_only_where_that_is_allowed() -> None:
    forest = stump(takes_missing=True)
    lost = np.array([[0.7, np.nan]])
    assert ask([[0.2, 1.0]], forest=forest).is_valid(lost).tolist() == [False]
    problem = ask([[0.2, 1.0]], forest=forest, constraints=[MayBeMissing("x1")])
    assert problem.is_valid(lost).tolist() == [True]
    assert problem.distance_to(np.array([[0.2, np.nan]])).tolist() == [1.0]
    with pytest.raises(InvalidInput, match="does not take missing values"):
        ask([[0.2, 1.0]], constraints=[MayBeMissing("x1")])


def test_has_box_tells_contradictions_row_by_row() -> None:
    problem = ask([[1.0, 1.0], [8.0, 1.0]], constraints=[Range("x0", 0.0, 5.0), Increasing("x0")])
    assert problem.has_box.tolist() == [True, False]


# What counts as an answer: the stump says "yes" above 0.5 in x0


@pytest.mark.parametrize(
    ("point", "grain", "valid"),
    [
        ([0.7, 3.0], ANY_FLOAT, True),
        ([0.5, 3.0], ANY_FLOAT, False),  # not flipped: 0.5 goes left
        ([0.2, 3.0], ANY_FLOAT, False),  # not moved
        ([10.1, 3.0], ANY_FLOAT, False),  # outside the domain
        ([0.7, -0.1], ANY_FLOAT, False),
        ([0.7, np.nan], ANY_FLOAT, False),
        ([np.nan, np.nan], ANY_FLOAT, False),
        ([np.inf, 3.0], ANY_FLOAT, False),
        ([0.7, 3.0], FLOAT32, False),  # 0.7 is no float32
        ([0.75, 3.0], FLOAT32, True),
        ([0.75, 3.0], INTEGER, False),
        ([1.0, 3.0], INTEGER, True),
        ([1.0, 3.5], INTEGER, False),
    ],
)
def test_is_valid_means_flipped_inside_and_on_the_grain(point: list[float], grain: int, valid: bool) -> None:
    problem = ask([[0.2, 3.0]], grain=np.full(2, grain, np.int8))
    assert problem.is_valid(np.array([point])).tolist() == [valid]


def test_an_unchanged_value_need_not_be_on_the_grain() -> None:
    problem = ask([[0.2, 3.3]], grain=np.full(2, INTEGER, np.int8))
    assert problem.is_valid(np.array([[1.0, 3.3]])).tolist() == [True]


def test_a_target_decides_what_counts_as_flipped() -> None:
    rows = [[0.2, 3.0]] * 3
    assert ask(rows, target=["no", "yes", None]).is_valid(np.array(rows)).tolist() == [True, False, False]
    flipped = np.array([[0.7, 3.0]] * 3)
    assert ask(rows, target=["no", "yes", None]).is_valid(flipped).tolist() == [False, True, True]


def inside(explainer_rows: tuple[Any, Floats], seed: int) -> tuple[Problem, Floats]:
    explainer, rows = explainer_rows
    problem = Question(
        explainer.forest,
        rows,
        space=explainer.space,
        distance=explainer.distance,
        constraints=(),
        schema=explainer.schema,
        grain=np.zeros(rows.shape[1], np.int8),
        target=None,
    ).problem()
    points = adversarial_rows(explainer.forest, np.random.default_rng(seed), len(rows), missing=0.0)
    return problem, np.where(np.isnan(rows), np.nan, points)


@given(SEEDS)
def test_valid_is_the_hard_forests_word_and_the_box(seed: int) -> None:
    problem, points = inside(random_question(seed), seed)
    changes_class = kernels.predict(problem.forest, points) != kernels.predict(problem.forest, problem.batch.rows)
    in_box = ((points >= problem.batch.low) & (points <= problem.batch.high)) | np.isnan(points)
    all_missing = np.isnan(problem.batch.rows).all(axis=1)
    np.testing.assert_array_equal(problem.is_valid(points), changes_class & in_box.all(axis=1) & ~all_missing)


@given(SEEDS)
def test_a_subset_asks_the_same_of_fewer_rows(seed: int) -> None:
    problem, points = inside(random_question(seed), seed)
    chosen = np.random.default_rng(seed).permutation(len(problem))[:7]
    part = problem.subset(chosen)
    assert len(part) == len(chosen)
    np.testing.assert_array_equal(part.is_valid(points[chosen]), problem.is_valid(points)[chosen])
    np.testing.assert_array_equal(part.distance_to(points[chosen]), problem.distance_to(points)[chosen])


# Training rows


def test_examples_of_explainers_in_turn_are_the_same_again() -> None:
    forest, sets = stump(), [np.full((2, 2), float(k)) for k in range(12)]
    first = [Examples.of(forest, rows) for rows in sets[:4]]
    assert all(Examples.of(forest, rows) is one for rows, one in zip(sets[:4], first, strict=True))
    assert all(one.rows is rows for rows, one in zip(sets[:4], first, strict=True))
    for rows in sets[4:]:
        Examples.of(forest, rows)
    again = Examples.of(forest, sets[0])  # not all are kept
    assert again is not first[0]
    np.testing.assert_array_equal(again.answer, first[0].answer)
