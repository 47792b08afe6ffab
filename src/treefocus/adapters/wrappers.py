"""scikit-learn's wrappers around one model: searches for parameters, frozen models, thresholds of your own.

The model inside is translated, and the wrapper's own methods are what answers are confirmed by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._search_successive_halving import HalvingGridSearchCV, HalvingRandomSearchCV
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted

from treefocus.adapters.one_score import one_score, response_of, score_of
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.kernels.inverse import rest_up_to, score_from
from treefocus.model.forest import LARGEST, Forest
from treefocus.model.shares import has_shares
from treefocus.model.source import Source, asked

SUPPORTED: tuple[type, ...] = (
    GridSearchCV,
    RandomizedSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    BaseSearchCV,
    FrozenEstimator,
    FixedThresholdClassifier,
    TunedThresholdClassifierCV,
    MultiOutputClassifier,
    MultiOutputRegressor,
)
REFUSED: dict[type, str] = {}


def to_source(model: Any) -> Source:
    """Translate the model inside, and answer as the wrapper does."""
    if isinstance(model, FrozenEstimator):
        return looked_through(model, _translated(model.estimator))
    check_fitted(model)
    if isinstance(model, BaseSearchCV):
        if not hasattr(model, "best_estimator_"):
            raise InvalidInput(f"This {type(model).__name__} kept no best model: fit it with refit=True.")
        return looked_through(model, _translated(model.best_estimator_))
    if isinstance(model, MultiOutputClassifier | MultiOutputRegressor):
        raise UnsupportedModel(
            f"A {type(model).__name__} predicts {len(model.estimators_)} outputs at once, and one question has one "
            "answer; explain one output at a time: its model is model.estimators_[0], and so on."
        )
    return _thresholded(model)


def check_fitted(model: Any) -> None:
    """Refuse a model that was not fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error


def looked_through(model: Any, inner: Source, forest: Forest | None = None, **changes: Any) -> Source:
    """The source of the model inside, with a wrapper's own predict and predict_proba."""
    forest = inner.forest if forest is None else forest
    named = replace(forest, source=f"{type(model).__name__} of {inner.forest.source}")
    own: dict[str, Any] = {"predict": asked(lambda rows: model.predict(inner.to_rows(rows)))}
    if inner.probabilities is not None:
        own["probabilities"] = asked(lambda rows: model.predict_proba(inner.to_rows(rows)))
    if inner.with_words is not None:  # of a search or a frozen model, whose forest is the model's own
        known = inner.with_words
        own["with_words"] = lambda words: looked_through(model, known(words))
    return replace(inner, forest=named, **own | changes)


def _translated(model: Any) -> Source:
    from treefocus.adapters.registry import translate

    return translate(model)


def _thresholded(model: Any) -> Source:
    """The second class from a probability or a score up: a cut of the model's own score."""
    from treefocus.adapters.registry import translated_inside

    inside = getattr(model, "estimator_", None) or model.estimator
    inner = translated_inside(inside, model)
    method = response_of(inside, ("predict_proba", "decision_function"), model.response_method)
    if isinstance(model, TunedThresholdClassifierCV):
        cut, favoured = float(model.best_threshold_), model._curve_scorer._get_pos_label()
    else:
        is_auto, favoured = isinstance(model.threshold, str), model.pos_label
        cut = (0.5 if method == "predict_proba" else 0.0) if is_auto else float(model.threshold)
    is_second = favoured is None or favoured == inner.forest.classes[1]
    if method == "predict_proba" and inner.forest.n_outputs == 2 and has_shares(inner.forest):
        return _of_shares(model, inner, cut, is_second)
    single = one_score(inner, inside)
    turned: dict[str, Any]
    if method == "predict_proba" and is_second:
        turned = {"decision": "at_least", "cut": score_from(cut, single.forest)}
    elif method == "predict_proba":
        turned = {"decision": "above", "cut": rest_up_to(cut, single.forest)}
    else:
        raw = score_of(cut, single)
        turned = {"decision": "at_least", "cut": raw} if is_second else {"decision": "above", "cut": -raw}
    turned["cut"] = min(max(turned["cut"], -LARGEST), LARGEST)
    return looked_through(model, single, replace(single.forest, **turned))


def _of_shares(model: Any, inner: Source, cut: float, is_second: bool) -> Source:
    """A forest that adds up probabilities, asked for one of them; the favoured class stands last."""
    order = [0, 1] if is_second else [1, 0]
    forest, scores = inner.forest, inner.scores
    turned = replace(
        forest, leaf_value=forest.leaf_value[:, order], base_score=forest.base_score[order],
        classes=forest.classes[order], decision="likely", favoured=1, cut=cut,
        leaf_distribution=None if forest.leaf_distribution is None else forest.leaf_distribution[:, order],
    )  # fmt: skip
    own = asked(lambda rows: model.predict_proba(inner.to_rows(rows))[:, order])
    return looked_through(
        model, inner, turned, probabilities=own,
        scores=None if scores is None else lambda rows: np.asarray(scores(rows))[:, order],
    )  # fmt: skip
