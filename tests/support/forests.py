"""Random forests and nasty rows, shared by the tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from treefocus.model.forest import LARGEST, Decision, Floats, Forest, InputDtype, join_trees

SEEDS = st.integers(0, 2**32 - 1)


def paper_dir() -> Path:
    """The folder with the paper's models and data; skips the test where there is none."""
    folder = os.environ.get("TREEFOCUS_PAPER")
    if not folder:
        pytest.skip("set TREEFOCUS_PAPER to the folder with the paper's models and data")
    return Path(folder)


def random_nodes(
    rng: np.random.Generator,
    n_features: int = 3,
    n_trees: int = 4,
    max_depth: int = 3,
    n_outputs: int = 2,
    *,
    n_thresholds: int = 4,
    spread: float = 1.0,
    has_missing_routes: bool = False,
) -> dict[str, Any]:
    """The node arguments of `Forest.from_nodes`, in pre-order.

    Thresholds come from a pool of `n_thresholds` a feature, of size `spread`, so that trees share them; half of
    the pool are round numbers and half are float64 values that float32 does not hold.
    """
    pool = rng.normal(0.0, spread, (n_features, n_thresholds))
    pool[:, ::2] = np.round(pool[:, ::2] * 4) / 4
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []

    def grow(depth: int) -> int:
        node = len(feature)
        is_leaf = depth == max_depth or rng.random() < 0.15
        f = -1 if is_leaf else int(rng.integers(n_features))
        feature.append(f)
        threshold.append(0.0 if is_leaf else float(rng.choice(pool[f])))
        left.append(-1)
        right.append(-1)
        if not is_leaf:
            left[node], right[node] = grow(depth + 1), grow(depth + 1)
        return node

    roots = [grow(0) for _ in range(n_trees)]
    n_nodes = len(feature)
    shape = (n_nodes, n_outputs)
    # Quarters make exact ties between classes, tenths make ties that rounding decides.
    values = [rng.integers(-2, 3, shape) / 4, rng.integers(-2, 3, shape) / 10, rng.normal(size=shape)]
    return {
        "feature": np.array(feature),
        "threshold": np.array(threshold),
        "left": np.array(left),
        "right": np.array(right),
        "default_left": rng.random(n_nodes) < (0.5 if has_missing_routes else 0.0),
        "tree_start": join_trees(np.diff([*roots, n_nodes]).tolist()),
        "node_value": values[rng.integers(len(values))],
    }


def random_forest(
    rng: np.random.Generator,
    n_features: int = 3,
    n_trees: int = 4,
    max_depth: int = 3,
    n_classes: int = 2,
    *,
    decision: Decision = "argmax",
    input_dtype: InputDtype = "float64",
    takes_missing: bool = False,
    n_thresholds: int = 4,
    spread: float = 1.0,
) -> Forest:
    """A forest of random trees; "above" and "at_least" tell two classes apart by one score."""
    n_outputs = n_classes if decision == "argmax" else 1
    nodes = random_nodes(
        rng,
        n_features,
        n_trees,
        max_depth,
        n_outputs,
        n_thresholds=n_thresholds,
        spread=spread,
        has_missing_routes=takes_missing,
    )
    return Forest.from_nodes(
        **nodes,
        base_score=rng.integers(-1, 2, n_outputs) / 4,
        classes=np.arange(n_classes if decision == "argmax" else 2),
        n_features=n_features,
        divisor=float(rng.choice([1.0, n_trees])),
        decision=decision,
        cut=float(rng.integers(-1, 2) / 4),
        input_dtype=input_dtype,
        takes_missing=takes_missing,
        source="random",
    )


def adversarial_rows(forest: Forest, rng: np.random.Generator, n_rows: int, *, missing: float | None = None) -> Floats:
    """(n_rows, n_features) rows of which most values sit on a threshold or one float beside it.

    The other values are spread over the thresholds and beyond. A share `missing` is NaN: by default a tenth where
    the forest takes missing values.
    """
    missing = (0.1 if forest.takes_missing else 0.0) if missing is None else missing
    rows = np.empty((n_rows, forest.n_features))
    for f in range(forest.n_features):
        own = np.unique(forest.threshold[(forest.feature == f) & (np.abs(forest.threshold) < LARGEST)])
        own = own if own.size else np.zeros(1)
        margin = 1.0 + own[-1] - own[0]
        anywhere = rng.uniform(own[0] - margin, own[-1] + margin, n_rows)
        rows[:, f] = np.where(rng.random(n_rows) < 0.3, anywhere, _beside(rng.choice(own, n_rows), rng))
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def _beside(threshold: Floats, rng: np.random.Generator) -> Floats:
    """Each threshold, or a neighbour of it in float64 or float32, or a value that float32 rounds either way."""
    near = threshold.astype(np.float32)
    down, up = (np.nextafter(near, np.float32(side)).astype(np.float64) for side in (-np.inf, np.inf))
    halfway = (near.astype(np.float64) + up) / 2
    choices = [
        threshold,
        np.nextafter(threshold, -np.inf),
        np.nextafter(threshold, np.inf),
        near.astype(np.float64),
        down,
        up,
        halfway,
        np.nextafter(halfway, -np.inf),
        np.nextafter(halfway, np.inf),
    ]
    return np.choose(rng.integers(len(choices), size=len(threshold)), choices)


@st.composite
def forests(draw: st.DrawFn, *, max_trees: int = 5, max_depth: int = 4) -> Forest:
    """Forests of every decision, both input dtypes, with and without missing values."""
    decision: Decision = draw(st.sampled_from(["argmax", "above", "at_least"]))
    return random_forest(
        np.random.default_rng(draw(SEEDS)),
        n_features=draw(st.integers(1, 5)),
        n_trees=draw(st.integers(1, max_trees)),
        max_depth=draw(st.integers(0, max_depth)),
        n_classes=draw(st.integers(2, 4)),
        decision=decision,
        input_dtype=draw(st.sampled_from(["float32", "float64"])),
        takes_missing=draw(st.booleans()),
        n_thresholds=draw(st.integers(1, 6)),
        spread=draw(st.sampled_from([1e-3, 1.0, 1e6])),
    )


@st.composite
def forests_with_rows(draw: st.DrawFn, *, n_rows: int = 60, max_trees: int = 5) -> tuple[Forest, Floats]:
    """A forest and adversarial rows for it."""
    forest = draw(forests(max_trees=max_trees))
    return forest, adversarial_rows(forest, np.random.default_rng(draw(SEEDS)), n_rows)
