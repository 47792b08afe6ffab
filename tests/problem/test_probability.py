"""A probability is what the library's own `predict_proba` says: every claim against all points of small grids."""

from __future__ import annotations

import itertools
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from xgboost import XGBClassifier, XGBRegressor

from treefocus import Explainer, Focus, Interval, InvalidInput, Probability, Status, kernels, verify
from treefocus.explanation.batch import Explanations
from treefocus.explanation.predictions import probabilities
from treefocus.model.forest import Floats

SIDE = 6
GRID = np.array(list(itertools.product(range(SIDE), repeat=3)), np.float64)

MODELS: dict[str, Callable[[], Any]] = {
    "random forest": lambda: RandomForestClassifier(7, max_depth=4, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(7, max_depth=4, random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
    "hist gradient boosting": lambda: HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=6, random_state=0),
    "xgboost": lambda: XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1),
    "lightgbm": lambda: LGBMClassifier(n_estimators=8, min_child_samples=3, verbose=-1, n_jobs=1),
    "lightgbm, steep": lambda: LGBMClassifier(n_estimators=8, min_child_samples=3, verbose=-1, n_jobs=1, sigmoid=0.7),
    "catboost": lambda: CatBoostClassifier(iterations=8, depth=3, verbose=0, allow_writing_files=False, thread_count=1),
}
ONE_VS_REST: dict[str, Callable[[], Any]] = {
    "lightgbm": lambda: LGBMClassifier(n_estimators=8, objective="multiclassova", min_child_samples=3, verbose=-1),
    "catboost": lambda: CatBoostClassifier(
        iterations=8, depth=3, loss_function="MultiClassOneVsAll", verbose=0, allow_writing_files=False
    ),
}
STEEP: dict[str, Callable[[], Any]] = {  # whose probabilities come close to 1
    "gradient boosting": lambda: GradientBoostingClassifier(
        n_estimators=60, max_depth=3, learning_rate=2.0, random_state=0
    ),
    "hist gradient boosting": lambda: HistGradientBoostingClassifier(
        max_iter=60, learning_rate=1.5, min_samples_leaf=3
    ),
    "xgboost": lambda: XGBClassifier(n_estimators=60, max_depth=3, learning_rate=1.0, reg_lambda=0, n_jobs=1),
    "lightgbm": lambda: LGBMClassifier(n_estimators=60, learning_rate=1.5, min_child_samples=3, verbose=-1, n_jobs=1),
    "catboost": lambda: CatBoostClassifier(
        iterations=60, depth=3, learning_rate=1.0, l2_leaf_reg=0.1, verbose=0, allow_writing_files=False
    ),
}


