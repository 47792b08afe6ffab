"""OneVsRestClassifier: a model a class against all others; the class with the largest score is the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier

from treefocus.adapters.joined import joined
from treefocus.adapters.one_score import one_score, response_of
from treefocus.adapters.wrappers import check_fitted, looked_through
from treefocus.errors import UnsupportedModel
from treefocus.kernels.inverse import score_from
from treefocus.model.forest import LARGEST
from treefocus.model.source import Source, asked

SUPPORTED: tuple[type, ...] = (OneVsRestClassifier,)
REFUSED: dict[type, str] = {}


def to_source(model: Any) -> Source:
    """Translate the models inside: each class has the trees of its own model."""
    from treefocus.adapters.registry import translated_inside

    check_fitted(model)
    if model.multilabel_:
        raise UnsupportedModel(
            "This OneVsRestClassifier predicts several labels at once, and one question has one answer; explain one "
            "label at a time: its model is model.estimators_[0], and so on."
        )
    inside = model.estimators_
    if not all(hasattr(each, "classes_") and len(each.classes_) == 2 for each in inside):
        raise UnsupportedModel("This OneVsRestClassifier saw a class in every row or in none; train it on more rows.")
    inner = [one_score(translated_inside(each, model), each) for each in inside]
    method = response_of(inside[0], ("decision_function", "predict_proba"))
    if len(inner) == 1:
        return _of_two(model, inner[0], method)
    if method == "predict_proba" and any(source.forest.link != "identity" for source in inner):
        raise UnsupportedModel(
            f"A OneVsRestClassifier of {inner[0].forest.source} compares probabilities, which are no sums over trees; "
            "train the model itself on all classes, or wrap a RandomForestClassifier or GradientBoostingClassifier."
        )
    return _of_several(model, inner)


def _of_two(model: Any, inner: Source, method: str) -> Source:
    """The second class above a threshold: 0 of a score, one half of a probability."""
    forest = replace(inner.forest, classes=np.asarray(model.classes_))
    if method == "decision_function":
        return looked_through(model, inner, replace(forest, decision="above", cut=0.0))
    first = score_from(float(np.nextafter(0.5, 1.0)), forest)
    return looked_through(model, inner, replace(forest, decision="at_least", cut=min(first, LARGEST)))


def _of_several(model: Any, inner: list[Source]) -> Source:
    """A column a class; where the library gives a tie to the last class, the classes stand the other way round."""
    order = np.arange(len(inner)) if _first_wins() else np.arange(len(inner))[::-1]
    forests = [inner[k].forest for k in order]
    divisors = {forest.divisor for forest in forests}
    if len(divisors) > 1 or len({forest.score_dtype for forest in forests}) > 1:
        raise UnsupportedModel("The models inside this OneVsRestClassifier are of different sizes; train them alike.")
    values, base = [], np.zeros(len(forests))
    for k, forest in enumerate(forests):
        value = np.zeros((forest.n_leaves, len(forests)))
        value[:, k] = forest.leaf_value[:, 0]
        values.append(value)
        base[k] = forest.base_score[0]
    forest = joined(
        forests, values, base, decision="argmax", cut=0.0, link="identity", classes=np.asarray(model.classes_)[order],
        source=f"OneVsRestClassifier of {forests[0].source}",
    )  # fmt: skip
    to_rows, own = inner[0].to_rows, [inner[k].scores for k in order]
    return replace(
        inner[0],
        forest=forest,
        predict=asked(lambda rows: model.predict(to_rows(rows))),
        scores=lambda rows: np.concatenate([np.asarray(each(rows)) for each in own if each is not None], axis=1),
        probabilities=None,
    )


@cache
def _first_wins() -> bool:
    """Whether this version of scikit-learn gives a tie to the first class, and not to the last."""
    always = OneVsRestClassifier(DummyClassifier(strategy="constant", constant=1))
    return int(always.fit(np.zeros((3, 1)), [0, 1, 2]).predict(np.zeros((1, 1)))[0]) == 0
