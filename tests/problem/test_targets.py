"""Targets: labels to class numbers, and answers that get them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings

from support.forests import SEEDS, random_forest
from support.questions import FAST, random_question, stump
from treefocus import Explainer, Forest, Interval, InvalidInput, Probability, Status, kernels
from treefocus.kernels.reference import shown
from treefocus.problem.targets import ANY_OTHER, YES, as_targets, put

WORDS = stump()  # "no", "yes"


def numbers() -> Forest:
    return random_forest(np.random.default_rng(0), n_classes=3)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (None, [ANY_OTHER] * 3),
        ("yes", [1, 1, 1]),
        (np.str_("no"), [0, 0, 0]),
        (["yes"], [1, 1, 1]),
        (["yes", "no", "yes"], [1, 0, 1]),
        (("yes", None, "no"), [1, ANY_OTHER, 0]),
        (np.array(["yes", "no", "yes"]), [1, 0, 1]),
        (np.array(["yes", None, "yes"], object), [1, ANY_OTHER, 1]),
        (pd.Series(["no", "yes", "no"], index=[7, 8, 9]), [0, 1, 0]),
        (pl.Series(["no", "yes", "no"]), [0, 1, 0]),
    ],
)
def test_labels_become_class_numbers(target: Any, expected: list[int]) -> None:
    found = as_targets(target, WORDS, 3)
    assert found.dtype == np.int32
    assert found.tolist() == expected


@pytest.mark.parametrize("target", [2, 2.0, np.int64(2), np.float32(2), [2, 2], np.array([2, 2], np.uint8)])
def test_numeric_labels_match_by_value(target: Any) -> None:
    assert as_targets(target, numbers(), 2).tolist() == [2, 2]


def test_boolean_labels() -> None:
    forest = stump(classes=[False, True])
    assert as_targets(True, forest, 1).tolist() == [1]
    assert as_targets(np.bool_(False), forest, 1).tolist() == [0]


def test_no_rows_take_any_target() -> None:
    assert as_targets("yes", WORDS, 0).shape == (0,)
    assert as_targets([], WORDS, 0).shape == (0,)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("maybe", r"^target must be one of 'no', 'yes', got 'maybe'\.$"),
        (1, r"^target must be one of 'no', 'yes', got 1\.$"),
        (["yes", "no", "maybe"], r"^target must be one of 'no', 'yes', got 'maybe'\.$"),
        (["yes", "no"], r"^target must be one class, or one a row \(3\), got 2\.$"),
        ([], r"^target must be one class, or one a row \(3\), got 0\.$"),
        ([["yes"], ["no"], ["yes"]], r"^target must be one of 'no', 'yes', got \['yes'\]\.$"),
        ({"yes"}, r"^target must be one of 'no', 'yes', got \{'yes'\}\.$"),
        (float("nan"), r"^target must be one of 'no', 'yes', got nan\.$"),
    ],
)
def test_bad_targets_are_refused(target: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        as_targets(target, WORDS, 3)


@settings(max_examples=40)
@given(SEEDS)
def test_every_answer_has_its_target_and_without_one_another_class(seed: int) -> None:
    explainer, rows = random_question(seed)
    rng = np.random.default_rng(seed)
    classes = explainer.forest.classes
    target = rng.choice([None, *classes.tolist()], len(rows))
    found = explainer.explain(rows, target=target, strategy=FAST)
    before = classes[kernels.predict(explainer.forest, rows)]
    for i in np.flatnonzero(found.has_answer):
        after = classes[kernels.predict(explainer.forest, found.points[i : i + 1])[0]]
        assert after == found.outcome[i]
        assert after != before[i] if target[i] is None else after == target[i]
        if before[i] == target[i]:
            assert found.status[i] is Status.OPTIMAL
            assert found.distance[i] == 0
            np.testing.assert_array_equal(found.points[i], rows[i])


def test_a_class_no_leaf_gives_is_not_reached() -> None:
    forest = stump(leaf_value=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], base_score=[0.0] * 3, classes=["a", "b", "never"])
    data = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = Explainer(forest, data).explain(data, target="never")
    assert found.status.tolist() == [Status.INFEASIBLE] * 2
    assert found.counterfactuals.shape == data.shape
    assert np.isnan(found.counterfactuals).all()


# --- where an interval or a probability begins, in scores


EXTREME = [5e-324, 1e-320, 1e-300, 1e-17, 0.3, 0.999999939, 1 - 2.0**-30, 1 - 2.0**-52, 1 - 2.0**-53]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("at_least", EXTREME)
def test_any_probability_has_its_first_score_at_once(at_least: float, dtype: str) -> None:
    forest = stump(
        leaf_value=[[-1.0], [1.0]], base_score=[0.0], link="sigmoid", decision="above", classes=["no", "yes"],
        score_dtype=dtype,
    )  # fmt: skip
    asked = put(Probability("yes", at_least), forest, 1)
    assert asked.target.tolist() == [YES]
    cut = asked.forest.cut
    assert shown(forest, np.array([[cut]]))[0, 0] >= at_least
    assert shown(forest, np.array([[np.nextafter(cut, -np.inf)]]))[0, 0] < at_least
    assert asked.slack is not None
    assert dict(asked.slack.loose)["cut"] <= cut
    assert asked.slack.strict is None or dict(asked.slack.strict)["cut"] >= cut


@pytest.mark.parametrize("link", ["exp", "sigmoid"])
@pytest.mark.parametrize(("low", "high"), [(5e-324, 0.1), (1e-320, 0.5), (0.3, 1 - 2.0**-53), (0.999999939, 1.0)])
def test_any_interval_has_its_scores_at_once(link: str, low: float, high: float) -> None:
    forest = stump(leaf_value=[[-1.0], [1.0]], base_score=[0.0], link=link, decision="value", classes=[])
    asked = put(Interval(low, high), forest, 1).forest
    ends = shown(forest, np.array([[asked.cut], [asked.cut_high]]))[:, 0]
    assert (ends >= low).all()
    assert (ends <= high).all()
