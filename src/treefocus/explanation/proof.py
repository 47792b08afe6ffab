"""The proof of a certificate: why no answer is nearer than is claimed, box by box (docs/proof.md).

One more search, at the claim itself, writes down every split and every reason. `treefocus.check` reads it, and needs to
believe nothing of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.problem.problem import Problem

FORMAT = "treefocus-proof-1"
_BELOW = 1e-9  # of the bound: the search is right to 1e-10, and is asked a little less than what it has proven
_MOST_BOXES = 300_000  # more would be no proof that anybody wants to keep: about two million bytes
_CLAIMED = 4e-9  # of the bound: and what is claimed is a little less again


def prove(problem: Problem, lower_bound: float) -> dict[str, Any] | None:
    """The proof of a problem of one row; None where there is nothing to prove, or none can be written down."""
    problem = problem.loosened()
    norms = problem.distance.norms
    is_wrapped = bool(problem.model.maps or problem.model.rounding)  # the model's own number is another than its trees'
    if norms is None or is_wrapped or not lower_bound > 0:
        return None
    goals: list[tuple[list[int], list[tuple[int, float]], list[list[float]]]]
    if not problem.has_box[0]:
        goals = [([0], [], [])] * _n_goals(problem)
    else:
        limit = lower_bound * (1 - _BELOW)
        goals = kernels.record_proof(problem.forest, norms, problem.batch, limit, node_limit=_MOST_BOXES)
    if not goals:
        return None
    below = lower_bound * (1 - _CLAIMED)
    return {
        "format": FORMAT,
        "below": below if np.isfinite(below) else str(below),
        "goals": [{"boxes": boxes, "values": values, "prices": prices} for boxes, values, prices in goals],
    }


def _n_goals(problem: Problem) -> int:
    """How many ways there are to be an answer."""
    is_any_other = problem.batch.target[0] < 0 and problem.forest.decision == "argmax"
    return problem.forest.n_classes - 1 if is_any_other else 1
