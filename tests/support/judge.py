"""An outcome held to brute force, row by row."""

from __future__ import annotations

import numpy as np

from support import brute
from support.brute import RowQuestion
from treefocus import Cosine, Status
from treefocus.problem.problem import Problem
from treefocus.schema.schema import FLOAT32
from treefocus.search import Outcome

RELATIVE, ABSOLUTE = 1e-7, 1e-9


def overclaims(question: RowQuestion, outcome: Outcome, i: int) -> list[str]:
    """Everything that the outcome says of a row and that is not so, whether or not a limit stopped the search."""
    best = brute.optimum(question)
    status, distance, bound = outcome.status[i], outcome.distance[i], outcome.lower_bound[i]
    wrong = []
    if status.has_answer:
        wrong += brute.faults(question, outcome.points[i], distance)
        if distance < best * (1 - RELATIVE) - ABSOLUTE:
            wrong.append(f"{distance} is closer than any answer ({best})")
        if not bound <= distance:
            wrong.append(f"the bound {bound} is above the distance {distance}")
    if bound > best * (1 + ABSOLUTE) + ABSOLUTE:
        wrong.append(f"the bound {bound} is above the optimum {best}")
    if status is Status.OPTIMAL and distance > best * (1 + RELATIVE) + ABSOLUTE:
        wrong.append(f"{distance} is called optimal, {best} is")
    if status is Status.INFEASIBLE and best < np.inf:
        wrong.append(f"called infeasible, with an answer at {best}")
    return wrong


def shortfalls(question: RowQuestion, outcome: Outcome, i: int) -> list[str]:
    """What a search without a limit leaves open of a row."""
    best, status = brute.optimum(question), outcome.status[i]
    if best == np.inf:
        return [] if status is Status.INFEASIBLE else [f"there is no answer, and the status is {status.name}"]
    # Under coupled distances the best float32 of a cell is not searched, nor behind z's back (cosine above 1).
    is_behind = isinstance(question.distance, Cosine) and best >= 1 - ABSOLUTE
    is_hard = brute.is_coupled(question.distance) and ((question.grain == FLOAT32).any() or is_behind)
    allowed = (Status.OPTIMAL, Status.BOUNDED) if is_hard else (Status.OPTIMAL,)
    return [] if status in allowed else [f"the optimum is {best}, the status {status.name}"]


def check(problem: Problem, outcome: Outcome, *, is_finished: bool, who: object = "") -> None:
    for i, question in enumerate(brute.questions_of(problem)):
        wrong = overclaims(question, outcome, i)
        if is_finished:
            wrong += shortfalls(question, outcome, i)
        assert not wrong, f"row {i}, {who}: {'; '.join(wrong)}\n{brute.show(question)}"
