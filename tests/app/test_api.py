"""The REST API over a real socket: the same answers as Python, the same sentences, and limits that hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from support.servers import PATIENCE, loan_service, serving, wait_until
from treefocus import Decreasing, Explainer, Explanations, Fixed, Increasing, InvalidInput, Range, loans
from treefocus.app import answers
from treefocus.app.limits import Limits, OverLimit
from treefocus.app.problems import sentence
from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.app.workers import CalledOff, Errand
from treefocus.tables.table import as_table

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/explanations-1.json").read_text(encoding="utf-8"))
LIMITS = Limits(rows_per_call=20, rows_per_job=400, seconds_per_row=5.0, body_bytes=200_000, jobs_open=2)


@pytest.fixture(scope="module")
def service() -> Service:
    return loan_service(LIMITS)


@pytest.fixture(scope="module")
def client(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(service, tmp_path_factory.mktemp("jobs")) as one:
        yield one


@pytest.fixture(scope="module")
def declined(service: Service) -> list[list[float]]:
    chosen = [i for i, label in enumerate(service.predictions.labels) if label == "declined"]
    return service.rows.values[chosen].tolist()


def named(row: list[float]) -> dict[str, float]:
    return dict(zip(loans.SCHEMA.names, row, strict=True))


def without_time(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"seconds": 0.0}


def test_health_and_the_model_card(client: httpx.Client, service: Service) -> None:
    assert client.get("/v1/health").json()["status"] == "ok"
    card = client.get("/v1/model").json()
    assert card["classes"] == ["approved", "declined"]
    assert [feature["name"] for feature in card["features"]] == list(loans.SCHEMA.names)
    assert card["features"][2]["unit"] == "EUR"
    assert (card["trees"], card["nodes"]) == (100, len(service.forest.feature))
    assert card["leaves"] == len(service.forest.leaf_value)
    assert card["constraints"] == [
        "age and dependants fixed",
        "income, employment_years, savings and credit_history_years increasing",
        "loan_amount, utilisation, recent_inquiries and late_payments decreasing",
    ]
    assert card["limits"]["rows_per_call"] == 20


def test_predict_says_what_the_model_says(client: httpx.Client, service: Service) -> None:
    trained = loans.train()
    rows = trained.X_test[:15]
    answer = client.post("/v1/predict", json={"rows": rows.tolist()}).json()
    assert [row["predicted"] for row in answer["rows"]] == trained.model.predict(rows).tolist()
    shares = [row["probabilities"] for row in answer["rows"]]
    np.testing.assert_allclose(shares, trained.model.predict_proba(rows), rtol=0, atol=1e-12)
    by_name = client.post("/v1/predict", json={"rows": [dict(reversed(named(rows[0].tolist()).items()))]}).json()
    assert by_name["rows"][0] == answer["rows"][0]


def test_a_row_the_model_cannot_read_has_no_prediction(client: httpx.Client, declined: list[list[float]]) -> None:
    unreadable = [1e300, *declined[0][1:]]
    answer = client.post("/v1/predict", json={"rows": [unreadable]}).json()
    assert answer["rows"] == [{"predicted": None, "probabilities": None}]
    (row,) = client.post("/v1/explain", json={"rows": [unreadable]}).json()["rows"]
    assert row["status"] == "INVALID"
    assert row["reason"] == "the model cannot read age = 1e+300"


def test_explain_answers_as_python_does(client: httpx.Client, declined: list[list[float]]) -> None:
    trained = loans.train()
    constraints = [Fixed("age"), Increasing("income"), Decreasing("loan_amount", 9), Range("savings", 0, 30_000)]
    explainer = Explainer(
        trained.model, trained.X_train, distance="euclidean", constraints=constraints, scale="std", schema=loans.SCHEMA
    )
    expected = explainer.explain(np.array(declined[:4]), "approved", time_limit=5.0, seed=3)
    body = {
        "rows": [named(declined[0]), *declined[1:4]], "target": "approved", "distance": "euclidean", "scale": "std",
        "time_limit": 5.0, "seed": 3, "strategy": "auto",
        "constraints": [
            {"kind": "fixed", "columns": ["age"]}, {"kind": "increasing", "columns": ["income"]},
            {"kind": "decreasing", "columns": ["loan_amount", 9]},
            {"kind": "range", "column": "savings", "low": 0, "high": 30_000},
        ],
    }  # fmt: skip
    answer = client.post("/v1/explain", json=body)
    assert answer.status_code == 200
    assert without_time(answer.json()) == without_time(json.loads(expected.to_json()))
    jsonschema.validate(answer.json(), SCHEMA)
    assert Explanations.from_json(answer.text)[0].to_text() == expected[0].to_text()


def test_what_is_not_said_is_as_the_server_was_told(client: httpx.Client, declined: list[list[float]]) -> None:
    answer = client.post("/v1/explain", json={"rows": declined[:3]}).json()
    assert answer["distance"] == "manhattan"
    for row in answer["rows"]:
        assert row["outcome"] == "approved"
        assert not {"age", "dependants"} & {change["feature"] for change in row["changes"]}
    none = client.post("/v1/explain", json={"rows": declined[:1], "target": None, "constraints": []}).json()
    assert none["rows"][0]["outcome"] == "approved"
    per_row = client.post("/v1/explain", json={"rows": declined[:2], "target": ["approved", "declined"]}).json()
    assert [row["outcome"] for row in per_row["rows"]] == ["approved", "declined"]


def test_constraints_in_words(client: httpx.Client, declined: list[list[float]]) -> None:
    words = ["age, dependants fixed", "at most 2 changes", "savings >= 3000"]
    answer = client.post("/v1/explain", json={"rows": declined[:5], "constraints": words, "time_limit": 5.0}).json()
    assert {len(row["changes"]) for row in answer["rows"]} <= {0, 1, 2}
    assert all(row["counterfactual"][4] >= 3000 for row in answer["rows"] if row["counterfactual"])


def test_several_ways_out(client: httpx.Client, declined: list[list[float]]) -> None:
    answer = client.post("/v1/explain", json={"rows": declined[:2], "n": 3, "time_limit": 5.0}).json()
    jsonschema.validate(answer, SCHEMA)
    for row in answer["rows"]:
        used = [frozenset(change["feature"] for change in way["changes"]) for way in (row, *row["ways"])]
        assert len(used) == len(set(used)) == 3
    refused = client.post("/v1/explain", json={"rows": declined[:2], "n": 11})
    assert (refused.status_code, refused.json()["detail"]) == (422, "n must be at most 10, got 11.")


def test_the_documented_answer_has_the_fields_of_the_format() -> None:
    documented = {"row": answers.RowAnswer, "change": answers.Change, "way": answers.WayAnswer}
    for name, message in documented.items():
        described = SCHEMA["$defs"][name]
        assert set(described["required"]) <= set(message.model_fields) <= set(described["properties"])
    assert set(SCHEMA["required"]) <= set(answers.ExplainAnswer.model_fields) <= set(SCHEMA["properties"])


# --- misuse


MISUSE: tuple[tuple[dict[str, Any], str | None], ...] = (
    ({"time_limit": -1}, "time_limit must be a number of seconds above 0, or None, got -1.0."),
    ({"strategy": "guess"}, None),
    ({"n": 0}, None),
    ({"distance": "crow"}, None),
    ({"target": "maybe"}, None),
    ({"target": ["approved"] * 7}, None),
    ({"scale": "size"}, None),
    ({"bounds": [3, 1]}, None),
    ({"bounds": [3]}, "bounds must be (low, high), each a number or one a feature (12), got (3.0,)."),
)


@pytest.mark.parametrize(("options", "told"), MISUSE)
def test_misuse_is_told_in_the_words_of_python(
    client: httpx.Client, declined: list[list[float]], options: dict[str, Any], told: str | None
) -> None:
    trained = loans.train()
    building = {key: options[key] for key in ("distance", "scale", "bounds") if key in options}
    asking = {key: options[key] for key in ("target", "strategy", "time_limit", "n") if key in options}
    with pytest.raises(InvalidInput) as caught:
        Explainer(trained.model, trained.X_train, schema=loans.SCHEMA, **building).explain(
            np.array(declined[:2]), **asking
        )
    answer = client.post("/v1/explain", json={"rows": declined[:2]} | options)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == (told or str(caught.value))
    assert answer.json()["status"] == 422
    job = client.post("/v1/jobs", json={"rows": declined[:2]} | options)
    assert (job.status_code, job.json()["detail"]) == (422, answer.json()["detail"])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "rows must be given."),
        ({"rows": "all"}, "rows must be a valid list, got 'all'."),
        ({"rows": [[1.0]]}, "rows[0] must be 12 values long, got 1."),
        ({"rows": [["a"] * 12]}, "rows[0].age must be a number, got 'a'."),
        ({"rows": [[[]] * 12]}, "rows[0][0] must be a valid number, got a list."),
        ({"rows": [dict.fromkeys(loans.SCHEMA.names, "old")]}, "rows[0].age must be a number, got 'old'."),
        ({"rows": [], "colour": 1}, "colour is not known here."),
        ({"rows": [], "time_limit": "long"}, "time_limit must be a valid number, got 'long'."),
        ({"rows": [], "seed": -1}, "seed must be greater than or equal to 0, got -1."),
        ({"rows": [], "constraints": [{"kind": "odd"}]}, "constraints[0].kind must be one of 'fixed', 'increasing'"),
        ({"rows": [], "constraints": [{}]}, "constraints[0].kind must be given."),
        ({"rows": [], "constraints": ["agee fixed"]}, "Did you mean 'age'?"),
        ({"rows": [], "constraints": [{"kind": "fixed", "columns": ["agee"]}]}, "Did you mean 'age'?"),
        ({"rows": [], "constraints": [{"kind": "fixed", "columns": []}]}, "Fixed(...) must be given at least one"),
    ],
)
def test_a_body_that_cannot_be_used_is_told_what_is_wrong(client: httpx.Client, body: Any, told: str) -> None:
    answer = client.post("/v1/explain", json=body)
    assert answer.status_code == 422, answer.text
    assert told in answer.json()["detail"]


def test_columns_that_are_not_the_models_are_named(client: httpx.Client, declined: list[list[float]]) -> None:
    row: dict[str, float] = named(declined[0]) | {"shoe_size": 42.0}
    del row["age"]
    answer = client.post("/v1/predict", json={"rows": [named(declined[0]), row]})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(
        "rows[1] must have the columns the model was trained on: shoe_size unknown; age missing"
    )


def test_other_errors_are_problems_too(client: httpx.Client) -> None:
    for answer, code in (
        (client.get("/v1/nothing"), 404),
        (client.put("/v1/health"), 405),
        (client.post("/v1/explain", content=b"{rows", headers={"content-type": "application/json"}), 422),
        (client.post("/v1/explain", content=b"\xff\xfe", headers={"content-type": "application/json"}), 422),
    ):
        assert answer.status_code == code
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == code


def test_long_values_are_cut_in_sentences() -> None:
    error = {
        "type": "float_type",
        "loc": ("body", "rows", 3),
        "msg": "Input should be a number",
        "input": "x" * 99,
    }
    assert sentence(error) == f"rows[3] must be a number, got '{'x' * 56}...."


# --- limits


def test_too_many_rows_too_much_time_too_large_a_body(client: httpx.Client, declined: list[list[float]]) -> None:
    many = client.post("/v1/explain", json={"rows": declined[:21]})
    assert many.status_code == 413
    assert many.json()["detail"].startswith("rows must be at most 20 in one call, got 21;")
    assert client.post("/v1/predict", json={"rows": declined[:21]}).status_code == 413
    assert client.post("/v1/jobs", json={"rows": declined[:1] * 401}).status_code == 413
    for path in ("/v1/explain", "/v1/jobs"):
        slow = client.post(path, json={"rows": declined[:1], "time_limit": 5.1})
        assert slow.status_code == 422
        assert slow.json()["detail"] == "time_limit must be at most 5 seconds a row, got 5.1."
    large = client.post("/v1/explain", content=b" " * 200_001)
    assert large.status_code == 413
    assert large.json()["detail"] == "The body must be at most 200,000 bytes, got more."
    assert client.get("/v1/health").status_code == 200


def test_a_body_that_grows_beyond_the_limit_is_refused(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(300):
            yield b" " * 1000

    answer = client.post("/v1/explain", content=endless(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert client.get("/v1/health").status_code == 200


def slow_service(limits: Limits) -> Service:
    """A model whose proofs take as long as they may."""
    rows, labels = make_classification(1500, 20, n_informative=15, random_state=0)
    model = RandomForestClassifier(100, max_depth=10, random_state=0).fit(rows, labels)
    return Service(
        model, rows, as_table(rows[:50], "rows"), asked=ExplainOptions(distance="mahalanobis"), limits=limits
    )


@pytest.fixture(scope="module")
def slow() -> Service:
    return slow_service(Limits(calls_at_once=1, calls_waiting=1, seconds_per_row=600.0))


def test_more_calls_than_it_takes_are_turned_away(
    slow: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call comes to its end before the ones that find no place have been told so."""
    row, explain, may_end = slow.rows.values[:1].tolist(), slow.explain, threading.Event()

    def held_up(*given: Any, **options: Any) -> Any:
        assert may_end.wait(PATIENCE)
        return explain(*given, **options)

    monkeypatch.setattr(slow, "explain", held_up)
    monkeypatch.setattr(Limits, "calls_per_client", 9)  # all of these come from one client
    with serving(slow, tmp_path) as client:
        codes: list[int] = []

        def call() -> None:
            try:
                answer = httpx.post(
                    f"{client.base_url}/v1/explain", json={"rows": row, "time_limit": 0.1}, timeout=2 * PATIENCE,
                    trust_env=False,
                )  # fmt: skip
            except httpx.HTTPError:
                codes.append(0)
            else:
                codes.append(answer.status_code)
                if answer.status_code == 429:
                    assert answer.headers["retry-after"] == "1"
                    assert "At most 2 calls" in answer.json()["detail"]

        threads = [threading.Thread(target=call) for _ in range(5)]
        for thread in threads:
            thread.start()
        wait_until(lambda: codes == [429] * 3)
        may_end.set()
        for thread in threads:
            thread.join()
        assert codes == [429] * 3 + [200] * 2
        assert client.get("/v1/health").status_code == 200


