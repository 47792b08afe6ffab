"""Check a proof: python check.py certificate.json model.json

This program decides whether a certificate of treefocus is right. It is one file, needs Python and nothing else, and
shares no code with the search that wrote the certificate. No argument in it rests on floating-point arithmetic: floats
are read as the rational numbers they are, and what must be rounded is rounded to the safe side.

What is claimed. A certificate holds a question (a row, what may change and how much a change counts, which answer is
wanted of the model) and says: this point is an answer and costs so much; no answer costs less than so much; there is no
answer at all. The first is checked by computing. The others speak of all points, and need the proof.

What a proof is. The model is a forest. The thresholds of a column cut its numbers into cells, inside of which the model
cannot tell two numbers apart. A box says which cells of every column are left. A proof is a tree of boxes for each way
in which a point could be an answer. The first box holds all that is allowed. A box is split in two, so that each of its
points is on one side, or closed by a reason why it holds no answer that is cheaper than the claim:

    FAR     its closest point costs as much as the claim, or it has no point;
    RULE    a rule of the question cannot hold in it;
    SCORE   every tree gives its best leaf that the box still reaches, and the sum is not enough;
    CELL    every tree has one leaf left, and computed as the model computes, the answer is another one;
    SUMS    its points cost as much as the claim, or break a Linear rule: whoever obeys the rules does not pay less if a
            price is put on breaking them, and with the prices of the proof even the cheapest of each column does.

If all boxes are closed, a cheaper answer would be in none of them: there is none. docs/proof.md has the whole argument.
Exit code: 0 accepted, 1 rejected, 2 misuse, 3 not proven (no proof inside, or one that this program does not judge).
"""

from __future__ import annotations

import gzip
import json
import math
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import or_
from typing import Any

Json = dict[str, Any]
Part = tuple[int, int, int]  # what a column adds to a cost: to a sum, to a sum of squares, to a maximum
ACCEPTED, REJECTED, MISUSE, UNPROVEN = range(4)
FORMAT = "treefocus-proof-1"
FAR, RULE, SCORE, CELL, ABOVE, BELOW, CELLS, FROM, UP_TO, STAY, SUMS = range(11)  # what the boxes are written in
ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED = range(5)  # which numbers a column can hold
LINK_ULPS = 4  # by so many units in the last place may a library's exponential be off: an assumption, and told
OPTIMAL_TO = Fraction(1, 10**8)  # "the smallest" means: up to this share of the distance
DIGITS = 100  # costs are kept to 2^-100 of the claim, rounded down


class VerdictError(Exception):
    """The end of a check that is not accepted: the exit code, and why."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code, self.why = code, why


def demand(holds: bool, otherwise: str) -> None:
    """Reject, unless it holds."""
    if not holds:
        raise VerdictError(REJECTED, otherwise)


# ---------------------------------------------------------------------------------------------------------- numbers


def number(value: Any) -> float:
    """A number of a file; infinities and missing values are written as words."""
    demand(isinstance(value, int | float | str) and not isinstance(value, bool), f"{value!r} is not a number")
    return float(value)


def as_float32(value: float) -> float:
    """The nearest float32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def next_float32(value: float, up: bool) -> float:
    """The float32 beside a float32."""
    if value == 0:
        return 2.0**-149 if up else -(2.0**-149)
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<i", bits + (1 if up == (value > 0) else -1)))[0])


def floor_float32(value: float) -> float:
    """The largest float32 that is not above the value."""
    nearest = as_float32(value)
    return next_float32(nearest, up=False) if nearest > value else nearest


def scaled(value: Fraction | float, bits: int) -> int:
    """The value times 2^bits, rounded down."""
    value = Fraction(value)
    return (value.numerator << max(bits, 0)) // (value.denominator << max(-bits, 0))


def log_below(value: Fraction) -> Fraction:
    """At most the logarithm of a number above 0, and within 10^-49 of it; Decimal.ln is right to the last digit."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln()) - Fraction(1, 10**50)


def members(mask: int) -> Iterator[int]:
    """The bits of a mask, the lowest first."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def mask_of(bits: Any) -> int:
    """A mask of these bits."""
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


# ------------------------------------------------------------------------------------------------------------ model


