"""The one layout of a tree ensemble: flat arrays, written by adapters, read by kernels.

Nodes stand in pre-order, tree after tree: the left child of node i is i + 1, so a subtree is a contiguous
run of nodes and its leaves a contiguous run of leaves. `Forest.from_nodes` brings nodes of any order there.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Categories
from treefocus.model.maps import Map, as_maps
from treefocus.model.members import Member
from treefocus.model.voices import Voice, as_voices, to_records

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]

Decision = Literal["argmax", "above", "at_least", "between", "likely", "value", "agreed"]
Link = Literal["identity", "sigmoid", "softmax", "exp"]
InputDtype = Literal["float32", "float64"]

FORMAT = "treefocus-forest-1"
MOST_FEATURES = 10_000_000  # a file may claim anything
_LARGEST_GROWTH = 200  # a forest in JSON packs to about a tenth
LARGEST = float(np.finfo(np.float64).max)
_DECISIONS = ("argmax", "above", "at_least", "between", "likely", "value")
_OF_MEMBERS = "agreed"
_LINKS = ("identity", "sigmoid", "softmax", "exp")
_DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Forest:
    """A trained tree ensemble.

    scores(x) = (base_score + sum over trees, in order, of leaf_value[leaf of x]) / divisor, in `score_dtype`,
    which is what the source library's own prediction adds up. The class comes out of the scores by `decision`:

    - "argmax": the first of the largest scores (n_outputs = n_classes);
    - "above" / "at_least": class 1 if the single score is > / >= `cut`, else class 0;
    - "between": class 1 if `cut` <= the single score <= `cut_high`, else class 0;
    - "likely": class 1 if the probability of output `favoured`, after the link, is >= `cut`, else class 0;
    - "value": no classes, the score itself is the prediction (a regression);
    - "agreed": of several `members`, whose trees stand here one after another, the class that all of them give, and
      the last class where they do not agree; no file has it.

    The score of a forest with `voices` is no sum, but the weighted mean of what they show, each from its own trees:
    voice after voice, with a base score each; `divisor` is the sum of their weights.

    `link` leads from the scores to what the library shows: probabilities, or the predicted value. A wrapper around the
    model may go on from there by `maps`.

    A node sends x left if `x[feature] <= threshold`, compared after a cast to `input_dtype`, or, at a split on
    categories, if its set has x's category; a missing value goes where `default_left` says.
    """

    feature: Ints  # (n_nodes,) -1 at a leaf
    threshold: Floats  # (n_nodes,) 0 at a leaf
    left: Ints  # (n_nodes,) -1 at a leaf, else the next node
    right: Ints  # (n_nodes,) -1 at a leaf
    default_left: Bools  # (n_nodes,)
    tree_start: Ints  # (n_trees + 1,)
    leaf_value: Floats  # (n_leaves, n_outputs), leaves in node order
    base_score: Floats  # (n_outputs,)
    classes: NDArray[Any]  # (n_classes,) the labels, in the order of the decision
    n_features: int
    divisor: float = 1.0
    decision: Decision = "argmax"
    cut: float = 0.0
    cut_high: float = LARGEST
    favoured: int = 0
    link: Link = "identity"
    maps: tuple[Map, ...] = ()  # what a wrapper around the model makes of what the link shows, see maps.py
    rounding: float = 0.0  # by how much the model's own scores may differ from these, where it adds up in another order
    input_dtype: InputDtype = "float64"
    score_dtype: InputDtype = "float64"  # in which the sum is taken
    takes_missing: bool = False
    reads: Floats | None = None  # (2, n_features) the smallest and the largest number that the model reads
    refuses_missing: Bools | None = None  # (n_features,) columns without missing values although `takes_missing`
    categories: Categories | None = None
    missing_is_choice: Bools | None = None  # (n_features,) numeric columns in which a search may leave or take missing
    feature_names: tuple[str, ...] | None = None
    tree_weight: Floats | None = None  # (n_trees,) the paper's omega, where trees vote with a weight
    leaf_distribution: Floats | None = None  # (n_leaves, n_outputs) T(y | j), where leaf_value is something else
    source: str = "unknown"
    voices: tuple[Voice, ...] = ()  # the models whose shown numbers are averaged to the one score
    members: tuple[Member, ...] = ()  # the models of a forest in which several have to agree

    @classmethod
    def from_nodes(
        cls,
        *,
        feature: NDArray[Any],
        threshold: NDArray[Any],
        left: NDArray[Any],
        right: NDArray[Any],
        tree_start: NDArray[Any],
        node_value: NDArray[Any],
        default_left: NDArray[Any] | None = None,
        node_distribution: NDArray[Any] | None = None,
        categories: Categories | None = None,
        **rest: Any,
    ) -> Forest:
        """Build a forest from nodes in any order.

        `left` and `right` count nodes over the whole forest and are negative at a leaf; `node_value` is
        (n_nodes, n_outputs), read at the leaves only.
        """
        left, right = _as(left, np.int64), _as(right, np.int64)
        starts = _as(tree_start, np.int64)
        n_nodes = len(left)
        _check_children(left, right, starts)
        per_node = {"feature": feature, "threshold": threshold, "default_left": default_left}
        per_node |= {"node_value": node_value, "node_distribution": node_distribution}
        per_node |= {"categories": None if categories is None else categories.set_of_node}
        for name, values in per_node.items():
            if values is not None and len(values) != n_nodes:
                reject(name, f"as long as left ({n_nodes})", len(values))
        position = _preorder(left, right, starts)
        order = np.empty(n_nodes, np.int64)
        order[position] = np.arange(n_nodes)
        is_leaf = left[order] < 0

        def child(ids: NDArray[np.int64]) -> Ints:
            moved = ids[order]
            return np.where(is_leaf, -1, position[np.maximum(moved, 0)]).astype(np.int32)

        def at_leaves(values: NDArray[Any]) -> Floats:
            return np.ascontiguousarray(_as(values, np.float64)[order][is_leaf])

        goes_left = np.zeros(n_nodes, bool) if default_left is None else _as(default_left, np.bool_)
        return cls(
            feature=np.where(is_leaf, -1, _as(feature, np.int64)[order]).astype(np.int32),
            threshold=np.where(is_leaf, 0.0, _as(threshold, np.float64)[order]),
            left=child(left),
            right=child(right),
            default_left=goes_left[order] & ~is_leaf,
            tree_start=starts.astype(np.int32),
            leaf_value=at_leaves(node_value),
            leaf_distribution=None if node_distribution is None else at_leaves(node_distribution),
            categories=None if categories is None else categories.reordered(order),
            **rest,
        )

    def __post_init__(self) -> None:
        self._check_plain()
        for name, dtype in _ARRAYS.items():
            values = getattr(self, name)
            if values is not None:
                array = np.array(values, dtype=dtype, order="C")
                if dtype is np.int32 and not np.array_equal(array, values):
                    reject(f"Forest.{name}", "whole numbers of 32 bits", values)
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        classes = np.array(self.classes)
        classes.setflags(write=False)
        object.__setattr__(self, "classes", classes)
        self._check()

    def _check_plain(self) -> None:
        """What is not an array, and that the arrays are there."""
        for name in ("n_features", "favoured"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                reject(f"Forest.{name}", "a whole number", repr(value))
        for name in ("divisor", "cut", "cut_high", "rounding"):
            if not isinstance(getattr(self, name), Real):
                reject(f"Forest.{name}", "a number", repr(getattr(self, name)))
        object.__setattr__(self, "maps", as_maps(self.maps))
        object.__setattr__(self, "voices", as_voices(self.voices))
        if not isinstance(self.takes_missing, bool | np.bool_):
            reject("Forest.takes_missing", "true or false", repr(self.takes_missing))
        if not 1 <= self.n_features <= MOST_FEATURES:
            reject("Forest.n_features", f"from 1 to {MOST_FEATURES}", self.n_features)
        names = self.feature_names
        if names is not None and not all(isinstance(name, str) for name in names):
            reject("Forest.feature_names", "texts", repr(names))
        for name in _REQUIRED:
            if getattr(self, name) is None:
                reject(f"Forest.{name}", "given", None)

    def _check(self) -> None:
        for name in (*_ONE_A_NODE, "tree_start", "base_score", "classes"):
            if getattr(self, name).ndim != 1:
                reject(f"Forest.{name}", "a list", f"{getattr(self, name).ndim} dimensions")
        n_nodes = len(self.feature)
        for name in _ONE_A_NODE:
            if len(getattr(self, name)) != n_nodes:
                reject(f"Forest.{name}", f"as long as Forest.feature ({n_nodes})", len(getattr(self, name)))
        left, right = self.left.astype(np.int64), self.right.astype(np.int64)
        starts = self.tree_start.astype(np.int64)
        _check_children(left, right, starts)
        if not np.array_equal(_preorder(left, right, starts), np.arange(n_nodes)):
            raise InvalidInput("Forest nodes must stand in pre-order; Forest.from_nodes sorts them.")
        inner = self.feature[left >= 0]
        if (self.feature[left < 0] != -1).any():
            reject("Forest.feature", "-1 at every leaf", int(self.feature[left < 0].max()))
        if inner.size and (inner.min() < 0 or inner.max() >= self.n_features):
            reject("Forest.feature", f"from 0 to {self.n_features - 1} at every split", int(inner.max()))
        if np.isnan(self.threshold).any():
            reject("Forest.threshold", "a number at every split", "NaN")
        if self.leaf_value.ndim != 2 or len(self.leaf_value) != self.n_leaves:
            reject("Forest.leaf_value", f"({self.n_leaves}, n_outputs), a row a leaf", self.leaf_value.shape)
        if not np.isfinite(self.leaf_value).all() or not np.isfinite(self.base_score).all():
            raise InvalidInput("Forest.leaf_value and Forest.base_score must be finite.")
        if self.categories is not None:
            self.categories.check(self.feature, self.n_features)
        if self.reads is not None and self.reads.shape != (2, self.n_features):
            reject("Forest.reads", f"(2, {self.n_features})", self.reads.shape)
        for name in ("missing_is_choice", "refuses_missing"):
            own = getattr(self, name)
            if own is not None and own.shape != (self.n_features,):
                reject(f"Forest.{name}", f"({self.n_features},)", own.shape)
        self._check_decision()

    def _check_decision(self) -> None:
        choices = {"decision": _DECISIONS, "link": _LINKS, "input_dtype": _DTYPES, "score_dtype": _DTYPES}
        for name, allowed in choices.items():
            if getattr(self, name) not in (*allowed, *([_OF_MEMBERS] if self.members and name == "decision" else [])):
                reject(f"Forest.{name}", f"one of {allowed}", repr(getattr(self, name)))
        if self.members:
            return self._check_members()
        n_labels = {"argmax": self.n_outputs, "value": 0}.get(self.decision, 2)
        if self.n_classes != n_labels:
            reject("Forest.classes", f"{n_labels} labels for {self.decision!r}", self.n_classes)
        if self.decision not in ("argmax", "likely") and self.n_outputs != 1:
            reject("Forest.leaf_value", f"1 wide for {self.decision!r}", self.n_outputs)
        self._check_voices()
        if self.base_score.shape != (self.n_scores,):
            wanted = (
                f"as wide as leaf_value ({self.n_outputs})" if not self.voices else f"one a voice ({self.n_scores})"
            )
            reject("Forest.base_score", wanted, self.base_score.shape)
        if not 0 <= self.favoured < self.n_outputs:
            reject("Forest.favoured", f"from 0 to {self.n_outputs - 1}", self.favoured)
        if not np.isfinite(self.cut):
            reject("Forest.cut", "a finite number", self.cut)
        if self.decision == "between" and not self.cut <= self.cut_high < np.inf:
            reject("Forest.cut_high", f"Forest.cut ({self.cut}) or more", self.cut_high)
        if self.maps and self.n_outputs != 1:
            reject("Forest.maps", "none for more than one score", f"{self.n_outputs} scores")
        if not (np.isfinite(self.rounding) and self.rounding >= 0):
            reject("Forest.rounding", "a finite number from 0 up", self.rounding)
        if not (np.isfinite(self.divisor) and self.divisor > 0):
            reject("Forest.divisor", "a finite number above 0", self.divisor)
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            reject("Forest.feature_names", f"{self.n_features} names", len(self.feature_names))
        if self.tree_weight is not None and self.tree_weight.shape != (self.n_trees,):
            reject("Forest.tree_weight", f"({self.n_trees},)", self.tree_weight.shape)
        if self.leaf_distribution is not None and self.leaf_distribution.shape != self.leaf_value.shape:
            reject("Forest.leaf_distribution", f"{self.leaf_value.shape}", self.leaf_distribution.shape)

    def _check_voices(self) -> None:
        """Several models whose shown numbers are averaged: their trees come first, one after another."""
        if not self.voices:
            return
        if self.n_outputs != 1 or self.decision not in ("above", "at_least") or self.link != "identity" or self.maps:
            reject("Forest.voices", "of two classes, with a cut of their mean and without link and maps", self.decision)
        if (n_trees := sum(one.n_trees for one in self.voices)) > self.n_trees:
            reject("Forest.voices", f"of {self.n_trees} trees together", n_trees)

    def _check_members(self) -> None:
        """Several models: their trees come first, their scores one after another."""
        if self.decision != _OF_MEMBERS:
            reject("Forest.decision", repr(_OF_MEMBERS), repr(self.decision))
        if sum(one.n_trees for one in self.members) > self.n_trees:
            reject("Forest.members", f"of {self.n_trees} trees together", sum(one.n_trees for one in self.members))
        if self.base_score.shape != (self.n_scores,):
            reject("Forest.base_score", f"one a score ({self.n_scores})", self.base_score.shape)

    @property
    def n_scores(self) -> int:
        """Number of sums a row gets: the outputs, of all members, or one a voice."""
        if self.members:
            return sum(one.n_scores for one in self.members)
        return len(self.voices) or self.n_outputs

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_start) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves over all trees."""
        return int((self.left < 0).sum())

    @property
    def n_outputs(self) -> int:
        """Number of scores a row gets."""
        return int(self.leaf_value.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes the decision tells apart."""
        return len(self.classes)

    @property
    def tree_of_leaf(self) -> Ints:
        """(n_leaves,) the tree each leaf stands in."""
        leaves_before = np.concatenate([[0], np.cumsum(self.left < 0)])
        per_tree = np.diff(leaves_before[self.tree_start])
        return np.repeat(np.arange(self.n_trees, dtype=np.int32), per_tree)

    def __repr__(self) -> str:
        return (
            f"Forest({self.source}: {self.n_trees} trees, {self.n_leaves} leaves, "
            f"{self.n_features} features, {self.n_classes} classes)"
        )

    def to_record(self) -> dict[str, Any]:
        """The forest as plain values, for JSON (docs/forest-format.md)."""
        record: dict[str, Any] = {"format": FORMAT}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "members" or (field.name in _RARE and not value):
                continue
            if isinstance(value, Categories):
                value = value.to_record()
            if field.name == "voices":
                value = to_records(value)
            record[field.name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        return record

    def save(self, path: str | Path) -> None:
        """Write the forest as JSON (docs/forest-format.md), compressed if the name ends in .gz."""
        data = json.dumps(self.to_record()).encode()
        path = Path(path)
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)

    @classmethod
    def load(cls, path: str | Path) -> Forest:
        """Read a forest written by `save`."""
        record = read_json(path)
        if record.get("format") != FORMAT:
            reject(f"{path}: format", repr(FORMAT), repr(record.get("format")))
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Forest:
        """Build a forest from the parsed JSON object of `save`."""
        missing = _REQUIRED - record.keys()
        if missing:
            raise InvalidInput(f"The forest file lacks {', '.join(sorted(missing))}.")
        values = {key: value for key, value in record.items() if key in _FIELDS}
        try:
            names = values.get("feature_names")
            values["feature_names"] = None if names is None else tuple(names)
            if values.get("categories") is not None:
                values["categories"] = Categories.from_record(values["categories"])
            return cls(**values)
        except (TypeError, OverflowError) as error:
            raise InvalidInput(f"The forest file does not hold a forest: {error}.") from error
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(f"The forest file does not hold a forest: {error}.") from error


_FIELDS = {field.name for field in fields(Forest)} - {"members"}
_REQUIRED = {field.name for field in fields(Forest) if field.default is MISSING}
_RARE = ("maps", "rounding", "voices")  # of wrappers; files of other models are without them
_ONE_A_NODE = ("feature", "threshold", "left", "right", "default_left")
_ARRAYS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "default_left": np.bool_,
    "tree_start": np.int32,
    "leaf_value": np.float64,
    "base_score": np.float64,
    "tree_weight": np.float64,
    "leaf_distribution": np.float64,
    "missing_is_choice": np.bool_,
    "refuses_missing": np.bool_,
    "reads": np.float64,
}


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object, gzip-compressed or not."""
    data = Path(path).read_bytes()
    try:
        record = json.loads(_unzipped(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, OSError, RecursionError, zlib.error) as error:
        raise InvalidInput(f"{path} is not a readable JSON file: {error}.") from error
    if not isinstance(record, dict):
        reject(str(path), "a JSON object", type(record).__name__)
    return record


def _unzipped(data: bytes) -> bytes:
    """The content of a gzip file, unless it grows as no forest does."""
    most = max(_LARGEST_GROWTH * len(data), 1 << 26)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes")
    return content


def join_trees(sizes: Sequence[int]) -> NDArray[np.int64]:
    """(n_trees + 1,) first node of every tree, for trees of these sizes laid end to end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _as(values: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    return np.ascontiguousarray(values, dtype=dtype)


def _check_children(left: NDArray[np.int64], right: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
    n_nodes = len(left)
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != n_nodes or (np.diff(starts) < 1).any():
        raise InvalidInput("Forest.tree_start must rise from 0 to the number of nodes, with a node in every tree.")
    if not np.array_equal(left < 0, right < 0):
        raise InvalidInput("Forest.left and Forest.right must be negative at the same nodes, the leaves.")
    tree_of_node = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    inner = np.flatnonzero(left >= 0)
    for ids in (left[inner], right[inner]):
        if ids.size and (ids.max() >= n_nodes or (tree_of_node[ids] != tree_of_node[inner]).any()):
            raise InvalidInput("Forest.left and Forest.right must point into the node's own tree.")


def _levels(
    left: NDArray[np.int64], right: NDArray[np.int64], starts: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """The inner nodes of every depth, all trees at once; rejects cycles and shared or unreachable nodes."""
    is_inner = left >= 0
    n_parents = np.bincount(left[is_inner], minlength=len(left)) + np.bincount(right[is_inner], minlength=len(left))
    if n_parents.max() > 1 or n_parents[starts[:-1]].any():
        raise InvalidInput("A forest node must be reached from its root once: here is a cycle or a shared child.")
    frontier, n_seen = starts[:-1], 0
    while frontier.size:  # nodes of one parent each, from roots of none: no way leads back
        n_seen += frontier.size
        inner = frontier[is_inner[frontier]]
        yield inner
        frontier = np.concatenate([left[inner], right[inner]])
    if n_seen != len(left):
        raise InvalidInput("A forest node must be reached from its root once: some are not reached at all.")


def _preorder(left: NDArray[np.int64], right: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_nodes,) where each node stands in pre-order."""
    levels = list(_levels(left, right, starts))
    size = np.ones(len(left), np.int64)
    for inner in reversed(levels):
        size[inner] += size[left[inner]] + size[right[inner]]
    position = np.empty(len(left), np.int64)
    position[starts[:-1]] = starts[:-1]
    for inner in levels:
        position[left[inner]] = position[inner] + 1
        position[right[inner]] = position[inner] + 1 + size[left[inner]]
    return position
