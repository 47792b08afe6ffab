"""A limit on the local outlier factor: held to every point of small grids, and to scikit-learn's own factor."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor as Reference

from support.examples import forests
from support.forests import SEEDS
from support.small_problems import COUPLED, DISTANCES
from treefocus import (
    AtMost,
    Auto,
    Condition,
    Exact,
    Explainer,
    Feature,
    Fixed,
    Implies,
    Increasing,
    Linear,
    LocalOutlierFactor,
    MayBeMissing,
    OneOf,
    Range,
    Schema,
    Status,
    Together,
    verify,
)
from treefocus.explanation.row import Explanation
from treefocus.model.forest import Floats
from treefocus.problem.plausibility import neighbours_of
from treefocus.problem.problem import Problem
from treefocus.search import Outcome, Run
from treefocus.search.base import Interruption, Strategy
from treefocus.search.plausible import Plausible

few, some = forests(6), forests(20)
RELATIVE, ABSOLUTE = 1e-7, 1e-9
VALUES: dict[str, Floats] = {
    "integer": np.arange(6.0),
    "step": np.arange(0.0, 3.0, 0.5),
    "list": np.array([0.0, 0.3, 1.0, 2.5, 4.0]),
    "category": np.arange(4.0),
}
RULES: dict[str, list[Any]] = {
    "none": [],
    "fixed": [Fixed("c0")],
    "increasing": [Increasing("c1")],
    "range": [Range("c0", 1.0, 4.0)],
    "one of": [OneOf("c0", [1.0, 3.0])],
    "at most": [AtMost(2)],
    "together": [Together("c0", "c1")],
    "implies": [Implies(Condition("c0", high=2.0), Condition("c1", low=1.0))],
    "linear": [Linear({"c0": 1.0, "c1": 1.0}, at_most=4.0)],
    "missing": [MayBeMissing("c1")],
}


def column_of(name: str, kind: str) -> Feature:
    """A column that holds the values of its kind."""
    own = VALUES[kind]
    if kind == "category":
        return Feature(name, "categorical")
    if kind == "list":
        return Feature(name, values=tuple(own.tolist()))
    return Feature(name, kind, low=own[0], high=own[-1], step=0.5 if kind == "step" else None)  # type: ignore[arg-type]


def small_case(seed: int, distance: str, rule: str, kinds: list[str] | None = None) -> tuple[Explainer, Floats, Floats]:
    """An explainer of a small model of columns with few values, rows, and every point that there is."""
    rng = np.random.default_rng(seed)
    kinds = kinds or ["integer", *rng.choice([*VALUES], 2).tolist()]
    names = [f"c{j}" for j in range(len(kinds))]
    while True:
        data = np.column_stack([rng.choice(VALUES[kind], 40) for kind in kinds])
        score = data @ rng.normal(size=len(kinds)) + 2 * np.sin(data[:, 0] * data[:, 1])
        y = (score > np.median(score)).astype(int)
        if 5 <= y.sum() <= 35:
            break
    rule = "none" if rule == "missing" and distance in COUPLED else rule  # no distance to a missing value there
    if rule == "missing":
        data[rng.random(40) < 0.1, 1] = np.nan
    is_category = [kind == "category" for kind in kinds]
    model: Any = RandomForestClassifier(6, max_depth=3, random_state=0)
    if any(is_category) or rule == "missing":
        model = HistGradientBoostingClassifier(
            max_iter=8, max_depth=3, min_samples_leaf=2, categorical_features=is_category
        )
    measure = LocalOutlierFactor(
        limit=float(rng.choice([0.8, 1.0, 1.2, 1.5, 2.0])), neighbours=int(rng.choice([1, 1, 1, 2, 3]))
    )
    rules = [one for one in RULES[rule] if not (is_category[1] and rule in ("implies", "linear", "increasing"))]
    explainer = Explainer(
        model.fit(data, y), data, distance=DISTANCES[distance](rng, len(kinds)), plausibility=measure,
        schema=Schema([column_of(name, kind) for name, kind in zip(names, kinds, strict=True)]),
        constraints=rules,
    )  # fmt: skip
    values = [np.append(VALUES[kind], np.nan) if rule == "missing" and j == 1 else VALUES[kind]
              for j, kind in enumerate(kinds)]  # fmt: skip
    rows = np.column_stack([rng.choice(own, 3) for own in values])
    return explainer, rows, np.array([*product(*values)])


def faults_of(one: Explanation, measure: LocalOutlierFactor, grid: Floats) -> list[str]:
    """What an explanation says that is not so, by all points there are."""
    problem, limit = one.problem, measure.limit
    assert limit is not None
    every = problem.subset(np.zeros(len(grid), np.intp))
    fits = every.is_valid(grid) & (measure.score(problem, grid) <= limit)
    best = float(every.distance_to(grid)[fits].min(initial=np.inf))
    wrong = []
    if one.status.has_answer:
        point = np.asarray(one.counterfactual, np.float64)[None]
        if not (problem.is_valid(point)[0] and measure.score(problem, point)[0] <= limit):
            wrong.append("the answer is none")
        if one.distance < best * (1 - RELATIVE) - ABSOLUTE:
            wrong.append(f"{one.distance} is closer than any answer ({best})")
    if one.lower_bound > best * (1 + ABSOLUTE) + ABSOLUTE:
        wrong.append(f"the bound {one.lower_bound} is above the optimum {best}")
    if one.status is Status.OPTIMAL and one.distance > best * (1 + RELATIVE) + ABSOLUTE:
        wrong.append(f"{one.distance} is called optimal, {best} is")
    if one.status is Status.INFEASIBLE and best < np.inf:
        wrong.append(f"called infeasible, with an answer at {best}")
    return wrong


def checked(seed: int, distance: str, rule: str, strategy: Any = "auto") -> Counter[Status]:
    """The statuses of a small case of which nothing is wrong."""
    explainer, rows, grid = small_case(seed, distance, rule)
    measure = explainer.plausibility
    assert isinstance(measure, LocalOutlierFactor)
    found = explainer.explain(rows, strategy=strategy, n_jobs=1)
    for i, one in enumerate(found):
        wrong = faults_of(one, measure, grid)
        assert not wrong, f"row {i} of {seed}: {'; '.join(wrong)}"
    return Counter(found.status.tolist())


@pytest.mark.parametrize("rule", [*RULES])
@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev", "l0", "weighted sum of all",
                                      "mahalanobis", "cosine"])  # fmt: skip
@forests(3)
@given(seed=SEEDS)
def test_nothing_is_said_that_is_not_so(distance: str, rule: str, seed: int) -> None:
    checked(seed, distance, rule)


@few
@given(seed=SEEDS)
def test_a_search_that_is_stopped_claims_no_more_than_it_knows(seed: int) -> None:
    for node_limit in (1, 100, 300):
        checked(seed, "manhattan", [*RULES][seed % len(RULES)], Exact(node_limit=node_limit))


def test_small_cases_are_proven() -> None:
    statuses: Counter[Status] = Counter()
    for seed in range(30):
        statuses += checked(seed, ["manhattan", "euclidean"][seed % 2], [*RULES][seed % len(RULES)])
    settled = statuses[Status.OPTIMAL] + statuses[Status.INFEASIBLE]
    assert settled >= 0.97 * statuses.total(), statuses
    assert statuses[Status.INFEASIBLE] > 5, statuses


def cloud(seed: int, **options: Any) -> tuple[Explainer, Floats]:
    """An explainer of a forest on two continuous columns, whose data lie in clumps."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(5, 2))[rng.integers(0, 5, 80)] + rng.normal(scale=0.15, size=(80, 2))
    y = (data[:, 0] * data[:, 1] > np.median(data[:, 0] * data[:, 1])).astype(int)
    model = RandomForestClassifier(8, max_depth=3, random_state=0).fit(data, y)
    schema = Schema([Feature("a"), Feature("b")])
    return Explainer(model, data, schema=schema, **options), data[:6] + rng.normal(scale=0.05, size=(6, 2))


