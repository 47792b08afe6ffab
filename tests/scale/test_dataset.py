"""What can be named as input: files, folders, globs, partitions, packed text, a pipe, a cloud, other libraries."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet

from support.cloud import stand_in
from support.streams import NAMES, answers, contents, loan_explainer, loan_rows
from treefocus import Explainer, InvalidInput
from treefocus.scale.dataset import open_dataset
from treefocus.scale.files import explain_file
from treefocus.scale.inputs import files_of
from treefocus.scale.sources import Place
from treefocus.scale.work import Advance

N_ROWS = 120


class Interrupted(Exception):  # noqa: N818
    """Stands for Ctrl-C."""


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return loan_rows(N_ROWS)


@pytest.fixture(scope="module")
def expected(explainer: Explainer, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("expected")
    parquet.write_table(rows, folder / "rows.parquet")
    explain_file(explainer, folder / "rows.parquet", folder / "out", keep=["customer"])
    return answers(folder / "out")


def said(table: pa.Table) -> list[str]:
    """A text a row; a customer's number is text where it came as text."""
    return [repr(one | {"customer": str(one["customer"])}) for one in table.to_pylist()]


def stopped_and_resumed(explainer: Explainer, source: Any, folder: Path, **options: Any) -> pa.Table:
    """The answers of a run that was stopped after every batch. source: makes the input anew for every start."""

    def stop(_: Advance) -> None:
        raise Interrupted

    for _ in range(200):
        try:
            explain_file(explainer, source(), folder, keep=["customer"], progress=stop, part_rows=50, **options)
        except Interrupted:
            continue
        break
    return answers(folder)


@pytest.fixture
def named(rows: pa.Table, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """The same rows, in another form each."""
    kind = request.param
    pieces = [rows.slice(start, 50) for start in range(0, N_ROWS, 50)]
    if kind in ("folder", "glob", "list", "two stars"):
        for k, piece in enumerate(pieces):
            (tmp_path / "in" / f"d{k}").mkdir(parents=True)
            parquet.write_table(piece, tmp_path / "in" / f"d{k}" / "rows.parquet", row_group_size=17)
        (tmp_path / "in" / "_SUCCESS").touch()
        (tmp_path / "in" / ".rows.parquet.crc").touch()
        files = sorted((tmp_path / "in").glob("d*/*.parquet"))
        star = {"glob": "d[0-9]/*.parquet", "two stars": "**/r?ws.parquet"}
        return files if kind == "list" else str(tmp_path / "in" / star[kind]) if kind in star else tmp_path / "in"
    if kind == "texts":
        (tmp_path / "in").mkdir()
        for k, piece in enumerate(pieces):  # columns in another order in every file
            order = piece.column_names[k:] + piece.column_names[:k]
            csv.write_csv(piece.select(order), tmp_path / "in" / f"{k}.csv")
        return tmp_path / "in"
    csv.write_csv(rows, tmp_path / "rows.csv")
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress((tmp_path / "rows.csv").read_bytes()))
    return tmp_path / "rows.csv.gz"


@pytest.mark.parametrize("named", ["folder", "glob", "list", "two stars", "texts", "packed"], indirect=True)
def test_whatever_names_the_rows_the_answers_are_the_same(
    explainer: Explainer, expected: pa.Table, named: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = explain_file(explainer, named, tmp_path / "out", keep=["customer"], part_rows=50)
    assert said(answers(tmp_path / "out")) == said(expected)
    assert sum(manifest.counts().values()) == N_ROWS
    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 19)
    assert said(stopped_and_resumed(explainer, lambda: named, tmp_path / "again")) == said(expected)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_folders_named_by_a_value_are_columns(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path
) -> None:
    """Of a feature and of columns to keep; a null has Hive's own name."""
    income = pa.compute.round(rows["income"], 0)
    whole = rows.set_column(rows.column_names.index("income"), "income", income)
    table = whole.append_column("region", [[None if i % 3 == 0 else f"a b{i % 3}" for i in range(N_ROWS)]])
    parts = dataset.partitioning(pa.schema([("region", pa.string()), ("income", pa.int64())]), flavor="hive")
    few = table.slice(0, 12).set_column(
        table.column_names.index("income"), "income", income.slice(0, 12).cast(pa.int64())
    )
    dataset.write_dataset(few, tmp_path / "in", format="parquet", partitioning=parts)
    explain_file(explainer, tmp_path / "in", tmp_path / "out", keep=["customer", "region"])
    found = sorted(answers(tmp_path / "out").to_pylist(), key=lambda one: one["customer"])
    assert [one["region"] for one in found] == table["region"].to_pylist()[:12]
    parquet.write_table(few, tmp_path / "few.parquet")
    explain_file(explainer, tmp_path / "few.parquet", tmp_path / "plain", keep=["customer", "region"])
    assert list(map(repr, found)) == list(map(repr, answers(tmp_path / "plain").to_pylist()))


