"""Ctrl-C during a long search: it stops at once and keeps what is done."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
    import _thread, threading, time, warnings
    import numpy as np
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from treefocus import Exact, Explainer

    rows, labels = make_classification(3000, 20, n_informative=15, random_state=0)
    model = RandomForestClassifier(200, max_depth=10, random_state=0).fit(rows, labels)
    explainer = Explainer(model, rows)
    threading.Timer(2.0, _thread.interrupt_main).start()
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = explainer.explain(rows[:50], strategy=Exact(), n_jobs=1)
    seconds = time.perf_counter() - began
    assert any("interrupted" in str(warning.message) for warning in caught)
    assert len(found) == 50
    assert any(status.name != "OPTIMAL" for status in found.status)
    assert (found.lower_bound[found.has_answer] <= found.distance[found.has_answer]).all()
    print("stopped", seconds)
"""


def test_ctrl_c_stops_the_search_and_keeps_what_is_done():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "stopped" in done.stdout