class Trees:
    """A treefocus-forest-1 file (docs/forest-format.md)."""

    def __init__(self, record: Json) -> None:
        demand(record.get("format") == "treefocus-forest-1", "the model is not a treefocus-forest-1 file")
        self.feature: list[int] = record["feature"]
        self.right: list[int] = record["right"]
        self.threshold = [float(t) for t in record["threshold"]]
        self.default_left: list[bool] = record["default_left"]
        self.start: list[int] = record["tree_start"]
        self.n_columns, self.n_trees = int(record["n_features"]), len(self.start) - 1
        self.base = [float(b) for b in record["base_score"]]
        self.value = [[float(v) for v in row] for row in record["leaf_value"]]
        self.divisor, self.link = float(record.get("divisor", 1.0)), record.get("link", "identity")
        self.decision, self.cut = record.get("decision", "argmax"), float(record.get("cut", 0.0))
        self.n_classes, self.n_outputs, self.n_leaves = len(record["classes"]), len(self.base), len(self.value)
        self.is_float32 = record.get("input_dtype", "float64") == "float32"
        self.has_float32_sum = record.get("score_dtype", "float64") == "float32"
        # AdaBoost's votes of several classes, whose probabilities are a softmax of them
        self.has_votes = self.link == "identity" and record.get("leaf_distribution") is not None and self.n_classes > 2
        categories = record.get("categories") or {}
        self.set_of_node: list[int] = categories.get("set_of_node", [-1] * len(self.feature))
        self.labels: list[Any] = categories.get("labels", [None] * self.n_columns)
        ends = categories.get("set_start", [0])
        self.sets = [set(categories["set_member"][a:b]) for a, b in pairwise(ends)]
        self.check(record)
        if self.has_float32_sum:  # the library holds them so
            self.base = [as_float32(b) for b in self.base]
            self.value = [[as_float32(v) for v in row] for row in self.value]
        numbers = [v for row in [*self.value, self.base] for v in row]
        self.bits = max(v.as_integer_ratio()[1].bit_length() - 1 for v in numbers)  # so that all become whole numbers
        leaves = [node for node, f in enumerate(self.feature) if f < 0]
        self.leaf_of_node = {node: leaf for leaf, node in enumerate(leaves)}
        self.tree_of_leaf = [bisect_right(self.start, node) - 1 for node in leaves]

    def check(self, record: Json) -> None:
        """Trees in pre-order and finite numbers: what the rest of this program relies on."""
        n, left, start = len(self.feature), record["left"], self.start
        sizes = {len(one) for one in (self.threshold, left, self.right, self.default_left, self.set_of_node)}
        demand(sizes == {n} and start[0] == 0 and start[-1] == n, "the model's nodes do not go together")
        demand(sum(f < 0 for f in self.feature) == self.n_leaves, "the model's leaves do not go together")
        demand(all(len(row) == self.n_outputs for row in self.value), "a leaf has too few or too many values")
        numbers = [self.divisor, *self.base, *(v for row in self.value for v in row)]
        demand(all(map(math.isfinite, numbers)) and self.divisor > 0, "the model's scores are not finite")
        demand(len(self.labels) == self.n_columns, "the model's columns do not go together")
        for first, end in pairwise(start):
            waiting = [first]
            for node in range(first, end):
                demand(bool(waiting) and waiting.pop() == node, "the model's nodes are not in pre-order")
                if self.feature[node] >= 0:
                    demand(self.feature[node] < self.n_columns and left[node] == node + 1, "a node has a wrong child")
                    demand(not math.isnan(self.threshold[node]), "a threshold is no number")
                    waiting += [self.right[node], node + 1]
            demand(not waiting, "the model's nodes are not in pre-order")

    def scores(self, leaves: Sequence[int]) -> list[float]:
        """What the library computes from a leaf of every tree: in the trees' order and in its own type of numbers."""
        sums = list(self.base)
        for leaf in leaves:
            for k in range(self.n_outputs):
                sums[k] += self.value[leaf][k]
                if self.has_float32_sum:
                    sums[k] = as_float32(sums[k])
        return [total / self.divisor for total in sums]

    def rounding(self) -> Fraction:
        """How far rounding can bring a sum of leaves from the exact one, in whatever order it is added up.

        A sum of n + 1 numbers in a type of unit u is off by at most n u / (1 - n u) times the sum of their sizes. The
        division that follows is in float64, and off by a unit of it.
        """
        u, n = Fraction(1, 2**24 if self.has_float32_sum else 2**53), self.n_trees
        largest = [0.0] * n
        for tree, row in zip(self.tree_of_leaf, self.value, strict=True):
            largest[tree] = max(largest[tree], *map(abs, row))
        size = sum(map(Fraction, largest)) + max(Fraction(abs(b)) for b in self.base)
        return size * (n * u / (1 - n * u) + Fraction(1, 2**51))


# ---------------------------------------------------------------------------------------------------------- columns


