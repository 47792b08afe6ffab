"""Distances: values against plain formulas, gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.forests import SEEDS
from treefocus import Cosine, Distance, Euclidean, InvalidInput, Mahalanobis, Manhattan
from treefocus.model.forest import Floats
from treefocus.problem.distances import Chebyshev, FewestFeatures, UserDistance, as_distance

N = 4  # features
COVARIANCE = np.array([[2.0, 0.5, 0.0, 0.1], [0.5, 1.0, -0.3, 0.0], [0.0, -0.3, 0.5, 0.0], [0.1, 0.0, 0.0, 3.0]])
PRECISION = np.linalg.inv(COVARIANCE)


@dataclass(frozen=True)
class Case:
    """A distance, and what it should be for one pair of rows and weights w: plainly, without a batch."""

    make: Callable[..., Distance]
    plain: Callable[[Floats, Floats, Floats], float]


def mahalanobis_squared(w: Floats, z: Floats, y: Floats) -> float:
    moved = np.sqrt(w) * (y - z)
    return sum(moved[i] * PRECISION[i, j] * moved[j] for i in range(N) for j in range(N))


def cosine(w: Floats, z: Floats, y: Floats) -> float:
    products = [sum(w[i] * a[i] * b[i] for i in range(N)) for a, b in ((z, y), (z, z), (y, y))]
    return 1.0 - products[0] / (products[1] * products[2]) ** 0.5


# Every distance stands here once; a new one needs a line, and all tests below hold it to its formula.
DISTANCES = {
    "euclidean": Case(Euclidean, lambda w, z, y: sum(w * (y - z) ** 2) ** 0.5),
    "manhattan": Case(Manhattan, lambda w, z, y: sum(w * abs(y - z))),
    "chebyshev": Case(Chebyshev, lambda w, z, y: max(w * abs(y - z))),
    "fewest features": Case(FewestFeatures, lambda w, z, y: sum(w[y != z])),
    "cosine": Case(Cosine, cosine),
    "mahalanobis": Case(
        lambda weights=None: Mahalanobis(COVARIANCE, weights=weights),
        lambda w, z, y: mahalanobis_squared(w, z, y) ** 0.5,
    ),
    "mahalanobis squared": Case(
        lambda weights=None: Mahalanobis(COVARIANCE, squared=True, weights=weights), mahalanobis_squared
    ),
}

DISTANCES["sum"] = Case(
    lambda weights=None: Manhattan(weights) + 0.5 * FewestFeatures() + Euclidean(weights) * 2.0,
    lambda w, z, y: (
        DISTANCES["manhattan"].plain(w, z, y) + 0.5 * sum(y != z) + 2.0 * DISTANCES["euclidean"].plain(w, z, y)
    ),
)

every_distance = pytest.mark.parametrize("case", DISTANCES.values(), ids=DISTANCES.keys())


def pairs(seed: int, n_rows: int = 5) -> tuple[Floats, Floats, Floats]:
    """Weights, and rows z and y that differ by at least 0.05 in every feature, away from 0 and from every kink."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.1, 2.0, (n_rows, N)) * rng.choice([-1.0, 1.0], (n_rows, N))
    y = z + rng.uniform(0.05, 1.0, z.shape) * rng.choice([-1.0, 1.0], z.shape)
    return rng.uniform(0.2, 3.0, N), z, y


@every_distance
@given(SEEDS)
def test_value_is_the_plain_formula(case: Case, seed: int) -> None:
    w, z, y = pairs(seed)
    weighted = case.make(weights=w).fitted(N, None).value(z, y)
    np.testing.assert_allclose(weighted, [case.plain(w, *pair) for pair in zip(z, y, strict=True)], rtol=1e-9)
    plain = case.make().fitted(N, None).value(z, y)
    np.testing.assert_allclose(plain, [case.plain(np.ones(N), *pair) for pair in zip(z, y, strict=True)], rtol=1e-9)


@every_distance
@given(SEEDS)
def test_gradient_is_the_finite_difference(case: Case, seed: int) -> None:
    w, z, y = pairs(seed)
    distance = case.make(weights=w).fitted(N, None)
    step = 1e-5
    differences = np.empty_like(y)
    for f in range(N):
        up, down = y.copy(), y.copy()
        up[:, f] += step
        down[:, f] -= step
        differences[:, f] = (distance.value(z, up) - distance.value(z, down)) / (2 * step)
    np.testing.assert_allclose(distance.gradient(z, y), differences, rtol=1e-4, atol=1e-6)


