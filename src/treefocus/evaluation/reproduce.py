"""All 42 settings of the paper: its figure, a faithful run, a run as the paper writes, the baselines and the optimum.

Faithful means with the particularities of the authors' program, which the paper does not mention and its figures rest
on (docs/reproduction.md lists them). The optimum starts from the best answer any column found and proves or improves
it, so it is never above another column.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.evaluation import datasets
from treefocus.evaluation.metrics import compare, fidelity, mean_distance, summarise
from treefocus.evaluation.paper import BY_ID, EPSILONS, ITERATIONS, LAMBDAS, SETTINGS, SOFT_TREES, Setting
from treefocus.model.forest import Floats, Forest
from treefocus.problem.distances import Mahalanobis, as_distance
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.space import Space
from treefocus.schema.schema import Schema
from treefocus.search.auto import Auto
from treefocus.search.base import Incumbent, Outcome, Run, Status, Strategy
from treefocus.search.dace import Dace
from treefocus.search.exact import Exact
from treefocus.search.feature_tweaking import FeatureTweaking
from treefocus.search.focus import Focus
from treefocus.search.random_perturbation import RandomPerturbation

FORMAT = "treefocus-reproduction-1"
COLUMNS = ("faithful", "as_written", "feature_tweaking", "random_perturbation", "dace", "optimum")

Say = Callable[[str, int, int], None]  # what is being done, how many of how many settings are done


@dataclass(frozen=True)
class Options:
    """How much to run. The defaults aim at half an hour on two cores."""

    iterations: int = ITERATIONS
    full: bool = False  # every row of everything
    optimum_rows: int = 300  # of the Wine and HELOC forests
    optimum_seconds: float = 1.0  # a row
    tuning_rows: int = 200  # on which Feature Tweaking's epsilon is chosen
    dace_rows: int = 30
    dace_seconds: float = 20.0  # a row
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name not in ("full", "seed") and not value > 0:
                reject(f"Options.{name}", "a number above 0", value)


def chosen_settings(names: str | None) -> tuple[Setting, ...]:
    """Settings by their ids, comma-separated; a part of an id stands for all it begins. None for all 42."""
    if names is None:
        return SETTINGS
    found: dict[str, Setting] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        mine = [setting for setting in SETTINGS if setting.id == name or setting.id.startswith(name + "-")]
        if not mine:
            reject("--settings", f"ids such as {SETTINGS[0].id} or {SETTINGS[0].dataset}", repr(name))
        found |= {setting.id: setting for setting in mine}
    if not found:
        reject("--settings", "at least one id", repr(names))
    return tuple(found.values())


def faithful(setting: Setting, iterations: int = ITERATIONS) -> Focus:
    """FOCUS as the authors' program does it."""
    written = as_written(setting, iterations)
    tau = None if setting.model == "dt" else setting.tau
    return replace(written, tau=tau, leaf="vote", soft_trees=SOFT_TREES, batch_mean=True)


def as_written(setting: Setting, iterations: int = ITERATIONS) -> Focus:
    """FOCUS as the paper's equations say."""
    return Focus(
        sigma=setting.sigma, tau=setting.tau, beta=setting.beta, alpha=setting.alpha, iterations=iterations,
        leaf="distribution", normalise=False, retry=False, polish=False,
    )  # fmt: skip


def ask(setting: Setting, forest: Forest, split: datasets.Split) -> Problem:
    """A setting's question: every test row, in [0, 1], as it is."""
    n_features = forest.n_features
    distance = Mahalanobis(squared=True) if setting.distance == "mahalanobis" else as_distance(setting.distance)
    return Question(
        forest,
        split.X_test,
        space=Space.of(None, None, (0.0, 1.0), n_features),
        distance=distance.fitted(n_features, split.X_train),
        constraints=(),
        schema=Schema.of_names(split.feature_names),
        grain=np.zeros(n_features, np.int8),
        target=None,
        examples=split.X_train,
    ).problem()


@dataclass(frozen=True, eq=False)
class Column:
    """One method's answers to a setting, and which test rows were asked."""

    outcome: Outcome
    asked: NDArray[np.intp]
    seconds: float
    extra: dict[str, Any]

    def distances(self, n_rows: int) -> Floats:
        """(n_rows,) distances of all test rows, NaN where none was found or asked."""
        spread = np.full(n_rows, np.nan)
        spread[self.asked] = self.outcome.distance
        return spread

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return summarise(self.outcome.distance, self.seconds).to_dict() | self.extra


