"""Holding: a margin on pooled refits that makes answers hold for a share of the models that luck could have made.

The model itself has to flip, and a pool of refits has to be ahead by a margin: an answer that is tuned to no single
model's luck needs less distance for the same share. How large the margin has to be is measured: rows of the data are
answered under some margins, and refits that are not in the pool say how many of them agree. What is told of the answers
in the end is measured on still others.

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
from treefocus.explanation.stability import Stability
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.shares import has_shares
from treefocus.model.source import Source
from treefocus.problem.pooled import lead, pooled

N_REFITS = 40  # that labels= trains: a quarter for the pool, three eighths to calibrate, three eighths to measure
N_ROWS = 20  # of the data, that a margin is calibrated on
_FOR_LUCK = 0.2  # of what a promise leaves: by so much more the calibration has to reach
_LOOKS = 5  # margins that are tried
_CLOSE = 0.08  # margins, relatively, between which no other one is tried
_BEYOND = 0.05  # of the way between two margins, so that the next one rather does
_GROWTH = 1.6  # of a margin that did not do

Answered = Callable[[float], Floats]  # (n_answers, n_features) of some rows, under a margin


@dataclass(eq=False)
class Holding:
    """Refits in three parts, and the margins that were calibrated on them so far."""

    pool: Forest
    calibrating: tuple[Source, ...]
    measuring: tuple[Source, ...]
    margins: dict[Any, float] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Holding:
        """Three parts of the refits; at least three."""
        if len(sources) < 3:
            reject("refits", "three models or more: for the pool, to calibrate and to measure", len(sources))
        n_pool = max(1, len(sources) // 4)
        n_calibrating = max(1, (len(sources) - n_pool) // 2)
        calibrating = tuple(sources[n_pool : n_pool + n_calibrating])
        return cls(
            pooled([one.forest for one in sources[:n_pool]]), calibrating, tuple(sources[n_pool + n_calibrating :])
        )

    def margin(self, hold: float, label: Any, answered: Answered) -> float:
        """The margin with which that share of the refits agrees with the answers, looked for once and kept."""
        if (hold, label) not in self.margins:
            self.margins[hold, label] = self._calibrated(hold + _FOR_LUCK * (1 - hold), label, answered)
        return self.margins[hold, label]

    def _calibrated(self, least: float, label: Any, answered: Answered) -> float:
        """The smallest of a few margins that does: the first by how far refits scatter, the next by what they say."""
        tried: list[tuple[float, float]] = []  # margins, and the shares that they reach
        margin = 0.0
        for _ in range(_LOOKS):
            points = answered(margin)
            share = _share(self.calibrating, points, label) if len(points) else 1.0
            tried.append((margin, share))
            if not len(points):
                break
            margin = _next(tried, least, _scatter(self.calibrating, points, label))
            if any(abs(margin - one) <= _CLOSE * max(one, margin) for one, _ in tried):
                break
        good = [margin for margin, share in tried if share >= least]
        return min(good) if good else max(margin, _GROWTH * max(own for own, _ in tried))

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
        return Holding(self.pool, plain[0], plain[1], dict(self.margins))


def said(source: Source, points: Floats) -> Any:
    """(n_points,) the classes that a model gives, by its own predict where it is at hand."""
    from treefocus import kernels

    if source.predict is not None:
        return np.asarray(source.predict(points))
    return source.forest.classes[kernels.predict(source.forest, points)]


def _share(sources: Sequence[Source], points: Floats, label: Any) -> float:
    return float(np.mean([said(one, points) == label for one in sources]))


def _scatter(sources: Sequence[Source], points: Floats, label: Any) -> float:
    """How far the refits' leads lie apart at the same point, in the mean."""
    leads = [lead(one.forest, points, one.forest.classes.tolist().index(label)) for one in sources]
    return float(np.std(leads, axis=0).mean())


def _next(tried: Sequence[tuple[float, float]], least: float, scatter: float) -> float:
    """The next margin to try: between one that does and one that does not, or further out.

    Leads scatter about the pool's as normal numbers do, so that quantiles of the shares lie about on a line.
    """
    good = [one for one in tried if one[1] >= least]
    bad = [one for one in tried if one[1] < least]
    if not bad:
        return 0.0
    low = max(bad)
    if not good:
        return max(normal_quantile(least) * scatter, _GROWTH * low[0], 1e-6)
    high = min(good)
    ends = [normal_quantile(min(max(share, 0.02), 0.998)) for _, share in (low, high)]
    part = (normal_quantile(least) - ends[0]) / (ends[1] - ends[0])
    return low[0] + min(max(part + _BEYOND, 0.2), 0.9) * (high[0] - low[0])


def normal_quantile(share: float) -> float:
    """The number of standard deviations that so large a share lies below."""
    from scipy.special import ndtri  # not cheap to import

    return float(ndtri(share))


def margin_by_law(forest: Forest, hold: float) -> float:
    """The lead, in shares of votes, that the next forest of as many trees keeps with this probability."""
    if forest.decision != "argmax" or not has_shares(forest):
        raise InvalidInput(
            f"hold= takes training labels (Explainer(..., labels=y)) or models that were trained again (refits=[...]); "
            f"only of forests that vote something is known without, not of a {forest.source}."
        )
    factor = normal_quantile(hold) ** 2 * 2.0 / forest.n_trees
    # p - 1/2 >= z sqrt(2 p (1 - p) / n), solved for p: with q = p - 1/2, q^2 (1 + factor) = factor / 4.
    return 2.0 * float(np.sqrt(factor / 4.0 / (1.0 + factor)))
