"""The Forest: what it refuses, how it orders nodes, how it is saved."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.forests import SEEDS, adversarial_rows, forests, random_nodes
from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.model.forest import FORMAT, Forest, join_trees

ARRAYS = [field.name for field in fields(Forest) if field.name not in ("feature_names", "classes")]


def small(**changes: Any) -> dict[str, Any]:
    """Arguments of a forest of two trees: a split with two leaves, then a split over a split."""
    arguments = {
        "feature": [0, -1, -1, 1, 0, -1, -1, -1],
        "threshold": [0.5, 0, 0, 2.0, 0.5, 0, 0, 0],
        "left": [1, -1, -1, 4, 5, -1, -1, -1],
        "right": [2, -1, -1, 7, 6, -1, -1, -1],
        "default_left": [True, False, False, False, True, False, False, False],
        "tree_start": [0, 3, 8],
        "leaf_value": [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]],
        "base_score": [0.0, 0.0],
        "classes": ["no", "yes"],
        "n_features": 2,
    }
    return arguments | changes


def changed(name: str, index: int, value: Any) -> dict[str, Any]:
    """The small forest with one entry of one array replaced."""
    values = list(small()[name])
    values[index] = value
    return small(**{name: values})


def test_small_forest_is_valid() -> None:
    forest = Forest(**small())
    assert (forest.n_trees, forest.n_leaves, forest.n_outputs, forest.n_classes) == (2, 5, 2, 2)
    assert forest.tree_of_leaf.tolist() == [0, 0, 1, 1, 1]
    assert repr(forest) == "Forest(unknown: 2 trees, 5 leaves, 2 features, 2 classes)"


BAD = {
    "a cycle": (changed("left", 4, 3), "once"),
    "a shared child": (changed("right", 3, 4), "once"),
    "both children the same": (changed("right", 0, 1), "once"),
    "a node out of reach": (
        small(left=[1, -1, -1, 4, -1, -1, -1, -1], right=[2, -1, -1, 7, -1, -1, -1, -1]),
        "not reached",
    ),
    "a child in another tree": (changed("right", 0, 3), "own tree"),
    "a child past the end": (changed("right", 3, 8), "own tree"),
    "half a leaf": (changed("right", 0, -1), "negative at the same nodes"),
    "nodes out of pre-order": (
        small(left=[2, -1, -1, 4, 5, -1, -1, -1], right=[1, -1, -1, 7, 6, -1, -1, -1]),
        "pre-order; Forest.from_nodes",
    ),
    "an empty tree": (small(tree_start=[0, 3, 3, 8]), "tree_start must rise"),
    "no tree": (small(tree_start=[0]), "tree_start must rise"),
    "trees that end early": (small(tree_start=[0, 3]), "tree_start must rise"),
    "trees that start late": (small(tree_start=[1, 3, 8]), "tree_start must rise"),
    "a feature out of range": (changed("feature", 3, 2), r"Forest\.feature must be from 0 to 1 at every split, got 2"),
    "a split without a feature": (changed("feature", 3, -1), r"Forest\.feature must be from 0 to 1"),
    "a leaf with a feature": (changed("feature", 1, 0), r"Forest\.feature"),
    "no features": (small(n_features=0), r"Forest\.n_features must be from 1 to 10000000, got 0"),
    "a NaN threshold": (changed("threshold", 0, np.nan), r"Forest\.threshold must be a number at every split, got NaN"),
    "too few thresholds": (
        small(threshold=[0.5]),
        r"Forest\.threshold must be as long as Forest\.feature \(8\), got 1",
    ),
    "too many defaults": (small(default_left=[True] * 9), r"Forest\.default_left must be as long as"),
    "a leaf too many": (small(leaf_value=np.zeros((6, 2))), r"Forest\.leaf_value must be \(5, n_outputs\)"),
    "flat leaf values": (small(leaf_value=np.zeros(5)), r"Forest\.leaf_value must be \(5, n_outputs\)"),
    "an infinite leaf": (changed("leaf_value", 0, [np.inf, 0.0]), "must be finite"),
    "a NaN base": (small(base_score=[0.0, np.nan]), "must be finite"),
    "a column too many": (small(leaf_value=np.zeros((5, 3))), "3 labels for 'argmax', got 2"),
    "a short base": (small(base_score=[0.0]), r"as wide as leaf_value \(2\)"),
    "an unknown decision": (small(decision="vote"), r"Forest\.decision must be one of .*, got 'vote'"),
    "an unknown dtype": (small(input_dtype="int8"), r"Forest\.input_dtype must be one of .*, got 'int8'"),
    "two scores for one cut": (small(decision="above"), "1 wide for 'above', got 2"),
    "three classes for one cut": (
        small(decision="at_least", leaf_value=np.zeros((5, 1)), base_score=[0.0], classes=[0, 1, 2]),
        r"Forest\.classes must be 2 labels for 'at_least', got 3",
    ),
    "a divisor of 0": (small(divisor=0.0), r"Forest\.divisor must be a finite number above 0, got 0"),
    "a NaN divisor": (small(divisor=np.nan), r"Forest\.divisor must be a finite number above 0, got nan"),
    "a name too few": (small(feature_names=("age",)), r"Forest\.feature_names must be 2 names, got 1"),
    "a weight too few": (small(tree_weight=[1.0]), r"Forest\.tree_weight must be \(2,\), got \(1,\)"),
    "a small distribution": (small(leaf_distribution=np.ones((4, 2))), r"Forest\.leaf_distribution must be \(5, 2\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_forest_is_refused(name: str) -> None:
    arguments, message = BAD[name]
    with pytest.raises(InvalidInput, match=message):
        Forest(**arguments)


@pytest.mark.parametrize("name", ["feature", "threshold", "default_left", "node_value", "node_distribution"])
@pytest.mark.parametrize("n_nodes", [2, 4])
def test_from_nodes_refuses_arrays_of_another_length(name: str, n_nodes: int) -> None:
    nodes: dict[str, Any] = {
        "feature": np.array([0, -1, -1]),
        "threshold": np.zeros(3),
        "default_left": np.zeros(3, bool),
        "node_value": np.zeros((3, 2)),
        "node_distribution": np.zeros((3, 2)),
    }
    nodes[name] = np.resize(nodes[name], (n_nodes, *nodes[name].shape[1:]))
    with pytest.raises(InvalidInput):
        Forest.from_nodes(
            **nodes,
            left=np.array([1, -1, -1]),
            right=np.array([2, -1, -1]),
            tree_start=np.array([0, 3]),
            base_score=np.zeros(2),
            classes=np.arange(2),
            n_features=1,
        )


def shuffled(nodes: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The same nodes in another order; the root stays first in its tree."""
    starts = nodes["tree_start"]
    order = np.concatenate(
        [[first, *rng.permutation(np.arange(first + 1, end))] for first, end in pairwise(starts)]
    ).astype(int)
    position = np.argsort(order)
    moved = {key: values[order] for key, values in nodes.items() if key != "tree_start"}
    for side in ("left", "right"):
        moved[side] = np.where(moved[side] < 0, -1, position[moved[side]])
    return moved | {"tree_start": starts}


