"""Tuning: the paper's rule, the finalists on all rows, and going on from a journal."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from support.questions import stump
from treefocus import Focus, InvalidInput
from treefocus.cli import app
from treefocus.evaluation.illustrations import _ask
from treefocus.evaluation.tuning import FINALISTS, SPACE, Trial, attempt, tune
from treefocus.problem.problem import Problem
from treefocus.search.base import Run

pytest.importorskip("optuna")
FAST = Focus(iterations=40, retry=False, polish=False)


@pytest.fixture
def problem() -> Problem:
    return _ask(stump(0.5), np.random.default_rng(0).random((30, 2)))


def test_every_row_comes_before_a_small_mean() -> None:
    complete, near = Trial({}, 10, 10, 5.0), Trial({}, 9, 10, 0.1)
    assert complete.worth < near.worth < Trial({}, 0, 10, None).worth
    assert Trial({}, 10, 10, 0.2).worth < complete.worth


def test_the_winner_is_the_best_finalist_on_all_rows(problem: Problem) -> None:
    tuned = tune(problem, trials=8, rows=10, base=FAST)
    assert tuned.n_trials == 8
    assert len(tuned.finalists) == FINALISTS
    assert all(trial.rows == 30 for trial in tuned.finalists)
    assert tuned.best.worth == min(trial.worth for trial in tuned.finalists)
    assert attempt(problem, FAST, tuned.best.parameters, Run()) == tuned.best
    assert tuned.focus.sigma == tuned.best.parameters["sigma"]
    assert tuned.focus.iterations == 40
    for name, (low, high) in SPACE.items():
        assert low <= tuned.best.parameters[name] <= high


def test_the_same_seed_gives_the_same_result(problem: Problem) -> None:
    first, second = (tune(problem, trials=5, rows=10, base=FAST, run=Run(seed=3)) for _ in range(2))
    assert first == second


def test_a_journal_is_gone_on_from(problem: Problem, tmp_path: Path) -> None:
    journal = tmp_path / "trials.log"
    heard: list[int] = []
    tune(problem, trials=3, rows=10, base=FAST, journal=journal)
    tuned = tune(problem, trials=5, rows=10, base=FAST, journal=journal, progress=heard.append)
    assert heard == [3, 4, 5]
    assert tuned.n_trials == 5
    assert tune(problem, trials=5, rows=10, base=FAST, journal=journal, progress=heard.append).best == tuned.best
    assert heard[3:] == [5]


def test_the_paper_s_values_lie_in_the_space() -> None:
    from treefocus.evaluation.paper import SETTINGS

    for setting in SETTINGS:
        for name, (low, high) in SPACE.items():
            assert low <= getattr(setting, name) <= high


def test_misuse_is_said(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="trials must be at least 1, got 0"):
        tune(problem, trials=0)
    with pytest.raises(InvalidInput, match="rows must be at least 1, got 0"):
        tune(problem, rows=0)
    with pytest.raises(InvalidInput, match="at least one row"):
        tune(problem.subset(np.arange(0)))


def test_the_command(tmp_path: Path) -> None:
    stump(0.5).save(tmp_path / "model.json")
    rows = np.random.default_rng(0).random((20, 2))
    lines = ["a,b,note", *(f"{x},{y},7" for x, y in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    arguments = ["tune", str(tmp_path / "model.json"), str(tmp_path / "rows.csv"), "--ignore", "note", "--trials", "3"]
    result = CliRunner().invoke(app, [*arguments, "--iterations", "40", "-o", str(tmp_path / "tuned.json")])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Focus(sigma=")
    assert "of 20 rows" in result.stdout
    written = json.loads((tmp_path / "tuned.json").read_text())
    assert written["trials"] == 3
    assert written["best"]["rows"] == 20


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    stump(0.5).save(tmp_path / "model.json")
    (tmp_path / "rows.csv").write_text("a,b,c\n0.1,0.2,0.3\n")
    result = CliRunner().invoke(app, ["tune", str(tmp_path / "model.json"), str(tmp_path / "rows.csv")])
    assert result.exit_code == 2
    assert "2 columns wide (--ignore leaves some out), got 3" in " ".join(result.stderr.split())


def test_the_command_takes_what_explain_takes(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((60, 2))
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=5, verbose=-1).fit(rows, rows[:, 0] > 0.5)
    model.booster_.save_model(tmp_path / "model.txt")
    joblib.dump(RandomForestClassifier(3, random_state=0).fit(rows, rows[:, 0] > 0.5), tmp_path / "model.joblib")
    (tmp_path / "rows.csv").write_text("\n".join(["a,b", *(f"{x},{y}" for x, y in rows[:10])]) + "\n")
    for name, more in (("model.txt", []), ("model.joblib", ["--allow-pickle"])):
        arguments = ["tune", str(tmp_path / name), str(tmp_path / "rows.csv"), "--trials", "1", "--iterations", "20"]
        result = CliRunner().invoke(app, [*arguments, *more])
        assert result.exit_code == 0, result.output
    assert CliRunner().invoke(app, arguments).exit_code == 2  # a pickle only where that is allowed
