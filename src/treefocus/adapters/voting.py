"""Voting: several models, whose probabilities, values or votes are averaged.

Models that add up probabilities or values tree by tree are one larger forest together. The library rounds the answer of
every model before it averages, so that its sums may differ from ours in their last digits: `Forest.rounding` says by
how much, and nothing is claimed of rows that are closer to a tie than that. A hard vote is a sum where every model is a
single tree, whose leaves vote. Of two classes other models have a voice each (averaged.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import VotingClassifier, VotingRegressor

from treefocus.adapters.averaged import AGREED, mean_of, probability_of, source_of, vote_of, votes_of
from treefocus.adapters.joined import joined
from treefocus.adapters.wrappers import check_fitted
from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Floats, Forest
from treefocus.model.shares import has_shares
from treefocus.model.source import Source, asked

SUPPORTED: tuple[type, ...] = (VotingClassifier, VotingRegressor)
REFUSED: dict[type, str] = {}


def to_source(model: Any) -> Source:
    """Translate the models inside and join their trees."""
    from treefocus.adapters.registry import translated_inside

    check_fitted(model)
    inner = [translated_inside(each, model) for each in model.estimators_]
    forests = [source.forest for source in inner]
    weights = np.ones(len(inner)) if model._weights_not_none is None else np.asarray(model._weights_not_none, float)
    to_rows = inner[0].to_rows  # every model inside was fitted on the same table
    shown: dict[str, Any] = {
        "to_rows": to_rows,
        "predict": asked(lambda rows: model.predict(to_rows(rows))),
        "takes_infinite": all(source.takes_infinite for source in inner),
    }
    if isinstance(model, VotingRegressor):
        forest = _mean(model, forests, weights)
        return replace(inner[0], forest=forest, scores=lambda rows: shown["predict"](rows)[:, None], **shown)
    is_hard = model.voting == "hard"
    if not (all(map(_is_tree, forests)) if is_hard else all(map(_is_sum, forests))) and len(model.classes_) == 2:
        hear, put = (vote_of, votes_of) if is_hard else (probability_of, mean_of)
        heard = [hear(source, each) for source, each in zip(inner, model.estimators_, strict=True)]
        source = source_of(model, inner, put(model, heard, weights), to_rows)
        return replace(source, scores=asked(lambda rows: _share(model, to_rows(rows), weights))) if is_hard else source
    if is_hard:
        forest = _votes(model, forests, weights)

        def votes(rows: Floats) -> Floats:
            given = model._predict(to_rows(rows))  # (n_rows, n_models) each model's class, as a number
            return np.asarray(sum(w * np.eye(forest.n_classes)[own] for w, own in zip(weights, given.T, strict=True)))

        return replace(inner[0], forest=forest, scores=asked(votes), probabilities=None, **shown)
    shares = asked(lambda rows: model.predict_proba(to_rows(rows)))
    return replace(inner[0], forest=_soft(model, forests, weights), scores=shares, probabilities=shares, **shown)


def _mean(model: VotingRegressor, forests: list[Forest], weights: Floats) -> Forest:
    for forest in forests:
        if forest.decision != "value" or forest.link != "identity" or forest.maps:
            raise UnsupportedModel(
                f"A VotingRegressor with a {forest.source} is not supported: its value is no sum over its trees; "
                "of forests and of boosting with a squared loss it is."
            )
    return _averaged(model, forests, weights, classes=np.empty(0))


def _soft(model: VotingClassifier, forests: list[Forest], weights: Floats) -> Forest:
    for forest in forests:
        if not _is_sum(forest):
            raise UnsupportedModel(
                f"A soft vote with a {forest.source} of {forest.n_classes} classes is not supported: its probability "
                "is no sum over its trees. Of decision trees, random forests, extra trees and bagging of trees it is, "
                f"and of two classes of any. {AGREED}"
            )
    return _averaged(model, forests, weights, classes=np.asarray(model.classes_))


def _share(model: VotingClassifier, rows: Any, weights: Floats) -> Floats:
    """(n_rows, 1) the share of votes for the second class."""
    return np.asarray(model._predict(rows) @ weights / weights.sum())[:, None]


def _is_sum(forest: Forest) -> bool:
    """Whether its probabilities are sums over its trees."""
    return forest.decision == "argmax" and has_shares(forest)


def _is_tree(forest: Forest) -> bool:
    return forest.n_trees == 1 and forest.decision == "argmax"


def _averaged(model: Any, forests: list[Forest], weights: Floats, **rest: Any) -> Forest:
    """The weighted mean of the forests' scores, as one sum."""
    parts = weights / weights.sum() / np.array([forest.divisor for forest in forests])
    values = [forest.leaf_value * part for forest, part in zip(forests, parts, strict=True)]
    base = np.sum([forest.base_score * part for forest, part in zip(forests, parts, strict=True)], axis=0)
    kinds = " and ".join(dict.fromkeys(forest.source for forest in forests))
    return joined(
        forests, values, base, divisor=1.0, score_dtype="float64", rounding=_rounding(forests, values, base),
        source=f"{type(model).__name__} of {kinds}", **rest,
    )  # fmt: skip


def _rounding(forests: list[Forest], values: list[Floats], base: Floats) -> float:
    """How far the library's mean and our sum can be apart: every addition is off by a unit of what is added up."""
    off = 0.0
    for forest, value in zip(forests, values, strict=True):
        largest = np.zeros(forest.n_trees)
        np.maximum.at(largest, forest.tree_of_leaf, np.abs(value).max(axis=1))
        total = float(largest.sum()) + float(np.abs(base).max())
        off += 4 * float(np.finfo(forest.score_dtype).eps) * (forest.n_trees + len(forests) + 4) * total
    return off


def _votes(model: VotingClassifier, forests: list[Forest], weights: Floats) -> Forest:
    """A leaf votes for its class with the model's weight; sums of weights are taken in the same order."""
    values = []
    for forest, weight in zip(forests, weights, strict=True):
        if not _is_tree(forest):
            raise UnsupportedModel(
                f"A hard vote with a {forest.source} of {forest.n_classes} classes is not supported: a vote is no sum "
                "over trees. Of two classes it is, and of single decision trees; with voting='soft' of forests too. "
                f"{AGREED}"
            )
        scores = (forest.base_score + forest.leaf_value) / forest.divisor
        values.append(weight * np.eye(forest.n_classes)[scores.argmax(axis=1)])
    base = np.zeros(len(model.classes_))
    return joined(
        forests, values, base, divisor=1.0, classes=np.asarray(model.classes_), link="identity",
        source=f"VotingClassifier of {forests[0].source}",
    )  # fmt: skip
