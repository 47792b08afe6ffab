"""scikit-learn: decision trees, random forests, extra trees, AdaBoost and gradient boosting classifiers.

The library compares in float32 and adds up float64: a forest sums the trees' class shares and divides by their
number, AdaBoost (SAMME) sums weighted votes and divides by the weights, gradient boosting adds learning rate * leaf to
a constant start. All are kept to the last bit, ties included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.validation import check_is_fitted

from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.forest import Forest, join_trees

SUPPORTED = (
    DecisionTreeClassifier,
    ExtraTreeClassifier,
    RandomForestClassifier,
    ExtraTreesClassifier,
    AdaBoostClassifier,
    GradientBoostingClassifier,
)


def to_forest(model: Any) -> Forest:
    """Translate a fitted scikit-learn classifier."""
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error
    if np.ndim(model.n_classes_) > 0 or isinstance(model.classes_, list):
        raise UnsupportedModel(
            f"This {type(model).__name__} predicts several outputs at once; fit one model an output."
        )
    if isinstance(model, AdaBoostClassifier):
        return _adaboost(model)
    if isinstance(model, GradientBoostingClassifier):
        return _gradient_boosting(model)
    estimators = list(model.estimators_) if hasattr(model, "estimators_") else [model]
    return _assemble(
        model,
        estimators,
        node_value=[_shares(estimator) for estimator in estimators],
        divisor=float(len(estimators)),
        tree_weight=np.full(len(estimators), 1.0 / len(estimators)),
    )


def _adaboost(model: AdaBoostClassifier) -> Forest:
    """SAMME: a tree gives its weight to the class it votes for and -weight / (n_classes - 1) to the others."""
    n_classes = len(model.classes_)
    weights = model.estimator_weights_[: len(model.estimators_)]
    votes, distributions = [], []
    for estimator, weight in zip(model.estimators_, weights, strict=True):
        if not isinstance(estimator, DecisionTreeClassifier):
            raise UnsupportedModel(
                f"AdaBoostClassifier of {type(estimator).__name__} is not a tree ensemble; "
                "AdaBoostClassifier of DecisionTreeClassifier is supported."
            )
        column = np.searchsorted(model.classes_, estimator.classes_)
        shares = np.zeros((estimator.tree_.node_count, n_classes))
        shares[:, column] = _shares(estimator)
        winner = column[_shares(estimator).argmax(axis=1)]
        other = -1 / (n_classes - 1) * weight if n_classes > 1 else 0.0
        vote = np.full_like(shares, other)
        vote[np.arange(len(vote)), winner] = weight
        votes.append(vote)
        distributions.append(weight * shares)
    return _assemble(
        model,
        model.estimators_,
        node_value=votes,
        node_distribution=np.concatenate(distributions),
        divisor=float(model.estimator_weights_.sum()),
        tree_weight=np.asarray(weights, np.float64),
    )


def _gradient_boosting(model: GradientBoostingClassifier) -> Forest:
    """Raw scores: one for two classes (class 1 from 0 up), else one a class, a tree for each at every stage."""
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    if not isinstance(model.init_, str) and not (
        isinstance(model.init_, DummyClassifier) and model.init_.strategy == "prior"
    ):
        raise UnsupportedModel(
            f"GradientBoostingClassifier(init={type(model.init_).__name__}) starts from a model that is not a tree; "
            "the default start and init='zero' are supported."
        )
    n_outputs = model.estimators_.shape[1]
    estimators, values = [], []
    for stage in model.estimators_:
        for k, estimator in enumerate(stage):
            value = np.zeros((estimator.tree_.node_count, n_outputs))
            value[:, k] = model.learning_rate * estimator.tree_.value[:, 0, 0]
            estimators.append(estimator)
            values.append(value)
    decision = "at_least" if n_outputs == 1 else "argmax"
    return _assemble(model, estimators, node_value=values, base_score=start, decision=decision)


def _shares(estimator: Any) -> Any:
    """(n_nodes, n_classes) what the tree's predict_proba says at every node."""
    return estimator.tree_.value[:, 0, :]


def _assemble(
    model: Any, estimators: list[Any], *, node_value: list[Any], base_score: Any = None, **rest: Any
) -> Forest:
    trees = [estimator.tree_ for estimator in estimators]
    start = join_trees([tree.node_count for tree in trees])

    def children(side: str) -> Any:
        ids = [getattr(tree, side) for tree in trees]
        return np.concatenate([np.where(own < 0, -1, own + first) for own, first in zip(ids, start, strict=False)])

    names = getattr(model, "feature_names_in_", None)
    return Forest.from_nodes(
        feature=np.concatenate([tree.feature for tree in trees]),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=children("children_left"),
        right=children("children_right"),
        default_left=np.concatenate([tree.missing_go_to_left for tree in trees]).astype(bool),
        tree_start=start,
        node_value=np.concatenate(node_value),
        base_score=np.zeros(len(model.classes_)) if base_score is None else base_score,
        classes=model.classes_,
        n_features=int(model.n_features_in_),
        input_dtype="float32",
        takes_missing=_takes_missing(model, estimators),
        feature_names=None if names is None else tuple(str(name) for name in names),
        source=type(model).__name__,
        **rest,
    )


def _takes_missing(model: Any, estimators: list[Any]) -> bool:
    """Trees and forests of them take NaN at prediction; the boosted ones' own checks refuse it."""
    if isinstance(model, AdaBoostClassifier | GradientBoostingClassifier):
        return False
    return all(estimator.__sklearn_tags__().input_tags.allow_nan for estimator in estimators)
