"""Files of any size: memory, throughput, cores and kills, measured on invented loan applications.

    python benchmarks/scale.py memory --rows 10000000      # peak memory against that of 10,000 rows
    python benchmarks/scale.py throughput --rows 400000    # streaming against explain() on the same rows in memory
    python benchmarks/scale.py cores --rows 1500000        # one core against two
    python benchmarks/scale.py reading --rows 200000       # text alone: plain, quoted and broken lines
    python benchmarks/scale.py kills --kills 20            # kill -9 at random moments, then the bytes of the folder
    python benchmarks/scale.py formats --rows 10000000     # CSV and Parquet end to end, rows a second of processor time
    python benchmarks/scale.py endurance --minutes 60      # mixed calls: memory, descriptors and threads over time
    python benchmarks/scale.py interrupts --kills 10       # seconds from Ctrl-C to the end, on a slow forest

Every run is a process of its own. `--model tree` (default) is a decision tree of depth 4, `--model boosted` an AdaBoost
of 100 trees of depth 2. Results go to stdout as one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 200_000  # rows made at a time


def explainer_of(model: str) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    from treefocus import Explainer, loans

    X, y = loans.generate(5000, seed=0)
    if model == "tree":
        fitted = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    else:
        stump = DecisionTreeClassifier(max_depth=2, random_state=0)
        fitted = AdaBoostClassifier(stump, n_estimators=100, random_state=0).fit(X, y)
    return Explainer(fitted, X, schema=loans.SCHEMA)


def write_rows(path: Path, n_rows: int) -> None:
    """Applications whose columns are drawn from real ones, each on its own; written bit by bit."""
    import pyarrow as pa
    from pyarrow import parquet

    from treefocus import loans

    X, _ = loans.generate(20_000, seed=1)
    rng = np.random.default_rng(2)
    writer = None
    for start in range(0, n_rows, CHUNK):
        n = min(CHUNK, n_rows - start)
        columns = {name: rng.choice(np.asarray(X)[:, j], n) for j, name in enumerate(loans.SCHEMA.names)}
        table = pa.table({"customer": np.arange(start, start + n)} | columns)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=CHUNK)
    assert writer is not None
    writer.close()


def worker(kind: str, model: str, rows: str, folder: str, n_jobs: int) -> None:
    """One run in this process; what it took goes to stdout."""
    explainer = explainer_of(model)
    began, before = time.perf_counter(), time.process_time()
    if kind == "stream":
        from treefocus.scale.files import explain_file

        counts = explain_file(explainer, rows, folder, n_jobs=n_jobs, keep=["customer"]).counts()
        n_rows = sum(counts.values())
        seconds = time.perf_counter() - began
    else:
        from pyarrow import parquet

        from treefocus.scale.batches import Task

        table = parquet.read_table(rows).drop_columns(["customer"])
        strategy = Task.of(explainer).strategy  # the one that streaming takes
        began = time.perf_counter()
        found = explainer.explain(table, strategy=strategy, n_jobs=n_jobs)
        seconds, n_rows = time.perf_counter() - began, len(found)
    spent = time.process_time() - before
    print(json.dumps({"rows": n_rows, "seconds": seconds, "cpu_seconds": spent, "peak_mb": peak_mb()}))


def peak_mb() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 1024**2


def run(kind: str, options: argparse.Namespace, rows: Path, folder: Path, n_jobs: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "worker", kind, options.model, str(rows), str(folder), str(n_jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def memory(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    results = {}
    for name, n_rows in (("small", 10_000), ("large", options.rows)):
        write_rows(scratch / f"{name}.parquet", n_rows)
        results[name] = run("stream", options, scratch / f"{name}.parquet", scratch / name, options.n_jobs)
        if results[name]["rows"] != n_rows:
            raise SystemExit(f"{n_rows} rows went in and {results[name]['rows']} came out")
    difference = results["large"]["peak_mb"] - results["small"]["peak_mb"]
    return results | {"difference_mb": difference, "rows_per_second": options.rows / results["large"]["seconds"]}


def throughput(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    rows = scratch / "rows.parquet"
    write_rows(rows, options.rows)
    rates: dict[str, list[float]] = {"stream": [], "in_memory": []}
    for k in range(options.repeats):
        for kind in rates:
            one = run(kind, options, rows, scratch / f"{kind}{k}", options.n_jobs)
            rates[kind].append(options.rows / one["seconds"])
    best = {kind: max(values) for kind, values in rates.items()}
    return {"rows_per_second": rates, "best": best, "share": best["stream"] / best["in_memory"]}


def reading(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Rows per second of processor time; of a file with a bad cell in every line, all lines are read one by one."""
    from treefocus import loans
    from treefocus.scale.dataset import open_dataset
    from treefocus.scale.sources import Place

    X, y = loans.generate(options.rows, seed=1)
    plain = loans.to_csv(X, y).splitlines()
    rates = {}
    for name, key in (("plain", "c1"), ("quoted", '"c1"'), ("broken", '"c"1')):
        path = scratch / f"{name}.csv"
        path.write_text("\n".join(["customer," + plain[0], *(f"{key},{line}" for line in plain[1:])]))
        source = open_dataset(path, loans.SCHEMA.names, ["customer"])
        for _ in range(2):  # the first time warms up
            began = time.process_time()
            n_rows = sum(rows.batch.num_rows for rows, _ in source.read(Place(), lambda row: 8192))
            rates[name] = n_rows / (time.process_time() - began)
    return {"rows_per_second": rates}


