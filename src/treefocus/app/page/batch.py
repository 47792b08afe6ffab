"""Many rows at once, in the background; and every job of the server's, with progress, a way to stop, and results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nicegui import ui

from treefocus.app.jobs import Job, NoSuchJob, NotYet
from treefocus.app.messages import ExplainBody, Row
from treefocus.app.page.desk import Desk
from treefocus.app.page.downloads import tables
from treefocus.app.page.elements import NumberField, button, fold, heading, live, named
from treefocus.app.rows import find
from treefocus.app.visit import checked_count
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Explanations

_SHOWN = 10  # jobs, the last ones


def build(desk: Desk) -> None:
    """The choice, the button and the jobs; open where a job runs, so that a reload does not hide it."""
    part = fold(desk.words["many_fold"], lambda: _Batch(desk))
    if any(not job.has_ended for job in desk.jobs.all()):
        part.open()


class _Batch:
    def __init__(self, desk: Desk) -> None:
        self._desk, service, words = desk, desk.service, desk.words
        ui.label(words["many_number" if service.predicts_number else "many_class"]).classes("tf-faint")
        with ui.element("div").classes("tf-fields"):
            self._wanted = self._unmet if service.predicts_number else self._of_class()
            self._most = NumberField(words["at_most"], value=200, step=1)
        button(words["explain_all"], self._submit)
        with live("assertive").classes("tf-error"):
            self._error = ui.label()
        heading(3, words["jobs"])
        self._seen = self._state()
        self._lines: dict[str, tuple[ui.label, ui.linear_progress | None]] = {}
        with named(ui.element("div").props('role="group"'), words["jobs"]):
            self._list()
        self._clock = ui.timer(0.5, self._tick)

    def _of_class(self) -> Callable[[], list[int]]:
        """The choice of a class; returns how to find its rows."""
        service, words = self._desk.service, self._desk.words
        counts = {str(k): service.predictions.labels.count(label) for k, label in enumerate(service.classes)}
        options = {
            key: words["n_rows"].format(label=service.classes[int(key)], n=self._desk.count(count))
            for key, count in counts.items()
        }
        first = next((key for key in options if not self._desk.visit.wish.is_met_by(service.classes[int(key)])), "0")
        chosen = ui.select(options, value=first, label=words["rows_predicted"]).props("outlined dense")
        return lambda: find(service, predicted=service.classes[int(chosen.value)])

    def _unmet(self) -> list[int]:
        """Rows whose number is not the wanted one."""
        labels, wish = self._desk.service.predictions.labels, self._desk.visit.wish
        return [i for i, number in enumerate(labels) if number is not None and not wish.is_met_by(number)]

    def _submit(self) -> None:
        service, visit = self._desk.service, self._desk.visit
        self._error.set_text("")
        try:
            chosen = self._wanted()[: checked_count(self._most.value)]
            rows: list[Row] = [service.written(i) for i in chosen]
            self._desk.submit(ExplainBody.of(visit.question(), rows, [service.name_of(i) for i in chosen]))
        except TreefocusError as error:
            self._error.set_text(str(error))
            return
        self._tick()

    def _state(self) -> list[tuple[str, str]]:
        return [(job.id, job.status) for job in self._desk.jobs.all()]

    def _tick(self) -> None:
        """Draw anew what began or ended, and only fill in how far the others are."""
        state = self._state()
        if state != self._seen:
            self._seen = state
            self._list.refresh()
        for job in self._desk.jobs.all():
            if job.id in self._lines and not job.has_ended:
                self._fill(job)

    @ui.refreshable_method
    def _list(self) -> None:
        self._lines = {}
        for job in reversed(self._desk.jobs.all()[-_SHOWN:]):
            with ui.element("div").classes("tf-job"):
                self._job(job)

    def _job(self, job: Job) -> None:
        words, bar = self._desk.words, None
        with live():
            line = ui.label()
        if not job.has_ended:
            bar = ui.linear_progress(0.0, show_value=False, color=None)
            bar.props["aria-label"] = words["job_progress"]
        self._lines[job.id] = line, bar
        self._fill(job)
        with ui.element("div").classes("tf-line"):
            if not job.has_ended:
                button(words["cancel"], partial(self._cancel, job.id))
            if job.status == "done":
                tables(self._desk, partial(self._answers, job.id), f"answers-{job.id[:8]}")
            if job.has_ended:
                button(words["forget"], partial(self._forget, job.id))

    def _fill(self, job: Job) -> None:
        words, state = self._desk.words, job.to_dict()
        line, bar = self._lines[job.id]
        status = words["cancelled_job" if job.status == "cancelled" else job.status]
        when = f"{state['submitted'][:16].replace('T', ' ')} UTC"
        done, rows = self._desk.count(state["done"]), self._desk.count(state["rows"])
        told = words["job_line"].format(when=when, done=done, rows=rows, status=status)
        line.set_text(f"{told} {state['detail'] or ''}")
        if bar is not None:
            bar.set_value(state["done"] / max(1, state["rows"]))

    def _cancel(self, identifier: str) -> None:
        self._told(lambda: self._desk.jobs.cancel(identifier))

    def _forget(self, identifier: str) -> None:
        self._told(lambda: self._desk.jobs.remove(identifier))
        self._tick()

    def _told(self, act: Callable[[], object]) -> None:
        try:
            act()
        except NoSuchJob as error:
            self._error.set_text(str(error))

    def _answers(self, identifier: str) -> Explanations | None:
        try:
            return Explanations.from_json(self._desk.jobs.result(identifier))
        except (NoSuchJob, NotYet) as error:
            self._error.set_text(str(error))
            return None
