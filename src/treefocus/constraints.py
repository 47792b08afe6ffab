"""What an answer may not do. These constraints narrow, row by row, the box an answer must lie in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.forest import Bools, Floats
from treefocus.schema import Schema


class Constraint(ABC):
    """Base of all constraints."""

    @abstractmethod
    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:
        """Narrow the boxes [low, high] of the rows in place; all (n_rows, n_features), in the user's units.

        A category is its number. NaN as a bound leaves nothing but a missing value.
        """

    def allow_missing(self, may_be_missing: Bools, schema: Schema) -> None:  # noqa: B027
        """Mark, in place, the columns (n_features,) whose values may become missing."""


class _OfColumns(Constraint):
    """A constraint on each of the named columns."""

    def __init__(self, *columns: str | int) -> None:
        if not columns:
            reject(f"{type(self).__name__}(...)", "given at least one column", "none")
        for column in columns:
            if not isinstance(column, str | Integral):
                reject(f"{type(self).__name__}(...)", "given names or numbers of columns", repr(column))
        self.columns = columns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.columns))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.columns == getattr(other, "columns", None)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.columns))


class Fixed(_OfColumns):
    """These columns keep their values: `Fixed("age", "sex")`."""

    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:  # noqa: D102
        for column in self.columns:
            j = schema.index(column)
            low[:, j] = np.maximum(low[:, j], rows[:, j])
            high[:, j] = np.minimum(high[:, j], rows[:, j])


class Increasing(_OfColumns):
    """These columns may only grow: `Increasing("education_years")`."""

    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:  # noqa: D102
        for column in self.columns:
            j = schema.index(column)
            low[:, j] = np.maximum(low[:, j], rows[:, j])


class Decreasing(_OfColumns):
    """These columns may only shrink: `Decreasing("debt")`."""

    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:  # noqa: D102
        for column in self.columns:
            j = schema.index(column)
            high[:, j] = np.minimum(high[:, j], rows[:, j])


class MayBeMissing(_OfColumns):
    """These columns may become missing, where the model takes that: `MayBeMissing("phone")`."""

    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:
        """Nothing to narrow."""

    def allow_missing(self, may_be_missing: Bools, schema: Schema) -> None:  # noqa: D102
        for column in self.columns:
            may_be_missing[schema.index(column)] = True


@dataclass(frozen=True)
class Range(Constraint):
    """A column must end up between two values, wherever it started: `Range("income", 0, 200_000)`."""

    column: str | int
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not isinstance(bound, Real):
                reject(f"Range({self.column!r})", "from a number to a number", repr(bound))
        if not self.low <= self.high:
            reject(f"Range({self.column!r})", "from a low to a high value", f"{self.low} to {self.high}")

    def narrow(self, rows: Floats, low: Floats, high: Floats, schema: Schema) -> None:  # noqa: D102
        j = schema.index(self.column)
        low[:, j] = np.maximum(low[:, j], self.low)
        high[:, j] = np.minimum(high[:, j], self.high)


def as_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """One constraint or several, as a tuple."""
    is_several = isinstance(constraints, Iterable) and not isinstance(constraints, str)
    several = tuple(constraints) if is_several else (constraints,)
    for constraint in several:
        if not isinstance(constraint, Constraint):
            reject("constraints", "Fixed, Range, Increasing or Decreasing", repr(constraint))
    return several
