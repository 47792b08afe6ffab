"""scikit-learn's boosting over single trees: AdaBoost adds weighted votes, gradient boosting learning rate * leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier

from treefocus.adapters.sklearn_trees import assemble
from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Floats
from treefocus.model.source import Source, asked


def to_source(model: Any) -> Source:
    """Translate an AdaBoostClassifier or a gradient boosting model; their own checks refuse missing values."""
    return _adaboost(model) if isinstance(model, AdaBoostClassifier) else _gradient_boosting(model)


def _adaboost(model: AdaBoostClassifier) -> Source:
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
        known = estimator.tree_.value[:, 0, :]
        shares = np.zeros((estimator.tree_.node_count, n_classes))
        shares[:, column] = known
        winner = column[known.argmax(axis=1)]
        other = -1 / (n_classes - 1) * weight if n_classes > 1 else 0.0
        vote = np.full_like(shares, other)
        vote[np.arange(len(vote)), winner] = weight
        votes.append(vote)
        distributions.append(weight * shares)
    forest = assemble(
        model,
        model.estimators_,
        node_value=votes,
        node_distribution=np.concatenate(distributions),
        divisor=float(model.estimator_weights_.sum()),
        tree_weight=np.asarray(weights, np.float64),
        link="softmax" if n_classes == 2 else "identity",
    )

    def scores(rows: Floats) -> Floats:
        given = np.asarray(model.decision_function(rows))  # of two classes, the second score minus the first
        return given if n_classes > 2 else given.reshape(-1, 1) * np.array([[-0.5, 0.5]])[:, -n_classes:]

    return Source(forest, asked(model.predict), asked(scores), asked(model.predict_proba))


def _gradient_boosting(model: Any) -> Source:
    """Raw scores: one for a value or for two classes (class 1 from 0 up), else one a class, a tree each a stage."""
    _check_start(model)
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    n_outputs = model.estimators_.shape[1]
    estimators, values = [], []
    for stage in model.estimators_:
        for k, estimator in enumerate(stage):
            value = np.zeros((estimator.tree_.node_count, n_outputs))
            value[:, k] = model.learning_rate * estimator.tree_.value[:, 0, 0]
            estimators.append(estimator)
            values.append(value)
    if isinstance(model, GradientBoostingRegressor):
        forest = assemble(model, estimators, node_value=values, base_score=start)
        return Source(forest, asked(model.predict), asked(lambda rows: model.predict(rows)[:, None]))
    rest: dict[str, Any] = {"decision": "argmax", "link": "softmax"}
    if n_outputs == 1:
        rest = {"decision": "at_least", "link": "sigmoid"}
    doubled = 2.0 if model.loss == "exponential" else 1.0  # its probability is the sigmoid of twice the score
    forest = assemble(model, estimators, node_value=values, base_score=start, divisor=1.0 / doubled, **rest)

    def scores(rows: Floats) -> Floats:
        return doubled * np.asarray(model.decision_function(rows)).reshape(len(rows), -1)

    return Source(forest, asked(model.predict), asked(scores), asked(model.predict_proba))


def _check_start(model: Any) -> None:
    known = (DummyClassifier, DummyRegressor)
    constant = isinstance(model.init_, known) and model.init_.strategy in ("prior", "mean", "quantile", "constant")
    if not isinstance(model.init_, str) and not constant:
        raise UnsupportedModel(
            f"{type(model).__name__}(init={type(model.init_).__name__}) starts from a model that is not a tree; "
            "the default start and init='zero' are supported."
        )
