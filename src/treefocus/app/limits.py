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
    """More at the same time than the server takes on; it is worth trying again."""

    code = 429


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
    jobs_kept: int = 100  # ended ones, whose results can still be fetched

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
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

    def check_jobs(self, n_open: int) -> None:
        """Jobs that wait or run when another one comes."""
        if n_open >= self.jobs_open:
            raise TooBusy(f"At most {self.jobs_open} jobs may wait or run at the same time; try again when one ends.")