@pytest.mark.parametrize("distance", ["manhattan", "euclidean"])
@some
@given(seed=SEEDS)
def test_no_point_of_a_plane_is_closer_than_what_is_proven(distance: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    measure = LocalOutlierFactor(limit=float(rng.choice([0.9, 1.1, 1.5])), neighbours=int(rng.choice([1, 1, 2])))
    explainer, rows = cloud(seed, distance=distance, plausibility=measure)
    found = explainer.explain(rows[:3], strategy=Exact(work_limit=200_000_000), n_jobs=1)
    for one in found:
        low, high = one.problem.batch.low[0], one.problem.batch.high[0]
        own, data = one.problem.batch.rows[0], one.problem.examples.rows
        near = np.concatenate([own + rng.normal(scale=s, size=(1500, 2)) for s in (0.02, 0.1, 0.5)])
        around = data[rng.integers(0, len(data), 2000)] + rng.normal(scale=0.1, size=(2000, 2))
        grid = np.clip(np.concatenate([near, around]), low, high).astype(np.float32).astype(float)
        every = one.problem.subset(np.zeros(len(grid), np.intp))
        fits = every.is_valid(grid) & (measure.score(one.problem, grid) <= measure.limit)
        best = float(every.distance_to(grid)[fits].min(initial=np.inf))
        assert one.lower_bound <= best * (1 + ABSOLUTE)
        if one.status is Status.OPTIMAL:
            assert one.distance <= best * (1 + RELATIVE)
        assert one.status is not Status.INFEASIBLE or best == np.inf


def test_a_continuous_plane_is_proven_with_one_neighbour() -> None:
    statuses: Counter[Status] = Counter()
    for seed in range(8):
        explainer, rows = cloud(seed, distance="manhattan", plausibility=LocalOutlierFactor(limit=1.2))
        statuses += Counter(explainer.explain(rows, n_jobs=1).status.tolist())
    assert statuses[Status.OPTIMAL] + statuses[Status.INFEASIBLE] >= 0.9 * statuses.total(), statuses


def test_scikit_learns_own_factor_of_every_answer_obeys() -> None:
    n = 0
    for seed in range(6):
        explainer, rows = cloud(seed, distance="manhattan", plausibility=LocalOutlierFactor(limit=1.2))
        found = explainer.explain(rows, n_jobs=1)
        known = neighbours_of(found[0].problem)
        reference = Reference(n_neighbors=1, novelty=True, metric="manhattan").fit(known.points)
        points = found.points[found.has_answer]
        assert (-reference.score_samples(known.to_space(points)) <= 1.2 * (1 + 1e-6)).all()
        n += len(points)
    assert n > 20


def test_an_interrupted_search_gives_no_answer_that_breaks_the_limit() -> None:
    measure = LocalOutlierFactor(limit=1.2)
    explainer, rows = cloud(2, distance="manhattan", plausibility=measure)
    whole = explainer.explain(rows, n_jobs=1).problem
    assert whole is not None
    for came in (False, True):
        interruption = Interruption()
        strategy = Plausible(_ThenInterrupted(interruption if came else None), measure)
        found = strategy.solve(whole, Run(n_jobs=1, interruption=interruption))
        answered = found.has_answer
        assert (measure.score(whole, found.points[answered]) <= 1.2).all()
        assert answered.all() == (not came)


@dataclass(frozen=True)
class _ThenInterrupted(Strategy):
    """The exact search, at whose end Ctrl-C comes."""

    proves = True

    interruption: Interruption | None

    def solve(self, problem: Problem, run: Run) -> Outcome:
        found = Exact().solve(problem, run)
        if self.interruption is not None:
            self.interruption()
        return found


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_the_time_limit_counts_for_all_of_it(seconds: float) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 8))
    model = RandomForestClassifier(60, random_state=0).fit(data, data[:, 0] * data[:, 1] + data[:, 2] > 0)
    measure = LocalOutlierFactor(limit=0.9, neighbours=2)
    explainer = Explainer(model, data, schema=Schema([Feature(f"c{j}") for j in range(8)]), plausibility=measure)
    explainer.explain(data[:1], time_limit=seconds, n_jobs=1)
    began = time.process_time()  # of which there is less than of the clock's, whatever else the machine does
    found = explainer.explain(data[:6], time_limit=seconds, n_jobs=1)
    assert time.process_time() - began < 6 * seconds * 1.5 + 3.0
    points = found.points[found.has_answer]
    assert (measure.score(found[0].problem, points) <= 0.9).all()


