"""Holding: a margin on pooled refits that makes answers hold for a share of the models that luck could have made.

The model itself has to flip, and a pool of refits has to be ahead by a margin: an answer that is tuned to no single
model's luck needs less distance for the same share. How large the margin has to be is measured (`calibration`): rows of
the data are answered under some margins, and refits that are not in the pool say how many of them agree. What is told
of the answers in the end is measured on still others.

Without any refits the law of the votes has to do: the share of n trees that vote for a class is the mean of n draws, in
this forest and in the next one, so that two such shares differ by about sqrt(2 p (1 - p) / n). The idea of a margin
from the binomial law is that of Forel, Parmentier and Vidal, "Don't explain noise" (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.explanation.calibration import FEW_ROWS, Calibration, normal_quantile
from treefocus.explanation.stability import Stability
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.shares import has_shares
from treefocus.model.source import Source
from treefocus.problem.pooled import lead, pooled

N_REFITS = 40  # that labels= trains
N_ROWS = 60  # of the data, that a margin is calibrated on
_POOLED, _CALIBRATING = 0.25, 0.5  # of the refits; the others measure

Answered = Callable[[float, slice], Floats]  # (n_answers, n_features) the answers to some rows, under a margin


@dataclass(eq=False)
class Holding:
    """Refits in three parts, and the margins that were calibrated on them so far."""

    pool: Forest
    calibrating: tuple[Source, ...]
    measuring: tuple[Source, ...]
    calibrations: dict[Any, Calibration] = field(default_factory=dict)  # by class
    margins: dict[tuple[float, Any], float] = field(default_factory=dict)  # by promise and class

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Holding:
        """Three parts of the refits; at least three."""
        if len(sources) < 3:
            reject("refits", "three models or more: for the pool, to calibrate and to measure", len(sources))
        n_pool = max(1, int(len(sources) * _POOLED))
        n_calibrating = max(1, int(len(sources) * _CALIBRATING))
        calibrating = tuple(sources[n_pool : n_pool + n_calibrating])
        return cls(
            pooled([one.forest for one in sources[:n_pool]]), calibrating, tuple(sources[n_pool + n_calibrating :])
        )

    def margin(self, hold: float, label: Any, answered: Answered, n_rows: int) -> float:
        """The margin with which that share of the refits agrees with answers to n rows, looked for once and kept."""
        if (hold, label) not in self.margins:
            if label not in self.calibrations:
                self.calibrations[label] = self._calibration(label, answered, n_rows)
            self.margins[hold, label] = self.calibrations[label].margin(hold)
        return self.margins[hold, label]

    def _calibration(self, label: Any, answered: Answered, n_rows: int) -> Calibration:
        def asked(margin: float, rows: slice) -> Bools:
            points = answered(margin, rows)
            return np.array([said(one, points) == label for one in self.calibrating], bool)

        points = answered(0.0, slice(FEW_ROWS))
        return Calibration(asked, n_rows, _scatter(self.calibrating, points, label))

    def measured(self, points: Floats, labels: Sequence[Any], has_answer: Bools) -> Stability:
        """What the refits that had no say before say of answers."""
        rows = np.where(has_answer[:, None], points, 0.0)
        agrees = np.zeros((len(self.measuring), len(points)), bool)
        for k, one in enumerate(self.measuring):
            agrees[k, has_answer] = said(one, rows[has_answer]) == np.array(labels)[has_answer]
        return Stability.of(agrees, has_answer)

    def without_models(self) -> Holding:
        """The same with forests in place of live models, to be sent elsewhere."""
        plain = [tuple(Source(one.forest) for one in part) for part in (self.calibrating, self.measuring)]
        return Holding(self.pool, plain[0], plain[1], margins=dict(self.margins))


def said(source: Source, points: Floats) -> Any:
    """(n_points,) the classes that a model gives, by its own predict where it is at hand."""
    from treefocus import kernels

    if source.predict is not None and len(points):  # libraries refuse to predict for nobody
        return np.asarray(source.predict(points))
    return source.forest.classes[kernels.predict(source.forest, points)]


def _scatter(sources: Sequence[Source], points: Floats, label: Any) -> float:
    """How far the refits' leads lie apart at the same point, in the mean."""
    leads = [lead(one.forest, points, one.forest.classes.tolist().index(label)) for one in sources]
    return float(np.std(leads, axis=0).mean()) if len(points) else 0.0


def has_law(forest: Forest) -> bool:
    """Whether the forest votes, so that something is known of the next one without any refit."""
    return forest.decision == "argmax" and has_shares(forest)


def margin_by_law(forest: Forest, hold: float) -> float:
    """The lead, in shares of votes, that the next forest of as many trees keeps with this probability."""
    if not has_law(forest):
        raise InvalidInput(
            f"hold= takes training labels (Explainer(..., labels=y)) or models that were trained again (refits=[...]); "
            f"only of forests that vote something is known without, not of a {forest.source}."
        )
    factor = normal_quantile(hold) ** 2 * 2.0 / forest.n_trees
    # p - 1/2 >= z sqrt(2 p (1 - p) / n), solved for p: with q = p - 1/2, q^2 (1 + factor) = factor / 4.
    return 2.0 * float(np.sqrt(factor / 4.0 / (1.0 + factor)))
