"""The paper's measures, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from support.questions import stump
from treefocus import Focus, InvalidInput
from treefocus.evaluation.illustrations import _ask
from treefocus.evaluation.metrics import compare, fidelity, mean_distance, soft_classes, summarise, t_test

NONE = float("nan")


def test_the_mean_is_over_the_rows_found() -> None:
    found = summarise(np.array([0.1, NONE, 0.3, NONE]), seconds=2.5)
    assert found.mean == pytest.approx(0.2)
    assert (found.found, found.rows, found.share_found, found.seconds) == (2, 4, 0.5, 2.5)
    assert found.to_dict() == {"mean": found.mean, "found": 2, "rows": 4, "seconds": 2.5}


def test_nothing_found_has_no_mean() -> None:
    assert mean_distance(np.array([NONE, NONE])) is None
    assert summarise(np.empty(0), 0.0).mean is None


def test_two_methods_are_compared_where_both_found() -> None:
    first, other = np.array([1.0, 2.0, 3.0, NONE, 5.0]), np.array([2.0, 2.0, 1.0, 7.0, NONE])
    both = compare(first, other)
    assert both.rows == 3
    assert both.mean == pytest.approx(2.0)
    assert both.other_mean == pytest.approx(5 / 3)
    assert both.relative_mean == pytest.approx((0.5 + 1.0 + 3.0) / 3)
    assert both.percent_closer == pytest.approx(100 / 3)  # equal is not closer
    assert both.mark == "="


def test_a_ratio_to_nothing_is_left_out() -> None:
    assert compare(np.array([1.0, 2.0]), np.array([0.0, 4.0])).relative_mean == pytest.approx(0.5)
    assert compare(np.array([0.0]), np.array([0.0])).relative_mean is None


def test_without_a_common_row_there_is_no_comparison() -> None:
    both = compare(np.array([1.0, NONE]), np.array([NONE, 1.0]))
    assert (both.rows, both.mean, both.relative_mean, both.percent_closer, both.mark) == (0, None, None, None, "=")


def test_lengths_must_agree() -> None:
    with pytest.raises(InvalidInput, match="other must be as long as distance"):
        compare(np.zeros(2), np.zeros(3))


def test_marks_follow_the_t_test() -> None:
    rng = np.random.default_rng(0)
    near, far = rng.normal(1.0, 0.2, 100), rng.normal(2.0, 0.2, 100)
    assert compare(near, far).mark == "-"
    assert compare(far, near).mark == "+"
    assert compare(near, near + 1e-3).mark == "="  # every row closer, and yet: the test is not paired
    assert compare(near, far).p_value == pytest.approx(stats.ttest_ind(near, far).pvalue)


def test_by_hand_two_small_samples() -> None:
    # Means 2 and 4, both variances 1, n 3: t = -2 / sqrt(2 / 3) = -2.449 with 4 degrees of freedom, p = 0.0705.
    assert t_test(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0])) == pytest.approx(0.0705, abs=1e-4)


def test_a_test_without_spread_is_not_defined() -> None:
    assert t_test(np.array([1.0]), np.array([2.0])) is None
    assert t_test(np.array([1.0, 1.0]), np.array([1.0, 1.0])) is None


def test_fidelity_of_a_stump_is_perfect_as_its_boundary_is_the_same() -> None:
    problem = _ask(stump(0.5), np.random.default_rng(0).random((200, 2)))
    assert fidelity(problem, Focus(sigma=1.0)) == 1.0


def test_fidelity_counts_rows_on_which_the_soft_forest_says_otherwise() -> None:
    # Leaves of shares .6/.4 and .0/1.: at x = 0.4 the soft tree gives class 0 at most .6 * s with s = sig(.1).
    forest = stump(0.5, leaf_value=[[0.6, 0.4], [0.0, 1.0]])
    problem = _ask(forest, np.array([[0.1, 0.0], [0.45, 0.0], [0.9, 0.0]]))
    focus = Focus(sigma=10.0, tau=None, normalise=False)
    share = 1 / (1 + np.exp(10 * (np.array([0.1, 0.45, 0.9]) - 0.5)))
    assert soft_classes(problem, focus).tolist() == [int(0.6 * s < 0.4 * s + 1 - s) for s in share]
    assert fidelity(problem, focus) == pytest.approx(2 / 3)
