"""What if: a slider a column, and what the model says while they move."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.columns import Columns
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import NumberField, button, fold, live, markup, named, title_of
from treefocus.app.page.pictures import said
from treefocus.errors import TreefocusError
from treefocus.render.phrases import catalogue
from treefocus.render.text import measured

_STEPS = 200  # of a continuous column
_NUMBER = "(event) => emit(event.target.valueAsNumber)"


def build(desk: Desk) -> None:
    """The sliders, made when they are first asked for."""
    fold(desk.words["try_fold"], lambda: _Trying(desk))


class _Trying:
    def __init__(self, desk: Desk) -> None:
        self._desk, words = desk, desk.words
        self._values = desk.visit.values.copy()
        with live():
            self._said = markup("")
        with ui.element("div").classes("tf-line"):
            button(words["from_row"], self._from_row)
            self._answer = button(words["from_answer"], self._from_answer)
            button(words["ask_these"], self._ask)
        self._columns = Columns(desk, self._slider, "tf-grid")
        self._tell()
        desk.when_row_changes(self._from_row)
        desk.when_answer_changes(self._offer)
        self._offer()

    def _slider(self, j: int) -> None:
        service, words = self._desk.service, self._desk.words
        feature, labels, value = service.schema.features[j], service.labels[j], self._values[j]
        with ui.element("div").classes("tf-slider"):
            if labels is not None:
                ui.label(title_of(feature)).classes("tf-name")
                options = {k: str(label) for k, label in enumerate(labels)}
                known = int(value) if value == value and int(value) in options else None
                field = ui.select(options, value=known, on_change=lambda event: self._set(j, event.value))
                named(field.props("outlined dense"), feature.name)
                return
            low, high = np.nanmin([service.space.low[j], value]), np.nanmax([service.space.high[j], value])
            low, high = (float(side) if np.isfinite(side) else 0.0 for side in (low, high))
            steps = feature.steps
            finest = 1.0 if feature.kind in ("integer", "boolean") else steps.step / steps.divisor if steps else 0.0
            step = finest or _sensible((high - low) / _STEPS)
            typed = NumberField(title_of(feature), value=None if np.isnan(value) else float(value), step=step)
            typed.set_visibility(not feature.is_date)  # of a date the slider tells the day
            shown = ui.label(self._written(j, value)).classes("tf-name")
            shown.set_visibility(feature.is_date)
            named(typed, words["typed"].format(name=feature.name))
            slider = named(ui.element("input").props("type=range"), feature.name)
            # "^" sets where the slider starts; its place is the visitor's from then on.
            slider.props.update({"min": low, "max": high, "step": step, "^value": np.nan_to_num(value, nan=low)})
            slider.props["aria-valuetext"] = self._written(j, value)
            slider.on("input", partial(self._moved, j, typed, shown, slider), throttle=0.1, js_handler=_NUMBER)
            typed.on_value_change(partial(self._typed, j, slider))

    def _written(self, j: int, value: float) -> str:
        feature, phrases = self._desk.service.schema.features[j], catalogue(self._desk.visit.language)
        if np.isnan(value):
            return self._desk.words["missing"]
        return measured(value, feature, phrases) if feature.is_date else phrases.number(value)

    def _moved(self, j: int, typed: Any, shown: ui.label, slider: ui.element, event: Any) -> None:
        value = float(f"{float(event.args):.12g}")  # steps of 0.1 do not add up in binary
        self._set(j, value)
        typed.set_value(int(value) if value.is_integer() else value)
        shown.set_text(self._written(j, value))
        self._voice(slider, j, value)

    def _typed(self, j: int, slider: ui.element, event: Any) -> None:
        value = np.nan if event.value is None else float(event.value)
        if value == self._values[j] or (np.isnan(value) and np.isnan(self._values[j])):
            return
        self._set(j, None if np.isnan(value) else value)
        slider.props["^value"] = np.nan_to_num(value, nan=0.0)
        self._voice(slider, j, value)

    def _voice(self, slider: ui.element, j: int, value: float) -> None:
        slider.props["aria-valuetext"] = self._written(j, value)
        slider.update()

    def _set(self, j: int, value: float | None) -> None:
        self._values[j] = np.nan if value is None else float(value)
        self._tell(spent=1)

    def _tell(self, spent: int = 0) -> None:
        try:
            self._desk.spend(spent)
        except TreefocusError as error:
            self._said.set_content(said(str(error)))
            return
        found = self._desk.service.predict(self._values[None, :])
        self._said.set_content(
            said(self._desk.words["with_these"], found.labels[0], found.probabilities[0], self._desk.service,
                 self._desk.words)
        )  # fmt: skip

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
        self._columns.show.refresh()
        self._tell()

    async def _ask(self) -> None:
        self._desk.visit.type_in(self._values)
        self._desk.row_changed()
        if self._desk.ask is not None:
            await self._desk.ask()


def _sensible(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least as fine as the step."""
    if not step > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(step))
    return float(next(f"{power * n:.12g}" for n in (5, 2, 1) if power * n <= step * 1.0000001))
