"""Who calls: under which name, how often a token was guessed wrong, and how many questions a day are left."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from treefocus.app.limits import BudgetSpent

UNKNOWN = "somebody"
CALLER: ContextVar[str] = ContextVar("caller", default=UNKNOWN)  # the token's name, or the address where there is none
_FREE_GUESSES = 5  # wrong ones, for those who mistype
_LONGEST_WAIT = 60.0  # seconds
_FORGIVEN = 900.0  # seconds after the last wrong guess
_MOST_ADDRESSES = 10_000


class Guesses:
    """Wrong tokens by address: after a few, each makes the address wait twice as long as the one before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and when the last

    def wait(self, address: str) -> float:
        """Seconds until this address may try again."""
        n, last = self._wrong.get(address, (0, 0.0))
        passed = self._clock() - last
        if n <= _FREE_GUESSES or passed > _FORGIVEN:
            return 0.0
        return float(max(0.0, min(_LONGEST_WAIT, 2.0 ** (n - _FREE_GUESSES - 1)) - passed))

    def wrong(self, address: str) -> None:
        """A token that was not one."""
        n, last = self._wrong.pop(address, (0, 0.0))
        now = self._clock()
        self._wrong[address] = (1 if now - last > _FORGIVEN else n + 1, now)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def right(self, address: str) -> None:
        """A token that was one: what was mistyped before is forgiven."""
        self._wrong.pop(address, None)


class Budget:
    """Questions a day for each caller: every row that is predicted or explained, and every way out, is one."""

    def __init__(self, most: int | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`most`: None for any number."""
        self.most, self._now = most, now
        self._day = now().date()
        self._asked: dict[str, int] = {}

    def take(self, n: int, caller: str | None = None) -> None:
        """Ask so many questions, or be told when the next ones are free."""
        if self.most is None:
            return
        now, caller = self._now(), CALLER.get() if caller is None else caller
        if now.date() != self._day:
            self._day, self._asked = now.date(), {}
        asked = self._asked.get(caller, 0)
        if asked + n > self.most:
            raise BudgetSpent(
                f"At most {self.most:,} questions a day: {asked:,} were asked, and these are {n:,} more. "
                "The count begins anew at midnight, UTC.", self._seconds_left(now),
            )  # fmt: skip
        self._asked[caller] = asked + n

    def _seconds_left(self, now: datetime) -> int:
        midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
        return max(1, int((midnight - now).total_seconds()))
