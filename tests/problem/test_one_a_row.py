"""A probability or an interval of its own for every row: the same answers as one by one, in one batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from treefocus import Explainer, Explanations, Fixed, Interval, InvalidInput, Probability, Score, Status, verify

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["a", "b", "c"])
SUMS = ROWS["a"] + ROWS["b"] - 0.5 * ROWS["c"]
CLASSES = np.array(["low", "middle", "high"])[np.digitize(SUMS, [-0.7, 0.7])]
FOREST = Explainer(RandomForestClassifier(12, max_depth=4, random_state=0).fit(ROWS, CLASSES), ROWS)
NUMBERS = Explainer(RandomForestRegressor(8, max_depth=4, random_state=0).fit(ROWS, SUMS), ROWS)
BOOSTED = Explainer(
    GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(ROWS, SUMS > 0), ROWS,
    constraints=[Fixed("c")],
)  # fmt: skip

QUESTIONS: dict[str, tuple[Explainer, list[Any]]] = {
    "one class": (FOREST, [Probability("high", p) for p in (0.5, 0.6, 0.5, 0.9, 0.99)]),
    "several classes": (FOREST, [Probability(name, 0.6) for name in ("high", "low", "high", "middle", "low")]),
    "intervals": (NUMBERS, [Interval(low=1.0), Interval(high=-1.0), Interval(low=1.0), Interval(0, 0.1), Interval(9)]),
    "pairs": (NUMBERS, [(0.5, 9.0), (-9.0, -0.5), (0.5, 9.0), (0.0, 0.3), (7.0, 8.0)]),
    "scores": (BOOSTED, [Score(low=0.3), Score(high=-0.3), Score(low=0.6), Score(0.0, 0.1), Score(low=0.3)]),
    "two classes": (BOOSTED, [Probability(True, 0.6), Probability(False, 0.6), Probability(True, 0.95),
                              Probability(False, 0.55), Probability(True, 0.6)]),
}  # fmt: skip
KINDS = {
    "list": list,
    "tuple": tuple,
    "array": lambda each: pd.Series(each, dtype=object).to_numpy(),
    "series": pd.Series,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_batch_of_several_targets_is_its_rows_one_by_one(name: str) -> None:
    explainer, targets = QUESTIONS[name]
    rows = ROWS[:5]
    found = explainer.explain(rows, target=targets, n=2)
    assert len(found) == 5
    for i, target in enumerate(targets):
        alone = explainer.explain(rows.iloc[[i]], target=target, n=2)
        for way, single in zip(found.ways, alone.ways, strict=True):
            assert way.status[i] is single.status[0]
            np.testing.assert_array_equal(way.points[i], single.points[0])
            np.testing.assert_array_equal(way.distance[i], single.distance[0])
            np.testing.assert_array_equal(way.lower_bound[i], single.lower_bound[0])
            np.testing.assert_array_equal(way.shown[i], single.shown[0])
            assert way.outcome[i] == single.outcome[0]
            assert way.reasons[i] == single.reasons[0]
        assert found[i].to_text() == alone[0].to_text().replace("Row 0", f"Row {i}")
        assert found[i].likelihood == alone[0].likelihood
        assert found[i].favoured == alone[0].favoured


@pytest.mark.parametrize("kind", KINDS)
def test_any_sequence_will_do(kind: str) -> None:
    explainer, targets = QUESTIONS["one class"]
    found = explainer.explain(ROWS[:5], target=KINDS[kind](targets))
    np.testing.assert_array_equal(found.points, explainer.explain(ROWS[:5], target=targets).points)


def test_one_of_a_list_is_for_all() -> None:
    found = FOREST.explain(ROWS[:3], target=[Probability("high", 0.6)])
    np.testing.assert_array_equal(found.points, FOREST.explain(ROWS[:3], target=Probability("high", 0.6)).points)


@pytest.mark.parametrize("name", QUESTIONS)
def test_everything_else_works_too(name: str, tmp_path: Path) -> None:
    explainer, targets = QUESTIONS[name]
    found = explainer.explain(ROWS[:5], target=targets)
    again = Explanations.from_json(found.to_json(tmp_path / "found.json"))
    assert again.to_text() == found.to_text()
    assert [one.favoured for one in again] == [one.favoured for one in found]
    assert len(found.to_frame()) == 5
    assert sum(found.summary()["status"].values()) == 5
    assert found.to_html(tmp_path / "found.html").exists()
    if not found.is_value:
        assert ((found.probabilities() >= 0) | ~found.has_answer).all()
    for one in found:
        checked = verify(json.loads(json.dumps(one.certificate())), explainer.forest, reprove=True)
        assert checked.holds, checked.to_text()
        assert one.why_not().constraints is None or one.status.has_answer
        assert len(one.price_of_constraints()) == len(explainer.constraints)
        if one.changes:
            assert one.region().contains(one.counterfactual[None]).all()
            assert one.rounded(3).status.has_answer


def test_other_rows_are_checked_as_ever() -> None:
    rows = ROWS[:3].copy()
    rows.iloc[1, 0] = np.inf
    found = FOREST.explain(rows, target=[Probability("high", 0.6), Probability("low", 0.6), Probability("low", 0.7)])
    assert found.status[1] is Status.INVALID
    assert "a = inf" in found.reasons[1]
    assert found[1].favoured == "low"


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        ([Probability("high", 0.6), "low"], "target must be of one kind for all rows"),
        ([Probability("high", 0.6), None], "target must be of one kind for all rows"),
        ([Probability("high", 0.6)] * 3, r"target must be one, or one a row \(2\), got 3"),
        ([Probability("high", 0.6), Probability("huge", 0.6)], "Probability.label must be one of"),
        ([Interval(0, 1), Interval(1, 2)], "has 3 scores"),
    ],
)
def test_misuse_is_told(targets: list[Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        FOREST.explain(ROWS[:2], target=targets)


def test_no_rows_take_any_list() -> None:
    assert len(FOREST.explain(ROWS[:0], target=[Probability("high", 0.6)])) == 0


def test_progress_counts_all_rows() -> None:
    heard: list[int] = []
    targets = [Probability("high", 0.5 + 0.05 * i) for i in range(5)]
    FOREST.explain(ROWS[:5], target=targets, progress=heard.append)
    assert all(0 <= number <= 5 for number in heard)
