"""Random Perturbation: valid, seeded, the same for a row whoever it is asked with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS
from support.questions import random_question, stump
from treefocus import Explainer, Fixed, InvalidInput, RandomPerturbation, Status, kernels


def test_the_closest_draw_beyond_the_threshold_is_taken() -> None:
    strategy = RandomPerturbation(draws=400)
    moves = strategy.moves(2, seed=3)
    row = np.array([[0.3, 0.5]])
    points = np.clip(row + moves, 0.0, 1.0)
    distance = np.linalg.norm(points - row, axis=1)
    expected = distance[points[:, 0] > 0.5].min()
    explainer = Explainer(stump(0.5), scale=None, bounds=(0.0, 1.0), distance="euclidean")
    found = explainer.explain(row, strategy=strategy, seed=3)
    np.testing.assert_allclose(found.distance, [expected])


def test_lengths_lie_between_the_smallest_and_the_largest() -> None:
    length = np.linalg.norm(RandomPerturbation(500, smallest=0.01, largest=0.5).moves(4, seed=0), axis=1)
    assert length.min() >= 0.01 - 1e-12
    assert length.max() <= 0.5 + 1e-12
    assert (length < 0.07).mean() > 0.3  # spread over the orders of magnitude, not over the lengths


def test_some_draws_move_one_feature_only_and_some_move_all() -> None:
    n_moved = (RandomPerturbation(500).moves(4, seed=0) != 0).sum(axis=1)
    assert set(n_moved.tolist()) == {1, 2, 3, 4}


def test_a_row_gets_the_same_answer_alone() -> None:
    explainer, rows = random_question(11)
    strategy = RandomPerturbation(200)
    together = explainer.explain(rows, strategy=strategy, seed=5)
    alone = explainer.explain(rows[3:4], strategy=strategy, seed=5)
    np.testing.assert_array_equal(together.points[3:4], alone.points)


def test_another_seed_draws_otherwise() -> None:
    strategy = RandomPerturbation(50)
    assert (strategy.moves(3, 0) == strategy.moves(3, 0)).all()
    assert not (strategy.moves(3, 0) == strategy.moves(3, 1)).all()


@settings(max_examples=20)
@given(SEEDS)
def test_every_answer_is_valid(seed: int) -> None:
    explainer, rows = random_question(seed)
    found = explainer.explain(rows, strategy=RandomPerturbation(100))
    answered = found.has_answer
    forest = explainer.forest
    assert (kernels.predict(forest, found.points[answered]) != kernels.predict(forest, rows[answered])).all()


def test_constraints_hold() -> None:
    explainer = Explainer(stump(0.5), scale=None, bounds=(0.0, 1.0), constraints=[Fixed(1)])
    found = explainer.explain(np.array([[0.3, 0.5]]), strategy=RandomPerturbation(300))
    assert found.points[0, 1] == 0.5
    explainer = Explainer(stump(0.5), scale=None, bounds=(0.0, 1.0), constraints=[Fixed(0)])
    assert explainer.explain(np.array([[0.3, 0.5]]), strategy=RandomPerturbation(300)).status[0] is Status.NOT_FOUND


def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidInput, match=r"RandomPerturbation\.draws must be a finite number above 0, got 0"):
        RandomPerturbation(0)
    with pytest.raises(InvalidInput, match=r"RandomPerturbation\.smallest must be at most largest"):
        RandomPerturbation(smallest=2.0)


def test_it_has_a_name() -> None:
    found = Explainer(stump(0.5), scale=None, bounds=(0.0, 1.0)).explain([[0.4, 0.5]], strategy="random_perturbation")
    assert found.status[0] is Status.FOUND
