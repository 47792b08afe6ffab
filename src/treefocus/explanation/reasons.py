"""Why a row came out as it did: a type for every reason, with what it is about.

Its words are in the catalogue of every language (`render.phrases`), under its `code`; as a `str` it is English.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from treefocus.render.phrases import catalogue
from treefocus.search.base import Outcome, Status


class Reason:
    """Base of all reasons."""

    @property
    def code(self) -> str:
        """The name of its words in the catalogues."""
        raise NotImplementedError

    @property
    def details(self) -> Mapping[str, str]:
        """What fills the places in these words."""
        return {}

    @cached_property
    def _english(self) -> str:
        return catalogue().reason(self)

    def __str__(self) -> str:
        return self._english


@dataclass(frozen=True)
class ByStatus(Reason):
    """Nothing beyond what the status says."""

    status: Status

    @property
    def code(self) -> str:  # noqa: D102
        return self.status.name


@dataclass(frozen=True)
class Undecided(Reason):
    """What the status says, and that the search left cases that it cannot decide."""

    status: Status
    of: ClassVar[tuple[Status, ...]] = (Status.BOUNDED, Status.NOT_FOUND)  # what the others say is decided

    @property
    def code(self) -> str:  # noqa: D102
        return f"{self.status.name} undecided"


@dataclass(frozen=True)
class AlreadyThere(Reason):
    """The row has the wanted answer."""

    code = "already there"


@dataclass(frozen=True)
class NotConfirmed(Reason):
    """The user's model contradicts the answer that was found."""

    code = "not confirmed"


@dataclass(frozen=True)
class NoOtherWay(Reason):
    """There is no further way out, which is proven."""

    code = "no other way"


@dataclass(frozen=True)
class _About(Reason):
    """A reason about some things, which stand in a list."""

    @property
    def details(self) -> Mapping[str, str]:
        return {field.name: ", ".join(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class NoAllowedValue(_About):
    """The constraints and bounds leave some columns without a value."""

    columns: tuple[str, ...]
    code = "no allowed value"


@dataclass(frozen=True)
class Unreadable(_About):
    """The model cannot read some of the row's cells ("income = inf")."""

    cells: tuple[str, ...]
    code = "unreadable"


@dataclass(frozen=True)
class UnreadableElsewhere(_About):
    """The model reads the row, and another one, that has to agree, does not."""

    cells: tuple[str, ...]
    code = "unreadable elsewhere"


@dataclass(frozen=True)
class Foreign(Reason):
    """A sentence from a file, of a reason that is not known here."""

    text: str
    code = "foreign"

    @property
    def details(self) -> Mapping[str, str]:  # noqa: D102
        return {"text": self.text}


def read_reason(text: str) -> Reason:
    """The reason behind an English sentence: files hold these. What it is about comes back as one thing, unparted."""
    if text in _without_details():
        return _without_details()[text]
    for kind in (NoAllowedValue, Unreadable, UnreadableElsewhere):
        start = str(kind(("",)))
        if text.startswith(start):
            return kind((text.removeprefix(start),))
    return Foreign(text)


@cache
def _without_details() -> dict[str, Reason]:
    plain = (AlreadyThere(), NotConfirmed(), NoOtherWay(), *map(ByStatus, Status), *map(Undecided, Undecided.of))
    return {str(reason): reason for reason in plain}


_by_status = {status: ByStatus(status) for status in Status}


def reasons_of(outcome: Outcome, own: Mapping[int, Reason] | None = None) -> tuple[Reason, ...]:
    """Why each row came out so: its own reason, where it has one, else its status's."""
    reasons: list[Reason] = [_by_status[status] for status in outcome.status.tolist()]
    for i in np.flatnonzero(outcome.is_undecided if outcome.is_undecided is not None else []).tolist():
        if outcome.status[i] in Undecided.of:
            reasons[i] = Undecided(outcome.status[i])
    for i, reason in (own or {}).items():
        reasons[i] = reason
    return tuple(reasons)
