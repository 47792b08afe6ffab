"""What an answer may not do.

Most constraints narrow, row by row, the box an answer must lie in, or say which values of a column count. Some relate
columns to each other; those become rules (kernels/rules.py), which every search obeys and the exact one proves under.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from treefocus.constraints import words
from treefocus.constraints.draft import Draft
from treefocus.errors import reject
from treefocus.kernels import rules
from treefocus.schema.dates import micros_of


class Constraint:
    """Base of all constraints."""

    def apply(self, draft: Draft) -> None:
        """Write the constraint into the draft."""
        raise NotImplementedError

    def to_text(self) -> str:
        """The constraint as a line of text, which can be read again; of a kind without words, as Python shows it."""
        return repr(self)


class _OfColumns(Constraint):
    """A constraint on each of the named columns."""

    words: ClassVar[str]  # that stand after the columns in a line of text

    def __init__(self, *columns: str | int) -> None:
        if not columns:
            reject(f"{type(self).__name__}(...)", "given at least one column", "none")
        for column in columns:
            if not isinstance(column, str | Integral):
                reject(f"{type(self).__name__}(...)", "given names or numbers of columns", repr(column))
        self.columns = columns

    def to_text(self) -> str:
        return f"{words.listed(self.columns)} {self.words}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.columns))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.columns == getattr(other, "columns", None)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.columns))


class Fixed(_OfColumns):
    """These columns keep their values: `Fixed("age", "sex")`.

    Parameters
    ----------
    *columns : str or int
        Names or numbers of columns.

    Examples
    --------
    >>> from treefocus import Fixed
    >>> Fixed("age", "sex")
    Fixed('age', 'sex')
    """

    words = "fixed"

    def apply(self, draft: Draft) -> None:  # noqa: D102
        for j in draft.columns(self.columns):
            draft.low[:, j] = np.maximum(draft.low[:, j], draft.rows[:, j])
            draft.high[:, j] = np.minimum(draft.high[:, j], draft.rows[:, j])
            draft.is_fixed[j] = True


class Increasing(_OfColumns):
    """These columns may only grow: `Increasing("education_years")`; of ordered categories, towards the last one.

    The order is the schema's, else that of an ordered dtype, never the alphabet's. A missing value stays missing.

    Parameters
    ----------
    *columns : str or int
        Names or numbers of columns.

    Examples
    --------
    >>> from treefocus import Increasing
    >>> Increasing("education_years")
    Increasing('education_years')
    """

    words = "increasing"

    def apply(self, draft: Draft) -> None:  # noqa: D102
        draft.only_towards(self.columns, 1, "Increasing")


class Decreasing(_OfColumns):
    """These columns may only shrink: `Decreasing("debt")`; of ordered categories, towards the first one.

    The order is the schema's, else that of an ordered dtype, never the alphabet's. A missing value stays missing.

    Parameters
    ----------
    *columns : str or int
        Names or numbers of columns.

    Examples
    --------
    >>> from treefocus import Decreasing
    >>> Decreasing("debt")
    Decreasing('debt')
    """

    words = "decreasing"

    def apply(self, draft: Draft) -> None:  # noqa: D102
        draft.only_towards(self.columns, -1, "Decreasing")


class MayBeMissing(_OfColumns):
    """These columns may become missing, where the model takes that: `MayBeMissing("phone")`; not one that is fixed.

    Parameters
    ----------
    *columns : str or int
        Names or numbers of columns.

    Examples
    --------
    >>> from treefocus import MayBeMissing
    >>> MayBeMissing("phone")
    MayBeMissing('phone')
    """

    words = "may be missing"

    def apply(self, draft: Draft) -> None:  # noqa: D102
        draft.may_be_missing[draft.columns(self.columns)] = True


class Together(_OfColumns):
    """These columns change all or not at all: `Together("latitude", "longitude")`.

    Parameters
    ----------
    *columns : str or int
        Names or numbers of columns.

    Examples
    --------
    >>> from treefocus import Together
    >>> Together("latitude", "longitude")
    Together('latitude', 'longitude')
    """

    words = "together"

    def apply(self, draft: Draft) -> None:  # noqa: D102
        draft.rules.append(rules.TogetherRule(np.array(draft.columns(self.columns), np.int32)))


@dataclass(frozen=True)
class Range(Constraint):
    """A column must end up between two values, wherever it started: `Range("income", 0, 200_000)`.

    relative: the bounds are shares of the row's own value: `Range("income", -0.1, 0.1, relative=True)` is ten per cent
    up or down.

    Parameters
    ----------
    column : str or int
        Its name or number.
    low, high : float or date
        Where it must end up; a side that is left out has no limit.
    relative : bool
        Whether the bounds are shares of the row's own value.

    Examples
    --------
    >>> from treefocus import Range
    >>> Range("income", 0, 200_000).high
    200000
    """

    column: str | int
    low: float | date = -np.inf
    high: float | date = np.inf
    relative: bool = False

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not isinstance(bound, Real) and (self.relative or not isinstance(bound, date)):
                reject(f"Range({self.column!r})", "from a number to a number, or a date to a date", repr(bound))
        if not _is_ordered(self.low, self.high):
            reject(f"Range({self.column!r})", "from a low to a high value", f"{self.low} to {self.high}")

    def apply(self, draft: Draft) -> None:  # noqa: D102
        j, what = draft.schema.index(self.column), f"Range({self.column!r})"
        draft.number(j, what)
        if not self.relative:
            low, high = (np.full(len(draft.rows), draft.value(j, end, what)) for end in (self.low, self.high))
        elif draft.schema.features[j].is_date:
            reject(what, "from a date to a date", f"shares of {self.column!r}, which holds dates")
        else:
            own, ends = draft.rows[:, j], (float(end) for end in (self.low, self.high) if not isinstance(end, date))
            low, high = (own + (share if np.isinf(share) else share * np.abs(own)) for share in ends)
            # an infinite share is no limit, of 0 neither
        draft.low[:, j] = np.maximum(draft.low[:, j], low)
        draft.high[:, j] = np.minimum(draft.high[:, j], high)

    def to_text(self) -> str:  # noqa: D102
        if isinstance(self.low, date) or isinstance(self.high, date) or not self.relative:
            return words.between(self.column, self.low, self.high)
        return words.relative(self.column, self.low, self.high)


@dataclass(frozen=True, init=False)
class OneOf(Constraint):
    """A column must end up at one of these values or categories: `OneOf("term", [12, 24, 36])`.

    Of these, a column takes those that it can hold: whole numbers, say. A missing value has to become one of them,
    unless the column `MayBeMissing`; so has a category that the model has not seen.

    Parameters
    ----------
    column : str or int
        Its name or number.
    values : iterable
        Numbers, dates or categories.

    Examples
    --------
    >>> from treefocus import OneOf
    >>> OneOf("term", [12, 24, 36]).values
    (12, 24, 36)
    """

    column: str | int
    values: tuple[Any, ...]

    def __init__(self, column: str | int, values: Iterable[Any]) -> None:
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "values", (values,) if isinstance(values, str) else tuple(values))
        if not self.values:
            reject(f"OneOf({column!r})", "given at least one value", "none")

    def apply(self, draft: Draft) -> None:  # noqa: D102
        j, what = draft.schema.index(self.column), f"OneOf({self.column!r})"
        if draft.labels[j] is not None:
            named = draft.categories(j, self.values, what)
            draft.named[j] = named & draft.named.get(j, np.ones_like(named))
            return
        for value in self.values:
            if not isinstance(value, date) and not (isinstance(value, Real) and np.isfinite(float(value))):
                reject(what, "given finite numbers, or dates", repr(value))
        values = np.unique(np.array([draft.value(j, value, what) for value in self.values], np.float64))
        draft.listed[j] = np.intersect1d(values, draft.listed.get(j, values))

    def to_text(self) -> str:  # noqa: D102
        return words.among(self.column, self.values)


@dataclass(frozen=True, init=False)
class AtMost(Constraint):
    """No more than n columns change: `AtMost(3)`; of those named, if any are: `AtMost(1, "income", "debt")`.

    Parameters
    ----------
    n : int
        How many may change.
    *columns : str or int
        Of these; of all if not given.

    Examples
    --------
    >>> from treefocus import AtMost
    >>> AtMost(1, "income", "debt").columns
    ('income', 'debt')
    """

    n: int
    columns: tuple[str | int, ...]

    def __init__(self, n: int, *columns: str | int) -> None:
        if not isinstance(n, Integral) or int(n) < 0:
            reject("AtMost(n)", "a whole number from 0 up", repr(n))
        object.__setattr__(self, "n", int(n))
        object.__setattr__(self, "columns", columns)

    def apply(self, draft: Draft) -> None:  # noqa: D102
        columns = draft.columns(self.columns) if self.columns else range(len(draft.schema))
        draft.rules.append(rules.AtMostRule(np.array(columns, np.int32), self.n))

    def to_text(self) -> str:  # noqa: D102
        changes = "change" if self.n == 1 else "changes"
        return f"at most {self.n} {changes}" + (f" of {words.listed(self.columns)}" if self.columns else "")


@dataclass(frozen=True, init=False)
class Linear(Constraint):
    """The columns' values, times their coefficients, add up to no more: `Linear({"debt": 1, "income": -2}, at_most=0)`.

    A row in which one of them is missing is not bound by it. Of dates only the time between two of them can be meant,
    and is in days.

    Parameters
    ----------
    coefficients : mapping of columns to float
        What each value is multiplied with.
    at_most : float
        What the sum may be.

    Examples
    --------
    >>> from treefocus import Linear
    >>> Linear({"debt": 1, "income": -2}, at_most=0).at_most
    0.0
    """

    coefficients: Mapping[str | int, float] = field(hash=False)
    at_most: float

    def __init__(self, coefficients: Mapping[Any, float], at_most: float = 0.0) -> None:
        for number in (*coefficients.values(), at_most):
            if not isinstance(number, Real) or not np.isfinite(float(number)):
                reject("Linear", "of finite numbers", repr(number))
        object.__setattr__(self, "coefficients", {name: c for name, c in coefficients.items() if c != 0})
        object.__setattr__(self, "at_most", float(at_most))
        if not self.coefficients:
            reject("Linear", "given at least one column with a coefficient other than 0", "none")

    def apply(self, draft: Draft) -> None:  # noqa: D102
        columns = [draft.number(draft.schema.index(name), "Linear") for name in self.coefficients]
        per_day = draft.days(columns, sum(self.coefficients.values()))
        coefficient = np.array(list(self.coefficients.values()), np.float64)
        draft.rules.append(rules.LinearRule(np.array(columns, np.int32), coefficient, self.at_most * per_day))

    def to_text(self) -> str:  # noqa: D102
        return f"{words.total(self.coefficients)} <= {words.number(self.at_most)}"


@dataclass(frozen=True)
class Condition:
    """A column between two values, or at one of some categories: `Condition("employed", values=["no"])`.

    Parameters
    ----------
    column : str or int
        Its name or number.
    low, high : float or date
        Of a column of numbers or dates; a side that is left out has no limit.
    values : sequence, optional
        Categories, or one number.

    Examples
    --------
    >>> from treefocus import Condition
    >>> Condition("employed", values=["no"]).values
    ('no',)
    """

    column: str | int
    low: float | date = -np.inf
    high: float | date = np.inf
    values: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.values is not None:
            object.__setattr__(self, "values", (self.values,) if isinstance(self.values, str) else tuple(self.values))
        if not _is_ordered(self.low, self.high):
            reject(f"Condition({self.column!r})", "from a low to a high value", f"{self.low} to {self.high}")

    def cells(self, draft: Draft) -> rules.Cells:
        """The condition as a rule takes it."""
        j, what = draft.schema.index(self.column), f"Condition({self.column!r})"
        if draft.labels[j] is not None:
            if self.values is None:
                reject(what, "about categories: values=[...]", "numbers")
            return rules.Cells(j, 0.0, 0.0, draft.categories(j, self.values, what))
        if self.values is None:
            return rules.Cells(j, draft.value(j, self.low, what), draft.value(j, self.high, what))
        if len(self.values) != 1 or not isinstance(self.values[0], Real | date):
            reject(what, "a range, or one number, of a column of numbers", repr(self.values))
        number = draft.value(j, self.values[0], what)
        return rules.Cells(j, number, number)

    def to_text(self) -> str:
        """The condition as it stands in a line of text."""
        if self.values is not None:
            return words.among(self.column, self.values)
        return words.between(self.column, self.low, self.high)


@dataclass(frozen=True)
class Implies(Constraint):
    """Where one condition holds, another must: `Implies(Condition("age", high=17), Condition("married", high=0))`.

    A missing value meets no condition.

    Parameters
    ----------
    cause, effect : Condition
        The one that may hold, and the one that then must.

    Examples
    --------
    >>> from treefocus import Implies, Condition
    >>> Implies(Condition("age", high=17), Condition("married", high=0)).cause.high
    17
    """

    cause: Condition
    effect: Condition

    def __post_init__(self) -> None:
        for condition in (self.cause, self.effect):
            if not isinstance(condition, Condition):
                reject("Implies", "made of two Conditions", repr(condition))

    def apply(self, draft: Draft) -> None:  # noqa: D102
        draft.rules.append(rules.ImpliesRule(self.cause.cells(draft), self.effect.cells(draft)))

    def to_text(self) -> str:  # noqa: D102
        return f"if {self.cause.to_text()} then {self.effect.to_text()}"


def _is_ordered(low: float | date, high: float | date) -> bool:
    """Whether one end is not above the other; a date is neither above nor below a number, of which only ∞ is none."""
    if isinstance(low, date) and isinstance(high, date):
        return micros_of(low) <= micros_of(high)
    if isinstance(low, date) or isinstance(high, date):
        return (isinstance(low, date) or low == -np.inf) and (isinstance(high, date) or high == np.inf)
    return bool(low <= high)
