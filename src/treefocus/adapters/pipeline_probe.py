"""Asking a pipeline's fitted preprocessing what it makes of raw values, and from which raw value on it passes a cut.

The preprocessing is never imitated: thresholds are pulled back by bisection over the float64 numbers themselves, with
the fitted steps as the judge, and every category is sent through them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from treefocus.model.categories import Labels
from treefocus.model.forest import LARGEST, Bools, Floats
from treefocus.model.grid import as_input
from treefocus.schema.dates import AS_READ, moments_of

_WIDEST = 1e300  # larger numbers are not tried
_HALVINGS = 30  # to find where a step gives up: its exponent and a few digits
_TRIED_AT_ONCE = 20_000  # raw values: fewer calls of the steps, which cost more than rows
_OFFSETS = (1, 2, 8, 1 << 18, 1 << 28, 1 << 42)  # floats to each side of a guess; most are hit within two
_USUAL = 1.0  # a number that nearly every step reads
_OTHERS = np.outer(10.0 ** np.arange(13), [2, 5, -1, 0.5, 0.2, -0.5]).ravel()  # numbers to try where one does not
Reach = tuple[Floats, Floats]  # the smallest and the largest number of every column


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows as the pipeline was fitted on them, from rows in the forest's coding."""

    names: tuple[str, ...] | None
    labels: Labels
    absent: Sequence[Any]  # how each column writes a missing category
    dates: frozenset[int] = frozenset()  # columns of dates, counted as `AS_READ`

    def of(self, rows: Floats) -> Any:
        """A DataFrame where the pipeline knows names, else a matrix."""
        columns = [self._column(j, rows[:, j]) for j in range(len(self.labels))]
        if self.names is None:
            is_numeric = all(column.dtype.kind == "f" for column in columns)
            return np.stack(columns, axis=1) if is_numeric else np.stack([c.astype(object) for c in columns], axis=1)
        return _frame(self.names, columns)

    def _column(self, j: int, codes: Floats) -> NDArray[Any]:
        own = self.labels[j]
        if j in self.dates:
            return moments_of(codes, AS_READ)
        if own is None:
            return codes
        if all(isinstance(label, int | float) and not isinstance(label, bool) for label in own):
            known = np.array([*map(float, own), unseen_label(own), np.nan])
        else:
            known = np.empty(len(own) + 2, object)
            known[:] = [*own, unseen_label(own), self.absent[j]]
        number = np.where(np.isnan(codes), len(own) + 1, codes).astype(np.intp)
        return np.asarray(known[number])


def unseen_label(labels: Sequence[Any]) -> Any:
    """A label like these that is none of them."""
    if labels and all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
        return float(max(labels)) + 1.0
    label = "something else"
    while label in labels:
        label += "?"
    return label


