"""Several ways out: each is what brute force finds among the points that spare a feature of every way before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from sklearn.tree import DecisionTreeClassifier

from support import brute
from support.forests import SEEDS
from support.questions import random_question, stump
from support.small_problems import DISTANCES, small_problem
from treefocus import Auto, Exact, Explainer, Explanations, Focus, InvalidInput, Linear, Status
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search import Outcome, Run, Strategy
from treefocus.search.ways import ways_out

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "explanations-1.json"
MANY = settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def changed(row: Floats, point: Floats) -> frozenset[int]:
    is_same = (row == point) | (np.isnan(row) & np.isnan(point))
    return frozenset(np.flatnonzero(~is_same).tolist())


def possible(problem: Problem) -> Problem:
    return problem.subset(np.flatnonzero(problem.has_box))


def kept_alone(question: brute.RowQuestion, kept: frozenset[int]) -> brute.RowQuestion | None:
    """The question with some values left as they are, None where they may not stay."""
    low, high, may_leave, may_lack = (a.copy() for a in (
        question.low, question.high, question.may_leave, question.may_lack
    ))  # fmt: skip
    named = {f: own.copy() for f, own in question.named.items()}
    for f in kept:
        value = question.row[f]
        may_leave[f] = False
        if np.isnan(value):
            if not may_lack[f]:
                return None
            continue
        may_lack[f] = False
        if not low[f] <= value <= high[f]:
            return None
        low[f] = high[f] = value
        if question.is_category[f]:
            named[f] &= np.arange(len(named[f])) == value
    return replace(question, low=low, high=high, may_leave=may_leave, may_lack=may_lack, named=named)


def best_way(question: brute.RowQuestion, before: Sequence[frozenset[int]]) -> float:
    """The distance of the best answer that leaves a feature of each of these sets as it is."""
    best = np.inf
    for chosen in set(map(frozenset, product(*before))):
        part = kept_alone(question, chosen)
        if part is not None:
            best = min(best, brute.optimum(part))
    return best


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "l0", "weighted sum of all"])
@MANY
@given(seed=SEEDS)
def test_every_way_is_the_one_that_brute_force_finds(distance: str, seed: int) -> None:
    problem = possible(small_problem(seed, distance, n_rows=3))
    run = Run(n_jobs=1)
    ways = ways_out(problem, Exact().solve(problem, run), Exact(), run, 4)
    for i, question in enumerate(brute.questions_of(problem)):
        before: list[frozenset[int]] = []
        for k, way in enumerate(ways):
            best = best_way(question, before)
            if not way.status[i].has_answer:
                assert way.status[i] is Status.INFEASIBLE
                assert best == np.inf, (i, k)
                break
            assert not brute.faults(question, way.points[i], way.distance[i])
            assert way.status[i] is Status.OPTIMAL
            assert best * (1 - 1e-7) - 1e-9 <= way.distance[i] <= best * (1 + 1e-7) + 1e-9, (i, k)
            uses = changed(question.row, way.points[i])
            assert not any(earlier <= uses for earlier in before)
            before.append(uses)


@pytest.mark.parametrize("strategy", [Auto(), Auto(prove=False), Focus(iterations=60), Exact(node_limit=3)])
@pytest.mark.parametrize("distance", ["manhattan", "mahalanobis", "cosine"])
def test_every_strategy_gives_valid_ways_cheapest_first(strategy: Auto | Focus | Exact, distance: str) -> None:
    for seed in range(12):
        problem = possible(small_problem(seed, distance))
        if not len(problem) or (isinstance(strategy, Focus) and problem.forest.categories is not None):
            continue
        run = Run(n_jobs=1)
        ways = ways_out(problem, strategy.solve(problem, run), strategy, run, 3)
        check(problem, ways)


def check(problem: Problem, ways: list[Outcome]) -> None:
    for i, row in enumerate(problem.batch.rows):
        answers = [way for way in ways if way.status[i].has_answer]
        used = [changed(row, way.points[i]) for way in answers]
        for way in answers:
            assert problem.subset(np.array([i])).is_valid(way.points[i][None])[0]
            assert way.lower_bound[i] <= way.distance[i]
        distances = np.array([way.distance[i] for way in answers])
        assert (np.diff(distances) >= -1e-8 * distances[1:] - 1e-10).all()
        assert not any(earlier <= later for k, later in enumerate(used) for earlier in used[:k])


@dataclass(frozen=True)
class Poor(Strategy):
    """A search that finds, with some features kept, one answer that is written down, the best ones late."""

    answers: tuple[tuple[frozenset[int], tuple[float, ...]], ...]

    def solve(self, problem: Problem, run: Run) -> Outcome:
        points = np.full_like(problem.batch.rows, np.nan)
        for i in range(len(problem)):
            is_kept = problem.batch.low[i] == problem.batch.high[i]
            kept = frozenset(np.flatnonzero(is_kept).tolist())
            points[i] = dict(self.answers).get(kept, (np.nan,) * points.shape[1])
        status = np.where(np.isnan(points).any(axis=1), Status.NOT_FOUND, Status.FOUND)
        return Outcome(points, problem.distance_to(points), np.zeros(len(points)), status)


def test_a_later_way_does_not_repeat_a_closer_one_that_was_found_after_it() -> None:
    answers = {(): (1.0, 1.0, 0.0), (0,): (0.0, 1.0, 2.0), (1,): (2.0, 0.0, 2.0), (0, 2): (0.0, 0.5, 0.0)}
    strategy = Poor(tuple((frozenset(kept), point) for kept, point in answers.items()))
    explainer = Explainer(stump(n_features=3), np.array([[-5.0] * 3, [5.0] * 3]), distance="manhattan", scale=None)
    problem = explainer.explain(np.zeros((1, 3)), strategy=Focus(iterations=1)).problem
    assert problem is not None
    run = Run()
    ways = ways_out(problem, strategy.solve(problem, run), strategy, run, 3)
    assert [way.distance[0] for way in ways[:2]] == [0.5, 4.0]  # those at 2 and 3 change the second feature, too
    assert [changed(np.zeros(3), way.points[0]) for way in ways[:2]] == [{1}, {0, 2}]
    assert ways[2].status[0] is Status.NOT_FOUND
    check_promise(ways, np.zeros((1, 3)))


def check_promise(ways: Sequence[Outcome], rows: Floats) -> None:
    for i, row in enumerate(rows):
        used = [changed(row, way.points[i]) for way in ways if way.status[i].has_answer]
        assert not any(earlier <= later for k, later in enumerate(used) for earlier in used[:k])


@pytest.mark.parametrize("node_limit", [1, 2, 5, 20])
def test_the_promise_holds_where_searches_are_cut_short(node_limit: int) -> None:
    for seed in range(25):
        explainer, rows = random_question(seed, n_rows=4, distance="manhattan")
        explainer.constraints = (Linear({0: 1.0, 1: -1.0}, at_most=float(np.nanmean(rows))),)
        found = explainer.explain(rows, n=4, strategy=Exact(node_limit=node_limit))
        check_promise([way.found for way in found.ways], found.table.values)


@pytest.mark.parametrize("distance", DISTANCES)
def test_what_is_kept_stays(distance: str) -> None:
    for seed in range(10):
        problem = small_problem(seed, distance)
        is_kept = np.random.default_rng(seed).random(problem.batch.rows.shape) < 0.5
        kept = possible(problem.keeping(is_kept))
        is_kept = is_kept[problem.keeping(is_kept).has_box]
        if not len(kept):
            continue
        found = Exact().solve(kept, Run(n_jobs=1))
        rows = kept.batch.rows
        same = (found.points == rows) | (np.isnan(found.points) & np.isnan(rows))
        assert (same | ~is_kept)[found.has_answer].all()


# ---- as users see them


@pytest.fixture(scope="module")
def found() -> Explanations:
    """Three features, of which any two above 0.5 are enough."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.random((400, 3)).round(2), columns=["a", "b", "c"])
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(data, ((data > 0.5).sum(axis=1) > 1).astype(int))
    rows = pd.DataFrame([[0.4, 0.3, 0.2], [0.9, 0.9, 0.1]], columns=data.columns, index=["x", "y"])
    return Explainer(model, data, distance="manhattan").explain(rows, target=1, n=4)


