"""scikit-learn: the translated forest says what the model says, on every threshold, tie and missing value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from support.forests import adversarial_rows
from treefocus import kernels
from treefocus.adapters import translate
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Floats, Forest

Data = tuple[Any, Any]
BOOSTED = (AdaBoostClassifier, GradientBoostingClassifier)  # their own checks refuse missing values


def scattered(n_classes: int = 2, n_rows: int = 400, n_features: int = 5, labels: Any = None) -> Data:
    """Rows on mixed scales, labelled by a rule with noise in it; `labels` names the classes."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n_rows, n_features)) * np.array([1.0, 1e-4, 1e5, 1.0, 30.0])[:n_features]
    X[:, 3:] = np.round(X[:, 3:])
    score = X[:, 0] + X[:, 1] * 1e4 + 0.05 * X[:, -1] + rng.normal(0, 0.7, n_rows)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return X, y if labels is None else np.array(labels)[y]


def with_holes(n_classes: int = 2) -> Data:
    """Rows with missing values; one column tells by being missing at all."""
    X, y = scattered(n_classes)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[y == 0, 2] = np.where(rng.random((y == 0).sum()) < 0.8, np.nan, 1.0)
    return X, y


def named() -> Data:
    X, y = scattered()
    return pd.DataFrame(X, columns=["age", "income", "debt", "children", "score"]), y


def coin_flips(n_classes: int = 2) -> Data:
    """Labels that nothing explains, on few distinct rows: trees disagree and leaves are split evenly."""
    rng = np.random.default_rng(3)
    return rng.integers(0, 4, (120, 3)) / 4, rng.integers(0, n_classes, 120)


def tree(**parameters: Any) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=0, **parameters)


def boosting(n_estimators: int = 20, **parameters: Any) -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=n_estimators, random_state=0, **parameters)


def adaboost(depth: int, **parameters: Any) -> AdaBoostClassifier:
    return AdaBoostClassifier(tree(max_depth=depth), **({"n_estimators": 20, "random_state": 0} | parameters))


@dataclass(frozen=True)
class Case:
    """One model to agree with."""

    model: Callable[[], Any]
    data: Callable[[], Data]
    n_rows: int = 20_000
    has_ties: bool = False
    equal_votes: bool = False

    def fitted(self) -> tuple[Any, Any]:
        X, y = self.data()
        model = self.model().fit(X, y)
        if self.equal_votes:
            model.estimator_weights_[: len(model.estimators_)] = 0.9  # rounds when added up
        return model, X


CASES = {
    "tree": Case(tree, scattered, 100_000),
    "tree of one leaf": Case(lambda: tree(max_depth=1), lambda: (np.eye(4), np.zeros(4))),
    "tree, 5 classes": Case(lambda: tree(max_depth=6), lambda: scattered(5)),
    "tree, best first": Case(lambda: tree(max_leaf_nodes=25), lambda: scattered(3), 100_000),
    "tree, text labels": Case(lambda: tree(max_depth=4), lambda: scattered(3, labels=["yes", "maybe", "no"])),
    "tree, true and false": Case(lambda: tree(max_depth=4), lambda: scattered(labels=[False, True])),
    "tree, labels with gaps": Case(lambda: tree(max_depth=4), lambda: scattered(3, labels=[70, -1, 12])),
    "tree, class weight": Case(lambda: tree(max_depth=5, class_weight="balanced"), scattered),
    "tree, monotonic": Case(lambda: tree(max_depth=5, monotonic_cst=[1, 0, 0, 0, -1]), scattered),
    "tree, pruned": Case(lambda: tree(ccp_alpha=0.005), lambda: scattered(3)),
    "tree, missing": Case(lambda: tree(max_depth=6), with_holes, 100_000),
    "tree, ties": Case(tree, lambda: coin_flips(3), has_ties=True),
    "extra tree": Case(lambda: ExtraTreeClassifier(random_state=0), lambda: scattered(3)),
    "extra tree, missing": Case(lambda: ExtraTreeClassifier(max_depth=6, random_state=0), with_holes),
    "forest": Case(lambda: RandomForestClassifier(20, random_state=0), scattered, 100_000),
    "forest, 4 classes": Case(lambda: RandomForestClassifier(15, max_depth=5, random_state=0), lambda: scattered(4)),
    "forest, best first": Case(
        lambda: RandomForestClassifier(10, max_leaf_nodes=12, random_state=0), lambda: scattered(3)
    ),
    "forest, class weight": Case(
        lambda: RandomForestClassifier(10, max_depth=4, class_weight="balanced_subsample", random_state=0), scattered
    ),
    "forest, names": Case(lambda: RandomForestClassifier(10, random_state=0), named),
    "forest, missing": Case(lambda: RandomForestClassifier(10, random_state=0), lambda: with_holes(3)),
    "forest, ties": Case(lambda: RandomForestClassifier(4, random_state=0), coin_flips, 100_000, has_ties=True),
    "forest, ties, 3 classes": Case(
        lambda: RandomForestClassifier(6, random_state=0), lambda: coin_flips(3), has_ties=True
    ),
    "extra trees": Case(lambda: ExtraTreesClassifier(15, random_state=0), lambda: scattered(3)),
    "extra trees, missing": Case(lambda: ExtraTreesClassifier(10, max_depth=6, random_state=0), with_holes),
    "boosting": Case(boosting, scattered, 100_000),
    "boosting, 4 classes": Case(lambda: boosting(8), lambda: scattered(4, labels=list("abcd")), 100_000),
    "boosting, exponential": Case(lambda: boosting(loss="exponential", subsample=0.5), scattered),
    "boosting, from zero": Case(lambda: boosting(init="zero", learning_rate=0.7), lambda: scattered(3)),
    "boosting, best first": Case(lambda: boosting(max_leaf_nodes=6, max_depth=None), scattered),
    "boosting, names": Case(boosting, named),
    "adaboost, depth 1": Case(lambda: adaboost(1, n_estimators=40), scattered, 100_000),
    "adaboost, depth 2": Case(lambda: adaboost(2, learning_rate=0.3), lambda: scattered(3)),
    "adaboost, depth 4": Case(lambda: adaboost(4), lambda: scattered(5, labels=list("abcde"))),
    "adaboost, stopped early": Case(lambda: adaboost(12), scattered),
    "adaboost, names": Case(lambda: adaboost(2), named),
    "adaboost of extra trees": Case(
        lambda: AdaBoostClassifier(ExtraTreeClassifier(max_depth=3), n_estimators=10, random_state=0), scattered
    ),
    "adaboost, ties": Case(lambda: adaboost(1, n_estimators=4), coin_flips, has_ties=True, equal_votes=True),
    "adaboost, ties, 6 classes": Case(
        lambda: adaboost(3, n_estimators=6), lambda: coin_flips(6), 100_000, has_ties=True, equal_votes=True
    ),
}


