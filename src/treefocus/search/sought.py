"""A row's parts that are still open, the one with the least bound first, and the best answer so far."""

from __future__ import annotations

import heapq
from typing import Generic, Protocol, TypeVar

import numpy as np

from treefocus.model.forest import Floats
from treefocus.search.base import Status

_SAME = 4e-10  # as a share: two distances that differ by less are the same; the exact search is right to 1e-10
_NOISE = 1e-12


class Bounded(Protocol):
    """Something in which no answer is closer than its bound."""

    @property
    def bound(self) -> float:
        """Proven: no answer in it is closer."""


One = TypeVar("One", bound=Bounded)


class Sought(Generic[One]):
    """What is known of a row while its parts are searched best first."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts: list[tuple[float, int, One]] = []
        self.point: Floats | None = None
        self.distance = np.inf
        self.undecided = np.inf  # the least bound of parts that nobody can say more about
        self._n_made = 0

    def add(self, part: One) -> None:
        """Leave a part open."""
        self._n_made += 1
        heapq.heappush(self.parts, (part.bound, self._n_made, part))

    def next(self, n: int) -> list[One]:
        """The parts with the least bounds that may hold something closer."""
        found: list[One] = []
        while self.parts and len(found) < n and self.is_open:
            found.append(heapq.heappop(self.parts)[2])
        return found

    def leave(self, bound: float) -> None:
        """Of a part nobody can say more than its bound."""
        self.undecided = min(self.undecided, bound)

    def offer(self, point: Floats, distance: float) -> None:
        """An answer."""
        if distance < self.distance:
            self.point, self.distance = point, distance

    @property
    def limit(self) -> float:
        """Bounds from here on settle a part."""
        return self.distance * (1.0 - _SAME) - _NOISE if np.isfinite(self.distance) else np.inf

    @property
    def least(self) -> float:
        """The least bound of the open parts."""
        return self.parts[0][0] if self.parts else np.inf

    @property
    def is_open(self) -> bool:
        """Whether an open part may hold something closer."""
        return bool(self.parts) and self.least < self.limit

    @property
    def bound(self) -> float:
        """Proven: no answer is closer."""
        return min(self.undecided, self.least, self.distance)

    def told(self) -> tuple[Floats | None, float, float, Status]:
        """The answer, what it costs, what is proven, and how the row came out."""
        if self.point is not None:
            is_settled = not self.is_open and self.undecided >= self.limit
            bound = self.distance if is_settled else min(self.bound, self.distance)
            return self.point, self.distance, bound, Status.OPTIMAL if is_settled else Status.BOUNDED
        if not self.parts and not np.isfinite(self.undecided):
            return None, np.nan, np.inf, Status.INFEASIBLE
        return None, np.nan, min(self.bound, np.finfo(np.float64).max), Status.NOT_FOUND
