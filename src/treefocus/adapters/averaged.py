"""Models of two classes whose probabilities or votes are averaged, where the mean is no sum over their trees.

Each becomes a voice of one forest (model/voices.py): a fold of a calibration through its own curve, a booster through
its sigmoid, a forest that votes. The library adds up what they show in an order of its own, so that it may differ from
our mean in its last digits: that is what the `rounding` of the forest and of its voices says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from treefocus.adapters.joined import joined
from treefocus.adapters.one_score import one_score
from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Floats, Forest
from treefocus.model.shares import has_shares
from treefocus.model.source import Source, asked
from treefocus.model.voices import Voice

AGREED = (
    "An answer on which its models agree is the whole one's, too: Explainer(model.estimators_[0], data, "
    "also=model.estimators_[1:]), where a class is its number in model.classes_."
)
_EPS = float(np.finfo(np.float64).eps)
_FINE = 2.0**20  # sums of multiples of 1 / _FINE are exact in any order
_MOST_SUBSETS = 14  # votes of so many models are all counted out
_UNITS = 16.0  # of a mean of probabilities, in units in the last place a model


@dataclass(frozen=True, eq=False)
class Heard:
    """Trees with one score, and the voices that they are."""

    forest: Forest
    voices: tuple[Voice, ...]


def probability_of(source: Source, model: Any) -> Heard:
    """What a model's `predict_proba` says of its second class."""
    forest = source.forest
    if forest.voices and not any(one.is_vote for one in forest.voices):
        return Heard(forest, tuple(replace(one, weight=one.weight / forest.divisor) for one in forest.voices))
    single = one_score(source, model).forest
    is_share = forest.n_outputs == 2 and has_shares(forest)
    if not (is_share or single.link == "sigmoid" or single.maps):
        raise UnsupportedModel(f"A mean of probabilities with a {forest.source} is not supported: it shows none.")
    return Heard(single, (voice_of(single, single.link, single.maps, off=sum_rounding(single) if is_share else 0.0),))


def vote_of(source: Source, model: Any) -> Heard:
    """What a model's `predict` says, as a number: 1 for its second class."""
    forest = source.forest
    if forest.n_classes != 2 or forest.voices:
        raise UnsupportedModel(
            f"A hard vote with a {forest.source} of {forest.n_classes} classes is not supported: a vote is no sum over "
            "trees. Of two classes it is, and of single decision trees; with voting='soft' of forests too."
        )
    if forest.n_outputs == 2 and not has_shares(forest):
        forest = one_score(source, model).forest
    if forest.n_outputs == 1:
        return Heard(forest, (voice_of(forest, "identity", ((forest.decision, float(forest.cut)),), forest.rounding),))
    value, base = np.diff(forest.leaf_value, axis=1), np.diff(forest.base_score)
    lead = replace(
        forest, leaf_value=value, base_score=base, leaf_distribution=None, decision="above", cut=0.0, tree_weight=None
    )
    is_exact = all((np.mod(numbers * _FINE, 1.0) == 0).all() for numbers in (value, base))
    off = forest.rounding + (0.0 if is_exact else sum_rounding(forest))
    return Heard(lead, (voice_of(lead, "identity", (("above", 0.0),), off),))


def voice_of(forest: Forest, link: str, maps: Any, off: float = 0.0) -> Voice:
    """All trees of a forest, as one voice."""
    return Voice(
        forest.n_trees, divisor=float(forest.divisor), link=link, maps=tuple(maps), score_dtype=forest.score_dtype,
        rounding=float(off),
    )  # fmt: skip


def sum_rounding(forest: Forest) -> float:
    """How far two sums of the same trees can be apart that were taken in different orders."""
    largest = np.zeros(forest.n_trees)
    np.maximum.at(largest, forest.tree_of_leaf, np.abs(forest.leaf_value).max(axis=1))
    total = float(largest.sum()) + float(np.abs(forest.base_score).max())
    return 4 * float(np.finfo(forest.score_dtype).eps) * (forest.n_trees + 4) * total / forest.divisor


def mean_of(model: Any, heard: Sequence[Heard], weights: Floats) -> Forest:
    """The forest that gives the second class where the mean of the probabilities is above one half."""
    voices = _weighted(heard, weights)
    units = max(float(np.finfo(one.score_dtype).eps) for one in voices)
    off = _UNITS * units * (len(voices) + 4) + max(one.forest.rounding for one in heard)
    return _forest(model, heard, voices, float(np.sum(weights)), decision="above", cut=0.5, rounding=off)


def votes_of(model: Any, heard: Sequence[Heard], weights: Floats) -> Forest:
    """The forest that gives the second class where it has the most votes."""
    voices = _weighted(heard, weights)
    low, high = _around_even(weights)
    off = (high - low) / 8 if any(one.rounding for one in voices) else 0.0
    cut = low + (high - low) / 2
    return _forest(model, heard, voices, float(np.sum(weights)), decision="at_least", cut=cut, rounding=off)


def source_of(model: Any, inner: Sequence[Source], forest: Forest, to_rows: Any) -> Source:
    """The mean as a source: its own predict, and predict_proba where it is a mean of probabilities."""
    has_shares_shown = not any(one.is_vote for one in forest.voices)
    likely = asked(lambda rows: model.predict_proba(to_rows(rows))) if has_shares_shown else None
    is_single = any(one.score_dtype == "float32" for one in forest.voices)
    return replace(
        inner[0],
        forest=forest,
        predict=asked(lambda rows: model.predict(to_rows(rows))),
        scores=None if likely is None else lambda rows: np.asarray(likely(rows), np.float64)[:, 1:],
        probabilities=likely,
        takes_infinite=all(one.takes_infinite for one in inner),
        precision=1e-5 if is_single else 1e-9,
        to_rows=to_rows,
    )


def _weighted(heard: Sequence[Heard], weights: Floats) -> tuple[Voice, ...]:
    return tuple(
        replace(voice, weight=voice.weight * float(weight))
        for one, weight in zip(heard, weights, strict=True)
        for voice in one.voices
    )


def _forest(model: Any, heard: Sequence[Heard], voices: tuple[Voice, ...], total: float, **rest: Any) -> Forest:
    forests = [one.forest for one in heard]
    kinds = " and ".join(dict.fromkeys(forest.source for forest in forests))
    return joined(
        forests, [forest.leaf_value for forest in forests], np.concatenate([forest.base_score for forest in forests]),
        voices=voices, divisor=total, classes=np.asarray(model.classes_), link="identity", maps=(),
        score_dtype="float64", source=f"{type(model).__name__} of {kinds}", **rest,
    )  # fmt: skip


def _around_even(weights: Floats) -> tuple[float, float]:
    """The largest mean of votes that leaves the first class ahead or level, and the smallest that does not.

    Few models are counted out, in the library's own sums; of many the weights count as they are.
    """
    total = float(np.sum(weights))
    if len(weights) > _MOST_SUBSETS:
        if len(set(weights.tolist())) == 1:
            n = len(weights)
            return (n // 2) / n, (n // 2 + 1) / n
        return 0.5, 0.5 + 64 * _EPS
    low, high = 0.0, 1.0
    for votes in product((0.0, 1.0), repeat=len(weights)):
        second = first = 0.0
        for weight, vote in zip(weights.tolist(), votes, strict=True):
            second, first = second + weight * vote, first + weight * (1.0 - vote)
        if second > first:
            high = min(high, second / total)
        else:
            low = max(low, second / total)
    return low, high
