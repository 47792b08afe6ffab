"""What the model itself says of rows and answers, in the terms of the question: a class, a number, or a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.explanation import summary
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.targets import Interval, Probability
from treefocus.search.base import Outcome, Status


@dataclass(frozen=True, eq=False)
class Told:
    """A model, and what is told of it."""

    model: Forest
    is_value: bool = False  # the number that it predicts, or its raw score, and not a class
    favoured: Any = None  # the class whose probability is asked for

    def answers(self, rows: Floats, is_told: Bools) -> NDArray[Any]:
        """(n_rows,) the class or the number for each row, None for those of which nothing is told."""
        answers = np.full(len(rows), None, object)
        chosen = np.flatnonzero(is_told)
        if chosen.size and self.is_value:
            answers[chosen] = summary.predictions(self.model, rows[chosen]).tolist()
        elif chosen.size:
            answers[chosen] = self.model.classes[kernels.predict(self.model, rows[chosen])]
        return answers

    def likelihood(self, rows: Floats, outcome: Outcome) -> Floats | None:
        """(n_rows, 2) the probability of the favoured class before and after, NaN where there is none."""
        if self.favoured is None:
            return None
        column = summary.class_index(self.model, self.favoured)
        result = np.full((len(rows), 2), np.nan)
        told = (rows, outcome.status != Status.INVALID), (outcome.points, outcome.has_answer)
        for side, (points, is_told) in enumerate(told):
            result[is_told, side] = summary.probabilities(self.model, points[is_told])[:, column]
        return result


def told_of(model: Forest, target: Any) -> Told:
    """What to tell, for a question with this target."""
    if isinstance(target, Probability):
        label = target.label.item() if isinstance(target.label, np.generic) else target.label
        return Told(model, favoured=label)
    return Told(model, is_value=model.decision == "value" or isinstance(target, Interval))
