"""Targets, weights and plausibility over the API: the answers and the sentences of Python, in calls and in jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor

from support.servers import house_prices, loan_service, serving, wait_until
from treefocus import (
    Explainer,
    Explanations,
    Interval,
    InvalidInput,
    IsolationScore,
    LocalOutlierFactor,
    Probability,
    Score,
    loans,
)
from treefocus.app import jobs
from treefocus.app.limits import Limits
from treefocus.app.messages import ExplainBody
from treefocus.app.options import KINDS
from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.explanation.batch import Explanations as Found
from treefocus.model.forest import Floats
from treefocus.tables.table import as_table

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/explanations-1.json").read_text(encoding="utf-8"))
LIMITS = Limits(rows_per_call=20, rows_per_job=100, seconds_per_row=5.0, isolation_trees=120)


class Served:
    """A server, its model's own explainer, and rows to ask about."""

    def __init__(self, client: httpx.Client, model: Any, data: Floats, rows: Floats, schema: Any) -> None:
        self.client, self.rows = client, rows
        self._model, self._data, self._schema = model, data, schema

    def python(self, **options: Any) -> Found:
        """What Python answers."""
        building = {name: options.pop(name) for name in ("weights", "plausibility", "distance") if name in options}
        explainer = Explainer(self._model, self._data, schema=self._schema, **{"distance": "manhattan"} | building)
        return explainer.explain(self.rows, **{"time_limit": 5.0} | options)

    def post(self, path: str = "/v1/explain", **options: Any) -> httpx.Response:
        """What the server answers."""
        body = {"rows": self.rows.tolist(), "constraints": [], "time_limit": 5.0} | options
        return self.client.post(path, json=body)

    def job(self, **options: Any) -> Any:
        """What a job of the server's answers."""
        place = self.post("/v1/jobs", **options).headers["location"]
        wait_until(lambda: self.client.get(place).json()["status"] not in ("waiting", "running"))
        return self.client.get(f"{place}/result").json()


@pytest.fixture(scope="module")
def loan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    service, trained = loan_service(LIMITS), loans.train()
    chosen = [i for i, label in enumerate(service.predictions.labels) if label == "declined"][:3]
    with serving(service, tmp_path_factory.mktemp("jobs")) as client:
        yield Served(client, trained.model, trained.X_train, service.rows.values[chosen], loans.SCHEMA)


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A classifier with a single score."""
    rows, prices = house_prices()
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(rows, prices > np.median(prices))
    service = Service(model, rows, as_table(rows[:20], "rows"), limits=LIMITS)
    with serving(service, tmp_path_factory.mktemp("jobs")) as client:
        yield Served(client, model, rows, rows[:3], None)


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A model that predicts a number."""
    rows, prices = house_prices()
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(rows, prices)
    service = Service(model, rows, as_table(rows[:20], "rows"), limits=LIMITS)
    with serving(service, tmp_path_factory.mktemp("jobs")) as client:
        yield Served(client, model, rows, rows[:3], None)


LOAN_OPTIONS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {"target": Probability("approved", 0.7)},
        {"target": {"kind": "probability", "label": "approved", "at_least": 0.7}},
    ),
    (
        {"target": [Probability("approved", 0.6), Probability("approved", 0.7), Probability("approved", 0.9)]},
        {"target": [{"kind": "probability", "label": "approved", "at_least": p} for p in (0.6, 0.7, 0.9)]},
    ),
    (
        {"target": [Probability("approved", 0.6), Probability("declined", 0.7), Probability("approved", 0.9)]},
        {
            "target": [
                {"kind": "probability", "label": label, "at_least": p}
                for label, p in (("approved", 0.6), ("declined", 0.7), ("approved", 0.9))
            ]
        },
    ),
    ({"target": "approved", "weights": {"savings": 3.0, "income": 0.5}},) * 2,
    (
        {"target": "approved", "plausibility": LocalOutlierFactor(limit=1.3, neighbours=3)},
        {"target": "approved", "plausibility": {"kind": "local_outlier_factor", "limit": 1.3, "neighbours": 3}},
    ),
    (
        {"target": "approved", "plausibility": IsolationScore(cost=0.5, trees=20, seed=3)},
        {"target": "approved", "plausibility": {"kind": "isolation", "cost": 0.5, "trees": 20, "seed": 3}},
    ),
    (
        {"target": Probability("approved", 0.6), "weights": {"age": 2.0}, "n": 2, "distance": "euclidean"},
        {
            "target": {"kind": "probability", "label": "approved", "at_least": 0.6}, "weights": {"age": 2}, "n": 2,
            "distance": "euclidean",
        },
    ),
)  # fmt: skip


