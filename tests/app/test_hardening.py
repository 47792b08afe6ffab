"""What keeps a server up: problems for all errors, requests that never end, shares, guesses, budgets, full disks,
numbers, logs and a quiet end."""

from __future__ import annotations

import errno
import json
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.servers import command, serving, wait_until
from treefocus import InvalidInput
from treefocus.app import connections, job_folder, security
from treefocus.app.callers import Budget, Guesses
from treefocus.app.demo import demo_service
from treefocus.app.limits import BudgetSpent, Limits
from treefocus.app.service import Service
from treefocus.commands.reading import tokens_of

TOKEN, OTHER = "correct horse battery staple", "another horse and another battery"


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service(Limits(calls_at_once=1, calls_waiting=3, jobs_open=3, questions_per_day=6))


@pytest.fixture(scope="module")
def row(service: Service) -> list[float]:
    return service.rows.values[1].tolist()


@pytest.fixture
def client(service: Service, tmp_path: Path) -> Iterator[httpx.Client]:
    with serving(service, tmp_path / "jobs") as one:
        yield one


def raw(client: httpx.Client, text: bytes) -> bytes:
    """What comes back until the server closes."""
    with socket.create_connection((client.base_url.host, int(client.base_url.port or 0)), 60) as connection:
        connection.sendall(text)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize("header", [b"Host: [", b"Host: 127.0.0.1\r\nOrigin: http://[", b"Host: [::1\r\nX: y"])
