"""Many rows at once, in the background: all with the same prediction; progress, a way to stop, a report."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from treefocus.app.jobs import Job, NoSuchJob
from treefocus.app.messages import ExplainBody, Row
from treefocus.app.page.answer import page_of
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, live
from treefocus.app.rows import find
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Explanations


def build(desk: Desk) -> None:
    """The choice, the button and the progress."""
    _Batch(desk)


class _Batch:
    def __init__(self, desk: Desk) -> None:
        self._desk, service = desk, desk.service
        self._job: Job | None = None
        which = "that is not predicted the wanted number" if service.predicts_number else "with one prediction"
        ui.label(f"Explain every row {which}, under the rules and the question above.").classes("tf-faint")
        with ui.element("div").classes("tf-fields"):
            self._wanted = self._unmet if service.predicts_number else self._of_class()
            self._most = ui.number("At most", value=200, min=1, step=1).props("outlined dense")
        button("Explain all", self._submit)
        with ui.element("div").classes("tf-progress") as self._box:
            self._bar = ui.linear_progress(0.0, show_value=False, color=None).props('aria-label="Progress of all rows"')
            button("Cancel", self._cancel)
        self._box.set_visibility(False)
        with live():
            self._text = ui.label()
        with ui.element("div").classes("tf-line") as self._results:
            button("Report", self._report)
            button("All answers as JSON", self._json)
        self._results.set_visibility(False)
        self._clock = ui.timer(0.3, self._tick, active=False)

    def _of_class(self) -> Callable[[], list[int]]:
        """The choice of a class; returns how to find its rows."""
        service = self._desk.service
        counts = {str(k): service.predictions.labels.count(label) for k, label in enumerate(service.classes)}
        options = {key: f"{service.classes[int(key)]} ({count:,} rows)" for key, count in counts.items()}
        first = next((key for key in options if not self._desk.visit.wish.is_met_by(service.classes[int(key)])), "0")
        chosen = ui.select(options, value=first, label="Rows predicted").props("outlined dense")
        return lambda: find(service, predicted=service.classes[int(chosen.value)])

    def _unmet(self) -> list[int]:
        """Rows whose number is not the wanted one."""
        labels, wish = self._desk.service.predictions.labels, self._desk.visit.wish
        return [i for i, number in enumerate(labels) if number is not None and not wish.is_met_by(number)]

    def _submit(self) -> None:
        service, visit = self._desk.service, self._desk.visit
        if self._job is not None and not self._job.has_ended:
            return
        chosen = self._wanted()[: int(self._most.value or 1)]
        try:
            rows: list[Row] = [service.written(i) for i in chosen]
            names = [service.name_of(i) for i in chosen]
            self._job = self._desk.submit(ExplainBody.of(visit.question(), rows, names))
        except TreefocusError as error:
            self._text.set_text(str(error))
            return
        self._results.set_visibility(False)
        self._box.set_visibility(True)
        self._clock.activate()

    def _tick(self) -> None:
        if self._job is None:
            return
        state = self._job.to_dict()
        self._bar.set_value(state["done"] / max(1, state["rows"]))
        self._text.set_text(f"{state['done']:,} of {state['rows']:,} rows, {state['status']}. {state['detail'] or ''}")
        if self._job.has_ended:
            self._clock.deactivate()
            self._box.set_visibility(False)
            self._results.set_visibility(state["status"] == "done")

    def _cancel(self) -> None:
        if self._job is not None:
            self._desk.jobs.cancel(self._job.id)

    def _answers(self) -> Explanations | None:
        assert self._job is not None
        try:
            return Explanations.from_json(self._desk.jobs.result(self._job.id))
        except NoSuchJob as error:
            self._text.set_text(str(error))
            return None

    def _report(self) -> None:
        found = self._answers()
        if found is not None:
            ui.download(page_of(found, self._desk), "report.html", "text/html")

    def _json(self) -> None:
        found = self._answers()
        if found is not None:
            ui.download(found.to_json().encode(), "explanations.json", "application/json")
