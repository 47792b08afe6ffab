"""One column of a table: what it is called, which values it can have, and the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from treefocus.errors import reject

Kind = Literal["continuous", "integer", "boolean", "step", "ordinal", "categorical", "one-hot"]
KINDS = ("continuous", "integer", "boolean", "step", "ordinal", "categorical", "one-hot")
WORDS = ("unit", "description", "label", "unit_one", "one", "many", "up", "down")
_SHOWN = 6  # values of a domain


@dataclass(frozen=True)
class Feature:
    """One column: "income" of kind "integer" in "EUR", "gross income a year".

    kind: "continuous"; "integer"; "boolean", 0 and 1 told as False and True; "step", numbers that lie `step` apart
    (from `low`, or from 0); "ordinal", one of `values` in their order; "categorical", one of the model's labels, or
    only of `values`; "one-hot", a group of `columns` of which one is 1 and the others are 0, known as one column of
    categories named `values`; an "ordinal" one with `columns` is such a group in its order. low, high: the domain of a
    number, None for the range of the data; `values` narrows it to a list.

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
    low: float | None = None
    high: float | None = None
    step: float | None = None
    values: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()

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
        self._check_numbers(name)

    def _check_numbers(self, name: str) -> None:
        for bound in ("low", "high", "step"):
            value = getattr(self, bound)
            if value is not None and not _is_number(value):
                reject(f"{name}.{bound}", "a finite number", repr(value))
        if self.low is not None and self.high is not None and not self.low <= self.high:
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

    @property
    def is_categorical(self) -> bool:
        """Whether its values are categories and not numbers."""
        return (
            self.kind == "categorical"
            or bool(self.columns)
            or (self.kind == "ordinal" and not all(isinstance(value, Real) for value in self.values))
        )

    @property
    def decimals(self) -> int | None:
        """How many digits its numbers have behind the point, None where nobody says so."""
        if self.kind in ("integer", "boolean"):
            return 0
        told = self.values if not self.step else (self.step, self.low or 0.0)
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
        told = "" if self.low is None else f"from {self.low:g}"
        told += "" if self.high is None else f" to {self.high:g}"
        told += "" if self.step is None else f" by {self.step:g}"
        return told.lstrip()

    def to_record(self) -> dict[str, Any]:
        """Its fields as plain values: name and kind, and the others where they say something."""
        record: dict[str, Any] = {}
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name in ("name", "kind") or (value not in ("", ()) and value is not None):
                record[own.name] = list(value) if isinstance(value, tuple) else value
        return record


FIELDS = tuple(own.name for own in fields(Feature))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _short_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns' names without their common beginning."""
    start = 0
    while len({name[: start + 1] for name in columns}) == 1 and all(len(name) > start + 1 for name in columns):
        start += 1
    cut = max((columns[0].rfind(mark, 0, start) + 1 for mark in "_=.:- "), default=0)
    return tuple(name[cut:] for name in columns)
