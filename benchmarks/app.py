"""The service under load: how soon the demo page is ready, how fast 8 clients are answered, what generated calls do
to it, whether memory stays flat, how the page bears wide tables, and what answers give away of the model.

    python benchmarks/app.py startup            # from the command to the page
    python benchmarks/app.py load               # 8 clients, p50 and p99
    python benchmarks/app.py fuzz               # schemathesis, at least 2,000 calls for each of two models
    python benchmarks/app.py endure --minutes 30
    python benchmarks/app.py wide               # 200 columns x 100,000 rows: pick, explain, widths
    python benchmarks/app.py visits --n 2000    # memory over visits of the page; --bare without a browser
    python benchmarks/app.py slow               # half-sent requests: how long they are kept
    python benchmarks/app.py giveaway           # how well questions copy the model

Everything runs on this machine over the loopback; clients and server share its cores.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from treefocus import loans
from treefocus.adapters import translate
from treefocus.tables.files import write_columns

DISTANCES = ("euclidean", "manhattan", "cosine", "mahalanobis")


@contextmanager
def served(*arguments: str) -> Iterator[tuple[int, int, float]]:
    """`treefocus serve` as a process, with --demo unless told otherwise: its id, its port, and when it was asked."""
    with tempfile.TemporaryDirectory() as jobs:
        began = time.perf_counter()
        demo = [] if "--data" in arguments else ["--demo"]
        command = [sys.executable, "-m", "treefocus", "serve", *demo, "--port", "0", "--jobs", jobs, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found, "the server did not start"
            yield process.pid, int(found[1]), began
        finally:
            process.terminate()
            process.wait()


class Client:
    """One caller with one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and body of the answer."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def applicants() -> list[list[float]]:
    """The declined ones, as a client would send them."""
    trained = loans.train()
    return trained.X_test[trained.model.predict(trained.X_test) == "declined"].tolist()


# --- from the command to the page


def startup(runs: int) -> None:
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(runs):
            with served() as (_, port, began):
                Client(port).call("GET", "/v1/health")
                answered = time.perf_counter() - began
                page = browser.new_page()
                page.goto(f"http://127.0.0.1:{port}/")
                page.get_by_role("button", name="Explain", exact=True).wait_for()
                ready = time.perf_counter() - began
                page.locator(".tf-sentence").first.wait_for()
                times.append((answered, ready, time.perf_counter() - began))
                page.close()
        browser.close()
    for name, column in zip(("API answers", "page is ready", "first answer"), zip(*times, strict=True), strict=True):
        print(f"{name:14} {' '.join(f'{value:6.2f}' for value in column)}  s")


# --- latency


def load(n_clients: int, seconds: float) -> None:
    rows = applicants()
    kinds: dict[str, Callable[[random.Random], dict[str, Any]]] = {
        "as the demo asks (manhattan)": lambda draw: {"rows": [draw.choice(rows)]},
        "the four distances in turn": lambda draw: {"rows": [draw.choice(rows)], "distance": draw.choice(DISTANCES)},
        "with one more option each": lambda draw: {"rows": [draw.choice(rows)]} | _further(draw),
    }
    with served() as (_, port, _):
        for name, body in kinds.items():
            took, failures = _hammer(port, n_clients, seconds, body)
            quantiles = zip(("p50", "p95", "p99", "max"), np.quantile(took, [0.5, 0.95, 0.99, 1.0]), strict=True)
            told = ", ".join(f"{name} {value:.3f} s" for name, value in quantiles)
            print(f"{name:30} {len(took):6} answers, {len(took) / seconds:.1f} a second, {failures} failed; {told}")


def _further(draw: random.Random) -> dict[str, Any]:
    """A probability, a weight or a measure of plausibility, another one each time."""
    return draw.choice([
        {"target": {"kind": "probability", "label": "approved", "at_least": round(draw.uniform(0.4, 0.95), 3)}},
        {"weights": {draw.choice(loans.SCHEMA.names): draw.uniform(0.1, 5.0)}},
        {"plausibility": {"kind": "local_outlier_factor", "limit": 1.5}},
        {"plausibility": {"kind": "isolation", "limit": 0.5, "cost": 0.1}},
    ])  # fmt: skip


