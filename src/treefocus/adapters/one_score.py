"""Models of two classes as one score: what wrappers put a threshold or a calibration on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Floats
from treefocus.model.shares import has_shares
from treefocus.model.source import Source, asked

_EPS = float(np.finfo(np.float64).eps)


def one_score(source: Source, model: Any) -> Source:
    """The same model with one score, that of its second class, and how the class comes out of it.

    Of a forest that adds up probabilities it is the second one's; AdaBoost's two scores are each other's opposite, so
    that the second one doubled is its decision function, to the last bit.
    """
    forest, scores = source.forest, source.scores
    if forest.n_classes != 2 or (forest.n_outputs == 2 and scores is None):
        raise UnsupportedModel(
            f"A wrapper around a {forest.source} of {forest.n_classes} classes is not supported; of two classes it is."
        )
    if forest.n_outputs == 1:
        return source
    second: dict[str, Any] = {"leaf_distribution": None, "decision": "at_least", "cut": 0.5}
    if has_shares(forest):
        only = replace(forest, leaf_value=forest.leaf_value[:, 1:], base_score=forest.base_score[1:], **second)
        return replace(source, forest=only, scores=lambda rows: _column(scores, rows))
    if forest.leaf_distribution is not None and forest.link == "softmax":
        value, base = 2.0 * forest.leaf_value[:, 1:], 2.0 * forest.base_score[1:]
        second |= {"decision": "above", "cut": 0.0, "link": "sigmoid"}

        def decision(rows: Floats) -> Floats:
            return np.asarray(model.decision_function(source.to_rows(rows)))[:, None]

        # its probability is a softmax of two opposite scores, the sigmoid up to a few units in the last place
        only = replace(forest, leaf_value=value, base_score=base, rounding=64 * _EPS, **second)
        return replace(source, forest=only, scores=asked(decision))
    raise UnsupportedModel(
        f"A wrapper around a {forest.source} with a score a class is not supported; explain it alone."
    )


def _column(scores: Any, rows: Floats) -> Floats:
    return np.asarray(scores(rows))[:, 1:]


def score_of(decision: float, source: Source) -> float:
    """The forest's score at a value of the decision function: the same, or twice that for the exponential loss."""
    return decision / source.forest.divisor if _is_doubled(source) else decision


def _is_doubled(source: Source) -> bool:
    return source.forest.divisor == 0.5


def response_of(model: Any, names: Sequence[str], asked_for: str = "auto") -> str:
    """The method that a wrapper asks, the first that the model has."""
    if asked_for != "auto":
        return asked_for
    return next(name for name in names if hasattr(model, name))
