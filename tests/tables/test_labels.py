"""Categories: labels become the model's numbers, answers become labels again, in the column's own dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from support.frames import same_frame
from support.questions import stump
from treefocus import Explainer, Forest, InvalidInput, Status
from treefocus.model.categories import Categories
from treefocus.model.grid import readable
from treefocus.schema.schema import ANY_FLOAT, INTEGER
from treefocus.tables.files import read_table
from treefocus.tables.labels import Coding, decode, encode, encode_text
from treefocus.tables.table import as_table

HOUSING = ("own", "rent", "free")
CODING = Coding((HOUSING, None), ("housing", "age"))
CELLS = ["rent", "castle", None, "own"]
CODES = [1.0, 3.0, np.nan, 0.0]
AGES = [30.0, 40.0, 50.0, 60.0]


def test_labels_become_numbers_unseen_ones_the_next_and_nothing_is_missing() -> None:
    cells = ["own", "castle", None, np.nan, pd.NA, pd.NaT, ["a", "list"], "free"]
    np.testing.assert_array_equal(encode(cells, HOUSING), [0, 3, np.nan, np.nan, np.nan, np.nan, 3, 2])
    np.testing.assert_array_equal(encode([1, 1.0, True, 2, "1"], (1, 2)), [0, 0, 0, 1, 2])
    np.testing.assert_array_equal(encode([np.str_("own"), np.bool_(True)], HOUSING), [0, 3])


def test_text_is_matched_as_labels_print() -> None:
    np.testing.assert_array_equal(encode_text(["own", " rent ", "", "  ", "1"], HOUSING), [0, 1, np.nan, np.nan, 3])
    np.testing.assert_array_equal(encode_text(["1", "2.0", "2.5", "x"], (1, 2)), [0, 1, 2, 2])
    np.testing.assert_array_equal(encode_text(["True", "False"], (False, True)), [1, 0])


def test_a_cell_that_stays_comes_back_as_it_was() -> None:
    given = decode(np.array([0.0, 3.0, np.nan, np.nan]), HOUSING, np.array(CODES), CELLS)
    assert given == ["own", "castle", None, None]


PANDAS_COLUMNS: dict[str, Any] = {
    "object": lambda cells: pd.Series(cells, dtype=object),
    "string": lambda cells: pd.Series(cells, dtype="string"),
    "str": lambda cells: pd.Series(cells, dtype="str"),
    "category": lambda cells: pd.Series(cells, dtype="category"),
    "ordered": lambda cells: pd.Series(
        pd.Categorical(cells, categories=["castle", "own", "rent", "free"], ordered=True)
    ),
    "arrow": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("make", PANDAS_COLUMNS.values(), ids=PANDAS_COLUMNS.keys())
def test_every_pandas_dtype_of_text_is_read_and_given_back(make: Any) -> None:
    native = pd.DataFrame({"housing": make(CELLS), "age": AGES})
    native.index = pd.Index([4, 2, 9, 7])
    table = as_table(native, "X", CODING)
    np.testing.assert_array_equal(table.values, np.column_stack([CODES, AGES]))
    assert table.grain.tolist() == [INTEGER, ANY_FLOAT]
    assert same_frame(table.like(table.values), native)
    moved = table.values.copy()
    moved[0, 0], moved[2] = 0.0, np.nan
    given = table.like(moved)
    assert given.dtypes["housing"] == native.dtypes["housing"]
    assert given["housing"].tolist()[:2] == ["own", "castle"]
    assert given["housing"].isna().tolist() == [False, False, True, False]
    assert given["age"].isna().tolist() == [False, False, True, False]


def test_a_category_that_the_column_lacks_is_added_to_its_dtype() -> None:
    native = pd.DataFrame({"housing": pd.Series(["own", "own"], dtype="category"), "age": [1.0, 2.0]})
    given = as_table(native, "X", CODING).like(np.array([[2.0, 1.0], [0.0, 2.0]]))
    assert given["housing"].tolist() == ["free", "own"]
    assert given["housing"].cat.categories.tolist() == ["own", "free"]
    frame = pl.DataFrame({"housing": ["own"], "age": [1.0]}, schema_overrides={"housing": pl.Enum(["own"])})
    given = as_table(frame, "X", CODING).like(np.array([[2.0, 1.0]]))
    assert given["housing"].to_list() == ["free"]
    assert given.schema["housing"] == pl.Enum(["own", "free"])


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["castle", "own", "rent", "free"])], ids=str)
def test_every_polars_dtype_of_text_is_read_and_given_back(dtype: Any) -> None:
    native = pl.DataFrame({"housing": pl.Series(CELLS, dtype=dtype), "age": AGES})
    table = as_table(native, "X", CODING)
    np.testing.assert_array_equal(table.values, np.column_stack([CODES, AGES]))
    assert same_frame(table.like(table.values), native)
    given = table.like(np.array([[0.0, 1.0], [3.0, 2.0], [np.nan, np.nan], [2.0, 3.0]]))
    assert given["housing"].to_list() == ["own", "castle", None, "free"]
    assert given.schema == native.schema


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_every_arrow_type_of_text_is_read_and_given_back(kind: Any) -> None:
    native = pa.table({"housing": pa.array(CELLS, pa.string()).cast(kind), "age": AGES})
    table = as_table(native, "X", CODING)
    np.testing.assert_array_equal(table.values, np.column_stack([CODES, AGES]))
    given = table.like(np.array([[0.0, 1.0], [3.0, 2.0], [np.nan, np.nan], [2.0, 3.0]]))
    assert given.column("housing").to_pylist() == ["own", "castle", None, "free"]
    assert given.column("age").type == pa.float64()


def test_numbers_and_booleans_can_be_categories() -> None:
    coding = Coding(((10, 20), (False, True)), ("branch", "owner"))
    for native in (
        pd.DataFrame({"branch": [20, 30], "owner": [True, False]}),
        pl.DataFrame({"branch": [20, 30], "owner": [True, False]}),
    ):
        table = as_table(native, "X", coding)
        np.testing.assert_array_equal(table.values, [[1, 1], [2, 0]])
        assert same_frame(table.like(table.values), native)
        given = table.like(np.array([[0.0, 0.0], [np.nan, np.nan]]))
        again = as_table(given, "X", coding)
        np.testing.assert_array_equal(again.values, [[0, 0], [np.nan, np.nan]])
    matrix = np.array([[20.0, 1.0], [30.0, 0.0]])
    table = as_table(matrix, "X", coding)
    np.testing.assert_array_equal(table.values, [[1, 1], [2, 0]])
    np.testing.assert_array_equal(table.like(np.array([[0.0, 1.0], [2.0, 1.0]])), [[10, 1], [30, 1]])


def test_arrays_of_objects_and_nested_lists_are_read() -> None:
    matrix = np.array([["rent", 30.0], [None, 40]], object)
    for rows in (matrix, [["rent", 30.0], [None, 40]]):
        table = as_table(rows, "X", CODING)
        np.testing.assert_array_equal(table.values, [[1, 30], [np.nan, 40]])
        assert table.like(np.array([[0.0, 31.0], [np.nan, np.nan]])).tolist()[0] == ["own", 31.0]
    text = np.array([["rent"], ["castle"]])
    table = as_table(text, "X", Coding((HOUSING,)))
    np.testing.assert_array_equal(table.values, [[1], [3]])
    assert table.like(np.array([[2.0], [3.0]])).tolist() == [["free"], ["castle"]]
    assert table.like(np.array([[2.0], [np.nan]])).tolist() == [["free"], [None]]


def test_a_column_of_text_that_the_model_takes_as_numbers_is_refused() -> None:
    native = pd.DataFrame({"housing": ["own"], "age": ["old"]})
    with pytest.raises(InvalidInput, match=r"^X: column 'age' must be numeric, got dtype"):
        as_table(native, "X", CODING)
    with pytest.raises(InvalidInput, match=r"^X must be a table of numbers; .*old"):
        as_table([["own", "old"]], "X", CODING)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_hold_categories(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    native = pl.DataFrame({"id": [1, 2, 3, 4], "age": AGES, "housing": CELLS})
    if suffix == ".parquet":
        native.write_parquet(path)
    else:
        native.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    table = read_table(path, ["id"], CODING).select(["housing", "age"])
    np.testing.assert_array_equal(table.values, np.column_stack([CODES, AGES]))
    assert table.grain[0] == INTEGER
    assert [table.cell(i, 0) for i in range(4)] == CELLS
    moved = table.values.copy()
    moved[0, 0] = 2.0
    assert table.labelled(0, moved[:, 0]) == ["free", "castle", None, "own"]
    assert len(table.like(moved)) == 4


def on_housing(**changes: Any) -> Forest:
    """One split: "yes" for those who own or live free."""
    categories = Categories.of_sets([HOUSING, None], [[0, 2], None, None])
    given: dict[str, Any] = {"categories": categories, "leaf_value": [[0.0, 1.0], [1.0, 0.0]], "takes_missing": True}
    return stump(0.0, **given | {"feature_names": ("housing", "age")} | changes)


def test_what_a_model_reads() -> None:
    rows = np.column_stack([CODES, AGES])
    assert readable(rows, on_housing()).all()
    categories = on_housing().categories
    assert categories is not None
    strict = Categories(
        categories.labels, categories.set_of_node, categories.set_start, categories.set_member, np.array([True, False])
    )
    assert readable(rows, on_housing(categories=strict))[:, 0].tolist() == [True, False, True, True]
    assert readable(rows, on_housing(refuses_missing=[True, False]))[:, 0].tolist() == [True, True, False, True]
    odd = np.array([[0.5, 1.0], [-1.0, 1.0], [4.0, 1.0], [2.0, np.inf]])
    assert readable(odd, on_housing()).tolist() == [[False, True]] * 3 + [[True, False]]
    again = Forest.from_record({"format": "", **_record(on_housing(categories=strict, refuses_missing=[True, False]))})
    assert again.categories is not None
    assert again.categories.refuses_unseen is not None
    assert again.categories.refuses_unseen.tolist() == [True, False]
    assert again.refuses_missing is not None


def _record(forest: Forest) -> dict[str, Any]:
    from dataclasses import fields

    record = {field.name: getattr(forest, field.name) for field in fields(forest)}
    assert forest.categories is not None
    return record | {"categories": forest.categories.to_record()}


def test_a_row_with_a_category_that_the_model_refuses_is_named() -> None:
    none, start = np.full(3, -1), np.zeros(1)
    strict = Categories((None, HOUSING), none, start, np.empty(0), np.array([False, True]))
    explainer = Explainer(stump(35.0, categories=strict, feature_names=("age", "housing")), scale=None)
    found = explainer.explain(pd.DataFrame({"age": AGES, "housing": CELLS}))
    assert [status is Status.INVALID for status in found.status] == [False, True, True, False]
    assert found.reasons[1:3] == ("the model cannot read housing = castle", "the model cannot read housing = nan")
    assert found.counterfactuals["housing"].tolist()[::3] == ["rent", "own"]
