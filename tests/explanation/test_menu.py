"""What levers can do alone and together: every line is what enumeration finds, and proven where it says so."""

from __future__ import annotations

from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from treefocus import Explainer, Explanations, InvalidInput, Status, loans

LEVERS = {"money": ["a", "b"], "history": ["c"]}
VALUES = range(5)


def small(seed: int) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.integers(0, 5, (80, 3)), columns=["a", "b", "c"])
    model = RandomForestClassifier(4, max_depth=2, random_state=seed % 50)
    return model.fit(data, data["a"] + data["b"] * data["c"] > rng.integers(3, 9)), data


@given(st.integers(0, 10_000))
def test_every_line_is_what_enumeration_finds(seed: int) -> None:
    model, data = small(seed)
    if len(model.classes_) < 2:
        return
    explainer = Explainer(model, data, distance="manhattan", bounds=(0, 4))
    one = explainer.explain(data[:1])[0]
    points = pd.DataFrame(list(product(VALUES, repeat=3)), columns=data.columns)
    flips = points[model.predict(points) != model.predict(data[:1])[0]]
    row, scale = data.iloc[0], explainer.space.scale
    found = one.menu(LEVERS)
    assert [item.levers for item in found.items] == [("money",), ("history",), ("money", "history")]
    for item in found.items:
        free = [name for lever in item.levers for name in LEVERS[lever]]
        others = [name for name in data.columns if name not in free]
        near = flips[(flips[others] == row[others]).all(axis=1)]
        if near.empty:
            assert item.status is Status.INFEASIBLE
            assert "alone, it cannot be done" in found.to_text()
            continue
        assert item.status is Status.OPTIMAL
        assert item.distance == pytest.approx((np.abs(near - row) / scale).sum(axis=1).min())
        assert {change.feature for change in item.explanation.changes} <= set(free)


def test_a_union_that_gives_nothing_more_says_so() -> None:
    data = pd.DataFrame({"a": [0.0, 1.0] * 30, "b": np.arange(60.0), "c": np.arange(60.0) % 7})
    model = RandomForestClassifier(3, max_features=None, random_state=0).fit(data, data["a"] > 0)
    found = Explainer(model, data, distance="manhattan").explain(data[:1])[0].menu({"a": "a", "rest": ["b", "c"]})
    assert found["a", "rest"].needed == ("a",)
    assert found["a"].status is Status.OPTIMAL
    assert found["rest"].status is Status.INFEASIBLE
    assert "together give nothing smaller than" in found.to_text()
    assert found.to_frame()["status"].tolist() == ["OPTIMAL", "INFEASIBLE", "OPTIMAL"]


def test_levers_are_told_in_every_language_and_drawn() -> None:
    model, X_train, X_test, _, _ = loans.train()
    declined = X_test[model.predict(X_test) == "declined"][:1]
    explainer = Explainer(model, X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    one = explainer.explain(declined, target="approved")[0]
    levers = {"money": ["income", "savings"], "loan": ["loan_amount", "loan_years"], "late payments": "late_payments"}
    found = one.menu(levers, at_most=3)
    assert len(found) == 7
    assert found["money", "loan", "late payments"].distance <= min(
        item.distance for item in found.items if item.distance is not None
    ) * (1 + 1e-9)
    for language in ("en", "de", "fr"):
        assert len(found.to_text(language).splitlines()) == 7
    axes = found.plot()
    assert len(axes.patches) == 7
    plt.close(axes.figure)
    for item in found.items:  # a constraint of the question holds in the menu too
        assert "age" not in {change.feature for change in item.explanation.changes}


def test_misuse_is_told() -> None:
    model, data = small(1)
    one = Explainer(model, data).explain(data[:1])[0]
    for levers in ({}, ["a"], {"money": []}):
        with pytest.raises(InvalidInput, match="levers"):
            one.menu(levers)
    with pytest.raises(InvalidInput, match="income"):
        one.menu({"money": "income"})
    with pytest.raises(InvalidInput, match="at_most must be"):
        one.menu(LEVERS, at_most=0)
    read = Explanations.from_json(Explainer(model, data).explain(data[:1]).to_json())[0]
    with pytest.raises(InvalidInput, match="model"):
        read.menu(LEVERS)
