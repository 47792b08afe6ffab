"""Two audits of the same people: who lost their way out, whose became cheaper, and what that does on average."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput
from treefocus.explanation.audit.disparities import interval_of, numbers
from treefocus.explanation.audit.lines import AuditedGroup
from treefocus.explanation.audit.people import People
from treefocus.explanation.audit.sums import ALREADY, HELPED, OPEN, PRECLUDED, UNREADABLE
from treefocus.render import audit as told
from treefocus.tables.frames import frame_of

KINDS = {HELPED: "helped", PRECLUDED: "precluded", OPEN: "open", ALREADY: "already", UNREADABLE: "unreadable"}
LOST, GAINED, CHEAPER, DEARER = "lost", "gained", "cheaper", "dearer"
SAME, FREED, CAUGHT, UNKNOWN = "same", "freed", "caught", "unknown"
FATES = (LOST, GAINED, CHEAPER, DEARER, SAME, FREED, CAUGHT, UNKNOWN)
_TOLERANCE = 1e-9  # as a share of the distance


@dataclass(frozen=True, eq=False)
class AuditComparison:
    """What became of the same people from one audit to another.

    Attributes
    ----------
    counts : dict or None
        How many lost their way out, gained one, have a cheaper or a dearer one, one of the same cost, need none any
        more ("freed"), need one now ("caught"), and of how many that is not proven ("unknown"). None where the audits
        have no names of rows: those of streams.
    burden, preclusion : dict
        Before and after, each with its ends, and the interval of the change, by a paired bootstrap.
    """

    before: AuditedGroup
    after: AuditedGroup
    people: tuple[People, People] | None
    level: float

    @cached_property
    def fates(self) -> tuple[str, ...] | None:
        """What became of each row, in the order of the first audit."""
        if self.people is None:
            return None
        one, two = self.people
        return tuple(
            _fate(*line)
            for line in zip(
                one.kind.tolist(), one.low.tolist(), one.high.tolist(),
                two.kind.tolist(), two.low.tolist(), two.high.tolist(), strict=True,
            )
        )  # fmt: skip

    @property
    def counts(self) -> dict[str, int] | None:
        """How many people met each fate."""
        return None if self.fates is None else {fate: self.fates.count(fate) for fate in FATES}

    @property
    def burden(self) -> dict[str, Any]:
        """The mean distance of those with a way out: before, after, and the interval of the change."""
        one, two = self.before.sums.resampled_burden(), self.after.sums.resampled_burden()
        return self._changed(self.before.burden, self.after.burden, one, two)

    @property
    def preclusion(self) -> dict[str, Any]:
        """The share without a way out: before, after, and the interval of the change."""
        one, two = self.before.sums.resampled_preclusion(), self.after.sums.resampled_preclusion()
        return self._changed(self.before.preclusion, self.after.preclusion, one, two)

    def _changed(self, before: Any, after: Any, one: Any, two: Any) -> dict[str, Any]:
        interval = interval_of(two[0] - one[1], two[1] - one[0], self.level)
        return {"before": numbers(before), "after": numbers(after), "interval": numbers(interval)}

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"counts": self.counts, "burden": self.burden, "preclusion": self.preclusion, "level": self.level}

    def to_text(self) -> str:
        """As sentences."""
        return told.comparison_text(self.to_dict())

    def to_frame(self) -> Any:
        """A line a person: how they counted before and after, the ends of their distances, and what became of them."""
        if self.people is None or self.fates is None:
            raise InvalidInput("These audits have no names of rows, as those of streams: only their sums are compared.")
        one, two = self.people
        return frame_of(
            {
                "row": list(one.labels),
                "before": [KINDS[kind] for kind in one.kind.tolist()],
                "after": [KINDS[kind] for kind in two.kind.tolist()],
                "low_before": one.low.tolist(),
                "high_before": one.high.tolist(),
                "low_after": two.low.tolist(),
                "high_after": two.high.tolist(),
                "fate": list(self.fates),
            }
        )

    def __repr__(self) -> str:
        return self.to_text()


def _fate(kind: int, low: float, high: float, kind_after: int, low_after: float, high_after: float) -> str:
    """What became of one person; only what is proven is said."""
    pair = (kind, kind_after)
    if pair == (HELPED, HELPED):
        close = _TOLERANCE * max(high, high_after)
        if high_after < low - close:
            return CHEAPER
        if low_after > high + close:
            return DEARER
        is_tight = max(high - low, high_after - low_after) <= close
        return SAME if is_tight else UNKNOWN
    if kind == kind_after and kind in (PRECLUDED, ALREADY):
        return SAME
    return {
        (HELPED, PRECLUDED): LOST,
        (ALREADY, PRECLUDED): LOST,
        (PRECLUDED, HELPED): GAINED,
        (PRECLUDED, ALREADY): GAINED,
        (HELPED, ALREADY): FREED,
        (OPEN, ALREADY): FREED,
        (ALREADY, HELPED): CAUGHT,
        (ALREADY, OPEN): CAUGHT,
    }.get(pair, UNKNOWN)


def compared(
    before: AuditedGroup, after: AuditedGroup, people: People | None, others: People | None, level: float
) -> AuditComparison:
    """What became of the people of one audit in another."""
    if people is None or others is None:
        return AuditComparison(before, after, None, level)
    return AuditComparison(before, after, (people, _in_order(people, others)), level)


def _in_order(people: People, others: People) -> People:
    """The others in the order of the first, by their names."""
    place = {label: i for i, label in enumerate(others.labels)}
    if len(place) != len(others) or len(set(people.labels)) != len(people):
        raise InvalidInput("other must be an audit of the same rows; names that stand twice cannot be told apart.")
    if set(place) != set(people.labels):
        lost = next(iter(set(people.labels) ^ set(place)))
        raise InvalidInput(f"other must be an audit of the same rows; only one of the two has row {lost!r}.")
    chosen = np.array([place[label] for label in people.labels], np.intp)
    return People(people.labels, others.kind[chosen], others.low[chosen], others.high[chosen])
