"""LightGBM: gbdt, DART and random forests, classifiers and regressors, categories, every way of missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from lightgbm import Booster, LGBMClassifier, LGBMRanker, LGBMRegressor
from numpy.typing import NDArray

from treefocus.adapters import lightgbm_model
from treefocus.adapters.lightgbm_categories import columns_of_codes
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Floats
from treefocus.model.source import Source, asked

SUPPORTED = (LGBMClassifier, LGBMRegressor, Booster)
REFUSED: dict[type, str] = {
    LGBMRanker: "a ranking has no class and no value to reach; train an LGBMClassifier or LGBMRegressor instead.",
}


def to_source(model: Any) -> Source:
    """Translate a fitted LGBMClassifier, LGBMRegressor or Booster, up to its best iteration if it stopped early."""
    booster = model
    if not isinstance(model, Booster):
        try:
            booster = model.booster_
        except Exception as error:
            raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error
        if callable(model.objective):
            raise UnsupportedModel(
                f"This {type(model).__name__} has an objective of your own, whose link nobody knows; "
                "train it with a named objective."
            )
    classes = model.classes_ if isinstance(model, LGBMClassifier) else None
    text = booster.model_to_string()
    forest = lightgbm_model.read(text, classes=classes, source=type(model).__name__)
    by_code = columns_of_codes(text) if booster.pandas_categorical else []

    if forest.feature_names is not None and any("_" in name for name in forest.feature_names):
        forest = replace(forest, feature_names=None)  # LightGBM writes _ for spaces: the table's own names may differ

    def written(rows: Floats) -> Floats:
        """The rows as the booster reads them: its own numbers for categories."""
        if forest.categories is None:
            return rows
        given = rows.copy()
        if booster.pandas_categorical:
            for f in by_code:  # an unseen category is a missing one there
                given[given[:, f] == forest.categories.n_labels(f), f] = np.nan
            return given
        for f, labels in enumerate(forest.categories.labels):
            if labels is not None:
                known = np.array([*labels, max(labels) + 1, np.nan], np.float64)
                given[:, f] = known[np.where(np.isnan(rows[:, f]), len(labels) + 1, rows[:, f]).astype(np.intp)]
        return given

    def scores(rows: Floats) -> Floats:
        raw = booster.predict(written(rows), raw_score=True)
        return np.asarray(raw).reshape(len(rows), -1) / forest.divisor

    def answers(rows: Floats) -> NDArray[Any]:
        if isinstance(model, LGBMClassifier):
            return np.asarray(model.predict(written(rows), validate_features=False))
        shown = np.asarray(booster.predict(written(rows)))
        if forest.decision == "value":
            return shown
        return np.asarray(forest.classes[shown.argmax(axis=1) if shown.ndim == 2 else (shown > 0.5).astype(np.intp)])

    def probabilities(rows: Floats) -> NDArray[Any]:
        if isinstance(model, LGBMClassifier):
            return np.asarray(model.predict_proba(written(rows), validate_features=False))
        shown = np.asarray(booster.predict(written(rows)))
        return shown if shown.ndim == 2 else np.stack([1.0 - shown, shown], axis=1)

    shares = None if forest.decision == "value" else asked(probabilities)
    return Source(forest, asked(answers), asked(scores), shares, takes_infinite=True, to_rows=written)
