"""What few people need to say: how much a column counts, and how like the training rows an answer has to be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import fold, named
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure

_KINDS: dict[str, tuple[str, type[Measure] | None, float | None]] = {
    "any": ("any answer that is allowed", None, None),
    "factor": ("local outlier factor, at most", LocalOutlierFactor, 1.5),
    "isolation": ("isolation score, at most", IsolationScore, 0.6),
}  # with the limit that is proposed


def build(desk: Desk, changed: Callable[[], object]) -> None:
    """The fold; `changed` is called when the question is another one."""
    _More(desk, changed)


class _More:
    def __init__(self, desk: Desk, changed: Callable[[], object]) -> None:
        self._desk, self._changed = desk, changed
        self._part = fold("More: weights, and answers like the data", self._fields)
        self._tell()

    def _fields(self) -> None:
        visit = self._desk.visit
        with ui.element("fieldset").classes("tf-group"):
            told = "What a change weighs: 4 makes it count four times, twice where squares are added (Euclidean)."
            ui.html(told, tag="legend", sanitize=False)
            with ui.element("div").classes("tf-grid"):
                for j, feature in enumerate(self._desk.service.schema.features):
                    field = ui.number(feature.name, value=visit.weights[j], min=0, on_change=partial(self._weigh, j))
                    named(field.props('outlined dense debounce="250"'), f"Weight of {feature.name}")
        with ui.element("fieldset").classes("tf-group"):
            ui.html("How like the training rows an answer has to be.", tag="legend", sanitize=False)
            with ui.element("div").classes("tf-fields"):
                names = {key: text for key, (text, _, _) in _KINDS.items()}
                ui.select(names, label="Likeness", value=self._kind(), on_change=self._measure).props("outlined dense")
                self._most = ui.number("Limit", value=visit.most, min=0, step=0.1, on_change=self._limit)
                self._most.props('outlined dense debounce="250"').set_visibility(visit.measure is not None)

    def _kind(self) -> str:
        measure = self._desk.visit.measure
        return next(key for key, (_, kind, _) in _KINDS.items() if isinstance(measure, kind or type(None)))

    def _weigh(self, j: int, event: Any) -> None:
        self._desk.visit.weights[j] = event.value
        self._said()

    def _measure(self, event: Any) -> None:
        _, kind, most = _KINDS[event.value]
        self._desk.visit.measure = None if kind is None else kind()
        self._most.set_value(most)
        self._most.set_visibility(kind is not None)
        self._said()

    def _limit(self, event: Any) -> None:
        self._desk.visit.most = event.value
        self._said()

    def _said(self) -> None:
        self._tell()
        self._changed()

    def _tell(self) -> None:
        """What is set, on the closed fold."""
        visit = self._desk.visit
        n_weights = sum(weight is not None and weight != 1 for weight in visit.weights)
        told = [f"{n_weights} column{'s' * (n_weights != 1)} weighted"] * bool(n_weights)
        told += [_KINDS[self._kind()][0] + f" {visit.most:g}"] if visit.measure and visit.most else []
        self._part.props["caption"] = ", ".join(told) or "every column counts the same"
        self._part.update()
