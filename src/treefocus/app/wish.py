"""The answer that a visitor of the page wants: a class, perhaps with some probability, or a number in an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from treefocus.app.service import Service
from treefocus.errors import InvalidInput, reject
from treefocus.problem.targets import Interval, Probability, Score


@dataclass
class Wish:
    """A class, None for any other than the present one; or a number from low to high, None for no limit."""

    predicts_number: bool = False
    label: Any = None
    percent: float | None = None  # the least probability of the class, where one is asked for
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, service: Service) -> Wish:
        """What the server asks for; of numbers, where it does not say, those in the upper half of its rows'."""
        target = service.asked.target
        if service.predicts_number:
            if isinstance(target, Interval) and not isinstance(target, Score):
                low, high = (float(side) if math.isfinite(side) else None for side in (target.low, target.high))
                return cls(True, low=low, high=high)
            return cls(True, low=float(f"{service.spread[1]:.3g}"))
        if isinstance(target, Probability):
            return cls(label=target.label, percent=float(f"{100 * target.at_least:.12g}"))
        return cls(label=target if target in service.classes else None)

    def to_target(self) -> Any:
        """The library's target."""
        if self.predicts_number:
            if self.low is None and self.high is None:
                raise InvalidInput("Say which number is wanted: from, to, or both.")
            low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
            if low > high:
                reject("The wanted number", "from a low to a high value", f"{low:g} to {high:g}")
            return Interval(low, high)
        if self.percent is None or self.label is None:
            return self.label
        if not 0 < self.percent < 100:
            reject("The probability", "above 0 and below 100 per cent", f"{self.percent:g}")
        return Probability(self.label, self.percent / 100)

    def is_met_by(self, predicted: Any) -> bool:
        """Whether this class or number is the wanted one."""
        if predicted is None or not self.predicts_number:
            return predicted is not None and predicted == self.label
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        return bool(low <= predicted <= high)