def _hammer(
    port: int, n_clients: int, seconds: float, body: Callable[[random.Random], dict[str, Any]]
) -> tuple[list[float], int]:
    took: list[float] = []
    failed: list[int] = []
    end = time.perf_counter() + seconds

    def client(number: int) -> None:
        draw, own = random.Random(number), Client(port)
        while time.perf_counter() < end:
            asked, began = body(draw), time.perf_counter()
            status, _ = own.call("POST", "/v1/explain", asked)
            took.append(time.perf_counter() - began)
            if status != 200:
                failed.append(status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took, len(failed)


# --- generated calls


def fuzz(examples: int) -> None:
    """On the demo, which predicts classes, and on a model that predicts numbers; schemathesis counts its calls."""
    with tempfile.TemporaryDirectory() as folder:
        for arguments in ((), _regression(Path(folder))):
            _fuzzed(examples, *arguments)


def _regression(folder: Path) -> tuple[str, ...]:
    """A forest that predicts incomes from the other columns of the loan applications, in files."""
    from sklearn.ensemble import RandomForestRegressor

    rows, income = loans.load()[0], loans.SCHEMA.index("income")
    others = np.delete(np.asarray(rows, np.float64), income, axis=1)
    names = [name for name in loans.SCHEMA.names if name != "income"]
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(others, np.asarray(rows)[:, income])
    translate(model).forest.save(folder / "model.json")
    write_columns(folder / "rows.csv", dict(zip(names, others.T.tolist(), strict=True)))
    return str(folder / "model.json"), "--data", str(folder / "rows.csv")


def _fuzzed(examples: int, *arguments: str) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    with served(*arguments, "--max-seconds", "0.2", "--time-limit", "0.1") as (_, port, _):
        subprocess.run(
            [
                str(program), "run", f"http://127.0.0.1:{port}/v1/openapi.json", "--checks", checks,
                "--max-examples", str(examples), "--phases", "examples,coverage,fuzzing,stateful",
                "--generation-database", "none",
            ],
            check=False, cwd=tempfile.gettempdir(),
        )  # fmt: skip
        print("the server is still there:", Client(port).call("GET", "/v1/health"))


# --- endurance


def endure(n_clients: int, minutes: float) -> None:
    rows = applicants()
    counts: Counter[str] = Counter()
    end = time.perf_counter() + 60 * minutes
    with served() as (pid, port, _):
        threads = [
            threading.Thread(target=_mixed, args=(number, port, rows, end, counts)) for number in range(n_clients)
        ]
        for thread in threads:
            thread.start()
        began, memory = time.perf_counter(), []
        while any(thread.is_alive() for thread in threads):
            time.sleep(min(10.0, 6 * minutes))
            memory.append((time.perf_counter() - began, _megabytes(pid)))
        for at, size in memory[:: max(1, len(memory) // 12)]:
            print(f"{at:6.0f} s  {size:7.1f} MB")
        time.sleep(5)
        print(f"   end    {_megabytes(pid):7.1f} MB")
        warm = [size for at, size in memory if at > 60 * minutes / 5]
        slope = np.polyfit([at for at, _ in memory if at > 60 * minutes / 5], warm, 1)[0] * 60 if len(warm) > 2 else 0.0
        print(f"after the first fifth: {min(warm):.1f} to {max(warm):.1f} MB, {slope:+.2f} MB a minute")
    print(dict(counts))


def _mixed(number: int, port: int, rows: list[list[float]], end: float, counts: Counter[str]) -> None:
    draw, own = random.Random(number), Client(port)

    def expect(name: str, wanted: tuple[int, ...], method: str, path: str, body: Any = None) -> bytes:
        try:
            status, text = own.call(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            counts[f"FAILED {name}: {type(error).__name__}"] += 1
            own.__init__(port)  # type: ignore[misc]
            return b"{}"
        counts[name if status in wanted else f"FAILED {name}: {status}"] += 1
        return text

    while time.perf_counter() < end:
        kind = draw.random()
        if kind < 0.6:
            asked = {"rows": [draw.choice(rows)], "distance": draw.choice(DISTANCES)}
            if draw.random() < 0.3:
                asked["constraints"] = [{"kind": "fixed", "columns": [draw.choice(loans.SCHEMA.names)]}]
            expect("explain", (200,), "POST", "/v1/explain", asked)
        elif kind < 0.8:
            expect("predict", (200,), "POST", "/v1/predict", {"rows": draw.sample(rows, 20)})
        elif kind < 0.9:
            expect("misuse", (422,), "POST", "/v1/explain", {"rows": [[1]], "distance": "crow"})
        elif kind < 0.95:
            expect("page", (200,), "GET", "/")
        elif kind < 0.97:
            expect("card", (200,), "GET", "/v1/model")
        else:
            job = json.loads(expect("submit", (202, 429), "POST", "/v1/jobs", {"rows": draw.sample(rows, 30)}))
            if "id" not in job:
                continue
            place = f"/v1/jobs/{job['id']}"
            while json.loads(expect("progress", (200,), "GET", place)).get("status") in ("waiting", "running"):
                time.sleep(0.1)
            expect("result", (200,), "GET", f"{place}/result")
            expect("forget", (204,), "DELETE", place)


# --- wide tables


def _wide_files(folder: Path, n_columns: int, n_rows: int) -> tuple[str, ...]:
    """A forest over many columns with long names and long numbers, in files."""
    from sklearn.ensemble import RandomForestClassifier

    draw = np.random.default_rng(0)
    rows = draw.normal(size=(n_rows, n_columns)).round(6)
    wanted = np.where(rows[:, :20].sum(axis=1) > 0, "granted", "refused")
    model = RandomForestClassifier(50, max_depth=6, random_state=0, n_jobs=2).fit(rows[:20_000], wanted[:20_000])
    translate(model).forest.save(folder / "model.json")
    names = [f"a_rather_long_name_of_measurement_number_{j:03}_in_some_unit" for j in range(n_columns)]
    write_columns(folder / "rows.csv", dict(zip(names, rows.T.tolist(), strict=True)))
    return str(folder / "model.json"), "--data", str(folder / "rows.csv"), "--target", "granted"


def wide(n_columns: int, n_rows: int) -> None:
    """How long a pick and an explanation take on the page beyond the search, folds open, and whether it fits."""
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        served(*_wide_files(Path(folder), n_columns, n_rows)) as (pid, port, _),
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        began = time.perf_counter()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{port}/")
        page.get_by_role("button", name="Explain", exact=True).wait_for()
        print(f"page ready {time.perf_counter() - began:.2f} s")
        page.locator(".tf-sentence").first.wait_for()
        print(f"first answer {time.perf_counter() - began:.2f} s")
        for fold in ("Rules: what", "Values: type", "Try your own"):
            page.get_by_role("button", name=fold).click()
        page.get_by_role("slider").first.wait_for()
        _picks(page, port)
        for width in (1280, 768, 390):
            page.set_viewport_size({"width": width, "height": 900})
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            print(f"{width} px: {over} px too wide")
        print(f"server {_megabytes(pid):.0f} MB")
        browser.close()


def _picks(page: Any, port: int) -> None:
    picked, beyond = [], []
    for i in range(2, 8):
        began = time.perf_counter()
        page.get_by_role("button", name=f"Pick row {i}", exact=True).click()
        page.get_by_text(f"Row {i} is predicted").first.wait_for()
        picked.append(time.perf_counter() - began)
        page.wait_for_function(f"location.search.includes('row={i}')")
        page.locator(".tf-sentence").first.wait_for()
        page.evaluate("document.querySelectorAll('.tf-sentence').forEach((one) => one.classList.add('old'))")
        before, began = _searched(port), time.perf_counter()
        page.get_by_role("button", name="Explain", exact=True).click()
        page.locator(".tf-sentence:not(.old)").first.wait_for()
        beyond.append(time.perf_counter() - began - (_searched(port) - before))
    print("pick    " + " ".join(f"{one:.2f}" for one in picked) + " s")
    print("explain " + " ".join(f"{one:.2f}" for one in beyond) + " s beyond the search")


def _searched(port: int) -> float:
    """Seconds that the server has spent in searches."""
    text = Client(port).call("GET", "/metrics")[1].decode()
    return float(re.findall(r"^treefocus_search_seconds_total (\S+)", text, re.MULTILINE)[0])


# --- memory over visits


def bare_visits(n: int) -> None:
    """The same without a browser, which takes most of a visit's time: the page, its socket, the answer.

    Nobody says good-bye, as browsers do: the server waits for each as for one whose network is gone.
    """
    with served("--max-visitors", "100000") as (pid, port, _):
        for k in range(n + 1):
            if k % max(1, n // 10) == 0:
                print(f"{k:6} visits  {_megabytes(pid):7.1f} MB", flush=True)
            _bare_visit(port)
        time.sleep(30)
        print(f"   later       {_megabytes(pid):7.1f} MB")


def _bare_visit(port: int) -> None:
    """One visitor, as the page's framework speaks with its browser: socket.io over a websocket."""
    from websockets.sync.client import connect

    page = Client(port).call("GET", "/")[1].decode()
    client = re.findall(r"'client_id': '([0-9a-f-]+)'", page)[0]
    query = {
        "client_id": client, "next_message_id": 0, "implicit_handshake": "true", "tab_id": str(uuid.uuid4()),
        "document_id": str(uuid.uuid4()), "EIO": 4, "transport": "websocket",
    }  # fmt: skip
    address = f"ws://127.0.0.1:{port}/_nicegui_ws/socket.io/?{urlencode(query)}"
    with connect(address, origin=f"http://127.0.0.1:{port}", max_size=None) as socket:  # type: ignore[arg-type]
        socket.recv(60)
        socket.send("40")
        while "tf-sentence" not in (told := str(socket.recv(60))):
            if told == "2":  # is anybody there?
                socket.send("3")


def visits(n: int) -> None:
    """Open the page, wait for its answer, leave; again and again.

    A tab keeps the documents of a few hundred visits until its browser looks for garbage, 2 GB of them; it is told to,
    so that this machine has room. A visit that fails is told with what browser and server say, and the next one has a
    tab of its own.
    """
    from playwright.sync_api import Error, sync_playwright

    with served("--max-visitors", "100000") as (pid, port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context, n_failed = browser.new_context(), 0
        context.set_default_timeout(120_000)
        page = context.new_page()
        for k in range(n + 1):
            if k % max(1, n // 10) == 0:
                print(f"{k:6} visits  {_megabytes(pid):7.1f} MB, {n_failed} failed", flush=True)
            try:
                page.goto(f"http://127.0.0.1:{port}/")
                page.locator(".tf-sentence").first.wait_for()
                if k % 20 == 0:
                    context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
            except Error as error:
                n_failed += 1
                print(f"visit {k} failed: {error}; server: {Client(port).call('GET', '/v1/health')[0]}", flush=True)
                page = context.new_page()
        browser.close()
        time.sleep(30)
        print(f"   later       {_megabytes(pid):7.1f} MB")


# --- half-sent requests


def slow(n: int) -> None:
    """Many requests that never end: how long the server keeps them, and whether it answers others meanwhile."""
    import socket

    with served() as (_, port, _):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(n)]
        began = time.perf_counter()
        for one in held:
            one.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127")
        print("others are answered:", Client(port).call("GET", "/v1/health")[0])
        last = 0.0
        for one in held:
            one.settimeout(60)
            assert one.recv(1) == b""
            last = time.perf_counter() - began
        print(f"{n} half-sent requests, the last closed after {last:.1f} s")


# --- what answers give away


def giveaway() -> None:
    """Copies of the demo's model learnt from questions: how often they agree with it on rows of their own.

    After Aivodji, Bolot and Gambs, "Model extraction from counterfactual explanations" (2020): an answer is a point of
    the other class right behind the boundary, so that it teaches more than a prediction.
    """
    from sklearn.ensemble import RandomForestClassifier

    from treefocus.app.demo import demo_service

    service, draw = demo_service(), np.random.default_rng(0)
    rows = draw.permutation(service.rows.values)
    held_out, pool = rows[:2000], rows[2000:]
    truth = np.array(service.predict(held_out).labels)
    print("questions   labels only   with explanations   (share of 2,000 other rows on which the copy agrees)")
    for n in (10, 30, 100, 300):
        asked = pool[:n]
        labels = np.array(service.predict(asked).labels)
        found = service.explain(service.table_of(asked.tolist()), _any_other(service))
        known = found.has_answer
        points = np.vstack([asked, found.points[known]])
        both = np.concatenate([labels, found.outcome[known].astype(labels.dtype)])
        shares = [
            (RandomForestClassifier(100, random_state=0).fit(x, y).predict(held_out) == truth).mean()
            for x, y in ((asked, labels), (points, both))
        ]
        print(f"{n:9}   {shares[0]:11.3f}   {shares[1]:17.3f}")


def _any_other(service: Any) -> Any:
    from dataclasses import replace

    return replace(service.asked, target=None, constraints=(), time_limit=0.02)


def _megabytes(pid: int) -> float:
    """What the server holds in memory."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        return int(re.findall(r"VmRSS:\s+(\d+)", status.read_text())[0]) / 1024
    said = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(said.stdout) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["startup", "load", "fuzz", "endure", "wide", "visits", "slow", "giveaway"])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--bare", action="store_true", help="visits without a browser")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--examples", type=int, default=250)
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "")
    if asked.what == "startup":
        startup(asked.runs)
    elif asked.what == "load":
        load(asked.clients, asked.seconds)
    elif asked.what == "fuzz":
        fuzz(asked.examples)
    elif asked.what == "wide":
        wide(asked.columns, asked.rows)
    elif asked.what == "visits":
        (bare_visits if asked.bare else visits)(asked.n)
    elif asked.what == "slow":
        slow(600)
    elif asked.what == "giveaway":
        giveaway()
    else:
        endure(asked.clients, asked.minutes)


if __name__ == "__main__":
    main()
