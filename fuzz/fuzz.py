"""Damages model files at random and reads them: an answer or a `TreefocusError`, nothing else, and soon.

    python fuzz/fuzz.py --executions 20000             # a short slice, as in .ci/run
    python fuzz/fuzz.py --executions 10000000 --jobs 2 # a night's work
    python fuzz/fuzz.py --reader treefocus-forest-1 --seed 7

An execution is one damaged file that was given to `load_model` as a whole. A forest that comes out is asked for a
prediction now and then, so that what the checks let through does not break the compiled core. What must not happen:
another exception, a crash, 10 s of processor time, 4 GB. The file is then kept in fuzz/found/. `readers.py` lists the
kinds of files.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from mutate import Record, damaged_bytes
from readers import READERS, Reader

from treefocus import TreefocusError, kernels, load_model
from treefocus.adapters import isolated

FOUND = Path(__file__).parent / "found"
SECONDS, MEMORY = 10.0, 4 * 2**30
IN_PROCESS = (
    ".json",
    ".ubj",
    ".txt",
    ".onnx",
    ".pmml",
)  # the others are opened by their library in a process of its own
ASKED = 8  # one of so many forests is asked for a prediction
FORKED_SECONDS = 1  # of processor time, for a library in a copy of this process
LARGEST = 10_000  # features of a forest that is asked


class Hang(Exception):  # noqa: N818
    """An execution took too long."""


def main() -> None:
    """Run the readers, or be one of the processes that do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=20_000, help="over all readers together")
    parser.add_argument("--reader", help="only this one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    chosen = [reader for reader in READERS if options.reader in (None, reader.name)]
    for reader in chosen:
        if not reader.is_here:
            print(f"{reader.name}: left out, {reader.needs} is not installed")
    chosen = [reader for reader in chosen if reader.is_here]
    began, total, failed = time.monotonic(), 0, False
    weights = sum(reader.weight for reader in chosen)
    for reader in chosen:
        share = math.ceil(options.executions * reader.weight / weights / options.jobs)
        done, is_bad = side_by_side(reader, share, options)
        total, failed = total + done, failed or is_bad
    seconds = time.monotonic() - began
    end = f"something is wrong, see {FOUND}" if failed else "all as they should be"
    print(f"{total:,} executions in {seconds:.0f} s, {total / max(seconds, 1e-9):,.0f} a second: {end}")
    sys.exit(failed)


def side_by_side(reader: Reader, share: int, options: argparse.Namespace) -> tuple[int, bool]:
    """One reader in processes of their own: a crash costs that process and is told."""
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        children = []
        for k in range(options.jobs):
            log = Path(folder) / f"log{k}.json"
            command = [sys.executable, __file__, "--reader", reader.name, "--executions", str(share)]
            command += ["--seed", str(options.seed * 1000 + k), "--child", str(log)]
            children.append((subprocess.Popen(command), log))
        total, outcomes, is_bad = 0, Counter[str](), False
        for process, log in children:
            code = process.wait()
            record = json.loads(log.read_text()) if log.exists() else {"executions": 0, "outcomes": {}}
            total += record["executions"]
            outcomes.update(record["outcomes"])
            if code:
                is_bad = True
                kept = keep(reader, log.with_name(f"{log.stem}-current{reader.suffix}"))
                print(f"{reader.name}: the process ended with {code}; its file is {kept}")
    print(f"{reader.name}: {total:,} executions: {dict(outcomes.most_common(6))}", flush=True)
    return total, is_bad


def child(options: argparse.Namespace) -> None:
    """The loop."""
    limit_memory()
    warnings.simplefilter("ignore")
    (reader,) = (reader for reader in READERS if reader.name == options.reader)
    log = Path(options.child)
    path = log.with_name(f"{log.stem}-current{reader.suffix}")
    rng, outcomes = random.Random(f"{reader.name} {options.seed}"), Counter[str]()
    seeds = list(reader.make())
    records = [Record(data) for data in seeds if reader.suffix == ".json"]
    signal.signal(signal.SIGPROF, _too_long)
    if hasattr(os, "fork") and reader.suffix not in IN_PROCESS:
        isolated.opened = _forked
    for _ in range(options.executions):
        if records and rng.random() < 0.5:
            with rng.choice(records).damaged(rng) as data:
                outcomes[attempt(path, data, rng)] += 1
        else:
            outcomes[attempt(path, damaged_bytes(rng.choice(seeds), rng), rng)] += 1
    log.write_text(json.dumps({"executions": options.executions, "outcomes": outcomes}))


def attempt(path: Path, data: bytes, rng: random.Random) -> str:
    """Read one file; says how it came out, and leaves the process if that is not as it should be."""
    with open(path, "wb") as file:
        file.write(data)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        forest = load_model(path)
        if rng.randrange(ASKED) == 0 and forest.n_features <= LARGEST:
            rows = np.zeros((2, forest.n_features))
            rows[1] = np.nan if forest.takes_missing else 1e6
            kernels.hard_scores(forest, rows, n_jobs=1)
        return "read"
    except TreefocusError as error:
        return type(error).__name__
    except BaseException:
        traceback.print_exc()
        sys.exit(3)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def keep(reader: Reader, path: Path) -> Path | None:
    """Save the file that the process was reading."""
    if not path.exists():
        return None
    FOUND.mkdir(exist_ok=True)
    kept = FOUND / f"{reader.name}-{time.time_ns()}{reader.suffix}"
    kept.write_bytes(path.read_bytes())
    return kept


def limit_memory() -> None:
    """A reader that asks for more than `MEMORY` fails."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _forked(library: str, path: Path, target: Path) -> tuple[int, str]:
    """`isolated.opened` in a copy of this process, which has the libraries loaded: far faster than a new process.

    A library that spins is stopped after `FORKED_SECONDS` of processor time, as `isolated` stops it, only sooner.
    """
    number = os.fork()
    if number == 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (FORKED_SECONDS, FORKED_SECONDS))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os._exit(isolated.main(library, str(path), str(target)))
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), "damaged"


def _too_long(*_: Any) -> None:
    raise Hang(f"more than {SECONDS} s")


def _fast_folder() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    main()
