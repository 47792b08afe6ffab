"""`explain_batches`: Arrow record batches in, Arrow record batches out. Files, Ray and Spark all come through here.

Batches are explained by a few threads at a time, so that the Python around the kernels of one batch overlaps with the
kernels of another, and handed on in order. A row's answer hangs on nothing but the row: not on its batch, not on the
threads, and, unless a time limit is asked for, not on the clock.
"""

from __future__ import annotations

import copy
import json
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.options import check
from treefocus.problem.targets import put
from treefocus.problem.tolerance import Tolerance, as_tolerance
from treefocus.scale.answers import answer_batch, answer_schema
from treefocus.schema.dates import Counting
from treefocus.search import Auto, Status, Strategy, as_strategy
from treefocus.tables.arrow import floats_of, holds_dates, holds_numbers, numbers_of_dates
from treefocus.tables.columns import check_columns
from treefocus.tables.text import shown

NODE_LIMIT = 20_000  # boxes a row where no time limit is asked for; a proof that needs more ends in a bound
BEYOND = 2.0**63  # whole numbers that a column of answers does not hold
CERTIFICATE, PLAIN, WITH_PROOF = "certificate", "plain", "with proof"  # a column, and how certificates are asked for
MOST_WORKERS = 4  # batches explained at once: more would only wait for the interpreter


class Stopped(Exception):  # noqa: N818
    """Raised inside a search that is no longer wanted."""


@dataclass(frozen=True)
class Rows:
    """A record batch, and what is wrong with those of its rows that could not be read."""

    batch: pa.RecordBatch
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked of every row; small to pickle, so that it can travel to workers."""

    explainer: Explainer
    keep: tuple[str, ...]  # columns of the input that the answers carry along
    target: Any
    strategy: Strategy
    time_limit: float | None
    n_jobs: int | None
    seed: int
    certificates: str = ""  # `PLAIN` or `WITH_PROOF`: the answers have a column of them, as JSON
    made_at: str | None = None  # what these say of the time
    hold: float | None = None
    tolerance: Tolerance | None = None

    @classmethod
    def of(
        cls,
        explainer: Explainer,
        *,
        keep: Sequence[str] = (),
        target: Any = None,
        strategy: str | Strategy = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
        hold: float | None = None,
        tolerance: Tolerance | float | str | None = None,
    ) -> Task:
        """The task with these options of `explain_batches`; misuse is reported here, not by a worker."""
        if isinstance(target, np.ndarray | list | tuple | pa.Array | pa.ChunkedArray):
            reject("target", "the same for all batches: a class, Probability, Interval, Score or None", repr(target))
        put(target, explainer.forest, 0)
        kernels.n_threads(n_jobs)
        if isinstance(strategy, str) and strategy == "auto" and time_limit is None:
            strategy = Auto(time_limit=None, node_limit=NODE_LIMIT)  # the same answers on every machine
        check(hold=hold)
        if hold is not None:
            explainer.prepare(target, hold)  # here, once, and not by every worker
        alone = copy.copy(explainer)  # which leaves the source model behind
        room = as_tolerance(tolerance)
        return cls(
            alone, tuple(keep), target, as_strategy(strategy), time_limit, n_jobs, seed, hold=hold, tolerance=room
        )

    def features(self, source: pa.Schema) -> list[str]:
        """The columns of the input that the model reads, in its order; the input is checked."""
        known = self.explainer.column_names
        others = [name for name in source.names if name not in self.keep]
        features = others if known is None else list(known)
        check_columns("The input", source.names, (*features, *self.keep), may_have_others=True)
        doubled = [name for name in (*features, *self.keep) if source.names.count(name) > 1]
        if doubled:
            raise InvalidInput(f"The input has more than one column named {', '.join(dict.fromkeys(doubled))}.")
        known_labels = self.explainer.column_labels
        if len(features) != len(known_labels):
            reject("The input", f"{len(known_labels)} columns wide", len(features))
        for name, labels in zip(features, known_labels, strict=True):
            kind, wanted = source.field(name).type, "of numbers"
            if labels is None and self._counting(name) is not None:
                is_readable, wanted = holds_numbers(kind) or holds_dates(kind), "of dates or numbers"
            else:
                is_readable = labels is not None or holds_numbers(kind)
            if not is_readable:
                reject(f"Column {name!r}", wanted, kind)
        return features

    def _counting(self, name: str) -> Counting | None:
        """How a column's dates are counted, None where it holds none."""
        schema = self.explainer.schema
        return schema[name].counting if name in schema else None

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The answers' schema for input of this schema."""
        self.features(source)
        schema = answer_schema(self.explainer, [source.field(name) for name in self.keep], self.target)
        return schema.append(pa.field(CERTIFICATE, pa.string())) if self.certificates else schema

    def answer(self, rows: Rows, stop: threading.Event | None = None) -> pa.RecordBatch:
        """The answers to one batch; given up when `stop` is set."""
        batch = rows.batch
        kept = [batch.column(name) for name in self.keep]
        schema = self.schema(batch.schema)
        found, beyond = self.explained(batch, stop)
        if not self.certificates:
            return answer_batch(found, schema, kept, beyond | dict(rows.reasons))
        answers = answer_batch(found, schema.remove(len(schema) - 1), kept, beyond | dict(rows.reasons))
        return answers.append_column(schema.field(CERTIFICATE), pa.array(self._certificates(found), pa.string()))

    def explained(
        self, batch: pa.RecordBatch, stop: threading.Event | None = None
    ) -> tuple[Explanations, dict[int, str]]:
        """The explanations of one batch, and why rows cannot be answered that hold too large numbers."""

        def heed(_: int) -> None:
            if stop is not None and stop.is_set():
                raise Stopped

        table, beyond = self._table(batch)
        found = self.explainer.explain(
            table,
            target=self.target,
            strategy=self.strategy,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            progress=heed,
            seed=self.seed,
            hold=self.hold,
            tolerance=self.tolerance,
        )
        return found, beyond

    def _certificates(self, found: Explanations) -> list[str | None]:
        """One a row that the model can read."""
        proof = self.certificates == WITH_PROOF
        return [
            None if one.status is Status.INVALID else json.dumps(one.certificate(proof, time=self.made_at))
            for one in found
        ]

    def _table(self, batch: pa.RecordBatch) -> tuple[pa.Table, dict[int, str]]:
        """The model's columns, and why rows cannot be answered that hold numbers beyond those of the answers."""
        features = self.features(batch.schema)
        columns = [batch.column(name) for name in features]
        reasons: dict[int, str] = {}
        whole = dict(zip(self.explainer.schema.names, self.explainer.whole_columns, strict=True))
        for j, name in enumerate(self.explainer.column_names or self.explainer.schema.names):
            kind, counting = columns[j].type, self._counting(name)
            if counting is not None and not holds_numbers(kind):
                values, wrong = numbers_of_dates(columns[j], counting)
                reasons |= {i: f"column {name!r}: {shown(text)} is not a date" for i, text in wrong.items()}
                columns[j] = pa.array(values, from_pandas=True)
                continue
            if not whole.get(name) or not holds_numbers(kind) or pa.types.is_boolean(kind):
                continue
            values = floats_of(columns[j]).copy()  # what came in stays as it is
            beyond = np.flatnonzero(np.isfinite(values) & (np.abs(values) >= BEYOND))
            if beyond.size:
                reasons |= {int(i): f"{name} = {values[i]:g} is beyond the whole numbers of 64 bits" for i in beyond}
                values[beyond] = np.inf  # which no model reads
                columns[j] = pa.array(values, from_pandas=True)
        return pa.table(columns, names=list(self.explainer.column_names or self.explainer.schema.names)), reasons