def formats(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """The same rows as CSV and as Parquet, on one thread; others on the machine change seconds, not processor time."""
    from pyarrow import csv, parquet

    write_rows(scratch / "rows.parquet", options.rows)
    with parquet.ParquetFile(scratch / "rows.parquet") as file:
        writer = csv.CSVWriter(scratch / "rows.csv", file.schema_arrow)
        for batch in file.iter_batches(CHUNK):
            writer.write_batch(batch)
        writer.close()
    results = {}
    for kind in ("parquet", "csv"):
        one = run("stream", options, scratch / f"rows.{kind}", scratch / f"out-{kind}", 1)
        if one["rows"] != options.rows:
            raise SystemExit(f"{options.rows} rows went in and {one['rows']} came out")
        results[kind] = one | {"rows_per_cpu_second": options.rows / one["cpu_seconds"]}
    return results


def endurance(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Calls of every kind in one process, round after round; what it holds at the end against the beginning."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from treefocus import loans
    from treefocus.scale.files import explain_file

    write_rows(scratch / "rows.parquet", 5_000)
    X, _ = loans.generate(200, seed=5)
    explainer, until, seen = explainer_of(options.model), time.monotonic() + 60 * options.minutes, []
    while time.monotonic() < until or len(seen) < 6:
        found = explainer.explain(X, n_jobs=options.n_jobs)
        found.to_html(scratch / "report.html")
        found.plot()
        found[0].plot()
        pyplot.close("all")
        found[0].to_letter()
        found[0].certificate(proof=True)
        folder = scratch / f"round{len(seen)}"
        explain_file(explainer, scratch / "rows.parquet", folder, n_jobs=options.n_jobs)
        shutil.rmtree(folder)
        gc.collect()
        seen.append(held())
        if len(seen) % 20 == 0:  # so that a run that is stopped has told something
            print(json.dumps({"round": len(seen)} | seen[-1]), file=sys.stderr, flush=True)
    third = max(len(seen) // 3, 1)
    sides = {"first": seen[third : 2 * third], "last": seen[-third:]}  # the first third warms up
    return {"rounds": len(seen)} | {
        name: {side: max(one[name] for one in own) for side, own in sides.items()} for name in seen[0]
    }


def held() -> dict[str, float]:
    """What this process has in hand: megabytes, open files, threads."""
    status = Path("/proc/self/status")
    if not status.exists():
        return {"peak_mb": peak_mb(), "threads": threading.active_count()}
    told = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return {
        "mb": int(told["VmRSS"].split()[0]) / 1024,
        "in_use_mb": in_use() / 1024**2,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": int(told["Threads"]),
    }


def in_use() -> int:
    """Bytes that the C library has given out and not got back; 0 where it does not tell."""
    fields = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in fields]

    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = Info
    info = ask()
    return int(info.uordblks + info.hblkhd)


def cores(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    rows = scratch / "rows.parquet"
    write_rows(rows, options.rows)
    rates: dict[str, list[float]] = {"1": [], "2": []}
    for k in range(options.repeats):
        for n in rates:
            one = run("stream", options, rows, scratch / f"{n}-{k}", int(n))
            rates[n].append(options.rows / one["seconds"])
    best = {n: max(values) for n, values in rates.items()}
    return {"rows_per_second": rates, "best": best, "speedup": best["2"] / best["1"]}


def folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("part-*")):  # the manifest tells of times
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def kills(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Folder after folder: start, kill at a random moment of the work, perhaps again, then let it end."""
    rows = scratch / "rows.parquet"
    write_rows(rows, options.rows)
    seconds = run("stream", options, rows, scratch / "whole", 2)["seconds"]
    expected = folder_hash(scratch / "whole")
    rng, moments, hashes = random.Random(options.seed), [], []
    while len(moments) < options.kills:
        folder = scratch / f"killed{len(hashes)}"
        for _ in range(rng.choice((1, 1, 2, 3))):
            if len(moments) < options.kills and (moment := killed(options, rows, folder, rng.uniform(0.0, seconds))):
                moments.append(moment)
        run("stream", options, rows, folder, 2)
        hashes.append(folder_hash(folder))
    return {"kills": moments, "folders": len(hashes), "same_bytes": hashes.count(expected)}


def killed(options: argparse.Namespace, rows: Path, folder: Path, seconds: float) -> dict[str, Any] | None:
    """Start a run and kill it so long after its work began; None if it was done by then."""
    command = [sys.executable, __file__, "worker", "stream", options.model, str(rows), str(folder), "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not folder.exists() and process.poll() is None:
        time.sleep(0.01)
    try:
        process.wait(timeout=seconds)
        return None
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return {"after": round(seconds, 2), "parts": len(list(folder.glob("part-*.parquet")))}


def interrupts(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Ctrl-C at random moments of a run on a forest that is slow to prove: how long until the process is gone."""
    from sklearn.ensemble import RandomForestClassifier

    from treefocus import Explainer, loans

    X, y = loans.generate(5000, seed=0)
    model = RandomForestClassifier(200, max_depth=8, random_state=0).fit(X, y)
    Explainer(model, X, schema=loans.SCHEMA).forest.save(scratch / "model.json")
    (scratch / "train.csv").write_text(loans.to_csv(X, y))
    write_rows(scratch / "rows.parquet", 20_000)
    command = [sys.executable, "-m", "treefocus", "explain", "model.json", "rows.parquet", "--train", "train.csv"]
    command += ["--ignore", "decision", "--keep", "customer"]
    rng, waits, codes = random.Random(options.seed), [], []
    for k in range(options.kills):
        folder = scratch / f"out{k}"
        process = subprocess.Popen([*command, "-o", folder.name], cwd=scratch, stderr=subprocess.DEVNULL)
        while not folder.exists():  # made when the work begins
            time.sleep(0.01)
        time.sleep(rng.uniform(0.2, 5.0))
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        codes.append(process.wait())
        waits.append(round(time.perf_counter() - began, 3))
    return {"seconds_to_the_end": waits, "worst": max(waits), "exit_codes": codes}


EVERY = (memory, throughput, reading, formats, cores, kills, interrupts, endurance)


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        kind, model, rows, folder, n_jobs = sys.argv[2:]
        worker(kind, model, rows, folder, int(n_jobs))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[one.__name__ for one in EVERY])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--model", choices=["tree", "boosted"], default="tree")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", help="where the files go, a temporary folder if not given")
    options = parser.parse_args()
    work = {one.__name__: one for one in EVERY}[options.what]
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        result = work(options, Path(scratch))
    print(json.dumps({"what": options.what, "model": options.model, "cpus": os.cpu_count()} | result, indent=1))


if __name__ == "__main__":
    main()
