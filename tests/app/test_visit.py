"""What the page rests on, without a browser: finding rows, a visitor's choices, ways out, schema files, the command."""

from __future__ import annotations

import json
import os
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from typer.testing import CliRunner

from support.servers import command
from treefocus import (
    AtMost,
    Condition,
    Decreasing,
    Feature,
    Fixed,
    Implies,
    Increasing,
    Interval,
    InvalidInput,
    IsolationScore,
    Linear,
    OneOf,
    Probability,
    Range,
    Schema,
    Score,
    Together,
    loans,
    refits,
)
from treefocus.adapters import translate
from treefocus.app.card import card
from treefocus.app.demo import demo_service
from treefocus.app.messages import ExplainBody
from treefocus.app.question import ExplainOptions
from treefocus.app.rows import find
from treefocus.app.running import default_jobs_folder
from treefocus.app.service import Service
from treefocus.app.visit import DOWN, FIXED, FREE, UP, Visit, checked_count, checked_seconds
from treefocus.app.wish import Wish
from treefocus.cli import app
from treefocus.constraints.kinds import Constraint
from treefocus.constraints.text import as_constraints
from treefocus.tables.files import write_columns
from treefocus.tables.labels import Coding
from treefocus.tables.table import as_table


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


# --- finding rows


def test_rows_are_found_by_conditions_numbers_and_class(service: Service) -> None:
    income, late = (service.rows.values[:, loans.SCHEMA.index(name)] for name in ("income", "late_payments"))
    assert find(service) == list(range(5000))
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


OTHERS = [
    (AtMost(2), Range("income", -0.1, 0.1, relative=True)),
    (Range("income", -0.1, 0.25, relative=True), Range("savings", high=0.07, relative=True)),
    (Linear({"income": 2.0}, at_most=9e4), Linear({"loan_amount": 1.0, 2: -1.5}), AtMost(1, 2, "savings")),
    (Together(2, 3), OneOf(2, [20_000, 2**60 + 1]), Implies(Condition(0, 30.0, 30.0), Condition("income"))),
]


@pytest.mark.parametrize("constraints", OTHERS)
def test_other_constraints_are_kept_as_words(service: Service, constraints: tuple[Constraint, ...]) -> None:
    limited = replace(service.asked, constraints=constraints)
    other = copy(service)
    other.asked = limited
    visit = Visit.begin(other)
    assert visit.question().constraints == limited.constraints
    assert as_constraints(card(other)["constraints"]) == limited.constraints
    visit.more += "income <=\n"
    with pytest.raises(InvalidInput):
        visit.question()


def test_two_constraints_on_one_column_both_hold(service: Service) -> None:
    both = (Range("income", low=10.0), Range("income", high=90_000.0), Fixed("savings"), Increasing("savings", "age"))
    other = copy(service)
    other.asked = replace(service.asked, constraints=both)
    visit = Visit.begin(other)
    assert set(visit.question().constraints) == set(both)
    assert visit.more == "income <= 90000\nsavings and age increasing\n"


def test_another_row_makes_the_answers_old(service: Service) -> None:
    visit = Visit.begin(service)
    visit.found = service.explain(visit.row, visit.question())
    visit.type_in(visit.values + 1)
    assert visit.ways == []
    assert visit.label == "typed in"


def test_a_question_survives_the_way_through_a_job(service: Service) -> None:
    question = ExplainOptions(
        distance="cosine",
        constraints=(*loans.CONSTRAINTS, Range("savings", low=3.0), Range(2, high=9.0)),
        target="approved",
        strategy="exact",
        time_limit=0.3,
        seed=7,
        n=2,
    )
    body = ExplainBody.of(question, [[1.0] * 12])
    assert ExplainBody.model_validate_json(body.model_dump_json()).question(service.asked) == question


@pytest.mark.parametrize("seconds", [0.0, -1.0, 11.0, float("nan")])
def test_a_time_limit_must_be_sensible(seconds: float) -> None:
    assert checked_seconds(10.0, 10.0) == 10.0
    assert checked_seconds(None, 10.0) is None  # a budget of work then, and no clock
    with pytest.raises(InvalidInput, match="The time limit must be above 0 and at most 10 seconds"):
        checked_seconds(seconds, 10.0)


