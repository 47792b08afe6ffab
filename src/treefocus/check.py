"""Check a proof: python check.py certificate.json model.json [other models that have to agree, in their order]

This program decides whether a certificate of treefocus is right. It shares no code with the search that wrote it. No
argument rests on floating-point arithmetic: floats are the rational numbers they are, and rounded to the safe side.

That a point is an answer and costs so much is computed. That no answer costs less, or that there is none, speaks of all
points, and needs a proof. It cuts columns into cells: ranges of numbers, categories, the missing value. A box says
which cells of every column are left. For each way to be an answer there is a tree of boxes: the first holds all that is
allowed; each is split, so that each of its points is on one of two sides, or closed, for no cheaper answer is in it:
EMPTY, nothing is left of it; SCORE, every tree gives its best leaf that the box still reaches, and the sum is not
enough; CELL, every tree has one leaf left, and computed as the model computes, the answer is another one. Where several
models have to agree, one of them is enough for that.

A box loses cells by inequalities: each is true of every answer cheaper than the claim, and is a sum over columns with a
limit. The cost is one, rules are, and a proof may WEIGH: name a point or prices of which this program makes more. A
cell goes if the sum is beyond the limit with its column there and all others at their least. If all boxes are closed, a
cheaper answer would be in none of them: there is none. docs/proof.md has the whole argument.
Exit code: 0 accepted, 1 rejected, 2 misuse, 3 not proven (no proof inside, or one that this program does not judge).
"""

from __future__ import annotations

import ctypes
import gzip
import json
import math
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import accumulate, count, pairwise
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
Ends = tuple[Any, Any]  # the first and the last number of a cell; of categories the code twice, nan twice if missing
Parts = dict[int, Any]  # by column: what it adds to a sum, at least, in a cell: a Step, or a function of the cell
ACCEPTED, REJECTED, MISUSE, UNPROVEN = range(4)
EMPTY, SCORE, CELL, WEIGH, SPLIT, NEAR = range(6)  # what the boxes are written in
ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED = range(5)  # which numbers a column can hold
LINK_ULPS = 4  # by so many units in the last place may a library's exponential be off: an assumption, and told
OPTIMAL_TO = Fraction(1, 10**8)  # "the smallest" means: up to this share of the distance, and up to a noise
WIDER = Fraction(8, 2**52)  # room that no closer answer has is by this share of the numbers wider than what is asked
ROUNDS = 20  # in which sums narrow a box, each what another has left
DIGITS = 100  # sums are kept to 2^-100 of their limit, rounded down
ZERO, ONE, UNSAID = Fraction(0), Fraction(1), Fraction(2**9999)  # more than any sum of products of a few floats
LAST = sys.float_info.max


class VerdictError(Exception):
    """The end of a check that is not accepted: why, and the exit code."""


def demand(holds: bool, otherwise: str, code: int = REJECTED) -> None:
    """End the check here, unless it holds."""
    if not holds:
        raise VerdictError(otherwise, code)


def number(value: Any) -> float:
    """A number of a file; infinities and missing values are written as words."""
    demand(isinstance(value, int | float | str) and not isinstance(value, bool), f"{value!r} is not a number")
    return float(value)


def exactly(values: Sequence[Any]) -> list[Fraction]:
    """Numbers of a file as the rational numbers they are."""
    return [Fraction(number(value)) for value in values]


def as_float32(value: float) -> float:
    """The nearest float32."""
    return ctypes.c_float(value).value


def scaled(value: Fraction, bits: int) -> int:
    """The value times 2^bits, rounded down."""
    return (value.numerator << max(bits, 0)) // (value.denominator << max(-bits, 0))


def root(value: Fraction, up: bool) -> Fraction:
    """At least, or at most, the square root; close to it."""
    bits = 100 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.isqrt(scaled(value, 2 * bits)) + up, 1 << bits)


def members(mask: int) -> Iterator[int]:
    """The numbers in a set, which is a whole number with a bit for each; the lowest first."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def ranges(ends: Sequence[int], n: int) -> int:
    """The numbers from each first end up to before the second, below n, as a set."""
    demand(all(a < b for a, b in pairwise([-1, *ends, n + 1])), "a range is of what is not there, or out of order")
    return sum((1 << b) - (1 << a) for a, b in zip(ends[::2], ends[1::2], strict=True))


class Trees:
    """A treefocus-forest-1 file (docs/forest-format.md); its leaves are numbered from `first` on."""

    def __init__(self, record: Json, first: int, ahead: Any = None, margin: float = 0.0) -> None:
        demand(record.get("format") == "treefocus-forest-1", "the model is not a treefocus-forest-1 file")
        self.feature, self.right, self.start = record["feature"], record["right"], record["tree_start"]
        self.default_left, self.link = record["default_left"], record.get("link", "identity")
        self.threshold, self.whole = [float(t) for t in record["threshold"]], float(record.get("divisor", 1.0))
        self.decision, self.cut = record.get("decision", "argmax"), float(record.get("cut", 0.0))
        self.divisor = self.whole  # of votes that become probabilities, less than the whole
        self.classes, is_votes = record["classes"], record.get("leaf_distribution") is not None
        self.has_votes = self.link == "identity" and is_votes and len(self.classes) > 2  # AdaBoost: with a softmax
        self.cast = as_float32 if record.get("input_dtype", "float64") == "float32" else float
        self.digits = 24 if record.get("score_dtype", "float64") == "float32" else 53
        self.held = as_float32 if self.digits == 24 else float  # as the library holds its sums
        self.base = [self.held(b) for b in record["base_score"]]
        if margin and self.decision == "argmax":  # a class has to be ahead of every other by so much, or of the cut
            self.base[self.classes.index(ahead)] -= margin * self.whole
        elif margin:
            self.cut += margin if self.classes.index(ahead) == 1 else -margin
        self.value = {leaf: [self.held(v) for v in row] for leaf, row in enumerate(record["leaf_value"], first)}
        self.every = ((1 << len(self.value)) - 1) << first
        categories = {"labels": [None] * int(record["n_features"])} | (record.get("categories") or {})
        self.set_of_node, self.labels = categories.get("set_of_node", [-1] * len(self.feature)), categories["labels"]
        self.sets = [set(categories["set_member"][a:b]) for a, b in pairwise(categories.get("set_start", [0]))]
        self.n_before = list(accumulate((f < 0 for f in self.feature), initial=first))  # leaves before a node
        is_whole = [self.start[0], self.start[-1], self.n_before[-1]] == [0, len(self.feature), first + len(self.value)]
        is_whole &= {len(v) for v in self.value.values()} == {len(self.base)}
        demand(is_whole, "the model's nodes do not go together")
        demand(self.whole > 0 and not any(map(math.isnan, self.threshold)), "the model's numbers are none")
        numbers = [v for row in [*self.value.values(), self.base] for v in row]
        self.bits = max(v.as_integer_ratio()[1].bit_length() - 1 for v in numbers)  # so that all become whole numbers
        # How far rounding can bring a sum of leaves from the exact one, in whatever order it is added up: n + 1 numbers
        # in a type of unit u by n u / (1 - n u) of their sizes. The division that follows is in float64.
        self.leaves_of = [range(self.n_before[a], self.n_before[b]) for a, b in pairwise(self.start)]
        error = Fraction(len(self.leaves_of), 2**self.digits - len(self.leaves_of)) + Fraction(1, 2**51)
        largest = [max(abs(v) for leaf in own for v in self.value[leaf]) for own in self.leaves_of]
        self.rounding = error * (sum(map(Fraction, largest)) + max(Fraction(abs(b)) for b in self.base))

    def sides(self, node: int, column: CellColumn) -> tuple[int, int]:
        """The cells of which a node sends some value to the left, and those of which it sends some to the right."""
        numbers, missing = column.numbers, (1 << len(column.cells)) - (1 << len(column.numbers))
        demand(column.is_category == (self.set_of_node[node] >= 0), "a category is split as a number")
        if column.is_category:  # a word that the question adds goes where the unseen go
            named, n = self.sets[self.set_of_node[node]], len(self.labels[self.feature[node]])
            left = sum(1 << cell for cell, (code, _) in enumerate(numbers) if min(code, n) in named)
            right = (1 << len(numbers)) - 1 - left
        else:  # cells ascend, and so do the numbers that the model makes of them
            t = self.threshold[node]
            left = (1 << bisect_right(numbers, t, key=lambda ends: self.cast(ends[0]))) - 1
            right = (1 << len(numbers)) - (1 << bisect_right(numbers, t, key=lambda ends: self.cast(ends[1])))
        return (left | missing, right) if self.default_left[node] else (left, right | missing)

    def is_single(self, lost: int) -> bool:
        """Whether every tree has one leaf left."""
        return (self.every & ~lost).bit_count() == len(self.leaves_of)

    def scores(self, lost: int) -> list[float]:
        """What the library computes where a leaf of every tree is left: in the trees' order and its type of numbers."""
        sums, left = list(self.base), list(members(self.every & ~lost))
        demand(self.is_single(lost), "a single cell is said to be there, and is not")
        for leaf in left:
            sums = [self.held(total + value) for total, value in zip(sums, self.value[leaf], strict=True)]
        return [total / self.divisor for total in sums]


