"""One-hot groups of the user's own table: one column of categories inside, the user's columns outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from typer.testing import CliRunner

from support.forests import adversarial_rows
from support.interchange import check_same, check_schema
from support.questions import stump
from treefocus import Explainer, Explanations, Feature, Fixed, InvalidInput, Schema, Status, kernels, verify
from treefocus.adapters import translate
from treefocus.cli import app
from treefocus.kernels import reference
from treefocus.problem.targets import Interval
from treefocus.scale.files import explain_file
from treefocus.scale.verification import verify_folder
from treefocus.tables.onehot import Folding
from treefocus.tables.table import as_table

HOMES = ("home_own", "home_rent", "home_free")
JOBS = ("job_a", "job_b")


def people(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Groups whose columns do not stand next to each other."""
    rng = np.random.default_rng(seed)
    home, job = rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows)
    rows = pd.DataFrame({"home_own": home == 0, "age": rng.integers(18, 80, n_rows), "job_a": job == 0})
    rows = rows.assign(home_rent=home == 1, income=rng.normal(30, 9, n_rows), job_b=job == 1, home_free=home == 2)
    rows = rows.astype(dict.fromkeys((*HOMES, *JOBS), "int8"))
    score = (home == 0) * 2.0 + (rows["age"] > 40) + (rows["income"] > 30) - job + rng.normal(0, 0.3, n_rows)
    return rows, (score > 1).to_numpy().astype(int)


SCHEMA = Schema(
    [
        Feature("home", "one-hot", columns=HOMES), Feature("age", "integer"), Feature("income"),
        Feature("job", "one-hot", columns=JOBS, values=("cook", "smith")),
    ]
)  # fmt: skip
MODELS = [RandomForestClassifier(15, max_depth=5, random_state=0), GradientBoostingClassifier(n_estimators=15)]


def is_one_hot(frame: pd.DataFrame) -> bool:
    return all(
        bool((frame[list(group)].isin([0, 1]).all(axis=1) & (frame[list(group)].sum(axis=1) == 1)).all())
        for group in (HOMES, JOBS)
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_folded_forest_is_the_model(model: Any) -> None:
    rows, answer = people()
    source = translate(model.fit(rows, answer))
    folding = Folding.of(SCHEMA, source.forest)
    assert folding is not None
    forest = folding.forest
    assert forest.feature_names == ("home", "age", "income", "job")
    rng = np.random.default_rng(1)
    asked = adversarial_rows(forest, rng, 3000, missing=0.0)
    asked[:, 0], asked[:, 3] = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    raw = folding.unfolded(asked)
    np.testing.assert_array_equal(reference.hard_scores(forest, asked), reference.hard_scores(source.forest, raw))
    np.testing.assert_array_equal(kernels.hard_scores(forest, asked), kernels.hard_scores(source.forest, raw))
    frame = pd.DataFrame(raw, columns=rows.columns)
    assert (forest.classes[kernels.predict(forest, asked)] == model.predict(frame)).all()
    table = folding.table(as_table(rows, "X"))
    np.testing.assert_array_equal(folding.unfolded(table.values), rows.to_numpy(np.float64))


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "cosine", "mahalanobis"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_answers_are_one_hot_and_flip_in_the_model_itself(model: Any, distance: str) -> None:
    rows, answer = people()
    model.fit(rows, answer)
    found = Explainer(model, rows, schema=SCHEMA, distance=distance).explain(rows[:40])
    given = found.counterfactuals
    assert list(given.columns) == list(rows.columns)
    assert given.index.equals(rows.index[:40])
    given = given[found.has_answer]
    assert len(given) >= 30
    assert is_one_hot(given)
    assert (model.predict(given.astype(rows.dtypes)) != model.predict(rows[:40][found.has_answer])).all()


def test_a_group_moves_as_one_and_is_told_as_one() -> None:
    rows, answer = people()
    model = MODELS[0].fit(rows, answer)
    explainer = Explainer(model, rows, schema=SCHEMA, distance="manhattan", constraints=Fixed("age", "income", "job"))
    found = explainer.explain(rows[:60])
    moved = next(one for one in found if one.changes)
    (change,) = moved.changes
    assert change.feature == "home"
    assert {change.before, change.after} <= {"own", "rent", "free"}
    assert f"home were '{change.after}' instead of '{change.before}'" in moved.to_text()
    assert set(found.to_frame()["home"].dropna()) <= {"own", "rent", "free"}
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))
    fixed = Explainer(model, rows, schema=SCHEMA, constraints=Fixed("home", "job")).explain(rows[:20])
    kept = fixed.counterfactuals[fixed.has_answer][[*HOMES, *JOBS]]
    assert (kept == rows[:20][fixed.has_answer][[*HOMES, *JOBS]]).all().all()


