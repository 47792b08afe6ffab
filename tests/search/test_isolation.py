"""A limit on the isolation score inside the search: held to brute force over all cells, and to the measure itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.brute import n_cells
from support.examples import forests
from support.forests import SEEDS, adversarial_rows
from support.judge import check
from support.small_problems import DISTANCES, small_question
from treefocus import Auto, Exact, IsolationScore
from treefocus.model.forest import Floats
from treefocus.problem.plausibility import isolation_of, neighbours_of
from treefocus.problem.question import Question
from treefocus.search import Run
from treefocus.search.base import solved
from treefocus.search.confirmed import Confirmed
from treefocus.search.plausible import Plausible

MOST_CELLS = 8_000
few, some = forests(5), forests(8)


def limited_question(seed: int, distance: str) -> Question:
    """A small question with some training rows, two or three small isolation trees, and a limit that some rows obey."""
    rng = np.random.default_rng(seed)
    while True:
        question = small_question(int(rng.integers(2**31)), distance, n_rows=3)
        examples = _examples(question, rng)
        measure = IsolationScore(limit=0.5, trees=int(rng.integers(1, 4)), seed=int(rng.integers(100)))
        question = replace(question, examples=examples, plausibility=measure)
        plain = replace(question, plausibility=None).problem()
        if len(np.unique(examples, axis=0)) < 2:
            continue
        score = measure.score(plain, examples)
        limit = float(rng.choice([score.min(), np.median(score), score.max(), score.min() * 0.99]))
        question = replace(question, plausibility=replace(measure, limit=limit))
        if n_cells(question.problem().forest) <= MOST_CELLS:
            return question


def _examples(question: Question, rng: np.random.Generator) -> Floats:
    """Rows beside the thresholds; a hole in one of them where the model takes it."""
    forest = question.forest
    rows = adversarial_rows(forest, rng, int(rng.integers(3, 7)))
    if forest.categories is not None:
        for f in np.flatnonzero(forest.categories.is_categorical):
            rows[:, f] = rng.integers(0, forest.categories.n_labels(int(f)) + 1, len(rows))
    return np.asarray(rows if forest.takes_missing else np.nan_to_num(rows))


def strategies(question: Question) -> list[Any]:
    measure = question.plausibility
    assert measure is not None
    return [Exact(), Plausible(Exact(), measure), Confirmed(Plausible(Auto(), measure))]


@pytest.mark.parametrize("distance", DISTANCES)
@few
@given(seed=SEEDS)
def test_the_search_says_what_brute_force_says(distance: str, seed: int) -> None:
    question = limited_question(seed, distance)
    problem = question.problem()
    for strategy in strategies(question):
        check(problem, solved(strategy, problem, Run(n_jobs=1)), is_finished=True, who=strategy)


def test_models_of_both_widths_agree_on_what_is_above_zero() -> None:
    problem = limited_question(2365391, "manhattan + 0.1 l0").problem()
    check(problem, solved(Exact(), problem, Run(n_jobs=1)), is_finished=True)


@some
@given(seed=SEEDS)
def test_a_search_that_is_stopped_claims_no_more_than_it_knows(seed: int) -> None:
    names = list(DISTANCES)
    question = limited_question(seed, names[seed % len(names)])
    problem, measure = question.problem(), question.plausibility
    assert measure is not None
    for node_limit in (1, 20):
        strategy = Confirmed(Plausible(Exact(node_limit=node_limit), measure))
        check(problem, solved(strategy, problem, Run(n_jobs=1)), is_finished=False, who=node_limit)


@some
@given(seed=SEEDS)
def test_its_trees_in_the_columns_say_what_the_measure_says(seed: int) -> None:
    question = limited_question(seed, "manhattan")
    problem, rng = question.problem(), np.random.default_rng(seed)
    isolation = problem.isolation
    assert isolation is not None
    assert isolation.measured is not None
    points = adversarial_rows(isolation.forest, rng, 60)
    categories = problem.forest.categories
    for f in np.flatnonzero(problem.batch.is_category):
        assert categories is not None
        points[:, f] = rng.integers(0, categories.n_labels(int(f)) + 1, len(points))
    points[rng.random(points.shape) < 0.1] = np.nan
    own = replace(isolation, measured=None)
    inside = np.asarray([replace(own, limit=limit).holds(points) for limit in np.unique(isolation.measured(points))])
    measured = np.asarray([isolation.measured(points) <= limit for limit in np.unique(isolation.measured(points))])
    assert (inside == measured).all()


def test_the_isolation_forest_is_made_once_whatever_is_asked_of_the_model() -> None:
    question = replace(limited_question(3, "manhattan"), target=None)
    first, other = question.problem(), question.of_row(0).problem()
    assert first.isolation is not None
    assert other.isolation is not None
    assert other.isolation.forest is first.isolation.forest
    assert other.forest is first.forest
    assert neighbours_of(first) is neighbours_of(other)
    assert isolation_of(IsolationScore(cost=0.1, limit=0.5), first) is None
