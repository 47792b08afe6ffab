"""Pipelines' lines of the conformance list: preprocessing in front of models of several libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PowerTransformer, QuantileTransformer, StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from support.conformance import Case, Data, product


def _numbers(scaler: Any) -> Any:
    return make_pipeline(SimpleImputer(add_indicator=True), scaler)


def _mixed(scaler: Any, encoder: Any) -> ColumnTransformer:
    """Scaled numbers and encoded categories, whichever there are."""
    is_number = make_column_selector(dtype_include="number")
    is_text = make_column_selector(dtype_include=["category", "object"])
    return ColumnTransformer([("numbers", _numbers(scaler), is_number), ("categories", encoder, is_text)])


def ends_in(classifier: type, regressor: type, scaler: Any, encoder: Any, **parameters: Any) -> Any:
    def fit(task: str, data: Data) -> Any:
        model = (regressor if task == "regression" else classifier)(random_state=0, **parameters)
        before = _numbers(scaler) if isinstance(data.X, np.ndarray) else _mixed(scaler, encoder)
        return Pipeline([("before", before), ("model", model)]).fit(data.X, data.y)

    return fit


def native(task: str, data: Data) -> Any:
    """The usual way to give categories to histogram boosting: as an encoder's numbers."""
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    before = ColumnTransformer([("codes", encoder, ["colour", "town"])], remainder="passthrough")
    model = kind(max_iter=12, max_leaf_nodes=8, categorical_features=[0, 1], random_state=0)
    return make_pipeline(before, model).fit(data.X, data.y)


EVERY = ("plain", "missing", "categorical")
one_hot = OneHotEncoder(handle_unknown="ignore")
ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
PIPELINES: list[Case] = [
    *product(
        "pipeline", "RandomForest behind StandardScaler",
        ends_in(RandomForestClassifier, RandomForestRegressor, StandardScaler(), one_hot, n_estimators=12), data=EVERY,
    ),
    *product(
        "pipeline", "GradientBoosting behind PowerTransformer",
        ends_in(GradientBoostingClassifier, GradientBoostingRegressor, PowerTransformer(), ordinal, n_estimators=8),
        data=EVERY,
    ),
    *product(
        "pipeline", "HistGradientBoosting behind QuantileTransformer",
        ends_in(
            HistGradientBoostingClassifier, HistGradientBoostingRegressor, QuantileTransformer(n_quantiles=40), ordinal,
            max_iter=10,
        ),
        data=EVERY,
    ),
    *product("pipeline", "HistGradientBoosting, categories behind OrdinalEncoder", native, data=("categorical",)),
    *product(
        "pipeline", "XGBoost behind StandardScaler",
        ends_in(XGBClassifier, XGBRegressor, StandardScaler(), one_hot, n_estimators=8, max_depth=4), data=EVERY,
    ),
]  # fmt: skip
