"""Constraints as text: what they mean, that they can be written back, and errors that point at the word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.questions import stump
from treefocus import Explainer, InvalidInput, Status
from treefocus.constraints.kinds import (
    AtMost,
    Condition,
    Constraint,
    Decreasing,
    Fixed,
    Implies,
    Increasing,
    Linear,
    MayBeMissing,
    OneOf,
    Range,
    Together,
)
from treefocus.constraints.text import as_constraints, read_constraints
from treefocus.constraints.words import written

MEANINGS: dict[str, Constraint] = {
    "age fixed": Fixed("age"),
    "age is fixed": Fixed("age"),
    "Age FIXED": Fixed("Age"),
    "age, sex and 'number of children' fixed": Fixed("age", "sex", "number of children"),
    "education increasing": Increasing("education"),
    "debt Decreasing": Decreasing("debt"),
    "x and y together": Together("x", "y"),
    "x, y, and z together": Together("x", "y", "z"),
    "phone may be missing": MayBeMissing("phone"),
    "income >= 20000": Range("income", low=20_000.0),
    "income ≥ 20_000": Range("income", low=20_000.0),
    "20000 <= income": Range("income", low=20_000.0),
    "income <= 1e5": Range("income", high=1e5),
    "20 <= hours <= 40": Range("hours", 20.0, 40.0),
    "40 >= hours >= 20": Range("hours", 20.0, 40.0),
    "-3 <= balance <= -1.5": Range("balance", -3.0, -1.5),
    "rate = 0.5": Range("rate", 0.5, 0.5),
    "2 * rate <= 1": Range("rate", high=0.5),
    "-rate <= 1": Range("rate", low=-1.0),
    "rate > 0": Range("rate", low=math.nextafter(0.0, 1.0)),
    "income within 10%": Range("income", -0.1, 0.1, relative=True),
    "housing in {rent, own}": OneOf("housing", ["rent", "own"]),
    'housing in {rent, "with parents"}': OneOf("housing", ["rent", "with parents"]),
    "term in {12, 24, 36}": OneOf("term", [12, 24, 36]),
    "housing == own": OneOf("housing", ["own"]),
    "at most 3 changes": AtMost(3),
    "At most 1 change of income and debt": AtMost(1, "income", "debt"),
    "a <= b": Linear({"a": 1.0, "b": -1.0}, at_most=0.0),
    "a >= b": Linear({"b": 1.0, "a": -1.0}, at_most=0.0),
    "income <= 2 * salary": Linear({"income": 1.0, "salary": -2.0}, at_most=0.0),
    "income <= salary * 2 + 100": Linear({"income": 1.0, "salary": -2.0}, at_most=100.0),
    "a + b - 0.5 * c <= 10": Linear({"a": 1.0, "b": 1.0, "c": -0.5}, at_most=10.0),
    "if employed == no then income <= 1000": Implies(
        Condition("employed", values=("no",)), Condition("income", high=1000.0)
    ),
    "employed == no implies income <= 1000": Implies(
        Condition("employed", values=("no",)), Condition("income", high=1000.0)
    ),
    "if 18 <= age <= 25 then housing in {rent, parents}": Implies(
        Condition("age", 18.0, 25.0), Condition("housing", values=("rent", "parents"))
    ),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_what_a_line_means(text: str) -> None:
    assert read_constraints(text) == (MEANINGS[text],)


def test_lines_that_mean_two_constraints() -> None:
    below, above = Linear({"a": 1.0, "b": -1.0}, at_most=0.0), Linear({"b": 1.0, "c": -1.0}, at_most=0.0)
    assert read_constraints("a <= b <= c") == (below, above)
    assert read_constraints("a - b == 0") == (below, Linear({"a": -1.0, "b": 1.0}, at_most=0.0))


@pytest.mark.parametrize("constraint", MEANINGS.values(), ids=list(MEANINGS))
def test_what_is_written_reads_back(constraint: Constraint) -> None:
    assert read_constraints(written(constraint)) == (constraint,)


@given(st.text(st.characters(exclude_characters="\"'`", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12))
def test_any_name_can_be_written(name: str) -> None:
    assert read_constraints(written(Fixed(name))) == (Fixed(name),)


@pytest.mark.parametrize(
    ("text", "why", "word"),
    [
        ("age fixd", "one of fixed, increasing", "fixd"),
        ("age", "one of fixed", ""),
        ("income <=", "a column or a number was expected", ""),
        ("income <= salary 3", "nothing more was expected", "3"),
        ("income ? 3", "this cannot be read", "?"),
        ("fixed fixed", "a column", "fixed fixed"),
        ("20 <= hours >= 40", "point the same way", ">= 40"),
        ("40 <= hours <= 20", "no value lies between 40 and 20", "hours <= 20"),
        ("1 <= 2", "needs a column", "<= 2"),
        ("a < b", "use <= or >=", "< b"),
        ("at most two changes", "a whole number", "two changes"),
        ("at most 2", "'changes' was expected", ""),
        ("housing in {rent, }", "a value or a number", "}"),
        ("housing in rent", "'{' was expected", "rent"),
        ("income within 10", "'%' was expected", ""),
        ("if a <= b then c <= 1", "about one column", "a <= b then"),
        ("if a <= 1 c <= 1", "'then' was expected", "c <= 1"),
        ("a <= b <= c <= d", "two comparisons are the most", "<= d"),
        ("x and y 3", "one of fixed", "3"),
        ("", "a column or a number", ""),
    ],
)
def test_errors_point_at_the_word(text: str, why: str, word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read_constraints(text)
    message, line, caret = str(error.value).split("\n")
    assert why in message
    place = caret.index("^") - 2
    assert line == f"  {text}"
    assert text[place:].startswith(word)
    assert place <= len(text)


def test_lists_may_mix_text_and_objects() -> None:
    assert as_constraints(["age fixed", Range("b", 0, 1), "1 <= c <= 2"]) == (
        Fixed("age"), Range("b", 0, 1), Range("c", 1.0, 2.0),
    )  # fmt: skip
    assert as_constraints("age fixed") == (Fixed("age"),)
    with pytest.raises(InvalidInput, match="constraints must be"):
        as_constraints([3])


def test_explainers_obey_what_is_written() -> None:
    forest = stump(39.5, feature_names=("age", "income"))
    data = np.array([[20.0, 0.0], [60.0, 100.0]])
    options: dict[str, Any] = {"target": "yes"}
    assert Explainer(forest, data, constraints="age fixed").explain(data, **options).status[0] is Status.INFEASIBLE
    found = Explainer(forest, data, constraints=["age >= 50", "at most 1 change"]).explain(data, **options)
    assert found.points[0].tolist() == [50.0, 0.0]
    with pytest.raises(InvalidInput, match="no column 'agee'"):
        Explainer(forest, data, constraints=["agee fixed"])
