"""How a long run is seen from outside: rows, rows a second, statuses and the time left, in words or as JSON."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

SECONDS = 30.0  # between two reports


@dataclass(frozen=True)
class Report:
    """A run at one moment."""

    rows: int  # answered, in earlier runs too
    rows_per_second: float  # of this run
    seconds: float  # since this run began
    seconds_left: float | None  # None where nobody knows
    status: Mapping[str, int] = field(default_factory=dict)  # rows per status, where they are known
    is_done: bool = False

    def to_text(self) -> str:
        """A line of text."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.status.items())
        left = "" if self.seconds_left is None or self.is_done else f", {clock(self.seconds_left)} left"
        told = f"{self.rows:,} rows, {self.rows_per_second:,.0f} rows/s{left}"
        return f"{told} ({counts})" if counts else told

    def to_json(self) -> str:
        """A line of JSON."""
        return json.dumps(asdict(self) | {"status": dict(self.status)})


class Stopwatch:
    """Reports of one run, from how far it has come."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._first: tuple[float, float] | None = None  # time and share at the first word of it

    def report(
        self,
        rows: int,
        rows_now: int,
        share: float | None,
        status: Mapping[str, int] | None = None,
        is_done: bool = False,
    ) -> Report:
        """At this moment. share: how much of all is done, from 0 to 1, where that is known."""
        seconds = self._clock() - self._began
        rate = rows_now / max(seconds, 1e-9)
        return Report(rows, rate, seconds, self._left(seconds, share), dict(status or {}), is_done)

    def _left(self, seconds: float, share: float | None) -> float | None:
        """What is left, at the pace since the first word: an earlier run's work was not done in this time."""
        if share is None:
            return None
        if self._first is None:
            self._first = (seconds, share)
        since, done = seconds - self._first[0], share - self._first[1]
        return max(0.0, 1.0 - share) * since / done if done > 0 else None


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def watched(
    rows_done: Any, n_rows: int | None = None, *, seconds: float = SECONDS, say: Callable[[str], None] = print
) -> Iterator[None]:
    """Tell every so many seconds how far a cluster has come, while the block asks it for answers.

    rows_done: what `explain_dataset` or `explain_frame` was given, an object whose `value` is a number of rows. n_rows:
    how many there are, which gives the time left.
    """
    watch, stop = Stopwatch(), threading.Event()
    watch.report(0, 0, 0.0)

    def told() -> str:
        rows = int(rows_done.value)
        return watch.report(rows, rows, None if not n_rows else rows / n_rows).to_text()

    def tell() -> None:
        while not stop.wait(seconds):
            say(told())

    thread = threading.Thread(target=tell, name="treefocus-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        say(told())
