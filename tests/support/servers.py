"""Servers for the tests: one in a thread of this process, and the real command in a process of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from treefocus import loans
from treefocus.app.connections import ImpatientProtocol
from treefocus.app.limits import Limits
from treefocus.app.question import ExplainOptions
from treefocus.app.server import create_app
from treefocus.app.service import Service
from treefocus.model.forest import Floats
from treefocus.tables.table import as_table

PATIENCE = 240.0  # seconds until a server is given up on: machines may be busy


@contextmanager
def serving(service: Service, folder: Path, **options: Any) -> Iterator[httpx.Client]:
    """A client of a server in a thread, without the page."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(service, folder, with_page=False, **options)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", ws="none", http=ImpatientProtocol, timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client:
            wait_until(lambda: server.started)
            yield client
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()


def loan_service(limits: Limits) -> Service:
    """The loan data with the live model of scikit-learn, to hold answers against."""
    trained = loans.train()
    asked = ExplainOptions(constraints=loans.CONSTRAINTS, target="approved", time_limit=0.1)
    rows = as_table(trained.X_test, "rows")
    return Service(trained.model, trained.X_train, rows, schema=loans.SCHEMA, asked=asked, limits=limits)


def house_prices() -> tuple[Floats, Floats]:
    """Invented flats, (300, 4) area, rooms, age and distance, and (300,) their prices."""
    draw = np.random.default_rng(0)
    rows = np.column_stack(
        [draw.integers(30, 200, 300), draw.integers(1, 7, 300), draw.integers(0, 80, 300), draw.uniform(0, 20, 300)]
    ).round(1)
    return rows, rows @ np.array([2000.0, 15_000.0, -800.0, -3000.0]) + draw.normal(0, 5000, 300)


@contextmanager
def command(*arguments: str | Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`treefocus serve` as a process, and a client of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "treefocus", "serve", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+?:\d+", line)
        assert found, f"{line!r} {process.stderr.read() if process.poll() is not None else ''}"
        with httpx.Client(base_url=found.group(), timeout=PATIENCE, trust_env=False) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for something that comes in its own time; the limit is only for the case that it never does."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
