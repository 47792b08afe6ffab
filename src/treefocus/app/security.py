"""Who may call, from where and how much: a token, the page's own origin, bodies of bounded size, careful headers."""

from __future__ import annotations

import hashlib
import hmac
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treefocus.app.api import PREFIX
from treefocus.app.problems import problem
from treefocus.errors import reject

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
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


def check_binding(host: str, token: str | None) -> None:
    """A server that others can reach needs a token, and one that cannot be guessed."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        reject("--token", f"at least {SHORTEST_TOKEN} characters long", len(token))
    if token is None and host not in LOOPBACK:
        reject("--token", f"given when --host is not one of {', '.join(LOOPBACK)}", "none")


class Guard:
    """Stands in front of everything, page, socket and API alike."""

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: tuple[str, ...] | None, body_bytes: int) -> None:
        """`hosts`: the names the server may be called by, None for any; see `Guard._is_known_host`."""
        self._app, self._hosts, self._body_bytes = app, hosts, body_bytes
        self._token = None if token is None else token.encode()
        self._pass = "" if token is None else hmac.new(token.encode(), b"treefocus page", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and scope["type"] == "http" and scope["path"] == SIGN_IN and self._token is not None:
            refusal = await self._sign_in(scope, receive, headers)
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
        if not self._is_known_host(headers):
            return problem(421, "The server is not known by that name.")
        if not _is_own_origin(headers):
            return problem(403, "Pages of other sites may not call this server.")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._body_bytes:
            return problem(413, _too_large(self._body_bytes))
        if self._token is None or self._is_signed(headers) or scope["path"] == SIGN_IN:
            return None
        if scope["path"].startswith(f"{PREFIX}/") or scope.get("method") != "GET":
            return problem(401, "The token is missing or wrong.", {"WWW-Authenticate": "Bearer"})
        return RedirectResponse(SIGN_IN, 303)

    def _is_known_host(self, headers: Headers) -> bool:
        """A page elsewhere whose name was made to point at this machine gives itself away by that name."""
        return self._hosts is None or (urlsplit(f"//{headers.get('host', '')}").hostname or "") in self._hosts

    def _is_signed(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return hmac.compare_digest(given.strip().encode(), self._token or b"")
        try:
            cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return _COOKIE in cookies and hmac.compare_digest(cookies[_COOKIE].value.encode(), self._pass.encode())

    async def _sign_in(self, scope: Scope, receive: Receive, headers: Headers) -> Response:
        if scope["method"] != "POST":
            return HTMLResponse(_FORM.format(action=escape(SIGN_IN), note=""))
        form = await _read_form(receive)
        given = form.get("token", [""])[0].strip().encode()
        if not hmac.compare_digest(given, self._token or b""):
            return HTMLResponse(_FORM.format(action=escape(SIGN_IN), note="The token is wrong."), 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(_COOKIE, self._pass, httponly=True, samesite="strict", secure=scope["scheme"] == "https")
        return response

    def _counted(self, receive: Receive) -> Receive:
        """`receive`, which refuses a body that grows beyond the limit without having said so."""
        taken = 0

        async def counting() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._body_bytes:
                raise HTTPException(413, _too_large(self._body_bytes))
            return message

        return counting


def _too_large(most: int) -> str:
    return f"The body must be at most {most:,} bytes, got more."


def _is_own_origin(headers: Headers) -> bool:
    """Browsers name the page that calls, except where it is our own that only reads."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


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
