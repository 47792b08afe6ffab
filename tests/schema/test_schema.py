"""The schema: names, kinds and units, and how a column is looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.questions import stump
from treefocus import Explainer, Feature, InvalidInput, Schema

SCHEMA = Schema([Feature("age", "integer", "years"), Feature("income", unit="EUR", description="gross, a year")])


def test_a_schema_is_its_features_in_order() -> None:
    assert SCHEMA.names == ("age", "income")
    assert len(SCHEMA) == 2
    assert SCHEMA["income"].description == "gross, a year"
    assert Schema.of_names(["a", "b"]) == Schema([Feature("a"), Feature("b")])
    assert Schema(feature for feature in SCHEMA.features) == SCHEMA


def test_a_column_is_found_by_name_or_number() -> None:
    assert SCHEMA.index("income") == 1
    assert SCHEMA.index(1) == 1
    assert SCHEMA.index(np.int64(1)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("incme", r"^There is no column 'incme'\. Did you mean 'income'\?$"),
        ("zebra", r"^There is no column 'zebra'\. The columns are age, income\.$"),
        (2, r"^A column number must be from 0 to 1, got 2\.$"),
        (-1, r"^A column number must be from 0 to 1, got -1\.$"),
        (None, r"^A column must be a name or a number, got None\.$"),
        (["age"], r"^A column must be a name or a number, got \['age'\]\.$"),
    ],
)
def test_an_unknown_column_is_refused(name: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        SCHEMA.index(name)


def test_many_columns_are_not_all_listed() -> None:
    schema = Schema.of_names(f"x{j}" for j in range(30))
    with pytest.raises(InvalidInput, match=r"The columns are x0, x1, .*, x11 and 18 more\.$"):
        schema.index("zebra")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Schema.of_names("abcab"), r"^Schema must be of columns with different names, got a, b more than once"),
        (lambda: Schema(["a", "b"]), r"^Schema must be of Features \(Schema\.of_names takes names\), got 'a'\.$"),
        (lambda: Feature("a", "odd"), r"^Feature\('a'\)\.kind must be one of \('continuous', .*, got 'odd'\.$"),
    ],
)
def test_misuse_is_refused(build: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        build()


def test_an_integer_kind_makes_whole_answers_and_units_show_in_the_text() -> None:
    data = np.array([[0.0, 0.0], [40.0, 5.0]])
    found = Explainer(stump(20.5), data, schema=SCHEMA).explain(np.array([[3.0, 2.0]]))
    assert found.points[0, 0] == 21.0
    assert "age were 21 years instead of 3 years" in found.to_text()


@pytest.mark.parametrize(
    ("schema", "names", "text"),
    [
        (Schema.of_names("abc"), None, r"^schema must be of 2 columns, got 3\.$"),
        (Schema.of_names("ab"), ("x", "y"), r"^schema must be of the model's columns x, y, got a, b\.$"),
    ],
)
def test_a_schema_of_other_columns_is_refused(schema: Schema, names: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        Explainer(stump(feature_names=names), np.zeros((2, 2)), schema=schema)


# Words


def test_a_schema_has_words_and_translations() -> None:
    german = Schema([Feature("age", "integer", "Jahre", label="Ihr Alter")], "Ihr Antrag", {"yes": "bewilligt"})
    schema = Schema([Feature("age", "integer", "years")], "your application", {"yes": "approved"}, {"de": german})
    assert schema.in_language("de") is german
    assert schema.in_language("fr") is schema
    assert "age" in schema
    assert "income" not in schema
    assert hash(schema) == hash(Schema(schema.features, "your application"))
    assert schema != Schema(schema.features)


def test_words_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^Feature\('lines'\)\.one and \.many must be given together"):
        Feature("lines", one="line")
    with pytest.raises(InvalidInput, match=r"^Schema\.translations\['de'\] must be a Schema of the same columns"):
        Schema([Feature("a")], translations={"de": Schema([Feature("b")])})
    with pytest.raises(InvalidInput, match=r"^Schema\.translations\['de'\] must be a Schema"):
        Schema([Feature("a")], translations={"de": "nein"})  # type: ignore[dict-item]
