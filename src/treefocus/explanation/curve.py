"""A curve to choose from: what share of the models that are trained again confirm the answers, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.explanation.batch import Explanations
from treefocus.explanation.stability import Stability
from treefocus.render import curve_plot
from treefocus.render.phrases import DEFAULT
from treefocus.tables.frames import frame_of

HOLDS = (0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """The answers under one promise, and what came of it.

    Attributes
    ----------
    hold : float or None
        The promise; None for the smallest change.
    found : Explanations
        The answers.
    stability : Stability
        What refits say that had no part in the answers.
    price : float
        The mean distance in smallest changes, over the rows that have both; NaN where none has.
    """

    hold: float | None
    found: Explanations
    stability: Stability
    price: float

    @property
    def validity(self) -> float:
        """The share of the refits that confirm the answers, in the mean."""
        return self.stability.mean


@dataclass(frozen=True, eq=False)
class Curve:
    """The smallest change first, then one point a promise, from the least upwards."""

    points: tuple[CurvePoint, ...]

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, i: int) -> CurvePoint:
        return self.points[i]

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name."""
        intervals = [one.stability.interval for one in self.points]
        return {
            "hold": [one.hold for one in self.points],
            "validity": [one.validity for one in self.points],
            "low": [low for low, _ in intervals],
            "high": [high for _, high in intervals],
            "price": [one.price for one in self.points],
            "answered": [int(one.found.has_answer.sum()) for one in self.points],
        }

    def to_frame(self) -> Any:
        """A line a point: promise, validity with its interval, price in smallest changes, rows with an answer."""
        return frame_of(self.records(), self.points[0].found.table.native)

    def to_text(self) -> str:
        """A line a point."""
        return "\n".join(_line(one) for one in self.points)

    def plot(self, ax: Any = None, *, language: str = DEFAULT) -> Any:
        """Validity against distance, with the promises beside the points (needs matplotlib); returns axes."""
        return curve_plot.curve_line(self.points, ax, language)

    def __repr__(self) -> str:
        return self.to_text()


def curve(explainer: Any, rows: Any, target: Any = None, holds: Sequence[float] = HOLDS, **options: Any) -> Curve:
    """Answer some rows under several promises, and measure what each is worth and what it costs.

    Parameters
    ----------
    explainer : Explainer
        With `labels=` or `refits=`.
    rows : table
        The rows; some dozen tell enough.
    target : a class, optional
        As in `explain`.
    holds : sequence of float
        The promises to compare, as in `explain(hold=...)`.
    **options
        Further ones of `explain`.

    Returns
    -------
    Curve
        Its points, with `to_text`, `to_frame` and `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from treefocus import Explainer, curve
    >>> X, y = np.arange(60.0)[:, None], np.arange(60) > 29
    >>> model = RandomForestClassifier(5, random_state=0).fit(X, y)
    >>> found = curve(Explainer(model, X, labels=y), X[:3], True, holds=[0.8])
    >>> [one.hold for one in found]
    [None, 0.8]
    """
    promises = sorted(set(holds))
    if not promises:
        reject("holds", "one promise or more", holds)
    judges = explainer.judges
    smallest = explainer.explain(rows, target, **options)
    answers = [(hold, explainer.explain(rows, target, hold=hold, **options)) for hold in promises]
    points = [
        CurvePoint(hold, found, found.stability(judges), _price(found, smallest))
        for hold, found in [(None, smallest), *answers]
    ]
    return Curve(tuple(points))


def _price(found: Explanations, smallest: Explanations) -> float:
    both = np.asarray(found.has_answer) & np.asarray(smallest.has_answer)
    least = float(np.sum(smallest.distance[both]))
    return float(np.sum(found.distance[both])) / least if least else float("nan")


def _line(one: CurvePoint) -> str:
    asked = "the smallest change" if one.hold is None else f"hold={one.hold:g}"
    low, high = one.stability.interval
    return (
        f"{asked}: {one.validity:.1%} of {one.stability.n_models} models confirm it "
        f"(95 %: {low:.1%} to {high:.1%}), at {one.price:.2f} smallest changes"
    )
