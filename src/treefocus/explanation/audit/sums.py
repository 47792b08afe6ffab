"""What an audit keeps of rows: sums that add up, so that parts, streams and clusters merge to the same audit.

A group's sums are a few arrays of fixed size: counts, totals, squares, the totals of every resample, what each feature
is asked for, and a histogram of distances for the median. However many rows there are, nothing grows but the number of
groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from treefocus.explanation.audit.resampling import RESAMPLES, Numbers, resampled_sums
from treefocus.model.forest import Bools, Floats

# How a row counts. Only rows that are asked for something have a burden: HELPED, PRECLUDED and OPEN.
HELPED, PRECLUDED, OPEN, ALREADY, UNREADABLE = range(5)
N_KINDS = 5

LOW, HIGH, N_CHANGES = 3, 4, 5  # totals, after those of the first three kinds
N_TOTALS = 6
UP, DOWN, OTHER, SUM_UP, SUM_DOWN, SHARE = range(6)  # of a feature
N_OF_FEATURE = 6
PARTS = (UP, DOWN, SHARE)  # of a feature, that have a mean
Part = tuple[int, int]  # a feature, and one of these

_SMALLEST, _STEP, _N_BINS = 1e-9, math.log(1.02), 2_450  # bins 2 % wide, up to about 1e12


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """What is read of answered rows.

    low and high are the proven ends of what a row is asked for: they are the same where the answer is proven to be the
    smallest change, and the bound and the answer where it is not.
    """

    number: Numbers  # (n_rows,) which rows these are of all
    kind: NDArray[np.int8]  # (n_rows,)
    low: Floats  # (n_rows,) NaN where there is no answer
    high: Floats  # (n_rows,)
    moved: Bools  # (n_rows, n_features)
    step: Floats  # (n_rows, n_features) how far numbers move; NaN for categories and missing values
    share: Floats  # (n_rows, n_features) of the change

    def subset(self, chosen: NDArray[np.intp]) -> AuditedRows:
        """Some of the rows."""
        return AuditedRows(*(getattr(self, own.name)[chosen] for own in fields(self)))


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the rows of one group."""

    counts: NDArray[np.int64]  # (N_KINDS,) rows of each kind
    totals: Floats  # (N_TOTALS,) helped, precluded, open; low and high ends, changes of those helped
    squares: Floats  # (2,) of the low and high ends
    resampled: Floats  # (n_resamples, N_TOTALS) the totals of every resample
    features: Floats  # (n_features, N_OF_FEATURE)
    histogram: NDArray[np.int64]  # (2, n_bins) of the low and high ends

    @classmethod
    def of(cls, rows: AuditedRows, n_resamples: int = RESAMPLES) -> GroupSums:
        """The sums over these rows."""
        is_helped = rows.kind == HELPED
        own = rows.subset(np.flatnonzero(is_helped))
        values = np.zeros((len(rows.kind), N_TOTALS))
        for kind in (HELPED, PRECLUDED, OPEN):
            values[:, kind] = rows.kind == kind
        values[is_helped, LOW], values[is_helped, HIGH] = own.low, own.high
        values[is_helped, N_CHANGES] = own.moved.sum(axis=1)
        return cls(
            counts=np.bincount(rows.kind, minlength=N_KINDS).astype(np.int64),
            totals=values.sum(axis=0),
            squares=(values[:, LOW : HIGH + 1] ** 2).sum(axis=0),
            resampled=resampled_sums(rows.number, values, n_resamples),
            features=_feature_sums(own),
            histogram=np.stack([_binned(own.low), _binned(own.high)]),
        )

    def __add__(self, other: GroupSums) -> GroupSums:
        return GroupSums(*(getattr(self, own.name) + getattr(other, own.name) for own in fields(self)))

    @property
    def n_asked(self) -> int:
        """Rows that do not have what is wanted yet."""
        return int(self.counts[[HELPED, PRECLUDED, OPEN]].sum())

    @property
    def n_helped(self) -> int:
        """Rows with a way out."""
        return int(self.counts[HELPED])

    @property
    def people(self) -> tuple[int, int, int]:
        """Who stands behind its numbers: all rows, those asked for something, and those with a way out."""
        return int(self.counts.sum()), self.n_asked, self.n_helped

    def asked_for(self, feature: int, part: int) -> int:
        """How many are asked to raise a feature, to lower it, or to change it at all."""
        return int(self.features[feature, [UP, DOWN, OTHER] if part == SHARE else [part]].sum())

    def preclusion(self) -> tuple[float, float]:
        """The share of rows without a way out: proven, and at most (rows of which nothing is known count)."""
        return ends(*_shares(self.totals[None]))

    def burden(self) -> tuple[float, float]:
        """The mean distance of those with a way out, from below and from above."""
        return ends(*_means(self.totals[None]))

    def mean_changes(self) -> float:
        """How many features change, on average."""
        return float(self.totals[N_CHANGES] / self.n_helped) if self.n_helped else math.nan

    def resampled_preclusion(self) -> tuple[Floats, Floats]:
        """(n_resamples,) both ends in every resample."""
        return _shares(self.resampled)

    def resampled_burden(self) -> tuple[Floats, Floats]:
        """(n_resamples,) both ends in every resample."""
        return _means(self.resampled)

    def variance(self) -> tuple[float, float]:
        """Of the distances, at the low and at the high ends; NaN of fewer than two rows."""
        n = self.n_helped
        if n < 2:
            return math.nan, math.nan
        spread = (self.squares - self.totals[LOW : HIGH + 1] ** 2 / n) / (n - 1)
        return ends(*np.maximum(spread, 0.0)[:, None])

    def median(self) -> tuple[float, float]:
        """The median distance of those with a way out, to 1 % of itself, from below and from above."""
        return _median(self.histogram[0]), _median(self.histogram[1])


