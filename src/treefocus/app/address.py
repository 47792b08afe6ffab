"""A visitor's question as the query of an address, to share, to reload, to go back to; and from there again.

It holds the row's number, and nothing of its values: a row that was typed in is not in the address.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from treefocus.app.visit import Visit, checked_room
from treefocus.constraints.text import as_constraints, lines_of
from treefocus.errors import TreefocusError
from treefocus.options import check
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure
from treefocus.render.phrases import languages

_MEASURES: dict[str, type[Measure]] = {"factor": LocalOutlierFactor, "isolation": IsolationScore}
_MOST_WAYS = 5  # that the page offers


def to_query(visit: Visit) -> str:
    """What differs from a new visit, and always the row."""
    new, wish = Visit.begin(visit.service), visit.wish
    found: dict[str, Any] = {} if visit.number is None else {"row": visit.number}
    for name, own, usual in (
        ("want", _written(wish.label), _written(new.wish.label)), ("p", wish.percent, new.wish.percent),
        ("hold", visit.hold, new.hold), ("room", visit.room, new.room),
        ("from", wish.low, new.wish.low), ("to", wish.high, new.wish.high),
        ("distance", visit.distance, new.distance), ("ways", visit.n_ways, new.n_ways),
        ("seconds", visit.time_limit, new.time_limit), ("lang", visit.language, new.language),
        ("round", int(visit.is_rounded), int(new.is_rounded)), ("rules", _rules(visit), _rules(new)),
        ("weights", _weights(visit), _weights(new)), ("like", _likeness(visit), _likeness(new)),
    ):  # fmt: skip
        if own != usual:
            found[name] = "" if own is None else f"{own:g}" if isinstance(own, float) else own
    return urlencode(found)


def take_query(visit: Visit, query: Mapping[str, str]) -> None:
    """Make a new visit the one that the query tells of; what cannot be read is left as it is."""
    readers = {
        "row": _row, "want": _want, "p": _percent, "hold": _hold, "room": _room, "from": _low, "to": _high,
        "distance": _distance, "ways": _ways, "seconds": _seconds, "lang": _language, "round": _round,
        "rules": _take_rules, "weights": _take_weights, "like": _take_likeness,
    }  # fmt: skip
    for name, read in readers.items():
        if name in query:
            with suppress(TreefocusError, ValueError, LookupError):
                read(visit, query[name])


def _written(label: Any) -> Any:
    return None if label is None else str(label)


def _rules(visit: Visit) -> str:
    with suppress(TreefocusError):
        return "\n".join(constraint.to_text() for constraint in visit.constraints())
    return ""


def _weights(visit: Visit) -> str:
    pairs = zip(visit.service.schema.names, visit.weights, strict=True)
    return "\n".join(f"{name}:{weight:g}" for name, weight in pairs if weight is not None and weight != 1)


def _likeness(visit: Visit) -> str:
    kind = next((name for name, kind in _MEASURES.items() if isinstance(visit.measure, kind)), "")
    return f"{kind}:{visit.most:g}" if kind and visit.most is not None else kind


def _row(visit: Visit, text: str) -> None:
    number = int(text)
    if 0 <= number < len(visit.service.rows.values):
        visit.pick(number)


def _want(visit: Visit, text: str) -> None:
    labels = {str(label): label for label in visit.service.classes}
    visit.wish.label = labels[text] if text else None


def _percent(visit: Visit, text: str) -> None:
    visit.wish.percent = float(text) if text else None


def _hold(visit: Visit, text: str) -> None:
    hold = float(text) if text else None
    check(hold=hold)
    visit.hold = hold


def _room(visit: Visit, text: str) -> None:
    visit.room = checked_room(text) or ""


def _low(visit: Visit, text: str) -> None:
    visit.wish.low = float(text) if text else None


def _high(visit: Visit, text: str) -> None:
    visit.wish.high = float(text) if text else None


def _distance(visit: Visit, text: str) -> None:
    if text in DISTANCES:
        visit.distance = text


def _ways(visit: Visit, text: str) -> None:
    visit.n_ways = max(1, min(_MOST_WAYS, int(text)))


def _seconds(visit: Visit, text: str) -> None:
    seconds = float(text) if text else None
    if seconds is None or 0 < seconds <= visit.service.limits.seconds_per_row:
        visit.time_limit = seconds


def _language(visit: Visit, text: str) -> None:
    if text in languages():
        visit.language = text


def _round(visit: Visit, text: str) -> None:
    visit.is_rounded = text == "1"


def _take_rules(visit: Visit, text: str) -> None:
    constraints = as_constraints(lines_of(text))
    visit.free_all()
    for constraint in constraints:
        visit.take(constraint)


def _take_weights(visit: Visit, text: str) -> None:
    own = [1.0] * len(visit.service.schema)
    for line in text.splitlines():
        name, _, weight = line.rpartition(":")
        own[visit.service.schema.index(name)] = float(weight)
    visit.weights = list(own)


def _take_likeness(visit: Visit, text: str) -> None:
    kind, _, most = text.partition(":")
    visit.measure, visit.most = (_MEASURES[kind]() if kind else None), (float(most) if most else None)
