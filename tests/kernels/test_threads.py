"""Threads: as many as asked for and no more, safe to fork, and Ctrl-C stops a long run that can then go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from pyarrow import parquet
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from support.streams import NAMES
from treefocus import Explainer, kernels
from treefocus.errors import InvalidInput


def test_as_many_threads_as_asked_for(every_core: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.n_threads(3) == 3
    assert every_core == (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert kernels.n_threads(None) == 1
    assert kernels.n_threads(2) == 2
    for bad in (0, -2, 1.5, "2"):
        with pytest.raises(InvalidInput, match="n_jobs"):
            kernels.n_threads(bad)  # type: ignore[arg-type]


def test_a_limit_of_threadpoolctl_is_heeded(every_core: int) -> None:
    without = kernels.n_threads(None)
    with threadpool_limits(1):
        assert kernels.n_threads(None) == 1
        assert kernels.n_threads(2) == 2  # who asks for two gets two
    assert 1 <= kernels.n_threads(None) == without <= every_core


FORKED = """
    import os, sys, threading, warnings
    warnings.simplefilter("ignore")  # of forking with threads, which is what is tried here
    import numpy as np
    from support.streams import NAMES, loan_explainer, loan_rows

    explainer, rows = loan_explainer(), loan_rows(300).select(NAMES)
    before = explainer.explain(rows, n_jobs=3)
    busy = threading.Thread(target=lambda: [explainer.explain(rows, n_jobs=2) for _ in range(20)], daemon=True)
    busy.start()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            found = explainer.explain(rows, n_jobs=3)
            same = np.array_equal(found.points, before.points, equal_nan=True)
            os._exit(0 if same else 1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    busy.join()
    assert codes == [0] * 4, codes
    print("forked")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_finds_the_kernels_at_work() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED)], env=environment(), capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "forked" in done.stdout


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_a_long_run_that_then_goes_on(tmp_path: Path, stop: signal.Signals, code: int) -> None:
    """A forest that is slow to prove: the run is stopped after its first answers, and the same command ends it."""
    X, y = make_classification(400, len(NAMES), n_informative=8, random_state=0)
    model = RandomForestClassifier(40, max_depth=6, random_state=0).fit(X, y)
    Explainer(model, X).forest.save(tmp_path / "model.json")
    train = "\n".join([",".join(NAMES), *(",".join(map(repr, row)) for row in X.tolist())])
    (tmp_path / "train.csv").write_text(train)
    # Many more rows than are done by the time that a busy machine sends the signal.
    (tmp_path / "rows.csv").write_text("\n".join([train, *[train.partition("\n")[2]] * 3]))
    command = [sys.executable, "-m", "treefocus", "explain", "model.json", "rows.csv", "--train", "train.csv"]
    command += ["-o", "out", "--part-rows", "100"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 240
    while not (tmp_path / "out" / "part-00000.parquet").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(stop)
    _, said = process.communicate(timeout=240)
    assert process.returncode == code, said
    assert "goes on from there" in said
    assert "Traceback" not in said
    subprocess.run([*command, "-o", "out"], cwd=tmp_path, env=environment(), check=True, timeout=600)
    n_rows = sum(parquet.read_metadata(path).num_rows for path in (tmp_path / "out").glob("part-*.parquet"))
    assert n_rows == 4 * 400


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[1]), *(path for path in sys.path if path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
