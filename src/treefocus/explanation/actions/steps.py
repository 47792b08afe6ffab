"""What an action is: a few steps, each the same sentence for everybody, such as "savings to at least 5,000"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Floats

SET, AT_LEAST, AT_MOST, BY = "set to", "at least", "at most", "by"


@dataclass(frozen=True, order=True)
class ActionStep:
    """What is to be done about one feature.

    Attributes
    ----------
    feature : str
        Its name.
    kind : str
        "set to", "at least", "at most" or "by".
    value : float
        To what, or by how much; of a category its number.
    label : str or None
        The category, where it is one.
    """

    column: int
    kind: str
    value: float
    feature: str = ""
    label: Any = None

    @property
    def told(self) -> Any:
        """The number, or the category."""
        return self.value if self.label is None else self.label

    def applied(self, own: Floats) -> Floats:
        """(n_rows,) the column after the step; a missing value becomes known, unless it is moved by so much."""
        if self.kind == SET:
            return np.full_like(own, self.value)
        if self.kind == AT_LEAST:
            return np.fmax(own, self.value)
        if self.kind == AT_MOST:
            return np.fmin(own, self.value)
        return own + self.value


@dataclass(frozen=True)
class Action:
    """Steps that are taken together, at most one a feature."""

    steps: tuple[ActionStep, ...]

    @classmethod
    def of(cls, steps: Sequence[ActionStep]) -> Action:
        """In the order of the features, so that the same steps are the same action."""
        return cls(tuple(sorted(steps)))

    @property
    def moved(self) -> tuple[tuple[int, str, bool], ...]:
        """Which features it moves, in which way, not how far."""
        return tuple((step.column, step.kind, step.kind == BY and step.value > 0) for step in self.steps)

    def applied(self, batch: Batch, fraction: float = 1.0) -> Floats:
        """(n_rows, n_features) the rows after the action, or after this part of the way; categories change at once.

        A step by so much ends where the row may go no further; up to there all rows go at the same pace.
        """
        return after([self], batch, fraction)

    def without(self, step: ActionStep) -> Action:
        """All other steps."""
        return Action(tuple(one for one in self.steps if one != step))

    def having(self, step: ActionStep) -> Action:
        """With this step, in place of that of the same feature if there is one."""
        return Action.of([*(one for one in self.steps if one.column != step.column), step])


def after(actions: Sequence[Action], batch: Batch, fraction: float = 1.0) -> Floats:
    """(n_rows, n_features) what `Action.applied` says, of several actions: each for its own block of the rows."""
    points = batch.rows.copy()
    is_by = np.zeros(points.shape, bool)
    ends = np.linspace(0, len(points), len(actions) + 1).astype(np.intp)
    for begin, end, action in zip(ends[:-1], ends[1:], actions, strict=True):
        for step in action.steps:
            value = fraction * step.value if step.kind == BY else step.value
            if step.kind != BY and batch.is_single[step.column]:  # 0.3 as a table of such numbers holds it
                value = float(np.float32(value))
            own = replace(step, value=value).applied(points[begin:end, step.column])
            points[begin:end, step.column] = own
            is_by[begin:end, step.column] = step.kind == BY
    if is_by.any():  # a step by so much is also on the grain of its column: 0.3, not 0.1 + 0.2
        points = np.where(is_by, batch.snapped(points), points)
    if fraction == 1:
        return points
    goes = ~batch.is_category & np.isfinite(batch.rows) & np.isfinite(points) & (points != batch.rows) & ~is_by
    return batch.snapped(np.where(goes, batch.rows + fraction * (points - batch.rows), points))
