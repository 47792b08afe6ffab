"""XGBoost's lines of the conformance list."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from support.conformance import TASKS, Case, Data, product

ROUNDS: dict[str, Any] = {"n_estimators": 12, "max_depth": 4, "random_state": 0, "n_jobs": 1}


def skl(classifier: type = xgboost.XGBClassifier, regressor: type = xgboost.XGBRegressor, **parameters: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        kind = regressor if task == "regression" else classifier
        categorical = {"enable_categorical": True} if data.categorical else {}
        return kind(**ROUNDS | categorical | parameters).fit(data.X, data.y)

    return fit


def numbers(task: str, data: Data) -> Any:
    """Categories as numbers in a matrix."""
    X = data.X.assign(town=data.X["town"].cat.codes, colour=data.X["colour"].cat.codes).to_numpy(np.float64)
    X[X[:, 3] < 0, 3] = np.nan
    kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
    model = kind(**ROUNDS, feature_types=["q", "c", "q", "c", "q"], enable_categorical=True)
    return model.fit(X, data.y)


def stopped(task: str, data: Data) -> Any:
    kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
    chosen = kind(**ROUNDS | {"n_estimators": 60, "early_stopping_rounds": 2, "learning_rate": 0.8})
    chosen.fit(data.X[:200], data.y[:200], eval_set=[(data.X[200:], data.y[200:])], verbose=False)
    assert chosen.best_iteration + 1 < chosen.get_booster().num_boosted_rounds()
    return chosen


def booster(task: str, data: Data) -> Any:
    objective = {"binary": "binary:logistic", "multi-class": "multi:softmax", "regression": "reg:squarederror"}[task]
    parameters = {"objective": objective, "max_depth": 4, "nthread": 1}
    if task == "multi-class":
        parameters["num_class"] = 3
    matrix = xgboost.DMatrix(data.X, data.y, enable_categorical=bool(data.categorical))
    return xgboost.train(parameters, matrix, 12)


def positive(objective: str) -> Any:
    def fit(task: str, data: Data) -> Any:
        y = np.exp(data.y / 3)
        return xgboost.XGBRegressor(**ROUNDS, objective=objective).fit(data.X, y / y.max() * 0.99)

    return fit


ALL = ("plain", "missing", "categorical")
XGBOOST: list[Case] = [
    *product("XGBoost", "XGBoost", skl(), data=ALL),
    *product("XGBoost", "XGBoost, one-hot splits", skl(max_cat_to_onehot=50), data=("categorical",)),
    *product("XGBoost", "XGBoost, numbers", numbers, data=("categorical",)),
    *product("XGBoost", "DART", skl(booster="dart", rate_drop=0.3), is_exact=False, data=ALL),
    *product("XGBoost", "random forest", skl(xgboost.XGBRFClassifier, xgboost.XGBRFRegressor, subsample=0.7)),
    *product("XGBoost", "boosted forests", skl(num_parallel_tree=3, n_estimators=4, subsample=0.7), data=("missing",)),
    *product("XGBoost", "early stopping", stopped, data=("missing",)),
    *product("XGBoost", "base score", skl(base_score=0.3), ("binary", "regression"), data=("missing",)),
    *product("XGBoost", "pruned", skl(gamma=1.0, tree_method="exact"), data=("missing",)),
    *product("XGBoost", "best first", skl(grow_policy="lossguide", max_leaves=9), data=("missing",)),
    *product("XGBoost", "Booster", booster, TASKS, data=ALL),
    *(
        Case("XGBoost", objective, "regression", "missing", positive(objective))
        for objective in (
            "reg:logistic", "count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror", "reg:squaredlogerror",
            "reg:pseudohubererror",
        )
    ),
    Case(
        "XGBoost", "reg:quantileerror", "regression", "missing",
        skl(objective="reg:quantileerror", quantile_alpha=0.8),
    ),
]  # fmt: skip
