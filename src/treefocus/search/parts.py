"""Parts of a row's domain, and how one is cut where no answer with room to move can be.

A box of points that the model refuses takes away all answers whose room reaches it: in every column an interval of
values, because the room's ends grow with the value. What is left of a part are at most two parts a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Bools, Floats
from treefocus.model.ranks import middle, rank, ranked
from treefocus.problem.compile import within_parts
from treefocus.problem.problem import Problem
from treefocus.problem.tolerance import UNITS, Room, held_inside
from treefocus.search.refused import Refused


@dataclass(frozen=True, eq=False)
class Subdomain:
    """Numbers between two ends, and which of the cells that can be chosen are open."""

    low: Floats  # (n_features,)
    high: Floats
    is_open: Bools  # (n_cells,) of the batch's choices
    bound: float  # proven: no answer in it is closer

    @classmethod
    def whole(cls, batch: Batch, row: int, bound: float) -> Subdomain:
        """All that a row's answer may be."""
        return cls(batch.low[row], batch.high[row], np.isfinite(batch.choices.delta[row]), bound)


def put_to_parts(problem: Problem, rows: NDArray[np.intp], parts: list[Subdomain]) -> Problem:
    """The problem's question for some rows, each in a part of its domain."""
    own = problem.subset(rows)
    low, high = np.stack([part.low for part in parts]), np.stack([part.high for part in parts])
    batch = within_parts(own.forest, own.batch, low, high, np.stack([part.is_open for part in parts]))
    return replace(own, batch=batch, relaxed=None)


def cut(
    part: Subdomain, batch: Batch, room: Room | None, point: Floats, refused: Refused
) -> Iterator[tuple[int, Subdomain]]:
    """What is left of a part of the batch's only row without the answers in a refused box, or whose room reaches it.

    `point` is one of them. First come the columns that it changes. Each piece is told with the column at which it is
    cut off; what the next one is cut off from is the rest in that column.
    """
    row, choices = batch.rows[0], batch.choices
    low, high = (refused.low, refused.high) if room is None else taken_away(batch, room, point, refused)
    place = {int(column): k for k, column in enumerate(choices.column)}
    left = part
    is_same = (point == row) | (np.isnan(point) & np.isnan(row))
    for j in np.argsort(is_same, kind="stable").tolist():
        if j in place:
            cells = slice(choices.start[place[j]], choices.start[place[j] + 1])
            pieces, left = _of_choices(
                left, j, cells, refused, (low[j], high[j]), bool(choices.is_category[place[j]]), batch
            )
            yield from ((j, piece) for piece in pieces)
        elif not np.isnan(row[j]):
            yield from ((j, piece) for piece in _outside(left, j, (low[j], high[j]), batch))
            left = _inside(left, j, (low[j], high[j]))


def narrowed(part: Subdomain, low: Floats, high: Floats, batch: Batch) -> Subdomain | None:
    """The part between other ends, moved inwards to numbers that the columns hold; None where nothing is left.

    Where low is above high no number is left, but perhaps a missing value.
    """
    own, is_number = batch.rows[0], ~np.isnan(part.low) & ~batch.is_category
    low, high = np.fmax(part.low, low), np.fmin(part.high, high)
    lows, highs = held_inside(batch, low.copy(), high.copy())
    has_own = (low <= own) & (own <= high)
    lows, highs = np.where(has_own, np.fmin(lows, own), lows), np.where(has_own, np.fmax(highs, own), highs)
    is_gone = is_number & ~np.isnan(own) & ~(lows <= highs)
    is_open, choices = part.is_open, batch.choices
    for k, column in enumerate(choices.column.tolist()):
        if is_number[column] and not lows[column] <= highs[column]:
            cells = slice(choices.start[k], choices.start[k + 1])
            is_open = is_open.copy()
            is_open[cells][:-1] = False
            is_gone[column] = not is_open[cells].any()
    if is_gone.any():
        return None
    stays = is_number & (lows <= highs)
    return replace(part, low=np.where(stays, lows, part.low), high=np.where(stays, highs, part.high), is_open=is_open)


def with_cells(part: Subdomain, k: int, is_chosen: Bools, batch: Batch) -> Subdomain | None:
    """The part with no other cells of the k-th column of choices than these; None where none is left."""
    cells = slice(batch.choices.start[k], batch.choices.start[k + 1])
    is_open = part.is_open.copy()
    is_open[cells] &= is_chosen
    return replace(part, is_open=is_open) if is_open[cells].any() else None


def halves(part: Subdomain, j: int, value: float, batch: Batch) -> Iterator[Subdomain]:
    """The part up to a value of a column of numbers, and above it."""
    yield from _with_ends(part, j, part.low[j], value, batch)
    yield from _with_ends(part, j, float(np.nextafter(value, np.inf)), part.high[j], batch)


