"""Several models whose shown numbers are averaged: calibrated folds, boosters that vote softly, forests that vote.

A voice is one of them: some trees of a forest in a row, their sum, and what is made of it. What it shows grows with its
sum, so that the best mean in a part of the space is at most the mean of what the best sums there show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.model.maps import Map, as_maps

_VOTES = ("above", "at_least")
_LINKS = ("identity", "sigmoid")
_DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Voice:
    """One of the models of a forest whose score is the weighted mean of what they show."""

    n_trees: int
    divisor: float = 1.0
    link: str = "identity"
    maps: tuple[Map, ...] = ()
    weight: float = 1.0
    score_dtype: str = "float64"
    rounding: float = 0.0  # by how much the library's own sum may differ from this one
    moved: int = 0  # 1 or -1 where every sum that the library could have is meant, from above or from below

    @property
    def is_vote(self) -> bool:
        """Whether it shows nothing but whether it is for the second class."""
        return bool(self.maps) and self.maps[-1][0] in _VOTES


def has_votes(voices: Sequence[Voice]) -> bool:
    """Whether the mean is one of votes, which is no probability."""
    return any(one.is_vote for one in voices)


def moved(voices: Sequence[Voice], way: int) -> tuple[Voice, ...]:
    """The voices with every sum that rounding could have made of theirs, from above (1) or from below (-1)."""
    return tuple(replace(one, moved=way) for one in voices)


def as_voices(given: Any) -> tuple[Voice, ...]:
    """Voices as a file or an adapter gives them, if each is one."""
    if not isinstance(given, list | tuple):
        reject("Forest.voices", "a list of voices", type(given).__name__)
    return tuple(_checked(one if isinstance(one, Voice) else _read(one)) for one in given)


def to_records(voices: Sequence[Voice]) -> list[dict[str, Any]]:
    """The voices as plain values, for JSON."""
    return [asdict(one) for one in voices]


def _read(record: Any) -> Voice:
    names = {field.name for field in fields(Voice)}
    if not isinstance(record, dict) or not record.keys() <= names or "n_trees" not in record:
        reject("Forest.voices", f"of objects with n_trees and some of {', '.join(sorted(names))}", repr(record)[:80])
    return Voice(**record)


def _checked(one: Voice) -> Voice:
    if not isinstance(one.n_trees, Integral) or isinstance(one.n_trees, bool) or one.n_trees < 0:
        reject("Voice.n_trees", "a whole number from 0 up", repr(one.n_trees))
    for name in ("divisor", "weight", "rounding"):
        value = getattr(one, name)
        if (
            not isinstance(value, Real)
            or not np.isfinite(float(value))
            or value < 0
            or (name == "divisor" and not value)
        ):
            reject(f"Voice.{name}", "a finite number, not negative, and a divisor above 0", repr(value))
    for name, allowed in (("link", _LINKS), ("score_dtype", _DTYPES), ("moved", (-1, 0, 1))):
        if getattr(one, name) not in allowed:
            reject(f"Voice.{name}", f"one of {allowed}", repr(getattr(one, name)))
    return replace(one, maps=as_maps(one.maps))
