"""Constraints that the data seem to obey, to be accepted or left: relations between columns, each with its support.

A relation is worth a suggestion only if chance would break it. So for every candidate (`a <= b`, flags that exclude
each other, a sum that holds, a value that implies another) the rows that break it are counted, and how many would if
the columns had nothing to do with each other. A candidate is suggested if the first number is at most a share
`exceptions` of the rows it speaks of, and the second at least the share `_SURPRISE` of them, and `_FEWEST` rows.

What the data cannot say, that nobody can change a birthday, is guessed from names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.constraints.kinds import Condition, Constraint, Fixed, Implies, Linear
from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Bools, Floats

_FEWEST = 20  # rows that chance would have broken, before a relation is more than chance
_SURPRISE = 0.05  # of the rows that a relation speaks of, which chance would have broken
_GLANCE = 200  # rows that tell nearly always that there is no order
_SAMPLES, _LOOKED_AT = 3, 6  # of rows, and how many rows each, in which sums are looked for first
_MOST_COLUMNS = 60  # numeric columns among which sums are looked for
_FEW = 12  # different values of a column whose single values may imply something
_MOST_ROWS = 20_000  # looked at, evenly over the data
_IMMUTABLE = (
    "age", "birth", "birthday", "birthdate", "dob", "sex", "gender", "race", "ethnicity", "ethnic", "nationality",
    "native", "origin", "foreign", "citizenship", "religion", "disability", "pregnant", "alter", "geschlecht", "geburt",
    "herkunft", "naissance", "sexe", "genre",
)  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """A constraint that the data seem to obey.

    Attributes
    ----------
    constraint : constraint
        To be given to an Explainer as it is.
    kind : str
        "order", "exclusive", "sum", "implied" or "immutable".
    support : int
        Rows that the constraint says something about; 0 where a name is all there is.
    exceptions : int
        Those of them that break it.
    expected : float
        How many of them would, if the columns had nothing to do with each other.
    """

    constraint: Constraint
    kind: str
    support: int
    exceptions: int
    expected: float

    def to_text(self) -> str:
        """The constraint as it could be written, and what speaks for it."""
        return f"{self.constraint.to_text()}  # {self.reason}"

    @property
    def reason(self) -> str:
        """What speaks for it."""
        if self.kind == "immutable":
            return "by its name, nobody can change it"
        kept = self.support - self.exceptions
        told = f"holds in {'all' if not self.exceptions else f'{kept:,} of'} {self.support:,} rows"
        return f"{told}; by chance it would be broken in about {round(self.expected):,}"

    def __str__(self) -> str:
        return self.to_text()


class Suggestions(tuple[Suggestion, ...]):
    """Suggestions, the surest first of every kind; prints as lines of constraint text."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All of them, for an Explainer."""
        return tuple(one.constraint for one in self)

    def to_text(self) -> str:
        """A line each, with its reason behind a #."""
        return "\n".join(one.to_text() for one in self)

    def __repr__(self) -> str:
        return self.to_text() or "no suggestion"


def suggest_constraints(data: Any, *, exceptions: float = 0.0) -> Suggestions:
    """Relations that the rows of a table seem to obey, as constraints to accept or to leave.

    Parameters
    ----------
    data : table
        pandas, polars or Arrow, a matrix, or arrays by name. Missing values are left out of what they concern.
    exceptions : float
        The share of rows, of those that a relation speaks of, which may break it.

    Returns
    -------
    Suggestions
        Columns that nobody can change, by their names; `a <= b`; flags that exclude each other; sums that hold; values
        that imply others. Each has its support and its exceptions.

    Examples
    --------
    >>> import numpy as np
    >>> from treefocus import suggest_constraints
    >>> rng = np.random.default_rng(0)
    >>> income = rng.uniform(1000, 9000, 500)
    >>> data = {"net_income": income * rng.uniform(0.6, 1.0, 500), "income": income, "age": rng.integers(18, 80, 500)}
    >>> print(suggest_constraints(data))
    age fixed  # by its name, nobody can change it
    net_income - income <= 0  # holds in all 500 rows; by chance it would be broken in about 189
    """
    if not 0.0 <= exceptions < 0.5:
        reject("exceptions", "a share from 0 to below 0.5", exceptions)
    columns = _columns(data)
    numbers = {name: values for name, values in columns.items() if values.dtype == np.float64}
    flags = {name: values for name, values in numbers.items() if _is_flag(values)}
    sized = {name: values for name, values in numbers.items() if name not in flags and np.unique(values).size > 2}
    sums, exclusive = list(_sums(sized, exceptions)), _by_surprise(_exclusive(flags, exceptions))
    return Suggestions(
        [
            *_immutable(columns),
            *_by_surprise(_orders(sized, exceptions, _related(sums))),
            *exclusive,
            *sums,
            *_by_surprise(_implied(columns, exceptions, _related(exclusive))),
        ]
    )


