"""The row's values, to read or to type; the rules for each column, and what they cost."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.columns import Columns
from treefocus.app.page.desk import Desk, Search
from treefocus.app.page.elements import NumberField, button, fold, named, title_of
from treefocus.app.page.levers import lift_buttons
from treefocus.app.visit import DOWN, FIXED, FREE, UP
from treefocus.explanation.change import told_value
from treefocus.explanation.why_not import Price
from treefocus.schema.dates import read_date
from treefocus.schema.feature import Feature

MOVES = (FREE, UP, DOWN, FIXED)


def build(desk: Desk) -> None:
    """Rules and values."""
    _Rules(desk)
    _Values(desk)


class _Values:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._is_filling = False
        self._fields: dict[int, Any] = {}
        self._columns: Columns | None = None
        fold(desk.words["values_fold"], self._values)
        desk.when_row_changes(self._fill)

    def _values(self) -> None:
        self._columns = Columns(self._desk, self._field, "tf-grid")

    def _field(self, j: int) -> ui.element:
        feature, labels = self._desk.service.schema.features[j], self._desk.service.labels[j]
        changed = partial(self._typed, j)
        if labels is not None:
            options = {k: str(label) for k, label in enumerate(labels)}
            field: Any = ui.select(options, label=title_of(feature), value=self._value(j), clearable=True)
            field.props("outlined dense")
        elif feature.counting is not None:
            field = _date(title_of(feature), feature, self._value(j))
        else:
            step = 1 if feature.kind in ("integer", "boolean") else feature.step
            field = NumberField(title_of(feature), step=step, value=self._value(j))
        field.props["title"] = feature.description or feature.name
        field.on_value_change(changed)
        self._fields[j] = field
        drawn: ui.element = field
        return drawn

    def _value(self, j: int) -> Any:
        """A cell as its field takes it."""
        value, feature = self._desk.visit.values[j], self._desk.service.schema.features[j]
        if feature.counting is not None:
            return _text(None if np.isnan(value) else float(value), feature)
        if np.isnan(value):
            return None
        is_whole = self._desk.service.labels[j] is not None or float(value).is_integer()
        return int(value) if is_whole else float(value)

    def _typed(self, j: int, event: Any) -> None:
        if self._is_filling:
            return
        values = self._desk.visit.values.copy()
        number = _number(event.value, self._desk.service.schema.features[j])
        values[j] = np.nan if number is None else number
        if np.array_equal(values, self._desk.visit.values, equal_nan=True):
            return
        self._desk.visit.type_in(values)
        self._desk.row_changed()

    def _fill(self) -> None:
        """Those that are drawn; the others are filled when they are."""
        if self._columns is None:
            return
        self._is_filling = True
        for j in self._columns.shown:
            if self._fields[j].value != self._value(j):
                self._fields[j].set_value(self._value(j))
        self._is_filling = False


class _Rules:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._columns: Columns | None = None
        self._part = fold(desk.words["rules_fold"], self._every_rule)
        desk.when_question_changes(self._draw)
        self._count()

    def _every_rule(self) -> None:
        words = self._desk.words
        button(words["prices"], self._price)
        self._search = Search(self._desk)
        self._prices = ui.element("div").props('role="status"')
        self._columns = Columns(self._desk, self._rule, "tf-rules")
        self._more = ui.textarea(
            words["more_rules"], value=self._desk.visit.more, placeholder="at most 3 changes",
            on_change=lambda event: self._write(event.value),
        )  # fmt: skip
        self._more.props('outlined dense autogrow stack-label debounce="250"').classes("tf-more")

    def _rule(self, j: int) -> ui.element:
        words, service = self._desk.words, self._desk.service
        feature, rule = service.schema.features[j], self._desk.visit.rules[j]
        group = ui.element("div").classes("tf-rule").props('role="group"')
        with named(group, words["rule_for"].format(name=feature.name)):
            ui.label(title_of(feature)).classes("tf-name")
            moves = {key: words[key] for key in MOVES if key in (FREE, FIXED) or service.has_order[j]}
            chosen = ui.select(moves, value=rule.moves, on_change=lambda event: self._set(j, moves=event.value))
            named(chosen.props("outlined dense"), feature.name)
            if service.labels[j] is None:
                for side, end in ((words["from"], "low"), (words["to"], "high")):
                    named(self._end(j, side, end, getattr(rule, end)), f"{feature.name} {side}")
        return group

    def _end(self, j: int, title: str, end: str, value: float | None) -> Any:
        """The field for one side of a range."""
        feature = self._desk.service.schema.features[j]
        if feature.counting is None:
            field: Any = NumberField(title, value=value)
        else:
            field = _date(title, feature, _text(value, feature))
        field.on_value_change(lambda event: self._set(j, **{end: _number(event.value, feature)}))
        return field

    def _set(self, j: int, **parts: Any) -> None:
        rule = self._desk.visit.rules[j]
        if all(getattr(rule, name) == value for name, value in parts.items()):
            return
        for name, value in parts.items():
            setattr(rule, name, value)
        self._said()

    def _write(self, text: str | None) -> None:
        if (text or "") != self._desk.visit.more:
            self._desk.visit.more = text or ""
            self._said()

    def _said(self) -> None:
        self._count()
        self._desk.visit.forget()
        self._desk.answer_changed()

    def _draw(self) -> None:
        """After a change from elsewhere."""
        self._count()
        if self._columns is not None:
            self._columns.redraw()
            self._more.set_value(self._desk.visit.more)
            self._prices.clear()

    def _count(self) -> None:
        rules, words = self._desk.visit.rules, self._desk.words
        counts = [(sum(rule.moves == moves for rule in rules), f"n_{moves}") for moves in (FIXED, UP, DOWN)]
        ranges = sum(rule.low is not None or rule.high is not None for rule in rules)
        told = [words[key].format(n=count) for count, key in [*counts, (ranges, "n_ranges")] if count]
        self._part.props["caption"] = ", ".join(told) or words["all_free"]
        self._part.update()

    async def _price(self) -> None:
        """What each rule costs, dearest first, with a way to lift it."""
        visit = self._desk.visit
        if visit.found is None and self._desk.ask is not None:
            await self._desk.ask()
        if visit.found is None:
            return
        one = visit.found[0]
        n_rules = len(visit.constraints())
        found = await self._search.run(lambda _: one.price_of_constraints(), visit.seconds * max(1, n_rules), n_rules)
        if found is not None and not self._prices.is_deleted:
            self._prices.clear()
            with self._prices:
                self._show(found)

    def _show(self, prices: tuple[Price, ...]) -> None:
        words, dear = self._desk.words, [price for price in prices if price.saving > 0]
        for price in dear:
            with ui.element("div").classes("tf-line"):
                ui.label(price.to_text(self._desk.visit.language))
                lift_buttons(self._desk, [price.constraint])
        if len(dear) < len(prices):
            ui.label(words["free_rules"].format(n=len(prices) - len(dear))).classes("tf-faint")
        if not prices:
            ui.label(words["no_rules"])


def _date(title: str, feature: Feature, value: str) -> Any:
    """A field for a date, or for one with its time."""
    kind = "date" if feature.kind == "date" else "datetime-local"
    return ui.input(title, value=value).props(f'outlined dense stack-label type={kind} step=1 debounce="250"')


def _number(value: Any, feature: Feature) -> float | None:
    """What a field holds as a number; a date as the model counts it."""
    if feature.counting is None or not isinstance(value, str):
        return None if value is None else float(value)
    moment = read_date(value)
    return None if moment is None else feature.counting.number(moment)


def _text(value: float | None, feature: Feature) -> str:
    """A number as the field of a date takes it."""
    told = None if value is None else told_value(value, feature)
    return told.isoformat() if isinstance(told, date) else ""
