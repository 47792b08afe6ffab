"""Everyone: the audit of many rows as charts, the actions that help most of them, and from each bar to its people."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nicegui import ui

from treefocus.app.everyone import Bar, Everyone, everyone
from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import NumberField, button, fold, heading, live, named
from treefocus.app.rows import find
from treefocus.app.visit import checked_count
from treefocus.errors import TreefocusError

MOST_PEOPLE = 40  # listed behind a bar
_NONE = ""


def build(desk: Desk) -> None:
    """The part of the page, made when it is first opened; a server without rows has none."""
    ui.label(desk.words["everyone_told"]).classes("tf-faint")
    if len(desk.service.rows.values):
        fold(desk.words["everyone_fold"], lambda: _Everyone(desk))


class _Everyone:
    def __init__(self, desk: Desk) -> None:
        self._desk, service, words = desk, desk.service, desk.words
        self._seen: Everyone | None = None
        with ui.element("div").classes("tf-fields"):
            self._rows = self._unmet if service.predicts_number else self._of_class()
            options = {_NONE: words["no_groups"]} | {name: name for name in service.schema.names}
            self._group = ui.select(options, value=_NONE, label=words["groups_by"]).props("outlined dense")
            self._most = NumberField(words["people_at_most"], value=100, step=1)
        button(words["audit"], self._audit)
        self._search = Search(desk)
        with live():
            self._text = ui.label()
        self._charts()

    def _of_class(self) -> Callable[[], list[int]]:
        service = self._desk.service
        options = {str(k): str(label) for k, label in enumerate(service.classes)}
        first = next((key for key in options if not self._desk.visit.wish.is_met_by(service.classes[int(key)])), "0")
        chosen = ui.select(options, value=first, label=self._desk.words["people_predicted"]).props("outlined dense")
        return lambda: find(service, predicted=service.classes[int(chosen.value)])

    def _unmet(self) -> list[int]:
        labels, wish = self._desk.service.predictions.labels, self._desk.visit.wish
        return [i for i, own in enumerate(labels) if own is not None and not wish.is_met_by(own)]

    async def _audit(self) -> None:
        visit, service = self._desk.visit, self._desk.service
        columns = [self._group.value] if self._group.value else []
        try:
            most = min(checked_count(self._most.value), service.limits.rows_per_call)
            rows = self._rows()[:most]
            asked = visit.question()
        except TreefocusError as error:
            self._search.complain(str(error))
            return
        seconds = len(rows) * visit.seconds + 10
        found = await self._search.run(
            lambda errand: everyone(service, rows, columns, asked, errand), seconds, len(rows)
        )
        if found is not None:
            self._seen = found
            self._text.set_text(self._desk.words["audited"].format(n=self._desk.count(len(rows))))
            self._charts.refresh()

    @ui.refreshable_method
    def _charts(self) -> None:
        seen = self._seen
        if seen is None:
            return
        words = self._desk.words
        with ui.element("div").props('lang="en"'):  # an audit's own sentences are English
            for line in seen.audit.to_text().split("\n\n")[0].split("\n"):
                ui.label(line)
            if seen.groups:
                for line in seen.audit.to_text().split("\n\n"):
                    if "comparison" in line.split("\n")[0].lower():
                        ui.label(line).classes("tf-sentence")
        self._people = ui.element("div")
        self._chart(words["burdens"], seen.burdens())
        self._chart(words["preclusions"], seen.preclusions())
        self._chart(words["asked_to_change"], seen.features())
        if seen.plan is not None:
            self._chart(seen.plan.to_text().split("\n")[0], seen.actions())
        button(words["audit_page"], self._page)

    def _chart(self, title: str, bars: list[Bar]) -> None:
        """A line a bar: its name, which leads to its people, the bar, the number."""
        if not bars:
            return
        heading(3, title)
        with ui.element("div").classes("tf-everyone"):
            for bar in bars:
                behind = self._desk.words["behind"].format(name=bar.name)
                named(button(bar.name, partial(self._show, bar)).props("dense"), behind)
                with ui.element("span").classes("tf-track"):
                    ui.element("span").classes("tf-fill").style(f"width:{100 * bar.width:.1f}%")
                ui.label(bar.told)

    def _show(self, bar: Bar) -> None:
        """The people behind a bar, each of whom can be picked."""
        words = self._desk.words
        self._people.clear()
        with self._people, live():
            key = "people" if len(bar.rows) <= MOST_PEOPLE else "first_people"
            ui.label(words[key].format(name=bar.name, n=self._desk.count(len(bar.rows)), first=MOST_PEOPLE))
            with ui.element("div").classes("tf-line"):
                for i in bar.rows[:MOST_PEOPLE]:
                    named(button(f"{i}", partial(self._pick, i)).props("dense"), words["ask_about"].format(row=i))

    async def _pick(self, i: int) -> None:
        self._desk.visit.pick(i)
        self._desk.row_changed()
        if self._desk.ask is not None:
            await self._desk.ask()

    def _page(self) -> None:
        if self._seen is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            page = self._seen.audit.to_html(Path(folder) / "audit.html").read_bytes()
        ui.download(page, "audit.html", "text/html")
