"""The grid: codes must say what comparing floats says, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.forests import forests, forests_with_rows
from treefocus.model.forest import Floats, Forest, InputDtype
from treefocus.model.grid import MISSING, Grid, as_input, floor_to, next_above

DTYPES: list[InputDtype] = ["float32", "float64"]
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.integers(-10, 10).map(float),
)


def holds(values: Floats, input_dtype: str) -> bool:
    """Whether the dtype holds every value exactly."""
    with np.errstate(over="ignore"):
        return bool((values.astype(input_dtype).astype(np.float64) == values).all())


def neighbour(value: Floats, side: float, input_dtype: str) -> Floats:
    """The dtype's next value on one side of a value it holds."""
    kind = np.dtype(input_dtype).type
    with np.errstate(over="ignore"):
        return np.nextafter(value.astype(kind), kind(side)).astype(np.float64)


@pytest.mark.parametrize("input_dtype", DTYPES)
@given(number=NUMBERS)
def test_floor_is_the_largest_value_not_above(input_dtype: InputDtype, number: float) -> None:
    value = np.array([number])
    floor = floor_to(value, input_dtype)
    assert holds(floor, input_dtype)
    assert floor <= value
    assert neighbour(floor, np.inf, input_dtype) > value
    assert not np.signbit(floor) or floor < 0  # 0 and -0 are one threshold


@pytest.mark.parametrize("input_dtype", DTYPES)
@given(number=NUMBERS)
def test_next_above_skips_nothing_but_denormals(input_dtype: InputDtype, number: float) -> None:
    value = floor_to(np.array([number]), input_dtype)
    above = next_above(value, input_dtype)
    tiny = np.finfo(np.float32).tiny
    assert holds(above, input_dtype)
    assert above > value
    is_tiny = 0 < abs(value[0]) < tiny  # a threshold among denormals: the library reads them
    assert is_tiny or above == 0 or abs(above) >= tiny
    before = neighbour(above, -np.inf, input_dtype)
    assert before <= value or (not is_tiny and abs(before) < tiny)


@pytest.mark.parametrize("input_dtype", DTYPES)
def test_largest_number_has_a_floor_and_a_next(input_dtype: InputDtype) -> None:
    largest = float(np.finfo(input_dtype).max)
    ends = np.array([-largest, largest])
    np.testing.assert_array_equal(floor_to(ends, input_dtype), ends)
    assert next_above(ends, input_dtype)[1] == np.inf


@given(forests())
def test_thresholds_of_a_feature_rise(forest: Forest) -> None:
    grid = Grid.of(forest)
    assert grid.start[0] == 0
    assert grid.start[-1] == len(grid.threshold)
    for f in range(forest.n_features):
        own = grid.threshold[grid.start[f] : grid.start[f + 1]]
        assert (np.diff(own) > 0).all()
        seen = floor_to(forest.threshold[forest.feature == f], forest.input_dtype)
        assert set(own.tolist()) == set(seen.tolist())


def assert_same_sides(forest: Forest, rows: Floats) -> None:
    """Every split decides by code as it does by comparing the value the model sees."""
    grid = Grid.of(forest)
    codes = grid.encode(forest, rows)
    seen = as_input(rows, forest.input_dtype)
    assert np.array_equal(codes == MISSING, np.isnan(rows))
    assert (grid.split[forest.left < 0] == -1).all()
    for node in np.flatnonzero(forest.left >= 0):
        f = forest.feature[node]
        is_known = ~np.isnan(rows[:, f])
        by_value = seen[is_known, f] <= forest.threshold[node]
        by_code = codes[is_known, f] <= grid.split[node] - grid.start[f]
        np.testing.assert_array_equal(by_code, by_value)


@given(forests_with_rows())
def test_a_split_decides_by_code_as_by_value(case: tuple[Forest, Floats]) -> None:
    assert_same_sides(*case)


@given(forests(), st.lists(NUMBERS | st.sampled_from([np.inf, -np.inf, -0.0]), min_size=1, max_size=20))
def test_a_split_decides_extreme_values_by_code_as_by_value(forest: Forest, numbers: list[float]) -> None:
    assert_same_sides(forest, np.tile(np.array(numbers)[:, None], (1, forest.n_features)))


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.lists(NUMBERS, min_size=1, max_size=8), st.sampled_from(DTYPES))
def test_a_split_at_an_extreme_threshold_decides_by_code_as_by_value(
    thresholds: list[float], numbers: list[float], input_dtype: InputDtype
) -> None:
    rows = np.array([*thresholds, *numbers, *np.nextafter(thresholds, 0.0)])[:, None]
    assert_same_sides(stumps(thresholds, input_dtype), rows)


def stumps(thresholds: list[float], input_dtype: InputDtype) -> Forest:
    """A tree of one split for each threshold."""
    n = len(thresholds)
    return Forest(
        feature=np.tile([0, -1, -1], n),
        threshold=np.stack([thresholds, np.zeros(n), np.zeros(n)], axis=1).ravel(),
        left=np.stack([3 * np.arange(n) + 1, np.full(n, -1), np.full(n, -1)], axis=1).ravel(),
        right=np.stack([3 * np.arange(n) + 2, np.full(n, -1), np.full(n, -1)], axis=1).ravel(),
        default_left=np.zeros(3 * n, bool),
        tree_start=3 * np.arange(n + 1),
        leaf_value=np.zeros((2 * n, 2)),
        base_score=np.zeros(2),
        classes=np.arange(2),
        n_features=1,
        input_dtype=input_dtype,
    )


@given(forests_with_rows())
def test_codes_rise_with_values(case: tuple[Forest, Floats]) -> None:
    forest, rows = case
    codes = Grid.of(forest).encode(forest, rows)
    for f in range(forest.n_features):
        known = ~np.isnan(rows[:, f])
        order = np.argsort(rows[known, f], kind="stable")
        assert (np.diff(codes[known, f][order]) >= 0).all()


@given(forests())
def test_ends_of_a_cell_lie_in_it(forest: Forest) -> None:
    grid = Grid.of(forest)
    for f in range(forest.n_features):
        cells = np.arange(grid.start[f + 1] - grid.start[f] + 1)
        own = slice(grid.start[f] + f, grid.start[f + 1] + f + 1)
        for ends in (grid.low[own], grid.high[own]):
            rows = np.zeros((len(cells), forest.n_features))
            rows[:, f] = ends
            np.testing.assert_array_equal(grid.encode(forest, rows)[:, f], cells)
        assert grid.low[own][0] == -np.inf
        assert grid.high[own][-1] == np.inf
        # Cells touch: nothing lies between the end of one and the start of the next, but for denormals above 0.
        last, first = grid.high[own][:-1], grid.low[own][1:]
        beside_zero = (last == 0) | (first == 0)
        np.testing.assert_array_equal(np.nextafter(last, np.inf)[~beside_zero], first[~beside_zero])
