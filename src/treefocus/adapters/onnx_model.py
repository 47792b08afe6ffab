"""ONNX files with a tree ensemble, read without ONNX: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble.

A runtime adds up in float32 where the thresholds are float32, in whatever order its threads come, so that the forest
says by how much its sums may be off (`Forest.rounding`). The class comes out of the scores as ONNX Runtime takes it: of
two classes with one score the second above 0, or above one half where no weight is negative; else the first largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters.nodes import Nodes, check_sizes
from treefocus.adapters.protobuf import Message
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Forest, Link, join_trees

Array = NDArray[Any]
_OPERATORS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_HARMLESS = ("Cast", "ZipMap", "Identity", "ArgMax", "Reshape", "Flatten", "Squeeze")  # behind or before the trees
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_LINKS: dict[str, Link] = {"NONE": "identity", "SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TENSORS = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 11: "<f8"}  # kinds of numbers in a tensor
_FLOAT, _DOUBLE = 1, 11


def is_onnx(data: bytes) -> bool:
    """Whether a file begins as an ONNX model does: the version of the format, a small number, then another field."""
    return (
        len(data) > 4
        and data[0] == 0x08
        and 1 <= data[1] <= 32
        and data[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
    )


def read(data: bytes) -> Forest:
    """The forest of an ONNX model with one tree ensemble."""
    graphs = Message(data).messages(7)
    if not graphs:
        raise InvalidInput("The ONNX file holds no graph.")
    graph = graphs[-1]
    nodes = graph.messages(1)
    trees = [node for node in nodes if node.text(4) in _OPERATORS]
    odd = next((node.text(4) for node in nodes if node.text(4) not in (*_OPERATORS, *_HARMLESS)), None)
    if len(trees) != 1 or odd is not None:
        what = f"the operator {odd}" if odd is not None else f"{len(trees)} tree ensembles"
        raise UnsupportedModel(
            f"The ONNX model has {what}; one tree ensemble is supported, with nothing that computes before or behind "
            "it. Convert the model without its preprocessing, or give treefocus the model itself."
        )
    attributes = _attributes(trees[0])
    n_features, is_double = _input(graph, attributes)
    kind = trees[0].text(4)
    part = _new(attributes) if kind == "TreeEnsemble" else _old(attributes, kind)
    return _forest(part, attributes, kind, n_features, is_double)


def _attributes(node: Message) -> dict[str, Any]:
    """The attributes of an operator by name: numbers, lists, texts and tensors."""
    found: dict[str, Any] = {}
    for own in node.messages(5):
        kind = own.integer(20)
        if kind == 1:
            found[own.text(1)] = float(own.floats(2)[-1])
        elif kind == 2:
            found[own.text(1)] = own.integer(3)
        elif kind == 3:
            found[own.text(1)] = own.text(4)
        elif kind == 4:
            found[own.text(1)] = _tensor(own.messages(5)[-1])
        elif kind == 6:
            found[own.text(1)] = own.floats(7)
        elif kind == 7:
            found[own.text(1)] = np.array(own.integers(8), np.int64)
        elif kind == 8:
            found[own.text(1)] = own.texts(9)
    return found


def _tensor(tensor: Message) -> Array:
    kind = tensor.integer(2)
    if kind not in _TENSORS:
        raise UnsupportedModel(f"The ONNX model has a tensor of the kind {kind}; numbers are supported.")
    raw = tensor.raw(9)
    if raw:
        return np.frombuffer(raw, _TENSORS[kind])
    if kind == _FLOAT:
        return tensor.floats(4)
    return tensor.doubles(10) if kind == _DOUBLE else np.array(tensor.integers(7 if kind == 7 else 5), np.int64)


def _input(graph: Message, attributes: dict[str, Any]) -> tuple[int, bool]:
    """How many columns the model takes, and whether in float64."""
    constants = {own.text(8) for own in graph.messages(5)}
    inputs = [own for own in graph.messages(11) if own.text(1) not in constants]
    if len(inputs) != 1:
        raise UnsupportedModel(
            f"The ONNX model has {len(inputs)} inputs; convert it with one, a matrix of all columns."
        )
    tensor = inputs[0].messages(2)[-1].messages(1)[-1]
    dims = [dim.integer(1, -1) for shape in tensor.messages(2) for dim in shape.messages(1)]
    columns = attributes["nodes_featureids"]
    n_features = dims[1] if len(dims) == 2 and dims[1] > 0 else int(np.max(columns)) + 1
    return n_features, tensor.integer(1) == _DOUBLE


class _OnnxTrees:
    """Trees as nodes, and who gets what at which leaf; children are numbers of nodes."""

    def __init__(self, n_nodes: int) -> None:
        self.feature, self.threshold = np.zeros(n_nodes, np.int64), np.zeros(n_nodes)
        self.mode = np.full(n_nodes, -1)
        self.true, self.false = np.full(n_nodes, -1), np.full(n_nodes, -1)
        self.tracks_true = np.zeros(n_nodes, bool)
        self.roots: list[int] = []
        self.leaf, self.output, self.weight = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def _old(attributes: dict[str, Any], kind: str) -> _OnnxTrees:
    """The two older operators: nodes by tree and number, leaves among them."""
    modes = attributes["nodes_modes"]
    part = _OnnxTrees(len(modes))
    tree, number = attributes["nodes_treeids"], attributes["nodes_nodeids"]
    place = {key: k for k, key in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}
    is_leaf = np.array([mode == "LEAF" for mode in modes])
    part.mode = np.array([-1 if mode == "LEAF" else _MODES.index(mode) for mode in modes])
    part.feature = attributes["nodes_featureids"]
    part.threshold = _values(attributes, "nodes_values")
    for name, own in (("nodes_truenodeids", part.true), ("nodes_falsenodeids", part.false)):
        for k in np.flatnonzero(~is_leaf).tolist():
            own[k] = place[int(tree[k]), int(attributes[name][k])]
    tracks = attributes.get("nodes_missing_value_tracks_true")
    if tracks is not None and len(tracks):
        part.tracks_true = np.asarray(tracks) != 0
    is_child = np.zeros(len(modes), bool)
    is_child[part.true[~is_leaf]] = is_child[part.false[~is_leaf]] = True
    part.roots = np.flatnonzero(~is_child).tolist()
    prefix = "class" if kind == "TreeEnsembleClassifier" else "target"
    ids = zip(attributes[f"{prefix}_treeids"].tolist(), attributes[f"{prefix}_nodeids"].tolist(), strict=True)
    part.leaf = np.array([place[key] for key in ids], np.int64)
    part.output, part.weight = attributes[f"{prefix}_ids"], _values(attributes, f"{prefix}_weights")
    return part


def _values(attributes: dict[str, Any], name: str) -> Array:
    own = attributes.get(f"{name}_as_tensor")
    return np.asarray(attributes[name] if own is None else own, np.float64)


def _new(attributes: dict[str, Any]) -> _OnnxTrees:
    """The newer operator: inner nodes and leaves are counted apart; leaves stand behind the nodes here."""
    n_inner, n_leaves = len(attributes["nodes_featureids"]), len(attributes["leaf_targetids"])
    part = _OnnxTrees(n_inner + n_leaves)
    part.mode[:n_inner] = attributes["nodes_modes"]
    part.feature[:n_inner] = attributes["nodes_featureids"]
    part.threshold[:n_inner] = attributes["nodes_splits"]
    for side, own in (("true", part.true), ("false", part.false)):
        ids, is_leaf = attributes[f"nodes_{side}nodeids"], attributes[f"nodes_{side}leafs"]
        own[:n_inner] = np.where(np.asarray(is_leaf) != 0, np.asarray(ids) + n_inner, ids)
    tracks = attributes.get("nodes_missing_value_tracks_true")
    if tracks is not None and len(tracks):
        part.tracks_true[:n_inner] = np.asarray(tracks) != 0
    part.roots = [int(root) for root in attributes["tree_roots"]]
    output, weight = attributes["leaf_targetids"], np.asarray(attributes["leaf_weights"], np.float64)
    alone = np.flatnonzero((part.true == part.false) & (part.true >= n_inner))  # a tree of one leaf: both sides are it
    own = part.true[alone] - n_inner
    part.mode[alone] = -1
    part.leaf = np.concatenate([np.arange(n_inner, n_inner + n_leaves), alone])
    part.output, part.weight = np.concatenate([output, output[own]]), np.concatenate([weight, weight[own]])
    return part


def _forest(part: _OnnxTrees, attributes: dict[str, Any], kind: str, n_features: int, is_double: bool) -> Forest:
    answer, n_outputs = _answer(part, attributes, kind)
    n_trees = len(part.roots)
    check_sizes(n_features, 1, n_trees)
    if not n_trees:
        raise InvalidInput("The ONNX file is damaged: no tree has a root.")
    is_leaf = part.mode < 0
    if (part.mode >= _MODES.index("BRANCH_EQ")).any():
        raise UnsupportedModel(
            "The ONNX model splits on single values (BRANCH_EQ and the like), as converters write categories; convert "
            "a model of numbers, or give treefocus the model itself."
        )
    value = np.zeros((len(part.mode), n_outputs))
    np.add.at(value, (part.leaf, part.output if n_outputs > 1 else np.zeros(len(part.leaf), np.int64)), part.weight)
    nodes = _end_to_end(part, is_leaf, value, is_double)
    base = np.asarray(attributes.get("base_values", np.zeros(0)), np.float64)
    if not len(base):
        base = _values(attributes, "base_values") if "base_values_as_tensor" in attributes else np.zeros(n_outputs)
    base = base[-1:] if n_outputs == 1 else base
    divisor = float(n_trees) if _aggregate(attributes) == "AVERAGE" else 1.0
    dtype = "float64" if is_double else "float32"
    largest = float(np.maximum.reduceat(np.abs(nodes.value).max(axis=1), nodes.tree_start[:-1]).sum())
    off = 4 * float(np.finfo(dtype).eps) * (n_trees + 4) * (largest + float(np.abs(base).max(initial=0.0)))
    return nodes.to_forest(
        None, base_score=base * divisor, n_features=n_features, input_dtype=dtype, score_dtype=dtype,
        takes_missing=True, divisor=divisor, rounding=off / divisor, source=f"ONNX {kind}", **answer,
    )  # fmt: skip


def _end_to_end(part: _OnnxTrees, is_leaf: Array, value: Array, is_double: bool) -> Nodes:
    """The nodes tree after tree, with left for the side up to a threshold."""
    order: list[int] = []
    sizes, seen = [], np.zeros(len(part.mode), bool)
    for root in part.roots:
        todo, begin = [root], len(order)
        while todo:
            node = todo.pop()
            if not 0 <= node < len(seen) or seen[node]:
                raise InvalidInput("The ONNX file is damaged: a node is missing, or has two parents.")
            seen[node] = True
            order.append(node)
            if not is_leaf[node]:
                todo += [int(part.false[node]), int(part.true[node])]
        sizes.append(len(order) - begin)
    chosen = np.array(order)
    place = np.full(len(seen), -1)
    place[chosen] = np.arange(len(chosen))
    mode, is_end = part.mode[chosen], is_leaf[chosen]
    is_upper = mode >= _MODES.index("BRANCH_GTE")  # true is above the threshold
    true, false = (np.where(is_end, -1, place[own[chosen]]) for own in (part.true, part.false))
    dtype = np.float64 if is_double else np.float32
    threshold = part.threshold[chosen].astype(dtype)
    is_strict = np.isin(mode, (_MODES.index("BRANCH_LT"), _MODES.index("BRANCH_GTE")))
    threshold = np.where(is_strict, np.nextafter(threshold, dtype(-np.inf)), threshold).astype(np.float64)
    return Nodes(
        part.feature[chosen], np.where(is_end, 0.0, threshold), np.where(is_upper, false, true),
        np.where(is_upper, true, false), part.tracks_true[chosen] != is_upper, value[chosen], join_trees(sizes),
    )  # fmt: skip


def _aggregate(attributes: dict[str, Any]) -> str:
    own = attributes.get("aggregate_function", "SUM")
    return own if isinstance(own, str) else _AGGREGATES[own]


def _answer(part: _OnnxTrees, attributes: dict[str, Any], kind: str) -> tuple[dict[str, Any], int]:
    """Classes, decision and link, and how many scores there are."""
    post = attributes.get("post_transform", "NONE")
    post = post if isinstance(post, str) else _POST[post]
    if post not in _LINKS or _aggregate(attributes) not in ("SUM", "AVERAGE"):
        raise UnsupportedModel(
            f"An ONNX tree ensemble with {post} and {_aggregate(attributes)} is not supported; NONE, SOFTMAX and "
            "LOGISTIC of a SUM or an AVERAGE are."
        )
    if kind != "TreeEnsembleClassifier":
        n_targets = int(attributes.get("n_targets", 1))
        if n_targets != 1 or post == "SOFTMAX":
            raise UnsupportedModel(
                f"The ONNX model predicts {n_targets} numbers at once; convert a classifier, or a model of one number."
            )
        return {"classes": np.empty(0), "decision": "value", "link": _LINKS[post]}, 1
    labels = attributes.get("classlabels_int64s")
    classes = np.asarray(attributes["classlabels_strings"] if labels is None or not len(labels) else labels)
    scored = np.unique(part.output)
    if len(classes) == 2 and len(scored) == 1:
        is_positive = bool((part.weight >= 0).all())
        answer = {"classes": classes, "decision": "above", "cut": 0.5 if is_positive else 0.0, "link": _LINKS[post]}
        # a score that is a probability already
        return answer | ({"maps": (("affine", 1.0, 0.0),)} if post == "NONE" and is_positive else {}), 1
    if scored.min(initial=0) < 0 or len(scored) != len(classes) or scored.max(initial=0) >= len(classes):
        raise UnsupportedModel("The ONNX model has classes without a score; convert a model that has seen all of them.")
    if not _always_scored(part, attributes, len(classes)):
        raise UnsupportedModel(
            "The ONNX model leaves a class without a score in some rows; convert it with base_values."
        )
    return {"classes": classes, "decision": "argmax", "link": _LINKS[post]}, len(classes)


def _always_scored(part: _OnnxTrees, attributes: dict[str, Any], n_classes: int) -> bool:
    """Whether every class has a score in every row: a runtime leaves out those without one."""
    if len(attributes.get("base_values", ())) == n_classes:
        return True
    tree = attributes["nodes_treeids"]
    n_leaves = np.bincount(tree[part.mode < 0])
    pairs = np.unique(np.stack([part.output, part.leaf]), axis=1)
    for k in range(n_classes):
        own = np.bincount(tree[pairs[1][pairs[0] == k]], minlength=len(n_leaves))
        if not ((own == n_leaves) & (n_leaves > 0)).any():
            return False
    return True
