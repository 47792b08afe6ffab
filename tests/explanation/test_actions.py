"""Plans: every pair that counts is what the model itself says, the choice is the best there is, and the bound holds."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from support.examples import n_examples
from treefocus import Explainer, Explanations, Fixed, Increasing, InvalidInput, LocalOutlierFactor, Probability, Status
from treefocus.explanation.actions import affordable
from treefocus.explanation.actions.affordable import _most_of, is_affordable, most_affordable, proven
from treefocus.explanation.actions.choice import Choice, fewest, most_covered
from treefocus.explanation.actions.plan import Plan
from treefocus.explanation.actions.sorting import sorting_tree
from treefocus.explanation.actions.steps import AT_LEAST, AT_MOST, BY, SET

mpl.use("Agg")

from matplotlib import pyplot


def trained(seed: int, n: int = 60) -> tuple[Any, pd.DataFrame]:
    draw = np.random.default_rng(seed)
    data = pd.DataFrame(draw.integers(0, 9, (n, 3)), columns=["a", "b", "c"])
    data.iloc[0], data.iloc[1] = 0, 8  # so that the range is known
    wanted = data["a"] + data["b"] * (data["c"] > 3) + draw.integers(0, 3, n) > 8
    wanted.iloc[:2] = [True, False]
    return RandomForestClassifier(5, max_depth=3, random_state=seed % 97).fit(data, wanted), data


def applied(plan: Plan, number: int, data: pd.DataFrame, part: float = 1.0) -> pd.DataFrame:
    """An action, or a part of its way, by hand."""
    after = data.copy()
    for step in plan.actions[number].action.steps:
        own = after[step.feature]
        whole = {
            SET: lambda own=own, step=step: own * 0 + step.value,
            AT_LEAST: lambda own=own, step=step: own.clip(lower=step.value),
            AT_MOST: lambda own=own, step=step: own.clip(upper=step.value),
            BY: lambda own=own, step=step: (own + part * step.value).clip(0, 8),
        }[step.kind]()
        after[step.feature] = np.rint(whole if step.kind == BY else own + part * (whole - own)).astype(int)
    return after


@settings(max_examples=n_examples(5))
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([None, 0.6]), st.booleans())
def test_every_pair_is_what_the_model_says(seed: int, at_most: int, most_cost: float | None, gradual: bool) -> None:
    model, data = trained(seed)
    explainer = Explainer(model, data, constraints=[Fixed("c"), Increasing("a")])
    plan = explainer.actions(data, True, at_most, most_cost=most_cost, gradual=gradual)
    asked = np.flatnonzero(~model.predict(data))
    assert plan.rows.tolist() == asked.tolist()
    assert len(plan.actions) <= at_most
    rows, scale = data.iloc[asked], explainer.space.scale
    for number, one in enumerate(plan.actions):
        after = applied(plan, number, rows)
        cost = np.array((np.abs(after - rows) / scale).sum(axis=1))
        allowed = (after["c"] == rows["c"]) & (after["a"] >= rows["a"])
        allowed &= ((after >= data.min()) & (after <= data.max())).all(axis=1)
        helps = allowed.to_numpy() & model.predict(after)
        nearest = after.copy()

        def tried(nearer: pd.DataFrame, helps=helps, nearest=nearest, cost=cost) -> None:
            own = (np.abs(nearer - rows) / scale).sum(axis=1).to_numpy()
            is_better = helps & model.predict(nearer) & (own < cost)
            cost[is_better] = own[is_better]
            nearest[is_better] = nearer[is_better]

        for part in range(1, 50) if gradual else ():  # only as far as it takes,
            tried(applied(plan, number, rows, part / 50))
        for step in one.action.steps if gradual else ():  # and only what it takes
            tried(nearest.assign(**{step.feature: rows[step.feature]}))
        if most_cost is not None:
            helps &= cost <= most_cost
        np.testing.assert_array_equal(np.isfinite(one.cost), helps)
        np.testing.assert_allclose(one.cost[helps], cost[helps])
        assert one.helped == helps.sum()
        assert one.forbidden == (~allowed).sum()
        assert one.insufficient + one.helped + one.forbidden + one.too_dear == len(asked)
        assert most_cost is not None or not one.too_dear
    helped = np.isfinite(plan.cost).any(axis=0)
    assert plan.coverage == pytest.approx(helped.mean()) or not len(asked)
    assert not len(asked) or plan.coverage <= plan.upper_bound


@settings(max_examples=n_examples(5))
@given(st.integers(0, 10_000))
def test_nobody_beyond_the_bound_is_helped_by_anything(seed: int) -> None:
    """The bound leaves out exactly those without an answer at that cost, by trying every point."""
    model, data = trained(seed, 40)
    explainer = Explainer(model, data, constraints=[Fixed("c")])
    plan = explainer.actions(data, True, 1, most_cost=0.4)
    asked = data.iloc[plan.rows]
    every = pd.DataFrame([(a, b, c) for a in range(9) for b in range(9) for c in range(9)], columns=data.columns)
    every = every[model.predict(every) & ((every >= data.min()) & (every <= data.max())).all(axis=1)]
    n_reachable = 0
    for _, row in asked.iterrows():
        same = every[every["c"] == row["c"]]
        n_reachable += bool(((np.abs(same - row) / explainer.space.scale).sum(axis=1) <= 0.4 + 1e-12).any())
    assert not len(asked) or plan.upper_bound == pytest.approx(n_reachable / len(asked))


@settings(max_examples=n_examples(3))
@given(st.integers(0, 10_000), st.sampled_from([None, 0.2, 0.4]))
def test_no_single_step_would_do_better(seed: int, mean: float | None) -> None:
    model, data = trained(seed, 40)
    explainer = Explainer(model, data, constraints=[Fixed("c")])
    plan = explainer.actions(data, True, 1, mean_cost=mean)
    rows = data.iloc[plan.rows]
    every = [(own, "clip", {"lower": value}) for own in "ab" for value in range(9)]
    every += [(own, "clip", {"upper": value}) for own in "ab" for value in range(9)]
    every += [(own, "clip", {"lower": value, "upper": value}) for own in "ab" for value in range(9)]
    every += [(own, "add", {"other": value}) for own in "ab" for value in range(-8, 9)]
    for own, way, options in every if len(rows) else ():
        after = rows.assign(**{own: getattr(rows[own], way)(**options).clip(0, 8)})
        cost = np.array((np.abs(after - rows) / explainer.space.scale).sum(axis=1))
        cost[~model.predict(after)] = np.inf
        helped = is_affordable(cost, np.inf if mean is None else mean)
        assert helped.mean() <= plan.coverage + 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numbers_of_few_bits_may_be_told_in_few_digits(dtype: str) -> None:
    draw = np.random.default_rng(0)
    data = pd.DataFrame(draw.random((300, 2)).astype(dtype), columns=["a", "b"])
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(data, data["a"] + data["b"] > 1.1)
    plan = Explainer(model, data).actions(data[:60], True, 1)
    (one,) = plan.actions
    assert {step.kind for step in one.action.steps} <= {AT_LEAST, SET}
    after, rows = data.iloc[plan.rows].copy(), data.iloc[plan.rows]
    for step in one.action.steps:
        value = np.float32(step.value).astype(dtype)
        after[step.feature] = rows[step.feature].clip(lower=value) if step.kind == AT_LEAST else value
    np.testing.assert_array_equal(model.predict(after), np.isfinite(one.cost))
    assert plan.coverage == 1.0


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_choice_is_the_best_of_all(seed: int, at_most: int) -> None:
    draw = np.random.default_rng(seed)
    cost = np.where(draw.random((8, 15)) < 0.3, draw.uniform(0, 1, (8, 15)), np.inf)
    found = most_covered(cost, at_most)
    sizes = [np.isfinite(cost[list(own)]).any(axis=0).sum() for own in combinations(range(8), at_most)]
    assert found.covered == max(sizes)
    assert found.is_optimal
    assert len(found.chosen) <= at_most
    assert np.isfinite(cost[list(found.chosen)]).any(axis=0).sum() == found.covered if found.chosen else not max(sizes)


@given(st.integers(0, 10_000))
def test_further_actions_make_it_cheaper(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cost = draw.uniform(0, 1, (6, 20))  # everything helps everybody
    total = [cost[list(most_covered(cost, k).chosen)].min(axis=0).sum() for k in (1, 2, 3)]
    assert total[0] == pytest.approx(cost.sum(axis=1).min())
    assert total[0] >= total[1] >= total[2]


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 0.5]))
def test_as_many_are_helped_as_the_mean_allows(seed: int, mean: float) -> None:
    draw = np.random.default_rng(seed)
    least = np.where(draw.random(7) < 0.8, draw.choice([0.1, 0.2, 0.4, 0.9], 7), np.inf)
    kept = is_affordable(least, mean)
    sizes = [
        size
        for size in range(1, 8)
        for own in combinations(range(7), size)
        if least[list(own)].sum() <= mean * size * (1 + 1e-9)
    ]
    assert kept.sum() == max(sizes, default=0)
    assert not kept.any() or least[kept].mean() <= mean * (1 + 1e-6)


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.1, 0.3, 0.5]))
def test_a_choice_within_a_mean_is_the_best_of_one_and_bounded_for_more(seed: int, at_most: int, mean: float) -> None:
    draw = np.random.default_rng(seed)
    cost = np.where(draw.random((8, 12)) < 0.5, draw.uniform(0, 1, (8, 12)), np.inf)
    found = most_affordable(cost, at_most, mean)
    sizes = [int(is_affordable(cost[list(own)].min(axis=0), mean).sum()) for own in combinations(range(8), at_most)]
    assert found.covered <= max(sizes) <= found.bound
    assert found.covered == max(sizes) or at_most > 1
    assert not found.is_optimal or found.covered == max(sizes)
    if found.chosen:
        assert is_affordable(cost[list(found.chosen)].min(axis=0), mean).sum() == found.covered
        for others in (list(found.chosen), [0], list(range(8))):  # a bound from any actions to set out from
            assert max(sizes) <= _most_of(cost, others, at_most, mean)
    assert found.covered >= most_affordable(cost, 1, mean).covered
    sure = proven(cost, found, at_most, mean)
    assert sure.covered == sure.bound == max(sizes) or not found.chosen
    if sure.chosen:
        assert is_affordable(cost[list(sure.chosen)].min(axis=0), mean).sum() == sure.covered
    worse = Choice((0,), int(is_affordable(cost[0], mean).sum()), found.bound)
    assert proven(cost, worse, at_most, mean).covered == max(sizes)


def test_a_proof_that_takes_too_long_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affordable, "_MOST_LOOKED", 500.0)
    n_proven = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        cost = np.where(draw.random((9, 14)) < 0.5, draw.uniform(0, 1, (9, 14)), np.inf)
        sizes = [int(is_affordable(cost[list(own)].min(axis=0), 0.3).sum()) for own in combinations(range(9), 3)]
        found = proven(cost, most_affordable(cost, 3, 0.3), 3, 0.3)
        assert found.covered <= max(sizes) <= found.bound
        n_proven += found.is_optimal
    assert n_proven < 60


@settings(max_examples=n_examples(3))
@given(st.integers(0, 10_000), st.integers(1, 2), st.sampled_from([0.15, 0.4]), st.booleans())
def test_a_plan_keeps_within_its_mean(seed: int, at_most: int, mean: float, gradual: bool) -> None:
    model, data = trained(seed, 40)
    explainer = Explainer(model, data, constraints=[Fixed("c")])
    plan = explainer.actions(data, True, at_most, mean_cost=mean, gradual=gradual)
    free = explainer.actions(data, True, at_most, gradual=gradual)
    assert not plan.actions or plan.mean_cost <= mean * (1 + 1e-6)
    assert not len(plan.rows) or plan.coverage <= min(plan.upper_bound, free.upper_bound)
    for one in plan.actions:
        assert one.helped + one.forbidden + one.insufficient + one.too_dear == one.asked
        assert min(one.forbidden, one.insufficient, one.too_dear) >= 0
    asked = data.iloc[plan.rows]
    every = pd.DataFrame([(a, b, c) for a in range(9) for b in range(9) for c in range(9)], columns=data.columns)
    every = every[model.predict(every) & ((every >= data.min()) & (every <= data.max())).all(axis=1)]
    least = [
        (np.abs(every[every["c"] == row["c"]] - row) / explainer.space.scale).sum(axis=1).min()
        for _, row in asked.iterrows()
    ]
    reachable = is_affordable(np.nan_to_num(np.array(least, float), nan=np.inf), mean)
    assert not len(asked) or plan.upper_bound == pytest.approx(reachable.mean())


@given(st.integers(0, 10_000), st.integers(1, 15))
def test_the_fewest_are_the_fewest(seed: int, needed: int) -> None:
    draw = np.random.default_rng(seed)
    helps = draw.random((7, 15)) < 0.35
    found = fewest(np.where(helps, 1.0, np.inf), needed)
    needed = min(needed, int(helps.any(axis=0).sum()))
    sizes = [
        size
        for size in range(8)
        for own in combinations(range(7), size)
        if helps[list(own)].any(axis=0).sum() >= needed
    ]
    assert len(found.chosen) == min(sizes)


@given(st.integers(0, 10_000))
def test_the_tree_does_what_it_says(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 4, (60, 3)).astype(float)
    values[draw.random((60, 3)) < 0.05] = np.nan
    cost = np.where((values[:, :2] > draw.integers(0, 3, 2)).T, draw.uniform(0, 1, (2, 60)), np.inf)
    tree = sorting_tree(values, cost, ["x", "y", "z"], (None, None, ("p", "q", "r", "s")))
    assert tree.depth <= 3
    place = tree.sorted(values)
    own = np.where(place >= 0, cost[np.maximum(place, 0), np.arange(60)], np.inf)
    assert tree.coverage == np.isfinite(own).mean()
    single = np.isfinite(cost).sum(axis=1).max() / 60
    assert single <= tree.coverage <= np.isfinite(cost).any(axis=0).mean()


@pytest.fixture(scope="module")
def example() -> tuple[Explainer, Explanations]:
    model, data = trained(5, 120)
    explainer = Explainer(model, data, constraints=[Fixed("c")])
    return explainer, explainer.explain(data, True)


def test_a_share_is_covered_by_few(example: tuple[Explainer, Explanations]) -> None:
    explainer, found = example
    most = explainer.actions(found, at_most=6)
    half = explainer.actions(found, cover=most.coverage / 2)
    assert half.coverage >= most.coverage / 2
    assert len(half.actions) <= len(most.actions)
    beyond = explainer.actions(found, cover=1.0, most_cost=0.3)
    assert beyond.coverage <= beyond.upper_bound < 1.0
    assert "below the 100% that were asked for" in beyond.to_text()


def test_answers_and_rows_give_the_same_plan(example: tuple[Explainer, Explanations]) -> None:
    explainer, found = example
    assert explainer.actions(found, at_most=2).to_json() == explainer.actions(found.table.native, True, 2).to_json()


def test_a_plan_is_told(example: tuple[Explainer, Explanations]) -> None:
    explainer, found = example
    plan = explainer.actions(found, at_most=2)
    text = plan.to_text()
    assert "which is proven" in text
    assert all(step.feature in text for one in plan.actions for step in one.action.steps)
    assert json.loads(plan.to_json())["coverage"] == pytest.approx(plan.coverage)
    frame = plan.to_frame()
    assert len(frame) == len(plan.rows)
    cost, least = frame["cost"].to_numpy(float), frame["smallest_possible"].to_numpy(float)
    helped = ~np.isnan(cost)
    assert (cost[helped] >= least[helped] - 1e-9).all()
    assert [k for k, _ in plan.curve] == list(range(1, len(plan.actions) + 1))
    shares = [share for _, share in plan.curve]
    assert shares == sorted(shares)
    for drawn in (plan.plot(), plan.plot_map()):
        drawn.figure.canvas.draw()
    pyplot.close("all")


def test_what_the_model_does_not_confirm_does_not_count(
    example: tuple[Explainer, Explanations], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, found = example
    own = explainer._judge.predict
    assert own is not None
    forbidden = int(found.points[found.has_answer & found.is_moved.any(axis=1)][0, 0])

    def stubborn(points: Any) -> Any:
        """The model, but never True for one value of the first column."""
        return own(points) & (points[:, 0] != forbidden)

    before = explainer.actions(found, at_most=2)
    monkeypatch.setattr(explainer, "_judge", replace(explainer._judge, predict=stubborn))
    plan = explainer.actions(found, at_most=2)
    for number, one in enumerate(plan.actions):
        after = applied(plan, number, found.table.native.iloc[plan.rows])
        assert not np.isfinite(one.cost[(after["a"] == forbidden).to_numpy()]).any()
    assert plan.coverage <= before.coverage


def test_nobody_can_be_helped() -> None:
    model, data = trained(1)
    plan = Explainer(model, data, constraints=[Fixed("a", "b", "c")]).actions(data, True)
    assert plan.actions == ()
    assert plan.coverage == plan.upper_bound == 0
    assert "No action was found" in plan.to_text()
    assert (plan.answers.status[plan.rows] == Status.INFEASIBLE).all()
    for drawn in (plan.plot(), plan.plot_map()):
        drawn.figure.canvas.draw()
    pyplot.close("all")


@pytest.mark.parametrize("at_most", [1, 2])
def test_nobody_can_be_helped_at_so_little_cost(example: tuple[Explainer, Explanations], at_most: int) -> None:
    explainer, found = example
    plan = explainer.actions(found, at_most=at_most, mean_cost=1e-6)
    assert plan.coverage == plan.upper_bound == 0
    assert plan.actions == ()


def test_everybody_has_it_already() -> None:
    model, data = trained(1)
    plan = Explainer(model, data).actions(data[model.predict(data)], True)
    assert plan.to_text() == "Everybody has what is wanted already."


def test_categories_and_probabilities() -> None:
    draw = np.random.default_rng(0)
    data = pd.DataFrame({"kind": pd.Categorical(draw.choice(["x", "y", "z"], 150)), "size": draw.integers(0, 20, 150)})
    wanted = np.where((data["kind"] == "y") & (data["size"] > 6), "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype").fit(data, wanted)
    plan = Explainer(model, data).actions(data[:60], Probability("yes", 0.7), 2)
    assert plan.coverage == 1.0
    steps = {(step.feature, step.kind, step.label) for one in plan.actions for step in one.action.steps}
    assert ("kind", SET, "y") in steps
    assert "set kind to y" in plan.to_text().lower()
    after = data[:60].iloc[plan.rows].copy()
    for step in plan.actions[0].action.steps:
        if step.feature == "kind":
            after["kind"] = pd.Categorical([step.label] * len(after), categories=data["kind"].cat.categories)
        else:
            after["size"] = (
                after["size"].clip(lower=int(step.value)) if step.kind == AT_LEAST else after["size"] + int(step.value)
            )
    likely = model.predict_proba(after)[:, list(model.classes_).index("yes")] >= 0.7
    np.testing.assert_array_equal(likely, np.isfinite(plan.actions[0].cost))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"at_most": 0}, "at_most"),
        ({"cover": 0.0}, "cover"),
        ({"cover": 1.5}, "cover"),
        ({"most_cost": -1}, "most_cost"),
        ({"mean_cost": 0}, "mean_cost"),
    ],
)
def test_misuse_is_told(example: tuple[Explainer, Explanations], options: dict[str, Any], word: str) -> None:
    explainer, found = example
    with pytest.raises(InvalidInput, match=word):
        explainer.actions(found, **options)


def test_what_actions_cannot_do_is_told(example: tuple[Explainer, Explanations]) -> None:
    explainer, found = example
    with pytest.raises(InvalidInput, match="need the model"):
        explainer.actions(Explanations.from_json(found.to_json()))
    model, data = trained(5, 120)
    careful = Explainer(model, data, plausibility=LocalOutlierFactor(limit=2.0))
    with pytest.raises(InvalidInput, match="plausibility"):
        careful.actions(data[:5], True)
