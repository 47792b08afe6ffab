"""One column of a table: what it is called, which values it can have, and the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from treefocus.errors import reject
from treefocus.schema.dates import COUNTINGS, Counting, iso, read_date
from treefocus.schema.steps import Steps

Kind = Literal["continuous", "integer", "boolean", "step", "date", "datetime", "ordinal", "categorical", "one-hot"]
KINDS = ("continuous", "integer", "boolean", "step", "date", "datetime", "ordinal", "categorical", "one-hot")
DATES = ("date", "datetime")
WORDS = ("unit", "description", "label", "unit_one", "one", "many", "up", "down")
_SHOWN = 6  # values of a domain


@dataclass(frozen=True)
class Feature:
    """One column: "income" of kind "integer" in "EUR", "gross income a year".

    kind: "continuous"; "integer"; "boolean", 0 and 1 told as False and True; "step", numbers that lie `step` apart
    (from `low`, or from 0); "date", a day, and "datetime", a second; "ordinal", one of `values` in their order;
    "categorical", one of the model's labels, or only of `values`; "one-hot", a group of `columns` of which one is 1 and
    the others are 0, known as one column of categories named `values`; an "ordinal" one with `columns` is such a group
    in its order. low, high: the domain of a number or a date, None for the range of the data; `values` narrows it to a
    list.

    counts: how the model counts the dates of a column: "days", "seconds", "milliseconds", "microseconds" or
    "nanoseconds" since 1970-01-01, "ordinals" (Python's `date.toordinal`) or "excel" (serial numbers of a spreadsheet).
    Where the data hold dates it need not be said: the splits of the model tell it.

    The rest is what sentences need. label: the column as it stands in a sentence, "your revolving utilisation";
    without one, its name. unit_one: the unit of exactly one, "year" where unit is "years". one, many: what a column
    of whole numbers counts, "recent inquiry" and "recent inquiries"; sentences then say "2 fewer recent inquiries".
    up, down: what it is when it grows and shrinks, "longer" and "shorter"; of a boolean, what is so when it becomes
    True and False: "you had a guarantor" and "you had no guarantor".
    """

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    description: str = ""
    label: str = ""
    unit_one: str = ""
    one: str = ""
    many: str = ""
    up: str = ""
    down: str = ""
    low: float | date | None = None
    high: float | date | None = None
    step: float | None = None
    values: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    counts: str = ""

    def __post_init__(self) -> None:
        name = f"Feature({self.name!r})"
        if not isinstance(self.name, str):
            reject("Feature.name", "a text", repr(self.name))
        if self.kind not in KINDS:
            reject(f"{name}.kind", f"one of {KINDS}", repr(self.kind))
        for word in WORDS:
            if not isinstance(getattr(self, word), str):
                reject(f"{name}.{word}", "a text", repr(getattr(self, word)))
        for words in (("one", "many"), ("up", "down")):
            given = tuple(getattr(self, word) for word in words)
            if bool(given[0]) != bool(given[1]):
                reject(f"{name}.{words[0]} and .{words[1]}", "given together", repr(given))
        self._check_lists(name)
        self._check_dates(name)
        self._check_numbers(name)

    def _check_dates(self, name: str) -> None:
        if self.counts and self.kind not in DATES:
            reject(f"{name}.counts", "given for kinds 'date' and 'datetime' and no other", repr(self.counts))
        if self.kind not in DATES:
            return
        if self.counts and self.counts not in COUNTINGS:
            reject(f"{name}.counts", f"one of {', '.join(COUNTINGS)}", repr(self.counts))
        if self.values:
            reject(f"{name}.values", f"left out for kind {self.kind!r}", repr(self.values))
        for bound in ("low", "high"):
            value = getattr(self, bound)
            moment = read_date(value) if isinstance(value, str) else value
            if (moment is not None and not isinstance(moment, date)) or (value is not None and moment is None):
                reject(f"{name}.{bound}", "a date such as 2020-01-31", repr(value))
            object.__setattr__(self, bound, moment)

    def _check_numbers(self, name: str) -> None:
        for bound in ("low", "high", "step") if self.kind not in DATES else ("step",):
            value = getattr(self, bound)
            if value is not None and not _is_number(value):
                reject(f"{name}.{bound}", "a finite number", repr(value))
        low, high = self.ends
        if low is not None and high is not None and not low <= high:
            reject(f"{name}.low", f"at most {name}.high ({self.high})", self.low)
        if (self.kind == "step") != (self.step is not None):
            reject(f"{name}.step", "given for kind 'step' and for no other", repr(self.step))
        if self.step is not None and not self.step > 0:
            reject(f"{name}.step", "above 0", self.step)
        if self.is_categorical and (self.low is not None or self.high is not None):
            reject(f"{name}.low and .high", f"left out for kind {self.kind!r}; `values` is its domain", "given")
        if self.kind == "boolean" and (self.low is not None or self.high is not None):
            reject(f"{name}.low and .high", "left out for kind 'boolean'", "given")

    def _check_lists(self, name: str) -> None:
        for lists in ("values", "columns"):
            given = getattr(self, lists)
            if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
                reject(f"{name}.{lists}", "a list", repr(given))
            own = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
            object.__setattr__(self, lists, own)
            if len(set(own)) != len(own):
                reject(f"{name}.{lists}", "all different", repr(own))
        if self.kind == "ordinal" and len(self.values) < 2 and not self.columns:
            reject(f"{name}.values", "two or more, in their order, for kind 'ordinal'", repr(self.values))
        if self.kind == "boolean" and self.values:
            reject(f"{name}.values", "left out for kind 'boolean'", repr(self.values))
        if self.kind in ("continuous", "integer", "step"):
            for value in self.values:
                if not _is_number(value):
                    reject(f"{name}.values", "finite numbers", repr(value))
        if (self.kind == "one-hot" and not self.columns) or (self.columns and self.kind not in ("one-hot", "ordinal")):
            reject(f"{name}.columns", "given for kind 'one-hot', perhaps 'ordinal', and no other", repr(self.columns))
        if self.columns:
            if len(self.columns) < 2:
                reject(f"{name}.columns", "two or more", repr(self.columns))
            if not self.values:
                object.__setattr__(self, "values", _short_names(self.columns))
            if len(self.values) != len(self.columns):
                reject(f"{name}.values", f"one a column ({len(self.columns)})", len(self.values))

    def __repr__(self) -> str:
        """As dataclasses show themselves, `counts` where it is said: schemas without dates are told as ever."""
        told = (own.name for own in fields(self) if own.name != "counts" or self.counts)
        return f"Feature({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"

    @property
    def is_categorical(self) -> bool:
        """Whether its values are categories and not numbers."""
        return (
            self.kind == "categorical"
            or bool(self.columns)
            or (self.kind == "ordinal" and not all(isinstance(value, Real) for value in self.values))
        )

    @property
    def is_date(self) -> bool:
        """Whether its values are dates, with or without a time of the day."""
        return self.kind in DATES

    @property
    def counting(self) -> Counting | None:
        """How the numbers of its dates are counted, None where it holds none, or nobody has said it yet."""
        return COUNTINGS.get(self.counts) if self.is_date else None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The domain in numbers, of dates as they are counted, each side None where it has none."""
        low, high = ((COUNTINGS[self.counts or "days"].number(end) if isinstance(end, date) else end)
                     for end in (self.low, self.high))  # fmt: skip
        return low, high

    @property
    def steps(self) -> Steps | None:
        """The numbers that it can hold, where these lie a step apart: of kind "step", and of dates."""
        if self.counting is not None:
            return self.counting.steps(self.kind)
        return None if self.step is None else Steps.of(float(self.step), float(self.ends[0] or 0.0))

    @property
    def decimals(self) -> int | None:
        """How many digits its numbers have behind the point, None where nobody says so."""
        if self.kind in ("integer", "boolean"):
            return 0
        told = self.values if not self.step else (self.step, self.ends[0] or 0.0)
        if not told or self.is_categorical:
            return None
        return max(0, *(-int(Decimal(repr(float(one))).normalize().as_tuple().exponent) for one in told))

    @property
    def domain(self) -> str:
        """Its values in short, for people."""
        if self.values:
            more = f" and {len(self.values) - _SHOWN} more" if len(self.values) > _SHOWN else ""
            return (" < " if self.kind == "ordinal" else ", ").join(map(str, self.values[:_SHOWN])) + more
        if self.kind == "boolean":
            return "False, True"
        told = "" if self.low is None else f"from {_end(self.low)}"
        told += "" if self.high is None else f" to {_end(self.high)}"
        told += "" if self.step is None else f" by {self.step:g}"
        return told.lstrip()

    def to_record(self) -> dict[str, Any]:
        """Its fields as plain values: name and kind, and the others where they say something."""
        record: dict[str, Any] = {}
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name in ("name", "kind") or (value not in ("", ()) and value is not None):
                record[own.name] = list(value) if isinstance(value, tuple) else value
                if isinstance(value, date):
                    record[own.name] = iso(value)
        return record


FIELDS = tuple(own.name for own in fields(Feature))


def _end(value: float | date) -> str:
    return iso(value) if isinstance(value, date) else f"{value:g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _short_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns' names without their common beginning."""
    start = 0
    while len({name[: start + 1] for name in columns}) == 1 and all(len(name) > start + 1 for name in columns):
        start += 1
    cut = max((columns[0].rfind(mark, 0, start) + 1 for mark in "_=.:- "), default=0)
    return tuple(name[cut:] for name in columns)
