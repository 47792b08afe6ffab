"""Search strategies, one file each, and their names."""

from __future__ import annotations

from functools import cache
from typing import Any

from treefocus.errors import reject
from treefocus.search.auto import Auto
from treefocus.search.base import History, Outcome, Run, Status, Strategy
from treefocus.search.dace import Dace
from treefocus.search.exact import Exact
from treefocus.search.feature_tweaking import FeatureTweaking
from treefocus.search.focus import Focus
from treefocus.search.random_perturbation import RandomPerturbation

__all__ = [
    "NAMED", "Auto", "Dace", "Exact", "FeatureTweaking", "Focus", "History", "Outcome", "RandomPerturbation", "Run",
    "Status", "Strategy", "as_strategy",
]  # fmt: skip

NAMED: dict[str, type[Strategy]] = {
    "auto": Auto, "exact": Exact, "focus": Focus,
    "feature_tweaking": FeatureTweaking, "dace": Dace, "random_perturbation": RandomPerturbation,
}  # fmt: skip


@cache
def _default(name: str) -> Strategy:
    """A strategy with its defaults, made once: it is frozen."""
    return NAMED[name]()


def as_strategy(strategy: Any) -> Strategy:
    """A strategy from its name (with its defaults) or as it is."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in NAMED:
        return _default(strategy)
    reject("strategy", f"one of {', '.join(NAMED)}, or a strategy such as Focus(sigma=10)", repr(strategy))
