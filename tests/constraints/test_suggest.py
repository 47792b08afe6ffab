"""Relations that were planted are found, chance is not, and every suggestion reads back as a constraint that holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from treefocus import Condition, Explainer, Fixed, Implies, InvalidInput, Linear, suggest_constraints
from treefocus.constraints.text import as_constraints

N = 400


def planted(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    gross = rng.uniform(1000, 9000, N)
    food, rent, other = (np.round(rng.uniform(0, size, N), 2) for size in (900, 1900, 150))
    kind = rng.integers(0, 3, N)
    employed = rng.choice(["no", "yes"], N)
    return pd.DataFrame(
        {
            "net": gross * rng.uniform(0.5, 1.0, N),
            "gross": gross,
            "food": food,
            "rent": rent,
            "other": other,
            "spent": np.round(food + rent + other, 2),
            "has_car": kind == 0,
            "has_bike": (kind == 1).astype(int),
            "employed": employed,
            "job": np.where(employed == "no", "none", rng.choice(["clerk", "chef"], N)),
            "birth_year": rng.integers(1940, 2005, N),
            "noise": rng.normal(size=N),
        }
    )


def said(data: Any, **options: float) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in suggest_constraints(data, **options):
        found.setdefault(one.kind, []).append(one.constraint.to_text())
    return found


def test_planted_relations_are_found_and_nothing_else() -> None:
    found = said(planted())
    assert set(found.pop("implied")) == {
        "if employed in {no} then job in {none}",
        "if job in {none} then employed in {no}",
        "if job in {chef} then employed in {yes}",
        "if job in {clerk} then employed in {yes}",
    }
    assert found == {
        "immutable": ["birth_year fixed"],
        "order": ["net - gross <= 0"],
        "exclusive": ["has_car + has_bike <= 1"],
        "sum": ["food + rent + other - spent <= 0", "-food - rent - other + spent <= 0"],
    }


@pytest.mark.parametrize("as_table", [pl.from_pandas, lambda data: {name: data[name].to_numpy() for name in data}])
def test_tables_of_every_library_say_the_same(as_table: Any) -> None:
    data = planted()
    assert said(as_table(data)) == said(data)


@given(st.integers(0, 10_000))
def test_columns_that_have_nothing_to_do_with_each_other_suggest_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = {
        "a": rng.normal(size=N),
        "b": rng.uniform(-1, 1, N),
        "c": rng.integers(0, 2, N).astype(float),
        "d": rng.integers(0, 2, N).astype(float),
        "e": rng.choice(["x", "y", "z"], N),
    }
    assert not suggest_constraints(data)


@given(st.integers(0, 10_000), st.floats(0, 0.2))
def test_support_and_exceptions_are_counted(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    high = rng.uniform(0, 100, N)
    low = high * rng.uniform(0.2, 1.0, N)
    is_broken = rng.random(N) < share
    low[is_broken] = high[is_broken] + rng.uniform(1, 50, is_broken.sum())
    is_missing = rng.random(N) < 0.1
    data = {"low": np.where(is_missing, np.nan, low), "high": high}
    n, broken = int((~is_missing).sum()), int((is_broken & ~is_missing).sum())
    found = [one for one in suggest_constraints(data, exceptions=0.1) if one.kind == "order"]
    if broken > 0.1 * n:
        assert not found
    else:
        assert [(one.support, one.exceptions) for one in found] == [(n, broken)]
        assert found[0].constraint == Linear({"low": 1, "high": -1}, at_most=0)


def test_every_suggestion_reads_back_and_can_be_given_to_an_explainer() -> None:
    data = planted()
    found = suggest_constraints(data)
    assert as_constraints([one.constraint.to_text() for one in found]) == found.constraints
    numeric = data.drop(columns=["employed", "job"])
    rules = suggest_constraints(numeric).constraints
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(numeric, numeric["net"] > 3000)
    answers = Explainer(model, numeric, distance="manhattan", constraints=rules).explain(numeric[:5])
    for after in answers.counterfactuals[answers.has_answer].to_dict("records"):
        assert after["net"] <= after["gross"]
        assert after["food"] + after["rent"] + after["other"] == pytest.approx(after["spent"])
        assert not (after["has_car"] and after["has_bike"])


def test_it_says_what_speaks_for_it() -> None:
    found = suggest_constraints(planted())
    assert found[0].to_text() == "birth_year fixed  # by its name, nobody can change it"
    assert "holds in all 400 rows; by chance it would be broken in about" in found.to_text()
    assert repr(suggest_constraints({"a": [1.0, 2.0]})) == "no suggestion"
    assert isinstance(found.constraints[0], Fixed)
    rules = [one for one in found.constraints if isinstance(one, Implies)]
    assert Implies(Condition("employed", values=["no"]), Condition("job", values=["none"])) in rules


@pytest.mark.parametrize(
    ("data", "options", "told"),
    [
        ({"a": [1.0]}, {"exceptions": 0.7}, "exceptions must be a share from 0 to below 0.5"),
        ({}, {}, "must have rows and columns"),
        (np.zeros(3), {}, "a table, rows by columns"),
    ],
)
def test_misuse_is_told(data: Any, options: dict[str, float], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        suggest_constraints(data, **options)
