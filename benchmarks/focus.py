"""FOCUS: the 36 settings of the paper's table 1, their time, and the ratio to the NumPy twin in the same run.

    TREEFOCUS_PAPER=... python benchmarks/focus.py [--threads N] [--only heloc-ab]

Prints, per setting: published mean, mean with the authors' quirks, mean as the paper is written, seconds of each for
1,000 iterations over all test rows; then totals, peak memory, import time and the ratio to the twin.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import paper
from treefocus import Focus, Mahalanobis
from treefocus.kernels import hard_scores, reference
from treefocus.problem.question import Question


def strategy(setting: dict, *, faithful: bool) -> Focus:
    common = {key: setting[key] for key in ("sigma", "beta", "alpha")} | {"retry": False, "polish": False}
    if faithful:
        tau = None if setting["model"] == "dt" else setting["tau"]
        return Focus(tau=tau, leaf="vote", soft_trees=100, batch_mean=True, normalise=False, **common)
    return Focus(tau=setting["tau"], normalise=False, **common)


def run(setting: dict, threads: int, *, faithful: bool) -> tuple[float, float, float]:
    rows, _ = paper.table(setting["dataset"], "test")
    distance = Mahalanobis(squared=True) if setting["distance"] == "mahalanobis" else setting["distance"]
    explainer = paper.explainer(paper.forest(setting["dataset"], setting["model"]), setting["dataset"], distance)
    began = time.perf_counter()
    found = explainer.explain(rows, strategy=strategy(setting, faithful=faithful), n_jobs=threads)
    return float(np.nanmean(found.distance)), float(found.has_answer.mean()), time.perf_counter() - began


def twin_ratio(setting: dict, n_rows: int = 64, iterations: int = 20) -> float:
    """How many times slower the NumPy twin is, on the same rows and iterations."""

    rows, _ = paper.table(setting["dataset"], "test")
    explainer = paper.explainer(paper.forest(setting["dataset"], setting["model"]), setting["dataset"], "euclidean")
    focus = strategy(setting | {"iterations": iterations}, faithful=True)
    problem = Question(
        explainer.forest, rows[:n_rows], space=explainer.space, distance=explainer.distance, constraints=(),
        schema=explainer.schema, grain=np.zeros(rows.shape[1], np.int8), target=None,
    ).problem()  # fmt: skip
    from treefocus import kernels
    from treefocus.kernels.inputs import Descent

    soft = focus.soft_forest(problem.forest, problem.batch)
    descent = Descent(focus.beta, focus.alpha, iterations, 1.0 / n_rows)
    seconds = []
    for descend in (
        lambda: kernels.descend(problem.forest, soft, problem.distance.compiled, descent, problem.batch, n_jobs=1),
        lambda: reference.descend(problem.forest, soft, problem.distance, descent, problem.batch),
    ):
        began = time.perf_counter()
        descend()
        seconds.append(time.perf_counter() - began)
    return seconds[1] / seconds[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a setting's name, such as heloc-ab")
    chosen = parser.parse_args()
    totals = np.zeros(2)
    for setting in paper.settings():
        name = f"{setting['dataset']}-{setting['model']}-{setting['distance']}"
        if chosen.only not in name or setting["experiment"] != 1:
            continue
        faithful = run(setting, chosen.threads, faithful=True)
        written = run(setting, chosen.threads, faithful=False)
        totals += (faithful[2], written[2])
        print(
            f"{name:24} published {setting['published']['focus_mean']:.3f}  "
            f"authors' program {faithful[0]:.4f} ({faithful[1]:.1%}, {faithful[2]:.2f} s)  "
            f"as written {written[0]:.4f} ({written[1]:.1%}, {written[2]:.2f} s)",
            flush=True,
        )
    print(f"total: {totals[0]:.1f} s with the authors' quirks, {totals[1]:.1f} s as written, {chosen.threads} threads")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    setting = next(s for s in paper.settings() if (s["dataset"], s["model"]) == ("heloc", "ab"))
    print(f"NumPy twin on HELOC AB: {twin_ratio(setting):.0f} times slower")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import treefocus"], check=True)
    print(f"a new interpreter with `import treefocus`: {time.perf_counter() - began:.2f} s")
    rows, _ = paper.table("heloc", "test")
    model = paper.forest("heloc", "ab")
    hard_scores(model, rows, 1)
    began = time.perf_counter()
    for _ in range(10):
        hard_scores(model, rows, 1)
    print(f"hard scores, HELOC AB: {10 * len(rows) / (time.perf_counter() - began):,.0f} rows/s on one core")


if __name__ == "__main__":
    main()
