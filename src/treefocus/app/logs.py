"""What the server writes about itself: a line of JSON each, with the id of the call, and nothing about rows."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from contextvars import ContextVar
from datetime import UTC, datetime

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treefocus.app.metrics import Metrics

HEADER = "X-Request-ID"
REQUEST: ContextVar[str | None] = ContextVar("request", default=None)
ACCESS = "treefocus.access"
_FROM_OUTSIDE = re.compile(r"[0-9A-Za-z_-]{8,64}")
_log = logging.getLogger(ACCESS)


class JsonLines(logging.Formatter):
    """A record as a line of JSON: when, how grave, from where, in which call, what."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; half letters are escaped."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name,
        }  # fmt: skip
        request = REQUEST.get()
        if request is not None:
            line["request"] = request
        own = getattr(record, "call", None)
        return json.dumps(line | (own if isinstance(own, dict) else {"message": record.getMessage()}))


def write_json(access_log: bool) -> None:
    """Have the server's own loggers, and its frameworks', write JSON to the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("treefocus", "uvicorn", "nicegui", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    _log.setLevel(logging.INFO if access_log else logging.WARNING)


class Journal:
    """Gives every call an id, counts it, and writes a line about it: the route, the status and the time it took."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and write down."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER.lower(), "")
        request = given if _FROM_OUTSIDE.fullmatch(given) else uuid.uuid4().hex
        REQUEST.set(request)
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._write(scope, status, time.perf_counter() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope, status)
        self._metrics.answered(scope["method"], route, status, seconds)
        call = {"method": scope["method"], "path": route, "status": status, "seconds": round(seconds, 4)}
        _log.info("%(method)s %(path)s %(status)s", call, extra={"call": call})


def _route(scope: Scope, status: int) -> str:
    """The route and not the path, which may hold anything that a caller wrote."""
    own = getattr(scope.get("route"), "path", None)
    if own is not None:
        return str(own)
    return "/" if scope["path"] == "/" else "(framework)" if status < 400 else "(other)"
