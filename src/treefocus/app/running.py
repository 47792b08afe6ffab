"""From a service to a server that listens."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import typer
import uvicorn

from treefocus.app.connections import ImpatientProtocol
from treefocus.app.discretion import be_discreet
from treefocus.app.logs import write_json
from treefocus.app.server import create_app
from treefocus.app.service import Service
from treefocus.app.starting import settle_memory
from treefocus.errors import reject

GRACE = 10  # seconds in which calls under way may end after SIGTERM


def run(
    service: Service, jobs: Path, host: str, port: int, tokens: Mapping[str, str], *, access_log: bool = False,
    grace: int = GRACE,
) -> None:  # fmt: skip
    """Serve until stopped; calls that run then have so many seconds of grace."""
    write_json(access_log)
    be_discreet()
    listener = _listen(host, port)
    app = create_app(service, jobs, host=host, tokens=tokens)
    settle_memory()
    bound = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"{service.title}: http://{shown}:{bound}/  (API: /v1, OpenAPI: /v1/openapi.json). Ctrl-C stops it.")
    sys.stdout.flush()
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, server_header=False, http=ImpatientProtocol,
        date_header=True, timeout_keep_alive=30, timeout_graceful_shutdown=grace, ws_max_size=1_000_000,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """The socket, before anything slow: a port that is taken is told at once."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)  # who calls before the server is ready waits
    except OSError as error:
        reject("--host and --port", "an address that is free", f"{host}:{port} ({error.strerror or error})")
    return listener


def default_jobs_folder(fingerprint: str) -> Path:
    """Where this user's programs keep their state, a folder a model."""
    base = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_STATE_HOME")
    root = Path(base) if base else Path.home() / ".local" / "state"
    return root / "treefocus" / "jobs" / fingerprint[:16]
