"""CalibratedClassifierCV: the model inside, and a map that grows with its score, by a sigmoid or from point to point.

With one model inside (`ensemble=False`, or a model fitted before) the calibrated probability is a monotone map of one
forest's score, so that the class is a cut of that score and a probability another one: exact. With a model a fold it is
the mean of such maps, each a voice of one forest (averaged.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from treefocus.adapters.averaged import Heard, mean_of, source_of, sum_rounding, voice_of
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
    """Translate the calibrated models inside."""
    check_fitted(model)
    inner = [_calibrated(part, model) for part in model.calibrated_classifiers_]
    if len(inner) == 1:
        forest = inner[0].forest
        return looked_through(model, inner[0], replace(forest, decision="at_least", cut=_even(forest)))
    heard = [_heard(one.forest, part.estimator) for one, part in zip(inner, model.calibrated_classifiers_, strict=True)]
    return source_of(model, inner, mean_of(model, heard, np.ones(len(heard))), inner[0].to_rows)


def _heard(forest: Forest, estimator: Any) -> Heard:
    """A fold as a voice; what forests share out is added up in any order, decision functions in one."""
    off = forest.rounding if hasattr(estimator, "decision_function") else forest.rounding + sum_rounding(forest)
    return Heard(replace(forest, rounding=0.0), (voice_of(forest, forest.link, forest.maps, off),))


def _calibrated(part: Any, model: Any) -> Source:
    """A model with its calibration as a map of its one score."""
    from treefocus.adapters.registry import translated_inside

    known = translated_inside(part.estimator, model)
    _check(part, known)
    single = one_score(known, part.estimator)
    is_decision = response_of(part.estimator, ("decision_function", "predict_proba")) == "decision_function"
    if is_decision:
        single = replace(single, forest=replace(single.forest, link="identity"))
    if part.method == "sigmoid" and part.calibrators[0].a_ > 0 and single.forest.link == "identity":
        single = _turned(single)
    return replace(single, forest=replace(single.forest, maps=(_map(part, single, is_decision),)))


def _turned(single: Source) -> Source:
    """The model with the opposite score: a fold that learned little can have a curve that falls."""
    forest, scores = single.forest, single.scores
    opposite = replace(forest, leaf_value=-forest.leaf_value, base_score=-forest.base_score)
    return replace(single, forest=opposite, scores=None if scores is None else lambda rows: -np.asarray(scores(rows)))


def _check(part: Any, known: Source) -> None:
    if known.forest.voices or known.forest.maps:
        raise UnsupportedModel(
            f"A CalibratedClassifierCV of a {known.forest.source} is not supported: that is a mean of curves itself. "
            "Calibrate its models, and then vote."
        )
    if part.method not in ("sigmoid", "isotonic") or len(part.calibrators) != 1:
        raise UnsupportedModel(
            f"CalibratedClassifierCV(method={part.method!r}) of {len(part.classes)} classes is not supported; "
            "method='sigmoid' or 'isotonic' of two classes is. Of more, every class has a curve of its own, and its "
            "share of what they show is no sum over trees. Explain a model inside, "
            "model.calibrated_classifiers_[0].estimator; model.predict tells which of its answers are its own, too."
        )


def _map(part: Any, single: Source, is_decision: bool) -> Map:
    """The calibration, as a map of what the model shows."""
    own = part.calibrators[0]
    doubled = score_of(1.0, single) if is_decision else 1.0
    if part.method == "sigmoid":
        if own.a_ == 0:  # whatever the score
            return ("isotonic", (0.0,), (float(1.0 / (1.0 + np.exp(own.b_))),))
        if own.a_ > 0 and single.forest.link != "identity":
            raise UnsupportedModel(
                "This CalibratedClassifierCV turns its model's answer round: the larger the score, the smaller the "
                "probability. Its model is no better than a guess; explain the model alone, or train a better one."
            )
        return ("platt", -abs(float(own.a_)) / doubled, float(own.b_))
    points = np.asarray(own.X_thresholds_, np.float64) * doubled, np.asarray(own.y_thresholds_, np.float64)
    return ("isotonic", *(tuple(each.tolist()) for each in points))


def _even(forest: Forest) -> float:
    """The first score at which the second class is the likelier one."""
    first = edge(np.inf, lambda score: shown_at(score, forest) > 0.5)
    return float(min(max(first, -LARGEST), LARGEST))