def fitted(model: Any, n_classes: int, seed: int = 0, noise: float = 0.1) -> Any:
    rng = np.random.default_rng(seed)
    sums = GRID @ rng.choice([-2.0, -1.0, 1.0, 1.5, 2.0], 3) + (GRID[:, 0] > 3) * 3.0
    labels = np.digitize(sums, np.quantile(sums, np.linspace(0, 1, n_classes + 1)[1:-1]))
    labels = np.where(rng.random(len(labels)) < noise, rng.integers(0, n_classes, len(labels)), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(GRID, labels)


def check(found: Explanations, rows: Floats, own: Floats, least: float) -> None:
    """Every claim of the batch against the library's own number for every point; under the Manhattan distance."""
    is_answer = own >= least
    for i, row in enumerate(rows):
        distance = np.abs(GRID - row).sum(axis=1)
        optimum = distance[is_answer].min(initial=np.inf)
        told = f"row {row.tolist()}, at least {least!r}: {found.status[i].name}, {found.distance[i]}, really {optimum}"
        if found.status[i].has_answer:
            assert is_answer[(found.points[i] == GRID).all(axis=1)].all(), told
            assert found.distance[i] >= optimum - 1e-9, told
        assert found.lower_bound[i] <= optimum + 1e-9, told
        assert found.status[i] is not Status.OPTIMAL or found.distance[i] <= optimum + 1e-9, told
        assert found.status[i] is not Status.INFEASIBLE or optimum == np.inf, told


def asked(model: Any, strategy: Any = "auto") -> Callable[[Floats, Any], Explanations]:
    explainer = Explainer(model, GRID.astype(np.int64), distance="manhattan", scale=None)
    return lambda rows, target: explainer.explain(rows.astype(np.int64), target=target, strategy=strategy)


def thresholds(own: Floats, rows: Floats, rng: np.random.Generator) -> list[float]:
    """The model's own numbers, for rows that are asked about and for others, and numbers beside them."""
    of_rows = own[[int((row == GRID).all(axis=1).argmax()) for row in rows]]
    exact = [float(value) for value in (*of_rows, *rng.choice(own, 3), own.max())]
    beside = [float(np.nextafter(exact[0], 1.0)), float(np.nextafter(exact[1], 0.0)), round(float(np.median(own)), 2)]
    return [value for value in (*exact, *beside) if 0 < value < 1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_every_claim_is_true_of_the_librarys_own_number(name: str, n_classes: int) -> None:
    model = fitted(MODELS[name](), n_classes)
    rng, ask = np.random.default_rng(1), asked(model)
    for label in range(n_classes):
        own = model.predict_proba(GRID)[:, label]
        rows = GRID[rng.choice(len(GRID), 4, replace=False)]
        for least in thresholds(own, rows, rng):
            found = ask(rows, Probability(label, least))
            check(found, rows, own.astype(np.float64), least)
            if least <= own.max():
                assert (found.status != Status.NOT_FOUND).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_that_has_the_probability_is_there_already(name: str, n_classes: int) -> None:
    model = fitted(MODELS[name](), n_classes)
    ask, own = asked(model), model.predict_proba(GRID)[:, 1]
    for row, least in zip(GRID[::41], own[::41].astype(np.float64), strict=True):
        found = ask(row[None], Probability(1, float(least)))
        assert found.status[0] is Status.OPTIMAL
        assert found.distance[0] == 0
        assert "already" in found.reasons[0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", STEEP)
def test_probabilities_near_1(name: str, n_classes: int) -> None:
    model = fitted(STEEP[name](), n_classes, noise=0.0)
    ask, own = asked(model), model.predict_proba(GRID)[:, 1].astype(np.float64)
    rows = GRID[np.argsort(own)[[0, 60, 120]]]
    near = [float(value) for value in np.unique(own[(own > 0.999) & (own < 1)])[-4:]]
    for least in (*near, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 1e-15, 1 - 2.0**-53):
        check(ask(rows, Probability(1, least)), rows, own, least)


@pytest.mark.parametrize("name", ONE_VS_REST)
def test_classes_that_are_each_against_the_rest(name: str) -> None:
    model = fitted(ONE_VS_REST[name](), 3)
    own = model.predict_proba(GRID)[:, 2].astype(np.float64)
    rng = np.random.default_rng(2)
    rows = GRID[rng.choice(len(GRID), 4, replace=False)]
    ask = asked(model)
    for least in thresholds(own, rows, rng):
        check(ask(rows, Probability(2, least)), rows, own, least)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_without_the_model_nothing_is_claimed_that_it_could_deny(name: str, n_classes: int) -> None:
    model = fitted(MODELS[name](), n_classes)
    explainer = Explainer(model, GRID.astype(np.int64), distance="manhattan", scale=None)
    alone = pickle.loads(pickle.dumps(explainer))  # the model stays behind
    own = model.predict_proba(GRID)[:, 1].astype(np.float64)
    rng = np.random.default_rng(3)
    rows = GRID[rng.choice(len(GRID), 4, replace=False)]
    for least in thresholds(own, rows, rng):
        check(alone.explain(rows.astype(np.int64), target=Probability(1, least)), rows, own, least)


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_the_gradient_method_gives_only_what_the_library_confirms(name: str) -> None:
    model = fitted(MODELS[name](), 3)
    own = model.predict_proba(GRID)[:, 1].astype(np.float64)
    rows, ask = GRID[::50], asked(model, Focus(iterations=100))
    for least in thresholds(own, rows, np.random.default_rng(4)):
        check(ask(rows, Probability(1, least)), rows, own, least)


@pytest.mark.parametrize("name", MODELS)
def test_certificates_hold_at_the_models_own_probability(name: str) -> None:
    model = fitted(MODELS[name](), 3)
    explainer = Explainer(model, GRID.astype(np.int64), distance="manhattan", scale=None)
    own = model.predict_proba(GRID)[:, 1].astype(np.float64)
    rows = GRID[::60]
    for least in thresholds(own, rows, np.random.default_rng(5)):
        for one in explainer.explain(rows.astype(np.int64), target=Probability(1, least)):
            checked = verify(one.certificate(), explainer.forest, reprove=True)
            assert not checked.failed, checked.to_text()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_told_is_the_librarys_number(name: str, n_classes: int) -> None:
    model = fitted(MODELS[name](), n_classes)
    own = model.predict_proba(GRID)
    told = probabilities(Explainer(model, GRID).forest, GRID)
    np.testing.assert_allclose(told, own, rtol=1e-6 if own.dtype == np.float32 else 1e-13)


REGRESSORS: dict[str, Callable[[], Any]] = {
    "poisson": lambda: HistGradientBoostingRegressor(loss="poisson", max_iter=8, min_samples_leaf=3),
    "plain": lambda: HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=3),
    "xgboost": lambda: XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1),
    "xgboost, poisson": lambda: XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1, objective="count:poisson"),
    "xgboost, logistic": lambda: XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1, objective="reg:logistic"),
    "lightgbm, poisson": lambda: LGBMRegressor(
        n_estimators=8, min_child_samples=3, verbose=-1, n_jobs=1, objective="poisson"
    ),
    "catboost, poisson": lambda: CatBoostRegressor(
        iterations=8, depth=3, verbose=0, allow_writing_files=False, loss_function="Poisson"
    ),
}


@pytest.mark.parametrize("has_model", [True, False])
@pytest.mark.parametrize("name", REGRESSORS)
def test_an_interval_is_of_the_number_that_the_library_predicts(name: str, has_model: bool) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.poisson(0.5 + GRID.sum(axis=1) / 4.0) / (20.0 if "logistic" in name else 1.0)
    model = REGRESSORS[name]().fit(GRID, numbers)
    explainer = Explainer(model, GRID.astype(np.int64), distance="manhattan", scale=None)
    explainer = explainer if has_model else pickle.loads(pickle.dumps(explainer))
    own = model.predict(GRID).astype(np.float64)
    for seed in range(12):
        rows = GRID[rng.choice(len(GRID), 3, replace=False)]
        low, high = np.sort(rng.choice(own, 2))
        if seed % 3 == 1:
            high = np.inf
        elif seed % 3 == 2:
            low = -np.inf
        found = explainer.explain(rows.astype(np.int64), target=Interval(float(low), float(high)))
        check(found, rows, np.where((own >= low) & (own <= high), 1.0, 0.0), 0.5)


def test_scores_that_are_no_probabilities_are_refused() -> None:
    forest = Explainer(fitted(MODELS["random forest"](), 3), GRID).forest
    raw = replace(forest, leaf_value=forest.leaf_value * 3.0)
    assert len(np.unique(kernels.predict(raw, GRID))) > 1
    with pytest.raises(InvalidInput, match="gives no probabilities"):
        Explainer(raw, GRID).explain(GRID[:1], target=Probability(1, 0.5))
