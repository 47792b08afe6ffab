"""XGBoost: classifiers with numeric features (gbtree and DART, random forests), missing values included.

The library compares in float32 with a strict <, and adds up float32, tree after tree, from the base margin. Both are
kept to the last bit; the base margin, which the model file rounds, is fitted to the model's own margins.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xgboost import Booster, DMatrix, XGBClassifier

from treefocus.errors import InvalidInput, ModelMismatch, UnsupportedModel
from treefocus.forest import Forest, join_trees
from treefocus.kernels import reference

SUPPORTED = (XGBClassifier,)
_PROBE_ROWS = 500
_SAME = 0.99  # share of probes whose margins agree to the last bit; DART may round a product differently


def to_forest(model: XGBClassifier) -> Forest:
    """Translate a fitted XGBClassifier or XGBRFClassifier."""
    try:
        booster = model.get_booster()
    except Exception as error:
        raise InvalidInput(f"The {type(model).__name__} is not fitted: call its fit first.") from error
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        raise UnsupportedModel(f"XGBClassifier(missing={missing}) is not supported; mark missing values as NaN.")
    learner = json.loads(booster.save_raw("json"))["learner"]
    objective = learner["objective"]["name"]
    if objective not in ("binary:logistic", "multi:softprob", "multi:softmax"):
        raise UnsupportedModel(
            f"XGBoost with the objective {objective} is not supported; "
            "supported are binary:logistic, multi:softprob and multi:softmax."
        )
    best = getattr(model, "best_iteration", None) if booster.attr("best_iteration") is not None else None
    forest = _read(learner, model, None if best is None else int(best) + 1)
    return _with_base_margin(forest, booster, learner, best)


def _read(learner: dict[str, Any], model: Any, n_rounds: int | None) -> Forest:
    machine = learner["gradient_booster"]
    inner = machine.get("gbtree", machine)["model"]
    n_trees = len(inner["trees"]) if n_rounds is None else int(inner["iteration_indptr"][n_rounds])
    trees, groups = inner["trees"][:n_trees], inner["tree_info"][:n_trees]
    weights = machine.get("weight_drop", [1.0] * n_trees)
    if any(tree["categories"] for tree in trees):
        raise UnsupportedModel("XGBoost's categorical splits are not supported; train on encoded columns instead.")
    n_classes = len(model.classes_)
    n_outputs = 1 if n_classes == 2 else n_classes
    start = join_trees([len(tree["left_children"]) for tree in trees])

    def joined(key: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.asarray(tree[key], dtype) for tree in trees])

    def children(key: str) -> NDArray[np.int64]:
        ids = [np.asarray(tree[key], np.int64) for tree in trees]
        return np.concatenate([np.where(own < 0, -1, own + first) for own, first in zip(ids, start, strict=False)])

    condition = joined("split_conditions", np.float32)
    value = np.zeros((len(condition), n_outputs))
    for tree, (group, weight) in enumerate(zip(groups, weights, strict=False)):
        own = slice(start[tree], start[tree + 1])
        value[own, group] = condition[own] * np.float32(weight)
    names = learner.get("feature_names") or None
    return Forest.from_nodes(
        feature=joined("split_indices", np.int64),
        threshold=np.nextafter(condition, np.float32(-np.inf)).astype(np.float64),  # x < t is x <= the float below t
        left=children("left_children"),
        right=children("right_children"),
        default_left=joined("default_left", bool),
        tree_start=start,
        node_value=value,
        base_score=np.zeros(n_outputs),
        classes=model.classes_,
        n_features=int(learner["learner_model_param"]["num_feature"]),
        decision="above" if n_classes == 2 else "argmax",
        cut=_largest_no() if n_classes == 2 else 0.0,
        input_dtype="float32",
        score_dtype="float32",
        takes_missing=True,
        feature_names=None if names is None else tuple(names),
        source=type(model).__name__,
    )


def _largest_no() -> float:
    """The largest margin whose probability, in float32, is not above one half."""
    one, low, high = np.float32(1), np.float32(0), np.float32(1e-6)
    while np.nextafter(low, high) < high:
        middle = np.float32((low + high) / 2)
        if one / (one + np.exp(-middle)) > np.float32(0.5):
            high = middle
        else:
            low = middle
    return float(low)


def _with_base_margin(forest: Forest, booster: Booster, learner: dict[str, Any], best: int | None) -> Forest:
    """The base margin that makes our sums the model's own, to the last bit, on rows around the thresholds."""
    written = np.fromstring(learner["learner_model_param"]["base_score"].strip("[]"), dtype=np.float32, sep=",")
    if forest.n_outputs == 1:
        written = -np.log(np.float32(1) / written - np.float32(1))
    base = np.broadcast_to(written, (forest.n_outputs,)).astype(np.float32)
    rows = _probes(forest)
    names = None if forest.feature_names is None else list(forest.feature_names)
    asked = DMatrix(rows, feature_names=names)
    margin = booster.predict(asked, output_margin=True, iteration_range=(0, 0 if best is None else best + 1))
    margin = margin.reshape(len(rows), -1)
    leaves = reference.leaves(forest, rows).T
    for step in (0, 1, -1, 2, -2, 3, -3, 4, -4):  # the nearest floats to what the file says
        shifted = base.copy()
        for _ in range(abs(step)):
            shifted = np.nextafter(shifted, np.float32(np.copysign(np.inf, step)))
        total = np.tile(shifted, (len(rows), 1))
        for leaf in leaves:
            total += forest.leaf_value[leaf].astype(np.float32)
        if np.allclose(total, margin, rtol=1e-4, atol=1e-5) and (total == margin).mean() > _SAME:
            return replace(forest, base_score=shifted.astype(np.float64))
    raise ModelMismatch(f"The {forest.source} and its translation give different margins; please report this model.")


def _probes(forest: Forest) -> NDArray[np.float64]:
    """Rows whose values lie on thresholds, so that many leaves are reached."""
    rng = np.random.default_rng(0)
    rows = np.zeros((_PROBE_ROWS, forest.n_features))
    for f in range(forest.n_features):
        own = forest.threshold[forest.feature == f]
        if own.size:
            rows[:, f] = rng.choice(own, _PROBE_ROWS)
    return rows
