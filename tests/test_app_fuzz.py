"""Generated calls against the OpenAPI document: whatever comes, the answer is one that the document promises."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
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

from servers import serving
from treefocus.app.demo import demo_service
from treefocus.app.limits import Limits

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(demo_service(Limits(seconds_per_row=0.2)), tmp_path_factory.mktemp("jobs")) as one:
        yield one


FACTS = (("GET", "/v1/health"), ("GET", "/v1/model"), ("GET", "/v1/jobs"))
NAMED = (
    ("GET", "/v1/jobs/{id}"), ("GET", "/v1/jobs/{id}/result"), ("POST", "/v1/jobs/{id}/cancel"),
    ("DELETE", "/v1/jobs/{id}"),
)  # fmt: skip
ASKED = (("POST", "/v1/predict"), ("POST", "/v1/explain"), ("POST", "/v1/jobs"))
# Any text names a job, so only bodies can be wrong.
CALLS = [(*call, GenerationMode.POSITIVE) for call in FACTS + NAMED + ASKED]
CALLS += [(*call, GenerationMode.NEGATIVE) for call in ASKED]


@pytest.mark.parametrize(("method", "path", "mode"), CALLS)
def test_every_answer_is_one_the_document_promises(
    client: httpx.Client, method: str, path: str, mode: GenerationMode
) -> None:
    operation = schemathesis.openapi.from_url(f"{client.base_url}/v1/openapi.json")[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def calls(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    calls()
