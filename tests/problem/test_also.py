"""Several models that have to agree: one answer, found and proven for all of them."""

from __future__ import annotations

import json
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner
from xgboost import XGBClassifier

from treefocus import Explainer, Fixed, Interval, InvalidInput, Probability, Status, kernels, load_explainer, verify
from treefocus.adapters import translate
from treefocus.cli import app
from treefocus.kernels import reference
from treefocus.problem.joint import Companion, put_to_all

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=300) > 0.4).astype(int)
KINDS: dict[str, Any] = {
    "forests": lambda s: RandomForestClassifier(3, max_depth=3, random_state=s),
    "boosted": lambda s: GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=s, subsample=0.7),
    "mixed": lambda s: [
        RandomForestClassifier(3, max_depth=3, random_state=s),
        XGBClassifier(n_estimators=4, max_depth=2, random_state=s, n_jobs=1),
        HistGradientBoostingClassifier(max_iter=4, max_depth=2, random_state=s),
        LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1),
        make_pipeline(StandardScaler(), ExtraTreesClassifier(3, max_depth=3, random_state=s)),
    ][s],
}


def models_of(kind: str, n: int = 3) -> list[Any]:
    return [KINDS[kind](s).fit(X, Y) for s in range(5 if kind == "mixed" else n)]


def beside(cut: float) -> list[float]:
    """A threshold and its neighbours, in the number types in which models compare."""
    single = np.float32(cut)
    ends = [np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf)]
    return [cut, np.nextafter(cut, -np.inf), np.nextafter(cut, np.inf), float(single), *map(float, ends)]


def closest_by_trying(models: list[Any], row: np.ndarray, scale: np.ndarray, wanted: int) -> float:
    """The cost of the closest of all cells' points on which all models agree, by their own predict."""
    forests, columns = [translate(model).forest for model in models], []
    for f in range(len(row)):
        cuts = np.unique(np.concatenate([one.threshold[one.feature == f] for one in forests]))
        near = np.unique([row[f], *(value for cut in cuts for value in beside(float(cut)))])
        columns.append(near[(near >= X[:, f].min()) & (near <= X[:, f].max())])
    points = np.array(list(product(*columns)))
    agree = np.all([np.asarray(model.predict(points)) == wanted for model in models], axis=0)
    cost = (np.abs(points - row) / scale).sum(axis=1)
    return float(cost[agree].min()) if agree.any() else np.inf


@pytest.mark.parametrize("seed", range(4))
def test_the_joint_optimum_is_that_of_trying_every_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 300, 60) for _ in range(3)]
    models = [DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[part], Y[part]) for part in parts]
    explainer = Explainer(models[0], X, also=models[1:])
    rows = X[models[0].predict(X) == 0][:4]
    found = explainer.explain(rows, target=1, n_jobs=1)
    for one, row in zip(found, rows, strict=True):
        least = closest_by_trying(models, row, explainer.space.scale, 1)
        assert one.status is (Status.OPTIMAL if np.isfinite(least) else Status.INFEASIBLE)
        if one.status is Status.OPTIMAL:
            assert one.distance == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distance", ["manhattan", "euclidean", "l0", "cosine"])
def test_every_model_gives_the_wanted_class(kind: str, distance: str) -> None:
    models = models_of(kind)
    rows = X[np.asarray(models[0].predict(X)) == 0][:4]
    found = Explainer(models[0], X, also=models[1:], distance=distance).explain(rows, target=1, n_jobs=1)
    alone = Explainer(models[0], X, distance=distance).explain(rows, target=1, n_jobs=1)
    assert found.has_answer.all()
    points = np.asarray(found.counterfactuals)
    for model in models:
        assert (np.asarray(model.predict(points)) == 1).all()
    is_proven = (alone.status == Status.OPTIMAL) & found.has_answer
    assert (found.distance[is_proven] >= alone.distance[is_proven] - 1e-9).all()


def test_the_joint_forest_decides_as_its_models_do_to_the_last_bit() -> None:
    models = models_of("mixed")
    forests = [translate(model).forest for model in models]
    joint = put_to_all(1, forests[0], [Companion(one) for one in forests[1:]], len(X), None).forest
    assert joint.input_dtype == "float64"
    rows = np.concatenate([X, np.repeat(X[:1], 200, axis=0)])
    cuts = joint.threshold[(joint.left >= 0)][:200]
    rows[300 : 300 + len(cuts), 0] = cuts
    own = np.array([np.asarray(model.predict(rows)) for model in models])
    expected = np.where((own == own[0]).all(axis=0), own[0], 2)
    assert np.array_equal(kernels.predict(joint, rows), expected)
    assert np.array_equal(kernels.hard_scores(joint, rows), reference.hard_scores(joint, rows))


