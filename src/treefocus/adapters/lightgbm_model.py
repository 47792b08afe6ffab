"""What LightGBM writes into its model files (.txt), read without the library.

It compares float64 after values within 1e-35 of zero became zero, sends the categories of a split's set to the left and
all others, missing ones too, to the right, and adds up float64. A missing number is zero, or its own case, as each
node's missing type says; where zero itself counts as missing see `lightgbm_zero`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters.lightgbm_categories import codes_left, fields_of, labels_of
from treefocus.adapters.lightgbm_zero import ZERO, with_zero_as_missing
from treefocus.adapters.nodes import Nodes, check_sizes
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.categories import Labels, are_categories
from treefocus.model.forest import Forest, join_trees

_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_NO_MISSING, _ZERO_IS_MISSING, _NAN_IS_MISSING = 0, 1, 2
_REGRESSION = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    "cross_entropy": "sigmoid",
}
_OBJECTIVES = ("binary", "multiclass", "multiclassova", *_REGRESSION)


def read(text: str, *, classes: Any = None, source: str = "LightGBM") -> Forest:
    """The forest of a model file's text."""
    head, *blocks = text.split("\nTree=")
    header = fields_of(head)
    objective, *options = header.get("objective", "").split()
    settings = dict(option.split(":", 1) for option in options if ":" in option)
    _check(objective, options, text)
    if "\nend of trees" not in text:
        raise InvalidInput("The LightGBM file is cut short: the end of its trees is missing.")
    if not blocks:
        raise UnsupportedModel("This LightGBM model has no trees; train it for one round or more.")
    blocks[-1] = blocks[-1].split("\nend of trees")[0]
    trees = [fields_of(block) for block in blocks]
    n_outputs = int(header["num_tree_per_iteration"])
    n_features = int(header["max_feature_idx"]) + 1
    check_sizes(n_features, n_outputs, len(trees))
    labels, are_values = labels_of(header, text)
    nodes = _nodes(trees, n_outputs, labels, are_values)
    n_rounds = len(trees) // n_outputs
    averaged = float(n_rounds) if "average_output" in head.split("\n") else 1.0
    names = header["feature_names"].split(" ")
    return nodes.to_forest(
        labels,
        base_score=np.zeros(n_outputs),
        n_features=n_features,
        divisor=averaged / float(settings.get("sigmoid", 1.0)),
        takes_missing=True,
        feature_names=None if _are_numbered(names) else tuple(names),
        source=source,
        **_answer(objective, n_outputs, classes),
    )


def _answer(objective: str, n_outputs: int, classes: Any) -> dict[str, Any]:
    """Classes, decision and link."""
    if objective in _REGRESSION:
        return {"classes": np.empty(0), "decision": "value", "link": _REGRESSION[objective]}
    if objective == "binary":
        known = np.arange(2) if classes is None else classes
        return {"classes": known, "decision": "above", "cut": largest_no(), "link": "sigmoid"}
    known = np.arange(n_outputs) if classes is None else classes
    return {"classes": known, "decision": "argmax", "link": "softmax" if objective == "multiclass" else "sigmoid"}


def _check(objective: str, options: list[str], text: str) -> None:
    if not objective or objective == "custom":
        raise UnsupportedModel(
            "This LightGBM model has an objective of your own, whose link nobody knows; train it with a named one."
        )
    if objective in ("lambdarank", "rank_xendcg"):
        raise UnsupportedModel(
            f"LightGBM with the objective {objective} ranks: there is no class and no value to reach. "
            "Train a classifier or a regressor on the relevance."
        )
    if objective not in _OBJECTIVES or "sqrt" in options:
        instead = "regression without reg_sqrt" if "sqrt" in options else ", ".join(_OBJECTIVES)
        raise UnsupportedModel(
            f"LightGBM with the objective {' '.join([objective, *options])} is not supported; supported is {instead}."
        )
    if "\nis_linear=1" in text:
        raise UnsupportedModel(
            "This LightGBM model has linear models in its leaves, so it is no step function; "
            "train it with linear_tree=False."
        )


