"""Answers like the data: how many are proven under a limit, and what that costs beside the question without one.

    python benchmarks/plausibility.py FOLDER                               both measures, German, COMPAS and loans
    python benchmarks/plausibility.py FOLDER --measures lof --limits 1.2 2 --rows 20 --tables german

FOLDER (or TREEFOCUS_BENCH) has the tables that benchmarks/holds.py reads; people with the unwanted class are asked for
the other one, Manhattan, one core, the default budget of work. Models: `rf4`, 100 trees of depth 4, and `xgb`, XGBoost
by its defaults. `lof` is `LocalOutlierFactor(limit=)`; `isolation` is `IsolationScore(limit=)` with the score that nine
in ten training rows obey. *Broken* is the share of plain answers that break the limit, *proven* of all rows under it;
*gap* is the mean of rows with an answer that are not. Seconds of the processor are of all rows, without the limit and
with it; tables that depend on the model and the data alone are made before.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

from holds import Case, case_of
from treefocus import IsolationScore, LocalOutlierFactor, loans

HEAD = (
    f"{'table':8} {'model':5} {'measure':22} {'rows':>4} {'broken':>6} {'proven':>6} {'none':>5} {'gap':>6} "
    f"{'longer':>6} {'s without':>9} {'s with':>7} {'times':>6}"
)


def measures_of(names: list[str], limits: list[float], case: Case) -> list[Any]:
    """The limits that are asked for."""
    found: list[Any] = [LocalOutlierFactor(limit=limit) for limit in limits] if "lof" in names else []
    if "isolation" in names:
        plain = case.explainer(distance="manhattan")
        problem = plain.explain(case.people[:1], case.wanted)[0].problem
        score = IsolationScore().score(problem, problem.examples.rows)
        found.append(IsolationScore(limit=round(float(np.quantile(score, 0.9)), 3)))
    return found


def line_of(case: Case, measure: Any, own: dict[str, Any]) -> str:
    """A question with a limit beside the same without."""
    plain = case.explainer(distance="manhattan", **own)
    limited = case.explainer(distance="manhattan", plausibility=measure, **own)
    spent, found = [], []
    for explainer in (plain, limited):
        explainer.explain(case.people[:1], case.wanted, n_jobs=1)
        began = time.process_time()
        found.append(explainer.explain(case.people, case.wanted, n_jobs=1))
        spent.append(time.process_time() - began)
    free, like = found
    has_both = free.has_answer & like.has_answer
    score = measure.score(free[0].problem, free.points[free.has_answer])
    names = [status.name for status in like.status]
    is_proven = np.array([name in ("OPTIMAL", "INFEASIBLE") for name in names])
    is_open = like.has_answer & ~is_proven
    gap = float(like.gap[is_open].mean()) if is_open.any() else 0.0
    longer = float(np.mean(like.distance[has_both]) / np.mean(free.distance[has_both]))
    told = f"{type(measure).__name__[:9]} {measure.limit:g}"
    return (
        f"{told:22} {len(names):4} {np.mean(score > measure.limit):6.0%} {is_proven.mean():6.0%} "
        f"{names.count('NOT_FOUND'):5} {gap:6.3f} {longer:6.2f} {spent[0]:9.2f} {spent[1]:7.2f} "
        f"{spent[1] / spent[0]:6.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("TREEFOCUS_BENCH"))
    parser.add_argument("--tables", nargs="+", default=["german", "compas", "loans"])
    parser.add_argument("--models", nargs="+", default=["rf4", "xgb"])
    parser.add_argument("--measures", nargs="+", choices=["lof", "isolation"], default=["lof", "isolation"])
    parser.add_argument("--limits", nargs="+", type=float, default=[1.5], help="of the local outlier factor")
    parser.add_argument("--rows", type=int, default=50)
    chosen = parser.parse_args()
    print(HEAD, flush=True)
    for table in chosen.tables:
        for kind in chosen.models:
            case = case_of(table, kind, chosen.folder, chosen.rows)
            own: dict[str, Any] = {"schema": loans.SCHEMA} if table == "loans" else {}
            for measure in measures_of(chosen.measures, chosen.limits, case):
                print(f"{table:8} {kind:5} {line_of(case, measure, own)}", flush=True)


if __name__ == "__main__":
    main()
