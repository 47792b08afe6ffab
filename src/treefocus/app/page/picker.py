"""Pick a row: search, filter by what the model says, turn pages, choose."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, live, markup
from treefocus.app.page.pictures import breakable
from treefocus.app.rows import find
from treefocus.errors import TreefocusError
from treefocus.problem.targets import Interval
from treefocus.render.phrases import catalogue
from treefocus.render.plain import plain
from treefocus.tables.labels import label_of

PAGE = 8
N_COLUMNS = 3
_ALL = "all"


def build(desk: Desk) -> None:
    """The picker; a server without rows has none."""
    if not len(desk.service.rows.values):
        ui.label("There are no rows to pick from; type one in below.")
        return
    _Picker(desk)


class _Picker:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._page = desk, 0
        service = desk.service
        used = service.forest.feature[service.forest.feature >= 0]
        self._columns = np.argsort(-np.bincount(used, minlength=len(service.schema)), kind="stable")
        with ui.element("div").classes("tf-fields"):
            example = f"{service.schema.names[self._columns[0]]}>1"
            self._search = ui.input("Search rows", placeholder=f"17 or {example}", on_change=self._searched).props(
                'outlined dense stack-label debounce="250" type="search"'
            )
            self._wanted = self._interval() if service.predicts_number else self._class()
        with live():
            self._count = ui.label().classes("tf-faint")
        self._found = find(service)
        self._rows()
        with ui.element("nav").props('aria-label="Pages of rows"').classes("tf-line"):
            button("Previous", lambda: self._turn(-1))
            self._place = ui.label()
            button("Next", lambda: self._turn(1))
        self._show()
        desk.when_row_changes(self._show)

    def _class(self) -> Callable[[], Any]:
        """A filter by class; returns how to read it."""
        classes = self._desk.service.classes
        options = {_ALL: "every class"} | {str(k): str(label) for k, label in enumerate(classes)}
        chosen = ui.select(options, label="Predicted class", value=_ALL, on_change=self._searched)
        chosen.props("outlined dense")
        return lambda: None if chosen.value == _ALL else classes[int(chosen.value)]

    def _interval(self) -> Callable[[], Any]:
        """A filter by predicted number; returns how to read it."""
        with ui.element("div").classes("tf-pair"):
            low, high = (ui.number(f"Predicted {side}", on_change=self._searched) for side in ("from", "to"))
        for field in (low, high):
            field.props('outlined dense stack-label debounce="250"')

        def read() -> Any:
            if low.value is None and high.value is None:
                return None
            return Interval(-np.inf if low.value is None else low.value, np.inf if high.value is None else high.value)

        return read

    def _searched(self) -> None:
        try:
            self._found = find(self._desk.service, self._search.value or "", self._wanted())
        except TreefocusError as error:
            self._found = []
            self._page = 0
            self._show()
            self._count.set_text(str(error))
            return
        self._page = 0
        self._show()

    def _turn(self, by: int) -> None:
        self._page = min(max(0, self._page + by), self._last)
        self._show()

    @property
    def _last(self) -> int:
        return max(0, (len(self._found) - 1) // PAGE)

    def _show(self) -> None:
        self._count.set_text(f"{len(self._found):,} of {len(self._desk.service.rows.values):,} rows{self._numbers()}")
        self._place.set_text(f"Page {self._page + 1} of {self._last + 1}")
        self._rows.refresh()

    def _numbers(self) -> str:
        """From where to where the found rows' predictions go, where they are numbers."""
        said = [self._desk.service.predictions.labels[i] for i in self._found]
        known = [number for number in said if number is not None]
        if not known or not self._desk.service.predicts_number:
            return ""
        return f", predicted {catalogue().amount(min(known))} to {catalogue().amount(max(known))}"

    @ui.refreshable_method
    def _rows(self) -> None:
        service, phrases = self._desk.service, catalogue()
        columns = [int(j) for j in self._columns[:N_COLUMNS]]
        with ui.element("table").classes("tf-rows"):
            markup("Rows to pick from").props("tag=caption")
            with ui.element("thead"), ui.element("tr"):
                said = ["Predicted"] if service.predicts_number else ["Predicted", "Probability"]
                heads = ["Row", *said, *(service.schema.names[j] for j in columns)]
                for k, head in enumerate(heads):
                    ui.html(breakable(head), tag="th", sanitize=False).props('scope="col"').classes(_extra(k))
            with ui.element("tbody"):
                for i in self._found[self._page * PAGE : (self._page + 1) * PAGE]:
                    self._row(i, columns, phrases)

    def _row(self, i: int, columns: list[int], phrases: object) -> None:
        service, is_chosen = self._desk.service, i == self._desk.visit.number
        label, shares = service.predictions.labels[i], service.predictions.probabilities[i]
        if service.predicts_number:
            cells = ["-" if label is None else catalogue().amount(label)]
        else:
            cells = ["-", ""] if label is None else [plain(label), f"{100 * max(shares or [0.0]):.0f}%"]
        for j in columns:
            value, labels = service.rows.values[i, j], service.labels[j]
            cells.append(catalogue().number(value) if labels is None else str(label_of(value, labels)))
        with ui.element("tr").classes("tf-chosen" if is_chosen else ""):
            with ui.element("th").props('scope="row"'):
                pressed = "true" if is_chosen else "false"
                button(f"{i}", lambda: self._pick(i)).props(f'dense aria-label="Pick row {i}" aria-pressed="{pressed}"')
            for k, cell in enumerate(cells, start=1):
                ui.html(escape(cell), tag="td", sanitize=False).classes(_extra(k))

    def _pick(self, i: int) -> None:
        self._desk.visit.pick(i)
        self._desk.row_changed()


def _extra(k: int) -> str:
    """Columns that a phone has no room for."""
    return "tf-wide" if k >= 4 else ""
