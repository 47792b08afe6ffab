"""The schema's kinds, guesses from tables, and files that people correct."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from support.questions import stump
from treefocus import Feature, InvalidInput, Schema
from treefocus.cli import app
from treefocus.loans import SCHEMA as LOANS

RNG = np.random.default_rng(0)
N = 60


def table() -> pd.DataFrame:
    housing = RNG.integers(0, 3, N)
    return pd.DataFrame(
        {
            "age": RNG.integers(18, 80, N),
            "income": RNG.integers(10, 90, N) * 1000.0,
            "rate": np.round(RNG.uniform(0, 9, N) * 20) / 20,
            "score": RNG.normal(size=N),
            "rating": RNG.integers(1, 6, N).astype(float),
            "member": RNG.random(N) < 0.5,
            "town": RNG.choice(["Rome", "Bern"], N),
            "size": pd.Categorical(RNG.choice(["S", "M", "L"], N), ["S", "M", "L"], ordered=True),
            "housing_own": (housing == 0).astype(int),
            "housing_rent": (housing == 1).astype(int),
            "housing_free": (housing == 2).astype(int),
            "flag_a": (RNG.random(N) < 0.5).astype(int),
            "flag_b": (RNG.random(N) < 0.5).astype(int),
        }
    )


def test_a_table_is_guessed() -> None:
    schema = Schema.infer(table())
    kinds = {feature.name: feature.kind for feature in schema.features}
    assert kinds == {
        "age": "integer", "income": "step", "rate": "step", "score": "continuous", "rating": "integer",
        "member": "boolean", "town": "categorical", "size": "ordinal", "housing": "one-hot", "flag_a": "integer",
        "flag_b": "integer",
    }  # fmt: skip
    assert schema["income"].step == 1000
    assert schema["rate"].step == 0.05
    assert (schema["rating"].low, schema["rating"].high) == (1, 5)
    assert schema["town"].values == ("Bern", "Rome")
    assert schema["size"].values == ("S", "M", "L")
    assert schema["housing"].columns == ("housing_own", "housing_rent", "housing_free")
    assert schema["housing"].values == ("own", "rent", "free")
    assert schema.columns == tuple(table().columns)
    assert len(schema) == 11


def test_every_library_is_guessed_alike() -> None:
    frame = table().drop(columns="size")
    expected = Schema.infer(frame)
    assert Schema.infer(pl.from_pandas(frame)) == expected
    assert Schema.infer(pa.Table.from_pandas(frame)) == expected
    matrix = Schema.infer(frame[["age", "score", "income"]].to_numpy())
    assert [feature.kind for feature in matrix.features] == ["integer", "continuous", "step"]
    assert matrix.names == ("feature 0", "feature 1", "feature 2")
    mixed = Schema.infer(frame[["town", "age"]].to_numpy(object))
    assert [feature.kind for feature in mixed.features] == ["categorical", "continuous"] or mixed.features[
        1
    ].kind == "integer"
    enum = pl.DataFrame({"size": ["S", "M"]}, schema_overrides={"size": pl.Enum(["S", "M", "L"])})
    assert Schema.infer(enum)["size"] == Feature("size", "categorical", values=("S", "M", "L"))


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"a": [np.nan, np.nan]}, "continuous"),
        ({"a": [1.0, 2.0, np.nan]}, "integer"),
        ({"a": [0.5, 1.0]}, "continuous"),
        ({"a": [0.5, 1.0, 2.5]}, "step"),
        ({"a": [0.1 + 0.2, 1.1, 2.2]}, "step"),
        ({"a": [1 / 3, 1.0, 2.0]}, "continuous"),
        ({"a": [5e8 + 0.5, 7e8, 9e8]}, "step"),
        ({"a": [True, False]}, "boolean"),
        ({"a": np.array([0.1, 0.25, 7.5], np.float32)}, "step"),
        ({"a": np.random.default_rng(0).random(9).astype(np.float32)}, "continuous"),
        ({"a": [1e18, 2e18, 3e18]}, "integer"),
        ({"a": []}, "continuous"),
        ({"a": [None, "x"]}, "categorical"),
    ],
)
def test_odd_columns_are_guessed(columns: dict[str, Any], kind: str) -> None:
    frame = pd.DataFrame(columns, dtype=None if len(columns["a"]) else "float64")
    assert Schema.infer(frame).features[0].kind == kind


def test_a_group_needs_a_common_name_and_exactly_one_in_every_row() -> None:
    def names(**columns: list[int]) -> tuple[str, ...]:
        return Schema.infer(pd.DataFrame(columns)).names

    assert names(sex_m=[1, 0], sex_f=[0, 1]) == ("sex",)
    assert names(sex_m=[1, 1], sex_f=[0, 1]) == ("sex_m", "sex_f")
    assert names(m=[1, 0], f=[0, 1]) == ("m", "f")
    assert names(a_b_c=[1, 0], a_b_d=[0, 1], a_e=[1, 0], a_f=[0, 1]) == ("a_b", "a")
    assert names(sex=[1, 0], sex_m=[1, 0], sex_f=[0, 1]) == ("sex", "sex group")
    with pytest.raises(InvalidInput, match=r"^Column 'a' is of dtype Duration"):
        Schema.infer(pd.DataFrame({"a": pd.to_timedelta([1], unit="D")}))
    with pytest.raises(InvalidInput, match=r"^Schema\.infer must be given a table, rows by columns, got 1 dimensions"):
        Schema.infer(np.zeros(3))


def test_it_prints_as_a_table() -> None:
    schema = Schema(
        [
            Feature("age", "integer", "years", low=18),
            Feature("rate", "step", step=0.5, low=0, high=9, description="a year"),
            Feature("size", "ordinal", values=["S", "M", "L"]),
            Feature("town", "categorical", values=[f"t{k}" for k in range(9)]),
        ]
    )
    assert str(schema) == (
        "column  kind         domain                             unit   description\n"
        "------  -----------  ---------------------------------  -----  -----------\n"
        "age     integer      from 18                            years\n"
        "rate    step         from 0 to 9 by 0.5                        a year\n"
        "size    ordinal      S < M < L\n"
        "town    categorical  t0, t1, t2, t3, t4, t5 and 3 more"
    )
    assert str(Schema.of_names("ab")).splitlines()[0] == "column  kind"


def test_it_is_corrected_column_by_column() -> None:
    schema = Schema.infer(table()).with_feature("rate", kind="continuous", unit="%").with_feature("age", low=18)
    assert schema["rate"] == Feature("rate", unit="%")
    assert schema["age"] == Feature("age", "integer", low=18)
    german = LOANS.with_feature("age", low=18, unit="years old")
    assert german["age"].unit == "years old"
    assert german.translations["de"]["age"].low == 18
    assert german.translations["de"]["age"].unit == LOANS.translations["de"]["age"].unit
    with pytest.raises(InvalidInput, match=r"Did you mean 'age'"):
        schema.with_feature("agee", low=1)
    with pytest.raises(
        InvalidInput, match=r"^Schema\.with_feature must be given fields of Feature \(name, .*, got lowest"
    ):
        schema.with_feature("age", lowest=1)


@pytest.mark.parametrize("schema", [LOANS, Schema.infer(table()), Schema.of_names(["no", "yes", "1", "ä: #"])])
def test_a_file_reads_back(tmp_path: Path, schema: Schema) -> None:
    schema.save(tmp_path / "schema.yaml")
    again = Schema.load(tmp_path / "schema.yaml")
    assert again == schema
    assert again.translations == schema.translations
    assert Schema.from_record(schema.to_record()) == schema


def test_a_file_is_for_people(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    Schema([Feature("size", "ordinal", values=["S", "M"]), Feature("no", "integer", low=0)], "it").save(path)
    assert path.read_text() == (
        "format: treefocus-schema-1\nfeatures:\n- name: size\n  kind: ordinal\n  values: [S, M]\n"
        "- name: 'no'\n  kind: integer\n  low: 0\nsubject: it\n"
    )
    path.write_text(
        "features:\n  - {name: owns, kind: categorical, values: [yes, no, true]}\noutcomes: {0: declined, yes: fine}\n"
    )
    schema = Schema.load(path)
    assert schema["owns"].values == ("yes", "no", True)
    assert schema.outcomes == {0: "declined", "yes": "fine"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"schema\.yaml: fields were expected \(format, .*got None\.$"),
        ("features: 7", r"line 1: a list was expected, got 7\.$"),
        ("subject: it", r"line 1: the field 'features' is missing\.$"),
        ("features:\n- name: a\n  kid: integer", r"line 3: there is no field 'kid'; did you mean 'kind'\?\.$"),
        ("features:\n- name: a\n- kind: integer", r"line 3: the field 'name' is missing\.$"),
        ("features:\n- name: a\n- name: b\n  kind: odd", r"line 3: Feature\('b'\)\.kind must be one of"),
        ("features:\n- name: a\n  low: [", r"line 3: "),
        ("features:\n- name: a\n  low: 1\n  low: 2", r"line 4: the field 'low' stands here a second time\.$"),
        ("features:\n- name: a\n- name: a", r"line 1: Schema must be of columns with different names"),
        ("features:\n- 5", r"line 2: fields were expected \(name, .*got 5\.$"),
        ("format: x\nfeatures: []", r"line 1: the format must be 'treefocus-schema-1', got 'x'\.$"),
        ("features: []\ntranslations:\n  de:\n    featurs: []", r"line 4: there is no field 'featurs'"),
        ("features: !!python/object/apply:os.system [ls]", r"line 1: could not determine a constructor"),
    ],
)
def test_an_error_points_at_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=told):
        Schema.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^There is no file .*none\.yaml\.$"):
        Schema.load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "step"}, r"\.step must be given for kind 'step' and for no other, got None"),
        ({"step": 2}, r"\.step must be given for kind 'step'"),
        ({"kind": "step", "step": -1}, r"\.step must be above 0, got -1"),
        ({"low": "a"}, r"\.low must be a finite number, got 'a'"),
        ({"low": 3, "high": 2}, r"\.low must be at most Feature\('a'\)\.high \(2\), got 3"),
        ({"high": float("inf")}, r"\.high must be a finite number, got inf"),
        ({"low": True}, r"\.low must be a finite number, got True"),
        ({"kind": "ordinal"}, r"\.values must be two or more, in their order"),
        ({"kind": "ordinal", "values": ["x", "x"]}, r"\.values must be all different"),
        ({"kind": "categorical", "low": 1}, r"\.low and \.high must be left out for kind 'categorical'"),
        ({"values": "abc"}, r"\.values must be a list, got 'abc'"),
        ({"values": ["x"]}, r"\.values must be finite numbers, got 'x'"),
        ({"kind": "one-hot"}, r"\.columns must be given for kind 'one-hot', perhaps 'ordinal', and no other"),
        ({"columns": ["x", "y"]}, r"\.columns must be given for kind 'one-hot'"),
        ({"kind": "one-hot", "columns": ["x"]}, r"\.columns must be two or more"),
        ({"kind": "one-hot", "columns": ["x", "y"], "values": ["p"]}, r"\.values must be one a column \(2\), got 1"),
        ({"up": "more"}, r"\.up and \.down must be given together"),
        ({"unit": 7}, r"\.unit must be a text, got 7"),
    ],
)
def test_a_feature_that_makes_no_sense_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Feature("a", **given)


def test_kinds_that_hold_numbers_and_kinds_that_do_not() -> None:
    assert not Feature("a", "ordinal", values=(1, 2, 5)).is_categorical
    assert Feature("a", "ordinal", values=("S", "M")).is_categorical
    assert Feature("a", "one-hot", columns=("a_x", "a_y")).values == ("x", "y")
    assert Feature("a", "one-hot", columns=("x", "y")).values == ("x", "y")
    assert Feature("a", values=np.array([1.0, 2.0])).values == (1.0, 2.0)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_the_command_writes_a_schema_that_explain_reads(tmp_path: Path, suffix: str) -> None:
    rows, path = tmp_path / f"rows{suffix}", tmp_path / "schema.yaml"
    frame = table().drop(columns=["size", "town"])
    if suffix == ".parquet":
        frame.to_parquet(rows)
    else:
        frame.to_csv(rows, index=False, sep="\t" if suffix == ".tsv" else ",")
    result = CliRunner().invoke(app, ["schema", str(rows), "--ignore", "flag_a", "-o", str(path)])
    assert result.exit_code == 0, result.output
    assert re.search(r"housing +one-hot +own, rent, free", result.output)
    assert f"Written to {path}." in result.output
    schema = Schema.load(path)
    assert schema["income"] == Feature("income", "step", step=1000)
    assert "flag_a" not in schema


def test_the_command_complains_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,town\n1,Rome\n2,\n")
    assert "town    categorical  Rome" in CliRunner().invoke(app, ["schema", str(tmp_path / "rows.csv")]).output
    for arguments, told in (
        (["schema", "none.csv"], "There is no file none.csv."),
        (["schema", str(tmp_path / "rows.csv"), "-o", "schema.json"], "ends in .yaml, .yml"),
        (["schema", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "no" / "schema.yaml")], "There is no folder"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert told in result.output


def test_explain_takes_a_schema(tmp_path: Path) -> None:
    stump(20.5, feature_names=["age", "income"]).save(tmp_path / "model.json")
    (tmp_path / "rows.csv").write_text("age,income\n3.5,1\n30.5,2\n")
    (tmp_path / "schema.yaml").write_text("features:\n- {name: age, unit: years, kind: integer}\n- {name: income}\n")
    files = [str(tmp_path / name) for name in ("model.json", "rows.csv")]
    result = CliRunner().invoke(app, ["explain", *files, "--schema", str(tmp_path / "schema.yaml")])
    assert result.exit_code == 0, result.output
    assert "age were 21 years instead of 3.5 years" in result.output
