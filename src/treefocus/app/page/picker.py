"""Pick a row: search, filter by what the model says, turn pages, choose. Rows are drawn once and filled anew, so that
the focus stays where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import NumberField, button, live, markup
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
        ui.label(desk.words["no_rows"])
        return
    _Picker(desk)


class _Line:
    """One row of the table: its elements, and the number of the row that stands there."""

    def __init__(self, n_cells: int, pick: Callable[[int], object]) -> None:
        self.number = 0
        with ui.element("tr") as self._line:
            with ui.element("th").props('scope="row"'):
                self._button = button("", lambda: pick(self.number)).props("dense")
            self._cells = [ui.html("", tag="td", sanitize=False).classes(_extra(k)) for k in range(1, n_cells + 1)]

    def fill(self, number: int, name: str, label: str, cells: list[str], is_chosen: bool) -> None:
        self.number = number
        self._button.set_text(name)
        self._button.props["aria-label"] = label
        self._button.props["aria-pressed"] = "true" if is_chosen else "false"
        self._button.update()
        self._line.classes(add="tf-chosen" if is_chosen else None, remove=None if is_chosen else "tf-chosen")
        for element, text in zip(self._cells, cells, strict=True):
            element.set_content(f'<span title="{escape(text)}">{escape(text)}</span>')
        self._line.set_visibility(True)

    def hide(self) -> None:
        self._line.set_visibility(False)


class _Picker:
    def __init__(self, desk: Desk) -> None:
        self._desk, self._page = desk, 0
        service, words = desk.service, desk.words
        used = service.forest.feature[service.forest.feature >= 0]
        order = np.argsort(-np.bincount(used, minlength=len(service.schema)), kind="stable")
        self._columns = [int(j) for j in order[:N_COLUMNS]]
        with ui.element("div").classes("tf-fields"):
            example = f"17 {words['or']} {service.schema.names[self._columns[0]]}>1"
            self._search = ui.input(words["search_rows"], placeholder=example, on_change=self._searched).props(
                'outlined dense stack-label debounce="250" type="search"'
            )
            self._wanted = self._interval() if service.predicts_number else self._class()
        with live():
            self._count = ui.label().classes("tf-faint")
        self._found: Sequence[int] = range(len(service.rows.values))
        self._table()
        with ui.element("nav").classes("tf-line") as pages:
            button(words["previous"], lambda: self._turn(-1))
            self._place = ui.label()
            button(words["next"], lambda: self._turn(1))
        pages.props["aria-label"] = words["pages"]
        if desk.visit.number is not None:
            self._page = desk.visit.number // PAGE
        self._show()
        desk.when_row_changes(self._show)

    def _table(self) -> None:
        service, words = self._desk.service, self._desk.words
        said = [words["predicted"]] if service.predicts_number else [words["predicted"], words["probability"]]
        heads = [words["row"], *said, *(service.schema.names[j] for j in self._columns)]
        with ui.element("table").classes("tf-rows" if service.ids is None else "tf-rows tf-named"):
            markup(escape(words["rows"])).props("tag=caption").classes("tf-hidden")
            with ui.element("thead"), ui.element("tr"):
                for k, head in enumerate(heads):
                    ui.html(breakable(head), tag="th", sanitize=False).props('scope="col"').classes(_extra(k))
            with ui.element("tbody"):
                self._lines = [_Line(len(heads) - 1, self._pick) for _ in range(PAGE)]

    def _class(self) -> Callable[[], Any]:
        """A filter by class; returns how to read it."""
        classes, words = self._desk.service.classes, self._desk.words
        options = {_ALL: words["every_class"]} | {str(k): str(label) for k, label in enumerate(classes)}
        chosen = ui.select(options, label=words["predicted_class"], value=_ALL, on_change=self._searched)
        chosen.props("outlined dense")
        return lambda: None if chosen.value == _ALL else classes[int(chosen.value)]

    def _interval(self) -> Callable[[], Any]:
        """A filter by predicted number; returns how to read it."""
        words = self._desk.words
        with ui.element("div").classes("tf-pair"):
            low, high = (
                NumberField(words[f"predicted_{side}"], on_change=self._searched).props("stack-label")
                for side in ("from", "to")
            )

        def read() -> Any:
            if low.value is None and high.value is None:
                return None
            return Interval(-np.inf if low.value is None else low.value, np.inf if high.value is None else high.value)

        return read

    def _searched(self) -> None:
        self._page, complaint = 0, None
        try:
            self._found = find(self._desk.service, self._search.value or "", self._wanted())
        except TreefocusError as error:
            self._found, complaint = [], str(error)
        self._show()
        if complaint is not None:
            self._count.set_text(complaint)

    def _turn(self, by: int) -> None:
        self._page = min(max(0, self._page + by), self._last)
        self._show()

    @property
    def _last(self) -> int:
        return max(0, (len(self._found) - 1) // PAGE)

    def _show(self) -> None:
        words, n_all = self._desk.words, len(self._desk.service.rows.values)
        counted = words["rows_found"].format(found=self._desk.count(len(self._found)), all=self._desk.count(n_all))
        self._count.set_text(counted + self._numbers())
        page, last = self._desk.count(self._page + 1), self._desk.count(self._last + 1)
        self._place.set_text(words["page_of"].format(page=page, last=last))
        shown = self._found[self._page * PAGE : (self._page + 1) * PAGE]
        for line, i in zip(self._lines, shown, strict=False):
            name = str(self._desk.service.name_of(i))
            line.fill(i, name, words["pick"].format(row=name), self._cells(i), i == self._desk.visit.number)
        for line in self._lines[len(shown) :]:
            line.hide()

    def _numbers(self) -> str:
        """From where to where the found rows' predictions go, where they are numbers."""
        service = self._desk.service
        if not service.predicts_number:
            return ""
        known = [number for number in map(service.predictions.labels.__getitem__, self._found) if number is not None]
        amount = catalogue(self._desk.visit.language).amount
        ends = {"low": amount(min(known)), "high": amount(max(known))} if known else None
        return self._desk.words["predicted_range"].format(**ends) if ends else ""

    def _cells(self, i: int) -> list[str]:
        service, phrases = self._desk.service, catalogue(self._desk.visit.language)
        label, shares = service.predictions.labels[i], service.predictions.probabilities[i]
        if service.predicts_number:
            cells = ["-" if label is None else phrases.amount(label)]
        else:
            cells = ["-", ""] if label is None else [plain(label), phrases.share(max(shares or [0.0]))]
        for j in self._columns:
            value, labels = service.rows.values[i, j], service.labels[j]
            cells.append(phrases.amount(value) if labels is None else str(label_of(value, labels)))
        return cells

    def _pick(self, i: int) -> Any:
        self._desk.visit.pick(i)
        self._desk.row_changed()
        return None if self._desk.ask is None else self._desk.ask()


def _extra(k: int) -> str:
    """Columns that a phone has no room for."""
    return "tf-wide" if k >= 4 else ""
