"""What `explain` of one row costs besides the search: the way in, the way out, and the calls between.

    python benchmarks/overhead.py                 live models, one row at a time, on all cores
    python benchmarks/overhead.py --profile tree  and where the time of one of them goes

Milliseconds of the processor, of all threads. A row is asked --rounds times and its cheapest round counts, for that is
the one that other programs have disturbed least; what is shown is the median over rows. `core` are the compiled
kernels, `predict` the source model's own answers, which `explain` asks for; `rest` is ours: what it costs to be asked.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from treefocus import Explainer, kernels

KERNELS = ("exact", "polish", "descend", "nearest", "hard_scores")
MODELS: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "rf": lambda: RandomForestClassifier(20, max_depth=3, random_state=0),
    "xgboost": lambda: XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1),
}


class Watch:
    """Adds up the processor's time of some calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, watched."""

        def watched(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return call(*given, **named)
            finally:
                self.seconds += time.process_time() - began

        return watched


def measured(explainer: Explainer, rows: np.ndarray, core: Watch, own: Watch, n_rounds: int) -> np.ndarray:
    """(n_rows, 3) seconds of each row's cheapest round: all of it, the core's, the model's."""
    best = np.full((len(rows), 3), np.inf)
    for _ in range(n_rounds):
        for i in range(len(rows)):
            core.seconds = own.seconds = 0.0
            began = time.process_time()
            explainer.explain(rows[i : i + 1])
            spent = time.process_time() - began, core.seconds, own.seconds
            if spent[0] < best[i, 0]:
                best[i] = spent
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--profile", choices=MODELS)
    asked = parser.parse_args()
    X, y = load_breast_cancer(return_X_y=True)
    rows = X[: asked.rows]
    core, own = Watch(), Watch()
    for name in KERNELS:
        setattr(kernels._core, name, core.on(getattr(kernels._core, name)))
    for name, make in MODELS.items():
        model = make().fit(X, y)
        model.predict = own.on(model.predict)
        explainer = Explainer(model, X)
        explainer.explain(rows)
        spent = 1e3 * measured(explainer, rows, core, own, asked.rounds)
        rest = spent[:, 0] - spent[:, 1] - spent[:, 2]
        whole, in_core, in_model = np.median(spent, axis=0)
        print(
            f"{name:8} all {whole:6.2f} ms a row   core {in_core:6.2f}   predict {in_model:5.2f}   "
            f"rest {np.median(rest):5.2f}",
            flush=True,
        )
        if asked.profile == name:
            profile = cProfile.Profile(time.process_time)
            profile.runcall(measured, explainer, rows, core, own, asked.rounds)
            pstats.Stats(profile).sort_stats("cumtime").print_stats(70)


if __name__ == "__main__":
    main()
