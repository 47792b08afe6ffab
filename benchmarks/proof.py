"""Proofs of the paper's models: written down, checked, weighed and timed.

    TREEFOCUS_PAPER=... python benchmarks/proof.py              60 test rows of each of the 12 models, evenly spread
    TREEFOCUS_PAPER=... python benchmarks/proof.py --rows 0     every test row
    TREEFOCUS_PAPER=... python benchmarks/proof.py --model rf

Every proof is held against treefocus/check.py. Prints, per model and distance, how many proofs were accepted, the bytes
of a certificate (gzip), and the seconds of search, recording and check, one row after another on one core.
The exit code is 1 if a proof is rejected, or if an optimum has none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import Counter

import numpy as np

import paper
from treefocus.check import ACCEPTED, judge

NAMES = ("accepted", "rejected", "misuse", "not proven")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60, help="of each model; 0 for all")
    parser.add_argument("--dataset", nargs="+", default=list(paper.DATA))
    parser.add_argument("--model", nargs="+", default=list(paper.MODELS))
    parser.add_argument("--distance", nargs="+", default=["manhattan", "euclidean"])
    chosen = parser.parse_args()
    total: Counter[str] = Counter()
    print("model, distance | proofs | bytes: median, most | search s: median, sum | record s | check s: median, most")
    for dataset in chosen.dataset:
        rows, _ = paper.table(dataset, "test")
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, chosen.rows or len(rows)).round().astype(int))]
        for model in chosen.model:
            for distance in chosen.distance:
                total += measured(dataset, model, distance, rows)
    print(", ".join(f"{total[name]} {name}" for name in NAMES if total[name]))
    return int(total["accepted"] < sum(total.values()))


def measured(dataset: str, model: str, distance: str, rows: np.ndarray) -> Counter[str]:
    """The verdicts on one model's rows, with a line of what they took."""
    explainer = paper.explainer(paper.forest(dataset, model), dataset, distance)
    file = json.loads(json.dumps(explainer.forest.to_record()))
    verdicts: Counter[str] = Counter()
    taken = []
    for i in range(len(rows)):
        began = time.perf_counter()
        found = explainer.explain(rows[i : i + 1], n_jobs=1)
        searched = time.perf_counter()
        text = json.dumps(found[0].certificate(proof=True))
        recorded = time.perf_counter()
        code, sentences = judge(json.loads(text), file)
        taken.append(
            (len(gzip.compress(text.encode())), searched - began, recorded - searched, time.perf_counter() - recorded)
        )
        verdicts[NAMES[code]] += 1
        if code != ACCEPTED:
            print(f"  {dataset} {model} {distance} row {i}, {found[0].status.name}: {sentences[0]}")
    size, search, record, check = np.array(taken).T
    print(
        f"{dataset} {model}, {distance} | {verdicts['accepted']} of {len(rows)} "
        f"| {np.median(size):.0f}, {size.max():.0f} "
        f"| {np.median(search):.4f}, {search.sum():.2f} | {np.median(record):.4f}, {record.sum():.2f} "
        f"| {np.median(check):.3f}, {check.max():.2f}",
        flush=True,
    )
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
