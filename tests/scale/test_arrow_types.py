"""Every kind of column, in any chunks, with any dictionaries and nulls: the same answers through every door."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache
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
from sklearn.ensemble import HistGradientBoostingClassifier

from support.streams import answers
from treefocus import Explainer, Feature, Schema
from treefocus.scale import work
from treefocus.scale.batches import Task, explain_batches
from treefocus.scale.files import explain_file
from treefocus.tables.arrow import floats_of

SCHEMA = Schema([Feature("count", "integer"), Feature("size"), Feature("colour", "categorical")])
COLOURS = ["red", "green", "blue"]


@cache
def explainer() -> Explainer:
    rng = np.random.default_rng(0)
    count, size, colour = rng.integers(0, 100, 200), rng.normal(size=200) * 10, rng.choice(COLOURS, 200)
    rows = pd.DataFrame({"count": count, "size": size, "colour": pd.Categorical(colour, COLOURS)})
    rows.loc[::17, "size"] = np.nan
    labels = (count > 40) & (colour != "red") | (size > 8)
    model = HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype").fit(rows, labels)
    return Explainer(model, rows, schema=SCHEMA)


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def whole(bits: int, *, is_signed: bool = True) -> st.SearchStrategy[Any]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    return st.one_of(st.integers(max(low, 0), min(high, 99)), st.integers(low, high))


def decimals(digits: int) -> st.SearchStrategy[Any]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda n: Decimal(n).scaleb(-3))


FINITE = st.floats(-1e4, 1e4)
COUNTS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((getattr(pa, f"int{bits}")(), whole(bits)) for bits in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{bits}")(), whole(bits, is_signed=False)) for bits in (8, 16, 32, 64)),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    (pa.dictionary(pa.int8(), pa.int64()), whole(8)),
]
SIZES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.float64(), FINITE),
    (pa.float32(), FINITE.map(np.float32)),
    (pa.float16(), FINITE.map(np.float16)),
    (pa.decimal128(12, 3), decimals(9)),
    (pa.decimal256(40, 3), decimals(9)),
    (pa.null(), st.none()),
]
WORDS = st.sampled_from([*COLOURS, "violet"])
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
KEPT: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), NAMES),
    (pa.large_string(), NAMES),
    (pa.binary(), st.binary(max_size=3)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.decimal128(12, 3), decimals(9)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), st.integers(0, 2**50).map(lambda us: pd.Timestamp(us, unit="us", tz="UTC"))),
    (pa.duration("ms"), st.integers(-(10**6), 10**6).map(lambda ms: datetime.timedelta(milliseconds=ms))),
    (pa.dictionary(pa.int8(), pa.string()), NAMES),
    (pa.list_(pa.int32()), st.lists(st.integers(-9, 9), max_size=2)),
    (pa.struct([("a", pa.int8()), ("b", pa.string())]), st.fixed_dictionaries({"a": st.integers(0, 9), "b": NAMES})),
    (pa.list_(pa.struct([("c", pa.list_(pa.bool_()))])), st.lists(st.just({"c": [True, None]}), max_size=2)),
]


def column(draw: Any, kinds: list[tuple[pa.DataType, st.SearchStrategy[Any]]], sizes: list[int]) -> pa.ChunkedArray:
    """A column of some kind; every chunk of a dictionary has a dictionary of its own."""
    kind, values = draw(st.sampled_from(kinds))
    chunks = [[draw(nullable(values)) for _ in range(size)] for size in sizes]
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.array(own, kind.value_type).dictionary_encode().cast(kind) for own in chunks], kind)
    return pa.chunked_array([pa.array(own, kind) for own in chunks], kind)


@st.composite
def tables(draw: Any) -> pa.Table:
    """Rows of the model's columns and others, in chunks."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    words = [(pa.string(), WORDS), (pa.large_string(), WORDS), (pa.dictionary(pa.int8(), pa.string()), WORDS)]
    columns = {"count": COUNTS, "size": SIZES, "colour": words, "key": KEPT, "other": KEPT}
    return pa.table({name: column(draw, kinds, sizes) for name, kinds in columns.items()})


def said(table: pa.Table) -> list[str]:
    """A text a row, in which NaN is like itself."""
    return list(map(repr, table.to_pylist()))


@given(tables())
def test_batches_and_files_give_the_answers_of_one_table(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table
) -> None:
    folder, keep = tmp_path_factory.mktemp("types"), ["key", "other"]
    together = pa.Table.from_batches(list(explain_batches(explainer(), _one(table), keep=keep)))
    apart = pa.Table.from_batches(list(explain_batches(explainer(), table.to_batches(), keep=keep)), together.schema)
    assert len(together) == len(table)
    assert said(apart) == said(together)
    assert apart.select(keep).to_pylist() == table.select(keep).to_pylist()
    parquet.write_table(table, folder / "rows.parquet", row_group_size=3)
    explain_file(explainer(), folder / "rows.parquet", folder / "out", keep=keep, part_rows=4)
    assert said(answers(folder / "out")) == said(together)


