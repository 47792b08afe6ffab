"""Missing values, listed values, steps and whole numbers where they meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support.questions import stump
from treefocus import (
    Decreasing,
    Explainer,
    Feature,
    Fixed,
    Forest,
    Increasing,
    InvalidInput,
    Linear,
    MayBeMissing,
    OneOf,
    Range,
    Schema,
)
from treefocus.constraints.kinds import Constraint
from treefocus.explanation.verifying import verify
from treefocus.model.categories import Categories
from treefocus.tables.files import read_table

DATA = np.array([[0.0, 0.0], [1.0, 10.0]])
LISTED = {
    "values": Feature("b", values=[0.0, 3.0, 7.0, 10.0]),
    "step": Feature("b", "step", step=2.5, low=0.0),
}


def on_b(cut: float = 5.0, missing_left: bool = True) -> Forest:
    """Says "yes" where b is above the cut; a missing b is below it or not."""
    return stump(cut, feature=[1, -1, -1], default_left=[missing_left, False, False], takes_missing=True)


def explained(row: list[float], *constraints: Constraint, feature: Feature | None = None, **options: Any) -> Any:
    schema = Schema([Feature("a"), feature or Feature("b")])
    model = options.pop("model", None) or on_b()
    n = options.pop("n", 1)
    return Explainer(model, DATA, schema=schema, constraints=constraints, **options).explain(np.array([row]), n=n)


def reached(row: list[float], *constraints: Constraint, **options: Any) -> Any:
    """What b ends up at, or the status where there is no answer."""
    found = explained(row, *constraints, **options)
    assert found.status[0].name in ("OPTIMAL", "INFEASIBLE")
    return found.points[0, 1] if found.has_answer[0] else found.status[0].name


# A missing value in a column that takes only some numbers


@pytest.mark.parametrize(("kind", "told"), [("values", 7.0), ("step", 7.5)])
def test_a_missing_value_becomes_one_that_the_column_can_hold(kind: str, told: float) -> None:
    found = explained([0.5, np.nan], feature=LISTED[kind])
    assert found.status[0].name == "OPTIMAL"
    assert found.points[0].tolist() == [0.5, told]
    assert found.distance[0] == 1.0


@pytest.mark.parametrize("kind", list(LISTED))
def test_a_listed_value_becomes_missing_where_it_may(kind: str) -> None:
    model = on_b(missing_left=False)
    assert np.isnan(reached([0.5, 0.0], MayBeMissing("b"), OneOf("b", [0.0]), feature=LISTED[kind], model=model))
    assert reached([0.5, 0.0], OneOf("b", [0.0]), feature=LISTED[kind], model=model) == "INFEASIBLE"


@pytest.mark.parametrize("kind", list(LISTED))
def test_the_proof_of_a_complete_row_does_not_depend_on_the_others_of_its_batch(kind: str) -> None:
    explainer = Explainer(on_b(), DATA, schema=Schema([Feature("a"), LISTED[kind]]))
    found = explainer.explain(np.array([[0.5, 0.0], [0.5, np.nan]]))
    for one in found:
        assert verify(one.certificate(), explainer.forest, reprove=True).holds


# What OneOf says of a missing value


def test_a_missing_number_has_to_become_a_listed_one() -> None:
    model = on_b(missing_left=False)  # missing is "yes" already
    schema = Schema([Feature("a"), Feature("b")])
    found = Explainer(model, DATA, schema=schema, constraints=OneOf("b", [8.0, 9.0])).explain(
        np.array([[0.5, np.nan]]), target="yes"
    )
    assert found.points[0, 1] in (8.0, 9.0)
    assert found.distance[0] == 1.0


def test_one_of_leaves_what_may_be_missing_as_it_is() -> None:
    model = on_b(missing_left=False)
    schema = Schema([Feature("a"), Feature("b")])
    explainer = Explainer(model, DATA, schema=schema, constraints=[OneOf("b", [8.0]), MayBeMissing("b")])
    found = explainer.explain(np.array([[0.5, np.nan]]), target="yes")
    assert found.distance[0] == 0.0


def test_one_of_and_a_missing_value_that_stays_have_no_answer() -> None:
    stays = [Fixed("b"), Increasing("b"), Decreasing("b"), Linear({"a": 1.0, "b": 1.0}, at_most=100.0)]
    for other in stays:
        found = explained([0.5, np.nan], OneOf("b", [8.0]), other)
        assert found.status[0].name == "INFEASIBLE"
        assert found.reasons[0] == "the constraints and bounds together allow no value of b"
    found = explained([0.5, np.nan], OneOf("b", [8.0]), distance="mahalanobis", model=on_b())
    assert found.status[0].name == "INFEASIBLE"


def housing(default_left: bool = True) -> Forest:
    """Says "yes" for whoever rents; an unseen category and, if asked for, a missing one do not."""
    labels = (None, ("own", "rent", "free"))
    categories = Categories.of_sets(labels, [[0, 2, 3], None, None])
    missing = [default_left, False, False]
    return stump(0.0, feature=[1, -1, -1], default_left=missing, takes_missing=True, categories=categories)


@pytest.mark.parametrize("own", ["castle", None])
def test_an_unseen_and_a_missing_category_obey_the_list(own: Any) -> None:
    schema = Schema([Feature("a"), Feature("b", "categorical")])
    data = np.array([[0.0, "own"], [1.0, "rent"]], object)
    row = np.array([[0.5, own]], object)
    bound = Explainer(housing(), data, schema=schema, constraints="b in {own, free}").explain(row, target="no")
    assert bound.status[0].name == "OPTIMAL"
    assert bound.distance[0] == 1.0
    assert bound.counterfactuals[0, 1] in ("own", "free")
    free = Explainer(housing(), data, schema=schema).explain(row, target="no")
    assert free.distance[0] == 0.0
    texts = ["b in {own, free}", "b may be missing"]
    lax = Explainer(housing(), data, schema=schema, constraints=texts).explain(row, target="no")
    assert lax.distance[0] == (1.0 if own else 0.0)


# What the others say


def test_a_fixed_column_never_becomes_missing() -> None:
    model = on_b(missing_left=False)
    for constraints in ([Fixed("b"), MayBeMissing("b")], [MayBeMissing("b"), Fixed("b")]):
        assert reached([0.5, 0.0], *constraints, model=model) == "INFEASIBLE"


@pytest.mark.parametrize("other", [Decreasing("b"), Range("b", 0.0, 4.0), OneOf("b", [0.0, 1.0])])
def test_what_may_be_missing_may_leave_a_range_a_list_and_a_direction(other: Constraint) -> None:
    model = on_b(missing_left=False)
    assert reached([0.5, 0.0], other, model=model) == "INFEASIBLE"
    assert np.isnan(reached([0.5, 0.0], other, MayBeMissing("b"), model=model))


@pytest.mark.parametrize("other", [Increasing("b"), Range("b", -0.1, 0.1, relative=True)])
def test_a_missing_value_under_a_rule_about_its_own_value_stays(other: Constraint) -> None:
    assert reached([0.5, np.nan], other) == "INFEASIBLE"


def test_a_range_binds_what_a_missing_value_becomes_and_not_one_that_stays() -> None:
    assert reached([0.5, np.nan], Range("b", 6.0, 8.0)) >= 6.0
    assert reached([0.5, np.nan], Range("b", 0.0, 4.0)) == "INFEASIBLE"
    found = explained([0.5, np.nan], Range("b", 0.0, 4.0), model=stump(takes_missing=True))
    assert np.isnan(found.points[0, 1])


def test_what_linear_asks_for_may_not_become_missing() -> None:
    with pytest.raises(InvalidInput, match=r"^'b' may not become missing: Linear asks for its value\.$"):
        explained([0.5, 0.0], MayBeMissing("b"), Linear({"a": 1.0, "b": 1.0}, at_most=3.0))


# Lists and what a column can hold


def test_one_of_takes_only_what_a_column_of_whole_numbers_can_hold() -> None:
    whole = Feature("b", "integer")
    assert reached([0.5, 0.0], OneOf("b", [0.0, 5.5, 8.0]), feature=whole) == 8.0
    assert reached([0.5, 0.0], OneOf("b", [0.0, 5.5])) == 5.5
    assert reached([0.5, 0.0], OneOf("b", [0.0, 5.5]), feature=whole) == "INFEASIBLE"


def test_one_of_is_read_in_the_precision_of_the_column() -> None:
    rows = np.array([[0.5, 0.1]], np.float32)
    explainer = Explainer(on_b(0.2), DATA, constraints=OneOf(1, [0.1, 0.3]))
    found = explainer.explain(rows)
    assert found.counterfactuals[0].tolist() == [0.5, float(np.float32(0.3))]
    stays = explainer.explain(rows, target="no")
    assert stays.distance[0] == 0.0


def test_steps_are_as_people_write_them() -> None:
    by_tenths = Feature("b", "step", step=0.1)
    for value in (0.3, 0.7, 1.1):
        assert reached([0.5, 0.0], OneOf("b", [value]), feature=by_tenths, model=on_b(value - 0.05)) == value
        assert reached([0.5, 0.0], feature=by_tenths, model=on_b(value - 0.05)) == value
    assert reached([0.5, 0.3], feature=by_tenths, model=on_b(0.3)) == 0.4


def test_a_row_in_which_everything_may_be_missing_is_searched_like_others() -> None:
    model = on_b(missing_left=False)  # yes above 5, and where b is missing
    every = [MayBeMissing("a"), MayBeMissing("b")]
    found = explained([0.5, 0.0], *every, model=model, n=2)
    assert found.status[0].name == "OPTIMAL"
    np.testing.assert_allclose(found.distance[0], 0.5)
    assert found.others[0].status[0].name == "INFEASIBLE"
    emptied = explained([np.nan, 0.0], *every, OneOf("b", [0.0]), model=model)
    assert emptied.status[0].name == "OPTIMAL"
    assert np.isnan(emptied.points[0]).all()
    assert emptied.distance[0] == 1.0


def test_a_file_that_seems_to_hold_whole_numbers_takes_the_fractions_that_are_listed(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n0.5,0\n0.25,1\n")
    table = read_table(tmp_path / "rows.csv")
    model = on_b(0.3)
    halves = Schema([Feature("a"), Feature("b", "step", step=0.5)])
    assert Explainer(model, table, schema=halves).explain(table).points[0, 1] == 0.5
    assert Explainer(model, table, constraints=OneOf("b", [0.0, 0.75])).explain(table).points[0, 1] == 0.75
    assert Explainer(model, table).explain(table).points[0, 1] == 1.0
    frame = pd.DataFrame({"a": [0.5, 0.25], "b": [0, 1]})  # whose dtype can hold no fraction
    assert Explainer(model, frame, schema=halves).explain(frame).points[0, 1] == 1.0
