"""What a question means, in plain Python, on the user's own numbers: constraints, columns, distances and targets.

Points are written as the oracle writes them: numbers as they are, a category as the number of its label, NaN where a
value is missing. `says` is True, False, or None where the documents leave it open: an answer must not meet a False, and
what is held against a claim must meet nothing but True.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from treefocus import (
    AtMost,
    Chebyshev,
    Condition,
    Cosine,
    Decreasing,
    Euclidean,
    FewestFeatures,
    Fixed,
    Implies,
    Increasing,
    Interval,
    Linear,
    Mahalanobis,
    Manhattan,
    MayBeMissing,
    OneOf,
    Probability,
    Range,
    Score,
    Together,
    Tolerance,
)
from treefocus.model.forest import Bools, Floats
from truth.columns import Column, cell_of
from truth.models import Model

ULPS = 4  # of a sum's largest term, by which it may be above its bound


@dataclass(frozen=True)
class Measure:
    """A distance: a sum of norms, or one that couples columns."""

    name: str
    parts: tuple[tuple[float, str], ...] = ()  # factors of "l1", "l2", "linf", "l0"
    is_squared: bool = False  # of Mahalanobis

    @property
    def is_coupled(self) -> bool:
        return not self.parts

    def built(self, covariance: Floats | None = None) -> Any:
        """The same as treefocus takes it."""
        if self.name == "cosine":
            return Cosine()
        if not self.parts:
            return Mahalanobis(covariance=covariance, squared=self.is_squared)
        norms = {"l1": Manhattan, "l2": Euclidean, "linf": Chebyshev, "l0": FewestFeatures}
        made: Any = None
        for factor, part in self.parts:
            one = norms[part]() if factor == 1.0 else factor * norms[part]()
            made = one if made is None else made + one
        return made


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("euclidean", ((1.0, "l2"),)),
        Measure("manhattan", ((1.0, "l1"),)),
        Measure("chebyshev", ((1.0, "linf"),)),
        Measure("fewest features", ((1.0, "l0"),)),
        Measure("cosine"),
        Measure("mahalanobis"),
        Measure("mahalanobis squared", is_squared=True),
        Measure("manhattan + fewest", ((1.0, "l1"), (0.25, "l0"))),
        Measure("euclidean + fewest", ((1.0, "l2"), (0.5, "l0"))),
        Measure("manhattan + chebyshev", ((0.5, "l1"), (1.0, "linf"))),
        Measure("euclidean + manhattan", ((2.0, "l2"), (0.5, "l1"))),
    )
}


DOMAINS = ("of the data", "given bounds", "infinite bounds", "without data")
SCALES = ("range", "std", "mad", "none", "sizes")
FAR = 1e3  # how many ranges of the data are looked at where the domain is infinite


@dataclass(frozen=True, eq=False)
class Space:
    """Where answers may lie, column by column, and what a change of 1 is."""

    low: Floats  # (d,)
    high: Floats  # (d,)
    offset: Floats  # (d,)
    scale: Floats  # (d,)
    bounds: Any = None  # as they are given
    sizes: Any = "range"  # as they are given

    @classmethod
    def of(cls, model: Model, domain: str, scale: str) -> Space:
        data = model.data
        first, last = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
        spread, centre = last - first, np.nanmedian(data, axis=0)
        low, high, bounds = first.copy(), last.copy(), None
        if domain == "given bounds":
            low, high = first - np.ceil(0.25 * spread), last + np.ceil(0.1 * spread)
            bounds = low, high
        elif domain != "of the data":
            low, high = np.full(len(first), -np.inf), np.full(len(first), np.inf)
            bounds = None if domain == "without data" else (-np.inf, np.inf)
        for j, column in enumerate(model.columns):
            if column.kind == "step":  # the schema says more than the bounds
                low[j], high[j] = column.values[0], column.values[-1]
        deviation = np.nanstd(data, axis=0)
        if scale == "range":
            return cls(low, high, first, np.where(spread > 0, spread, 1.0), bounds)
        if scale == "std":
            return cls(low, high, np.nanmean(data, axis=0), np.where(deviation > 0, deviation, 1.0), bounds, "std")
        if scale == "mad":
            size = np.nanmedian(np.abs(data - centre), axis=0)
            size = np.where(size > 0, size, deviation)
            return cls(low, high, centre, np.where(size > 0, size, 1.0), bounds, "mad")
        nothing = np.zeros(len(first))
        if scale == "none":
            return cls(low, high, nothing, np.ones(len(first)), bounds, None)
        sizes = np.round(np.maximum(spread, 1e-3) * 0.7, 3)
        return cls(low, high, nothing, sizes, bounds, sizes)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of one row, as a user means it."""

    model: Model
    space: Space
    row: Floats  # (d,)
    constraints: tuple[Any, ...]
    measure: Measure
    target: Any
    weights: Floats  # (d,)
    covariance: Floats | None = None  # of the scaled columns, where Mahalanobis is given one
    also: tuple[Model, ...] = ()  # other models that have to give the wanted answer
    left_alone: tuple[frozenset[int], ...] = ()  # of each of these sets of columns, one has to stay as it is
    tolerance: Tolerance | None = None  # around an answer

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.model.columns

    def without(self, removed: Iterable[Any]) -> Question:
        """The same with fewer constraints."""
        gone = list(removed)
        return replace(self, constraints=tuple(one for one in self.constraints if one not in gone))

    # ---- the space

    @property
    def low(self) -> Floats:
        return self.space.low

    @property
    def high(self) -> Floats:
        return self.space.high

    @property
    def scale(self) -> Floats:
        return self.space.scale

    @property
    def start(self) -> Floats:
        """(d,) the row in the space in which distance is measured."""
        return (self.row - self.space.offset) / self.space.scale

    @cached_property
    def inverse(self) -> Floats:
        """(d, d) of the covariance of the scaled data, with the weights in it."""
        covariance = self.covariance
        if covariance is None:
            known = self.model.data[~np.isnan(self.model.data).any(axis=1)]
            covariance = np.cov(((known - self.space.offset) / self.scale).T, bias=True)
        return np.linalg.inv(covariance) * np.sqrt(np.outer(self.weights, self.weights))

    # ---- what an answer is

    def wanted(self, points: Floats) -> Bools:
        """(n,) whether the models' own answers are what is asked for."""
        agreed = np.ones(len(points), bool)
        for model in (self.model, *self.also):
            if isinstance(self.target, Probability):
                agreed &= self._is_wanted(model, likely=model.probabilities(points))
            elif isinstance(self.target, Score):
                agreed &= self._is_wanted(model, number=model.scores(points))
            else:
                agreed &= self._is_wanted(model, number=model.answers(points))
        return agreed

    def _is_wanted(self, model: Model, *, number: Any = None, likely: Any = None) -> Bools:
        """Whether what a model says is what is asked for."""
        if isinstance(self.target, Probability):
            return np.asarray(likely[..., model.classes.index(self.target.label)] >= self.target.at_least)
        if isinstance(self.target, Interval):
            return np.asarray((number >= self.target.low) & (number <= self.target.high))
        if self.target is None:
            return np.asarray(number != self.origin)
        return np.asarray(number == self.target)

    @cached_property
    def origin(self) -> Any:
        """What the model says of the row."""
        return self.model.answers(self.row[None])[0]

    def wanted_boxes(self, values: Sequence[Floats]) -> Bools:
        """The same for every combination of the columns' values, by the models' cells."""
        agreed: Bools = np.ones(tuple(map(len, values)), bool)
        for model, wanted in zip((self.model, *self.also), self.wanted_cells, strict=True):
            cells = (model.atlas.cell(j, own) for j, own in enumerate(values))
            agreed = agreed & wanted[np.ix_(*cells)]
        return agreed

    @cached_property
    def wanted_cells(self) -> tuple[Bools, ...]:
        """The same for every cell of each model's atlas."""
        found = []
        for model in (self.model, *self.also):
            atlas = model.atlas
            number = atlas.score if isinstance(self.target, Score) else atlas.answer
            found.append(self._is_wanted(model, number=number, likely=atlas.likely))
        return tuple(found)

    def cuts(self, j: int) -> Floats:
        """The last number of each cell of a column but the last, of all models."""
        return np.unique(np.concatenate([model.cuts[j] for model in (self.model, *self.also)]))

    # ---- what an answer may be

    def changed(self, points: Floats) -> Bools:
        """(n, d) which values are others than the row's."""
        return (points != self.row) & ~(np.isnan(points) & np.isnan(self.row))

    @cached_property
    def may_become_missing(self) -> frozenset[int]:
        named = (name for one in self.constraints if isinstance(one, MayBeMissing) for name in one.columns)
        return frozenset(self.place(name) for name in named)

    @cached_property
    def in_sums(self) -> frozenset[int]:
        """The columns whose sums are bounded: what is missing there stays missing."""
        sums = (one for one in self.constraints if isinstance(one, Linear))
        return frozenset(self.place(name) for one in sums for name in one.coefficients)

    def place(self, name: Any) -> int:
        return next(j for j, column in enumerate(self.columns) if column.name == name)

    def says_column(self, j: int, value: float) -> bool | None:
        """Whether a column may hold a value, by its kind and its domain alone."""
        column, own = self.columns[j], self.row[j]
        if value == own or (np.isnan(value) and np.isnan(own)):
            return True
        if self.measure.is_coupled and (np.isnan(own) or np.isnan(value)):
            return False  # cannot be measured, so that it stays
        if self.measure.is_coupled and column.is_category:
            return None
        if np.isnan(value):
            return j in self.may_become_missing
        if np.isnan(own) and j in self.in_sums:
            return False
        if column.is_category:
            return bool(0 <= value < len(column.values))
        is_inside = min(self.low[j], own) <= value <= max(self.high[j], own)
        if np.isnan(own):
            is_inside = self.low[j] <= value <= self.high[j]
        if column.kind == "step":  # counted from its first value, from outside the domain too
            steps = (value - column.values[0]) / (column.step or 1.0)
            return bool(is_inside and abs(steps - np.rint(steps)) <= 1e-9)
        if column.kind == "list":
            return bool(is_inside and value in column.values)
        if column.kind == "float32" and value != np.float32(value):
            return False
        return bool(is_inside and (not column.is_whole or value == np.rint(value)))

    def says(self, constraint: Any, point: Floats) -> bool | None:
        """Whether a point obeys a constraint."""
        if isinstance(constraint, Fixed | Increasing | Decreasing | Range | OneOf):
            names = getattr(constraint, "columns", None) or (constraint.column,)
            return all(self.says_alone(constraint, j, float(point[j])) for j in map(self.place, names))
        if isinstance(constraint, MayBeMissing):
            return True
        if isinstance(constraint, AtMost):
            named = constraint.columns or [column.name for column in self.columns]
            return bool(self.changed(point[None])[0, [self.place(name) for name in named]].sum() <= constraint.n)
        if isinstance(constraint, Together):
            changed = self.changed(point[None])[0, [self.place(name) for name in constraint.columns]]
            return bool(changed.all() or not changed.any())
        if isinstance(constraint, Implies):
            return not self.meets(constraint.cause, point) or self.meets(constraint.effect, point)
        assert isinstance(constraint, Linear)
        above = self.above(constraint, point)
        if above is None or above <= 0:
            return True
        size = max(abs(float(c) * point[self.place(name)]) for name, c in constraint.coefficients.items())
        return None if above <= ULPS * np.spacing(max(size, abs(constraint.at_most))) else False

    def says_alone(self, constraint: Any, j: int, value: float) -> bool:
        """Whether a value of one column obeys a constraint about that column alone.

        Whether a value may become missing at all is another question (`says_column`).
        """
        own = self.row[j]
        is_same = value == own or (np.isnan(value) and np.isnan(own))
        if isinstance(constraint, Fixed):
            return bool(is_same)
        if isinstance(constraint, Increasing | Decreasing):
            is_outside = self.columns[j].is_category and own >= len(self.columns[j].values)  # of the order
            if is_same or np.isnan(own) or is_outside:
                return bool(is_same)
            return bool(np.isnan(value) or (value >= own if isinstance(constraint, Increasing) else value <= own))
        if isinstance(constraint, Range):
            low, high = constraint.low, constraint.high
            if constraint.relative and np.isnan(own):
                return bool(is_same)
            if constraint.relative:
                low, high = own + low * abs(own), own + high * abs(own)
            return bool(np.isnan(value) or low <= value <= high)
        if np.isnan(value):
            return j in self.may_become_missing
        listed = constraint.values
        if self.columns[j].kind == "float32":
            listed = tuple(float(np.float32(own)) for own in listed)
        return cell_of(self.columns[j], value) in listed

    def meets(self, condition: Condition, point: Floats) -> bool:
        """Whether a point meets a condition; a missing value meets none."""
        j = self.place(condition.column)
        return self.meets_alone(condition, j, float(point[j]))

    def meets_alone(self, condition: Condition, j: int, value: float) -> bool:
        if np.isnan(value):
            return False
        if condition.values is not None:
            return cell_of(self.columns[j], value) in condition.values
        return bool(condition.low <= value <= condition.high)

    def above(self, constraint: Linear, point: Floats) -> float | None:
        """By how much a sum is above its bound, exactly where that is in doubt; None where a value is missing."""
        terms = [(float(c), float(point[self.place(name)])) for name, c in constraint.coefficients.items()]
        products = [c * value for c, value in terms]
        above = sum(products) - constraint.at_most
        if above != above:
            return None
        if abs(above) > 1e-12 * (max(map(abs, products)) + abs(constraint.at_most)):
            return above
        return float(sum(Fraction(c) * Fraction(value) for c, value in terms) - Fraction(constraint.at_most))

    def leaves_alone(self, point: Floats) -> bool:
        """Whether a point leaves a column of every set of `left_alone` as it is."""
        changed = self.changed(point[None])[0]
        return all(any(not changed[j] for j in own) for own in self.left_alone)

    def faults(self, point: Floats) -> list[str]:
        """What is wrong with a point as an answer, in words; nothing where it is one."""
        found = [] if self.wanted(point[None])[0] else ["the model does not give the wanted answer"]
        for j, column in enumerate(self.columns):
            if self.says_column(j, float(point[j])) is False:
                found.append(f"{column.name} = {cell_of(column, point[j])} is no value of its column ({column.kind})")
        found += [f"{one} is broken" for one in self.constraints if self.says(one, point) is False]
        found += [] if self.has_room(point) else ["there is no room to move around it"]
        return found if self.leaves_alone(point) else [*found, "it changes all that an earlier way changes"]

    def is_witness(self, point: Floats) -> bool:
        """Whether a point is an answer beyond any doubt."""
        return self.is_allowed(point) and bool(self.wanted(point[None])[0]) and self.has_room(point)

    def is_allowed(self, point: Floats) -> bool:
        """Whether a point obeys all that is asked of it but the model's answer, beyond any doubt."""
        if not all(self.says_column(j, float(value)) is True for j, value in enumerate(point)):
            return False
        return all(self.says(one, point) is True for one in self.constraints) and self.leaves_alone(point)

    # ---- room to move

    def room(self, j: int) -> tuple[float, float, float, float]:
        """What a tolerance gives a column: a share and units above, a share and units below."""
        found: list[float] = []
        for side in (self.tolerance.above, self.tolerance.below) if self.tolerance else (0.0, 0.0):
            is_units = isinstance(side, dict)
            found += [0.0 if is_units else side, side.get(self.columns[j].name, 0.0) if is_units else 0.0]
        return found[0], found[1], found[2], found[3]

    def reach(self, j: int, value: float) -> tuple[float, float]:
        """From where to where a column's value may end up; a last digit more than is asked for."""
        own = float(self.row[j])
        if self.tolerance is None or self.columns[j].is_category or value - own == 0 or np.isnan(value - own):
            return value, value
        share, units, less, fewer = self.room(j)
        change, size = abs(value - own), 4 * np.finfo(float).eps * (abs(value) + abs(own))
        beyond, short = share * change + units, less * change + fewer
        beyond, short = (way + size if way > 0 else 0.0 for way in (beyond, short))
        if value > own:
            return max(value - short, own), value + beyond
        return value - beyond, min(value + short, own)

    def held_between(self, j: int, low: float, high: float) -> Floats:
        """Some of the values from low to high that a column may hold: at least one of every cell of the models."""
        column, own = self.columns[j], float(self.row[j])
        low, high = max(low, min(self.low[j], own)), min(high, max(self.high[j], own))
        cuts = self.cuts(j)
        ends = np.concatenate([[low, high], cuts, np.nextafter(cuts, np.inf)])
        if column.kind == "step":
            step, first = float(column.step or 1.0), column.values[0]
            ks = np.arange(np.floor((low - first) / step), np.ceil((high - first) / step) + 1)
            ends = np.array([float(Decimal(str(first)) + Decimal(str(column.step)) * int(k)) for k in ks])
        elif column.kind == "list":
            ends = np.array(column.values, np.float64)
        elif column.is_whole:
            ends = np.concatenate([np.floor(ends), np.ceil(ends)])
        elif column.kind == "float32":
            near = ends.astype(np.float32)
            sides = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
            ends = np.concatenate(sides).astype(np.float64)
        alone = [one for one in self.constraints if isinstance(one, Fixed | Increasing | Decreasing | Range | OneOf)]
        about = [one for one in alone if column.name in (getattr(one, "columns", None) or (one.column,))]
        listed = np.array([value for one in about if isinstance(one, OneOf) for value in one.values], np.float64)
        ends = np.concatenate([ends, listed, listed.astype(np.float32)])
        ends = np.unique(ends[(ends >= low) & (ends <= high)])
        return np.array([v for v in ends.tolist() if self._may_hold(j, v, about)], np.float64)

    def _may_hold(self, j: int, value: float, about: Sequence[Any]) -> bool:
        return self.says_column(j, value) is True and all(self.says_alone(one, j, value) for one in about)

    def has_room(self, point: Floats) -> bool:
        """Whether the models say of all points around an answer what they say of it."""
        if self.tolerance is None:
            return True
        values = []
        for j, value in enumerate(point.tolist()):
            low, high = self.reach(j, value)
            values.append(np.unique(np.append(self.held_between(j, low, high), value)) if low < high else [value])
        return bool(self.wanted_boxes([np.asarray(own, np.float64) for own in values]).all())

    def room_ends(self, j: int) -> list[float]:
        """Values of answers from which the room ends beside a cell's end, and their neighbours."""
        own, found = float(self.row[j]), []
        if self.tolerance is None or np.isnan(own):
            return []
        share, units, less, fewer = self.room(j)
        cuts = self.cuts(j)
        ends = np.concatenate([cuts, np.nextafter(cuts, np.inf)])
        if self.columns[j].is_whole:
            ends = np.concatenate([np.floor(ends), np.ceil(ends)])
        for end in ends.tolist():
            for factor, more in ((1 + share, units), (1 - less, -fewer)):
                if np.isfinite(factor) and (factor, more) != (1, 0):
                    for side in (1.0, -1.0):
                        value = own + side * (abs(end - own) - more) / factor
                        width = 64 * float(np.spacing(max(abs(value), abs(own)))) / factor
                        found += [value - width, value + width]
        return found

    # ---- what it costs

    def cost(self, points: Floats) -> Floats:
        """(n,) how far each point is from the row."""
        changed = self.changed(points)
        is_number = ~(np.isnan(points) | np.isnan(self.row)) & np.array([not c.is_category for c in self.columns])
        delta = np.where(is_number, (points - self.row) / self.scale, changed)
        delta = np.where(changed, delta, 0.0)
        if self.measure.parts:
            return combined(self.measure, self.weights, np.abs(delta), changed)
        kept = ~np.array([c.is_category for c in self.columns]) & ~np.isnan(self.row)
        if self.measure.name == "cosine":
            z = self.start[kept]
            return one_less_cosine(self.weights[kept], z, z + delta[:, kept])
        delta = np.where(kept, delta, 0.0)
        square = np.maximum(np.einsum("nf,fg,ng->n", delta, self.inverse, delta), 0.0)
        return square if self.measure.is_squared else np.sqrt(square)