@pytest.mark.parametrize("count", [None, 0.0, -5.0, 2.5, float("inf"), float("nan")])
def test_a_number_of_rows_must_be_one(count: float | None) -> None:
    assert checked_count(30.0) == 30
    with pytest.raises(InvalidInput, match="How many at most must be a whole number above 0, got"):
        checked_count(count)


def test_ways_out_use_different_features_and_the_closest_comes_first(service: Service) -> None:
    visit = Visit.begin(service)
    visit.time_limit = 10.0  # enough for proofs on a busy machine
    visit.is_rounded = False
    alone = service.explain(visit.row, visit.question())
    visit.n_ways = 4
    visit.found = service.explain(visit.row, visit.question(), labels=["x"])
    used = [frozenset(change.feature for change in way.changes) for way in visit.ways]
    assert len(visit.ways) == 4
    assert len(set(used)) == len(used)
    assert visit.ways[0].distance == alone[0].distance
    assert all(way.label == "x" for way in visit.ways)


def test_a_row_without_another_way_says_so(service: Service) -> None:
    visit = Visit.begin(service)
    for rule in visit.rules:
        rule.moves = FIXED
    visit.n_ways = 3
    visit.found = service.explain(visit.row, visit.question())
    assert [way.status.name for way in visit.ways] == ["INFEASIBLE"]


# --- models of other kinds


def test_columns_of_categories_are_asked_by_their_labels() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=400), "colour": pd.Categorical(rng.choice(["red", "blue"], 400))})
    labels = np.where((frame["size"] > 0) & (frame["colour"] == "red"), "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(frame, labels)
    service = Service(model, frame, as_table(np.empty((0, 2)), "rows"))
    asked = service.table_of([{"size": 1.0, "colour": "red"}, [1.0, "blue"], {"colour": None, "size": -1}])
    assert service.predict(asked.values).labels[:2] == ["yes", "no"]
    found = service.explain(asked.part(slice(1, 2)), replace(service.asked, constraints=(Fixed("size"),)))
    assert found.points[0].tolist() == [1.0, 1.0]  # red
    strange = service.explain(service.table_of([[1.0, "green"]]), service.asked)
    assert strange.predicted[0] == "no"
    assert json.loads(strange.to_json())["rows"][0]["values"] == [1.0, "green"]  # as it was written
    with pytest.raises(InvalidInput, match=r"rows\[0\].size must be a number, got 'red'"):
        service.table_of([["red", "red"]])


def test_rows_of_the_server_are_asked_and_shown_as_they_are_written() -> None:
    """The body of a job of the page, and the example of the document, hold categories and not their codes."""
    rows = pd.DataFrame({"size": np.arange(8.0), "colour": pd.Categorical(["red", "blue", "red", None] * 2)})
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1, categorical_features="from_dtype")
    model.fit(rows, rows["colour"] == "red")
    service = Service(model, rows, as_table(rows, "rows", Coding.of(translate(model).forest)))
    assert [service.written(i) for i in (0, 1, 3)] == [[0.0, "red"], [1.0, "blue"], [3.0, None]]
    again = service.table_of([service.written(i) for i in range(8)])
    np.testing.assert_array_equal(again.values, service.rows.values)
    codes = [service.row_of(own) for own in service.rows.values]
    assert [one.row(0) for one in codes] == [again.row(i) for i in range(8)]


def test_only_columns_in_an_order_can_be_told_to_grow() -> None:
    rng = np.random.default_rng(0)
    sizes = pd.Categorical(rng.choice(["S", "M", "L"], 60), ["S", "M", "L"], ordered=True)
    rows = pd.DataFrame(
        {"size": sizes, "town": pd.Categorical(rng.choice(["Ulm", "Bonn"], 60)), "age": np.arange(60.0)}
    )
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", min_samples_leaf=5).fit(
        rows, sizes == "L"
    )
    coding = Coding.of(translate(model).forest)
    service = Service(model, rows, as_table(rows.iloc[:5], "rows", coding))
    assert service.has_order == [True, False, True]


