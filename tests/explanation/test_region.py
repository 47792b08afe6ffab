"""Regions: every point of the box gets the answer, by samples and, on small forests, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from support import brute
from support.forests import SEEDS
from support.questions import stump
from support.small_problems import small_problem
from treefocus import Exact, Explainer, Feature, InvalidInput, Schema
from treefocus.explanation.region import Region, region_of
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search import Run

MANY = settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def names(problem: Problem) -> Schema:
    return Schema.of_names(f"feature {f}" for f in range(problem.forest.n_features))


def changed(row: Floats, point: Floats) -> list[int]:
    is_same = (row == point) | (np.isnan(row) & np.isnan(point))
    return np.flatnonzero(~is_same).tolist()


def samples(rng: np.random.Generator, region: Region, n: int) -> Floats:
    """Points of the box, its ends among them."""
    low, high = np.clip(region.low, -1e9, 1e9), np.clip(region.high, -1e9, 1e9)
    low, high = np.where(np.isnan(low), np.nan, np.maximum(low, region.low)), np.minimum(high, region.high)
    points = low + rng.random((n, len(low))) * (high - low)
    side = rng.random(points.shape)
    points = np.clip(np.where(side < 0.2, low, np.where(side > 0.8, high, points)), low, high)
    for column, cells in region.categories.items():
        cell = rng.choice(np.flatnonzero(cells), n)
        points[:, column] = np.where(cell == len(cells) - 1, np.nan, cell)
    return np.asarray(points)


@pytest.mark.parametrize("distance", ["euclidean", "l0"])
@MANY
@given(seed=SEEDS)
def test_every_point_of_a_region_gets_the_answer(distance: str, seed: int) -> None:
    problem = small_problem(seed, distance)
    problem = problem.subset(np.flatnonzero(problem.has_box))
    if not len(problem):
        return
    found = Exact().solve(problem, Run(n_jobs=1))
    rng = np.random.default_rng(seed)
    for i in np.flatnonzero(found.has_answer).tolist():
        one, point = problem.subset(np.array([i])), found.points[i]
        moved = changed(problem.batch.rows[i], point)
        region = region_of(one, point, moved, names(problem), None)
        assert region.contains(point[None]).all()
        points = samples(rng, region, 200)
        assert region.contains(points).all()
        wanted = brute.predict(problem.forest, point[None])[0]
        assert (brute.predict(problem.forest, points) == wanted).all()
        assert [leeway.feature for leeway in region.leeways] == [
            f"feature {j}" for j in moved if not np.isnan(point[j])
        ]


@pytest.mark.parametrize("seed", range(40))
def test_no_cell_of_a_region_gets_another_answer(seed: int) -> None:
    problem = small_problem(seed, "manhattan", n_rows=2)
    problem = problem.subset(np.flatnonzero(problem.has_box))
    found = Exact().solve(problem, Run(n_jobs=1))
    for i, question in enumerate(brute.questions_of(problem)):
        if not found.status[i].has_answer:
            continue
        point = found.points[i]
        moved = changed(question.row, point)
        region = region_of(problem.subset(np.array([i])), point, moved, names(problem), None)
        low, high = brute.cells(question)
        middle = brute.inside(question, low, high)
        inside = overlaps(region, low, high)
        assert inside.any()
        wanted = brute.predict(problem.forest, point[None])[0]
        assert (brute.predict(problem.forest, middle[inside]) == wanted).all()


def overlaps(region: Region, low: Floats, high: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which cells share a point with the box."""
    both_missing = np.isnan(low) & np.isnan(region.low)
    shares = ((low <= region.high) & (high >= region.low)) | both_missing
    for column, cells in region.categories.items():
        cell = np.where(np.isnan(low[:, column]), len(cells) - 1, low[:, column]).astype(np.intp)
        shares[:, column] = cells[cell]
    return np.asarray(shares.all(axis=1))


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(20, max_depth=5, random_state=0), GradientBoostingClassifier(random_state=0)]
)
def test_regions_of_real_models_hold_and_are_larger_than_a_cell(model: RandomForestClassifier) -> None:
    rng = np.random.default_rng(0)
    data = rng.random((300, 4))
    model.fit(data, (data[:, 0] + data[:, 1] > 1).astype(int) + (data[:, 2] > 0.8))
    found = Explainer(model, data).explain(data[:8])
    wide = 0
    for one in found:
        region = one.region()
        points = samples(rng, region, 2000)
        assert (model.predict(points) == one.outcome).all()
        wide += sum(leeway.low is None or leeway.high is None for leeway in region.leeways)
    assert wide > 0


def test_a_region_in_words() -> None:
    schema = Schema([Feature("age", "integer", "years"), Feature("income", unit="EUR")])
    forest = stump(39.5, feature_names=schema.names)
    data = np.array([[20.0, 0.0], [60.0, 100.0]])
    first, second = Explainer(forest, data, schema=schema).explain(data)
    assert first.region().to_text() == "The answer stays the same with age anywhere from 40 years up, which is proven."
    assert second.region().to_text() == "The answer stays the same with age anywhere up to 39 years, which is proven."
    assert first.region().to_text("de") == (
        "Die Antwort bleibt dieselbe mit age irgendwo ab 40 years; das ist bewiesen."
    )
    assert "à partir de 40" in first.region().to_text("fr")


def test_without_an_answer_there_is_no_region() -> None:
    found = Explainer(stump(39.5), np.array([[0.0, 0.0], [10.0, 1.0]])).explain(np.array([[5.0, 0.5]]))
    with pytest.raises(InvalidInput, match="no answer around which"):
        found[0].region()
