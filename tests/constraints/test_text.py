"""Constraints as text: what they mean, that they can be written back, and errors that point at the word."""

from __future__ import annotations

import math
from dataclasses import replace
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
from treefocus.constraints.text import as_constraints, lines_of, read_constraints

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
    "income from -10% to 20%": Range("income", -0.1, 0.2, relative=True),
    "income from 0% To ∞%": Range("income", 0.0, math.inf, relative=True),
    "income within 12.3%": Range("income", -0.123, 0.123, relative=True),
    "income <= ∞": Range("income"),
    "column 3 fixed": Fixed(3),
    "column 3 and column fixed": Fixed(3, "column"),
    "column >= 3": Range("column", low=3.0),
    "2 * column 0 <= column 1": Linear({0: 2.0, 1: -1.0}),
    "(2 * income) <= 4": Linear({"income": 2.0}, at_most=4.0),
    "4 >= (income)": Linear({"income": 1.0}, at_most=4.0),
    """a, 'it''s' and "5"" floppy" fixed""": Fixed("a", "it's", '5" floppy'),
    "code in {9007199254740993, -3, 0.5, '12'}": OneOf("code", [9007199254740993, -3, 0.5, "12"]),
    "if column 2 in {a} then b in {}": Implies(Condition(2, values=("a",)), Condition("b", values=())),
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


# ---- what is written reads back

NAMES = st.one_of(
    st.sampled_from(["a", "net income", "fixed", "In", "column", "column 3", "from", "to", "12", "", "∞", "it's"]),
    st.text("ab \"'`\n\r\\.3%{}", max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
COLUMNS = st.one_of(NAMES, st.integers(0, 10**6))
SEVERAL = st.lists(COLUMNS, min_size=1, max_size=4)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False))
VALUES = st.one_of(NAMES, st.booleans(), st.integers(), FINITE, FINITE.map(np.float64), st.booleans().map(np.bool_))
BOUNDS = st.tuples(NUMBERS, NUMBERS).map(sorted)
CONDITIONS = st.one_of(
    st.builds(lambda column, bounds: Condition(column, *bounds), COLUMNS, BOUNDS),
    st.builds(lambda column, values: Condition(column, values=tuple(values)), COLUMNS, st.lists(VALUES, max_size=4)),
)
COEFFICIENTS = st.dictionaries(COLUMNS, FINITE.filter(bool) | st.integers(1, 10**20), min_size=1, max_size=4)
KINDS: dict[type[Constraint], st.SearchStrategy[Any]] = {
    **{kind: SEVERAL.map(lambda names, kind=kind: kind(*names)) for kind in (Fixed, Increasing, Decreasing)},
    **{kind: SEVERAL.map(lambda names, kind=kind: kind(*names)) for kind in (Together, MayBeMissing)},
    Range: st.builds(
        lambda column, bounds, share: Range(column, *bounds, relative=share), COLUMNS, BOUNDS, st.booleans()
    ),
    OneOf: st.builds(OneOf, COLUMNS, st.lists(VALUES, min_size=1, max_size=4)),
    AtMost: st.builds(lambda n, names: AtMost(n, *names), st.integers(0, 10**9), st.just([]) | SEVERAL),
    Linear: st.builds(Linear, COEFFICIENTS, FINITE),
    Implies: st.builds(Implies, CONDITIONS, CONDITIONS),
}


def meaning(one: Any) -> Any:
    """A constraint or condition with its bounds and coefficients as the floats that a search takes them for."""
    if isinstance(one, Range | Condition):
        return replace(one, low=float(one.low), high=float(one.high))
    if isinstance(one, Linear):
        return Linear({name: float(factor) for name, factor in one.coefficients.items()}, one.at_most)
    return Implies(meaning(one.cause), meaning(one.effect)) if isinstance(one, Implies) else one


def kinds_of(base: type[Any]) -> set[type[Any]]:
    """The kinds of constraints there are: those without kinds of their own."""
    own = [kind for kind in base.__subclasses__() if kind.__module__.startswith("treefocus.")]
    return {base} if not own else set().union(*map(kinds_of, own))


def test_every_kind_is_drawn() -> None:
    assert kinds_of(Constraint) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_what_is_written_reads_back(kind: type[Constraint], data: st.DataObject) -> None:
    """As a line alone, and as one of the lines of a text."""
    constraint = data.draw(KINDS[kind])
    text = constraint.to_text()
    assert as_constraints(text) == (meaning(constraint),)
    assert as_constraints(lines_of(f"age fixed\n{text}\n\n{text}\r\n")) == (Fixed("age"), *2 * (meaning(constraint),))


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Fixed(3, "a b"), 'column 3 and "a b" fixed'),
        (Fixed("\"'`"), '"""\'`" fixed'),
        (Range("a"), "a <= ∞"),
        (Range("a", math.inf, math.inf), "a == ∞"),
        (Range("a", -0.07, 0.07, relative=True), "a within 7%"),
        (Range("a", -0.1, 0.25, relative=True), "a from -10% to 25%"),
        (Range("a", high=0.145, relative=True), "a from -∞% to 14.5%"),
        (OneOf("a", [True, 2**53 + 1, "in", "12"]), 'a in {1, 9007199254740993, "in", "12"}'),
        (Linear({"a": -2}, at_most=1e-300), "(-2 * a) <= 1e-300"),
        (Linear({"a": -2, 1: 1, "c": -1}), "-2 * a + column 1 - c <= 0"),
        (Implies(Condition("a", 1, 1), Condition("b")), "if a == 1 then b <= ∞"),
    ],
)
def test_how_constraints_are_written(constraint: Constraint, text: str) -> None:
    assert constraint.to_text() == text
    assert read_constraints(text) == (constraint,)


def test_a_constraint_of_a_users_own_is_written_as_python_shows_it() -> None:
    class Never(Constraint):
        def __repr__(self) -> str:
            return "Never()"

    assert Never().to_text() == "Never()"


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
        ("a from 10%", "'to' was expected", ""),
        ("a from 10% to 5%", "must not be below", "5%"),
        ("a in {}", "a value or a number", "}"),
        ("(a <= 3", "')' was expected", "<= 3"),
        ("∞ * a <= 3", "finite numbers only", "* a"),
        ("column 1.5 fixed", "a comparison was expected", "1.5"),
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
