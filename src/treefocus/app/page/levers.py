"""What can be done about an answer, where it stands: make it safer, lift a rule that is in the way, and see how exactly
it has to be hit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nicegui import ui

from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import button
from treefocus.app.service import MARGINS, Offer
from treefocus.constraints.kinds import Constraint
from treefocus.errors import TreefocusError
from treefocus.explanation.batch import Explanation
from treefocus.render.phrases import catalogue
from treefocus.render.text import times


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
        asked, hold, n_offers = desk.visit.question(), desk.visit.promise, len(MARGINS) + 2
        offers = await self._search.run(
            lambda errand: desk.service.safer(row, asked, hold, errand, label), desk.visit.seconds * n_offers, n_offers
        )
        if offers is not None and not self._place.is_deleted:
            self._place.clear()
            with self._place:
                ui.label(desk.words["safer_told"]).classes("tf-faint")
                with ui.element("div").classes("tf-offers"):
                    for offer in offers:
                        self._offer(offer)

    def _offer(self, offer: Offer) -> None:
        """How safe, at what price, and how many models agree, where some were asked."""
        words, one, visit = self._desk.words, offer.found[0], self._desk.visit
        phrases = catalogue(visit.language)
        share = "" if offer.percent is None else phrases.share(offer.percent / 100)
        share = share if offer.hold is None else phrases.share(offer.hold)
        kind = words[
            "safer_hold" if offer.hold is not None else "safer_least" if offer.percent is not None else "smallest"
        ]
        name = kind.format(share=share)
        if one.price is None:
            ui.label(words["safer_none"].format(name=name)).classes("tf-faint")
            return
        price = words["safer_same" if one.price < 1.005 else "safer_price"].format(factor=times(one.price, phrases))
        told = [price] if share else []
        told += [] if one.held is None else [words["safer_held"].format(agree=one.held[0], models=one.held[1])]
        taken = button(": ".join([name, *([", ".join(told)] if told else [])]), partial(self._take, offer))
        is_asked = (visit.own_hold, visit.wish.percent) == (offer.hold, offer.percent)
        taken.props["aria-pressed"] = "true" if is_asked else "false"

    def _take(self, offer: Offer) -> None:
        visit = self._desk.visit
        visit.wish.percent = None if offer.percent is None else float(offer.percent)
        if offer.percent is None:
            visit.hold = offer.hold
        self._desk.question_changed()
        visit.found = offer.found
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
