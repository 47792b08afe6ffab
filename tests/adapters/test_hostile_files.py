"""Files and forests that mean harm, or are only very large: a clear refusal, or an answer, and never a crash."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.questions import stump
from treefocus import Explainer, InvalidInput, Status, load_model

DEPTH = 100_000


def focus_record(**changes: Any) -> dict[str, Any]:
    tree = {
        "feature": [0, -2, -2],
        "threshold": [0.5, -2.0, -2.0],
        "children_left": [1, -1, -1],
        "children_right": [2, -1, -1],
        "value": [[5.0, 5.0], [5.0, 0.0], [0.0, 5.0]],
    }
    record = {"format": "focus-trees-1", "kind": "dt", "n_features": 2, "classes": [0, 1]}
    return record | {"trees": [tree | changes]}


def own_record(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    stump().save(tmp_path / "stump.json")
    return json.loads((tmp_path / "stump.json").read_text()) | changes  # type: ignore[no-any-return]


HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # changes to our own format, and to focus-trees-1
    "a cycle": ({"left": [0, -1, -1]}, {"children_left": [0, -1, -1]}),
    "a shared child": ({"right": [1, -1, -1]}, {"children_right": [1, -1, -1]}),
    "a feature that is not there": ({"feature": [7, -1, -1]}, {"feature": [7, -2, -2]}),
    "a feature below zero": ({"feature": [-7, -1, -1]}, {"feature": [-7, -2, -2]}),
    "a threshold that is no number": ({"threshold": [float("nan"), 0.0, 0.0]}, {"threshold": [float("nan"), 0, 0]}),
    "a child far away": ({"right": [2**31 - 1, -1, -1]}, {"children_right": [2**62, -1, -1]}),
    "a child beyond every integer": ({"right": [2**80, -1, -1]}, {"children_right": [2**80, -1, -1]}),
    "a billion nodes": ({"tree_start": [0, 10**9]}, {"children_right": [10**9, -1, -1]}),
    "leaves too few": ({"leaf_value": [[1.0, 0.0]]}, {"value": [[1.0, 0.0]]}),
    "leaves that are infinite": (
        {"leaf_value": [[float("inf"), 0.0], [0.0, 1.0]]},
        {"value": [[1.0, 1.0], [float("inf"), 0.0], [0.0, 1.0]]},
    ),
    "nothing where a list should be": ({"leaf_value": None}, {"value": None}),
    "a text where a list should be": ({"feature": "abc"}, {"feature": "abc"}),
    "lists in a list": ({"threshold": [[0.5], [0.0], [0.0]]}, {"threshold": [[0.5], [0.0]]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path: Path, name: str) -> None:
    own, focus = HOSTILE[name]
    for record in (own_record(tmp_path, **own), focus_record(**focus)):
        (tmp_path / "model.json").write_text(json.dumps(record))
        with pytest.raises(InvalidInput):
            load_model(tmp_path / "model.json")


@pytest.mark.parametrize("n_features", [0, -1, 1.5, True, "2", None, 10**9, 2**70])
def test_a_number_of_features_that_cannot_be(tmp_path: Path, n_features: Any) -> None:
    (tmp_path / "model.json").write_text(json.dumps(own_record(tmp_path, n_features=n_features)))
    with pytest.raises(InvalidInput, match="n_features"):
        load_model(tmp_path / "model.json")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    for data in (json.dumps(own_record(tmp_path)).encode(), gzip.compress(json.dumps(focus_record()).encode())):
        for end in range(len(data)):
            (tmp_path / "cut.json").write_bytes(data[:end])
            with pytest.raises(InvalidInput):
                load_model(tmp_path / "cut.json")


def test_a_json_file_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"a": ' + "[" * 200_000)
    with pytest.raises(InvalidInput):
        load_model(tmp_path / "deep.json")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of 100,000 levels, as the paper's models are written."""
    n_nodes = 2 * DEPTH + 1
    inner = np.arange(0, 2 * DEPTH, 2)
    left, right, feature = (np.full(n_nodes, -1) for _ in range(3))
    threshold = np.zeros(n_nodes)
    left[inner], right[inner], feature[inner], threshold[inner] = inner + 1, inner + 2, 0, np.arange(DEPTH)
    value = np.tile([1.0, 0.0], (n_nodes, 1))
    value[DEPTH // 2 * 2 + 1] = [0.0, 1.0]
    record = focus_record(
        feature=feature.tolist(), threshold=threshold.tolist(), children_left=left.tolist(),
        children_right=right.tolist(), value=value.tolist(),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("chain") / "chain.json"
    path.write_text(json.dumps(record))
    return path


def test_a_chain_of_a_hundred_thousand_nodes_is_read_and_asked(chain: Path) -> None:
    forest = load_model(chain)
    assert len(forest.feature) == 2 * DEPTH + 1
    explainer = Explainer(forest, np.array([[0.0, 0.0], [float(DEPTH), 1.0]]))
    found = explainer.explain(np.array([[10.0, 0.5], [DEPTH / 2, 0.5]]), strategy="exact", time_limit=1.0)
    assert found.predicted.tolist() == [0, 1]
    assert all(isinstance(status, Status) for status in found.status)


def test_rows_of_five_thousand_columns() -> None:
    rng = np.random.default_rng(0)
    n_features = 5000
    rows = rng.random((30, n_features))
    forest = stump(n_features=n_features)
    found = Explainer(forest, rows).explain(rows[:4])
    assert set(found.status) == {Status.OPTIMAL}
    assert all(len(one.changes) == 1 for one in found)
