"""CatBoost: classifiers and regressors on numeric columns, symmetric trees and others, every missing mode."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoost, CatBoostClassifier, CatBoostRanker, CatBoostRegressor
from numpy.typing import NDArray

from treefocus.adapters import catboost_model
from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats
from treefocus.model.source import Source, asked

SUPPORTED = (CatBoostClassifier, CatBoostRegressor, CatBoost)
REFUSED: dict[type, str] = {
    CatBoostRanker: "a ranking has no class and no value to reach; train a CatBoostClassifier or -Regressor instead.",
}


def to_source(model: Any) -> Source:
    """Translate a fitted CatBoostClassifier, CatBoostRegressor or CatBoost."""
    if not model.is_fitted():
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.")
    cut = None
    threshold = model.get_probability_threshold() if hasattr(model, "get_probability_threshold") else None
    if threshold is not None:
        cut = catboost_model.raw_cut(float(threshold))
    classes = model.classes_ if len(model.classes_) else None
    forest = catboost_model.read(_record(model), classes=classes, cut=cut, source=type(model).__name__)

    def scores(rows: Floats) -> Floats:
        raw = model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)
        return np.asarray(raw).reshape(len(rows), -1)

    def answers(rows: Floats) -> NDArray[Any]:
        if forest.decision != "value":
            return np.asarray(model.predict(rows, prediction_type="Class", thread_count=1)).reshape(-1)
        return np.asarray(model.predict(rows, thread_count=1)).reshape(-1)

    def probabilities(rows: Floats) -> NDArray[Any]:
        return np.asarray(model.predict(rows, prediction_type="Probability", thread_count=1))

    shares = None if forest.decision == "value" else asked(probabilities)
    return Source(forest, asked(answers), asked(scores), shares, takes_infinite=True)


def _record(model: Any) -> dict[str, Any]:
    """What the library writes as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        record: dict[str, Any] = json.loads(path.read_bytes())
    return record