def test_types_that_differ_from_file_to_file(explainer: Explainer, rows: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    income = rows.column_names.index("income")
    for k, kind in enumerate((pa.int32(), pa.float64(), pa.int64())):
        piece = rows.slice(20 * k, 20)
        column = pa.compute.round(pa.compute.fill_null(piece["income"], 1.0), 0).cast(kind)
        parquet.write_table(piece.set_column(income, "income", column), tmp_path / "in" / f"{k}.parquet")
    explain_file(explainer, tmp_path / "in", tmp_path / "out", keep=["customer"])
    assert answers(tmp_path / "out")["customer"].to_pylist() == rows["customer"].to_pylist()[:60]


def test_a_pipe_is_read_once_and_known_again(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = io.BytesIO()
    csv.write_csv(rows, sink)
    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 19)

    def piped(data: bytes) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return "-"

    found = stopped_and_resumed(explainer, lambda: piped(sink.getvalue()), tmp_path / "out")
    assert said(found) == said(expected)

    def stop(_: Advance) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        explain_file(explainer, piped(sink.getvalue()), tmp_path / "other", progress=stop)
    other = sink.getvalue().replace(b"\n1000,", b"\n1001,", 1)
    with pytest.raises(InvalidInput, match="the standard input are not those that were begun with"):
        explain_file(explainer, piped(other), tmp_path / "other")


def test_a_finished_folder_is_not_taken_for_the_answers_to_rows_that_come_once(
    explainer: Explainer, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(table: pa.Table) -> str:
        sink = io.BytesIO()
        csv.write_csv(table, sink)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sink.getvalue())))
        return "-"

    others = rows.slice(1), rows.slice(0, len(rows) - 1), pa.concat_tables([rows, rows.slice(0, 1)]), rows.slice(0, 0)
    for name, source in (("piped", piped), ("table", lambda table: table)):
        done = explain_file(explainer, source(rows), tmp_path / name)
        assert explain_file(explainer, source(rows), tmp_path / name) == done
        for other in others:
            with pytest.raises(InvalidInput, match=r"not those that were begun with|not the 120 of which"):
                explain_file(explainer, source(other), tmp_path / name)
    for name, source in (("piped0", piped), ("table0", lambda table: table)):
        explain_file(explainer, source(rows.slice(0, 0)), tmp_path / name)
        with pytest.raises(InvalidInput, match="not the 0 of which the folder holds the answers"):
            explain_file(explainer, source(rows), tmp_path / name)


def relations(rows: pa.Table, folder: Path) -> dict[str, Any]:
    """What makes the rows anew, by the library that reads them."""
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=31)
    path = str(folder / "rows.parquet")
    made = {
        "LazyFrame": lambda: pl.scan_parquet(path),
        "DataFrame of polars": lambda: pl.read_parquet(path),
        "dataset": lambda: dataset.dataset(path),
        "table": lambda: rows,
        "reader": lambda: rows.to_reader(max_chunksize=13),
        "DataFrame of pandas": lambda: pd.read_parquet(path),
    }
    try:
        import duckdb
    except ImportError:
        return made
    return made | {"DuckDB": lambda: duckdb.connect().sql(f"select * from '{path}' order by customer")}


def test_other_libraries_are_sources(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 40)
    for name, relation in relations(rows, tmp_path).items():
        assert said(stopped_and_resumed(explainer, relation, tmp_path / name)) == said(expected), name
    with pytest.raises(InvalidInput, match="lacks the columns"):
        explain_file(explainer, rows.drop_columns(["income"]), tmp_path / "lacks")
    with pytest.raises(InvalidInput, match=r"The input must be a path, a DuckDB relation, .*, got dict"):
        explain_file(explainer, {}, tmp_path / "none")


def test_rows_of_a_relation_that_are_others_are_noticed(
    explainer: Explainer, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 40)

    def stop(_: Advance) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        explain_file(explainer, rows, tmp_path, progress=stop)
    with pytest.raises(InvalidInput, match="not those that were begun with"):
        explain_file(explainer, rows.slice(1), tmp_path)


