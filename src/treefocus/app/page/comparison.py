"""Answers side by side: one row under four distances, and earlier questions next to each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from nicegui import ui

from treefocus.app.address import take_query
from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import button, fold, live, markup, named
from treefocus.app.page.pictures import side_by_side
from treefocus.app.service import COMPARED
from treefocus.app.visit import EarlierQuestion
from treefocus.errors import TreefocusError


def build(desk: Desk) -> None:
    """Both folds."""
    fold(desk.words["compare_fold"], lambda: _distances(desk))
    _History(desk)


def _distances(desk: Desk) -> None:
    words = desk.words
    ui.label(words["compare_told"].format(names=", ".join(COMPARED))).classes("tf-faint")
    button(words["compare"], lambda: compare())
    search = Search(desk)

    async def compare() -> None:
        visit = desk.visit
        try:
            asked = visit.question()
        except TreefocusError as error:
            search.complain(str(error))
            return
        row, label = visit.row, visit.label
        seconds = len(COMPARED) * visit.seconds * replace(asked, n=1).n_searches
        found = await search.run(
            lambda errand: desk.service.compared(row, asked, errand, label), seconds, len(COMPARED)
        )
        if found is not None:
            visit.compared = found
            show()

    with live():
        table = markup("")

    def show() -> None:
        answers = {name: answer[0] for name, answer in desk.visit.compared.items()}
        table.set_content(side_by_side(answers, desk.visit.language, words) if answers else "")

    desk.when_answer_changes(show)
    show()


class _History:
    """Questions that were asked, the last first: back to one with a press, side by side with a tick."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ticked: list[EarlierQuestion] = []
        fold(desk.words["history_fold"], self._build)

    def _build(self) -> None:
        ui.label(self._desk.words["history_told"]).classes("tf-faint")
        self._list()
        with live():
            self._table = markup("")
        self._desk.when_answer_changes(self._list.refresh)

    @ui.refreshable_method
    def _list(self) -> None:
        words = self._desk.words
        if not self._desk.history:
            ui.label(words["history_none"])
        with ui.element("ul").classes("tf-history"):
            for asked in reversed(self._desk.history):
                with ui.element("li").classes("tf-line"):
                    tick = ui.checkbox(value=asked in self._ticked, on_change=partial(self._tick, asked))
                    named(tick.props("dense"), words["tick"].format(name=self._name(asked)))
                    button(self._name(asked), partial(self._back, asked)).classes("tf-small")

    def _name(self, asked: EarlierQuestion) -> str:
        """With its place, for the same question may be asked twice."""
        return f"{self._desk.history.index(asked) + 1}. {asked.name}"

    def _tick(self, asked: EarlierQuestion, event: Any) -> None:
        self._ticked = [one for one in self._ticked if one is not asked] + ([asked] if event.value else [])
        answers = {self._name(one): one.found[0] for one in self._ticked if one in self._desk.history}
        is_shown = len(answers) > 1
        self._table.set_content(side_by_side(answers, self._desk.visit.language, self._desk.words) if is_shown else "")

    async def _back(self, asked: EarlierQuestion) -> None:
        """The question as it was, with its answer, which need not be searched again."""
        asked.restore(self._desk.visit)
        self._desk.question_changed()
        self._desk.visit.found = asked.found
        self._desk.row_changed()
        self._desk.to_address()


def go_back(desk: Desk, query: dict[str, str]) -> None:
    """What the browser's own buttons for back and forward ask for; searched again where it is not remembered."""
    language = desk.visit.language
    desk.visit = desk.visit.anew()
    desk.visit.language = language
    take_query(desk.visit, query)
