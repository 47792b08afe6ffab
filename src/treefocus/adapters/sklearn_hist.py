"""scikit-learn's histogram gradient boosting: float64 thresholds, missing values, native categories.

Its own encoder moves categorical columns to the front and turns their labels into numbers; a category it does not know
becomes a missing value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from treefocus.errors import UnsupportedModel
from treefocus.model.categories import NO_CATEGORY, Categories
from treefocus.model.forest import Forest, join_trees
from treefocus.model.source import Source, asked, decoded

_LINKS = {"LogitLink": "sigmoid", "MultinomialLogit": "softmax", "LogLink": "exp", "IdentityLink": "identity"}


def to_source(model: Any) -> Source:
    """Translate a HistGradientBoostingClassifier or -Regressor."""
    link = _LINKS.get(type(model._loss.link).__name__)
    if link is None:
        raise UnsupportedModel(f"{type(model).__name__}(loss={model.loss!r}) is not supported; a built-in loss is.")
    predictors = [(k, own) for stage in model._predictors for k, own in enumerate(stage)]
    nodes = np.concatenate([own.nodes for _, own in predictors])
    start = join_trees([len(own.nodes) for _, own in predictors])
    is_leaf = nodes["is_leaf"].astype(bool)
    first = np.repeat(start[:-1], np.diff(start))
    tree = np.repeat(np.arange(len(predictors)), np.diff(start))
    n_outputs = int(model.n_trees_per_iteration_)
    value = np.zeros((len(nodes), n_outputs))
    value[np.arange(len(nodes)), np.array([k for k, _ in predictors])[tree]] = nodes["value"]
    column, labels = _columns(model)
    names = getattr(model, "feature_names_in_", None)
    if is_classifier(model):
        decision, classes = "argmax" if n_outputs > 1 else "above", model.classes_
    else:
        decision, classes = "value", np.empty(0)
    forest = Forest.from_nodes(
        feature=column[np.where(is_leaf, 0, nodes["feature_idx"].astype(np.int64))],
        threshold=nodes["num_threshold"],
        left=np.where(is_leaf, -1, nodes["left"].astype(np.int64) + first),
        right=np.where(is_leaf, -1, nodes["right"].astype(np.int64) + first),
        default_left=nodes["missing_go_to_left"].astype(bool),
        tree_start=start,
        node_value=value,
        base_score=np.asarray(model._baseline_prediction, np.float64).reshape(-1),
        classes=classes,
        n_features=int(model.n_features_in_),
        decision=decision,
        link=link,
        takes_missing=True,
        categories=_categories(model, nodes, [own for _, own in predictors], tree, column, labels),
        feature_names=None if names is None else tuple(str(name) for name in names),
        source=type(model).__name__,
    )
    return Source(
        forest,
        asked(lambda rows: model.predict(decoded(forest, rows))),
        asked(lambda rows: model._raw_predict(decoded(forest, rows))),
        asked(lambda rows: model.predict_proba(decoded(forest, rows))) if is_classifier(model) else None,
        takes_infinite=True,
        to_rows=lambda rows: decoded(forest, rows),
    )


def _columns(model: Any) -> tuple[NDArray[np.int64], list[tuple[Any, ...] | None]]:
    """The user's column behind every column of the trees, and the labels of the user's columns."""
    n_features = int(model.n_features_in_)
    labels: list[tuple[Any, ...] | None] = [None] * n_features
    if model._preprocessor is None:
        return np.arange(n_features), labels
    is_categorical = np.asarray(model.is_categorical_, bool)
    column = np.concatenate([np.flatnonzero(is_categorical), np.flatnonzero(~is_categorical)])
    encoder = model._preprocessor.named_transformers_["encoder"]
    for f, known in zip(np.flatnonzero(is_categorical), encoder.categories_, strict=True):
        own = [label for label in known.tolist() if label is not None and label == label]  # None and NaN are missing
        labels[f] = tuple(own) or NO_CATEGORY
    return column, labels


def _categories(
    model: Any,
    nodes: NDArray[Any],
    predictors: list[Any],
    tree: NDArray[np.int64],
    column: NDArray[np.int64],
    labels: list[tuple[Any, ...] | None],
) -> Categories | None:
    if all(own is None for own in labels):
        return None
    sets: list[list[int] | None] = [None] * len(nodes)
    known_bits, row_of_feature = model._bin_mapper.make_known_categories_bitsets()
    for node in np.flatnonzero(nodes["is_categorical"] & (1 - nodes["is_leaf"])):
        feature = int(nodes["feature_idx"][node])
        left = _members(predictors[tree[node]].raw_left_cat_bitsets[nodes["bitset_idx"][node]])
        known = _members(known_bits[row_of_feature[feature]])
        n_labels = len(labels[column[feature]] or ())
        # what is in neither set is treated as missing, the unseen category n_labels with it
        lost = set(range(n_labels + 1)) - set(known) - set(left) if nodes["missing_go_to_left"][node] else set()
        sets[node] = sorted({code for code in left if code < n_labels} | lost)
    return Categories.of_sets(labels, sets)


def _members(bits: NDArray[np.uint32]) -> list[int]:
    """The numbers whose bits are set."""
    numbers: list[int] = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()
    return numbers
