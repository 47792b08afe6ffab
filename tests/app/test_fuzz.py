"""Generated calls against the OpenAPI document: whatever comes, the answer is one that the document promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sklearn.ensemble import RandomForestRegressor

from support.servers import house_prices, serving
from treefocus.app.demo import demo_service
from treefocus.app.limits import Limits
from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.tables.table import as_table

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server for a model that predicts classes, and one for a model that predicts numbers."""
    rows, prices = house_prices()
    model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(rows, prices)
    limits = Limits(seconds_per_row=0.2)
    number = Service(model, rows, as_table(rows, "rows"), asked=ExplainOptions(time_limit=0.1), limits=limits)
    folders = (tmp_path_factory.mktemp("jobs") for _ in range(2))
    with serving(demo_service(limits), next(folders)) as one, serving(number, next(folders)) as other:
        yield {"class": str(one.base_url), "number": str(other.base_url)}


FACTS = (("GET", "/v1/health"), ("GET", "/v1/model"), ("GET", "/v1/jobs"))
NAMED = (
    ("GET", "/v1/jobs/{id}"), ("GET", "/v1/jobs/{id}/result"), ("POST", "/v1/jobs/{id}/cancel"),
    ("DELETE", "/v1/jobs/{id}"),
)  # fmt: skip
ASKED = (("POST", "/v1/predict"), ("POST", "/v1/explain"), ("POST", "/v1/audits"), ("POST", "/v1/jobs"))
# Any text names a job, so only bodies can be wrong.
CALLS = [("class", *call, GenerationMode.POSITIVE) for call in FACTS + NAMED + ASKED]
CALLS += [("class", *call, GenerationMode.NEGATIVE) for call in ASKED]
CALLS += [("number", *call, GenerationMode.POSITIVE) for call in (FACTS[1], *ASKED)]


@pytest.mark.parametrize(("model", "method", "path", "mode"), CALLS)
def test_every_answer_is_one_the_document_promises(
    addresses: dict[str, str], model: str, method: str, path: str, mode: GenerationMode
) -> None:
    operation = schemathesis.openapi.from_url(f"{addresses[model]}/v1/openapi.json")[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def calls(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    calls()
