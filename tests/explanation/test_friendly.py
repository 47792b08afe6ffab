"""Round numbers: always valid, never much further away, and as short as asked where that can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from support.forests import SEEDS
from support.questions import random_question, stump
from support.small_problems import small_problem
from treefocus import Exact, Explainer, Feature, InvalidInput, Schema, Status
from treefocus.explanation.rounding import rounded_point
from treefocus.search import Run

MANY = settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "mahalanobis"])
@MANY
@given(seed=SEEDS)
def test_round_numbers_are_valid_and_cost_no_more_than_allowed(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    problem = problem.subset(np.flatnonzero(problem.has_box))
    if not len(problem):
        return
    found = Exact(node_limit=200).solve(problem, Run(n_jobs=1))
    for i in np.flatnonzero(found.has_answer).tolist():
        one = problem.subset(np.array([i]))
        for digits, extra in ((1, 0.5), (2, 0.1), (3, 0.0)):
            point = rounded_point(one, found.points[i], digits, extra)
            assert one.is_valid(point[None])[0]
            assert one.distance_to(point[None])[0] <= found.distance[i] * (1 + extra) + 1e-9


def length(value: float) -> int:
    return len(f"{abs(value):.15e}".split("e")[0].replace(".", "").rstrip("0"))


def test_numbers_are_short_where_they_can_be() -> None:
    total = short = 0
    for seed in range(20):
        explainer, rows = random_question(seed, n_rows=5)
        for one in explainer.explain(rows):
            if not one.changes or one.predicted is None:
                continue
            made = one.rounded(2, extra=0.5)
            for change in made.changes:
                if isinstance(change.shown, float):
                    total += 1
                    short += length(change.shown) <= 2
    assert short > 0.6 * total > 0


def test_the_sentence_says_what_it_costs() -> None:
    schema = Schema([Feature("income", unit="EUR"), Feature("age")])
    forest = stump(51_837.0, feature_names=schema.names)
    data = np.array([[40_000.0, 0.0], [90_000.0, 100.0]])
    one = Explainer(forest, data, schema=schema, distance="manhattan").explain(data[:1])[0]
    made = one.rounded()
    assert made.changes[0].shown == 52_000.0
    assert made.status is Status.BOUNDED
    assert made.lower_bound == one.lower_bound
    assert made.to_text() == (
        "Row 0 is predicted 'no'. It would be predicted 'yes' if income were 52,000 EUR instead of 40,000 EUR. "
        "These are round numbers. A slightly smaller change may be enough, too."
    )
    assert made.to_text(proof=True) == made.to_text() + (
        " How do we know? Every change that is more than 1.4% smaller was ruled out, with the model itself; those in "
        "between were not all looked at (manhattan distance 0.24). "
        "Round numbers make the change at most 1.4% larger than the one they stand for."
    )
    assert one.rounded(extra=0.0).distance == one.distance
    assert "runde Zahlen" in made.to_text("de")


@pytest.mark.parametrize(("digits", "extra"), [(0, 0.1), (1.5, 0.1), (2, -1.0)])
def test_nonsense_is_refused(digits: float, extra: float) -> None:
    one = Explainer(stump(), np.eye(2)).explain(np.zeros((1, 2)))[0]
    with pytest.raises(InvalidInput, match=r"digits|extra"):
        one.rounded(digits, extra=extra)  # type: ignore[arg-type]
