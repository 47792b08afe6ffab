"""Numbers that lie a step apart: as people write them, and without a list."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from treefocus import Explainer, Feature, Schema
from treefocus.schema.steps import StepColumns, Steps

STEPS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "5", "12", "100", "0.000001", "2.5")


@given(step=st.sampled_from(STEPS), k=st.integers(-(10**9), 10**9), begin=st.integers(-40, 40))
def test_every_multiple_is_the_float_that_its_decimals_are_read_as(step: str, k: int, begin: int) -> None:
    start = Decimal(begin) * Decimal(step) / 2
    written = start + k * Decimal(step)
    steps, value = Steps.of(float(step), float(start)), np.array([float(written)])
    assert steps.down(value)[0] == steps.up(value)[0] == steps.nearest(value)[0] == float(written)


@given(
    step=st.sampled_from(STEPS),
    value=st.floats(-1e9, 1e9, allow_nan=False),
    is_single=st.booleans(),
)
def test_the_next_below_and_above_enclose_a_value_with_nothing_between(
    step: str, value: float, is_single: bool
) -> None:
    steps = Steps.of(float(step), is_single=is_single)
    below, above = steps.down(np.array([value]))[0], steps.up(np.array([value]))[0]
    assert below <= value <= above
    if is_single:
        assert below == np.float32(below)
        assert above == np.float32(above)
        gap = max(Fraction(step), Fraction(float(np.spacing(np.float32(abs(value))))))
        assert Fraction(above) - Fraction(below) <= 2 * gap
    else:
        first = Fraction(value) // Fraction(step)
        written = {float((first + k) * Fraction(step)) for k in (-1, 0, 1, 2)}
        assert below == max(one for one in written if one <= value)
        assert above == min(one for one in written if one >= value)


@given(step=st.sampled_from(STEPS), begin=st.integers(-50, 50))
def test_whole_numbers_among_the_steps(step: str, begin: int) -> None:
    start = Decimal(begin) / 4
    steps = Steps.of(float(step), float(start))
    written = {start + k * Decimal(step) for k in range(-300, 300)} if Decimal(step) >= Decimal("0.01") else set()
    whole = steps.whole
    expected = {int(one) for one in written if one == int(one)}
    if whole is None:
        assert not expected
    elif written:
        low, high = min(written), max(written)
        held = {int(one) for one in whole.at(np.arange(-700.0, 700.0)) if low <= one <= high}
        assert held == expected


def test_missing_and_infinite_values_stay_what_they_are() -> None:
    given_values = np.array([np.nan, np.inf, -np.inf, 1e300])
    for steps in (Steps.of(0.01), Steps.of(0.01, is_single=True)):
        assert np.isnan(steps.down(given_values)[0])
        assert steps.down(given_values)[1:3].tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev", "l0", "mahalanobis", "cosine"])
@pytest.mark.parametrize("step", [0.25, 0.1, 3.0])
def test_steps_answer_as_a_list_of_them_does(distance: str, step: float) -> None:
    rng = np.random.default_rng(5)
    listed = tuple(Steps.of(step).at(np.arange(0.0, 25.0)).tolist())
    data = np.column_stack([rng.choice(listed, 200), rng.integers(0, 9, 200), rng.normal(size=200)])
    labels = (data[:, 0] / step + data[:, 1] + data[:, 2] > 16).astype(int)
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(data, labels)
    others = [Feature("b", "integer"), Feature("c")]
    rows = data[:20].copy()
    rows[::3, 0] += 0.013  # a value beside the steps may stay
    found = []
    for own in (Feature("a", "step", step=step), Feature("a", values=listed)):
        explainer = Explainer(model, data, distance=distance, schema=Schema([own, *others]))
        found.append(explainer.explain(rows, time_limit=30))
    by_step, by_list = found
    assert [one.name for one in by_step.status] == [one.name for one in by_list.status]
    np.testing.assert_allclose(by_step.distance, by_list.distance, rtol=1e-8)
    moved = by_step.points[by_step.has_answer, 0] != rows[by_step.has_answer, 0]
    assert np.isin(by_step.points[by_step.has_answer, 0][moved], listed).all()


def test_a_guessed_schema_always_works() -> None:
    rng = np.random.default_rng(0)
    money = np.round(rng.uniform(0, 1e6, 400), 2)
    data = np.column_stack([money, rng.integers(0, 5, 400)])
    model = RandomForestClassifier(20, random_state=0).fit(data, money + 1e5 * data[:, 1] > 6e5)
    schema = Schema.infer(data)
    assert schema.features[0].step == 0.01
    found = Explainer(model, data, schema=schema).explain(data[:10])
    assert found.has_answer.all()
    cents = found.points[:, 0]
    assert (np.round(cents, 2) == cents).all()


@given(
    step=st.sampled_from(STEPS),
    numbers=st.lists(st.floats(-1e9, 1e9, allow_nan=False) | st.sampled_from([1e300, -1e18]), min_size=1, max_size=5),
    is_single=st.booleans(),
)
def test_columns_hold_what_is_nearest_to_itself(step: str, numbers: list[float], is_single: bool) -> None:
    columns = StepColumns.from_numbers(Steps.of(float(step), is_single=is_single).numbers[None])
    asked = np.array(numbers)[:, None]
    nearest = columns.nearest(asked)
    every = np.concatenate([asked, nearest, np.nextafter(nearest, np.inf)])
    np.testing.assert_array_equal(columns.hold(every), columns.nearest(every) == every)
    assert columns.hold(nearest).all()
