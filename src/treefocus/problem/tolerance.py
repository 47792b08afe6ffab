"""Room to move: by how much who acts on an answer may overshoot it, or stop short, and still get the wanted outcome.

Around an answer lies a box. In every column of numbers that changes it reaches from a little before the answer's value,
back towards the row's own, to a little beyond it; in all other columns it is as wide as the one value. It ends where
the column's domain ends, or a rule about the column alone (`Range`, `Increasing`, ...), and never goes back beyond the
row's own value. Rules about several columns do not make it smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Bools, Floats
from treefocus.schema.schema import LISTED, Schema

UNITS = 4.0 * float(np.finfo(np.float64).eps)  # by so much more than is asked for, whoever multiplies in another way
Extent = float | Mapping[str | int, float]


@dataclass(frozen=True)
class Tolerance:
    """Room to move around an answer: every point of a box around it gets the wanted outcome, too.

    Parameters
    ----------
    above : float or mapping of columns to float
        How far who acts on the answer may go beyond it: 0.2 is a fifth more than the change, in every column of numbers
        that changes; {"income": 500} is 500 units of that column, and nothing in the others. `inf`: more is fine, too,
        up to the end of the column's domain.
    below : float or mapping of columns to float
        How far they may stop short of it: 0.05 is a twentieth of the change; below 1. {"income": 100} is 100 units, but
        never back beyond the row's own value.

    Examples
    --------
    >>> from treefocus import Tolerance
    >>> Tolerance(above=0.2)
    Tolerance(above=0.2, below=0.0)
    >>> Tolerance(above={"income": 500}, below={"income": 100}).to_text()
    'income above 500, income below 100'
    """

    above: Any = 0.0
    below: Any = 0.0

    def __post_init__(self) -> None:
        for name, most in (("above", np.inf), ("below", 1.0)):
            value = getattr(self, name)
            allowed = "a share of 0 or more" if name == "above" else "a share from 0 to below 1"
            allowed += ", or a mapping of columns to numbers of units, 0 or more"
            if isinstance(value, Mapping):
                wrong = [one for one in value.values() if not _is_size(one)]
                if wrong or not value:
                    reject(f"Tolerance.{name}", allowed, repr(wrong[0] if wrong else value))
                object.__setattr__(self, name, dict(value))
            elif not _is_size(value) or (name == "below" and float(value) >= most):
                reject(f"Tolerance.{name}", allowed, repr(value))

    def __hash__(self) -> int:
        return hash(self.to_text())

    def to_text(self) -> str:
        """The same as text, which `as_tolerance` reads: "above 20%, income below 500"."""
        parts = []
        for name, value in (("above", self.above), ("below", self.below)):
            if isinstance(value, Mapping):
                parts += [f"{column} {name} {_number(size)}" for column, size in value.items()]
            elif value:
                parts.append(f"{name} {_number(100 * float(value))}%" if np.isfinite(value) else f"{name} inf")
        return ", ".join(parts)

    def to_record(self) -> dict[str, Any]:
        """As plain values for JSON, which `as_tolerance` reads."""
        return {
            name: {str(column): _plain(size) for column, size in value.items()}
            if isinstance(value, Mapping)
            else _plain(value)
            for name, value in (("above", self.above), ("below", self.below))
        }

    @property
    def is_none(self) -> bool:
        """Whether it asks for no room at all."""
        sizes = [list(one.values()) if isinstance(one, Mapping) else [one] for one in (self.above, self.below)]
        return not any(map(any, sizes))


def as_tolerance(value: Any) -> Tolerance | None:
    """A `Tolerance`, or what can be read as one: a share above, a record, or text such as "above 20%"."""
    if value is None or isinstance(value, Tolerance):
        return value
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, Mapping) and value.keys() <= {"above", "below"}:
        return Tolerance(**{name: _sizes(size) for name, size in value.items()})
    if isinstance(value, Real) and not isinstance(value, bool):
        return Tolerance(above=float(value))
    reject(
        "tolerance", "Tolerance(above=..., below=...), or text such as 'above 20%' or 'income above 500'", repr(value)
    )


def _sizes(size: Any) -> Any:
    """Sizes of a record, in which infinity is a text."""
    if isinstance(size, Mapping):
        return {column: _sizes(own) for column, own in size.items()}
    return np.inf if size == "inf" else size


def _read(text: str) -> Tolerance:
    """Text such as "above 20%, below 5%", or "income above 500, income below 100"."""
    shares: dict[str, float] = {}
    units: dict[str, dict[str | int, float]] = {"above": {}, "below": {}}
    for part in text.split(","):
        *words, side, size = ["", "", *part.split()]
        column = [word for word in words if word]
        is_share = size.endswith("%") or size == "inf"
        try:
            number = float(size.rstrip("%"))
        except ValueError:
            number = np.nan
        if side not in units or not number >= 0 or (column and size.endswith("%")) or (not column and not is_share):
            reject("tolerance", "text such as 'above 20%, below 5%' or 'income above 500'", repr(text))
        if column:
            units[side][" ".join(column)] = number
        else:
            shares[side] = number / 100
    both = [side for side in shares if units[side]]
    if both:
        reject("tolerance", f"either a share or units of columns on the side {both[0]!r}", repr(text))
    return Tolerance(**{side: shares.get(side, units[side] or 0.0) for side in units})


def _is_size(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and float(value) >= 0


def _number(size: float) -> str:
    return f"{float(size):.12g}"


def _plain(size: float) -> Any:
    return float(size) if np.isfinite(size) else "inf"


@dataclass(frozen=True, eq=False)
class Room:
    """A tolerance by column: what of the change, and how many units besides, on both sides of an answer."""

    above_share: Floats  # (n_features,)
    above_units: Floats
    below_share: Floats
    below_units: Floats

    @classmethod
    def of(cls, tolerance: Tolerance, schema: Schema, is_category: Bools) -> Room:
        """The tolerance in a schema's columns."""
        above, below = (_by_column(one, schema, is_category) for one in (tolerance.above, tolerance.below))
        return cls(*above, *below)

    def boxes(self, batch: Batch, points: Floats) -> tuple[Floats, Floats]:
        """(n_rows, n_features) the ends of the box around each point, numbers that the columns can hold."""
        low, high = self.raw(batch.rows, points)
        has_room = self.moves(batch, points)
        low = np.where(has_room, np.clip(low, batch.low, batch.high), points)
        high = np.where(has_room, np.clip(high, batch.low, batch.high), points)
        low, high = held_inside(batch, low, high)
        return np.fmin(low, points), np.fmax(high, points)

    def moves(self, batch: Batch, points: Floats) -> Bools:
        """(n_rows, n_features) where a number has become another number, so that there is room."""
        return np.asarray((points != batch.rows) & ~np.isnan(points) & ~np.isnan(batch.rows) & ~batch.is_category)

    def raw(self, rows: Floats, points: Floats) -> tuple[Floats, Floats]:
        """The ends of the boxes before domain and grain are looked at; both grow with the points."""
        with np.errstate(invalid="ignore", over="ignore"):
            change = np.abs(points - rows)
            size = UNITS * (np.abs(points) + np.abs(rows))
            beyond = _times(self.above_share, change) + self.above_units
            beyond = np.where(beyond > 0, beyond + size, 0.0)
            short = _times(self.below_share, change) + self.below_units
            short = np.where(short > 0, short + size, 0.0)
            is_up = points > rows
            low = np.where(is_up, np.maximum(points - short, rows), points - beyond)
            high = np.where(is_up, points + beyond, np.minimum(points + short, rows))
        return low, high


