"""Exact: the closest answer there is, with its proof, by branch and bound over boxes of the threshold grid.

The idea is told in cpp/treefocus/exact.hpp and docs/exact.md. A row gets OPTIMAL or INFEASIBLE when the search came to
its end, and BOUNDED, with what is proven, when a limit stopped it or when boxes are left that no split decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from treefocus import kernels
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Strategy, check_positive
from treefocus.search.limits import SearchLimits, check_time_limit
from treefocus.search.proven import proven
from treefocus.search.tolerant import with_room


@dataclass(frozen=True)
class Exact(Strategy):
    """Searches until it is proven, or until a limit: seconds, boxes and work a row, bytes for the process.

    Parameters
    ----------
    time_limit : float, optional
        Seconds a row; the tighter of this and of `explain(time_limit=...)` counts.
    node_limit : int, optional
        Boxes a row.
    memory_limit : float
        Bytes for the process.
    work_limit : int, optional
        Steps of work a row, about a nanosecond each; the same on every machine.

    Examples
    --------
    >>> from treefocus import Exact
    >>> Exact(time_limit=60).time_limit
    60
    """

    proves: ClassVar[bool] = True

    time_limit: float | None = None
    node_limit: int | None = None
    memory_limit: float = 1e9
    work_limit: int | None = None

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit, "Exact.time_limit")
        given = (name for name in ("node_limit", "work_limit") if getattr(self, name) is not None)
        check_positive(self, "memory_limit", *given)

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """Search without a known answer."""
        return self.prove(problem, Incumbent(problem), run)

    def prove(self, problem: Problem, incumbent: Incumbent, run: Run, part: int = kernels.ALL) -> Outcome:
        """Search from known answers; part: of the search."""
        limits = SearchLimits.of(self, run.time_limit, run.n_parts)
        if problem.room is not None:
            return with_room(self, problem, limits, run.on(len(problem)))
        return proven(problem, incumbent, run, limits, part=part)
