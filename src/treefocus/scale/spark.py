"""Spark: `explain_frame` maps `explain_batches` over a DataFrame with `mapInArrow`.

Spark does the rest: it spreads the partitions, repeats those whose worker is lost, and shows the stages. The answers
are those of one process, each partition's in its order. The explainer is broadcast; through Spark Connect, which has no
broadcasts, it travels with the function and is unpacked once by every worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types

from treefocus.errors import reject
from treefocus.explainer import Explainer
from treefocus.scale.answers import answer_schema
from treefocus.scale.batches import Rows, Task, answered
from treefocus.tables.columns import check_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN: dict[pa.DataType, types.DataType] = {
    pa.string(): types.StringType(), pa.float64(): types.DoubleType(), pa.int64(): types.LongType(),
    pa.bool_(): types.BooleanType(), pa.date32(): types.DateType(), pa.timestamp("us"): types.TimestampNTZType(),
}  # fmt: skip
TaskOnWorker = Callable[[], Task]


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

    Parameters
    ----------
    explainer : Explainer
        Pickled without its model.
    frame : pyspark.sql.DataFrame
        Of a classic session or of Spark Connect, with the model's columns, in any order and among others. One without
        them is refused here, not by a worker.
    threads_per_task : int
        As many as `spark.task.cpus`.
    keep : sequence of str
        Columns to carry along.
    rows_done : accumulator, optional
        `spark.sparkContext.accumulator(0)`, that hears how many rows are answered; work that Spark repeats counts
        again. Spark Connect has none.
    """
    if rows_done is not None and _is_remote(frame):
        reject("rows_done", "None with Spark Connect, which has no accumulators", type(rows_done).__name__)
    return map_task(Task.of(explainer, keep=keep, n_jobs=threads_per_task, **options), frame, rows_done)


def map_task(task: Task, frame: DataFrame, rows_done: Any = None) -> DataFrame:
    """The same for a task that is made already."""
    schema = spark_schema(task, frame.schema)
    needed = list(dict.fromkeys([*task.keep, *(task.explainer.column_names or frame.columns)]))
    rows = frame.select(*(f"`{name.replace('`', '``')}`" for name in needed))
    return rows.mapInArrow(_answering(_shared(task, frame), rows_done), schema)


def spark_schema(task: Task, source: types.StructType) -> types.StructType:
    """The answers' schema in Spark's words, for a DataFrame of that schema; refuses one without the model's columns."""
    wanted = (*(task.explainer.column_names or ()), *task.keep)
    check_columns("The input", source.names, wanted, may_have_others=True)
    task.features(pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in source]))
    own = answer_schema(task.explainer, [pa.field(name, pa.null()) for name in task.keep], task.target)
    kept = [source[name] for name in task.keep]
    fields = list(own)[len(kept) :]
    return types.StructType([*kept, *(types.StructField(field.name, _type(field.type)) for field in fields)])


def _is_remote(frame: DataFrame) -> bool:
    """Whether the frame is one of Spark Connect, where there is no sparkContext."""
    return type(frame).__module__.startswith("pyspark.sql.connect")


def _shared(task: Task, frame: DataFrame) -> TaskOnWorker:
    """How a worker comes by the task."""
    if _is_remote(frame):
        packed = pickle.dumps(task)
        return lambda: _unpacked(packed)
    broadcast = frame.sparkSession.sparkContext.broadcast(task)
    return lambda: broadcast.value  # type: ignore[no-any-return,unused-ignore]


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Task:
    """The task, once a process."""
    task: Task = pickle.loads(packed)
    return task


def _answering(task: TaskOnWorker, rows_done: Any) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in answered(task(), (Rows(batch) for batch in batches if batch.num_rows)):
            if rows_done is not None:
                rows_done.add(batch.num_rows)
            yield batch

    return answer


def _arrow_type(kind: types.DataType) -> pa.DataType:
    """What a column of Spark's holds, as far as it matters whether a model can read it."""
    if isinstance(kind, types.NumericType | types.BooleanType | types.NullType):
        return pa.float64()
    if isinstance(kind, types.DateType | types.TimestampType | types.TimestampNTZType):
        return pa.timestamp("us")
    return pa.string() if isinstance(kind, types.StringType) else pa.binary()


def _type(kind: pa.DataType) -> types.DataType:
    if pa.types.is_list(kind):
        return types.ArrayType(_type(kind.value_type))
    if pa.types.is_struct(kind):
        return types.StructType([types.StructField(field.name, _type(field.type)) for field in kind])
    return _PLAIN[kind]
