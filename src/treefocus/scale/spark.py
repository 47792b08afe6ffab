"""Spark: `explain_frame` maps `explain_batches` over a DataFrame with `mapInArrow`; the explainer is broadcast.

Spark does the rest: it spreads the partitions, repeats those whose worker is lost, and shows the stages. The answers
are those of one process, each partition's in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types

from treefocus.explainer import Explainer
from treefocus.scale.answers import answer_schema
from treefocus.scale.batches import Rows, Task, answered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN: dict[pa.DataType, types.DataType] = {
    pa.string(): types.StringType(), pa.float64(): types.DoubleType(), pa.int64(): types.LongType(),
    pa.bool_(): types.BooleanType(),
}  # fmt: skip


def explain_frame(
    explainer: Explainer,
    frame: DataFrame,
    *,
    threads_per_task: int = 1,
    keep: Sequence[str] = (),
    rows_done: Any = None,
    **options: Any,
) -> DataFrame:
    """The DataFrame of the answers, computed when it is asked for; options as in `explain_batches`.

    threads_per_task: as many as `spark.task.cpus`. rows_done: an accumulator, `spark.sparkContext.accumulator(0)`,
    that hears how many rows are answered; work that Spark repeats counts again.
    """
    return map_task(Task.of(explainer, keep=keep, n_jobs=threads_per_task, **options), frame, rows_done)


def map_task(task: Task, frame: DataFrame, rows_done: Any = None) -> DataFrame:
    """The same for a task that is made already."""
    shared = frame.sparkSession.sparkContext.broadcast(task)
    return frame.mapInArrow(_answering(shared, rows_done), spark_schema(task, frame.schema))


def spark_schema(task: Task, source: types.StructType) -> types.StructType:
    """The answers' schema in Spark's words, for a DataFrame of that schema."""
    kept = [source[name] for name in task.keep]
    own = answer_schema(task.explainer)
    return types.StructType([*kept, *(types.StructField(field.name, _type(field.type)) for field in own)])


def _answering(shared: Any, rows_done: Any) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in answered(shared.value, (Rows(batch) for batch in batches if batch.num_rows)):
            if rows_done is not None:
                rows_done.add(batch.num_rows)
            yield batch

    return answer


def _type(kind: pa.DataType) -> types.DataType:
    if pa.types.is_list(kind):
        return types.ArrayType(_type(kind.value_type))
    if pa.types.is_struct(kind):
        return types.StructType([types.StructField(field.name, _type(field.type)) for field in kind])
    return _PLAIN[kind]
