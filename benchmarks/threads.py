"""One row on all cores: how much sooner the same proof is there, and that not a bit of it differs.

    TREEFOCUS_PAPER=... python benchmarks/threads.py                 hard rows, one thread and two
    TREEFOCUS_PAPER=... python benchmarks/threads.py --threads 4 --work 3

One row a call, each with one thread and with several by turns, and the best of the turns counts. Processor seconds tell
what sharing a row costs; where others use the machine, too, the seconds by the clock say little.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import deep
from treefocus import Auto, Explainer


def timed(explainer: Explainer, row: np.ndarray, strategy: Auto, n_jobs: int) -> tuple[float, float, bytes, str]:
    """Seconds by the clock and of the processor, every bit of the answer, and its status."""
    began, cpu = time.perf_counter(), time.process_time()
    found = explainer.explain(row[None, :], strategy=strategy, n_jobs=n_jobs)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    bits = np.concatenate([np.ravel(found.counterfactuals), found.distance, found.lower_bound]).tobytes()
    return seconds, cpu, bits, found.status[0].name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*deep.MODELS, []])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--work", type=float, default=1.0, help="times the default")
    chosen = parser.parse_args()
    strategy = Auto(work_limit=int(chosen.work * Auto().work_limit))
    for name in chosen.models or ("cancer", "heloc", "catboost", "heloc8"):
        load, make = deep.MODELS[name]
        train, labels, test = load()
        explainer = Explainer(make().fit(train, labels), train)
        for i, row in enumerate(test[: chosen.rows]):
            runs = {n: [timed(explainer, row, strategy, n) for _ in range(chosen.turns)] for n in (1, chosen.threads)}
            bits = {bits for each in runs.values() for _, _, bits, _ in each}
            wall = {n: min(one[0] for one in each) for n, each in runs.items()}
            cpu = {n: min(one[1] for one in each) for n, each in runs.items()}
            print(
                f"{name:9} row {i}  {runs[1][0][3]:8} {wall[1]:6.3f} s on one thread, {wall[chosen.threads]:6.3f} s on "
                f"{chosen.threads}: {wall[1] / wall[chosen.threads]:.2f} times as fast, processor "
                f"{cpu[chosen.threads] / cpu[1]:.2f} times, {'same bits' if len(bits) == 1 else 'DIFFERENT BITS'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
