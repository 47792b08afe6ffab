"""A folder of answers opens by its name in other libraries, and tells where its answers come from."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from pyarrow import dataset, parquet

from support.streams import loan_explainer, loan_rows
from treefocus.model.fingerprint import fingerprint
from treefocus.scale.files import explain_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("folder")
    parquet.write_table(loan_rows(50), scratch / "rows.parquet")
    explainer = loan_explainer(constraints=["age fixed"])
    explainer.forest.save(scratch / "model.json")
    explain_file(
        explainer, scratch / "rows.parquet", scratch / "out", keep=["customer"], part_rows=20,
        model_file=scratch / "model.json", told={"train": "train.csv"}, certificates=scratch / "out" / "_certificates",
    )  # fmt: skip
    return scratch / "out"


def test_the_folder_opens_by_its_name(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "_manifest.json", "_SUCCESS", "_certificates", *(f"part-0000{k}.parquet" for k in range(3)),
    }  # fmt: skip
    expected = list(range(1000, 1050))
    assert pd.read_parquet(folder)["customer"].tolist() == expected
    assert pl.read_parquet(folder / "*.parquet")["customer"].to_list() == expected
    lazy = pl.scan_parquet(folder / "*.parquet")  # of a folder it reads all files, of whatever kind
    assert lazy.collect()["customer"].to_list() == expected
    assert parquet.read_table(folder)["customer"].to_pylist() == expected
    assert dataset.dataset(folder).to_table()["customer"].to_pylist() == expected


def test_duckdb_opens_the_folder(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="an optional reader")
    found = duckdb.connect().sql(f"select customer from read_parquet('{folder}') order by customer").fetchall()
    assert [one for (one,) in found] == list(range(1000, 1050))


def test_the_manifest_tells_where_the_answers_come_from(folder: Path) -> None:
    record = json.loads((folder / "_manifest.json").read_text("utf-8"))
    assert record["format"] == "treefocus-answers-2"
    assert record["complete"]
    assert record["question"]["model"] == fingerprint(loan_explainer().forest)
    run = record["run"]
    assert run["versions"].keys() >= {"python", "treefocus", "numpy", "pyarrow"}
    assert run["started"] <= run["finished"]
    assert run["input"].endswith("rows.parquet")
    assert run["model"]["path"].endswith("model.json")
    assert len(run["model"]["sha256"]) == 64
    assert run["options"]["constraints"] == ["age fixed"]
    assert run["options"]["distance"] == "manhattan"
    assert run["options"]["train"] == "train.csv"
    for part in record["parts"]:
        told = json.loads(parquet.read_schema(folder / part["name"]).metadata[b"treefocus"])
        assert told["question"] == record["question"]
        assert told["options"] == run["options"]
        assert part["bytes"] == (folder / part["name"]).stat().st_size
