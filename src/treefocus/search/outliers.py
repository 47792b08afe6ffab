"""What the local outlier factor can be in a part of a row's domain.

A part is a box. From its ends come the least and the largest distance to every training row; a row can be among the
nearest ones of a point only if fewer than k others are surely nearer. The factor is a mean of densities times a mean of
reaches, each no less than what the rows that can be nearest allow: if that is above the limit, no point of the part
obeys it. All of that errs on the side of a point that might obey.

A distance to a training row is a sum over columns of pieces of lines, and so is a difference of two. Below such a sum
lies a plain linear one, in a part the closer the smaller it is: the linear rule that a search can be told, so that it
looks for answers near a training row, or nearer to this than to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus.kernels.inputs import Batch
from treefocus.kernels.rules import LinearRule
from treefocus.model.forest import Bools, Floats
from treefocus.problem.plausibility import Neighbours
from treefocus.search.parts import Subdomain

_LOOSE = 1e-12  # as a share, and besides: by what rounding can change a distance or a factor
_ROUNDING = 64 * np.finfo(np.float64).eps  # of the size of a sum's terms
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Extent:
    """A part in the space in which distance is measured."""

    low: Floats  # (n_features,) of numbers
    high: Floats
    is_number: Bools  # (n_features,) it can be a number
    may_lack: Bools  # (n_features,) it can be a missing value
    categories: dict[int, Floats]  # by column, the categories that it can be

    @classmethod
    def of(cls, part: Subdomain, batch: Batch) -> Extent:
        """Of the batch's only row."""
        row, choices = batch.rows[0], batch.choices
        may_lack = np.isnan(row)
        is_number = ~may_lack & ~batch.is_category
        categories = {}
        for k, column in enumerate(choices.column.tolist()):
            cells = slice(choices.start[k], choices.start[k + 1])
            is_open = part.is_open[cells]
            may_lack[column] = is_open[-1]
            if choices.is_category[k]:
                categories[column] = choices.value[0, cells][:-1][is_open[:-1]]
            else:
                is_number[column] = is_open[:-1].any()
        low, high = (part.low - batch.offset) / batch.scale, (part.high - batch.offset) / batch.scale
        return cls(low, high, is_number, may_lack, categories)

    def apart(self, points: Floats) -> tuple[Floats, Floats]:
        """(n, n_features) the least and the largest distance of a point of the part to each point, by column."""
        least = np.fmax(np.fmax(self.low - points, points - self.high), 0.0)
        most = np.nan_to_num(np.fmax(np.abs(points - self.low), np.abs(points - self.high)), posinf=np.inf)
        for column, own in self.categories.items():
            has_it = np.isin(points[:, column], own)
            is_known = ~np.isnan(points[:, column])
            least[:, column] = is_known & ~has_it
            most[:, column] = is_known & (len(own) > has_it)
        least[:, self.may_lack] = 0.0
        is_gone = ~self.is_number
        is_gone[[*self.categories]] = False
        most[:, is_gone], least[:, is_gone] = 0.0, 0.0
        return least, most

    def options(self, column: int) -> Floats:
        """The values of a column that are no numbers: categories, NaN for a missing one."""
        own = self.categories.get(column, np.empty(0))
        return np.append(own, np.nan) if self.may_lack[column] else own

    def is_range(self, column: int) -> bool:
        """Whether a column holds numbers, of which there are several, and nothing else."""
        return bool(self.is_number[column] and not self.may_lack[column] and self.low[column] < self.high[column])


@dataclass(frozen=True, eq=False)
class Outliers:
    """The limit on the factor, and the training rows."""

    known: Neighbours
    limit: float
    k: int
    radius: Floats  # (n_examples,) to the k-th neighbour
    density: Floats

    @classmethod
    def of(cls, known: Neighbours, limit: float, neighbours: int) -> Outliers:
        """Of the measure's own numbers."""
        k = min(neighbours, len(known.points) - 1)
        return cls(known, limit, k, *known.density(k))

    def nearest(self, point: Floats) -> Indices:
        """(k,) the training rows that the measure compares a point with."""
        away = self.known.away(self.known.to_space(point[None]))[0]
        return np.argsort(away, kind="stable")[: self.k]

    def reach_of(self, rows: Indices) -> float:
        """How large the sum of the reaches of these k rows may be."""
        return float(self.limit * self.k / self.density[rows].mean())

    def possible(self, near: Indices, least: Floats, most: Floats) -> Bools:
        """(n,) which of the rows can be among the nearest, by their least and largest distance."""
        kth = np.partition(most, self.k - 1)[self.k - 1]
        return np.asarray(least <= kth * (1 + _LOOSE) + _LOOSE)

    def may_obey(self, near: Indices, least: Floats, most: Floats) -> Bools:
        """(n,) next to which of the rows, all that can be nearest, a point may obey the limit; none: no point does."""
        reach = np.maximum(least, self.radius[near])
        limit = self.limit * (1 + _LOOSE) + _LOOSE * self.limit
        with np.errstate(invalid="ignore"):
            if self.k == 1:
                return np.asarray(self.density[near] * reach <= limit)
            is_sure = np.searchsorted(np.sort(least), most * (1 + _LOOSE) + _LOOSE, side="right") <= self.k
            n_more = max(self.k - int(is_sure.sum()), 0)
            density, reach = (
                (own[is_sure].sum() + np.sort(own[~is_sure])[:n_more].sum()) / self.k
                for own in (self.density[near], reach)
            )
            obeys = density * reach <= limit
        return np.full(len(near), bool(obeys))

    def is_never_nearest(self, row: int, near: Indices, extent: Extent) -> bool:
        """Whether in all of the part one and the same other row is nearer."""
        return bool((self._least_ahead(row, near, extent) > _LOOSE * (1 + self._size(extent))).any())

    def _least_ahead(self, row: int, near: Indices, extent: Extent) -> Floats:
        """(n,) by how much, at least, a row is farther from every point of the part than each of others."""
        points = self.known.points
        own, others = points[row], points[near]

        def ahead(at: Floats) -> Floats:
            return np.asarray(np.nan_to_num(np.abs(at - own) - np.nan_to_num(np.abs(at - others), posinf=np.inf)))

        with np.errstate(invalid="ignore"):
            least = np.minimum(ahead(extent.low), ahead(extent.high))
        for column, values in extent.categories.items():
            of_each = [_differs(v, own[column]) - _differs(v, others[:, column]) for v in values]
            least[:, column] = np.min(of_each, axis=0) if of_each else 0.0
        is_gone = ~extent.is_number
        is_gone[[*extent.categories]] = False
        least[:, is_gone] = 0.0
        least[:, extent.may_lack] = np.minimum(least[:, extent.may_lack], 0.0)
        return np.asarray(least.sum(axis=1))

    @staticmethod
    def _size(extent: Extent) -> float:
        ends = np.fmax(np.abs(extent.low), np.abs(extent.high))
        return float(ends[np.isfinite(ends)].sum())


