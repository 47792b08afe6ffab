"""Every phrase that people read, a file a language. A new language is one more file here, named by its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, localcontext
from functools import cache
from importlib import import_module
from math import floor, log10
from pkgutil import iter_modules
from typing import Protocol

from treefocus.errors import reject

DEFAULT = "en"


class ReasonView(Protocol):
    """Why a row came out as it did; see `explanation.reasons.Reason`."""

    @property
    def code(self) -> str:
        """The name of its words in `Catalogue.reasons`."""

    @property
    def details(self) -> Mapping[str, str]:
        """What fills the places in these words."""


@dataclass(frozen=True)
class Catalogue:
    """One language: how it writes numbers and lists, and its phrases with {places} to fill.

    Phrases that start with `said_` speak to a person about a subject ("your application"), the others about a row.
    `next_if` and `last_if` stand between conditions, `comma` and `final` between anything else that is listed.
    `day` writes a date, `first_day` the first of a month, `moment` one with its time; `change_date` changes a date.
    `change_worded` is `change` for units that are words, as "Jahre": German would have to decline them after "bei".
    `words` are those of tables, plots and the report; `reasons` are by the code of their type, and `no_way` says some
    of them to people who know nothing of constraints and searches;
    `recourse` speaks of further ways out, regions, round numbers, and what constraints forbid and cost;
    `letters` fills fields of letters.
    """

    code: str
    decimal: str
    group: str
    comma: str
    final: str
    next_if: str
    last_if: str
    also: str
    quoted: str
    percent: str
    is_one: Callable[[float], bool]
    row: str
    no_prediction: str
    no_answer: str
    already: str
    would: str
    obeys: str
    likely: str
    said_no_answer: str
    said_already: str
    said_would: str
    said_obeys: str
    change: str
    change_worded: str
    change_way: str
    change_category: str
    change_date: str
    months: tuple[str, ...]
    day: str
    first_day: str
    moment: str
    fewer: str
    more: str
    said_fewer: str
    said_more: str
    smallest: str
    slightly_smaller: str
    maybe_smaller: str
    proven: str
    bounded: str
    unproven: str
    distance: str
    greeting: str
    greeting_name: str
    decided: str
    decided_plain: str
    would_plain: str
    in_detail: str
    line: str
    line_plain: str
    stays: str
    nothing: str
    closing: str
    reasons: Mapping[str, str]
    no_way: Mapping[str, str]
    statuses: Mapping[str, str]
    words: Mapping[str, str]
    recourse: Mapping[str, str]
    letters: Mapping[str, str]

    def number(self, value: float, decimals: int = 0) -> str:
        """A number as people write it: all its digits, no more; of a fraction at least so many decimals."""
        text = repr(float(value))
        if decimals and value != int(value) and "e" not in text:
            text += "0" * (decimals - len(text.partition(".")[2]))
        if "inf" in text or "nan" in text:
            return text
        if value == int(value) and abs(value) < 1e15:
            text = f"{int(value):,}"
        elif "e" not in text and abs(value) >= 1000:
            whole, _, digits = text.partition(".")
            text = f"{int(whole):,}.{digits}"
        return self._localised(text)

    def date(self, value: date) -> str:
        """A date as people write it, with its time where it has one: "5 January 2020", "5 January 2020, 14:30"."""
        pattern = self.first_day if value.day == 1 else self.day
        text = pattern.format(day=value.day, month=self.months[value.month - 1], year=value.year)
        if not isinstance(value, datetime):
            return text
        clock = value.strftime("%H:%M" if value.second == 0 else "%H:%M:%S")
        return self.moment.format(day=text, time=clock)

    def days(self, number: float) -> str:
        """A signed number of days."""
        return self.words["day" if abs(number) == 1 else "days"].format(number=self.difference(number))

    def rounded(self, value: float, digits: int = 4) -> str:
        """A number to so many digits, where it only gives an impression."""
        return self._localised(f"{value:.{digits}g}")

    def amount(self, value: float, digits: int = 6) -> str:
        """A predicted number: to so many digits, its thousands grouped, no zeros at the end."""
        if not 1e-4 <= abs(value) < 1e15:
            return self.number(0.0) if value == 0 else self._localised(f"{value:.{digits}g}")
        decimals = max(0, digits - 1 - floor(log10(abs(value))))
        text = f"{value:,.{decimals}f}"
        return self._localised(text.rstrip("0").rstrip(".") if "." in text else text)

    def share(self, value: float, digits: int = 0) -> str:
        """A share as per cent."""
        return self.percent.format(number=self._localised(f"{100 * value:.{digits}f}"))

    def difference(self, value: float) -> str:
        """A signed number to four digits."""
        whole = 1000 <= abs(value) < 1e15
        return self._localised(f"{value:+,.0f}" if whole else f"{value:+.4g}")

    def step(self, told: str, unit: str) -> str:
        """A signed difference with its unit: from 72 % to 57 % it is 15 percentage points, and not 15 %."""
        if unit == "%":
            return self.words["points one" if told.lstrip("+-") == "1" else "points"].format(number=told)
        return f"{told} {unit}".rstrip()

    def exact_difference(self, before: float, after: float) -> str:
        """The signed difference of two numbers as they are written, with all its digits."""
        with localcontext(prec=800):
            moved = Decimal(repr(float(after))) - Decimal(repr(float(before)))
        text = f"{moved:+,f}" if -20 < moved.adjusted() < 15 else f"{moved:+e}"
        return self._localised(text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text)

    def listed(self, parts: list[str]) -> str:
        """Parts as an enumeration."""
        return _joined(parts, self.comma, self.final)

    def conditions(self, parts: list[str]) -> str:
        """What follows an "if", as an enumeration."""
        return _joined(parts, self.next_if, self.last_if)

    def reason(self, reason: ReasonView) -> str:
        """A reason in this language."""
        return self.reasons[reason.code].format(**reason.details)

    def without_answer(self, reason: ReasonView) -> str:
        """Why there is no answer, for the person it is about."""
        return self.no_way[reason.code] if reason.code in self.no_way else self.reason(reason)

    def _localised(self, text: str) -> str:
        return text.translate({ord(","): self.group, ord("."): self.decimal})


def _joined(parts: list[str], comma: str, final: str) -> str:
    return parts[0] if len(parts) == 1 else f"{comma.join(parts[:-1])}{final}{parts[-1]}"


@cache
def languages() -> tuple[str, ...]:
    """The codes of the languages there are."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


@cache
def catalogue(language: str = DEFAULT) -> Catalogue:
    """The catalogue of a language, by its code."""
    if language not in languages():
        reject("language", f"one of {', '.join(languages())}", repr(language))
    found = import_module(f"{__name__}.{language}").CATALOGUE
    assert isinstance(found, Catalogue), f"{language} has no CATALOGUE"
    return found
