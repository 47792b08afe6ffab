"""Jobs: submitted, watched, fetched, called off; and a server that is killed loses nothing that was finished."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from support.servers import command, serving, wait_until
from treefocus import InvalidInput
from treefocus.app import job_folder
from treefocus.app.demo import demo_service
from treefocus.app.job_folder import JobFolder
from treefocus.app.jobs import PART, Jobs
from treefocus.app.limits import Limits
from treefocus.app.messages import ExplainBody
from treefocus.app.rows import find
from treefocus.app.service import Service
from treefocus.storage import atomic

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/explanations-1.json").read_text(encoding="utf-8"))
ENDED = ("done", "failed", "cancelled")


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service(Limits(jobs_open=3, jobs_kept=3))  # of which one client may have two


@pytest.fixture
def client(service: Service, tmp_path: Path) -> Iterator[httpx.Client]:
    with serving(service, tmp_path / "jobs") as one:
        yield one


@pytest.fixture(scope="module")
def declined(service: Service) -> list[list[float]]:
    chosen = [i for i, label in enumerate(service.predictions.labels) if label == "declined"]
    return service.rows.values[chosen].tolist()


def quick(rows: list[list[float]], **more: Any) -> dict[str, Any]:
    return {"rows": rows, "target": "approved", "distance": "manhattan", "time_limit": 10.0} | more


def endless(rows: list[list[float]]) -> dict[str, Any]:
    """A job that takes long, for its proofs do."""
    return {"rows": rows * 10, "target": "approved", "distance": "cosine", "time_limit": 5.0}


def ended(client: httpx.Client, place: str) -> dict[str, Any]:
    def has_ended() -> bool:
        return client.get(place).json()["status"] in ENDED

    wait_until(has_ended)
    return client.get(place).json()


def test_a_job_gives_the_answers_of_single_calls(client: httpx.Client, declined: list[list[float]]) -> None:
    n_rows = PART + 20
    targets = ["approved", "declined"] * (n_rows // 2)
    body = quick(declined[:n_rows], target=targets)
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202
    place = answer.headers["location"]
    assert place == f"/v1/jobs/{answer.json()['id']}"
    job = ended(client, place)
    assert (job["status"], job["done"], job["rows"], job["detail"]) == ("done", n_rows, n_rows, None)
    result = client.get(f"{place}/result").json()
    jsonschema.validate(result, SCHEMA)
    single = [
        row
        for part in (slice(0, 40), slice(40, n_rows))
        for row in client.post("/v1/explain", json=quick(declined[part], target=targets[part])).json()["rows"]
    ]
    assert [row["row"] for row in result["rows"]] == list(range(n_rows))
    assert [row | {"row": 0} for row in result["rows"]] == [row | {"row": 0} for row in single]
    listed = client.get("/v1/jobs").json()["jobs"]
    assert [one["id"] for one in listed] == [job["id"]]


def test_rows_keep_their_own_numbers_and_their_answers_in_a_filtered_batch(
    client: httpx.Client, service: Service
) -> None:
    chosen = find(service, "income>40000 late_payments>=1", "declined")[:6]
    assert chosen != list(range(6))
    rows = [service.written(i) for i in chosen]
    body = {"rows": rows, "ids": [chosen[0], *(f"{i} (A-{i})" for i in chosen[1:])]}
    place = client.post("/v1/jobs", json=body).headers["location"]
    assert ended(client, place)["status"] == "done"
    found = client.get(f"{place}/result").json()["rows"]
    assert [row["row"] for row in found] == body["ids"]
    for i, row in zip(chosen, found, strict=True):  # asked alone, without a clock, the answer is the same
        (alone,) = client.post("/v1/explain", json={"rows": [service.written(i)], "ids": [i]}).json()["rows"]
        assert alone | {"row": row["row"]} == row
        assert alone["row"] == i
    for path in ("/v1/explain", "/v1/jobs"):
        refused = client.post(path, json=body | {"ids": [1]})
        assert refused.status_code == 422
        assert refused.json()["detail"] == "ids must be a name for each of the 6 rows, got 1."


def test_a_job_without_rows_is_done_at_once(client: httpx.Client) -> None:
    place = client.post("/v1/jobs", json=quick([])).headers["location"]
    assert ended(client, place)["status"] == "done"
    assert client.get(f"{place}/result").json()["rows"] == []


def test_a_job_can_be_called_off_and_forgotten(
    client: httpx.Client, declined: list[list[float]], tmp_path: Path
) -> None:
    place = client.post("/v1/jobs", json=endless(declined[:50])).headers["location"]
    waiting = client.post("/v1/jobs", json=quick(declined[:2])).headers["location"]
    assert client.get(f"{place}/result").status_code == 409
    assert client.post(f"{waiting}/cancel").json()["status"] == "cancelled"
    client.post(f"{place}/cancel")
    assert ended(client, place)["status"] == "cancelled"
    refused = client.get(f"{place}/result")
    assert (refused.status_code, refused.json()["detail"]) == (409, "The job has no result; it is cancelled")
    assert client.post(f"{place}/cancel").json()["status"] == "cancelled"
    for one in (place, waiting):
        assert client.delete(one).status_code == 204
        assert client.get(one).status_code == 404
        assert client.delete(one).status_code == 404
    assert [one.name for one in (tmp_path / "jobs").iterdir()] == ["lock"]


def test_a_job_that_runs_can_be_forgotten(client: httpx.Client, declined: list[list[float]]) -> None:
    place = client.post("/v1/jobs", json=endless(declined[:50])).headers["location"]
    wait_until(lambda: client.get(place).json()["status"] == "running")
    assert client.delete(place).status_code == 204
    assert client.get("/v1/jobs").json() == {"jobs": []}


def test_so_many_jobs_and_no_more(client: httpx.Client, declined: list[list[float]]) -> None:
    places = [client.post("/v1/jobs", json=endless(declined[:20])).headers["location"] for _ in range(2)]
    refused = client.post("/v1/jobs", json=quick(declined[:1]))
    assert refused.status_code == 429
    assert refused.json()["detail"].startswith("One client may have at most 2 of the 3 jobs that wait or run")
    for place in places:
        client.post(f"{place}/cancel")
        ended(client, place)
    for _ in range(3):
        ended(client, client.post("/v1/jobs", json=quick(declined[:1])).headers["location"])
    client.post("/v1/jobs", json=quick(declined[:1]))
    kept = [job["id"] for job in client.get("/v1/jobs").json()["jobs"]]
    assert len(kept) == 4  # the last three that ended, and the new one
    assert not {place.rpartition("/")[2] for place in places} & set(kept)


@pytest.mark.parametrize("name", ["x", "..%2f..%2fetc%2fpasswd", "%00", "a" * 500, "lock"])
def test_only_jobs_can_be_asked_for(client: httpx.Client, name: str) -> None:
    for answer in (client.get(f"/v1/jobs/{name}"), client.get(f"/v1/jobs/{name}/result")):
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_what_a_server_left_behind_goes_on(
    service: Service, declined: list[list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(service, tmp_path) as client:
        done = client.post("/v1/jobs", json=quick(declined[:3])).headers["location"]
        ended(client, done)
        result = client.get(f"{done}/result").content
        left = client.post("/v1/jobs", json=quick(declined[: 3 * PART])).headers["location"]
        wait_until(lambda: list((tmp_path / left.rpartition("/")[2]).glob("part-*.json")))
    parts = {path: path.read_bytes() for path in (tmp_path / left.rpartition("/")[2]).glob("part-*.json")}
    asked: list[int] = []
    own = Service.explain

    def counted(self: Service, rows: Any, *args: Any, **more: Any) -> Any:
        asked.append(len(rows.values))
        return own(self, rows, *args, **more)

    monkeypatch.setattr(Service, "explain", counted)
    with serving(service, tmp_path) as client:
        assert client.get(f"{done}/result").content == result
        assert ended(client, left)["status"] == "done"
        assert [row["row"] for row in client.get(f"{left}/result").json()["rows"]] == list(range(3 * PART))
    if len(parts) < 3:  # unless the stop came after the last part
        assert sum(asked) == (3 - len(parts)) * PART


def test_a_job_of_another_model_fails_with_a_sentence(service: Service, tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    folder.create("0" * 32, {"submitted": "2026", "n_rows": 0, "server": "another", "body": {"rows": []}})
    folder.close()
    for _ in range(2):  # and the next server knows why
        with serving(service, tmp_path) as client:
            job = ended(client, f"/v1/jobs/{'0' * 32}")
            assert job["status"] == "failed"
            assert job["detail"].startswith("The job was submitted to a server with another model")


def test_an_unexpected_failure_tells_nothing_of_the_rows(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Jobs(tmp_path, service)
    job = jobs.submit(ExplainBody.model_validate(quick(service.rows.values[:1].tolist())))

    def breaking(*args: Any, **more: Any) -> None:
        raise RuntimeError("secret 4711")

    monkeypatch.setattr(Service, "explain", breaking)
    jobs.start()
    wait_until(lambda: job.has_ended)
    jobs.close()
    assert job.status == "failed"
    assert "RuntimeError" in caplog.text
    assert "4711" not in caplog.text + str(job.detail)


def test_a_full_disk_fails_the_job_and_not_the_server(
    service: Service, declined: list[list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path, service)
    first = jobs.submit(ExplainBody.model_validate(quick(declined[:1])))
    own = job_folder.write_whole

    def full(path: Path, text: str) -> None:
        if first.id in path.parts:
            raise OSError("no space left")
        own(path, text)

    monkeypatch.setattr(job_folder, "write_whole", full)
    jobs.start()
    wait_until(lambda: first.has_ended)
    second = jobs.submit(ExplainBody.model_validate(quick(declined[:1])))
    wait_until(lambda: second.has_ended)
    jobs.close()
    assert (first.status, first.detail) == ("failed", "The server cannot write to its jobs folder.")
    assert second.status == "done"


def test_foreign_files_in_the_folder_are_left_alone(service: Service, tmp_path: Path) -> None:
    (tmp_path / ("a" * 32)).mkdir()
    (tmp_path / ("b" * 32)).mkdir()
    (tmp_path / ("b" * 32) / "request.json").write_text("{", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    jobs = Jobs(tmp_path, service)
    assert jobs.all() == []
    jobs.close()
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_one_server_a_folder(service: Service, tmp_path: Path) -> None:
    first = JobFolder(tmp_path)
    with pytest.raises(InvalidInput, match="Another server works in the jobs folder"):
        Jobs(tmp_path, service)
    first.close()
    JobFolder(tmp_path).close()
    with pytest.raises(InvalidInput, match="cannot be used"):
        JobFolder(tmp_path / "lock" / "x")


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_nobody_else_can_read_the_rows(service: Service, declined: list[list[float]], tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs", service)
    job = jobs.submit(ExplainBody.model_validate(quick(declined[:1])))
    jobs.close()
    for path in (tmp_path / "jobs", tmp_path / "jobs" / job.id):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        job_folder.write_whole(path, "{}")
    assert not path.exists()


def test_kill_during_a_job_and_restart(declined: list[list[float]], tmp_path: Path) -> None:
    """kill -9 while a job writes: what was finished is there, nothing is half-written, the rest goes on."""
    with command("--demo", "--jobs", tmp_path) as (process, client):
        done = client.post("/v1/jobs", json=quick(declined[:5])).headers["location"]
        ended(client, done)
        result = client.get(f"{done}/result").content
        left = client.post("/v1/jobs", json=quick(declined[: 6 * PART])).headers["location"]
        folder = tmp_path / left.rpartition("/")[2]
        wait_until(lambda: len(list(folder.glob("part-*.json"))) >= 2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    for path in tmp_path.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text(encoding="utf-8"))
    with command("--demo", "--jobs", tmp_path) as (_, client):
        assert client.get(f"{done}/result").content == result
        assert ended(client, left)["status"] == "done"
        rows = client.get(f"{left}/result").json()["rows"]
        assert [row["row"] for row in rows] == list(range(6 * PART))
        assert all(row["status"] in ("OPTIMAL", "BOUNDED") for row in rows)


def test_submitting_from_many_threads_keeps_to_the_limit(
    service: Service, declined: list[list[float]], tmp_path: Path
) -> None:
    jobs = Jobs(tmp_path, service)  # not started: all wait
    refused = []

    def submit() -> None:
        try:
            jobs.submit(ExplainBody.model_validate(quick(declined[:1])))
        except Exception as error:
            refused.append(str(error))

    threads = [threading.Thread(target=submit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs.close()
    assert len(jobs.all()) == service.limits.jobs_per_client == 2
    assert len(refused) == 4
