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

    EMPTY   nothing is left of it: this program has taken out what rules forbid and what costs as much as the claim;
    SCORE   every tree gives its best leaf that the box still reaches, and the sum is not enough;
    CELL    every tree has one leaf left, and computed as the model computes, the answer is another one.

What costs too much is seen column by column where the distance is a sum or a maximum over columns. For all else there
is one inequality: a sum over columns that is below a limit for every answer cheaper than the claim. The proof names
it, by a point or by prices (WEIGH), this program computes it, and takes out what cannot be below.

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
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import or_
from typing import Any, NamedTuple

Json = dict[str, Any]
Ends = tuple[float, float]  # the first and the last number of some
ACCEPTED, REJECTED, MISUSE, UNPROVEN = range(4)
FORMAT = "treefocus-proof-2"
EMPTY, SCORE, CELL, WEIGH, ABOVE, BELOW, CELLS, FROM, UP_TO, STAY, SLICE = range(11)  # what the boxes are written in
ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED = range(5)  # which numbers a column can hold
LINK_ULPS = 4  # by so many units in the last place may a library's exponential be off: an assumption, and told
OPTIMAL_TO = Fraction(1, 10**8)  # "the smallest" means: up to this share of the distance,
NOISE = {"COSINE": Fraction(1, 10**10), "MAHALANOBIS": Fraction(1, 10**8)}  # and up to this
DIGITS = 100  # costs are kept to 2^-100 of the claim, rounded down
ZERO = Fraction(0)
ROUNDS = 3  # in which a cosine's length and its columns narrow each other


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


def outward(value: Fraction | float, up: bool) -> float:
    """A float64 that is not below the value, or not above it."""
    if not isinstance(value, Fraction):
        return value
    try:
        return math.nextafter(float(value), math.inf if up else -math.inf)
    except OverflowError:
        return math.inf if up else -math.inf


