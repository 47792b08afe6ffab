"""The web page: pick or type a row, set the rules, ask, compare, try. One module a part of the page."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from fastapi import FastAPI
from nicegui import ui

from treefocus.app.card import card
from treefocus.app.front import Front
from treefocus.app.page import answer, batch, comparison, everyone, picker, question, trying, values
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, heading, named, section
from treefocus.render.palette import THEMES, coloured

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="'
    + THEMES["light"]["link"]
    + '"/>'
    '<path d="M16 6v9M16 15l-7 9M16 15l7 9" stroke="#fff" stroke-width="3" fill="none" stroke-linecap="round"/></svg>'
)


def install(app: FastAPI, front: Front) -> None:
    """Serve the page at /; every visitor has a desk of their own."""

    service = front.service

    @ui.page("/", title=f"{service.title} - treefocus")
    def index() -> None:
        style = files("treefocus.app.page").joinpath("page.css").read_text(encoding="utf-8")
        ui.add_css(coloured(style))
        build(Desk(front))

    ui.run_with(
        app, title=service.title, favicon=_ICON, dark=None, language="en-US", tailwind=False,
        show_welcome_message=False, reconnect_timeout=10.0,
    )  # fmt: skip


def build(desk: Desk) -> None:
    """The whole page, from top to bottom in the order in which it is used."""
    _header(desk)
    with ui.element("div").classes("tf-columns"):
        with ui.element("div"), section("The row", "row"):
            picker.build(desk)
            values.build(desk)
        with ui.element("div"):
            with section("The question", "question"):
                question.build(desk)
            with section("The answer", "answer"):
                answer.build(desk)
            with section("Under other distances", "distances"):
                comparison.build(desk)
            with section("Try your own values", "trying"):
                trying.build(desk)
            with section("Many rows", "many"):
                batch.build(desk)
            with section("Everyone", "everyone"):
                everyone.build(desk)


def _header(desk: Desk) -> None:
    known = card(desk.service)
    with ui.element("header").classes("tf-header"):
        with ui.element("div"):
            heading(1, desk.service.title)
            ui.label(
                f"What would have to change? A model of {known['trees']:,} trees and {len(known['features'])} columns"
                f"{', which predicts a number' if known['predicts'] == 'number' else ''}."
            ).classes("tf-faint")
        _colours()


def _colours() -> None:
    """By day, by night, or as the visitor's system has it."""
    mode = ui.dark_mode(None)
    names = {"auto": None, "light": False, "dark": True}
    buttons: dict[str, ui.button] = {}

    def choose(name: str) -> None:
        mode.set_value(names[name])
        for other, one in buttons.items():
            one.props["aria-pressed"] = "true" if other == name else "false"
            one.update()

    with named(ui.element("div").classes("tf-line").props('role="group"'), "Colours"):
        for name in names:
            buttons[name] = button(name, partial(choose, name)).props("dense")
    choose("auto")
