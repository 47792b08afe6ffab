"""XGBoost classifiers: predictions and margins to the last bit, missing values, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from support.forests import adversarial_rows
from treefocus import Auto, Explainer, UnsupportedModel, kernels
from treefocus.adapters import translate
from treefocus.errors import InvalidInput

xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")

CASES = {
    "binary": (load_breast_cancer, {}),
    "binary deep": (load_breast_cancer, {"n_estimators": 200, "max_depth": 8}),
    "multi-class": (load_iris, {}),
    "dart": (load_wine, {"booster": "dart", "rate_drop": 0.3}),
    "early stopping": (load_breast_cancer, {"early_stopping_rounds": 3}),
    "base score": (load_breast_cancer, {"base_score": 0.2}),
}


def fitted(name: str, *, with_missing: bool = True):
    load, options = CASES[name]
    rows, labels = load(return_X_y=True)
    holes = rows.copy()
    if with_missing:
        holes[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    model = xgboost.XGBClassifier(**{"n_estimators": 30, "random_state": 0, "n_jobs": 1} | options)
    extra = {"eval_set": [(rows, labels)], "verbose": False} if "early_stopping_rounds" in options else {}
    return model.fit(holes, labels, **extra), rows


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_the_models_own(name):
    model, _ = fitted(name)
    forest = translate(model).forest
    rng = np.random.default_rng(1)
    rows = adversarial_rows(forest, rng, 20_000)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    assert np.array_equal(forest.classes[kernels.predict(forest, rows)], model.predict(rows))


@pytest.mark.parametrize("name", [name for name in CASES if name != "dart"])
def test_margins_are_the_models_own_to_the_last_bit(name):
    model, _ = fitted(name)
    forest = translate(model).forest
    rows = adversarial_rows(forest, np.random.default_rng(2), 5_000)
    margin = model.predict(rows, output_margin=True).reshape(len(rows), -1).astype(np.float64)
    assert np.array_equal(kernels.hard_scores(forest, rows), margin)


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "cosine", "mahalanobis"])
@pytest.mark.parametrize("name", ["binary", "multi-class"])
def test_counterfactuals_flip_the_model(name, distance):
    model, rows = fitted(name, with_missing=False)
    asked = rows[::45]
    found = Explainer(model, rows, distance=distance).explain(asked, strategy=Auto(time_limit=None, node_limit=300))
    assert found.has_answer.all()
    assert (model.predict(found.counterfactuals) != model.predict(asked)).all()


def test_a_random_forest_of_xgboost():
    rows, labels = load_breast_cancer(return_X_y=True)
    model = xgboost.XGBRFClassifier(n_estimators=20, random_state=0, n_jobs=1).fit(rows, labels)
    forest = translate(model).forest
    assert np.array_equal(forest.classes[kernels.predict(forest, rows)], model.predict(rows))


def test_what_is_refused():
    rows, labels = load_breast_cancer(return_X_y=True)
    with pytest.raises(InvalidInput, match="not fitted"):
        translate(xgboost.XGBClassifier())
    with pytest.raises(UnsupportedModel, match="missing"):
        translate(xgboost.XGBClassifier(missing=-1.0, n_estimators=2).fit(rows, labels))
    with pytest.raises(UnsupportedModel, match="ranking"):
        translate(xgboost.XGBRanker())
    with pytest.raises(UnsupportedModel, match="objective"):
        translate(xgboost.XGBClassifier(objective="binary:hinge", n_estimators=2).fit(rows, labels))
