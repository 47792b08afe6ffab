"""Numbers, categories and names as JSON can hold them."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from treefocus.model.forest import Floats
from treefocus.schema.dates import iso


def number(value: float | None) -> float | str | None:
    """A number as JSON can hold it: null for NaN, words for the infinities."""
    if value is None or value != value:
        return None
    return float(value) if np.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def numbers(values: Floats) -> list[float | str | None]:
    """The same for many."""
    if np.isfinite(values).all():
        return values.tolist()  # type: ignore[no-any-return]
    return [number(value) for value in values.tolist()]


def cell(value: Any) -> Any:
    """A cell as JSON can hold it: a number, a category, or a date as text."""
    if isinstance(value, date):
        return iso(value)
    return number(value) if isinstance(value, float) else name(value)


def name(label: Any) -> Any:
    """A row's or class's name as JSON can hold it: a date, say, as text."""
    is_plain = label is None or isinstance(label, str | int) or (isinstance(label, float) and np.isfinite(label))
    return label if is_plain else str(label)
