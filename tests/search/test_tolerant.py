"""Answers with room to move, held to brute force over all cells of the answers and of the boxes around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support import brute
from support.examples import forests
from support.forests import SEEDS
from support.judge import check
from support.small_problems import DISTANCES, small_question
from treefocus import Auto, Exact, Tolerance
from treefocus.problem.question import Question
from treefocus.search import Run
from treefocus.search.base import solved
from treefocus.search.confirmed import Confirmed

MOST_CELLS = 5_000
TINY, LARGE = float(np.finfo(np.float32).tiny), 1e4
few, some = forests(5), forests(8)


def tolerant_question(seed: int, distance: str) -> Question:
    """A small question that asks for room: shares or units, above or below or both."""
    rng = np.random.default_rng(seed)
    while True:
        question = small_question(int(rng.integers(2**31)), distance, n_rows=3)
        question = replace(question, tolerance=_tolerance(question, rng))
        rows = np.abs(question.rows)
        # Denormals lie in no cell, and nobody holds them; beside large numbers brute force cuts too coarsely.
        if ((rows > 0) & (rows < TINY)).any() or np.nanmax(rows, initial=0.0) > LARGE:
            continue
        if all(_n_cells(own) <= MOST_CELLS for own in brute.questions_of(question.problem())):
            return question


def _n_cells(question: brute.RowQuestion) -> int:
    return int(np.prod([brute.pieces(question, f).shape[1] for f in range(len(question.row))]))


def _tolerance(question: Question, rng: np.random.Generator) -> Tolerance:
    categories = question.forest.categories
    numbers = [j for j in range(question.forest.n_features) if categories is None or categories.labels[j] is None]
    sides: list[Any] = []
    for most in (1.5, 0.9):
        if numbers and rng.random() < 0.3:
            about = rng.choice(numbers, int(rng.integers(1, len(numbers) + 1)), replace=False)
            sides.append({int(j): float(np.round(rng.uniform(0, 2), 1)) for j in about})
        else:
            sides.append(float(rng.choice([0.0, 0.05, 0.2, 0.5, most])))
    if rng.random() < 0.2:
        sides[0] = np.inf
    return Tolerance(above=sides[0], below=sides[1] if rng.random() < 0.5 else 0.0)


@pytest.mark.parametrize("distance", DISTANCES)
@few
@given(seed=SEEDS)
def test_the_search_says_what_brute_force_says(distance: str, seed: int) -> None:
    problem = tolerant_question(seed, distance).problem()
    for strategy in (Exact(), Confirmed(Auto())):
        check(problem, solved(strategy, problem, Run(n_jobs=1)), is_finished=True, who=strategy)
