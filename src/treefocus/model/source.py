"""What an adapter hands over: the forest, and the model's own answers to hold it against."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.model.categories import Labels
from treefocus.model.forest import Floats, Forest

Answer = Callable[[Floats], NDArray[Any]]


def _as_they_are(rows: Floats) -> Any:
    return rows


@dataclass(frozen=True)
class Source:
    """A forest and, where the model itself is at hand, the model's own answers to rows in the forest's coding.

    Such rows hold a category as its number, the number of labels for an unseen one, and NaN for a missing value.
    """

    forest: Forest
    predict: Answer | None = None  # (n_rows,) the model's labels, or the values that a regressor predicts
    scores: Answer | None = None  # (n_rows, n_outputs) the model's own sums, what `hard_scores` gives for the forest
    probabilities: Answer | None = None  # (n_rows, n_classes) as its `predict_proba` gives them, where it gives any
    takes_infinite: bool = False  # whether the model reads infinities
    precision: float = 1e-12  # how far apart the scores may be, as a share of the largest of them
    orders: Labels | None = None  # per feature its categories in their order, where the model was told one
    counts: tuple[
        str | None, ...
    ] = ()  # per feature how its dates are counted, None where it holds none; see `schema.dates`
    # Of a model that keeps only hashes of its categories, and reads all as unseen until the words of the data are
    # known: the same with these words, by column, as labels.
    with_words: Callable[[Mapping[int, Sequence[Any]]], Source] | None = None
    to_rows: Callable[[Floats], Any] = _as_they_are  # such rows as the model's own methods take them


def asked(answer: Answer) -> Answer:
    """A model's function without its warnings (rows without names, say): it was fitted, it is only asked."""

    @wraps(answer)
    def ask(rows: Any) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(answer(np.asarray(rows, np.float64)))

    return ask


def remembered(answer: Answer) -> Answer:
    """A model's function that is asked once about the same rows, as long as this is kept."""
    known: dict[bytes, NDArray[Any]] = {}

    def ask(rows: Floats) -> NDArray[Any]:
        key = rows.tobytes()
        if key not in known:
            known[key] = answer(rows)
        return known[key]

    return ask


def decoded(forest: Forest, rows: Floats) -> NDArray[Any]:
    """(n_rows, n_features) the rows with labels for the numbers of categories, as objects; as they are without any."""
    if forest.categories is None:
        return rows
    values = rows.astype(object)
    for f in np.flatnonzero(forest.categories.is_categorical):
        labels = forest.categories.labels[f] or ()
        known = np.empty(len(labels) + 2, object)
        known[: len(labels)] = labels
        known[len(labels) :] = unseen_label(labels), np.nan
        number = np.where(np.isnan(rows[:, f]), len(labels) + 1, rows[:, f]).astype(np.intp)
        values[:, f] = known[np.clip(number, 0, len(labels) + 1)]
    return values


def unseen_label(labels: tuple[Any, ...]) -> Any:
    """A label of the same type that is none of these."""
    if all(isinstance(label, str) for label in labels):
        label = "unseen"
        while label in labels:
            label += "?"
        return label
    return max(float(label) for label in labels) + 1.0
