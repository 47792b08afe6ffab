"""Search strategies, one file each, and their names."""

from __future__ import annotations

from typing import Any

from treefocus.errors import reject
from treefocus.search.auto import Auto
from treefocus.search.base import History, Outcome, Run, Status, Strategy
from treefocus.search.exact import Exact
from treefocus.search.focus import Focus

__all__ = ["NAMED", "Auto", "Exact", "Focus", "History", "Outcome", "Run", "Status", "Strategy", "as_strategy"]

NAMED: dict[str, type[Strategy]] = {"auto": Auto, "exact": Exact, "focus": Focus}


def as_strategy(strategy: Any) -> Strategy:
    """A strategy from its name (with its defaults) or as it is."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in NAMED:
        return NAMED[strategy]()
    reject("strategy", f"one of {', '.join(NAMED)}, or a strategy such as Focus(sigma=10)", repr(strategy))
