"""Adapters: the conformance list on 100,000 adversarial rows a model, loading time, and what trust costs.

    python benchmarks/adapters.py [--rows 100000] [--only xgboost] [--skip conformance]

The list is the one of tests/conformance*.py. Prints a line a model kind, task and data: rows, differing answers,
the largest difference of scores; then seconds from a model of 1,000 trees x 64 leaves to a Forest, and the cost of the
check of a live model next to an explain call.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.conformance import Case, differing, fitted, hard_rows, score_error
from support.conformance_catboost import CATBOOST
from support.conformance_lightgbm import LIGHTGBM
from support.conformance_sklearn import SKLEARN
from support.conformance_treelite import TREELITE
from support.conformance_xgboost import XGBOOST
from treefocus import Explainer
from treefocus.adapters import translate
from treefocus.adapters.trust import trusted

N_TREES, N_LEAVES, N_FEATURES = 1000, 64, 20
CASES = [*SKLEARN, *XGBOOST, *LIGHTGBM, *CATBOOST, *TREELITE]


def conformance(cases: list[Case], n_rows: int) -> int:
    print(f"{'library':13} {'model, task, data':60} {'rows':>8} {'differing':>9} {'score error':>12}")
    n_wrong = 0
    for case in cases:
        source = fitted(case)[2]
        rows = hard_rows(source, np.random.default_rng(1), n_rows)
        wrong = int(differing(source, rows).sum())
        n_wrong += wrong
        print(f"{case.library:13} {case!s:60} {n_rows:8,} {wrong:9} {score_error(source, rows):12.1e}", flush=True)
    print(f"{len(cases)} models, {len(cases) * n_rows:,} rows, {n_wrong} differing answers")
    return n_wrong


def large_models() -> dict[str, Callable[[], Any]]:
    """A model of 1,000 trees of 64 leaves from each library; two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, N_FEATURES))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)

    def sklearn(kind: str, **parameters: Any) -> Any:
        from sklearn import ensemble

        return getattr(ensemble, kind)(random_state=0, **parameters).fit(X, y)

    def xgboost() -> Any:
        from xgboost import XGBClassifier

        parameters = {"grow_policy": "lossguide", "max_leaves": N_LEAVES, "max_depth": 0, "min_child_weight": 0}
        return XGBClassifier(n_estimators=N_TREES, learning_rate=0.01, **parameters).fit(X, y)

    def lightgbm() -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=N_TREES, num_leaves=N_LEAVES, min_child_samples=1, learning_rate=0.01, verbose=-1
        ).fit(X, y)

    def catboost(**parameters: Any) -> Any:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(iterations=N_TREES, depth=6, verbose=0, allow_writing_files=False, **parameters).fit(
            X, y
        )

    def treelite() -> Any:
        import treelite as library

        return library.frontend.from_lightgbm(lightgbm().booster_)

    return {
        "scikit-learn RandomForest": lambda: sklearn(
            "RandomForestClassifier", n_estimators=N_TREES, max_leaf_nodes=N_LEAVES
        ),
        "scikit-learn HistGradientBoosting": lambda: sklearn(
            "HistGradientBoostingClassifier", max_iter=N_TREES, max_leaf_nodes=N_LEAVES, min_samples_leaf=1,
            learning_rate=0.01,
        ),
        "XGBoost": xgboost,
        "LightGBM": lightgbm,
        "CatBoost, symmetric": catboost,
        "CatBoost, leaf by leaf": lambda: catboost(grow_policy="Lossguide", max_leaves=N_LEAVES),
        "treelite": treelite,
    }  # fmt: skip


def loading() -> bool:
    print(f"\n{'library':36} {'trees':>6} {'leaves':>7} {'to a Forest, s':>15} {'CPU s':>6} {'trust, s':>9}")
    is_fast = True
    for name, build in large_models().items():
        model = build()
        translate(model)  # imports the library, once a process
        seconds, cpu = np.inf, np.inf
        for _ in range(3):
            began, began_cpu = time.perf_counter(), time.process_time()
            source = translate(model)
            seconds = min(seconds, time.perf_counter() - began)
            cpu = min(cpu, time.process_time() - began_cpu)
        trusted(source)  # derives the grid and the compiled forest, which every explain call needs anyway
        began = time.perf_counter()
        trusted(source)
        trust = time.perf_counter() - began
        is_fast &= seconds < 1.0
        forest = source.forest
        print(f"{name:36} {forest.n_trees:6} {forest.n_leaves:7} {seconds:15.3f} {cpu:6.3f} {trust:9.3f}", flush=True)
    return is_fast


def trust_next_to_explain() -> None:
    """A typical call: 100 rows, half a second each at most."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(100, random_state=0).fit(X, y)
    source = translate(model)
    trusted(source)
    began = time.perf_counter()
    trusted(source)
    trust = time.perf_counter() - began
    explainer = Explainer(model, X)
    began = time.perf_counter()
    explainer.explain(X[:100], time_limit=0.5)
    call = time.perf_counter() - began
    print(f"\ntrust, once a model: {trust:.3f} s; explain of 100 rows: {call:.2f} s; {trust / call:.1%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", default="", help="libraries whose name holds this")
    parser.add_argument("--skip", choices=["conformance", "loading"], action="append", default=[])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    n_wrong, is_fast = 0, True
    if "conformance" not in asked.skip:
        n_wrong = conformance([case for case in CASES if asked.only.lower() in case.library.lower()], asked.rows)
    if "loading" not in asked.skip:
        is_fast = loading()
        trust_next_to_explain()
    return int(n_wrong > 0 or not is_fast)


if __name__ == "__main__":
    sys.exit(main())
