"""Model files of every library: the same answers as the library's own, and damaged ones refused in a sentence."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pytest
import skops.io
import treelite
from sklearn.ensemble import RandomForestClassifier

from support import conformance_catboost, conformance_lightgbm, conformance_xgboost
from support.conformance import Case, Data, fitted, hard_rows, table
from support.conformance_sklearn import SKLEARN
from support.conformance_treelite import of_xgboost
from treefocus import Auto, Explainer, Forest, TreefocusError, UnsupportedModel, load_model
from treefocus.adapters import translate
from treefocus.errors import InvalidInput
from treefocus.kernels import reference

Fit = Callable[[str, Data], Any]


def save_catboost(form: str) -> Callable[[Any, Path], None]:
    return lambda model, path: model.save_model(str(path), format=form)


KINDS: dict[str, tuple[Fit, str, Callable[[Any, Path], Any]]] = {
    "XGBoost JSON": (conformance_xgboost.skl(), "m.json", lambda m, path: m.save_model(path)),
    "XGBoost UBJ": (conformance_xgboost.skl(), "m.ubj", lambda m, path: m.save_model(path)),
    "XGBoost stopped early": (conformance_xgboost.stopped, "m.ubj", lambda m, path: m.save_model(path)),
    "XGBoost Booster": (conformance_xgboost.booster, "m.model.json", lambda m, path: m.save_model(path)),
    "LightGBM": (conformance_lightgbm.skl(), "m.txt", lambda m, path: m.booster_.save_model(path)),
    "LightGBM Booster": (conformance_lightgbm.booster, "m.whatever", lambda m, path: m.save_model(path)),
    "CatBoost JSON": (conformance_catboost.skl(), "m.json", save_catboost("json")),
    "CatBoost": (conformance_catboost.skl(), "m.cbm", save_catboost("cbm")),
    "CatBoost, leaf by leaf": (
        conformance_catboost.skl(grow_policy="Lossguide"), "m.json", save_catboost("json"),
    ),
    "treelite": (
        lambda task, data: of_xgboost(conformance_xgboost.skl()(task, data)), "m.treelite",
        lambda m, path: m.serialize(str(path)),
    ),
    "skops": (next(c for c in SKLEARN if c.kind == "RandomForest").fit, "m.skops", skops.io.dump),
    "our own": (
        next(c for c in SKLEARN if c.kind == "RandomForest").fit, "m.json.gz",
        lambda m, path: translate(m).forest.save(path),
    ),
}  # fmt: skip
CATEGORICAL = ("XGBoost JSON", "XGBoost UBJ", "LightGBM", "LightGBM Booster")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file of every kind."""
    folder = tmp_path_factory.mktemp("models")
    paths = {}
    for number, (kind, (fit, name, save)) in enumerate(KINDS.items()):
        paths[kind] = folder / f"{number}{name}"
        save(fit("binary", table("binary", "missing")), paths[kind])
    return paths


def same(forest: Forest, source: Any, n_rows: int = 2000) -> None:
    rows = hard_rows(source, np.random.default_rng(0), n_rows)
    np.testing.assert_array_equal(reference.hard_scores(forest, rows), reference.hard_scores(source.forest, rows))
    if forest.decision != "value":
        ours, theirs = reference.predict(forest, rows), source.predict(rows)
        np.testing.assert_array_equal(forest.classes[ours], theirs)


@pytest.mark.parametrize("task", ["binary", "multi-class", "regression"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("CatBoost", "treelite")])
def test_a_file_is_its_model(kind: str, task: str, tmp_path: Path) -> None:
    fit, name, save = KINDS[kind]
    _, _, source = fitted(Case("", kind, task, "missing", fit))
    model = fit(task, table(task, "missing"))
    save(model, tmp_path / name)
    same(translate(load_model(tmp_path / name)).forest, source)


