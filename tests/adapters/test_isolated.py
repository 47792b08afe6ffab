"""Files that another process opens: good ones whatever the warnings, bad ones with a reason, none for ever."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from treefocus import Forest, InvalidInput, load_model
from treefocus.adapters import isolated

catboost = pytest.importorskip("catboost", reason="needs CatBoost")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = np.arange(40.0).reshape(-1, 2)
    model = catboost.CatBoostClassifier(iterations=2, depth=2, verbose=False, allow_writing_files=False)
    path = tmp_path_factory.mktemp("models") / "model.cbm"
    model.fit(rows, rows[:, 0] > 20).save_model(str(path))
    return path


def opening(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Have the other process open files in another way: a function of a path, as text."""
    run = f"import sys, time, warnings; from treefocus.adapters import isolated; isolated._OPEN['catboost'] = {how}"
    monkeypatch.setattr(isolated, "_RUN", f"{run}; sys.exit(isolated.main(*sys.argv[1:]))")


@pytest.mark.parametrize("setting", ["error", "always", ""])
def test_a_good_file_is_read_whatever_warnings_are(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", setting)
    opening(monkeypatch, "lambda path: warnings.warn('old') or isolated._open_catboost(path)")
    assert isinstance(load_model(model_file), Forest)


def test_a_reason_is_nothing_but_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    (tmp_path / "bad.cbm").write_bytes(b"CBM1" + bytes(50))
    opening(monkeypatch, "lambda path: warnings.warn('old') or print('chatter', file=sys.stderr) or int('x')")
    with warnings.catch_warnings(), pytest.raises(InvalidInput) as told:
        load_model(tmp_path / "bad.cbm")
    assert str(told.value).endswith("is not a whole CatBoost file: invalid literal for int() with base 10: 'x'.")


@pytest.mark.skipif(os.name != "posix", reason="the system has no limit of processor time")
def test_a_file_that_spins_is_given_up_by_the_time_of_the_processor(
    model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "seconds_for", lambda path: 1)
    opening(monkeypatch, "lambda path: [0 for _ in iter(int, 1)]")
    with pytest.raises(InvalidInput, match="took more than 1 s of the processor to open; it is probably damaged"):
        load_model(model_file)


@pytest.mark.campaign
@pytest.mark.skipif(os.name != "posix", reason="the system has no limit of processor time")
def test_waiting_is_not_working(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that gets no time from a busy machine is not one that hangs: it may wait longer than it may work."""
    monkeypatch.setattr(isolated, "SECONDS", 3)
    opening(monkeypatch, "lambda path: time.sleep(4) or isolated._open_catboost(path)")
    assert isinstance(load_model(model_file), Forest)


def test_a_file_that_sleeps_is_not_waited_for_for_ever(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "MOST_WAITING", 1)
    monkeypatch.setattr(isolated, "seconds_for", lambda path: 0)
    opening(monkeypatch, "lambda path: time.sleep(1000)")
    with pytest.raises(InvalidInput, match="took more than 1 s to open"):
        load_model(model_file)
