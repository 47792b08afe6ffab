"""How much one caller may ask for, and the errors that say so."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar

from treefocus.errors import TreefocusError, reject
from treefocus.problem.plausibility import IsolationScore


class OverLimit(TreefocusError):  # noqa: N818
    """More than the server allows; `code` is the HTTP status it is answered with."""

    code: ClassVar[int] = 422


class TooMuch(OverLimit):
    """A body, or a table, larger than one call may bring."""

    code = 413


class TooBusy(OverLimit):
    """More at the same time than the server takes on; it is worth trying again, in so many `seconds`."""

    code = 429
    seconds: int = 1


class BudgetSpent(TooBusy):
    """The questions of a day have been asked; `seconds` until there are new ones."""

    def __init__(self, text: str, seconds: int) -> None:
        super().__init__(text)
        self.seconds = seconds


class DiskFull(OverLimit):
    """There is no room to keep what was asked."""

    code = 507


@dataclass(frozen=True)
class Limits:
    """What one server takes on."""

    rows_per_call: int = 100
    rows_per_job: int = 100_000
    seconds_per_row: float = 10.0
    ways_per_row: int = 10
    isolation_trees: int = 1_000
    body_bytes: int = 16_000_000
    calls_at_once: int = field(default_factory=lambda: os.cpu_count() or 1)
    calls_waiting: int = 64
    jobs_open: int = 4  # waiting or running
    questions_per_day: int | None = None  # of one caller; None for any number
    visitors: int = 200  # that have the page open
    jobs_kept: int = 100  # ended ones, whose results can still be fetched

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None:
                continue
            least = 0 if name in ("calls_waiting", "jobs_kept") else 1
            if not value >= (1e-3 if name == "seconds_per_row" else least):
                reject(f"Limits.{name}", f"at least {least}" if name != "seconds_per_row" else "above 0", value)

    def check_call(self, n_rows: int) -> None:
        """Rows in one call."""
        if n_rows > self.rows_per_call:
            raise TooMuch(
                f"rows must be at most {self.rows_per_call:,} in one call, got {n_rows:,}; "
                f"POST /v1/jobs takes {self.rows_per_job:,}."
            )

    def check_job(self, n_rows: int) -> None:
        """Rows in one job."""
        if n_rows > self.rows_per_job:
            raise TooMuch(f"rows must be at most {self.rows_per_job:,} in one job, got {n_rows:,}.")

    def check_seconds(self, seconds: Any) -> None:
        """Seconds a row; whether it is a sensible number at all is for `Explainer.explain` to say."""
        if isinstance(seconds, int | float) and seconds > self.seconds_per_row:
            raise OverLimit(f"time_limit must be at most {self.seconds_per_row:g} seconds a row, got {seconds:g}.")

    def check_ways(self, n: Any) -> None:
        """Ways out a row."""
        if isinstance(n, int) and n > self.ways_per_row:
            raise OverLimit(f"n must be at most {self.ways_per_row}, got {n}.")

    def check_measure(self, measure: Any) -> None:
        """Trees of an isolation forest."""
        if isinstance(measure, IsolationScore) and measure.trees > self.isolation_trees:
            raise OverLimit(f"IsolationScore.trees must be at most {self.isolation_trees:,}, got {measure.trees}.")

    def patience(self, n_rows: int, n_searches: int = 1) -> float:
        """Seconds after which a call for so many rows, each searched so often, is ended, whatever its strategy does."""
        return 2 * self.seconds_per_row * max(1, n_rows) * max(1, n_searches) + 10

    @property
    def calls_per_client(self) -> int:
        """Of the places for calls that run or wait: one client cannot take them all."""
        return max(1, (self.calls_at_once + self.calls_waiting) // 2)

    @property
    def jobs_per_client(self) -> int:
        """Of the jobs that may wait or run."""
        return max(1, self.jobs_open - 1)

    def check_jobs(self, n_open: int, n_own: int = 0) -> None:
        """Jobs that wait or run when another one comes, and those of the same client among them."""
        if n_own >= self.jobs_per_client and n_open < self.jobs_open:
            raise TooBusy(
                f"One client may have at most {self.jobs_per_client} of the {self.jobs_open} jobs that wait or run; "
                "try again when one ends."
            )
        if n_open >= self.jobs_open:
            raise TooBusy(f"At most {self.jobs_open} jobs may wait or run at the same time; try again when one ends.")
