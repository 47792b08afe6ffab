"""Why people have no way out: the smallest sets of constraints without which they would have one.

Each costs a few searches, so that they are looked for in a sample: the precluded rows whose numbers have the smallest
hashes. Such samples of parts merge to the sample of the whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.explanation.answers import Answers
from treefocus.explanation.audit.resampling import hashed
from treefocus.explanation.audit.sums import PRECLUDED, AuditedRows
from treefocus.explanation.why_not import looks
from treefocus.search.conflicts import smallest_removal

SAMPLE = 100  # precluded rows that are asked why
_SALT = 10_007  # another hash than that of the resamples
BOUNDS = ("the range of the data",)  # what stands in the way where no constraint does


@dataclass(frozen=True)
class Obstacle:
    """Constraints that stand in somebody's way: without them there would be a way out, and without fewer not."""

    constraints: tuple[str, ...]  # as they could have been written
    rows: int  # of those that were asked
    is_proven: bool  # that fewer would not do, for each of them


@dataclass(frozen=True)
class PrecludedRow:
    """One precluded row of the sample, and why."""

    rank: int  # the hash of its number
    constraints: tuple[str, ...]
    is_proven: bool


@dataclass(frozen=True)
class PreclusionSample:
    """Precluded rows that were asked why, the smallest ranks first; at most `size` of them."""

    size: int
    rows: tuple[PrecludedRow, ...] = ()

    def __add__(self, other: PreclusionSample) -> PreclusionSample:
        size = min(self.size, other.size)
        every = sorted({row.rank: row for row in (*self.rows, *other.rows)}.values(), key=lambda row: row.rank)
        return PreclusionSample(size, tuple(every[:size]))

    def obstacles(self) -> tuple[Obstacle, ...]:
        """The sets of constraints, those of most rows first."""
        counts = Counter(row.constraints for row in self.rows)
        open_sets = {row.constraints for row in self.rows if not row.is_proven}
        found = [Obstacle(own, count, own not in open_sets) for own, count in counts.items()]
        return tuple(sorted(found, key=lambda one: (-one.rows, len(one.constraints), one.constraints)))

    def wanted(self, ranks: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Which of these precluded rows would be in the sample."""
        chosen = np.argsort(ranks, kind="stable")[: self.size]
        if len(self.rows) < self.size or not self.rows:
            return chosen
        return chosen[ranks[chosen] < np.uint64(self.rows[-1].rank)]


def sampled(answers: Answers, rows: AuditedRows, before: PreclusionSample, n_jobs: int | None) -> PreclusionSample:
    """The sample with these rows in it; without the model, or where nobody is asked, it stays as it is."""
    precluded = np.flatnonzero(rows.kind == PRECLUDED)
    if not precluded.size or not answers.groups or not before.size:
        return before
    ranks = hashed(rows.number[precluded], _SALT)
    found = []
    for k in before.wanted(ranks).tolist():
        group, place = answers.asked_of(int(precluded[k]))
        removal = smallest_removal(group.question.of_row(place), looks(None, n_jobs))
        texts = BOUNDS if removal.constraints is None else tuple(one.to_text() for one in removal.constraints)
        found.append(PrecludedRow(int(ranks[k]), texts, removal.is_proven))
    return before + PreclusionSample(before.size, tuple(found))


def preclusion_record(sample: PreclusionSample, n_precluded: int, min_group: int) -> dict[str, Any]:
    """For JSON; sets of constraints of fewer people than `min_group` are only counted."""
    shown = [one for one in sample.obstacles() if one.rows >= min_group]
    return {
        "rows": n_precluded,
        "asked_why": len(sample.rows),
        "obstacles": [
            {"constraints": list(one.constraints), "rows": one.rows, "is_proven": one.is_proven} for one in shown
        ],
        "obstacles_of_few": len(sample.obstacles()) - len(shown),
    }
