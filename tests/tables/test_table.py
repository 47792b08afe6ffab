"""Tables: what goes in comes out again, with the same type, names, dtypes and index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from support.frames import same_frame
from support.questions import stump
from treefocus import Explainer, InvalidInput, Schema
from treefocus.model.categories import Categories
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER
from treefocus.tables.files import read_table
from treefocus.tables.table import as_table

MIXED = {"age": [31, 52, 44], "income": [1000.5, 2e5, 0.1], "owner": [True, False, True]}
EXPECTED = [[31.0, 1000.5, 1.0], [52.0, 2e5, 0.0], [44.0, 0.1, 1.0]]


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[7, 3, 9]),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
every_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())


@every_frame
def test_a_frame_is_read_and_given_back(make: Any) -> None:
    native = make(MIXED)
    table = as_table(native, "X")
    assert table.names == ("age", "income", "owner")
    assert table.grain.tolist() == [INTEGER, ANY_FLOAT, INTEGER]
    assert table.values.dtype == np.float64
    assert table.values.tolist() == EXPECTED
    assert same_frame(table.like(table.values), native)


@every_frame
def test_a_row_without_an_answer_is_a_row_of_nulls(make: Any) -> None:
    table = as_table(make(MIXED), "X")
    values = table.values.copy()
    values[1] = np.nan
    back = as_table(table.like(values), "X")
    np.testing.assert_array_equal(back.values, values)
    assert back.names == table.names
    assert back.grain.tolist() == table.grain.tolist()


@every_frame
def test_no_rows_stay_no_rows(make: Any) -> None:
    native = make(MIXED)
    nothing = native.slice(0, 0) if isinstance(native, pa.Table) else native[:0]
    table = as_table(nothing, "X")
    assert table.values.shape == (0, 3)
    assert same_frame(table.like(table.values), nothing)


PANDAS_DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint32", "bool", "float32", "float64", "Int8", "Int64", "UInt16",
    "boolean", "Float32", "Float64", "int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]",
]  # fmt: skip
POLARS_DTYPES = [pl.Int8, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64, pl.Boolean, pl.Float32, pl.Float64]


def grain_of(name: str) -> int:
    return FLOAT32 if "float32" in name else ANY_FLOAT if "float" in name or "double" in name else INTEGER


@pytest.mark.parametrize("dtype", PANDAS_DTYPES)
def test_every_pandas_dtype_comes_back(dtype: str) -> None:
    native = pd.DataFrame({"a": pd.array([1, 0], dtype=dtype)})
    table = as_table(native, "X")
    assert table.values.tolist() == [[1.0], [0.0]]
    assert table.grain.tolist() == [grain_of(dtype.lower())]
    assert same_frame(table.like(table.values), native)


@pytest.mark.parametrize("dtype", [dtype for dtype in PANDAS_DTYPES if dtype[0].isupper() or "[" in dtype])
def test_a_null_of_pandas_stays_one(dtype: str) -> None:
    native = pd.DataFrame({"a": pd.array([1, None], dtype=dtype)})
    table = as_table(native, "X")
    np.testing.assert_array_equal(table.values, [[1.0], [np.nan]])
    assert same_frame(table.like(table.values), native)


@pytest.mark.parametrize(("dtype", "nullable"), [("int8", "Int64"), ("uint32", "Int64"), ("bool", "boolean")])
def test_plain_pandas_dtypes_become_nullable_where_a_null_is_needed(dtype: str, nullable: str) -> None:
    table = as_table(pd.DataFrame({"a": np.array([1, 0], dtype)}), "X")
    given_back = table.like(np.array([[1.0], [np.nan]]))
    assert given_back.dtypes["a"] == nullable
    assert given_back["a"].isna().tolist() == [False, True]


@pytest.mark.parametrize("dtype", POLARS_DTYPES, ids=str)
def test_every_polars_dtype_comes_back_nulls_too(dtype: Any) -> None:
    native = pl.DataFrame({"a": [1, 0, None]}).cast(dtype)
    table = as_table(native, "X")
    np.testing.assert_array_equal(table.values, [[1.0], [0.0], [np.nan]])
    assert table.grain.tolist() == [grain_of(str(dtype).lower())]
    assert same_frame(table.like(table.values), native)


@pytest.mark.parametrize(
    ("dtype", "grain"),
    [(np.float64, ANY_FLOAT), (np.float32, FLOAT32), (np.int64, INTEGER), (np.uint8, INTEGER), (np.bool_, INTEGER)],
)
def test_every_numpy_dtype_comes_back(dtype: Any, grain: int) -> None:
    native = np.array([[1, 0], [0, 1]], dtype)
    table = as_table(native, "X")
    assert table.names is None
    assert table.grain.tolist() == [grain, grain]
    back = table.like(table.values)
    assert back.dtype == native.dtype
    np.testing.assert_array_equal(back, native)


def test_whole_numpy_columns_become_floats_where_a_row_is_missing() -> None:
    back = as_table(np.array([[1, 0], [0, 1]]), "X").like(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    np.testing.assert_array_equal(back, [[1.0, 2.0], [np.nan, np.nan]])


def test_lists_and_none_are_read() -> None:
    table = as_table([[1, 2.5], [None, 4]], "X")
    np.testing.assert_array_equal(table.values, [[1.0, 2.5], [np.nan, 4.0]])
    assert isinstance(table.like(table.values), np.ndarray)


def test_a_table_of_any_memory_order_is_read() -> None:
    rows = np.asfortranarray(np.arange(12.0).reshape(3, 4))[:, ::-1]
    table = as_table(rows, "X")
    assert table.values.flags.c_contiguous
    np.testing.assert_array_equal(table.values, rows)


def test_values_are_a_copy() -> None:
    rows = np.zeros((2, 2))
    as_table(rows, "X").values[0, 0] = 5.0
    assert rows[0, 0] == 0.0


@pytest.mark.parametrize(
    "index",
    [pd.Index(["x", "y", "y"]), pd.to_datetime(["2020-01-01"] * 3), pd.MultiIndex.from_product([["a"], [1, 2, 3]])],
)
def test_pandas_keeps_any_index_and_any_column_names(index: Any) -> None:
    native = pd.DataFrame(np.arange(6.0).reshape(3, 2), index=index)
    table = as_table(native, "X")
    assert table.names == ("0", "1")
    assert same_frame(table.like(table.values), native)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (pd.DataFrame({"a": ["x"]}), r"^X: column 'a' must be numeric, got dtype String\.$"),
        (pl.DataFrame({"a": ["x"]}), r"^X: column 'a' must be numeric, got dtype String\.$"),
        (pd.DataFrame({"a": pd.Categorical(["x"])}), r"^X: column 'a' must be numeric, got dtype Categorical\.$"),
        (pd.DataFrame({"a": pd.to_timedelta([1], unit="D")}), r"^X: column 'a' must be numeric, got dtype Duration"),
        (pd.DataFrame({"a": pd.Series([1, 2], dtype=object)}), r"^X: column 'a' must be numeric, got dtype Object\.$"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"\ba\b.*more than once|unique column names"),
        ([["x", 1.0]], r"^X must be a table of numbers"),
        ([[1.0, 2.0], [3.0]], r"^X must be a table of numbers"),
        (np.array([[1j, 2.0]]), r"^X must be a table of numbers"),
        (np.array([["2020-01-01"]], "M8[D]"), r"^X must be a table of numbers"),
        (np.zeros(3), r"^X must be two-dimensional, .*row\.reshape\(1, -1\), got 1 dimensions\.$"),
        (np.zeros((1, 2, 3)), r"^X must be two-dimensional, rows by columns, got 3 dimensions\.$"),
        (3.0, r"^X must be two-dimensional, rows by columns, got 0 dimensions\.$"),
        (None, r"^X must be two-dimensional"),
        ("abc", r"^X must be a table of numbers"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(rows: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        as_table(rows, "X")


# Files


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "age,income,note\n31,1000.5,x\n52,,y\n"),
        ("t.csv", "\ufeffage,income,note\r\n31,1000.5,x\r\n\r\n52,,y\r\n"),
        ("t.csv", 'age,income,note\n31,"1000.5","x, or y"\n52, ,y'),
        ("t.tsv", "age\tincome\tnote\n31\t1000.5\tx\n52\t\ty\n"),
    ],
)
def test_text_files_are_read(tmp_path: Path, name: str, content: str) -> None:
    table = read_table(written(tmp_path, name, content), ignore=["note"])
    assert table.names == ("age", "income")
    np.testing.assert_array_equal(table.values, [[31.0, 1000.5], [52.0, np.nan]])
    assert table.grain.tolist() == [INTEGER, ANY_FLOAT]


def test_parquet_is_read_like_a_frame(tmp_path: Path) -> None:
    parquet.write_table(pa.table(MIXED | {"note": ["x", "y", "z"]}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", ignore=["note"])
    assert table.names == ("age", "income", "owner")
    assert table.values.tolist() == EXPECTED
    assert table.grain.tolist() == [INTEGER, ANY_FLOAT, INTEGER]


@given(st.lists(st.tuples(st.floats(allow_infinity=False), st.integers(-(2**53), 2**53)), max_size=8))
def test_text_files_keep_every_bit(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int]]) -> None:
    text = "a,b\n" + "".join(f"{'' if np.isnan(a) else repr(a)},{b}\n" for a, b in rows)
    table = read_table(written(tmp_path_factory.mktemp("t"), "t.csv", text))
    np.testing.assert_array_equal(table.values, np.array(rows, float).reshape(-1, 2))
    assert not rows or table.grain[1] == INTEGER


def test_a_file_of_names_only_is_a_table_of_no_rows(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "t.csv", "a,b\n"))
    assert table.values.shape == (0, 2)
    assert table.names == ("a", "b")


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("t.csv", "", r"t\.csv is empty; a table starts with a line of column names\.$"),
        ("t.csv", "a,b\n1,2\n3\n", r"t\.csv, line 3: 2 cells were expected, 1 came\.$"),
        ("t.csv", "a,b\n1,2,3\n", r"t\.csv, line 2: 2 cells were expected, 3 came\.$"),
        ("t.csv", "a,b\n1,x\n", r"t\.csv, line 2, column 'b': 'x' is not a number\.$"),
        ("t.csv", "a,b\n\n1,NA\n", r"t\.csv, line 3, column 'b': 'NA' is not a number\.$"),
        ("t.csv", "a;b\n1;2\n", r"t\.csv, line 2, column 'a;b': '1;2' is not a number\.$"),
        ("t.csv", "a,a\n1,2\n", r"t\.csv.*\ba\b.*(more than once|twice|unique)"),
        ("t.csv", "note\nx\n", r"no column"),
        ("t.csv", b"a,\xe9\n1,2\n", r"t\.csv, line 1: the byte 0xe9 after 'a,' is not utf-8; say which encoding"),
        ("t.csv", "a,b\n1," + "1" * 200_000, r"t\.csv, line 2: field larger"),
        ("t.csv", 'a,b\n1,"2\n3,4\n', r"t\.csv, line 2: a quote opens here and is closed nowhere\.$"),
        ("t.csv", 'a,b\n1,"2\n3,4"\n', r"t\.csv, line 2: a quote opens here and would take the next lines"),
        ("t.csv", 'a,b\n1,"2"3\n', r"t\.csv, line 2: a quote opens here and other text follows"),
        ("t.csv", "a,b\n1,3_012000\n", r"t\.csv, line 2, column 'b': '3_012000' is not a number\.$"),
        ("t.csv", "a,b\n1,\u0663\n", r"t\.csv, line 2, column 'b': '\u0663' is not a number\.$"),
        ("t.parquet", b"junk", r"t\.parquet cannot be read as a table: "),
        ("t.parquet", b"", r"t\.parquet cannot be read as a table: "),
        ("t.xlsx", b"PK", r"t\.xlsx must be a file whose name ends in \.csv, \.tsv, \.parquet, got '\.xlsx'\.$"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(tmp_path: Path, name: str, content: str | bytes, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        read_table(written(tmp_path, name, content), ignore=["note"])


def test_text_in_parquet_is_refused_with_the_column(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"note": ["x"]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=r"t\.parquet: column 'note' must be numeric, got dtype String\.$"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["none.csv", "none.tsv", "none.parquet"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^There is no file .*{name}\.$"):
        read_table(tmp_path / name)


# Columns of nothing but nulls


def _nulls() -> dict[str, Any]:
    arrow = pa.table({"a": [0.2, 0.3], "b": pa.nulls(2)})
    frame = pl.DataFrame({"a": [0.2, 0.3], "b": [None, None]})
    plain = pd.DataFrame({"a": [0.2, 0.3], "b": [None, None]})
    return {
        "polars null": frame,
        "polars text": frame.with_columns(pl.col("b").cast(pl.String)),
        "arrow": arrow,
        "pandas object": plain,
        "pandas text": plain.astype({"b": "string"}),
        "pandas category": plain.astype({"b": "category"}),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
    }


@pytest.mark.parametrize("kind", list(_nulls()))
def test_a_column_of_nulls_is_a_column_of_missing_values(kind: str) -> None:
    given = _nulls()[kind]
    table = as_table(given, "X")
    assert np.isnan(table.values[:, 1]).all()
    missing_left = stump(feature=[1, -1, -1], default_left=[True, False, False], takes_missing=True)
    found = Explainer(missing_left, np.array([[0.0, 0.0], [1.0, 1.0]])).explain(given)
    assert found.has_answer.all()
    made = as_table(found.counterfactuals, "answers")
    assert made.values[:, 0].tolist() == [0.2, 0.3]
    assert (made.values[:, 1] > 0.5).all()
    stays = Explainer(stump(takes_missing=True), np.array([[0.0, 0.0], [1.0, 1.0]])).explain(given)
    assert np.isnan(as_table(stays.counterfactuals, "answers").values[:, 1]).all()


def test_a_column_of_nulls_may_hold_categories() -> None:
    categories = Categories.of_sets((None, ("own", "rent")), [[0, 2], None, None])
    model = stump(
        0.0, feature=[1, -1, -1], default_left=[True, False, False], takes_missing=True, categories=categories
    )
    frame = pl.DataFrame({"a": [0.2, 0.3], "b": [None, None]})
    found = Explainer(model, scale=None).explain(frame)
    assert found.counterfactuals["b"].to_list() == ["rent", "rent"]


def test_data_without_a_number_in_a_column_are_refused_with_what_to_do() -> None:
    told = r"got none in b: .* Give rows in which they are known, or leave out data and give scale= and bounds=\.$"
    frame = pl.DataFrame({"a": [0.2, 0.3], "b": [None, None]})
    with pytest.raises(InvalidInput, match=told):
        Explainer(stump(takes_missing=True), frame)
    assert [feature.kind for feature in Schema.infer(frame).features] == ["continuous", "continuous"]