def test_a_probability_and_a_number_are_asked_of_every_model() -> None:
    models = models_of("forests")
    rows = X[models[0].predict(X) == 0][:3]
    found = Explainer(models[0], X, also=models[1:]).explain(rows, target=Probability(1, 0.6), n_jobs=1)
    assert found.has_answer.all()
    for model in models:
        assert (model.predict_proba(np.asarray(found.counterfactuals))[:, 1] >= 0.6).all()
    regressors = [RandomForestRegressor(3, max_depth=3, random_state=s).fit(X, X[:, 0]) for s in range(3)]
    found = Explainer(regressors[0], X, also=regressors[1:]).explain(X[:3], target=Interval(0.5, 1.5), n_jobs=1)
    assert found.has_answer.all()
    for model in regressors:
        value = model.predict(np.asarray(found.counterfactuals))
        assert ((value >= 0.5) & (value <= 1.5)).all()


def test_without_a_target_all_models_give_the_other_class() -> None:
    models = models_of("forests")
    found = Explainer(models[0], X, also=models[1:]).explain(X[:6], n_jobs=1)
    points, wanted = np.asarray(found.counterfactuals), 1 - models[0].predict(X[:6])
    for model in models:
        assert (model.predict(points[found.has_answer]) == wanted[found.has_answer]).all()


def test_of_many_classes_one_has_to_be_named() -> None:
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    models = [RandomForestClassifier(3, max_depth=3, random_state=s).fit(X, y) for s in range(2)]
    explainer = Explainer(models[0], X, also=models[1])
    found = explainer.explain(X[:4], target=2, n_jobs=1)
    assert found.has_answer.all()
    assert all((model.predict(np.asarray(found.counterfactuals)) == 2).all() for model in models)
    with pytest.raises(InvalidInput, match="target must be a class where several models"):
        explainer.explain(X[:1])


