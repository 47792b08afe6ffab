"""Every returned counterfactual flips in the library's own predict: data sets x models x distances.

The judge is the model's public predict on the table that comes back, not the forest and not `Source`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_friedman1,
    make_gaussian_quantiles,
    make_moons,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

from support.conformance import table
from treefocus import Auto, Explainer, Interval

DISTANCES = ("euclidean", "manhattan", "cosine", "mahalanobis")
N_ROWS = 6
BRIEF = Auto(time_limit=None, node_limit=300)  # boxes a row, and no clock: a busy machine finds the same
XGB: dict[str, Any] = {"n_estimators": 12, "max_depth": 4, "n_jobs": 1, "random_state": 0}
LGB: dict[str, Any] = {"n_estimators": 12, "num_leaves": 9, "n_jobs": 1, "random_state": 0, "verbose": -1}
CAT: dict[str, Any] = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


@dataclass(frozen=True)
class Pair:
    """A data set and a model on it."""

    data: Callable[[], tuple[Any, Any]]
    model: Any

    def fitted(self) -> tuple[Any, Any]:
        X, y = self.data()
        return (self.model.fit(X) if isinstance(self.model, IsolationForest) else self.model.fit(X, y)), X


def bundled(load: Callable[..., Any], frame: bool = False) -> Callable[[], tuple[Any, Any]]:
    return lambda: load(return_X_y=True, as_frame=frame)


def made(make: Callable[..., Any], **parameters: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: make(random_state=0, **parameters)


def categorical(task: str) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        data = table(task, "categorical")
        return data.X, data.y

    return load


def holes() -> tuple[Any, Any]:
    data = table("multi-class", "missing")
    return data.X, data.y


def names(load: Callable[..., Any]) -> Callable[[], tuple[Any, Any]]:
    """With words for classes."""

    def named() -> tuple[Any, Any]:
        X, y = load(return_X_y=True, as_frame=True)
        return X, np.array(["zero", "one", "two"])[y]

    return named


PAIRS = {
    "iris, tree": Pair(bundled(load_iris), DecisionTreeClassifier(max_depth=4, random_state=0)),
    "iris in words, forest": Pair(names(load_iris), RandomForestClassifier(12, random_state=0)),
    "wine, extra trees": Pair(bundled(load_wine, True), ExtraTreesClassifier(12, max_depth=5, random_state=0)),
    "cancer, boosting": Pair(bundled(load_breast_cancer, True), GradientBoostingClassifier(n_estimators=15)),
    "cancer, AdaBoost": Pair(bundled(load_breast_cancer), AdaBoostClassifier(n_estimators=15, random_state=0)),
    "moons, bagging": Pair(made(make_moons, noise=0.2), BaggingClassifier(n_estimators=8, random_state=0)),
    "circles, histogram boosting": Pair(
        made(make_circles, n_samples=200, noise=0.1), HistGradientBoostingClassifier(max_iter=12)
    ),
    "holes, histogram boosting": Pair(holes, HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8)),
    "categories, histogram boosting": Pair(
        categorical("binary"), HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=8)
    ),
    "blobs, isolation": Pair(
        made(make_blobs, n_features=3), IsolationForest(n_estimators=15, contamination=0.3, random_state=0)
    ),
    "cancer, XGBoost": Pair(bundled(load_breast_cancer, True), xgboost.XGBClassifier(**XGB)),
    "wine, XGBoost DART": Pair(bundled(load_wine), xgboost.XGBClassifier(**XGB, booster="dart", rate_drop=0.2)),
    "quantiles, XGBoost forest": Pair(
        made(make_gaussian_quantiles, n_features=4, n_classes=3), xgboost.XGBRFClassifier(**XGB)
    ),
    "holes, XGBoost": Pair(holes, xgboost.XGBClassifier(**XGB)),
    "categories, XGBoost": Pair(categorical("multi-class"), xgboost.XGBClassifier(**XGB, enable_categorical=True)),
    "cancer, LightGBM": Pair(bundled(load_breast_cancer, True), lightgbm.LGBMClassifier(**LGB)),
    "iris, LightGBM DART": Pair(bundled(load_iris), lightgbm.LGBMClassifier(**LGB, boosting_type="dart")),
    "categories, LightGBM": Pair(categorical("binary"), lightgbm.LGBMClassifier(**LGB, min_data_per_group=3)),
    "made, LightGBM forest": Pair(
        made(make_classification, n_samples=300, n_features=6),
        lightgbm.LGBMClassifier(**LGB, boosting_type="rf", bagging_fraction=0.6, bagging_freq=1),
    ),
    "wine, CatBoost": Pair(bundled(load_wine, True), catboost.CatBoostClassifier(**CAT)),
    "holes, CatBoost": Pair(holes, catboost.CatBoostClassifier(**CAT, grow_policy="Lossguide")),
    "digits, forest": Pair(bundled(load_digits), RandomForestClassifier(8, max_depth=5, random_state=0)),
}
REGRESSIONS = {
    "diabetes, forest": Pair(bundled(load_diabetes, True), RandomForestRegressor(10, max_depth=5, random_state=0)),
    "diabetes, boosting": Pair(bundled(load_diabetes), GradientBoostingRegressor(n_estimators=15)),
    "friedman, XGBoost": Pair(made(make_friedman1, n_samples=200), xgboost.XGBRegressor(**XGB)),
    "friedman, LightGBM": Pair(made(make_friedman1, n_samples=200), lightgbm.LGBMRegressor(**LGB)),
    "friedman, CatBoost": Pair(made(make_friedman1, n_samples=200), catboost.CatBoostRegressor(**CAT)),
    "categories, histogram boosting": Pair(
        categorical("regression"), HistGradientBoostingRegressor(max_iter=10, max_leaf_nodes=8)
    ),
}


def some(X: Any) -> Any:
    chosen = np.linspace(0, len(X) - 1, N_ROWS).astype(int)
    return X.iloc[chosen] if isinstance(X, pd.DataFrame) else X[chosen]


def predicted(model: Any, X: Any) -> Any:
    return np.asarray(model.predict(X)).reshape(-1)


def kept(found: Any) -> Any:
    """The rows that have an answer."""
    answers = found.counterfactuals
    return answers[found.has_answer] if isinstance(answers, np.ndarray) else answers.loc[found.has_answer]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", PAIRS)
def test_every_answer_flips_the_model(name: str, distance: str) -> None:
    model, X = PAIRS[name].fitted()
    rows = some(X)
    found = Explainer(model, X, distance=distance).explain(rows, strategy=BRIEF)
    assert found.has_answer.mean() >= 0.5  # the others have none within the data's range
    assert (predicted(model, kept(found)) != predicted(model, rows)[found.has_answer]).all()
    assert not any("does not confirm" in one.reason for one in found)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_value_lies_in_the_interval(name: str, distance: str) -> None:
    model, X = REGRESSIONS[name].fitted()
    low, high = np.quantile(predicted(model, X), [0.6, 0.8])
    found = Explainer(model, X, distance=distance).explain(some(X), target=Interval(low, high), strategy=BRIEF)
    assert found.has_answer.mean() >= 0.5  # the others have none within the data's range
    values = predicted(model, kept(found))
    assert ((values >= low) & (values <= high)).all()


def test_a_wanted_class_is_reached() -> None:
    for name in ("iris in words, forest", "wine, CatBoost", "categories, XGBoost"):
        model, X = PAIRS[name].fitted()
        for label in np.unique(predicted(model, X)):
            found = Explainer(model, X).explain(some(X), target=label, strategy=BRIEF)
            assert found.has_answer.any()
            assert (predicted(model, kept(found)) == label).all()
