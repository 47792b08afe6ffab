"""Ctrl-C during a search: the core stops at once, and it is raised, or what is done is returned where that is asked."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from treefocus import (
    Auto,
    Dace,
    Exact,
    Explainer,
    FeatureTweaking,
    Focus,
    InvalidInput,
    LocalOutlierFactor,
    RandomPerturbation,
    Status,
    explain,
    kernels,
)
from treefocus.cli import app
from treefocus.explanation.batch import Explanations
from treefocus.problem.distances import Manhattan
from treefocus.scale.batches import explain_batches
from treefocus.scale.files import explain_file
from treefocus.scale.manifest import DRAFT
from treefocus.search.base import Strategy

ROWS, LABELS = make_classification(400, 4, n_informative=3, n_redundant=0, random_state=0)
MODEL = RandomForestClassifier(30, max_depth=5, random_state=0).fit(ROWS, LABELS)


class Pressed:
    """Ctrl-C as the core tells of it, on the n-th call of a kernel, before any row of it is done."""

    def __init__(self, patch: pytest.MonkeyPatch, kernel: str, call: int = 1) -> None:
        self.own, self.call, self.n_calls = getattr(kernels._core, kernel), call, 0
        patch.setattr(kernels._core, kernel, self)

    def __call__(self, *arguments: Any) -> Any:
        self.n_calls += 1
        if self.n_calls == self.call:
            raise KeyboardInterrupt
        return self.own(*arguments)

    @property
    def has_come(self) -> bool:
        return self.n_calls >= self.call


STRATEGIES: dict[str, tuple[Strategy, str]] = {
    "auto": (Auto(), "exact"),
    "auto, in a seed": (Auto(), "descend"),
    "auto, in a seed's polish": (Auto(), "polish"),
    "auto without proof": (Auto(prove=False), "exact"),
    "exact": (Exact(), "exact"),
    "focus": (Focus(iterations=50), "descend"),
    "focus, in its polish": (Focus(iterations=50), "polish"),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_is_stopped_by_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, (strategy, kernel) = Explainer(MODEL, ROWS), STRATEGIES[name]
    pressed = Pressed(monkeypatch, kernel)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(ROWS[:3], strategy=strategy)
    assert pressed.n_calls == 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_returns_what_it_has_where_that_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, (strategy, kernel) = Explainer(MODEL, ROWS), STRATEGIES[name]
    pressed = Pressed(monkeypatch, kernel)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(ROWS[:3], strategy=strategy, on_interrupt="return")
    assert pressed.n_calls == 1  # nothing more is begun
    check_claims(found)


BASELINES: dict[str, Strategy] = {
    "feature tweaking": FeatureTweaking(),
    "random perturbation": RandomPerturbation(),
    "dace": Dace(),
}


def press(_: int) -> None:
    """Progress that presses Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_are_stopped_between_rows(name: str) -> None:
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(ROWS, LABELS)
    explainer = Explainer(model, ROWS)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(ROWS[:3], strategy=BASELINES[name], progress=press)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(ROWS[:3], strategy=BASELINES[name], progress=press, on_interrupt="return")
    assert found.has_answer[0]
    check_claims(found, model)


def check_claims(found: Explanations, model: RandomForestClassifier = MODEL) -> None:
    assert len(found) == 3
    answered = found.has_answer
    assert (found.predicted == model.predict(ROWS[:3])).all()
    assert all(model.predict(one.counterfactual[None])[0] != one.predicted for one in found if one.status.has_answer)
    assert (found.lower_bound[answered] <= found.distance[answered]).all()
    assert not (found.status == Status.INFEASIBLE).any()


def test_missing_values_keep_the_parts_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ROWS[:4].copy()
    rows[2:, 0] = np.nan  # a part of its own
    explainer = Explainer(MODEL, ROWS)
    pressed = Pressed(monkeypatch, "exact", 2)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(rows, strategy=Exact(), on_interrupt="return")
    assert pressed.n_calls == 2
    is_done = np.isnan(rows[:, 0]) if found.status[0] is Status.NOT_FOUND else ~np.isnan(rows[:, 0])
    assert (found.status[is_done] == Status.OPTIMAL).all()
    assert (found.status[~is_done] == Status.NOT_FOUND).all()


class Slow(Manhattan):
    """A distance of the user's own, which is descended on in Python."""

    calls = 0

    @property
    def norms(self) -> None:
        return None

    @property
    def compiled(self) -> None:
        return None

    def gradient(self, z: Any, y: Any) -> Any:
        Slow.calls += 1
        if Slow.calls == 30:
            raise KeyboardInterrupt
        return super().gradient(z, y)


def test_a_distance_of_ones_own_is_stopped_too() -> None:
    explainer = Explainer(MODEL, ROWS, distance=Slow())
    Slow.calls = 0
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(ROWS[:3])
    Slow.calls = 0
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(ROWS[:3], strategy=Focus(retry=False), on_interrupt="return")
    assert Slow.calls == 30
    assert found.has_answer.any()