def held_inside(batch: Batch, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of boxes, moved inwards to numbers that each column can hold; NaN stays."""
    low, high = batch.lists.inside(low, high, batch.grain)
    for column in np.flatnonzero(batch.grain == LISTED).tolist():
        listed = np.concatenate([[-np.inf], batch.lists.of(column), [np.inf]])
        is_known = ~np.isnan(low[..., column])
        first = np.searchsorted(listed, low[..., column], side="left")
        last = np.searchsorted(listed, high[..., column], side="right") - 1
        low[..., column] = np.where(is_known, listed[np.minimum(first, len(listed) - 1)], np.nan)
        high[..., column] = np.where(is_known, listed[last], np.nan)
    return low, high


def _times(share: Floats, change: Floats) -> Floats:
    """A share of a change; of no change nothing, however large the share."""
    return np.where(change > 0, share * change, 0.0)


def _by_column(side: Any, schema: Schema, is_category: Bools) -> tuple[Floats, Floats]:
    """(n_features,) shares of the change, and units."""
    share, units = np.zeros(len(schema.names)), np.zeros(len(schema.names))
    if not isinstance(side, Mapping):
        return np.where(is_category, 0.0, float(side)), units
    for column, size in side.items():
        j = schema.positions([column])[0]
        if is_category[j]:
            reject("tolerance", "about columns of numbers", f"{schema.names[j]!r}, which holds categories")
        counting = schema.features[j].counting
        units[j] = float(size) * (1 if counting is None else counting.per_day)
    return share, units
