"""scikit-learn's lines of the conformance list."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from support.conformance import Case, Data, product


def one_of(classifier: type, regressor: type, **parameters: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        kind = regressor if task == "regression" else classifier
        return kind(random_state=0, **parameters).fit(data.X, data.y)

    return fit


def boosted(task: str, data: Data) -> Any:
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=8, random_state=0).fit(data.X, data.y)


def bagged(task: str, data: Data) -> Any:
    kind, tree = BaggingClassifier, DecisionTreeClassifier(max_depth=5)
    if task == "regression":
        kind, tree = BaggingRegressor, DecisionTreeRegressor(max_depth=5)
    return kind(tree, n_estimators=7, max_features=0.6, random_state=0).fit(data.X, data.y)


def bagged_rare(task: str, data: Data) -> Any:
    """A class so rare that most bootstraps miss it."""
    y = np.where(np.arange(len(data.y)) < 3, 2, data.y % 2)
    return BaggingClassifier(n_estimators=7, max_samples=0.1, random_state=0).fit(data.X, y)


def hist(task: str, data: Data, **parameters: Any) -> Any:
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return kind(max_iter=12, max_leaf_nodes=8, random_state=0, **parameters).fit(data.X, data.y)


def hist_numbers(task: str, data: Data) -> Any:
    """Categories as numbers in a matrix, with gaps between them."""
    X = data.X.assign(town=data.X["town"].cat.codes * 3.0 + 1, colour=data.X["colour"].cat.codes * 2.0)
    X["town"] = X["town"].where(data.X["town"].notna())
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    model = kind(max_iter=12, max_leaf_nodes=8, random_state=0, categorical_features=[1, 3])
    return model.fit(X.to_numpy(np.float64), data.y)


def hist_log(task: str, data: Data) -> Any:
    return hist(task, Data(data.X, np.exp(data.y / 3)), loss="poisson")


def boosting(task: str, data: Data, **parameters: Any) -> Any:
    kind = GradientBoostingRegressor if task == "regression" else GradientBoostingClassifier
    return kind(n_estimators=8, random_state=0, **parameters).fit(data.X, data.y)


CLASSES = ("binary", "multi-class")
SKLEARN: list[Case] = [
    *product("scikit-learn", "DecisionTree", one_of(DecisionTreeClassifier, DecisionTreeRegressor, max_depth=7)),
    *product("scikit-learn", "ExtraTree", one_of(ExtraTreeClassifier, ExtraTreeRegressor, max_depth=7)),
    *product(
        "scikit-learn", "RandomForest", one_of(RandomForestClassifier, RandomForestRegressor, n_estimators=12)
    ),
    *product("scikit-learn", "ExtraTrees", one_of(ExtraTreesClassifier, ExtraTreesRegressor, n_estimators=9)),
    *product("scikit-learn", "Bagging", bagged),
    *product("scikit-learn", "Bagging, rare class", bagged_rare, ("multi-class",), data=("plain",)),
    *product("scikit-learn", "AdaBoost", boosted, CLASSES, data=("plain",)),
    *product("scikit-learn", "GradientBoosting", boosting, data=("plain",)),
    Case(
        "scikit-learn", "GradientBoosting, exponential", "binary", "plain",
        lambda task, data: boosting(task, data, loss="exponential"),
    ),
    Case(
        "scikit-learn", "GradientBoosting, quantile", "regression", "plain",
        lambda task, data: boosting(task, data, loss="quantile", alpha=0.8),
    ),
    *product("scikit-learn", "HistGradientBoosting", hist, data=("plain", "missing", "categorical")),
    *product("scikit-learn", "HistGradientBoosting, numbers", hist_numbers, data=("categorical",)),
    Case("scikit-learn", "HistGradientBoosting, poisson", "regression", "missing", hist_log),
    *product(
        "scikit-learn", "IsolationForest",
        lambda task, data: IsolationForest(n_estimators=15, contamination=0.2, random_state=0).fit(data.X),
        ("binary",), is_exact=False,
    ),
    Case(
        "scikit-learn", "IsolationForest, some features", "binary", "plain",
        lambda task, data: IsolationForest(n_estimators=15, max_features=0.5, random_state=0).fit(data.X), False,
    ),
]  # fmt: skip