class ColumnCells:
    """One column of the question: its cells, which values are allowed in each, and what the nearest of them costs.

    Numbers are cut finer than the model cuts them, so that a cell is wholly on one side of everything that is said of
    the column: the model's thresholds, the ends of conditions, the values at which the proof splits, and the row's own
    value, which is a cell of its own. A missing value and every category are cells, too.
    """

    def __init__(self, forest: Trees, question: Json, f: int, starts: set[float], cuts: set[float]) -> None:
        self.row, self.low, self.high = (number(question[name][f]) for name in ("row", "low", "high"))
        self.scale, self.grain = Fraction(number(question["scale"][f])), question["grain"][f]
        demand(self.scale > 0 and self.grain in range(5), "a column has no scale, or an unknown kind of numbers")
        lists = question["lists"]
        self.steps = [number(v) for v in lists["value"][lists["start"][f] : lists["start"][f + 1]]]
        self.listed = sorted(self.steps)  # or, of a column of steps: beginning, step, divisor, whether in float32
        is_sound = len(self.steps) == 4 and all(map(math.isfinite, self.steps)) and min(self.steps[1:3]) > 0
        demand(self.grain != STEPPED or is_sound, "a column of steps has no steps")
        self.is_strict, self.is_category = bool(lists["is_strict"][f]), forest.labels[f] is not None
        missing_is_choice = question["question"].get("missing_is_choice")
        has_choices = self.is_category or bool(missing_is_choice and missing_is_choice[f])
        choices = self.choices(question["choices"], f) if has_choices else []
        self.is_frozen = math.isnan(self.row) and not has_choices  # a missing value that stays
        self.has_missing = has_choices and not self.is_category
        self.is_float32, nodes = forest.is_float32, [i for i, g in enumerate(forest.feature) if g == f]
        if self.is_category:
            demand(all(forest.set_of_node[i] >= 0 for i in nodes), "a category is compared with a number")
            demand(len(choices) >= len(forest.labels[f]) + 2, "a category of the model has no cell")
            self.code = list(range(len(choices)))
            self.own = len(choices) - 1 if math.isnan(self.row) else int(self.row)
            demand(0 <= self.own < len(choices), "the row's category is not there")
            self.ends: list[tuple[float, float] | None] = [None] * len(choices)
            self.delta = [Fraction(i != self.own) if is_in else None for i, is_in in enumerate(choices)]
        else:
            demand(all(forest.set_of_node[i] < 0 for i in nodes), "a number is compared with a set")
            self.cuts = sorted(self.seen_floor(t) for t in {forest.threshold[i] for i in nodes} | cuts)
            self.cuts = [t for i, t in enumerate(self.cuts) if i == 0 or t != self.cuts[i - 1]]
            self.set_cells(starts, bool(choices and choices[-1]))
        self.n_cells = len(self.code)
        self.left = {node: self.left_of(forest, node) for node in nodes}
        self.allowed = mask_of(i for i, delta in enumerate(self.delta) if delta is not None)
        self.stay = self.allowed & (1 << self.own)  # the row's own value, where it is allowed

    def choices(self, record: Json, f: int) -> list[bool]:
        """Which categories may be chosen, as the question says it; the last one stands for a missing value."""
        demand(f in record["column"], "a column of categories, or of missing values, has no choices")
        at = record["column"].index(f)
        return [number(d) < math.inf for d in record["delta"][record["start"][at] : record["start"][at + 1]]]

    def seen_floor(self, value: float) -> float:
        """A threshold as the model compares it."""
        return floor_float32(value) if self.is_float32 else value

    def first_above(self, cut: float) -> float:
        """The first float64 that is above a threshold as the model sees it: rounded to float32, if it does so."""
        if not self.is_float32 or not math.isfinite(cut):
            return math.nextafter(cut, math.inf)
        above = next_float32(cut, up=True)
        if math.isinf(above):
            return math.nextafter(cut, math.inf)
        middle = cut + (above - cut) / 2
        return middle if as_float32(middle) > cut else math.nextafter(middle, math.inf)

    def set_cells(self, starts: set[float], may_be_missing: bool) -> None:
        """The cells of numbers, from one start to the next, and how far the nearest allowed value of each is."""
        x = self.row
        firsts = [self.first_above(cut) for cut in self.cuts]
        starts = starts | set(firsts) | ({x, math.nextafter(x, math.inf)} if math.isfinite(x) else set())
        self.begin = [-math.inf, *sorted(s for s in starts if math.isfinite(s))]
        end = [math.nextafter(s, -math.inf) for s in self.begin[1:]] + [math.inf]
        self.code = [bisect_right(firsts, low) for low in self.begin]
        self.ends = [self.inside(low, high) for low, high in zip(self.begin, end, strict=True)]
        self.delta = [self.distance(ends) for ends in self.ends]
        if self.is_frozen or self.has_missing:
            self.own = len(self.code)
            self.code.append(len(self.cuts) + 1)
            self.ends.append(None)
            self.delta.append(Fraction(not math.isnan(x)) if may_be_missing or self.is_frozen else None)
        if not math.isnan(x):
            self.own = bisect_right(self.begin, x) - 1
            may_stay = self.low <= x <= self.high and (not self.is_strict or x in self.listed)
            self.ends[self.own], self.delta[self.own] = ((x, x), Fraction(0)) if may_stay else (None, None)
        elif self.is_frozen:
            self.delta[:-1] = [None] * len(self.begin)

    def inside(self, low: float, high: float) -> tuple[float, float] | None:
        """The first and the last allowed number from low to high; None if there is none."""
        if math.isnan(self.low) or math.isnan(self.high):  # limits that nothing is within
            return None
        first, last = self.up(max(low, self.low)), self.down(min(high, self.high))
        return (first, last) if first <= last and first < math.inf and last > -math.inf else None

    def distance(self, ends: tuple[float, float] | None) -> Fraction | None:
        """How far the nearest of some numbers on one side of the row is; one that becomes known counts as 1."""
        if ends is None or math.isnan(self.row):
            return None if ends is None else Fraction(1)
        nearest = ends[0] if ends[0] > self.row else ends[1]
        return abs(Fraction(nearest) - Fraction(self.row)) / self.scale

    def up(self, value: float) -> float:
        """The first number that the column can hold, from the value on."""
        if self.grain == LISTED:
            return next(iter(self.listed[bisect_left(self.listed, value) :]), math.inf)
        if self.grain == ANY_FLOAT or not math.isfinite(value):
            return value
        if self.grain == INTEGER:
            return float(math.ceil(value))
        if self.grain == STEPPED:
            return self.step(self.steps_to(value))
        below = floor_float32(value)
        return below if below == value else next_float32(below, up=True)

    def down(self, value: float) -> float:
        """The last number that the column can hold, up to the value."""
        if self.grain == LISTED:
            return next(iter(self.listed[: bisect_right(self.listed, value)][::-1]), -math.inf)
        if self.grain == STEPPED and math.isfinite(value):
            return self.step(self.steps_to(math.nextafter(value, math.inf)) - 1)
        return -self.up(-value)

    def step(self, k: int) -> float:
        """The k-th number of a column of steps, as float64 has it."""
        begin, step, divisor, _ = self.steps
        return (begin + k * step) / divisor + 0.0

    def steps_to(self, value: float) -> int:
        """How many steps it is to the first number from the value on."""
        begin, step, divisor, is_float32 = self.steps
        k = math.floor((Fraction(value) * Fraction(divisor) - Fraction(begin)) / Fraction(step)) - 2
        if is_float32 or abs(k) >= 2**51 or self.step(k) >= value:
            raise VerdictError(UNPROVEN, "this program does not judge steps that are as fine as numbers are")
        while self.step(k) < value:
            k += 1
        return k

    def cell_of(self, value: float) -> int:
        """The cell of a value."""
        if math.isnan(value):
            demand(self.is_category or self.is_frozen or self.has_missing, "a value is missing that cannot be")
            return len(self.code) - 1
        if not self.is_category:
            return bisect_right(self.begin, value) - 1
        demand(value == int(value) and 0 <= value < len(self.code) - 1, "there is no such category")
        return int(value)

    def left_of(self, forest: Trees, node: int) -> int:
        """The cells that a node sends left."""
        if self.is_category:
            known = len(forest.labels[forest.feature[node]])  # a word that the question adds goes where the unseen go
            named = forest.sets[forest.set_of_node[node]]
            mask = mask_of(c for c in self.code[:-1] if min(c, known) in named)
        else:
            split = self.cuts.index(self.seen_floor(forest.threshold[node]))
            mask = mask_of(i for i in range(len(self.begin)) if self.code[i] <= split)
        is_last_left = forest.default_left[node] and (self.is_category or len(self.code) > len(self.begin))
        return mask | (1 << (len(self.code) - 1)) if is_last_left else mask

    def meets(self, condition: Json) -> int:
        """The cells that meet a condition, numbers from low to high or some categories; a missing value meets none."""
        if condition["categories"] is not None:
            return mask_of(i for i, is_in in enumerate(condition["categories"]) if is_in)
        low, after = number(condition["low"]), math.nextafter(number(condition["high"]), math.inf)
        ends = zip(self.begin, [*self.begin[1:], math.inf], strict=True)
        return mask_of(i for i, (first, end) in enumerate(ends) if low <= first and end <= after)

    def cheapest(self, ends: tuple[float, float], l1: Fraction, l2: Fraction, slope: Fraction) -> Fraction | float:
        """The least of l1 delta + l2 delta^2 + slope v over numbers on one side of the row, from end to end."""
        row, side = Fraction(self.row), 1 if ends[0] > self.row else -1
        bend, tilt = l2 / self.scale**2, side * l1 / self.scale + slope  # bend (v - row)^2 + tilt (v - row) + slope row
        low, high = (Fraction(end) - row if math.isfinite(end) else end for end in ends)
        if bend:
            at = max(low, min(high, -tilt / (2 * bend)))
        else:
            at = low if tilt > 0 else high if tilt < 0 else max(low, min(high, Fraction(0)))
        if not isinstance(at, Fraction):  # without a bend and without an end it falls for ever
            return -math.inf
        return bend * at**2 + tilt * at + slope * row

    def price(self, weights: Sequence[Fraction], bits: int) -> None:
        """Costs from here on, as whole numbers, rounded down: l1 delta + l0; l2 delta^2; linf delta."""
        l1, l2, linf, l0 = weights
        self.part: list[Part] = []
        for delta in self.delta:
            d = delta or Fraction(0)
            added = scaled(l1 * d + l0, bits) if d else 0
            self.part.append((added, scaled(l2 * d * d, 2 * bits), scaled(linf * d, bits)))
        self.order = sorted(members(self.allowed), key=lambda cell: self.part[cell])
        self.nearest = list(accumulate((1 << cell for cell in self.order), or_, initial=0))

    def least(self, cells: int) -> Part:
        """What the nearest of some cells costs."""
        return min(self.part[cell] for cell in members(cells))


