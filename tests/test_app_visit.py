"""What the page rests on, without a browser: finding rows, a visitor's choices, ways out, schema files, the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from typer.testing import CliRunner

from servers import command
from treefocus import Decreasing, Feature, Fixed, Increasing, InvalidInput, Range, Schema, loans
from treefocus.app.demo import demo_service
from treefocus.app.messages import ExplainBody
from treefocus.app.rows import find
from treefocus.app.running import default_jobs_folder
from treefocus.app.schema_file import read_schema
from treefocus.app.service import Question, Service
from treefocus.app.visit import DOWN, FIXED, FREE, UP, Visit, checked_seconds
from treefocus.app.workers import Errand
from treefocus.cli import app
from treefocus.tables import as_table, write_columns


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


# --- finding rows


def test_rows_are_found_by_conditions_numbers_and_class(service: Service) -> None:
    income, late = (service.rows.values[:, loans.SCHEMA.index(name)] for name in ("income", "late_payments"))
    assert find(service) == list(range(1500))
    assert find(service, "income>50,000 late_payments=0") == np.flatnonzero((income > 50_000) & (late == 0)).tolist()
    assert find(service, "income<=20000") == np.flatnonzero(income <= 20_000).tolist()
    assert find(service, "income>=20000 income<21000") == np.flatnonzero((income >= 20e3) & (income < 21e3)).tolist()
    declined = find(service, predicted="declined")
    assert [service.predictions.labels[i] for i in declined] == ["declined"] * len(declined)
    assert 17 in find(service, "17")
    assert find(service, "123456789") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("incme>1", "Did you mean 'income'?"),
        ("rich", "'rich' is neither a number nor a condition such as age>1."),
        ("income>much", "income must be compared with a number, got 'much'."),
    ],
)
def test_what_cannot_be_found_is_told(service: Service, text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        find(service, text)
    assert told in str(caught.value)


# --- a visit


def test_a_visit_begins_with_a_row_to_ask_about_and_the_servers_rules(service: Service) -> None:
    visit = Visit.begin(service)
    assert visit.prediction[0] == "declined"
    assert set(visit.question().constraints) == set(loans.CONSTRAINTS)
    moves = dict(zip(loans.SCHEMA.names, (rule.moves for rule in visit.rules), strict=True))
    assert (moves["age"], moves["income"], moves["loan_amount"], moves["loan_years"]) == (FIXED, UP, DOWN, FREE)


def test_rules_become_constraints(service: Service) -> None:
    visit = Visit.begin(service)
    for rule in visit.rules:
        rule.moves = FREE
    visit.rules[0].moves, visit.rules[1].moves, visit.rules[2].moves = FIXED, UP, DOWN
    visit.rules[3].low, visit.rules[4].high = 2.0, 9.0
    assert visit.question().constraints == (
        Fixed("age"), Increasing("dependants"), Decreasing("income"), Range("employment_years", low=2.0),
        Range("savings", high=9.0),
    )  # fmt: skip
    visit.rules[3].high = 1.0
    with pytest.raises(InvalidInput, match="from a low to a high value"):
        visit.question()


def test_another_row_makes_the_answers_old(service: Service) -> None:
    visit = Visit.begin(service)
    visit.answers = service.ways(visit.row, visit.question(), 1, Errand(), visit.label)
    visit.type_in(visit.values + 1)
    assert visit.answers == []
    assert visit.label == "typed in"


def test_a_question_survives_the_way_through_a_job(service: Service) -> None:
    question = Question(
        "cosine", (*loans.CONSTRAINTS, Range("savings", low=3.0), Range(2, high=9.0)), "approved", "exact", 0.3, 7
    )
    body = ExplainBody.of(question, [[1.0] * 12])
    assert ExplainBody.model_validate_json(body.model_dump_json()).question(service.asked) == question


@pytest.mark.parametrize("seconds", [None, 0.0, -1.0, 11.0, float("nan")])
def test_a_time_limit_must_be_sensible(seconds: float | None) -> None:
    assert checked_seconds(10.0, 10.0) == 10.0
    with pytest.raises(InvalidInput, match="The time limit must be above 0 and at most 10 seconds"):
        checked_seconds(seconds, 10.0)


def test_ways_out_use_different_features_and_the_closest_comes_first(service: Service) -> None:
    visit = Visit.begin(service)
    alone = service.explain(visit.row, visit.question())
    ways = service.ways(visit.row, visit.question(), 4, Errand(), "x")
    used = [frozenset(change.feature for change in way[0].changes) for way in ways]
    assert 2 <= len(ways) <= 4
    assert len(set(used)) == len(used)
    distances = [way[0].distance for way in ways]
    assert distances == sorted(distances)
    assert distances[0] == alone[0].distance
    assert all(way[0].label == "x" for way in ways)


# --- models of other kinds


def test_a_regression_is_refused_with_a_sentence() -> None:
    rows = np.arange(20.0).reshape(-1, 1)
    model = RandomForestRegressor(3).fit(rows, rows[:, 0])
    with pytest.raises(InvalidInput, match="models that predict classes"):
        Service(model, rows, as_table(rows, "rows"))


# --- files and the command


SCHEMA = """
subject: your application
outcomes: {approved: approved, declined: declined}
features:
  - {name: age, kind: integer, unit: years, unit_one: year, label: your age}
  - late_payments
