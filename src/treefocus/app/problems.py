"""Errors as application/problem+json (RFC 9457), in the sentences that Python raises."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treefocus.app.limits import OverLimit, TooBusy
from treefocus.app.options import KINDS
from treefocus.errors import TreefocusError

MEDIA_TYPE = "application/problem+json"
_MOST_ERRORS = 5  # of a body in which everything is wrong
_FORMS = frozenset(("float", "int", "str", "bool", "one"))  # names for one of several forms
_WITH_KINDS = ("constraints", "target", "plausibility")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_UNKNOWN = {404: "There is nothing at this path.", 405: "The path does not take this method."}
_log = logging.getLogger("treefocus.app")


def problem(status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """One problem as a response; half letters are escaped, so that any text can be told."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail} | more
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error as a problem."""
    app.add_exception_handler(TreefocusError, _misuse)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(LastResort)
    app.add_middleware(Plainly, routes=app.routes)


async def _misuse(request: Request, error: Exception) -> Response:
    if isinstance(error, OverLimit):
        return problem(
            error.code, str(error), {"Retry-After": str(error.seconds)} if isinstance(error, TooBusy) else None
        )
    return problem(422, str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = _UNKNOWN.get(error.status_code, str(error.detail))
    detail = "The body cannot be read as JSON." if error.status_code == 400 else detail
    return problem(error.status_code, detail, dict(error.headers or {}))


async def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    sentences = [sentence(one) for one in _to_the_point(error.errors())[:_MOST_ERRORS]]
    return problem(422, " ".join(sentences), errors=sentences)


def _to_the_point(errors: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that only say that an object is not a list, or a list not an object, where either would do."""
    other = {"dict_type": list, "list_type": dict}
    kept = [one for one in errors if not isinstance(one.get("input"), other.get(one["type"], ()))]
    return kept or list(errors)


def sentence(error: dict[str, Any]) -> str:
    """One of pydantic's errors in the form of `treefocus.errors.reject`: what, what is allowed, what came."""
    place = _place(error["loc"])
    if error["type"] == "missing":
        return f"{place} must be given."
    if error["type"] == "extra_forbidden":
        return f"{place} is not known here."
    if error["type"] == "json_invalid":
        return f"The body must be JSON: {error.get('ctx', {}).get('error', 'it cannot be read')}."
    if error["type"] == "union_tag_not_found":
        return f"{place}.kind must be given."
    if error["type"] == "union_tag_invalid":
        return f"{place}.kind must be one of {error['ctx']['expected_tags']}, got {_short(error['ctx']['tag'])}."
    allowed = error["msg"].removeprefix("Input should be ")
    return f"{place} must be {allowed}, got {_short(error.get('input'))}."


def _place(parts: tuple[int | str, ...]) -> str:
    """`rows[3].income`; the kind of parameter and the names of alternatives in front are left out."""
    text = ""
    forms = _FORMS | KINDS if parts[1:2] and parts[1] in _WITH_KINDS else _FORMS
    for part in parts[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not part.isidentifier() or part in forms:
            continue  # one of several forms
        else:
            text += f".{part}" if text else part
    return text or "The body"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


class Plainly:
    """404 and 405 as problems, whoever found out: the page's framework answers with a page of its own."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute]) -> None:
        """`routes`: of which those that only lack the method are told from those that are not there."""
        self._app, self._routes = app, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and translate."""
        is_ours = False

        async def sending(message: Message) -> None:
            nonlocal is_ours
            if message["type"] == "http.response.start" and message["status"] in _UNKNOWN:
                headers = Headers(raw=message["headers"])
                if not headers.get("content-type", "").startswith(MEDIA_TYPE):
                    is_ours = True
                    await self._problem(scope, headers)(scope, receive, send)
            if not is_ours:
                await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)

    def _problem(self, scope: Scope, headers: Headers) -> Response:
        """405 where a route takes another method: the page stands behind all routes and would take any path."""
        own = [route for route in self._routes if not isinstance(route, Mount)]
        allowed = [m for m in _METHODS if any(one.matches(dict(scope, method=m))[0] is Match.FULL for one in own)]
        told = headers.get("allow") or ", ".join(allowed)
        return problem(405, _UNKNOWN[405], {"Allow": told}) if told else problem(404, _UNKNOWN[404])


class LastResort:
    """Whatever nobody expected: a 500 for the caller, and a line in the log that says where, but nothing of the rows.

    The message of such an exception may hold a row's values, so it is left out.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and catch."""
        is_started = False

        async def sending(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            _log.error("unexpected: %s", told(error))
            if scope["type"] != "http" or is_started:
                return
            response = problem(500, "The server met an error it did not expect; its log says where.")
            await response(scope, receive, send)


def told(error: BaseException) -> str:
    """An exception's kind and where it was raised, without its message."""
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f" in {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}{place}"
