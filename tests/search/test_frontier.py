"""The search behind the short try: bounds of open boxes, prices, neighbourhoods; and what more work may change.

Small forests are settled before any box is priced. Here plain search loses its patience after a box or two, so that
every part of the search takes its turn, and brute force judges what comes out.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier

from support.examples import forests
from support.forests import SEEDS
from support.judge import check
from support.small_problems import DISTANCES, small_problem
from treefocus import Auto, Exact, Explainer, kernels
from treefocus.problem.problem import Problem
from treefocus.search import Outcome, Run
from treefocus.search.base import Incumbent
from treefocus.search.limits import WORK

many, some = forests(20), forests(7)


# Distances that couple features are never priced, and splits by value, one after another, only take long here.
ALONE = [name for name in DISTANCES if "mahalanobis" not in name and "cosine" not in name]


def impatient(problem: Problem, patience: int, strategy: Exact | None = None, n_jobs: int = 1) -> Outcome:
    """The search without the short try, in which boxes are priced and split after so many boxes of plain search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "exact", partial(kernels.exact, patience=patience))
        return (strategy or Exact()).prove(problem, Incumbent(problem), Run(n_jobs=n_jobs), part=kernels.REST)


def assert_no_worse(more: Outcome, less: Outcome, who: object) -> None:
    """No answer farther and no bound lower, but for the last digits."""
    far, near = (np.where(one.has_answer, one.distance, np.inf) for one in (less, more))
    assert (near <= far).all(), (who, near, far)
    assert (more.lower_bound >= less.lower_bound * (1 - 1e-9) - 1e-9).all(), (who, more.lower_bound, less.lower_bound)
    assert (more.is_settled >= less.is_settled).all(), who


