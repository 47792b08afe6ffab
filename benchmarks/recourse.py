"""Recourse on the paper's models: proofs that there is no answer, why not, prices and ways out, in seconds.

    TREEFOCUS_PAPER=... python benchmarks/recourse.py why-not   half of the features fixed, every row without an answer
    TREEFOCUS_PAPER=... python benchmarks/recourse.py ways      three ways out a row
    TREEFOCUS_PAPER=... python benchmarks/recourse.py slower    constraints against none, in one run

One core, one row after another. The fixed features are drawn with seeds 0, 1, ...; `--rows` test rows a model and draw.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import exact as forests
import paper
from treefocus import AtMost, Decreasing, Explainer, Fixed, Increasing, Linear, OneOf, Range
from treefocus.constraints.kinds import Constraint


def explainer_of(dataset: str, model: str, fixed: list[int]) -> Explainer:
    constraints = [Fixed(*fixed)] if fixed else []
    return Explainer(
        paper.forest(dataset, model),
        paper.table(dataset, "train")[0],
        scale=None,
        bounds=(0, 1),
        constraints=constraints,
    )


def why_not(n_rows: int, n_draws: int) -> None:
    every = []
    for dataset in paper.DATA:
        rows = paper.table(dataset, "test")[0][:n_rows]
        for model in paper.MODELS:
            proofs, reasons, prices, sizes, proven = [], [], [], [], 0
            for seed in range(n_draws):
                d = rows.shape[1]
                fixed = sorted(np.random.default_rng(seed).choice(d, d // 2, replace=False).tolist())
                explainer = explainer_of(dataset, model, fixed)
                for row in rows:
                    began = time.perf_counter()
                    one = explainer.explain(row[None, :], strategy="exact", n_jobs=1)[0]
                    seconds = time.perf_counter() - began
                    if one.status.name != "INFEASIBLE":
                        continue
                    began = time.perf_counter()
                    why = one.why_not(n_jobs=1)
                    reasons.append(time.perf_counter() - began)
                    proofs.append(seconds)
                    proven += why.is_proven
                    sizes.append(len(why.constraints or ()))
                    if len(prices) < 5:
                        began = time.perf_counter()
                        one.price_of_constraints(n_jobs=1)
                        prices.append(time.perf_counter() - began)
            every += [a + b for a, b in zip(proofs, reasons, strict=True)]
            if proofs:
                print(
                    f"{dataset:9}{model:3} {len(proofs):4} rows without answer  proof {1e3 * np.median(proofs):6.2f} ms"
                    f"  why not {1e3 * np.median(reasons):7.2f} ms (most {1e3 * max(reasons):.0f})  proven {proven}"
                    f"  sizes {np.bincount(sizes).tolist()}  prices {1e3 * np.median(prices):.1f} ms",
                    flush=True,
                )
    print(
        f"{len(every)} rows: proof and why not {1e3 * np.median(every):.2f} ms median, {1e3 * max(every):.0f} at most"
    )


def ways(n_rows: int, n_draws: int) -> None:
    del n_draws
    for dataset in paper.DATA:
        rows = paper.table(dataset, "test")[0][:n_rows]
        for model in paper.MODELS:
            explainer = explainer_of(dataset, model, [])
            seconds, proven, count = [], 0, 0
            for row in rows:
                began = time.perf_counter()
                one = explainer.explain(row[None, :], n=3, n_jobs=1)[0]
                seconds.append(time.perf_counter() - began)
                count += len(one.ways)
                proven += sum(way.status.name == "OPTIMAL" for way in one.ways)
            print(
                f"{dataset:9}{model:3} {len(rows):4} rows  {count} ways, {proven} proven  "
                f"median {1e3 * np.median(seconds):.1f} ms  most {1e3 * max(seconds):.0f} ms",
                flush=True,
            )


def slower(n_rows: int, n_draws: int) -> None:
    del n_draws
    for dataset, model in (("heloc", "rf 100 x 4"), ("wine", "gb 100 x 3"), ("heloc", "gb 100 x 3")):
        train, labels = paper.table(dataset, "train")
        rows = paper.table(dataset, "test")[0][:n_rows]
        fitted = forests.MODELS[model]().fit(train, labels)
        d = train.shape[1]
        cases: dict[str, list[Constraint]] = {
            "none": [],
            "a third fixed": [Fixed(*range(0, d, 3))],
            "half one way": [Increasing(*range(0, d, 4)), Decreasing(*range(1, d, 4))],
            "ranges": [Range(f, -0.3, 0.3, relative=True) for f in range(d)],
            "lists": [OneOf(f, np.round(np.linspace(0, 1, 21), 2)) for f in range(0, d, 3)],
            "at most 2": [AtMost(2)],
            "linear": [Linear({0: 1.0, 1: -1.0}, at_most=float(np.median(train[:, 0] - train[:, 1])))],
        }
        plain = np.nan
        for name, constraints in cases.items():
            explainer = Explainer(
                fitted, train, scale=None, bounds=(0, 1), distance="manhattan", constraints=constraints
            )
            seconds, settled = [], 0
            for row in rows:
                began = time.perf_counter()
                one = explainer.explain(row[None, :], n_jobs=1, time_limit=10.0)[0]
                seconds.append(time.perf_counter() - began)
                settled += one.status.name in ("OPTIMAL", "INFEASIBLE")
            median = float(np.median(seconds))
            plain = median if name == "none" else plain
            print(
                f"{dataset:6}{model:11} {name:14} median {1e3 * median:7.1f} ms, {median / plain:5.2f} of none, "
                f"settled {settled} of {len(rows)}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {"why-not": why_not, "ways": ways, "slower": slower}
    parser.add_argument("section", choices=sections)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--draws", type=int, default=3)
    chosen = parser.parse_args()
    sections[chosen.section](chosen.rows, chosen.draws)


if __name__ == "__main__":
    main()
