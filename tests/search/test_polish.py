"""Polish: its answers are valid, never farther, and no move of one feature and no trade between two improves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support import brute
from support.brute import RowQuestion
from support.examples import forests
from support.forests import SEEDS
from support.questions import FAST
from support.small_problems import COUPLED, DISTANCES, NORMS, small_problem
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search import Run
from treefocus.search.polish import polished

many, few = forests(14), forests(4)
ONE = Run(n_jobs=1)


def some_answers(problem: Problem, seed: int) -> Floats:
    """(n_rows, n_features) a random answer of every row, NaN where there is none."""
    rng = np.random.default_rng(seed)
    points = np.full_like(problem.batch.rows, np.nan)
    for i, question in enumerate(brute.questions_of(problem)):
        low, high = brute.cells(question)
        if len(low) and not np.isnan(question.row).all():
            inner = brute.inside(question, low, high)
            answers = np.flatnonzero(
                question.flips(brute.predict(question.forest, inner)) & brute.obeys(question, inner)
            )
            if answers.size:
                points[i] = inner[rng.choice(answers)]
    return points


def cell_values(question: RowQuestion) -> list[Floats]:
    """Per feature, the closest value of every piece that can be moved to."""
    values = []
    for f in range(len(question.row)):
        low, high = (np.tile(question.row, (own.size, 1)) for own in [brute.pieces(question, f)[0]] * 2)
        low[:, f], high[:, f] = brute.pieces(question, f)
        values.append(brute.inside(question, low, high)[:, f])
    return values


def single_moves(question: RowQuestion, point: Floats) -> Iterator[Floats]:
    """(n, d) the points that differ in one feature."""
    for f, values in enumerate(cell_values(question)):
        moved = np.tile(point, (len(values), 1))
        moved[:, f] = values
        yield moved


def away(question: RowQuestion, f: int, values: Any) -> Floats:
    """How far values of one feature are from the row's."""
    row = question.row[f]
    is_other = (values != row) & ~(np.isnan(values) & np.isnan(row))
    return np.where(question.is_category[f] | np.isnan(values) | np.isnan(row), is_other, np.abs(values - row))


def trades(question: RowQuestion, point: Floats) -> Iterator[Floats]:
    """(n, d) the points with one feature closer to the row's value and another anywhere."""
    values = cell_values(question)
    for f, own in enumerate(values):
        closer = own[away(question, f, own) < away(question, f, point[f])]
        for g, others in enumerate(values):
            if g != f and len(closer) and len(others):
                one, other = (side.ravel() for side in np.meshgrid(closer, others))
                moved = np.tile(point, (len(one), 1))
                moved[:, f], moved[:, g] = one, other
                yield moved


def best_of(question: RowQuestion, moves: Iterator[Floats]) -> float:
    """The distance of the closest answer among the moves."""
    best = np.inf
    for moved in moves:
        answers = question.flips(brute.predict(question.forest, moved)) & brute.obeys(question, moved)
        best = min(best, brute.measure(question, moved[answers]).min(initial=np.inf))
    return best


def is_cut_inside_cells(question: brute.RowQuestion) -> bool:
    """Whether a rule can tell values of one cell apart: polish moves from cell to cell, the rest is the search's."""
    return any(type(rule).__name__.removesuffix("Rule") in ("Together", "Implies") for rule in question.rules)


@pytest.mark.parametrize("distance", NORMS)
@many
@given(seed=SEEDS)
def test_no_move_of_one_feature_and_no_trade_improves(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    before = some_answers(problem, seed)
    after = polished(problem, before, ONE)
    for i, question in enumerate(brute.questions_of(problem)):
        if np.isnan(before[i]).all():
            assert np.isnan(after[i]).all()
            continue
        was, now = brute.measure(question, np.stack([before[i], after[i]]))
        assert not brute.faults(question, after[i], now), brute.show(question)
        assert now <= was * (1 + 1e-12)
        least = now * (1 - 1e-9) - 1e-12
        if not is_cut_inside_cells(question):
            assert best_of(question, single_moves(question, after[i])) >= least, brute.show(question)
            assert best_of(question, trades(question, after[i])) >= least, brute.show(question)


@pytest.mark.parametrize("distance", NORMS)
@many
@given(seed=SEEDS)
def test_without_trades_no_move_of_one_feature_improves(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    before = some_answers(problem, seed)
    after = polished(problem, before, ONE, with_trades=False)
    for i, question in enumerate(brute.questions_of(problem)):
        if not np.isnan(before[i]).all():
            was, now = brute.measure(question, np.stack([before[i], after[i]]))
            assert not brute.faults(question, after[i], now), brute.show(question)
            assert now <= was * (1 + 1e-12)
            if not is_cut_inside_cells(question):
                assert best_of(question, single_moves(question, after[i])) >= now * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("distance", COUPLED)
@many
@given(seed=SEEDS)
def test_coupled_distances_are_polished_to_valid_points_not_farther(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    before = some_answers(problem, seed)
    after = polished(problem, before, ONE)
    for i, question in enumerate(brute.questions_of(problem)):
        if not np.isnan(before[i]).all():
            was, now = brute.measure(question, np.stack([before[i], after[i]]))
            assert not brute.faults(question, after[i], now), brute.show(question)
            assert now <= was * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("distance", DISTANCES)
@few
@given(seed=SEEDS)
def test_focus_is_never_farther_with_polish_than_without(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    rough, fine = (replace(FAST, polish=polish).solve(problem, ONE) for polish in (False, True))
    assert (np.isfinite(rough.distance) == np.isfinite(fine.distance)).all()
    found = np.isfinite(rough.distance)
    assert (fine.distance[found] <= rough.distance[found]).all()
    assert problem.is_valid(fine.points)[found].all()


@many
@given(seed=SEEDS)
def test_polish_is_done_after_one_pass(seed: int) -> None:
    names = list(NORMS)
    problem = small_problem(seed, names[seed % len(names)])
    once = polished(problem, some_answers(problem, seed), ONE)
    assert polished(problem, once, ONE).tobytes() == once.tobytes()


@many
@given(seed=SEEDS)
def test_more_threads_change_no_bit(seed: int) -> None:
    names = list(DISTANCES)
    problem = small_problem(seed, names[seed % len(names)], n_rows=12)
    points = some_answers(problem, seed)
    assert polished(problem, points, ONE).tobytes() == polished(problem, points, Run(n_jobs=3)).tobytes()