def _related(found: Sequence[Suggestion]) -> set[frozenset[str | int]]:
    """Columns whose relation is suggested already."""
    return {frozenset(one.constraint.coefficients) for one in found if isinstance(one.constraint, Linear)}


def _by_surprise(found: Iterator[Suggestion]) -> list[Suggestion]:
    return sorted(found, key=lambda one: -one.expected)


def _columns(data: Any) -> dict[str, NDArray[Any]]:
    """Numbers as floats with NaN, categories as objects with None; rows evenly over the data."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        given: dict[str, Any] = {name: frame.get_column(name).to_list() for name in frame.columns}
    elif isinstance(data, Mapping):
        given = {str(name): list(column) for name, column in data.items()}
    else:
        array = np.asarray(data)
        if array.ndim != 2:
            reject("data", "a table, rows by columns", f"{array.ndim} dimensions")
        given = {f"feature {j}": array[:, j].tolist() for j in range(array.shape[1])}
    if not given or not len(next(iter(given.values()))):
        raise InvalidInput("data must have rows and columns, got none.")
    n_rows = len(next(iter(given.values())))
    kept = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(int))
    return {name: _as_array([column[i] for i in kept]) for name, column in given.items()}


def _as_array(cells: Sequence[Any]) -> NDArray[Any]:
    is_number = all(cell is None or isinstance(cell, bool | np.bool_ | int | float | np.number) for cell in cells)
    if is_number:
        return np.array([np.nan if cell is None else float(cell) for cell in cells], np.float64)
    return np.array([*(None if cell is None or cell != cell else str(cell) for cell in cells), None], object)[:-1]


def _is_flag(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return bool(known.size and np.isin(known, (0.0, 1.0)).all())


def _is_surprising(support: int, broken: int, expected: float, exceptions: float) -> bool:
    return broken <= exceptions * support and expected >= max(_FEWEST, _SURPRISE * support)


def _immutable(columns: Mapping[str, NDArray[Any]]) -> Iterator[Suggestion]:
    for name in columns:
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
        if any(word in _IMMUTABLE for word in words):
            yield Suggestion(Fixed(name), "immutable", 0, 0, 0.0)


def _orders(numbers: Mapping[str, Floats], exceptions: float, taken: set[frozenset[str | int]]) -> Iterator[Suggestion]:
    """`a <= b`, where a column's values could well be above the other's."""
    for first, second in permutations(numbers, 2):
        if any({first, second} <= columns for columns in taken):
            continue  # a part of a sum is below the whole anyway
        if (numbers[first][:_GLANCE] > numbers[second][:_GLANCE]).mean() > 2 * exceptions:
            continue  # most pairs fail at a glance
        a, b, n = _known(numbers[first], numbers[second])
        broken = int((a > b).sum())
        if not n or broken > exceptions * n:
            continue
        # By chance: for every b, the share of all a that are above it.
        above = n - np.searchsorted(np.sort(a), b, side="right")
        expected = float(above.sum() / n)
        if _is_surprising(n, broken, expected, exceptions):
            yield Suggestion(Linear({first: 1.0, second: -1.0}, at_most=0.0), "order", n, broken, expected)


def _exclusive(flags: Mapping[str, Floats], exceptions: float) -> Iterator[Suggestion]:
    """Flags of which no row has two."""
    for first, second in combinations(flags, 2):
        a, b, n = _known(flags[first], flags[second])
        both, either = int(((a == 1) & (b == 1)).sum()), int(((a == 1) | (b == 1)).sum())
        expected = float(a.sum() * b.sum() / n) if n else 0.0
        if both <= exceptions * either and expected >= _FEWEST:
            yield Suggestion(Linear({first: 1.0, second: 1.0}, at_most=1.0), "exclusive", either, both, expected)


def _sums(numbers: Mapping[str, Floats], exceptions: float) -> Iterator[Suggestion]:
    """A whole that is the sum of two to four other columns: two constraints, one a side."""
    names, told = list(numbers)[:_MOST_COLUMNS], set()
    for whole, parts in _candidates(names, numbers):
        table = np.column_stack([numbers[name] for name in (whole, *parts)])
        known = table[~np.isnan(table).any(axis=1)]
        off = np.abs(known[:, 1:].sum(axis=1) - known[:, 0]) > _precision(known[:, 0])
        if whole in told or len(known) < _FEWEST or off.sum() > exceptions * len(known):
            continue
        told.add(whole)
        for sign in (1.0, -1.0):
            coefficients: dict[str, float] = dict.fromkeys(parts, sign) | {whole: -sign}
            yield Suggestion(Linear(coefficients, at_most=0.0), "sum", len(known), int(off.sum()), float(len(known)))


def _candidates(names: Sequence[str], numbers: Mapping[str, Floats]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Wholes with their fewest parts, as far as a few rows can tell: sums of two are kept by what they add up to, so
    that three and four parts are one look-up each. Several samples of rows, for some may hold exceptions."""
    if len(names) < 3:
        return
    table = np.column_stack([numbers[name] for name in names])
    complete = np.flatnonzero(~np.isnan(table).any(axis=1))
    found: set[tuple[str, ...]] = set()
    for sample in np.array_split(complete, _SAMPLES):
        if len(sample) < _LOOKED_AT:
            continue
        rows = table[sample[np.linspace(0, len(sample) - 1, _LOOKED_AT).astype(int)]]
        # Written decimals are whole multiples of such a grain. A column is one number, a weighted sum of its rows in
        # grains: of columns that add up, these add up, and of others hardly ever.
        grain = 10.0 ** (np.ceil(np.log10(max(float(np.abs(rows).max()), 1.0))) - 12)
        weights = [int(w) for w in np.random.default_rng(0).integers(1, 2**40, len(rows))]
        codes = {
            name: sum(w * round(value / grain) for w, value in zip(weights, rows[:, j], strict=True))
            for j, name in enumerate(names)
            if rows[:, j].any()
        }
        for whole, parts in _adding_up(codes):
            if (whole, *parts) not in found:
                found.add((whole, *parts))
                yield whole, parts


