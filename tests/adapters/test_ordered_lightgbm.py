"""LightGBM takes ordered pandas categories as numbers; to people they are words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from treefocus import Explainer, Increasing, InvalidInput, UnsupportedModel, load_model
from treefocus.adapters import translate
from treefocus.adapters.lightgbm_categories import columns_of_codes

SIZES = ["S", "M", "L", "XL"]


def people(n: int = 120, missing: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({
        "income": rng.normal(size=n),
        "size": pd.Categorical(rng.choice(SIZES, n), SIZES, ordered=True),
        "town": pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n)),
        "age": rng.integers(18, 80, n),
    })  # fmt: skip
    data.loc[rng.random(n) < missing, "size"] = np.nan
    return data


def fitted(data: pd.DataFrame, **options: Any) -> LGBMClassifier:
    wanted = data["size"].isin(["L", "XL"]) | (data["income"] > 1)
    settings = {
        "n_estimators": 8,
        "min_child_samples": 3,
        "min_data_per_group": 3,
        "verbose": -1,
        "n_jobs": 1,
    } | options
    return LGBMClassifier(**settings).fit(data, wanted)


@pytest.mark.parametrize("columns", [["income", "size"], ["income", "size", "town"], ["size", "age", "town", "income"]])
@pytest.mark.parametrize(("missing", "options"), [(0.0, {}), (0.3, {}), (0.0, {"zero_as_missing": True})])
def test_an_ordered_category_is_a_word(columns: list[str], missing: float, options: dict[str, Any]) -> None:
    data = people(missing=missing)[columns]
    model = fitted(data, **options)
    explainer = Explainer(model, data)
    assert explainer.labels[columns.index("size")] == tuple(SIZES)
    rows = data.copy()
    rows["size"] = rows["size"].cat.add_categories("castle")
    rows.loc[rows.index[:5], "size"] = "castle"
    found = explainer.explain(rows)
    assert found.predicted.tolist() == model.predict(rows).tolist()
    reached = found.counterfactuals[found.has_answer]
    assert (model.predict(reached) != model.predict(rows[found.has_answer])).all()


def test_its_order_is_known_from_the_table() -> None:
    data = people()[["income", "size"]]
    small = data[(data["size"] == "S") & (data["income"] < 0)].iloc[[0]]
    up = Explainer(fitted(data), data, constraints=[Increasing("size"), "income fixed"]).explain(small)
    assert up.counterfactuals["size"].iloc[0] in ("L", "XL")
    with pytest.raises(InvalidInput, match="needs an order"):
        Explainer(fitted(data), data.astype({"size": object}), constraints=Increasing("size"))


def test_a_file_says_which_column_it_is_where_only_one_fits(tmp_path: Path) -> None:
    data = people()[["income", "size", "town"]]
    model = fitted(data)
    model.booster_.save_model(tmp_path / "model.txt")
    forest = load_model(tmp_path / "model.txt")
    assert forest.categories.labels == (None, tuple(SIZES), ("Bonn", "Kiel", "Ulm"))
    assert columns_of_codes((tmp_path / "model.txt").read_text()) == [1]


def test_a_model_that_does_not_say_which_column_it_is_is_refused_with_what_to_do() -> None:
    data = people()[["income", "size"]].assign(rooms=np.random.default_rng(1).integers(0, 4, 120))
    with pytest.raises(UnsupportedModel, match=r"does not say which columns they are; make them unordered, X\[name\]"):
        translate(fitted(data))
