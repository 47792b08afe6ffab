"""The same row under four distances, side by side."""

from __future__ import annotations

from nicegui import ui

from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import button, live, markup
from treefocus.app.page.pictures import side_by_side
from treefocus.app.service import COMPARED
from treefocus.errors import TreefocusError


def build(desk: Desk) -> None:
    """The button and the table."""
    ui.label(f"What counts as small is a choice: {', '.join(COMPARED)}.").classes("tf-faint")
    button("Compare distances", lambda: compare())
    search = Search(desk)

    async def compare() -> None:
        visit = desk.visit
        try:
            asked = visit.question()
        except TreefocusError as error:
            search.complain(str(error))
            return
        row, label = visit.row, visit.label
        seconds = len(COMPARED) * visit.seconds * asked.n_searches / asked.n
        found = await search.run(lambda errand: desk.service.compared(row, asked, errand, label), seconds)
        if found is not None:
            visit.compared = found
            show()

    with live():
        table = markup("")

    def show() -> None:
        table.set_content(side_by_side(desk.visit.compared, desk.visit.language) if desk.visit.compared else "")

    desk.when_answer_changes(show)