@pytest.mark.parametrize("call", [1, 2, 3])
def test_further_ways_are_not_claimed_to_be_none(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(MODEL, ROWS)
    whole = explainer.explain(ROWS[:2], n=4, strategy=Exact())
    with monkeypatch.context() as patch:
        Pressed(patch, "exact", call)
        with pytest.raises(KeyboardInterrupt):
            explainer.explain(ROWS[:2], n=4, strategy=Exact())
    pressed = Pressed(monkeypatch, "exact", call)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(ROWS[:2], n=4, strategy=Exact(), on_interrupt="return")
    assert pressed.n_calls == call
    assert len(found.ways) == 4
    for k, (way, known) in enumerate(zip(found.ways, whole.ways, strict=True)):
        for i in range(2):
            assert way.status[i] is not Status.INFEASIBLE or known.status[i] is Status.INFEASIBLE
            assert way.lower_bound[i] <= known.distance[i] * (1 + 1e-8) or np.isnan(known.distance[i])
            assert (way.status[i] is known.status[i]) or k >= call - 1


@pytest.mark.parametrize(("kernel", "call"), [("exact", 1), ("exact", 2), ("predict", 11)])
def test_nothing_strange_is_returned_early(kernel: str, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(MODEL, ROWS, plausibility=LocalOutlierFactor(limit=1.02))
    with monkeypatch.context() as patch:
        Pressed(patch, kernel, call)
        with pytest.raises(KeyboardInterrupt):
            explainer.explain(ROWS[:6], strategy=Exact())
    pressed = Pressed(monkeypatch, kernel, call)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = explainer.explain(ROWS[:6], strategy=Exact(), on_interrupt="return")
    assert pressed.has_come
    for one in found:
        assert one.counterfactual is None or one.plausibility.local_outlier_factor <= 1.02


def test_other_words_are_refused() -> None:
    with pytest.raises(InvalidInput, match="on_interrupt must be 'raise' or 'return', got 'stop'"):
        explain(MODEL, ROWS[:1], ROWS, on_interrupt="stop")


def test_a_stream_that_is_stopped_loses_nothing_and_keeps_nothing_that_is_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"x{j}" for j in range(4)]
    explainer = Explainer(MODEL, pa.table(dict(zip(names, ROWS.T, strict=True))))
    rows = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip(names, np.tile(ROWS, (3, 1)).T, strict=True))), rows)
    explain_file(explainer, rows, tmp_path / "whole", n_jobs=1)
    with monkeypatch.context() as patch:
        Pressed(patch, "exact", 3)
        with pytest.raises(KeyboardInterrupt):
            explain_file(explainer, rows, tmp_path / "parts", n_jobs=1)
    assert (tmp_path / "parts" / DRAFT).is_file()  # the batches that were done
    explain_file(explainer, rows, tmp_path / "parts", n_jobs=1)
    parts = sorted(path.name for path in (tmp_path / "whole").glob("*.parquet"))
    assert parts == sorted(path.name for path in (tmp_path / "parts").glob("*.parquet"))
    for name in parts:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_batches_are_stopped_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"x{j}" for j in range(4)]
    table = pa.table(dict(zip(names, ROWS.T, strict=True)))
    Pressed(monkeypatch, "exact", 2)
    answers = explain_batches(Explainer(MODEL, table), table.to_batches(max_chunksize=50), n_jobs=1)
    assert len(next(answers)) == 50
    with pytest.raises(KeyboardInterrupt):
        list(answers)


def test_the_command_line_leaves_with_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(MODEL, ROWS)
    explainer.forest.save(tmp_path / "model.json")
    np.savetxt(tmp_path / "rows.csv", ROWS[:5], delimiter=",", header="a,b,c,d", comments="")
    Pressed(monkeypatch, "exact")
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "model.json"), str(tmp_path / "rows.csv")])
    assert done.exit_code == 130
    assert "Traceback" not in done.output


PROGRAM = """
    import _thread, threading, time, warnings
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from treefocus import Exact, Explainer

    rows, labels = make_classification(1000, 20, n_informative=15, random_state=0)
    model = RandomForestClassifier(100, max_depth=10, random_state=0).fit(rows, labels)
    explainer = Explainer(model, rows)
    explainer.explain(rows[:1], time_limit=0.01)
    for strategy in (Exact(), "auto"):
        threading.Timer(0.5, _thread.interrupt_main).start()
        began = time.process_time()
        try:
            explainer.explain(rows[:50], strategy=strategy, n_jobs=1)
        except KeyboardInterrupt:
            print("raised", time.process_time() - began)
        threading.Timer(0.5, _thread.interrupt_main).start()
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = explainer.explain(rows[:50], strategy=strategy, n_jobs=1, on_interrupt="return")
        assert any("interrupted" in str(warning.message) for warning in caught)
        assert len(found) == 50
        assert any(status.name != "OPTIMAL" for status in found.status)
        assert (found.lower_bound[found.has_answer] <= found.distance[found.has_answer]).all()
        print("returned", time.process_time() - began)
"""


def test_the_signal_itself_stops_a_long_search() -> None:
    """After the half second it was let run, the search may spend a few of the processor's, however busy that is."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    words = [line.split()[0] for line in done.stdout.splitlines()]
    assert words == ["raised", "returned"] * 2
    assert all(float(line.split()[1]) < 10.0 for line in done.stdout.splitlines())
