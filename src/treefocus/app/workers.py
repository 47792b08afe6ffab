"""Searches in threads: so many at once, so many waiting, and each can be called off."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from treefocus.app.callers import CALLER
from treefocus.app.limits import Limits, OverLimit, TooBusy

T = TypeVar("T")


class CalledOff(Exception):  # noqa: N818
    """Nobody waits for the answer any more."""


class Errand:
    """One search under way: how far it is, and the way to call it off.

    `heard` goes into `explain(progress=)`; the search asks it many times a second and ends when it raises.
    """

    def __init__(self, seconds: float = math.inf, caller: str | None = None) -> None:
        """`seconds`: after which it ends by itself, for strategies that keep no time. `caller`: whose it is."""
        self.done = 0
        self.caller = CALLER.get() if caller is None else caller
        self.seconds = seconds
        self._end = math.inf
        self._is_off = threading.Event()

    def begin(self) -> None:
        """The clock starts when the search does, not while it waits."""
        self._end = time.monotonic() + self.seconds

    def call_off(self) -> None:
        """Stop the search at its next breath."""
        self._is_off.set()

    @property
    def is_off(self) -> bool:
        """Whether it was called off."""
        return self._is_off.is_set()

    def heard(self, done: int) -> None:
        """Hear how many rows are done."""
        self.done = done
        if self._is_off.is_set():
            raise CalledOff
        if time.monotonic() > self._end:
            raise OverLimit(
                f"The search took more than {self.seconds:.0f} seconds; ask about fewer rows, or by another strategy."
            )


class Workers:
    """A few threads that search; the kernels let go of the interpreter, so they run side by side."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.calls_at_once + limits.calls_waiting
        self._of_one, self._of = limits.calls_per_client, Counter[str]()
        self._inside = 0
        self._pool = ThreadPoolExecutor(limits.calls_at_once, "treefocus-search")

    @property
    def n_inside(self) -> int:
        """Searches that run or wait."""
        return self._inside

    @property
    def has_room(self) -> bool:
        """Whether another search would be taken."""
        return self._inside < self._most

    async def run(self, work: Callable[[Errand], T], errand: Errand) -> T:
        """Do the work in a thread when it is its turn; called off when the caller is cancelled."""
        if self._inside >= self._most:
            raise TooBusy(f"At most {self._most} calls may be under way at the same time; try again in a moment.")
        if self._of[errand.caller] >= self._of_one:
            raise TooBusy(
                f"One client may have at most {self._of_one} of the {self._most} calls under way; try again soon."
            )
        self._inside += 1
        self._of[errand.caller] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, _guarded, work, errand)
        except asyncio.CancelledError:
            errand.call_off()
            raise
        finally:
            self._inside -= 1
            self._of[errand.caller] -= 1
            if not self._of[errand.caller]:
                del self._of[errand.caller]

    def close(self) -> None:
        """Take on nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _guarded(work: Callable[[Errand], T], errand: Errand) -> T:
    errand.heard(0)
    errand.begin()
    return work(errand)
