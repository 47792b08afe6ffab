"""Every claim against every point: small problems, held against an oracle that looks everywhere.

    python benchmarks/truth.py --problems 20000 --seed 0 --jobs 2
    python benchmarks/truth.py --only 4711

The problems, the oracle and the claims are those of the tests (tests/truth). Problems are drawn so that every pair of
distance, weights, constraint, column, target, library and further question meets. Prints how often each pair met, and
every claim that is false with the seed that repeats it; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth.campaign import Tally, excluded, run, seldom
from truth.problems import chosen_seeds

CHUNK = 50  # problems that a job takes at a time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the campaign; another one draws other problems")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED", help="the problems of these seeds alone")
    chosen = parser.parse_args()
    if chosen.only:
        tally = run(chosen.only)
        print(tally.to_text())
        return int(bool(tally.false))
    began = time.perf_counter()
    seeds = chosen_seeds(chosen.problems, chosen.seed)
    tally = Tally()
    with ProcessPoolExecutor(chosen.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        chunks = [pool.submit(run, seeds[k : k + CHUNK]) for k in range(0, len(seeds), CHUNK)]
        for done, chunk in enumerate(as_completed(chunks), start=1):
            tally.add(chunk.result())
            if done % 20 == 0 or done == len(chunks):
                seconds = time.perf_counter() - began
                print(f"{tally.n} problems, {len(tally.false)} false, {seconds:.0f} s", flush=True)
    print(tally.to_text())
    print("\npairs that cannot meet:")
    for reason, pairs in excluded().items():
        print(f"  {reason}: {', '.join(f'{a[1]} x {b[1]}' for a, b in pairs)}")
    few = seldom(tally.met, 10)
    print(f"\npairs that met fewer than ten times: {len(few)}")
    for (a, b), count in few:
        print(f"  {a[1]} x {b[1]}: {count}")
    print(f"\n{len(tally.false)} false of {tally.checked.total()} claims, {time.perf_counter() - began:.0f} s")
    return int(bool(tally.false))


if __name__ == "__main__":
    sys.exit(main())
