"""Constraints as people write them: "age fixed", "20 <= hours <= 40", "income <= 2 * salary", "at most 3 changes".

    COLUMNS fixed | increasing | decreasing | together | may be missing
    COLUMN in {VALUE, VALUE, ...}            COLUMN == VALUE
    COLUMN within 10%                        of the row's own value, up or down
    SUM <= SUM, SUM >= SUM, SUM <= SUM <= SUM, SUM == SUM
    at most N changes [of COLUMNS]
    if CONDITION then CONDITION              CONDITION implies CONDITION

COLUMNS are names with commas or "and" between them. A SUM adds and subtracts numbers, columns and multiples of columns.
A CONDITION is a comparison of one column with numbers, "COLUMN in {...}" or "COLUMN == VALUE"; a word after == is a
value, not a column. A name or value that is no plain word stands in quotes. Keywords are read in any case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from treefocus.constraints.kinds import (
    AtMost,
    Condition,
    Constraint,
    Decreasing,
    Fixed,
    Implies,
    Increasing,
    Linear,
    MayBeMissing,
    OneOf,
    Range,
    Together,
)
from treefocus.constraints.words import KEYWORDS
from treefocus.errors import InvalidInput, reject

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<quoted>"[^"]*"|'[^']*'|`[^`]*`)
      | (?P<word>[^\W\d][\w.]*)
      | (?P<sign><=|>=|==|=|<|>|≤|≥|[{}(),*+\-%])
      | (?P<wrong>.)""",
    re.VERBOSE,
)
_COMPARISONS = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "<": "<", ">": ">", "==": "==", "=": "=="}
_OF_COLUMNS = {"fixed": Fixed, "increasing": Increasing, "decreasing": Decreasing, "together": Together}


@dataclass(frozen=True)
class _Token:
    kind: str  # number, quoted, word, keyword, sign or end
    text: str
    start: int

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        return self.text[1:-1] if self.kind == "quoted" else self.text


@dataclass(frozen=True)
class _Sum:
    """A sum of multiples of columns and a number."""

    terms: dict[str, float]
    constant: float
    start: int

    def minus(self, other: _Sum) -> _Sum:
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0.0) - factor
        return _Sum({name: c for name, c in terms.items() if c != 0}, self.constant - other.constant, self.start)


def read_constraints(text: str) -> tuple[Constraint, ...]:
    """The constraints that a line states: one, or two where it compares three sums."""
    return _Parser(text).statement()


