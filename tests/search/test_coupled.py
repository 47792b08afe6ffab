"""Cosine and Mahalanobis on more than a handful of cells: whole numbers one by one, and bounds against each other.

Brute force over cells stands in test_exact.py. Here are the inequalities themselves, as NumPy writes them, and forests
that are too large for it: every point of a grid of whole numbers, and a search with priced bounds beside one without.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from sklearn.ensemble import RandomForestClassifier

from support.forests import SEEDS
from treefocus import Auto, Exact, Explainer, Feature, Schema, Status
from treefocus.model.forest import Floats


def slice_bound(grow: float, t: Floats, w: Floats, z: Floats, low: Floats, high: Floats) -> float:
    """What |y|^2 - G t(y)^2 is at least in a box, for t between two ends: the twin of cpp/treefocus/fan.cpp."""
    e = z / np.sqrt((w * z * z).sum())
    origin = grow * t.mean() * e
    off = np.clip(origin, low, high) - origin
    return float((w * off**2).sum() - (w * origin**2).sum() + grow * t[0] * t[1])


@given(seed=SEEDS)
def test_a_slice_of_a_fan_bounds_every_point_in_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    w, z = rng.uniform(0.1, 3.0, d), rng.normal(size=d)
    low, high = np.sort(rng.normal(size=(2, d)) * 2, axis=0)
    y = rng.uniform(low, high, (2000, d))
    length = (w * z * y).sum(axis=1) / np.sqrt((w * z * z).sum())
    t = np.sort(rng.uniform(0.0, max(length.max(), 0.1), 2))
    inside = y[(length >= t[0]) & (length <= t[1])]
    grow = 1.0 / rng.uniform(0.05, 1.0) ** 2
    value = (w * inside**2).sum(axis=1) - grow * length[(length >= t[0]) & (length <= t[1])] ** 2
    assert (value >= slice_bound(grow, t, w, z, low, high) - 1e-9 * (1 + np.abs(value))).all()


@given(seed=SEEDS)
def test_one_feature_has_the_curvature_of_its_variance(seed: int) -> None:
    """v'Qv >= u'Qu + 2 (Qu)'(v - u) + (v_f - u_f)^2 / C_ff: the budget of a feature under Mahalanobis."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    root = rng.normal(size=(d, d + 1))
    covariance = root @ root.T + 0.01 * np.eye(d)
    inverse = np.linalg.inv(covariance)
    u, v = rng.normal(size=(2, d))
    line = u @ inverse @ u + 2 * (inverse @ u) @ (v - u)
    curved = (v - u) ** 2 / np.diag(covariance)
    assert (v @ inverse @ v >= (line + curved) - 1e-9 * (1 + abs(line) + curved)).all()


@pytest.mark.parametrize("distance", ["cosine", "mahalanobis"])
@pytest.mark.parametrize("max_depth", [2, 4])
def test_whole_numbers_are_decided(distance: str, max_depth: int) -> None:
    """Every point of the grid is tried."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (300, 3)).astype(float)
    model = RandomForestClassifier(12, max_depth=max_depth, random_state=0).fit(X, X @ [1.0, -2.0, 1.5] > 2)
    schema = Schema([Feature(name, "integer") for name in "abc"])
    explainer = Explainer(model, X, distance=distance, schema=schema, bounds=(0, 8), scale=None)
    found = explainer.explain(X[:25], strategy=Auto(time_limit=None, node_limit=100_000), n_jobs=1)
    grid = np.array(list(product(range(9), repeat=3)), float)
    answer = model.predict(grid)
    inverse = np.linalg.inv(np.cov(X.T, bias=True))
    for i, row in enumerate(X[:25]):
        others = grid[answer != model.predict(row[None, :])[0]]
        if distance == "cosine":
            size = np.linalg.norm(others, axis=1) * np.linalg.norm(row)
            with np.errstate(invalid="ignore"):
                away = np.where(size > 0, 1 - others @ row / np.where(size > 0, size, 1), 0.0 if not row.any() else 1.0)
            away = np.where((size == 0) & (np.linalg.norm(others, axis=1) > 0), 1.0, away)
        else:
            away = np.sqrt(np.einsum("nf,fg,ng->n", others - row, inverse, others - row))
        assert found.status[i] is Status.OPTIMAL
        assert found.distance[i] == pytest.approx(away.min(), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("distance", ["cosine", "mahalanobis"])
def test_priced_bounds_deny_no_answer(distance: str) -> None:
    """A search too poor for priced bounds is the witness: nothing it finds is closer than what the other proves."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.05, 1.0, (400, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + 0.3 * np.sin(9 * X[:, 4]) > 0.35
    model = RandomForestClassifier(30, max_depth=6, random_state=0).fit(X, y)
    explainer = Explainer(model, X, distance=distance, bounds=(0, 1), scale=None)
    rows = X[:6]
    rich = explainer.explain(rows, strategy=Exact(node_limit=60_000), n_jobs=1)
    poor = explainer.explain(rows, strategy=Exact(node_limit=60_000, memory_limit=2.5e6), n_jobs=1)
    for one, other in ((rich, poor), (poor, rich)):
        assert (one.lower_bound <= other.distance * (1 + 1e-8) + 1e-9).all()
    assert all(status is Status.OPTIMAL for status in rich.status)
