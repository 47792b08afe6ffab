"""Explainers over random forests, shared by the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.forests import adversarial_rows, random_forest
from treefocus import Explainer, Feature, Focus, Schema, kernels
from treefocus.model.forest import Floats, Forest

FAST = Focus(iterations=120)  # enough for forests of a few splits


def any_number(X: Floats) -> Schema:
    """Columns that may end up at any number, whatever their values look like."""
    return Schema([Feature(f"feature {j}") for j in range(X.shape[1])])


def random_question(seed: int, n_rows: int = 25, n_data: int = 60, **options: Any) -> tuple[Explainer, Floats]:
    """An explainer of a random forest that knows two classes or more, with random data, and rows to ask about."""
    rng = np.random.default_rng(seed)
    while True:
        forest = random_forest(
            rng,
            n_features=int(rng.integers(2, 5)),
            n_trees=int(rng.integers(1, 5)),
            n_classes=int(rng.integers(2, 4)),
            decision=rng.choice(["argmax", "above", "at_least"]),
            input_dtype=rng.choice(["float32", "float64"]),
            takes_missing=bool(rng.random() < 0.3),
        )
        data = adversarial_rows(forest, rng, n_data, missing=0.0)
        if len(np.unique(kernels.predict(forest, data))) > 1:
            return Explainer(forest, data, **options), adversarial_rows(forest, rng, n_rows)


def stump(threshold: float = 0.5, n_features: int = 2, **changes: Any) -> Forest:
    """One split on feature 0: "no" up to the threshold, "yes" above it."""
    arguments: dict[str, Any] = {
        "feature": [0, -1, -1],
        "threshold": [threshold, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "default_left": [False] * 3,
        "tree_start": [0, 3],
        "leaf_value": [[1.0, 0.0], [0.0, 1.0]],
        "base_score": [0.0, 0.0],
        "classes": ["no", "yes"],
        "n_features": n_features,
        "tree_weight": [1.0],
    }
    return Forest(**arguments | changes)
