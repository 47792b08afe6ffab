"""Ray Data: `explain_dataset` maps `explain_batches` over a dataset, on actors that load the explainer once each.

Ray does the rest: it spreads the batches, starts a lost actor again and repeats what it had in hand, and shows the
progress. The answers are those of one process; `DataContext.execution_options.preserve_order` keeps their order too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import ray

from treefocus.errors import reject
from treefocus.explainer import Explainer
from treefocus.scale.batches import Rows, Task
from treefocus.tables.columns import check_columns

BATCH_ROWS = 4096


def explain_dataset(
    explainer: Explainer,
    dataset: ray.data.Dataset,
    *,
    n_workers: int | tuple[int, int] | None = None,
    threads_per_worker: int = 1,
    batch_rows: int = BATCH_ROWS,
    keep: Sequence[str] = (),
    rows_done: RowsDone | None = None,
    **options: Any,
) -> ray.data.Dataset:
    """The dataset of the answers, computed when it is read; options as in `explain_batches`.

    Parameters
    ----------
    explainer : Explainer
        Pickled without its model, and loaded once by every actor.
    dataset : ray.data.Dataset
        Rows with the model's columns, in any order and among others. One without them is refused here, not by a worker.
    n_workers : int, (int, int) or None
        The most actors, or the fewest and the most; as many as the cluster has room for if None. The pool grows from
        the fewest, 1 unless said, so that whatever reads the rows has CPUs too.
    threads_per_worker : int
        CPUs that each actor takes.
    batch_rows : int
        Rows that an actor answers at a time.
    keep : sequence of str
        Columns to carry along.
    rows_done : RowsDone, optional
        Hears how many rows are answered; `progress.watched` tells of it, with the time left.
    """
    task = Task.of(explainer, keep=keep, n_jobs=threads_per_worker, **options)
    return map_task(task, dataset, n_workers=n_workers, batch_rows=batch_rows, rows_done=rows_done)


def map_task(
    task: Task,
    dataset: ray.data.Dataset,
    *,
    n_workers: int | tuple[int, int] | None,
    batch_rows: int = BATCH_ROWS,
    rows_done: RowsDone | None = None,
) -> ray.data.Dataset:
    """The same for a task that is made already."""
    _check(task, dataset)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call,unused-ignore]
    cpus, threads = int(resources.get("CPU", 1)), task.n_jobs or 1
    fewest, most = _pool(n_workers, (cpus - 1) // threads)
    return dataset.map_batches(
        Answering,
        fn_constructor_args=(ray.put(task), rows_done),
        batch_format="pyarrow",
        batch_size=batch_rows,
        compute=ray.data.ActorPoolStrategy(min_size=fewest, max_size=most),
        num_cpus=min(threads, cpus - 1),  # one is left for whoever reads the rows
    )


def _pool(n_workers: int | tuple[int, int] | None, room: int) -> tuple[int, int | None]:
    """The fewest and the most actors. A pool that begins with more than there is room for would wait for ever."""
    if n_workers is None:
        return 1, None
    fewest, most = (1, n_workers) if isinstance(n_workers, int) else n_workers
    if not 1 <= fewest <= most:
        reject("n_workers", "a number above 0, or the fewest and the most", n_workers)
    return max(1, min(fewest, room)), most


def _check(task: Task, dataset: ray.data.Dataset) -> None:
    """Refuse a dataset without the columns; where Ray does not know them, its first rows are made to tell."""
    schema = dataset.schema()
    if schema is None:  # a dataset without any block
        return
    if isinstance(schema.base_schema, pa.Schema):
        task.schema(schema.base_schema)
    else:
        check_columns(
            "The input", schema.names, (*(task.explainer.column_names or ()), *task.keep), may_have_others=True
        )


class Answering:
    """One actor: it fetches the task when it starts and answers batches with it."""

    def __init__(self, task: Any, rows_done: RowsDone | None = None) -> None:
        self.task: Task = ray.get(task)
        self.rows_done = rows_done

    def __call__(self, table: pa.Table) -> pa.Table:
        """The answers to one batch."""
        if table.num_rows == 0:
            return self.task.schema(table.schema).empty_table()
        (batch,) = table.combine_chunks().to_batches()
        answers = pa.Table.from_batches([self.task.answer(Rows(batch))])
        if self.rows_done is not None:
            self.rows_done.add(len(answers))
        return answers


class RowsDone:
    """A number of rows that every worker of a cluster adds to; work that Ray repeats counts again."""

    def __init__(self) -> None:
        self._count: Any = ray.remote(num_cpus=0)(_Count).remote()

    def add(self, n_rows: int) -> None:
        """So many more, counted before the batch counts as done."""
        ray.get(self._count.add.remote(n_rows))

    @property
    def value(self) -> int:
        """All so far."""
        total: Any = ray.get(self._count.total.remote())
        return int(total)


class _Count:
    """The actor behind it."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, n_rows: int) -> None:
        self._total += n_rows

    def total(self) -> int:
        return self._total
