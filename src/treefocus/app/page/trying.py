"""What if: a slider a column, and what the model says while they move."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, fold, live, markup, named, title_of
from treefocus.app.page.pictures import prediction
from treefocus.render.phrases import catalogue
from treefocus.render.text import measured

_STEPS = 200  # of a continuous column
_NUMBER = "(event) => emit(event.target.valueAsNumber)"


def build(desk: Desk) -> None:
    """The sliders."""
    _Trying(desk)


class _Trying:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._values = desk.visit.values.copy()
        with live():
            self._said = markup("")
        with ui.element("div").classes("tf-line"):
            button("Start from the row", self._from_row)
            self._answer = button("Start from the answer", self._from_answer)
            button("Ask about these values", self._ask)
        fold("Sliders: move them and watch the prediction", self._sliders)
        self._tell()
        desk.when_row_changes(self._from_row)
        desk.when_answer_changes(self._offer)
        self._offer()

    @ui.refreshable_method
    def _sliders(self) -> None:
        with ui.element("div").classes("tf-grid"):
            for j in range(len(self._values)):
                self._slider(j)

    def _slider(self, j: int) -> None:
        service = self._desk.service
        feature, labels, value = service.schema.features[j], service.labels[j], self._values[j]
        with ui.element("div").classes("tf-slider"):
            ui.label(title_of(feature)).classes("tf-name")
            if labels is not None:
                options = {k: str(label) for k, label in enumerate(labels)}
                known = int(value) if value == value and int(value) in options else None
                field = ui.select(options, value=known, on_change=lambda event: self._moved(j, None, event))
                named(field.props("outlined dense"), feature.name)
                return
            low, high = np.nanmin([service.space.low[j], value]), np.nanmax([service.space.high[j], value])
            low, high = (float(side) if np.isfinite(side) else 0.0 for side in (low, high))
            steps = feature.steps
            finest = 1.0 if feature.kind in ("integer", "boolean") else steps.step / steps.divisor if steps else 0.0
            step = finest or float(f"{max((high - low) / _STEPS, 1e-12):.1g}")
            shown = ui.label(self._written(j, value)).classes("tf-value")
            slider = named(ui.element("input").props("type=range"), feature.name)
            # "^" sets where the slider starts; its place is the visitor's from then on.
            slider.props.update({"min": low, "max": high, "step": step, "^value": np.nan_to_num(value, nan=low)})
            slider.on("input", partial(self._moved, j, shown), throttle=0.1, js_handler=_NUMBER)

    def _moved(self, j: int, shown: ui.label | None, event: Any) -> None:
        value = event.args if shown is not None else event.value
        self._values[j] = np.nan if value is None else float(value)
        if shown is not None:
            shown.set_text(self._written(j, self._values[j]))
        self._tell()

    def _tell(self) -> None:
        said = self._desk.service.predict(self._values[None, :])
        content = prediction(
            "With these values the row", said.labels[0], said.probabilities[0], self._desk.service.classes
        )
        self._said.set_content(content)

    def _offer(self) -> None:
        ways = self._desk.visit.ways
        self._answer.set_enabled(bool(ways) and ways[0].status.has_answer)

    def _from_row(self) -> None:
        self._begin(self._desk.visit.values)

    def _from_answer(self) -> None:
        found = self._desk.visit.found
        assert found is not None
        self._begin(np.where(np.isnan(found.shown[0]), found.points[0], found.shown[0]))

    def _begin(self, values: Any) -> None:
        self._values = values.copy()
        self._sliders.refresh()
        self._tell()

    def _ask(self) -> None:
        self._desk.visit.type_in(self._values)
        self._desk.row_changed()

    def _written(self, j: int, value: float) -> str:
        feature = self._desk.service.schema.features[j]
        if np.isnan(value):
            return "missing"
        return measured(value, feature, catalogue()) if feature.is_date else catalogue().number(value)
