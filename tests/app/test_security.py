"""Who may call: tokens, origins, host names; careful headers; and logs that say nothing about rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.servers import serving
from treefocus import InvalidInput
from treefocus.app.demo import demo_service
from treefocus.app.discretion import Discreet
from treefocus.app.security import check_binding
from treefocus.app.server import create_app
from treefocus.app.service import Service

TOKEN = "correct horse battery staple"


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


@pytest.fixture(scope="module")
def client(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(service, tmp_path_factory.mktemp("jobs")) as one:
        yield one


@pytest.fixture
def guarded(service: Service, tmp_path: Path) -> Iterator[httpx.Client]:
    with serving(service, tmp_path / "jobs", host="0.0.0.0", token=TOKEN) as one:  # a new one counts no guesses yet
        yield one


def test_elsewhere_than_here_needs_a_token(service: Service, tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(InvalidInput, match="--token must be given when --host is not one of"):
            create_app(service, tmp_path, host=host, with_page=False)
        check_binding(host, [TOKEN])
    for host in ("127.0.0.1", "localhost", "::1"):
        check_binding(host, [])
    with pytest.raises(InvalidInput, match="--token must be at least 16 characters long, got 5"):
        check_binding("127.0.0.1", ["short"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": "Bearer"},
        {"cookie": f"treefocus={TOKEN.replace(' ', '')}"},
        {"cookie": 'treefocus="; a=[]{}'},
    ],
)
def test_without_the_token_nothing_is_said(guarded: httpx.Client, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/v1/health"), ("GET", "/v1/openapi.json"), ("POST", "/v1/explain"), ("POST", "/x")):
        answer = guarded.request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["detail"] == "The token is missing or wrong."
    page = guarded.get("/", headers=headers)
    assert (page.status_code, page.headers["location"]) == (303, "/sign-in")


def test_with_the_token_all_is(guarded: httpx.Client) -> None:
    answer = guarded.get("/v1/health", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    document = guarded.get("/v1/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert document["security"] == [{"token": []}]


def test_people_sign_in(guarded: httpx.Client) -> None:
    form = guarded.get("/sign-in")
    assert '<label for="token">' in form.text
    wrong = guarded.post("/sign-in", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    assert guarded.post("/sign-in", content=b"token=" + b"x" * 5000).status_code == 401
    right = guarded.post("/sign-in", data={"token": TOKEN})
    assert (right.status_code, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    value = cookie.partition(";")[0]
    assert guarded.get("/v1/health", headers={"cookie": value}).status_code == 200
    guarded.cookies.clear()


def test_pages_of_other_sites_may_not_call(client: httpx.Client, service: Service) -> None:
    body = {"rows": service.rows.values[:1].tolist()}
    for origin in ("http://example.org", "null", "http://127.0.0.1:1"):
        answer = client.post("/v1/predict", json=body, headers={"origin": origin})
        assert answer.status_code == 403
        assert answer.json()["detail"] == "Pages of other sites may not call this server."
        assert client.get("/v1/model", headers={"origin": origin}).status_code == 403
        assert client.options("/v1/model", headers={"origin": origin}).status_code == 403
    own = str(client.base_url).rstrip("/")
    assert client.post("/v1/predict", json=body, headers={"origin": own}).status_code == 200


def test_a_foreign_name_for_this_machine_is_refused(client: httpx.Client, guarded: httpx.Client) -> None:
    for host in ("example.org", "127.0.0.1.example.org", ""):
        assert client.get("/v1/health", headers={"host": host}).status_code == 421
    assert client.get("/v1/health", headers={"host": "localhost:80"}).status_code == 200
    # Elsewhere the names are unknown, and the token does that work.
    signed = {"authorization": f"Bearer {TOKEN}", "host": "service.example.org"}
    assert guarded.get("/v1/health", headers=signed).status_code == 200


def test_every_answer_has_careful_headers(client: httpx.Client, guarded: httpx.Client) -> None:
    answers = [
        client.get("/v1/health"), client.get("/v1/nothing"), client.get("/"), client.post("/v1/explain", json={}),
        client.get("/v1/health", headers={"host": "example.org"}), guarded.get("/v1/health"), guarded.get("/sign-in"),
    ]  # fmt: skip
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]
    assert client.get("/v1/health").headers["content-security-policy"].startswith("default-src 'none'")


def test_unexpected_errors_tell_nothing_of_the_rows(
    client: httpx.Client, service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaking(*args: Any, **more: Any) -> None:
        raise RuntimeError("row 4711")

    monkeypatch.setattr(Service, "explain", breaking)
    answer = client.post("/v1/explain", json={"rows": service.rows.values[:1].tolist()})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "4711" not in answer.text + caplog.text
    assert "RuntimeError in" in caplog.text
    assert client.get("/v1/health").status_code == 200


def test_the_logs_keep_the_kind_of_an_error_and_not_its_message(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("treefocus.test")
    logger.addFilter(Discreet())
    try:
        raise ValueError("income 4711")
    except ValueError as error:
        logger.exception("in the page: %s", error)
        logger.error(error)
        logger.error("said %s", error)
    logger.warning("plain %s", "words")
    assert "4711" not in caplog.text
    assert caplog.text.count("ValueError in") == 3
    assert "plain words" in caplog.text


def test_no_body_and_no_log_of_calls_holds_rows(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(service, tmp_path) as client:
        client.post("/v1/explain", json={"rows": [[31415.0] * 12, ["nonsense 4711"] * 12]})
        client.post("/v1/explain", json={"rows": [[31415.0] * 12]})
        client.post("/v1/explain", json={"rows": [{"nonsense 4711": 31415.0}]})
    assert "4711" not in caplog.text
    assert "31415" not in caplog.text