class Leaves:
    """Which leaves a box loses: per column, those whose path asks for other cells than the box has."""

    def __init__(self, models: Sequence[Trees], columns: Sequence[CellColumn]) -> None:
        self.asked: list[dict[int, int]] = [{} for _ in columns]  # by column: cells, and the leaves that ask for them
        self.known: dict[tuple[int, int], int] = {}
        for trees, (first, end) in ((own, ends) for own in models for ends in pairwise(own.start)):
            waiting: list[tuple[int, dict[int, int]]] = [(first, {})]
            for node in range(first, end):
                demand(bool(waiting) and waiting[-1][0] == node, "the model's nodes are not in pre-order")
                (_, path), f = waiting.pop(), trees.feature[node]
                if f >= 0:
                    (left, right), known = trees.sides(node, columns[f]), path.get(f, -1)
                    waiting += [(trees.right[node], path | {f: known & right}), (node + 1, path | {f: known & left})]
                    continue
                for g, cells in path.items():
                    self.asked[g][cells] = self.asked[g].get(cells, 0) | 1 << trees.n_before[node]
            demand(not waiting, "the model's nodes are not in pre-order")

    def lost(self, cells: Sequence[int]) -> int:
        """The leaves that a box does not reach."""
        lost = 0
        for f, own in enumerate(cells):
            if (f, own) not in self.known:
                self.known[f, own] = 0
                for asked, leaves in self.asked[f].items():
                    self.known[f, own] |= 0 if asked & own else leaves
            lost |= self.known[f, own]
        return lost


