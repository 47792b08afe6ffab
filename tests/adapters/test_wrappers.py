"""Wrappers are looked through: answers are the wrapper's own, the smallest by asking it, and refusals give advice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from imblearn.ensemble import BalancedRandomForestClassifier, EasyEnsembleClassifier
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import PowerTransformer
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from support import judge
from support.forests import forests_with_rows
from support.questions import any_number
from treefocus import Explainer, Forest, Interval, InvalidInput, Probability, Status, UnsupportedModel
from treefocus.adapters import translate
from treefocus.kernels import grid_of, predict
from treefocus.model.forest import Floats
from treefocus.search.base import Run
from treefocus.search.confirmed import Confirmed
from treefocus.search.exact import Exact

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2)).round(2)
NOISY = X[:, 0] + X[:, 1] + RNG.normal(0, 0.4, 240)
TWO, THREE = (NOISY > 0.3).astype(int), np.digitize(NOISY, [-0.7, 0.7])
ONE: dict[str, Any] = {"random_state": 0}


def small(n_trees: int = 4, depth: int = 2) -> RandomForestClassifier:
    return RandomForestClassifier(n_trees, max_depth=depth, **ONE)


def boosted(**parameters: Any) -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=4, max_depth=2, **ONE, **parameters)


def one_calibration(model: Any, method: str) -> Any:
    return CalibratedClassifierCV(model, method=method, cv=3, ensemble=False)


WRAPPERS: dict[str, tuple[Any, NDArray[Any]]] = {
    "search": (GridSearchCV(small(), {"max_depth": [1, 2]}, cv=2), TWO),
    "threshold of shares": (FixedThresholdClassifier(small(), threshold=0.7), TWO),
    "threshold of the first class": (FixedThresholdClassifier(small(), threshold=0.7, pos_label=0), TWO),
    "threshold of a sigmoid": (FixedThresholdClassifier(boosted(), threshold=0.35), TWO),
    "threshold of AdaBoost": (FixedThresholdClassifier(AdaBoostClassifier(n_estimators=6, **ONE), threshold=0.55), TWO),
    "calibrated by a sigmoid": (one_calibration(small(), "sigmoid"), TWO),
    "calibrated from point to point": (one_calibration(boosted(), "isotonic"), TWO),
    "soft vote": (
        VotingClassifier([("a", small()), ("b", ExtraTreesClassifier(3, max_depth=2, **ONE))], voting="soft"), TWO,
    ),
    "folds, each with a sigmoid": (CalibratedClassifierCV(small(), cv=3), TWO),
    "folds from point to point": (CalibratedClassifierCV(small(), method="isotonic", cv=3), TWO),
    "folds of boosters": (CalibratedClassifierCV(boosted(), cv=2), TWO),
    "folds of XGBoost": (CalibratedClassifierCV(XGBClassifier(n_estimators=3, max_depth=2), cv=2), TWO),
    "threshold of folds": (FixedThresholdClassifier(CalibratedClassifierCV(small(), cv=2), threshold=0.6), TWO),
    "hard vote of forests": (
        VotingClassifier([("a", small()), ("b", ExtraTreesClassifier(3, max_depth=2, **ONE)), ("c", boosted())]), TWO,
    ),
    "hard vote of two": (VotingClassifier([("a", small()), ("b", small(3, 3))], weights=[2, 3]), TWO),
    "soft vote of boosters": (
        VotingClassifier(
            [("a", small()), ("b", boosted()), ("c", AdaBoostClassifier(n_estimators=4, **ONE))], voting="soft"
        ), TWO,
    ),
    "EasyEnsemble": (EasyEnsembleClassifier(3, estimator=AdaBoostClassifier(n_estimators=4, **ONE), **ONE), TWO),
    "bagging of boosters": (BaggingClassifier(boosted(), 3, max_features=0.5, **ONE), TWO),
    "soft vote, three": (VotingClassifier([("a", small()), ("b", small(3, 1))], voting="soft"), THREE),
    "hard vote": (VotingClassifier([(str(k), DecisionTreeClassifier(max_depth=k)) for k in (1, 2, 3)]), THREE),
    "one against the rest": (OneVsRestClassifier(small()), THREE),
    "balanced": (BalancedRandomForestClassifier(4, max_depth=2, **ONE), TWO),
}  # fmt: skip


def candidates(forest: Forest, row: Floats) -> Floats:
    """Every point that could be the closest one in its cell, whatever the distance of a sum over columns."""
    grid, axes = grid_of(forest), []
    for f in range(forest.n_features):
        low, high = (ends[grid.cell_start[f] : grid.cell_start[f + 1]] for ends in (grid.low, grid.high))
        ends = np.concatenate([low, high, row[[f]]])
        axes.append(ends[np.isfinite(ends)])
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, forest.n_features)


def smallest(is_answer: NDArray[np.bool_], points: Floats, row: Floats) -> float:
    return float(np.abs(points - row).sum(axis=1)[is_answer].min(initial=np.inf))


@pytest.mark.parametrize("name", WRAPPERS)
def test_answers_are_the_smallest_by_asking_the_wrapper(name: str) -> None:
    model, y = WRAPPERS[name]
    model.fit(X, y)
    explainer = Explainer(model, X, distance="manhattan", scale=None, bounds=(-9.0, 9.0), schema=any_number(X))
    rows = X[:12]
    found, own = explainer.explain(rows), model.predict(rows)
    assert (np.array([one.predicted for one in found]) == own).all()
    for i, row in enumerate(rows):
        points = candidates(explainer.forest, row)
        best = smallest(model.predict(points) != own[i], points, row)
        assert found.status[i] in (Status.OPTIMAL, Status.INFEASIBLE)
        if found.status[i] is Status.OPTIMAL:
            assert model.predict(np.asarray(found.counterfactuals)[[i]])[0] != own[i]
            assert found.distance[i] == pytest.approx(best, rel=1e-9)
        else:
            assert best == np.inf


@pytest.mark.parametrize(
    "name", [name for name in WRAPPERS if "hard vote" not in name and name != "one against the rest"]
)
@pytest.mark.parametrize("label", [0, 1])
def test_probabilities_are_the_wrappers_own(name: str, label: int) -> None:
    model, y = WRAPPERS[name]
    model.fit(X, y)
    shown = model.predict_proba(X)[:, label]
    least = min(float(np.quantile(shown, 0.8)), 0.98)
    explainer = Explainer(model, X, distance="manhattan", scale=None, bounds=(-9.0, 9.0), schema=any_number(X))
    rows = X[shown < least][:8]
    found = explainer.explain(rows, target=Probability(label, least))
    for i, row in enumerate(rows):
        points = candidates(explainer.forest, row)
        best = smallest(model.predict_proba(points)[:, label] >= least, points, row)
        assert found.lower_bound[i] <= best * (1 + 1e-9)
        assert found.status[i].has_answer == (best < np.inf)
        if found.status[i].has_answer:
            assert model.predict_proba(np.asarray(found.counterfactuals)[[i]])[0, label] >= least
            assert found.distance[i] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        TransformedTargetRegressor(RandomForestRegressor(4, max_depth=2, **ONE), func=np.log1p, inverse_func=np.expm1),
        VotingRegressor(
            [("a", RandomForestRegressor(4, max_depth=2, **ONE)), ("b", RandomForestRegressor(3, max_depth=2))]
        ),
    ],
    ids=["log1p", "voting"],
)
def test_values_are_the_wrappers_own(model: Any) -> None:
    model.fit(X, np.exp(NOISY))
    low = float(np.quantile(model.predict(X), 0.8))
    rows = X[model.predict(X) < low][:8]
    explainer = Explainer(model, X, distance="manhattan", scale=None, bounds=(-9.0, 9.0), schema=any_number(X))
    found = explainer.explain(rows, target=Interval(low=low))
    for i, row in enumerate(rows):
        points = candidates(explainer.forest, row)
        best = smallest(model.predict(points) >= low, points, row)
        assert found.status[i] in (Status.OPTIMAL, Status.BOUNDED)
        assert found.lower_bound[i] <= best * (1 + 1e-9)
        assert found.distance[i] == pytest.approx(best, rel=1e-9)
        assert model.predict(np.asarray(found.counterfactuals)[[i]])[0] >= low


@settings(max_examples=40, deadline=None)
@given(forests_with_rows(n_rows=6, max_trees=3))
def test_nothing_is_claimed_within_the_rounding(drawn: tuple[Forest, Floats]) -> None:
    """A forest whose scores may be off: answers hold however they are off, bounds too, by brute force."""
    from dataclasses import replace

    forest, rows = drawn
    rows = rows[np.isfinite(rows).all(axis=1)]
    rounded = replace(forest, rounding=0.3 * float(np.abs(forest.leaf_value).max()) / forest.divisor + 0.01)
    if not len(rows):
        return
    explainer = Explainer(rounded, distance="manhattan", scale=None, bounds=(-1e6, 1e6))
    table = explainer.table_of(rows)
    for group in explainer._question(table, None).groups():
        problem = group.question.problem()
        assert problem.slack is not None
        outcome = Confirmed(Exact()).solve(problem, Run(0, 1, None).on(len(problem)))
        answered = np.flatnonzero(outcome.has_answer)
        strict = problem.tightened()
        assert strict is not None
        assert strict.subset(answered).is_valid(outcome.points[answered]).all()
        loose = problem.loosened()
        for i, question in enumerate(judge.brute.questions_of(loose)):
            best = judge.brute.optimum(question)
            assert outcome.lower_bound[i] <= best * (1 + 1e-9) + 1e-9
            if outcome.status[i] is Status.INFEASIBLE:
                assert best == np.inf


def test_what_is_refused_says_what_works() -> None:
    stacked = StackingClassifier([("a", small()), ("b", boosted())], LogisticRegression()).fit(X, TWO)
    with pytest.raises(UnsupportedModel, match=r"no sum over trees of the row; explain one of its models, model.est"):
        translate(stacked)
    assert Explainer(stacked.estimators_[0], X).explain(X[:1])[0].status.has_answer
    several = MultiOutputClassifier(small()).fit(X, np.stack([TWO, THREE > 0], axis=1))
    with pytest.raises(UnsupportedModel, match=r"2 outputs at once.*model\.estimators_\[0\]"):
        translate(several)
    for k, own in enumerate(several.estimators_):
        answer = Explainer(own, X).explain(X[:1])
        assert several.predict(np.asarray(answer.counterfactuals))[0, k] != several.predict(X[:1])[0, k]
    hard = VotingClassifier([("a", small()), ("b", boosted())]).fit(X, THREE)
    with pytest.raises(UnsupportedModel, match="A hard vote with a RandomForestClassifier of 3 classes"):
        translate(hard)
    soft = VotingClassifier([("a", small()), ("b", boosted())], voting="soft").fit(X, THREE)
    with pytest.raises(UnsupportedModel, match="A soft vote with a GradientBoostingClassifier of 3 classes"):
        translate(soft)
    calibrated = CalibratedClassifierCV(small(), cv=2).fit(X, THREE)
    with pytest.raises(UnsupportedModel, match="'sigmoid' or 'isotonic' of two classes is"):
        translate(calibrated)
    inside = calibrated.calibrated_classifiers_[0].estimator
    assert Explainer(inside, X).explain(X[:1])[0].status.has_answer
    twice = CalibratedClassifierCV(CalibratedClassifierCV(small(), cv=2), cv=2).fit(X, TWO)
    with pytest.raises(UnsupportedModel, match="Calibrate its models, and then vote"):
        translate(twice)
    with pytest.raises(UnsupportedModel, match="way back is PowerTransformer is not supported"):
        translate(TransformedTargetRegressor(RandomForestRegressor(3), transformer=PowerTransformer()).fit(X, NOISY))


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", small()), ("b", boosted()), ("c", small(3, 3))]),
        VotingClassifier([("a", small()), ("b", boosted())], voting="soft"),
        EasyEnsembleClassifier(3, estimator=AdaBoostClassifier(n_estimators=4, **ONE), **ONE),
        BaggingClassifier(boosted(), 3, **ONE),
    ],
    ids=["hard vote", "soft vote", "EasyEnsemble", "bagging of boosters"],
)
def test_of_more_classes_what_the_models_agree_on_is_an_answer(model: Any) -> None:
    words = np.array(["low", "mid", "high"])[THREE]
    model.fit(X, words)
    with pytest.raises(UnsupportedModel, match=r"classes.*is not supported.*also=model.estimators_\[1:\]"):
        translate(model)
    explainer = Explainer(model.estimators_[0], X, also=model.estimators_[1:])
    for number, label in enumerate(model.classes_):
        rows = X[model.predict(X) != label][:5]
        found = explainer.explain(rows, target=number)
        assert found.has_answer.all()
        assert (model.predict(np.asarray(found.counterfactuals)) == label).all()


def test_wrappers_that_are_not_ready_say_so() -> None:
    with pytest.raises(InvalidInput, match="GridSearchCV is not fitted"):
        translate(GridSearchCV(small(), {}))
    unkept = GridSearchCV(small(), {"max_depth": [1, 2]}, cv=2, refit=False).fit(X, TWO)
    with pytest.raises(InvalidInput, match="kept no best model: fit it with refit=True"):
        translate(unkept)
    with pytest.raises(InvalidInput, match="VotingClassifier is not fitted"):
        translate(VotingClassifier([("a", small())]))


def test_a_calibration_that_turns_the_answer_round_is_followed() -> None:
    """What learned from noise can have a curve that falls; of a sigmoid's probability it is refused."""
    model = one_calibration(small(3, 4), "sigmoid").fit(X, TWO)
    part = model.calibrated_classifiers_[0].calibrators[0]
    part.a_, part.b_ = -part.a_, 0.5 * part.a_
    found = Explainer(model, X, distance="manhattan").explain(X[:6])
    assert all(status is Status.OPTIMAL for status in found.status)
    assert (model.predict(np.asarray(found.counterfactuals)) != model.predict(X[:6])).all()
    boosters = one_calibration(XGBClassifier(n_estimators=3, max_depth=2), "sigmoid").fit(X, TWO)
    boosters.calibrated_classifiers_[0].calibrators[0].a_ = 0.5
    with pytest.raises(UnsupportedModel, match="turns its model's answer round"):
        translate(boosters)


