"""What if: a slider a column, and what the model says while they move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.columns import Columns
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import NumberField, button, fold, live, markup, named, title_of
from treefocus.app.page.pictures import said
from treefocus.errors import TreefocusError
from treefocus.model.forest import Floats
from treefocus.render.phrases import catalogue
from treefocus.render.text import measured

_STEPS = 200  # of a continuous column
_NUMBER = "(event) => emit(event.target.valueAsNumber)"
# A slider's place is the visitor's: it is moved by hand, once its ends are drawn, and not whenever the page is.
_PLACES = (
    "requestAnimationFrame(() => Object.entries({places}).forEach(([id, place]) => {{ "
    "const one = getHtmlElement(Number(id)); if (one) one.value = place; }}))"
)


def build(desk: Desk) -> None:
    """The sliders, made when they are first asked for."""
    fold(desk.words["try_fold"], lambda: _Trying(desk))


class _Trying:
    def __init__(self, desk: Desk) -> None:
        self._desk, words = desk, desk.words
        self._values = desk.visit.values.copy()
        self._levers: dict[int, _Category | _Slider] = {}
        with live():
            self._said = markup("")
        with ui.element("div").classes("tf-line"):
            button(words["from_row"], self._from_row)
            self._answer = button(words["from_answer"], self._from_answer)
            button(words["ask_these"], self._ask)
        self._columns = Columns(desk, self._lever, "tf-grid")
        self._tell()
        desk.when_row_changes(self._from_row)
        desk.when_answer_changes(self._offer)
        self._offer()

    def _lever(self, j: int) -> ui.element:
        kind = _Slider if self._desk.service.labels[j] is None else _Category
        with ui.element("div").classes("tf-slider") as place:
            self._levers[j] = kind(self._desk, j, self._values, self._tell)
        return place

    def _tell(self, spent: int = 0) -> None:
        try:
            self._desk.spend(spent)
        except TreefocusError as error:
            self._said.set_content(said(str(error)))
            return
        found = self._desk.service.predict(self._values[None, :])
        self._said.set_content(
            said(self._desk.words["with_these"], found.labels[0], found.probabilities[0], self._desk.service,
                 self._desk.visit.language)
        )  # fmt: skip

    def _offer(self) -> None:
        ways = self._desk.visit.ways
        self._answer.set_enabled(bool(ways) and ways[0].status.has_answer)

    def _from_row(self) -> None:
        self._begin(self._desk.visit.values)

    def _from_answer(self) -> None:
        found = self._desk.visit.shown
        assert found is not None
        self._begin(np.where(np.isnan(found.shown[0]), found.points[0], found.shown[0]))

    def _begin(self, values: Floats) -> None:
        self._values[:] = values
        levers = [self._levers[j] for j in self._columns.shown]
        for lever in levers:
            lever.follow()
        places = {lever.slider.id: lever.place for lever in levers if isinstance(lever, _Slider)}
        self._desk.run(_PLACES.format(places=places))
        self._tell()

    async def _ask(self) -> None:
        self._desk.visit.type_in(self._values)
        self._desk.row_changed()
        if self._desk.ask is not None:
            await self._desk.ask()


class _Category:
    """A choice for a column that has no more and no less."""

    def __init__(self, desk: Desk, j: int, values: Floats, tell: Callable[..., None]) -> None:
        """`values`: (n_features,), which are written to. `tell(spent=)`: what the model says has changed."""
        self._j, self._values, self._tell = j, values, tell
        feature, labels = desk.service.schema.features[j], desk.service.labels[j]
        self._options = {k: str(label) for k, label in enumerate(labels or ())}
        ui.label(title_of(feature)).classes("tf-name")
        self._field = ui.select(self._options, value=self._known, on_change=self._chosen)
        named(self._field.props("outlined dense"), feature.name)

    @property
    def _known(self) -> int | None:
        value = self._values[self._j]
        return int(value) if value == value and int(value) in self._options else None

    def follow(self) -> None:
        """Show what the values are now."""
        self._field.set_value(self._known)

    def _chosen(self, event: Any) -> None:
        if event.value != self._known:
            self._values[self._j] = np.nan if event.value is None else event.value
            self._tell(spent=1)


class _Slider:
    """A slider and a field for the same number; of a date, which a field of numbers cannot show, its day in words."""

    def __init__(self, desk: Desk, j: int, values: Floats, tell: Callable[..., None]) -> None:
        """As for `_Category`."""
        self._desk, self._j, self._values, self._tell = desk, j, values, tell
        feature, words = desk.service.schema.features[j], desk.words
        steps = feature.steps
        finest = 1.0 if feature.kind in ("integer", "boolean") else steps.step / steps.divisor if steps else 0.0
        low, high = self._ends()
        step = finest or _sensible((high - low) / _STEPS)
        self._typed: NumberField | None = None
        self._shown: ui.label | None = None
        if feature.is_date:
            self._shown = ui.label(self._written()).classes("tf-name")
        else:
            self._typed = NumberField(title_of(feature), value=self._number, step=step)
            named(self._typed, words["typed"].format(name=feature.name))
        self.slider = named(ui.element("input").props("type=range"), feature.name)
        # "^" sets where the slider starts; its place is the visitor's from then on.
        self.slider.props.update({"min": low, "max": high, "step": step, "^value": self.place})
        self.slider.props["aria-valuetext"] = self._written()
        self.slider.on("input", self._moved, throttle=0.1, js_handler=_NUMBER)
        if self._typed is not None:
            self._typed.on_value_change(self._was_typed)

    @property
    def place(self) -> float:
        """Where the slider stands; of a missing value at its low end."""
        return float(np.nan_to_num(self._values[self._j], nan=self._ends()[0]))

    @property
    def _number(self) -> int | float | None:
        value = float(self._values[self._j])
        return None if np.isnan(value) else int(value) if value.is_integer() else value

    def follow(self) -> None:
        """Show what the values are now; where a slider stands is moved by the caller, for all of them at once."""
        low, high = self._ends()
        self.slider.props.update({"min": low, "max": high})
        self._show()

    def _ends(self) -> tuple[float, float]:
        space, value = self._desk.service.space, self._values[self._j]
        low, high = np.nanmin([space.low[self._j], value]), np.nanmax([space.high[self._j], value])
        return float(low) if np.isfinite(low) else 0.0, float(high) if np.isfinite(high) else 0.0

    def _written(self) -> str:
        value, feature = float(self._values[self._j]), self._desk.service.schema.features[self._j]
        phrases = catalogue(self._desk.visit.language)
        if np.isnan(value):
            return self._desk.words["missing"]
        return measured(value, feature, phrases) if feature.is_date else phrases.number(value)

    def _moved(self, event: Any) -> None:
        self._values[self._j] = float(f"{float(event.args):.12g}")  # steps of 0.1 do not add up in binary
        self._show()
        self._tell(spent=1)

    def _was_typed(self, event: Any) -> None:
        value = np.nan if event.value is None else float(event.value)
        if np.array_equal(value, self._values[self._j], equal_nan=True):
            return
        self._values[self._j] = value
        self._show()
        self._desk.run(_PLACES.format(places={self.slider.id: self.place}))
        self._tell(spent=1)

    def _show(self) -> None:
        if self._typed is not None:
            self._typed.set_value(self._number)
        if self._shown is not None:
            self._shown.set_text(self._written())
        self.slider.props["aria-valuetext"] = self._written()
        self.slider.update()


def _sensible(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least as fine as the step."""
    if not step > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(step))
    return float(next(f"{power * n:.12g}" for n in (5, 2, 1) if power * n <= step * 1.0000001))
