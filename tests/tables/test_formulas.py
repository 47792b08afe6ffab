"""No cell of a written file starts a formula in a spreadsheet, and reading it gives what was written."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from typer.testing import CliRunner

from treefocus import Explainer
from treefocus.cli import app
from treefocus.tables.files import read_columns, write_columns

HOSTILE = ['=HYPERLINK("http://a.b","x")', "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=x", "''@y", "plain", "O'Brien"]
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.sampled_from("=+-@'\",;x1"), min_size=1, max_size=6),
)


def cells_of(path: Path, delimiter: str) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


@given(st.lists(TEXTS, min_size=1, max_size=8), st.sampled_from([".csv", ".tsv"]))
def test_texts_come_back_and_start_no_formula(texts: list[str], suffix: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"rows{suffix}"
        write_columns(path, {"=name": texts, "number": [-1.5] * len(texts), "word": ["w"] * len(texts)})
        written = cells_of(path, "\t" if suffix == ".tsv" else ",")
        for row in written:
            assert not row[0].startswith(("=", "+", "-", "@"))
        assert all(row[1] == "-1.5" for row in written[1:])  # a number is no formula
        read = read_columns(path)
        assert list(read) == ["=name", "number", "word"]
        if read["=name"].dtype == object:
            assert read["=name"].tolist() == texts
        else:
            assert read["=name"].tolist() == pytest.approx([float(text) for text in texts], nan_ok=True)


def test_the_command_line_writes_none(tmp_path: Path) -> None:
    label = '=HYPERLINK("http://a.b","x")'
    data = pd.DataFrame({"kind": pd.Categorical([label, "b", "c"] * 40), "n": range(120)})
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype").fit(
        data, data["kind"] == label
    )
    explainer = Explainer(model, data)
    explainer.forest.save(tmp_path / "model.json")
    write_columns(tmp_path / "rows.csv", {"kind": ["b", "c"], "n": [1, 2]})
    options = ["explain", "model.json", "rows.csv", "-o", "answers.csv"]
    paths = [str(tmp_path / option) if option.endswith((".json", ".csv")) else option for option in options]
    result = CliRunner().invoke(app, paths)
    assert result.exit_code == 0, result.output
    cells = [cell for row in cells_of(tmp_path / "answers.csv", ",") for cell in row]
    assert f"'{label}" in cells
    assert label not in cells
    assert label in read_columns(tmp_path / "answers.csv")["kind"].tolist()