class Relation:
    """A relation: AtMost n columns change, all or none do (Together), a value Implies another, a Linear sum."""

    def __init__(self, record: Json) -> None:
        self.kind = record["kind"]
        demand(self.kind in ("AtMost", "Together", "Implies", "Linear"), f"{self.kind!r} is not a rule")
        if self.kind == "Implies":
            self.cause, self.effect = record["cause"], record["effect"]
            self.columns = [int(self.cause["column"]), int(self.effect["column"])]
            return
        self.columns = [int(column) for column in record["columns"]]
        self.n = int(record["n"]) if self.kind == "AtMost" else 0
        if self.kind == "Linear":
            self.coefficient = [Fraction(number(c)) for c in record["coefficient"]]
            self.bound = Fraction(number(record["bound"]))
            demand(len(self.coefficient) == len(self.columns), "a sum has not a coefficient for every column")

    def narrowed(self, cells: Sequence[int], columns: Sequence[ColumnCells]) -> dict[int, int] | None:
        """What the rule leaves of columns that it leaves no choice; None if it cannot hold."""
        if self.kind == "Implies":
            f, g = self.columns
            is_due = not cells[f] & ~columns[f].meets(self.cause)
            return None if is_due and not cells[g] & columns[g].meets(self.effect) else {}
        if self.kind == "Linear":
            return None if self.least_sum(cells, columns) > self.bound else {}
        changing = [f for f in self.columns if not cells[f] & columns[f].stay]
        staying = [f for f in self.columns if cells[f] == columns[f].stay]
        if len(changing) > self.n if self.kind == "AtMost" else bool(changing and staying):
            return None
        is_full = len(changing) == self.n if self.kind == "AtMost" else bool(staying)
        return {f: columns[f].stay for f in self.columns if f not in changing and f not in staying} if is_full else {}

    def least_sum(self, cells: Sequence[int], columns: Sequence[ColumnCells]) -> Fraction | float:
        """The least that a sum can be, less what the rounding of its terms may hide."""
        total = size = Fraction(0)
        for f, coefficient in zip(self.columns, self.coefficient, strict=True):
            found = [columns[f].ends[cell] for cell in members(cells[f])]
            ends = [end for pair in found for end in (pair or (math.nan,))]
            if not all(map(math.isfinite, ends)):  # of a missing value the rule asks nothing
                return -math.inf
            terms = [coefficient * Fraction(end) for end in ends]
            total, size = total + min(terms), size + max(map(abs, terms))
        return total - (size + abs(self.bound)) * (len(self.columns) + 4) / 2**52

    def holds(self, point: Sequence[float], columns: Sequence[ColumnCells]) -> bool:
        """Whether a point obeys: of a sum, up to what the rounding of its terms may hide."""
        cells = {f: 1 << columns[f].cell_of(point[f]) for f in self.columns}
        if self.kind == "Linear":
            if any(math.isnan(point[f]) for f in self.columns):
                return True
            terms = [c * Fraction(point[f]) for f, c in zip(self.columns, self.coefficient, strict=True)]
            slack = (max(map(abs, terms)) + abs(self.bound)) * (len(terms) + 4) / 2**52
            return sum(terms) <= self.bound + slack
        every = [cells.get(f, 0) for f in range(len(columns))]
        return self.narrowed(every, columns) is not None


# --------------------------------------------------------------------------------------------------------- question


class ScoreTest:
    """What every answer fulfils: sum of sign * score >= at_least, or > if strict, of scores as the library has them."""

    def __init__(
        self, forest: Trees, signs: Sequence[tuple[int, int]], at_least: Fraction | float, is_strict: bool = False
    ) -> None:
        self.signs, self.at_least, self.is_strict = signs, at_least, is_strict
        self.weight = [sum(sign * scaled(row[k], forest.bits) for k, sign in signs) for row in forest.value]  # exact
        self.need: int | None = None  # asks nothing
        if at_least > -math.inf:
            whole = Fraction(at_least) * Fraction(forest.divisor)
            need = whole - sum(sign * Fraction(forest.base[k]) for k, sign in signs)
            self.need = scaled(need - len(signs) * forest.rounding() - abs(whole) / 2**51, forest.bits)

    def is_met(self, scores: Sequence[float]) -> bool:
        """Whether these scores fulfil it."""
        if self.need is None:
            return True
        over = sum(sign * Fraction(scores[k]) for k, sign in self.signs) - Fraction(self.at_least)
        return over > 0 or (over == 0 and not self.is_strict)


class Goal:
    """One way to be an answer: the tests that all such answers pass, and the share that a softmax has to give."""

    def __init__(self, tests: list[ScoreTest], own: int = -1, share: Fraction | None = None) -> None:
        self.tests, self.own, self.share = tests, own, share

    def is_met(self, scores: Sequence[float]) -> bool:
        """Whether the model gives this answer at these scores; a softmax is computed to forty digits."""
        if not all(test.is_met(scores) for test in self.tests) or self.share is None:
            return all(test.is_met(scores) for test in self.tests)
        with localcontext() as context:
            context.prec = 60
            total = sum((Decimal(s) - Decimal(scores[self.own])).exp() for s in scores)
        return Fraction(total) * self.share <= 1 + Fraction(1, 10**40)


