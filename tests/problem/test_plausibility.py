"""Plausibility: scores held to scikit-learn, limits that every answer obeys, bounds that stay true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor as Reference

from support.questions import stump
from treefocus import (
    Explainer,
    Feature,
    InvalidInput,
    IsolationScore,
    LocalOutlierFactor,
    Probability,
    Range,
    Schema,
    Status,
    explain,
    load_explainer,
    verify,
)
from treefocus.check import ACCEPTED, judge
from treefocus.model.forest import Floats
from treefocus.problem.plausibility import Measure, likeness_of, neighbours_of


def ring(seed: int, n: int = 300) -> Floats:
    """Points on a ring: the middle is empty."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(1.0, 0.05, (n, 1))


@pytest.fixture(scope="module")
def data() -> Floats:
    return ring(0)


@pytest.fixture(scope="module")
def model(data: Floats) -> RandomForestClassifier:
    return RandomForestClassifier(15, max_depth=4, random_state=0).fit(data, (data[:, 0] > 0).astype(int))


SLOW = LocalOutlierFactor(limit=1.2, neighbours=5)  # with a strategy that has no budget


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_local_outlier_factor_is_the_known_one(data: Floats, model: Any, k: int) -> None:
    problem = Explainer(model, data).explain(data[:1])[0].problem
    points = np.random.default_rng(1).uniform(-1.2, 1.2, (50, 2))
    known = neighbours_of(problem)
    reference = Reference(n_neighbors=k, novelty=True, metric="manhattan").fit(known.points)
    wanted = -reference.score_samples(known.to_space(points))
    assert np.allclose(LocalOutlierFactor(neighbours=k).score(problem, points), wanted, rtol=1e-6)


def test_the_isolation_score_is_the_known_one(data: Floats, model: Any) -> None:
    problem = Explainer(model, data).explain(data[:1])[0].problem
    known = neighbours_of(problem)
    forest = IsolationForest(random_state=0).fit(known.points)
    assert np.allclose(IsolationScore().score(problem, data), -forest.score_samples(known.to_space(data)))


@pytest.mark.parametrize(
    ("measure", "strategy"),
    [
        pytest.param(
            measure, strategy, marks=pytest.mark.campaign if strategy == "exact" and measure is SLOW else (), id=name
        )
        for measure in (LocalOutlierFactor(limit=1.5), SLOW, IsolationScore(limit=0.52))
        for strategy in ("auto", "exact", "focus")
        for name in [f"{strategy}-{type(measure).__name__}-{getattr(measure, 'neighbours', '')}"]
    ],
)
def test_every_answer_obeys_the_limit(data: Floats, model: Any, measure: Measure, strategy: str) -> None:
    rows = data[: 25 if isinstance(measure, IsolationScore) else 8]  # an outlier factor is a long search
    free = Explainer(model, data).explain(rows, strategy=strategy)
    found = Explainer(model, data, plausibility=measure).explain(rows, strategy=strategy)
    scores = measure.score(found[0].problem, found.points[found.has_answer])
    assert measure.limit is not None
    assert (scores <= measure.limit).all()
    assert found.has_answer.mean() > 0.5
    before = measure.score(free[0].problem, free.points)
    assert (before > measure.limit).any()  # else nothing is tested here
    for i in np.flatnonzero(found.has_answer).tolist():
        assert model.predict(found.points[[i]])[0] != model.predict(rows[[i]])[0]
        assert found.lower_bound[i] <= found.distance[i]
        assert found.distance[i] >= free.lower_bound[i] - 1e-9
        if before[i] <= measure.limit:
            assert found.distance[i] == free.distance[i]
            assert found.status[i] is free.status[i]
        elif strategy == "focus":
            assert found.status[i] in (Status.BOUNDED, Status.FOUND)
        elif isinstance(measure, IsolationScore) or measure.neighbours == 1:
            assert found.status[i] is Status.OPTIMAL
        else:
            assert found.status[i] in (Status.OPTIMAL, Status.BOUNDED)


@pytest.mark.parametrize("target", [None, 1, Probability(1, 0.7)])
def test_a_certificate_has_the_limit_and_the_trees_it_is_about(data: Floats, model: Any, target: Any) -> None:
    explainer = Explainer(model, data, plausibility=IsolationScore(limit=0.48, trees=10))
    found = explainer.explain(data[:25], target=target)
    assert (found.status == Status.OPTIMAL).all()
    asked = [one for one in found if one.changes]
    assert asked
    for one in asked[:2]:
        written = json.loads(json.dumps(one.certificate(proof=True)))
        told = verify(written, explainer.forest, reprove=True)
        assert told.holds, told.to_text()
        assert "its isolation score is at most 0.48" in told.to_text()
        stricter = written | {"plausibility": written["plausibility"] | {"limit": 0.4}}
        assert "its isolation score is at most 0.4" in [
            check.claim for check in verify(stricter, explainer.forest).failed
        ]
        code, lines = judge(written, json.loads(json.dumps(explainer.forest.to_record())))
        assert code == ACCEPTED, lines


def test_a_row_that_is_there_may_stay_however_strange_it_is(data: Floats, model: Any) -> None:
    far = np.array([[5.0, 5.0]])
    explainer = Explainer(model, data, plausibility=IsolationScore(limit=0.48, trees=10))
    one = explainer.explain(far, target=1)[0]
    assert (one.status, one.distance) == (Status.OPTIMAL, 0.0)
    assert verify(one.certificate(), explainer.forest, reprove=True).holds
    assert one.region().contains(far).all()