@every_distance
@given(SEEDS)
def test_no_change_costs_nothing_and_has_a_finite_gradient(case: Case, seed: int) -> None:
    w, z, _ = pairs(seed)
    distance = case.make(weights=w).fitted(N, None)
    np.testing.assert_allclose(distance.value(z, z), 0.0, atol=1e-12)
    assert np.isfinite(distance.gradient(z, z)).all()


@every_distance
@given(SEEDS)
def test_rows_of_a_batch_do_not_see_each_other(case: Case, seed: int) -> None:
    w, z, y = pairs(seed)
    distance = case.make(weights=w).fitted(N, None)
    for i in range(len(z)):
        np.testing.assert_allclose(distance.value(z[i : i + 1], y[i : i + 1]), distance.value(z, y)[i], rtol=1e-12)
        alone = distance.gradient(z[i : i + 1], y[i : i + 1])[0]
        np.testing.assert_allclose(alone, distance.gradient(z, y)[i], rtol=1e-12)


@every_distance
@given(SEEDS)
def test_a_missing_value_costs_nothing(case: Case, seed: int) -> None:
    w, z, y = pairs(seed)
    gap = np.random.default_rng(seed).random(z.shape) < 0.4
    holes, moved = np.where(gap, np.nan, z), np.where(gap, np.nan, y)
    zero = 0.0 if case is DISTANCES["cosine"] else z  # the cosine knows where 0 is, the others only differences
    distance = case.make(weights=w).fitted(N, None)
    value, gradient = distance.value(holes, moved), distance.gradient(holes, moved)
    np.testing.assert_allclose(value, distance.value(np.where(gap, zero, z), np.where(gap, zero, y)), rtol=1e-12)
    assert np.isfinite(gradient[~gap]).all()
    if case not in (DISTANCES["mahalanobis"], DISTANCES["mahalanobis squared"]):
        assert (gradient[gap] == 0).all()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("euclidean", Euclidean),
        ("manhattan", Manhattan),
        ("chebyshev", Chebyshev),
        ("l0", FewestFeatures),
        ("cosine", Cosine),
        ("mahalanobis", Mahalanobis),
    ],
)
def test_names_stand_for_the_distances(name: str, kind: type[Distance]) -> None:
    assert type(as_distance(name)) is kind
    own = kind()
    assert as_distance(own) is own


@pytest.mark.parametrize("distance", ["l3", "Euclidean", None, 3, Euclidean])
def test_something_else_is_no_distance(distance: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^distance must be one of euclidean, .*value and gradient, got "):
        as_distance(distance)


WEIGHTED = ["euclidean", "manhattan", "chebyshev", "fewest features", "cosine", "mahalanobis"]


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1.0, 2.0], r"weights must be one number a feature \(4\), got shape \(2,\)\."),
        ([[1.0] * 4], r"weights must be one number a feature \(4\), got shape \(1, 4\)\."),
        (2.0, r"weights must be one number a feature \(4\), got shape \(\)\."),
        ([1.0, 0.0, 1.0, 1.0], r"weights must be finite numbers above 0, got 0\.0\."),
        ([1.0, -1.0, 1.0, 1.0], r"weights must be finite numbers above 0, got -1\.0\."),
        ([1.0, np.nan, 1.0, 1.0], r"weights must be finite numbers above 0, got nan\."),
        ([1.0, np.inf, 1.0, 1.0], r"weights must be finite numbers above 0, got inf\."),
    ],
)
def test_bad_weights_are_refused(name: str, weights: Any, text: str) -> None:
    distance = DISTANCES[name].make(weights=weights)
    with pytest.raises(InvalidInput, match=rf"^{type(distance).__name__}\.{text}$"):
        distance.fitted(N, None)


@pytest.mark.parametrize("distance", [Euclidean(), Manhattan(), Cosine(), Mahalanobis()])
def test_an_unfitted_distance_says_so(distance: Distance) -> None:
    with pytest.raises(InvalidInput, match=rf"{type(distance).__name__} must be fitted before use"):
        distance.value(np.zeros((1, 2)), np.ones((1, 2)))


