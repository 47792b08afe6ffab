"""`focus-trees-1`: a JSON form of the paper's own models (docs/forest-format.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Forest, join_trees

FOCUS_TREES = "focus-trees-1"


def read(record: dict[str, Any]) -> Forest:
    """The paper's models: scikit-learn 0.18 trees; decision rules as in their format's description."""
    trees, kind = record["trees"], record["kind"]
    if not trees:
        raise InvalidInput("A forest needs at least one tree, got none.")
    start = join_trees([len(tree["feature"]) for tree in trees])

    def joined(key: str) -> Any:
        return np.concatenate([np.asarray(tree[key]) for tree in trees])

    def children(key: str) -> Any:
        ids = [np.asarray(tree[key], np.int64) for tree in trees]
        return np.concatenate([np.where(own < 0, -1, own + first) for own, first in zip(ids, start, strict=False)])

    counts = joined("value").astype(np.float64)
    distribution = counts / counts.sum(axis=1, keepdims=True)
    n_trees = len(trees)
    classes = np.asarray(record["classes"])
    rest: dict[str, Any] = {}
    if kind == "ab":
        weight = np.asarray(record["estimator_weights"][:n_trees], np.float64)
        per_node = np.repeat(weight, np.diff(start))[:, None]
        vote = np.eye(len(classes))[distribution.argmax(axis=1)]
        rest = {
            "node_value": vote * per_node,
            "node_distribution": distribution * per_node,
            "tree_weight": weight,
        }
    elif kind in ("dt", "rf"):
        rest = {
            "node_value": distribution,
            "divisor": float(n_trees),
            "tree_weight": np.full(n_trees, 1.0 / n_trees),
        }
    else:
        reject("kind", "'dt', 'rf' or 'ab'", repr(kind))
    return Forest.from_nodes(
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=children("children_left"),
        right=children("children_right"),
        tree_start=start,
        base_score=np.zeros(len(classes)),
        classes=classes,
        n_features=int(record["n_features"]),
        input_dtype="float32",
        source=f"{FOCUS_TREES} {kind}",
        **rest,
    )
