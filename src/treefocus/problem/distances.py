"""Distances: what "smallest change" means. Value and gradient for a batch, in the scaled space.

A user's own distance is any object with `value(z, y)` -> (n_rows,) and `gradient(z, y)` -> (n_rows, n_features),
the derivative with respect to y, for batches z, y of shape (n_rows, n_features).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.kernels.inputs import Batch, CompiledDistance, Metric, Norms
from treefocus.model.forest import Floats

L1, L2, LINF, L0 = range(4)  # the rows of Norms.weights
_CONDITION = 1e8  # of a correlation matrix, at most: beyond, rounding would decide which point is closer
_SMOOTH = 1e-10  # keeps gradients finite where nothing has moved yet


class Distance(ABC):
    """Base of all distances. `fitted` gives the distance for a number of features and, where needed, from data."""

    @abstractmethod
    def value(self, z: Floats, y: Floats) -> Floats:
        """(n_rows,) d(z, y)."""

    @abstractmethod
    def gradient(self, z: Floats, y: Floats) -> Floats:
        """(n_rows, n_features) derivative of d(z, y) with respect to y."""

    def fitted(self, n_features: int, data: Floats | None) -> Distance:
        """The distance ready to use; `data` is the training data in the scaled space."""
        return self

    @cached_property
    def compiled(self) -> CompiledDistance | None:
        """The distance as the compiled descent takes it, None if only Python knows it."""
        return None

    def measured(self, batch: Batch, points: Floats) -> Floats:
        """(n_rows,) how far the points of a batch are from its rows.

        Where the distance depends on the change alone, one too small to show next to the value itself still counts.
        """
        with np.errstate(over="ignore"):  # of a value near the end of float64: as far as can be
            if self.is_shift_invariant:
                moved = batch.changes(points)
                return self.value(np.where(np.isnan(moved), np.nan, 0.0), moved)
            start, reached = batch.start, batch.to_z(points)
            start[:, batch.choices.column] = reached[:, batch.choices.column] = np.nan  # kept as they are
            return self.value(start, reached)

    @property
    def is_shift_invariant(self) -> bool:
        """Whether d(z, y) depends on y - z only."""
        return self.norms is not None

    @cached_property
    def norms(self) -> Norms | None:
        """The distance as a sum of norms, which polish and the exact search take apart by feature, if it is one."""
        return None

    def __add__(self, other: Distance) -> Distance:
        return Sum((*_parts(self), *_parts(other)))

    def __rmul__(self, factor: float) -> Distance:
        if not (np.isfinite(factor) and factor > 0):
            reject("The factor of a distance", "a finite number above 0", factor)
        return Sum(tuple((factor * own, part) for own, part in _parts(self)))

    __mul__ = __rmul__


@dataclass(frozen=True, eq=False)
class _Weighted(Distance):
    weights: Sequence[float] | Floats | None = None

    def fitted(self, n_features: int, data: Floats | None) -> Distance:
        return replace(self, weights=_weights(self, n_features))

    @property
    def w(self) -> Floats:
        if self.weights is None:
            raise InvalidInput(f"{type(self).__name__} must be fitted before use: call fitted(n_features, data).")
        return np.asarray(self.weights, np.float64)

    def _compiled(self, metric: Metric) -> CompiledDistance:
        return CompiledDistance(metric, self.w, np.zeros((0, 0)))

    def _norms(self, part: int) -> Norms:
        weights = np.zeros((4, len(self.w)))
        weights[part] = self.w
        return Norms(weights)


class Euclidean(_Weighted):
    """sqrt(sum of w (y - z)^2).

    Parameters
    ----------
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import Euclidean
    >>> distance = Euclidean().fitted(2, None)
    >>> float(distance.value(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0])
    5.0
    """

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray(np.sqrt((self.w * _delta(z, y) ** 2).sum(axis=1)))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        delta = _delta(z, y)
        return np.asarray(self.w * delta / np.sqrt((self.w * delta**2).sum(axis=1, keepdims=True) + _SMOOTH))

    @cached_property
    def compiled(self) -> CompiledDistance:  # noqa: D102
        return self._compiled(Metric.EUCLIDEAN)

    @cached_property
    def norms(self) -> Norms:  # noqa: D102
        return self._norms(L2)


class Manhattan(_Weighted):
    """Sum of w |y - z|.

    Parameters
    ----------
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import Manhattan
    >>> distance = Manhattan().fitted(2, None)
    >>> float(distance.value(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0])
    7.0
    """

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray((self.w * np.abs(_delta(z, y))).sum(axis=1))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return self.w * np.sign(_delta(z, y))

    @cached_property
    def compiled(self) -> CompiledDistance:  # noqa: D102
        return self._compiled(Metric.MANHATTAN)

    @cached_property
    def norms(self) -> Norms:  # noqa: D102
        return self._norms(L1)


class Chebyshev(_Weighted):
    """Largest of w |y - z|.

    Parameters
    ----------
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import Chebyshev
    >>> distance = Chebyshev().fitted(2, None)
    >>> float(distance.value(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0])
    4.0
    """

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray((self.w * np.abs(_delta(z, y))).max(axis=1))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        moved = self.w * np.abs(_delta(z, y))
        is_largest = (moved == moved.max(axis=1, keepdims=True)) & (moved > 0)
        n_largest = np.maximum(is_largest.sum(axis=1, keepdims=True), 1)
        return np.asarray(self.w * np.sign(_delta(z, y)) * is_largest / n_largest)

    @cached_property
    def norms(self) -> Norms:  # noqa: D102
        return self._norms(LINF)


class FewestFeatures(_Weighted):
    """Sum of w over the features that change at all (the "L0 norm"). It has no slope: FOCUS finds, Exact minimises.

    Parameters
    ----------
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import FewestFeatures
    >>> distance = FewestFeatures().fitted(2, None)
    >>> float(distance.value(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0])
    2.0
    """

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray((self.w * (_delta(z, y) != 0)).sum(axis=1))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.zeros_like(y)

    @cached_property
    def norms(self) -> Norms:  # noqa: D102
        return self._norms(L0)


class Cosine(_Weighted):
    """1 - <z, y> / (|z| |y|), with the weights in the inner product; 1 from a zero vector to any other.

    Parameters
    ----------
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import Cosine
    >>> distance = Cosine().fitted(2, None)
    >>> float(distance.value(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[0])
    1.0
    """

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        zz, yy, zy = self._products(z, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.maximum(0.0, 1.0 - zy / np.sqrt(zz * yy))
        return np.where((zz == 0) | (yy == 0), (zz != yy).astype(np.float64), distance)

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        zz, yy, zy = (product[:, None] for product in self._products(z, y))
        zz, yy = np.maximum(zz, 1e-12), np.maximum(yy, 1e-12)
        return np.nan_to_num(self.w * (zy / yy * y - z) / np.sqrt(zz * yy))

    def _products(self, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        z, y = np.where(np.isnan(z), 0.0, z), np.where(np.isnan(z), 0.0, y)
        return (self.w * z * z).sum(axis=1), (self.w * y * y).sum(axis=1), (self.w * z * y).sum(axis=1)

    @cached_property
    def compiled(self) -> CompiledDistance:  # noqa: D102
        return self._compiled(Metric.COSINE)


@dataclass(frozen=True, eq=False)
class Mahalanobis(Distance):
    """sqrt((y - z)' C^-1 (y - z)), or that squared; C is the covariance of `data` (divided by n) unless given.

    Weights multiply the differences: weight w counts a change of 1 as sqrt(w). A column that never varies in the
    data counts as one of variance 1. Columns that nearly determine each other (a correlation matrix of condition above
    1e8) get a little variance of their own, so that the distance does not hang on rounding.

    Parameters
    ----------
    covariance : array, optional
        (n_features, n_features) in the scaled space; that of the training rows if not given.
    squared : bool
        Whether the square is the distance.
    weights : sequence of float, optional
        What a change of each column weighs; 1 if not given.
    inverse : array, optional
        Of the covariance; fitting sets it.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import Mahalanobis
    >>> distance = Mahalanobis(np.eye(2)).fitted(2, None)
    >>> round(float(distance.value(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0]), 6)
    5.0
    """

    covariance: Any = None
    squared: bool = False
    weights: Sequence[float] | Floats | None = None
    inverse: Floats | None = None

    def fitted(self, n_features: int, data: Floats | None) -> Distance:  # noqa: D102
        covariance, is_constant = self.covariance, np.zeros(n_features, bool)
        if covariance is None:
            if data is None:
                raise InvalidInput("Mahalanobis needs data= for its covariance, or Mahalanobis(covariance=...).")
            known = data[~np.isnan(data).any(axis=1)]
            if not len(known):
                raise InvalidInput("Mahalanobis needs a row of data without missing values for its covariance.")
            covariance = np.cov(known.T, bias=True).reshape(n_features, n_features)
            is_constant = np.ptp(known, axis=0) == 0
        covariance = np.array(covariance, np.float64)
        if covariance.shape != (n_features, n_features):
            reject("Mahalanobis.covariance", f"({n_features}, {n_features})", covariance.shape)
        variance = np.diag(covariance).copy()
        variance[is_constant] = 0.0  # rounding leaves a constant column a tiny variance
        size = np.sqrt(np.where(variance > 0, variance, 1.0))
        correlation = covariance / np.outer(size, size)  # so that the limits below do not depend on units
        if not np.allclose(correlation, correlation.T) or np.linalg.eigvalsh(correlation).min() < -1e-9:
            reject("Mahalanobis.covariance", "symmetric and positive semidefinite", "another matrix")
        flat = np.flatnonzero(variance <= 0)
        correlation[flat, :] = correlation[:, flat] = 0.0
        correlation[flat, flat] = 1.0
        spread = np.linalg.eigvalsh(correlation)
        if spread[-1] > _CONDITION * max(spread[0], 0.0):  # columns that nearly determine each other
            correlation += (spread[-1] - _CONDITION * spread[0]) / (_CONDITION - 1.0) * np.eye(n_features)
        weights = _weights(self, n_features)
        inverse = np.linalg.inv(correlation) / np.outer(size, size) * np.sqrt(np.outer(weights, weights))
        return replace(self, inverse=np.ascontiguousarray((inverse + inverse.T) / 2))

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        delta = _delta(z, y)
        square = np.maximum(np.einsum("nf,fg,ng->n", delta, self._inverse, delta), 0.0)
        return np.asarray(square if self.squared else np.sqrt(square))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        delta = _delta(z, y)
        slope = (delta + _SMOOTH) @ self._inverse
        if self.squared:
            return np.asarray(2.0 * slope)
        square = np.maximum((delta * slope).sum(axis=1, keepdims=True), 0.0)
        return np.asarray(slope / np.sqrt(square + _SMOOTH))

    @property
    def is_shift_invariant(self) -> bool:  # noqa: D102
        return True

    @property
    def _inverse(self) -> Floats:
        if self.inverse is None:
            raise InvalidInput("Mahalanobis must be fitted before use: call fitted(n_features, data).")
        return self.inverse

    @cached_property
    def compiled(self) -> CompiledDistance:  # noqa: D102
        metric = Metric.MAHALANOBIS_SQUARED if self.squared else Metric.MAHALANOBIS
        return CompiledDistance(metric, np.ones(len(self._inverse)), self._inverse)


@dataclass(frozen=True, eq=False)
class Sum(Distance):
    """A weighted sum of distances, as in `Manhattan() + 0.1 * FewestFeatures()`."""

    parts: tuple[tuple[float, Distance], ...]

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray(sum(factor * part.value(z, y) for factor, part in self.parts))

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray(sum(factor * part.gradient(z, y) for factor, part in self.parts))

    def fitted(self, n_features: int, data: Floats | None) -> Distance:  # noqa: D102
        return Sum(tuple((factor, part.fitted(n_features, data)) for factor, part in self.parts))

    @cached_property
    def norms(self) -> Norms | None:
        """Norms add up, except that two Euclidean parts of different shape are no one square root."""
        total = None
        for factor, part in self.parts:
            norms = part.norms
            if norms is None:
                return None
            weights = norms.weights * np.array([factor, factor**2, factor, factor])[:, None]
            if total is not None and any(total[p].any() and weights[p].any() for p in (L2, LINF)):
                return None
            total = weights if total is None else total + weights
        return None if total is None else Norms(total)


@dataclass(frozen=True, eq=False)
class UserDistance(Distance):
    """A user's own object with `value` and `gradient`."""

    own: Any

    def value(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray(self.own.value(z, y), np.float64)

    def gradient(self, z: Floats, y: Floats) -> Floats:  # noqa: D102
        return np.asarray(self.own.gradient(z, y), np.float64)


NAMED: dict[str, Distance] = {
    "euclidean": Euclidean(),
    "manhattan": Manhattan(),
    "chebyshev": Chebyshev(),
    "l0": FewestFeatures(),
    "cosine": Cosine(),
    "mahalanobis": Mahalanobis(),
}


_OTHER_NAMES = {"l1": "manhattan", "l2": "euclidean", "linf": "chebyshev"}


def full_name(name: str) -> str:
    """The name of a distance, where it was called by its norm."""
    return _OTHER_NAMES.get(name.lower(), name)


def weighted(distance: Distance, weights: Floats) -> Distance:
    """The distance with a change in each column counted so many times."""
    if isinstance(distance, Sum):
        return Sum(tuple((factor, weighted(part, weights)) for factor, part in distance.parts))
    if not is_dataclass(distance) or not hasattr(distance, "weights"):
        reject("weights", "given with a distance that has some", type(distance).__name__)
    own = getattr(distance, "weights", None)
    changed: Distance = replace(distance, weights=weights if own is None else weights * np.asarray(own, np.float64))
    return changed


def as_distance(distance: Any) -> Distance:
    """A distance from its name, a `Distance`, or a user's own object with `value` and `gradient`."""
    if isinstance(distance, Distance):
        return distance
    if isinstance(distance, str) and full_name(distance) in NAMED:
        return NAMED[full_name(distance)]
    has_both = callable(getattr(distance, "value", None)) and callable(getattr(distance, "gradient", None))
    if has_both and not isinstance(distance, type):
        return UserDistance(distance)
    reject(
        "distance", f"one of {', '.join((*NAMED, *_OTHER_NAMES))}, or an object with value and gradient", repr(distance)
    )


def _parts(distance: Distance) -> tuple[tuple[float, Distance], ...]:
    return distance.parts if isinstance(distance, Sum) else ((1.0, distance),)


def _weights(owner: _Weighted | Mahalanobis, n_features: int) -> Floats:
    """(n_features,) the distance's weights, 1 where none are given."""
    name = f"{type(owner).__name__}.weights"
    weights = np.ones(n_features) if owner.weights is None else np.ascontiguousarray(owner.weights, np.float64)
    if weights.shape != (n_features,):
        reject(name, f"one number a feature ({n_features})", f"shape {np.asarray(owner.weights).shape}")
    bad = weights[~(np.isfinite(weights) & (weights > 0))]
    if bad.size:
        reject(name, "finite numbers above 0", bad[0])
    return weights


def _delta(z: Floats, y: Floats) -> Floats:
    return np.where(np.isnan(z), 0.0, y - z)