class CellColumn:
    """One column of the question: the row's value, which values are allowed, and the cells of a proof."""

    def __init__(self, question: Json, labels: Any, f: int) -> None:
        self.row, self.low, self.high = (number(question[name][f]) for name in ("row", "low", "high"))
        self.scale, self.grain = Fraction(number(question["scale"][f])), question["grain"][f]
        demand(self.scale > 0, "a column has no scale")
        if not self.low <= self.high:  # nothing is within
            self.low, self.high = math.inf, -math.inf
        lists, choices, missing = question["lists"], question["choices"], question["question"].get("missing_is_choice")
        self.steps = [number(v) for v in lists["value"][lists["start"][f] : lists["start"][f + 1]]]
        self.listed = sorted(self.steps)  # or, of a column of steps: beginning, step, divisor, whether in float32
        self.is_category, self.may_miss = labels is not None, math.isnan(self.row)
        if self.is_category or (missing and missing[f]):  # which may be chosen; the last one is the missing value
            at = choices["column"].index(f)
            own = [number(d) < math.inf for d in choices["delta"][choices["start"][at] : choices["start"][at + 1]]]
            self.may_miss = own[-1]
            if self.is_category:
                demand(len(own) >= len(labels) + 2, "a category of the model has no choice")
                self.grain, self.low, self.high = LISTED, 0.0, LAST
                self.listed = [float(code) for code, is_open in enumerate(own[:-1]) if is_open]
        elif self.may_miss:  # a missing value that stays
            self.grain, self.listed = LISTED, []
        is_held = self.row in self.listed or not (self.is_category or lists["is_strict"][f])
        self.may_stay = self.low <= self.row <= self.high and is_held
        self.is_still = self.is_category or math.isnan(self.row)  # a distance that couples columns does not see it
        room, names = question.get("room"), ("above_share", "above_units", "below_share", "below_units")
        sizes = [number(room[name][f]) if room else 0.0 for name in names]
        self.room = [UNSAID if size == math.inf else Fraction(size) for size in sizes]
        demand(min(self.room) >= 0 and self.room[2] < 1 - WIDER * 9, "there is room below 0, or back beyond the row")

    def up(self, value: float) -> float:
        """The first number that the column can hold, from the value on."""
        if self.grain == LISTED:
            return next(iter(self.listed[bisect_left(self.listed, value) :]), math.inf)
        if self.grain == ANY_FLOAT or not math.isfinite(value):
            return value
        if self.grain == INTEGER:
            return float(math.ceil(value))
        if self.grain == FLOAT32:
            near = as_float32(value)
            bits = struct.unpack("<i", struct.pack("<f", near))[0] + (1 if near > 0 else -1)
            above = struct.unpack("<f", struct.pack("<i", bits))[0] if near else 2.0**-149
            return near if near >= value else float(above)
        begin, step, divisor, is_float32 = self.steps
        demand(self.grain == STEPPED and min(step, divisor) > 0, "a column has no steps, or an unknown kind of numbers")
        k = math.floor((Fraction(value) * Fraction(divisor) - Fraction(begin)) / Fraction(step)) - 2
        is_fine = is_float32 or abs(k) >= 2**51 or (begin + k * step) / divisor >= value
        demand(not is_fine, "this program does not judge steps that are as fine as numbers are", UNPROVEN)
        return next(own for i in count(k) if (own := (begin + i * step) / divisor) >= value)

    def holds(self, value: float) -> bool:
        """Whether the column can hold this number."""
        return self.low <= value <= self.high and abs(value) <= LAST and self.up(value) == value

    def allows(self, value: float) -> bool:
        """Whether the column may have this value."""
        return self.holds(value) or (self.may_stay and value == self.row) or (self.may_miss and math.isnan(value))

    def around(self, value: float, wider: Fraction = ZERO) -> Ends:
        """From where to where room is asked for around a value, if it is one that has moved; both ends grow with it."""
        if self.is_category or not (value < self.row or value > self.row):
            return value, value
        at, row, (above, more, below, less) = Fraction(value), Fraction(self.row), self.room
        sizes = above * abs(at - row) + more, below * abs(at - row) + less
        beyond, short = (size and size + wider * (abs(at) + abs(row)) for size in sizes)
        return (max(at - short, row), at + beyond) if at > row else (at - beyond, min(at + short, row))

    def within(self, value: float) -> CellColumn:
        """The column of a question for what is around this value."""
        own, (first, last) = copy(self), self.around(value)
        own.row, own.may_stay, own.may_miss, own.room = value, value == value, value != value, [ZERO] * 4
        own.low, own.high = math.inf, -math.inf
        if first < last:
            own.low, own.high = max(self.low, float(max(first, -LAST))), min(self.high, float(min(last, LAST)))
        return own

    def is_near(self, own: int, refused: int) -> bool:
        """Whether the room around every value of some cells has one in some others, that the column can hold."""
        for cell in members(own & ~refused):
            after, before = refused >> cell, (refused & (1 << cell) - 1).bit_length() - 1
            first, last = self.cells[cell]
            above = self.cells[cell + (after & -after).bit_length() - 1][0] if after else math.nan
            below = self.cells[before][1] if before >= 0 else math.nan
            is_above = self.holds(above) and self.around(first, WIDER)[1] >= above
            if not is_above and not (self.holds(below) and self.around(last, WIDER)[0] <= below):
                return False
        return True

    def cut(self, cells: Sequence[Sequence[Any]]) -> None:
        """Take the cells of a proof: every allowed value is in one, and the row's own is in none with others."""
        self.cells = [(number(first), number(last)) for first, last in cells]
        self.numbers, at = [ends for ends in self.cells if ends[0] <= ends[1]], max(self.low, -LAST)
        others = [first for first, _ in self.cells[len(self.numbers) :]]
        demand(len(others) >= self.may_miss and all(map(math.isnan, others)), "a missing value has no cell")
        demand(all(a[1] < b[0] for a, b in pairwise(self.numbers)), "cells overlap")
        for first, last in self.numbers:
            demand(self.up(at) >= first, "an allowed value is in no cell")
            demand(first == last or not (self.is_category or first <= self.row <= last), "a cell holds too much")
            at = max(at, math.nextafter(last, math.inf))
        demand(self.up(at) > min(self.high, LAST), "an allowed value is in no cell")
        demand(not self.may_stay or (self.row, self.row) in self.cells, "the row's own value has no cell")

    def is_moved(self, ends: Ends) -> bool:
        """Whether all values of a cell are other than the row's own."""
        return not (ends[0] <= self.row <= ends[1] or (math.isnan(ends[0]) and math.isnan(self.row)))