class Case:
    """What is asked: the allowed values and their cost, and what counts as an answer."""

    def __init__(self, record: Json, model: Json) -> None:
        asked, names = record["question"], ("decision", "cut", "cut_high", "favoured", "link", "divisor")
        self.forest = forest = Trees(model | {name: asked[name] for name in names if name in asked})
        demand(isinstance(record["rules"], list), "the certificate's rules are not a list")
        self.rules, n = [Relation(rule) for rule in record["rules"]], forest.n_columns
        for name in ("row", "low", "high", "scale", "grain"):
            demand(len(record[name]) == n, f"the certificate's {name} has not one entry a column")
        demand(all(0 <= f < n for rule in self.rules for f in rule.columns), "a rule names a column that is not there")
        starts: list[set[float]] = [set() for _ in range(n)]
        cuts: list[set[float]] = [set() for _ in range(n)]
        for rule in self.rules:
            for f, one in zip(rule.columns, (rule.cause, rule.effect) if rule.kind == "Implies" else (), strict=False):
                low, high = number(one["low"]), number(one["high"])
                if one["categories"] is None:
                    starts[f] |= {low, math.nextafter(high, math.inf)}
                    cuts[f] |= {math.nextafter(low, -math.inf)} if math.isfinite(low) else set()
                    cuts[f] |= {high} if math.isfinite(high) else set()
        for goal in (record.get("proof") or {}).get("goals", ()):
            for f, value in goal["values"]:
                demand(0 <= f < n, "the proof splits a column that is not there")
                starts[f] |= {number(value), math.nextafter(number(value), math.inf)}
        self.columns = [ColumnCells(forest, record, f, starts[f], cuts[f]) for f in range(n)]
        distance = record["distance_function"]
        if distance["kind"] != "norms":
            raise VerdictError(UNPROVEN, f"this program does not judge proofs under the distance {distance['kind']}")
        self.weights = [[Fraction(number(w)) for w in part] for part in distance["weights"]]
        demand([len(part) for part in self.weights] == [n] * 4, "the distance has not four weights a column")
        demand(all(w >= 0 for part in self.weights for w in part), "the distance has a weight below 0")
        self.leave, self.reach, self.target = int(record["leave"]), int(record["reach"]), asked.get("target")
        if model.get("maps") or model.get("rounding") or forest.decision == "likely":
            raise VerdictError(UNPROVEN, "this program does not judge a model whose scores a wrapper goes on with")

    def goals(self, side: int = -1) -> list[Goal]:
        """The ways to be an answer. Side -1 leaves out nothing that may be one, +1 lets in only what surely is."""
        forest, n = self.forest, self.forest.n_outputs
        if self.target is not None:
            kind = self.target["kind"]
            demand(kind in ("Probability", "Interval", "Score"), f"{kind!r} is not a target")
            return [self.likely(side) if kind == "Probability" else self.between(side)]
        if forest.decision == "argmax":
            demand(0 <= self.leave < n and -1 <= self.reach < n, "there is no such class")
            wanted = [self.reach] if self.reach >= 0 else [k for k in range(n) if k != self.leave]
            rivals = [self.leave, *(k for k in range(n) if k != self.leave)]  # a tie goes to the first class
            return [Goal([ScoreTest(forest, ((k, 1), (r, -1)), 0, r < k) for r in rivals if r != k]) for k in wanted]
        demand(forest.decision in ("above", "at_least") and n == 1, "the model has no classes")
        demand(self.leave in (0, 1) and self.reach in (-1, 0, 1), "there is no such class")
        is_above, to = forest.decision == "above", 1 - self.leave if self.reach < 0 else self.reach
        sign = 1 if to else -1
        return [Goal([ScoreTest(forest, ((0, sign),), sign * forest.cut, is_above == bool(to))])]

    def score_of(self, shown: Fraction | float, side: int, size: Fraction | float) -> Fraction | float:
        """The score at which the library shows a number, or on one side of it by what the link's rounding is worth.

        The library's exponential may be off by LINK_ULPS units in the last place of a number of this size.
        """
        link, digits = self.forest.link, 24 if self.forest.has_float32_sum else 53
        if link not in ("sigmoid", "exp"):
            raise VerdictError(UNPROVEN, f"this program does not judge numbers behind the link {link!r}")
        if not math.isfinite(shown):
            return float(shown)
        exponent = Fraction(size).numerator.bit_length() - Fraction(size).denominator.bit_length()
        moved = Fraction(shown) + side * LINK_ULPS * Fraction(2) ** (exponent + 1 - digits)
        if moved <= 0 or (link == "sigmoid" and moved >= 1):
            return -math.inf if moved <= 0 else math.inf
        score = log_below(moved / (1 - moved) if link == "sigmoid" else moved)
        return score if side < 0 else score + Fraction(1, 10**49)

    def between(self, side: int) -> Goal:
        """An interval of the predicted number, or of the score itself."""
        low, high = number(self.target["low"]), number(self.target["high"])
        demand(self.forest.n_outputs == 1 and low <= high, "an interval needs one score, and ends in order")
        ends: list[Fraction | float] = [low, high]
        if self.target["kind"] == "Interval" and self.forest.link != "identity":
            ends = [self.score_of(end, way, abs(end) or 5e-324) for end, way in ((low, side), (high, -side))]
        return Goal([ScoreTest(self.forest, ((0, sign),), sign * end) for sign, end in zip((1, -1), ends, strict=True)])

    def likely(self, side: int) -> Goal:
        """A class with a probability of at least p, as the library shows it."""
        forest, label, asked = self.forest, int(self.target["class"]), number(self.target["at_least"])
        demand(0 <= label < forest.n_classes and 0 < asked < 1, "there is no such class, or no such probability")
        p = Fraction(min(asked, as_float32(asked)) if forest.has_float32_sum and side < 0 else asked)
        if forest.decision != "argmax":  # one score, whose sigmoid is the probability of the second class
            at = self.score_of(p if label else 1 - p, side if label else -side, p if label else max(p, Fraction(1, 2)))
            return Goal([ScoreTest(forest, ((0, 1 if label else -1),), at if label else -at)])
        if forest.link == "sigmoid":
            return Goal([ScoreTest(forest, ((label, 1),), self.score_of(p, side, p))])
        if forest.link == "identity" and not forest.has_votes:  # shares of a whole: the score is the probability
            return Goal([ScoreTest(forest, ((label, 1),), p)])
        if forest.link == "identity":
            forest.divisor, forest.link = forest.divisor * (forest.n_classes - 1), "softmax"
        demand(forest.link == "softmax", "such a model has no probabilities")
        p *= 1 + side * Fraction(2 * forest.n_outputs + 4, 2**23 if forest.has_float32_sum else 2**52)
        odds = log_below(p / (1 - p)) if p < 1 else math.inf  # s_own - s_k >= log odds, for every other k
        others = [k for k in range(forest.n_outputs) if k != label]
        return Goal([ScoreTest(forest, ((label, 1), (k, -1)), odds) for k in others], label, p)

    def leaves_of(self, point: Sequence[float]) -> list[int]:
        """The leaf of every tree that a point comes to."""
        forest, found = self.forest, []
        cells = [column.cell_of(value) for column, value in zip(self.columns, point, strict=True)]
        for node in forest.start[:-1]:
            while (f := forest.feature[node]) >= 0:
                is_left = self.columns[f].left[node] >> cells[f] & 1
                node = node + 1 if is_left else forest.right[node]
            found.append(forest.leaf_of_node[node])
        return found