@pytest.mark.parametrize("distance", ALONE)
@many
@given(seed=SEEDS)
def test_priced_boxes_prove_what_brute_force_says(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    check(problem, impatient(problem, 1 + seed % 3), is_finished=True)


@pytest.mark.parametrize("distance", DISTANCES)
@many
@given(seed=SEEDS)
def test_open_boxes_bound_what_is_left_and_more_boxes_are_no_worse(distance: str, seed: int) -> None:
    problem, before = small_problem(seed, distance, n_rows=4), None
    for node_limit in (1, 3, 8, 20, 60):
        found = impatient(problem, 1, Exact(node_limit=node_limit))
        check(problem, found, is_finished=False, who=f"node_limit {node_limit}")
        if before is not None:
            assert_no_worse(found, before, f"node_limit {node_limit}")
        before = found


@some
@given(seed=SEEDS)
@example(seed=6867)  # an answer that costs nothing, beyond which limits were looked for without an end
def test_more_threads_change_no_bit_of_a_search_that_is_stopped(seed: int) -> None:
    names = list(DISTANCES)
    problem = small_problem(seed, names[seed % len(names)], n_rows=12)
    for strategy in (Exact(node_limit=40), Exact(work_limit=60_000)):
        one, three = (impatient(problem, 2, strategy, n_jobs) for n_jobs in (1, 3))
        assert one.points.tobytes() == three.points.tobytes()
        assert one.lower_bound.tobytes() == three.lower_bound.tobytes()


@pytest.mark.parametrize("distance", DISTANCES)
@some
@given(seed=SEEDS)
def test_threads_that_share_a_row_change_no_bit_of_it(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance, n_rows=1)
    for strategy in (Exact(), Exact(node_limit=60), Exact(work_limit=60_000)):
        alone, shared = (impatient(problem, 1, strategy, n_jobs) for n_jobs in (1, 4))
        for name in ("points", "distance", "lower_bound"):
            assert getattr(alone, name).tobytes() == getattr(shared, name).tobytes(), (strategy, name)
        assert (alone.status == shared.status).all()


@pytest.mark.parametrize("distance", DISTANCES)
@some
@given(seed=SEEDS)
def test_more_work_never_gives_an_answer_that_is_farther(distance: str, seed: int) -> None:
    problem, before = small_problem(seed, distance, n_rows=4), None
    for work_limit in (1, 10_000, 100_000, 1_000_000, 10_000_000, None):
        found = Auto(work_limit=work_limit).solve(problem, Run(n_jobs=1))
        check(problem, found, is_finished=work_limit is None, who=f"work_limit {work_limit}")
        if before is not None:
            assert_no_worse(found, before, f"work_limit {work_limit}")
        before = found


@pytest.fixture(scope="module", params=["two classes", "ten classes"])
def hard(request: pytest.FixtureRequest) -> tuple[Explainer, np.ndarray]:
    """A forest whose rows are not settled by a short search."""
    if request.param == "two classes":
        rows, labels = make_classification(500, 12, n_informative=10, random_state=3)
    else:
        rows, labels = load_digits(return_X_y=True)
        rows, labels = rows[:400], labels[:400]
    model = RandomForestClassifier(40, random_state=3).fit(rows, labels)
    return Explainer(model, rows, distance="manhattan"), rows[:3]


def test_a_hard_row_gets_closer_and_more_proven_with_more_work(hard: tuple[Explainer, np.ndarray]) -> None:
    explainer, rows = hard
    quick = explainer.explain(rows, strategy=Auto(prove=False), n_jobs=1)
    answers = [
        explainer.explain(rows, strategy=Auto(work_limit=work), n_jobs=n_jobs)
        for work, n_jobs in ((20_000_000, 1), (80_000_000, 2), (300_000_000, 1))
    ]
    for less, more in pairwise(answers):
        assert (more.distance <= less.distance).all()
        assert (more.lower_bound >= less.lower_bound).all()
    assert (answers[-1].distance <= quick.distance).all()
    assert (answers[-1].lower_bound > 0).all()
    assert (answers[-1].lower_bound > answers[0].lower_bound).any()


def test_a_hard_row_and_a_small_batch_are_the_same_bytes_on_any_number_of_threads(
    hard: tuple[Explainer, np.ndarray],
) -> None:
    explainer, rows = hard
    for part in (rows[:1], rows[:2], rows):
        answers = [explainer.explain(part, strategy=Auto(work_limit=60_000_000), n_jobs=n) for n in (1, 2, 5)]
        bits = {(one.counterfactuals.tobytes(), one.lower_bound.tobytes()) for one in answers}
        assert len(bits) == 1


def test_a_clock_stops_all_threads_at_a_row(hard: tuple[Explainer, np.ndarray]) -> None:
    explainer, rows = hard
    found = explainer.explain(rows[:1], strategy=Auto(time_limit=0.05), n_jobs=3)
    assert found.status[0].name in ("OPTIMAL", "BOUNDED")
    assert found.lower_bound[0] <= found.distance[0]


def test_boxes_count_like_work(hard: tuple[Explainer, np.ndarray]) -> None:
    explainer, rows = hard
    few, many_boxes = (explainer.explain(rows, strategy=Auto(node_limit=n), n_jobs=1) for n in (2_000, 20_000))
    assert (many_boxes.distance <= few.distance).all()
    assert (many_boxes.lower_bound >= few.lower_bound).all()


def test_the_default_is_work_and_gives_way_to_what_is_asked_for(hard: tuple[Explainer, np.ndarray]) -> None:
    explainer, rows = hard

    def limits(strategy: Auto, **options: float) -> tuple[float | None, int | None, int | None]:
        own = explainer.explain(rows[:1], strategy=strategy, n_jobs=1, **options)[0].limits
        assert own is not None
        return own.time_limit, own.node_limit, own.work_limit

    assert limits(Auto()) == (None, None, WORK)
    assert limits(Auto(time_limit=0.1)) == (0.1, None, None)
    assert limits(Auto(), time_limit=0.1) == (0.1, None, None)
    assert limits(Auto(node_limit=50)) == (None, 50, None)
    assert limits(Auto(work_limit=1000), time_limit=0.1) == (0.1, None, 1000)
