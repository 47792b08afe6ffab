"""A constraint in the words in which it could have been written (`text` reads them)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from treefocus.constraints.kinds import Constraint

_PLAIN = re.compile(r"[^\W\d][\w.]*")
KEYWORDS = {
    "fixed", "increasing", "decreasing", "together", "in", "within", "and", "at", "most", "if", "then", "implies",
    "may", "be", "missing", "is", "are", "of", "change", "changes",
}  # fmt: skip
_AFTER_COLUMNS = {
    "Fixed": "fixed", "Increasing": "increasing", "Decreasing": "decreasing", "Together": "together",
    "MayBeMissing": "may be missing",
}  # fmt: skip


def written(constraint: Constraint) -> str:
    """The constraint as a line of text; one of a kind that has no words as Python would show it."""
    kind = type(constraint).__name__
    one: Any = constraint
    if kind in _AFTER_COLUMNS:
        return f"{_listed(one.columns)} {_AFTER_COLUMNS[kind]}"
    if kind == "AtMost":
        changes = "change" if one.n == 1 else "changes"
        return f"at most {one.n} {changes}" + (f" of {_listed(one.columns)}" if one.columns else "")
    if kind == "Implies":
        return f"if {_compared(one.cause)} then {_compared(one.effect)}"
    if kind in ("Range", "OneOf"):
        return _compared(one)
    if kind == "Linear":
        return f"{_summed(one.coefficients)} <= {_number(one.at_most)}"
    return repr(constraint)


def _compared(one: Any) -> str:
    """A range, a list of values, or a condition, which is one of both."""
    column, values = _named(one.column), getattr(one, "values", None)
    if values is not None:
        return f"{column} in {{{', '.join(map(_value, values))}}}"
    if getattr(one, "relative", False):
        if one.low == -one.high:
            return f"{column} within {_number(100 * one.high)}%"
        return f"{column} from {_number(100 * one.low)}% to {_number(100 * one.high)}%"
    if one.low == one.high:
        return f"{column} == {_number(one.low)}"
    low = "" if one.low == float("-inf") else f"{_number(one.low)} <= "
    high = "" if one.high == float("inf") else f" <= {_number(one.high)}"
    return f"{column} >= {_number(one.low)}" if low and not high else f"{low}{column}{high}"


def _summed(coefficients: dict[Any, float]) -> str:
    """Multiples of columns, with their signs."""
    parts: list[str] = []
    for name, factor in coefficients.items():
        sign = ("-" if factor < 0 else "+") if parts else ("-" if factor < 0 else "")
        size = "" if abs(factor) == 1 else f"{_number(abs(factor))} * "
        parts.append(f"{sign} {size}{_named(name)}" if parts else f"{sign}{size}{_named(name)}")
    return " ".join(parts)


def _listed(names: Iterable[Any]) -> str:
    *most, last = map(_named, names)
    return f"{', '.join(most)} and {last}" if most else last


def _named(name: Any) -> str:
    """A column's name, in quotes where it is no plain word."""
    text = str(name) if isinstance(name, str) else f"column {name}"
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in KEYWORDS
    return text if is_plain or not isinstance(name, str) else _quoted(text)


def _value(value: Any) -> str:
    return _named(value) if isinstance(value, str) else _number(float(value))


def _quoted(text: str) -> str:
    return next((f"{quote}{text}{quote}" for quote in "\"'`" if quote not in text), repr(text))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