# ------------------------------------------------------------------------------------------------------------ proof


class Leaves:
    """Which leaves a box loses. A set of leaves is a whole number with a bit for each."""

    def __init__(self, case: Case) -> None:
        forest, columns = case.forest, case.columns
        asked: list[dict[int, list[int]]] = [{} for _ in columns]  # by column and cells: the leaves that ask for them
        waiting: list[tuple[int, dict[int, int]]] = [(root, {}) for root in forest.start[:-1]]
        while waiting:
            node, path = waiting.pop()
            f = forest.feature[node]
            if f < 0:
                for g, cells in path.items():
                    asked[g].setdefault(cells, []).append(forest.leaf_of_node[node])
                continue
            known, left = path.get(f, (1 << columns[f].n_cells) - 1), columns[f].left[node]
            waiting += [(node + 1, path | {f: known & left}), (forest.right[node], path | {f: known & ~left})]
        self.asked = [[(cells, mask_of(leaves)) for cells, leaves in own.items()] for own in asked]
        self.known: dict[tuple[int, int], int] = {}

    def lost(self, f: int, cells: int) -> int:
        """The leaves that ask for other cells of a column than these."""
        if (f, cells) not in self.known:
            lost = 0
            for own, leaves in self.asked[f]:
                lost |= 0 if own & cells else leaves
            self.known[f, cells] = lost
        return self.known[f, cells]


State = tuple[list[int], int, int]  # of a test in a box: per tree, which leaf is the best; their sum; and they as a set


class Best:
    """The best leaf of every tree that a box has not lost."""

    def __init__(self, test: ScoreTest, forest: Trees) -> None:
        self.weight, self.tree_of_leaf = test.weight, forest.tree_of_leaf
        self.order: list[list[int]] = [[] for _ in range(forest.n_trees)]
        for leaf in sorted(range(forest.n_leaves), key=lambda leaf: -test.weight[leaf]):
            self.order[forest.tree_of_leaf[leaf]].append(leaf)
        first = [own[0] for own in self.order]
        self.whole: State = [0] * forest.n_trees, sum(test.weight[leaf] for leaf in first), mask_of(first)

    def after(self, state: State, lost: int) -> State | None:
        """The state once these leaves are lost; None if a tree has no leaf left: then the box has no point."""
        at, total, best = state
        gone = best & lost
        if not gone:
            return state
        at = list(at)
        for leaf in members(gone):
            tree = self.tree_of_leaf[leaf]
            order, i = self.order[tree], at[tree] + 1
            while i < len(order) and lost >> order[i] & 1:
                i += 1
            if i == len(order):
                return None
            at[tree], best = i, best ^ (1 << leaf) ^ (1 << order[i])
            total += self.weight[order[i]] - self.weight[leaf]
        return at, total, best


class Box:
    """The cells that are left of every column, what the nearest of each costs, the leaves that are lost, the tests."""

    def __init__(self, cells: list[int], parts: list[Part], lost: int, states: list[State]) -> None:
        self.cells, self.parts, self.lost, self.states = cells, parts, lost, states


