"""Columns of a table of any width: those that change first, then those the model asks most; so many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button

AT_ONCE = 12


class Columns:
    """A list that is drawn bit by bit, with a search where it is long: 200 columns cost no more than 12.

    What is drawn stays and is moved: drawing it anew would take the browser longer than searching takes the server.
    """

    def __init__(self, desk: Desk, draw: Callable[[int], ui.element], classes: str) -> None:
        """`draw`: one column, by its number; returns what was drawn."""
        self._desk, self._draw = desk, draw
        self._most, self._text = AT_ONCE, ""
        self._drawn: dict[int, ui.element] = {}
        used = desk.service.forest.feature[desk.service.forest.feature >= 0]
        count = np.bincount(used, minlength=len(desk.service.schema))
        self._usual = [int(j) for j in np.argsort(-count, kind="stable")]
        self._is_long = len(self._usual) > AT_ONCE
        if self._is_long:
            ui.input(desk.words["search_columns"], on_change=lambda event: self._search(event.value)).props(
                'outlined dense debounce="250" type="search"'
            )
            self._count = ui.label().classes("tf-faint").props('role="status"')
        self._place = ui.element("div").classes(classes)
        if self._is_long:
            self._more = button(desk.words["more_columns"], self._further)
            desk.when_answer_changes(self._answered)
        self._arrange()

    @property
    def shown(self) -> list[int]:
        """The columns that are drawn, in their order."""
        return list(self._drawn)

    def redraw(self) -> None:
        """Draw every column anew."""
        self._drawn = {}
        self._place.clear()
        self._arrange()

    def _search(self, text: str | None) -> None:
        self._text, self._most = (text or "").strip().lower(), AT_ONCE
        self._arrange()

    def _further(self) -> None:
        self._most += AT_ONCE
        self._arrange()

    def _answered(self) -> None:
        """An answer brings its columns to the top; without one all stay where they are, for somebody may be typing."""
        if self._desk.changes:
            self._arrange()

    def _order(self) -> list[int]:
        names = self._desk.service.schema.names
        if not self._is_long:
            return list(range(len(names)))
        changed = [self._desk.service.schema.index(change.feature) for change in self._desk.changes]
        order = list(dict.fromkeys([*changed, *self._usual]))
        return [j for j in order if self._text in names[j].lower()]

    def _arrange(self) -> None:
        order = self._order()
        shown = order[: self._most]
        for j in self._drawn.keys() - set(shown):
            self._drawn.pop(j).delete()
        with self._place:
            self._drawn = {j: self._drawn[j] if j in self._drawn else self._draw(j) for j in shown}
        wanted, children = list(self._drawn.values()), self._place.default_slot.children
        if children != wanted:
            children[:] = wanted
            self._place.update()
        if self._is_long:
            told = self._desk.words["columns_shown"].format(shown=len(shown), all=len(self._usual))
            self._count.set_text(told)
            self._more.set_visibility(len(order) > self._most)
