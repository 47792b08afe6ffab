"""Every claim against every point: small problems, held against an oracle that looks everywhere.

    python benchmarks/truth.py --problems 200000 --jobs 2 --log truth.jsonl    # goes on where the log ends
    python benchmarks/truth.py --from 50000 --problems 1000 --log truth.jsonl
    python benchmarks/truth.py --sum truth.jsonl
    python benchmarks/truth.py --only 4711

The problems, the oracle and the claims are those of the tests (tests/truth). A problem is a question, drawn anew, of
two rows, also drawn, to a model that up to some tens of problems share: distance, weights, constraints, target, domain,
scale, bounds and what is asked further are the problem's own. Each 10,000 problems have models of their own; they are
drawn so that every pair of distance, weights, constraint, column, target, library and further question meets.

A line of the log has what came out of 250 problems: the commit, their numbers, claims by kind, pairs that met, and
every claim that is false, with the seed that repeats it. A problem in which a process dies, or does not end, is a false
claim too. What is in the log is not run again. Prints the sums of the log, with the table of pairs, and every false
claim at once and again at the end; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library is loaded: a small model takes longer on several
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from truth.campaign import Tally, excluded, run, seldom, tallies
from truth.claims import Falsehood
from truth.problems import Pair, chosen_seeds, drawn

CHUNK = 250  # problems that a job takes at a time
PER_ROUND = 10_000  # problems that share their models
PATIENCE = 600.0  # seconds for a problem, of which an answer takes few
LIBRARIES = (
    "sklearn.ensemble",
    "sklearn.compose",
    "sklearn.calibration",
    "xgboost",
    "lightgbm",
    "catboost",
    "scipy.optimize",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--from", type=int, default=0, dest="first", metavar="N", help="the number of the first problem"
    )
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, help="JSON lines of what is done, to which is added")
    parser.add_argument("--sum", type=Path, nargs="+", metavar="LOG", help="what these logs say, and nothing else")
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED", help="the problems of these seeds alone")
    chosen = parser.parse_args()
    if chosen.only:
        tally = run(chosen.only)
        print(tally.to_text())
        return int(bool(tally.false))
    if chosen.sum:
        return told([line for log in chosen.sum for line in lines_of(log)])
    began = time.perf_counter()
    lines = [] if chosen.log is None else lines_of(chosen.log)
    have = {number for line in lines for number in range(line["from"], line["from"] + line["problems"])}
    last = chosen.first + chosen.problems
    chunks = [(k, min(CHUNK - k % CHUNK, last - k)) for k in starts(chosen.first, last)]
    chunks = [(k, n) for k, n in chunks if not have.issuperset(range(k, k + n))]
    for k, line in enumerate(_run_in(chosen.jobs, chunks), start=1):
        lines.append(line)
        if chosen.log is not None:
            with chosen.log.open("a") as log:
                log.write(json.dumps(line) + "\n")
        for false in line["false"]:
            print(f"FALSE: seed {false['seed']}, row {false['row']}, {false['kind']}: {false['told']}", flush=True)
        if k % 4 == 0:
            print(f"{k * CHUNK} problems more, {time.perf_counter() - began:.0f} s", flush=True)
    return told(lines)


def starts(first: int, last: int) -> list[int]:
    """Where chunks begin: at the first problem, and at every multiple of their length."""
    return sorted({first, *range(first - first % CHUNK, last, CHUNK)} - set(range(first)))


def seeds_of(first: int, n: int) -> list[int]:
    """The seeds of n problems of one round, by their numbers."""
    number, k = divmod(first, PER_ROUND)
    return _round(number)[k : k + n]


@lru_cache(maxsize=2)
def _round(number: int) -> list[int]:
    return chosen_seeds(PER_ROUND, number + 1)


# ---- the log


def lines_of(log: Path) -> list[dict[str, Any]]:
    """What a log says; a line that was not written to its end is left out."""
    found = []
    for text in log.read_text().splitlines() if log.exists() else ():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def line_of(first: int, tally: Tally, seconds: float) -> dict[str, Any]:
    """What came out of a chunk of problems, for the log."""
    met = {"|".join((*a, *b)): count for (a, b), count in sorted(tally.met.items())}
    counts = {name: dict(getattr(tally, name)) for name in ("checked", "status", "refused")}
    wrong = {name: [asdict(one) for one in getattr(tally, name)] for name in ("false", "missed")}
    return {
        "commit": _commit(),
        "from": first,
        "problems": tally.n,
        "seconds": round(seconds, 2),
        **counts,
        **wrong,
        "met": met,
    }


def tally_of(line: dict[str, Any]) -> Tally:
    """The same back from a line of the log."""
    met: Counter[Pair] = Counter()
    for name, count in line["met"].items():
        a, b, c, d = name.split("|")
        met[(a, b), (c, d)] = count
    counts = (Counter(line[name]) for name in ("checked", "status", "refused"))
    return Tally(
        line["problems"], met, *counts, *([Falsehood(**one) for one in line[name]] for name in ("false", "missed"))
    )


def told(lines: list[dict[str, Any]]) -> int:
    """Print the sums, by commit and over all; 1 if a claim is false."""
    tally, by_commit, seconds = Tally(), Counter[str](), 0.0
    for line in lines:
        tally.add(tally_of(line))
        by_commit[line["commit"]] += line["problems"]
        seconds += line["seconds"]
    print(tally.to_text())
    print("\npairs that cannot meet:")
    for reason, pairs in excluded().items():
        print(f"  {reason}: {', '.join(f'{a[1]} x {b[1]}' for a, b in pairs)}")
    few = seldom(tally.met, 10)
    print(f"\npairs that met fewer than ten times: {len(few)}")
    for (a, b), count in few:
        print(f"  {a[1]} x {b[1]}: {count}")
    for commit, n in by_commit.items():
        print(f"{n} problems at {commit}")
    print(f"\n{tally.n} problems, {len(tally.false)} false of {tally.checked.total()} claims, {seconds:.0f} s of work")
    return int(bool(tally.false))


@lru_cache(maxsize=1)
def _commit() -> str:
    """The commit that is checked out, and whether something was changed."""
    folder = Path(__file__).parents[1]
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit"


# ---- processes


@dataclass(eq=False)
class _Job:
    """A process, and the problems that it has yet to tell of."""

    first: int
    seeds: list[int]
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    process: BaseProcess | None = None
    told: Connection | None = None
    since: float = 0.0

    def start(self) -> None:
        """A process of its own for each chunk: what a library leaves behind ends with it."""
        context = get_context("fork")
        self.told, telling = context.Pipe(duplex=False)
        self.process = context.Process(target=_tell, args=(self.seeds, telling), daemon=True)
        self.process.start()
        telling.close()
        self.since = time.perf_counter()

    def end(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.join()


def _run_in(n_jobs: int, chunks: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """A line of the log for each chunk; a problem at which a process dies, or does not end, is a false claim too."""
    for name in LIBRARIES:
        import_module(name)  # once, and not in each process
    _commit()
    waiting, jobs = list(reversed(chunks)), []
    while waiting or jobs:
        while waiting and len(jobs) < n_jobs:
            first, n = waiting.pop()
            jobs.append(_Job(first, seeds_of(first, n)))
            jobs[-1].start()
        ready = wait([job.told for job in jobs if job.told is not None], timeout=1.0)
        for job in list(jobs):
            lost = _heard(job, job.told in ready)
            if lost is not None:
                job.end()
                job.tally.add(Tally(n=1, false=[Falsehood(job.seeds[0], 0, "crash", lost)]))
                job.seeds = job.seeds[1:]
                if job.seeds:
                    job.start()
            if not job.seeds:
                job.end()
                jobs.remove(job)
                yield line_of(job.first, job.tally, job.seconds)


def _heard(job: _Job, is_ready: bool) -> str | None:
    """Take what a process tells; why it will tell no more of its problem, where that is so."""
    assert job.told is not None
    if not is_ready:
        return f"no answer within {PATIENCE:.0f} s" if time.perf_counter() - job.since > PATIENCE else None
    try:
        one, seconds = job.told.recv()
    except EOFError:
        return "the process died"
    job.tally.add(one)
    job.seconds += seconds
    job.seeds, job.since = job.seeds[one.n :], time.perf_counter()
    if not job.seeds:  # the points of the last model are still to come
        last, seconds = job.told.recv()
        job.tally.add(last)
        job.seconds += seconds
    return None


def _tell(seeds: list[int], telling: Connection) -> None:
    began = time.process_time()
    for one in tallies(map(drawn, seeds)):
        now = time.process_time()
        telling.send((one, now - began))
        began = now


if __name__ == "__main__":
    sys.exit(main())
