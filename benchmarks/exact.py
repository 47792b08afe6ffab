"""The exact search: how much is proven, how fast, on the paper's models and on harder forests.

    TREEFOCUS_PAPER=... python benchmarks/exact.py paper      the paper's 12 models, every test row
    TREEFOCUS_PAPER=... python benchmarks/exact.py hard       scikit-learn forests on the paper's data
    TREEFOCUS_PAPER=... python benchmarks/exact.py heuristic  seeds + polish + short search, against LT-Attack's figures
    TREEFOCUS_PAPER=... python benchmarks/exact.py treecf     against treecf's exact backend, same rows, same run

One core, one row after another where times are medians, of the processor. Models: scikit-learn defaults,
random_state=0.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import paper
from treefocus import Auto, Explainer
from treefocus.explanation.batch import Explanations

MODELS: dict[str, Callable[[], object]] = {
    "rf 100 x 4": lambda: RandomForestClassifier(100, max_depth=4, random_state=0),
    "rf 100 x 8": lambda: RandomForestClassifier(100, max_depth=8, random_state=0),
    "gb 100 x 3": lambda: GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0),
    "gb 100 x 6": lambda: GradientBoostingClassifier(n_estimators=100, max_depth=6, random_state=0),
    "gb 500 x 6": lambda: GradientBoostingClassifier(n_estimators=500, max_depth=6, random_state=0),
    "ab 100 x 2": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=100, learning_rate=0.1, random_state=0
    ),
    "ab 100 x 8": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=8), n_estimators=100, learning_rate=0.1, random_state=0
    ),
}


def _xgboost() -> object:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_depth=4, random_state=0, n_jobs=1)


MODELS["xgboost 100 x 4"] = _xgboost


@functools.cache
def trained(dataset: str, model: str) -> object:
    rows, labels = paper.table(dataset, "train")
    return MODELS[model]().fit(rows, np.maximum(labels, 0) if model.startswith("xgboost") else labels)


def one_by_one(
    model: object, dataset: str, distance: str, n_rows: int, strategy: object
) -> Iterator[tuple[float, Explanations]]:
    """Seconds of the processor and answer of each of the first test rows."""
    explainer = paper.explainer(model, dataset, distance)
    rows, _ = paper.table(dataset, "test")
    for row in rows[:n_rows]:
        began = time.process_time()
        found = explainer.explain(row[None, :], strategy=strategy, n_jobs=1)
        yield time.process_time() - began, found


def report(title: str, timed: list[tuple[float, Explanations]]) -> None:
    seconds = np.array([one for one, _ in timed])
    gaps = np.array([found.gap[0] for _, found in timed])
    proven = np.mean([found.status[0].name == "OPTIMAL" for _, found in timed])
    mean = np.nanmean([found.distance[0] for _, found in timed])
    print(
        f"{title:42} {len(timed):4} rows  proven {proven:6.1%}  mean gap {np.nanmean(gaps):6.1%}  "
        f"median {np.median(seconds) * 1e3:8.1f} ms  mean {seconds.mean() * 1e3:8.1f} ms  mean distance {mean:.4f}",
        flush=True,
    )


def paper_models(n_rows: int | None) -> None:
    easy = {"dt", "ab"}
    for dataset in paper.DATA:
        rows, _ = paper.table(dataset, "test")
        for model in paper.MODELS:
            is_small = model in easy or dataset in ("shopping", "compas")
            for distance in ("manhattan", "euclidean", "mahalanobis", "cosine"):
                is_sample = distance in ("mahalanobis", "cosine") and not is_small
                chosen = rows[: min(n_rows or len(rows), 100 if is_sample else len(rows))]
                explainer = paper.explainer(paper.forest(dataset, model), dataset, distance)
                began = time.process_time()
                found = explainer.explain(chosen, strategy=Auto(time_limit=1.0 if is_sample else 30.0), n_jobs=1)
                seconds = time.process_time() - began
                proven = np.mean([status.name == "OPTIMAL" for status in found.status])
                print(
                    f"{dataset:9}{model:3} {distance:12} {len(chosen):5} rows  proven {proven:7.2%}  mean gap "
                    f"{np.nanmean(found.gap):6.2%}  {1e3 * seconds / len(chosen):8.2f} ms of processor a row  "
                    f"mean distance {np.nanmean(found.distance):.4f}",
                    flush=True,
                )


def hard_forests(n_rows: int | None) -> None:
    for dataset, model, distance, default in (
        ("heloc", "rf 100 x 4", "manhattan", 100),
        ("heloc", "rf 100 x 4", "euclidean", 100),
        ("wine", "gb 100 x 3", "manhattan", 100),
        ("wine", "gb 100 x 3", "euclidean", 100),
        ("heloc", "gb 100 x 3", "manhattan", 100),
        ("heloc", "gb 100 x 3", "euclidean", 100),
        ("wine", "rf 100 x 8", "manhattan", 12),
        ("wine", "rf 100 x 8", "euclidean", 12),
        ("heloc", "rf 100 x 8", "manhattan", 12),
        ("heloc", "rf 100 x 8", "euclidean", 12),
        ("wine", "gb 500 x 6", "manhattan", 12),
        ("heloc", "gb 500 x 6", "manhattan", 12),
    ):
        timed = list(one_by_one(trained(dataset, model), dataset, distance, n_rows or default, Auto(time_limit=10.0)))
        report(f"{dataset} {model} {distance}", timed)


# Mean distance and seconds a row of LT-Attack (20 starts) on the first 50 test rows, measured on this kind of machine.
LT_ATTACK = {
    ("heloc", "rf 100 x 4"): (0.147, 0.273),
    ("wine", "rf 100 x 4"): (0.392, 0.697),
    ("compas", "ab 100 x 2"): (0.0703, 0.0842),
    ("heloc", "ab 100 x 8"): (0.0404, 0.0661),
    ("heloc", "xgboost 100 x 4"): (0.0236, 0.0420),
}


def heuristic(n_rows: int | None) -> None:
    for (dataset, model), figures in LT_ATTACK.items():
        own = trained(dataset, model)
        for distance, figure in zip(("euclidean", "manhattan"), figures, strict=True):
            count = n_rows or 50
            rows = paper.table(dataset, "test")[0][:count]
            explainer = paper.explainer(own, dataset, distance)
            began = time.perf_counter()
            quick = explainer.explain(rows, strategy=Auto(prove=False), n_jobs=1)
            seconds = (time.perf_counter() - began) / count
            best = explainer.explain(rows, strategy=Auto(time_limit=10.0))
            flips = np.mean(own.predict(quick.counterfactuals) != own.predict(rows))
            known = np.array([status.name == "OPTIMAL" for status in best.status])
            above = quick.distance[known].mean() / best.distance[known].mean() - 1
            print(
                f"{dataset} {model} {distance:10} mean {np.nanmean(quick.distance):.4f} (LT-Attack {figure})  "
                f"{above:+.2%} above the optimum ({known.mean():.0%} known)  {seconds * 1e3:.1f} ms a row  "
                f"valid {flips:.0%}",
                flush=True,
            )


def against_treecf(n_rows: int | None) -> None:
    """treecf explains row by row. Ours: all rows in one call, and for the median each row many times in one call."""
    import treecf

    count, copies = n_rows or 30, 20
    for dataset, model in (("wine", "gb 100 x 3"), ("wine", "gb 100 x 6"), ("heloc", "gb 100 x 3")):
        own = trained(dataset, model)
        rows = paper.table(dataset, "test")[0][:count]
        peer = treecf.Explainer(own, normalizers=np.ones(rows.shape[1]))
        explainer = paper.explainer(own, dataset, "manhattan")
        explainer.explain(rows[:1], n_jobs=1)
        whole, ours = _timed(explainer, rows)
        alone = [_timed(explainer, np.repeat(row[None, :], copies, axis=0))[0] / copies for row in rows]
        seconds, proven, lost = [], 0, 0
        for row, mine in zip(rows, ours.status, strict=True):
            is_one = own.decision_function(row[None, :])[0] >= 0
            goal = treecf.Target.raw(range=(-np.inf, -1e-12) if is_one else (0.0, np.inf))
            began = time.perf_counter()
            answer = peer.explain(row, goal, backend="exact", time_budget_s=5.0)
            seconds.append(time.perf_counter() - began)
            is_proven = getattr(answer, "proof", None) == "optimal"
            proven += is_proven
            lost += is_proven and mine.name != "OPTIMAL"
        theirs, median, mean = np.median(seconds), np.median(alone), whole / count
        print(
            f"{dataset} {model}: treecf median {theirs * 1e3:.0f} ms, {proven} of {count} proven; ours median "
            f"{median * 1e3:.2f} ms, {theirs / median:.0f} times faster; all in one call {mean * 1e3:.2f} ms a row, "
            f"{theirs / mean:.0f} times faster than that median, {np.mean(seconds) / mean:.0f} than its mean; "
            f"{ours.summary()['status']}; rows only treecf proves: {lost}",
            flush=True,
        )


def _timed(explainer: Explainer, rows: np.ndarray) -> tuple[float, Explanations]:
    """Seconds on one core, with a proof or after 5 s a row."""
    began = time.perf_counter()
    found = explainer.explain(rows, strategy=Auto(time_limit=5.0), n_jobs=1)
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {"paper": paper_models, "hard": hard_forests, "heuristic": heuristic, "treecf": against_treecf}
    parser.add_argument("section", choices=sections)
    parser.add_argument("--rows", type=int, default=None)
    chosen = parser.parse_args()
    sections[chosen.section](chosen.rows)


if __name__ == "__main__":
    main()
