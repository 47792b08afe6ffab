"""The proof of a certificate: why no answer is nearer than is claimed, box by box (docs/proof.md).

One more search, at the claim itself, writes down every split and every reason. `treefocus.check` reads it, and needs to
believe nothing of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.kernels.inputs import CompiledDistance, Metric
from treefocus.problem.problem import Problem

FORMAT = "treefocus-proof-2"
_BELOW = 1e-9  # of the bound: the search is right to 1e-10, and is asked a little less than what it has proven
_CLAIMED = 4e-9  # of the bound: and what is claimed is a little less again
_NOISE = {Metric.COSINE: 5e-11, Metric.MAHALANOBIS: 1e-9, Metric.MAHALANOBIS_SQUARED: 1e-18}  # and this besides
_MOST_BOXES = 300_000  # more would be no proof that anybody wants to keep: about two million bytes
_DIGITS = 14  # of a point: the bound that it gives is right to many more than are claimed


def prove(problem: Problem, lower_bound: float) -> dict[str, Any] | None:
    """The proof of a problem of one row; None where there is nothing to prove, or none can be written down."""
    problem = problem.loosened()
    distance = problem.distance.compiled if problem.distance.norms is None else problem.distance.norms
    # The model's own number is another than its trees', or other forests have a say.
    is_wrapped = bool(problem.model.maps or problem.model.rounding or problem.forest.members)
    below = lower_bound * (1 - _CLAIMED) - (_NOISE[distance.metric] if isinstance(distance, CompiledDistance) else 0.0)
    if distance is None or is_wrapped or not below > 0:
        return None
    goals: list[kernels.RecordedGoal]
    if not problem.has_box[0]:
        goals = [([0], [], [])] * _n_goals(problem)
    else:
        limit = lower_bound * (1 - _BELOW)
        goals = kernels.record_proof(problem.forest, distance, problem.batch, limit, node_limit=_MOST_BOXES)
    if not goals:
        return None
    return {
        "format": FORMAT,
        "below": below if np.isfinite(below) else str(below),
        "goals": [
            {"boxes": boxes, "values": values, "weights": [(_rounded(point), prices) for point, prices in weights]}
            for boxes, values, weights in goals
        ],
    }


def _rounded(point: list[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in point]


def _n_goals(problem: Problem) -> int:
    """How many ways there are to be an answer."""
    is_any_other = problem.batch.target[0] < 0 and problem.forest.decision == "argmax"
    return problem.forest.n_classes - 1 if is_any_other else 1
