"""An audit's lines: all rows, each group, each crossing of groups, in numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from treefocus.explanation.audit.disparities import FEW, interval_of, number, numbers
from treefocus.explanation.audit.groups import Key
from treefocus.explanation.audit.sums import (
    ALREADY,
    DOWN,
    OPEN,
    OTHER,
    PRECLUDED,
    SHARE,
    SUM_DOWN,
    SUM_UP,
    UNREADABLE,
    GroupSums,
    Part,
)
from treefocus.explanation.audit.sums import UP as GROWS


@dataclass(frozen=True, eq=False)
class AuditedGroup:
    """What is asked of one group of people.

    Attributes
    ----------
    columns, labels : tuple
        Which group this is: the columns that make it, and its label in each; empty for all rows.
    rows, asked, helped, precluded, open : int
        All of its rows; those that do not have what is wanted yet; of these, those with a way out, those proven to have
        none, and those of which neither is known.
    preclusion, burden, median : (low, high)
        The share without a way out, and the mean and median distance of those with one; the ends differ where rows are
        open, or only bounded.
    changes : float
        How many features change, on average.
    """

    columns: tuple[str, ...]
    labels: Key
    sums: GroupSums
    level: float
    is_hidden: bool = False

    @property
    def rows(self) -> int:
        """All rows, also those that have what is wanted, and those that the model cannot read."""
        return int(self.sums.counts.sum())

    @property
    def asked(self) -> int:
        """Rows that do not have what is wanted yet."""
        return self.sums.n_asked

    @property
    def helped(self) -> int:
        """Rows with a way out."""
        return self.sums.n_helped

    @property
    def precluded(self) -> int:
        """Rows that are proven to have none."""
        return int(self.sums.counts[PRECLUDED])

    @property
    def open(self) -> int:
        """Rows of which neither is known."""
        return int(self.sums.counts[OPEN])

    @property
    def already(self) -> int:
        """Rows that have what is wanted as they are."""
        return int(self.sums.counts[ALREADY])

    @property
    def unreadable(self) -> int:
        """Rows that the model cannot read."""
        return int(self.sums.counts[UNREADABLE])

    @property
    def preclusion(self) -> tuple[float, float]:
        """The share without a way out: proven, and at most."""
        return self.sums.preclusion()

    @property
    def preclusion_interval(self) -> tuple[float, float]:
        """What chance could make of it."""
        return interval_of(*self.sums.resampled_preclusion(), self.level)

    @property
    def burden(self) -> tuple[float, float]:
        """The mean distance of those with a way out, from below and from above."""
        return self.sums.burden()

    @property
    def burden_interval(self) -> tuple[float, float]:
        """What chance could make of it."""
        return interval_of(*self.sums.resampled_burden(), self.level)

    @property
    def median(self) -> tuple[float, float]:
        """The median distance of those with a way out, to 1 % of itself."""
        return self.sums.median()

    @property
    def changes(self) -> float:
        """How many features change, on average, of those with a way out."""
        return self.sums.mean_changes()

    @property
    def is_small(self) -> bool:
        """Whether it has too few rows for conclusions."""
        return self.asked < FEW

    def record(self) -> dict[str, Any]:
        """For JSON; of a group that is not shown only its name."""
        named = {"columns": list(self.columns), "labels": list(self.labels), "is_hidden": self.is_hidden}
        if self.is_hidden:
            return named
        return named | {
            "rows": self.rows, "asked": self.asked, "helped": self.helped, "precluded": self.precluded,
            "open": self.open, "already": self.already, "unreadable": self.unreadable, "is_small": self.is_small,
            "preclusion": numbers(self.preclusion), "preclusion_interval": numbers(self.preclusion_interval),
            "burden": numbers(self.burden), "burden_interval": numbers(self.burden_interval),
            "median": numbers(self.median), "changes": number(self.changes),
        }  # fmt: skip

    def features(
        self, names: Sequence[str], units: Sequence[str], kept_back: Collection[Part] = ()
    ) -> list[dict[str, Any]]:
        """What each feature is asked for, the most asked-for first; for JSON. kept_back: parts without their means."""
        found = [
            _feature(name, unit, own, self.helped, {part for feature, part in kept_back if feature == k})
            for k, (name, unit, own) in enumerate(zip(names, units, self.sums.features, strict=True))
        ]
        return sorted((one for one in found if one["rows"]), key=lambda one: -one["rows"])


def _feature(name: str, unit: str, own: Any, n_helped: int, kept_back: Collection[int]) -> dict[str, Any]:
    n_up, n_down, n_other = (int(own[k]) for k in (GROWS, DOWN, OTHER))
    n_rows = n_up + n_down + n_other
    shown = {GROWS: n_up, DOWN: n_down, SHARE: n_helped} | dict.fromkeys(kept_back, 0)
    return {
        "feature": name,
        "unit": unit,
        "rows": n_rows,
        "share": n_rows / n_helped if n_helped else 0.0,
        "up": n_up,
        "mean_up": number(own[SUM_UP] / n_up if shown[GROWS] else math.nan),
        "down": n_down,
        "mean_down": number(own[SUM_DOWN] / n_down if shown[DOWN] else math.nan),
        "other": n_other,
        "share_of_burden": number(own[SHARE] / n_helped if shown[SHARE] else math.nan),
    }