def _adding_up(codes: Mapping[str, int]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Numbers that are sums of two to four others, each with the fewest."""
    pairs: dict[int, list[tuple[str, ...]]] = {}
    for first, second in combinations(codes, 2):
        pairs.setdefault(codes[first] + codes[second], []).append((first, second))
    starts: list[tuple[str, ...]] = [(), *((name,) for name in codes), *combinations(codes, 2)]
    added = [sum(codes[name] for name in start) for start in starts]
    for whole, code in codes.items():
        for start, total in zip(starts, added, strict=True):
            ends = [
                end for end in pairs.get(code - total, ()) if len({whole, *start, *end}) == 1 + len(start) + len(end)
            ]
            if ends:
                yield whole, (*start, *ends[0])
                break


def _precision(values: Floats) -> Floats:
    """What a sum of written decimals may be off by."""
    return np.asarray(1e-9 * np.maximum(np.abs(values), 1.0))


def _implied(
    columns: Mapping[str, NDArray[Any]], exceptions: float, taken: set[frozenset[str | int]]
) -> Iterator[Suggestion]:
    """A value of one column with which another has always the same value."""
    few = {name: values for name, values in columns.items() if 1 < len(_distinct(values)) <= _FEW}
    for first, second in permutations(few, 2):
        if frozenset((first, second)) in taken:
            continue  # flags that exclude each other
        a, b = few[first], few[second]
        known = ~_is_missing(a) & ~_is_missing(b)
        for value in _distinct(a):
            chosen = known & (a == value)
            support = int(chosen.sum())
            if support < _FEWEST:
                continue
            kinds, counts = np.unique(b[chosen], return_counts=True)
            usual, broken = kinds[counts.argmax()], support - int(counts.max())
            expected = support * float((b[known] != usual).mean())
            if _is_surprising(support, broken, expected, exceptions):
                rule = Implies(_condition(first, value), _condition(second, usual))
                yield Suggestion(rule, "implied", support, broken, expected)


def _condition(name: str, value: Any) -> Condition:
    if isinstance(value, str):
        return Condition(name, values=(value,))
    return Condition(name, low=float(value), high=float(value))


def _distinct(values: NDArray[Any]) -> list[Any]:
    known = values[~_is_missing(values)]
    return np.unique(known).tolist() if known.size else []


def _is_missing(values: NDArray[Any]) -> Bools:
    if values.dtype == np.float64:
        return np.asarray(np.isnan(values))
    return np.array([value is None for value in values], bool)


def _known(first: Floats, second: Floats) -> tuple[Floats, Floats, int]:
    """Rows in which both are known."""
    known = ~np.isnan(first) & ~np.isnan(second)
    return first[known], second[known], int(known.sum())
