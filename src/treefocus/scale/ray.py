"""Ray Data: `explain_dataset` maps `explain_batches` over a dataset, on actors that load the explainer once each.

Ray does the rest: it spreads the batches, starts a lost actor again and repeats what it had in hand, and shows the
progress. The answers are those of one process; `DataContext.execution_options.preserve_order` keeps their order too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import ray

from treefocus.explainer import Explainer
from treefocus.scale.batches import Rows, Task

BATCH_ROWS = 4096


def explain_dataset(
    explainer: Explainer,
    dataset: ray.data.Dataset,
    *,
    n_workers: int | tuple[int, int],
    threads_per_worker: int = 1,
    batch_rows: int = BATCH_ROWS,
    keep: Sequence[str] = (),
    **options: Any,
) -> ray.data.Dataset:
    """The dataset of the answers, computed when it is read; options as in `explain_batches`.

    n_workers: how many actors, or the fewest and the most; each takes `threads_per_worker` CPUs.
    """
    task = Task.of(explainer, keep=keep, n_jobs=threads_per_worker, **options)
    return map_task(task, dataset, n_workers=n_workers, batch_rows=batch_rows)


def map_task(
    task: Task, dataset: ray.data.Dataset, *, n_workers: int | tuple[int, int], batch_rows: int = BATCH_ROWS
) -> ray.data.Dataset:
    """The same for a task that is made already."""
    return dataset.map_batches(
        Answering,
        fn_constructor_args=(ray.put(task),),
        batch_format="pyarrow",
        batch_size=batch_rows,
        concurrency=n_workers,
        num_cpus=task.n_jobs,
    )


class Answering:
    """One actor: it fetches the task when it starts and answers batches with it."""

    def __init__(self, task: Any) -> None:
        self.task: Task = ray.get(task)

    def __call__(self, table: pa.Table) -> pa.Table:
        """The answers to one batch."""
        if table.num_rows == 0:
            return self.task.schema(table.schema).empty_table()
        (batch,) = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self.task.answer(Rows(batch))])
