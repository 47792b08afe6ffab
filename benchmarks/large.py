"""Forests far beyond the usual: that they work, how long a row takes, and how much memory the search adds to the model.

    python benchmarks/large.py                        # up to 10,000 trees of 1,024 leaves, and rows of 5,000 features
    python benchmarks/large.py --size 10000 10 20 --memory 4e9    # trees, depth, features; memory_limit

Every size is a process of its own. The trees are complete, with random features, thresholds and leaves. Memory is the
largest resident set while rows are explained, less what the process held before: at most `memory_limit`, whatever the
forest. Answers are checked by a walk through the trees that knows nothing of the searches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from treefocus import Auto, Explainer, Forest, kernels
from treefocus.kernels import reference

SIZES = ((1000, 6, 20), (200, 6, 5000), (500, 13, 50), (1000, 10, 20), (10_000, 10, 20))
ROWS, SECONDS = 4, 5.0


def complete_forest(n_trees: int, depth: int, n_features: int) -> Forest:
    """Boosted-like: one score, the class is its sign."""
    rng = np.random.default_rng(0)
    size = 2 ** (depth + 1) - 1
    level = _levels(depth)
    is_leaf = np.tile(level == depth, n_trees)
    own = np.arange(size)
    right = np.where(level == depth, -1, own + 2 ** (depth - level))
    offset = np.repeat(np.arange(n_trees) * size, size)
    n_nodes = n_trees * size
    return Forest(
        feature=np.where(is_leaf, -1, rng.integers(0, n_features, n_nodes)).astype(np.int32),
        threshold=np.where(is_leaf, 0.0, rng.random(n_nodes)),
        left=np.where(is_leaf, -1, np.arange(n_nodes) + 1).astype(np.int32),
        right=np.where(is_leaf, -1, np.tile(right, n_trees) + offset).astype(np.int32),
        default_left=np.zeros(n_nodes, bool),
        tree_start=(np.arange(n_trees + 1) * size).astype(np.int32),
        leaf_value=rng.normal(size=(int(is_leaf.sum()), 1)),
        base_score=np.zeros(1),
        classes=np.array([0, 1]),
        n_features=n_features,
        decision="above",
        source="random",
    )


def _levels(depth: int) -> np.ndarray:
    """The level of every node of a complete tree, in pre-order."""
    if depth == 0:
        return np.zeros(1, int)
    below = _levels(depth - 1) + 1
    return np.concatenate([[0], below, below])


class Peak:
    """The largest resident set while it watches, in bytes; above what it was at the start."""

    def __enter__(self) -> Peak:
        self.before = self.largest = resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.largest = max(self.largest, resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def resident() -> int:
    """Of this process; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def worker(n_trees: int, depth: int, n_features: int, memory: float) -> None:
    began = time.perf_counter()
    forest = complete_forest(n_trees, depth, n_features)
    built = time.perf_counter() - began
    rows = np.random.default_rng(1).random((ROWS, n_features))
    kernels.predict(forest, rows)
    compiled = time.perf_counter() - began - built
    explainer = Explainer(forest, scale=None, bounds=(0, 1))
    with Peak() as peak:
        began = time.perf_counter()
        found = explainer.explain(rows, strategy=Auto(time_limit=SECONDS, memory_limit=memory))
        seconds = (time.perf_counter() - began) / ROWS
    answers = found.points[found.has_answer]
    flips = reference.predict(forest, answers) != reference.predict(forest, rows[found.has_answer])
    record = {
        "forest": f"{n_trees:,} trees x {2**depth:,} leaves, {n_features:,} features",
        "model_mb": round(peak.before / 1e6),
        "added_mb": round((peak.largest - peak.before) / 1e6),
        "seconds": {"build": round(built, 1), "compile": round(compiled, 1), "row": round(seconds, 2)},
        "status": found.summary()["status"],
        "flip": f"{flips.sum()} of {len(answers)}",
    }
    print(json.dumps(record), flush=True)
    if not flips.all() or peak.largest - peak.before > memory:
        raise SystemExit("an answer does not flip, or the search took more memory than it may")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs=3, metavar=("TREES", "DEPTH", "FEATURES"))
    parser.add_argument("--memory", type=float, default=1e9, help="memory_limit, in bytes")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.size, options.memory)
        return
    for size in (options.size,) if options.size else SIZES:
        command = [sys.executable, __file__, "--worker", "--size", *map(str, size), "--memory", str(options.memory)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
