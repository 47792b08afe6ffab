"""Cosine and Mahalanobis: how much is proven, how large a gap is left, and how far the answers are.

    TREEFOCUS_PAPER=... python benchmarks/coupled.py paper    the paper's ensembles on Wine, HELOC and Shopping
    python benchmarks/coupled.py loans                        the loan demo, with its constraints and schema
    python benchmarks/coupled.py wide                         a random forest of 200 x 8 on 20 columns
    python benchmarks/coupled.py whole                        small forests on three columns of nine whole numbers

One core, and the default budget of work a row, for which the load of the machine does not matter; --work has another
part of it. --seconds is the clock of a row instead, --boxes a number of boxes. CPU milliseconds are of the process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import paper
from treefocus import Auto, Explainer, Feature, Schema, loans
from treefocus.search.limits import WORK

DISTANCES = ("cosine", "mahalanobis")
Question = tuple[str, Explainer, np.ndarray]


def paper_models(distance: str, n_rows: int) -> Iterator[Question]:
    for dataset in ("wine", "heloc", "shopping"):
        for model in ("rf", "ab"):
            rows, _ = paper.table(dataset, "test")
            explainer = paper.explainer(paper.forest(dataset, model), dataset, distance)
            yield f"{dataset} {model}", explainer, rows[:n_rows]


def loan_demo(distance: str, n_rows: int) -> Iterator[Question]:
    model, X_train, X_test, _, _ = loans.train()
    declined = X_test[model.predict(X_test) == "declined"]
    explainer = Explainer(model, X_train, distance=distance, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    yield "loans, declined", explainer, declined[:n_rows]
    free = Explainer(model, X_train, distance=distance, schema=loans.SCHEMA)
    yield "loans, all, no constraints", free, X_test[:n_rows]


def wide_forest(distance: str, n_rows: int) -> Iterator[Question]:
    X, y = make_classification(3000, 20, n_informative=12, random_state=0)
    model = RandomForestClassifier(200, max_depth=8, random_state=0).fit(X, y)
    yield "rf 200 x 8, 20 columns", Explainer(model, X, distance=distance), X[:n_rows]


def whole_numbers(distance: str, n_rows: int) -> Iterator[Question]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (400, 3)).astype(float)
    y = X @ [1.0, -2.0, 1.5] + 3 * np.sin(X[:, 0] * X[:, 1]) > 3
    schema = Schema([Feature(name, "integer") for name in "abc"])
    model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    yield "3 columns of 9 values", Explainer(model, X, distance=distance, schema=schema), X[:n_rows]


def report(title: str, explainer: Explainer, rows: np.ndarray, strategy: Auto) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    found = explainer.explain(rows, strategy=strategy, n_jobs=1)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    names = [status.name for status in found.status]
    gap = found.gap[np.isfinite(found.gap)]
    proven = np.mean([name in ("OPTIMAL", "INFEASIBLE") for name in names])
    print(
        f"{title:42} {len(rows):4} rows  proven {proven:6.1%}  gap mean {gap.mean():.4f} most {gap.max():.4f}  "
        f"{1e3 * seconds / len(rows):7.0f} ms a row, CPU {1e3 * cpu / len(rows):6.0f}  "
        f"mean distance {np.nanmean(found.distance):.6f}",
        flush=True,
    )


def main() -> None:
    sections = {"paper": paper_models, "loans": loan_demo, "wide": wide_forest, "whole": whole_numbers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=sections)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--work", type=float, default=1.0, help="of the default work")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--boxes", type=int, default=None)
    parser.add_argument("--distance", choices=DISTANCES, default=None)
    chosen = parser.parse_args()
    is_work = chosen.seconds is None and chosen.boxes is None
    work = int(chosen.work * WORK) if is_work else None
    strategy = Auto(time_limit=chosen.seconds, node_limit=chosen.boxes, work_limit=work)
    for distance in [chosen.distance] if chosen.distance else DISTANCES:
        for name, explainer, rows in sections[chosen.section](distance, chosen.rows):
            report(f"{distance} {name}", explainer, rows, strategy)


if __name__ == "__main__":
    main()