def model_rows(rows: Floats, like: Any) -> Any:
    """The rows as the model was trained: with column names, or without."""
    return pd.DataFrame(rows, columns=like.columns) if isinstance(like, pd.DataFrame) else rows


@dataclass(frozen=True)
class Translated:
    """A model, its forest, and rows as the kernels and as the model take them."""

    case: Case
    model: Any
    forest: Forest
    rows: Floats
    for_model: Any


@pytest.fixture(params=CASES, scope="module")
def both(request: pytest.FixtureRequest) -> Translated:
    case = CASES[request.param]
    model, X = case.fitted()
    forest = translate(model).forest
    rows = adversarial_rows(forest, np.random.default_rng(0), case.n_rows)
    return Translated(case, model, forest, rows, model_rows(rows, X))


def test_predicted_class_is_the_models(both: Translated) -> None:
    predicted = both.forest.classes[kernels.predict(both.forest, both.rows)]
    np.testing.assert_array_equal(predicted, both.model.predict(both.for_model))
    assert predicted.dtype == both.model.classes_.dtype
    assert len(np.unique(predicted)) == both.forest.n_classes  # the rows reach every answer


def test_scores_are_the_models(both: Translated) -> None:
    scores = kernels.hard_scores(both.forest, both.rows)
    if not isinstance(both.model, BOOSTED):
        np.testing.assert_array_equal(scores, both.model.predict_proba(both.for_model))
        return
    # With two classes a boosted model gives one number: for class 1, or for it minus that for class 0.
    given = {1: scores[:, 0], 2: scores[:, -1] - scores[:, 0]}.get(scores.shape[1], scores)
    if getattr(both.model, "loss", None) == "exponential":
        given = given / 2  # its link takes the score twice
    np.testing.assert_array_equal(given, both.model.decision_function(both.for_model))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.has_ties])
def test_ties_are_part_of_it(name: str) -> None:
    model, _ = CASES[name].fitted()
    forest = translate(model).forest
    scores = np.sort(kernels.hard_scores(forest, adversarial_rows(forest, np.random.default_rng(0), 20_000)))
    assert (scores[:, -1] == scores[:, -2]).mean() > 0.01


def test_missing_values_are_part_of_it(both: Translated) -> None:
    takes_missing = True
    try:
        both.model.predict(both.for_model[:1] * np.nan)
    except ValueError:
        takes_missing = False
    is_monotonic = getattr(both.model, "monotonic_cst", None) is not None  # of these it depends on the version
    assert takes_missing != isinstance(both.model, BOOSTED) or is_monotonic
    assert both.forest.takes_missing == takes_missing
    assert np.isnan(both.rows).any() == takes_missing


def test_source_predicts_as_the_model(both: Translated) -> None:
    source = translate(both.model)
    assert source.predict is not None
    np.testing.assert_array_equal(source.predict(both.for_model[:50]), both.model.predict(both.for_model[:50]))