def same(found: Found, answer: Any) -> bool:
    """Whether Python and the server say the same, but for what the clock has a say in."""
    jsonschema.validate(answer, SCHEMA)
    ours = json.loads(found.to_json())
    return bool(ours | {"seconds": 0.0} == answer | {"seconds": 0.0})


@pytest.mark.parametrize(("python", "json_"), LOAN_OPTIONS, ids=str)
def test_options_of_a_classifier_do_what_they_do_in_python(
    loan: Served, python: dict[str, Any], json_: dict[str, Any]
) -> None:
    limited = {"strategy": "focus"}  # the same whatever the clock says
    found, answer = loan.python(**python | limited), loan.post(**json_ | limited)
    assert answer.status_code == 200, answer.text
    assert same(found, answer.json())
    assert found.has_answer.any()
    assert same(found, loan.job(**json_ | limited))
    plain = loan.python(target="approved", **limited)
    assert not np.array_equal(found.points, plain.points, equal_nan=True)  # else the option says nothing


def test_an_answer_with_a_probability_reads_back(loan: Served) -> None:
    answer = loan.post(target={"kind": "probability", "label": "approved", "at_least": 0.7})
    assert answer.json()["answers"] == {"kind": "probability", "of": "approved"}
    for row in answer.json()["rows"]:
        assert row["likelihood"][1] >= 0.7
    assert "with a probability of" in Explanations.from_json(answer.text)[0].to_text()


def test_scores_of_a_classifier(boosted: Served) -> None:
    found, answer = boosted.python(target=Score(low=0.5)), boosted.post(target={"kind": "score", "low": 0.5})
    assert same(found, answer.json())
    assert all(row["outcome"] >= 0.5 for row in answer.json()["rows"])


@pytest.mark.parametrize(
    ("python", "json_"),
    [
        (Interval(250_000, 300_000), {"kind": "interval", "low": 250_000, "high": 300_000}),
        (Interval(low=260_000), {"kind": "interval", "low": 260_000}),
        (Interval(high=200_000), {"kind": "interval", "high": 200_000, "low": None}),
        (Score(high=200_000), {"kind": "score", "high": 200_000}),
    ],
)
def test_a_model_that_predicts_a_number_is_asked_for_one(priced: Served, python: Interval, json_: Any) -> None:
    found, answer = priced.python(target=python), priced.post(target=json_)
    assert answer.status_code == 200, answer.text
    assert same(found, answer.json())
    assert answer.json()["answers"] == {"kind": "value"}
    assert all(python.low <= row["outcome"] <= python.high for row in answer.json()["rows"] if row["outcome"])
    assert found.has_answer.any()
    assert same(found, priced.job(target=json_))


def test_a_list_asks_each_row_for_its_own_number(priced: Served) -> None:
    python = [Interval(low=260_000), Interval(high=200_000), Interval(low=260_000)]
    json_ = [
        {"kind": "interval", "low": 260_000},
        {"kind": "interval", "high": 200_000},
        {"kind": "interval", "low": 260_000},
    ]
    found, answer = priced.python(target=python), priced.post(target=json_)
    assert answer.status_code == 200, answer.text
    assert same(found, answer.json())
    assert same(found, priced.job(target=json_))