class _Parser:
    """Reads one line, token by token."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, [], 0
        for match in _TOKEN.finditer(text):
            kind = str(match.lastgroup)
            if kind == "wrong":
                self.fail("this cannot be read", match.start())
            if kind == "word" and match.group().lower() in KEYWORDS:
                kind = "keyword"
            if kind != "space":
                self.tokens.append(_Token(kind, match.group(), match.start()))
        self.tokens.append(_Token("end", "", len(text.rstrip())))

    # ---- tokens

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def fail(self, why: str, start: int | None = None) -> NoReturn:
        """Raise an error that points at the word."""
        place = self.next.start if start is None else start
        raise InvalidInput(f"The constraint cannot be read: {why}.\n  {self.text}\n  {' ' * place}^")

    def sees(self, *words: str) -> bool:
        """Whether these keywords or signs come next."""
        ahead = self.tokens[self.at : self.at + len(words)]
        kinds = ("keyword", "sign")
        return len(ahead) == len(words) and all(
            token.kind in kinds and token.text.lower() == word for token, word in zip(ahead, words, strict=True)
        )

    def takes(self, *words: str) -> bool:
        """Whether these come next; if so they are behind us."""
        seen = self.sees(*words)
        self.at += len(words) * seen
        return seen

    def take(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def demand(self, *words: str) -> None:
        if not self.takes(*words):
            self.fail(f"'{' '.join(words)}' was expected here")

    def column(self) -> str:
        if not self.next.is_name:
            hint = "; a name that is a keyword stands in quotes" if self.next.kind == "keyword" else ""
            self.fail(f"the name of a column was expected here{hint}")
        return self.take().name

    def end(self) -> None:
        if self.next.kind != "end":
            self.fail("nothing more was expected here")

    # ---- statements

    def statement(self) -> tuple[Constraint, ...]:
        if self.takes("at", "most"):
            found: tuple[Constraint, ...] = (self._at_most(),)
        elif self.takes("if"):
            cause = self._condition()
            self.demand("then")
            found = (Implies(cause, self._condition()),)
        elif any(token.kind == "keyword" and token.text.lower() == "implies" for token in self.tokens):
            cause = self._condition()
            self.demand("implies")
            found = (Implies(cause, self._condition()),)
        else:
            found = self._of_columns() or self._comparison()
        self.end()
        return found

    def _at_most(self) -> AtMost:
        if self.next.kind != "number" or not self.next.text.isdigit():
            self.fail("a whole number was expected here")
        n = int(self.take().text)
        if not (self.takes("changes") or self.takes("change")):
            self.fail("'changes' was expected here")
        return AtMost(n, *(self._columns() if self.takes("of") else ()))

    def _columns(self) -> list[str]:
        found = [self.column()]
        while self.takes(",") or self.takes("and"):
            self.takes("and")
            found.append(self.column())
        return found

    def _of_columns(self) -> tuple[Constraint, ...]:
        """A statement that starts with names and goes on with words; nothing if it is a comparison."""
        begin = self.at
        if not self.next.is_name:
            return ()
        columns = self._columns()
        is_helped = self.takes("is") or self.takes("are")
        for word, kind in _OF_COLUMNS.items():
            if self.takes(word):
                return (kind(*columns),)
        if self.takes("may", "be", "missing"):
            return (MayBeMissing(*columns),)
        if len(columns) == 1 and (self.sees("in") or self.sees("within")):
            return (self._within(columns[0]) if self.takes("within") else self._one_of(columns[0]),)
        if len(columns) > 1 or is_helped or self.next.kind in ("end", "word", "keyword"):
            words = [*_OF_COLUMNS, "may be missing", *(("in {...}", "within", "a comparison") * (len(columns) == 1))]
            self.fail(f"one of {', '.join(words)} was expected here")
        self.at = begin
        return ()

    def _within(self, column: str) -> Range:
        share = self._number()
        self.demand("%")
        return Range(column, -share / 100, share / 100, relative=True)

    def _one_of(self, column: str) -> OneOf:
        self.demand("in")
        return OneOf(column, self._values())

    def _values(self) -> list[Any]:
        self.demand("{")
        found = [self._value()]
        while self.takes(","):
            found.append(self._value())
        self.demand("}")
        return found

    def _value(self) -> Any:
        if self.next.is_name or self.next.kind == "keyword":
            return self.take().name
        number = self._number("a value or a number")
        return int(number) if number == int(number) else number

    def _number(self, what: str = "a number") -> float:
        sign = -1.0 if self.takes("-") else 1.0
        if self.next.kind != "number":
            self.fail(f"{what} was expected here")
        return sign * float(self.take().text.replace("_", ""))

    # ---- comparisons

    def _comparison(self) -> tuple[Constraint, ...]:
        sides, signs = [self._sum()], []
        while self.next.text in _COMPARISONS:
            signs.append((_COMPARISONS[self.next.text], self.take().start))
            value = self._equal_to(sides, signs)
            if value is not None:
                return (value,)
            sides.append(self._sum())
        if not signs:
            self.fail("a comparison was expected here")
        if len(signs) == 2 and {sign[0] for sign, _ in signs} not in ({"<"}, {">"}):
            self.fail("both comparisons must point the same way", signs[1][1])
        if len(signs) > 2:
            self.fail("two comparisons are the most", signs[2][1])
        found = [
            one
            for left, right, (sign, start) in zip(sides[:-1], sides[1:], signs, strict=True)
            for one in self._compared(left, right, sign, start)
        ]
        if len(found) == 2 and all(isinstance(one, Range) for one in found):
            return self._joined(found, sides[1].start)
        return tuple(found)

    def _joined(self, found: Sequence[Any], start: int) -> tuple[Constraint, ...]:
        """Two ranges of one column as one."""
        first, second = found
        low, high = max(first.low, second.low), min(first.high, second.high)
        if first.column != second.column:
            return first, second
        if low > high:
            self.fail(f"no value lies between {low:g} and {high:g}", start)
        return (Range(first.column, low, high),)

    def _equal_to(self, sides: list[_Sum], signs: list[tuple[str, int]]) -> OneOf | None:
        """COLUMN == VALUE, where the value is a word."""
        is_value = self.next.is_name or self.next.kind == "keyword"
        if signs[-1][0] != "==" or not is_value or len(signs) > 1:
            return None
        if len(sides[0].terms) != 1 or sides[0].constant or set(sides[0].terms.values()) != {1.0}:
            return None
        if self.tokens[self.at + 1].kind not in ("end", "keyword"):
            self.fail("a single value was expected here", self.tokens[self.at + 1].start)
        return OneOf(next(iter(sides[0].terms)), [self.take().name])

    def _compared(self, left: _Sum, right: _Sum, sign: str, start: int) -> list[Constraint]:
        """left - right against 0."""
        if sign in (">=", ">"):
            left, right, sign = right, left, sign.replace(">", "<")
        whole = left.minus(right)  # of which the sum must be at most 0, or 0
        if not whole.terms:
            self.fail("a comparison needs a column", start)
        if len(whole.terms) == 1:
            ((column, factor),) = whole.terms.items()
            return [_range(column, -whole.constant / factor, factor > 0, sign)]
        if sign == "<":
            self.fail("between columns use <= or >=", start)
        found: list[Constraint] = [Linear(whole.terms, at_most=-whole.constant)]
        if sign == "==":
            found.append(Linear({name: -c for name, c in whole.terms.items()}, at_most=whole.constant))
        return found

    def _sum(self) -> _Sum:
        start, terms, constant = self.next.start, dict[str, float](), 0.0
        sign = -1.0 if self.takes("-") else 1.0
        while True:
            factor, name = self._term()
            if name is None:
                constant += sign * factor
            else:
                terms[name] = terms.get(name, 0.0) + sign * factor
            if self.takes("+"):
                sign = 1.0
            elif self.takes("-"):
                sign = -1.0
            else:
                return _Sum(terms, constant, start)

    def _term(self) -> tuple[float, str | None]:
        """A number, a column, or a number times a column, either way round."""
        if self.next.is_name:
            name = self.take().name
            return (self._number(), name) if self.takes("*") else (1.0, name)
        if self.next.kind == "keyword":
            self.column()
        if self.next.kind != "number" and not self.sees("-"):
            self.fail("a column or a number was expected here")
        number = self._number()
        return (number, self.column()) if self.takes("*") else (number, None)

    # ---- conditions

    def _condition(self) -> Condition:
        start = self.next.start
        if self.next.is_name and self.tokens[self.at + 1].text.lower() == "in":
            column = self.column()
            self.demand("in")
            return Condition(column, values=tuple(self._values()))
        found = self._comparison()
        if len(found) == 1 and isinstance(found[0], Range):
            return Condition(found[0].column, found[0].low, found[0].high)
        if len(found) == 1 and isinstance(found[0], OneOf):
            return Condition(found[0].column, values=found[0].values)
        self.fail("a condition is about one column", start)


def _range(column: str, bound: float, is_upper: bool, sign: str) -> Range:
    if sign == "==":
        return Range(column, bound, bound)
    if sign == "<":
        bound = math.nextafter(bound, -math.inf if is_upper else math.inf)
    return Range(column, high=bound) if is_upper else Range(column, low=bound)


def as_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """One constraint or several, as objects or as text."""
    is_several = isinstance(constraints, Iterable) and not isinstance(constraints, str)
    found: list[Constraint] = []
    for one in constraints if is_several else (constraints,):
        if isinstance(one, str):
            found += read_constraints(one)
        elif isinstance(one, Constraint):
            found.append(one)
        else:
            kinds = "Fixed, Range, OneOf, Increasing, Decreasing, AtMost, Linear, Implies, Together, MayBeMissing"
            reject("constraints", f"{kinds} or text", repr(one))
    return tuple(found)