def test_models_with_columns_in_another_order_and_other_categories_agree() -> None:
    kind = np.where(X[:, 2] > 0.5, "x", np.where(X[:, 2] > -1, "y", "z"))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": pd.Categorical(kind)})
    settings: dict[str, Any] = {"n_estimators": 5, "num_leaves": 4, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    settings["min_data_per_group"] = 5
    first = LGBMClassifier(**settings).fit(frame, Y)
    fewer = frame[frame["kind"] != "z"]
    other = fewer.assign(kind=fewer["kind"].cat.remove_unused_categories())[["kind", "b", "a"]]
    second = LGBMClassifier(**settings).fit(other, Y[frame["kind"] != "z"])
    rows = frame[first.predict(frame) == 0][:5]
    found = Explainer(first, frame, also=second).explain(rows, target=1, n_jobs=1)
    points = found.counterfactuals
    assert found.has_answer.all()
    assert (first.predict(points) == 1).all()
    known = points["kind"] != "z"
    renamed = points[known].assign(kind=points["kind"][known].cat.set_categories(["x", "y"]))[["kind", "b", "a"]]
    assert (second.predict(renamed) == 1).all()


@pytest.mark.parametrize("value", [1e39, np.nan])
def test_a_row_that_one_of_the_models_cannot_read_gets_no_answer(value: float) -> None:
    wide = HistGradientBoostingClassifier(max_iter=4, max_depth=2, random_state=0).fit(X, Y)
    rows = np.array([[value, 0.0, 0.0], X[0]])
    for model, other, whose in ((wide, KINDS["boosted"](0), "another model"), (KINDS["boosted"](0), wide, "the model")):
        models = [one if one is wide else one.fit(X, Y) for one in (model, other)]
        found = Explainer(models[0], X, also=models[1]).explain(rows, 1 - models[0].predict(X[:1])[0])
        assert found.status[0] is Status.INVALID
        assert str(found.why[0]).startswith(whose)
        assert "feature 0 = " in str(found.why[0])
        assert np.isnan(found.points[0]).all()
        assert found.status[1] is Status.OPTIMAL


def test_models_that_have_nothing_in_common_are_refused() -> None:
    model = models_of("forests", 1)[0]
    with pytest.raises(InvalidInput, match=r"also\[0\] predicts a number, the model a class"):
        Explainer(model, X, also=RandomForestRegressor(2).fit(X, X[:, 0]))
    with pytest.raises(InvalidInput, match=r"also\[0\] reads 2 columns, the model 3"):
        Explainer(model, X, also=[DecisionTreeClassifier().fit(X[:, :2], Y)])
    with pytest.raises(InvalidInput, match=r"also\[0\] has the classes \[5, 6\]"):
        Explainer(model, X, also=[DecisionTreeClassifier().fit(X, Y + 5)])


def test_the_model_in_the_way_is_named() -> None:
    models = models_of("forests")
    never = DecisionTreeClassifier().fit(np.r_[X, [[99, 99, 99]]], np.r_[np.zeros(300), 1].astype(int))
    found = Explainer(models[0], X, also=[models[1], never], constraints=Fixed(2)).explain(
        X[models[0].predict(X) == 0][:1], target=1
    )
    assert found.status[0] is Status.INFEASIBLE
    why = found[0].why_not()
    assert why.models == (1,)
    assert why.is_proven
    assert why.to_text().startswith("Model 3 stands in the way: the others would agree. Then it would be enough if ")
    assert why.to_text("de").startswith("Modell 3 steht im Weg")


def test_regions_ways_and_round_numbers_hold_for_all_models() -> None:
    models = models_of("forests")
    rows = X[models[0].predict(X) == 0][:3]
    found = Explainer(models[0], X, also=models[1:]).explain(rows, target=1, n=2, n_jobs=1)
    for one in found:
        region = one.region()
        low = np.where(np.isfinite(region.low), region.low, -4)
        high = np.where(np.isfinite(region.high), region.high, 4)
        inside = np.random.default_rng(1).uniform(low, high, (300, 3))
        assert all((model.predict(inside) == 1).all() for model in models)
        rounded = one.rounded().counterfactual
        assert all(model.predict(rounded[None])[0] == 1 for model in models)
    for way in found.others:
        points = np.asarray(way.counterfactuals)[way.has_answer]
        assert all((model.predict(points) == 1).all() for model in models)


def test_a_certificate_names_all_models_and_is_checked_against_them() -> None:
    models = models_of("forests")
    explainer = Explainer(models[0], X, also=models[1:])
    record = json.loads(json.dumps(explainer.explain(X[models[0].predict(X) == 0][:1], target=1)[0].certificate()))
    assert verify(record, explainer.forest, also=explainer.also, reprove=True).holds
    lacking = verify(record, explainer.forest, also=explainer.also[:1])
    assert [check.claim for check in lacking.failed] == ["and of these other models"]
    alone = Explainer(models[0], X).explain(X[models[0].predict(X) == 0][:1], target=1)[0]
    if not all(model.predict(alone.counterfactual[None])[0] == 1 for model in models):
        body = {key: value for key, value in record.items() if key != "fingerprint"}
        body |= {"point": alone.counterfactual.tolist(), "distance": alone.distance, "lower_bound": alone.distance}
        assert not verify(body, explainer.forest, also=explainer.also).holds


def test_an_explainer_of_several_models_is_pickled_with_all_of_them() -> None:
    models = models_of("mixed")
    explainer = Explainer(models[0], X, also=models[1:])
    again = pickle.loads(pickle.dumps(explainer))
    rows = X[models[0].predict(X) == 0][:2]
    assert np.array_equal(again.explain(rows, target=1).points, explainer.explain(rows, target=1).points)


@pytest.mark.parametrize("strategy", ["feature_tweaking", "dace"])
def test_a_strategy_for_one_model_refuses_others(strategy: str) -> None:
    models = models_of("forests", 2)
    rows = X[models[0].predict(X) == 0][:1]
    with pytest.raises(InvalidInput, match="searches for one model"):
        Explainer(models[0], X, also=models[1]).explain(rows, target=1, strategy=strategy)


@pytest.mark.parametrize("strategy", ["focus", "random_perturbation"])
def test_other_strategies_find_answers_for_all_models(strategy: str) -> None:
    models = models_of("forests")
    rows = X[models[0].predict(X) == 0][:3]
    found = Explainer(models[0], X, also=models[1:]).explain(rows, target=1, strategy=strategy)
    points = np.asarray(found.counterfactuals)[found.has_answer]
    assert len(points)
    assert all((model.predict(points) == 1).all() for model in models)


def run(arguments: list[str]) -> int:
    return CliRunner().invoke(app, arguments).exit_code


def test_the_command_line_takes_other_models(tmp_path: Path) -> None:
    models = models_of("forests")
    for number, model in enumerate(models):
        translate(model).forest.save(tmp_path / f"{number}.json")
    rows = X[models[0].predict(X) == 0][:3]
    pd.DataFrame(rows, columns=list("abc")).to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "train.csv", index=False)
    names = [str(tmp_path / name) for name in ("0.json", "rows.csv", "train.csv", "answers.csv", "1.json", "2.json")]
    files = [names[0], names[1], "--train", names[2], "-o", names[3], "--also", names[4], "--also", names[5]]
    assert run(["explain", *files, "--target", "1", "--certificates", str(tmp_path / "proofs")]) == 0
    answers = pd.read_csv(tmp_path / "answers.csv")
    points = answers[["a", "b", "c"]].to_numpy()
    assert all((model.predict(points) == 1).all() for model in models)
    proof = str(next((tmp_path / "proofs").iterdir()))
    assert run(["verify", proof, names[0], "--also", names[4], "--also", names[5], "--reprove"]) == 0
    assert run(["verify", proof, names[0], "--also", names[4]]) == 1


def test_an_explainer_of_several_models_is_saved_with_all_of_them(tmp_path: Path) -> None:
    models = models_of("mixed")
    explainer = Explainer(models[0], X, also=models[1:])
    explainer.save(tmp_path / "explainer.json")
    rows = X[models[0].predict(X) == 0][:2]
    again = load_explainer(tmp_path / "explainer.json")
    assert np.array_equal(again.explain(rows, target=1).points, explainer.explain(rows, target=1).points)
