"""Words that may be advice: those that the model, the data or the user hold; never one that only a step writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from support.questions import stump
from treefocus import Explainer, Feature, Forest, InvalidInput, OneOf, Schema, Together, load_model, verify
from treefocus.adapters import translate
from treefocus.model.categories import NO_CATEGORY, Categories
from treefocus.problem.words import with_words, words_added
from treefocus.tables.files import read_table
from treefocus.tables.labels import Coding

# Words that imputers write


def housing(missing: Any = np.nan, fill: str = "constant") -> tuple[pd.DataFrame, Pipeline]:
    """A model that says yes to those whose housing is missing, and whose imputer writes 'missing' for it."""
    own = pd.Series(["own", "rent", missing, "own", "rent", missing] * 10, dtype=object)
    data = pd.DataFrame({"housing": own, "income": np.arange(60.0)})
    blank = {"missing_values": missing} if isinstance(missing, str) else {}
    imputer = SimpleImputer(strategy=fill, **({"fill_value": "missing"} if fill == "constant" else {}), **blank)
    words = make_pipeline(imputer, OneHotEncoder(handle_unknown="ignore"))
    before = ColumnTransformer([("words", words, ["housing"])], remainder="passthrough")
    is_missing = own.isna() | (own == missing)
    return data, Pipeline([("before", before), ("model", DecisionTreeClassifier(max_depth=1))]).fit(data, is_missing)


def answer(model: Any, data: Any, own: str = "own", **options: Any) -> Any:
    """The housing that an answer has, or the status where there is none."""
    row = pd.DataFrame({"housing": pd.Series([own], dtype=object), "income": [5.0]})
    found = Explainer(model, data, **options).explain(row)
    return found.counterfactuals["housing"].iloc[0] if found.has_answer[0] else found.status[0].name


def test_the_word_that_an_imputer_writes_is_no_advice() -> None:
    data, model = housing()
    assert translate(model).forest.categories.labels[0] == ("missing", "own", "rent")
    assert answer(model, data) == "INFEASIBLE"
    assert answer(model, None, scale=None) == "INFEASIBLE"
    assert pd.isna(answer(model, data, constraints="housing may be missing"))
    assert Explainer(model, data).schema["housing"].values == ("own", "rent")


def test_it_is_advice_where_the_data_or_the_user_hold_it() -> None:
    data, model = housing()
    assert answer(model, data.fillna({"housing": "missing"})) == "missing"
    assert answer(model, data, constraints=OneOf("housing", ["missing", "own"])) == "missing"
    told = Schema([Feature("housing", "categorical", values=["own", "missing"]), Feature("income")])
    assert answer(model, data, schema=told) == "missing"
    untold = Schema([Feature("housing", "categorical"), Feature("income")])
    assert answer(model, data, schema=untold) == "INFEASIBLE"
    assert answer(model, data, schema=untold, constraints="if housing == missing then income >= 0") == "missing"
    assert answer(model, data, own="missing") in ("own", "rent")  # it may stand in a row, and stay there


def test_the_commonest_word_is_one_of_the_table() -> None:
    data, model = housing(fill="most_frequent")
    assert translate(model).forest.categories.fillers is None
    assert Explainer(model, data).schema["housing"].values == ("own", "rent")


def test_a_word_for_missing_is_advice_only_where_it_may_be_missing() -> None:
    data, model = housing("?")
    assert answer(model, data) == "INFEASIBLE"
    assert answer(model, data, constraints="housing may be missing") == "?"
    assert answer(model, data, constraints="housing in {own, '?'}") == "?"


def test_a_saved_forest_knows_which_words_are_no_advice(tmp_path: Path) -> None:
    data, model = housing()
    translate(model).forest.save(tmp_path / "forest.json")
    assert answer(load_model(tmp_path / "forest.json"), data) == "INFEASIBLE"


def test_what_stands_for_no_category_is_no_advice() -> None:
    sets = [[0], None, None]
    model = stump(0.0, categories=Categories.of_sets((NO_CATEGORY, None), sets))
    schema = Schema([Feature("k", "categorical"), Feature("x")])
    found = Explainer(model, scale=None, schema=schema).explain(np.array([["a", 1.0]], object))
    assert found.status[0].name == "INFEASIBLE"


def test_a_column_that_the_pipeline_drops_is_never_changed() -> None:
    data = pd.DataFrame({"id": [f"n{k}" for k in range(40)], "x": np.arange(40.0)})
    before = ColumnTransformer([("x", "passthrough", ["x"])])
    model = Pipeline([("before", before), ("model", DecisionTreeClassifier())]).fit(data, data["x"] > 20)
    explainer = Explainer(model, data, constraints=Together("id", "x"))
    assert explainer.labels[0] == ("not used by the model",)
    found = explainer.explain(data.iloc[[0]])
    assert not found.has_answer[0]


# Words that no split names


def on_rent(**changes: Any) -> Forest:
    """Says "yes" to all but "rent", the one label that it has."""
    categories = Categories.of_sets((("rent",), None), [[0], None, None])
    return stump(0.0, categories=categories, takes_missing=True, **changes)


DATA = np.array([["rent", 0.0], ["own", 1.0], ["free", 2.0]], object)


def test_a_word_of_the_data_is_a_value() -> None:
    explainer = Explainer(on_rent(), DATA)
    assert explainer.labels[0] == ("rent", "own", "free")
    found = explainer.explain(DATA[:1])
    assert found.status[0].name == "OPTIMAL"
    assert found.counterfactuals[0, 0] in ("own", "free")
    assert Explainer(on_rent(), scale=None).explain(DATA[:1]).status[0].name == "INFEASIBLE"
    castle = explainer.explain(np.array([["castle", 0.0]], object))
    assert castle.counterfactuals[0, 0] == "rent"


def test_constraints_may_name_words_of_the_data() -> None:
    found = Explainer(on_rent(), DATA, constraints=OneOf(0, ["free", "rent"])).explain(DATA[:1])
    assert found.counterfactuals[0, 0] == "free"
    with pytest.raises(InvalidInput, match="about categories of 'feature 0': rent, own, free, got 'castle'"):
        Explainer(on_rent(), DATA, constraints=OneOf(0, ["castle"]))


def test_a_certificate_with_words_of_the_data_holds_for_the_model_without_them() -> None:
    explainer = Explainer(on_rent(), DATA)
    certificate = explainer.explain(DATA[:1])[0].certificate()
    assert certificate["words"] == [[0, ["own", "free"]]]
    for forest in (on_rent(), explainer.forest):
        assert verify(certificate, forest, reprove=True).holds
    bent = certificate | {"words": [[7, ["own"]]]}
    with pytest.raises(InvalidInput, match="not whole"):
        verify(bent, on_rent())


def test_words_go_where_an_unseen_category_goes() -> None:
    forest = on_rent()
    more = with_words(forest, {0: ["own", "free"]})
    assert words_added(more) == {0: ("own", "free")}
    assert words_added(forest) == {}
    members = [set(more.categories.members(int(n))) for n in more.categories.set_of_node if n >= 0]
    assert members == [{0}]
    other = with_words(stump(0.0, categories=Categories.of_sets((("rent",), None), [[1], None, None])), {0: ["own"]})
    assert set(other.categories.members(int(other.categories.set_of_node[0]))) == {1, 2}


def test_names_are_no_categories() -> None:
    many = np.array([[f"n{k}", float(k)] for k in range(1200)], object)
    assert Explainer(on_rent(), many).labels[0] == ("rent",)


def test_a_live_model_is_asked_about_words_it_has_not_seen() -> None:
    own = pd.Series(pd.Categorical(["rent", "own"] * 30))
    data = pd.DataFrame({"housing": own, "income": np.arange(60.0)})
    model = HistGradientBoostingClassifier(min_samples_leaf=5, categorical_features="from_dtype")
    model.fit(data, own == "rent")
    more = data.assign(housing=own.astype(object).where(data["income"] != 7.0, "castle").astype("category"))
    explainer = Explainer(model, more, constraints="housing in {castle, rent}")
    assert explainer.labels[0] == ("own", "rent", "castle")
    assert explainer.explain(data.iloc[[0]]).counterfactuals["housing"].tolist() == ["castle"]


def test_words_in_files(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("housing,income\nrent,0\nown,1\n")
    forest = on_rent(feature_names=("housing", "income"))
    table = read_table(tmp_path / "rows.csv", coding=Coding.of(forest))
    explainer = Explainer(forest, table)
    assert explainer.labels[0] == ("rent", "own")
    found = explainer.explain(table)
    assert found.status[0].name == "OPTIMAL"
    assert found.counterfactuals[:, 0].tolist() == ["own", "rent"]


# CatBoost


def catboost(folder: Path, data: pd.DataFrame, y: Any, words: list[str]) -> tuple[Any, Forest]:
    from catboost import CatBoostClassifier, Pool

    pool = Pool(data, y, cat_features=words)
    model = CatBoostClassifier(
        iterations=5, depth=2, learning_rate=0.7, verbose=0, one_hot_max_size=50, thread_count=1, random_seed=0,
        allow_writing_files=False,
    ).fit(pool)  # fmt: skip
    model.save_model(str(folder / "model.json"), format="json", pool=pool)
    return model, load_model(folder / "model.json")


def test_every_word_of_a_catboost_file_with_one_column_of_words_is_a_value(tmp_path: Path) -> None:
    data = pd.DataFrame({"k": ["a", "b", "c"] * 20, "x": np.arange(60.0)})
    model, forest = catboost(tmp_path, data, data["k"] == "b", ["k"])
    assert sorted(forest.categories.labels[0]) == ["a", "b", "c"]
    found = Explainer(forest, scale=None).explain(data.iloc[[1]])
    assert found.status[0].name == "OPTIMAL"
    assert str(model.predict(found.counterfactuals)[0]) == "False"


def test_catboost_words_of_the_data_are_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"k": rng.choice(["a", "b", "c"], 90), "w": rng.choice(["p", "q", "r"], 90)})
    data["x"] = np.arange(90.0)
    model, forest = catboost(tmp_path, data, data["k"] == "b", ["k", "w"])
    explainer = Explainer(forest, data)
    assert sorted(explainer.labels[0] or ()) == ["a", "b", "c"]
    assert sorted(explainer.labels[1] or ()) == ["p", "q", "r"]
    row = data[data["k"] == "b"].iloc[[0]]
    found = explainer.explain(row)
    assert found.status[0].name == "OPTIMAL"
    assert found.counterfactuals["k"].iloc[0] in ("a", "c")
    assert str(model.predict(found.counterfactuals)[0]) == "False"


@pytest.mark.parametrize("values", [[3, 5, 7], [True, False]])
def test_catboost_reads_whole_numbers_as_what_they_print(tmp_path: Path, values: list[Any]) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"k": rng.choice(values, 90), "x": rng.normal(size=90)})
    model, forest = catboost(tmp_path, data, data["k"] == values[0], ["k"])
    found = Explainer(forest, data).explain(data)
    said = model.predict(data).astype(str).reshape(-1)
    assert [str(own) for own in found.predicted] == said.tolist()
    assert found.has_answer.all()
    assert found.counterfactuals["k"].dtype == data["k"].dtype
    assert (model.predict(found.counterfactuals).astype(str).reshape(-1) != said).all()
    import polars as pl

    named = Explainer(forest, data, constraints=OneOf("k", values)).explain(data)
    assert named.has_answer.all()
    frame = pl.DataFrame(data[["k", "x"]].to_dict("list"))
    again = Explainer(forest, frame).explain(frame)
    assert again.counterfactuals.schema == frame.schema
    assert again.counterfactuals["k"].to_list() == found.counterfactuals["k"].tolist()


# Numbers as categories


@pytest.mark.parametrize("suffix", ["array", "csv"])
def test_numbers_of_the_data_are_values(tmp_path: Path, suffix: str) -> None:
    categories = Categories.of_sets(((3,), None), [[0], None, None])
    model = stump(0.0, categories=categories, feature_names=("k", "x"))
    rows: Any = pd.DataFrame({"k": [3.0, 5.0, 12.0], "x": [0.0, 1.0, 2.0]})
    if suffix == "csv":
        rows.to_csv(tmp_path / "rows.csv", index=False)
        rows = read_table(tmp_path / "rows.csv", coding=Coding.of(model))
    explainer = Explainer(model, rows, constraints="k in {3, 12}")
    assert explainer.labels[0] == (3, 5, 12)
    found = explainer.explain(rows)
    assert [found[i].to_dict()["counterfactual"][0] for i in (0, 1)] == [12, 3]