def test_boosting_stopped_early_leaves_unused_weights() -> None:
    model, _ = CASES["adaboost, stopped early"].fitted()
    assert translate(model).forest.n_trees < len(model.estimator_weights_)


def test_a_split_on_being_missing_sends_only_missing_right() -> None:
    X = np.array([[np.nan], [np.nan], [1.0], [2.0], [3.0]])
    forest = translate(tree().fit(X, [1, 1, 0, 0, 0])).forest
    rows = np.array([[np.nan], [-1e30], [0.0], [1e30]])
    assert kernels.predict(forest, rows).tolist() == [1, 0, 0, 0]


def test_trees_with_opposite_votes_tie_on_the_first_class() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array(["a", "b"])
    model = RandomForestClassifier(2, bootstrap=False, random_state=0).fit(X, y)
    model.estimators_[1].fit(X, [1.0, 0.0])
    forest = translate(model).forest
    np.testing.assert_array_equal(kernels.hard_scores(forest, X), [[0.5, 0.5], [0.5, 0.5]])
    assert kernels.predict(forest, X).tolist() == [0, 0]
    assert model.predict(X).tolist() == ["a", "a"]


def test_feature_names_come_along() -> None:
    X, y = named()
    names = ("age", "income", "debt", "children", "score")
    assert translate(tree(max_depth=2).fit(X, y)).forest.feature_names == names
    assert translate(tree(max_depth=2).fit(X.to_numpy(), y)).forest.feature_names is None


def test_tree_weights_are_those_of_the_vote() -> None:
    X, y = scattered()
    boosted = adaboost(2).fit(X, y)
    np.testing.assert_array_equal(translate(boosted).forest.tree_weight, boosted.estimator_weights_)
    forest = translate(RandomForestClassifier(4, max_depth=2, random_state=0).fit(X, y)).forest
    np.testing.assert_array_equal(forest.tree_weight, np.full(4, 0.25))


def test_leaf_distribution_of_adaboost_is_weighted_shares() -> None:
    X, y = coin_flips(3)
    model = adaboost(1, n_estimators=1).fit(X, y)
    forest = translate(model).forest
    assert forest.leaf_distribution is not None
    leaf = model.estimators_[0].tree_.children_left < 0
    shares = model.estimators_[0].tree_.value[leaf, 0, :]
    np.testing.assert_array_equal(forest.leaf_distribution, model.estimator_weights_[0] * shares)


def test_a_users_subclass_is_translated() -> None:
    class MyForest(RandomForestClassifier):
        pass

    X, y = scattered()
    model = MyForest(3, max_depth=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(kernels.hard_scores(translate(model).forest, X), model.predict_proba(X))


def test_a_forest_passes_through() -> None:
    forest = translate(tree(max_depth=2).fit(*scattered())).forest
    assert translate(forest).forest is forest
    assert translate(forest).predict is None


@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(), RandomForestClassifier(), AdaBoostClassifier(), GradientBoostingClassifier()]
)
def test_unfitted_model_is_refused(model: Any) -> None:
    with pytest.raises(InvalidInput, match=f"The {type(model).__name__} is not fitted: call its fit first"):
        translate(model)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        LogisticRegression(),
        object(),
        None,
        "forest.json",
        RandomForestClassifier,
    ],
    ids=lambda model: type(model).__name__,
)
def test_unsupported_model_is_refused(model: Any) -> None:
    expected = f"A {type(model).__name__} is not supported; supported are .*RandomForestClassifier.*Forest"
    with pytest.raises(UnsupportedModel, match=expected):
        translate(model)


@pytest.mark.parametrize("model", [tree(max_depth=2), RandomForestClassifier(2, max_depth=2)])
def test_model_of_several_outputs_is_refused(model: Any) -> None:
    X, y = scattered()
    with pytest.raises(UnsupportedModel, match="predicts several outputs at once; fit one model an output"):
        translate(model.fit(X, np.stack([y, 1 - y], axis=1)))


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(2, random_state=0)])
def test_adaboost_of_no_trees_is_refused(estimator: Any) -> None:
    X, y = coin_flips()
    model = AdaBoostClassifier(estimator, n_estimators=2, random_state=0).fit(X, y)
    expected = f"AdaBoostClassifier of {type(estimator).__name__} is not a tree ensemble"
    with pytest.raises(UnsupportedModel, match=expected):
        translate(model)


@pytest.mark.parametrize(
    "init", [LogisticRegression(), GaussianNB(), tree(max_depth=1), DummyClassifier(strategy="stratified")]
)
def test_boosting_that_starts_from_another_model_is_refused(init: Any) -> None:
    X, y = coin_flips()
    model = boosting(2, init=init).fit(X, y)
    with pytest.raises(UnsupportedModel, match="the default start and init='zero' are supported"):
        translate(model)