def test_a_caller_that_hangs_up_frees_its_place(slow: Service, tmp_path: Path) -> None:
    row = slow.rows.values[:1].tolist()
    with serving(replace_limits(slow, calls_waiting=0), tmp_path) as client:
        with pytest.raises(httpx.TimeoutException):
            client.post("/v1/explain", json={"rows": row, "time_limit": 600}, timeout=1.0)
        wait_until(lambda: client.post("/v1/predict", json={"rows": row}).status_code == 200)


def replace_limits(service: Service, **limits: Any) -> Service:
    from copy import copy

    other = copy(service)
    other.limits = replace(service.limits, **limits)
    return other


def test_a_search_stops_when_it_is_called_off(slow: Service) -> None:
    errand = Errand()
    threading.Timer(0.5, errand.call_off).start()
    with pytest.raises(CalledOff):
        slow.explain(slow.rows.values[:1], replace(slow.asked, time_limit=600.0), errand)


def test_a_search_without_a_sense_of_time_is_ended(slow: Service) -> None:
    errand = Errand(seconds=0.2)
    errand.begin()
    with pytest.raises(OverLimit, match="The search took more than 0 seconds; ask about fewer rows"):
        slow.explain(slow.rows.values[:1], replace(slow.asked, time_limit=600.0), errand)


