"""Branch and bound as a step of other strategies: from known answers, within limits, with statuses that claim no more.

Exact is nothing else, Auto goes there after its seeds, and answers with room to move are put together of many of them.
"""

from __future__ import annotations

import warnings

import numpy as np

from treefocus import kernels
from treefocus.errors import InvalidInput
from treefocus.kernels.inputs import CompiledDistance, Norms
from treefocus.problem.problem import Problem
from treefocus.search.base import Incumbent, Outcome, Run, Status
from treefocus.search.limits import SearchLimits, seconds_left

_TOLERANCE, _NOISE = 1e-8, 1e-10  # relative and absolute, between the search's arithmetic and the distance's
_STATUS = np.empty(4, object)  # by the proof's number
_STATUS[[kernels.OPTIMAL, kernels.BOUNDED, kernels.INFEASIBLE, kernels.NOTHING]] = [
    Status.OPTIMAL, Status.BOUNDED, Status.INFEASIBLE, Status.NOT_FOUND,
]  # fmt: skip


def proven(
    problem: Problem,
    incumbent: Incumbent,
    run: Run,
    limits: SearchLimits,
    spent: kernels.Spent | None = None,
    part: int = kernels.ALL,
    patience: int = 0,
) -> Outcome:
    """Search from known answers; spent: the rows' work before, and in the end; part: of the search.

    patience: boxes of plain search before a box is priced and split, 0 as usual.
    """
    if run.is_interrupted:
        return Outcome.of_points(problem, incumbent.points)
    found = kernels.exact(
        problem.forest,
        searchable(problem),
        problem.batch,
        incumbent.points,
        incumbent.distance,
        seconds=seconds_left(limits.time_limit, run.clock),
        node_limit=limits.node_limit or 0,
        step_limit=limits.work_limit or 0,
        memory=limits.memory_limit,
        spent=spent,
        part=part,
        patience=patience,
        n_jobs=run.n_jobs,
        progress=run.progress,
        on_interrupt=run.interruption,
    )
    needed = kernels.memory_of(problem.forest).search
    if needed > limits.memory_limit:
        warnings.warn(
            f"No proof was tried: this model takes {needed / 1e9:.1f} GB, and memory_limit is "
            f"{limits.memory_limit / 1e9:.1f} GB.",
            stacklevel=2,
        )
    closer = np.flatnonzero(found.distance < incumbent.distance)
    if closer.size:
        incumbent.offer(found.points[closer], closer)
    return _outcome(problem, incumbent, found, limits)


def searchable(problem: Problem) -> Norms | CompiledDistance:
    """The distance as the exact search takes it."""
    distance = problem.distance
    form = distance.norms or distance.compiled
    if form is None:
        raise InvalidInput(
            f"Exact cannot search under {type(distance).__name__}: it knows Euclidean, Manhattan, Chebyshev, "
            "FewestFeatures, sums of these, Mahalanobis and Cosine. Focus takes any distance."
        )
    return form


def _outcome(problem: Problem, incumbent: Incumbent, found: kernels.Proofs, limits: SearchLimits) -> Outcome:
    """Statuses that claim no more than is known: a point is measured again, and its own distance is what counts."""
    points, has_point = incumbent.points, np.isfinite(incumbent.distance)
    status = _STATUS[found.proof]
    lost = np.isfinite(found.distance) & ~has_point  # a point that does not stand up to the check
    status[lost] = Status.NOT_FOUND
    bound = np.where(lost, 0.0, found.lower_bound)
    has_box = problem.has_box  # a missing value that must become known and cannot is nothing the search knows of
    status[~has_box] = Status.INFEASIBLE
    bound = np.where(has_box, bound, np.inf)
    # The search works in its own arithmetic: what it proves holds to a relative 1e-9 (cosine: and 1e-11).
    is_optimal = status == Status.OPTIMAL
    loose = is_optimal & (bound < incumbent.distance * (1.0 - _TOLERANCE) - _NOISE)
    status[loose] = Status.BOUNDED
    bound = np.where(has_point, np.where(status == Status.OPTIMAL, incumbent.distance, bound), bound)
    bound = np.where(has_point, np.minimum(bound, incumbent.distance), bound)
    distance = np.where(has_point, incumbent.distance, np.nan)
    return Outcome(points, distance, bound, status, limits=limits, is_undecided=found.is_undecided)
