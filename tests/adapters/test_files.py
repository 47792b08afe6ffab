"""Forests from files: the paper's `focus-trees-1` records and our own JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.forests import paper_dir, random_forest
from treefocus import kernels
from treefocus.adapters import load_forest
from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats

# Tree A: x0 <= 0.5 ? (x1 <= 0.1 ? [3, 1] : [1, 3]) : [0, 8].  Tree B: x1 <= 0.3 ? [2, 2] : [9, 1].
TREE_A = {
    "feature": [0, 1, -2, -2, -2],
    "threshold": [0.5, 0.1, -2.0, -2.0, -2.0],
    "children_left": [1, 2, -1, -1, -1],
    "children_right": [4, 3, -1, -1, -1],
    "value": [[4.0, 12.0], [4.0, 4.0], [3.0, 1.0], [1.0, 3.0], [0.0, 8.0]],
}
TREE_B = {
    "feature": [1, -2, -2],
    "threshold": [0.3, -2.0, -2.0],
    "children_left": [1, -1, -1],
    "children_right": [2, -1, -1],
    "value": [[11.0, 3.0], [2.0, 2.0], [9.0, 1.0]],
}
ROWS = np.array([[0.5, 0.1], [0.5, 0.2], [0.6, 0.2], [0.6, 0.4]])


def record(kind: str, *trees: dict[str, Any], **changes: Any) -> dict[str, Any]:
    whole = {
        "format": "focus-trees-1",
        "name": "by hand",
        "kind": kind,
        "classes": [-1, 1],
        "n_classes": 2,
        "n_features": 2,
        "trees": list(trees),
    }
    return whole | ({"estimator_weights": [0.5, 2.0]} if kind == "ab" else {}) | changes


def written(folder: Path, whole: Any, name: str = "model.json") -> Path:
    path = folder / name
    data = json.dumps(whole).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["model.json", "model.json.gz"])
def test_a_tree_by_hand(tmp_path: Path, name: str) -> None:
    forest = load_forest(written(tmp_path, record("dt", TREE_A), name))
    # 0.1 is above the threshold 0.1 in float32: the first row goes where 0.2 goes.
    shares = [[0.25, 0.75], [0.25, 0.75], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_array_equal(kernels.hard_scores(forest, ROWS), shares)
    below = np.array([[0.5, 0.09]])
    np.testing.assert_array_equal(kernels.hard_scores(forest, below), [[0.75, 0.25]])
    assert forest.classes[kernels.predict(forest, np.vstack([ROWS, below]))].tolist() == [1, 1, 1, 1, -1]
    assert forest.input_dtype == "float32"


def test_a_forest_by_hand(tmp_path: Path) -> None:
    forest = load_forest(written(tmp_path, record("rf", TREE_A, TREE_B)))
    mean = [[0.375, 0.625], [0.375, 0.625], [0.25, 0.75], [0.45, 0.55]]
    np.testing.assert_allclose(kernels.hard_scores(forest, ROWS), mean, rtol=1e-15)
    assert kernels.predict(forest, ROWS).tolist() == [1, 1, 1, 1]
    assert forest.tree_weight is not None
    assert forest.tree_weight.tolist() == [0.5, 0.5]


def test_a_boosted_forest_by_hand(tmp_path: Path) -> None:
    forest = load_forest(written(tmp_path, record("ab", TREE_A, TREE_B, estimator_weights=[0.5, 2.0, 0.0])))
    # A votes 1 for all rows; B votes -1 for all of them, by a tie where its leaf holds [2, 2].
    np.testing.assert_array_equal(kernels.hard_scores(forest, ROWS), np.tile([2.0, 0.5], (4, 1)))
    assert forest.classes[kernels.predict(forest, ROWS)].tolist() == [-1] * 4
    assert forest.tree_weight is not None
    assert forest.tree_weight.tolist() == [0.5, 2.0]
    assert forest.leaf_distribution is not None
    np.testing.assert_allclose(forest.leaf_distribution[-1], [1.8, 0.2])


def test_equal_votes_go_to_the_first_class(tmp_path: Path) -> None:
    forest = load_forest(written(tmp_path, record("ab", TREE_A, TREE_B, estimator_weights=[1.0, 1.0])))
    assert kernels.predict(forest, ROWS).tolist() == [0] * 4


def without(tree: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: values for name, values in tree.items() if name != key}


TREE_KEYS = list(TREE_A)
DAMAGED: dict[str, Any] = {
    "no trees": record("rf"),
    "no list of trees": record("rf", trees=None),
    "trees by name": record("rf", trees={"a": TREE_A}),
    "a number for a tree": record("rf", trees=[1]),
    "an unknown kind": record("gb", TREE_A),
    "no kind": without(record("dt", TREE_A), "kind"),
    "no classes": without(record("dt", TREE_A), "classes"),
    "three classes": record("dt", TREE_A, classes=[0, 1, 2]),
    "no feature count": without(record("dt", TREE_A), "n_features"),
    "a word for a feature count": record("dt", TREE_A, n_features="two"),
    "too few features": record("dt", TREE_A, n_features=1),
    "no weights": without(record("ab", TREE_A, TREE_B), "estimator_weights"),
    "too few weights": record("ab", TREE_A, TREE_B, estimator_weights=[1.0]),
    "weights in words": record("ab", TREE_A, TREE_B, estimator_weights=["a", "b"]),
    "an infinite weight": record("ab", TREE_A, TREE_B, estimator_weights=[1.0, float("inf")]),
    "a child out of range": record("dt", TREE_A | {"children_right": [9, 3, -1, -1, -1]}),
    "a cycle": record("dt", TREE_A | {"children_left": [1, 0, -1, -1, -1]}),
    "a NaN threshold": record("dt", TREE_A | {"threshold": [float("nan"), 0.1, -2, -2, -2]}),
    "a leaf that saw nothing": record("dt", TREE_A | {"value": [[1, 1], [1, 1], [0, 0], [1, 1], [1, 1]]}),
    "values of unequal length": record("dt", TREE_A | {"value": [[1, 1], [1], [1, 1], [1, 1], [1, 1]]}),
    "flat values": record("dt", TREE_A | {"value": [1, 1, 1, 1, 1]}),
    "values of another width in one tree": record("rf", TREE_A, TREE_B | {"value": [[1.0], [1.0], [1.0]]}),
    **{f"no {key}": record("rf", TREE_A, without(TREE_B, key)) for key in TREE_KEYS},
    **{f"{key} too short": record("rf", TREE_A, TREE_B | {key: TREE_B[key][:2]}) for key in TREE_KEYS},
    **{f"{key} in words": record("rf", TREE_A, TREE_B | {key: ["x"] * 3}) for key in TREE_KEYS},
    "another format": record("dt", TREE_A, format="focus-trees-2"),
    "no format": without(record("dt", TREE_A), "format"),
    "a list": [record("dt", TREE_A)],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_record_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        load_forest(written(tmp_path, DAMAGED[name]))


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, record("rf", TREE_A, TREE_B), "model.json.gz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InvalidInput, match=r"model\.json\.gz is not a readable JSON file"):
        load_forest(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file .*nowhere\.json"):
        load_forest(tmp_path / "nowhere.json")


def test_our_own_format_is_read(tmp_path: Path) -> None:
    forest = random_forest(np.random.default_rng(0))
    forest.save(tmp_path / "own.json.gz")
    rows = np.random.default_rng(1).normal(size=(20, 3))
    loaded = load_forest(tmp_path / "own.json.gz")
    np.testing.assert_array_equal(kernels.hard_scores(loaded, rows), kernels.hard_scores(forest, rows))


PAPER_MODELS = [
    f"model_{name}"
    for name in (
        "dt_cf_wine_depth2", "rf_cf_wine_iter500_depth4", "ada_cf_wine_iter100_depth4_lr0.1",
        "dt_cf_heloc_depth4", "rf_cf_heloc_iter500_depth4", "ada_cf_heloc_iter100_depth8_lr0.1",
        "dt_cf_compas_num_depth4", "rf_cf_compas_num_iter500_depth4", "ada_cf_compas_num_iter100_depth2_lr0.1",
        "dt_cf_shop2_depth4", "rf_cf_shop2_iter100_depth8", "ada_cf_shop2_iter100_depth2_lr0.5",
    )
]  # fmt: skip


def votes_by_hand(whole: dict[str, Any], rows: Floats) -> Floats:
    """The rule of the format's description, tree by tree and level by level, in scikit-learn's own terms."""
    seen = rows.astype(np.float32).astype(np.float64)
    votes = np.zeros((len(rows), 2))
    for m, tree in enumerate(whole["trees"]):
        at = {key: np.array(tree[key]) for key in TREE_KEYS}
        node = np.zeros(len(rows), int)
        while (inner := at["children_left"][node] >= 0).any():
            value = seen[np.arange(len(rows)), at["feature"][node]]
            below = np.where(value <= at["threshold"][node], at["children_left"][node], at["children_right"][node])
            node = np.where(inner, below, node)
        counts = at["value"][node]
        if whole["kind"] == "ab":
            votes += whole["estimator_weights"][m] * np.eye(2)[counts.argmax(axis=1)]
        else:
            votes += counts / counts.sum(axis=1, keepdims=True)
    return votes


@pytest.mark.parametrize("name", PAPER_MODELS)
def test_the_papers_model_predicts_its_test_data(name: str) -> None:
    path = paper_dir() / "models" / f"{name}.json.gz"
    dataset = name.split("_cf_")[1].split("_iter")[0].split("_depth")[0]
    data = np.loadtxt(paper_dir() / "data" / f"cf_{dataset}_data_test.tsv", skiprows=1, delimiter="\t")
    rows, truth = data[:, 1:-1], data[:, -1]
    forest = load_forest(path)
    predicted = forest.classes[kernels.predict(forest, rows)]
    votes = votes_by_hand(json.loads(gzip.decompress(path.read_bytes())), rows)
    np.testing.assert_array_equal(predicted, np.where(votes[:, 1] > votes[:, 0], 1, -1))
    assert 0.02 < (predicted == 1).mean() < 0.98
    assert (predicted == truth).mean() > 0.6
