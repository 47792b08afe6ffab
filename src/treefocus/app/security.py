"""Who may call, from where and how much: a token, the page's own origin, bodies of bounded size, careful headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections.abc import Iterable, Mapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treefocus.app.api import METRICS, PREFIX
from treefocus.app.callers import CALLER, UNKNOWN, Guesses
from treefocus.app.problems import problem
from treefocus.errors import reject

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
SLOWEST_BODY = 10.0  # seconds that a body may take
LEAST_RATE = 100_000  # bytes that buy a second more
SIGN_IN = "/sign-in"
_COOKIE = "treefocus"
_FORM_BYTES = 2_000
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_API_POLICY = "default-src 'none'; frame-ancestors 'none'"
# The page's framework compiles its templates in the browser and styles elements one by one, which takes the two
# 'unsafe' words; addresses other than our own stay closed.
_PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_FORM = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>treefocus: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:24rem;margin:4rem auto;padding:0 1rem}}
label,input,button{{display:block;font:inherit;width:100%;box-sizing:border-box;margin:.5rem 0;padding:.4rem}}
label{{padding:0}}</style></head><body><main><h1>treefocus</h1><form method="post" action="{action}">
<label for="token">Token</label><input id="token" name="token" type="password" autocomplete="current-password" required
autofocus><button>Sign in</button></form><p role="alert">{note}</p></main></body></html>"""


def check_binding(host: str, tokens: Iterable[str]) -> None:
    """A server that others can reach needs tokens, and ones that cannot be guessed."""
    tokens = tuple(tokens)
    for token in tokens:
        if len(token) < SHORTEST_TOKEN:
            reject("--token", f"at least {SHORTEST_TOKEN} characters long", len(token))
    if not tokens and host not in LOOPBACK:
        reject("--token", f"given when --host is not one of {', '.join(LOOPBACK)}", "none")


