"""The words of constraints: names, values, numbers and lists as they are written (`text` reads them)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from numbers import Integral
from typing import Any

_PLAIN = re.compile(r"[^\W\d][\w.]*")
KEYWORDS = {
    "fixed", "increasing", "decreasing", "together", "in", "within", "and", "at", "most", "if", "then", "implies",
    "may", "be", "missing", "is", "are", "of", "change", "changes",
}  # fmt: skip
INFINITE = "∞"
BY_NUMBER = "column"  # before the number of a column that is not named


def named(column: Any) -> str:
    """A column: its name, in quotes where that is no plain word, or "column 3"."""
    if not isinstance(column, str):
        return f"{BY_NUMBER} {int(column) if isinstance(column, Integral) else column}"
    return str(column) if _PLAIN.fullmatch(column) and column.lower() not in KEYWORDS else _quoted(column)


def listed(columns: Iterable[Any]) -> str:
    """Several columns, with commas and an "and" between them."""
    *most, last = map(named, columns)
    return f"{', '.join(most)} and {last}" if most else last


def among(column: Any, values: Iterable[Any]) -> str:
    """That a column is at one of these values."""
    return f"{named(column)} in {{{', '.join(map(value, values))}}}"


def between(column: Any, low: float | date, high: float | date) -> str:
    """That a column lies between two numbers, of which one or both may be infinite, or two dates."""
    if low == high:
        return f"{named(column)} == {value(low)}"
    if high == math.inf and low != -math.inf:
        return f"{named(column)} >= {value(low)}"
    above = "" if low == -math.inf else f"{value(low)} <= "
    return f"{above}{named(column)} <= {value(high)}"


def relative(column: Any, low: float, high: float) -> str:
    """That a column lies between two shares of the row's own value, up or down."""
    if low == -high:
        return f"{named(column)} within {_percent(high)}"
    return f"{named(column)} from {_percent(low)} to {_percent(high)}"


def total(coefficients: Mapping[Any, float]) -> str:
    """Multiples of columns, with their signs; of one column alone in parentheses, which make it a sum."""
    text = ""
    for column, factor in coefficients.items():
        sign = "-" if factor < 0 else "+" if text else ""
        size = "" if abs(factor) == 1 else f"{number(abs(factor))} * "
        text += f" {sign} {size}{named(column)}" if text else f"{sign}{size}{named(column)}"
    return text if len(coefficients) > 1 else f"({text})"


def number(value: Any) -> str:
    """A number with all its digits."""
    if isinstance(value, Integral):
        return str(int(value))
    value = float(value)
    if math.isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


def value(one: Any) -> str:
    """A value of a column: a word, a number or a date."""
    if isinstance(one, str):
        return named(one)
    if isinstance(one, date):
        return one.isoformat()
    try:
        return number(one)
    except (TypeError, ValueError):  # no value that a column can have
        return _quoted(str(one))


def _percent(share: float) -> str:
    """A share in per cent, with the digits that it has as a share."""
    share = float(share)
    if math.isinf(share):
        return f"{number(share)}%"
    percent = (Decimal(repr(share)) * 100).normalize()
    return f"{percent:f}%" if 1e-6 < abs(percent) < 1e15 or not percent else f"{percent}%"


def _quoted(text: str) -> str:
    """In the first kind of quotes that the text does not hold; if it holds all, these are doubled in it."""
    quote = next((quote for quote in "\"'`" if quote not in text), '"')
    return f"{quote}{text.replace(quote, 2 * quote)}{quote}"