# Sums, and distances as sums of norms


@every_distance
@given(SEEDS)
def test_norms_are_the_distance_taken_apart(case: Case, seed: int) -> None:
    w, z, y = pairs(seed)
    unmoved = np.random.default_rng(seed).random(z.shape) < 0.3
    y = np.where(unmoved, z, y)
    distance = case.make(weights=w).fitted(N, None)
    if distance.norms is None:
        assert case in [DISTANCES[name] for name in ("cosine", "mahalanobis", "mahalanobis squared")]
        return
    moved, (l1, l2, linf, l0) = abs(y - z), distance.norms.weights
    total = moved @ l1 + np.sqrt(moved**2 @ l2) + (moved * linf).max(axis=1) + (moved > 0) @ l0
    np.testing.assert_allclose(distance.value(z, y), total, rtol=1e-9)


@pytest.mark.parametrize(
    "distance", [Euclidean() + Euclidean([1.0, 2.0, 3.0, 4.0]), Manhattan() + Cosine(), Chebyshev() + Chebyshev()]
)
def test_a_sum_of_other_shape_is_no_sum_of_norms(distance: Distance) -> None:
    assert distance.fitted(N, None).norms is None


@given(SEEDS)
def test_sums_add_and_factors_multiply(seed: int) -> None:
    _, z, y = pairs(seed)
    one, other = Manhattan().fitted(N, None), Cosine().fitted(N, None)
    both = (2.0 * (one + 0.5 * other)).fitted(N, None)
    np.testing.assert_allclose(both.value(z, y), 2.0 * one.value(z, y) + other.value(z, y))
    np.testing.assert_allclose(both.gradient(z, y), 2.0 * one.gradient(z, y) + other.gradient(z, y))


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_factor_must_be_positive(factor: float) -> None:
    with pytest.raises(
        InvalidInput, match=rf"^The factor of a distance must be a finite number above 0, got {factor}\.$"
    ):
        factor * Manhattan()


# Cosine


def test_cosine_of_zero_vectors() -> None:
    distance = Cosine().fitted(2, None)
    zero, other = np.zeros((1, 2)), np.array([[1.0, 2.0]])
    assert distance.value(zero, zero) == [0.0]
    assert distance.value(zero, other) == [1.0]
    assert distance.value(other, zero) == [1.0]
    for z, y in ((zero, zero), (zero, other), (other, zero)):
        assert np.isfinite(distance.gradient(z, y)).all()


@given(SEEDS)
def test_cosine_does_not_see_length_and_lies_between_0_and_2(seed: int) -> None:
    w, z, y = pairs(seed)
    distance = Cosine(w).fitted(N, None)
    value = distance.value(z, y)
    assert ((value >= 0) & (value <= 2)).all()
    np.testing.assert_allclose(distance.value(3.0 * z, 0.2 * y), value, atol=1e-12)
    np.testing.assert_allclose(distance.value(z, -z), 2.0)


# Mahalanobis