@dataclass(frozen=True)
class SignedSum:
    """A sum of distances to training rows, with signs, that may not be above a number."""

    rows: tuple[int, ...]
    signs: tuple[float, ...]
    most: float


@dataclass(frozen=True, eq=False)
class Below:
    """A linear sum that is nowhere in a part above a sum of distances, and how far below it is at a point."""

    rule: LinearRule
    gap: Floats  # (n_features,)
    at: Floats  # (n_features,) where a column of numbers is best split to close the gap, NaN: nowhere


def below(asked: SignedSum, extent: Extent, batch: Batch, known: Neighbours, point: Floats, room: float) -> Below:
    """The linear sum that is closest at a point; room: shares of the terms' size that it may be above the number."""
    space = known.to_space(point[None])[0]
    rows, signs = known.points[list(asked.rows)], np.array(asked.signs)
    slope, gap, at = np.zeros(len(point)), np.zeros(len(point)), np.full(len(point), np.nan)
    constant, size = 0.0, abs(asked.most)
    for j in range(len(point)):
        own = rows[:, j]
        away = _differs if j in extent.categories else _away

        def total(value: float, own: Floats = own, away: Callable[[float, Floats], Floats] = away) -> float:
            return float(signs @ away(value, own))

        here = total(space[j])
        size += float(np.nan_to_num(np.abs(own)).sum()) + float(np.nan_to_num(abs(space[j])))
        if extent.is_range(j):
            size += abs(extent.low[j]) + abs(extent.high[j])
            inside = np.unique(own[(own > extent.low[j]) & (own < extent.high[j])])
            at_most = np.concatenate([[extent.low[j]], inside, [extent.high[j]]])
            heights = np.array([total(value) for value in at_most])
            slope[j], constant_of, hull = _hull(at_most, heights, space[j])
            constant += constant_of
            gap[j] = here - (slope[j] * space[j] + constant_of)
            off = heights - hull
            at[j] = at_most[int(off.argmax())] if off.max() > 0 else np.nan
        else:
            options = [total(value) for value in extent.options(j)]
            if extent.is_number[j]:
                options += [total(value) for value in _places(own, extent.low[j], extent.high[j])]
            least = min(options, default=0.0)
            constant += least
            gap[j] = here - least
    columns = np.flatnonzero(slope)
    coefficient = slope[columns] / batch.scale[columns]
    moved = float((coefficient * batch.offset[columns]).sum())
    size += float(np.abs(coefficient * batch.offset[columns]).sum())
    bound = asked.most - constant + moved + room * _ROUNDING * size
    return Below(LinearRule(columns.astype(np.int32), coefficient, bound), gap, at)


def _places(own: Floats, low: float, high: float) -> list[float]:
    """Where in a range a sum of distances to these numbers can be least."""
    return [low, high, *own[(own > low) & (own < high)].tolist()]


def _hull(x: Floats, y: Floats, at: float) -> tuple[float, float, Floats]:
    """The line of the lower hull of a piecewise linear function at a place, slope and constant; the hull at x."""
    kept = [0]
    for k in range(1, len(x)):
        while len(kept) > 1 and _turn(x, y, kept[-2], kept[-1], k) <= 0:
            kept.pop()
        kept.append(k)
    first = min(max(int(np.searchsorted(x[kept], at, side="right")) - 1, 0), len(kept) - 2)
    a, b = kept[first], kept[first + 1]
    slope = (y[b] - y[a]) / (x[b] - x[a])
    return float(slope), float(y[a] - slope * x[a]), np.interp(x, x[kept], y[kept])


def _turn(x: Floats, y: Floats, a: int, b: int, c: int) -> float:
    return float((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))


def _away(value: float, others: Floats) -> Floats:
    """Of numbers: how far others are, nothing where one is missing."""
    return np.nan_to_num(np.abs(value - others), posinf=np.inf)


def _differs(value: float, others: Floats) -> Floats:
    """Of categories: whether another, which a missing one never is."""
    return np.asarray(np.abs(np.asarray(others) - value) > 0, np.float64)