class Length(CellColumn):
    """What a cosine has for a column more: a rational number above 0, cut at some numbers."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.row, self.scale, self.is_category, self.is_still = -1.0, ONE, False, False
        self.cells: list[Ends] = list(pairwise([ZERO, *sorted(values), UNSAID]))


class Step(NamedTuple):
    """What a column adds: fee if it changes + edge |w| + bend (v - middle)^2 + tilt v - kink |v|, with w = v - row.

    Of another category, and where a value is or was missing, |w| and |v - middle| are the scale if it changes, else 0.
    """

    column: CellColumn
    fee: Fraction = ZERO
    edge: Fraction = ZERO
    bend: Fraction = ZERO
    tilt: Fraction = ZERO
    kink: Fraction = ZERO
    middle: Fraction = ZERO

    def plus(self, other: Step, by: Fraction = ONE) -> Step:
        """Both, the other one so many times; only one of them has a bend."""
        middle = other.middle if other.bend else self.middle
        fee, edge, bend, tilt, kink = (a + by * b for a, b in zip(self[1:6], other[1:6], strict=True))
        return Step(self.column, fee, edge, bend, tilt, kink, middle)

    def __call__(self, ends: Ends) -> Fraction:
        """The least of it between two numbers on one side of the row: at an end, or where a parabola is lowest."""
        column, is_far = self.column, self.column.is_moved(ends)
        is_number = not column.is_category and ends[0] == ends[0]
        if not is_number and (self.tilt or self.kink):
            return -UNSAID  # of what is no number a sum says nothing
        at = [Fraction(end) for end in ends] if is_number else [ZERO]
        if column.is_still or not is_number:
            size = column.scale * is_far
            plain = self.fee * is_far + self.edge * size + self.bend * size**2
            return plain + min(self.tilt * v - self.kink * abs(v) for v in at)
        if self.bend:
            slopes = (self.tilt + a * self.edge + b * self.kink for a in (-1, 1) for b in (-1, 1))
            at += [v for slope in slopes if ends[0] <= (v := self.middle - slope / (2 * self.bend)) <= ends[1]]
        row = Fraction(column.row)
        straight = (self.edge * abs(v - row) + self.tilt * v - self.kink * abs(v) for v in at)
        curved = (self.bend * (v - self.middle) ** 2 for v in at)
        least: Fraction = min(map(add, straight, curved))
        return self.fee * is_far + least


@dataclass
class Inequality:
    """What every answer cheaper than the claim fulfils: a sum + the root of a sum + a maximum over columns <= limit.

    Most have the first alone. More: what any one column may add to it besides, as long as no other does.
    """

    parts: Parts
    limit: Fraction
    squares: Parts = field(default_factory=dict)
    largest: Parts = field(default_factory=dict)
    more: dict[int, Step] = field(default_factory=dict)
    size: Fraction = ZERO  # what its digits are counted from; the limit if nothing is said

    def over(self, cells: Sequence[dict[int, Ends]]) -> Inequality:
        """Made ready for a box: what columns add in its cells, as whole numbers, rounded down, the least first."""
        bits = DIGITS + (size := self.size or self.limit).denominator.bit_length() - size.numerator.bit_length()

        def ordered(f: int, part: Any) -> list[tuple[tuple[int, ...], int]]:
            parts = (part, bits), (self.squares.get(f), 2 * bits), (self.largest.get(f), bits)
            of = cells[f].items()
            return sorted((tuple(scaled(p(own), b) if p else 0 for p, b in parts), cell) for cell, own in of)

        self.whole = -scaled(-self.limit, bits)
        self.least = {f: ordered(f, self.parts.get(f)) for f in {**self.parts, **self.squares, **self.largest}}
        self.alone = self.least | {f: ordered(f, step.plus(self.parts[f])) for f, step in self.more.items()}
        return self

    def narrow(self, cells: list[int]) -> None:
        """Take out the cells of a box that it leaves out; none of some column is left if nothing of the box is."""
        if not all(cells):
            return
        least = {f: next(own for own, cell in order if cells[f] >> cell & 1) for f, order in self.least.items()}
        total, square = sum(own[0] for own in least.values()), sum(own[1] for own in least.values())
        for f, (a, b, _) in least.items():
            largest = max((own[2] for g, own in least.items() if g != f), default=0) if self.largest else 0
            for own, cell in reversed(self.alone[f]):
                left = self.whole - (total - a + own[0]) - max(largest, own[2])
                if left >= 0 and square - b + own[1] <= left * left:
                    break
                cells[f] &= ~(1 << cell)


def rule_sums(rule: Json, columns: Sequence[CellColumn]) -> list[Inequality]:
    """A relation between columns as sums: AtMost n change, all or none do (Together), Implies, Linear."""
    kind, is_implied = rule["kind"], rule["kind"] == "Implies"
    named = [rule["cause"]["column"], rule["effect"]["column"]] if is_implied else rule["columns"]
    demand(all(0 <= f < len(columns) for f in named), "a rule names a column that is not there")
    fee = {f: Step(columns[f], fee=ONE) for f in named}
    if kind == "AtMost":
        return [Inequality(fee, Fraction(rule["n"]))]
    if kind == "Together":  # each changes only if the next one does, and the last only if the first does
        pairs = zip(named, [*named[1:], named[0]], strict=True)
        return [Inequality({f: fee[f], g: Step(columns[g], fee=-ONE)}, ZERO) for f, g in pairs if f != g]
    if kind == "Implies":
        return [Inequality({f: partial(misses, rule, f) for f in named}, ONE)]
    demand(kind == "Linear" and len(fee) == len(named), f"{kind!r} is no rule, or names a column twice")
    # Who obeys has sum of c v <= bound + e (sum of |c v| + |bound|): e is for the rounding of the sum and its terms.
    e, (bound, *by) = Fraction(len(named) + 4, 2**52), exactly([rule["bound"], *rule["coefficient"]])
    steps = [Step(columns[f], tilt=c, kink=e * abs(c)) for f, c in zip(named, by, strict=True)]
    return [Inequality(dict(zip(named, steps, strict=True)), bound + e * abs(bound))]


def misses(rule: Json, f: int, ends: Ends) -> Fraction:
    """One for a column that is in the cause for sure, and one if it is out of the effect: together one too many."""
    found = 0
    for condition, is_cause in ((rule["cause"], True), (rule["effect"], False)):
        if condition["column"] != f:
            continue
        if (named := condition["categories"]) is not None:  # a missing value meets no condition
            is_in = may_be_in = ends[0] < len(named) and bool(named[int(ends[0])])
        else:
            low, high = number(condition["low"]), number(condition["high"])
            is_in, may_be_in = low <= ends[0] and ends[1] <= high, low <= ends[1] and ends[0] <= high
        found += is_in if is_cause else not may_be_in
    return Fraction(found)


class Test:
    """What answers fulfil: sum of sign * score >= at_least, or > if strict, of scores as the library has them.

    With a share, a softmax of all scores has to give the first of these that much, too; below 0, no more than that.
    """

    def __init__(self, trees: Trees, signs: Any, at_least: Any, is_strict: bool = False, share: Any = ZERO) -> None:
        self.trees, self.signs, self.is_strict, self.share = trees, signs, is_strict, Fraction(share)
        self.at_least = Fraction(max(-UNSAID, min(UNSAID, at_least)))
        of = trees.value.items()
        own = {leaf: sum(sign * scaled(Fraction(row[k]), trees.bits) for k, sign in signs) for leaf, row in of}  # exact
        self.best = [sorted(((own[leaf], leaf) for leaf in tree), reverse=True) for tree in trees.leaves_of]
        whole = self.at_least * Fraction(trees.divisor)
        need = whole - sum(sign * Fraction(trees.base[k]) for k, sign in signs)
        self.need = -scaled(len(signs) * trees.rounding + abs(whole) / 2**51 - need, trees.bits)  # sums are whole

    def is_beyond(self, lost: int) -> bool:
        """Whether the best leaves that are not lost do not add up to what is needed."""
        return bool(sum(next(weight for weight, leaf in own if not lost >> leaf & 1) for own in self.best) < self.need)

    def is_met(self, lost: int) -> bool:
        """Whether what the library computes where no other leaves are left fulfils it; a softmax to forty digits."""
        scores = self.trees.scores(lost)
        over: Fraction = sum((sign * Fraction(scores[k]) for k, sign in self.signs), -self.at_least)
        with localcontext() as context:
            context.prec, own = 60, Decimal(scores[self.signs[0][0]])
            total = Fraction(sum((Decimal(s) - own).exp() for s in scores) if self.share else 0)
        is_above, sign = over > 0 or (over == 0 and not self.is_strict), (self.share > 0) - (self.share < 0)
        return bool(is_above and total * self.share <= sign + Fraction(1, 10**40))

    def fails(self, lost: int) -> bool:
        """Whether no point of a box fulfils it: by its best leaves, or as the library computes in a single cell."""
        return self.is_beyond(lost) or (self.trees.is_single(lost) and not self.is_met(lost))


Ways = list[list[Test]]  # each has tests that all answers of this kind pass


def score_of(link: str, shown: Any, off: Fraction, up: bool) -> Fraction | float:
    """The score at which a link shows a number that is moved by so much, to 10^-49; Decimal.ln is right to the end."""
    demand(link in ("sigmoid", "exp"), f"this program does not judge numbers behind the link {link!r}", UNPROVEN)
    moved: Any = shown if math.isinf(shown) else Fraction(shown) + off
    if moved <= 0 or (link == "sigmoid" and moved >= 1) or math.isinf(moved):
        return -math.inf if moved <= 0 else math.inf
    odds = moved / (1 - moved) if link == "sigmoid" else moved
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(odds.numerator) / Decimal(odds.denominator)).ln()) + Fraction(2 * up - 1, 10**49)


def ways(trees: Trees, target: Json | None, leave: int, reach: int, is_not: bool = False) -> Ways:
    """The ways to be an answer: tests that all such answers pass; no last digit of the library's links is left out.

    If `is_not`, the ways to be none, of a target that is no class.
    """
    n, is_above, link, by = len(trees.base), trees.decision == "above", trees.link, -1 if is_not else 1
    if target is None and trees.decision == "argmax":
        demand(0 <= leave < n and -1 <= reach < n, "there is no such class")
        others = [k for k in range(n) if k != leave]  # a tie goes to the first class
        of = [reach] if reach >= 0 else others
        return [[Test(trees, ((k, 1), (r, -1)), 0, r < k) for r in (leave, *others) if r != k] for k in of]
    if target is None:
        demand(is_above or trees.decision == "at_least", "this program does not judge how classes come out", UNPROVEN)
        demand(n == 1 and leave in (0, 1) and reach in (-1, 0, 1), "there is no such class")
        sign = 2 * (1 - leave if reach < 0 else reach) - 1
        return [[Test(trees, ((0, sign),), sign * trees.cut, is_above == (sign > 0))]]

    def off(size: Any) -> Fraction:  # by how much the library's exponential may be
        return by * LINK_ULPS * Fraction(2) ** (math.frexp(size or 5e-324)[1] - trees.digits)

    def test(signs: Any, at_least: Any, share: Any = ZERO) -> Test:
        return Test(trees, [(k, by * sign) for k, sign in signs], by * at_least, is_not, by * share)

    if target["kind"] in ("Interval", "Score"):
        ends: Any = (low := number(target["low"]), high := number(target["high"]))
        demand(n == 1 and low <= high, "an interval needs one score, and ends in order")
        if target["kind"] == "Interval" and link != "identity":
            ends = score_of(link, low, -off(low), is_not), score_of(link, high, off(high), not is_not)
        found = [test([(0, 1)], ends[0]), test([(0, -1)], -ends[1])]
        return [[one] for one in found] if is_not else [found]
    label, asked = int(target["class"]), number(target["at_least"])
    demand(target["kind"] == "Probability" and 0 <= label < len(trees.classes), "there is no such target")
    demand(0 < asked < 1, "a probability is above 0 and below 1")
    p = Fraction((max if is_not else min)(asked, trees.held(asked)))
    if trees.decision != "argmax" and label == 0:  # one score, whose sigmoid is the probability of the second class
        return [[test([(0, -1)], -score_of(link, 1 - p, off(max(p, 0.5)), not is_not))]]
    if trees.decision != "argmax" or link == "sigmoid":
        return [[test([(label if n > 1 else 0, 1)], score_of(link, p, -off(p), is_not))]]
    if link == "identity" and not trees.has_votes:  # shares of a whole: the score is the probability
        return [[test([(label, 1)], p)]]
    demand(link in ("softmax", "identity"), "such a model has no probabilities")
    trees.divisor = trees.whole * (len(trees.classes) - 1 if trees.has_votes else 1)
    p *= 1 - by * Fraction(2 * n + 4, 2 ** (trees.digits - 1))
    odds: Any = score_of("sigmoid", p, ZERO, is_not)  # by which its score is above every other, at least
    odds += score_of("exp", n - 1, ZERO, True) if is_not else ZERO  # or, if it has less, above one of them, at most
    found = [test([(label, 1), (k, -1)], odds, p) for k in range(n) if k != label]
    return [[one] for one in found] if is_not else [found]


def agreed(models: Sequence[Trees], target: Json | None, leave: int, reach: int) -> tuple[Ways, list[Ways]]:
    """The ways to be an answer to all models: a way to be one to each, together; and the ways to be none to each.

    A class is named by its number in the first model, and is the one with the same label in the others.
    """
    is_class, goals, others = target is None or target["kind"] == "Probability", [list[Test]()], []
    at = int(target["class"] if target and is_class else reach)
    demand(at >= 0 or len(models) == 1, "no class is named that all models have to give")
    for trees in models:
        own = trees.classes.index(models[0].classes[at]) if is_class and trees is not models[0] else at
        first, named = leave if len(models) == 1 else own, target and target | {"class": own}
        goals = [[*goal, *way] for way in ways(trees, named, first, own) for goal in goals]
        others.append(ways(trees, named, own, -1, True) if own >= 0 else ways(trees, named, leave, leave, True))
    return goals, others


def like_the_data(limit: Json, first: int) -> Test:
    """That an isolation score, 2^(-sum of path lengths / the usual sum), is not above its limit: the sum is long."""
    demand(limit["kind"] == "isolation score", f"this program does not judge a limit on a {limit['kind']}", UNPROVEN)
    most, usual = exactly([limit["limit"], limit["usual"]])
    demand(min(most, usual) > 0, "a limit on what is like the data is above 0")
    powers: Any = (score_of("exp", most, ZERO, True), score_of("exp", Fraction(2), ZERO, True))
    least = -usual * powers[0] / powers[1]
    return Test(Trees(limit["forest"], first), ((0, 1),), least - (abs(least) + 2 * usual) / 2**48)


class PerColumn:
    """Sums of l1 |u|, of a fee l0, the root of a sum of l2 u^2, and the largest linf |u|, with u = w / scale."""

    noise = ZERO

    def __init__(self, record: Json, columns: Sequence[CellColumn], proof: Json) -> None:
        self.columns, self.seen = list(columns), [f for f, column in enumerate(columns) if not column.is_still]
        self.scale, self.origin = [c.scale for c in columns], [ZERO if c.is_still else Fraction(c.row) for c in columns]
        self.read(record["distance_function"], record, proof)

    def read(self, distance: Json, record: Json, proof: Json) -> None:
        """What is written of it."""
        l1, l2, linf, l0 = map(exactly, distance["weights"])
        demand(min(map(min, (l1, l2, linf, l0))) >= 0, "the distance has a weight below 0")
        of = [(f, c, c.scale) for f, c in enumerate(self.columns)]
        self.parts = {f: Step(c, fee=l0[f], edge=l1[f] / s) for f, c, s in of if any(l1 + l0 + linf)}
        self.largest = {f: Step(c, edge=linf[f] / s) for f, c, s in of if any(linf)}
        self.squares = {f: self.bend(f, l2[f]) for f, _, _ in of}

    def bend(self, f: int, by: Fraction, at: Fraction = ZERO) -> Step:
        """By (u - at)^2 of a column, u = (v - origin) / scale."""
        return Step(self.columns[f], bend=by / self.scale[f] ** 2, middle=self.origin[f] + at * self.scale[f])

    def linear(self, slopes: dict[int, Fraction], limit: Fraction) -> Inequality:
        """The sum of slopes u is at most the limit."""
        steps = {f: Step(self.columns[f], tilt=slope / self.scale[f]) for f, slope in slopes.items()}
        return Inequality(steps, limit + sum(step.tilt * self.origin[f] for f, step in steps.items()), size=limit)

    def placed(self, values: Sequence[float]) -> list[Fraction]:
        """A point in the space in which the distance is measured."""
        of = zip(self.columns, values, self.origin, self.scale, strict=False)
        return [ZERO if column.is_still else (Fraction(v) - origin) / scale for column, v, origin, scale in of]

    def sums(self, below: Fraction, point: Sequence[Fraction], cells: Any) -> list[Inequality]:
        """What is true of every point of a box that is cheaper, some of it by a point; without a box, of all."""
        if not self.parts:
            return [Inequality(self.squares, below**2)]
        return [Inequality(self.parts, below, self.squares, self.largest)]


class Quadratic(PerColumn):
    """u' Q u or its root, u = w / scale. For every c it is at least 2 c' Q u - c' Q c.

    For any one column f it is even (u_f - c_f)^2 / C_ff more, C the inverse of Q, since (u - c)' Q (u - c) is at least
    that. With c = 0: a point below the claim has u_f^2 <= claim C_ff.
    """

    def read(self, distance: Json, record: Json, proof: Json) -> None:  # noqa: D102
        self.matrix, n = [exactly(row) for row in distance["inverse"]], len(self.columns)
        is_whole = self.matrix == [list(row) for row in zip(*self.matrix, strict=True)] and len(self.matrix) == n
        demand(is_whole, "the distance's matrix is not symmetric")
        self.power = 2 if distance["kind"] == "MAHALANOBIS" else 1
        self.noise = Fraction(1, 10 ** (16 // self.power))
        rows = [[*row, *(Fraction(f == g) for g in range(n))] for f, row in enumerate(self.matrix)]
        for f in range(n):  # Gauss and Jordan; pivots above 0 say that no point costs less than 0
            demand(rows[f][f] > 0, "the distance's matrix is not positive definite")
            rows[f] = [v / rows[f][f] for v in rows[f]]
            for g in (g for g in range(n) if g != f and rows[g][f]):
                rows[g] = [a - rows[g][f] * b if b else a for a, b in zip(rows[g], rows[f], strict=True)]
        self.variance = [Fraction(math.nextafter(rows[f][n + f], math.inf)) for f in range(n)]

    def sums(self, below: Fraction, point: Sequence[Fraction], cells: Any) -> list[Inequality]:  # noqa: D102
        c = {f: point[f] if point else ZERO for f in self.seen}
        slopes = {f: 2 * sum((self.matrix[f][g] * c[g] for g in self.seen if c[g]), ZERO) for f in self.seen}
        found = self.linear(slopes, below**self.power + sum((slopes[f] * c[f] for f in self.seen), ZERO) / 2)
        found.more = {f: self.bend(f, 1 / self.variance[f], c[f]) for f in self.seen}
        return [found] if point or cells is None else []


class Angle(PerColumn):
    """1 - T / sqrt(N |y|^2), with y = (v - offset) / scale, z that of the row, T = <z, y>, N = |z|^2, weights inside.

    T is one column more, with ranges for cells. Who is cheaper than 1 - k, k > 0, has T > 0 and |y|^2 < T^2 G / N with
    G = 1 / k^2. Then
    1. T > k sqrt(N) <c, y> / |c| for every c, for <c, y> is at most |c| |y|; for c = y whatever k is;
    2. y_f / T lies between z_f / N - r and z_f / N + r, with r^2 = (G - 1) (1 - w z_f^2 / N) / (w N): what y has at a
       right angle to z has a square below (G - 1) T^2 / N;
    3. where T is from s to t, T^2 <= (s + t) T - s t, so that |y|^2 - (G / N) (s + t) T is below -(G / N) s t.
    """

    noise = Fraction(1, 10**10)

    def read(self, distance: Json, record: Json, proof: Json) -> None:  # noqa: D102
        weight, row, self.origin = exactly(distance["weight"]), self.origin, exactly(record["offset"])
        self.w = {f: weight[f] for f in self.seen if weight[f]}
        self.z = {f: (row[f] - self.origin[f]) / self.scale[f] for f in self.w}
        self.norm = sum((w * self.z[f] ** 2 for f, w in self.w.items()), ZERO)
        demand(min(weight) >= 0, "the distance has a weight below 0")
        demand(self.norm > 0, "this program does not judge directions from a row without one", UNPROVEN)
        self.columns.append(Length(exactly(proof["lengths"])))  # in which T is counted
        self.scale, self.origin = [*self.scale, ONE], [*self.origin, ZERO]

    def sums(self, below: Fraction, point: Sequence[Fraction], cells: Any) -> list[Inequality]:  # noqa: D102
        found, k, last = [], 1 - below, len(self.columns) - 1
        along, cone = {f: w * self.z[f] for f, w in self.w.items()}, []
        for f, w in self.w.items() if 0 < k < 1 else ():
            middle, across = self.z[f] / self.norm, (1 - w * self.z[f] ** 2 / self.norm) / (w * self.norm)
            r = root((1 / k**2 - 1) * across, up=True)
            cone += [(f, by, by * middle + r) for by in (ONE, -ONE)]  # by y_f <= (by z_f / N + r) T
        if cells is None and k > 0:
            found = [self.linear({last: -by, **{f: by * a for f, a in along.items()}}, ZERO) for by in (ONE, -ONE)]
            found += [self.linear({f: by, last: -slope}, ZERO) for f, by, slope in cone]
        elif k > 0 and cells:
            ends = [(min(a for a, _ in own.values()), max(b for _, b in own.values())) for own in cells]
            terms = [
                sorted(a * y for y in ((Fraction(v) - self.origin[f]) / self.scale[f] for v in ends[f]))
                for f, a in along.items()
            ]
            s, t = (pick(ends[last][i], sum(own[i] for own in terms)) for i, pick in enumerate((max, min)))
            found = [self.linear({f: by}, max(slope * s, slope * t)) for f, by, slope in cone]
            by = 1 / (k**2 * self.norm)
            ball = self.linear({f: -by * (s + t) * a for f, a in along.items()}, -by * s * t)
            ball.parts = {f: self.bend(f, self.w[f]).plus(step) for f, step in ball.parts.items()}
            found.append(ball)
        if square := sum((w * point[f] ** 2 for f, w in self.w.items()), ZERO) if point else ZERO:
            by = k * root(self.norm / square, up=False)  # any smaller one is right, too
            found.append(self.linear({f: w * (by * point[f] - self.z[f]) for f, w in self.w.items()}, ZERO))
        return found


COSTS = {"norms": PerColumn, "MAHALANOBIS": Quadratic, "MAHALANOBIS_SQUARED": Quadratic, "COSINE": Angle}


class Proof:
    """A certificate's question, and the trees of boxes that prove what it says of all points."""

    def __init__(self, record: Json, *files: Json) -> None:
        asked, names = record["question"], ("decision", "cut", "cut_high", "favoured", "link", "divisor")
        files = files[0] | {name: asked[name] for name in names if name in asked}, *files[1:]
        wraps = [own.get(name) for own in files for name in ("maps", "voices", "rounding")]
        is_wrapped = any(wraps) or any(own.get("decision") == "likely" for own in files)
        demand(not is_wrapped, "this program does not judge a model whose scores a wrapper goes on with", UNPROVEN)
        also, reach, target = record.get("also", []), int(record["reach"]), asked.get("target")
        told = f"the certificate is about {1 + len(also)} models, and there are files of {len(files)}"
        demand(len(files) == 1 + len(also), told, UNPROVEN)
        self.models: list[Trees] = []
        for file, margin in zip(files, [0.0, *(number(one["margin"]) for one in also)], strict=True):
            demand(not margin or target is None, "margins are of classes", UNPROVEN)
            first = sum(len(own.value) for own in self.models)
            self.models.append(Trees(file, first, files[0]["classes"][reach] if margin else None, margin))
        labels, named = self.models[0].labels, {tuple(own.get("feature_names") or ()) for own in files} - {()}
        is_alike = all(own.labels == labels for own in self.models) and len(named) < 2
        demand(is_alike, "the models are not in the same columns and categories", UNPROVEN)
        demand(isinstance(record["rules"], list), "the certificate's rules are not a list")
        self.questioned = [CellColumn(record, own, f) for f, own in enumerate(labels)]
        self.proof = record.get("proof") or {"lengths": []}
        self.cost: Any = COSTS[record["distance_function"]["kind"]](record, self.questioned, self.proof)
        self.columns = self.cost.columns  # perhaps one more
        found = [(rule["kind"], one) for rule in record["rules"] for one in rule_sums(rule, self.questioned)]
        self.rules, self.priced = [one for _, one in found], [one for kind, one in found if kind == "Linear"]
        self.wanted, self.others = agreed(self.models, target, int(record["leave"]), reach)
        self.trees, self.goals = self.models, self.wanted
        if "plausibility" in record:
            test = like_the_data(record["plausibility"], sum(len(own.value) for own in self.models))
            demand(test.trees.labels == labels, "the isolation forest is of other categories")
            others = [k for k in range(max(2, len(self.models[0].base))) if k != int(record["leave"])]
            to = [reach] if target or reach >= 0 else others
            self.goals = [[*goal, test] for k in to for goal in agreed(self.models, target, k, k)[0]]
            self.trees = [*self.models, test.trees]

    def is_answer(self, values: Sequence[float], goals: Sequence[Sequence[Test]]) -> bool:
        """Whether a point is an answer in one of these ways."""
        for column, value in zip(self.questioned, values, strict=True):
            column.cells = [(value, value)]
            column.numbers = [ends for ends in column.cells if value == value]
        lost = Leaves(self.trees, self.questioned).lost([1] * len(values))
        return any(all(test.is_met(lost) for test in goal) for goal in goals)

    def fulfils(self, values: Sequence[float], sums: Sequence[Inequality]) -> bool:
        """Whether a point does: it is a box of a single cell a column."""
        cells = [1] * len(self.columns)
        for one in sums:
            one.over([{0: (value, value)} for value in values]).narrow(cells)
        return all(cells)

    def check_point(self, values: list[float], claimed: float) -> str:
        """Demand that a point is an answer and costs what is said, to nine digits."""
        demand(all(map(CellColumn.allows, self.questioned, values)), "the point has a value that is not allowed")
        demand(self.fulfils(values, self.rules), "the point breaks a rule")
        near, far = (Fraction(claimed) * (1 + by * Fraction(1, 10**9)) + by * self.cost.noise for by in (-1, 1))
        at = [] if type(self.cost) is PerColumn else self.cost.placed(values)  # where no value may be missing
        is_near, is_nearer = (self.fulfils(values, self.cost.sums(below, at, [])) for below in (far, near))
        demand(is_near and (near <= 0 or not is_nearer), f"the point is not {claimed:.9g} away")
        demand(self.is_answer(values, self.goals), "the model does not give the wanted answer")
        told = f"The point is an answer: the model gives what is asked for, all rules hold, it is {claimed:.9g} away."
        is_asked = any(first < last for first, last in map(CellColumn.around, self.questioned, values))
        return told + self.check_room(values) if is_asked else told

    def check_room(self, values: list[float]) -> str:
        """Demand a proof that every point of the box around a point is an answer: to each model, that none is not."""
        demand("around" in self.proof, "the certificate holds no proof of the room around the point", UNPROVEN)
        for trees, goals, own in zip(self.models, self.others, self.proof["around"], strict=True):
            case = copy(self)
            case.trees, case.goals, case.wanted, case.proof = [trees], goals, goals, own
            case.rules, case.priced, case.cost = [], [], None
            case.questioned = case.columns = list(map(CellColumn.within, self.questioned, values))
            case.check_others(math.inf)
        return " It has the room to move that is asked for."

    def check_others(self, bound: float) -> str:
        """Demand a proof that no answer is nearer than the bound, or, at infinity, that there is none."""
        demand("goals" in self.proof, "the certificate holds no proof; certificate(proof=True) writes one", UNPROVEN)
        demand(self.proof.get("format") == "treefocus-proof-3", "the proof is of another format")
        below, is_all = number(self.proof["below"]), bound == math.inf
        is_enough = is_all or (below > 0 and Fraction(below) >= Fraction(bound) * (1 - OPTIMAL_TO) - self.cost.noise)
        demand((below == math.inf) == is_all and is_enough, "the proof is not about what is claimed")
        for column, cells in zip(self.questioned, self.proof["cells"], strict=True):
            column.cut(cells)
        self.below, self.leaves = None if is_all else Fraction(below), Leaves(self.trees, self.columns)
        self.refused = [self.refusal(own) for own in self.proof.get("refused", [])]
        whole = [(1 << len(column.cells)) - 1 for column in self.columns]
        sums = [*self.rules, *([] if is_all else self.cost.sums(Fraction(below), [], None))]
        self.always = [one.over(self.ends(whole)) for one in sums]
        n = sum(self.walk(goal, own, whole) for goal, own in zip(self.goals, self.proof["goals"], strict=True))
        told = "There is no answer at all" if is_all else f"No answer is closer than {below:.9g}"
        told += " and has the room to move" if any(any(column.room) for column in self.questioned) else ""
        return f"{told}: {n} boxes hold all that is allowed, and each is closed."

    def refusal(self, record: Sequence[Sequence[int]]) -> list[int]:
        """A box, by ranges of its cells, of which no point gets the wanted outcome."""
        box = [ranges(own, len(column.cells)) for own, column in zip(record, self.questioned, strict=True)]
        lost = self.leaves.lost(box)
        is_refused = all(box) and all(any(test.fails(lost) for test in goal) for goal in self.wanted)
        demand(is_refused, "a box near which no answer is said to be has one inside")
        return box

    def ends(self, cells: Sequence[int]) -> list[dict[int, Ends]]:
        """The ends of the cells of a box."""
        return [{cell: c.cells[cell] for cell in members(own)} for c, own in zip(self.columns, cells, strict=True)]

    def walk(self, goal: Sequence[Test], record: Json, whole: list[int]) -> int:
        """Go through the boxes of a goal, a box, its first side, its second side; None: nothing is left. How many."""
        tokens, n_closed, waiting = iter(record["boxes"]), 0, [self.settled(whole, None)]

        def read(n: int) -> int:
            token: Any = next(tokens, None)
            demand(type(token) is int and 0 <= token < n, "the proof names what is not there, or ends too early")
            return int(token)

        while waiting:
            box, token = waiting.pop(), read(NEAR + 1)
            if token == WEIGH:
                weights = record["weights"][read(len(record["weights"]))]
                waiting.append(box and self.settled(box[0], weights))
            elif token == SPLIT:  # into the cells of some ranges, and all others
                f = read(len(self.columns))
                n = len(self.columns[f].cells)
                first = ranges([read(n + 1) for _ in range(2 * read(n + 1))], n)
                for side in (~first, first):
                    cells = box and [own & side if g == f else own for g, own in enumerate(box[0])]
                    waiting.append(cells and self.settled(cells, box[1]))
            else:
                test = goal[read(len(goal))] if token == SCORE else None
                lost = self.leaves.lost(box[0]) if box else 0
                demand(not box or token != EMPTY, "of a box something is left")
                demand(not box or not test or test.is_beyond(lost), "in a box the score is within reach")
                demand(not box or token != CELL or not all(test.is_met(lost) for test in goal), "a box holds an answer")
                near = self.refused[read(len(self.refused))] if token == NEAR else []
                is_near = all(map(CellColumn.is_near, self.questioned, box[0] if box and near else [], near))
                demand(is_near, "in a box there may be room to move")
                n_closed += 1
        demand(next(tokens, None) is None, "the proof goes on after every box is closed")
        return n_closed

    def settled(self, cells: Any, weights: Any) -> Any:
        """A box without what the sums leave out; None if nothing is left."""
        cells = list(cells)
        for _ in range(ROUNDS):
            before = list(cells)
            for one in self.always:
                one.narrow(cells)
            if cells == before:
                break
        if not all(cells):
            return None
        if not weights and type(self.cost) is not Angle:
            return cells, weights
        (point, prices), ends = map(exactly, weights or ([], [])), self.ends(cells)
        demand(len(prices) in (0, len(self.priced)) and min(prices, default=0) >= 0, "a price is missing, or below 0")
        found = [] if self.below is None else self.cost.sums(self.below, point, ends)
        for one in [*found, Inequality({}, ZERO)]:
            for price, rule in zip(prices, self.priced, strict=False):
                one.limit += price * rule.limit
                for f, step in rule.parts.items():
                    one.parts = one.parts | {f: one.parts.get(f, Step(step.column)).plus(step, price)}
            one.over(ends).narrow(cells)
        return (cells, weights) if all(cells) else None


