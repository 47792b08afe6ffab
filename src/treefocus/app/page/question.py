"""How to ask: which row, the wanted answer, the button; and behind a fold distance, ways, time and weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page import more, wanted
from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import NumberField, button, fold, live, markup
from treefocus.app.page.pictures import prediction
from treefocus.app.question import ExplainOptions
from treefocus.app.workers import Errand
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Explanations
from treefocus.options import HOLD_FOR_PEOPLE
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.render.phrases import catalogue
from treefocus.tables.cells import CellTable

_PROMISES = (0.8, 0.9, 0.95, 0.99)  # shares of future models
_TO_THE_ANSWER = (
    "if (window.innerWidth < 900) document.getElementById('answer').scrollIntoView("
    "{behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'})"
)


def build(desk: Desk) -> None:
    """The form and its button."""
    _Question(desk)


class _Question:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        with live():
            self._said = markup("")
        with ui.element("div").classes("tf-ask"):
            self._wish()
            button(desk.words["explain"], self._pressed, is_main=True).props('id="explain"')
        self._search = Search(desk)
        self._fold = fold(desk.words["more"], self._further)
        self._caption()
        desk.ask = self._explain
        desk.when_row_changes(self._tell)
        desk.when_question_changes(self._wish.refresh)
        self._tell()

    @ui.refreshable_method
    def _wish(self) -> None:
        wanted.build(self._desk, self._changed)

    def _tell(self) -> None:
        label, shares = self._desk.visit.prediction
        self._said.set_content(
            prediction(self._desk.row_name, label, shares, self._desk.service, self._desk.visit.language)
        )

    def _further(self) -> None:
        visit, words = self._desk.visit, self._desk.words
        ways = {n: words[f"way_{n}"] for n in (1, 3, 5)}
        ways |= {} if visit.n_ways in ways else {visit.n_ways: str(visit.n_ways)}
        with ui.element("div").classes("tf-fields"):
            if visit.can_hold:
                self._select(self._promises(), words["hold"], visit.hold or 0.0, self._promise)
            self._select(list(DISTANCES), words["distance"], visit.distance, partial(self._choose, "distance"))
            self._select(ways, words["answers"], visit.n_ways, partial(self._choose, "n_ways"))
            ui.input(
                words["room"], value=visit.room, placeholder="above 20%, below 5%",
                on_change=lambda event: self._choose("room", event.value or ""),
            ).props('outlined dense stack-label debounce="250"')  # fmt: skip
            NumberField(
                words["seconds"], value=visit.time_limit, placeholder=words["as_needed"],
                on_change=lambda event: self._choose("time_limit", event.value),
            )  # fmt: skip
        more.build(self._desk, self._changed)

    def _promises(self) -> dict[float, str]:
        """What an answer can promise: that it is the smallest, or that it holds for a share of future models."""
        words, phrases = self._desk.words, catalogue(self._desk.visit.language)
        shares = sorted({*_PROMISES, self._desk.visit.hold or HOLD_FOR_PEOPLE})
        return {0.0: words["hold_none"]} | {one: words["hold_for"].format(share=phrases.share(one)) for one in shares}

    def _promise(self, share: float) -> None:
        self._choose("hold", share or None)

    def _select(self, options: Any, label: str, value: Any, hear: Any) -> None:
        ui.select(options, label=label, value=value, on_change=lambda event: hear(event.value)).props("outlined dense")

    def _choose(self, name: str, value: Any) -> None:
        setattr(self._desk.visit, name, value)
        self._changed()

    def _caption(self) -> None:
        """What is set, on the closed fold."""
        visit, words = self._desk.visit, self._desk.words
        n_weights = sum(weight is not None and weight != 1 for weight in visit.weights)
        told = [] if visit.own_hold is None else [catalogue(visit.language).share(visit.own_hold)]
        told += [visit.distance] + [words["weighted"].format(n=n_weights)] * bool(n_weights)
        told += [visit.room] if visit.room else []
        told += [f"{words[more.kind_of(visit.measure)]} {visit.most:g}"] if visit.measure and visit.most else []
        self._fold.props["caption"] = ", ".join(told)
        self._fold.update()

    def _changed(self) -> None:
        self._caption()
        self._desk.visit.forget()
        self._desk.answer_changed()

    def _is_still(self, row: CellTable, asked: ExplainOptions) -> bool:
        """Whether the answer is to what is asked now: rows are picked and rules set while a search runs."""
        visit = self._desk.visit
        try:
            return bool(np.array_equal(row.values, visit.row.values, equal_nan=True)) and visit.question() == asked
        except TreefocusError:
            return False

    async def _pressed(self) -> None:
        await self._explain()
        if self._desk.visit.found is not None:
            self._desk.run(_TO_THE_ANSWER)

    async def _explain(self) -> None:
        visit, service = self._desk.visit, self._desk.service
        try:
            asked = visit.question()
        except TreefocusError as error:
            self._search.complain(str(error))
            return
        row, label = visit.row, visit.label

        def answer(errand: Errand) -> Explanations:
            found = service.answer(row, asked, errand, label)
            service.in_round_numbers(found)  # which may take its time, too
            return found

        found = await self._search.run(answer, visit.seconds * (1 + asked.n_searches), asked.n)
        if found is not None and self._is_still(row, asked):
            visit.found = found
            self._desk.remember()
            self._desk.answer_changed()
