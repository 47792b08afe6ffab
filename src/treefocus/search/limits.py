"""What a search is allowed: work, seconds, boxes, memory.

Work is counted in steps, for one search of one row: what the core looks at while it searches boxes, prices them,
polishes and descends, about a nanosecond each on one core of 2026. It is counted and not measured: the same call
gives the same bytes on every machine. This is what Auto has by default, `WORK`, about a second; the default gives way
to any limit that somebody asks for, in seconds, boxes or work. A descent or a polish that was begun is brought to its
end. What happens next never depends on how much is allowed, so that more work gives an answer that is no farther and a
bound that is no lower.

A time limit is in seconds, for one search of one row; None is none. This is the rule about it, for every strategy that
looks at a clock (Auto, Exact, Dace; the others count steps):

- Which one counts: of what the strategy itself was told (`Exact(time_limit=1)`) and what `explain(time_limit=5)` was
  told, the tighter. A strategy's default, such as Auto's second, counts only where neither was told anything.
- When the clock starts: when `explain` is called. Reading the rows, seeds and polish count; no seed is begun once half
  of the time is gone, and the search after them has what is left, and never less than a tenth of it. What the core
  prepares of a model, and keeps, is made with the Explainer.
- Whose time it is: rows share the threads, so n rows on t threads may take n / t times the limit, and time that is
  spent on all of them at once is each row's in equal parts. What one row leaves over is not given to another.
- A further way out, or another look for a plausible answer, is a search of its own: it has the same time, or work,
  again, which its parts share.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any, Protocol

from treefocus.errors import reject

SECONDS = "a number of seconds above 0, or None"  # what a time limit has to be
LEAST = 0.1  # of a time limit, that a search has whatever came before it


class Limited(Protocol):
    """A strategy that was told limits; the names are those of `SearchLimits`."""

    @property
    def time_limit(self) -> float | None:
        """Seconds a row."""

    @property
    def node_limit(self) -> int | None:
        """Boxes a row."""

    @property
    def memory_limit(self) -> float:
        """Bytes for the process."""

    @property
    def work_limit(self) -> int | None:
        """Steps of work a row."""


@dataclass(frozen=True)
class SearchLimits:
    """What a search was allowed: seconds, boxes and steps of work a row (None for no limit), bytes for the process."""

    time_limit: float | None
    node_limit: int | None
    memory_limit: float
    work_limit: int | None = None

    @classmethod
    def of(cls, own: Limited, asked: float | None, n_parts: int) -> SearchLimits:
        """What a strategy may use, in a call that asked for so many seconds, where parts share a row's work."""
        seconds = time_limit_of(own.time_limit, asked)
        work = work_limit_of(own.work_limit, own.time_limit, asked, own.node_limit, n_parts=n_parts)
        return cls(seconds, own.node_limit, own.memory_limit, work)


def now() -> float:
    """Seconds, by the clock that time limits go by."""
    return time.perf_counter()


class DefaultSeconds(float):
    """A time limit that nobody asked for: it gives way to any that somebody did."""


class DefaultWork(int):
    """A limit in steps of work that nobody asked for: it gives way to any limit that somebody did."""


WORK = DefaultWork(700_000_000)  # steps


def is_time_limit(value: Any) -> bool:
    """Whether it is `SECONDS`."""
    return value is None or (isinstance(value, Real) and float(value) > 0)


def check_time_limit(value: Any, name: str = "time_limit") -> None:
    """Refuse what is no time limit."""
    if not is_time_limit(value):
        reject(name, SECONDS, value)


def time_limit_of(own: float | None, asked: float | None) -> float | None:
    """The limit that counts: the tighter of the strategy's own and the one asked for, its default if there is none."""
    limits = [limit for limit in (own, asked) if limit is not None and not isinstance(limit, DefaultSeconds)]
    limit = min(limits) if limits else None if own is None else float(own)
    return None if limit == inf else limit


def work_limit_of(own: int | None, *others: float | None, n_parts: int = 1) -> int | None:
    """The limit in steps: the strategy's own, unless it is a default and another limit was told; parts share it."""
    if own is None or (isinstance(own, DefaultWork) and any(other is not None for other in others)):
        return None
    return max(int(own) // n_parts, 1)


@dataclass(frozen=True)
class Clock:
    """The time of rows that are worked on together."""

    n_rows: int
    n_threads: int
    gone: float = 0.0  # seconds of each row's time, before it began
    began: float = field(default_factory=lambda: now())

    @property
    def spent(self) -> float:
        """Seconds of each row's time that are gone by now."""
        n_rows = max(self.n_rows, 1)
        return self.gone + (now() - self.began) * min(self.n_threads, n_rows) / n_rows

    def on(self, n_rows: int) -> Clock:
        """The clock of some of the rows, or of all, which goes on."""
        return Clock(n_rows, self.n_threads, self.spent)

    def again(self, n_rows: int) -> Clock:
        """The clock of some of the rows whose turn comes now: the time since this one began went to others."""
        return Clock(n_rows, self.n_threads, self.gone)


def seconds_left(limit: float | None, clock: Clock | None) -> float:
    """What is left of each row's time, infinity without a limit."""
    if limit is None:
        return inf
    return float(limit) if clock is None else max(limit - clock.spent, LEAST * limit)
