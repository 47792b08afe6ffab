"""A real Spark on this machine, two threads: the answers of one process, also when a worker is killed on the way."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor

from support.streams import NAMES, FatalOnce, answers_of_one_process, loan_explainer, loan_rows, odd_rows, python_path
from treefocus import Explainer, Interval, InvalidInput, Probability, Score, loans

pytest.importorskip("pyspark", reason="needs the extra spark")
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("default"),  # of what Spark itself does
]


def has_connect() -> bool:
    return all(find_spec(name) is not None for name in ("grpc", "grpc_status", "zstandard"))


@pytest.fixture(scope="module")
def port() -> int:
    """One that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def spark(port: int) -> Iterator[Any]:
    """A session that is also a server of Spark Connect, where the Python packages for that are there."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = python_path()
    session = (
        SparkSession.builder.master("local[2, 3]")  # two threads, three tries a task
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin" if has_connect() else "")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", str(port))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return loan_rows(800)


@pytest.fixture(scope="module")
def expected(explainer: Explainer, rows: pa.Table) -> pa.Table:
    """What one process answers."""
    return answers_of_one_process(explainer, rows)


@pytest.fixture
def frame(spark: Any, rows: pa.Table, tmp_path: Path) -> Any:
    from pyarrow import parquet

    for k in range(4):
        parquet.write_table(rows.slice(200 * k, 200), tmp_path / f"rows-{k}.parquet")
    return spark.read.parquet(str(tmp_path)).repartition(4, "customer")


def by_customer(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda record: record["customer"])


def collected(frame: Any) -> list[dict[str, Any]]:
    return by_customer([row.asDict(recursive=True) for row in frame.collect()])


def test_the_answers_of_one_process(spark: Any, explainer: Explainer, frame: Any, expected: pa.Table) -> None:
    from treefocus.scale.spark import explain_frame

    rows_done = spark.sparkContext.accumulator(0)
    answers = explain_frame(explainer, frame, keep=["customer"], rows_done=rows_done)
    assert answers.columns == expected.schema.names
    assert collected(answers) == by_customer(expected.to_pylist())
    assert rows_done.value == 800


def test_columns_of_other_types(spark: Any, explainer: Explainer, tmp_path: Path) -> None:
    from pyarrow import parquet

    from treefocus.scale.spark import explain_frame

    rows = odd_rows(300)
    parquet.write_table(rows, tmp_path / "odd.parquet")
    frame = spark.read.parquet(str(tmp_path / "odd.parquet"))
    found = collected(explain_frame(explainer, frame, keep=["customer"]))
    assert list(map(repr, found)) == list(map(repr, answers_of_one_process(explainer, rows).to_pylist()))


def test_a_killed_worker_costs_nothing_but_time(
    explainer: Explainer, frame: Any, expected: pa.Table, tmp_path: Path
) -> None:
    from treefocus.scale.spark import map_task

    answers = map_task(FatalOnce.task(explainer, tmp_path / "killed"), frame)
    assert collected(answers) == by_customer(expected.to_pylist())
    assert (tmp_path / "killed").exists()


@pytest.mark.skipif(not has_connect(), reason="needs pyspark[connect]")
def test_spark_connect_gives_the_answers_of_one_process(
    spark: Any, port: int, explainer: Explainer, frame: Any, expected: pa.Table, tmp_path: Path
) -> None:
    from pyspark.sql.connect.session import SparkSession

    from treefocus.scale.spark import explain_frame

    remote = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        rows = remote.read.parquet(str(tmp_path))
        found = collected(explain_frame(explainer, rows, keep=["customer"]))
        assert found == by_customer(expected.to_pylist())
        with pytest.raises(InvalidInput, match="rows_done must be None with Spark Connect"):
            explain_frame(explainer, rows, rows_done=spark.sparkContext.accumulator(0))
    finally:
        remote.stop()


def test_every_target_has_its_schema(frame: Any, rows: pa.Table) -> None:
    from treefocus.scale.batches import explain_batches
    from treefocus.scale.spark import explain_frame

    X, y = loans.generate(300, seed=3)
    rich = np.asarray(X)[:, NAMES.index("income")]
    score = GradientBoostingClassifier(n_estimators=3, max_depth=2).fit(X, y)
    amount = DecisionTreeRegressor(max_depth=3).fit(X, rich)
    few = frame.where("customer < 1010")
    for model, target in ((score, Score(low=0.1)), (score, Probability("approved", 0.6)), (amount, Interval(low=3000))):
        asked, options = Explainer(model, X, schema=loans.SCHEMA), {"keep": ["customer"], "target": target}
        expected = pa.Table.from_batches(list(explain_batches(asked, rows.slice(0, 10).to_batches(), **options)))
        found = collected(explain_frame(asked, few, **options))
        assert list(map(repr, found)) == list(map(repr, expected.to_pylist()))


def test_wrong_columns_are_said_before_any_work(explainer: Explainer, frame: Any) -> None:
    from treefocus.scale.spark import explain_frame

    with pytest.raises(InvalidInput, match="The input lacks the columns income"):
        explain_frame(explainer, frame.drop("income"))
    with pytest.raises(InvalidInput, match="'income' must be of numbers"):
        explain_frame(explainer, frame.withColumn("income", frame["income"].cast("string")))