def test_a_probability_that_no_row_reaches_is_infeasible() -> None:
    model = one_calibration(small(), "isotonic").fit(X, np.where(RNG.random(240) < 0.3, 1 - TWO, TWO))
    most = float(model.predict_proba(X)[:, 1].max())
    if most < 0.99:
        found = Explainer(model, X).explain(X[:3], target=Probability(1, 0.999))
        assert all(status is Status.INFEASIBLE for status in found.status)


def test_means_of_curves_that_tie_are_bounded_at_worst() -> None:
    """Plateaus of isotonic curves add up to one half exactly, where the library's own last digits decide."""
    model = CalibratedClassifierCV(boosted(), method="isotonic", cv=3).fit(X[:90], TWO[:90])
    explainer = Explainer(model, X, distance="manhattan", scale=None, bounds=(-9.0, 9.0), schema=any_number(X))
    rows = X[:12]
    found, own = explainer.explain(rows), model.predict(rows)
    for i, row in enumerate(rows):
        points = candidates(explainer.forest, row)
        best = smallest(model.predict(points) != own[i], points, row)
        assert found.status[i] in (Status.OPTIMAL, Status.BOUNDED)
        assert found.lower_bound[i] <= best * (1 + 1e-9)
        assert model.predict(np.asarray(found.counterfactuals)[[i]])[0] != own[i]
        if found.status[i] is Status.OPTIMAL:
            assert found.distance[i] == pytest.approx(best, rel=1e-9)


def test_votes_of_many_models_and_of_odd_weights_are_counted_as_the_library_counts() -> None:
    kinds = [("rf", small(3)), ("et", ExtraTreesClassifier(3, max_depth=2, **ONE)), ("gb", boosted())]
    for weights in ([0.1, 0.2, 0.3], [1, 1, 2], [0.0, 1.0, 0.0]):
        model = VotingClassifier(kinds, weights=weights).fit(X, TWO)
        assert (model.classes_[predict(translate(model).forest, X)] == model.predict(X)).all()
    many = VotingClassifier([(str(k), small(2, 3).set_params(random_state=k)) for k in range(16)]).fit(X, TWO)
    assert (predict(translate(many).forest, X) == many.predict(X)).all()
