"""What is told of an answer, applied as a whole, flips the model and obeys every constraint."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS, adversarial_rows, random_forest
from treefocus import (
    AtMost,
    Auto,
    Condition,
    Explainer,
    Forest,
    Implies,
    Linear,
    OneOf,
    Range,
    Schema,
    Together,
    kernels,
)
from treefocus.constraints.kinds import Constraint
from treefocus.explanation.batch import Explanations
from treefocus.model.forest import Floats
from treefocus.render.phrases import catalogue
from treefocus.schema.schema import Feature

BOX = np.array([[0.0, 0.0], [100.0, 100.0]])


def two_splits(a: float, b: float) -> Forest:
    """ "yes" where the first column is above `a` and the second at most `b`."""
    return Forest(
        feature=[0, -1, 1, -1, -1], threshold=[a, 0, b, 0, 0], left=[1, -1, 3, -1, -1], right=[2, -1, 4, -1, -1],
        default_left=[False] * 5, tree_start=[0, 5], leaf_value=[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        base_score=[0.0, 0.0], classes=["no", "yes"], n_features=2, feature_names=("a", "b"),
    )  # fmt: skip


def told(found: Explanations, i: int = 0) -> Floats:
    """The row with the numbers that are told."""
    row = found.table.values[i].copy()
    for change in found[i].changes:
        j = found.schema.index(change.feature)
        row[j] = found.points[i, j] if change.is_category or change.shown is None else change.shown
    return row


def test_two_columns_that_a_rule_ties_are_told_as_one_row() -> None:
    found = Explainer(two_splits(50.53005, 50.53018), BOX, constraints=[Linear({"a": 1, "b": -1})]).explain(
        [[1.0, 0.5]]
    )
    row = told(found)
    assert row[0] <= row[1]
    assert kernels.predict(found.problem.model, row[None]) == [1]


def test_values_are_shortened_one_by_one_where_not_all_can_be() -> None:
    forest = Forest(
        feature=[0, -1, 2, -1, -1], threshold=[29.12345, 0, 12.3456, 0, 0], left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1], default_left=[False] * 5, tree_start=[0, 5], base_score=[0.0, 0.0],
        leaf_value=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], classes=["no", "yes"], n_features=3,
    )  # fmt: skip
    data = np.array([[0.0] * 3, [100.0] * 3])
    found = Explainer(forest, data, constraints=[Linear({0: 1, 1: -1}, at_most=-30.0123)]).explain([[3.3, 47.77, 1.0]])
    row = told(found)
    assert row[0] - row[1] <= -30.0123
    assert row[1] == 59.14  # 59.1 would break the rule with any value of the first column
    assert row[2] == 12.4


def test_a_listed_value_is_told_as_it_is() -> None:
    found = Explainer(two_splits(50.0, 50.0), BOX, constraints=[OneOf("a", [60.123456, 20])]).explain([[20.0, 10.0]])
    assert found[0].changes[0].shown == 60.123456
    text = found[0].to_text()
    assert "60.123456" in text
    assert "60.123456" in found[0].to_letter()
    assert json.loads(found.to_json())["rows"][0]["changes"][0]["shown"] == 60.123456
    assert list(found.changes_frame()["after"]) == [60.123456]


def test_a_step_is_told_as_it_is() -> None:
    schema = Schema((Feature("a", kind="step", low=0.0, high=100.0, step=1.0009765625), Feature("b")))
    found = Explainer(two_splits(50.0, 50.0), BOX, schema=schema).explain([[0.0, 10.0]])
    assert found[0].changes[0].shown == found[0].changes[0].after
    assert (found[0].changes[0].shown / 1.0009765625).is_integer()


def obeys(constraint: Constraint, row: Floats, point: Floats, dtype: str) -> bool:
    """Whether a point obeys a constraint, written down once more and without a word of the library's."""
    if isinstance(constraint, Linear):
        terms = [c * point[j] for j, c in constraint.coefficients.items()]
        return sum(terms) <= constraint.at_most + 1e-15 * (abs(constraint.at_most) + sum(map(abs, terms)))
    if isinstance(constraint, OneOf):
        listed = np.array(constraint.values, dtype)  # as the column holds them
        return bool((listed == point.astype(dtype)[constraint.column]).any())
    if isinstance(constraint, Range):
        return constraint.low <= point[constraint.column] <= constraint.high
    if isinstance(constraint, AtMost):
        return int((point != row).sum()) <= constraint.n
    if isinstance(constraint, Together):
        return len({bool(row[j] != point[j]) for j in constraint.columns}) == 1
    assert isinstance(constraint, Implies)
    holds = [one.low <= point[one.column] <= one.high for one in (constraint.cause, constraint.effect)]
    return not holds[0] or holds[1]


def random_rules(rng: np.random.Generator, rows: Floats) -> list[Constraint]:
    d = rows.shape[1]
    found: list[Constraint] = []
    for kind in rng.permutation(["linear", "linear", "one of", "range", "at most", "together", "implies"])[:3]:
        a, b = (int(j) for j in rng.permutation(d)[:2])
        if kind == "linear":
            sides = rng.choice([-2.0, -1.0, 1.0, 1.5], 2)
            middle = float((rows[:, a] * sides[0] + rows[:, b] * sides[1]).mean())
            found.append(Linear({a: float(sides[0]), b: float(sides[1])}, at_most=middle + float(rng.normal())))
        elif kind == "one of":
            found.append(OneOf(a, rng.uniform(-4, 4, 6).tolist()))
        elif kind == "range":
            found.append(Range(a, *np.sort(rng.uniform(-4, 4, 2)).tolist()))
        elif kind == "at most":
            found.append(AtMost(int(rng.integers(1, 3))))
        elif kind == "together":
            found.append(Together(a, b))
        else:
            ends = np.sort(rng.uniform(-3, 3, 2)).tolist()
            found.append(Implies(Condition(a, low=ends[0]), Condition(b, high=ends[1])))
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(seed=SEEDS)
@settings(max_examples=60)
def test_what_is_told_flips_and_obeys(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    forest = random_forest(rng, n_features=d, n_trees=int(rng.integers(1, 4)), n_thresholds=3, n_classes=2)
    rows = adversarial_rows(forest, rng, 6, missing=0.0).astype(dtype)
    data = np.concatenate([np.full((1, d), -6.0), np.full((1, d), 6.0)])
    distance = str(rng.choice(["manhattan", "euclidean"]))
    constraints = random_rules(rng, rows.astype(np.float64))
    explainer = Explainer(forest, data, distance=distance, constraints=constraints)
    found = explainer.explain(rows, strategy=Auto(time_limit=None, node_limit=10_000))
    for i in np.flatnonzero(found.has_answer):
        row, point, shown = found.table.values[i], found.points[i], told(found, i)
        assert kernels.predict(forest, shown[None]) == kernels.predict(forest, point[None])
        assert kernels.predict(forest, shown.astype(dtype).astype(np.float64)[None]) == kernels.predict(
            forest, point[None]
        )
        for constraint in constraints:
            assert obeys(constraint, row, shown, dtype), constraint
        sentence = found[int(i)].to_text()
        for change in found[int(i)].changes:
            assert catalogue().number(change.shown) in sentence
