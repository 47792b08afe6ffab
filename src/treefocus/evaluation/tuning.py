"""FOCUS's parameters by the paper's rule: valid for every row first, then the smallest mean distance.

sigma, tau, beta and alpha are searched jointly (optuna, tree-structured Parzen estimator) on a sample of the rows. The
best few are then tried on all rows, and the rule decides among them. Trials are journalled to a file if one is
given, and the search goes on where that file ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.problem.problem import Problem
from treefocus.search.base import Run
from treefocus.search.focus import Focus

# From the smallest to the largest value, all on a logarithmic scale; they hold those of the paper's 42 settings.
SPACE: dict[str, tuple[float, float]] = {
    "sigma": (1.0, 30.0),
    "tau": (0.5, 20.0),
    "beta": (0.0005, 0.1),
    "alpha": (0.0005, 0.05),
}
FINALISTS = 3
_STUDY = "focus"
_PENALTY = 1e6  # what guides the search away from rows left without an answer; the rule itself does not use it


@dataclass(frozen=True)
class Trial:
    """Parameters, and how they did: rows found of rows tried, and the mean distance of those found."""

    parameters: dict[str, float]
    found: int
    rows: int
    mean: float | None

    @property
    def worth(self) -> tuple[int, float]:
        """Smaller is better: rows left without an answer, then the mean distance."""
        return self.rows - self.found, float("inf") if self.mean is None else self.mean

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {"parameters": self.parameters, "found": self.found, "rows": self.rows, "mean": self.mean}


@dataclass(frozen=True)
class Tuned:
    """What the search came to: the winner on all rows, the finalists, and how many trials there were."""

    best: Trial
    finalists: tuple[Trial, ...]
    n_trials: int
    focus: Focus

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "best": self.best.to_dict(),
            "finalists": [trial.to_dict() for trial in self.finalists],
            "trials": self.n_trials,
        }


def tune(
    problem: Problem,
    *,
    trials: int = 50,
    rows: int = 200,
    base: Focus | None = None,
    journal: Path | None = None,
    run: Run | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tuned:
    """Search until there are `trials`, those of the journal included. base: the parameters that are not searched."""
    for name, value in (("trials", trials), ("rows", rows)):
        if value < 1:
            reject(name, "at least 1", value)
    if not len(problem):
        reject("rows", "a table with at least one row", 0)
    run = run or Run()
    base = base or Focus(retry=False, polish=False)
    size = min(rows, len(problem))
    sample = problem.subset(np.sort(np.random.default_rng(run.seed).permutation(len(problem))[:size]))
    study = _study(journal, run.seed)
    done = len(_finished(study))
    if progress is not None:
        progress(min(done, trials))
    while done < trials:
        asked = study.ask()
        parameters = {name: asked.suggest_float(name, low, high, log=True) for name, (low, high) in SPACE.items()}
        tried = attempt(sample, base, parameters, run)
        asked.set_user_attr("found", tried.found)
        asked.set_user_attr("rows", tried.rows)
        asked.set_user_attr("mean", tried.mean)
        study.tell(asked, _PENALTY * (tried.rows - tried.found) / tried.rows + (tried.mean or 0.0))
        done += 1
        if progress is not None:
            progress(done)
    finished = sorted(_finished(study), key=lambda trial: trial.worth)
    finalists = tuple(attempt(problem, base, trial.parameters, run) for trial in finished[:FINALISTS])
    best = min(finalists, key=lambda trial: trial.worth)
    return Tuned(best, finalists, len(finished), with_parameters(base, best.parameters))


def with_parameters(base: Focus, parameters: dict[str, float]) -> Focus:
    """FOCUS with these values of what is searched."""
    values: dict[str, Any] = dict(parameters)
    return replace(base, **values)


def attempt(problem: Problem, base: Focus, parameters: dict[str, float], run: Run) -> Trial:
    """FOCUS with these parameters on these rows."""
    distance = with_parameters(base, parameters).solve(problem, run).distance
    found = distance[~np.isnan(distance)]
    return Trial(parameters, len(found), len(distance), float(found.mean()) if found.size else None)


def _study(journal: Path | None, seed: int) -> Any:
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise ImportError("Tuning needs optuna: pip install 'treefocus[tune]'.") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate search is marked experimental
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
        storage = None if journal is None else JournalStorage(JournalFileBackend(str(journal)))
        return optuna.create_study(storage=storage, study_name=_STUDY, sampler=sampler, load_if_exists=True)


def _finished(study: Any) -> list[Trial]:
    """The trials that came to an end, of this run and earlier ones."""
    return [
        Trial(dict(trial.params), trial.user_attrs["found"], trial.user_attrs["rows"], trial.user_attrs["mean"])
        for trial in study.get_trials(deepcopy=False)
        if trial.state.name == "COMPLETE"
    ]
