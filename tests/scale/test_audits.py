"""Audits of streams and of answers in parts say what the audit of all rows says, and so does the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from support.streams import loan_explainer, loan_rows
from treefocus import Explainer, InvalidInput, loans
from treefocus.cli import app
from treefocus.explanation.audit.audit import Audit
from treefocus.scale.audits import audit_answers, audit_batches
from treefocus.scale.files import explain_file

N_ROWS = 120


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    labels = np.random.default_rng(0).choice(["f", "m"], N_ROWS)
    return loan_rows(N_ROWS).append_column("sex", pa.array(labels))


@pytest.fixture(scope="module")
def whole(explainer: Explainer, rows: pa.Table) -> Audit:
    return audit_batches(explainer, rows.combine_chunks().to_batches(), "sex", why=3)


def told(audit: Audit, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {key: value for key, value in json.loads(audit.to_json()).items() if key not in without}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == pytest.approx(other, rel=1e-9, abs=1e-12)) if isinstance(one, float) else one == other


def test_batches_of_any_size_make_the_same_audit(explainer: Explainer, rows: pa.Table, whole: Audit) -> None:
    in_parts = audit_batches(explainer, rows.combine_chunks().to_batches(17), "sex", why=3)
    assert same(told(in_parts), told(whole))
    assert in_parts.people is None
    assert whole.whole.rows == N_ROWS


def test_the_sums_do_not_grow_with_the_rows(explainer: Explainer, rows: pa.Table, whole: Audit) -> None:
    few = audit_batches(explainer, rows.slice(0, 30).combine_chunks().to_batches(), "sex", why=3)
    assert few.sums.keys() == whole.sums.keys()
    sizes = [sum(array.nbytes for array in vars(own).values()) for audit in (few, whole) for own in audit.sums.values()]
    assert len(set(sizes)) == 1


def test_answers_in_parts_make_the_same_audit(
    explainer: Explainer, rows: pa.Table, whole: Audit, tmp_path: Path
) -> None:
    parquet.write_table(rows, tmp_path / "rows.parquet")
    explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", keep=["sex"], part_rows=50)
    audit = audit_answers(tmp_path / "out", "sex")
    left_out = ("preclusion", "distance", "features", "group_features")
    assert same(told(audit, without=left_out), told(whole, without=left_out))
    units = [one | {"unit": ""} for one in told(whole)["features"]]
    assert same(told(audit)["features"], units)
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "out"), "--groups", "sex"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == audit.to_text()


def test_what_cannot_be_audited_is_told(explainer: Explainer, rows: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="region"):
        audit_batches(explainer, rows.to_batches(), "region")
    with pytest.raises(InvalidInput, match="at least one"):
        audit_batches(explainer, [])
    with pytest.raises(InvalidInput, match="manifest"):
        audit_answers(tmp_path)


def test_the_command_line_audits_a_file(rows: pa.Table, tmp_path: Path) -> None:
    loans.forest().save(tmp_path / "model.json")
    csv.write_csv(rows.slice(0, 60), tmp_path / "rows.csv")
    arguments = ["audit", str(tmp_path / "model.json"), str(tmp_path / "rows.csv"), "--target", "approved"]
    more = ["--groups", "sex", "--groups", "dependants", "--min-group", "5", "--fix", "age", "--reference", "sex:f"]
    more += ["--ignore", "customer", "--ignore", "sex"]  # the forest does not know its names
    for name in ("audit.html", "audit.json", "audit.txt"):
        result = CliRunner().invoke(app, [*arguments, *more, "-o", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert "Audit of 60 rows" in result.output
    record = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert record["columns"] == ["sex", "dependants"]
    assert record["min_group"] == 5
    assert {tuple(one["reference"]) for one in record["disparities"] if one["columns"] == ["sex"]} == {("f",)}
    assert "<svg" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "sex = f" in (tmp_path / "audit.txt").read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_command_line_audits_answers_with_room(rows: pa.Table, tmp_path: Path) -> None:
    loans.forest().save(tmp_path / "model.json")
    csv.write_csv(rows.slice(0, 20), tmp_path / "rows.csv")
    arguments = ["audit", str(tmp_path / "model.json"), str(tmp_path / "rows.csv"), "--target", "approved"]
    arguments += ["--ignore", "customer", "--ignore", "sex"]
    away = []
    for more in ([], ["--tolerance", "above 20%, below 20%"]):
        result = CliRunner().invoke(app, [*arguments, *more])
        assert result.exit_code == 0, result.output
        away.append(float(result.output.split("The way out is ")[1].split()[0]))
    assert away[0] < away[1]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--groups", "region"], "--groups"),
        (["--groups", "sex", "--reference", "f"], "COLUMN:LABEL"),
        (["-o", "audit.pdf"], ".html"),
        (["-o", "nowhere/audit.html"], "no folder"),
    ],
)
def test_misuse_of_the_command_is_told(more: list[str], word: str, rows: pa.Table, tmp_path: Path) -> None:
    loans.forest().save(tmp_path / "model.json")
    csv.write_csv(rows.slice(0, 5), tmp_path / "rows.csv")
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "model.json"), str(tmp_path / "rows.csv"), *more])
    assert result.exit_code == 2
    assert word in result.output


def test_a_model_without_rows_is_told(tmp_path: Path) -> None:
    loans.forest().save(tmp_path / "model.json")
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "model.json")])
    assert result.exit_code == 2
    assert "DATA is missing" in result.output
