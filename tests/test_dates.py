"""Dates, from the table to the letter: the model counts them, people read them, and proofs are among days."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import treefocus
from support.servers import serving
from treefocus import Explainer, Explanations, Feature, Fixed, InvalidInput, OneOf, Range, Schema, UnsupportedModel
from treefocus.adapters import translate
from treefocus.app.service import Service
from treefocus.cli import app
from treefocus.scale.batches import explain_batches
from treefocus.scale.files import explain_file

EPOCH = pd.Timestamp("1970-01-01")
FIRST, N_DAYS = pd.Timestamp("2018-01-01"), 900
Count = Callable[[pd.Series], pd.Series]


def days(since: pd.Series) -> pd.Series:
    return (since - EPOCH).dt.days


COUNTS: dict[str, Count] = {
    "days": days,
    "ordinals": lambda since: since.map(pd.Timestamp.toordinal),
    "excel": lambda since: (since - pd.Timestamp("1899-12-30")).dt.days,
    "seconds": lambda since: (since - EPOCH).dt.total_seconds(),
    "milliseconds": lambda since: since.astype("datetime64[ms]").astype("int64"),
    "microseconds": lambda since: since.astype("datetime64[us]").astype("int64"),
    "nanoseconds": lambda since: since.astype("datetime64[ns]").astype("int64"),
}


def table(n: int = 300, seconds: bool = False) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    late = rng.integers(0, 6, n)
    offset = rng.integers(0, N_DAYS, n)
    since = FIRST + pd.to_timedelta(offset, unit="D")
    if seconds:
        since += pd.to_timedelta(rng.integers(0, 86_400, n), unit="s")
    return pd.DataFrame({"late": late, "since": since}), np.where(late * 120 + offset < 700, "approved", "declined")


def forest(counted: pd.DataFrame, y: Any, **options: Any) -> RandomForestClassifier:
    return RandomForestClassifier(**{"n_estimators": 7, "max_depth": 4, "random_state": 0} | options).fit(counted, y)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    X, y = table()
    return Explainer(forest(X.assign(since=days(X["since"])), y), X)


@pytest.fixture(scope="module")
def found(explainer: Explainer) -> Explanations:
    return explainer.explain(table()[0][:20])


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, HistGradientBoostingClassifier])
def test_the_splits_say_how_the_model_counts(name: str, kind: Any) -> None:
    X, y = table()
    model = kind(random_state=0).fit(X.assign(since=COUNTS[name](X["since"])), y)
    explainer = Explainer(model, X)
    assert (explainer.schema["since"].kind, explainer.schema["since"].counts) == ("date", name)
    found = explainer.explain(X[:12])
    after = found.counterfactuals
    assert after.dtypes.equals(X.dtypes)
    assert (after["since"] == after["since"].dt.normalize()).all()
    before, flipped = (model.predict(rows.assign(since=COUNTS[name](rows["since"]))) for rows in (X[:12], after))
    assert (before != flipped).all()


def test_the_optimum_is_proven_among_days() -> None:
    """Every day and every number of late payments is tried."""
    X, y = table()
    model = forest(X.assign(since=days(X["since"])), y)
    found = Explainer(model, X).explain(X[:15])
    span = X["late"].max() - X["late"].min(), (X["since"].max() - X["since"].min()).days
    every_day = pd.Series(pd.date_range(X["since"].min(), X["since"].max()))
    grid = pd.DataFrame([(late, day) for late in range(X["late"].max() + 1) for day in every_day], columns=X.columns)
    said = model.predict(grid.assign(since=days(grid["since"])))
    for i, one in enumerate(found):
        other = grid[said != one.predicted]
        apart = (other["since"] - X["since"][i]).dt.days.abs() / span[1] + (other["late"] - X["late"][i]).abs() / span[
            0
        ]
        assert one.status.name == "OPTIMAL"
        assert one.distance == pytest.approx(apart.min(), abs=1e-12)


def test_seconds_where_the_data_have_them() -> None:
    X, y = table(seconds=True)
    model = forest(X.assign(since=COUNTS["seconds"](X["since"])), y)
    explainer = Explainer(model, X)
    assert explainer.schema["since"].kind == "datetime"
    after = explainer.explain(X[:10]).counterfactuals
    assert (after["since"] == after["since"].dt.floor("s")).all()
    assert (model.predict(after.assign(since=COUNTS["seconds"](after["since"]))) != model.predict(
        X[:10].assign(since=COUNTS["seconds"](X["since"][:10])))).all()  # fmt: skip


def test_all_libraries_and_kinds_of_cells_give_the_same(explainer: Explainer, found: Explanations) -> None:
    X = table()[0][:20]
    objects = X.assign(since=pd.Series(X["since"].dt.date.tolist(), dtype=object))
    texts = X.assign(since=X["since"].dt.strftime("%Y-%m-%d"))
    polars = pl.DataFrame({"late": X["late"].to_numpy(), "since": X["since"].dt.date.tolist()})
    arrow = pa.table({"late": pa.array(X["late"]), "since": pa.array(X["since"].dt.date.tolist(), pa.date32())})
    zoned = X.assign(since=X["since"].dt.tz_localize("UTC"))
    for rows in (objects, texts, polars, arrow, zoned, polars.lazy()):
        other = explainer.explain(rows)
        np.testing.assert_array_equal(other.points, found.points)
    assert explainer.explain(polars).counterfactuals.schema == polars.schema
    assert explainer.explain(arrow).counterfactuals.schema == arrow.schema
    assert explainer.explain(zoned).counterfactuals["since"].dt.tz is not None
    assert explainer.explain(objects).counterfactuals["since"].map(type).eq(date).all()
    assert explainer.explain(texts).counterfactuals["since"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    one = explainer.explain(X.iloc[0])
    assert one[0].changes == found[0].changes
    assert explainer.explain({"late": int(X["late"][0]), "since": "2018-01-05"})[0].status.has_answer


def test_a_missing_date_is_a_missing_value() -> None:
    X, y = table()
    X.loc[::9, "since"] = pd.NaT
    model = HistGradientBoostingClassifier(random_state=0).fit(X.assign(since=COUNTS["seconds"](X["since"])), y)
    found = Explainer(model, X, constraints="late fixed").explain(X[X["since"].isna()])
    after = found.counterfactuals
    is_kept = after["since"].isna() | (after["since"] == after["since"].dt.normalize())
    assert found.has_answer.any()
    assert is_kept.all()
    assert "2018 instead of unknown" in " ".join(one.to_text() for one in found)
    one = Explainer(model, X, constraints="late fixed").explain({"late": int(X["late"][0]), "since": None})
    assert isinstance(one.counterfactuals["since"][0], datetime)


def test_answers_tell_dates_in_words(found: Explanations) -> None:
    one = next(one for one in found if [change.feature for change in one.changes] == ["since"])
    (change,) = one.changes
    assert isinstance(change.before, date)
    assert isinstance(change.shown, date)
    assert not isinstance(change.shown, datetime)
    assert change.days == (change.shown - change.before).days
    month = f"{change.shown:%B}"
    assert f"since were {change.shown.day} {month} {change.shown.year} instead of" in one.to_text()
    assert " läge" in one.to_text(language="de")
    assert "au lieu du" in one.to_text(language="fr")
    letter = one.to_letter()
    assert f"{change.shown.day} {month} {change.shown.year}" in letter
    assert f"{abs(change.days):,.0f} day" in letter
    frame = found.to_frame()
    assert all(isinstance(cell, date) for cell in frame["since"])
    assert "days" in str(found.summary())


@pytest.mark.parametrize(("code", "text"), [
    ("en", "1 March 2020, 14:30"), ("de", "1. März 2020, 14:30 Uhr"), ("fr", "1er mars 2020 à 14:30"),
])  # fmt: skip
def test_every_language_writes_dates(code: str, text: str) -> None:
    from treefocus.render.phrases import catalogue

    assert catalogue(code).date(datetime(2020, 3, 1, 14, 30)) == text


def test_json_holds_dates_and_comes_back(found: Explanations, tmp_path: Path) -> None:
    record = json.loads(found.to_json())
    jsonschema.validate(record, json.loads((Path(__file__).parents[1] / "docs/schema/explanations-1.json").read_text()))
    assert all(datetime.fromisoformat(row["values"][1]) for row in record["rows"])
    again = Explanations.from_json(found.to_json())
    np.testing.assert_array_equal(again.points, found.points)
    assert [one.changes for one in again] == [one.changes for one in found]
    assert again[0].to_text() == found[0].to_text()


CONSTRAINED = {
    "text": ("since >= 2018-06-01", lambda cell: cell >= pd.Timestamp("2018-06-01")),
    "strict": ("since < 2018-06-01", lambda cell: cell < pd.Timestamp("2018-06-01")),
    "range": (Range("since", date(2018, 3, 1), date(2018, 9, 1)), lambda cell: cell.year == 2018),
    "one of": ("since in {2018-03-01, 2019-07-01}", lambda cell: cell.day == 1),
    "one of, objects": (OneOf("since", [date(2018, 3, 1), datetime(2019, 7, 1)]), lambda cell: cell.day == 1),
    "implied": ("if late >= 1 then since <= 2018-02-01", None),
}


@pytest.mark.parametrize(("constraint", "is_kept"), CONSTRAINED.values(), ids=CONSTRAINED.keys())
def test_constraints_on_dates(constraint: Any, is_kept: Callable[[Any], bool] | None) -> None:
    X, y = table()
    explainer = Explainer(forest(X.assign(since=days(X["since"])), y), X, constraints=[constraint])
    found = explainer.explain(X[:20])
    assert found.has_answer.any()
    for cells in found.counterfactuals[found.has_answer].itertuples():
        if is_kept is None:
            assert cells.late < 1 or cells.since <= pd.Timestamp("2018-02-01")
        else:
            assert is_kept(cells.since)
    (own,) = explainer.constraints
    assert treefocus.explain(forest(X.assign(since=days(X["since"])), y), X[:3], X, constraints=own.to_text())


def test_the_days_between_two_dates() -> None:
    rng = np.random.default_rng(1)
    begin = FIRST + pd.to_timedelta(rng.integers(0, 400, 200), unit="D")
    X = pd.DataFrame({"begin": begin, "end": begin + pd.to_timedelta(rng.integers(1, 90, 200), unit="D")})
    counted = X.apply(COUNTS["seconds"])
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(counted, (X["end"] - FIRST).dt.days > 230)
    found = Explainer(model, X, constraints=["begin <= end", "end - begin <= 100"]).explain(X[:15])
    assert found.has_answer.all()
    between = (found.counterfactuals["end"] - found.counterfactuals["begin"]).dt.days
    assert between.between(0, 100).all()
    with pytest.raises(InvalidInput, match=r"^Linear must be about no dates, or about the days between dates"):
        Explainer(model, X, constraints=["begin + end <= 100"])


def test_numbers_that_are_dates_by_the_schema() -> None:
    X, y = table()
    counted = X.assign(since=COUNTS["ordinals"](X["since"]))
    schema = Schema([Feature("late", "integer"), Feature("since", "date", counts="ordinals", low="2018-02-01")])
    found = Explainer(forest(counted, y), counted, schema=schema).explain(counted[:10])
    assert found.counterfactuals.dtypes.equals(counted.dtypes)
    assert all(isinstance(cell, date) for cell in found.to_frame()["since"])
    moved = [change.shown for one in found for change in one.changes if change.feature == "since"]
    assert moved
    assert min(moved) >= date(2018, 2, 1)


def test_a_schema_with_dates_is_kept_in_a_file(tmp_path: Path) -> None:
    X = table()[0]
    schema = Schema.infer(X).with_feature("since", low=date(2018, 1, 1), high="2019-12-31", counts="seconds")
    assert schema["since"].kind == "date"
    schema.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == schema
    assert "from 2018-01-01 to 2019-12-31" in str(schema)
    assert Schema.infer(table(seconds=True)[0])["since"].kind == "datetime"


PIPELINES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "days": lambda frame: frame.apply(lambda column: (column - pd.Timestamp("2010-01-01")).dt.days),
    "ordinals": lambda frame: frame.apply(lambda column: column.map(pd.Timestamp.toordinal)),
    "years": lambda frame: frame.apply(lambda column: column.dt.year),
    "whole numbers": lambda frame: frame.astype("int64"),
}


@pytest.mark.parametrize("function", PIPELINES.values(), ids=PIPELINES.keys())
def test_pipelines_of_dates(function: Any) -> None:
    X, y = table()
    before = make_column_transformer((FunctionTransformer(function), ["since"]), (StandardScaler(), ["late"]))
    model = make_pipeline(before, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(X, y)
    found = Explainer(model, X).explain(X[:10])
    assert found.has_answer.all()
    assert (model.predict(found.counterfactuals) != model.predict(X[:10])).all()
    assert all(isinstance(cell, date) for cell in found.to_frame()["since"])


def test_a_function_of_dates_that_does_not_grow_is_refused() -> None:
    X, y = table()
    months = FunctionTransformer(lambda frame: frame.apply(lambda column: column.dt.month))
    model = make_pipeline(make_column_transformer((months, ["since"])), DecisionTreeClassifier()).fit(X, y)
    with pytest.raises(UnsupportedModel, match="neither grows nor falls with its number"):
        Explainer(model, X)


def test_files_of_dates_at_the_command_line(tmp_path: Path) -> None:
    X, y = table()
    model = forest(X.assign(since=days(X["since"])), y)
    translate(model).forest.save(tmp_path / "model.json")
    X.to_csv(tmp_path / "train.csv", index=False)
    X[:5].to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["explain", tmp_path / "model.json", tmp_path / "rows.csv", "--train", tmp_path / "train.csv"]
    arguments += ["--range", "since:2018-02-01:", "-o", tmp_path / "answers.csv"]
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    answers = pd.read_csv(tmp_path / "answers.csv", parse_dates=["since"])
    moved = answers["since"] != X["since"][:5]
    assert (answers["since"][moved] >= pd.Timestamp("2018-02-01")).all()
    wrong = (tmp_path / "rows.csv").read_text(encoding="utf-8").replace("2018", "18", 1)
    (tmp_path / "rows.csv").write_text(wrong, encoding="utf-8")
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code != 0
    assert "is not a number" in result.output.replace("\n", " ")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_streams_of_dates(explainer: Explainer, found: Explanations, tmp_path: Path, suffix: str) -> None:
    X = table()[0][:20]
    path = tmp_path / f"rows.{suffix}"
    X.to_csv(path, index=False) if suffix == "csv" else X.to_parquet(path)
    explain_file(explainer, path, tmp_path / "answers")
    answers = pd.concat(pd.read_parquet(part) for part in sorted((tmp_path / "answers").glob("*.parquet")))
    assert answers["since"].tolist() == found.to_frame()["since"].tolist()
    first = answers["changes"].iloc[0][0]
    told = found[0].changes[0]
    assert first["category_after" if told.days is not None else "after"] == (
        told.shown.isoformat() if told.days is not None else told.shown
    )


def test_a_bad_date_costs_its_row_only(explainer: Explainer) -> None:
    batch = pa.RecordBatch.from_pydict({"late": [1, 2, 3], "since": ["2018-05-01", "soon", None]})
    (answers,) = explain_batches(explainer, [batch])
    status, reasons = answers.column("status").to_pylist(), answers.column("reason").to_pylist()
    assert status[0] in ("OPTIMAL", "BOUNDED")
    assert reasons[1] == "column 'since': 'soon' is not a date"


def test_dates_over_the_rest_api(tmp_path: Path) -> None:
    X, y = table()
    service = Service(forest(X.assign(since=days(X["since"])), y), X, X[:5])
    with serving(service, tmp_path) as client:
        row = {"late": 1, "since": "2018-05-01"}
        answer = client.post("/v1/explain", json={"rows": [row], "constraints": ["since >= 2018-02-01"]}).json()
        (told,) = answer["rows"]
        assert told["values"] == [1.0, "2018-05-01"]
        assert date.fromisoformat(told["counterfactual"][1]) >= date(2018, 2, 1)
        wrong: httpx.Response = client.post("/v1/explain", json={"rows": [row | {"since": "May"}]})
        assert wrong.status_code == 422
        assert 'a date such as \\"2020-01-31\\"' in wrong.text


MISUSE: dict[str, tuple[Callable[[], Any], str]] = {
    "counts of a number": (lambda: Feature("a", counts="days"), r"^Feature\('a'\)\.counts must be given for kinds"),
    "unknown counts": (lambda: Feature("a", "date", counts="weeks"), r"counts must be one of days, ordinals"),
    "no date": (lambda: Feature("a", "date", low="soon"), r"^Feature\('a'\)\.low must be a date such as 2020-01-31"),
    "the wrong way": (lambda: Feature("a", "date", low="2020-01-02", high="2020-01-01"), r"low must be at most"),
    "no order": (lambda: Range("a", date(2020, 1, 2), date(2020, 1, 1)), r"from a low to a high value"),
    "a number and a date": (lambda: Range("a", 3, date(2020, 1, 1)), r"from a low to a high value"),
    "a share": (lambda: Range("a", date(2020, 1, 1), date(2020, 1, 2), relative=True), r"from a number to a number"),
    "not counted": (lambda: _of_numbers(), r"column 'since' holds dates, and nobody has said how the model counts"),
    "no dates": (lambda: _of_numbers("late >= 2020-01-01"), r"for 'late' holds no dates, got 2020-01-01"),
    "other dates": (lambda: _far_off(), r"holds dates, and the model splits it between"),
    "not said": (lambda: _unsaid(), r"^Feature\('since'\)\.counts must be one of"),
}  # fmt: skip


def _of_numbers(*constraints: str) -> Any:
    X, y = table()
    counted = X.assign(since=days(X["since"]))
    return Explainer(forest(counted, y), counted, constraints=constraints).explain(X[:1])


def _far_off() -> Any:
    X, y = table()
    return Explainer(forest(X.assign(since=days(X["since"]) / 7), y), X)


def _unsaid() -> Any:
    X, y = table()
    counted = X.assign(since=days(X["since"]))
    return Explainer(forest(counted, y), counted, schema=Schema([Feature("late"), Feature("since", "date")]))


@pytest.mark.parametrize(("misuse", "text"), MISUSE.values(), ids=MISUSE.keys())
def test_misuse_says_what_is_wrong(misuse: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        misuse()


def test_fixed_and_growing_dates(explainer: Explainer) -> None:
    X, y = table()
    model = forest(X.assign(since=days(X["since"])), y)
    fixed = Explainer(model, X, constraints=[Fixed("since")]).explain(X[:15])
    assert (fixed.counterfactuals["since"][fixed.has_answer] == X["since"][:15][fixed.has_answer]).all()
    later = Explainer(model, X, constraints="since increasing").explain(X[:15])
    assert (later.counterfactuals["since"][later.has_answer] >= X["since"][:15][later.has_answer]).all()
    near = timedelta(days=30)
    weighted = Explainer(model, X, weights={"since": 50.0}).explain(X[:15])
    assert (abs(weighted.counterfactuals["since"] - X["since"][:15]) < near).mean() > 0.5
