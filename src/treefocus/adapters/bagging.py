"""Bagging of other models than single trees, of two classes: the mean of their probabilities, as in EasyEnsemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treefocus.adapters.averaged import AGREED, mean_of, probability_of, source_of
from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Forest, Ints
from treefocus.model.source import Source


def to_source(model: Any, estimators: Sequence[Any]) -> Source:
    """Translate the models inside, each in the columns of the whole table."""
    from treefocus.adapters.registry import translated_inside

    if len(model.classes_) > 2:
        inside = type(estimators[0]).__name__
        raise UnsupportedModel(
            f"A {type(model).__name__} of {inside} with {len(model.classes_)} classes is not supported: its "
            f"probabilities are no sum over trees. Of two classes it is, and of single trees. {AGREED}"
        )
    inner = [
        _widened(translated_inside(own, model), np.asarray(columns, np.int32), int(model.n_features_in_))
        for own, columns in zip(estimators, model.estimators_features_, strict=True)
    ]
    heard = [probability_of(source, own) for source, own in zip(inner, estimators, strict=True)]
    forest = mean_of(model, heard, np.ones(len(heard)))
    names = getattr(model, "feature_names_in_", None)
    named = replace(forest, feature_names=None if names is None else tuple(map(str, names)))
    return source_of(model, inner, named, inner[0].to_rows)


def _widened(source: Source, columns: Ints, n_features: int) -> Source:
    """The model in the columns of the whole table, of which it was given some."""
    forest: Forest = source.forest
    if np.array_equal(columns, np.arange(n_features)):
        return source
    if forest.categories is not None or forest.reads is not None or forest.refuses_missing is not None:
        raise UnsupportedModel(
            f"A bagging of {forest.source} that gives each model some of the columns is not supported; with "
            "max_features=1.0 it is."
        )
    feature = np.where(forest.feature < 0, -1, columns[np.maximum(forest.feature, 0)])
    return replace(source, forest=replace(forest, feature=feature, n_features=n_features, feature_names=None))
