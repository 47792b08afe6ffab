"""Many rows through one Explainer: how many a second of one core, and where the time goes.

    TREEFOCUS_PAPER=... python benchmarks/throughput.py                     XGBoost 100 x 3 on HELOC
    TREEFOCUS_PAPER=... python benchmarks/throughput.py --rows 1900 --seeds the same, and what other seeds would cost

Seconds of the processor, one thread. `one call` is `explain` of all rows, `one by one` a call a row, `batches` is
`explain_batches` with 256 rows each. With --seeds a short search starts from different first answers: none, the
nearest training rows, a descent, a descent polished, answers to 300 training rows, and the answers themselves, which no
seed can beat.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from xgboost import XGBClassifier

import paper
from treefocus import Explainer, Explanations, kernels
from treefocus.model.forest import Floats
from treefocus.problem.problem import Examples, Problem
from treefocus.scale.batches import explain_batches
from treefocus.search.auto import FIRST_SEED
from treefocus.search.base import Incumbent, Run
from treefocus.search.examples import nearest_examples
from treefocus.search.limits import WORK, SearchLimits
from treefocus.search.polish import polished
from treefocus.search.proven import proven

BATCH = 256  # rows
KNOWN = 300  # training rows whose answers are seeds
CORE = ("exact", "polish", "descend", "nearest", "predict")


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came of them."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def batches(explainer: Explainer, rows: Floats) -> list[pa.RecordBatch]:
    """The rows as record batches."""
    names = explainer.schema.names
    table = pa.table({name: rows[:, j] for j, name in enumerate(names)})
    return table.to_batches(max_chunksize=BATCH)


def by_seed(problem: Problem, explainer: Explainer, data: Floats, found: Explanations) -> None:
    """A short search from several first answers."""
    run, n_rows = Run(n_jobs=1), len(problem)
    nothing = np.full_like(problem.batch.rows, np.nan)

    def trained(examples: Examples | None) -> Floats:
        points, is_start = nearest_examples(replace(problem, examples=examples), run)
        return np.where(is_start[:, None], points, np.nan)

    known = explainer.explain(data[:: len(data) // KNOWN], n_jobs=1).points
    answers = Examples.of(problem.forest, known[~np.isnan(known).all(axis=1)])
    seeds: dict[str, Callable[[], Floats]] = {
        "none": lambda: nothing,
        "training rows": lambda: polished(problem, trained(problem.examples), run, with_trades=False),
        f"answers to {KNOWN} rows": lambda: polished(problem, trained(answers), run, with_trades=False),
        "descent": lambda: polished(problem, FIRST_SEED[0].descended(problem, run), run, with_trades=False),
        "descent, all of polish": lambda: polished(problem, FIRST_SEED[0].descended(problem, run), run),
        "the answers": lambda: found.points,
    }
    limits = SearchLimits(None, None, 1e9, WORK)
    for name, make in seeds.items():
        incumbent = Incumbent(problem)
        before, points = seconds_of(make)
        incumbent.offer(points)
        share = np.mean(incumbent.distance <= found.distance + 1e-12)
        after, outcome = seconds_of(partial(proven, problem, incumbent, run, limits, None, kernels.SHORT_TRY))
        print(
            f"{name:24} {1e3 * before / n_rows:6.3f} ms a row, {share:4.0%} the closest; then "
            f"{1e3 * after / n_rows:6.3f} ms, {outcome.is_settled.mean():4.0%} settled",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--turns", type=int, default=3, help="of which the quickest counts")
    parser.add_argument("--seeds", action="store_true")
    asked = parser.parse_args()
    data, labels = paper.table("heloc", "train")
    rows = paper.table("heloc", "test")[0][: asked.rows]
    model = XGBClassifier(n_estimators=100, max_depth=3, random_state=0, n_jobs=1).fit(data, np.maximum(labels, 0))
    explainer = Explainer(model, data)
    explainer.explain(rows[:2], n_jobs=1)
    ways: dict[str, Callable[[], Any]] = {
        "one call": lambda: explainer.explain(rows, n_jobs=1),
        "batches": lambda: list(explain_batches(explainer, batches(explainer, rows), n_jobs=1)),
        "one by one": lambda: [explainer.explain(rows[i : i + 1], n_jobs=1) for i in range(len(rows))],
    }
    for name, call in ways.items():
        spent = min(seconds_of(call)[0] for _ in range(asked.turns))
        print(f"{name:12} {len(rows) / spent:7.0f} rows a second, {1e3 * spent / len(rows):.3f} ms a row", flush=True)
    found = explainer.explain(rows, n_jobs=1)
    print(found.summary()["status"])
    if asked.seeds:
        problem = found.groups[0].problem
        by_seed(problem, explainer, data, found)


if __name__ == "__main__":
    main()