@pytest.mark.parametrize("name", ["rows_per_call", "seconds_per_row", "jobs_open", "body_bytes"])
def test_limits_must_allow_something(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"Limits.{name} must be"):
        Limits(**{name: 0})


# --- the document


def test_the_document_knows_the_model(client: httpx.Client) -> None:
    document = client.get("/v1/openapi.json").json()
    row = document["components"]["schemas"]["Row"]["anyOf"][0]
    assert row["required"] == list(loans.SCHEMA.names)
    assert set(document["paths"]) == {
        "/v1/health", "/v1/model", "/v1/predict", "/v1/explain", "/v1/letters", "/v1/audits", "/v1/jobs",
        "/v1/jobs/{id}", "/v1/jobs/{id}/result", "/v1/jobs/{id}/cancel",
    }  # fmt: skip
    for name, path in (("ExplainBody", "/v1/explain"), ("RowsBody", "/v1/predict"), ("ExplainBody", "/v1/jobs")):
        (example,) = document["components"]["schemas"][name]["examples"]
        assert client.post(path, json=example).status_code in (200, 202)


def test_the_document_offers_no_foreign_scripts(client: httpx.Client) -> None:
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404


def test_letters_are_those_of_python(client: httpx.Client, service: Service, declined: list[list[float]]) -> None:
    question = {"rows": [named(row) for row in declined[:2]], "target": "approved", "time_limit": 5.0}
    body = {"question": question, "template": "eu", "language": "de", "sender": "Bank", "recipients": ["Frau A", None]}
    answer = client.post("/v1/letters", json=body | {"fields": {"contact": "Tel. 1"}})
    assert answer.status_code == 200, answer.text
    asked = replace(service.asked, target="approved", time_limit=5.0)
    found = service.explain(service.table_of(declined[:2]), service.for_people(asked))
    assert (found.distance > found.smallest).all()  # with a margin, as nobody said otherwise
    for told, one, recipient in zip(answer.json()["letters"], found, ("Frau A", None), strict=True):
        assert told["status"] == one.status.name
        assert told["text"] == one.to_letter(
            "de", template="eu", sender="Bank", recipient=recipient, fields={"contact": "Tel. 1"}
        )
    plain = client.post("/v1/letters", json={"question": question | {"hold": None}}).json()["letters"]
    found = service.explain(service.table_of(declined[:2]), asked)
    assert [told["text"] for told in plain] == [one.to_letter() for one in found]