def check(certificate: Json, *models: Json) -> list[str]:
    """What holds, in sentences."""
    status, bound, point = certificate["status"], number(certificate["lower_bound"]), certificate["point"]
    demand(status in ("OPTIMAL", "BOUNDED", "INFEASIBLE", "FOUND", "NOT_FOUND"), f"{status!r} is not a status")
    demand(bound >= 0 and (bound == math.inf) == (status == "INFEASIBLE"), "status and bound do not go together")
    demand((point is not None) == (status in ("OPTIMAL", "BOUNDED", "FOUND")), "status and point do not go together")
    case, sentences = Proof(certificate, *models), []
    if certificate["question"].get("target") is None and int(certificate["reach"]) < 0:
        demand(
            not case.is_answer([c.row for c in case.questioned], case.wanted), "the row is not of the class to be left"
        )
    if point is not None:
        distance = number(certificate["distance"])
        demand(0 <= distance < math.inf and bound <= distance * (1 + 1e-9), "bound and distance do not go together")
        is_least = Fraction(bound) >= Fraction(distance) * (1 - OPTIMAL_TO) - case.cost.noise
        demand(status != "OPTIMAL" or is_least, "the bound is below the distance that is called the smallest")
        sentences.append(case.check_point([number(value) for value in point], distance))
    return sentences + ([case.check_others(bound)] if bound > 0 else [])