translations:
  de: {features: [age, late_payments], subject: Ihr Antrag}
"""


def test_a_schema_is_read_from_yaml_and_json(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    schema = read_schema(tmp_path / "schema.yaml")
    assert schema.features == (
        Feature("age", "integer", "years", unit_one="year", label="your age"), Feature("late_payments"),
    )  # fmt: skip
    assert schema.outcomes == {"approved": "approved", "declined": "declined"}
    assert schema.in_language("de") == Schema([Feature("age"), Feature("late_payments")], "Ihr Antrag")
    record = {"features": ["a"], "outcomes": [[0, "refused"], [1, "granted"]]}
    (tmp_path / "schema.json").write_text(json.dumps(record), encoding="utf-8")
    assert read_schema(tmp_path / "schema.json").outcomes == {0: "refused", 1: "granted"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("schema.txt", "", "a file whose name ends in .yaml, .yml, .json"),
        ("schema.yaml", "features: [", "is not a schema"),
        ("schema.yaml", "3", "is not a schema"),
        ("schema.json", "{", "is not a schema"),
        ("schema.json", "{}", "is not a schema: 'features'"),
        ("schema.json", '{"features": [{"nom": "a"}]}', "is not a schema"),
        ("schema.json", '{"features": [], "colour": 1}', "A schema must be made of features, subject"),
        ("schema.json", '{"features": ["a", "a"]}', "a more than once"),
    ],
)
def test_a_schema_that_cannot_be_read_is_told(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_schema(tmp_path / name)
    assert told in str(caught.value)
    with pytest.raises(InvalidInput, match="There is no file"):
        read_schema(tmp_path / "other" / "schema.json")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "serve needs MODEL and --data, or --demo."),
        (("--demo", "--data", "x.csv"), "--demo brings its own model and rows"),
        (("--demo", "--host", "0.0.0.0"), "--token must be given when --host is not one of"),
        (("--demo", "--token", "short"), "--token must be at least 16 characters long, got 5."),
        (("--demo", "--time-limit", "11"), "time_limit must be at most 10 seconds a row, got 11."),
        (("--demo", "--distance", "crow"), "distance must be one of euclidean"),
        (("--demo", "--max-seconds", "0"), "Limits.seconds_per_row must be above 0, got 0.0."),
        (("model.pkl", "--data", "x.csv"), "model.pkl is a pickle"),
        (("model.json", "--data", "x.csv"), "There is no file model.json."),
    ],
)
def test_misuse_of_the_command_is_one_line(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["serve", *arguments, "--jobs", str(tmp_path / "jobs")])
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output


def test_a_model_and_rows_from_files_are_served(service: Service, tmp_path: Path) -> None:
    service.forest.save(tmp_path / "model.json")
    for name, rows in (("rows.csv", service.rows.values[:40]), ("train.csv", service.rows.values)):
        write_columns(tmp_path / name, dict(zip(loans.SCHEMA.names, rows.T.tolist(), strict=True)))
    words = {"subject": "the loan", "features": list(loans.SCHEMA.names), "outcomes": {"approved": "granted"}}
    (tmp_path / "schema.json").write_text(json.dumps(words), encoding="utf-8")
    arguments = [
        tmp_path / "model.json", "--data", tmp_path / "rows.csv", "--train", tmp_path / "train.csv", "--schema",
        tmp_path / "schema.json", "--fix", "age", "--range", "income:0:90000", "--target", "approved", "--jobs",
        tmp_path / "jobs", "--token", "0123456789abcdef",
    ]  # fmt: skip
    with command(*arguments) as (_, client):
        assert client.get("/v1/health").status_code == 401
        client.headers["authorization"] = "Bearer 0123456789abcdef"
        card = client.get("/v1/model").json()
        assert card["title"] == "model.json"
        assert card["constraints"] == ["Fixed('age')", "Range(column='income', low=0.0, high=90000.0)"]
        assert card["defaults"]["target"] == "approved"
        answer = client.post("/v1/explain", json={"rows": service.rows.values[4:5].tolist()}).json()
        assert answer["subject"] == "the loan"
        page = client.get("/")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]


def test_jobs_are_kept_where_the_user_keeps_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", str(tmp_path))
    assert default_jobs_folder("0123456789abcdef99") == tmp_path / "treefocus" / "jobs" / "0123456789abcdef"
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert "treefocus" in default_jobs_folder("0" * 64).parts