def root(value: Fraction, up: bool) -> Fraction:
    """At least, or at most, the square root; close to it."""
    bits = 100 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.isqrt((value.numerator << 2 * bits) // value.denominator) + up, 1 << bits)


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


def mask_of(bits: Iterable[int]) -> int:
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
        self.left, self.right, self.start = record["left"], record["right"], record["tree_start"]
        self.threshold = [float(t) for t in record["threshold"]]
        self.default_left: list[bool] = record["default_left"]
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
        self.sets = [set(categories["set_member"][a:b]) for a, b in pairwise(categories.get("set_start", [0]))]
        self.check()
        if self.has_float32_sum:  # the library holds them so
            self.base = [as_float32(b) for b in self.base]
            self.value = [[as_float32(v) for v in row] for row in self.value]
        numbers = [v for row in [*self.value, self.base] for v in row]
        self.bits = max(v.as_integer_ratio()[1].bit_length() - 1 for v in numbers)  # so that all become whole numbers
        leaves = [node for node, f in enumerate(self.feature) if f < 0]
        self.leaf_of_node = {node: leaf for leaf, node in enumerate(leaves)}
        self.tree_of_leaf = [bisect_right(self.start, node) - 1 for node in leaves]

    def check(self) -> None:
        """Trees in pre-order and finite numbers: what the rest of this program relies on."""
        n, start = len(self.feature), self.start
        sizes = {len(one) for one in (self.threshold, self.left, self.right, self.default_left, self.set_of_node)}
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
                    is_next = self.feature[node] < self.n_columns and self.left[node] == node + 1
                    demand(is_next and not math.isnan(self.threshold[node]), "a node has a wrong child or threshold")
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
    """One column of the question: its cells, and the first and the last allowed value of each.

    Numbers are cut finer than the model cuts them, so that a cell is wholly on one side of everything that is said of
    the column: the model's thresholds, the ends of conditions, the values at which the proof splits, and the row's own
    value, which is a cell of its own. A missing value and every category are cells, too, without ends.
    """

    def __init__(self, forest: Trees, question: Json, f: int, starts: set[float], cuts: set[float]) -> None:
        self.row, self.low, self.high = (number(question[name][f]) for name in ("row", "low", "high"))
        if math.isnan(self.low) or math.isnan(self.high):  # limits that nothing is within
            self.low, self.high = math.inf, -math.inf
        self.scale, self.grain = Fraction(number(question["scale"][f])), question["grain"][f]
        demand(self.scale > 0 and self.grain in range(5), "a column has no scale, or an unknown kind of numbers")
        lists = question["lists"]
        self.steps = [number(v) for v in lists["value"][lists["start"][f] : lists["start"][f + 1]]]
        self.listed = sorted(self.steps)  # or, of a column of steps: beginning, step, divisor, whether in float32
        is_sound = len(self.steps) == 4 and all(map(math.isfinite, self.steps)) and min(self.steps[1:3]) > 0
        demand(self.grain != STEPPED or is_sound, "a column of steps has no steps")
        self.labels, missing = forest.labels[f], question["question"].get("missing_is_choice")
        self.is_category, self.is_float32 = self.labels is not None, forest.is_float32
        has_choices = self.is_category or bool(missing and missing[f])
        choices = self.choices(question["choices"], f) if has_choices else []
        self.is_still = self.is_category or math.isnan(self.row)  # a distance that couples columns does not see it
        nodes = [i for i, g in enumerate(forest.feature) if g == f]
        demand(all((forest.set_of_node[i] >= 0) == self.is_category for i in nodes), "a category is split as a number")
        self.begin: list[float] = []
        if self.is_category:
            demand(len(choices) >= len(self.labels) + 2, "a category of the model has no cell")
            self.ends: list[Ends | None] = [None] * len(choices)
            self.code, self.allowed = list(range(len(choices))), mask_of(i for i, own in enumerate(choices) if own)
            self.own = len(choices) - 1 if math.isnan(self.row) else int(self.row)
            demand(0 <= self.own < len(choices), "the row's category is not there")
        else:
            may_stay = self.low <= self.row <= self.high and not (lists["is_strict"][f] and self.row not in self.listed)
            self.set_cells(
                cuts | {forest.threshold[i] for i in nodes},
                starts,
                may_stay,
                has_choices,
                bool(choices and choices[-1]),
            )
        self.stay = self.allowed & (1 << self.own)  # the row's own value, where it is allowed
        self.left = {node: self.left_of(forest, node) for node in nodes}

    def choices(self, record: Json, f: int) -> list[bool]:
        """Which categories may be chosen, as the question says it; the last one stands for a missing value."""
        demand(f in record["column"], "a column of categories, or of missing values, has no choices")
        at = record["column"].index(f)
        return [number(d) < math.inf for d in record["delta"][record["start"][at] : record["start"][at + 1]]]

    def first_above(self, threshold: float) -> float:
        """The first float64 that is above a threshold as the model sees it: rounded to float32, if it does so."""
        cut = floor_float32(threshold) if self.is_float32 else threshold
        above = next_float32(cut, up=True) if self.is_float32 and math.isfinite(cut) else math.inf
        if math.isinf(above):
            return math.nextafter(cut, math.inf)
        middle = cut + (above - cut) / 2
        return middle if as_float32(middle) > cut else math.nextafter(middle, math.inf)

    def set_cells(
        self, cuts: set[float], starts: set[float], may_stay: bool, has_missing: bool, may_miss: bool
    ) -> None:
        """The cells of numbers, from one start to the next; a missing value that is there, or may be, is the last."""
        x, firsts = self.row, sorted({self.first_above(cut) for cut in cuts})
        starts = starts | set(firsts) | ({x, math.nextafter(x, math.inf)} if math.isfinite(x) else set())
        self.begin = [-math.inf, *sorted(s for s in starts if math.isfinite(s))]
        last = [math.nextafter(s, -math.inf) for s in self.begin[1:]] + [math.inf]
        self.code = [bisect_right(firsts, low) for low in self.begin]
        self.ends = [self.inside(low, high) for low, high in zip(self.begin, last, strict=True)]
        is_frozen = math.isnan(x) and not has_missing  # a missing value that stays
        if not math.isnan(x):
            self.own = bisect_right(self.begin, x) - 1
            self.ends[self.own] = (x, x) if may_stay else None
        self.allowed = 0 if is_frozen else mask_of(i for i, ends in enumerate(self.ends) if ends)
        if has_missing or is_frozen:
            self.allowed |= (may_miss or is_frozen) << len(self.code)
            self.own = len(self.code) if math.isnan(x) else self.own
            self.code.append(len(firsts) + 1)
            self.ends.append(None)

    def restrict(self, reach: Ends) -> None:
        """Leaves out numbers beyond a reach around the row."""
        for cell, ends in enumerate(self.ends):
            if ends is not None and cell != self.own:
                self.ends[cell] = self.cut(cell, reach)
                self.allowed &= ~((self.ends[cell] is None) << cell)

    def cut(self, cell: int, clip: Ends) -> Ends | None:
        """The first and the last value of a cell between two numbers; None if it has none."""
        ends = self.ends[cell]
        if ends is None or cell == self.own:
            return ends if ends is not None and clip[0] <= self.row <= clip[1] else None
        return self.inside(max(ends[0], clip[0]), min(ends[1], clip[1]))

    def inside(self, low: float, high: float) -> Ends | None:
        """The first and the last allowed number from low to high; None if there is none."""
        first, last = self.up(max(low, self.low)), self.down(min(high, self.high))
        return (first, last) if first <= last and first < math.inf and last > -math.inf else None

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

    def place(self, value: float) -> int:
        """The cell of a value, whether it may be there or not."""
        if math.isnan(value):
            return len(self.code) - 1
        return int(value) if self.is_category else bisect_right(self.begin, value) - 1

    def cell_of(self, value: float) -> int:
        """The cell of a value that the column may have."""
        cell = self.place(value)
        if math.isnan(value):
            demand(self.ends[cell] is None, "a value is missing that cannot be")
        elif self.is_category:
            demand(value == int(value) and 0 <= value < len(self.code) - 1, "there is no such category")
        else:
            demand(cell == self.own or self.inside(value, value) == (value, value), "a column cannot hold its value")
        demand(bool(self.allowed >> cell & 1), "a value is not allowed")
        return cell

    def left_of(self, forest: Trees, node: int) -> int:
        """The cells that a node sends left."""
        if self.is_category:  # a word that the question adds goes where the unseen go
            named = forest.sets[forest.set_of_node[node]]
            mask = mask_of(c for c in self.code[:-1] if min(c, len(self.labels)) in named)
        else:
            mask = (1 << bisect_left(self.begin, self.first_above(forest.threshold[node]))) - 1
        has_last = len(self.code) > len(self.begin)
        return mask | (forest.default_left[node] and has_last) << (len(self.code) - 1)

    def meets(self, condition: Json) -> int:
        """The cells that meet a condition, numbers from low to high or some categories; a missing value meets none."""
        if condition["categories"] is not None:
            return mask_of(i for i, is_in in enumerate(condition["categories"]) if is_in)
        low, after = number(condition["low"]), math.nextafter(number(condition["high"]), math.inf)
        ends = pairwise([*self.begin, math.inf])
        return mask_of(i for i, (first, end) in enumerate(ends) if low <= first and end <= after)


class Relation:
    """A relation: AtMost n columns change, all or none do (Together), a value Implies another, a Linear sum."""

    def __init__(self, record: Json) -> None:
        self.kind = record["kind"]
        demand(self.kind in ("AtMost", "Together", "Implies", "Linear"), f"{self.kind!r} is not a rule")
        self.conditions = [record["cause"], record["effect"]] if self.kind == "Implies" else []
        self.columns = [int(one["column"]) for one in self.conditions] or [int(f) for f in record["columns"]]
        self.n = int(record["n"]) if self.kind == "AtMost" else 0
        is_sum = self.kind == "Linear"
        self.coefficient = [Fraction(number(c)) for c in record["coefficient"]] if is_sum else []
        self.bound = Fraction(number(record["bound"])) if is_sum else ZERO
        demand(not is_sum or len(self.coefficient) == len(self.columns), "a sum has not a coefficient for every column")
        self.rounding = Fraction(len(self.columns) + 4, 2**52)  # of a sum, as a share of its terms' sizes

    def narrowed(self, cells: Sequence[int], columns: Sequence[ColumnCells]) -> dict[int, int] | None:
        """What the rule leaves of columns that it leaves no choice; None if it cannot hold."""
        if self.kind == "Implies":
            (f, g), (cause, effect) = self.columns, self.conditions
            is_due = not cells[f] & ~columns[f].meets(cause)
            return None if is_due and not cells[g] & columns[g].meets(effect) else {}
        if self.kind == "Linear":  # of a missing value it asks nothing
            ends = [
                [end for cell in members(cells[f]) for end in columns[f].ends[cell] or [math.nan]] for f in self.columns
            ]
            return {} if not all(math.isfinite(end) for own in ends for end in own) or self.can_hold(ends) else None
        changing = [f for f in self.columns if not cells[f] & columns[f].stay]
        staying = [f for f in self.columns if cells[f] == columns[f].stay]
        if len(changing) > self.n if self.kind == "AtMost" else bool(changing and staying):
            return None
        is_full = len(changing) == self.n if self.kind == "AtMost" else bool(staying)
        return {f: columns[f].stay for f in self.columns if f not in changing and f not in staying} if is_full else {}

    def can_hold(self, values: Sequence[Sequence[float]]) -> bool:
        """Whether a sum can be within its bound, each term at one of its values, less what rounding may hide."""
        terms = [[c * Fraction(v) for v in own] for c, own in zip(self.coefficient, values, strict=True)]
        size = sum(max(map(abs, own)) for own in terms) + abs(self.bound)
        return sum(map(min, terms)) <= self.bound + size * self.rounding


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


class Goal(NamedTuple):
    """One way to be an answer: the tests that all such answers pass, and the share that a softmax has to give."""

    tests: list[ScoreTest]
    own: int = -1
    share: Fraction = ZERO

    def is_met(self, scores: Sequence[float]) -> bool:
        """Whether the model gives this answer at these scores; a softmax is computed to forty digits."""
        if not all(test.is_met(scores) for test in self.tests):
            return False
        with localcontext() as context:
            context.prec = 60
            total = sum((Decimal(s) - Decimal(scores[self.own])).exp() for s in scores) if self.share else Decimal(0)
        return Fraction(total) * self.share <= 1 + Fraction(1, 10**40)


class Case:
    """What is asked: the allowed values and their cost, and what counts as an answer."""

    def __init__(self, record: Json, model: Json) -> None:
        asked, names = record["question"], ("decision", "cut", "cut_high", "favoured", "link", "divisor")
        self.forest = forest = Trees(model | {name: asked[name] for name in names if name in asked})
        if model.get("maps") or model.get("rounding") or forest.decision == "likely":
            raise VerdictError(UNPROVEN, "this program does not judge a model whose scores a wrapper goes on with")
        demand(isinstance(record["rules"], list), "the certificate's rules are not a list")
        self.rules, n = [Relation(rule) for rule in record["rules"]], forest.n_columns
        self.sums = [rule for rule in self.rules if rule.kind == "Linear"]
        for name in ("row", "low", "high", "scale", "grain", "offset"):
            demand(len(record[name]) == n, f"the certificate's {name} has not one entry a column")
        demand(all(0 <= f < n for rule in self.rules for f in rule.columns), "a rule names a column that is not there")
        starts: list[set[float]] = [set() for _ in range(n)]
        cuts: list[set[float]] = [set() for _ in range(n)]
        for one in (one for rule in self.rules for one in rule.conditions if one["categories"] is None):
            low, high = number(one["low"]), number(one["high"])
            starts[one["column"]] |= {low, math.nextafter(high, math.inf)}
            cuts[one["column"]] |= {c for c in (math.nextafter(low, -math.inf), high) if math.isfinite(c)}
        proof = record.get("proof") or {}
        for f, value in (pair for goal in proof.get("goals", ()) for pair in goal["values"]):
            demand(-1 <= f < n, "the proof splits a column that is not there")
            starts[f] |= {number(value), math.nextafter(number(value), math.inf)} if f >= 0 else set()
        distance, self.below = record["distance_function"], number(proof.get("below", "inf"))
        demand(self.below >= 0 and distance["kind"] in COSTS, "the proof is about less than nothing, or no distance")
        self.cost = cost = COSTS[distance["kind"]](record, self.below)
        self.columns = [ColumnCells(forest, record, f, starts[f], cuts[f]) for f in range(n)]
        cost.meet(self.columns)
        self.leave, self.reach, self.target = int(record["leave"]), int(record["reach"]), asked.get("target")
        self.goals = self.make_goals()

    def make_goals(self) -> list[Goal]:
        """The ways to be an answer; none is left out that may be one by the last digits of the library's links."""
        forest, n = self.forest, self.forest.n_outputs
        if self.target is not None:
            kind = self.target["kind"]
            demand(kind in ("Probability", "Interval", "Score"), f"{kind!r} is not a target")
            return [self.likely() if kind == "Probability" else self.between()]
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
        """The score at which the library shows a number, moved to a side by what the link's rounding is worth.

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

    def between(self) -> Goal:
        """An interval of the predicted number, or of the score itself."""
        low, high = number(self.target["low"]), number(self.target["high"])
        demand(self.forest.n_outputs == 1 and low <= high, "an interval needs one score, and ends in order")
        ends: list[Fraction | float] = [low, high]
        if self.target["kind"] == "Interval" and self.forest.link != "identity":
            ends = [self.score_of(end, side, abs(end) or 5e-324) for end, side in ((low, -1), (high, 1))]
        return Goal([ScoreTest(self.forest, ((0, sign),), sign * end) for sign, end in zip((1, -1), ends, strict=True)])

    def likely(self) -> Goal:
        """A class with a probability of at least p, as the library shows it."""
        forest, label, asked = self.forest, int(self.target["class"]), number(self.target["at_least"])
        demand(0 <= label < forest.n_classes and 0 < asked < 1, "there is no such class, or no such probability")
        p = Fraction(min(asked, as_float32(asked)) if forest.has_float32_sum else asked)
        if forest.decision != "argmax":  # one score, whose sigmoid is the probability of the second class
            at = self.score_of(p if label else 1 - p, -1 if label else 1, p if label else max(p, Fraction(1, 2)))
            return Goal([ScoreTest(forest, ((0, 1 if label else -1),), at if label else -at)])
        if forest.link == "sigmoid":
            return Goal([ScoreTest(forest, ((label, 1),), self.score_of(p, -1, p))])
        if forest.link == "identity" and not forest.has_votes:  # shares of a whole: the score is the probability
            return Goal([ScoreTest(forest, ((label, 1),), p)])
        if forest.link == "identity":
            forest.divisor, forest.link = forest.divisor * (forest.n_classes - 1), "softmax"
        demand(forest.link == "softmax", "such a model has no probabilities")
        p *= 1 - Fraction(2 * forest.n_outputs + 4, 2**23 if forest.has_float32_sum else 2**52)
        odds = log_below(p / (1 - p))  # s_own - s_k >= log odds, for every other k
        others = [k for k in range(forest.n_outputs) if k != label]
        return Goal([ScoreTest(forest, ((label, 1), (k, -1)), odds) for k in others], label, p)

    def is_answer(self, values: Sequence[float]) -> bool:
        """Whether the model, computed as the library computes it, gives what is asked for."""
        forest, leaves = self.forest, []
        for node in forest.start[:-1]:
            while (f := forest.feature[node]) >= 0:
                is_left = self.columns[f].left[node] >> self.columns[f].place(values[f]) & 1
                node = node + 1 if is_left else forest.right[node]
            leaves.append(forest.leaf_of_node[node])
        return any(goal.is_met(forest.scores(leaves)) for goal in self.goals)


# ------------------------------------------------------------------------------------------------------------- cost


class Step(NamedTuple):
    """What a column adds to an inequality: fee if it changes + edge |w| + bend w^2 + tilt w - kink |row + w|."""

    fee: Fraction = ZERO
    edge: Fraction = ZERO
    bend: Fraction = ZERO
    tilt: Fraction = ZERO
    kink: Fraction = ZERO

    def plus(self, other: Step) -> Step:
        """Both."""
        return Step(*(a + b for a, b in zip(self, other, strict=True)))

    def least(self, column: ColumnCells, ends: Ends) -> Fraction | float:
        """The least of it over numbers on one side of the row, from end to end, w counted from the row."""
        row, side = Fraction(column.row), (ends[0] > column.row) - (ends[1] < column.row)
        low, high = (Fraction(end) - row if math.isfinite(end) else end for end in ends)
        found: list[Fraction | float] = []
        for kink in {self.kink, -self.kink}:  # -|v| is the smaller of v and -v
            tilt = self.tilt + side * self.edge + kink
            at: Fraction | float = max(low, min(high, ZERO))
            if self.bend:
                at = max(low, min(high, -tilt / (2 * self.bend)))
            elif tilt:
                at = low if tilt > 0 else high
            if not isinstance(at, Fraction):  # without a bend and without an end it falls for ever
                return -math.inf
            found.append(self.bend * at**2 + tilt * at + kink * row + (self.fee if side else 0))
        return min(found)


class Inequality(NamedTuple):
    """Of every answer cheaper than the claim, in a box: the columns' steps add up to no more than the limit."""

    steps: Sequence[Step]
    limit: Fraction
    more: Sequence[Step] = ()  # what any one column may add besides,
    off: Sequence[Fraction] = ()  # together with this

    def narrowed(
        self, cells: Sequence[int], columns: Sequence[ColumnCells], clip: Sequence[Ends]
    ) -> dict[int, int] | None:
        """What it leaves of columns; None if it leaves nothing of one. Steps are whole numbers here, rounded down."""
        bits = DIGITS - math.frexp(outward(abs(self.limit), up=True))[1]
        own: list[dict[int, tuple[int, int]]] = []  # by column and cell: its least, and with what it may add besides
        for f, (column, step) in enumerate(zip(columns, self.steps, strict=True)):
            own.append({})
            for cell in members(cells[f]):
                ends = column.ends[cell]
                if ends is None or math.isnan(column.row):  # another category, a value that is missing or becomes known
                    moved = step.fee + step.edge * column.scale + step.bend * column.scale**2
                    own[f][cell] = (scaled(moved if cell != column.own else ZERO, bits),) * 2
                    continue
                ends = column.cut(cell, clip[f]) if clip else ends
                if ends is None:
                    continue
                least = step.least(column, ends)
                if not isinstance(least, Fraction):
                    return {}
                both = step.plus(self.more[f]).least(column, ends) + self.off[f] if self.more else least
                own[f][cell] = scaled(least, bits), scaled(both, bits)
        if not all(own):
            return None
        each, limit = [min(least for least, _ in one.values()) for one in own], -scaled(-self.limit, bits)
        rest = sum(each) - limit
        left = [mask_of(c for c, (_, more) in one.items() if rest - each[f] + more <= 0) for f, one in enumerate(own)]
        return {f: one for f, one in enumerate(left) if one != cells[f]} if rest <= 0 else None


def priced(case: Case, prices: Sequence[Fraction]) -> tuple[list[Step], Fraction]:
    """What prices p >= 0 on the Linear rules add to an inequality: to steps, and to the limit.

    Who obeys a rule has sum of c v <= bound, up to e (sum of |c v| + |bound|) for the rounding of its terms. So the sum
    of p c v - p e |c v| is at most p (bound + e |bound|). With v = row + w, the row's part goes to the limit.
    """
    demand(len(prices) in (0, len(case.sums)) and all(p >= 0 for p in prices), "a price is missing, or below 0")
    steps, limit = [Step() for _ in case.columns], ZERO
    for price, rule in zip(prices, case.sums, strict=False):
        if not price or any(
            case.columns[f].ends[cell] is None for f in rule.columns for cell in members(case.columns[f].allowed)
        ):
            continue  # of a missing value a rule asks nothing
        limit += price * (rule.bound + rule.rounding * abs(rule.bound))
        for f, c in zip(rule.columns, rule.coefficient, strict=True):
            own = steps[f]
            steps[f] = own._replace(tilt=own.tilt + price * c, kink=own.kink + price * abs(c) * rule.rounding)
            limit -= price * c * Fraction(case.columns[f].row)
    return steps, limit


class Cost:
    """A distance. What it has in common with others; `below` is the claim, infinity if there is to be no answer."""

    noise = ZERO

    def __init__(self, record: Json, below: float) -> None:
        self.n, self.below = len(record["row"]), Fraction(below) if below < math.inf else None
        self.scale = [Fraction(number(s)) for s in record["scale"]]
        self.load(record, record["distance_function"])

    def load(self, record: Json, distance: Json) -> None:
        """What is written of it."""

    def reach(self, f: int) -> Ends:
        """The numbers of a column outside of which no point is below the claim."""
        return -math.inf, math.inf

    def meet(self, columns: Sequence[ColumnCells]) -> None:
        """The columns, once they are made; what is not still is a number, for all else cannot be measured."""
        self.columns = columns
        seen = [column for column in columns if not column.is_still]
        demand(all(c.ends[cell] for c in seen for cell in members(c.allowed)), "a value cannot be measured")

    def steps(self, point: Sequence[Fraction]) -> tuple[list[Step], Fraction] | None:
        """Of every point cheaper than the claim: these steps add up to no more than this; None if nothing is known."""
        return None

    def inequalities(self, case: Case, weights: tuple[list[Fraction], list[Fraction]] | None) -> list[Inequality]:
        """What the weights of a proof say of points below the claim, and of all that obey the rules."""
        if weights is None:
            return []
        point, prices = weights
        demand(len(point) in (0, self.n), "a point has not a number for every column")
        steps, limit = priced(case, prices)
        own = self.steps(point)
        found = [Inequality(steps, limit)] if any(prices) else []
        if own is not None:
            found.append(
                Inequality([a.plus(b) for a, b in zip(steps, own[0], strict=True)], limit + own[1], *self.curves(point))
            )
        return found

    def curves(self, point: Sequence[Fraction]) -> tuple[Sequence[Step], Sequence[Fraction]]:
        """What one column may add to `steps` besides, and a number for each."""
        return (), ()

    def is_right(self, values: Sequence[float], claimed: float) -> bool:
        """Whether a point is as far as is said, to nine digits."""
        raise NotImplementedError

    def slice(self, box: Box) -> tuple[list[Inequality], list[Ends]] | None:
        """What is known of the box without weights, and between which numbers its columns are; None: it is empty."""
        return [], []


class PerColumn(Cost):
    """Sums over columns of l1 |w|, of a fee l0, the root of a sum of l2 w^2, and the largest of linf |w|, added up."""

    def load(self, record: Json, distance: Json) -> None:  # noqa: D102
        self.weights = [[Fraction(number(w)) for w in part] for part in distance["weights"]]
        demand([len(part) for part in self.weights] == [self.n] * 4, "the distance has not four weights a column")
        demand(all(w >= 0 for part in self.weights for w in part), "the distance has a weight below 0")

    def meet(self, columns: Sequence[ColumnCells]) -> None:
        """Costs of cells as whole numbers, rounded down, and the cells of every column from near to far."""
        self.columns = columns
        bits = 0 if self.below is None else DIGITS - math.frexp(self.below)[1]
        self.claim = None if self.below is None else -scaled(-self.below, bits)  # rounded up
        self.part: list[list[tuple[int, int, int]]] = []
        self.order = []
        for f, column in enumerate(columns):
            parts = []
            for cell, ends in enumerate(column.ends):
                at = None if ends is None else ends[0] if not column.row > ends[1] else ends[1]
                a, s, m = self.parts(f, column, cell, at)
                parts.append((scaled(a, bits), scaled(s, 2 * bits), scaled(m, bits)))
            self.part.append(parts)
            self.order.append(sorted(members(column.allowed), key=parts.__getitem__))
        self.nearest = [list(accumulate((1 << cell for cell in own), or_, initial=0)) for own in self.order]

    def parts(self, f: int, column: ColumnCells, cell: int, value: float | None) -> tuple[Fraction, Fraction, Fraction]:
        """What a value adds to the sum, to the sum of squares and to the maximum; no number counts as 1 if it moved."""
        l1, l2, linf, l0 = (part[f] for part in self.weights)
        if value is None or math.isnan(column.row):
            delta = Fraction(cell != column.own)
        else:
            delta = abs(Fraction(value) - Fraction(column.row)) / column.scale
        return l1 * delta + (l0 if delta else 0), l2 * delta**2, linf * delta

    def is_right(self, values: Sequence[float], claimed: float) -> bool:
        """Whether a point is as far as is said, to nine digits."""
        found = [
            self.parts(f, c, c.cell_of(v), v if c.begin and v == v else None)
            for f, (c, v) in enumerate(zip(self.columns, values, strict=True))
        ]
        rest = sum(a for a, _, _ in found) + max(m for _, _, m in found)
        square = sum(s for _, s, _ in found)
        low, high = (Fraction(claimed) * (1 + side * Fraction(1, 10**9)) - rest for side in (-1, 1))
        return high >= 0 and square <= high**2 and (low <= 0 or square >= low**2)

    def steps(self, point: Sequence[Fraction]) -> tuple[list[Step], Fraction] | None:
        """Where the cost, or its square, is a sum over columns."""
        l1, l2, linf, l0 = self.weights
        if self.below is None or any(linf) or (any(l2) and (any(l1) or any(l0))):
            return None
        own = [Step(l0[f], l1[f] / s, l2[f] / s**2) for f, s in enumerate(self.scale)]
        return own, self.below**2 if any(l2) else self.below

    def is_far(self, total: int, squared: int, largest: int) -> bool:
        """Whether total + sqrt(squared) + largest is the claim or more."""
        left = 0 if self.claim is None else self.claim - total - largest
        return self.claim is not None and (left <= 0 or squared >= left * left)

    def spend(self, cells: list[int]) -> set[int] | None:
        """Takes out cells in which a column alone brings the cost to the claim; which columns have lost some."""
        parts = [min(self.part[f][cell] for cell in members(own)) for f, own in enumerate(cells)]
        total, squared = sum(p[0] for p in parts), sum(p[1] for p in parts)
        narrowed: set[int] = set()
        if self.claim is None:
            return narrowed
        if self.is_far(total, squared, max(p[2] for p in parts)):
            return None
        has_maximum = any(p[2] for own in self.part for p in own)
        for f, own in enumerate(parts):
            rest = max((p[2] for g, p in enumerate(parts) if g != f), default=0) if has_maximum else 0

            def is_far(cell: int, f: int = f, own: tuple[int, int, int] = own, rest: int = rest) -> bool:
                a, s, m = self.part[f][cell]
                return self.is_far(total - own[0] + a, squared - own[1] + s, max(rest, m))

            if is_far(self.order[f][-1]):
                kept = self.nearest[f][bisect_left(self.order[f], True, key=is_far)]
                narrowed |= {f} if cells[f] & ~kept else set()
                cells[f] &= kept
        return narrowed


class Quadratic(Cost):
    """Mahalanobis: u' Q u, u = w / scale, or its root. For every c it is at least 2 c' Q u - c' Q c.

    For any one column f it is even (u_f - c_f)^2 / C_ff more, C the inverse of Q, since (u - c)' Q (u - c) is at least
    that. With c = 0: a point below the claim has u_f^2 <= claim C_ff.
    """

    def load(self, record: Json, distance: Json) -> None:  # noqa: D102
        self.matrix = q = [[Fraction(number(v)) for v in row] for row in distance["inverse"]]
        demand([len(row) for row in q] == [self.n] * self.n, "the distance's matrix is not square")
        demand(all(q[f][g] == q[g][f] for f in range(self.n) for g in range(f)), "the matrix is not symmetric")
        is_root = distance["kind"] == "MAHALANOBIS"
        self.noise, self.is_root = NOISE["MAHALANOBIS"] if is_root else NOISE["MAHALANOBIS"] ** 2, is_root
        self.limit = None if self.below is None else self.below**2 if is_root else self.below
        rows = [[*row, *(Fraction(f == g) for g in range(self.n))] for f, row in enumerate(q)]
        for f in range(self.n):  # Gauss and Jordan; pivots above 0 say that no point costs less than 0
            demand(rows[f][f] > 0, "the distance's matrix is not positive definite")
            rows[f] = [v / rows[f][f] for v in rows[f]]
            for g in range(self.n):
                if g != f and rows[g][f]:
                    by = rows[g][f]
                    rows[g] = [a - by * b if b else a for a, b in zip(rows[g], rows[f], strict=True)]
        self.variance = [Fraction(outward(rows[f][self.n + f], up=True)) for f in range(self.n)]
        self.row = [number(x) for x in record["row"]]

    def reach(self, f: int) -> Ends:  # noqa: D102
        if self.limit is None or math.isnan(self.row[f]):
            return -math.inf, math.inf
        away = root(self.limit * self.variance[f], up=True) * self.scale[f]
        return outward(Fraction(self.row[f]) - away, up=False), outward(Fraction(self.row[f]) + away, up=True)

    def of(self, point: Sequence[Fraction]) -> tuple[list[Fraction], Fraction]:
        """Q c, and c' Q c; c is 0 where a column stays."""
        c = [ZERO if column.is_still else own for column, own in zip(self.columns, point, strict=True)]
        slope = [sum(q * own for q, own in zip(row, c, strict=True) if own) + ZERO for row in self.matrix]
        return slope, sum((s * own for s, own in zip(slope, c, strict=True)), ZERO)

    def is_right(self, values: Sequence[float], claimed: float) -> bool:
        """Whether a point is as far as is said, to nine digits."""
        u = [
            ZERO if c.is_still else (Fraction(v) - Fraction(c.row)) / c.scale
            for c, v in zip(self.columns, values, strict=True)
        ]
        square, (low, high) = (
            self.of(u)[1],
            (Fraction(claimed) * (1 + side * Fraction(1, 10**9)) + side * self.noise for side in (-1, 1)),
        )
        return (square <= high**2 and (low <= 0 or square >= low**2)) if self.is_root else low <= square <= high

    def steps(self, point: Sequence[Fraction]) -> tuple[list[Step], Fraction] | None:
        """The linearisation at a point."""
        if self.limit is None or not point:
            return None
        slope, square = self.of(point)
        own = [Step() if c.is_still else Step(tilt=2 * s / c.scale) for c, s in zip(self.columns, slope, strict=True)]
        return own, self.limit + square

    def curves(self, point: Sequence[Fraction]) -> tuple[Sequence[Step], Sequence[Fraction]]:  # noqa: D102
        own, off = [], []
        for column, c, variance in zip(self.columns, point, self.variance, strict=True):
            c = ZERO if column.is_still else c
            bend = ZERO if column.is_still else 1 / (variance * column.scale**2)
            own.append(Step(bend=bend, tilt=-2 * bend * c * column.scale))
            off.append(c**2 / variance)
        return own, off


class Angle(Cost):
    """Cosine: 1 - T / sqrt(N |y|^2), with y = (value - offset) / scale, z that of the row, T = <z, y>, N = |z|^2.

    Cheaper than a claim 1 - k, k > 0, is who has T > 0 and |y|^2 < T^2 G / N, G = 1 / k^2. Three things follow.
    1. T > k sqrt(N) <c, y> / |c| for every c, for <c, y> is at most |c| |y|.
    2. y_f / T lies between z_f / N - r and z_f / N + r, with r^2 = (G - 1) (1 - w z_f^2 / N) / (w N): what y has at a
       right angle to z has a square below (G - 1) T^2 / N.
    3. Where T is from s to t, T^2 <= (s + t) T - s t, so that |y|^2 - (G / N) (s + t) T + (G / N) s t is below 0.
    """

    noise = NOISE["COSINE"]

    def load(self, record: Json, distance: Json) -> None:  # noqa: D102
        self.weight, offset = ([Fraction(number(v)) for v in own] for own in (distance["weight"], record["offset"]))
        demand(len(self.weight) == self.n and min(self.weight) >= 0, "the distance has not a weight for every column")
        self.offset = offset

    def meet(self, columns: Sequence[ColumnCells]) -> None:  # noqa: D102
        super().meet(columns)
        self.z = [ZERO if c.is_still else self.place(f, c.row) for f, c in enumerate(columns)]
        self.w = [ZERO if c.is_still else w for c, w in zip(columns, self.weight, strict=True)]
        self.norm = sum((w * z * z for w, z in zip(self.w, self.z, strict=True)), ZERO)
        self.length = root(self.norm, up=True)  # in which slices are counted
        self.k = 1 - self.below if self.below is not None else ZERO
        self.is_open = self.k > 0 and self.norm > 0
        self.cone = [(ZERO, ZERO)] * self.n
        if self.is_open:
            self.g = 1 / self.k**2
            for f in (f for f in range(self.n) if self.w[f]):
                across = (1 - self.w[f] * self.z[f] ** 2 / self.norm) / (self.w[f] * self.norm)
                middle, r = self.z[f] / self.norm, root((self.g - 1) * across, up=True)
                self.cone[f] = middle - r, middle + r

    def place(self, f: int, value: float) -> Any:
        """A value in the space of the distance; an infinity stays one."""
        return (Fraction(value) - self.offset[f]) / self.scale[f] if math.isfinite(value) else value

    def is_right(self, values: Sequence[float], claimed: float) -> bool:
        """Whether a point is as far as is said, to nine digits; a vector without length is at a right angle to any."""
        y = [
            ZERO if c.is_still else self.place(f, v) for f, (c, v) in enumerate(zip(self.columns, values, strict=True))
        ]
        square = sum(w * v * v for w, v in zip(self.w, y, strict=True))
        along = sum(w * z * v for w, z, v in zip(self.w, self.z, y, strict=True))
        far = Fraction(square != self.norm)
        if square and self.norm:
            far = 1 - along / root(self.norm * square, up=True)
        return abs(far - Fraction(claimed)) <= Fraction(claimed) / 10**9 + self.noise

    def steps(self, point: Sequence[Fraction]) -> tuple[list[Step], Fraction] | None:
        """The first of the three."""
        square = sum((w * c * c for w, c in zip(self.w, point, strict=True)), ZERO) if point else ZERO
        if not self.is_open or not square:
            return None
        by = self.k * root(self.norm / square, up=False)  # any smaller one is right, too
        slope = [w * (by * c - z) for w, c, z in zip(self.w, point, self.z, strict=True)]  # <slope, y> < 0
        own = [Step(tilt=s / scale) for s, scale in zip(slope, self.scale, strict=True)]
        return own, -sum((s * z for s, z in zip(slope, self.z, strict=True)), ZERO)

    def slice(self, box: Box) -> tuple[list[Inequality], list[Ends]] | None:
        """The other two: columns narrow T, T narrows columns, and what is left is a slice."""
        if not self.is_open:
            return [], []
        clip = [(-math.inf, math.inf)] * self.n
        first: Any = box.lengths[0]
        last: Any = box.lengths[1]
        seen = [f for f in range(self.n) if self.w[f]]
        for _ in range(ROUNDS):
            least: Any = ZERO
            most: Any = ZERO
            for f in seen:
                kept = [ends for cell in members(box.cells[f]) if (ends := self.columns[f].cut(cell, clip[f]))]
                if not kept:
                    return None
                low, high = self.place(f, min(e[0] for e in kept)), self.place(f, max(e[1] for e in kept))
                if by := self.w[f] * self.z[f]:
                    least, most = least + min(by * low, by * high), most + max(by * low, by * high)
                a, b = self.cone[f]
                if (low > 0 and b <= 0) or (high < 0 and a >= 0):
                    return None
                first = max(first, low / b if low > 0 else ZERO, high / a if high < 0 else ZERO)
                last = min(last, low / b if low <= 0 and b < 0 else last, high / a if high >= 0 and a > 0 else last)
            first, last = max(first, least), min(last, most)
            if first > last or last <= 0:
                return None
            if not isinstance(last, Fraction):
                return [], []
            for f in seen:
                a, b = self.cone[f]
                ends = (min(a * first, a * last), max(b * first, b * last))
                low, high = (self.offset[f] + self.scale[f] * end for end in ends)
                clip[f] = outward(low, up=False), outward(high, up=True)
        by = self.g / self.norm * (first + last)
        limit = -self.norm * (1 - by) - self.g / self.norm * first * last
        columns = list(zip(self.w, self.z, self.scale, strict=True))
        known = [Inequality([Step(bend=w / s**2, tilt=(2 - by) * w * z / s) for w, z, s in columns], limit)]
        for sign, end in ((1, last), (-1, first)):  # T is from the first to the last
            known.append(Inequality([Step(tilt=sign * w * z / s) for w, z, s in columns], sign * (end - self.norm)))
        return known, clip


COSTS = {"norms": PerColumn, "MAHALANOBIS": Quadratic, "MAHALANOBIS_SQUARED": Quadratic, "COSINE": Angle}


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
            known, left = path.get(f, (1 << len(columns[f].code)) - 1), columns[f].left[node]
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


class Box(NamedTuple):
    """The cells that are left of every column, the leaves that are lost, the tests, the weights, and where T is."""

    cells: list[int]
    lost: int
    states: list[State]
    weights: tuple[list[Fraction], list[Fraction]] | None = None
    lengths: tuple[Fraction | float, Fraction | float] = (ZERO, math.inf)


class ProofTree:
    """The tree of boxes of one goal, in the order in which it is written: a box, its first side, its second side."""

    def __init__(self, case: Case, leaves: Leaves, goal: Goal, record: Json) -> None:
        self.case, self.forest, self.columns, self.leaves, self.goal = case, case.forest, case.columns, leaves, goal
        self.best = [Best(test, self.forest) for test in goal.tests]
        self.tokens, self.at = record["boxes"], 0
        self.values = [number(value) for _, value in record["values"]]
        exact = [[[Fraction(number(v)) for v in part] for part in pair] for pair in record["weights"]]
        self.weights = [(point, prices) for point, prices in exact]
        self.closed = [0] * 3

    def read(self, below: int) -> int:
        """The next number of the proof, from 0 up to below a number."""
        demand(self.at < len(self.tokens), "the proof ends before every box is closed")
        token = self.tokens[self.at]
        demand(type(token) is int and 0 <= token < below, "the proof names what is not there")
        self.at += 1
        return int(token)

    def run(self) -> None:
        """Go through all boxes; None stands for one of which nothing is left."""
        n = len(self.columns)
        whole = Box([column.allowed for column in self.columns], 0, [best.whole for best in self.best])
        waiting = [self.settled(whole, set(range(n)))]
        while waiting:
            box, token = waiting.pop(), self.read(SLICE + 1)
            if token == WEIGH:
                weights = self.weights[self.read(len(self.weights))]
                waiting.append(None if box is None else self.settled(box._replace(weights=weights), set()))
            elif token in (EMPTY, SCORE, CELL):
                test = self.read(len(self.best)) if token == SCORE else 0
                if box is not None:
                    self.close(box, token, test)
                self.closed[EMPTY if box is None else token] += 1
            elif token == SLICE:
                at = Fraction(self.values[self.read(len(self.values))]) * getattr(self.case.cost, "length", ZERO)
                for low, high in ((ZERO, at), (at, math.inf)):  # the first side, the lengths from it up, comes next
                    waiting.append(None)
                    if box is not None:
                        own = max(box.lengths[0], low), min(box.lengths[1], high)
                        waiting[-1] = self.settled(box._replace(lengths=own), set())
            else:
                f = self.read(n)
                first = self.first_side(self.columns[f], token)
                for side in (~first, first):
                    cells = [] if box is None else [own & side if g == f else own for g, own in enumerate(box.cells)]
                    waiting.append(None if box is None else self.settled(box._replace(cells=cells), {f}))
        demand(self.at == len(self.tokens), "the proof goes on after every box is closed")

    def first_side(self, column: ColumnCells, token: int) -> int:
        """The cells on the first side of a split; all others are on the second."""
        if token == STAY:
            return 1 << column.own
        if token in (FROM, UP_TO):
            value = self.values[self.read(len(self.values))]
            return mask_of(i for i, low in enumerate(column.begin) if (low >= value if token == FROM else low <= value))
        n = self.read(len(column.code) + 1)
        codes = {self.read(len(column.code)) for _ in range(n)} if token == CELLS else set()
        return mask_of(
            i for i, c in enumerate(column.code) if (c in codes if token == CELLS else (c >= n) == (token == ABOVE))
        )

    def settled(self, box: Box, changed: set[int]) -> Box | None:
        """The box without what costs too much and what rules leave out; None if nothing is left."""
        cells, case, touched = list(box.cells), self.case, set(changed)
        is_first = True
        while changed or is_first:
            is_first = False
            if not all(cells):
                return None
            if isinstance(case.cost, PerColumn):
                spent = case.cost.spend(cells)
                if spent is None:
                    return None
                touched |= spent
            changed = set()
            for rule in case.rules if all(cells) else ():
                changed |= self.narrow(cells, rule.narrowed(cells, self.columns) if all(cells) else {})
            touched |= changed
        known = case.cost.slice(box._replace(cells=cells))
        if known is None:
            return None
        for one in [*known[0], *case.cost.inequalities(case, box.weights)]:
            touched |= self.narrow(cells, one.narrowed(cells, self.columns, known[1]))
        if not all(cells):
            return None
        lost = box.lost
        for f in touched:
            lost |= self.leaves.lost(f, cells[f])
        states = [best.after(state, lost) for best, state in zip(self.best, box.states, strict=True)]
        kept = [state for state in states if state is not None]
        return box._replace(cells=cells, lost=lost, states=kept) if len(kept) == len(states) else None

    @staticmethod
    def narrow(cells: list[int], narrowed: dict[int, int] | None) -> set[int]:
        """Takes out what is not left of columns, all if that is None; which columns have lost some."""
        for f, left in ({0: 0} if narrowed is None else narrowed).items():
            cells[f] &= left
        return {0} if narrowed is None else set(narrowed)

    def close(self, box: Box, token: int, test: int) -> None:
        """Demands the reason for which a box, of which something is left, holds no answer below the claim."""
        name = f"box {sum(self.closed) + 1}"
        demand(token != EMPTY, f"of {name} something is left")
        if token == SCORE:
            need = self.goal.tests[test].need
            demand(need is not None and box.states[test][1] < need, f"in {name} the score is within reach")
            return
        left = list(members(((1 << self.forest.n_leaves) - 1) & ~box.lost))  # in the order of the trees
        demand(len(left) == self.forest.n_trees, f"{name} is said to be one cell, and is not")
        demand(not self.goal.is_met(self.forest.scores(left)), f"in {name} the model gives the wanted answer")


# ---------------------------------------------------------------------------------------------------------- verdict


def check_point(case: Case, values: list[float], claimed: float) -> str:
    """Demands that a point is an answer and costs what is said."""
    demand(len(values) == len(case.columns), "the point has not one entry a column")
    cells = [1 << column.cell_of(value) for column, value in zip(case.columns, values, strict=True)]
    for rule in case.rules:
        ends = [[values[f]] for f in rule.columns]
        is_kept = rule.narrowed(cells, case.columns) is not None
        if rule.kind == "Linear":
            is_kept = any(math.isnan(own[0]) for own in ends) or rule.can_hold(ends)
        demand(is_kept, f"the point breaks a rule, {rule.kind}")
    demand(case.cost.is_right(values, claimed), f"the point is not {claimed:.9g} away")
    demand(case.is_answer(values), "the model does not give the wanted answer")
    return f"The point is an answer: the model gives what is asked for, all constraints hold, it is {claimed:.9g} away."


def check_others(case: Case, proof: Json | None, bound: float) -> str:
    """Demands a proof that no answer is nearer than the bound, or, at infinity, that there is none."""
    if proof is None:
        raise VerdictError(UNPROVEN, "the certificate holds no proof; certificate(proof=True) writes one")
    demand(proof.get("format") == FORMAT, f"the proof is not of the format {FORMAT}")
    is_all, below = bound == math.inf, number(proof["below"])
    demand(is_all == (below == math.inf), "the proof is not about what is claimed")
    reached = is_all or Fraction(below) >= Fraction(bound) * (1 - OPTIMAL_TO) - case.cost.noise
    demand(reached, "the proof does not reach the bound")
    demand(len(proof["goals"]) == len(case.goals), "the proof has not one tree for every way to be an answer")
    for f, column in enumerate(case.columns):
        column.restrict(case.cost.reach(f))
    leaves, closed = Leaves(case), [0] * 3
    for goal, record in zip(case.goals, proof["goals"], strict=True):
        walk = ProofTree(case, leaves, goal, record)
        walk.run()
        closed = [a + b for a, b in zip(closed, walk.closed, strict=True)]
    names = ("nothing is left", "the score", "a single cell")
    reasons = ", ".join(f"{n} by {name}" for n, name in zip(closed, names, strict=True) if n)
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
        demand(not case.is_answer([column.row for column in case.columns]), "the row is not of the class to be left")
    if point is not None:
        distance = number(certificate["distance"])
        demand(0 <= distance < math.inf and bound <= distance * (1 + 1e-9), "bound and distance do not go together")
        is_least = Fraction(bound) >= Fraction(distance) * (1 - OPTIMAL_TO) - case.cost.noise
        demand(status != "OPTIMAL" or is_least, "the bound is below the distance that is called the smallest")
        sentences.append(check_point(case, [number(value) for value in point], distance))
    if "plausibility" in certificate:
        raise VerdictError(UNPROVEN, "this program does not judge a limit on the isolation score")
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
