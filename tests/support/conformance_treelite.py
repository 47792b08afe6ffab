"""treelite's lines of the conformance list: models of every library it imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treelite
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from support import conformance_lightgbm, conformance_xgboost
from support.conformance import Case, Data, product
from support.conformance_sklearn import one_of


def imported(fit: Callable[[str, Data], Any], to_treelite: Callable[[Any], Any]) -> Callable[[str, Data], Any]:
    return lambda task, data: to_treelite(fit(task, data))


def of_xgboost(model: Any) -> Any:
    return treelite.frontend.from_xgboost(model if hasattr(model, "save_raw") else model.get_booster())


def of_lightgbm(model: Any) -> Any:
    return treelite.frontend.from_lightgbm(model if hasattr(model, "model_to_string") else model.booster_)


FOREST = one_of(RandomForestClassifier, RandomForestRegressor, n_estimators=9, max_depth=6)
EXTRA = one_of(ExtraTreesClassifier, ExtraTreesRegressor, n_estimators=9, max_depth=6)
BOOSTING = one_of(GradientBoostingClassifier, GradientBoostingRegressor, n_estimators=8)
NUMBERS = imported(conformance_xgboost.numbers, of_xgboost)
TREELITE: list[Case] = [
    *product("treelite", "treelite of XGBoost", imported(conformance_xgboost.skl(), of_xgboost), is_exact=False),
    *product("treelite", "treelite of XGBoost, numbers", NUMBERS, data=("categorical",), is_exact=False),
    *product("treelite", "treelite of LightGBM", imported(conformance_lightgbm.skl(), of_lightgbm), is_exact=False),
    *product(
        "treelite", "treelite of LightGBM, numbers",
        imported(conformance_lightgbm.numbers, of_lightgbm), data=("categorical",), is_exact=False,
    ),
    *product(
        "treelite", "treelite of a LightGBM forest",
        imported(conformance_lightgbm.skl(**conformance_lightgbm.RF), of_lightgbm), data=("missing",), is_exact=False,
    ),
    *product(
        "treelite", "treelite of a forest", imported(FOREST, treelite.sklearn.import_model),
        data=("plain",), is_exact=False,
    ),
    *product(
        "treelite", "treelite of extra trees", imported(EXTRA, treelite.sklearn.import_model),
        data=("plain",), is_exact=False,
    ),
    *product(
        "treelite", "treelite of boosting", imported(BOOSTING, treelite.sklearn.import_model),
        data=("plain",), is_exact=False,
    ),
]  # fmt: skip
