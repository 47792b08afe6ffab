"""ONNX files say what ONNX Runtime says, on thresholds, one float beside them and missing values."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.conformance_onnx import FILES, ONE, TWO, X, converted, runtime
from support.forests import adversarial_rows
from treefocus import Explainer, Forest, InvalidInput, Probability, UnsupportedModel, load_model
from treefocus.adapters.onnx_model import is_onnx
from treefocus.kernels import decide, hard_scores, reference


def loaded(data: bytes, folder: Path) -> Forest:
    (folder / "model.onnx").write_bytes(data)
    forest = load_model(folder / "model.onnx")
    assert isinstance(forest, Forest)
    return forest


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_what_the_runtime_says(name: str, tmp_path: Path) -> None:
    data = FILES[name]()
    forest = loaded(data, tmp_path)
    rows = adversarial_rows(forest, np.random.default_rng(0), 1500, missing=0.05)
    rows = rows.astype(np.float32).astype(np.float64)
    scores, told = hard_scores(forest, rows), runtime(data, rows)
    shown = reference.shown(forest, scores)
    if forest.decision == "value":
        assert (np.abs(shown - told[0].reshape(len(rows), -1)) <= forest.rounding).all()
        return
    label, shares = told[0], told[1]
    assert (np.abs(shown[:, -1] - shares[:, -1]) <= forest.rounding + 1e-6).all()
    if forest.decision == "argmax":
        ordered = np.sort(scores, axis=1)
        is_near = ordered[:, -1] - ordered[:, -2] <= 2 * forest.rounding
    else:
        is_near = np.abs(scores[:, 0] - forest.cut) <= forest.rounding
    ours = forest.classes[decide(forest, scores)]
    assert (ours == label)[~is_near].all()
    assert is_near.mean() < 0.2
    assert len(np.unique(ours)) == forest.n_classes


@pytest.mark.parametrize("name", ["forest", "forest, three classes", "boosting", "boosting, three classes"])
def test_answers_flip_the_runtime(name: str, tmp_path: Path) -> None:
    data = FILES[name]()
    rows = X[:25].astype(np.float64)
    found = Explainer(loaded(data, tmp_path), X.astype(np.float64), distance="manhattan").explain(rows)
    answered = np.flatnonzero(found.has_answer)
    assert len(answered) > 20
    points = np.asarray(found.counterfactuals)[answered]
    assert (runtime(data, points)[0] != runtime(data, rows[answered])[0]).all()


def test_a_probability_is_the_runtimes(tmp_path: Path) -> None:
    for name in ("forest", "boosting"):
        data = FILES[name]()
        rows = X[:10].astype(np.float64)
        found = Explainer(loaded(data, tmp_path), X.astype(np.float64)).explain(rows, target=Probability(1, 0.7))
        answered = np.flatnonzero(found.has_answer)
        assert len(answered)
        assert (runtime(data, np.asarray(found.counterfactuals)[answered])[1][:, 1] >= np.float32(0.7)).all()


def test_what_is_not_only_trees_is_refused(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3, **ONE))
    data = converted(model, TWO)()
    with pytest.raises(UnsupportedModel, match="has the operator Scaler; one tree ensemble is supported"):
        loaded(data, tmp_path)


def test_damage_is_said_of_the_file(tmp_path: Path) -> None:
    data = FILES["forest"]()
    assert is_onnx(data)
    for n in (7, 40, len(data) // 2, len(data) - 3):
        with pytest.raises((InvalidInput, UnsupportedModel)):
            loaded(data[:n], tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(150):
        broken = bytearray(data)
        for place in rng.integers(3, len(data), 4):
            broken[place] = rng.integers(256)
        with suppress(InvalidInput, UnsupportedModel):
            loaded(bytes(broken), tmp_path)
