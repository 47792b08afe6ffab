"""What people pass as rows: one row as a Series or a dict, lazy and Arrow frames, columns in any order, booleans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier

from treefocus import Explainer, Feature, InvalidInput, Probability, Schema
from treefocus.tables.files import read_columns, read_table

RNG = np.random.default_rng(3)
N = 200
FRAME = pd.DataFrame(
    {
        "late": RNG.poisson(1.0, N).astype(float),
        "guarantor": RNG.random(N) < 0.4,
        "income": np.round(RNG.lognormal(7, 0.5, N), 2),
    }
)
LABELS = np.where(FRAME.income / 1000 + FRAME.guarantor - 0.5 * FRAME.late > 1, "approved", "declined")
MODEL = RandomForestClassifier(12, random_state=0).fit(FRAME, LABELS)
EXPLAINER = Explainer(MODEL, FRAME)
DECLINED = FRAME[LABELS == "declined"][:4]
EXPECTED = EXPLAINER.explain(DECLINED)

FORMS: dict[str, Any] = {
    "polars": pl.from_pandas(DECLINED),
    "lazy": pl.from_pandas(DECLINED).lazy(),
    "arrow": pa.Table.from_pandas(DECLINED, preserve_index=False),
    "arrow batch": pa.Table.from_pandas(DECLINED, preserve_index=False).to_batches()[0],
    "nullable": DECLINED.convert_dtypes(),
    "dicts": DECLINED.to_dict("records"),
    "dict of lists": DECLINED.to_dict("list"),
    "another order": DECLINED[["income", "late", "guarantor"]],
    "polars in another order": pl.from_pandas(DECLINED[["income", "late", "guarantor"]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gets_the_same_answers(form: str) -> None:
    found = EXPLAINER.explain(FORMS[form])
    np.testing.assert_array_equal(found.points, EXPECTED.points)
    assert [one.name for one in found.status] == [one.name for one in EXPECTED.status]
    rows = FORMS[form]
    if "order" in form:
        assert list(found.counterfactuals.columns) == ["income", "late", "guarantor"]
        assert type(found.counterfactuals) is type(rows)


@pytest.mark.parametrize("row", [DECLINED.iloc[0], DECLINED.iloc[0].to_dict(), pl.Series(list(DECLINED.iloc[0]))])
def test_one_row(row: Any) -> None:
    if isinstance(row, pl.Series):
        row = pl.Series([float(cell) for cell in DECLINED.iloc[0]])
    found = EXPLAINER.explain(row)
    assert len(found) == 1
    np.testing.assert_array_equal(found.points, EXPECTED.points[:1])
    if isinstance(row, pd.Series):
        assert found[0].label == DECLINED.index[0]


def test_a_mixture_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^X must be a cell a column, or a list a column, all of one length"):
        EXPLAINER.explain({"late": [1.0, 2.0], "guarantor": True, "income": 3.0})
    with pytest.raises(InvalidInput, match=r"^X\[1\] must be of the columns of X\[0\], a, got \['b'\]\.$"):
        EXPLAINER.explain([{"a": 1.0}, {"b": 1.0}])


def test_a_pair_is_a_probability() -> None:
    asked = EXPLAINER.explain(DECLINED, target=Probability("approved", 0.8))
    pair = EXPLAINER.explain(DECLINED, target=("approved", 0.8))
    np.testing.assert_array_equal(asked.points, pair.points)
    assert pair.favoured == "approved"
    every = EXPLAINER.explain(DECLINED, target=[("approved", 0.8)] * 4)
    np.testing.assert_array_equal(asked.points, every.points)
    with pytest.raises(InvalidInput):
        EXPLAINER.explain(DECLINED, target=("approved", 1.5))


@pytest.mark.parametrize(("short", "name"), [("l1", "manhattan"), ("l2", "euclidean"), ("linf", "chebyshev")])
def test_distances_by_their_norms(short: str, name: str) -> None:
    explainer = Explainer(MODEL, FRAME, distance=short)
    assert explainer.distance_name == name
    assert type(explainer.distance) is type(Explainer(MODEL, FRAME, distance=name).distance)


def test_booleans_in_booleans_out() -> None:
    assert EXPLAINER.schema["guarantor"].kind == "boolean"
    found = Explainer(MODEL, FRAME, constraints=["late fixed", "income fixed"]).explain(DECLINED)
    moved = [one for one in found if one.changes]
    assert moved
    change = moved[0].changes[0]
    assert (change.before, change.after, change.shown) == (False, True, True)
    assert "if guarantor were True instead of False" in moved[0].to_text()
    assert "wenn guarantor Ja statt Nein wäre" in moved[0].to_text("de")
    assert "guarantor: Ja statt Nein" in moved[0].to_letter("de")
    assert "guarantor était oui au lieu de non" in moved[0].to_text("fr")
    assert found.counterfactuals["guarantor"].dtype in (bool, "boolean")
    words = [*EXPLAINER.schema.features]
    words[1] = Feature("guarantor", "boolean", up="you had a guarantor", down="you had no guarantor")
    told = Explainer(MODEL, FRAME, schema=Schema(words), constraints=["late fixed", "income fixed"]).explain(DECLINED)
    assert any("if you had a guarantor." in one.to_text() for one in told)


def test_a_file_with_booleans_is_read(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    table = read_table(tmp_path / "rows.csv")
    np.testing.assert_array_equal(table.values, FRAME.to_numpy(np.float64))
    assert table.is_boolean.tolist() == [False, True, False]
    assert read_columns(tmp_path / "rows.csv")["guarantor"].dtype == bool
    found = Explainer(MODEL, table).explain(table)
    np.testing.assert_array_equal(found.points, EXPLAINER.explain(FRAME).points)
    assert {type(cell) for cell in found.records()["guarantor"]} == {bool}
    (tmp_path / "mixed.csv").write_text("a,b\n1,True\n2,0.5\n")
    with pytest.raises(InvalidInput, match=r"line 2, column 'b': 'True' is not a number\.$"):
        read_table(tmp_path / "mixed.csv")


def test_whole_numbers_stay_whole_with_an_empty_cell() -> None:
    data = FRAME.copy()
    data.loc[5, "late"] = np.nan
    explainer = Explainer(MODEL, data)
    assert [feature.kind for feature in explainer.schema.features] == ["integer", "boolean", "step"]
    found = explainer.explain(data[:30])
    late = found.points[:, 0]
    assert (np.isnan(late) | (late == np.rint(late))).all()
    cents = found.points[:, 2]
    assert (np.round(cents, 2) == cents).all()