def _frame(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> Any:
    if find_spec("pandas") is not None:
        import pandas

        if all(column.dtype == np.float64 for column in columns):  # one block, by far the quickest to make and to read
            return pandas.DataFrame(np.array(columns).T, columns=list(names))
        made = {name: pandas.Series(column, dtype=column.dtype) for name, column in zip(names, columns, strict=True)}
        return pandas.DataFrame(made)
    import polars

    made = {name: column.tolist() for name, column in zip(names, columns, strict=True)}
    return nw.from_dict(made, backend=polars).to_native()


@dataclass(frozen=True, eq=False)
class Probe:
    """The fitted preprocessing as a function from rows in the forest's coding to features."""

    transform: Callable[[Any], Any]
    raw: RawRows

    @cached_property
    def usual(self) -> Floats:
        """(n_columns,) a row that the preprocessing reads: a 1 in every number, the first of every column's labels.

        Where a step makes no number of a 1, as log(x - 1) does, the first one of those to try of which it does.
        """
        row = np.array([_USUAL if own is None else 0.0 for own in self.raw.labels])
        n_unread = self._unread(row[None, :])[0]
        for j in np.flatnonzero([own is None for own in self.raw.labels]) if n_unread else ():
            rows = np.repeat(row[None, :], len(_OTHERS), axis=0)
            rows[:, j] = _OTHERS
            counts = self._unread(rows)
            if counts.min() < n_unread:
                row, n_unread = rows[counts.argmin()], counts.min()
        return row

    def _unread(self, rows: Floats) -> NDArray[np.intp]:
        """(n,) how many features of each row are no numbers; none where a step refuses the rows."""
        try:
            with config_context(assume_finite=True):
                made = self.features(rows)
        except (ValueError, TypeError):
            return np.zeros(len(rows), np.intp)
        return np.zeros(len(rows), np.intp) if made.dtype == object else (~np.isfinite(made)).sum(axis=1)

    def features(self, rows: Floats) -> NDArray[Any]:
        """(n_rows, n_features) what the preprocessing makes of the rows; ValueError where it refuses one."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made = self.transform(self.raw.of(rows))
            except (AttributeError, ArithmeticError, LookupError) as error:  # of a function of the user's own
                raise ValueError(f"The pipeline's steps refuse a value: {error!r}.") from error
            made = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        return np.asarray(made if made.dtype == object else made.astype(np.float64))

    def varied(self, column: int, codes: Floats) -> NDArray[Any] | None:
        """The features of usual rows with these values in one column; None where a value is refused."""
        rows = np.repeat(self.usual[None, :], len(codes), axis=0)
        rows[:, column] = codes
        try:
            return self.features(rows)
        except (ValueError, TypeError):
            return None

    def reach(self, columns: Sequence[int]) -> Reach:
        """(n_columns,) about the smallest and the largest number of every numeric column that the preprocessing reads.

        Some steps overflow early, and Box-Cox reads no number below 0.
        """
        low, high = np.full(len(self.raw.labels), -_WIDEST), np.full(len(self.raw.labels), _WIDEST)
        rows = np.repeat(self.usual[None, :], 2, axis=0)
        rows[:, list(columns)] = [[-_WIDEST], [_WIDEST]]
        if not self._reads(rows).all():
            for ends, far in ((low, -_WIDEST), (high, _WIDEST)):
                ends[list(columns)] = self._ends(np.array(columns), far)
        return low, high

    def line(self, columns: Sequence[int], column_of: NDArray[np.intp]) -> Line | None:
        """What every feature would be if the steps went in straight lines; None where features are no numbers."""
        usual = self.usual
        rows = np.repeat(usual[None, :], 2, axis=0)
        rows[1, list(columns)] *= 2
        try:
            made = self.features(rows)
        except (ValueError, TypeError):
            return None
        if made.dtype == object:
            return None
        own = np.where(usual == 0, _USUAL, usual)[column_of]  # a category is 0, and no line
        return Line(own, made[0], (made[1] - made[0]) / own, column_of, len(usual))

    def reads(self, columns: Sequence[int], input_dtype: str, reach: Reach, of_line: Line | None = None) -> Floats:
        """(2, n_columns) the smallest and the largest number of every column that is finite for the model behind."""
        ends = np.stack([np.full(len(reach[0]), -LARGEST), np.full(len(reach[0]), LARGEST)])
        if not columns:
            return ends
        side, column = np.repeat([0, 1], len(columns)), np.tile(np.array(columns), 2)  # both ends of each at once
        sign, far = np.where(side, 1.0, -1.0), np.stack(reach)[side, column]

        def is_read(values: Floats, which: NDArray[np.intp]) -> Bools:
            """Whether each number is, the others as usual; (m, k) for k of the ends."""
            rows = np.repeat(self.usual[None, :], values.size, axis=0)
            rows[np.arange(values.size), np.tile(column[which], len(values))] = (sign[which] * values).reshape(-1)
            made = self.features(rows)
            if made.dtype == object:
                return np.ones(values.shape, bool)
            is_finite = np.isfinite(as_input(made, input_dtype))
            return np.asarray(is_finite.all(axis=1)).reshape(values.shape)

        guess = None if of_line is None else sign * of_line.far(input_dtype)[side, column]
        found = pull_back(is_read, sign * self.usual[column], sign * far, guess)
        is_end = (found == LARGEST) & (np.abs(far) < _WIDEST)  # a step gives up before the model does
        ends[side, column] = np.where(is_end, far, sign * found)
        return ends

    def _ends(self, columns: NDArray[np.intp], far: float) -> Floats:
        """(k,) per column a number that is read, on the way from the usual one to one far off, as far as can be.

        A step that refuses an infinity refuses all rows for one. So the search goes past such checks and looks itself;
        where what it finds is refused after all, as a later step hid an infinity, it starts again with the checks.
        """
        if self._reads(self.usual[None, :], takes_infinite=False).all():
            with config_context(assume_finite=True):
                found = self._halved(columns, far, takes_infinite=False)
            if self._read_alone(columns, found).all():
                return found
        return self._halved(columns, far)

    def _halved(self, columns: NDArray[np.intp], far: float, *, takes_infinite: bool = True) -> Floats:
        read, refused = _ordered(self.usual[columns]), _ordered(np.full(len(columns), far))
        is_open = ~self._read_alone(columns, _number(refused), takes_infinite=takes_infinite)
        read = np.where(is_open, read, refused)
        for _ in range(_HALVINGS if is_open.any() else 0):
            middle = (read & refused) + ((read ^ refused) >> 1)  # halfway, without an overflow
            is_read = self._read_alone(columns, _number(middle), takes_infinite=takes_infinite)
            read, refused = np.where(is_read, middle, read), np.where(is_read, refused, middle)
        return _number(read)

    def _read_alone(self, columns: NDArray[np.intp], values: Floats, *, takes_infinite: bool = True) -> Bools:
        """(k,) whether each number is read in its column, the others as usual."""
        rows = np.repeat(self.usual[None, :], len(columns), axis=0)
        rows[np.arange(len(columns)), columns] = values
        return self._reads(rows, takes_infinite=takes_infinite)

    def _reads(self, rows: Floats, *, takes_infinite: bool = True) -> Bools:
        """(n,) which rows are read; where a step refuses them all because of one, they are asked in halves."""
        try:
            made = self.features(rows)
        except (ValueError, TypeError):
            if len(rows) == 1:
                return np.array([False])
            parts = np.array_split(rows, 2)
            return np.concatenate([self._reads(part, takes_infinite=takes_infinite) for part in parts])
        if made.dtype == object:
            return np.ones(len(rows), bool)
        return np.asarray((~np.isnan(made) if takes_infinite else np.isfinite(made)).all(axis=1))


@dataclass(frozen=True, eq=False)
class Line:
    """Features as straight lines of their raw columns: exact for scalers, a guess for others."""

    usual: Floats  # (n_features,) the raw number at which it was looked at
    at_usual: Floats  # (n_features,)
    slope: Floats  # (n_features,)
    column_of: NDArray[np.intp]  # (n_features,)
    n_columns: int

    def raw(self, feature: NDArray[np.intp], value: Floats) -> Floats:
        """(n,) the raw number at which each feature has a value."""
        with np.errstate(all="ignore"):
            return np.asarray(self.usual[feature] + (value - self.at_usual[feature]) / self.slope[feature])

    def far(self, input_dtype: str) -> Floats:
        """(2, n_columns) the raw numbers, to each side, at which a first feature of a column is too large."""
        dtype = np.float32 if input_dtype == "float32" else np.float64
        most = float(np.finfo(dtype).max)
        most += 2.0**103 if input_dtype == "float32" else 0.0  # from half a unit beyond its largest number on
        every = np.arange(len(self.slope))
        ends = [self.raw(every, np.full(len(every), side)) for side in (-most, most)]
        found = np.full((2, self.n_columns), np.inf)
        for own, sign in zip(found, (-1.0, 1.0), strict=True):
            for end in ends:
                is_there = np.isfinite(end) & (sign * end > 0)
                np.minimum.at(own, self.column_of[is_there], np.abs(end[is_there]))
        return found * [[-1.0], [1.0]]


def pull_back(
    goes_left: Callable[[Floats, NDArray[np.intp]], Bools], low: Floats, high: Floats, guess: Floats | None = None
) -> Floats:
    """(n,) for each cut the largest number from `low` to `high` that goes left; -LARGEST where none does.

    `goes_left` takes (m, k) numbers, m for each of k cuts, and which cuts these are. Where even `high` goes left, so
    does every number: LARGEST. Numbers around a guess are tried first, ever farther from it.
    """
    every = np.arange(len(low))
    first, last = _ordered(low), _ordered(high)
    all_left, some_left = goes_left(np.stack([high, low]), every)
    none_left = ~some_left
    if guess is not None:
        first, last = _around(goes_left, first, last, guess, every[~all_left & ~none_left])
    while (open_cuts := every[(last > first + 1) & ~all_left & ~none_left]).size:
        near, far = (
            first[open_cuts],
            last[open_cuts],
        )  # near goes left, far does not; what lies between is cut in pieces
        pieces = np.uint64(np.clip(_TRIED_AT_ONCE // len(open_cuts), 1, 1023) + 1)
        steps = np.arange(1, pieces, dtype=np.uint64)[:, None]
        span = far.astype(np.uint64) - near.astype(np.uint64)
        step = np.maximum(span // pieces, np.uint64(1))
        tried = near.astype(np.uint64) + np.minimum(steps * step, span)
        points = np.concatenate([near[None], tried.astype(np.int64), far[None]])
        first[open_cuts], last[open_cuts] = _bracket(goes_left, points, open_cuts)
    found = np.where(all_left, LARGEST, _number(first) + 0.0)
    return np.asarray(np.where(none_left, -LARGEST, found))


def _around(
    goes_left: Callable[[Floats, NDArray[np.intp]], Bools], first: NDArray[np.int64], last: NDArray[np.int64],
    guess: Floats, cuts: NDArray[np.intp],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Closer ends for cuts with a guess: the neighbours of it among numbers ever farther from it."""
    cuts = cuts[np.isfinite(guess[cuts])]
    if cuts.size:
        near, far = first[cuts], last[cuts]
        middle = np.clip(_ordered(guess[cuts]), near, far)
        # a number beyond an end is that end; unsigned, because the way from one end to the other is longer than 2^63
        to_near, to_far = (end.astype(np.uint64) for end in (middle - near, far - middle))
        below = [np.where(to_near > offset, middle - offset, near) for offset in reversed(_OFFSETS)]
        above = [np.where(to_far > offset, middle + offset, far) for offset in _OFFSETS]
        points = np.stack([near, *below, middle, *above, far])
        first[cuts], last[cuts] = _bracket(goes_left, points, cuts)
    return first, last


def _bracket(
    goes_left: Callable[[Floats, NDArray[np.intp]], Bools], points: NDArray[np.int64], cuts: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of ascending points, the last that goes left and the next; the first goes left, the last does not."""
    is_left = np.concatenate([goes_left(_number(points[1:-1]), cuts), np.zeros((1, len(cuts)), bool)])
    is_left[points[1:] == points[0]] = True
    is_left[points[1:] == points[-1]] = False
    n_left, own = np.argmin(is_left, axis=0), np.arange(len(cuts))
    return points[n_left, own], points[n_left + 1, own]


def _ordered(values: Floats) -> NDArray[np.int64]:
    """Whole numbers in the order of the floats, neighbours next to each other."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _number(ordered: NDArray[np.int64]) -> Floats:
    bits = np.where(ordered >= 0, ordered, np.int64(-(2**63)) - ordered)
    return np.ascontiguousarray(bits).view(np.float64)
