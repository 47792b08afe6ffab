"""How to ask: the wanted answer, distance, time, ways, language; and the button."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from treefocus.app.page import more, wanted
from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import button
from treefocus.app.visit import checked_seconds
from treefocus.errors import TreefocusError
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.render.phrases import languages

_LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
_WAYS = {1: "the smallest change", 3: "up to 3 ways", 5: "up to 5 ways"}


def build(desk: Desk) -> None:
    """The form and its button."""
    _Question(desk)


class _Question:
    def __init__(self, desk: Desk) -> None:
        self._desk, visit = desk, desk.visit
        names = {code: _LANGUAGES.get(code, code) for code in languages()}
        with ui.element("div").classes("tf-fields"):
            wanted.build(desk, self._changed)
            self._select(list(DISTANCES), "Distance", visit.distance, partial(self._choose, "distance"))
            self._select(_WAYS, "Answers", visit.n_ways, partial(self._choose, "n_ways"))
            self._select(names, "Language of the answer", visit.language, self._speak)
            self._seconds = ui.number("Seconds a search", value=visit.time_limit, min=0, step=0.1).props(
                "outlined dense"
            )
        more.build(desk, self._changed)
        button("Explain", self._explain, is_main=True).props('id="explain"')
        self._search = Search(desk)

    def _select(self, options: Any, label: str, value: Any, hear: Any) -> None:
        ui.select(options, label=label, value=value, on_change=lambda event: hear(event.value)).props("outlined dense")

    def _choose(self, name: str, value: Any) -> None:
        setattr(self._desk.visit, name, value)
        self._changed()

    def _changed(self) -> None:
        self._desk.visit.forget()
        self._desk.answer_changed()

    def _speak(self, language: str) -> None:
        self._desk.visit.language = language
        self._desk.answer_changed()

    async def _explain(self) -> None:
        visit, service = self._desk.visit, self._desk.service
        try:
            visit.time_limit = checked_seconds(self._seconds.value, service.limits.seconds_per_row)
            asked = visit.question()
        except TreefocusError as error:
            self._search.complain(str(error))
            return
        row, label = visit.row, visit.label
        found = await self._search.run(
            lambda errand: service.explain(row, asked, errand, labels=[label]), visit.seconds * asked.n_searches
        )
        if found is not None:
            visit.found = found
            self._desk.answer_changed()
            ui.run_javascript(
                "if (window.innerWidth < 900) document.getElementById('answer').scrollIntoView({behavior: 'smooth'})"
            )
