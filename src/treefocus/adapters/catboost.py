"""CatBoost: classifiers and regressors, symmetric trees and others, every missing mode, categories.

A model keeps only hashes of its categories. Their words come from the data (`Source.with_words`), and their hashes from
the library itself.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoost, CatBoostClassifier, CatBoostRanker, CatBoostRegressor, Pool
from numpy.typing import NDArray

from treefocus.adapters import catboost_model
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Floats, Forest
from treefocus.model.source import Source, asked, decoded

SUPPORTED = (CatBoostClassifier, CatBoostRegressor, CatBoost)
MOST_CATEGORIES = 1000  # of a column
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
    told: dict[str, Any] = {"classes": classes, "cut": cut, "source": type(model).__name__}
    columns = model.get_cat_feature_indices()
    if not len(columns):
        return _source(model, catboost_model.read(_record(model), **told))

    def with_words(words: catboost_model.Words) -> Source:
        """The model once the words of its categorical columns are known, of which it keeps only hashes."""
        known = {int(f): tuple(map(str, words.get(int(f), ()))) for f in columns}
        many = next((f for f, own in known.items() if len(own) > MOST_CATEGORIES), None)
        if many is not None:
            raise UnsupportedModel(
                f"Column number {many} holds {len(known[many]):,} categories; of a CatBoost model at most "
                f"{MOST_CATEGORIES:,} are supported."
            )
        return _source(model, catboost_model.read(_record(model, known), **told, words=known))

    blind = catboost_model.read(_record(model), **told, words={})
    return replace(_source(model, blind), with_words=with_words)


def _source(model: Any, forest: Forest) -> Source:
    """The forest, next to the model's own answers."""

    def rows_of(rows: Floats) -> Any:
        return decoded(forest, rows)

    def scores(rows: Floats) -> Floats:
        raw = model.predict(rows_of(rows), prediction_type="RawFormulaVal", thread_count=1)
        return np.asarray(raw).reshape(len(rows), -1)

    def answers(rows: Floats) -> NDArray[Any]:
        if forest.decision != "value":
            return np.asarray(model.predict(rows_of(rows), prediction_type="Class", thread_count=1)).reshape(-1)
        return np.asarray(model.predict(rows_of(rows), thread_count=1)).reshape(-1)

    def probabilities(rows: Floats) -> NDArray[Any]:
        return np.asarray(model.predict(rows_of(rows), prediction_type="Probability", thread_count=1))

    shares = None if forest.decision == "value" else asked(probabilities)
    return Source(forest, asked(answers), asked(scores), shares, takes_infinite=True, to_rows=rows_of)


def _record(model: Any, words: catboost_model.Words | None = None) -> dict[str, Any]:
    """What the library writes as JSON, with the hashes of these words of categorical columns."""
    pool = None if words is None else _pool(model, words)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def _pool(model: Any, words: catboost_model.Words) -> Pool:
    """Rows that hold every word, for the library to hash."""
    n_rows, n_columns = max([1, *map(len, words.values())]), len(model.feature_names_)
    rows = np.zeros((n_rows, n_columns), object)
    for f, own in words.items():
        rows[:, f] = [own[i % len(own)] if own else "no category" for i in range(n_rows)]
    return Pool(rows.tolist(), cat_features=sorted(words), feature_names=list(model.feature_names_))
