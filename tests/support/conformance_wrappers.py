"""Wrappers' lines of the conformance list: the oracle is the wrapper's own predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_balanced
from imblearn.under_sampling import RandomUnderSampler
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from support.conformance import Case, Data, product

CLASSES = ("binary", "multi-class")
ONE: dict[str, Any] = {"random_state": 0}


def around(wrap: Any, classifier: Any, regressor: Any = None) -> Any:
    """A wrapper around a model, fitted; the model of the task."""

    def fit(task: str, data: Data) -> Any:
        return wrap(regressor if task == "regression" else classifier).fit(data.X, data.y)

    return fit


def forest() -> Any:
    return RandomForestClassifier(9, max_depth=5, **ONE)


def boosting(**parameters: Any) -> Any:
    return GradientBoostingClassifier(n_estimators=8, **ONE | parameters)


def hist() -> Any:
    return HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8, **ONE)


def values() -> Any:
    return RandomForestRegressor(9, max_depth=5, **ONE)


def few(name: str) -> Any:
    return {f"{name}max_depth": [2, 4]}


def calibrated(model: Any, method: str) -> Any:
    return around(lambda own: CalibratedClassifierCV(own, method=method, cv=3, ensemble=False), model)


def frozen_calibrated(task: str, data: Data) -> Any:
    before = boosting().fit(data.X[:150], data.y[:150])
    return CalibratedClassifierCV(FrozenEstimator(before)).fit(data.X[150:], data.y[150:])


def voting(task: str, data: Data, **parameters: Any) -> Any:
    if task == "regression":
        members = [("a", values()), ("b", ExtraTreesRegressor(7, **ONE)), ("c", GradientBoostingRegressor(**ONE))]
        return VotingRegressor(members[: len(parameters.get("weights", "abc"))], **parameters).fit(data.X, data.y)
    members = [
        ("a", forest()),
        ("b", ExtraTreesClassifier(7, **ONE)),
        ("c", DecisionTreeClassifier(max_depth=4, **ONE)),
    ]
    return VotingClassifier(members, **parameters).fit(data.X, data.y)


def scaled_voting(task: str, data: Data) -> Any:
    """A pipeline, which compares in float64, next to a forest, which compares in float32."""
    behind = make_pipeline(StandardScaler(), ExtraTreesClassifier(7, **ONE))
    return VotingClassifier([("a", forest()), ("b", behind)], voting="soft").fit(data.X, data.y)


def positive(way: Any, back: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        return TransformedTargetRegressor(values(), func=way, inverse_func=back).fit(data.X, np.exp(data.y / 3))

    return fit


def single(depth: int) -> Any:
    return DecisionTreeClassifier(max_depth=depth, **ONE)


WRAPPERS: list[Case] = [
    *product("wrappers", "GridSearchCV", around(lambda own: GridSearchCV(own, few(""), cv=2), forest(), values())),
    *product(
        "wrappers", "GridSearchCV of HistGradientBoosting, categories",
        around(lambda own: GridSearchCV(own, few(""), cv=2), hist(), HistGradientBoostingRegressor(max_iter=8)),
        data=("categorical",),
    ),
    *product(
        "wrappers", "GridSearchCV of a pipeline",
        around(
            lambda own: GridSearchCV(make_pipeline(StandardScaler(), own), {"standardscaler__with_mean": [True]}, cv=2),
            forest(), values(),
        ),
        data=("plain",),
    ),
    *product(
        "wrappers", "pipeline of GridSearchCV",
        around(lambda own: make_pipeline(StandardScaler(), GridSearchCV(own, few(""), cv=2)), forest(), values()),
        data=("plain",),
    ),
    *product(
        "wrappers", "RandomizedSearchCV",
        around(lambda own: RandomizedSearchCV(own, few(""), n_iter=2, cv=2, random_state=0), boosting()),
        CLASSES, data=("plain",),
    ),
    *product(
        "wrappers", "HalvingGridSearchCV",
        around(lambda own: HalvingGridSearchCV(own, few(""), cv=2, random_state=0), forest()), CLASSES, data=("plain",),
    ),
    *product(
        "wrappers", "GridSearchCV of XGBoost, categories",
        around(lambda own: GridSearchCV(own, few(""), cv=2), XGBClassifier(n_estimators=5, enable_categorical=True)),
        ("binary",), data=("categorical",), is_exact=False,
    ),
    *(
        Case("wrappers", f"FixedThreshold {name}", "binary", "plain", around(wrap, model))
        for name, model in {
            "forest": forest(), "boosting": boosting(), "exponential": boosting(loss="exponential"),
            "AdaBoost": AdaBoostClassifier(n_estimators=8, **ONE), "hist": hist(),
            "LightGBM": LGBMClassifier(n_estimators=8, verbose=-1),
            "behind a scaler": make_pipeline(StandardScaler(), forest()),
        }.items()
        for wrap in (
            lambda own: FixedThresholdClassifier(own, threshold=0.3),
            lambda own: FixedThresholdClassifier(own, threshold=0.3, pos_label=0),
        )
    ),
    *(
        Case("wrappers", f"FixedThreshold by score {label}", "binary", "plain", around(
            lambda own, label=label: FixedThresholdClassifier(
                own, threshold=0.4, pos_label=label, response_method="decision_function"
            ),
            boosting(loss=loss),
        ))
        for label in (0, 1) for loss in ("log_loss", "exponential")
    ),
    Case("wrappers", "FixedThreshold XGBoost", "binary", "missing", around(
        lambda own: FixedThresholdClassifier(own, threshold=0.3), XGBClassifier(n_estimators=5)), False),
    Case("wrappers", "TunedThreshold", "binary", "plain", around(
        lambda own: TunedThresholdClassifierCV(own, cv=2), forest())),
    Case("wrappers", "TunedThreshold boosting", "binary", "plain", around(
        lambda own: TunedThresholdClassifierCV(own, cv=2), boosting())),
    *(
        Case("wrappers", f"Calibrated {method} {name}", "binary", "plain", calibrated(model, method))
        for method in ("sigmoid", "isotonic")
        for name, model in {
            "forest": forest(), "boosting": boosting(), "exponential": boosting(loss="exponential"), "hist": hist(),
            "AdaBoost": AdaBoostClassifier(n_estimators=8, **ONE),
            "LightGBM": LGBMClassifier(n_estimators=8, verbose=-1),
        }.items()
    ),
    *(
        Case("wrappers", f"Calibrated folds {method} {name}", "binary", "plain", around(
            lambda own, method=method: CalibratedClassifierCV(own, method=method, cv=3), model), False)
        for method in ("sigmoid", "isotonic")
        for name, model in {
            "forest": forest(), "boosting": boosting(), "hist": hist(), "XGBoost": XGBClassifier(n_estimators=5),
            "AdaBoost": AdaBoostClassifier(n_estimators=8, **ONE),
        }.items()
    ),
    Case("wrappers", "Calibrated folds behind a scaler", "binary", "plain", around(
        lambda own: make_pipeline(StandardScaler(), CalibratedClassifierCV(own, cv=2)), forest()), False),
    Case("wrappers", "Voting, soft, of boosters", "binary", "plain", around(
        lambda own: VotingClassifier([("a", own), ("b", boosting()), ("c", hist())], voting="soft", weights=[2, 1, 1]),
        forest()), False),
    Case("wrappers", "Voting, hard, of forests", "binary", "plain", around(
        lambda own: VotingClassifier([("a", own), ("b", boosting()), ("c", hist())]), forest()), False),
    Case("wrappers", "EasyEnsemble", "binary", "plain", around(
        lambda own: EasyEnsembleClassifier(3, estimator=own, **ONE), AdaBoostClassifier(n_estimators=4, **ONE)), False),
    Case("wrappers", "Bagging of boosting, some columns", "binary", "plain", around(
        lambda own: BaggingClassifier(own, 3, max_features=0.7, **ONE), boosting()), False),
    Case("wrappers", "Calibrated, fitted before", "binary", "plain", frozen_calibrated),
    Case("wrappers", "Calibrated behind a scaler", "binary", "plain", around(
        lambda own: make_pipeline(StandardScaler(), CalibratedClassifierCV(own, cv=2, ensemble=False)), forest())),
    *product("wrappers", "Voting, soft", lambda task, data: voting(task, data, voting="soft"), CLASSES, is_exact=False),
    *product(
        "wrappers", "Voting, soft, weights", lambda task, data: voting(task, data, voting="soft", weights=[3, 1, 2]),
        CLASSES, data=("plain",), is_exact=False,
    ),
    *product("wrappers", "Voting, soft, behind a scaler", scaled_voting, CLASSES, data=("plain",), is_exact=False),
    *product(
        "wrappers", "Voting, hard", lambda task, data: VotingClassifier(
            [("a", single(2)), ("b", single(4)), ("c", single(7))], weights=[1, 2, 1.5]).fit(data.X, data.y), CLASSES,
    ),
    *product("wrappers", "VotingRegressor", voting, ("regression",), data=("plain",), is_exact=False),
    *product(
        "wrappers", "VotingRegressor, weights", lambda task, data: voting(task, data, weights=[2, 1]), ("regression",),
        is_exact=False,
    ),
    *product("wrappers", "OneVsRest forests", around(OneVsRestClassifier, forest()), CLASSES),
    *product("wrappers", "OneVsRest boosting", around(OneVsRestClassifier, boosting()), CLASSES, data=("plain",)),
    *product("wrappers", "OneVsRest trees", around(OneVsRestClassifier, single(3)), CLASSES),
    Case("wrappers", "OneVsRest LightGBM", "binary", "missing", around(
        OneVsRestClassifier, LGBMClassifier(n_estimators=8, verbose=-1))),
    Case("wrappers", "TransformedTarget log", "regression", "plain", positive(np.log, np.exp)),
    Case("wrappers", "TransformedTarget log1p", "regression", "missing", positive(np.log1p, np.expm1)),
    Case("wrappers", "TransformedTarget scaled", "regression", "plain", around(
        lambda own: TransformedTargetRegressor(own, transformer=StandardScaler()), None, values())),
    Case("wrappers", "TransformedTarget to [0, 1]", "regression", "plain", around(
        lambda own: TransformedTargetRegressor(own, transformer=MinMaxScaler()), None, values())),
    *product(
        "wrappers", "balanced pipeline",
        around(lambda own: make_balanced(StandardScaler(), RandomOverSampler(random_state=0), own), forest()),
        CLASSES, data=("plain",),
    ),
    *product(
        "wrappers", "balanced pipeline, nothing else",
        around(lambda own: make_balanced(RandomUnderSampler(random_state=0), own), hist()), CLASSES,
    ),
    *product(
        "wrappers", "BalancedRandomForest",
        around(lambda own: own, BalancedRandomForestClassifier(9, max_depth=5, **ONE)), CLASSES, data=("plain",),
    ),
    *product("wrappers", "BalancedBagging", around(lambda own: own, BalancedBaggingClassifier(
        DecisionTreeClassifier(max_depth=4), n_estimators=7, **ONE)), CLASSES, data=("plain",)),
    *product("wrappers", "RUSBoost", around(lambda own: own, RUSBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=8, **ONE)), CLASSES, data=("plain",)),
]  # fmt: skip
