"""What XGBoost writes into its model files (.json, .ubj), read without the library.

It compares in float32 with a strict <, sends the categories of a split's set to the right and all others to the left,
and adds up float32, tree after tree, from the base margin.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters.nodes import Nodes, check_sizes, end_to_end
from treefocus.errors import UnsupportedModel
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats, Forest, Link, join_trees

_LINKS: dict[str, Link] = {
    "binary:logistic": "sigmoid",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "reg:logistic": "sigmoid",
    "reg:squarederror": "identity",
    "reg:linear": "identity",
    "reg:squaredlogerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:absoluteerror": "identity",
    "reg:quantileerror": "identity",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "count:poisson": "exp",
    "survival:aft": "exp",
    "survival:cox": "exp",
}


def read(
    record: dict[str, Any], *, n_rounds: int | None = None, classes: Any = None, source: str = "XGBoost"
) -> Forest:
    """The forest of a parsed model file; `n_rounds` counts the boosting rounds to use, None for all."""
    learner = record["learner"]
    objective, parameters = learner["objective"]["name"], learner["learner_model_param"]
    machine = learner["gradient_booster"]
    _check(objective, parameters, machine)
    n_classes = max(int(parameters["num_class"]), 2) if objective.startswith(("binary", "multi")) else 0
    n_outputs = n_classes if n_classes > 2 or objective.startswith("multi") else 1
    n_features = int(parameters["num_feature"])
    check_sizes(n_features, n_outputs, len(machine.get("gbtree", machine)["model"]["trees"]))
    inner = machine.get("gbtree", machine)["model"]
    n_trees = len(inner["trees"]) if n_rounds is None else int(inner["iteration_indptr"][n_rounds])
    trees = inner["trees"][:n_trees]
    if not trees:
        raise UnsupportedModel("This XGBoost model has no trees; train it for one round or more.")
    labels, is_closed = _labels(learner, inner, trees, n_features)
    weight = np.asarray(machine.get("weight_drop", np.ones(n_trees)), np.float32)[:n_trees]
    nodes = _nodes(trees, np.asarray(inner["tree_info"][:n_trees], np.int64), weight, n_outputs, labels)
    rest: dict[str, Any] = {"decision": "value"}
    if n_classes:
        rest = {"decision": "argmax"} if n_outputs > 1 else {"decision": "above", "cut": largest_no()}
    names = learner.get("feature_names") or None
    return nodes.to_forest(
        labels,
        refuses_unseen=is_closed,
        base_score=base_margin(parameters, objective, n_outputs).astype(np.float64),
        classes=(np.arange(n_classes) if n_classes else np.empty(0)) if classes is None else classes,
        n_features=n_features,
        link=_LINKS[objective],
        input_dtype="float32",
        score_dtype="float32",
        takes_missing=True,
        feature_names=None if names is None else tuple(map(str, names)),
        source=source,
        **rest,
    )


def _check(objective: str, parameters: dict[str, Any], machine: dict[str, Any]) -> None:
    if machine["name"] not in ("gbtree", "dart"):
        raise UnsupportedModel(
            f"XGBoost's booster {machine['name']} is linear, not trees; train with booster='gbtree' or 'dart'."
        )
    if objective not in _LINKS:
        instead = "; a ranking has no class and no value to reach" if objective.startswith("rank") else ""
        raise UnsupportedModel(
            f"XGBoost with the objective {objective} is not supported{instead}. Supported are {', '.join(_LINKS)}."
        )
    if int(parameters.get("num_target", 1)) > 1:
        raise UnsupportedModel("This XGBoost model predicts several outputs at once; fit one model an output.")


def _nodes(
    trees: list[dict[str, Any]],
    group: NDArray[np.int64],
    weight: NDArray[np.float32],
    n_outputs: int,
    labels: Labels | None,
) -> Nodes:
    sizes = [len(tree["left_children"]) for tree in trees]
    start = join_trees(sizes)

    def joined(key: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.asarray(tree[key], dtype) for tree in trees])

    condition = joined("split_conditions", np.float32)
    value = np.zeros((len(condition), n_outputs))
    value[np.arange(len(condition)), np.repeat(group, sizes)] = condition * np.repeat(weight, sizes)
    condition = np.where(np.isnan(condition), np.float32(0), condition)  # older versions at a split on categories
    with np.errstate(over="ignore"):
        below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)  # x < t is x <= the float below t
    return Nodes(
        joined("split_indices", np.int64), below,
        end_to_end([tree["left_children"] for tree in trees], start),
        end_to_end([tree["right_children"] for tree in trees], start),
        joined("default_left", bool), value, start, _sets(trees, start, labels),
    )  # fmt: skip


def _sets(trees: list[dict[str, Any]], start: NDArray[np.int64], labels: Labels | None) -> list[Any] | None:
    """Per node the categories that go left: all but those in its set, unseen ones included."""
    if labels is None:
        return None
    sets: list[Any] = [None] * int(start[-1])
    for tree, first in zip(trees, start, strict=False):
        members = np.asarray(tree["categories"], np.int64)
        for node, at, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        ):
            n_labels = len(labels[int(tree["split_indices"][node])] or ())
            goes_left = np.ones(n_labels + 1, bool)
            goes_left[members[at : at + size]] = False
            sets[int(first) + int(node)] = np.flatnonzero(goes_left).tolist()
    return sets


def _labels(
    learner: dict[str, Any], inner: dict[str, Any], trees: list[Any], n_features: int
) -> tuple[Labels | None, NDArray[np.bool_] | None]:
    """The labels of categorical columns: those the file names (XGBoost 3.1 and newer), else the numbers themselves.

    And which columns hold no other category: the library reads none where it has names, and where it was trained on a
    table before 3.1 the names are lost, so that one must be refused rather than taken for a new category.
    """
    is_categorical = np.zeros(n_features, bool)
    n_seen = np.ones(n_features, np.int64)
    for tree in trees:
        members, index = np.asarray(tree["categories"], np.int64), np.asarray(tree["split_indices"], np.int64)
        for node, at, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        ):
            is_categorical[index[node]] = True
            n_seen[index[node]] = max(n_seen[index[node]], members[at : at + size].max(initial=0) + 1)
    check_sizes(n_features, 1, 1, int(n_seen.max()))
    for f, kind in enumerate(learner.get("feature_types") or ()):
        is_categorical[f] |= kind == "c"
    if not is_categorical.any():
        return None, None
    named = inner.get("cats", {}).get("enc") or [{}] * n_features
    labels = tuple(
        _named(own, int(count)) if is_one else None
        for own, count, is_one in zip(named, n_seen, is_categorical, strict=True)
    )
    is_closed = np.array([len(own.get("values", [])) > 0 for own in named]) | bool(learner.get("feature_names"))
    return labels, is_closed & is_categorical


def _named(encoded: dict[str, Any], n_seen: int) -> tuple[Any, ...]:
    values = encoded.get("values", [])
    if not len(values):
        return tuple(range(n_seen))
    if "offsets" not in encoded:
        return tuple(np.asarray(values).tolist())
    data = np.asarray(values, np.int64).astype(np.uint8).tobytes()
    ends = np.asarray(encoded["offsets"], np.int64).tolist()
    return tuple(data[low:high].decode("utf-8") for low, high in itertools.pairwise(ends))


def base_margin(parameters: dict[str, Any], objective: str, n_outputs: int) -> NDArray[np.float32]:
    """(n_outputs,) what the sums start from: the written base score through the inverse of the objective's link."""
    written = np.array([float(part) for part in parameters["base_score"].strip("[]").split(",")], np.float32)
    if objective in ("binary:logistic", "reg:logistic"):
        odds = np.float32(1) / written - np.float32(1)
        written = np.array([-math.log(one) for one in odds.tolist()], np.float32)
    elif _LINKS[objective] == "exp":
        written = np.array([math.log(one) for one in written.tolist()], np.float32)
    return np.broadcast_to(written, (n_outputs,)).astype(np.float32)


def largest_no() -> float:
    """The largest margin whose probability, in float32, is not above one half."""
    one, low, high = np.float32(1), np.float32(0), np.float32(1e-6)
    while np.nextafter(low, high) < high:
        middle = np.float32((low + high) / 2)
        if one / (one + np.exp(-middle)) > np.float32(0.5):
            high = middle
        else:
            low = middle
    return float(low)


def nearby(margin: Floats) -> list[NDArray[np.float32]]:
    """The margin, then the floats next to it, from near to far: libraries differ in the last bit of a logarithm."""
    steps = [margin.astype(np.float32)]
    up = down = steps[0]
    for _ in range(4):
        up, down = np.nextafter(up, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf))
        steps += [up, down]
    return steps