def test_jobs_of_several_parts_tell_whose_probability_each_row_was_asked(
    loan: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PART", 2)
    classes = ["approved", "approved", "declined"]
    wanted = [{"kind": "probability", "label": label, "at_least": 0.6} for label in classes]
    answer = loan.job(target=wanted, strategy="focus")
    assert answer["answers"] == {"kind": "probability", "of_row": classes}
    assert [one.favoured for one in Explanations.from_json(json.dumps(answer))] == classes
    answer = loan.job(target=[wanted[0]] * 3, strategy="focus")
    assert answer["answers"] == {"kind": "probability", "of": "approved"}


def test_a_number_is_predicted(priced: Served) -> None:
    card = priced.client.get("/v1/model").json()
    assert (card["predicts"], card["classes"]) == ("number", [])
    answer = priced.client.post("/v1/predict", json={"rows": priced.rows.tolist()}).json()
    rows, prices = house_prices()
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(rows, prices)
    np.testing.assert_allclose([row["predicted"] for row in answer["rows"]], model.predict(priced.rows), rtol=1e-12)
    assert {row["probabilities"] for row in answer["rows"]} == {None}


def test_the_documents_examples_are_answered(loan: Served, boosted: Served, priced: Served) -> None:
    for served in (loan, boosted, priced):
        asked = served.client.get("/v1/openapi.json").json()["components"]["schemas"]["ExplainBody"]
        (example,) = asked["examples"]
        for name in ("target", "weights", "plausibility"):
            examples = asked["properties"][name]["examples"]
            assert len(examples) >= 1
            for value in examples:
                answer = served.client.post("/v1/explain", json=example | {name: value})
                assert answer.status_code == 200, answer.text


# --- misuse


def refused(served: Served, told: str, **options: Any) -> None:
    """A call and a job with these options are refused with this sentence."""
    for path in ("/v1/explain", "/v1/jobs"):
        answer = served.post(path, **options)
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == told


LOAN_MISUSE: tuple[tuple[dict[str, Any], Any], ...] = (
    ({"target": {"kind": "probability", "label": "approved", "at_least": 1.5}},
     lambda: {"target": Probability("approved", 1.5)}),
    ({"target": {"kind": "probability", "label": "maybe", "at_least": 0.5}},
     lambda: {"target": Probability("maybe", 0.5)}),
    ({"target": {"kind": "interval", "low": 1.0}}, lambda: {"target": Interval(1.0)}),
    ({"target": {"kind": "interval", "low": 2.0, "high": 1.0}}, lambda: {"target": Interval(2.0, 1.0)}),
    ({"target": {"kind": "score", "low": 1.0}}, lambda: {"target": Score(1.0)}),
    ({"target": {"kind": "score"}}, lambda: {"target": Score()}),
    ({"weights": {"incme": 2.0}}, lambda: {"weights": {"incme": 2.0}}),
    ({"weights": {"income": 0.0}}, lambda: {"weights": {"income": 0.0}}),
    ({"weights": {"income": -1.5}}, lambda: {"weights": {"income": -1.5}}),
    ({"plausibility": {"kind": "local_outlier_factor", "limit": 0.0}},
     lambda: {"plausibility": LocalOutlierFactor(0.0)}),
    ({"plausibility": {"kind": "local_outlier_factor", "neighbours": 0}},
     lambda: {"plausibility": LocalOutlierFactor(neighbours=0)}),
    ({"plausibility": {"kind": "isolation", "cost": -1.0}}, lambda: {"plausibility": IsolationScore(cost=-1.0)}),
    ({"plausibility": {"kind": "isolation", "trees": 0}}, lambda: {"plausibility": IsolationScore(trees=0)}),
    ({"plausibility": {"kind": "isolation", "seed": -1}}, lambda: {"plausibility": IsolationScore(seed=-1)}),
)  # fmt: skip


@pytest.mark.parametrize(("json_", "python"), LOAN_MISUSE, ids=[str(json_) for json_, _ in LOAN_MISUSE])
def test_misuse_is_told_in_the_words_of_python(loan: Served, json_: dict[str, Any], python: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        loan.python(**python())
    refused(loan, str(caught.value), **json_)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"target": {}}, "target.kind must be given."),
        ({"target": [{"kind": "odd"}]},
         "target[0].kind must be one of 'probability', 'interval', 'score', got 'odd'."),
        ({"target": [{"kind": "probability", "label": "approved", "at_least": 0.5}, "declined", None]},
         "target must be of one kind for all rows: probabilities, intervals or classes, got "
         "Probability(label='approved', at_least=0.5) and others."),
        ({"target": {"kind": "odd"}}, "target.kind must be one of 'probability', 'interval', 'score', got 'odd'."),
        ({"target": {"kind": "probability", "at_least": 0.5}}, "target.label must be given."),
        ({"target": {"kind": "probability", "label": "approved"}}, "target.at_least must be given."),
        ({"target": {"kind": "probability", "label": "approved", "at_least": "high"}},
         "target.at_least must be a valid number, got 'high'."),
        ({"target": {"kind": "interval", "low": True}}, "target.low must be a valid number, got True."),
        ({"target": {"kind": "interval", "from": 3}}, "target.from is not known here."),
        ({"weights": [1.0]}, "weights must be a valid dictionary, got a list."),
        ({"weights": {"income": "high"}}, "weights.income must be a valid number, got 'high'."),
        ({"weights": {"range": None}}, "weights.range must be a valid number, got None."),
        ({"plausibility": "lof"}, None),
        ({"plausibility": {"limit": 1}}, "plausibility.kind must be given."),
        ({"plausibility": {"kind": "isolation", "trees": 1.5}},
         "plausibility.trees must be a valid integer, got 1.5."),
        ({"plausibility": {"kind": "isolation", "trees": 121}}, "IsolationScore.trees must be at most 120, got 121."),
        ({"n": 11, "plausibility": {"kind": "isolation"}}, "n must be at most 10, got 11."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(loan: Served, options: dict[str, Any], told: str | None) -> None:
    refused(loan, told or loan.post(**options).json()["detail"], **options)


@pytest.mark.parametrize(
    "target", [None, "high", 3.0, [1.0, 2.0, 3.0], {"kind": "probability", "label": 1, "at_least": 0.5}]
)
def test_a_number_must_be_asked_for_by_an_interval(priced: Served, target: Any) -> None:
    python = Probability(1, 0.5) if isinstance(target, dict) else target
    with pytest.raises(InvalidInput) as caught:
        priced.python(target=python)
    assert "predicts a number" in str(caught.value)
    refused(priced, str(caught.value), target=target)
    assert priced.client.post("/v1/explain", json={"rows": priced.rows.tolist()}).status_code == 422


# --- defaults


def test_what_is_not_said_is_as_the_server_was_told(tmp_path: Path) -> None:
    rows, prices = house_prices()
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(rows, prices)
    measure = LocalOutlierFactor(limit=1.5)
    weights = {"feature 0": 2.0}
    asked = ExplainOptions(target=Interval(low=250_000.0), weights=weights, plausibility=measure, time_limit=5.0)
    with serving(Service(model, rows, as_table(rows[:5], "rows"), asked=asked), tmp_path) as client:
        defaults = client.get("/v1/model").json()["defaults"]
        assert defaults["target"] == {"kind": "interval", "low": 250_000.0, "high": None}
        assert defaults["weights"] == weights
        assert defaults["plausibility"]["limit"] == 1.5
        served = Served(client, model, rows, rows[:2], None)
        said = client.post("/v1/explain", json={"rows": rows[:2].tolist()}).json()
        assert same(served.python(target=asked.target, weights=weights, plausibility=measure), said)
        other = client.post(
            "/v1/explain", json={"rows": rows[:2].tolist(), "weights": None, "plausibility": None}
        ).json()
        assert same(served.python(target=asked.target), other)


@pytest.mark.parametrize(
    "question",
    [
        ExplainOptions(target=Probability("approved", 0.7), weights={"age": 2.0}, plausibility=LocalOutlierFactor(1.5)),
        ExplainOptions(target=Interval(high=3.0), plausibility=IsolationScore(cost=0.5, trees=7, seed=2)),
        ExplainOptions(target=Score(1.0, 2.0), weights=None, plausibility=None),
        ExplainOptions(target=["approved", None]),
    ],
)
def test_a_question_survives_the_way_through_a_job(question: ExplainOptions) -> None:
    body = ExplainBody.of(question, [[1.0]])
    other = ExplainOptions(weights={"b": 3.0}, plausibility=IsolationScore(), target="declined")
    assert ExplainBody.model_validate_json(body.model_dump_json()).question(other) == question


def test_every_kind_is_known_where_errors_are_told() -> None:
    described = ExplainBody.model_json_schema()["$defs"].values()
    kinds = [kind for one in described for kind in _literals(one["properties"].get("kind", {}))]
    assert set(kinds) == KINDS


def _literals(schema: dict[str, Any]) -> list[str]:
    return schema.get("enum", []) or ([schema["const"]] if "const" in schema else [])