@pytest.mark.parametrize("kind", ["CatBoost", "treelite"])
def test_a_file_that_its_library_opens_is_its_model(kind: str, saved: dict[str, Path]) -> None:
    source = fitted(Case("", kind, "binary", "missing", KINDS[kind][0]))[2]
    same(load_model(saved[kind]), source)


@pytest.mark.parametrize("kind", CATEGORICAL)
def test_a_file_keeps_the_labels(kind: str, tmp_path: Path) -> None:
    fit, name, save = KINDS[kind]
    model, _, source = fitted(Case("", kind, "binary", "categorical", fit))
    save(model, tmp_path / name)
    forest = load_model(tmp_path / name)
    assert forest.categories.labels == source.forest.categories.labels
    same(forest, source)


def test_one_hot_splits_of_catboost_are_read_where_the_file_has_the_names(tmp_path: Path) -> None:
    data = table("binary", "categorical")
    X = data.X.assign(town=data.X["town"].astype(object).fillna("nowhere"), colour=data.X["colour"].astype(str))
    pool = catboost.Pool(X, data.y, cat_features=["colour", "town"])
    model = catboost.CatBoostClassifier(**conformance_catboost.ROUNDS, one_hot_max_size=50).fit(pool)
    model.save_model(str(tmp_path / "m.json"), format="json", pool=pool)
    forest = load_model(tmp_path / "m.json")
    assert forest.categories is not None
    labels = forest.categories.labels
    codes = [
        X[name] if own is None else X[name].map({label: k for k, label in enumerate(own)}).fillna(len(own))
        for name, own in zip(X.columns, labels, strict=True)
    ]
    rows = np.stack([column.to_numpy(np.float64) for column in codes], axis=1)
    assert set(labels[3] or ()) <= set(X["town"])
    np.testing.assert_array_equal(forest.classes[reference.predict(forest, rows)], model.predict(X))
    np.testing.assert_array_equal(
        reference.hard_scores(forest, rows)[:, 0], model.predict(X, prediction_type="RawFormulaVal")
    )
    assert translate(model).with_words is not None  # the live model waits for the words of the data


def test_an_explainer_takes_a_loaded_model(saved: dict[str, Path]) -> None:
    X = table("binary", "plain").X
    for kind in ("XGBoost UBJ", "LightGBM", "CatBoost JSON", "skops"):
        found = Explainer(load_model(saved[kind]), X).explain(X[:3], strategy=Auto(time_limit=None, node_limit=1_000))
        assert found.has_answer.all()


# What is refused


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("CatBoost", "treelite")])
def test_half_a_file_is_refused(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    data = saved[kind].read_bytes()
    for share in (0.02, 0.3, 0.7, 0.99):
        path = tmp_path / saved[kind].name
        path.write_bytes(data[: int(share * len(data))])
        if kind.startswith("LightGBM") and share == 0.99:
            continue  # the end is a list of settings
        with pytest.raises(InvalidInput):
            load_model(path)


@pytest.mark.parametrize("kind", ["CatBoost", "treelite"])
def test_half_a_file_that_its_library_opens_is_refused(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    data = saved[kind].read_bytes()
    (tmp_path / "half").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match="is not a whole"):
        load_model(tmp_path / "half")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("CatBoost", "treelite", "skops")])
