"""The web page: the answer first, then what can be done about it. One module a part of the page."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from nicegui import Client, ui
from nicegui import app as nicegui_app

from treefocus.app.address import take_query
from treefocus.app.card import card
from treefocus.app.front import Front
from treefocus.app.page import answer, batch, comparison, everyone, picker, question, trying, values
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, heading, markup, named, section
from treefocus.app.page.words import LANGUAGES
from treefocus.app.starting import give_back_memory
from treefocus.render.palette import THEMES, coloured

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="'
    + THEMES["light"]["link"]
    + '"/>'
    '<path d="M16 6v9M16 15l-7 9M16 15l7 9" stroke="#fff" stroke-width="3" fill="none" stroke-linecap="round"/></svg>'
)
# The address follows the question; back and forward are told to the server, and when somebody leaves for good.
_SCRIPT = """<script>
window.tfGo = (query) => {
  const place = query ? '?' + query : location.pathname;
  if (location.search !== (query ? '?' + query : '')) history.pushState({treefocus: true}, '', place);
};
window.addEventListener('popstate', () =>
  emitEvent('tf-back', Object.fromEntries(new URLSearchParams(location.search))));
window.addEventListener('pagehide', () => {
  if (window.did_handshake && getElement(0)) emitEvent('tf-leave');
});
</script>"""
_REMEMBERED = 60.0  # seconds that the framework keeps a browser's tab in mind, of which the page asks for nothing
_FULL = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>treefocus</title><main style="font:1rem/1.5 system-ui;'
    'max-width:30rem;margin:4rem auto;padding:0 1rem"><h1>One moment</h1><p>As many people as the server takes have '
    "the page open. Try again in a minute.</p></main></html>"
)


def install(app: FastAPI, front: Front) -> None:
    """Serve the page at /; every visitor has a desk of their own."""
    service = front.service
    style = coloured(files("treefocus.app.page").joinpath("page.css").read_text(encoding="utf-8"))
    nicegui_app.storage.max_tab_storage_age = _REMEMBERED
    front.metrics.watch("treefocus_visitors", "Visitors of the page.", _visitors)
    nicegui_app.on_delete(Tidying().soon)

    @ui.page("/", title=f"{service.title} - treefocus")
    def index(request: Request) -> Response | None:
        if _visitors() > service.limits.visitors:
            return HTMLResponse(_FULL, 503, {"Retry-After": "60"})
        ui.add_css(style)
        ui.add_head_html(_SCRIPT)
        desk = Desk(front)
        take_query(desk.visit, request.query_params)
        _Page(desk)
        return None

    ui.run_with(
        app, title=service.title, favicon=_ICON, dark=None, language="en-US", tailwind=False,
        show_welcome_message=False, reconnect_timeout=10.0,
    )  # fmt: skip


def _visitors() -> int:
    return len(Client.instances)


class Tidying:
    """The memory of visitors who left: what a page held in circles is found and given back, once for all who left."""

    def __init__(self, pause: float = 2.0) -> None:
        self._pause, self._is_planned = pause, False

    def soon(self) -> None:
        """Somebody left."""
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_later(self._pause, self._tidy)

    def _tidy(self) -> None:
        self._is_planned = False
        give_back_memory()


class _Page:
    """The whole page, which is drawn anew when its language changes or the browser goes back."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._client = desk, ui.context.client
        self._place = ui.element("div")
        ui.on("tf-back", self._back)
        ui.on("tf-leave", self._leave)
        self._draw()
        ui.timer(0.01, self._first, once=True)

    async def _first(self) -> None:
        """The answer is there before anybody asks."""
        if self._desk.visit.found is None and self._desk.ask is not None and len(self._desk.service.rows.values):
            await self._desk.ask()

    async def _back(self, event: Any) -> None:
        comparison.go_back(self._desk, {str(key): str(value) for key, value in dict(event.args).items()})
        self._draw()
        await self._first()

    def _leave(self) -> None:
        """Who has closed the page is not waited for, as one is whose network is gone for a moment."""
        if self._client.id in Client.instances:
            self._client.delete()

    def _speak(self, language: str) -> None:
        self._desk.visit.language = language
        self._desk.to_address()
        self._draw()

    def _draw(self) -> None:
        self._desk.clear()
        self._place.clear()
        with self._place:
            build(self._desk, self._speak)
        self._desk.run(f"document.documentElement.lang = {self._desk.visit.language!r}")


def build(desk: Desk, speak: Any) -> None:
    """The parts, in the order in which they are used."""
    words = desk.words
    markup(f'<a class="tf-skip" href="#answer">{words["skip"]}</a>')
    _header(desk)
    with ui.element("div").classes("tf-columns"):
        with ui.element("div").classes("tf-asking"), section(words["question"], "question"):
            question.build(desk)
        with ui.element("div").classes("tf-answering"):
            with section(words["answer"], "answer"):
                answer.build(desk)
            with section(words["further"], "further"):
                comparison.build(desk)
                trying.build(desk)
                batch.build(desk)
            with section(words["everyone"], "everyone"):
                everyone.build(desk)
        with ui.element("div").classes("tf-choosing"):
            with section(words["rows"], "row"):
                picker.build(desk)
            with section(words["rules"], "rules"):
                values.build(desk)
    with ui.element("footer").classes("tf-footer"):
        _settings(desk, speak)


def _header(desk: Desk) -> None:
    known = card(desk.service)
    with ui.element("header").classes("tf-header"):
        heading(1, desk.service.title)
        told = desk.words["about"].format(trees=desk.count(known["trees"]), columns=desk.count(len(known["features"])))
        ui.label(told).classes("tf-faint")


def _settings(desk: Desk, speak: Any) -> None:
    """The language of page and answers; by day, by night, or as the visitor's system has it."""
    mode, words = ui.dark_mode(desk.is_dark), desk.words
    names = {"auto": None, "light": False, "dark": True}
    buttons: dict[str, ui.button] = {}

    def choose(name: str) -> None:
        desk.is_dark = names[name]
        mode.set_value(names[name])
        for other, one in buttons.items():
            one.props["aria-pressed"] = "true" if other == name else "false"
            one.update()

    with named(ui.element("div").classes("tf-line").props('role="group"'), words["language"]):
        for code, name in LANGUAGES.items():
            one = button(name, partial(speak, code)).props(f'dense lang="{code}"')
            one.props["aria-pressed"] = "true" if code == desk.visit.language else "false"
    with named(ui.element("div").classes("tf-line").props('role="group"'), words["colours"]):
        for name in names:
            buttons[name] = button(words[name], partial(choose, name)).props("dense")
    choose(next(name for name, value in names.items() if value is desk.is_dark))
