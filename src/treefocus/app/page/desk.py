"""Where the parts of one visitor's page meet: the visit, who hears of its changes, and searches with progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from nicegui import ui

from treefocus.app.callers import CALLER
from treefocus.app.front import Front
from treefocus.app.jobs import Job
from treefocus.app.messages import ExplainBody
from treefocus.app.page.elements import button, live
from treefocus.app.problems import told
from treefocus.app.visit import Visit
from treefocus.app.workers import CalledOff, Errand
from treefocus.errors import TreefocusError

T = TypeVar("T")
_SHOW_AFTER = 0.3  # seconds; shorter work needs no progress
_log = logging.getLogger("treefocus.app")


class Desk:
    """One visitor's page."""

    def __init__(self, front: Front) -> None:
        self.front, self.caller = front, CALLER.get()
        self.service, self.workers, self.jobs = front.service, front.workers, front.jobs
        self.visit = Visit.begin(front.service)
        self._on_row: list[Callable[[], object]] = []
        self._on_answer: list[Callable[[], object]] = []

    def submit(self, body: ExplainBody) -> Job:
        """A job of this visitor's."""
        CALLER.set(self.caller)
        return self.jobs.submit(body, self.front.budget)

    def when_row_changes(self, hear: Callable[[], object]) -> None:
        """Call this when another row is asked about."""
        self._on_row.append(hear)

    def when_answer_changes(self, hear: Callable[[], object]) -> None:
        """Call this when there are new answers, or none any more."""
        self._on_answer.append(hear)

    def row_changed(self) -> None:
        """Tell everybody."""
        for hear in self._on_row:
            hear()
        self.answer_changed()

    def answer_changed(self) -> None:
        """Tell everybody."""
        for hear in self._on_answer:
            hear()


class Search:
    """A search that shows how long it takes, can be cancelled, and tells what went wrong."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._errand: Errand | None = None
        self._began = 0.0
        with ui.element("div").classes("tf-progress") as self._box:
            self._bar = ui.linear_progress(0.0, show_value=False, color=None).props('aria-label="Progress"')
            with ui.element("div").classes("tf-line"):
                self._text = ui.label()
                button("Cancel", self.cancel)
        self._box.set_visibility(False)
        with live("assertive").classes("tf-error"):
            self._error = ui.label()
        self._clock = ui.timer(0.1, self._tick, active=False)

    async def run(self, work: Callable[[Errand], T], seconds: float) -> T | None:
        """The result of the work, which may take so many seconds; None where it was cancelled or failed."""
        if self._errand is not None:
            return None
        self._errand, self._began, self._seconds = Errand(caller=self._desk.caller), time.monotonic(), seconds
        self.complain("")
        self._clock.activate()
        try:
            return await self._desk.workers.run(work, self._errand)
        except CalledOff:
            self.complain("Cancelled.")
        except TreefocusError as error:
            self.complain(str(error))
        except Exception as error:
            _log.error("unexpected: %s", told(error))
            self.complain("The server met an error it did not expect; its log says where.")
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
        self._text.set_text(f"Searching: {passed:.0f} of at most about {self._seconds:.0f} seconds")
