"""The row's values, to read or to type, what the model says of them, and the rules for each column."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import fold, live, markup, named, title_of
from treefocus.app.page.pictures import prediction
from treefocus.app.visit import DOWN, FIXED, FREE, TYPED, UP, Rule
from treefocus.explanation.change import told_value
from treefocus.schema.dates import read_date
from treefocus.schema.feature import Feature

MOVES = {FREE: "may change", UP: "only more", DOWN: "only less", FIXED: "stays as it is"}


def build(desk: Desk) -> None:
    """Prediction, values and rules."""
    _Values(desk)


class _Values:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._is_filling = False
        with live():
            self._said = markup("")
        self._fields: list[Any] = []
        fold("Values: type in a row of your own", self._values)
        self._rules = fold("Rules: what may change, and how far", self._every_rule)
        desk.when_row_changes(self._fill)
        self._fill()
        self._count()

    def _values(self) -> None:
        with ui.element("div").classes("tf-grid"):
            self._fields = [self._field(j) for j in range(len(self._desk.service.schema))]
        self._fill()

    def _every_rule(self) -> None:
        for j, rule in enumerate(self._desk.visit.rules):
            self._rule(j, rule)
        more = ui.textarea(
            "More rules, one a line",
            value=self._desk.visit.more,
            placeholder="at most 3 changes",
            on_change=lambda event: self._write(event.value),
        )
        more.props('outlined dense autogrow stack-label debounce="250"').classes("tf-more")

    def _field(self, j: int) -> Any:
        feature, labels = self._desk.service.schema.features[j], self._desk.service.labels[j]
        changed = partial(self._typed, j)
        if labels is not None:
            options = {k: str(label) for k, label in enumerate(labels)}
            return ui.select(options, label=title_of(feature), on_change=changed, clearable=True).props(
                "outlined dense"
            )
        if feature.counting is not None:
            return self._date(title_of(feature), feature, changed).tooltip(feature.description or feature.name)
        step = 1 if feature.kind in ("integer", "boolean") else feature.step
        field = ui.number(title_of(feature), step=step, on_change=changed)
        return field.props('outlined dense debounce="250"').tooltip(feature.description or feature.name)

    def _date(self, title: str, feature: Feature, changed: Any) -> Any:
        """A field for a date, or for one with its time."""
        kind = "date" if feature.kind == "date" else "datetime-local"
        return ui.input(title, on_change=changed).props(f'outlined dense stack-label type={kind} step=1 debounce="250"')

    def _rule(self, j: int, rule: Rule) -> None:
        feature = self._desk.service.schema.features[j]
        with named(ui.element("div").classes("tf-rule").props('role="group"'), f"Rule for {feature.name}"):
            ui.label(title_of(feature)).classes("tf-name")
            moves = {
                key: told for key, told in MOVES.items() if key in (FREE, FIXED) or self._desk.service.has_order[j]
            }
            chosen = ui.select(moves, value=rule.moves, on_change=lambda event: self._set(j, moves=event.value))
            named(chosen.props("outlined dense"), feature.name)
            if self._desk.service.labels[j] is None:
                for side, end in (("from", "low"), ("to", "high")):
                    named(self._end(j, side, end, getattr(rule, end)), f"{feature.name} {side}")

    def _end(self, j: int, title: str, end: str, value: float | None) -> Any:
        """The field for one side of a range."""
        feature = self._desk.service.schema.features[j]

        def changed(event: Any) -> None:
            self._set(j, **{end: _number(event.value, feature)})

        if feature.counting is None:
            return ui.number(title, value=value, on_change=changed).props('outlined dense debounce="250"')
        field = self._date(title, feature, changed)
        field.set_value(_text(value, feature))
        return field

    def _set(self, j: int, **parts: Any) -> None:
        for name, value in parts.items():
            setattr(self._desk.visit.rules[j], name, value)
        self._count()
        self._desk.visit.forget()
        self._desk.answer_changed()

    def _write(self, text: str | None) -> None:
        self._desk.visit.more = text or ""
        self._desk.visit.forget()
        self._desk.answer_changed()

    def _count(self) -> None:
        rules = self._desk.visit.rules
        counts = [(sum(rule.moves == moves for rule in rules), MOVES[moves]) for moves in (FIXED, UP, DOWN)]
        ranges = sum(rule.low is not None or rule.high is not None for rule in rules)
        told = [f"{count} {words}" for count, words in [*counts, (ranges, "with a range")] if count]
        self._rules.props["caption"] = ", ".join(told) or "everything may change"
        self._rules.update()

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
        visit = self._desk.visit
        self._is_filling = True
        for j, field in enumerate(self._fields):
            feature = self._desk.service.schema.features[j]
            value: Any = None if np.isnan(visit.values[j]) else float(visit.values[j])
            if feature.counting is not None:
                value = _text(value, feature)
            elif value is not None and (self._desk.service.labels[j] is not None or value.is_integer()):
                value = int(value)
            if field.value != value:
                field.set_value(value)
        self._is_filling = False
        name = "A row of your own" if visit.label == TYPED else f"Row {visit.label}"
        self._said.set_content(prediction(name, *visit.prediction, self._desk.service.classes))


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