def explain_batches(
    explainer: Explainer,
    batches: Iterable[pa.RecordBatch],
    *,
    keep: Sequence[str] = (),
    target: Any = None,
    strategy: str | Strategy = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    hold: float | None = None,
    tolerance: Tolerance | float | str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Explain record batches, one after the other; each gives a record batch of answers, a line a row, in order.

    The batches have the model's columns, in any order and among others. keep: columns to carry along, such as a
    customer's number. target: None for any other class, a class, or Probability, Interval or Score. Without
    `time_limit` the default strategy counts boxes (`NODE_LIMIT` a row) instead of seconds, so that the answers are the
    same on every machine. Answers are checked on the forest, not on the source model, which need not be there.
    """
    task = Task.of(
        explainer,
        keep=keep,
        target=target,
        strategy=strategy,
        time_limit=time_limit,
        n_jobs=n_jobs,
        seed=seed,
        hold=hold,
        tolerance=tolerance,
    )
    return answered(task, (Rows(batch) for batch in batches))


def answered(task: Task, batches: Iterable[Rows]) -> Generator[pa.RecordBatch, None, None]:
    """The answers to each batch, in order, computed ahead by a few threads."""
    task = replace(task, n_jobs=kernels.n_threads(task.n_jobs))  # as this thread is allowed, not the workers
    n_workers = min(kernels.n_threads(task.n_jobs), MOST_WORKERS)
    if n_workers == 1 or task.time_limit is not None:  # two batches at once would share the time of each row
        for rows in batches:
            yield task.answer(rows)
        return
    kernels.compiled(task.explainer.forest)  # once, before the threads want it
    stop = threading.Event()
    waiting: deque[Future[pa.RecordBatch]] = deque()
    workers = ThreadPoolExecutor(n_workers, thread_name_prefix="treefocus")
    try:
        for rows in batches:
            waiting.append(workers.submit(task.answer, rows, stop))
            if len(waiting) > n_workers + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also when the consumer leaves, or Ctrl-C comes
        stop.set()
        workers.shutdown(wait=False, cancel_futures=True)