def test_addresses_that_are_none_are_misuse(client: httpx.Client, header: bytes) -> None:
    answer = raw(client, b"GET /v1/model HTTP/1.1\r\n" + header + b"\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert b"Host and Origin must be addresses" in answer


@pytest.mark.parametrize("text", [b"", b"GET /v1/health HTTP/1.1\r\nHost: 127", b"GET /v1/health HTTP/1.1\r\nA: b\r\n"])
def test_a_request_that_does_not_go_on_is_closed(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(connections, "SLOWEST_HEAD", 0.2)
    assert raw(client, text) == b""


def test_a_second_request_that_does_not_go_on_is_closed_too(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SLOWEST_HEAD", 0.2)
    whole = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = raw(client, whole + b"GET /v1/health HT")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_does_not_arrive_is_answered_and_closed(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "SLOWEST_BODY", 0.2)
    head = (
        b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
    )
    answer = raw(client, head + b'{"rows": [')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The body did not arrive in time." in answer


def test_one_client_cannot_take_every_place(service: Service, row: list[float], tmp_path: Path) -> None:
    slow = demo_service(Limits(calls_at_once=1, calls_waiting=3))
    began, go = threading.Event(), threading.Event()
    honest = slow.explain

    def waiting(*arguments: Any, **options: Any) -> Any:
        began.set()
        go.wait(60)
        return honest(*arguments, **options)

    slow.explain = waiting  # type: ignore[method-assign]
    with serving(slow, tmp_path) as client:
        answers: list[httpx.Response] = []

        def ask() -> None:
            answers.append(client.post("/v1/explain", json={"rows": [row]}))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: answers)  # two of the four places are this client's, the third call is turned away
        assert began.wait(60)
        assert answers[0].status_code == 429
        assert answers[0].json()["detail"].startswith("One client may have at most 2 of the 4 calls under way")
        go.set()
        for thread in threads:
            thread.join()
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429]


def test_one_client_cannot_take_every_job() -> None:
    limits = Limits(jobs_open=4)
    limits.check_jobs(3, 2)
    with pytest.raises(Exception, match="One client may have at most 3 of the 4 jobs"):
        limits.check_jobs(3, 3)
    with pytest.raises(Exception, match="At most 4 jobs may wait or run"):
        limits.check_jobs(4, 0)


def test_guesses_wait_longer_and_longer() -> None:
    now = 0.0
    guesses = Guesses(lambda: now)
    waits = []
    for _ in range(14):
        guesses.wrong("a")
        waits.append(guesses.wait("a"))
        now += waits[-1]
    assert waits == [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert guesses.wait("b") == 0.0
    guesses.wrong("a")
    now += 1_000
    assert guesses.wait("a") == 0.0
    guesses.wrong("a")
    assert guesses.wait("a") == 0.0  # it was long ago


def test_wrong_tokens_are_slowed_and_those_signed_in_are_not(service: Service, tmp_path: Path) -> None:
    with serving(service, tmp_path, token=TOKEN, tokens={"ada": OTHER}) as client:
        signed = client.post("/sign-in", data={"token": OTHER})
        assert signed.status_code == 303
        client.cookies.clear()
        wrong = {"authorization": "Bearer wrong"}
        codes = [client.get("/v1/model", headers=wrong).status_code for _ in range(8)]
        assert codes == [401] * 6 + [429] * 2
        refused = client.get("/v1/model", headers={"authorization": f"Bearer {TOKEN}"})
        assert refused.status_code == 429  # a right guess among wrong ones is not told
        assert int(refused.headers["retry-after"]) >= 1
        assert client.post("/sign-in", data={"token": TOKEN}).status_code == 429
        pass_of = signed.headers["set-cookie"].split(";")[0]
        assert client.get("/v1/model", headers={"cookie": pass_of}).status_code == 200


def test_the_questions_of_a_day_are_counted_by_token(service: Service, row: list[float], tmp_path: Path) -> None:
    with serving(service, tmp_path, token=TOKEN, tokens={"ada": OTHER}) as client:
        mine, hers = ({"authorization": f"Bearer {token}"} for token in (TOKEN, OTHER))
        assert client.post("/v1/predict", json={"rows": [row] * 3}, headers=mine).status_code == 200
        assert client.post("/v1/explain", json={"rows": [row], "n": 2}, headers=mine).status_code == 200
        assert client.post("/v1/jobs", json={"rows": [row]}, headers=mine).status_code == 202
        for path in ("/v1/predict", "/v1/explain", "/v1/jobs"):
            refused = client.post(path, json={"rows": [row]}, headers=mine)
            assert refused.status_code == 429
            assert refused.json()["detail"].startswith("At most 6 questions a day: 6 were asked, and these are 1 more.")
            assert 0 < int(refused.headers["retry-after"]) <= 86_400
        assert client.post("/v1/predict", json={"rows": [row] * 6}, headers=hers).status_code == 200
        assert client.get("/v1/model", headers=mine).status_code == 200


def test_a_new_day_has_new_questions() -> None:
    now = datetime(2030, 1, 1, 23, 59, tzinfo=UTC)
    budget = Budget(2, lambda: now)
    budget.take(2, "a")
    budget.take(1, "b")
    with pytest.raises(BudgetSpent) as caught:
        budget.take(1, "a")
    assert caught.value.seconds == 60
    now += timedelta(minutes=1)
    budget.take(2, "a")
    Budget(None).take(10**9, "a")


def test_tokens_come_by_name_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# who\nada {OTHER}\n\ngrace  0123456789abcdef\n", encoding="utf-8")
    assert tokens_of(TOKEN, path) == {"default": TOKEN, "ada": OTHER, "grace": "0123456789abcdef"}
    for text in ("ada\n", "ada a b\nada c d\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput, match=r"--tokens, line . must be a new name, a space and a token"):
            tokens_of(None, path)


def test_a_full_disk_is_told_and_leaves_nothing(
    client: httpx.Client, row: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        honest(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted((tmp_path / "jobs").rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        refused = client.post("/v1/jobs", json={"rows": [row]})
        health = client.get("/v1/health")
    assert refused.status_code == 507
    assert refused.json()["detail"] == "The disk that the server keeps jobs on is full."
    assert health.status_code == 503
    assert health.json() == {
        "status": "not ready", "ready": False,
        "checks": {"places": True, "jobs": True, "disk": False, "staying": True},
    }  # fmt: skip
    assert sorted((tmp_path / "jobs").rglob("*")) == before
    assert client.get("/v1/health").json()["ready"]
    with pytest.raises(PermissionError), job_folder.told_when_full():
        raise PermissionError(errno.EACCES, "Permission denied")


def test_the_numbers_are_those_of_the_calls(service: Service, row: list[float], tmp_path: Path) -> None:
    service = demo_service()
    with serving(service, tmp_path) as client:
        client.post("/v1/explain", json={"rows": [row, row]})
        client.get("/v1/jobs/nothing-like-it")
        client.get("/secret/42")
        text = client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = text.text.splitlines()
    assert 'treefocus_requests_total{method="POST",path="/v1/explain",status="200"} 1' in lines
    assert 'treefocus_requests_total{method="GET",path="/v1/jobs/{id}",status="404"} 1' in lines
    assert "treefocus_rows_total 2" in lines
    assert 'treefocus_answers_total{status="OPTIMAL"} 2' in lines
    assert 'treefocus_answer_gap_bucket{le="0"} 2' in lines
    assert 'treefocus_request_seconds_count{path="/v1/explain"} 1' in lines
    assert "treefocus_calls_inside 0" in lines
    assert "secret" not in text.text
    assert "nothing-like-it" not in text.text


def test_the_whole_server_speaks_of_problems_and_ends_quietly(row: list[float], tmp_path: Path) -> None:
    """The real command, with the page: unknown places, ids and logs of calls, and SIGTERM while a call runs."""
    if sys.platform == "win32":
        pytest.skip("Windows has no SIGTERM to be heard")
    with command("--demo", "--jobs", tmp_path, "--access-log") as (process, client):
        for method, path, status in (
            ("GET", "/nothing", 404), ("GET", "/v1/nothing", 404), ("GET", "/v1", 404), ("DELETE", "/v1/model", 405),
            ("PUT", "/v1/jobs", 405), ("GET", "/v1/explain", 405), ("POST", "/metrics", 405), ("GET", "/a/b.php", 404),
        ):  # fmt: skip
            answer = client.request(method, path)
            assert answer.status_code == status, (method, path)
            assert answer.headers["content-type"] == "application/problem+json", (method, path)
            assert answer.json()["status"] == status
        own = client.get("/v1/health", headers={"x-request-id": "my-own-id-1"})
        assert own.headers["x-request-id"] == "my-own-id-1"
        assert len(client.get("/v1/health", headers={"x-request-id": "<b>"}).headers["x-request-id"]) == 32
        answers: list[httpx.Response] = []
        body = {"rows": [row] * 40, "distance": "cosine", "time_limit": 0.02}

        def ask() -> None:
            answers.append(client.post("/v1/explain", json=body, headers={"x-request-id": "long-call-9"}))

        thread = threading.Thread(target=ask)
        thread.start()
        busy = "treefocus_calls_inside 1"
        wait_until(lambda: answers or busy in client.get("/metrics").text)
        process.send_signal(signal.SIGTERM)
        thread.join()
        assert answers[0].status_code == 200
        assert len(answers[0].json()["rows"]) == 40
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    calls = [line for line in lines if line.get("request") == "long-call-9"]
    assert [(one["method"], one["path"], one["status"]) for one in calls] == [("POST", "/v1/explain", 200)]
    assert {"time", "level", "logger", "seconds"} <= calls[0].keys()
    assert all(line["logger"] == "treefocus.access" for line in lines)
    assert not any("b.php" in json.dumps(line) for line in lines)
