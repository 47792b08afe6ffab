"""Refits, stability, and answers that hold for models that are trained again."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from scipy.special import ndtr
from scipy.stats import binom
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import Booster, XGBClassifier

from treefocus import Explainer, Explanations, Interval, InvalidInput, Probability, curve, explain, refits, verify
from treefocus.adapters import translate
from treefocus.explanation.calibration import Calibration, lower_end
from treefocus.explanation.certificate import digest
from treefocus.explanation.holding import Holding, margin_by_law, said
from treefocus.explanation.stability import Stability
from treefocus.explanation.training import calibration_rows
from treefocus.model.source import Source
from treefocus.options import HOLD_FOR_PEOPLE
from treefocus.problem.joint import with_margin
from treefocus.problem.pooled import lead, pooled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.6 * RNG.normal(size=200) > 0.3, "yes", "no")
N = (Y == "yes").astype(int)
FOREST = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, Y)
ROWS = X[FOREST.predict(X) == "no"][:5]
OTHERS = refits(FOREST, X, Y, n=12, seed=1, n_jobs=1)
ESTIMATORS: dict[str, Any] = {
    "forest": lambda: RandomForestClassifier(3, max_depth=2),
    "pipeline": lambda: make_pipeline(StandardScaler(), RandomForestClassifier(3, max_depth=2)),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=3, subsample=0.5),
    "xgboost": lambda: XGBClassifier(n_estimators=3, max_depth=2, subsample=0.5, n_jobs=1),
    "lightgbm": lambda: LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1, n_jobs=1),
    "catboost": lambda: CatBoostClassifier(iterations=3, depth=2, verbose=False, allow_writing_files=False),
    "search": lambda: GridSearchCV(RandomForestClassifier(3), {"max_depth": [1, 2]}, cv=2),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_refits_are_other_models_and_the_same_every_time(name: str) -> None:
    model = ESTIMATORS[name]().fit(X, N)
    before = model.predict_proba(X)
    first, again, other = (refits(model, X, N, n=3, seed=seed, n_jobs=1) for seed in (0, 0, 1))
    assert np.array_equal(model.predict_proba(X), before)
    each = [one.predict_proba(X) for one in first]
    assert all(np.array_equal(a, b.predict_proba(X)) for a, b in zip(each, again, strict=True))
    assert not np.array_equal(each[0], each[1])
    assert not np.array_equal(each[0], other[0].predict_proba(X))
    assert isinstance(translate(first[0]).forest.n_trees, int)


def test_refits_take_tables_and_tell_how_far_they_are() -> None:
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(200) + 7)
    heard: list[int] = []
    found = refits(RandomForestClassifier(2).fit(frame, Y), frame, Y, n=4, progress=heard.append, n_jobs=2)
    assert list(found[0].feature_names_in_) == ["a", "b", "c"]
    assert heard == [1, 2, 3, 4]


def test_what_cannot_be_trained_again_is_refused() -> None:
    with pytest.raises(InvalidInput, match="A Booster cannot be trained again: give the estimator"):
        refits(Booster(), X, Y)
    with pytest.raises(InvalidInput, match=r"y must be one label a row \(200\)"):
        refits(FOREST, X, Y[:10])
    with pytest.raises(InvalidInput, match="n must be a whole number above 0, got 0"):
        refits(FOREST, X, Y, n=0)


def test_stability_is_what_the_models_say() -> None:
    found = explain(FOREST, ROWS, X, target="yes", n_jobs=1)
    stability = found.stability(OTHERS)
    share = np.mean([model.predict(found.counterfactuals) == "yes" for model in OTHERS], axis=0)
    assert np.array_equal(stability.share, share)
    assert (stability.low <= share).all()
    assert (stability.high >= share).all()
    assert stability.n_models == 12
    low, high = stability.interval
    assert low <= stability.mean <= high
    kept = found.with_stability(OTHERS)
    assert kept.to_frame()["stability"].tolist() == share.tolist()
    assert kept.summary()["stability"]["mean"] == stability.mean
    assert "of 12 other models" in str(kept.summary())
    assert f"holds for {round(share[0] * 12)} of 12 models" in kept[0].to_text()
    assert "stability" not in found.summary()


@pytest.mark.parametrize("n_agreeing", [0, 3, 10, 20])
def test_the_interval_is_wilsons(n_agreeing: int) -> None:
    """Its ends are the shares of which what was seen is just 1.96 standard deviations away."""
    agrees = (np.arange(20) < n_agreeing)[:, None]
    found = Stability.of(agrees, np.array([True]))
    for end in (found.low[0], found.high[0]):
        if 0 < end < 1:
            assert abs(found.share[0] - end) / np.sqrt(end * (1 - end) / 20) == pytest.approx(1.959964, abs=1e-6)


def test_numbers_are_stable_where_they_lie_in_the_interval() -> None:
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, X[:, 0])
    others = refits(model, X, X[:, 0], n=5, n_jobs=1)
    found = explain(model, X[:3], X, target=Interval(low=0.5), n_jobs=1)
    said = np.mean([one.predict(found.counterfactuals) >= 0.5 for one in others], axis=0)
    assert np.array_equal(found.stability(others).share, said)


def test_a_pool_has_the_mean_of_its_models_scores() -> None:
    forests = [translate(one).forest for one in OTHERS[:4]]
    own = np.mean([one.predict_proba(X) for one in OTHERS[:4]], axis=0)
    assert lead(pooled(forests), X, 1) == pytest.approx(own[:, 1] - own[:, 0], abs=1e-12)
    boosted = [GradientBoostingClassifier(n_estimators=4, subsample=0.5, random_state=s).fit(X, Y) for s in range(3)]
    mean = np.mean([one.decision_function(X) for one in boosted], axis=0)
    assert lead(pooled([translate(one).forest for one in boosted]), X, 0) == pytest.approx(-mean, abs=1e-9)


@pytest.mark.parametrize("model", [FOREST, GradientBoostingClassifier(n_estimators=4).fit(X, Y)])
@pytest.mark.parametrize("wanted", [0, 1])
def test_a_margin_is_a_lead(model: Any, wanted: int) -> None:
    from treefocus import kernels

    forest = translate(model).forest
    moved = with_margin(forest, wanted, 0.1)
    ahead = lead(forest, X, wanted)
    clear = np.abs(ahead - 0.1) > 1e-9
    assert np.array_equal((kernels.predict(moved, X) == wanted)[clear], (ahead > 0.1)[clear])


def test_answers_that_hold_are_ahead_in_the_pool_and_flip_the_model() -> None:
    explainer = Explainer(FOREST, X, refits=OTHERS)
    found = explainer.explain(ROWS, target="yes", hold=0.8, n_jobs=1)
    plain = explainer.explain(ROWS, target="yes", n_jobs=1)
    assert found.has_answer.all()
    assert (FOREST.predict(found.counterfactuals) == "yes").all()
    holding = explainer._training.holding()
    margin = holding.margins[0.8, "yes"]
    assert (lead(explainer.pool, found.points, 1) >= margin - 1e-9).all()
    assert np.array_equal(found.smallest, plain.distance)
    assert (found.distance >= plain.distance - 1e-9).all()
    measuring = OTHERS[-len(holding.measuring) :]
    measured = np.mean([model.predict(found.counterfactuals) == "yes" for model in measuring], axis=0)
    assert np.array_equal(found.held.share, measured)
    assert found[0].price == pytest.approx(found.distance[0] / plain.distance[0])
    assert "No smaller change would hold as well." in found[0].to_text()


def test_who_calibrates_agrees_by_more_than_the_promise() -> None:
    explainer = Explainer(FOREST, X, refits=OTHERS)
    explainer.explain(ROWS[:1], target="yes", hold=0.8, n_jobs=1)
    holding = explainer._training.holding()
    assert isinstance(holding, Holding)
    rows = calibration_rows(explainer.forest, X, "yes")
    found = explainer.explain(rows, target="yes", hold=0.8, n_jobs=1)
    says = [np.asarray(one.predict(found.points[found.has_answer])) == "yes" for one in holding.calibrating]
    assert lower_end(np.array(says)) >= 0.8
    parts = [holding.calibrating, holding.measuring]
    assert [len(part) for part in parts] == [6, 3]
    assert not {id(one.forest) for one in parts[0]} & {id(one.forest) for one in parts[1]}


@pytest.mark.parametrize(("of_models", "of_rows"), [(0.0, 0.0), (1.2, 0.0), (0.0, 1.2), (0.8, 0.8)])
def test_the_lower_end_is_seldom_above_the_truth(of_models: float, of_rows: float) -> None:
    """Models and rows that differ: whoever counted every word as one draw would be above far more often."""
    rng = np.random.default_rng(3)
    n, draws = 400, rng.normal(size=(100_000, 2))
    truth = ndtr(1.8 + of_models * draws[:, 0] + of_rows * draws[:, 1]).mean()
    above = 0
    for _ in range(n):
        sure = 1.8 + of_models * rng.normal(size=(20, 1)) + of_rows * rng.normal(size=(1, 60))
        above += lower_end(rng.random((20, 60)) < ndtr(sure)) > truth
    assert above / n <= 0.1


@pytest.mark.parametrize("needed", [0.0, 0.4, 1.0, 2.5, 9.0])
def test_the_margin_is_little_more_than_what_is_needed(needed: float) -> None:
    """Of models that agree to every row from some margin on."""
    asked: list[float] = []

    def says(margin: float, rows: slice) -> Any:
        asked.append(margin)
        return np.full((20, rows.stop - (rows.start or 0)), margin >= needed)

    margin = Calibration(says, 60, 1.0).margin(0.95)
    assert needed <= margin <= max(1.35 * needed, 1.0)
    assert len(asked) <= 14
    both = Calibration(says, 60, 1.0)
    both.margin(0.7)
    assert both.margin(0.95) == margin  # whatever was asked for before


def test_a_curve_tells_what_promises_are_worth() -> None:
    explainer = Explainer(FOREST, X, refits=OTHERS)
    found = curve(explainer, ROWS, "yes", holds=[0.9, 0.7], n_jobs=1)
    assert [one.hold for one in found] == [None, 0.7, 0.9]
    for one in found:
        again = explainer.explain(ROWS, "yes", hold=one.hold, n_jobs=1)
        assert np.array_equal(one.found.points, again.points)
        says = [model.predict(again.points) == "yes" for model in OTHERS[-3:]]
        assert one.validity == pytest.approx(np.mean(says))
        assert one.price == pytest.approx(again.distance.sum() / found[0].found.distance.sum())
    frame = found.to_frame()
    assert frame["price"].tolist() == [one.price for one in found]
    assert frame["price"][0] == 1
    assert found.to_text().splitlines()[0].startswith("the smallest change: ")
    axes = found.plot(language="de")
    assert [text.get_text() for text in axes.texts][1:] == ["70 %", "90 %"]
    assert axes.get_xlabel() == "Abstand, in kleinsten Änderungen"


def test_a_curve_needs_refits() -> None:
    with pytest.raises(InvalidInput, match="give Explainer labels="):
        curve(Explainer(FOREST, X), ROWS)
    with pytest.raises(InvalidInput, match="holds must be one promise or more"):
        curve(Explainer(FOREST, X, refits=OTHERS), ROWS, holds=[])


def test_labels_train_refits_once() -> None:
    explainer = Explainer(FOREST, pd.DataFrame(X, columns=list("abc")), labels=Y)
    rows = pd.DataFrame(ROWS[:2], columns=list("abc"))
    first = explainer.explain(rows, target="yes", hold=0.7, n_jobs=1)
    kept = explainer._training.kept
    again = explainer.explain(rows, target="yes", hold=0.7, n_jobs=1)
    assert explainer._training.kept is kept
    assert np.array_equal(first.points, again.points)
    sent = pickle.loads(pickle.dumps(explainer))
    assert np.array_equal(sent.explain(rows, target="yes", hold=0.7, n_jobs=1).points, first.points)


def test_a_certificate_of_an_answer_that_holds_is_checked_with_the_pool() -> None:
    explainer = Explainer(FOREST, X, refits=OTHERS)
    record = explainer.explain(ROWS[:1], target="yes", hold=0.8, n_jobs=1)[0].certificate()
    assert verify(record, explainer.forest, also=[explainer.pool], reprove=True).holds
    assert not verify(record, explainer.forest).holds


def test_a_certificate_under_the_law_of_the_votes_needs_no_other_model() -> None:
    explainer = Explainer(FOREST, X)
    record = explainer.explain(ROWS[:1], target="yes", hold=0.9, n_jobs=1)[0].certificate()
    assert verify(record, explainer.forest, reprove=True).holds
    smallest = explainer.explain(ROWS[:1], target="yes", n_jobs=1)[0]
    forged = record | {"point": smallest.counterfactual.tolist(), "distance": smallest.distance, "lower_bound": 0.0}
    del forged["fingerprint"]
    assert verify(forged | {"fingerprint": digest(forged)}, explainer.forest).failed


def test_json_keeps_what_was_promised_and_what_it_costs() -> None:
    found = Explainer(FOREST, X, refits=OTHERS).explain(ROWS[:3], target="yes", hold=0.8, n_jobs=1)
    read = Explanations.from_json(found.to_json())
    assert read.to_json() == found.to_json()
    assert [one.to_text() for one in read] == [one.to_text() for one in found]
    assert read.held is not None
    assert read.held.interval == found.held.interval
    rounded = found[0].rounded().batch
    assert Explanations.from_json(rounded.to_json())[0].larger == rounded[0].larger
    plain = json.loads(Explainer(FOREST, X).explain(ROWS[:1], target="yes", n_jobs=1).to_json())["rows"][0]
    assert not {"is_demanding", "smallest", "larger", "agrees"} & plain.keys()


def test_a_margin_that_nobody_can_have_is_asked_of_no_model() -> None:
    answered = said(Source(translate(FOREST).forest, FOREST.predict), np.empty((0, 3)))
    assert len(answered) == 0


def test_without_refits_the_law_of_the_votes_has_to_do() -> None:
    found = Explainer(FOREST, X).explain(ROWS, target="yes", hold=0.9, n_jobs=1)
    margin = margin_by_law(translate(FOREST).forest, 0.9)
    share = FOREST.predict_proba(found.counterfactuals)[:, 1]
    assert (2 * share - 1 >= margin - 1e-9).all()
    p = (1 + margin) / 2  # two forests of ten trees with this share: the second has a majority about as often
    n = 4000
    rng = np.random.default_rng(0)
    truth = np.clip(p + rng.normal(size=n) * np.sqrt(p * (1 - p) / 10), 0, 1)
    assert (1 - binom.cdf(5, 10, truth) + 0.5 * binom.pmf(5, 10, truth)).mean() == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("options", "asked", "message"),
    [
        ({}, {"hold": 1.0}, "hold must be a number above 0.5 and below 1, got 1.0"),
        ({"refits": OTHERS[:2]}, {"hold": 0.9}, "refits must be three models or more"),
        ({"refits": OTHERS}, {"hold": 0.9, "target": Probability("yes", 0.6)}, "hold= is a margin itself"),
    ],
)
def test_misuse_is_refused(options: dict[str, Any], asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Explainer(FOREST, X, **options).explain(ROWS[:1], **({"target": "yes"} | asked))


def test_boosted_models_need_refits() -> None:
    model = GradientBoostingClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(InvalidInput, match="hold= takes training labels"):
        Explainer(model, X).explain(ROWS[:1], target="yes", hold=0.9)


def test_people_are_answered_with_a_margin_where_there_is_one() -> None:
    boosted = GradientBoostingClassifier(n_estimators=3).fit(X, Y)
    three = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, np.arange(200) % 3)
    numbers = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, X[:, 0])
    assert Explainer(FOREST, X).hold_for_people("yes") == HOLD_FOR_PEOPLE
    assert Explainer(FOREST, X).hold_for_people() == HOLD_FOR_PEOPLE
    assert Explainer(FOREST, X).hold_for_people(("yes", 0.7)) is None
    assert Explainer(boosted, X).hold_for_people("yes") is None
    assert Explainer(boosted, X, labels=Y).hold_for_people("yes") == HOLD_FOR_PEOPLE
    assert Explainer(three, X).hold_for_people() is None
    assert Explainer(three, X).hold_for_people(2) == HOLD_FOR_PEOPLE
    assert Explainer(numbers, X).hold_for_people(Interval(low=0.5)) is None


def test_round_numbers_still_hold_and_say_what_they_cost() -> None:
    explainer = Explainer(FOREST, X, refits=OTHERS)
    for one in explainer.explain(ROWS[:2], target="yes", hold=0.8, n_jobs=1):
        told = one.rounded()
        assert told.price == pytest.approx(told.distance / one.distance * one.price)
        assert f"It is {told.price:.2g} times the smallest change." in told.to_text()
        margin = explainer._training.holding().margins[0.8, "yes"]
        assert lead(explainer.pool, told.batch.points, 1)[0] >= margin - 1e-9