@given(SEEDS, st.integers(1, 5), st.integers(0, 5))
def test_order_of_nodes_changes_nothing(seed: int, n_trees: int, max_depth: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = random_nodes(rng, n_features=3, n_trees=n_trees, max_depth=max_depth, has_missing_routes=True)
    rest = {"base_score": np.zeros(2), "classes": np.arange(2), "n_features": 3, "takes_missing": True}
    in_order = Forest.from_nodes(**nodes, **rest)
    sorted_back = Forest.from_nodes(**shuffled(nodes, rng), **rest)
    assert_same(in_order, sorted_back)
    rows = adversarial_rows(in_order, rng, 50)
    expected = [sum(nodes["node_value"][leaf] for leaf in leaves_by_hand(nodes, row)) for row in rows]
    np.testing.assert_array_equal(kernels.hard_scores(sorted_back, rows), expected)


def leaves_by_hand(nodes: dict[str, Any], row: Any) -> list[int]:
    """The leaf of every tree, walked node by node."""
    reached = []
    for root in nodes["tree_start"][:-1]:
        node = root
        while nodes["left"][node] >= 0:
            value = row[nodes["feature"][node]]
            goes_left = nodes["default_left"][node] if np.isnan(value) else value <= nodes["threshold"][node]
            node = nodes["left" if goes_left else "right"][node]
        reached.append(node)
    return reached


def assert_same(one: Forest, other: Forest) -> None:
    """Every field the same, arrays to the byte."""
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, name
            assert a.shape == b.shape, name
            assert a.tobytes() == b.tobytes(), name
        else:
            assert a == b, name
    np.testing.assert_array_equal(one.classes, other.classes)
    assert one.feature_names == other.feature_names


@given(forests())
@settings(max_examples=25)
@pytest.mark.parametrize("name", ["forest.json", "forest.json.gz"])
def test_save_and_load_keep_every_byte(tmp_path_factory: pytest.TempPathFactory, name: str, forest: Forest) -> None:
    path = tmp_path_factory.mktemp("saved") / name
    forest.save(path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert_same(forest, Forest.load(path))


def test_save_keeps_what_is_optional(tmp_path: Path) -> None:
    forest = Forest(
        **small(
            threshold=[np.inf, 0, 0, 5e-324, -1e300, 0, 0, 0],
            feature_names=("age", "größe"),
            tree_weight=[0.1, 1 / 3],
            leaf_distribution=np.full((5, 2), 0.1),
            takes_missing=True,
            input_dtype="float32",
        )
    )
    forest.save(tmp_path / "forest.json")
    assert_same(forest, Forest.load(str(tmp_path / "forest.json")))


def test_numpy_numbers_can_be_saved(tmp_path: Path) -> None:
    forest = Forest(**small(n_features=np.int64(2), takes_missing=np.True_, divisor=np.float64(2)))
    forest.save(tmp_path / "forest.json")
    assert_same(forest, Forest.load(tmp_path / "forest.json"))


def test_saving_twice_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one.json.gz", "two.json.gz"):
        Forest(**small()).save(tmp_path / name)
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def saved_record(tmp_path: Path, **changes: Any) -> bytes:
    Forest(**small()).save(tmp_path / "whole.json")
    record = json.loads((tmp_path / "whole.json").read_bytes())
    return json.dumps({**record, **changes}).encode()


def bent(data: bytes) -> bytes:
    """Compressed data with a few bytes in the middle changed."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0xFF for byte in data[middle : middle + 4]) + data[middle + 4 :]


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "an empty file": lambda data: b"",
    "half a file": lambda data: data[: len(data) // 2],
    "half a compressed file": lambda data: gzip.compress(data)[:-40],
    "changed compressed bytes": lambda data: bent(gzip.compress(data)),
    "a header and nothing": lambda data: b"\x1f\x8b",
    "bytes that are no text": lambda data: b"\xff\xfe\xff" + data,
    "a list": lambda data: b"[" + data + b"]",
    "a number": lambda data: b"1",
    "brackets without end": lambda data: b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(DAMAGED[name](saved_record(tmp_path)))
    with pytest.raises(InvalidInput, match=r"damaged\.json"):
        Forest.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"feature": None},
        {"feature": "abc"},
        {"feature": [[0], [1, 2]]},
        {"feature": [0.5, -1, -1, 1, 0, -1, -1, -1]},
        {"left": [1e30] * 8},
        {"right": {"0": 1}},
        {"leaf_value": [[1.0, 0.0], [0.0]]},
        {"n_features": "two"},
        {"n_features": None},
        {"divisor": "one"},
        {"divisor": None},
        {"cut": "zero"},
        {"classes": None},
        {"classes": 3},
        {"decision": ["argmax"]},
        {"feature_names": 7},
        {"tree_start": [0, 3, float("nan")]},
    ],
    ids=lambda changes: json.dumps(changes),
)
def test_file_with_a_wrong_value_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "forest.json"
    path.write_bytes(saved_record(tmp_path, **changes))
    with pytest.raises(InvalidInput):
        Forest.load(path)


def test_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "forest.json"
    path.write_bytes(saved_record(tmp_path, format="treefocus-forest-0"))
    with pytest.raises(InvalidInput, match=f"format must be '{FORMAT}', got 'treefocus-forest-0'"):
        Forest.load(path)


@pytest.mark.parametrize("key", [field.name for field in fields(Forest)[:10]])
def test_file_that_lacks_a_field_is_refused(tmp_path: Path, key: str) -> None:
    record = json.loads(saved_record(tmp_path))
    del record[key]
    (tmp_path / "forest.json").write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match=f"The forest file lacks {key}"):
        Forest.load(tmp_path / "forest.json")


def test_arrays_are_read_only() -> None:
    forest = Forest(**small(tree_weight=[1.0, 2.0], leaf_distribution=np.ones((5, 2))))
    arrays = [value for value in vars(forest).values() if isinstance(value, np.ndarray)]
    assert len(arrays) == 11
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array


def test_the_callers_arrays_stay_the_callers() -> None:
    value = np.array(small()["leaf_value"])
    forest = Forest(**small(leaf_value=value))
    value[:] = 7.0
    assert forest.leaf_value.max() == 1.0


def test_a_chain_of_20_000_nodes_works() -> None:
    n_splits = 9_999
    splits = np.arange(n_splits)
    n_nodes = 2 * n_splits + 1
    # Splits first, then their left leaves; the last node ends the chain.
    forest = Forest.from_nodes(
        feature=np.where(np.arange(n_nodes) < n_splits, 0, -1),
        threshold=np.where(np.arange(n_nodes) < n_splits, np.arange(n_nodes), 0),
        left=np.concatenate([n_splits + splits, np.full(n_splits + 1, -1)]),
        right=np.concatenate([splits[1:], [n_nodes - 1], np.full(n_splits + 1, -1)]),
        tree_start=join_trees([n_nodes]),
        node_value=np.arange(n_nodes, dtype=float)[:, None] - n_splits,
        base_score=np.zeros(1),
        classes=np.arange(2),
        n_features=1,
        decision="above",
    )
    rows = np.array([-3.0, 0.0, 0.5, 4_321.0, 9_998.0, 9_998.5])
    assert kernels.hard_scores(forest, rows[:, None]).ravel().tolist() == [0, 0, 1, 4_321, 9_998, 9_999]
