"""CatBoost with categories: their words come from the data, or from a file that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV

from support.conformance import Data, differing, hard_rows, score_error, table
from support.conformance_catboost import ROUNDS, with_words
from treefocus import Explainer, InvalidInput, Status, UnsupportedModel, load_model
from treefocus.adapters import catboost_ctr, translate
from treefocus.kernels import predict
from treefocus.tables.labels import Coding
from treefocus.tables.table import as_table

DATA = table("binary", "words")


def pool_of(data: Data) -> catboost.Pool:
    return catboost.Pool(data.X, data.y, cat_features=list(data.categorical))


@pytest.mark.parametrize("parameters", [{}, {"one_hot_max_size": 20}, {"max_ctr_complexity": 4}], ids=str)
def test_answers_flip_the_model_itself(parameters: dict[str, Any]) -> None:
    model = with_words(**parameters)("binary", DATA)
    found = Explainer(model, DATA.X, distance="manhattan").explain(DATA.X[:20])
    assert all(status is Status.OPTIMAL for status in found.status)
    assert (model.predict(found.counterfactuals) != model.predict(DATA.X[:20])).all()


def test_only_categories_may_change_and_they_are_the_datas_own() -> None:
    model = with_words()("binary", DATA)
    explainer = Explainer(model, DATA.X, constraints=["size fixed", "debt fixed", "age fixed"])
    found = explainer.explain(DATA.X[:30])
    answered = [i for i, status in enumerate(found.status) if status.has_answer]
    assert answered
    for name in ("colour", "town", "children"):
        assert set(found.counterfactuals[name].iloc[answered]) <= set(DATA.X[name])
    given = DATA.X[:30].iloc[answered]
    assert (model.predict(found.counterfactuals.iloc[answered]) != model.predict(given)).all()


@pytest.mark.parametrize("task", ["binary", "multi-class", "regression"])
def test_a_file_with_the_training_rows_names_its_categories(task: str, tmp_path: Path) -> None:
    data = table(task, "words")
    model = with_words(max_ctr_complexity=3)(task, data)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json", pool=pool_of(data))
    forest = load_model(path)
    assert set(forest.categories.labels[3]) == set(data.X["town"])
    assert set(forest.categories.labels[1]) == set(data.X["colour"])
    rows = as_table(data.X, "X", Coding.of(forest)).values
    own = np.asarray(model.predict(data.X)).reshape(-1)
    if task == "regression":
        return
    assert (forest.classes[predict(forest, rows)] == own).all()


def test_without_data_the_words_are_unknown() -> None:
    model = with_words()("binary", DATA)
    with pytest.raises(InvalidInput, match="keeps only hashes of them: give data="):
        Explainer(model)


def test_words_that_the_data_do_not_hold_are_refused() -> None:
    model = with_words()("binary", DATA)
    few = DATA.X[DATA.X["town"] != "town A"]
    row = DATA.X[DATA.X["town"] == "town A"][:1]
    found = Explainer(model, few).explain(row)
    assert found.status[0] is Status.INVALID
    assert "town" in found[0].reason


def test_a_file_without_words_says_what_to_do(tmp_path: Path) -> None:
    model = with_words()("binary", DATA)
    for form in ("json", "cbm"):
        model.save_model(str(tmp_path / f"model.{form}"), format=form)
        with pytest.raises(UnsupportedModel, match=r"only their hashes.*pool=Pool"):
            load_model(tmp_path / f"model.{form}")


def test_a_search_around_it_knows_the_words_too() -> None:
    model = catboost.CatBoostClassifier(**ROUNDS | {"iterations": 4})
    search = GridSearchCV(model, {"depth": [2, 3]}, cv=2).fit(DATA.X, DATA.y, cat_features=list(DATA.categorical))
    found = Explainer(search, DATA.X).explain(DATA.X[:3])
    assert (search.predict(found.counterfactuals) != search.predict(DATA.X[:3])).all()
    threshold = FixedThresholdClassifier(FrozenEstimator(search.best_estimator_)).fit(DATA.X, DATA.y)
    with pytest.raises(UnsupportedModel, match="inside a FixedThresholdClassifier is not supported"):
        translate(threshold)


def test_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_words(max_ctr_complexity=4, depth=6)("binary", DATA)
    words = {f: tuple(dict.fromkeys(map(str, DATA.X.iloc[:, f]))) for f in DATA.categorical}
    source = translate(model)
    assert source.with_words is not None
    monkeypatch.setattr(catboost_ctr, "MOST_NODES", 8)
    with pytest.raises(UnsupportedModel, match="more than 8 nodes once its statistics of categories are taken apart"):
        source.with_words(words)
    monkeypatch.setattr(catboost_ctr, "MOST_ENTRIES", 8)
    with pytest.raises(UnsupportedModel, match="max_ctr_complexity=1"):
        source.with_words(words)
    fewer = with_words(max_ctr_complexity=1)("binary", DATA)  # what the refusal says
    monkeypatch.undo()
    assert Explainer(fewer, DATA.X).explain(DATA.X[:1])[0].status.has_answer


def test_words_that_the_model_has_not_seen_are_read_as_it_reads_them() -> None:
    model = with_words(max_ctr_complexity=3)("binary", DATA)
    more = pd.concat([DATA.X, DATA.X[:5].assign(town="a new town", colour="grey")], ignore_index=True)
    words = {f: tuple(dict.fromkeys(map(str, more.iloc[:, f]))) for f in DATA.categorical}
    source = translate(model)
    assert source.with_words is not None
    source = source.with_words(words)
    rows = hard_rows(source, np.random.default_rng(0), 1000)
    assert not differing(source, rows).any()
    assert score_error(source, rows) == 0.0
