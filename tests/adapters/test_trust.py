"""Trust: a translation that differs from its model is refused before it answers anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from support.conformance import fitted
from support.conformance_sklearn import SKLEARN
from support.conformance_xgboost import XGBOOST
from treefocus import Explainer, Forest
from treefocus.adapters import Source, translate
from treefocus.adapters.trust import telling_rows, trusted
from treefocus.errors import ModelMismatch


def a_source(kind: Any = RandomForestClassifier, load: Any = load_iris) -> Source:
    X, y = load(return_X_y=True)
    parameters = {} if kind is HistGradientBoostingClassifier else {"n_estimators": 10}
    return translate(kind(random_state=0, **parameters).fit(X, y))


@pytest.mark.parametrize("case", [*SKLEARN, *XGBOOST], ids=str)
def test_a_true_translation_is_trusted(case: Any) -> None:
    source = fitted(case)[2]
    assert trusted(source) is source


def wrong_side(forest: Forest) -> Forest:
    """One split in fifty sends its threshold to the other side."""
    inner = np.flatnonzero(forest.left >= 0)[::50]
    threshold = forest.threshold.copy()
    threshold[inner] = np.nextafter(threshold[inner].astype(np.float32), np.float32(-np.inf))
    return replace(forest, threshold=threshold)


WRONG = {
    "thresholds one float off": wrong_side,
    "a leaf": lambda forest: replace(forest, leaf_value=forest.leaf_value * (1 + 1e-6)),
    "missing values": lambda forest: replace(forest, default_left=~forest.default_left & (forest.left >= 0)),
    "the order of classes": lambda forest: replace(forest, classes=forest.classes[::-1]),
    "the number of trees": lambda forest: replace(forest, divisor=forest.divisor + 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_translation_is_refused(name: str) -> None:
    source = a_source()
    with pytest.raises(ModelMismatch, match=r"The RandomForestClassifier and its translation disagree on .* test rows"):
        trusted(replace(source, forest=WRONG[name](source.forest)))


def test_a_wrong_dtype_is_refused() -> None:
    source = a_source(load=load_breast_cancer)
    with pytest.raises(ModelMismatch):
        trusted(replace(source, forest=replace(source.forest, input_dtype="float64")))


def test_a_wrong_value_is_refused() -> None:
    source = a_source(RandomForestRegressor)
    assert trusted(source) is source
    with pytest.raises(ModelMismatch, match="a score of"):
        trusted(replace(source, forest=replace(source.forest, base_score=np.array([1e-6]))))


def test_wrong_sides_of_categories_are_refused() -> None:
    case = next(case for case in SKLEARN if case.data == "categorical" and case.task == "binary")
    source = fitted(case)[2]
    categories = source.forest.categories
    assert categories is not None
    other = replace(categories, set_member=np.where(categories.set_member == 0, 1, categories.set_member))
    with pytest.raises(ModelMismatch):
        trusted(replace(source, forest=replace(source.forest, categories=other)))


def test_the_rows_hold_what_can_go_wrong() -> None:
    source = a_source(HistGradientBoostingClassifier)
    rows = telling_rows(source)
    assert np.isnan(rows).any()
    assert np.isinf(rows).any()
    for f in range(4):
        own = source.forest.threshold[source.forest.feature == f]
        assert np.isin(rows[:, f], own).any()
        assert np.isin(rows[:, f], np.nextafter(own, np.inf)).any()
    np.testing.assert_array_equal(rows, telling_rows(source))


def test_ties_that_threads_break_differently_are_no_mismatch() -> None:
    source = a_source()
    rows = telling_rows(source)
    assert source.scores is not None
    theirs = source.scores(rows)
    tied = np.sort(theirs)[:, -1] == np.sort(theirs)[:, -2]
    assert tied.any()
    nudged = theirs + np.where(tied, 1e-16, 0.0)[:, None] * np.arange(3)
    threaded = replace(
        source, scores=lambda rows: nudged, predict=lambda rows: source.forest.classes[nudged.argmax(axis=1)]
    )
    assert trusted(threaded) is threaded


def test_an_explainer_refuses_a_model_that_changed_its_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    monkeypatch.setattr(model, "predict", lambda rows: np.zeros(len(rows), int))
    with pytest.raises(ModelMismatch):
        Explainer(model, X)


def test_a_forest_alone_is_taken_at_its_word() -> None:
    source = Source(a_source().forest)
    assert trusted(source) is source
