"""Deep forests and many classes: how much is proven of each row, for the same work or the same seconds.

    TREEFOCUS_PAPER=... python benchmarks/deep.py                      every model, few rows, the default work
    TREEFOCUS_PAPER=... python benchmarks/deep.py cancer --work 10     one model, ten times the work
    TREEFOCUS_PAPER=... python benchmarks/deep.py heloc --seconds 1    by the clock
    python benchmarks/deep.py cancer --strategy close                  the quick answer alone

One core, one row after another, rows of the test part. gap = 1 - lower_bound / distance. Times are of the processor, so
that other programs matter little; a limit by the clock is still the clock's.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

import paper
from treefocus import Auto, Explainer

Table = tuple[np.ndarray, np.ndarray, np.ndarray]  # training rows, their labels, test rows


@functools.cache
def of_paper(name: str) -> Table:
    rows, labels = paper.table(name, "train")
    return rows, np.maximum(labels, 0), paper.table(name, "test")[0]


@functools.cache
def parted(name: str) -> Table:
    loaders = {
        "cancer": lambda: load_breast_cancer(return_X_y=True),
        "digits": lambda: load_digits(return_X_y=True),
        "fifty": lambda: make_classification(2000, 50, n_informative=20, random_state=0),
    }
    train, test, labels, _ = train_test_split(*loaders[name](), test_size=0.3, random_state=0)
    return train, labels, test


def _catboost() -> object:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=300, verbose=False, random_seed=0, thread_count=1, allow_writing_files=False)


def _lightgbm() -> object:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=1000, num_leaves=63, random_state=0, n_jobs=1, verbose=-1)


def _xgboost() -> object:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=0, n_jobs=1)


def forest(**settings: object) -> Callable[[], object]:
    return lambda: RandomForestClassifier(random_state=0, **settings)


MODELS: dict[str, tuple[Callable[[], Table], Callable[[], object]]] = {
    "cancer": (lambda: parted("cancer"), forest()),
    "heloc": (lambda: of_paper("heloc"), forest()),
    "wine": (lambda: of_paper("wine"), forest()),
    "shopping": (lambda: of_paper("shopping"), forest()),
    "digits": (lambda: parted("digits"), forest()),
    "catboost": (lambda: parted("cancer"), _catboost),
    "extra": (lambda: of_paper("heloc"), lambda: ExtraTreesClassifier(random_state=0)),
    "lightgbm": (lambda: of_paper("heloc"), _lightgbm),
    "fifty": (lambda: parted("fifty"), _xgboost),
    "heloc8": (lambda: of_paper("heloc"), forest(max_depth=8)),
}


def measure(name: str, distance: str, n_rows: int, strategy: Auto) -> None:
    load, make = MODELS[name]
    train, labels, test = load()
    explainer = Explainer(make().fit(train, labels), train, distance=distance)
    began, wall = time.process_time(), time.perf_counter()
    each = [explainer.explain(row[None, :], strategy=strategy, n_jobs=1) for row in test[:n_rows]]
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    gap = np.array([found.gap[0] for found in each])
    proven = np.mean([found.status[0].name == "OPTIMAL" for found in each])
    mean = np.nanmean([found.distance[0] for found in each])
    print(
        f"{name:9} {distance:10} {len(each):3} rows  proven {proven:4.0%}  mean gap {np.nanmean(gap):.3f}  most "
        f"{np.nanmax(gap):.3f}  mean distance {mean:.4f}  {seconds / len(each):6.2f} s of processor a row, "
        f"{wall / len(each):6.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--work", type=float, default=None, help="times the default")
    parser.add_argument("--distance", choices=("manhattan", "euclidean"), default=None)
    parser.add_argument("--strategy", choices=("auto", "close"), default="auto")
    chosen = parser.parse_args()
    strategy = Auto(prove=chosen.strategy == "auto")
    if chosen.seconds is not None:
        strategy = replace(strategy, time_limit=chosen.seconds)
    if chosen.work is not None:
        strategy = replace(strategy, work_limit=chosen.work * Auto().work_limit)
    for name in chosen.models or MODELS:
        for distance in (chosen.distance,) if chosen.distance else ("manhattan", "euclidean"):
            measure(name, distance, chosen.rows, strategy)


if __name__ == "__main__":
    main()