def test_every_kind_of_table_is_folded() -> None:
    rows, answer = people()
    model = MODELS[0].fit(rows.to_numpy(np.float64), answer)
    in_order = Schema([Feature("home", "one-hot", columns=("a", "b", "c")), *(Feature(n) for n in "defg")])
    table = rows[[*HOMES, "age", "income", *JOBS]]
    model = RandomForestClassifier(10, random_state=0).fit(table.to_numpy(np.float64), answer)
    matrix = table.to_numpy(np.float64)[:10]
    expected = Explainer(model, table.to_numpy(np.float64), schema=in_order).explain(matrix)
    assert isinstance(expected.counterfactuals, np.ndarray)
    assert expected.counterfactuals.shape == (10, 7)
    named = pl.DataFrame(matrix, schema=list("abcdefg"))
    found = Explainer(model, table.to_numpy(np.float64), schema=in_order).explain(named)
    assert found.counterfactuals.columns == list("abcdefg")
    np.testing.assert_array_equal(found.counterfactuals.to_numpy(), expected.counterfactuals)
    turned = Explainer(model, table.to_numpy(np.float64), schema=in_order).explain(named[:, ::-1])
    assert turned.counterfactuals.columns == list("gfedcba")
    np.testing.assert_array_equal(turned.counterfactuals[:, ::-1].to_numpy(), expected.counterfactuals)


def test_a_row_that_is_not_one_hot_is_named() -> None:
    rows, answer = people()
    explainer = Explainer(MODELS[0].fit(rows, answer), rows, schema=SCHEMA)
    odd = rows[:4].astype("float64")
    odd.loc[0, "home_own"] = odd.loc[0, "home_rent"] = odd.loc[0, "home_free"] = 1.0
    odd.loc[1, list(HOMES)] = 0.0
    odd.loc[2, "job_a"] = np.nan
    found = explainer.explain(odd)
    assert [status is Status.INVALID for status in found.status] == [True, True, True, False]
    assert found.reasons[0] == "the model cannot read home = (1, 1, 1), which is not one-hot"
    assert found.reasons[1] == "the model cannot read home = (0, 0, 0), which is not one-hot"
    assert "missing" in found.reasons[2]
    assert "not one-hot" in found.to_text()
    assert found.counterfactuals.iloc[:3].isna().all().all()


def test_a_regressor_with_groups() -> None:
    rows, _ = people()
    price = 10.0 * rows["home_own"] + rows["income"]
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(rows, price)
    found = Explainer(model, rows, schema=SCHEMA, distance="manhattan").explain(rows[:20], target=Interval(low=45))
    given = found.counterfactuals[found.has_answer]
    assert is_one_hot(given)
    assert (model.predict(given.astype(rows.dtypes)) >= 45).all()


def test_a_guessed_schema_folds() -> None:
    rows, answer = people()
    schema = Schema.infer(rows)
    assert {feature.name for feature in schema.features if feature.kind == "one-hot"} == {"home", "job"}
    found = Explainer(MODELS[0].fit(rows, answer), rows, schema=schema).explain(rows[:10])
    assert is_one_hot(found.counterfactuals[found.has_answer])


def test_groups_that_do_not_fit_are_refused() -> None:
    rows, answer = people()
    model = MODELS[0].fit(rows, answer)
    with pytest.raises(InvalidInput, match=r"^schema must be of the model's 7 columns"):
        Explainer(model, rows, schema=Schema([Feature("home", "one-hot", columns=HOMES), Feature("age")]))
    with pytest.raises(InvalidInput, match=r"is of kind 'categorical', but the model takes that column as a number"):
        Explainer(stump(), schema=Schema([Feature("a", "categorical"), Feature("b")]), scale=None)


def test_certificates_hold_for_the_model_as_it_was_trained(tmp_path: Path) -> None:
    """Groups are written down in the certificate, so that the model's own file is enough to check it."""
    rows, answer = people()
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(rows, answer)
    others = [RandomForestClassifier(4, max_depth=3, random_state=1).fit(rows, answer)]
    translate(model).forest.save(tmp_path / "model.json")
    for also in ([], others):
        one = Explainer(model, rows, schema=SCHEMA, also=also).explain(rows[:1], target=1 - answer[0])[0]
        certificate = json.loads(json.dumps(one.certificate(proof=True)))
        assert certificate["groups"][1] == [3, ["cook", "smith"], list(JOBS)]
        for known, more in ((model, also), (one.problem.model, [own.forest for own in one.problem.also])):
            assert verify(certificate, known, also=more, reprove=True).holds
    certificate = Explainer(model, rows, schema=SCHEMA).explain(rows[:1])[0].certificate(proof=True)
    (tmp_path / "row.json").write_text(json.dumps(certificate))
    for command in (["verify", "--reprove"], ["check"]):
        result = CliRunner().invoke(app, [*command, str(tmp_path / "row.json"), str(tmp_path / "model.json")])
        assert result.exit_code == 0, result.output
    certificate["groups"][1][2] = ["job_a", "elsewhere"]
    assert not verify(certificate, model).holds


def test_a_folder_of_answers_holds_for_the_model_as_it_was_trained(tmp_path: Path) -> None:
    rows, answer = people()
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(rows, answer)
    rows[:20].to_parquet(tmp_path / "rows.parquet")
    explainer = Explainer(model, rows, schema=SCHEMA)
    folder = tmp_path / "out"
    explain_file(explainer, tmp_path / "rows.parquet", folder, certificates=folder / "_certificates", proof=True)
    found = verify_folder(folder, translate(model).forest, sample=20)
    assert found.holds, found.to_text()
    assert "of 20 answers, 20 were asked of the model again" in found.to_text()
    assert verify_folder(folder, explainer.forest, sample=20).holds
