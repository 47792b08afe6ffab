"""Factors: what each column alone gains at the value that is typical of the wanted answer, against a plain count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from treefocus import Explainer, Explanations, Interval, InvalidInput, Probability
from treefocus.explanation.facts import MOST_REASONS


def table(seed: int, n_rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{j}": rng.integers(0, 9, n_rows).astype(float) for j in range(5)})
    y = np.where(X.x0 + 2 * X.x1 - X.x2 + rng.normal(0, 1, n_rows) > 8, "yes", "no")
    return X, y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingClassifier])
def test_gains_are_the_models_own(seed: int, kind: type) -> None:
    X, y = table(seed)
    model = kind(n_estimators=8, random_state=seed).fit(X, y)
    says = model.predict(X)
    rows = X[says == "no"][:3]
    wanted = X[says == "yes"]
    for one, (_, row) in zip(
        Explainer(model, X).explain(rows, target="yes", time_limit=0.5), rows.iterrows(), strict=True
    ):
        expected = {}
        for name in X.columns:
            moved = row.copy()
            moved[name] = np.sort(wanted[name])[(len(wanted) - 1) // 2]
            both = model.predict_proba(pd.DataFrame([row, moved]))[:, list(model.classes_).index("yes")]
            if both[1] - both[0] > 1e-9:
                expected[name] = (moved[name], both[1] - both[0])
        found = {factor.feature: factor for factor in one.factors() if factor.gain > 1e-9}
        assert set(found) == set(expected)
        for name, (typical, gain) in expected.items():
            assert found[name].typical == typical
            assert found[name].value == row[name]
            assert found[name].gain == pytest.approx(gain, abs=1e-6)
        gains = [factor.gain for factor in one.factors()]
        assert gains == sorted(gains, reverse=True)


def test_numbers_gain_by_coming_nearer_and_probabilities_by_rising() -> None:
    X, _ = table(0)
    model = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, X.x0 * 10 + X.x1)
    low = X[model.predict(X) < 20][:1]
    one = Explainer(model, X).explain(low, target=Interval(low=60), time_limit=0.5)[0]
    factors = one.factors()
    assert factors[0].feature == "x0"
    moved = low.copy()
    moved["x0"] = factors[0].typical
    assert factors[0].gain == pytest.approx(min(60.0, float(model.predict(moved)[0])) - float(model.predict(low)[0]))
    X, y = table(1)
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    row = X[forest.predict(X) == "no"][:1]
    one = Explainer(forest, X).explain(row, target=Probability("yes", 0.7), time_limit=0.5)[0]
    assert all(0 < factor.gain <= 1 for factor in one.factors())


def test_reasons_are_factors_and_at_most_four() -> None:
    X, y = table(2)
    model = RandomForestClassifier(n_estimators=8, random_state=0).fit(X, y)
    one = Explainer(model, X).explain(X[model.predict(X) == "no"][:1], target="yes", time_limit=0.5)[0]
    letter = one.to_letter(template="us")
    told = letter.split("\n\n")[3].splitlines()[1:-1]
    assert 1 <= len(told) <= MOST_REASONS
    names = [line.split(":")[0].strip(" -").lower() for line in told]
    assert names == [factor.feature for factor in one.factors()[:MOST_REASONS]]


def test_without_training_rows_or_a_model_there_are_no_factors() -> None:
    X, y = table(3)
    model = RandomForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    one = Explainer(model, None, scale=None).explain(X[:1], time_limit=0.5)[0]
    with pytest.raises(InvalidInput, match="need training rows"):
        one.factors()
    found = Explainer(model, X).explain(X[:1], time_limit=0.5)
    kept = Explanations.from_json(found.to_json())[0]
    assert kept.to_letter() == found[0].to_letter(digits=None)
    with pytest.raises(InvalidInput, match="needs the model"):
        kept.to_letter(template="us")