def test_ways_are_explanations(found: Explanations) -> None:
    first, done = found
    assert len(found.ways) == 4
    assert [way.distance for way in first.ways] == sorted(way.distance or 0 for way in first.ways)
    assert len(first.ways) > 1
    for k, way in enumerate(first.ways):
        names = {change.feature for change in way.changes}
        assert not any({change.feature for change in other.changes} <= names for other in first.ways[:k])
        assert way.status is Status.OPTIMAL
    assert [len(way.changes) for way in done.ways] == [0]
    assert done.to_text() == "Row y is predicted '1' already; nothing has to change."


def test_ways_stand_in_text_frame_json_and_page(found: Explanations, tmp_path: Path) -> None:
    told = found[0].to_text()
    assert told.count("It would also be enough if ") == len(found[0].ways) - 1
    assert told.endswith("There is no other way.") == found[0].is_last_way
    assert "\n" not in told
    assert "Es würde auch genügen, wenn " in found[0].to_text("de")
    assert "also be enough" in found[0].to_letter()
    frame = found.to_frame()
    assert list(frame["way"]) == [*range(1, len(found[0].ways) + 1), 1]
    assert list(frame["distance"][:-1]) == [way.distance for way in found[0].ways]
    assert list(found.changes_frame()["way"]) == [k for k, way in enumerate(found[0].ways, 1) for _ in way.changes]
    record = json.loads(found.to_json())
    jsonschema.validate(record, json.loads(SCHEMA.read_text(encoding="utf-8")))
    again = Explanations.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again[0].to_text() == told
    assert "also be enough" in found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")


def test_one_way_is_what_it_was(found: Explanations) -> None:
    alone = found.ways[0]
    assert alone.others == ()
    assert "way" not in alone.to_frame().columns
    assert "ways" not in json.loads(alone.to_json())["rows"][0]


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_a_wrong_number_of_ways_is_refused(n: object) -> None:
    with pytest.raises(InvalidInput, match="n must be a whole number above 0"):
        Explainer(stump(), np.eye(2)).explain(np.eye(2), n=n)  # type: ignore[arg-type]
