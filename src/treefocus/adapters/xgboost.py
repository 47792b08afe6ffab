"""XGBoost: gbtree and DART, random forests, classifiers and regressors, native categories, missing values.

The model is read from what the library itself would save; the base margin, which the file rounds, is fitted to the
model's own margins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xgboost import Booster, DMatrix, XGBClassifier, XGBModel, XGBRanker, XGBRegressor

from treefocus import kernels
from treefocus.adapters import ubjson, xgboost_model
from treefocus.errors import InvalidInput, ModelMismatch, UnsupportedModel
from treefocus.model.forest import Floats, Forest
from treefocus.model.source import Source, asked

SUPPORTED = (XGBClassifier, XGBRegressor, Booster)
REFUSED: dict[type, str] = {
    XGBRanker: "a ranking has no class and no value to reach; train an XGBClassifier or XGBRegressor on the relevance.",
}
_PROBE_ROWS = 300
_SAME = 0.99  # share of probes whose margins agree to the last bit; DART may round a product differently


def to_source(model: Any) -> Source:
    """Translate a fitted XGBClassifier, XGBRegressor, one of their random forest twins, or a Booster."""
    booster, n_rounds = _booster(model)
    classes = getattr(model, "classes_", None) if isinstance(model, XGBClassifier) else None
    record = ubjson.parse(bytes(booster.save_raw("ubj")))
    forest = xgboost_model.read(record, n_rounds=n_rounds, classes=classes, source=type(model).__name__)
    used = (0, 0 if n_rounds is None else n_rounds)
    is_coded = forest.categories is not None

    def matrix(rows: Floats) -> DMatrix:
        kinds = None
        if forest.categories is not None:
            kinds = ["c" if own else "float" for own in forest.categories.is_categorical]
        names = None if forest.feature_names is None else list(forest.feature_names)
        return DMatrix(rows, feature_names=names, feature_types=kinds, enable_categorical=is_coded)

    def margins(rows: Floats) -> Floats:
        given = booster.predict(matrix(rows), output_margin=True, iteration_range=used, validate_features=False)
        return np.asarray(given).reshape(len(rows), -1)

    def answers(rows: Floats) -> NDArray[Any]:
        if isinstance(model, XGBModel) and not is_coded:
            return np.asarray(model.predict(rows, validate_features=False))
        shown = booster.predict(matrix(rows), iteration_range=used, validate_features=False)
        if forest.decision == "value":
            return np.asarray(shown)
        if shown.ndim == 2:
            return np.asarray(forest.classes[shown.argmax(axis=1)])
        return np.asarray(forest.classes[(shown > 0.5 if forest.n_outputs == 1 else shown).astype(np.intp)])

    def probabilities(rows: Floats) -> NDArray[Any]:
        if isinstance(model, XGBClassifier) and not is_coded:
            return np.asarray(model.predict_proba(rows, validate_features=False))
        shown = booster.predict(matrix(rows), iteration_range=used, validate_features=False)
        return np.asarray(shown) if shown.ndim == 2 else np.stack([1 - shown, shown], axis=1)

    fitted = _with_base_margin(forest, margins)
    has_probabilities = forest.decision != "value" and forest.link in ("sigmoid", "softmax")
    has_probabilities &= probabilities(np.zeros((1, forest.n_features))).shape[1] == forest.n_classes
    shares = asked(probabilities) if has_probabilities else None
    return Source(
        fitted, asked(answers), asked(margins), shares, precision=1e-5, to_rows=lambda rows: _given(forest, rows)
    )


def _given(forest: Forest, rows: Floats) -> Any:
    """Rows as XGBClassifier.predict takes them: a table where categories have names, else numbers."""
    if forest.categories is None or not any(isinstance(own[0], str) for own in forest.categories.labels if own):
        return rows
    import pandas

    columns: dict[str, Any] = {}
    for f, labels in enumerate(forest.categories.labels):
        name = str(f) if forest.feature_names is None else forest.feature_names[f]
        if labels is None:
            columns[name] = rows[:, f]
        else:
            codes = np.where(np.isnan(rows[:, f]), -1, rows[:, f]).astype(np.intp)
            columns[name] = pandas.Categorical.from_codes(codes, categories=pandas.Index(list(labels)))
    return pandas.DataFrame(columns)


def _booster(model: Any) -> tuple[Booster, int | None]:
    """The booster inside, and how many of its rounds the model uses: early stopping counts, in its own classes."""
    if isinstance(model, Booster):
        return model, None
    try:
        booster = model.get_booster()
    except Exception as error:
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error
    if model.missing is not None and not np.isnan(model.missing):
        raise UnsupportedModel(
            f"{type(model).__name__}(missing={model.missing}) is not supported; mark missing values as NaN."
        )
    if callable(model.objective):
        raise UnsupportedModel(
            f"This {type(model).__name__} has an objective of your own, whose link nobody knows; "
            "train it with a named objective."
        )
    is_stopped = booster.attr("best_iteration") is not None and model.booster != "gblinear"
    return booster, int(model.best_iteration) + 1 if is_stopped else None


def _with_base_margin(forest: Forest, margins: Any) -> Forest:
    """The base margin that makes our sums the model's own, to the last bit, on rows around the thresholds."""
    rows = _probes(forest)
    margin = margins(rows)
    share, best = np.zeros(forest.n_outputs), forest.base_score
    for number, shifted in enumerate(xgboost_model.nearby(forest.base_score)):
        total = kernels.hard_scores(replace(forest, base_score=shifted.astype(np.float64)) if number else forest, rows)
        same = (total == margin).mean(axis=0) * np.isclose(total, margin, rtol=1e-4, atol=1e-4).all(axis=0)
        best = np.where(same > share, shifted, best)
        share = np.maximum(share, same)
        if (share > _SAME).all():
            return replace(forest, base_score=best) if number else forest
    raise ModelMismatch(f"The {forest.source} and its translation give different margins; please report this model.")


def _probes(forest: Forest) -> Floats:
    """Rows whose values lie on thresholds, so that many leaves are reached."""
    rng = np.random.default_rng(0)
    rows = np.zeros((_PROBE_ROWS, forest.n_features))
    for f in range(forest.n_features):
        own = forest.threshold[forest.feature == f]
        if forest.categories is not None and forest.categories.is_categorical[f]:
            rows[:, f] = rng.integers(0, forest.categories.n_labels(f), _PROBE_ROWS)
        elif own.size:
            rows[:, f] = rng.choice(own, _PROBE_ROWS)
    return rows
