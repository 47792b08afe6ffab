"""Finding rows: by number, by what the model says of them, and by conditions such as "income>50000 late_payments=0"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from treefocus.app.service import Service
from treefocus.errors import InvalidInput
from treefocus.model.forest import Bools, Floats
from treefocus.problem.targets import Interval

_TERM = re.compile(r"(?P<column>.+?)(?P<sign><=|>=|<|>|=)(?P<number>[^<>=]+)")
_SIGNS: dict[str, Callable[[Floats, float], Any]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq,
}  # fmt: skip


def find(service: Service, text: str = "", predicted: Any = None) -> list[int]:
    """The numbers of the rows that meet every term of the text and, unless None, have this predicted class or number.

    predicted: a class, or an `Interval` of numbers. A term is a condition on a column, a row's own name, or a
    number: a row's own, or a value somewhere in it.
    """
    keep = np.ones(len(service.rows.values), bool)
    said = service.predictions.labels
    if isinstance(predicted, Interval):
        keep &= np.array([number is not None and predicted.low <= number <= predicted.high for number in said], bool)
    elif predicted is not None:
        keep &= np.array([label == predicted for label in said], bool)
    for term in text.split():
        keep &= _met(service, term)
    return [int(i) for i in np.flatnonzero(keep)]


def _met(service: Service, term: str) -> Bools:
    values = service.rows.values
    condition = _TERM.fullmatch(term)
    if condition is not None:
        j = service.schema.index(condition["column"])
        with np.errstate(invalid="ignore"):
            return np.asarray(_SIGNS[condition["sign"]](values[:, j], _number(service, j, condition["number"])), bool)
    number = _as_number(term)
    if service.ids is not None and term in service.ids:
        return np.array([own == term for own in service.ids], bool)
    if number is None:
        raise InvalidInput(f"{term!r} is neither a number nor a condition such as {service.schema.names[0]}>1.")
    return np.asarray((np.arange(len(values)) == number) | (values == number).any(axis=1))


def _number(service: Service, j: int, text: str) -> float:
    labels = service.labels[j]
    if labels is not None:
        found = [k for k, label in enumerate(labels) if str(label) == text]
        if not found:
            raise InvalidInput(f"{service.schema.names[j]} must be one of {', '.join(map(str, labels))}, got {text!r}.")
        return float(found[0])
    number = _as_number(text)
    if number is None:
        raise InvalidInput(f"{service.schema.names[j]} must be compared with a number, got {text!r}.")
    return number


def _as_number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
