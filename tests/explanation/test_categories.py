"""Categories, missing values, predicted numbers and probabilities in words, tables, pages, pictures and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from support.interchange import check_same, check_schema
from support.questions import stump
from treefocus import Explainer, Explanations, Feature, Fixed, InvalidInput, Schema
from treefocus.model.categories import Categories
from treefocus.problem.targets import Interval, Probability, Score
from treefocus.render.phrases import catalogue, languages
from treefocus.render.table import change_cells, overview_cells, title

mpl.use("agg")
HOUSING = ("own", "rent", "free")
SCHEMA = Schema(
    [
        Feature("income", unit="EUR", label="your income", up="higher", down="lower"),
        Feature("housing", label="your home"),
    ],
    "your application",
    {"no": "declined", "yes": "approved"},
)


def on_housing(**changes: Any) -> Any:
    """ "yes" for those who own; an unseen and a missing home are a "no"."""
    categories = Categories.of_sets([None, HOUSING], [[0], None, None])
    given = {
        "feature": [1, -1, -1], "categories": categories, "takes_missing": True,
        "leaf_value": [[0.0, 1.0], [1.0, 0.0]], "feature_names": ("income", "housing"),
    }  # fmt: skip
    return stump(0.0, **given | changes)


def on_income(**changes: Any) -> Any:
    """ "yes" above 30,000, a missing income is a "no"."""
    given = {"default_left": [True, False, False], "takes_missing": True, "feature_names": ("income", "housing")}
    labels = Categories((None, HOUSING), np.full(3, -1), np.zeros(1), np.empty(0))
    return stump(30_000.0, categories=labels, **given | changes)


ROWS = pd.DataFrame({"income": [20_000.0, 25_000.0, np.nan, 20_000.0], "housing": ["rent", "own", "castle", None]})
DATA = pd.DataFrame({"income": [0.0, 90_000.0, 30_000.0], "housing": ["own", "rent", "free"]})


def categories() -> Explanations:
    return Explainer(on_housing(), DATA, distance="manhattan").explain(ROWS, target="yes")


def test_a_change_of_category_has_its_labels() -> None:
    found = categories()
    change = found[0].changes[0]
    assert (change.before, change.after, change.shown) == ("rent", "own", "own")
    assert change.is_category
    assert change.moved is None
    assert not change.is_down
    assert change.share == 1.0
    assert found[2].changes[0].before == "castle"
    assert found[3].changes[0].before is None
    assert found[1].changes == ()
    assert found.counterfactuals["housing"].tolist() == ["own"] * 4
    assert found.counterfactuals["income"].tolist()[:2] == [20_000.0, 25_000.0]


@pytest.mark.parametrize(
    ("language", "changed", "known"),
    [
        ("en", "housing were 'own' instead of 'rent'", "housing were 'own' instead of unknown"),
        ("de", "housing „own“ statt „rent“ wäre", "housing „own“ statt unbekannt wäre"),
        ("fr", "housing était «\u00a0own\u00a0» au lieu de «\u00a0rent\u00a0»", "au lieu de non renseigné"),
    ],
)
def test_categories_in_sentences_and_letters(language: str, changed: str, known: str) -> None:
    found = categories()
    assert changed in found[0].to_text(language)
    assert known in found[3].to_text(language)
    line = catalogue(language).line_plain.format(feature="housing", after="own", before="rent")
    assert f"  - {line}\n" in found[0].to_letter(language)


def test_a_missing_number_becomes_known() -> None:
    found = Explainer(on_income(), DATA, distance="manhattan", schema=SCHEMA).explain(ROWS, target="yes")
    change = found[2].changes[0]
    assert change.before is None
    assert change.after > 30_000
    assert change.moved is None
    assert "EUR instead of unknown" in found[2].to_text()
    assert "EUR instead of unknown" in found[2].to_letter()
    assert change_cells(found[2])[0][1] == "unknown"
    assert change_cells(found[2])[0][3] == ""
    assert "income unknown → " in overview_cells(found[2])[3]
    check_same(found, Explanations.from_json(found.to_json()))


def test_words_for_the_direction() -> None:
    found = Explainer(on_income(), DATA, schema=SCHEMA).explain(ROWS[:1], target="yes")
    assert "if your income were higher (3" in found[0].to_text()
    assert "EUR instead of 20,000 EUR)" in found[0].to_text()
    down = Explainer(on_income(), DATA, schema=SCHEMA).explain(ROWS[:1].assign(income=40_000.0), target="no")
    assert "your income were lower (30,000 EUR instead of 40,000 EUR)" in down[0].to_text()


def test_categories_in_tables_pages_and_pictures(tmp_path: Path) -> None:
    found = categories()
    assert change_cells(found[0]) == [("housing", "rent", "own", "", "100%")]
    assert overview_cells(found[0])[3] == "housing rent → own"
    page = found.to_html(tmp_path / "page.html", groups="housing").read_text(encoding="utf-8")
    assert "to own" in page
    assert found.summary(groups="housing")["groups"].keys() == {"rent", "own", "castle", None}
    for one in found:
        one.plot()
        one.plot_waterfall()
        one.plot_map(path=False)
        assert one._repr_html_()
    axes = found[0].plot_map("housing", "income")
    assert [label.get_text() for label in axes.get_xticklabels()] == list(HOUSING)
    axes = found.plot()
    assert "to own" in [text.get_text() for text in axes.texts]
    found.plot_distances()
    mpl.pyplot.close("all")


def test_asked_for_categories_are_counted_apart() -> None:
    (asked,) = categories().asked()
    assert (asked.feature, asked.rows, asked.n_up, asked.n_down, asked.n_other) == ("housing", 3, 0, 0, 3)
    assert asked.typical_other == "own"
    assert asked.to_dict()["typical_other"] == "own"


def test_categories_in_frames() -> None:
    found = categories()
    frame = found.to_frame()
    assert frame["housing"].tolist() == ["own"] * 4
    changes = found.changes_frame()
    assert changes["before"].tolist()[:2] == ["rent", "castle"]
    assert changes["after"].tolist() == ["own"] * 3
    assert changes["change"].isna().all()
    polars = Explainer(on_housing(), DATA).explain(pl.from_pandas(ROWS), target="yes")
    assert polars.to_frame()["housing"].to_list() == ["own"] * 4
    assert polars.changes_frame().height == 3
    nothing = Explainer(on_housing(), DATA, constraints=Fixed("housing")).explain(ROWS[:1], target="yes")
    assert nothing.to_frame()["housing"].tolist() == [None] or pd.isna(nothing.to_frame()["housing"][0])


def test_categories_in_json_read_back() -> None:
    found = categories()
    record = json.loads(found.to_json())
    assert record["labels"] == [None, list(HOUSING)]
    assert record["rows"][2]["values"] == [None, "castle"]
    assert record["rows"][0]["counterfactual"] == [20_000.0, "own"]
    assert record["rows"][0]["changes"][0]["before"] == "rent"
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))
    kept = Explainer(on_income(), DATA).explain(ROWS[2:3], target="yes")
    again = Explanations.from_json(kept.to_json())
    assert again[0].answered() == kept[0].answered()
    assert again[0].answered()[1] == "castle"  # type: ignore[index]
    check_same(kept, again)


def house_prices() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"rooms": rng.integers(1, 9, 300), "town": rng.choice(["Bern", "Rome", "Bonn"], 300)})
    price = 50_000.0 * rows["rooms"] + (rows["town"] == "Bern") * 80_000 + rng.normal(0, 4000, 300)
    before = ColumnTransformer([("words", OneHotEncoder(), ["town"])], remainder=StandardScaler())
    model = GradientBoostingRegressor(n_estimators=40, random_state=0)
    return rows, make_pipeline(before, model).fit(rows, price)


def test_a_regression_is_told_in_numbers(tmp_path: Path) -> None:
    rows, pipeline = house_prices()
    explainer = Explainer(pipeline, rows, distance="manhattan")
    asked = rows.iloc[:12]
    found = explainer.explain(asked, target=Interval(low=300_000))
    assert found.is_value
    assert found.has_answer.all()
    np.testing.assert_allclose(found.predicted.astype(float), pipeline.predict(asked))
    np.testing.assert_allclose(found.outcome.astype(float), pipeline.predict(found.counterfactuals))
    assert (found.outcome.astype(float) >= 300_000).all()
    i = int(np.flatnonzero([one.changes != () for one in found])[0])
    one = found[i]
    amount = catalogue("en").amount
    told = f"Row {one.label} is predicted {amount(one.predicted)}. It would be predicted {amount(one.outcome)} if "
    assert one.to_text().startswith(told)
    assert amount(one.outcome) in one.to_letter()
    assert title(one) == f"Row {one.label}: {amount(one.predicted)} → {amount(one.outcome)}"
    assert one.predictions()[0] == pytest.approx(one.predicted)
    assert one.predictions()[-1] == pytest.approx(one.outcome)
    with pytest.raises(InvalidInput, match=r"predicts a number and has no probabilities"):
        one.probabilities()
    one.plot_waterfall()
    one.plot_map(path=False)
    found.plot_distances()
    mpl.pyplot.close("all")
    found.to_html(tmp_path / "page.html")
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))
    assert found.to_frame()["predicted"].tolist() == pytest.approx(found.predicted.tolist())
    for language in languages():
        assert catalogue(language).amount(one.outcome) in one.to_text(language)


def people(n_rows: int = 300) -> tuple[pd.DataFrame, Pipeline]:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"income": rng.lognormal(10, 0.5, n_rows), "housing": rng.choice(HOUSING, n_rows)})
    rows.loc[::7, "income"] = np.nan
    answer = np.where((rows["income"].fillna(0) > 22_000) & (rows["housing"] == "own"), "yes", "no")
    before = ColumnTransformer(
        [("numbers", SimpleImputer(), ["income"]), ("words", OneHotEncoder(handle_unknown="ignore"), ["housing"])]
    )
    return rows, make_pipeline(before, RandomForestClassifier(20, max_depth=5, random_state=0)).fit(rows, answer)


def test_a_probability_is_told_as_one(tmp_path: Path) -> None:
    rows, pipeline = people()
    explainer = Explainer(pipeline, rows, distance="manhattan")
    found = explainer.explain(rows[:15], target=Probability("yes", 0.9))
    assert found.favoured == "yes"
    assert found.likelihood is not None
    own = pipeline.predict_proba(rows[:15])[:, 1]
    np.testing.assert_allclose(found.likelihood[:, 0], own)
    reached = pipeline.predict_proba(found.counterfactuals[found.has_answer])[:, 1]
    np.testing.assert_allclose(found.likelihood[found.has_answer, 1], reached)
    assert (reached >= 0.9).all()
    i = int(np.flatnonzero([one.changes != () for one in found])[0])
    one = found[i]
    before, after = (catalogue("en").share(value, 1) for value in one.likelihood or ())
    told = f"Row {one.label} gets 'yes' with a probability of {before}. It would be {after} if "
    assert one.to_text().startswith(told)
    assert title(one) == f"Row {one.label}: yes {before} → yes {after}"
    assert one.probabilities()[0] == pytest.approx(own[i])
    assert "Wahrscheinlichkeit" in one.to_text("de")
    assert "probabilité" in one.to_letter("fr")
    one.plot_waterfall()
    one.plot_map(path=False)
    found.plot_distances()
    mpl.pyplot.close("all")
    found.to_html(tmp_path / "page.html")
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))


def test_a_raw_score_is_told_as_a_number() -> None:
    forest = stump(decision="above", leaf_value=[[-1.0], [2.5]], base_score=[0.0], tree_weight=None)
    found = Explainer(forest, [[0.0, 0.0], [1.0, 1.0]]).explain([[0.2, 0.3]], target=Score(low=2))
    assert found[0].to_text().startswith("Row 0 is predicted -1. It would be predicted 2.5 if feature 0 were ")


def test_every_answer_of_a_pipeline_flips_in_its_own_predict() -> None:
    rows, pipeline = people()
    for distance in ("euclidean", "manhattan"):
        found = Explainer(pipeline, rows, distance=distance).explain(rows[:60])
        answered = found.has_answer
        assert answered.all()
        assert (pipeline.predict(found.counterfactuals) != pipeline.predict(rows[:60])).all()
        assert found.counterfactuals.dtypes.equals(rows.dtypes)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"), (3.25, "3.25"), (1234567.891, "1,234,568"), (1234.5678, "1,234.57"),
        (-0.000123456789, "-0.000123457"), (1e-9, "1e-09"), (1e20, "1e+20"), (100.0, "100"), (99999.96, "100,000"),
    ],
)  # fmt: skip
def test_amounts(value: float, told: str) -> None:
    assert catalogue("en").amount(value) == told
