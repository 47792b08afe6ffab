"""Arrow batches: the same answers as `explain`, under one schema, whatever the batches and the threads."""

from __future__ import annotations

import copy
import decimal
import gc
import pickle
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from support.questions import random_question
from support.streams import NAMES, loan_explainer, loan_rows
from treefocus import Exact, Explainer, Focus, InvalidInput, Probability, Score, Status, loans
from treefocus.scale.answers import answer_schema
from treefocus.scale.batches import NODE_LIMIT, Task, explain_batches


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer(distance="manhattan")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return loan_rows(200)


def together(explainer: Explainer, batches: list[pa.RecordBatch], **options: object) -> pa.Table:
    return pa.Table.from_batches(list(explain_batches(explainer, batches, **options))).combine_chunks()


def test_the_answers_are_those_of_explain(explainer: Explainer, rows: pa.Table) -> None:
    answers = together(explainer, rows.to_batches(), keep=["customer"])
    found = explainer.explain(rows.select(NAMES))
    assert answers["customer"].to_pylist() == rows["customer"].to_pylist()
    assert answers["status"].to_pylist() == [status.name for status in found.status]
    assert answers["reason"].to_pylist() == list(found.reasons)
    assert answers["predicted"].to_pylist() == found.predicted.tolist()
    assert answers["outcome"].to_pylist() == found.outcome.tolist()
    for name in ("distance", "lower_bound", "gap"):
        own = answers[name].to_numpy(zero_copy_only=False)
        np.testing.assert_array_equal(own, getattr(found, name))
    for j, name in enumerate(NAMES):
        np.testing.assert_array_equal(answers[name].to_numpy(zero_copy_only=False), found.points[:, j])
    assert {"OPTIMAL", "INVALID"} <= set(answers["status"].to_pylist())


@pytest.mark.parametrize("target", [Probability("approved", 0.6), Score(low=0.1)])
def test_every_kind_of_target(rows: pa.Table, target: object) -> None:
    X, y = loans.generate(600, seed=3)
    explainer = Explainer(GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, y), X, schema=loans.SCHEMA)
    answers = together(explainer, rows.to_batches(max_chunksize=70), target=target, keep=["customer"])
    found = explainer.explain(rows.select(NAMES), target=target)
    assert answers["outcome"].to_pylist() == found.outcome.tolist()
    assert answers["predicted"].to_pylist() == found.predicted.tolist()
    np.testing.assert_array_equal(answers["distance"].to_numpy(zero_copy_only=False), found.distance)


