"""Which way is up among words: the schema's order, or an ordered dtype's; never the alphabet's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from support.questions import stump
from treefocus import Decreasing, Explainer, Feature, Increasing, InvalidInput, Schema
from treefocus.model.categories import Categories

SIZES = ["S", "M", "L"]  # the alphabet has L < M < S
BY_SCHEMA = Schema([Feature("size", "ordinal", values=SIZES), Feature("age")])
WORDS = pd.DataFrame({"size": SIZES * 20, "age": np.arange(60.0)})
IS_L = (WORDS["size"] == "L").to_numpy().astype(int)
ORDERED = WORDS.assign(size=pd.Categorical(WORDS["size"], SIZES, ordered=True))


def pipeline(encoder: Any, data: pd.DataFrame = WORDS) -> Pipeline:
    before = ColumnTransformer([("words", encoder, ["size"])], remainder="passthrough")
    return Pipeline([("before", before), ("model", DecisionTreeClassifier(random_state=0))]).fit(data, IS_L)


def reached(model: Any, data: Any, row: Any, constraint: Any, **options: Any) -> str:
    """The size that an answer has, or the status where there is none."""
    found = Explainer(model, data, constraints=constraint, **options).explain(row)
    return str(found[0].to_dict()["changes"][0]["after"]) if found.has_answer[0] else found.status[0].name


def check_both_ways(model: Any, data: Any, rows: Any, **options: Any) -> None:
    """From S up to L and not down; from L down and not up. The model says yes to L alone."""
    small, large = rows
    assert reached(model, data, small, Increasing("size"), **options) == "L"
    assert reached(model, data, small, Decreasing("size"), **options) == "INFEASIBLE"
    assert reached(model, data, large, "size decreasing", **options) in ("S", "M")
    assert reached(model, data, large, "size increasing", **options) == "INFEASIBLE"


def ends(data: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return data.iloc[[0]], data.iloc[[2]]


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(), OrdinalEncoder(), OrdinalEncoder(categories=[["M", "L", "S"]])], ids=repr
)
def test_the_schemas_order_counts_behind_encoders(encoder: Any) -> None:
    check_both_ways(pipeline(encoder), WORDS, ends(WORDS), schema=BY_SCHEMA)


def test_an_ordered_dtype_counts_behind_encoders_and_in_models() -> None:
    check_both_ways(pipeline(OneHotEncoder()), ORDERED, ends(ORDERED))
    check_both_ways(pipeline(OneHotEncoder()), ORDERED, ends(WORDS))
    hist = HistGradientBoostingClassifier(min_samples_leaf=5, categorical_features="from_dtype").fit(ORDERED, IS_L)
    check_both_ways(hist, ORDERED, ends(ORDERED))


def test_the_schemas_order_comes_before_the_dtypes() -> None:
    schema = Schema([Feature("size", "ordinal", values=["L", "M", "S"]), Feature("age")])
    assert reached(pipeline(OneHotEncoder()), ORDERED, ORDERED.iloc[[0]], Decreasing("size"), schema=schema) == "L"


def test_without_data_the_rows_bring_the_order() -> None:
    check_both_ways(pipeline(OneHotEncoder()), None, ends(ORDERED), scale=None)
    enum = pl.DataFrame({"size": SIZES, "age": [0.0, 1.0, 2.0]}, schema_overrides={"size": pl.Enum(SIZES)})
    check_both_ways(pipeline(OneHotEncoder()), None, (enum[[0]], enum[[2]]), scale=None)


def test_arrow_says_whether_a_dictionary_is_ordered() -> None:
    import pyarrow as pa

    table = pa.Table.from_pandas(ORDERED, preserve_index=False)
    check_both_ways(pipeline(OneHotEncoder()), table, (table.slice(0, 1), table.slice(2, 1)))


def test_an_order_that_an_encoder_was_told_counts() -> None:
    model = pipeline(OrdinalEncoder(categories=[SIZES]))
    check_both_ways(model, WORDS, ends(WORDS))
    with pytest.raises(InvalidInput, match="needs an order"):
        Explainer(pipeline(OneHotEncoder(categories=[SIZES])), WORDS, constraints=Increasing("size"))


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()], ids=repr)
@pytest.mark.parametrize("kind", [Increasing, Decreasing])
def test_without_an_order_a_direction_is_refused_with_what_to_do(encoder: Any, kind: Any) -> None:
    told = (
        rf"^{kind.__name__}\('size'\) needs an order of the categories L, M, S, and nobody has said one: give it in "
        r"the schema, Feature\('size', 'ordinal', values=\[\.\.\.\]\) with the first one first, or as an ordered "
        r"dtype of the table\.$"
    )
    with pytest.raises(InvalidInput, match=told):
        Explainer(pipeline(encoder), WORDS, constraints=kind("size"))
    late = Explainer(pipeline(encoder), scale=None, constraints=kind("size"))
    with pytest.raises(InvalidInput, match=told):
        late.explain(WORDS.iloc[[0]])


def test_a_one_hot_group_has_an_order_if_it_is_ordinal() -> None:
    data = pd.DataFrame({f"size_{own}": (WORDS["size"] == own).astype(int) for own in ("L", "M", "S")})
    model = DecisionTreeClassifier(random_state=0).fit(data, IS_L)
    columns = [f"size_{own}" for own in SIZES]
    schema = Schema([Feature("size", "ordinal", columns=columns)])
    assert schema["size"].values == ("S", "M", "L")
    check_both_ways(model, data, ends(data), schema=schema)
    unordered = Schema([Feature("size", "one-hot", columns=columns)])
    with pytest.raises(InvalidInput, match="needs an order"):
        Explainer(model, data, schema=unordered, constraints=Increasing("size"))
    corrected = Schema.infer(data).with_feature("size", kind="ordinal", columns=columns)
    assert corrected["size"].values == ("S", "M", "L")


def of_sizes(*labels: Any) -> Any:
    """Says "yes" to the last label alone, and to what it has not seen."""
    n = len(labels)
    categories = Categories.of_sets((tuple(labels), None), [list(range(n - 1)), None, None])
    return stump(0.0, takes_missing=True, categories=categories)


def test_numbers_as_labels_have_the_order_of_numbers() -> None:
    data = np.array([[10, 0.0], [2, 1.0], [30, 1.0]], object)
    model = of_sizes(10, 2, 30)
    assert reached(model, data, data[:1], Increasing(0)) == "30"
    assert reached(model, data, data[:1], Decreasing(0)) == "INFEASIBLE"
    assert reached(model, data, data[2:], Decreasing(0)) in ("2", "10")


def test_what_has_no_place_in_the_order_stays() -> None:
    schema = Schema([Feature("size", "ordinal", values=["S", "M"]), Feature("age")])
    data = np.array([["S", 0.0], ["M", 1.0], ["L", 1.0]], object)
    model = of_sizes("S", "M", "L")
    for own in ("L", "castle", None):
        row = np.array([[own, 0.5]], object)
        for constraint in (Increasing("size"), Decreasing("size")):
            assert reached(model, data, row, constraint, schema=schema) == "INFEASIBLE"
        assert reached(model, data, row, (), schema=schema) in ("S", "M")


def test_numbers_that_the_schema_lists_backwards_grow_backwards() -> None:
    grades = Schema([Feature("grade", "ordinal", values=[5, 4, 3, 2, 1]), Feature("age")])
    data = np.array([[1.0, 0.0], [5.0, 1.0]])
    above = stump(3.5)  # "yes" above it
    assert reached(above, data, np.array([[2.0, 0.5]]), Decreasing("grade"), schema=grades) == "4.0"
    assert reached(above, data, np.array([[2.0, 0.5]]), Increasing("grade"), schema=grades) == "INFEASIBLE"
    mixed = grades.with_feature("grade", values=[3, 1, 2])
    with pytest.raises(
        InvalidInput, match=r"^Increasing\('grade'\) must be about numbers that the schema lists from one"
    ):
        Explainer(above, data, schema=mixed, constraints=Increasing("grade"))
