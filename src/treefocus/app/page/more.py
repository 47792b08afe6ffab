"""What few people need to say: how much a column counts, and how like the training rows an answer has to be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

from nicegui import ui

from treefocus.app.page.columns import Columns
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import NumberField, named
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure

_KINDS: dict[str, tuple[type[Measure] | None, float | None]] = {
    "like_any": (None, None),
    "like_factor": (LocalOutlierFactor, 1.5),
    "like_isolation": (IsolationScore, 0.6),
}  # with the limit that is proposed


def build(desk: Desk, changed: Callable[[], object]) -> None:
    """The fields; `changed` is called when the question is another one."""
    _More(desk, changed)


def kind_of(measure: Measure | None) -> str:
    """The name of a measure among the page's words."""
    return next(key for key, (kind, _) in _KINDS.items() if isinstance(measure, kind or type(None)))


class _More:
    def __init__(self, desk: Desk, changed: Callable[[], object]) -> None:
        self._desk, self._changed, words = desk, changed, desk.words
        visit = desk.visit
        with ui.element("fieldset").classes("tf-group"):
            ui.html(escape(words["likeness_told"]), tag="legend", sanitize=False)
            with ui.element("div").classes("tf-fields"):
                names = {key: words[key] for key in _KINDS}
                ui.select(names, label=words["likeness"], value=kind_of(visit.measure), on_change=self._measure).props(
                    "outlined dense"
                )
                self._most = NumberField(words["limit"], value=visit.most, step=0.1, on_change=self._limit)
                self._most.set_visibility(visit.measure is not None)
        with ui.element("fieldset").classes("tf-group"):
            ui.html(escape(words["weights"]), tag="legend", sanitize=False)
            Columns(desk, self._weight, "tf-grid")

    def _weight(self, j: int) -> ui.element:
        name = self._desk.service.schema.names[j]
        field = NumberField(name, value=self._desk.visit.weights[j], on_change=partial(self._weigh, j))
        return named(field, self._desk.words["weight_of"].format(name=name))

    def _weigh(self, j: int, event: Any) -> None:
        self._desk.visit.weights[j] = event.value
        self._changed()

    def _measure(self, event: Any) -> None:
        kind, most = _KINDS[event.value]
        self._desk.visit.measure = None if kind is None else kind()
        self._most.set_value(most)
        self._most.set_visibility(kind is not None)
        self._changed()

    def _limit(self, event: Any) -> None:
        self._desk.visit.most = event.value
        self._changed()
