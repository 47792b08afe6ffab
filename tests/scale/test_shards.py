"""Shares of one input, answered apart and joined: the bytes of one run; what does not make a whole is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from support.streams import answers, contents, loan_explainer, loan_rows
from treefocus import Explainer, InvalidInput
from treefocus.scale.files import explain_file
from treefocus.scale.merge import merge
from treefocus.scale.shards import Shard
from treefocus.scale.work import Advance

N_ROWS = 130


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module", params=["parquet", "csv", "folder"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    table = loan_rows(N_ROWS)
    if request.param == "csv":
        csv.write_csv(table, folder / "rows.csv")
        return folder / "rows.csv"
    if request.param == "parquet":
        parquet.write_table(table, folder / "rows.parquet", row_group_size=37)
        return folder / "rows.parquet"
    for k, (start, end) in enumerate(((0, 45), (45, 45), (45, 130))):
        parquet.write_table(table.slice(start, end - start), folder / f"{k}.parquet")
    return folder


@given(st.integers(0, 200), st.integers(1, 20), st.booleans())
def test_every_part_is_that_of_one_shard(n_parts: int, count: int, is_known: bool) -> None:
    shards = [Shard(number, count) for number in range(1, count + 1)]
    for part in range(n_parts):
        assert sum(shard.owns(part, n_parts if is_known else None) for shard in shards) == 1


@pytest.mark.parametrize("count", [2, 9])
def test_shards_joined_are_the_bytes_of_one_run(
    explainer: Explainer, rows: Path, tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there are more shards than parts, and where a shard was stopped on its way."""
    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 16)
    explain_file(explainer, rows, tmp_path / "whole", keep=["customer"], part_rows=20)

    def stop(_: Advance) -> None:
        raise KeyboardInterrupt

    folders = []
    for number in range(1, count + 1):
        folders.append(tmp_path / f"shard{number}")
        options = {"keep": ["customer"], "part_rows": 20, "shard": f"{number}/{count}"}
        if number == 2:
            with pytest.raises(KeyboardInterrupt):
                explain_file(explainer, rows, folders[-1], progress=stop, **options)
        explain_file(explainer, rows, folders[-1], **options)
    merged = merge(folders, tmp_path / "merged")
    assert sum(merged.counts().values()) == N_ROWS
    whole, joined = contents(tmp_path / "whole"), contents(tmp_path / "merged")
    assert whole.keys() == joined.keys()
    assert all(whole[name] == joined[name] for name in whole if name.startswith("part"))
    assert answers(tmp_path / "merged")["customer"].to_pylist() == [
        type(value)(value) for value in answers(tmp_path / "whole")["customer"].to_pylist()
    ]


def test_what_makes_no_whole_is_refused(explainer: Explainer, tmp_path: Path) -> None:
    table = loan_rows(60)
    parquet.write_table(table, tmp_path / "rows.parquet")
    parquet.write_table(pa.concat_tables([table, table]), tmp_path / "other.parquet")
    for number in (1, 2):
        for name in ("rows", "other"):
            folder = tmp_path / f"{name}{number}"
            explain_file(explainer, tmp_path / f"{name}.parquet", folder, part_rows=20, shard=f"{number}/2")
    one, two = tmp_path / "rows1", tmp_path / "rows2"
    for folders, text in (
        ([one], "some lack 2/2"),
        ([one, two, two], "some come twice|lack"),
        ([one, tmp_path / "other2"], r"different questions \(other: input\)"),
        ([one, tmp_path], "is no folder of answers"),
    ):
        if folders == [one, two, two]:
            shutil.copytree(two, tmp_path / "again", dirs_exist_ok=True)
            folders = [one, two, tmp_path / "again"]
        with pytest.raises(InvalidInput, match=text):
            merge(folders, tmp_path / "merged")
    part = next(two.glob("part-*"))
    part.write_bytes(bytes(part.stat().st_size))
    with pytest.raises(InvalidInput, match="is not the file that was written"):
        merge([one, two], tmp_path / "merged")
    with pytest.raises(InvalidInput, match="another question"):
        explain_file(explainer, tmp_path / "rows.parquet", one, part_rows=20, shard="2/2")


@pytest.mark.parametrize("text", ["0/4", "5/4", "3", "a/b", "1/0", "-1/2"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="shard must be K/N"):
        Shard.of(text)
