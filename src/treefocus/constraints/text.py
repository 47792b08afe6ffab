"""Constraints as people write them: "age fixed", "20 <= hours <= 40", "income <= 2 * salary", "at most 3 changes".

    COLUMNS fixed | increasing | decreasing | together | may be missing
    COLUMN in {VALUE, VALUE, ...}            COLUMN == VALUE
    COLUMN >= 2020-01-31                     a date, perhaps with a time: 2020-01-31T14:30
    COLUMN within 10%                        of the row's own value, up or down
    COLUMN from -10% to 20%                  of the row's own value, other shares each way
    SUM <= SUM, SUM >= SUM, SUM <= SUM <= SUM, SUM == SUM
    at most N changes [of COLUMNS]
    if CONDITION then CONDITION              CONDITION implies CONDITION

COLUMNS are names with commas or "and" between them; "column 3" is the one with that number, from 0. A SUM adds and
subtracts numbers, columns and multiples of columns; one in parentheses is a `Linear` even if it has one column only.
A CONDITION is a comparison of one column with numbers, "COLUMN in {...}" or "COLUMN == VALUE"; a word after == is a
value, not a column. A name or value that is no plain word stands in quotes; a quote inside is doubled. A number
may be ∞. Keywords are read in any case. What a constraint's own `to_text` writes can be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
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
from treefocus.constraints.words import BY_NUMBER, INFINITE, KEYWORDS
from treefocus.errors import InvalidInput, reject
from treefocus.schema.dates import read_date

_QUOTED = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`)"""
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
      | (?P<date>\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?![\w.:-]))
      | (?P<number>∞|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<quoted>{_QUOTED})
      | (?P<word>[^\W\d][\w.]*)
      | (?P<sign><=|>=|==|=|<|>|≤|≥|[{{}}(),*+\-%])
      | (?P<wrong>.)""",
    re.VERBOSE,
)
_LINE = re.compile(rf"(?:{_QUOTED}|[^\r\n])+")
_COMPARISONS = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "<": "<", ">": ">", "==": "==", "=": "=="}
_OF_COLUMNS = {kind.words: kind for kind in (Fixed, Increasing, Decreasing, Together, MayBeMissing)}


@dataclass(frozen=True)
class _Token:
    kind: str  # number, date, quoted, word, keyword, sign or end
    text: str
    start: int

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        quote = self.text[:1]
        return self.text[1:-1].replace(2 * quote, quote) if self.kind == "quoted" else self.text

    @property
    def is_whole(self) -> bool:
        """Whether it is a number of digits alone."""
        return self.kind == "number" and self.text.isdecimal()


@dataclass(frozen=True)
class _Sum:
    """A sum of multiples of columns and a number."""

    terms: dict[str | int, float]
    constant: float
    start: int
    is_linear: bool = False  # in parentheses: no range, even if it has one column only
    moment: date | None = None  # what stands in its place

    def minus(self, other: _Sum) -> _Sum:
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0.0) - factor
        terms = {name: c for name, c in terms.items() if c != 0}
        return _Sum(terms, self.constant - other.constant, self.start, self.is_linear or other.is_linear)


def read_constraints(text: str) -> tuple[Constraint, ...]:
    """The constraints that a line states: one, or two where it compares three sums."""
    return _Parser(text).statement()


def lines_of(text: str) -> list[str]:
    """The lines of a text, each with a constraint; a line break in quotes is part of a name."""
    return [line for line in _LINE.findall(text) if line.strip()]


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

    def takes_word(self, word: str) -> bool:
        """Whether this comes next, a word that is no keyword; if so it is behind us."""
        seen = self.next.kind == "word" and self.next.text.lower() == word
        self.at += seen
        return seen

    def demand(self, *words: str) -> None:
        if not self.takes(*words):
            self.fail(f"'{' '.join(words)}' was expected here")

    def column(self) -> str | int:
        if self.next.kind == "word" and self.next.text.lower() == BY_NUMBER and self.tokens[self.at + 1].is_whole:
            self.take()
            return int(self.take().text)
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
        if not self.next.is_whole:
            self.fail("a whole number was expected here")
        n = int(self.take().text)
        if not (self.takes("changes") or self.takes("change")):
            self.fail("'changes' was expected here")
        return AtMost(n, *(self._columns() if self.takes("of") else ()))

    def _columns(self) -> list[str | int]:
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
        for phrase, kind in _OF_COLUMNS.items():
            if self.takes(*phrase.split()):
                return (kind(*columns),)
        found = self._of_column(columns[0]) if len(columns) == 1 else None
        if found is not None:
            return (found,)
        if len(columns) > 1 or is_helped or self.next.kind in ("end", "word", "keyword"):
            words = [*_OF_COLUMNS, *(("in {...}", "within", "a comparison") * (len(columns) == 1))]
            self.fail(f"one of {', '.join(words)} was expected here")
        self.at = begin
        return ()

    def _of_column(self, column: str | int) -> Constraint | None:
        """What is said of one column in words; nothing if it is a comparison."""
        if self.sees("in"):
            return OneOf(column, self._values())
        if self.takes("within"):
            share = self._share()
            return Range(column, -share, share, relative=True)
        if not self.takes_word("from"):
            return None
        low = self._share()
        if not self.takes_word("to"):
            self.fail("'to' was expected here")
        start, high = self.next.start, self._share()
        if low > high:
            self.fail("the second share must not be below the first one", start)
        return Range(column, low, high, relative=True)

    def _share(self) -> float:
        """A number of per cent, as the share that its digits say."""
        number, digits = self._number(), self.tokens[self.at - 1].text.replace("_", "")
        self.demand("%")
        return number if math.isinf(number) else math.copysign(float(Decimal(digits) / 100), number)

    def _values(self, may_be_empty: bool = False) -> list[Any]:
        self.demand("in")
        self.demand("{")
        if may_be_empty and self.takes("}"):
            return []
        found = [self._value()]
        while self.takes(","):
            found.append(self._value())
        self.demand("}")
        return found

    def _date(self) -> date:
        """The date that comes next."""
        found = read_date(self.next.text)
        if found is None:
            self.fail("there is no such date")
        self.take()
        return found

    def _value(self) -> Any:
        if self.next.kind == "date":
            return self._date()
        if self.next.is_name or self.next.kind == "keyword":
            return self.take().name
        number, last = self._number("a value or a number"), self.tokens[self.at - 1]
        if last.is_whole:  # with all its digits
            return -int(last.text) if number < 0 else int(last.text)
        return int(number) if number.is_integer() else number

    def _number(self, what: str = "a number") -> float:
        sign = -1.0 if self.takes("-") else 1.0
        if self.next.kind != "number":
            self.fail(f"{what} was expected here")
        text = self.take().text
        return sign * (math.inf if text == INFINITE else float(text.replace("_", "")))

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
        if first.column != second.column:
            return first, second
        if any(isinstance(end, date) for one in found for end in (one.low, one.high)):
            return self._joined_dates(first, second, start)
        low, high = max(first.low, second.low), min(first.high, second.high)
        if low > high:
            self.fail(f"no value lies between {low:g} and {high:g}", start)
        return (Range(first.column, low, high),)

    def _joined_dates(self, first: Range, second: Range, start: int) -> tuple[Constraint, ...]:
        """The same where both compare with a date, one from below and one from above."""
        low = next((one.low for one in (first, second) if isinstance(one.low, date)), -math.inf)
        high = next((one.high for one in (first, second) if isinstance(one.high, date)), math.inf)
        try:
            return (Range(first.column, low, high),)
        except InvalidInput:
            self.fail(f"no date lies between {low} and {high}", start)

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
        if left.moment is not None or right.moment is not None:
            return [self._compared_with_date(left, right, sign, start)]
        whole = left.minus(right)  # of which the sum must be at most 0, or 0
        if not whole.terms:
            self.fail("a comparison needs a column", start)
        if len(whole.terms) == 1 and not whole.is_linear:
            ((column, factor),) = whole.terms.items()
            return [_range(column, -whole.constant / factor, factor > 0, sign)]
        if sign == "<":
            self.fail("between columns use <= or >=", start)
        found: list[Constraint] = [Linear(whole.terms, at_most=-whole.constant)]
        if sign == "==":
            found.append(Linear({name: -c for name, c in whole.terms.items()}, at_most=whole.constant))
        return found

    def _compared_with_date(self, left: _Sum, right: _Sum, sign: str, start: int) -> Range:
        """left <= right, left < right or left == right, where one is a date and the other a column."""
        moment, other = (left.moment, right) if left.moment is not None else (right.moment, left)
        is_column = len(other.terms) == 1 and not other.constant and set(other.terms.values()) == {1.0}
        if moment is None or not is_column or other.is_linear:
            self.fail("a date is compared with a column", start)
        (column,) = other.terms
        is_upper = other is left
        if sign == "==":
            return Range(column, moment, moment)
        if sign == "<":  # a day or a second apart, so that this is next to it in every counting
            at = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
            moment = at - timedelta(milliseconds=1) if is_upper else at + timedelta(milliseconds=1)
        return Range(column, high=moment) if is_upper else Range(column, low=moment)

    def _sum(self) -> _Sum:
        if self.next.kind == "date":
            return _Sum({}, 0.0, self.next.start, moment=self._date())
        if self.sees("("):
            return self._sum_in_parentheses()
        start, terms, constant = self.next.start, dict[str | int, float](), 0.0
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

    def _sum_in_parentheses(self) -> _Sum:
        self.demand("(")
        found = self._sum()
        self.demand(")")
        return replace(found, is_linear=True)

    def _term(self) -> tuple[float, str | int | None]:
        """A number, a column, or a number times a column, either way round."""
        if self.next.is_name:
            column = self.column()
            return (self._factor(self._number()), column) if self.takes("*") else (1.0, column)
        if self.next.kind == "keyword":
            self.column()
        if self.next.kind != "number" and not self.sees("-"):
            self.fail("a column or a number was expected here")
        number = self._number()
        return (self._factor(number), self.column()) if self.takes("*") else (number, None)

    def _factor(self, number: float) -> float:
        """What a column may be multiplied by."""
        if not math.isfinite(number):
            self.fail("a column is multiplied by finite numbers only", self.tokens[self.at - 1].start)
        return number

    # ---- conditions

    def _condition(self) -> Condition:
        start = self.next.start
        begin = self.at
        if self.next.is_name:
            column = self.column()
            if self.sees("in"):
                return Condition(column, values=tuple(self._values(may_be_empty=True)))
        self.at = begin
        found = self._comparison()
        if len(found) == 1 and isinstance(found[0], Range):
            return Condition(found[0].column, found[0].low, found[0].high)
        if len(found) == 1 and isinstance(found[0], OneOf):
            return Condition(found[0].column, values=found[0].values)
        self.fail("a condition is about one column", start)


def _range(column: str | int, bound: float, is_upper: bool, sign: str) -> Range:
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