def ends(low: Floats, high: Floats) -> tuple[float, float]:
    """The first of each."""
    return float(low[0]), float(high[0])


def _shares(totals: Floats) -> tuple[Floats, Floats]:
    asked = totals[:, [HELPED, PRECLUDED, OPEN]].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals[:, PRECLUDED] / asked, (totals[:, PRECLUDED] + totals[:, OPEN]) / asked


def _means(totals: Floats) -> tuple[Floats, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals[:, LOW] / totals[:, HELPED], totals[:, HIGH] / totals[:, HELPED]


def _feature_sums(rows: AuditedRows) -> Floats:
    """(n_features, N_OF_FEATURE) of rows with an answer."""
    with np.errstate(invalid="ignore"):
        up, down = rows.moved & (rows.step > 0), rows.moved & (rows.step < 0)
    counts = [up.sum(axis=0), down.sum(axis=0), (rows.moved & ~up & ~down).sum(axis=0)]
    steps = [np.where(where, rows.step, 0.0).sum(axis=0) for where in (up, down)]
    return np.stack([*counts, *steps, np.where(rows.moved, rows.share, 0.0).sum(axis=0)], axis=1).astype(np.float64)


def _binned(distances: Floats) -> NDArray[np.int64]:
    bins = 1 + np.floor(np.log(np.maximum(distances, _SMALLEST) / _SMALLEST) / _STEP)
    bins = np.where(distances < _SMALLEST, 0, np.clip(bins, 1, _N_BINS - 1)).astype(np.int64)
    return np.bincount(bins, minlength=_N_BINS).astype(np.int64)


def _median(histogram: NDArray[np.int64]) -> float:
    """The lower of the middle ones, at the middle of its bin."""
    total = int(histogram.sum())
    if not total:
        return math.nan
    place = int(np.searchsorted(np.cumsum(histogram), (total + 1) // 2))
    return 0.0 if place == 0 else _SMALLEST * math.exp((place - 0.5) * _STEP)
