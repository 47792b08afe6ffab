"""CatBoost's lines of the conformance list."""

from __future__ import annotations

from typing import Any

import catboost
import numpy as np

from support.conformance import Case, Data, product

ROUNDS: dict[str, Any] = {"iterations": 12, "depth": 4, "random_seed": 0, "thread_count": 1, "verbose": 0}
ROUNDS |= {"allow_writing_files": False}


def skl(**parameters: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        kind = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
        return kind(**ROUNDS | parameters).fit(data.X, data.y)

    return fit


def plain(task: str, data: Data) -> Any:
    loss = {"binary": "Logloss", "multi-class": "MultiClass", "regression": "RMSE"}[task]
    return catboost.CatBoost(ROUNDS | {"loss_function": loss}).fit(data.X, data.y)


def positive(loss: str) -> Any:
    def fit(task: str, data: Data) -> Any:
        return skl(loss_function=loss)(task, Data(data.X, np.exp(data.y / 3)))

    return fit


def words(task: str, data: Data) -> Any:
    names = np.array(["no", "perhaps", "yes"])[data.y]
    return skl()(task, Data(data.X, names))


def unlikely(task: str, data: Data) -> Any:
    model = skl()(task, data)
    model.set_probability_threshold(0.8)
    return model


def with_words(**parameters: Any) -> Any:
    """Categories as CatBoost takes them: its statistics of them, or one-hot splits."""

    def fit(task: str, data: Data) -> Any:
        kind = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
        return kind(**ROUNDS | {"cat_features": list(data.categorical)} | parameters).fit(data.X, data.y)

    return fit


CATBOOST: list[Case] = [
    *product("CatBoost", "statistics of categories", with_words(), data=("words",)),
    *product("CatBoost", "statistics of combinations", with_words(max_ctr_complexity=4, depth=6), data=("words",)),
    *product("CatBoost", "one-hot splits", with_words(one_hot_max_size=20), data=("words",)),
    *product("CatBoost", "one-hot splits and statistics", with_words(one_hot_max_size=3), data=("words",)),
    *product("CatBoost", "statistics, leaf by leaf", with_words(grow_policy="Lossguide"), data=("words",)),
    *product(
        "CatBoost", "statistics, other kinds",
        with_words(simple_ctr=["BinarizedTargetMeanValue", "Buckets"], combinations_ctr=["Counter"]), data=("words",),
    ),
    *product("CatBoost", "CatBoost", skl()),
    *product("CatBoost", "missing is most", skl(nan_mode="Max"), data=("missing",)),
    *product("CatBoost", "missing forbidden", skl(nan_mode="Forbidden"), data=("plain",)),
    *product("CatBoost", "leaf by leaf", skl(grow_policy="Lossguide", max_leaves=9)),
    *product("CatBoost", "depth by depth", skl(grow_policy="Depthwise"), data=("missing",)),
    *product("CatBoost", "CatBoost base class", plain, data=("missing",)),
    *product("CatBoost", "words for classes", words, ("binary", "multi-class"), data=("missing",)),
    Case("CatBoost", "probability above 0.8", "binary", "missing", unlikely),
    Case("CatBoost", "one against all", "multi-class", "missing", skl(loss_function="MultiClassOneVsAll")),
    Case("CatBoost", "deep", "binary", "missing", skl(depth=10, iterations=3)),
    *(
        Case("CatBoost", loss, "regression", "missing", positive(loss))
        for loss in ("Poisson", "Tweedie:variance_power=1.5", "MAE", "Quantile:alpha=0.8", "MAPE", "Huber:delta=0.5")
    ),
]  # fmt: skip