def taken_away(batch: Batch, room: Room, point: Floats, refused: Refused) -> tuple[Floats, Floats]:
    """(n_features,) the values, in every column of numbers, from which the room reaches the refused box."""
    row = batch.rows[0]
    first, last = held_inside(batch, refused.low.copy(), refused.high.copy())
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        has_row = (refused.low <= row) & (row <= refused.high)
        low, high = np.where(has_row, row, np.inf), np.where(has_row, row, -np.inf)
        for sign in (1.0, -1.0):
            near, far = (first, last) if sign > 0 else (-last, -first)
            begin, end = _upwards(room, sign * row, near, far)
            is_there = (begin <= end) & (first <= last)
            begin, end = (begin, end) if sign > 0 else (-end, -begin)
            low, high = np.where(is_there, np.fmin(low, begin), low), np.where(is_there, np.fmax(high, end), high)
        is_new = np.isnan(row)  # there is no room around a value that was missing
        low, high = np.where(is_new, first, low), np.where(is_new, last, high)
    return np.fmin(low, point), np.fmax(high, point)


def _upwards(room: Room, row: Floats, first: Floats, last: Floats) -> tuple[Floats, Floats]:
    """From the first to the last value above the row's own from which the room reaches numbers from first to last."""
    least, size = np.nextafter(row, np.inf), 2 * UNITS * (np.abs(row) + np.abs(last))
    guess = (first - room.above_units + room.above_share * row) / (1 + room.above_share)
    short = _last(lambda values: room.raw(row, values)[1] < first, least, np.where(np.isfinite(guess), guess, least))
    begin = np.where(np.isnan(short), least, np.nextafter(short, np.inf))
    guess = (last + room.below_units - room.below_share * row + size) / (1 - room.below_share)
    end = _last(lambda values: room.raw(row, values)[0] <= last, least, np.where(np.isfinite(guess), guess, least))
    end = np.where(np.isnan(end), -np.inf, end)
    return np.where(first <= row, least, begin), np.where(last == np.inf, np.inf, end)


def _last(holds: Callable[[Floats], Bools], least: Floats, guess: Floats) -> Floats:
    """The last value from the least on up to which something holds; it is near the guess. NaN where nowhere."""
    near = 64 * np.spacing(np.maximum(np.abs(guess), np.abs(least)))
    low, high = np.fmax(least, guess - near), np.fmax(least, guess + near)
    is_low, is_high = holds(low), holds(high)
    low = np.where(is_low, low, least)
    low, high = np.where(is_high, high, low), np.where(is_high, np.finfo(np.float64).max, high)
    begin, end = rank(low), rank(high)
    while (end - begin > 1).any():
        between = middle(begin, end)
        is_there = holds(ranked(between))
        begin, end = np.where(is_there, between, begin), np.where(is_there, end, between)
    found = ranked(begin)
    return np.where(holds(found), found, np.nan)


def _outside(part: Subdomain, j: int, ends: tuple[float, float], batch: Batch) -> Iterator[Subdomain]:
    """The part below and the part above an interval of a column."""
    below = part.low[j], min(part.high[j], np.nextafter(ends[0], -np.inf))
    above = max(part.low[j], np.nextafter(ends[1], np.inf)), part.high[j]
    for low, high in (below, above):
        if low <= high and low < np.inf and high > -np.inf:
            yield from _with_ends(part, j, low, high, batch)


def _inside(part: Subdomain, j: int, ends: tuple[float, float]) -> Subdomain:
    low, high = part.low.copy(), part.high.copy()
    low[j], high[j] = max(low[j], ends[0]), min(high[j], ends[1])
    return replace(part, low=low, high=high)


def _with_ends(part: Subdomain, j: int, low: float, high: float, batch: Batch) -> Iterator[Subdomain]:
    """The part with other ends of a column, moved inwards to numbers that it holds; the row's own may stay."""
    lows, highs, own = part.low.copy(), part.high.copy(), batch.rows[0, j]
    lows[j], highs[j] = low, high
    lows, highs = held_inside(batch, lows, highs)
    if low <= own <= high:
        lows[j], highs[j] = min(lows[j], own), max(highs[j], own)
    if lows[j] <= highs[j]:
        whole_low, whole_high = part.low.copy(), part.high.copy()
        whole_low[j], whole_high[j] = lows[j], highs[j]
        yield replace(part, low=whole_low, high=whole_high)


def _of_choices(
    part: Subdomain, j: int, cells: slice, refused: Refused, ends: tuple[float, float], is_category: bool, batch: Batch
) -> tuple[list[Subdomain], Subdomain]:
    """The same of a column whose values are chosen cell by cell: what is left of it, and the part that is taken."""

    def opened(one: Subdomain, is_open: Bools) -> list[Subdomain]:
        every = one.is_open.copy()
        every[cells] &= is_open
        return [replace(one, is_open=every)] if every[cells].any() else []

    n_cells = cells.stop - cells.start
    if is_category:
        taken = refused.categories[j]
        inside = opened(part, taken)
        return opened(part, ~taken), inside[0] if inside else part
    is_missing = np.arange(n_cells) == n_cells - 1
    if np.isnan(refused.low[j]):
        inside = opened(part, is_missing)
        return opened(part, ~is_missing), inside[0] if inside else part
    pieces = [piece for one in _outside(part, j, ends, batch) for piece in opened(one, ~is_missing)]
    pieces += opened(part, is_missing)
    inside = opened(_inside(part, j, ends), ~is_missing)
    return pieces, inside[0] if inside else part
