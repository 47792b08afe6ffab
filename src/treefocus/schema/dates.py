"""Dates as the numbers that models read, and back: a count of days, seconds or their parts from a day on.

A model that was trained on dates was trained on numbers, and people count days in several ways. A `Counting` is one of
them. Whatever its unit, an answer is a whole day or a whole second, which every counting holds exactly, or as the
nearest float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats
from treefocus.schema.steps import Steps

DAY = 86_400  # seconds
_MICRO = 1_000_000  # microseconds a second
_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = (int((end - _EPOCH) / timedelta(microseconds=1)) for end in (datetime.min, datetime.max))
_FINEST = 1000.0  # microseconds that a count of days as a float64 tells apart


@dataclass(frozen=True)
class Counting:
    """How a model counts dates: so many units a day, and the number of 1970-01-01."""

    name: str
    per_day: int
    at_epoch: int = 0

    def numbers(self, micros: NDArray[np.int64]) -> Floats:
        """(n,) the numbers of moments in microseconds since 1970-01-01."""
        per_day = DAY * _MICRO
        if self.per_day > per_day:
            return micros.astype(np.float64) * (self.per_day // per_day)
        return micros / (per_day // self.per_day) + self.at_epoch

    def number(self, moment: date) -> float:
        """The number of a date or a moment."""
        return float(self.numbers(np.array([micros_of(moment)]))[0])

    def micros(self, values: Floats) -> NDArray[np.int64]:
        """(n,) the moments of numbers, which must be there and lie between the years 1 and 9999."""
        exact = (np.asarray(values, np.float64) - self.at_epoch) * (DAY * _MICRO / self.per_day)
        whole = np.rint(exact / _FINEST) * _FINEST if self.per_day == 1 else np.rint(exact)
        if not ((whole >= _FIRST) & (whole <= _LAST)).all():
            raise InvalidInput(f"A number lies beyond the years 1 to 9999, counted in {self.name}.")
        return whole.astype(np.int64)

    def is_date(self, value: float) -> bool:
        """Whether a number is a moment between the years 1 and 9999."""
        return bool(_FIRST <= (value - self.at_epoch) * (DAY * _MICRO / self.per_day) <= _LAST)

    def moment(self, value: float) -> datetime:
        """The moment of a number, without a time zone."""
        return _EPOCH + timedelta(microseconds=int(self.micros(np.array([value]))[0]))

    def told(self, value: float, kind: str) -> date | float:
        """A number as a date, of kind "date" without the time, unless it has one; one beyond the calendar as it is."""
        if not self.is_date(value):
            return value
        moment = self.moment(value)
        return moment.date() if kind == "date" and moment.time() == time() else moment

    def steps(self, kind: str) -> Steps:
        """The numbers of whole days, of kind "date", or of whole seconds."""
        if kind == "date":
            return Steps.of(float(self.per_day))
        if self.per_day >= DAY:
            return Steps.of(float(self.per_day // DAY))
        return Steps(0.0, 1.0, float(DAY))


COUNTINGS = {
    own.name: own
    for own in (
        Counting("days", 1),  # since 1970-01-01
        Counting("ordinals", 1, date(1970, 1, 1).toordinal()),  # Python's date.toordinal
        Counting("excel", 1, 25_569),  # the serial numbers of a spreadsheet, from 1900-03-01 on
        Counting("seconds", DAY),
        Counting("milliseconds", DAY * 1000),
        Counting("microseconds", DAY * 10**6),
        Counting("nanoseconds", DAY * 10**9),
    )
}
AS_READ = COUNTINGS["seconds"]  # how a table of dates is read before a model says more


def micros_of(moment: date) -> int:
    """Microseconds from 1970-01-01 to a date or a moment; of one with a time zone, in UTC."""
    if not isinstance(moment, datetime):
        return (moment.toordinal() - _EPOCH.toordinal()) * DAY * _MICRO
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moments_of(values: Floats, counting: Counting) -> NDArray[np.datetime64]:
    """(n,) numbers as NumPy's moments, not a time where missing."""
    made, is_known = np.full(len(values), "NaT", "datetime64[us]"), ~np.isnan(values)
    made[is_known] = counting.micros(values[is_known]).astype("datetime64[us]")
    return made


def counted(value: float | date, counting: Counting | None) -> float:
    """A date as it is counted, a number as it is."""
    if not isinstance(value, date):
        return float(value)
    if counting is None:
        raise InvalidInput(f"{iso(value)} is a date, and the column holds none.")
    return counting.number(value)


def read_date(text: str) -> date | None:
    """A date or a moment as ISO 8601 writes it, "2020-01-05" or "2020-01-05 14:30"; None for any other text.

    Examples
    --------
    >>> from treefocus.schema.dates import read_date
    >>> read_date("2020-01-05"), read_date("5")
    (datetime.date(2020, 1, 5), None)
    """
    text = text.strip()
    if len(text) < 10 or text[4] != "-" or text[7] != "-":
        return None
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def iso(moment: date) -> str:
    """A date or a moment as people write it in files: "2020-01-05", "2020-01-05 14:30:00"."""
    return moment.isoformat(" ") if isinstance(moment, datetime) else moment.isoformat()


def are_days(values: Floats, counting: Counting) -> bool:
    """Whether all numbers, where any are known, are whole days."""
    known = values[np.isfinite(values)]
    return bool((counting.steps("date").nearest(known) == known).all())


def dates_of(cells: list[Any]) -> list[date | None] | None:
    """The dates that cells hold, as such or as text, None where they are empty; None where one holds another thing."""
    found: list[date | None] = []
    for cell in cells:
        own = read_date(cell) if isinstance(cell, str) else cell
        is_empty = cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())
        if not is_empty and not isinstance(own, date):
            return None
        found.append(None if is_empty else own)
    return found if any(one is not None for one in found) else None