def test_that_nothing_is_like_the_data_is_proven(data: Floats, model: Any) -> None:
    explainer = Explainer(model, data, plausibility=IsolationScore(limit=0.3))
    found = explainer.explain(data[:3])
    assert (found.status == Status.INFEASIBLE).all()
    assert verify(found[0].certificate(), explainer.forest, reprove=True).holds


def test_a_saved_explainer_answers_alike(data: Floats, model: Any, tmp_path: Path) -> None:
    explainer = Explainer(model, data, plausibility=IsolationScore(limit=0.48, trees=10))
    explainer.save(tmp_path / "explainer.json")
    first, again = (one.explain(data[:4]) for one in (explainer, load_explainer(tmp_path / "explainer.json")))
    assert first.points.tobytes() == again.points.tobytes()
    assert (first.status == again.status).all()


def test_a_cost_buys_plausibility(data: Floats, model: Any) -> None:
    free = Explainer(model, data).explain(data[:20])
    paid = Explainer(model, data, plausibility=LocalOutlierFactor(cost=0.1)).explain(data[:20])
    measure = LocalOutlierFactor()
    score = [measure.score(one[0].problem, one.points) for one in (free, paid)]
    total = [one.distance + 0.1 * own for one, own in zip((free, paid), score, strict=True)]
    assert (total[1] <= total[0] + 1e-9).all()
    assert (total[1] < total[0] - 1e-3).any()


def test_what_is_reported(data: Floats, model: Any) -> None:
    one = Explainer(model, data).explain(data[:1])[0]
    told = one.plausibility
    assert told == likeness_of(one.problem, np.asarray(one.counterfactual))
    assert told.nearest_before == 0
    assert 0 < told.nearest <= told.nearest_alike
    assert told.local_outlier_factor > 0
    assert 0 < told.isolation < 1


def test_it_works_with_several_ways_out_and_in_one_call(data: Floats, model: Any) -> None:
    found = explain(model, data[:5], data, plausibility=LocalOutlierFactor(limit=1.5), n=2)
    for way in found.ways:
        points = way.points[way.has_answer]
        assert (LocalOutlierFactor().score(found[0].problem, points) <= 1.5).all()


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": "1"}, {"cost": -1.0}, {"cost": np.inf}, {"neighbours": 0}])
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="LocalOutlierFactor"):
        LocalOutlierFactor(**wrong)


@pytest.mark.parametrize("wrong", [{"trees": 0}, {"trees": 1.5}, {"seed": -1}, {"seed": 2**32}, {"seed": None}])
def test_nonsense_about_the_isolation_forest_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"IsolationScore.{next(iter(wrong))} must be a whole number"):
        IsolationScore(**wrong)


@pytest.mark.parametrize("cost", [1e300, 1.7e308])
def test_a_cost_beyond_all_measure_gives_valid_answers(data: Floats, model: Any, cost: float) -> None:
    found = Explainer(model, data, plausibility=LocalOutlierFactor(cost=cost)).explain(data[:10])
    assert found.has_answer.all()
    assert (model.predict(found.points) != model.predict(data[:10])).all()


def test_the_search_for_something_plausible_can_be_ended(data: Floats, model: Any) -> None:
    class Enough(Exception):  # noqa: N818
        pass

    heard: list[int] = []

    def listening(done: int) -> None:
        heard.append(done)
        if heard.count(10) > 3:  # all rows are done, and it is still looking
            raise Enough

    with pytest.raises(Enough):
        Explainer(model, data, plausibility=LocalOutlierFactor(cost=0.1)).explain(data[:10], progress=listening)


def test_it_needs_data() -> None:
    with pytest.raises(InvalidInput, match="needs data="):
        Explainer(stump(), scale=None, plausibility=LocalOutlierFactor(limit=2.0))
    with pytest.raises(InvalidInput, match="plausibility must be"):
        Explainer(stump(), np.eye(2), plausibility=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Plausibility needs data="):
        _ = Explainer(stump(), scale=None).explain(np.zeros((1, 2)))[0].plausibility


def test_what_is_pulled_back_stays_a_value_of_its_column() -> None:
    schema = Schema((Feature("a", values=(0.1, 0.48, 1.0, 2.7, 5.0)), Feature("b")))
    data = np.array([[a, b] for a in (0.1, 0.48, 1.0, 2.7, 5.0) for b in np.linspace(-2.0, 2.0, 9)])
    forest = stump(0.4, feature=[1, -1, -1])
    explainer = Explainer(
        forest, data, schema=schema, distance="manhattan", plausibility=LocalOutlierFactor(limit=5.0),
        constraints=[Range("a", 0.0, 1.0, relative=True)],
    )  # fmt: skip
    row = np.array([[-4.8, -1.0]])  # no listed value lies between it and the end of its range, 0
    found = explainer.explain(row)
    assert not found.has_answer[0] or found.points[0, 0] == -4.8
    problem = found.problem
    assert problem is not None
    assert not problem.obeys(np.array([[-2.4, 1.0]]))[0]
    assert problem.obeys(np.array([[-4.8, 1.0]]))[0]
