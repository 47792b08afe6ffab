"""LightGBM's lines of the conformance list."""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np

from support.conformance import Case, Data, product

ROUNDS: dict[str, Any] = {"n_estimators": 12, "num_leaves": 9, "min_child_samples": 4, "random_state": 0, "n_jobs": 1}
CATEGORIES = {"min_data_per_group": 3, "cat_smooth": 1.0}


def skl(**parameters: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
        return kind(**ROUNDS | CATEGORIES | {"verbose": -1} | parameters).fit(data.X, data.y)

    return fit


def numbers(task: str, data: Data) -> Any:
    """Categories as whole numbers in a matrix, with gaps between them."""
    X = data.X.assign(town=data.X["town"].cat.codes * 40, colour=data.X["colour"].cat.codes).to_numpy(np.float64)
    X[X[:, 3] < 0, 3] = np.nan
    kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    return kind(**ROUNDS | CATEGORIES, verbose=-1).fit(X, data.y, categorical_feature=[1, 3])


def booster(task: str, data: Data) -> Any:
    objective = {"binary": "binary", "multi-class": "multiclass", "regression": "regression"}[task]
    parameters = {"objective": objective, "num_leaves": 9, "verbose": -1, "num_threads": 1} | CATEGORIES
    if task == "multi-class":
        parameters["num_class"] = 3
    return lightgbm.train(parameters, lightgbm.Dataset(data.X, data.y), 12)


def stopped(task: str, data: Data) -> Any:
    kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    model = kind(**ROUNDS | {"n_estimators": 80, "learning_rate": 0.9}, verbose=-1)
    stop = lightgbm.early_stopping(2, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions have another name for eval_set
        model.fit(data.X[:200], data.y[:200], eval_set=[(data.X[200:], data.y[200:])], callbacks=[stop])
    assert 0 < model.best_iteration_ < 80
    return model


def zeros(task: str, data: Data) -> Any:
    """Zero stands for missing, in columns with values on both sides of it."""
    X = np.where(np.isnan(data.X), 0.0, data.X)
    X[:, 2] = np.abs(X[:, 2])
    return skl(zero_as_missing=True)(task, Data(X, data.y))


def positive(objective: str) -> Any:
    def fit(task: str, data: Data) -> Any:
        y = np.exp(data.y / 3)
        return skl(objective=objective)(task, Data(data.X, y / y.max()))

    return fit


RF = {"boosting_type": "rf", "bagging_fraction": 0.6, "bagging_freq": 1}
ALL = ("plain", "missing", "categorical")
LIGHTGBM: list[Case] = [
    *product("LightGBM", "LightGBM", skl(), data=ALL),
    *product("LightGBM", "LightGBM, numbers", numbers, data=("categorical",)),
    *product("LightGBM", "LightGBM, one-hot splits", skl(max_cat_to_onehot=40), data=("categorical",)),
    *product("LightGBM", "DART", skl(boosting_type="dart", drop_rate=0.5), data=ALL),
    *product("LightGBM", "random forest", skl(**RF), data=ALL),
    *product("LightGBM", "early stopping", stopped, data=("missing",)),
    *product("LightGBM", "zero as missing", zeros, data=("missing",)),
    *product("LightGBM", "no missing values", skl(use_missing=False), data=("missing", "categorical")),
    *product("LightGBM", "extra trees", skl(extra_trees=True), data=("missing",)),
    *product("LightGBM", "Booster", booster, data=ALL),
    Case("LightGBM", "one class against the others", "multi-class", "missing", skl(objective="multiclassova")),
    Case("LightGBM", "steep sigmoid", "binary", "missing", skl(sigmoid=2.5), is_exact=False),
    *(
        Case("LightGBM", objective, "regression", "missing", positive(objective))
        for objective in ("poisson", "gamma", "tweedie", "cross_entropy", "l1", "huber", "fair", "quantile", "mape")
    ),
]  # fmt: skip