def _one(table: pa.Table) -> list[pa.RecordBatch]:
    """The table as one batch."""
    return table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


@given(tables())
def test_frames_give_the_answers_of_batches(table: pa.Table) -> None:
    expected = pa.Table.from_batches(list(explain_batches(explainer(), _one(table))))
    rows = table.select(["count", "size", "colour"])
    beyond = np.flatnonzero(np.abs(floats_of(rows["count"])) >= 2.0**63)  # which only answers in columns cannot hold
    strategy = Task.of(explainer()).strategy
    for frame in _frames(rows):
        found = explainer().explain(frame, strategy=strategy)
        for i, one in enumerate(expected.to_pylist()):
            if i not in beyond:
                assert found.status[i].name == one["status"]
                assert found.distance[i] == one["distance"] or one["distance"] is None


@given(tables())
def test_text_gives_the_answers_of_batches(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> None:
    """Of the numbers that text can tell: whole ones, and floats of 64 bits."""
    folder = tmp_path_factory.mktemp("text")
    count = table["count"].cast(pa.int64()) if pa.types.is_boolean(table["count"].type) else table["count"]
    size = pa.chunked_array([pa.array(floats_of(table["size"]), from_pandas=True)])
    rows = pa.table({"count": count, "size": size, "colour": table["colour"]})
    cells = [["" if cell is None else str(cell) for cell in row.values()] for row in rows.to_pylist()]
    (folder / "rows.csv").write_text("\n".join(["count,size,colour", *map(",".join, cells)]))
    explain_file(explainer(), folder / "rows.csv", folder / "out", part_rows=4)
    expected = pa.Table.from_batches(list(explain_batches(explainer(), _one(rows))))
    assert said(answers(folder / "out")) == said(expected)


def _frames(rows: pa.Table) -> list[Any]:
    """The rows as other libraries have them."""
    plain = rows.set_column(2, "colour", rows["colour"].cast(pa.string()))  # pandas knows no large ones of its own
    frames = [rows, plain.to_pandas(types_mapper=pd.ArrowDtype)]
    if not rows["count"].null_count and not pa.types.is_dictionary(rows["count"].type):
        frames.append(plain.to_pandas())  # which makes whole numbers with nulls others
    if not any(pa.types.is_decimal256(kind) for kind in rows.schema.types):
        frames.append(pl.from_arrow(rows))
    return frames


def test_whole_numbers_beyond_those_of_floats_are_rows_like_others(tmp_path: Path) -> None:
    """2^53 + 1 is the nearest float to the model; a number that no column of answers holds is an INVALID row."""
    table = pa.table(
        {"count": pa.array([1, 2**53 + 1, 2**64 - 1, None], pa.uint64()), "size": [1.0] * 4, "colour": ["red"] * 4}
    )
    parquet.write_table(table, tmp_path / "rows.parquet")
    explain_file(explainer(), tmp_path / "rows.parquet", tmp_path / "out")
    found = answers(tmp_path / "out").to_pylist()
    assert [one["status"] for one in found][2] == "INVALID"
    assert found[2]["reason"] == "count = 1.84467e+19 is beyond the whole numbers of 64 bits"
    assert [one["status"] for one in found][:2] == ["OPTIMAL", "OPTIMAL"]
    whole = explainer().explain(table)
    assert [status.name for status in whole.status][:2] == ["OPTIMAL", "OPTIMAL"]
    assert whole.distance[1] == explainer().explain(table.to_pandas()).distance[1]


def test_a_kept_dictionary_that_changes_from_group_to_group_is_kept_in_drafts(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "BATCH_ROWS", 2)
    keys = pa.chunked_array(
        [pa.array(own).dictionary_encode() for own in (["a", "b", "a"], ["c", "c", "d"], ["e", "a", None])]
    )
    table = pa.table({"count": list(range(9)), "size": [0.5] * 9, "colour": ["blue"] * 9, "key": keys})
    with parquet.ParquetWriter(tmp_path / "rows.parquet", table.schema) as writer:
        for batch in table.to_batches():
            writer.write_table(pa.Table.from_batches([batch]))

    class Stop(Exception):  # noqa: N818
        pass

    def stop(_: work.Advance) -> None:
        raise Stop

    for _ in range(20):
        try:
            explain_file(explainer(), tmp_path / "rows.parquet", tmp_path / "out", keep=["key"], progress=stop)
        except Stop:
            continue
        break
    assert answers(tmp_path / "out")["key"].to_pylist() == ["a", "b", "a", "c", "c", "d", "e", "a", None]
