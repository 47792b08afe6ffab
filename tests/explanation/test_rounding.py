"""Short numbers: they must not change what the model says, nor leave the box."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.forests import SEEDS, adversarial_rows
from support.questions import random_question, stump
from treefocus import Explainer, kernels
from treefocus.explanation.rounding import shortest, shortest_in_cell
from treefocus.model.grid import as_input
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def n_digits(value: float) -> int:
    """Significant digits of the shortest decimal that reads back as the value."""
    return len(Decimal(repr(float(value))).normalize().as_tuple().digits)


def short(value: float, low: float, high: float, tolerance: float, *, is_float32: bool = False) -> float:
    arrays = (np.array([number]) for number in (value, low, high, tolerance))
    return float(shortest(*arrays, is_float32=np.array([is_float32]))[0])


@pytest.mark.parametrize(
    ("value", "low", "high", "tolerance", "expected"),
    [
        (0.8004202, 0.8, 0.81, 0.003, 0.8),
        (0.8004202, 0.8001, 0.81, 0.003, 0.801),
        (0.8004202, 0.8001, 0.81, 0.0005, 0.8004),
        (52013.7, 51999.0, 1e9, 100.0, 52000.0),
        (52013.7, 52000.5, 1e9, 50.0, 52010.0),
        (-3.14159, -np.inf, np.inf, 0.01, -3.14),
        (9.97, -np.inf, np.inf, 0.05, 10.0),
        (0.1 + 0.2, -np.inf, np.inf, 1e-9, 0.3),
        (1.2345e-7, 0.0, 1.0, 1e-9, 1.23e-7),
        (6.02214e23, 0.0, np.inf, 1e21, 6.02e23),
        (0.0, -1.0, 1.0, 1.0, 0.0),
        (5e-324, 0.0, 1.0, 0.0, 5e-324),
        (1.7e308, 0.0, np.inf, 0.0, 1.7e308),
        (np.inf, 0.0, np.inf, 1.0, np.inf),
    ],
)
def test_known_numbers(value: float, low: float, high: float, tolerance: float, expected: float) -> None:
    assert short(value, low, high, tolerance) == expected


@given(value=FINITE, below=FINITE, above=FINITE, share=st.floats(0, 1), is_float32=st.booleans())
def test_a_shorter_number_stays_close_and_inside_and_is_never_longer(
    value: float, below: float, above: float, share: float, is_float32: bool
) -> None:
    value = float(np.float32(value)) if is_float32 and abs(value) < 1e38 else value
    low, high = min(value, below), max(value, above)
    tolerance = min(share * abs(value), 1e300)
    number = short(value, low, high, tolerance, is_float32=is_float32)
    assert low <= number <= high
    assert abs(number - value) <= tolerance
    assert n_digits(number) <= n_digits(value)
    if is_float32 and number != value:
        assert low <= as_input(np.array([number]), "float32")[0] <= high


def test_a_number_that_float32_rounds_across_the_edge_is_not_taken() -> None:
    value = float(np.float32(0.0999))
    assert short(value, 0.0, 0.1, 0.001) == 0.1
    assert short(value, 0.0, 0.1, 0.001, is_float32=True) == 0.099  # 0.1 itself is stored as 0.10000000149
    forest = stump(0.1)
    found = Explainer(forest, np.array([[0.0, 0.0], [3.0, 1.0]])).explain(np.array([[3.0, 0.5]], np.float32))
    told = np.array([[found[0].changes[0].shown, 0.5]], np.float32).astype(np.float64)
    assert kernels.predict(forest, told).tolist() == [0]


@given(digits=st.integers(1, 10**9), exponent=st.integers(-15, 12), noise=st.floats(-1e-13, 1e-13))
def test_noise_on_a_short_number_is_removed(digits: int, exponent: int, noise: float) -> None:
    clean = float(f"{digits}e{exponent}")
    number = short(clean * (1 + noise), -np.inf, np.inf, 2e-13 * clean)
    assert n_digits(number) <= n_digits(clean)


def asked(seed: int, grain: int) -> tuple[Problem, Any]:
    """A problem of random boxes, and points in them on the grain."""
    explainer, rows = random_question(seed)
    rng = np.random.default_rng(seed)
    rows = np.rint(rows) if grain == INTEGER else as_input(rows, "float32") if grain == FLOAT32 else rows
    problem = Question(
        explainer.forest,
        rows,
        space=explainer.space,
        distance=explainer.distance,
        constraints=(),
        schema=explainer.schema,
        grain=np.full(rows.shape[1], grain, np.int8),
        target=None,
    ).problem()
    wild = adversarial_rows(explainer.forest, rng, len(rows), missing=0.0)
    batch = problem.batch
    return problem, batch.snapped(np.where(np.isnan(rows), np.nan, np.clip(wild, batch.low, batch.high)))


@pytest.mark.parametrize("grain", [ANY_FLOAT, FLOAT32, INTEGER])
@given(seed=SEEDS)
def test_shown_values_stay_in_cell_and_box_and_predict_the_same(grain: int, seed: int) -> None:
    problem, points = asked(seed, grain)
    shown = shortest_in_cell(problem, points)
    stored = as_input(shown, "float32") if grain == FLOAT32 else shown  # as they would sit in the user's table
    forest = problem.forest
    grid = kernels.grid_of(forest)
    np.testing.assert_array_equal(grid.encode(forest, stored), grid.encode(forest, points))
    np.testing.assert_array_equal(kernels.hard_scores(forest, stored), kernels.hard_scores(forest, points))
    assert problem.batch.is_allowed(stored).all()
    unchanged = points == problem.batch.rows
    np.testing.assert_array_equal(shown[unchanged], points[unchanged])
    for value, number in zip(points[~np.isnan(points)], shown[~np.isnan(points)], strict=True):
        assert n_digits(number) <= n_digits(value)
    if grain == INTEGER:
        np.testing.assert_array_equal(shown, points)


def test_rows_without_an_answer_stay_so() -> None:
    problem, points = asked(0, ANY_FLOAT)
    assert np.isnan(shortest_in_cell(problem, np.full_like(points, np.nan))).all()