def run_setting(
    setting: Setting, problem: Problem, options: Options, run: Run
) -> tuple[dict[str, Any], dict[str, Column]]:
    """Everything about one setting: its record, and its columns."""
    began = time.perf_counter()
    everything = np.arange(len(problem))
    columns: dict[str, Column] = {}
    for name, focus in (("faithful", faithful), ("as_written", as_written)):
        strategy = focus(setting, options.iterations)
        columns[name] = _solve(strategy, problem, everything, run, fidelity=fidelity(problem, strategy))
    columns["feature_tweaking"] = _feature_tweaking(problem, options, run)
    columns["random_perturbation"] = _solve(RandomPerturbation(options.draws), problem, everything, run)
    if setting.experiment == 2:
        dace_rows = _sample(len(problem), None if options.full else options.dace_rows, options.seed)
        dace = Dace(lambda_=LAMBDAS[0], time_limit=options.dace_seconds)
        with _quiet():
            columns["dace"] = _solve(dace, problem, dace_rows, run, lambda_=dace.lambda_)
    columns["optimum"] = _optimum(setting, problem, columns, options, run)
    record = _record(setting, len(problem), columns) | {"options": asdict(options)}
    return record | {"seconds": round(time.perf_counter() - began, 2)}, columns


def _solve(strategy: Strategy, problem: Problem, rows: NDArray[np.intp], run: Run, **extra: Any) -> Column:
    began = time.perf_counter()
    outcome = strategy.solve(problem if len(rows) == len(problem) else problem.subset(rows), run)
    return Column(outcome, rows, time.perf_counter() - began, extra)


def _feature_tweaking(problem: Problem, options: Options, run: Run) -> Column:
    """With the epsilon that finds most, then is closest (the paper's rule), on a fixed sample of rows.

    Candidates may leave [0, 1], as the authors' do: the published ratios come out only so.
    """
    began = time.perf_counter()
    problem = anywhere(problem)
    sample = problem.subset(_sample(len(problem), options.tuning_rows, options.seed))
    tried = {epsilon: FeatureTweaking(epsilon).solve(sample, run).distance for epsilon in EPSILONS}

    def worth(epsilon: float) -> tuple[int, float]:
        return -int((~np.isnan(tried[epsilon])).sum()), mean_distance(tried[epsilon]) or np.inf

    epsilon = min(EPSILONS, key=worth)
    column = _solve(FeatureTweaking(epsilon), problem, np.arange(len(problem)), run, epsilon=epsilon)
    return replace(column, seconds=time.perf_counter() - began)


def anywhere(problem: Problem) -> Problem:
    """The same question without a domain."""
    everywhere = np.full_like(problem.batch.rows, np.inf)
    return replace(problem, batch=replace(problem.batch, low=-everywhere, high=everywhere))


def _optimum(setting: Setting, problem: Problem, columns: dict[str, Column], options: Options, run: Run) -> Column:
    """From the best answer of all columns, improved and proven as far as the time goes."""
    is_sampled = _is_hard(setting) and not options.full
    rows = _sample(len(problem), options.optimum_rows if is_sampled else None, options.seed)
    began = time.perf_counter()
    part = problem.subset(rows)
    incumbent = Auto().seeded(part, run)
    offer_columns(incumbent, rows, columns)
    outcome = Exact(time_limit=options.optimum_seconds).prove(part, incumbent, run)
    known = columns["faithful"].distances(len(problem))[rows]
    extra = {
        "proven": sum(status in (Status.OPTIMAL, Status.INFEASIBLE) for status in outcome.status),
        "lower_bound": mean_distance(np.where(np.isfinite(outcome.lower_bound), outcome.lower_bound, np.nan)),
        "faithful_on_these_rows": mean_distance(known),
    }
    return Column(outcome, rows, time.perf_counter() - began, extra)


def offer_columns(incumbent: Incumbent, rows: NDArray[np.intp], columns: dict[str, Column]) -> None:
    """Let the incumbent know what the other columns found for its rows, brought into the domain."""
    batch = incumbent.problem.batch
    for column in columns.values():
        place = np.full(int(max(rows.max(), column.asked.max())) + 1, -1)
        place[column.asked] = np.arange(len(column.asked))
        mine = np.flatnonzero(place[rows] >= 0)
        points = np.clip(column.outcome.points[place[rows[mine]]], batch.low[mine], batch.high[mine])
        incumbent.offer(points, mine)


def _record(setting: Setting, n_rows: int, columns: dict[str, Column]) -> dict[str, Any]:
    published = setting.published
    baseline = "dace" if setting.experiment == 2 else "feature_tweaking"
    found = {name: column.distances(n_rows) for name, column in columns.items()}
    return {
        "id": setting.id,
        "experiment": setting.experiment,
        "dataset": setting.dataset,
        "model": setting.model,
        "distance": setting.distance,
        "parameters": {name: getattr(setting, name) for name in ("sigma", "tau", "beta", "alpha")},
        "baseline": baseline,
        "published": asdict(published) | {"mean": published.focus_mean, "found": n_rows, "rows": n_rows},
        **{name: column.record() for name, column in columns.items()},
        "comparison": {name: compare(found[name], found[baseline]).to_dict() for name in ("faithful", "as_written")},
    }