def _nodes(trees: list[dict[str, str]], n_outputs: int, labels: Labels | None, are_values: bool) -> Nodes:
    """Inner nodes first, then the leaves, tree after tree."""
    n_leaves = _column(trees, "num_leaves", np.int64)
    n_inner = n_leaves - 1
    if len(n_leaves) != len(trees) or (n_leaves < 1).any():
        raise InvalidInput("The LightGBM file is damaged: a tree has no leaf.")
    value = _column(trees, "leaf_value", np.float64)
    feature, kind = _column(trees, "split_feature", np.int64), _column(trees, "decision_type", np.int64)
    written = _column(trees, "threshold", np.float64)
    left, right = _column(trees, "left_child", np.int64), _column(trees, "right_child", np.int64)
    lengths = {len(feature), len(kind), len(written), len(left), len(right)}
    if len(value) != n_leaves.sum() or lengths != {int(n_inner.sum())}:
        raise InvalidInput("The LightGBM file is damaged: its trees are of several lengths.")
    start = join_trees((n_inner + n_leaves).tolist())
    tree_of_inner = np.repeat(np.arange(len(trees)), n_inner)
    inner_at = np.arange(len(feature)) - np.repeat(join_trees(n_inner.tolist())[:-1], n_inner) + start[tree_of_inner]
    tree_of_leaf = np.repeat(np.arange(len(trees)), n_leaves)
    leaf_at = np.flatnonzero(~np.isin(np.arange(start[-1]), inner_at))

    def placed(ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """A child's number counts inner nodes of its tree, or leaves from -1 down."""
        if ((ids >= n_inner[tree_of_inner]) | (~ids >= n_leaves[tree_of_inner])).any():
            raise InvalidInput("The LightGBM file is damaged: a tree points to nodes that are not there.")
        return start[tree_of_inner] + np.where(ids >= 0, ids, n_inner[tree_of_inner] + ~ids)

    def at_inner(values: NDArray[Any], other: Any) -> NDArray[Any]:
        spread = np.full(start[-1], other, values.dtype)
        spread[inner_at] = values
        return spread

    is_categorical = (kind & _CATEGORICAL) > 0
    threshold = np.where((written >= 0) & (written < ZERO), ZERO, written)  # what lies within 1e-35 of 0 is 0
    threshold = np.where((written < 0) & (written >= -ZERO), np.nextafter(-ZERO, -np.inf), threshold)
    missing = (kind >> 2) & 3
    default_left = (kind & _DEFAULT_LEFT) > 0
    goes_left = np.where(missing == _NO_MISSING, threshold >= 0.0, default_left) & ~is_categorical
    values = np.zeros((start[-1], n_outputs))
    values[leaf_at, tree_of_leaf % n_outputs] = value
    is_category = are_categories(labels, int(feature.max(initial=0)) + 1)
    is_code = ~is_categorical & is_category[feature]
    sets: list[Any] | None = None
    if labels is not None:
        sets = [None] * int(start[-1])
        for node, members in zip(inner_at[is_categorical], _sets(trees, kind, written, n_inner), strict=True):
            sets[node] = members
        sets = _numbered(sets, at_inner(feature, -1), labels, are_values)
        for i in np.flatnonzero(is_code).tolist():
            zero_left = bool(default_left[i]) if missing[i] == _ZERO_IS_MISSING else bool(threshold[i] >= 0.0)
            n_labels = len(labels[int(feature[i])] or ())
            sets[inner_at[i]] = codes_left(n_labels, float(threshold[i]), zero_left, bool(goes_left[i]))
    nodes = Nodes(
        at_inner(feature, -1), at_inner(np.where(is_categorical | is_code, 0.0, threshold), 0.0),
        at_inner(placed(left), -1), at_inner(placed(right), -1), at_inner(goes_left, False), values, start, sets,
    )  # fmt: skip
    odd = (missing == _ZERO_IS_MISSING) & ~is_categorical & ~is_code & (default_left != (threshold >= ZERO))
    return with_zero_as_missing(nodes, at_inner(odd, False)) if odd.any() else nodes


def _sets(
    trees: list[dict[str, str]], kind: NDArray[np.int64], written: NDArray[np.float64], n_inner: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The categories that go left at every categorical split, in order: bits of 32-bit words, tree by tree."""
    found = []
    ends = np.cumsum(n_inner)
    for tree, end, size in zip(trees, ends, n_inner, strict=True):
        own = slice(end - size, end)
        chosen = written[own][(kind[own] & _CATEGORICAL) > 0]
        if not chosen.size:
            continue
        bounds = _column([tree], "cat_boundaries", np.int64)
        words = _column([tree], "cat_threshold", np.uint32)
        for number in chosen.astype(np.int64):
            if not 0 <= number < len(bounds) - 1:
                raise InvalidInput("The LightGBM file is damaged: a split has no set of categories.")
            bits = words[bounds[number] : bounds[number + 1]].astype("<u4").view(np.uint8)
            found.append(np.flatnonzero(np.unpackbits(bits, bitorder="little")))
    return found


def _numbered(sets: list[Any], feature: NDArray[np.int64], labels: Labels, are_values: bool) -> list[Any]:
    """The sets in our numbers; where the labels are the values themselves, a category is looked up among them."""
    number_of = [
        {(label if are_values else number): number for number, label in enumerate(own or ())} for own in labels
    ]
    return [
        None if members is None else [number_of[f][own] for own in members.tolist() if own in number_of[f]]
        for members, f in zip(sets, feature.tolist(), strict=True)
    ]


def _column(trees: list[dict[str, str]], key: str, dtype: Any) -> NDArray[Any]:
    """One line of every tree, end to end."""
    words = " ".join(tree.get(key, "") for tree in trees).split()
    try:
        return np.array(words, dtype=np.float64 if dtype == np.float64 else object).astype(dtype)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"The LightGBM file is damaged: {key} holds {error}.") from error


def _are_numbered(names: list[str]) -> bool:
    """Whether these are the names that LightGBM gives columns without names."""
    return names == [f"Column_{f}" for f in range(len(names))]


def largest_no() -> float:
    """The largest score whose probability is not above one half."""
    low, high = 0.0, 1e-12
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if 1.0 / (1.0 + np.exp(-middle)) > 0.5 else (middle, high)
    return low
