"""CalibratedClassifierCV: the model inside, and a map that grows with its score, by a sigmoid or from point to point.

With one model inside (`ensemble=False`, or a model fitted before) the calibrated probability is a monotone map of one
forest's score, so that the class is a cut of that score and a probability another one: exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from treefocus.adapters.one_score import one_score, response_of, score_of
from treefocus.adapters.wrappers import check_fitted, looked_through
from treefocus.errors import UnsupportedModel
from treefocus.kernels.inverse import edge, shown_at
from treefocus.model.forest import LARGEST, Forest
from treefocus.model.maps import Map
from treefocus.model.source import Source

SUPPORTED: tuple[type, ...] = (CalibratedClassifierCV,)
REFUSED: dict[type, str] = {}


def to_source(model: Any) -> Source:
    """Translate the one calibrated model inside."""
    check_fitted(model)
    if len(model.calibrated_classifiers_) != 1:
        raise UnsupportedModel(
            f"This CalibratedClassifierCV is the mean of {len(model.calibrated_classifiers_)} calibrated models, each "
            "through a curve of its own, which is no sum over trees; calibrate one: "
            "CalibratedClassifierCV(..., ensemble=False)."
        )
    from treefocus.adapters.registry import translated_inside

    part = model.calibrated_classifiers_[0]
    single = one_score(translated_inside(part.estimator, model), part.estimator)
    is_decision = response_of(part.estimator, ("decision_function", "predict_proba")) == "decision_function"
    forest = replace(single.forest, maps=(_map(part, single, is_decision),))
    if is_decision:
        forest = replace(forest, link="identity")
    return looked_through(model, single, replace(forest, decision="at_least", cut=_even(forest)))


def _map(part: Any, single: Source, is_decision: bool) -> Map:
    """The calibration, as a map of what the model shows."""
    if part.method not in ("sigmoid", "isotonic") or len(part.calibrators) != 1:
        raise UnsupportedModel(
            f"CalibratedClassifierCV(method={part.method!r}) of {len(part.classes)} classes is not supported; "
            "method='sigmoid' or 'isotonic' of two classes is."
        )
    own = part.calibrators[0]
    doubled = score_of(1.0, single) if is_decision else 1.0
    if part.method == "sigmoid":
        if not own.a_ < 0:
            raise UnsupportedModel(
                "This CalibratedClassifierCV turns its model's answer round: the larger the score, the smaller the "
                "probability. Its model is no better than a guess; explain the model alone, or train a better one."
            )
        return ("platt", float(own.a_) / doubled, float(own.b_))
    points = np.asarray(own.X_thresholds_, np.float64) * doubled, np.asarray(own.y_thresholds_, np.float64)
    return ("isotonic", *(tuple(each.tolist()) for each in points))


def _even(forest: Forest) -> float:
    """The first score at which the second class is the likelier one."""
    first = edge(np.inf, lambda score: shown_at(score, forest) > 0.5)
    return float(min(max(first, -LARGEST), LARGEST))
