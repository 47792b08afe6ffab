"""treelite models (4.x), whatever library they came from, as treelite's own GTIL predicts them.

Sums are taken in the model's own dtype, the base scores are added at the end. treelite shows probabilities and leaves
the class to its user: here it is the likeliest, and of one probability the second class if it is above one half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import treelite
from numpy.typing import NDArray

from treefocus.adapters.lightgbm_model import largest_no as largest_no_double
from treefocus.adapters.nodes import Nodes, end_to_end
from treefocus.adapters.xgboost_model import largest_no as largest_no_single
from treefocus.errors import UnsupportedModel
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats, Link, join_trees
from treefocus.model.source import Source, asked

SUPPORTED = (treelite.Model,)
REFUSED: dict[type, str] = {}

_BINARY, _REGRESSOR, _MULTI = 0, 1, 2
_LEAF, _NUMERIC, _CATEGORICAL = 0, 1, 2
_LESS, _LESS_OR_EQUAL, _GREATER, _GREATER_OR_EQUAL = 2, 3, 4, 5
_LINKS: dict[str, Link] = {
    "identity": "identity",
    "identity_multiclass": "identity",
    "sigmoid": "sigmoid",
    "multiclass_ova": "sigmoid",
    "softmax": "softmax",
    "exponential": "exp",
}


def to_source(model: Any) -> Source:
    """Translate a treelite.Model."""
    header = model.get_header_accessor()
    task, postprocessor = int(header.get_field("task_type")[0]), str(header.get_field("postprocessor"))
    _check(task, postprocessor, int(header.get_field("num_target")[0]))
    n_outputs = int(header.get_field("num_class")[0])
    trees = [_Tree(model.get_tree_accessor(i)) for i in range(model.num_tree)]
    single = model.input_type == "float32"
    dtype = np.float32 if single else np.float64
    nodes, labels = _nodes(trees, header.get_field("class_id"), n_outputs, int(model.num_feature), dtype)
    n_trees = float(len(trees)) if header.get_field("average_tree_output")[0] else 1.0
    if n_trees > 1 and not _is_for_all_classes(header, n_outputs):
        n_trees /= n_outputs
    base = np.asarray(header.get_field("base_scores"), np.float64) * n_trees
    is_steep = postprocessor in ("sigmoid", "multiclass_ova")
    alpha = float(header.get_field("sigmoid_alpha")[0]) if is_steep else 1.0
    rest: dict[str, Any] = {"classes": np.empty(0), "decision": "value"}
    if n_outputs > 1:
        rest = {"classes": np.arange(n_outputs), "decision": "argmax"}
    elif task == _BINARY:
        above = largest_no_single() if single else largest_no_double()
        rest = {"classes": np.arange(2), "decision": "above", "cut": above if is_steep else 0.5}
    forest = _with_last_leaf(nodes, base).to_forest(
        labels,
        base_score=np.zeros(n_outputs),
        n_features=int(model.num_feature),
        divisor=n_trees / alpha,
        link=_LINKS[postprocessor],
        input_dtype="float32" if single else "float64",
        score_dtype="float32" if single else "float64",
        takes_missing=True,
        source="treelite model",
        **rest,
    )

    def given(rows: Floats) -> NDArray[Any]:
        values = rows.copy()
        for f, own in enumerate(labels or ()):
            if own is not None:
                known = np.array([*own, max(own) + 1, np.nan])
                values[:, f] = known[np.where(np.isnan(rows[:, f]), len(own) + 1, rows[:, f]).astype(np.intp)]
        with np.errstate(over="ignore"):
            return values.astype(model.input_type)

    def scores(rows: Floats) -> Floats:
        raw = treelite.gtil.predict(model, given(rows), nthread=1, pred_margin=True)
        return np.asarray(raw, np.float64).reshape(len(rows), -1) * alpha

    def answers(rows: Floats) -> NDArray[Any]:
        shown = np.asarray(treelite.gtil.predict(model, given(rows), nthread=1)).reshape(len(rows), -1)
        if forest.decision == "value":
            return shown[:, 0]
        best = shown.argmax(axis=1) if n_outputs > 1 else (shown[:, 0] > 0.5).astype(np.intp)
        return np.asarray(forest.classes[best])

    def probabilities(rows: Floats) -> NDArray[Any]:
        shown = np.asarray(treelite.gtil.predict(model, given(rows), nthread=1)).reshape(len(rows), -1)
        return shown if n_outputs > 1 else np.concatenate([1 - shown, shown], axis=1)

    return Source(
        forest,
        asked(answers),
        asked(scores),
        None if forest.decision == "value" else asked(probabilities),
        takes_infinite=True,
        precision=1e-5 if single else 1e-12,
    )


def _check(task: int, postprocessor: str, n_targets: int) -> None:
    if n_targets > 1:
        raise UnsupportedModel("This treelite model predicts several outputs at once; take one model an output.")
    if task not in (_BINARY, _REGRESSOR, _MULTI):
        raise UnsupportedModel(
            "This treelite model ranks or looks for outliers; only classifiers and regressors are supported. "
            "An IsolationForest of scikit-learn is supported as itself."
        )
    if postprocessor not in _LINKS:
        raise UnsupportedModel(
            f"A treelite model with the postprocessor {postprocessor} is not supported; {', '.join(_LINKS)} are. "
            "Explain the model it came from, or train it with another objective."
        )


def _is_for_all_classes(header: Any, n_outputs: int) -> bool:
    """Whether a tree speaks for all classes at once, by a vector in every leaf."""
    return n_outputs == 1 or bool((np.asarray(header.get_field("class_id")) < 0).all())


class _Tree:
    """The fields of one tree that are needed."""

    def __init__(self, accessor: Any) -> None:
        read = accessor.get_field
        self.kind, self.left, self.right = read("node_type"), read("cleft"), read("cright")
        self.feature, self.threshold, self.compare = read("split_index"), read("threshold"), read("cmp")
        self.default_left, self.value = read("default_left"), read("leaf_value")
        self.vector, self.vector_begin = read("leaf_vector"), read("leaf_vector_begin")
        self.is_categorical = bool(read("has_categorical_split")[0])
        if self.is_categorical:
            self.members, self.begin = read("category_list"), read("category_list_begin")
            self.end, self.members_right = read("category_list_end"), read("category_list_right_child")


def _nodes(
    trees: list[_Tree], class_id: Any, n_outputs: int, n_features: int, dtype: Any
) -> tuple[Nodes, Labels | None]:
    sizes = [len(tree.kind) for tree in trees]
    start = join_trees(sizes)

    def joined(name: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([np.asarray(getattr(tree, name), kind) for tree in trees])

    compare, is_numeric = joined("compare", np.int64), joined("kind", np.int64) == _NUMERIC
    if not np.isin(compare[is_numeric], (_LESS, _LESS_OR_EQUAL, _GREATER, _GREATER_OR_EQUAL)).all():
        raise UnsupportedModel("This treelite model compares by ==; only <, <=, > and >= are supported.")
    threshold = joined("threshold", dtype)
    with np.errstate(over="ignore"):
        below = np.nextafter(threshold, dtype(-np.inf))  # x < t is x <= the float below t
    is_strict = np.isin(compare, (_LESS, _GREATER_OR_EQUAL))
    is_turned = np.isin(compare, (_GREATER, _GREATER_OR_EQUAL)) & is_numeric
    left = end_to_end([tree.left for tree in trees], start)
    right = end_to_end([tree.right for tree in trees], start)
    default_left = joined("default_left", bool)
    feature = joined("feature", np.int64)
    labels, sets = _categories(trees, start, feature, n_features)
    nodes = Nodes(
        feature, np.where(is_strict, below, threshold).astype(np.float64),
        np.where(is_turned, right, left), np.where(is_turned, left, right), default_left ^ is_turned,
        _values(trees, np.asarray(class_id), n_outputs, start), start, sets,
    )  # fmt: skip
    return nodes, labels


def _values(trees: list[_Tree], class_id: NDArray[Any], n_outputs: int, start: NDArray[np.int64]) -> Floats:
    value = np.zeros((int(start[-1]), n_outputs))
    for tree, own, first in zip(trees, class_id.tolist(), start, strict=False):
        leaf = np.flatnonzero(np.asarray(tree.left) < 0)
        at = int(first) + leaf
        if not len(tree.vector):
            value[at, max(own, 0)] = np.asarray(tree.value)[leaf]
            continue
        begin = np.asarray(tree.vector_begin)[leaf].astype(np.int64)
        width = n_outputs if own < 0 else 1
        vector = np.asarray(tree.vector, np.float64)[begin[:, None] + np.arange(width)]
        value[at[:, None], np.arange(width) + max(own, 0)] = vector
    return value


def _categories(
    trees: list[_Tree], start: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> tuple[Labels | None, list[Any] | None]:
    """Labels are the numbers that the splits name; every other category goes the same way at every split."""
    if not any(tree.is_categorical for tree in trees):
        return None, None
    members: dict[int, NDArray[Any]] = {}
    goes_right: dict[int, bool] = {}
    for tree, first in zip(trees, start, strict=False):
        if tree.is_categorical:
            for node in np.flatnonzero(np.asarray(tree.kind) == _CATEGORICAL):
                at = int(first) + int(node)
                members[at] = np.asarray(tree.members[int(tree.begin[node]) : int(tree.end[node])], np.int64)
                goes_right[at] = bool(tree.members_right[node])
    of_feature: dict[int, set[int]] = {}
    for at, own in members.items():
        of_feature.setdefault(int(feature[at]), set()).update(own.tolist())
    labels = [tuple(sorted(of_feature[f])) or (0,) if f in of_feature else None for f in range(n_features)]
    sets: list[Any] = [None] * int(start[-1])
    for at, own in members.items():
        known = labels[int(feature[at])] or ()
        chosen = np.append(np.isin(known, own), False)
        sets[at] = np.flatnonzero(~chosen if goes_right[at] else chosen).tolist()
    return tuple(labels), sets


def _with_last_leaf(nodes: Nodes, base: Floats) -> Nodes:
    """A last tree of one leaf adds the base scores."""
    if not base.any():
        return nodes
    end = np.array([-1])
    return Nodes(
        np.append(nodes.feature, 0), np.append(nodes.threshold, 0.0), np.append(nodes.left, end),
        np.append(nodes.right, end), np.append(nodes.default_left, False), np.vstack([nodes.value, base]),
        np.append(nodes.tree_start, len(nodes.left) + 1), None if nodes.sets is None else [*nodes.sets, None],
    )  # fmt: skip