def test_damaged_bytes_never_surprise(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    """A file with a few bytes changed is a model still or is refused; nothing else comes of it."""
    rng = np.random.default_rng(0)
    data = np.frombuffer(saved[kind].read_bytes(), np.uint8)
    path = tmp_path / saved[kind].name
    for _ in range(60):
        broken = data.copy()
        at = rng.integers(0, len(data), rng.integers(1, 6))
        broken[at] = rng.integers(32, 127, len(at)) if rng.random() < 0.7 else rng.integers(0, 256, len(at))
        path.write_bytes(broken.tobytes())
        with suppress(TreefocusError):
            assert isinstance(load_model(path), Forest)


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [found for key, own in value.items() for found in numbers_in(own, (*path, key))]
    if isinstance(value, list):
        return [found for key, own in list(enumerate(value))[:4] for found in numbers_in(own, (*path, key))]
    return [path]


@pytest.mark.parametrize("kind", ["XGBoost JSON", "CatBoost JSON", "CatBoost, leaf by leaf"])
def test_wrong_values_never_surprise(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    """A value of the wrong size or type, anywhere in the file."""
    rng = np.random.default_rng(1)
    whole = saved[kind].read_text()
    places = numbers_in(json.loads(whole))
    odd: list[Any] = [None, -1, 10**12, 1e308, "x", "99999999999", [], {}, True, -(10**9)]
    for place in (places[i] for i in rng.permutation(len(places))[:150]):
        record = json.loads(whole)
        inner = record
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = odd[rng.integers(len(odd))]
        (tmp_path / "m.json").write_text(json.dumps(record))
        with suppress(TreefocusError):
            assert isinstance(load_model(tmp_path / "m.json"), Forest)


GARBAGE = {
    "nothing": b"",
    "noise": bytes(range(256)),
    "text": b"hello",
    "a list": b"[1, 2]",
    "an object": b"{}",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "ubj": b"{L" + b"\xff" * 30,
    "ubj, deep": b"{" + b"U\x01a{" * 10_000,
    "ubj, long": b"{U\x01a[$L#L" + (2**62).to_bytes(8, "big"),
    "lightgbm": b"tree\n",
    "lightgbm, half": b"tree\nobjective=binary\nnum_tree_per_iteration=1\nTree=0\nnum_leaves=1000000000000\n",
    "zip": b"PK\x03\x04 no zip",
    "old xgboost": b"binf" + b"\0" * 50,
    "gzip": gzip.compress(b"{}")[:-4],
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(GARBAGE[name])
    with pytest.raises(TreefocusError):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("head", [b"CBM1", b"\x04\0\0\0"])
def test_garbage_for_a_library_is_refused(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(head + bytes(np.random.default_rng(0).integers(0, 256, 4000, np.uint8)))
    with pytest.raises(InvalidInput, match="is not a whole"):
        load_model(tmp_path / "m")


def test_a_file_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.json.gz").write_bytes(gzip.compress(b" " * (1 << 27)))
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        load_model(tmp_path / "m.json.gz")


def test_untrusted_types_are_refused(tmp_path: Path) -> None:
    X, y = np.eye(4), [0, 1, 0, 1]
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    model.extra = Case("", "", "", "", fitted)  # a type of ours
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(InvalidInput, match=r"types that skops does not trust: .*Case"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.json"])
def test_a_pickle_is_read_only_when_allowed(name: str, tmp_path: Path) -> None:
    model = RandomForestClassifier(2, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    (tmp_path / name).write_bytes(pickle.dumps(model))
    with pytest.raises(InvalidInput, match="runs code from the file"):
        load_model(tmp_path / name)
    assert isinstance(load_model(tmp_path / name, allow_pickle=True), RandomForestClassifier)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no file"):
        load_model(tmp_path / "m.txt")


def test_a_treelite_model_that_ranks_is_named(tmp_path: Path) -> None:
    builder = treelite.model_builder
    tree = builder.ModelBuilder(
        threshold_type="float32", leaf_output_type="float32",
        metadata=builder.Metadata(
            num_feature=1, task_type="kLearningToRank", average_tree_output=False, num_target=1, num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=builder.TreeAnnotation(num_tree=1, target_id=[0], class_id=[0]),
        postprocessor=builder.PostProcessorFunc(name="identity"), base_scores=[0.0],
    )  # fmt: skip
    tree.start_tree()
    tree.start_node(0)
    tree.leaf(1.0)
    tree.end_node()
    tree.end_tree()
    tree.commit().serialize(str(tmp_path / "m"))
    with pytest.raises(UnsupportedModel, match="ranks or looks for outliers"):
        load_model(tmp_path / "m")
