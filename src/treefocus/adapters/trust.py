"""Trust: a translated forest is held against the live model, on rows made to tell them apart, before it is used.

The rows sit on thresholds and one float to each side, hold every category and an unseen one, missing values where the
model takes them and infinities where it reads them. It costs two predictions of a few hundred rows, once a model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import ModelMismatch
from treefocus.model.categories import are_categories
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.source import Source
from treefocus.model.voices import has_votes, moved

N_ROWS = 256
_SHARE_MISSING, _SHARE_INFINITE = 0.08, 0.03


def trusted(source: Source, n_rows: int = N_ROWS) -> Source:
    """The source itself, if the forest gives the model's own answers; `ModelMismatch` if it does not."""
    if source.predict is None:
        return source
    forest = source.forest
    rows = telling_rows(source, n_rows)
    own, said = kernels.hard_scores(forest, rows), source.predict(rows)
    theirs = own if source.scores is None else source.scores(rows).astype(np.float64)
    largest = max(float(np.abs(theirs).max(initial=0.0)), 1e-300)
    least, most = _ends(forest, rows, own)
    apart = np.maximum(least - theirs, theirs - most)
    is_close: Bools = np.asarray((apart <= source.precision * largest).all(axis=1))
    if not is_close.all():
        _refuse(forest, rows, ~is_close, f"a score of {theirs[~is_close][0]} is {own[~is_close][0]} in the translation")
    if forest.decision == "value":
        return source
    given = forest.classes[kernels.decide(forest, own)]
    # sums taken in another order, by threads say, may break a tie differently: the model's own scores decide
    by_theirs = forest.classes[kernels.decide(forest, theirs)]
    is_wrong = (given != said) & (by_theirs != said)
    if is_wrong.any():
        _refuse(forest, rows, is_wrong, f"it predicts {said[is_wrong][0]}, the translation {given[is_wrong][0]}")
    return source


def _ends(forest: Forest, rows: Floats, own: Floats) -> tuple[Floats, Floats]:
    """The least and the largest scores that the model itself may give, as rounding decides the votes that are tied."""
    if not has_votes(forest.voices):
        return own, own
    either = [kernels.hard_scores(replace(forest, voices=moved(forest.voices, way)), rows) for way in (-1, 1)]
    return np.minimum(*either), np.maximum(*either)


def telling_rows(source: Source, n_rows: int = N_ROWS) -> Floats:
    """(n_rows, n_features) rows on which a wrong translation shows, the same ones every time."""
    forest, rng = source.forest, np.random.default_rng(0)
    rows = np.zeros((n_rows, forest.n_features))
    labels = [None] * forest.n_features if forest.categories is None else forest.categories.labels
    order = np.argsort(forest.feature, kind="stable")
    ends = np.searchsorted(forest.feature[order], np.arange(forest.n_features + 1))
    refuses = None if forest.categories is None else forest.categories.refuses_unseen
    for f, known in enumerate(labels):
        if known is not None:
            n_read = len(known) + int(refuses is None or not refuses[f])
            rows[:, f] = rng.integers(0, n_read, n_rows)
        else:
            rows[:, f] = _beside(forest, forest.threshold[order[ends[f] : ends[f + 1]]], n_rows, rng)
    if forest.reads is not None:
        rows = np.clip(rows, *forest.reads)
    if source.takes_infinite:
        is_number = ~are_categories(labels)
        is_far = (rng.random(rows.shape) < _SHARE_INFINITE) & is_number
        rows = np.where(is_far, rng.choice([-np.inf, np.inf], rows.shape), rows)
    if forest.reads is not None:
        rows = np.clip(rows, *forest.reads)
    if forest.takes_missing:
        is_missing = rng.random(rows.shape) < _SHARE_MISSING
        if forest.refuses_missing is not None:
            is_missing &= ~forest.refuses_missing
        rows[is_missing] = np.nan
    return rows


def _beside(forest: Forest, thresholds: Floats, n_rows: int, rng: np.random.Generator) -> Floats:
    """Values on thresholds, one float of the model's dtype to each side, and in between."""
    dtype = np.float32 if forest.input_dtype == "float32" else np.float64
    most = float(np.finfo(dtype).max)
    known = thresholds[np.abs(thresholds) < most]
    if not known.size:
        return np.zeros(n_rows)
    on = rng.choice(known, n_rows)
    near = on.astype(dtype)
    with np.errstate(over="ignore"):
        sides = [np.nextafter(near, dtype(side)).astype(np.float64) for side in (-np.inf, np.inf)]
    between = rng.uniform(0.0, 1.0, n_rows)
    between = between * on + (1.0 - between) * rng.choice(known, n_rows)
    chosen: NDArray[np.float64] = np.choose(rng.integers(0, 4, n_rows), [near.astype(np.float64), *sides, between])
    return np.clip(chosen, -most, most)


def _refuse(forest: Forest, rows: Floats, is_wrong: Bools, what: str) -> None:
    raise ModelMismatch(
        f"The {forest.source} and its translation disagree on {int(is_wrong.sum())} of {len(rows)} test rows, so no "
        f"answer could be trusted: {what}. Please report this model, with the versions of treefocus and its library."
    )