def test_tables_with_versions_are_sources_and_named_by_them(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path
) -> None:
    """What deltalake and pyiceberg offer, as far as it is asked for."""

    class Projection:
        fields = tuple(SimpleNamespace(name=name) for name in rows.column_names)

    class DataScan:
        def __init__(self, names: tuple[str, ...] = ()) -> None:
            self.names = names

        def projection(self) -> Projection:
            return Projection()

        def select(self, *names: str) -> DataScan:
            return DataScan(names)

        def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
            return rows.select(self.names).to_reader(max_chunksize=31)

    class Table:
        metadata_location = "s3://bank/rows/metadata.json"

        def name(self) -> tuple[str, ...]:
            return "bank", "rows"

        def current_snapshot(self) -> SimpleNamespace:
            return SimpleNamespace(snapshot_id=17)

        def scan(self) -> DataScan:
            return DataScan()

    class DeltaTable:
        table_uri = "s3://bank/delta"

        def version(self) -> int:
            return 3

        def to_pyarrow_dataset(self) -> dataset.Dataset:
            return dataset.dataset(rows)

    names = {
        Table: "the Table bank.rows at snapshot 17",
        DeltaTable: "the DeltaTable s3://bank/delta at version 3",
        DataScan: "the DataScan",
    }
    for kind, name in names.items():
        manifest = explain_file(explainer, kind(), tmp_path / kind.__name__, keep=["customer"])
        assert said(answers(tmp_path / kind.__name__)) == said(expected)
        assert manifest.run["input"] == name
        with pytest.raises(InvalidInput, match="lacks the columns account"):
            explain_file(explainer, kind(), tmp_path / "none", keep=["account"])


def test_a_cloud_is_read_like_a_folder(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path
) -> None:
    parquet.write_table(rows.slice(0, 70), tmp_path / "0.parquet")
    parquet.write_table(rows.slice(70), tmp_path / "1.parquet")
    csv.write_csv(rows, tmp_path / "rows.csv")
    objects = {f"bank/in/{name}.parquet": (tmp_path / f"{name}.parquet").read_bytes() for name in "01"}
    objects["bank/in/_SUCCESS"] = b""
    objects["bank/rows.csv"] = (tmp_path / "rows.csv").read_bytes()
    with stand_in(objects) as address:
        keys = f"region=eu&endpoint_override={address}&scheme=http"
        for k, name in enumerate(("s3://bank/in", "s3://bank/rows.csv", "s3://bank/in/*.parquet")):
            name = name.replace("bank", "somebody:secret@bank")
            explain_file(explainer, f"{name}?{keys}", tmp_path / f"out{k}", keep=["customer"])
            assert said(answers(tmp_path / f"out{k}")) == said(expected)
            assert "secret" not in (tmp_path / f"out{k}" / "_manifest.json").read_text()
        with pytest.raises(InvalidInput, match="There is no file s3://bank/nothing"):
            explain_file(explainer, f"s3://somebody:secret@bank/nothing?{keys}", tmp_path / "none")


def test_what_fsspec_knows_is_read(explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="needs the extra cloud")
    with fsspec.open("memory://bank/rows.csv", "wb") as file:
        csv.write_csv(rows, file)
    explain_file(explainer, "memory://bank/rows.csv", tmp_path / "out", keep=["customer"])
    assert said(answers(tmp_path / "out")) == said(expected)
    with pytest.raises(InvalidInput, match=r"nowhere:// needs pip install"):
        files_of("nowhere://bank/rows.csv")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), "holds no file of rows"),
        (("a.parquet", "b.csv"), r"different kinds, .csv and .parquet"),
        (("a.parquet", "notes.txt"), "files whose names end in .*, got 'notes.txt'"),
        (("_delta_log/0.json", "a.parquet"), r"is a Delta table: in Python, explain_file takes deltalake.DeltaTable"),
    ],
)
def test_a_folder_that_is_no_table_is_refused(tmp_path: Path, names: tuple[str, ...], text: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match=text):
        files_of(tmp_path)
    with pytest.raises(InvalidInput, match="No file is called"):
        files_of(f"{tmp_path}/*.tsv")


def test_a_packed_file_that_is_cut_off_is_refused(explainer: Explainer, rows: pa.Table, tmp_path: Path) -> None:
    csv.write_csv(rows, tmp_path / "rows.csv")
    data = gzip.compress((tmp_path / "rows.csv").read_bytes())
    (tmp_path / "rows.csv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match=r"rows.csv.gz cannot be read"):
        explain_file(explainer, tmp_path / "rows.csv.gz", tmp_path / "out")


def test_one_of_many_files_that_loses_a_line_is_noticed(rows: pa.Table, tmp_path: Path) -> None:
    for k in range(2):
        csv.write_csv(rows.slice(60 * k, 60), tmp_path / f"{k}.csv")
    source = open_dataset(tmp_path, NAMES, ["customer"])
    read = source.read(Place(), lambda row: 1000)
    next(read)
    (tmp_path / "more").write_text((tmp_path / "0.csv").read_text() + "one line more")
    (tmp_path / "more").replace(tmp_path / "0.csv")
    with pytest.raises(InvalidInput, match=r"0.csv has 62 lines, of which 1 are no rows, but 60 rows were answered"):
        list(read)
