"""Why a row has no answer, and what constraints cost: held to every subset of the constraints, one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.forests import SEEDS
from support.questions import random_question, stump
from treefocus import (
    AtMost,
    Decreasing,
    Exact,
    Explainer,
    Explanations,
    Fixed,
    Increasing,
    InvalidInput,
    Linear,
    LocalOutlierFactor,
    MayBeMissing,
    Range,
    Status,
    Together,
)
from treefocus.constraints.kinds import Constraint
from treefocus.search import Run
from treefocus.search.conflicts import single, smallest_hitting_set, without

SOME = settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def random_constraints(rng: np.random.Generator, explainer: Explainer) -> list[Constraint]:
    """Up to two on each column, so many that most rows are left without an answer."""
    found: list[Constraint] = []
    for f in range(explainer.forest.n_features):
        low, high = np.sort(rng.uniform(explainer.space.low[f], explainer.space.high[f], 2))
        kinds = [Fixed(f), Increasing(f), Decreasing(f), Range(f, float(low), float(high))]
        found += [kinds[k] for k in rng.choice(4, int(rng.integers(1, 3)), replace=False)]
    return found


def has_answer(found: Explanations, i: int, removed: tuple[Constraint, ...]) -> bool:
    """Whether a row has an answer without these, by the search that users call."""
    assert found.question is not None
    one = without(found.question.of_row(i), removed).problem()
    if not one.has_box[0]:
        return False
    if one.batch.target[0] == one.batch.origin[0] and one.is_valid(one.batch.rows)[0]:
        return True
    return Exact().solve(one, Run(n_jobs=1)).status[0].has_answer  # type: ignore[no-any-return]


@SOME
@given(seed=SEEDS)
def test_no_smaller_set_of_constraints_will_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    explainer, rows = random_question(seed, n_rows=6)
    found = replace_constraints(explainer, random_constraints(rng, explainer)).explain(rows, strategy="exact")
    for i in np.flatnonzero(found.status == Status.INFEASIBLE)[:3].tolist():
        why = found[i].why_not()
        assert found.question is not None
        every = single(found.question.constraints)
        assert why.is_proven
        if why.constraints is None:
            assert not has_answer(found, i, every)
            continue
        assert has_answer(found, i, why.constraints)
        assert why.explanation is not None
        assert why.explanation.status is Status.OPTIMAL
        for size in range(len(why.constraints)):
            for fewer in combinations(every, size):
                assert not has_answer(found, i, fewer)


def replace_constraints(explainer: Explainer, constraints: list[Constraint]) -> Explainer:
    explainer.constraints = tuple(constraints)
    return explainer


@SOME
@given(seed=SEEDS)
def test_what_a_constraint_costs_is_the_distance_without_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    explainer, rows = random_question(seed, n_rows=4, distance="manhattan")
    constraints = random_constraints(rng, explainer)[:3]
    found = replace_constraints(explainer, constraints).explain(rows, strategy="exact")
    for i in range(len(rows)):
        one = found[i]
        if one.predicted is None:
            continue
        prices = one.price_of_constraints()
        assert {price.constraint for price in prices} == set(single(constraints))
        assert [price.saving for price in prices] == sorted((price.saving for price in prices), reverse=True)
        for price in prices:
            left = [other for other in single(constraints) if other != price.constraint]
            again = replace_constraints(explainer, left).explain(rows[[i]], strategy="exact")[0]
            assert price.is_proven
            assert (price.distance is None) == (again.distance is None)
            if price.distance is not None and again.distance is not None:
                assert np.isclose(price.distance, again.distance, rtol=1e-7, atol=1e-9)
                assert price.saving >= 0


@given(st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=4), max_size=6))
def test_hitting_sets_are_the_smallest(sets: list[frozenset[int]]) -> None:
    found = smallest_hitting_set(sets)
    assert all(found & own for own in sets)
    for fewer in combinations(range(7), max(len(found) - 1, 0)):
        assert not found or not all(set(fewer) & own for own in sets)


def test_constraints_one_by_one() -> None:
    given: list[Constraint] = [Fixed("a", "b"), MayBeMissing("c"), Range("a", 0, 1), Fixed("b"), Increasing("c", "d")]
    assert single(given) == (Fixed("a"), Fixed("b"), Range("a", 0, 1), Increasing("c"), Increasing("d"))


# ---- in words

DATA = pd.DataFrame({"age": [20.0, 60.0], "income": [0.0, 100.0]})


def asked(*constraints: Constraint, **options: Any) -> Any:
    forest = stump(39.5, feature_names=("age", "income"))
    return Explainer(forest, DATA, constraints=constraints, distance="manhattan", **options).explain(DATA, target="yes")


def test_the_sentence_names_the_constraint_and_what_would_do() -> None:
    why = asked(Fixed("age", "income"))[0].why_not()
    assert why.constraints == (Fixed("age"),)
    assert why.to_text() == (
        "It would be possible without the constraint 'age fixed'. "
        "Then it would be enough if age were 39.51 instead of 20."
    )
    assert why.to_text("de").startswith("Möglich wäre es ohne die Bedingung „age fixed“.")
    assert "la contrainte" in why.to_text("fr")
    several = asked(Fixed("age"), Range("age", high=30.0))[0].why_not()
    assert several.constraints == (Fixed("age"), Range("age", high=30.0))
    assert "'age fixed' and 'age <= 30'" in several.to_text()
    assert several.to_text().endswith("Giving up fewer constraints would not be enough, which is proven.")


def test_bounds_can_be_what_stands_in_the_way() -> None:
    why = asked(Fixed("income"), bounds=([20.0, 0.0], [30.0, 100.0]))[0].why_not()
    assert why.constraints is None
    assert why.is_proven
    assert why.to_text().startswith("Even without any constraint, no change within the bounds")


def test_a_row_with_an_answer_has_nothing_in_its_way() -> None:
    why = asked(Fixed("income"))[0].why_not()
    assert why.constraints == ()
    assert why.to_text() == "No constraint stands in the way."


def test_prices_in_words() -> None:
    prices = asked(Range("age", low=50.0), Fixed("income"))[0].price_of_constraints()
    assert [price.to_text() for price in prices] == [
        "Without 'age >= 50', the change would be 35% smaller.",
        "'income fixed' costs nothing.",
    ]
    (possible,) = asked(Fixed("age"))[0].price_of_constraints()
    assert possible.to_text() == "Without 'age fixed', there would be a change that gets the wanted answer."
    both = asked(Fixed("age"), Range("age", high=30.0))[0].price_of_constraints()
    assert {price.distance for price in both} == {None}
    assert both[0].to_text().startswith("Without 'age fixed' alone, there is still no change")


def test_explanations_from_a_file_cannot_be_asked() -> None:
    again = Explanations.from_json(asked(Fixed("age")).to_json())
    with pytest.raises(InvalidInput, match="JSON"):
        again[0].why_not()
    with pytest.raises(InvalidInput, match="JSON"):
        replace(again[0]).price_of_constraints()


def test_constraints_between_columns_are_named_too() -> None:
    found = asked(AtMost(0), Linear({"age": 1.0, "income": -1.0}, at_most=0.0))
    why = found[0].why_not()
    assert (
        why.constraints == (AtMost(0), Linear({"age": 1.0, "income": -1.0}, at_most=0.0))[: len(why.constraints or ())]
    )
    assert "'at most 0 changes'" in why.to_text()
    prices = asked(Together("age", "income"))[0].price_of_constraints()
    assert prices[0].written == "age and income together"


# ---- where answers have to be like the data

BAND = pd.DataFrame({"age": np.repeat(np.linspace(20.0, 60.0, 41), 2), "income": np.repeat(np.linspace(0, 100, 41), 2)})
BAND["income"] += np.tile([-0.4, 0.4], 41)


def banded(*constraints: Constraint) -> Any:
    """Age and income go together in the data, and an answer that parts them is strange."""
    forest = stump(39.5, feature_names=("age", "income"))
    measure = LocalOutlierFactor(limit=3.0)
    explainer = Explainer(forest, BAND, constraints=constraints, distance="manhattan", plausibility=measure)
    return explainer.explain(DATA[:1], target="yes")[0]


def test_what_stands_in_the_way_of_a_plausible_answer_is_named() -> None:
    one = banded(Fixed("income"))
    assert one.status is Status.INFEASIBLE  # there are answers, but none like the data
    why = one.why_not()
    assert why.constraints == (Fixed("income"),)
    assert why.is_proven  # without the constraint there is one; with it, there is none
    assert why.explanation is not None
    assert why.explanation.plausibility.local_outlier_factor <= 3.0
    assert "'income fixed'" in why.to_text()


def test_that_nothing_plausible_is_there_is_proven() -> None:
    one = banded(Fixed("income"), Range("age", 39.6, 39.7))
    assert one.why_not().is_proven
    nowhere = Explainer(
        stump(39.5, feature_names=("age", "income")), BAND, plausibility=LocalOutlierFactor(limit=1e-6),
        constraints=[Fixed("income")],
    ).explain(DATA[:1], target="yes")[0]  # fmt: skip
    why = nowhere.why_not()
    assert why.constraints is None
    assert why.is_proven
    (price,) = nowhere.price_of_constraints()
    assert price.distance is None
    assert price.is_proven
    for language in ("de", "fr"):
        assert "income fixed" in price.to_text(language)


def test_without_any_answer_at_all_the_proof_stays_a_proof() -> None:
    one = banded(Fixed("age"))
    assert one.status is Status.INFEASIBLE
    why = one.why_not()
    assert why.constraints == (Fixed("age"),)
    assert why.is_proven


def test_prices_are_of_plausible_answers() -> None:
    one = banded(Fixed("income"))
    (price,) = one.price_of_constraints()
    assert price.saving == np.inf
    again = banded()
    assert price.distance is not None
    assert price.distance >= again.lower_bound
    assert not price.is_proven or again.status is Status.OPTIMAL
    plain = asked(Fixed("income"))[0]
    assert plain.distance is not None
    assert price.distance > plain.distance  # which is what a search without the limit finds


def test_round_numbers_are_like_the_data_too() -> None:
    one = banded()
    assert one.rounded(1, extra=5.0).plausibility.local_outlier_factor <= 3.0
