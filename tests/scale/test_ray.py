"""A real Ray on this machine, two CPUs: the bytes of one process, also when a worker is killed on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.streams import FatalOnce, answers_of_one_process, loan_explainer, loan_rows, odd_rows, python_path
from treefocus import Explainer, InvalidInput

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = [pytest.mark.campaign, pytest.mark.filterwarnings("default")]  # of what Ray itself does


def start(n_tries: int = 5) -> None:
    """Ray gives itself 30 seconds to start, which is not enough on every busy machine: it may try again."""
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=200_000_000,
            runtime_env={"env_vars": {"PYTHONPATH": python_path()}},
        )
    except Exception as error:
        ray.shutdown()
        if n_tries == 1 or "timed out during startup" not in str(error):
            raise
        start(n_tries - 1)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    start()
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return loan_rows(1200)


@pytest.fixture(scope="module")
def expected(explainer: Explainer, rows: pa.Table) -> pa.Table:
    """What one process answers."""
    return answers_of_one_process(explainer, rows)


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    table = table.combine_chunks().replace_schema_metadata(None)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def gathered(dataset: Any) -> pa.Table:
    return pa.concat_tables(dataset.iter_batches(batch_format="pyarrow", batch_size=None))


@pytest.mark.parametrize("n_workers", [2, (2, 2)])
def test_files_on_all_cpus_are_the_bytes_of_one_process(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path, n_workers: Any
) -> None:
    """Actors and those who read want the same two CPUs, and neither waits for ever."""
    from pyarrow import parquet

    from treefocus.scale.ray import RowsDone, explain_dataset

    done = RowsDone()
    for k in range(3):
        parquet.write_table(rows.slice(400 * k, 400), tmp_path / f"{k}.parquet")
    dataset = ray.data.read_parquet(str(tmp_path))
    answers = explain_dataset(
        explainer, dataset, n_workers=n_workers, batch_rows=150, keep=["customer"], rows_done=done
    )
    answers = answers.materialize()
    assert done.value == 1200
    assert as_bytes(gathered(answers)) == as_bytes(expected)
    assert "1200" in answers.stats()  # Ray's own account of the progress


def test_what_cannot_work_is_said_before_any_work(explainer: Explainer, rows: pa.Table) -> None:
    from treefocus.scale.ray import explain_dataset

    for table, text in (
        (rows.drop_columns(["income"]), "The input lacks the columns income"),
        (rows.set_column(rows.column_names.index("income"), "income", [["x"] * 1200]), "'income' must be of numbers"),
    ):
        with pytest.raises(InvalidInput, match=text):
            explain_dataset(explainer, ray.data.from_arrow(table), n_workers=1)
    with pytest.raises(InvalidInput, match=r"n_workers must be a number above 0, or the fewest and the most"):
        explain_dataset(explainer, ray.data.from_arrow(rows), n_workers=0)


def test_columns_of_other_types(explainer: Explainer) -> None:
    from treefocus.scale.ray import explain_dataset

    rows = odd_rows(300)
    coded = rows.set_column(0, "customer", rows["customer"].dictionary_encode())
    pieces = [coded.slice(start, 100).combine_chunks() for start in (0, 100, 200)]
    answers = explain_dataset(explainer, ray.data.from_arrow(pieces), n_workers=1, batch_rows=70, keep=["customer"])
    found = [repr(one) for one in gathered(answers.materialize()).to_pylist()]
    assert found == [repr(one) for one in answers_of_one_process(explainer, rows).to_pylist()]


def test_a_killed_worker_costs_nothing_but_time(
    explainer: Explainer, rows: pa.Table, expected: pa.Table, tmp_path: Path
) -> None:
    from treefocus.scale.ray import map_task

    fatal = FatalOnce.task(explainer, tmp_path / "killed")
    dataset = ray.data.from_arrow([rows.slice(start, 200) for start in range(0, 1200, 200)])
    answers = map_task(fatal, dataset, n_workers=2, batch_rows=100)
    assert as_bytes(gathered(answers)) == as_bytes(expected)
    assert (tmp_path / "killed").exists()
