"""From what a model shows back to its score: at which score a probability or a predicted value is reached.

What a forest of one score shows grows with the score, in floating point too, so that a bisection over the numbers finds
the very first score that shows so much, with `shown` as the judge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treefocus.kernels.reference import shown
from treefocus.model.forest import Forest


def score_from(value: float, forest: Forest) -> float:
    """The first score whose shown value is at least this, infinity if there is none."""
    return edge(np.inf, lambda score: shown_at(score, forest) >= value)


def score_up_to(value: float, forest: Forest) -> float:
    """The last score whose shown value is at most this, minus infinity if there is none."""
    return edge(-np.inf, lambda score: shown_at(score, forest) <= value)


def rest_up_to(value: float, forest: Forest) -> float:
    """The last score that leaves the first of two classes at least this probability, minus infinity if none does."""
    dtype = np.dtype(forest.score_dtype).type
    return edge(-np.inf, lambda score: float(dtype(1) - dtype(shown_at(score, forest))) >= value)


def shown_at(score: float, forest: Forest) -> float:
    """What the model shows at a score."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(shown(forest, np.array([[score]]))[0, 0])


def edge(way: float, holds: Callable[[float], bool]) -> float:
    """The first number towards `way`, plus or minus infinity, of which something holds; `way` itself if of none.

    What holds of a number holds of all beyond it. Steps double until one number is on either side, then the last one is
    halved.
    """
    before, step = 0.0, 1.0
    while holds(before):
        if np.isinf(before):
            return before
        before, step = before - float(np.copysign(step, way)), 2 * step
    beyond, step = before, 1.0
    while not holds(beyond):
        if np.isinf(beyond):
            return beyond
        before, beyond, step = beyond, beyond + float(np.copysign(step, way)), 2 * step
    while (middle := before + (beyond - before) / 2) not in (before, beyond):
        before, beyond = (before, middle) if holds(middle) else (middle, beyond)
    return beyond