@pytest.mark.campaign
def test_the_same_call_gives_the_same_bytes_and_more_work_no_worse_answer() -> None:
    explainer, rows = cloud(3, distance="manhattan", plausibility=LocalOutlierFactor(limit=0.9, neighbours=2))
    small, again, large = (
        explainer.explain(rows, strategy=Auto(work_limit=limit), n_jobs=1)
        for limit in (20_000_000, 20_000_000, 400_000_000)
    )
    assert small.points.tobytes() == again.points.tobytes()
    assert (small.lower_bound == again.lower_bound).all()
    both = small.has_answer & large.has_answer
    assert (large.distance[both] <= small.distance[both] + ABSOLUTE).all()
    assert (large.lower_bound >= small.lower_bound - ABSOLUTE).all()


def test_what_the_search_finds_is_part_of_why_not_and_no_proof_is_written() -> None:
    explainer, rows = cloud(1, distance="manhattan", plausibility=LocalOutlierFactor(limit=0.2))
    found = explainer.explain(rows[:2], n_jobs=1)
    assert (found.status == Status.INFEASIBLE).all()
    record = found[0].certificate(proof=True)
    assert "proof" not in record
    nothing = replace(explainer.plausibility, limit=1.2)  # type: ignore[type-var]
    explainer, rows = cloud(1, distance="manhattan", plausibility=nothing)
    one = explainer.explain(rows[:1], n_jobs=1)[0]
    assert one.status is Status.OPTIMAL
    verify(one.certificate(), explainer.forest)
