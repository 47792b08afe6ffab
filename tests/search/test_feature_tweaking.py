"""Feature Tweaking against cases worked out by hand, and against the paper's figures where its models are at hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS, paper_dir, random_forest
from support.questions import random_question, stump
from treefocus import Exact, Explainer, FeatureTweaking, Fixed, Forest, InvalidInput, Status, kernels
from treefocus.evaluation import datasets
from treefocus.evaluation.paper import BY_ID
from treefocus.evaluation.reproduce import ask
from treefocus.search.base import Run
from treefocus.search.feature_tweaking import Paths


def forest_of(trees: list[tuple[list[int], list[float], list[tuple[float, float]]]]) -> Forest:
    """Trees of depth 2 on two features: features and thresholds of root, left, right, and votes of the four leaves."""
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []
    values: list[tuple[float, float]] = []
    starts = [0]
    for features, thresholds, votes in trees:
        base = len(feature)
        feature += [features[0], features[1], -1, -1, features[2], -1, -1]
        threshold += [thresholds[0], thresholds[1], 0.0, 0.0, thresholds[2], 0.0, 0.0]
        left += [base + 1, base + 2, -1, -1, base + 5, -1, -1]
        right += [base + 4, base + 3, -1, -1, base + 6, -1, -1]
        values += votes
        starts.append(len(feature))
    return Forest(
        feature=np.array(feature), threshold=np.array(threshold), left=np.array(left), right=np.array(right),
        default_left=np.zeros(len(feature), bool), tree_start=np.array(starts), leaf_value=np.array(values),
        base_score=np.zeros(2), classes=np.array(["no", "yes"]), n_features=2, tree_weight=np.ones(len(trees)),
    )  # fmt: skip


NO, YES = (1.0, 0.0), (0.0, 1.0)


def tweak(forest: Forest, row: list[float], epsilon: float = 0.01, **options: Any) -> Any:
    explainer = Explainer(forest, scale=None, bounds=(0.0, 1.0), **options)
    return explainer.explain(np.array([row]), strategy=FeatureTweaking(epsilon))


def test_one_split_is_crossed_by_epsilon() -> None:
    found = tweak(stump(0.5), [0.2, 0.7])
    np.testing.assert_allclose(found.counterfactuals, [[0.51, 0.7]])
    np.testing.assert_allclose(found.distance, [0.31])
    assert found.status[0] is Status.FOUND


def test_from_the_right_the_margin_is_below_the_threshold() -> None:
    np.testing.assert_allclose(tweak(stump(0.5), [0.8, 0.7]).counterfactuals, [[0.49, 0.7]])


def test_the_closest_of_several_leaves_is_taken_and_met_conditions_are_left_alone() -> None:
    # yes where x > 0.5 and y > 0.9, or x <= 0.5 and y > 0.3: from (0.2, 0.1) the second is nearer, x stays.
    forest = forest_of([([0, 1, 1], [0.5, 0.3, 0.9], [NO, YES, NO, YES])])
    np.testing.assert_allclose(tweak(forest, [0.2, 0.1]).counterfactuals, [[0.2, 0.31]])


def test_a_leaf_of_one_tree_need_not_flip_the_ensemble() -> None:
    # Three stumps, a yes needs two of them: each candidate brings one.
    trees = [([0, 1, 1], [0.5, 2.0, 2.0], [NO, NO, YES, YES]), ([1, 0, 0], [0.6, 2.0, 2.0], [NO, NO, YES, YES])]
    forest = forest_of([*trees, ([1, 0, 0], [0.99, 2.0, 2.0], [NO, NO, YES, YES])])
    found = tweak(forest, [0.1, 0.1])
    # Beyond 0.99 on y two trees say yes; no other candidate flips.
    np.testing.assert_allclose(found.counterfactuals, [[0.1, 1.0]])
    assert tweak(forest, [0.1, 0.1], constraints=[Fixed(1)]).status[0] is Status.NOT_FOUND


def test_a_candidate_stays_in_the_domain() -> None:
    assert tweak(stump(0.95), [0.2, 0.7], epsilon=0.1).counterfactuals[0, 0] == 1.0


def test_only_trees_that_vote_as_the_ensemble_propose() -> None:
    trees = [([0, 1, 1], [0.5, 2.0, 2.0], [NO, NO, YES, YES])] * 2
    forest = forest_of([*trees, ([0, 1, 1], [0.3, 2.0, 2.0], [YES, YES, NO, NO])])
    problem = _problem(forest, [[0.1, 0.1]])  # votes: no, no, yes
    counts = Paths.of(forest).changes_vote(problem)[0]
    assert counts.tolist() == [False, False, True, True] * 2 + [False] * 4


def test_where_a_leaf_is_thinner_than_the_margin_the_last_condition_wins() -> None:
    # yes where 0.4 < x <= 0.45: at epsilon 0.1 the path asks for x = 0.5 first, and then for 0.35.
    forest = forest_of([([0, 1, 0], [0.4, 2.0, 0.45], [NO, NO, YES, NO])])
    problem = _problem(forest, [[0.1, 0.1]])
    paths = Paths.of(forest)
    np.testing.assert_allclose(paths.tweaked(problem, np.full(2, 0.1))[0, 2], [0.35, 0.1])
    assert tweak(forest, [0.1, 0.1], epsilon=0.1).status[0] is Status.NOT_FOUND
    np.testing.assert_allclose(tweak(forest, [0.1, 0.1], epsilon=0.02).counterfactuals, [[0.42, 0.1]])


def _problem(forest: Forest, rows: list[list[float]]) -> Any:
    from treefocus.evaluation.illustrations import _ask

    return _ask(forest, np.array(rows))


@settings(max_examples=25)
@given(SEEDS)
def test_on_a_single_tree_it_is_the_optimum_but_for_the_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = random_forest(rng, n_trees=1, max_depth=3, spread=0.3)
    forest = Forest(**{**vars(nodes), "tree_weight": np.ones(1), "base_score": np.zeros(2)})
    explainer = Explainer(forest, scale=None)
    rows = rng.normal(0.0, 0.5, (12, forest.n_features))
    tweaked = explainer.explain(rows, strategy=FeatureTweaking(1e-6))
    optimum = explainer.explain(rows, strategy=Exact())
    thin = tweaked.has_answer != optimum.has_answer
    np.testing.assert_allclose(tweaked.distance[~thin], optimum.distance[~thin], atol=1e-5)
    assert not (tweaked.has_answer & ~optimum.has_answer).any()


@settings(max_examples=25)
@given(SEEDS)
def test_every_answer_is_valid_on_the_ensemble(seed: int) -> None:
    explainer, rows = random_question(seed)
    if explainer.forest.decision != "argmax":
        return
    forest = Forest(**{**vars(explainer.forest), "tree_weight": np.ones(explainer.forest.n_trees)})
    explainer.forest = forest
    found = explainer.explain(rows, strategy=FeatureTweaking(0.05))
    answered = found.has_answer
    assert (kernels.predict(forest, found.points[answered]) != kernels.predict(forest, rows[answered])).all()


def test_trees_that_add_to_a_score_are_refused() -> None:
    forest = random_forest(np.random.default_rng(0), decision="above")
    with pytest.raises(InvalidInput, match="trees that vote"):
        Explainer(forest, scale=None).explain(np.zeros((1, 3)), strategy=FeatureTweaking())


def test_epsilon_is_checked() -> None:
    with pytest.raises(InvalidInput, match=r"FeatureTweaking\.epsilon must be a finite number above 0, got 0"):
        FeatureTweaking(0)


@cache
def tweaked(setting_id: str, epsilon: float) -> Any:
    folder, setting = paper_dir(), BY_ID[setting_id]
    split = datasets.load(setting.dataset, folder)
    problem = ask(setting, datasets.load_model(split, setting.model, folder), split)
    return FeatureTweaking(epsilon).solve(problem, Run()).distance


@pytest.mark.parametrize("dataset", ["wine", "heloc", "compas", "shopping"])
@pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
def test_on_the_paper_s_trees_the_mean_is_the_published_one(dataset: str, distance: str) -> None:
    found = tweaked(f"{dataset}-dt-{distance}", 0.001)
    assert not np.isnan(found).any()
    assert found.mean() == pytest.approx(BY_ID[f"{dataset}-dt-{distance}"].published.baseline_mean, rel=0.01)


def test_on_wine_s_adaboost_it_finds_what_the_paper_averages_over() -> None:
    assert int((~np.isnan(tweaked("wine-ab-euclidean", 0.1))).sum()) == 887