def test_the_changes_are_those_of_each_row(explainer: Explainer, rows: pa.Table) -> None:
    answers = together(explainer, rows.to_batches())
    for given, one in zip(answers["changes"].to_pylist(), explainer.explain(rows.select(NAMES)), strict=True):
        if one.counterfactual is None:
            assert given is None
            continue
        assert [change["feature"] for change in given] == [change.feature for change in one.changes]
        for own, change in zip(given, one.changes, strict=True):
            assert (own["before"], own["after"], own["shown"]) == (change.before, change.after, change.shown)
            assert own["share"] == pytest.approx(change.share, rel=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_batches_and_threads_change_nothing(explainer: Explainer, rows: pa.Table, size: int, n_jobs: int) -> None:
    whole = together(explainer, rows.to_batches(), n_jobs=1)
    parts = rows.to_batches(max_chunksize=size)
    answers = list(explain_batches(explainer, parts, n_jobs=n_jobs))
    assert [len(batch) for batch in answers] == [len(batch) for batch in parts]
    assert pa.Table.from_batches(answers).combine_chunks().equals(whole)


@pytest.mark.parametrize("seed", range(6))
def test_models_of_many_classes_and_missing_values(seed: int) -> None:
    explainer, rows = random_question(seed, n_rows=30)
    table = pa.table({f"c{j}": rows[:, j] for j in range(rows.shape[1])})
    answers = together(explainer, table.to_batches(max_chunksize=11), strategy="exact")
    found = explainer.explain(rows, strategy="exact")
    assert answers["status"].to_pylist() == [status.name for status in found.status]
    np.testing.assert_array_equal(answers["distance"].to_numpy(zero_copy_only=False), found.distance)


def test_one_schema_whatever_comes(explainer: Explainer, rows: pa.Table) -> None:
    schema = answer_schema(explainer)
    hopeless = pa.table({name: [np.inf] * 3 for name in NAMES})
    single = pa.table({name: rows[name].cast(pa.float32()) for name in NAMES})
    for table in (rows, rows.slice(0, 0), hopeless, single, rows.select([*reversed(NAMES)])):
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        for batch in explain_batches(explainer, batches):
            assert batch.schema.equals(schema)
    whole = [schema.field(name).type == pa.int64() for name in NAMES]
    assert whole == explainer.whole_columns.tolist()
    assert any(whole)


def test_columns_of_other_numbers_are_read(explainer: Explainer, rows: pa.Table) -> None:
    plain = rows.slice(0, 4)
    plain = pa.table({name: plain[name].to_numpy() for name in NAMES})
    exact = {name: [decimal.Decimal(repr(value)) for value in plain[name].to_pylist()] for name in NAMES}
    assert together(explainer, pa.table(exact).to_batches()).equals(together(explainer, plain.to_batches()))
    nothing = plain.set_column(0, NAMES[0], pa.nulls(4))
    assert set(together(explainer, nothing.to_batches())["status"].to_pylist()) == {"INVALID"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda table: table.drop_columns([NAMES[1]]), f"lacks the columns {NAMES[1]}"),
        (lambda table: table.append_column(NAMES[0], table[NAMES[0]]), "more than one column named"),
        (lambda table: table.set_column(1, NAMES[0], pa.array(["x"] * len(table))), "of numbers, got string"),
    ],
)
def test_input_that_is_not_the_models(explainer: Explainer, rows: pa.Table, change: object, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        list(explain_batches(explainer, change(rows).to_batches()))  # type: ignore[operator]


def test_misuse_is_reported_at_once(explainer: Explainer) -> None:
    for options in ({"target": "nobody"}, {"target": ["approved"]}, {"n_jobs": 0}, {"strategy": "luck"}):
        with pytest.raises(InvalidInput):
            explain_batches(explainer, [], **options)  # type: ignore[arg-type]


def test_a_kept_column_may_not_be_named_like_an_answer(explainer: Explainer, rows: pa.Table) -> None:
    table = rows.append_column("status", pa.array(["x"] * len(rows)))
    with pytest.raises(InvalidInput, match="keep"):
        list(explain_batches(explainer, table.to_batches(), keep=["status"]))


def test_without_a_time_limit_the_clock_is_not_looked_at(explainer: Explainer) -> None:
    assert Task.of(explainer).strategy.node_limit == NODE_LIMIT  # type: ignore[attr-defined]
    assert Task.of(explainer).strategy.time_limit is None  # type: ignore[attr-defined]
    assert Task.of(explainer, time_limit=0.5).strategy.node_limit is None  # type: ignore[attr-defined]
    assert Task.of(explainer, time_limit=0.5).time_limit == 0.5
    assert Task.of(explainer, strategy=Focus(iterations=5)).strategy == Focus(iterations=5)


def test_an_explainer_travels_without_its_model(rows: pa.Table) -> None:
    explainer = loan_explainer()
    data = pickle.dumps(explainer)
    arrays = sum(getattr(explainer.forest, name).nbytes for name in ("feature", "threshold", "left", "leaf_value"))
    assert len(data) < 2 * arrays + 600 * 8 * len(NAMES) + 10_000  # the examples and a few words
    again = pickle.loads(data)
    assert together(again, rows.to_batches()).equals(together(explainer, rows.to_batches()))
    assert b"AdaBoost" not in data.replace(explainer.forest.source.encode(), b"")
    first, second = explainer.explain(rows.select(NAMES)), again.explain(rows.select(NAMES))
    np.testing.assert_array_equal(first.points, second.points)
    assert copy.copy(explainer).forest is explainer.forest


def test_a_reader_that_leaves_stops_the_search() -> None:
    explainer, rows = random_question(1, n_rows=5)
    table = pa.table({f"c{j}": rows[:, j] for j in range(rows.shape[1])})
    asked = 0

    def endless() -> object:
        nonlocal asked
        while True:
            asked += 1
            yield from table.to_batches()

    answers = explain_batches(explainer, endless(), strategy=Exact(), n_jobs=2)  # type: ignore[arg-type]
    next(answers)
    del answers
    gc.collect()
    until = time.monotonic() + 240
    while any(thread.name.startswith("treefocus") for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(thread.name.startswith("treefocus") for thread in threading.enumerate())
    assert asked < 10


def test_an_error_in_the_input_reaches_the_caller(explainer: Explainer, rows: pa.Table) -> None:
    def broken() -> object:
        yield from rows.to_batches(max_chunksize=50)
        raise OSError("the disk is gone")

    answers = explain_batches(explainer, broken(), n_jobs=2)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="the disk is gone"):
        list(answers)


def test_statuses_are_told_apart_by_identity() -> None:
    assert len(dict.fromkeys(Status, 1)) == len(Status)
    assert pickle.loads(pickle.dumps(Status.OPTIMAL)) is Status.OPTIMAL
