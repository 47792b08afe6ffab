"""The answer: one short sentence, how the prediction moves, the changes as a picture with what can be done about each,
then the words, the proof and what can be taken home."""

from __future__ import annotations

from functools import partial
from html import escape

from nicegui import ui

from treefocus.app.page import downloads, levers
from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import button, heading, live, markup, named
from treefocus.app.page.pictures import breakable, change_row, changes_head, proof, shift, side_of
from treefocus.app.visit import DOWN, FIXED, FREE, UP
from treefocus.explanation.batch import Change, Explanation
from treefocus.render.phrases import catalogue
from treefocus.render.plain import plain
from treefocus.render.table import change_cells

_MOST = 30  # changes with buttons; a table of hundreds is in the downloads


def build(desk: Desk) -> None:
    """The place where answers stand."""
    _Answer(desk)


class _Answer:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        with live():
            self._headline = ui.label().classes("tf-headline")
        self._show()
        desk.when_answer_changes(self._changed)
        self._tell()

    def _changed(self) -> None:
        self._tell()
        self._show.refresh()

    def _tell(self) -> None:
        ways = self._desk.visit.ways
        self._headline.set_text(_headline(self._desk, ways[0]) if ways else "")
        self._headline.set_visibility(bool(ways))

    @ui.refreshable_method
    def _show(self) -> None:
        """The answers, the closest first."""
        if self._desk.visit.found is not None:
            _answers(self._desk)
        else:
            ui.label(self._desk.words["nothing"]).classes("tf-faint tf-nothing")


def _headline(desk: Desk, one: Explanation) -> str:
    words = desk.words
    if not one.changes:
        return one.to_text(desk.visit.language)
    if len(one.changes) == 1:
        return words["one_change"].format(name=plain(one.changes[0].feature))
    return words["n_changes"].format(n=len(one.changes))


def _answers(desk: Desk) -> None:
    visit, shown = desk.visit, desk.visit.shown
    assert shown is not None
    ways = visit.ways
    for k, one in enumerate(ways):
        with ui.element("article").classes("tf-answer").props(f'lang="{visit.language}"'):
            if len(ways) > 1:
                heading(3, desk.words["way"].format(k=k + 1))
            _one(desk, one, is_first=k == 0)
        if k == 0:
            downloads.build(desk, shown)
    if visit.n_ways > len(ways) and len(shown.ways) > len(ways):
        reason = catalogue(visit.language).reason(shown.ways[len(ways)][0].why)
        markup(f"<p>{escape(plain(reason[:1].upper() + reason[1:]))}.</p>", "tf-faint")


def _one(desk: Desk, one: Explanation, *, is_first: bool) -> None:
    language = desk.visit.language
    point = one.counterfactual
    if point is not None:
        before, after = desk.visit.prediction, desk.service.predict(point[None, :])
        markup(shift(before, (after.labels[0], after.probabilities[0]), desk.service, language))
    if one.changes:
        _changes(desk, one)
    if is_first:
        levers.build(desk, one)
    markup(f"<p>{escape(one.to_text(language))}</p>", "tf-sentence")
    markup(proof(one, language))


def _changes(desk: Desk, one: Explanation) -> None:
    language = desk.visit.language
    with ui.element("table").classes("tf-changes"):
        markup(changes_head(language)).props("tag=thead")
        with ui.element("tbody"):
            for cells, change in list(zip(change_cells(one, language), one.changes, strict=True))[:_MOST]:
                with ui.element("tr"):
                    ui.html(breakable(change.feature), tag="th", sanitize=False).props('scope="row"')
                    for text, kind in change_row(cells, change):
                        ui.html(text, tag="td", sanitize=False).classes(kind)
                    with ui.element("td").classes("tf-acts"):
                        _acts(desk, change)


def _acts(desk: Desk, change: Change) -> None:
    """Leave this alone; only this way."""
    words, j = desk.words, desk.service.schema.index(change.feature)

    async def rule(moves: str) -> None:
        desk.visit.rules[j].moves = moves
        await desk.ask_again()

    leave = button(words["leave"], partial(rule, FIXED))
    named(leave.classes("tf-small"), words["leave_name"].format(name=change.feature))
    side = side_of(change)
    if side == "other" or desk.visit.rules[j].moves != FREE:
        return
    moves, text = (UP, words["only_up"]) if side == "up" else (DOWN, words["only_down"])
    only = button(text, partial(rule, moves)).classes("tf-small")
    named(only, words["only_name"].format(name=change.feature, way=text))