class ProofTree:
    """The tree of boxes of one goal, in the order in which it is written: a box, its first side, its second side."""

    def __init__(self, case: Case, leaves: Leaves, goal: Goal, below: float, bits: int, record: Json) -> None:
        self.case, self.forest, self.columns = case, case.forest, case.columns
        self.leaves, self.goal = leaves, goal
        self.below = Fraction(below) if below < math.inf else None
        self.claim = None if self.below is None else -scaled(-self.below, bits)  # rounded up
        self.best = [Best(test, self.forest) for test in goal.tests]
        self.has_maximum = any(case.weights[2])
        self.tokens, self.at = record["boxes"], 0
        self.values = [number(value) for _, value in record["values"]]
        self.prices = [[Fraction(number(p)) for p in prices] for prices in record["prices"]]
        self.closed = [0] * (SUMS + 1)

    def read(self) -> int:
        """The next number of the proof."""
        demand(self.at < len(self.tokens), "the proof ends before every box is closed")
        token = self.tokens[self.at]
        demand(type(token) is int, "a proof is written in whole numbers")
        self.at += 1
        return int(token)

    def run(self) -> None:
        """Go through all boxes; None stands for one in which nothing is left."""
        cells, n = [column.allowed for column in self.columns], len(self.columns)
        whole = Box(cells, [(0, 0, 0)] * n, 0, [best.whole for best in self.best])
        waiting = [self.settled(whole, set(range(n)))]
        while waiting:
            box, token = waiting.pop(), self.read()
            if token <= CELL or token == SUMS:
                argument = self.read() if token in (SCORE, SUMS) else 0
                if box is not None:
                    self.close(box, token, argument)
                self.closed[FAR if box is None else token] += 1
                continue
            f = self.read()
            demand(ABOVE <= token <= STAY and 0 <= f < n, "the proof splits what is not there")
            first = self.first_side(self.columns[f], token)
            for side in (~first, first):  # the first is looked at next
                inner = None
                if box is not None:
                    cells = list(box.cells)
                    cells[f] &= side
                    inner = self.settled(Box(cells, list(box.parts), box.lost, box.states), {f})
                waiting.append(inner)
        demand(self.at == len(self.tokens), "the proof goes on after every box is closed")

    def first_side(self, column: ColumnCells, token: int) -> int:
        """The cells on the first side of a split; all others are on the second."""
        if token == STAY:
            return 1 << column.own
        argument = self.read()
        if token in (ABOVE, BELOW):
            return mask_of(i for i, code in enumerate(column.code) if (code >= argument) == (token == ABOVE))
        if token == CELLS:
            codes = {self.read() for _ in range(argument)}
            return mask_of(i for i, code in enumerate(column.code) if code in codes)
        demand(0 <= argument < len(self.values) and not column.is_category, "the proof splits at no value")
        value = self.values[argument]
        return mask_of(i for i, low in enumerate(column.begin) if (low >= value if token == FROM else low <= value))

    def is_far(self, added: int, squared: int, largest: int) -> bool:
        """Whether added + sqrt(squared) + largest is the claim or more."""
        left = 0 if self.claim is None else self.claim - added - largest
        return self.claim is not None and (left <= 0 or squared >= left * left)

    def settled(self, box: Box, changed: set[int]) -> Box | None:
        """The box without the cells that cost too much, and what rules leave out; None if nothing is left.

        Costs are rounded down, so that what is left out as too far is too far. A missing value that stays has one cell.
        """
        cells, touched = box.cells, set(changed)
        while changed:
            if not all(cells[f] for f in changed):
                return None
            for f in changed:
                box.parts[f] = self.columns[f].least(cells[f])
            added, squared = sum(part[0] for part in box.parts), sum(part[1] for part in box.parts)
            if self.is_far(added, squared, max(part[2] for part in box.parts)):
                return None
            touched |= self.spend(box, added, squared)
            changed = set()
            for rule in self.case.rules:
                narrowed = rule.narrowed(cells, self.columns)
                if narrowed is None:
                    return None
                for f, left in narrowed.items():
                    cells[f] &= left
                    changed.add(f)
            touched |= changed
        for f in touched:
            box.lost |= self.leaves.lost(f, cells[f])
        states = [best.after(state, box.lost) for best, state in zip(self.best, box.states, strict=True)]
        box.states = [state for state in states if state is not None]
        return box if len(box.states) == len(states) else None

    def spend(self, box: Box, added: int, squared: int) -> set[int]:
        """Leaves out cells in which a column alone brings the cost to the claim; the columns that have lost some."""
        narrowed: set[int] = set()
        if self.claim is None:
            return narrowed
        for f, (column, own) in enumerate(zip(self.columns, box.parts, strict=True)):
            rest = max((p[2] for g, p in enumerate(box.parts) if g != f), default=0) if self.has_maximum else 0
            less = added - own[0], squared - own[1], rest

            def is_far(cell: int, less: Part = less, column: ColumnCells = column) -> bool:
                part = column.part[cell]
                return self.is_far(less[0] + part[0], less[1] + part[1], max(less[2], part[2]))

            if is_far(column.order[-1]):
                kept = column.nearest[bisect_left(column.order, True, key=is_far)]
                if box.cells[f] & ~kept:
                    box.cells[f] &= kept
                    narrowed.add(f)
        return narrowed

    def close(self, box: Box, token: int, argument: int) -> None:
        """Demands the reason for which a box, of which something is left, holds no answer below the claim."""
        name = f"box {sum(self.closed) + 1}"
        if token == SUMS:
            demand(0 <= argument < len(self.prices), "there are no such prices")
            demand(self.is_priced_out(box, self.prices[argument]), f"in {name} the rules can be obeyed for less")
            return
        demand(token in (SCORE, CELL), f"{name} is said to be too far, or to break a rule, and does not")
        if token == SCORE:
            demand(0 <= argument < len(self.best), "there is no such test")
            need = self.goal.tests[argument].need
            demand(need is not None and box.states[argument][1] < need, f"in {name} the score is within reach")
            return
        left = list(members(((1 << self.forest.n_leaves) - 1) & ~box.lost))  # in the order of the trees
        demand(len(left) == self.forest.n_trees, f"{name} is said to be one cell, and is not")
        demand(not self.goal.is_met(self.forest.scores(left)), f"in {name} the model gives the wanted answer")

    def is_priced_out(self, box: Box, prices: list[Fraction]) -> bool:
        """Whether points that obey the Linear rules cost the claim, or are not there.

        Who obeys has sum of c v <= bound, up to e (sum of |c v| + |bound|) for the rounding of the terms. With prices
        p >= 0 the cost is at least the sum over columns of the least of cost(v) + g v - h |v|, less p (1 + e) bound,
        for g = sum of p c and h = e times the sum of |p c|. Of cost 0 that is above 0 only if there is no such point.
        """
        sums, cells = [rule for rule in self.case.rules if rule.kind == "Linear"], box.cells
        demand(len(prices) == len(sums) and all(price >= 0 for price in prices), "a price is missing, or below 0")
        slope: dict[int, Fraction] = {}
        kink: dict[int, Fraction] = {}
        constant = Fraction(0)
        for price, rule in zip(prices, sums, strict=True):
            rounding = Fraction(len(rule.columns) + 4, 2**52)
            constant -= price * (rule.bound + rounding * abs(rule.bound))
            for f, coefficient in zip(rule.columns, rule.coefficient, strict=True) if price else ():
                slope[f] = slope.get(f, Fraction(0)) + price * coefficient
                kink[f] = kink.get(f, Fraction(0)) + price * abs(coefficient) * rounding
        if any(self.columns[f].ends[cell] is None for f in slope for cell in members(cells[f])):
            return False  # of a missing value a rule asks nothing

        def least(weighs: int) -> Fraction | float:
            total: Fraction | float = constant
            for f, column in enumerate(self.columns):
                l1, l2, _, l0 = (weighs * part[f] for part in self.case.weights)
                own: list[Fraction | float] = []
                for cell in members(cells[f]):
                    delta, ends = column.delta[cell] or Fraction(0), column.ends[cell]
                    if f not in slope or ends is None:
                        own.append(l1 * delta + l2 * delta**2 + (l0 if delta else 0))
                    else:
                        fee = l0 if delta else Fraction(0)
                        ways = (slope[f] - kink[f], slope[f] + kink[f])
                        own += [fee + column.cheapest(ends, l1, l2, way) for way in ways]
                total += min(own)
            return total

        if least(0) > 0:
            return True
        l1, l2, linf, l0 = (any(part) for part in self.case.weights)
        is_sum = not linf and not (l2 and (l1 or l0))
        return self.below is not None and is_sum and least(1) >= (self.below**2 if l2 else self.below)


