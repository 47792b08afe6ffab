"""What is asked about rows, in the library's own words. Knows neither the model nor the wire."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from treefocus.constraints.kinds import Constraint
from treefocus.problem.plausibility import Measure
from treefocus.search.plausible import FURTHER


@dataclass(frozen=True)
class ExplainOptions:
    """The options of `Explainer` and of `Explainer.explain`."""

    distance: str = "manhattan"
    constraints: tuple[Constraint, ...] = ()
    target: Any = field(default=None, hash=False)
    strategy: str = "auto"
    time_limit: float | None = 1.0
    seed: int = 0
    n: int = 1  # ways out
    scale: Any = field(default="range", hash=False)
    bounds: Any = field(default=None, hash=False)
    weights: dict[str, float] | None = field(default=None, hash=False)
    plausibility: Measure | None = None

    @property
    def text(self) -> str:
        """All options as text; jobs that an earlier server left behind are known by it."""
        return f"Question({', '.join(f'{one.name}={getattr(self, one.name)!r}' for one in fields(self))})"

    @property
    def n_searches(self) -> int:
        """How often a row may be searched: once a way out, and for further ones where an answer must be plausible."""
        return self.n * (1 if self.plausibility is None else 1 + FURTHER)
