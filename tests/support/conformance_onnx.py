"""ONNX files of models that converters know, next to ONNX Runtime's own answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from treefocus.model.forest import Floats

ONE: dict[str, Any] = {"random_state": 0}
X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
NOISY = X[:, 0] + X[:, 1] * X[:, 2] + np.random.default_rng(1).normal(0, 0.3, 300)
TWO, THREE = (NOISY > 0).astype(int), np.digitize(NOISY, [-0.6, 0.6])
WORDS = np.array(["no", "yes"])[TWO]


def converted(model: Any, y: NDArray[Any], dtype: Any = np.float32) -> Callable[[], bytes]:
    def make() -> bytes:
        rows = X.astype(dtype)
        return bytes(to_onnx(model.fit(rows, y), rows[:1], options=_options(model)).SerializeToString())

    return make


def _options(model: Any) -> Any:
    return {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None


def tree_ensemble(mode: int, tracks_true: int, aggregate: int = 1) -> Callable[[], bytes]:
    """The newer operator, by hand: two trees of two and three leaves, and one of a single leaf."""

    def make() -> bytes:
        node = helper.make_node(
            "TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, aggregate_function=aggregate,
            post_transform=0, tree_roots=[0, 1, 3], nodes_featureids=[0, 1, 2, 0],
            nodes_modes=_tensor(np.array([mode, mode, 0, 0], np.uint8)),
            nodes_splits=_tensor(np.array([0.25, -0.5, 0.75, 0.0], np.float32)),
            nodes_truenodeids=[0, 2, 3, 5], nodes_trueleafs=[1, 1, 1, 1],
            nodes_falsenodeids=[1, 2, 4, 5], nodes_falseleafs=[1, 0, 1, 1],
            nodes_missing_value_tracks_true=[tracks_true, 1 - tracks_true, 0, 0],
            leaf_targetids=[0] * 6, leaf_weights=_tensor(np.array([1.0, -2.5, 0.125, 3.0, -0.75, 0.5], np.float32)),
        )  # fmt: skip
        given = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 4])
        told = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 1])
        opsets = [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 20)]
        model = helper.make_model(
            helper.make_graph([node], "trees", [given], [told]), opset_imports=opsets, ir_version=9
        )
        return bytes(model.SerializeToString())

    return make


def _tensor(values: NDArray[Any]) -> Any:
    return numpy_helper.from_array(values)


FILES: dict[str, Callable[[], bytes]] = {
    "tree": converted(DecisionTreeClassifier(max_depth=4, **ONE), TWO),
    "tree, three classes": converted(DecisionTreeClassifier(max_depth=4, **ONE), THREE),
    "forest": converted(RandomForestClassifier(11, max_depth=5, **ONE), TWO),
    "forest, words": converted(RandomForestClassifier(11, max_depth=5, **ONE), WORDS),
    "forest, three classes": converted(ExtraTreesClassifier(11, max_depth=5, **ONE), THREE),
    "boosting": converted(GradientBoostingClassifier(n_estimators=9, **ONE), TWO),
    "boosting, three classes": converted(GradientBoostingClassifier(n_estimators=5, **ONE), THREE),
    "forest of values": converted(RandomForestRegressor(11, max_depth=5, **ONE), NOISY),
    "tree of values": converted(DecisionTreeRegressor(max_depth=5, **ONE), NOISY),
    "boosting of values": converted(GradientBoostingRegressor(n_estimators=9, **ONE), NOISY),
    **{f"TreeEnsemble, mode {k}, {t}": tree_ensemble(k, t) for k in range(4) for t in (0, 1)},
    "TreeEnsemble, a mean": tree_ensemble(0, 0, aggregate=0),
}


def runtime(data: bytes, rows: Floats) -> list[NDArray[Any]]:
    """What ONNX Runtime makes of rows: label and probabilities, or values."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return [np.asarray(own) for own in session.run(None, {session.get_inputs()[0].name: rows.astype(np.float32)})]
