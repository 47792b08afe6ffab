"""Differences between groups, and whether they can be by chance.

Where rows are only bounded, a mean has two ends and so has a difference. A test takes the ends that speak against it:
the low end of the group that is asked for more, the high end of the other. So no conclusion rests on a distance, or on
a preclusion, that is not proven. Means meet Welch's test, shares Fisher's exact one; all of them together are corrected
by Holm's method, so that the chance of any false finding stays below 1 - level. Intervals are those of the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treefocus.explanation.audit.groups import Key
from treefocus.explanation.audit.sums import OPEN, PRECLUDED, GroupSums
from treefocus.model.forest import Floats

FEW = 20  # rows; of fewer nothing is concluded
BURDEN, PRECLUSION = "burden", "preclusion"
_MANY = 20_000  # rows from which on Fisher's test is its normal limit
Pair = tuple[float, float]


@dataclass(frozen=True)
class Disparity:
    """How one group fares beside another, in one measure.

    Attributes
    ----------
    columns, group, reference : tuple
        The columns that make the groups, and the labels of both.
    measure : str
        "burden" (the mean distance of those with a way out) or "preclusion" (the share without one).
    difference, ratio : (low, high)
        Of the group to the reference; the ends differ where rows are only bounded.
    interval, ratio_interval : (low, high)
        What chance could make of them, by the bootstrap.
    effect : float
        Hedges' g of a burden, Cohen's h of a preclusion, at the end nearer to 0; 0 where the ends lie on both sides of
        it.
    p, adjusted : float
        How likely chance alone is to do that, alone and among all comparisons; NaN where the groups are too small.
    is_found : bool
        Whether it is a finding.
    """

    columns: tuple[str, ...]
    group: Key
    reference: Key
    measure: str
    difference: Pair
    interval: Pair
    ratio: Pair
    ratio_interval: Pair
    effect: float
    p: float
    adjusted: float = math.nan
    is_found: bool = False

    def record(self) -> dict[str, Any]:
        """For JSON, NaN as None."""
        return {
            "columns": list(self.columns),
            "group": list(self.group),
            "reference": list(self.reference),
            "measure": self.measure,
            "difference": numbers(self.difference),
            "interval": numbers(self.interval),
            "ratio": numbers(self.ratio),
            "ratio_interval": numbers(self.ratio_interval),
            "effect": number(self.effect),
            "p": number(self.p),
            "adjusted": number(self.adjusted),
            "is_found": self.is_found,
        }


def number(value: float) -> float | None:
    """None where there is none."""
    return float(value) if math.isfinite(value) else None


def numbers(pair: Pair) -> list[float | None]:
    """The same for two."""
    return [number(pair[0]), number(pair[1])]


def disparities_of(
    columns: tuple[str, ...], group: Key, own: GroupSums, reference: Key, other: GroupSums, level: float
) -> list[Disparity]:
    """Both measures of a group beside another."""
    return [
        _disparity(columns, group, reference, BURDEN, own, other, level),
        _disparity(columns, group, reference, PRECLUSION, own, other, level),
    ]


def _disparity(
    columns: tuple[str, ...], group: Key, reference: Key, measure: str, own: GroupSums, other: GroupSums, level: float
) -> Disparity:
    mine, theirs = _ends(measure, own), _ends(measure, other)
    drawn, their_drawn = _resampled(measure, own), _resampled(measure, other)
    difference = (mine[0] - theirs[1], mine[1] - theirs[0])
    effect, p = _tested(measure, own, other, difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (drawn[0] / their_drawn[1], drawn[1] / their_drawn[0])
    return Disparity(
        columns, group, reference, measure, difference,
        interval=interval_of(drawn[0] - their_drawn[1], drawn[1] - their_drawn[0], level),
        ratio=(_ratio(mine[0], theirs[1]), _ratio(mine[1], theirs[0])),
        ratio_interval=interval_of(*ratios, level),
        effect=effect, p=p,
    )  # fmt: skip


def _ends(measure: str, sums: GroupSums) -> Pair:
    return sums.burden() if measure == BURDEN else sums.preclusion()


def _resampled(measure: str, sums: GroupSums) -> tuple[Floats, Floats]:
    return sums.resampled_burden() if measure == BURDEN else sums.resampled_preclusion()


def _ratio(one: float, other: float) -> float:
    return one / other if other > 0 else math.nan


def interval_of(low: Floats, high: Floats, level: float) -> Pair:
    """Between the quantiles of the low ends and of the high ends, over the resamples that have them."""
    low, high = low[np.isfinite(low)], high[np.isfinite(high)]
    if not low.size or not high.size:
        return math.nan, math.nan
    outside = (1 - level) / 2
    return float(np.quantile(low, outside)), float(np.quantile(high, 1 - outside))


def _tested(measure: str, own: GroupSums, other: GroupSums, difference: Pair) -> Pair:
    """Effect size and p, at the ends that speak against a difference."""
    n, m = (own.n_helped, other.n_helped) if measure == BURDEN else (own.n_asked, other.n_asked)
    if min(n, m) < FEW:
        return math.nan, math.nan
    if measure == PRECLUSION and not _n_precluded(own, 1) + _n_precluded(other, 1):
        return 0.0, math.nan  # nobody is precluded: there is nothing to test
    if difference[0] <= 0 <= difference[1]:  # the ends do not say who is asked for more
        return 0.0, 1.0
    end, against = (0, 1) if difference[0] > 0 else (1, 0)  # of the group, and of the other
    if measure == BURDEN:
        return _welch(difference[end], own.variance()[end], n, other.variance()[against], m)
    return _shares_test(_n_precluded(own, end), n, _n_precluded(other, against), m)


def _n_precluded(sums: GroupSums, end: int) -> int:
    return int(sums.counts[PRECLUDED] + (sums.counts[OPEN] if end == 1 else 0))


def _welch(difference: float, variance: float, n: int, other: float, m: int) -> Pair:
    """Hedges' g, and p of Welch's test."""
    from scipy import stats

    one, two = variance / n, other / m
    pooled = math.sqrt(((n - 1) * variance + (m - 1) * other) / (n + m - 2))
    if one + two <= 0 or pooled <= 0:  # all of each group the same
        return math.copysign(math.inf, difference), 0.0
    freedom = (one + two) ** 2 / (one**2 / (n - 1) + two**2 / (m - 1))
    p = 2 * float(stats.t.sf(abs(difference) / math.sqrt(one + two), freedom))
    return difference / pooled * (1 - 3 / (4 * (n + m) - 9)), p


def _shares_test(count: int, n: int, other: int, m: int) -> Pair:
    """Cohen's h, and p of Fisher's exact test, or of its normal limit."""
    from scipy import stats

    effect = 2 * (math.asin(math.sqrt(count / n)) - math.asin(math.sqrt(other / m)))
    if n + m <= _MANY:
        return effect, float(stats.fisher_exact(np.array([[count, n - count], [other, m - other]]))[1])
    both = (count + other) / (n + m)
    error = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
    return effect, 2 * float(stats.norm.sf(abs(count / n - other / m) / error)) if error > 0 else 1.0


def corrected(found: Sequence[Disparity], level: float) -> tuple[Disparity, ...]:
    """All of them with p among all comparisons (Holm 1979), and which are findings."""
    tested = sorted((one.p, k) for k, one in enumerate(found) if one.p == one.p)
    adjusted, worst = {}, 0.0
    for rank, (p, k) in enumerate(tested):
        worst = max(worst, min(1.0, p * (len(tested) - rank)))
        adjusted[k] = worst
    return tuple(
        replace(one, adjusted=adjusted.get(k, math.nan), is_found=adjusted.get(k, 1.0) < 1 - level)
        for k, one in enumerate(found)
    )
