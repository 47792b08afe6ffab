"""Every claim against every point: small problems, held against an oracle that looks everywhere.

    python benchmarks/truth.py --problems 20000 --seed 0 --jobs 2
    python benchmarks/truth.py --only 4711

The problems, the oracle and the claims are those of the tests (tests/truth). Problems are drawn so that every pair of
distance, weights, constraint, column, target, library and further question meets. Prints how often each pair met, and
every claim that is false, at once and again at the end, with the seed that repeats it; the exit code is 1 if there
is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth.campaign import Tally, excluded, run, seldom
from truth.claims import Falsehood
from truth.problems import chosen_seeds

CHUNK = 100  # problems that a job takes at a time
PATIENCE = 300.0  # seconds for a problem, of which an answer takes few


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
    for one in _run_in(chosen.jobs, [seeds[k : k + CHUNK] for k in range(0, len(seeds), CHUNK)]):
        tally.add(one)
        for false in one.false:
            print(f"FALSE: seed {false.seed}, row {false.row}, {false.kind}: {false.told}", flush=True)
        if tally.n % 1000 == 0:
            print(f"{tally.n} problems, {len(tally.false)} false, {time.perf_counter() - began:.0f} s", flush=True)
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


@dataclass(eq=False)
class _Job:
    """A process, and the problems that it has yet to tell of."""

    process: BaseProcess
    told: Connection
    seeds: list[int]
    since: float


def _run_in(n_jobs: int, chunks: list[list[int]]) -> Iterator[Tally]:
    """What comes out, problem by problem; one at which a process dies, or does not end, is a false claim too."""
    waiting, jobs = list(reversed(chunks)), []
    while waiting or jobs:
        while waiting and len(jobs) < n_jobs:
            jobs.append(_started(waiting.pop()))
        ready = wait([job.told for job in jobs], timeout=1.0)
        for job in list(jobs):
            lost = None
            if job.told in ready:
                try:
                    yield job.told.recv()
                    job.seeds, job.since = job.seeds[1:], time.perf_counter()
                except EOFError:
                    lost = "the process died"
            elif time.perf_counter() - job.since > PATIENCE:
                lost = f"no answer within {PATIENCE:.0f} s"
            if lost is not None or not job.seeds:
                jobs.remove(job)
                job.process.kill()
                job.process.join()
            if lost is not None:
                yield Tally(n=1, false=[Falsehood(job.seeds[0], 0, "crash", lost)])
                if job.seeds[1:]:
                    waiting.append(job.seeds[1:])


def _started(seeds: list[int]) -> _Job:
    context = get_context("fork")
    told, telling = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(seeds, telling), daemon=True)
    process.start()
    telling.close()
    return _Job(process, told, seeds, time.perf_counter())


def _tell(seeds: list[int], telling: Connection) -> None:
    for seed in seeds:
        telling.send(run([seed]))


if __name__ == "__main__":
    sys.exit(main())