ASSUMED = (
    "This holds if the question in the certificate (row, limits, rules, scales, distance, target) is the one you ask, "
    "and each model file is its model: values are compared in its input type, leaves added up in its order and type of "
    f"numbers, and a library's own exponentials (for probabilities) are right to {LINK_ULPS} units in the last place."
)


def judge(certificate: Json, *models: Json) -> tuple[int, list[str]]:
    """The exit code, and what is to be said of the model and of the others that have to agree, in their order."""
    try:
        return ACCEPTED, ["ACCEPTED.", *check(certificate, *models), ASSUMED]
    except VerdictError as verdict:
        why, code = verdict.args
        return code, [f"{'REJECTED' if code == REJECTED else 'NOT PROVEN'}: {why}."]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return REJECTED, [f"REJECTED: the certificate or the model is not whole ({type(error).__name__}: {error})."]


def main(arguments: Sequence[str]) -> int:
    """Judge the certificate in the first file by the models in the others, compressed or not; the exit code."""
    if len(arguments) < 2:
        print(str(__doc__).split("\n", 1)[0])
        return MISUSE
    try:
        files = [Path(path).read_bytes() for path in arguments]
        records = [json.loads(gzip.decompress(own) if own[:2] == b"\x1f\x8b" else own) for own in files]
    except (OSError, ValueError, EOFError) as error:
        print(f"{' or '.join(arguments)} cannot be read: {error}.")
        return MISUSE
    code, sentences = judge(*records)
    print("\n".join(sentences))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
