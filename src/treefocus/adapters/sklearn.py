"""scikit-learn: which model goes where, and the trees and forests that average: single trees, forests, bagging.

The library compares in float32 and adds up float64, tree after tree, then divides by their number. Both are kept to the
last bit, ties included. Boosting stands in sklearn_boosting.py, histogram boosting in sklearn_hist.py, isolation
forests in sklearn_isolation.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils.validation import check_is_fitted

from treefocus.adapters.sklearn_trees import assemble, reads_missing
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.source import Source, asked

_TREES = (DecisionTreeClassifier, DecisionTreeRegressor)  # the extra trees derive from them
_BAGGING = (BaggingClassifier, BaggingRegressor)
SUPPORTED: tuple[type, ...] = (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
)
REFUSED: dict[type, str] = {
    AdaBoostRegressor: (
        "it predicts the weighted median of its trees, which is no sum; "
        "use GradientBoostingRegressor or RandomForestRegressor instead."
    ),
    StackingClassifier: (
        "its last model reads what others predict, so that its answer is no sum over trees of the row; explain one of "
        "its models, model.estimators_[0], or train a VotingClassifier(voting='soft') of forests instead."
    ),
    StackingRegressor: (
        "its last model reads what others predict, so that its answer is no sum over trees of the row; explain one of "
        "its models, model.estimators_[0], or train a VotingRegressor instead."
    ),
}


def to_source(model: Any) -> Source:
    """Translate a fitted scikit-learn tree ensemble."""
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error
    if isinstance(getattr(model, "classes_", None), list) or getattr(model, "n_outputs_", 1) > 1:
        raise UnsupportedModel(
            f"This {type(model).__name__} predicts several outputs at once; fit one model an output."
        )
    if isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        from treefocus.adapters import sklearn_hist

        return sklearn_hist.to_source(model)
    if isinstance(model, AdaBoostClassifier | GradientBoostingClassifier | GradientBoostingRegressor):
        from treefocus.adapters import sklearn_boosting

        return sklearn_boosting.to_source(model)
    if isinstance(model, IsolationForest):
        from treefocus.adapters import sklearn_isolation

        return sklearn_isolation.to_source(model)
    return _averaging(model)


def _averaging(model: Any) -> Source:
    """A tree, or the mean of trees: class shares, or predicted values."""
    estimators = [behind_sampler(own) for own in model.estimators_] if hasattr(model, "estimators_") else [model]
    odd = next((own for own in estimators if not isinstance(own, _TREES)), None)
    if odd is not None and isinstance(model, BaggingClassifier):
        from treefocus.adapters import bagging

        return bagging.to_source(model, estimators)
    if odd is not None:
        raise UnsupportedModel(
            f"{type(model).__name__} of {type(odd).__name__} is not supported; of single decision trees it is, and a "
            "BaggingClassifier of two classes of any supported model."
        )
    n_trees = float(len(estimators))
    forest = assemble(
        model,
        estimators,
        node_value=[shares(own, model) if is_classifier(model) else own.tree_.value[:, 0, :] for own in estimators],
        features=model.estimators_features_ if isinstance(model, _BAGGING) else None,
        divisor=n_trees,
        tree_weight=np.full(len(estimators), 1.0 / n_trees),
        takes_missing=_takes_missing(model, estimators),
    )
    if is_classifier(model):
        shares_of = asked(model.predict_proba)
        return Source(forest, asked(model.predict), shares_of, shares_of)
    return Source(forest, asked(model.predict), asked(lambda rows: model.predict(rows)[:, None]))


def behind_sampler(model: Any) -> Any:
    """The model itself, or the last step of a pipeline whose other steps choose rows and do nothing at prediction."""
    if isinstance(model, Pipeline) and all(hasattr(step, "fit_resample") for _, step in model.steps[:-1]):
        return model[-1]
    return model


def shares(estimator: Any, model: Any) -> Any:
    """(n_nodes, n_classes) what the tree's predict_proba says at every node, a column a class of the ensemble."""
    known = estimator.tree_.value[:, 0, :]
    if known.shape[1] == len(model.classes_):
        return known
    wide = np.zeros((len(known), len(model.classes_)))  # a bootstrap can miss a class; its labels are class numbers
    wide[:, estimator.classes_.astype(np.intp)] = known
    return wide


def _takes_missing(model: Any, estimators: Sequence[Any]) -> bool:
    """Whether the trees take NaN at prediction; of a forest, the forest has a say too."""
    if not isinstance(model, _BAGGING) and not model.__sklearn_tags__().input_tags.allow_nan:
        return False
    return all(reads_missing(estimator) for estimator in estimators)
