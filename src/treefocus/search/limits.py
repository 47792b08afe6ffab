"""What a search is allowed: seconds, boxes, memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchLimits:
    """What a search was allowed: seconds and boxes a row (None for no limit), bytes for the process."""

    time_limit: float | None
    node_limit: int | None
    memory_limit: float