def sample(seed: int, n_rows: int = 40) -> Floats:
    """Rows of correlated columns."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, N)) @ rng.normal(size=(N, N)) + rng.normal(size=N)


@given(SEEDS)
def test_mahalanobis_takes_the_covariance_of_the_data_divided_by_n(seed: int) -> None:
    _, z, y = pairs(seed)
    data = sample(seed)
    centred = data - data.mean(axis=0)
    given_one = Mahalanobis(centred.T @ centred / len(data)).fitted(N, None)
    fitted = Mahalanobis().fitted(N, data)
    np.testing.assert_allclose(fitted.value(z, y), given_one.value(z, y), rtol=1e-6)
    squared = Mahalanobis(squared=True).fitted(N, data)
    np.testing.assert_allclose(squared.value(z, y), fitted.value(z, y) ** 2, rtol=1e-9)


@given(SEEDS)
def test_mahalanobis_does_not_depend_on_units(seed: int) -> None:
    _, z, y = pairs(seed)
    data, unit = sample(seed), 10.0 ** np.random.default_rng(seed).uniform(-5, 5, N)
    plain, scaled = Mahalanobis().fitted(N, data), Mahalanobis().fitted(N, data * unit)
    np.testing.assert_allclose(scaled.value(z * unit, y * unit), plain.value(z, y), rtol=1e-4)


def test_mahalanobis_ignores_rows_with_missing_values() -> None:
    data = sample(0)
    with_holes = np.concatenate([data, [[np.nan, 1.0, 2.0, 3.0]]])
    _, z, y = pairs(0)
    expected = Mahalanobis().fitted(N, data).value(z, y)
    np.testing.assert_array_equal(Mahalanobis().fitted(N, with_holes).value(z, y), expected)


@pytest.mark.parametrize("constant", [0.0, 7.0, 0.1, 1 / 3, 1e6 / 3])
def test_mahalanobis_counts_a_constant_column_as_one_of_variance_1(constant: float) -> None:
    data = sample(1)
    data[:, 2] = constant
    distance = Mahalanobis().fitted(N, data)
    z = np.zeros((1, N))
    np.testing.assert_allclose(distance.value(z, np.array([[0.0, 0.0, 3.0, 0.0]])), [3.0])
    others = Mahalanobis().fitted(3, data[:, [0, 1, 3]])
    y = np.array([[1.0, -2.0, 0.0, 0.5]])
    np.testing.assert_allclose(distance.value(z, y), others.value(z[:, :3], y[:, [0, 1, 3]]))


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e5])
def test_mahalanobis_of_collinear_columns_is_finite_and_dear_off_the_line(unit: float) -> None:
    data = sample(2)
    data[:, 3] = data[:, 0] + data[:, 1]
    distance = Mahalanobis().fitted(N, data * unit)
    z = np.zeros((1, N))
    along, across = np.array([[1.0, 0.0, 0.0, 1.0]]) * unit, np.array([[1.0, 0.0, 0.0, -1.0]]) * unit
    assert np.isfinite(distance.value(z, along)).all()
    assert distance.value(z, across) > 100 * distance.value(z, along)


def test_mahalanobis_of_one_column_and_of_one_row() -> None:
    data = np.array([[1.0], [3.0], [5.0]])
    one = Mahalanobis().fitted(1, data)
    np.testing.assert_allclose(one.value(np.zeros((1, 1)), np.ones((1, 1))), 1 / data.std())
    lonely = Mahalanobis().fitted(N, np.ones((1, N)))
    np.testing.assert_allclose(lonely.value(np.zeros((1, N)), np.ones((1, N))), 2.0)


@pytest.mark.parametrize(
    ("covariance", "text"),
    [
        (np.eye(3), r"Mahalanobis\.covariance must be \(4, 4\), got \(3, 3\)\."),
        (np.ones(4), r"Mahalanobis\.covariance must be \(4, 4\), got \(4,\)\."),
        (np.triu(np.ones((4, 4))), "symmetric and positive semidefinite"),
        (-np.eye(4), "symmetric and positive semidefinite"),
        (np.full((4, 4), np.nan), "symmetric and positive semidefinite"),
    ],
)
def test_bad_covariances_are_refused(covariance: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        Mahalanobis(covariance).fitted(4, None)


def test_mahalanobis_needs_data_or_a_covariance() -> None:
    with pytest.raises(InvalidInput, match=r"Mahalanobis needs data= .* or Mahalanobis\(covariance="):
        Mahalanobis().fitted(4, None)


# A user's own


class Canberra:
    """Somebody's own distance."""

    def value(self, z: Any, y: Any) -> Any:
        return (abs(y - z) / (1 + abs(z))).sum(axis=1).astype(np.float32)

    def gradient(self, z: Any, y: Any) -> Any:
        return np.sign(y - z) / (1 + abs(z))


def test_a_users_own_distance_is_asked() -> None:
    distance = as_distance(Canberra())
    assert isinstance(distance, UserDistance)
    assert distance.compiled is None
    _, z, y = pairs(3)
    fitted = distance.fitted(N, None)
    assert fitted.value(z, y).dtype == np.float64
    np.testing.assert_array_equal(fitted.value(z, y), Canberra().value(z, y))
    np.testing.assert_array_equal(fitted.gradient(z, y), Canberra().gradient(z, y))
