"""What can be done about an answer, where it stands: make it safer, lift a rule that is in the way, and see how exactly
it has to be hit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nicegui import ui

from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import button
from treefocus.constraints.kinds import Constraint
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Explanation, Explanations


def lift_buttons(desk: Desk, constraints: Sequence[Constraint]) -> None:
    """One click to lift a rule and ask again."""

    async def lift(constraint: Constraint) -> None:
        desk.visit.lift(constraint)
        await desk.ask_again()

    for constraint in constraints:
        button(desk.words["lift"].format(rule=constraint.to_text()), partial(lift, constraint))


def build(desk: Desk, one: Explanation) -> None:
    """The levers of the first answer."""
    _Levers(desk, one)


class _Levers:
    def __init__(self, desk: Desk, one: Explanation) -> None:
        self._desk, self._one, words = desk, one, desk.words
        with ui.element("div").classes("tf-line tf-levers"):
            if one.status.has_answer:
                if desk.visit.can_be_safer:
                    button(words["safer"], self._safer)
                rounding = button(words["round"], self._round)
                rounding.props["aria-pressed"] = "true" if desk.visit.is_rounded else "false"
                button(words["exactly"], self._region)
            else:
                button(words["why_not"], self._why_not)
        self._search = Search(desk)
        self._place = ui.element("div").classes("tf-told").props('role="status"')

    async def _safer(self) -> None:
        desk, row, label = self._desk, self._desk.visit.row, self._desk.visit.label
        margins, asked = desk.visit.margins(), desk.visit.question()
        found = await self._search.run(
            lambda errand: desk.service.safer(row, asked, margins, errand, label),
            desk.visit.seconds * len(margins), len(margins),
        )  # fmt: skip
        if found is not None and not self._place.is_deleted:
            self._place.clear()
            with self._place:
                ui.label(desk.words["safer_told"]).classes("tf-faint")
                with ui.element("div").classes("tf-line"):
                    for percent, answer in found.items():
                        self._offer(percent, answer)

    def _offer(self, percent: int, answer: Explanations) -> None:
        """One margin and its price, against the answer that is shown."""
        words, one = self._desk.words, answer[0]
        if one.distance is None:
            ui.label(words["safer_none"].format(percent=percent)).classes("tf-faint")
            return
        now = self._desk.visit.found
        base = None if now is None else now[0].distance
        price = 0.0 if not base else max(0.0, 100 * (one.distance / base - 1))
        key = "safer_same" if price < 0.5 else "safer_price"
        button(words[key].format(percent=percent, price=f"{price:.0f}"), partial(self._take, percent, answer))

    def _take(self, percent: int, answer: Explanations) -> None:
        visit = self._desk.visit
        visit.wish.percent = float(percent)
        self._desk.question_changed()
        visit.found = answer
        self._desk.remember()
        self._desk.answer_changed()

    def _round(self) -> None:
        self._desk.visit.is_rounded = not self._desk.visit.is_rounded
        self._desk.remember()
        self._desk.answer_changed()

    async def _region(self) -> None:
        one, language = self._one, self._desk.visit.language
        told = await self._search.run(lambda _: one.region().to_text(language), self._desk.visit.seconds, 0)
        if told is not None and not self._place.is_deleted:
            self._place.clear()
            with self._place:
                ui.label(told).props(f'lang="{language}"')

    async def _why_not(self) -> None:
        one, visit = self._one, self._desk.visit
        try:
            n_rules = len(visit.constraints())
        except TreefocusError as error:
            self._search.complain(str(error))
            return
        found = await self._search.run(lambda _: one.why_not(), visit.seconds * (n_rules + 1), n_rules + 1)
        if found is not None and not self._place.is_deleted:
            self._place.clear()
            with self._place:
                ui.label(found.to_text(visit.language)).props(f'lang="{visit.language}"')
                with ui.element("div").classes("tf-line"):
                    lift_buttons(self._desk, found.constraints or ())