@pytest.mark.parametrize(("more", "why"), [
    ({"template": "/etc/passwd"}, "template"), ({"language": "xx"}, "language must be one of de, en, fr"),
    ({"recipients": []}, "recipients must be a name, or null, for each of the 1 rows"),
    ({"fields": {"nothing": "x"}}, "nothing"),
])  # fmt: skip
def test_letters_that_cannot_be_written(
    client: httpx.Client, declined: list[list[float]], more: dict[str, Any], why: str
) -> None:
    answer = client.post("/v1/letters", json={"question": {"rows": [named(declined[0])], "target": "approved"}} | more)
    assert answer.status_code in (400, 422)
    assert why in answer.text


# --- audits


def test_an_audit_is_that_of_python(client: httpx.Client, service: Service, declined: list[list[float]]) -> None:
    question = {"rows": [named(row) for row in declined[:12]], "target": "approved", "time_limit": 5.0}
    groups = {"office": ["north", "south", None] * 4}
    answer = client.post("/v1/audits", json={"question": question, "groups": groups, "min_group": 2, "why": 3})
    assert answer.status_code == 200, answer.text
    found = service.explain(service.table_of(declined[:12]), replace(service.asked, target="approved", time_limit=5.0))
    assert answer.json() == found.audit(groups, min_group=2, why=3, n_jobs=1).to_dict()
    schema = json.loads((Path(__file__).parents[2] / "docs/schema/audit-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(answer.json(), schema)


def test_the_answers_of_a_job_are_audited(client: httpx.Client, service: Service, declined: list[list[float]]) -> None:
    rows = declined[:25]  # more than a call may have
    job = client.post("/v1/jobs", json={"rows": rows, "target": "approved"}).json()["id"]
    early = client.post("/v1/audits", json={"job": job})
    assert early.status_code in (200, 409)
    wait_until(lambda: client.get(f"/v1/jobs/{job}").json()["status"] == "done")
    answer = client.post("/v1/audits", json={"job": job, "groups": ["dependants"], "reference": {"dependants": 0}})
    assert answer.status_code == 200, answer.text
    told = Explanations.from_json(client.get(f"/v1/jobs/{job}/result").text)
    assert answer.json() == told.audit(["dependants"], reference={"dependants": 0}, why=20).to_dict()
    assert answer.json()["whole"]["rows"] == 25
    assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert client.post("/v1/audits", json={"job": job}).status_code == 404


@pytest.mark.parametrize(("more", "why"), [
    ({"job": "0" * 32}, "Either question or job must be given."), ({"why": 21}, "why must be at most 20, got 21."),
    ({"groups": ["office"]}, "office"), ({"groups": {"office": ["a"]}}, "a label for each of the 2 rows"),
    ({"min_group": -1}, "min_group"), ({"level": 2.0}, "level must be a number from 0.5 to below 1, got 2.0."),
    ({"reference": {"age": 1}}, "reference"),
])  # fmt: skip
def test_audits_that_cannot_be_made(
    client: httpx.Client, declined: list[list[float]], more: dict[str, Any], why: str
) -> None:
    answer = client.post("/v1/audits", json={"question": {"rows": declined[:2], "target": "approved"}} | more)
    assert answer.status_code == 422
    assert why in answer.json()["detail"]