def test_one_hot_groups_are_asked_as_one_column() -> None:
    rng = np.random.default_rng(0)
    choice, size = rng.integers(3, size=400), rng.normal(size=400)
    rows = np.column_stack([size, *(choice == k for k in range(3))]).astype(float)
    model = RandomForestClassifier(10, random_state=0).fit(rows, (choice == 1) & (size > 0))
    columns = ("home_rent", "home_own", "home_free")
    schema = Schema([Feature("size"), Feature("home", "one-hot", columns=columns)])
    service = Service(model, rows, as_table(rows[:50], "rows"), schema=schema)
    asked = service.table_of([{"size": 1.0, "home": "rent"}, [1.0, "own"]])
    assert service.predict(asked.values).labels == [False, True]
    found = service.explain(asked.part(slice(1)), replace(service.asked, constraints=(Fixed("size"),)))
    assert [change.feature for change in found[0].changes] == ["home"]
    np.testing.assert_array_equal(found.points, asked.values[1:])
    assert find(service, "home=rent") == np.flatnonzero(choice[:50] == 0).tolist()


def test_numbers_are_predicted_found_and_asked_for() -> None:
    rows = np.arange(20.0).reshape(-1, 1)
    model = RandomForestRegressor(3, random_state=0).fit(rows, rows[:, 0])
    service = Service(model, rows, as_table(rows, "rows"), asked=ExplainOptions(target=Interval(low=12.0)))
    assert service.predictions.labels == model.predict(rows).tolist()
    assert find(service, predicted=Interval(3.0, 5.0)) == np.flatnonzero(
        (model.predict(rows) >= 3) & (model.predict(rows) <= 5)
    ).tolist()  # fmt: skip
    visit = Visit.begin(service)
    assert (visit.wish.low, visit.wish.high) == (12.0, None)
    assert service.explain(visit.row, visit.question()).outcome[0] >= 12.0
    empty = Service(model, rows, as_table(rows[:0], "rows"))
    assert Visit.begin(empty).question().target == Interval(low=0.0)


@pytest.mark.parametrize("target", ["maybe", Interval(1.0), Probability("maybe", 0.5), Score(1.0)])
def test_a_server_is_not_told_to_ask_for_what_its_model_cannot_say(service: Service, target: Any) -> None:
    with pytest.raises(InvalidInput, match=r"one of 'approved', 'declined'|predicts a class|2 scores"):
        Service(service.forest, service.rows, service.rows, asked=ExplainOptions(target=target))


# --- wishes, weights and measures


def asked_for(service: Service, **options: Any) -> Service:
    other = copy(service)
    other.asked = replace(service.asked, **options)
    return other


def test_a_visit_begins_with_what_the_server_asks_for(service: Service) -> None:
    options = {
        "target": Probability("approved", 0.55), "weights": {"income": 2.0},
        "plausibility": IsolationScore(limit=0.6, cost=0.2),
    }  # fmt: skip
    visit = Visit.begin(asked_for(service, **options))
    assert visit.wish.percent == 55
    question = visit.question()
    assert {name: getattr(question, name) for name in options} == options
    assert Visit.begin(service).question().weights is None
    assert Visit.begin(asked_for(service, target=Score(low=1.0))).question().target is None  # no field on the page


@pytest.mark.parametrize("percent", [0.0, 100.0, -3.0, 150.0])
def test_a_probability_must_be_one(service: Service, percent: float) -> None:
    visit = Visit.begin(service)
    visit.wish.percent = percent
    with pytest.raises(InvalidInput, match="The probability must be above 0 and below 100 per cent"):
        visit.question()
    visit.wish.label = None  # any other class has none
    assert visit.question().target is None


def test_wishes_are_met() -> None:
    assert Wish(label="yes").is_met_by("yes")
    assert not Wish(label="yes").is_met_by(None)
    assert not Wish().is_met_by("yes")
    number = Wish(predicts_number=True, low=1.0)
    assert [number.is_met_by(one) for one in (None, 0.5, 1.0, 9.0)] == [False, False, True, True]


# --- files and the command


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "serve needs MODEL and --data, or --demo."),
        (("--demo", "--data", "x.csv"), "--demo brings its own model and rows"),
        (("--demo", "--host", "0.0.0.0"), "--token must be given when --host is not one of"),
        (("--demo", "--token", "short"), "--token must be at least 16 characters long, got 5."),
        (("--demo", "--time-limit", "11"), "time_limit must be at most 10 seconds a row, got 11."),
        (("--demo", "--time-limit", "0"), "time_limit must be a number of seconds above 0, or None, got 0.0."),
        (("m.json", "--data", "x.csv", "--time-limit", "0"), "time_limit must be a number of seconds above 0, or None"),
        (("--demo", "--refits", "a.json"), "leave MODEL, --data, --id, --also and --refits out."),
        (("--demo", "--hold", "0.5"), "hold must be a number above 0.5 and below 1, got 0.5."),
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


SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
UPGRADE = {
    "connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
ESCAPES = (
    "/..%2f..%2f..%2fetc/passwd", "/static/..%2f..%2fpyproject.toml", "/_nicegui/static/..%2f..%2f__init__.py",
    "/v1/..%2f..%2fetc/passwd", "/_nicegui/3/static/%2e%2e/%2e%2e/nicegui.py", "//etc/passwd",
)  # fmt: skip


def test_a_server_with_refits_promises_and_says_who_agrees(tmp_path: Path) -> None:
    X, y = loans.load()
    X, y = X[:400], y[:400]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    paths = [tmp_path / f"{k}.json" for k in range(7)]
    for path, one in zip(paths, [model, *refits(model, X, y, n=6, n_jobs=1)], strict=True):
        translate(one).forest.save(path)
    write_columns(tmp_path / "rows.csv", dict(zip(loans.SCHEMA.names, X.T.tolist(), strict=True)))
    arguments = [paths[0], "--data", tmp_path / "rows.csv", "--target", "approved", "--hold", "0.6", "--jobs",
                 tmp_path / "jobs"]  # fmt: skip
    for path in paths[1:]:
        arguments += ["--refits", path]
    declined = X[model.predict(X) == "declined"][:4].tolist()
    with command(*arguments) as (_, client):
        held = client.post("/v1/explain", json={"rows": declined}).json()["rows"]
        plain = client.post("/v1/explain", json={"rows": declined, "hold": None}).json()["rows"]
    for one, smallest in zip(held, plain, strict=True):
        assert one["smallest"] == smallest["distance"] <= one["distance"]
        assert one["is_demanding"]
        assert len(one["agrees"]) == 2  # of six one is the pool, and three calibrate
        assert "agrees" not in smallest


def test_a_model_and_rows_from_files_are_served(service: Service, tmp_path: Path) -> None:
    service.forest.save(tmp_path / "model.json")
    for name, rows in (("rows.csv", service.rows.values[:40]), ("train.csv", service.rows.values)):
        write_columns(tmp_path / name, dict(zip(loans.SCHEMA.names, rows.T.tolist(), strict=True)))
    Schema(loans.SCHEMA.features, "the loan", {"approved": "granted"}).save(tmp_path / "schema.yaml")
    arguments = [
        tmp_path / "model.json", "--data", tmp_path / "rows.csv", "--train", tmp_path / "train.csv", "--schema",
        tmp_path / "schema.yaml", "--fix", "age", "--range", "income:0:90000", "--constraint",
        "at most 4 changes", "--target", "approved", "--at-least", "0.6", "--weight", "income:2", "--jobs",
        tmp_path / "jobs", "--token", "0123456789abcdef",
    ]  # fmt: skip
    with command(*arguments) as (process, client):
        assert client.get("/v1/health").status_code == 401
        client.headers["authorization"] = "Bearer 0123456789abcdef"
        card = client.get("/v1/model").json()
        assert card["title"] == "model.json"
        assert card["constraints"] == ["age fixed", "0 <= income <= 90000", "at most 4 changes"]
        assert card["defaults"]["target"] == {"kind": "probability", "label": "approved", "at_least": 0.6}
        assert card["defaults"]["weights"] == {"income": 2.0}
        answer = client.post("/v1/explain", json={"rows": service.rows.values[4:5].tolist()}).json()
        assert answer["subject"] == "the loan"
        page = client.get("/")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        for path in ESCAPES:
            assert client.get(path).status_code in (404, 405), path
        assert client.get(SOCKET, headers=UPGRADE | {"authorization": ""}).status_code == 403
        assert client.get(SOCKET, headers=UPGRADE | {"origin": "http://example.org"}).status_code == 403
        process.terminate()
        assert process.wait(30) in (0, -15)
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_jobs_are_kept_where_the_user_keeps_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", str(tmp_path))
    assert default_jobs_folder("0123456789abcdef99") == tmp_path / "treefocus" / "jobs" / "0123456789abcdef"
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert "treefocus" in default_jobs_folder("0" * 64).parts
