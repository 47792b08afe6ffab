"""Where the parts of one visitor's page meet: the visit, who hears of its changes, and searches with progress."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from nicegui import ui

from treefocus.app.address import to_query
from treefocus.app.callers import CALLER
from treefocus.app.front import Front
from treefocus.app.jobs import Job
from treefocus.app.messages import ExplainBody
from treefocus.app.page.elements import button, live
from treefocus.app.page.words import words
from treefocus.app.problems import told
from treefocus.app.visit import TYPED, EarlierQuestion, Visit
from treefocus.app.workers import CalledOff, Errand
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Change
from treefocus.render.phrases import catalogue

T = TypeVar("T")
_SHOW_AFTER = 0.3  # seconds; shorter work needs no progress
_MOST_HISTORY = 30  # questions that are kept
_log = logging.getLogger("treefocus.app")


class Desk:
    """One visitor's page."""

    def __init__(self, front: Front) -> None:
        self.front, self.caller = front, CALLER.get()
        self.service, self.workers, self.jobs = front.service, front.workers, front.jobs
        self.visit = Visit.begin(front.service)
        self._client = ui.context.client
        self.history: list[EarlierQuestion] = []
        self.is_dark: bool | None = None  # as the visitor's system has it
        self.ask: Callable[[], Awaitable[None]] | None = None  # what the button Explain does
        self._on_row: list[Callable[[], object]] = []
        self._on_question: list[Callable[[], object]] = []
        self._on_answer: list[Callable[[], object]] = []

    @property
    def words(self) -> Mapping[str, str]:
        """The page's labels, in the visitor's language."""
        return words(self.visit.language)

    def count(self, n: int) -> str:
        """A number of things, as it is written in the visitor's language."""
        return catalogue(self.visit.language).number(n)

    @property
    def row_name(self) -> str:
        """What the row is called on the page."""
        own = self.visit.label
        return self.words["own_row"] if own == TYPED else self.words["row_n"].format(row=own)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What changes in the answer that is shown."""
        ways = self.visit.ways
        return ways[0].changes if ways else ()

    def clear(self) -> None:
        """Nobody hears any more: the page is built anew."""
        self._on_row, self._on_question, self._on_answer = [], [], []

    def spend(self, n: int) -> None:
        """Take so many questions of the visitor's budget."""
        self.front.budget.take(n, self.caller)

    def submit(self, body: ExplainBody) -> Job:
        """A job of this visitor's."""
        CALLER.set(self.caller)
        return self.jobs.submit(body, self.front.budget)

    def when_row_changes(self, hear: Callable[[], object]) -> None:
        """Call this when another row is asked about."""
        self._on_row.append(hear)

    def when_question_changes(self, hear: Callable[[], object]) -> None:
        """Call this when the rules or the wish were changed from elsewhere than their own fields."""
        self._on_question.append(hear)

    def when_answer_changes(self, hear: Callable[[], object]) -> None:
        """Call this when there are new answers, or none any more."""
        self._on_answer.append(hear)

    def row_changed(self) -> None:
        """Tell everybody."""
        for hear in self._on_row:
            hear()
        self.answer_changed()

    def question_changed(self) -> None:
        """Tell everybody; the answers were to another question."""
        self.visit.forget()
        for hear in self._on_question:
            hear()
        self.answer_changed()

    def answer_changed(self) -> None:
        """Tell everybody."""
        for hear in self._on_answer:
            hear()

    async def ask_again(self) -> None:
        """Ask the question that has been changed."""
        self.question_changed()
        if self.ask is not None:
            await self.ask()

    def remember(self) -> None:
        """Keep the question and its answer, and put it into the address."""
        asked = EarlierQuestion.of(self.visit, self.row_name, to_query(self.visit))
        if self.history and self.history[-1].query == asked.query and self.visit.number is not None:
            self.history[-1] = asked
        else:
            self.history = [*self.history, asked][-_MOST_HISTORY:]
            self.to_address()

    def run(self, script: str) -> None:
        """Have the browser do something, whatever became of the element that asked for it."""
        self._client.run_javascript(script)

    def to_address(self) -> None:
        """The question in the address bar, as a place to come back to."""
        self.run(f"window.tfGo({to_query(self.visit)!r})")


class Search:
    """A search that shows how long it takes, can be cancelled, and tells what went wrong."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._errand: Errand | None = None
        self._began, self._number = 0.0, 0
        with ui.element("div").classes("tf-progress") as self._box:
            self._bar = ui.linear_progress(0.0, show_value=False, color=None)
            self._bar.props["aria-label"] = desk.words["progress"]
            with ui.element("div").classes("tf-line"):
                self._text = ui.label()
                button(desk.words["cancel"], self.cancel)
        self._box.set_visibility(False)
        with live("assertive").classes("tf-error"):
            self._error = ui.label()
        self._clock = ui.timer(0.1, self._tick, active=False)

    async def run(self, work: Callable[[Errand], T], seconds: float, n_questions: int = 1) -> T | None:
        """The result of the work, which may take so many seconds; None where it was cancelled or failed."""
        self._number += 1
        own = self._number
        while self._errand is not None:  # the last one that is asked for counts
            self._errand.call_off()
            await asyncio.sleep(0.02)
            if own != self._number:
                return None
        self._errand, self._began, self._seconds = Errand(caller=self._desk.caller), time.monotonic(), seconds
        self.complain("")
        self._clock.activate()
        try:
            self._desk.spend(n_questions)
            return await self._desk.workers.run(work, self._errand)
        except CalledOff:
            if own == self._number:
                self.complain(self._desk.words["cancelled"])
        except TreefocusError as error:
            self.complain(str(error))
        except Exception as error:
            _log.error("unexpected: %s", told(error))
            self.complain(self._desk.words["unexpected"])
        finally:
            self._errand = None
            self._clock.deactivate()
            self._box.set_visibility(False)
        return None

    def cancel(self) -> None:
        """Call the search off."""
        if self._errand is not None:
            self._errand.call_off()

    def complain(self, text: str) -> None:
        """Say what went wrong, or take it back."""
        self._error.set_text(text)

    def _tick(self) -> None:
        passed = time.monotonic() - self._began
        if self._errand is None or passed < _SHOW_AFTER:
            return
        self._box.set_visibility(True)
        self._bar.set_value(min(0.99, passed / self._seconds))
        said = {"passed": f"{passed:.0f}", "seconds": f"{self._seconds:.0f}"}
        self._text.set_text(self._desk.words["searching"].format(**said))
