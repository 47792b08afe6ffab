"""Constraints: obeyed by every answer, and what happens where nothing can obey them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS
from support.questions import FAST, random_question, stump
from treefocus import Decreasing, Explainer, Fixed, Increasing, InvalidInput, Range, Status
from treefocus.constraints.kinds import Constraint
from treefocus.constraints.text import as_constraints
from treefocus.model.forest import Floats
from treefocus.schema.schema import Schema

NAMES = ("age", "income", "education years")
SCHEMA = Schema.of_names(NAMES)


def obeys(constraint: Constraint, row: Floats, point: Floats, names: tuple[str, ...]) -> bool:
    """Whether a point obeys a constraint, straight from what the constraint's docstring says."""
    if isinstance(constraint, Range):
        value = point[names.index(constraint.column)]
        return bool(np.isnan(value) or constraint.low <= value <= constraint.high)
    assert isinstance(constraint, Fixed | Increasing | Decreasing)
    moves = np.array([point[names.index(name)] - row[names.index(name)] for name in constraint.columns])
    allowed = {Fixed: moves == 0, Increasing: moves >= 0, Decreasing: moves <= 0}[type(constraint)]
    return bool((allowed | np.isnan(moves)).all())


def random_constraints(rng: np.random.Generator, names: tuple[str, ...], rows: Floats) -> list[Constraint]:
    """A few constraints that leave something to do; some contradict each other on some rows."""
    chosen: list[Constraint] = []
    for j, name in enumerate(names):
        low, high = np.sort(np.nan_to_num(rng.choice(rows[:, j], 2)))
        constraint = rng.choice([0, 0, 1, 2, 3, 4])
        if constraint:
            chosen.append([Fixed(name), Increasing(name), Decreasing(name), Range(name, low, high)][constraint - 1])
    return chosen


@settings(max_examples=80)
@given(SEEDS)
def test_every_answer_obeys_every_constraint(seed: int) -> None:
    explainer, rows = random_question(seed)
    names = explainer.schema.names
    constraints = random_constraints(np.random.default_rng(seed), names, rows)
    bound = Explainer(explainer.forest, rows, constraints=constraints)
    found = bound.explain(rows, strategy=FAST)
    for one in found:
        if one.counterfactual is not None:
            assert all(obeys(constraint, one.row, one.counterfactual, names) for constraint in constraints)
            shown = one.row.copy()
            shown[[names.index(change.feature) for change in one.changes]] = [c.shown for c in one.changes]
            assert all(obeys(constraint, one.row, shown, names) for constraint in constraints)
        elif one.status is Status.INFEASIBLE and "allow no value of" in one.reason:
            column = one.reason.rpartition(" of ")[2].split(", ")[0]
            assert any(column in getattr(c, "columns", (getattr(c, "column", None),)) for c in constraints)


@pytest.mark.parametrize("kind", [Fixed, Increasing, Decreasing])
def test_the_free_answer_often_breaks_what_the_bound_one_obeys(kind: type[Fixed | Increasing | Decreasing]) -> None:
    n_turned_away = n_answered = 0
    for seed in range(8):
        explainer, rows = random_question(seed, n_rows=20)
        names = explainer.schema.names
        free = explainer.explain(rows, strategy=FAST)
        bound = Explainer(explainer.forest, np.nan_to_num(rows), constraints=kind(0)).explain(rows, strategy=FAST)
        for one, other in zip(free, bound, strict=True):
            if one.counterfactual is not None and not obeys(kind(names[0]), one.row, one.counterfactual, names):
                n_turned_away += 1
                n_answered += other.counterfactual is not None
                assert other.counterfactual is None or obeys(kind(names[0]), one.row, other.counterfactual, names)
    assert n_turned_away > 10
    assert n_answered > 5


@pytest.mark.parametrize(
    ("constraint", "answer"),
    [
        (Fixed("income"), (0.51, 2.0)),
        (Increasing("age"), (0.51, 2.0)),
        (Range("age", 0.7, 0.9), (0.7, 2.0)),
        (Range("age", low=0.6), (0.6, 2.0)),
        (Range("income", high=1.5), (0.51, 1.5)),
        ([Range("income", 3.0, 4.0), Increasing("income")], (0.51, 3.0)),
    ],
)
def test_a_constraint_moves_the_answer_where_it_must_be(constraint: Any, answer: tuple[float, float]) -> None:
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    schema = Schema.of_names(NAMES[:2])
    found = Explainer(stump(), data, schema=schema, scale=None, constraints=constraint).explain(np.array([[0.2, 2.0]]))
    assert found[0].status.has_answer
    np.testing.assert_allclose(found.points[0], answer, atol=0.05)


@pytest.mark.parametrize(
    ("constraints", "columns"),
    [
        ([Range("age", 0.8, 0.9), Decreasing("age")], "age"),
        ([Range("age", 0.8, 0.9), Fixed("age")], "age"),
        ([Range("age", 0.3, 0.4), Range("age", 0.6, 0.7)], "age"),
        ([Range("age", 7.0, 8.0)], "age"),  # the data ends at 1
        ([Range("age", 0.8), Fixed("age", "income"), Range("income", high=1.0)], "age, income"),
    ],
)
def test_contradictory_constraints_are_a_status_with_a_sentence(constraints: list[Constraint], columns: str) -> None:
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    explainer = Explainer(stump(), data, schema=Schema.of_names(NAMES[:2]), constraints=constraints)
    found = explainer.explain(np.array([[0.2, 2.0]]))
    assert found.status.tolist() == [Status.INFEASIBLE]
    assert found.lower_bound.tolist() == [np.inf]
    assert found.reasons == (f"the constraints and bounds together allow no value of {columns}",)
    assert found.to_text() == (
        f"Row 0 is predicted 'no'. The constraints and bounds together allow no value of {columns}."
    )


