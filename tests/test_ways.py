"""Several ways out: each is what brute force finds among the points that spare a feature of every way before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import brute
from forests import SEEDS
from small_problems import DISTANCES, small_problem
from treefocus import Auto, Exact, Focus, Status
from treefocus.forest import Floats
from treefocus.problem import Problem
from treefocus.search import Outcome, Run
from treefocus.search.ways import ways_out

MANY = settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def changed(row: Floats, point: Floats) -> frozenset[int]:
    is_same = (row == point) | (np.isnan(row) & np.isnan(point))
    return frozenset(np.flatnonzero(~is_same).tolist())


def possible(problem: Problem) -> Problem:
    return problem.subset(np.flatnonzero(problem.has_box))


def kept_alone(question: brute.Question, kept: frozenset[int]) -> brute.Question | None:
    """The question with some values left as they are, None where they may not stay."""
    low, high, may_leave, may_take = (a.copy() for a in (
        question.low, question.high, question.may_leave, question.may_take
    ))  # fmt: skip
    for f in kept:
        value = question.row[f]
        may_leave[f] = may_take[f] = False
        if np.isnan(value):
            continue
        if not low[f] <= value <= high[f]:
            return None
        low[f] = high[f] = value
    return replace(question, low=low, high=high, may_leave=may_leave, may_take=may_take)


def best_way(question: brute.Question, before: Sequence[frozenset[int]]) -> tuple[float, float]:
    """As `brute.optima`: the best answer that leaves a feature of each of these sets as it is, and the least."""
    best = floor = np.inf
    for chosen in set(map(frozenset, product(*before))):
        part = kept_alone(question, chosen)
        if part is not None:
            one = brute.optima(part)
            best, floor = min(best, one[0]), min(floor, one[1])
    return best, floor


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
            best, floor = best_way(question, before)
            if not way.status[i].has_answer:
                assert way.status[i] is Status.INFEASIBLE
                assert best == np.inf, (i, k)
                break
            assert not brute.faults(question, way.points[i], way.distance[i])
            assert way.status[i] is Status.OPTIMAL
            assert floor * (1 - 1e-7) - 1e-9 <= way.distance[i] <= best * (1 + 1e-7) + 1e-9, (i, k)
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
        distances = [way.distance[i] for way in answers]
        assert distances == sorted(distances)
        assert len(set(used)) == len(used)


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