def combined(measure: Measure, weights: Floats, size: Floats, changed: Bools) -> Floats:
    """(n,) a sum of norms of changes of these sizes, (n, d)."""
    total = np.zeros(len(size))
    for factor, part in measure.parts:
        if part == "l1":
            total += factor * (weights * size).sum(axis=1)
        elif part == "l2":
            total += factor * np.sqrt((weights * size**2).sum(axis=1))
        elif part == "linf":
            total += factor * (weights * size).max(axis=1)
        else:
            total += factor * (weights * changed).sum(axis=1)
    return total


def one_less_cosine(w: Floats, z: Floats, y: Floats) -> Floats:
    """(n,) 1 - cos(z, y); 1 between zero and another, 0 between zero and zero."""
    zz, yy, zy = float((w * z * z).sum()), (w * y * y).sum(axis=1), (w * z * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.maximum(0.0, 1.0 - zy / np.sqrt(zz * yy))
    return np.where((zz == 0) | (yy == 0), np.asarray(zz != yy, np.float64), distance)


def single(constraints: Sequence[Any]) -> list[Any]:
    """The constraints one by one, as `why_not` counts them: Fixed("a", "b") is two, and what allows is none."""
    found: list[Any] = []
    for one in constraints:
        if isinstance(one, Fixed | Increasing | Decreasing):
            found += [type(one)(name) for name in one.columns]
        elif not isinstance(one, MayBeMissing):
            found.append(one)
    return [one for k, one in enumerate(found) if one not in found[:k]]


def moves(question: Question, point: Floats) -> frozenset[int]:
    """The columns that a point changes."""
    return frozenset(np.flatnonzero(question.changed(point[None])[0]).tolist())