def test_a_contradiction_on_one_row_leaves_the_others_alone() -> None:
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    explainer = Explainer(stump(), data, constraints=[Range(1, 2.0, 3.0), Decreasing(1)])
    found = explainer.explain(np.array([[0.2, 1.0], [0.2, 4.0], [0.2, 2.5]]))
    assert found.status[0] is Status.INFEASIBLE
    assert found.has_answer.tolist() == [False, True, True]


def test_no_whole_number_in_a_range_is_a_contradiction() -> None:
    data = np.array([[0, 0], [1, 5]])
    found = Explainer(stump(), data, constraints=Range(1, 2.2, 2.8)).explain(data)
    assert found.status.tolist() == [Status.INFEASIBLE] * 2


def test_everything_fixed_is_infeasible() -> None:
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    found = Explainer(stump(), data, constraints=Fixed(0, 1)).explain(data)
    assert found.status.tolist() == [Status.INFEASIBLE] * 2
    assert found.lower_bound.tolist() == [np.inf] * 2


def test_a_row_of_the_wanted_class_that_breaks_a_constraint_is_moved() -> None:
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    found = Explainer(stump(), data, constraints=Range(1, 0.0, 1.0)).explain(np.array([[0.9, 3.0]]), target="yes")
    assert found.status[0].has_answer
    assert found.distance[0] > 0
    assert found.points[0, 1] <= 1.0
    assert "is predicted 'yes' already, but breaks a constraint. It would obey them all if feature 1" in found.to_text()


def test_a_missing_value_breaks_no_constraint() -> None:
    forest = stump(takes_missing=True)
    data = np.array([[0.0, 0.0], [1.0, 5.0]])
    for constraint in (Fixed(1), Increasing(1), Decreasing(1), Range(1, 2.0, 3.0)):
        found = Explainer(forest, data, constraints=constraint).explain(np.array([[0.2, np.nan]]))
        assert found.has_answer.all()
        assert np.isnan(found.points[0, 1])


@pytest.mark.parametrize("kind", [Fixed, Increasing, Decreasing, Range])
def test_an_unknown_column_is_refused_at_once_with_a_hint(kind: type[Any]) -> None:
    schema = Schema.of_names(NAMES)
    data = np.arange(6.0).reshape(2, 3)
    with pytest.raises(InvalidInput, match=r"^There is no column 'incme'\. Did you mean 'income'\?$"):
        Explainer(stump(n_features=3), data, schema=schema, constraints=kind("incme"))
    with pytest.raises(InvalidInput, match=r"no column 'xyz'\. The columns are age, income, education years\.$"):
        Explainer(stump(n_features=3), data, schema=schema, constraints=kind("xyz"))
    with pytest.raises(InvalidInput, match=r"^A column number must be from 0 to 2, got 3\.$"):
        Explainer(stump(n_features=3), data, schema=schema, constraints=kind(3))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Fixed(), r"^Fixed\(\.\.\.\) must be given at least one column, got none\.$"),
        (lambda: Increasing(), r"^Increasing\(\.\.\.\) must be given at least one column, got none\.$"),
        (lambda: Fixed(["age", "income"]), r"^Fixed\(\.\.\.\) must be given names or numbers of columns, got \['age'"),
        (lambda: Range("age", 3, 1), r"^Range\('age'\) must be from a low to a high value, got 3 to 1\.$"),
        (lambda: Range("age", np.nan, 1), r"^Range\('age'\) must be from a low to a high value, got nan to 1\.$"),
        (lambda: Range("age", None, 1), r"^Range\('age'\) must be from a number to .*, got None\.$"),
        (lambda: Range("age", "a"), r"^Range\('age'\) must be from a number to .*, got 'a'\.$"),
        (lambda: as_constraints("age"), r"^The constraint cannot be read: one of fixed, "),
        (lambda: as_constraints(None), r"^constraints must be Fixed, Range, .*, got None\.$"),
        (lambda: as_constraints([Fixed("age"), 3]), r"^constraints must be Fixed, Range, .*, got 3\.$"),
    ],
)
def test_misuse_is_refused(build: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        build()


def test_one_constraint_or_several() -> None:
    one, other = Fixed("age"), Range("income", 0, 1)
    assert as_constraints(one) == (one,)
    assert as_constraints([one, other]) == (one, other)
    assert as_constraints(constraint for constraint in (one, other)) == (one, other)
    assert as_constraints(()) == ()


def test_constraints_compare_by_value_and_show_themselves() -> None:
    assert Fixed("age", "income") == Fixed("age", "income")
    assert len({Fixed("age"), Fixed("age"), Increasing("age"), Fixed("income")}) == 3
    assert repr(Fixed("age", 2)) == "Fixed('age', 2)"
    assert Range("age", 1, 2) == Range("age", 1, 2)


def test_a_share_without_an_end_is_no_limit_for_a_row_at_zero() -> None:
    forest, rows = stump(39.5, feature_names=("age", "income")), np.zeros((1, 2))
    data = np.array([[0.0, 0.0], [60.0, 100.0]])
    upward, share = Range("income", low=-0.1, relative=True), Range("age", low=-0.1, relative=True)
    found = Explainer(forest, data, constraints=[upward, share]).explain(rows, target="yes")
    assert found.status[0] is Status.OPTIMAL
    assert found.points[0, 0] > 39.5
