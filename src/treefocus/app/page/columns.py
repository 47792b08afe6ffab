"""Columns of a table of any width: those that change first, then those the model asks most; so many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button

AT_ONCE = 24


class Columns:
    """A list that is drawn bit by bit, with a search where it is long: 200 columns cost no more than 24."""

    def __init__(self, desk: Desk, draw: Callable[[int], object], classes: str) -> None:
        """`draw`: one column, by its number."""
        self._desk, self._draw, self._classes = desk, draw, classes
        self._most, self._text = AT_ONCE, ""
        self.shown: list[int] = []  # the columns that are drawn
        used = desk.service.forest.feature[desk.service.forest.feature >= 0]
        count = np.bincount(used, minlength=len(desk.service.schema))
        self._usual = [int(j) for j in np.argsort(-count, kind="stable")]
        self._is_long = len(self._usual) > AT_ONCE
        if self._is_long:
            ui.input(desk.words["search_columns"], on_change=lambda event: self._search(event.value)).props(
                'outlined dense debounce="250" type="search"'
            )
        self.show()

    def _search(self, text: str | None) -> None:
        self._text, self._most = (text or "").strip().lower(), AT_ONCE
        self.show.refresh()

    def _order(self) -> list[int]:
        names = self._desk.service.schema.names
        if not self._is_long:
            return list(range(len(names)))
        changed = [self._desk.service.schema.index(change.feature) for change in self._desk.changes]
        order = list(dict.fromkeys([*changed, *self._usual]))
        return [j for j in order if self._text in names[j].lower()]

    @ui.refreshable_method
    def show(self) -> None:
        """Draw the list."""
        order = self._order()
        self.shown = order[: self._most]
        if self._is_long:
            told = self._desk.words["columns_shown"].format(shown=len(self.shown), all=len(self._usual))
            ui.label(told).classes("tf-faint").props('role="status"')
        with ui.element("div").classes(self._classes):
            for j in self.shown:
                self._draw(j)
        if len(order) > self._most:
            button(self._desk.words["more_columns"], self._further)

    def _further(self) -> None:
        self._most += AT_ONCE
        self.show.refresh()
