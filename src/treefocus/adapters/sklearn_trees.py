"""The trees of a scikit-learn ensemble as one forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from treefocus.model.forest import Forest, join_trees


def assemble(
    model: Any,
    estimators: Sequence[Any],
    *,
    node_value: Sequence[Any],
    features: Sequence[Any] | None = None,
    base_score: Any = None,
    **rest: Any,
) -> Forest:
    """Lay the trees of a scikit-learn ensemble end to end; `features` are the columns that each tree was given."""
    trees = [estimator.tree_ for estimator in estimators]
    start = join_trees([tree.node_count for tree in trees])

    def children(side: str) -> Any:
        ids = [getattr(tree, side) for tree in trees]
        return np.concatenate([np.where(own < 0, -1, own + first) for own, first in zip(ids, start, strict=False)])

    column = [tree.feature for tree in trees]
    if features is not None:
        column = [np.asarray(own)[np.maximum(tree.feature, 0)] for own, tree in zip(features, trees, strict=True)]
    names = getattr(model, "feature_names_in_", None)
    value = np.concatenate(node_value)
    if is_classifier(model):
        rest = {"classes": model.classes_} | rest
    else:
        rest = {"classes": np.empty(0), "decision": "value"} | rest
    return Forest.from_nodes(
        feature=np.concatenate(column),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=children("children_left"),
        right=children("children_right"),
        default_left=np.concatenate([tree.missing_go_to_left for tree in trees]).astype(bool),
        tree_start=start,
        node_value=value,
        base_score=np.zeros(value.shape[1]) if base_score is None else base_score,
        n_features=int(model.n_features_in_),
        input_dtype="float32",
        feature_names=None if names is None else tuple(str(name) for name in names),
        source=type(model).__name__,
        **rest,
    )


def reads_missing(tree: Any) -> bool:
    """Whether a tree takes NaN; with monotonic constraints not every version does."""
    return bool(tree._support_missing_values(np.zeros((1, 1))))