def _sample(n_rows: int, size: int | None, seed: int) -> NDArray[np.intp]:
    """A fixed sample of the rows, in order; all of them where `size` is None."""
    if size is None or size >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:size])


def reproduce(
    settings: Sequence[Setting],
    output: Path,
    data_dir: Path | None = None,
    options: Options | None = None,
    n_jobs: int | None = None,
    say: Say | None = None,
) -> dict[str, Any]:
    """Run the settings, writing `output`/results.json after each; what is there already, by the same options, stays."""
    options = options or Options()
    results = open_results(output)
    records: dict[str, Any] = {record["id"]: record for record in results["settings"]}
    (output / "rows").mkdir(parents=True, exist_ok=True)
    splits: dict[str, datasets.Split] = {}
    forests: dict[tuple[str, str], Forest] = {}
    for done, setting in enumerate(settings):
        if say is not None:
            say(setting.id, done, len(settings))
        if records.get(setting.id, {}).get("options") == asdict(options):
            continue
        if setting.dataset not in splits:
            splits[setting.dataset] = datasets.load(setting.dataset, data_dir, seed=options.seed)
        split = splits[setting.dataset]
        key = setting.dataset, setting.model
        if key not in forests:
            forests[key] = datasets.load_model(split, setting.model, data_dir)
        problem = ask(setting, forests[key], split)
        record, columns = run_setting(setting, problem, options, Run(seed=options.seed, n_jobs=n_jobs))
        distances = {name: column.distances(len(problem)) for name, column in columns.items()}
        np.savez_compressed(output / "rows" / f"{setting.id}.npz", allow_pickle=False, **distances)
        records[setting.id] = record | {"machine": machine(n_jobs)}
        order = {own.id: place for place, own in enumerate(SETTINGS)}
        results["settings"] = sorted(records.values(), key=lambda one: order[one["id"]])
        _write(output / "results.json", json.dumps(results, indent=1, allow_nan=False))
    if say is not None:
        say("done", len(settings), len(settings))
    return results


# Seconds a row, rough, from runs on two busy cores: DACE by model; all but DACE and the optimum by model kind.
_DACE_SECONDS = {
    "wine-dt": 1.3, "heloc-dt": 2.5, "compas-dt": 0.1, "compas-ab": 0.3, "shopping-dt": 0.4, "shopping-ab": 2.5,
}  # fmt: skip
_OTHER_SECONDS = {"dt": 0.002, "rf": 0.02, "ab": 0.004}
_TEST_ROWS = {"wine": 1470, "heloc": 3138, "compas": 1852, "shopping": 3699}


def expected_seconds(settings: Sequence[Setting], options: Options, n_jobs: int | None) -> float:
    """About how long a run takes: where the proof is hard, the whole time limit of every row is counted."""
    total, threads = 0.0, kernels.n_threads(n_jobs)
    for setting in settings:
        n_rows = _TEST_ROWS[setting.dataset]
        total += n_rows * _OTHER_SECONDS[setting.model] * 2 / threads * (0.2 + 0.8 * options.iterations / ITERATIONS)
        if setting.experiment == 2:
            n_asked = n_rows if options.full else min(n_rows, options.dace_rows)
            total += n_asked * _DACE_SECONDS[f"{setting.dataset}-{setting.model}"]
        if setting.distance == "cosine" and _is_hard(setting):
            n_asked = n_rows if options.full else min(n_rows, options.optimum_rows)
            total += n_asked * options.optimum_seconds / threads
    return total


def _is_hard(setting: Setting) -> bool:
    """Whether the optimum of all rows takes too long for a run by default: the Wine and HELOC forests."""
    return setting.dataset in ("wine", "heloc") and setting.model == "rf"


def open_results(output: Path) -> dict[str, Any]:
    """The results so far, or an empty record."""
    path = output / "results.json"
    if not path.is_file():
        return {"format": FORMAT, "settings": []}
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        assert results["format"] == FORMAT
        assert all(record["id"] in BY_ID for record in results["settings"])
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InvalidInput(f"{path} is not a {FORMAT} file; give another folder with -o.") from error
    return dict(results)


def machine(n_jobs: int | None) -> dict[str, Any]:
    """What the times were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": kernels.n_threads(n_jobs),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _write(path: Path, text: str) -> None:
    """All or nothing."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """HiGHS prints now and then, straight to the process's output; nobody asked."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # no output at all
        yield
        return
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(silence)
