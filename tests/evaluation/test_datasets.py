"""The data sets: the authors' layout, the originals from a server of our own, and every way they can be wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.forests import paper_dir
from treefocus import InvalidInput
from treefocus.evaluation import datasets
from treefocus.evaluation.datasets import (
    CHECKSUMS,
    SOURCES,
    DataSource,
    Split,
    cache_dir,
    fetch,
    load,
    load_model,
    prepare,
)

N_ROWS = 60


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def original(name: str, n_rows: int = N_ROWS, seed: int = 0) -> str:
    """A file like the original, with columns that are none of ours, and rows that are to be left out."""
    rng = np.random.default_rng(seed)
    source = SOURCES[name]
    columns: dict[str, list[Any]] = {"id": list(range(n_rows))}
    columns |= {column: rng.integers(0, 30, n_rows).tolist() for column in source.features}
    if name == "wine":
        columns["quality"] = rng.integers(3, 10, n_rows).tolist()
    elif name == "heloc":
        columns["RiskPerformance"] = rng.choice(["Good", "Bad"], n_rows).tolist()
        columns["NumInqLast6M"][3] = -8
    elif name == "shopping":
        columns["Revenue"] = rng.choice(["TRUE", "FALSE"], n_rows).tolist()
        columns["Month"] = ["Feb"] * n_rows
    else:
        columns["two_year_recid"] = rng.integers(0, 2, n_rows).tolist()
        columns |= {"is_recid": [0] * n_rows, "c_charge_degree": ["F"] * n_rows, "score_text": ["Low"] * n_rows}
        for row, (column, value) in enumerate(
            [("is_recid", -1), ("c_charge_degree", "O"), ("score_text", "N/A"), ("days_b_screening_arrest", 31)]
        ):
            columns[column][row] = value
        columns["days_b_screening_arrest"][4] = ""
    mark = source.delimiter
    lines = [mark.join(f'"{column}"' for column in columns)]
    lines += [mark.join(str(values[i]) for values in columns.values()) for i in range(n_rows)]
    return "\n".join(lines) + "\n"


def small(name: str) -> DataSource:
    return replace(SOURCES[name], n_rows=N_ROWS - 5 if name == "compas" else N_ROWS)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder behind a local server, to which the sources point; a cache folder of its own."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in SOURCES:
        (folder / SOURCES[name].file).write_text(original(name))
        url = None if SOURCES[name].url is None else f"http://127.0.0.1:{server.server_port}/{SOURCES[name].file}"
        monkeypatch.setitem(SOURCES, name, replace(small(name), url=url))
    monkeypatch.setenv("TREEFOCUS_CACHE", str(tmp_path / "cache"))
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", ["wine", "compas", "shopping"])
def test_an_original_is_downloaded_prepared_and_kept(served: Path, name: str) -> None:
    split = load(name)
    n_rows = SOURCES[name].n_rows
    assert split.feature_names == tuple(SOURCES[name].features.values())
    assert len(split.X_train) == round(0.7 * n_rows)
    assert len(split.X_train) + len(split.X_test) == n_rows
    for part in (split.X_train, split.X_test):
        np.testing.assert_array_equal(part.min(axis=0), 0.0)
        np.testing.assert_array_equal(part.max(axis=0), 1.0)
    assert set(split.y_train) == {-1, 1}
    (served / SOURCES[name].file).unlink()  # from the cache now
    again = load(name)
    np.testing.assert_array_equal(again.X_test, split.X_test)
    assert SOURCES[name].file in json.loads((cache_dir() / CHECKSUMS).read_text())


def test_the_labels_are_the_paper_s(served: Path) -> None:
    text = original("wine").splitlines()
    quality = np.array([int(line.split(";")[-1]) for line in text[1:]])
    split = load("wine")
    assert (split.y_train == 1).sum() + (split.y_test == 1).sum() == (quality >= 7).sum()


def test_another_seed_splits_otherwise(served: Path) -> None:
    assert not np.array_equal(load("wine", seed=0).X_test, load("wine", seed=1).X_test)


def test_a_file_that_changes_is_refused(served: Path) -> None:
    load("wine")
    (cache_dir() / SOURCES["wine"].file).write_text(original("wine", seed=1))
    with pytest.raises(InvalidInput, match=r"has changed: its SHA-256 is [0-9a-f]{64}, and was [0-9a-f]{64} at first"):
        load("wine")


def test_without_the_network_it_says_what_to_do(tmp_path: Path) -> None:
    source = replace(small("wine"), url="http://127.0.0.1:9/nothing.csv")
    with pytest.raises(InvalidInput, match=r"cannot be downloaded .* Put the file into .* --data-dir"):
        fetch(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_not_there_is_said(served: Path) -> None:
    (served / SOURCES["wine"].file).unlink()
    with pytest.raises(InvalidInput, match="cannot be downloaded"):
        load("wine")


def test_heloc_needs_a_registration(served: Path) -> None:
    with pytest.raises(InvalidInput, match=r"heloc_dataset_v1.csv needs a registration .*community\.fico\.com"):
        load("heloc")
    cache_dir().mkdir(exist_ok=True)
    (cache_dir() / "heloc_dataset_v1.csv").write_text(original("heloc"))
    assert load("heloc").X_train.shape == (42, 23)


def test_heloc_s_codes_become_the_column_s_mean(tmp_path: Path) -> None:
    values = np.array([[-7.0, 10.0], [4.0, -9.0], [12.0, 11.0]])
    np.testing.assert_array_equal(datasets._filled_heloc(values), [[3.0, 10.0], [4.0, 4.0], [12.0, 11.0]])


def test_an_original_in_the_data_folder_is_used(served: Path, tmp_path: Path) -> None:
    (tmp_path / SOURCES["wine"].file).write_text(original("wine"))
    np.testing.assert_array_equal(load("wine", tmp_path).X_test, load("wine").X_test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"pH"', '"acid"'), "lacks the columns pH"),
        (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "60 rows without a gap after preparation, got 59"),
        (lambda text: text.replace("quality", "grade"), "is not the wine data: 'quality'"),
        (lambda text: text.replace("\n1;", "\n1;many", 1), "could not convert string to float"),
        (lambda text: "<html>not found</html>\n", "is not the wine data"),
    ],
)
def test_a_file_that_is_something_else_is_refused(served: Path, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "wine.csv"
    path.write_text(change(original("wine")))
    with pytest.raises(InvalidInput, match=message):
        prepare("wine", path)


def test_misuse_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="dataset must be one of wine, heloc, compas, shopping, got 'iris'"):
        load("iris")
    with pytest.raises(InvalidInput, match="There is no folder"):
        load("wine", tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="holds neither"):
        load("wine", tmp_path)


def test_the_cache_folder_is_the_platform_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TREEFOCUS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_dir() == tmp_path / "treefocus"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_dir() == tmp_path / "local" / "treefocus"


@pytest.fixture
def split(served: Path) -> Split:
    return load("shopping")


@pytest.mark.parametrize(("kind", "n_trees"), [("dt", 1), ("ab", 100), ("rf", 500)])
def test_models_are_trained_in_the_paper_s_sizes(split: Split, kind: Any, n_trees: int) -> None:
    forest = load_model(split, kind)
    assert 1 <= forest.n_trees <= n_trees  # AdaBoost stops early on a toy it has learnt by heart
    assert forest.classes.tolist() == [-1, 1]
    assert forest.n_features == 9


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_features"),
    [("wine", 3428, 1470, 11), ("heloc", 7321, 3138, 23), ("compas", 4320, 1852, 6), ("shopping", 8631, 3699, 9)],
)
def test_the_authors_layout_is_read(name: str, n_train: int, n_test: int, n_features: int) -> None:
    split = load(name, paper_dir())
    assert split.X_train.shape == (n_train, n_features)
    assert split.X_test.shape == (n_test, n_features)
    assert set(split.y_train) == {-1, 1}
    for kind, n_trees in (("dt", 1), ("ab", 100)):
        assert load_model(split, kind, paper_dir()).n_trees == n_trees  # type: ignore[arg-type]


def test_a_split_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for part in ("train", "test"):
        (tmp_path / "data" / f"cf_wine_data_{part}.tsv").write_text("\ta\tb\tclass\n0\t0.1\t0.2\t1\n")
    with pytest.raises(InvalidInput, match="columns fixed_acidity"):
        load("wine", tmp_path)