class Guard:
    """Stands in front of everything, page, socket and API alike."""

    def __init__(
        self, app: ASGIApp, *, tokens: Mapping[str, str], hosts: tuple[str, ...] | None, body_bytes: int
    ) -> None:
        """`tokens`: by name. `hosts`: the names the server may be called by, None for any; see `_is_known_host`."""
        self._app, self._hosts, self._body_bytes = app, hosts, body_bytes
        self._tokens = {name: token.encode() for name, token in tokens.items()}
        self._passes = {
            name: hmac.new(token, b"treefocus page", hashlib.sha256).hexdigest().encode()
            for name, token in self._tokens.items()
        }
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["type"] == "http" and scope["path"] == SIGN_IN and self._tokens:
            refusal = await self._sign_in(scope, receive)
        if refusal is None:
            if scope["type"] == "http":
                await self._app(scope, self._counted(receive), _with_headers(scope, send))
            else:
                await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await refusal(scope, receive, _with_headers(scope, send))
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        try:
            is_known, is_own = self._is_known_host(headers), _is_own_origin(headers)
        except ValueError:
            return problem(400, "Host and Origin must be addresses, such as 127.0.0.1:8080.")
        if not is_known:
            return problem(421, "The server is not known by that name.")
        if not is_own:
            return problem(403, "Pages of other sites may not call this server.")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._body_bytes:
            return problem(413, _too_large(self._body_bytes))
        CALLER.set(_address(scope))
        if not self._tokens or scope["path"] == SIGN_IN:
            return None
        return self._unsigned(scope, headers)

    def _unsigned(self, scope: Scope, headers: Headers) -> Response | None:
        """The refusal of a caller who has not shown a token; one who has goes by its name from here on."""
        name = _matching(_cookie(headers), self._passes)  # nobody guesses a pass, so they may try
        kind, _, given = headers.get("authorization", "").partition(" ")
        if name is None and kind.lower() == "bearer":
            name, refusal = self._guessed(scope, given.strip().encode())
            if refusal is not None:
                return refusal
        if name is not None:
            CALLER.set(f"token {name}")
            return None
        if scope["path"] == METRICS or scope["path"].startswith(f"{PREFIX}/") or scope.get("method") != "GET":
            return problem(401, "The token is missing or wrong.", {"WWW-Authenticate": "Bearer"})
        return RedirectResponse(SIGN_IN, 303)

    def _is_known_host(self, headers: Headers) -> bool:
        """A page elsewhere whose name was made to point at this machine gives itself away by that name."""
        named = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        return self._hosts is None or named in self._hosts

    def _guessed(self, scope: Scope, given: bytes) -> tuple[str | None, Response | None]:
        """The name of the token that was given, or None; and a refusal to look at it, after many wrong ones."""
        address = _address(scope)
        wait = self._guesses.wait(address)
        if wait > 0:
            told = {"Retry-After": str(math.ceil(wait))}
            return None, problem(429, "Too many wrong tokens came from this address; try again later.", told)
        name = _matching(given, self._tokens)
        if name is None:
            self._guesses.wrong(address)
        else:
            self._guesses.right(address)
        return name, None

    async def _sign_in(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] != "POST":
            return HTMLResponse(_FORM.format(action=escape(SIGN_IN), note=""))
        form = await _read_form(receive)
        name, refusal = self._guessed(scope, form.get("token", [""])[0].strip().encode())
        if refusal is not None:
            note = "Too many wrong tokens came from this address; try again later."
            return HTMLResponse(
                _FORM.format(action=escape(SIGN_IN), note=note), 429, {"Retry-After": refusal.headers["retry-after"]}
            )
        if name is None:
            return HTMLResponse(_FORM.format(action=escape(SIGN_IN), note="The token is wrong."), 401)
        response = RedirectResponse("/", 303)
        pass_of = self._passes[name].decode()
        response.set_cookie(_COOKIE, pass_of, httponly=True, samesite="strict", secure=scope["scheme"] == "https")
        return response

    def _counted(self, receive: Receive) -> Receive:
        """`receive`, which refuses a body that grows beyond the limit without having said so, or does not arrive."""
        taken, began, is_more = 0, time.monotonic(), True

        async def counting() -> Message:
            nonlocal taken, is_more
            if not is_more:
                return await receive()
            left = began + SLOWEST_BODY + taken / LEAST_RATE - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(0.001, left))
            except TimeoutError:
                raise HTTPException(408, "The body did not arrive in time.", {"Connection": "close"}) from None
            taken, is_more = taken + len(message.get("body", b"")), message.get("more_body", False)
            if taken > self._body_bytes:
                raise HTTPException(413, _too_large(self._body_bytes))
            return message

        return counting


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else UNKNOWN


def _cookie(headers: Headers) -> bytes:
    try:
        cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return b""
    return cookies[_COOKIE].value.encode() if _COOKIE in cookies else b""


def _matching(given: bytes, known: Mapping[str, bytes]) -> str | None:
    """Whose secret this is; all are looked at, so that the time tells nothing."""
    found = None
    for name, own in known.items():
        if hmac.compare_digest(given, own):
            found = name
    return found


def _too_large(most: int) -> str:
    return f"The body must be at most {most:,} bytes, got more."


def _is_own_origin(headers: Headers) -> bool:
    """Browsers name the page that calls, except where it is our own that only reads."""
    origin = headers.get("origin")
    if origin is None:
        return True
    called = urlsplit(origin)
    return called.netloc == headers.get("host") and called.hostname is not None


async def _read_form(receive: Receive) -> dict[str, list[str]]:
    body, is_more = b"", True
    while is_more and len(body) <= _FORM_BYTES:
        message = await receive()
        body, is_more = body + message.get("body", b""), message.get("more_body", False)
    return parse_qs(body.decode("latin-1")) if len(body) <= _FORM_BYTES else {}


def _with_headers(scope: Scope, send: Send) -> Send:
    policy = _API_POLICY if scope["path"].startswith(f"{PREFIX}/") else _PAGE_POLICY

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (_HEADERS | {"Content-Security-Policy": policy}).items():
                headers[name] = value
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return sending