# ---------------------------------------------------------------------------------------------------------- verdict


def check_point(case: Case, point: list[float], claimed: float) -> str:
    """Demands that a point is an answer and costs what is said."""
    demand(len(point) == len(case.columns), "the point has not one entry a column")
    added = squared = largest = Fraction(0)
    for f, (column, value) in enumerate(zip(case.columns, point, strict=True)):
        cell = column.cell_of(value)
        demand(column.delta[cell] is not None, f"the value of column {f} is not allowed")
        delta, ends = column.delta[cell] or Fraction(0), column.ends[cell]
        if ends is not None and cell != column.own:
            is_held = ends[0] <= value <= ends[1] and column.up(value) == value
            demand(is_held, f"column {f} cannot hold its value")
            delta = abs(Fraction(value) - Fraction(column.row)) / column.scale if column.row == column.row else delta
        l1, l2, linf, l0 = (part[f] for part in case.weights)
        added, squared = added + l1 * delta + (l0 if delta else 0), squared + l2 * delta**2
        largest = max(largest, linf * delta)
    for rule in case.rules:
        demand(rule.holds(point, case.columns), f"the point breaks a rule, {rule.kind}")
    low, high = (Fraction(claimed) * (1 + side * Fraction(1, 10**9)) - added - largest for side in (-1, 1))
    demand(high >= 0 and squared <= high**2 and (low <= 0 or squared >= low**2), f"the point is not {claimed:.9g} away")
    scores = case.forest.scores(case.leaves_of(point))
    demand(any(goal.is_met(scores) for goal in case.goals()), "the model does not give the wanted answer")
    if not any(goal.is_met(scores) for goal in case.goals(+1)):
        raise VerdictError(UNPROVEN, "only the library's own last digits can tell whether the point is an answer")
    return f"The point is an answer: the model gives what is asked for, all constraints hold, it is {claimed:.9g} away."


def check_others(case: Case, proof: Json | None, bound: float) -> str:
    """Demands a proof that no answer is nearer than the bound, or, at infinity, that there is none."""
    if proof is None:
        raise VerdictError(UNPROVEN, "the certificate holds no proof; certificate(proof=True) writes one")
    demand(proof.get("format") == FORMAT, f"the proof is not of the format {FORMAT}")
    below = number(proof["below"])
    is_all = bound == math.inf
    demand(below == bound if is_all else below >= 0, "the proof is not about what is claimed")
    demand(is_all or Fraction(below) >= Fraction(bound) * (1 - OPTIMAL_TO), "the proof does not reach the bound")
    bits = 0 if is_all else DIGITS - math.frexp(below)[1]
    for f, column in enumerate(case.columns):
        column.price([part[f] for part in case.weights], bits)
    goals, leaves, closed = case.goals(), Leaves(case), [0] * (SUMS + 1)
    demand(len(proof["goals"]) == len(goals), "the proof has not one tree for every way to be an answer")
    for goal, record in zip(goals, proof["goals"], strict=True):
        walk = ProofTree(case, leaves, goal, below, bits, record)
        walk.run()
        closed = [a + b for a, b in zip(closed, walk.closed, strict=True)]
    names = {FAR: "nothing within reach", RULE: "a rule", SCORE: "the score", CELL: "a single cell", SUMS: "sums"}
    reasons = ", ".join(f"{closed[reason]} by {name}" for reason, name in names.items() if closed[reason])
    told = "There is no answer at all" if is_all else f"No answer is closer than {below:.9g}"
    return f"{told}: {sum(closed)} boxes hold all that is allowed, and each is closed ({reasons})."


def check(certificate: Json, model: Json) -> list[str]:
    """What holds, in sentences."""
    status, bound, point = certificate["status"], number(certificate["lower_bound"]), certificate["point"]
    demand(status in ("OPTIMAL", "BOUNDED", "INFEASIBLE", "FOUND", "NOT_FOUND"), f"{status!r} is not a status")
    demand(bound >= 0 and (bound == math.inf) == (status == "INFEASIBLE"), "status and bound do not go together")
    demand((point is not None) == (status in ("OPTIMAL", "BOUNDED", "FOUND")), "status and point do not go together")
    case, sentences = Case(certificate, model), []
    if case.target is None and case.reach < 0:
        scores = case.forest.scores(case.leaves_of([column.row for column in case.columns]))
        demand(not any(goal.is_met(scores) for goal in case.goals()), "the row is not of the class to be left")
    if point is not None:
        distance = number(certificate["distance"])
        demand(0 <= distance < math.inf and bound <= distance * (1 + 1e-9), "bound and distance do not go together")
        is_least = Fraction(bound) >= Fraction(distance) * (1 - OPTIMAL_TO)
        demand(status != "OPTIMAL" or is_least, "the bound is below the distance that is called the smallest")
        sentences.append(check_point(case, [number(value) for value in point], distance))
    if bound > 0:
        sentences.append(check_others(case, certificate.get("proof"), bound))
    return sentences


ASSUMED = (
    "This holds if the question in the certificate (row, limits, rules, scales, distance, target) is the one you ask, "
    "and the model file is the model: values are compared in its input type, leaves added up in its order and type of "
    f"numbers, and a library's own exponentials (for probabilities) are right to {LINK_ULPS} units in the last place."
)


def judge(certificate: Json, model: Json) -> tuple[int, list[str]]:
    """The exit code, and what is to be said."""
    try:
        return ACCEPTED, ["ACCEPTED.", *check(certificate, model), ASSUMED]
    except VerdictError as verdict:
        return verdict.code, [f"{'REJECTED' if verdict.code == REJECTED else 'NOT PROVEN'}: {verdict.why}."]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return REJECTED, [f"REJECTED: the certificate or the model is not whole ({type(error).__name__}: {error})."]


def read(path: str) -> Json:
    """A JSON object, compressed or not."""
    with open(path, "rb") as file:
        data = file.read()
    record = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    return record


def main(arguments: Sequence[str]) -> int:
    """Judge the certificate in the first file by the model in the second; the exit code."""
    if len(arguments) != 2:
        print(str(__doc__).split("\n", 1)[0])
        return MISUSE
    records = []
    for path in arguments:
        try:
            records.append(read(path))
        except (OSError, ValueError, EOFError) as error:
            print(f"{path} cannot be read: {error}.")
            return MISUSE
    code, sentences = judge(*records)
    print("\n".join(sentences))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
