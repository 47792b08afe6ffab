"""A model in another model's columns: the same order, and the same numbers for the same categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.model.categories import NO_CATEGORY, UNUSED, Categories, Labels
from treefocus.model.forest import Floats, Forest
from treefocus.model.source import Answer, Source


def aligned(source: Source, names: Sequence[str] | None, labels: Labels, which: str) -> Source:
    """The model as rows with these columns and categories take it; `which` is what an error calls it."""
    if source.forest.n_features != len(labels):
        raise InvalidInput(f"{which} reads {source.forest.n_features} columns, the model {len(labels)}.")
    own = source.forest.feature_names
    if own is not None and names is not None and own != tuple(names):
        source = _in_order(source, tuple(names), which)
    return _relabelled(source, labels, which)


def _in_order(source: Source, names: tuple[str, ...], which: str) -> Source:
    """The same model with its columns in another order."""
    forest = source.forest
    known = forest.feature_names or ()
    if set(known) != set(names):
        lacks = sorted(set(names) ^ set(known))
        raise InvalidInput(f"{which} reads other columns than the model; they differ in {', '.join(lacks)}.")
    place = np.array([names.index(name) for name in known])  # of every own column among the new ones
    order = np.argsort(place)
    kinds = forest.categories
    words = ("labels", "fillers", "blanks", "refuses_unseen", "n_added")
    moved = replace(
        forest,
        feature=np.where(forest.feature < 0, -1, place[forest.feature]),
        feature_names=names,
        reads=None if forest.reads is None else forest.reads[:, order],
        refuses_missing=None if forest.refuses_missing is None else forest.refuses_missing[order],
        categories=None
        if kinds is None
        else replace(kinds, **{name: _by(getattr(kinds, name), order) for name in words}),
    )
    return _asked_with(source, moved, lambda rows: rows[:, place])


def _by(values: Any, order: NDArray[np.intp]) -> Any:
    if values is None or isinstance(values, np.ndarray):
        return None if values is None else values[order]
    return tuple(values[j] for j in order)


def _relabelled(source: Source, labels: Labels, which: str) -> Source:
    """The same model with other numbers for its categories; one that it does not know is unseen to it."""
    forest = source.forest
    own: Labels = (None,) * forest.n_features if forest.categories is None else forest.categories.labels
    if own == labels:
        return source
    table: dict[int, NDArray[np.intp]] = {}  # by column: the own number of every number, the unseen one last
    for f, (before, after) in enumerate(zip(own, labels, strict=True)):
        is_used = bool((forest.feature == f).any())
        if (before is None) != (after is None) and is_used:
            raise InvalidInput(f"{which} takes column number {f} for numbers, the model for categories, or vice versa.")
        if before != after and after is not None:
            known = {} if before in (None, NO_CATEGORY, UNUSED) else {label: k for k, label in enumerate(before or ())}
            unseen = len(before or ())
            table[f] = np.array([*(known.get(label, unseen) for label in after), unseen], np.intp)
    moved = replace(forest, categories=_recoded(forest, labels, table))
    numeric = [f for f in table if own[f] is None]  # numbers that the model does not use
    return _asked_with(source, moved, lambda rows: _own_numbers(rows, table, numeric))


def _recoded(forest: Forest, labels: Labels, table: dict[int, NDArray[np.intp]]) -> Categories | None:
    if all(own is None for own in labels):
        return None
    kinds, sets = forest.categories, [None] * len(forest.feature)
    made: dict[tuple[int, int], Any] = {}
    for node in np.flatnonzero(kinds.set_of_node >= 0).tolist() if kinds is not None else ():
        f, number = int(forest.feature[node]), int(kinds.set_of_node[node]) if kinds is not None else -1
        if (f, number) not in made and kinds is not None:
            members = kinds.members(number)
            made[f, number] = members if f not in table else np.flatnonzero(np.isin(table[f], members))
        sets[node] = made[f, number]
    refuses = None if kinds is None else kinds.refuses_unseen
    return replace(Categories.of_sets(labels, sets), refuses_unseen=refuses)


def _own_numbers(rows: Floats, table: dict[int, NDArray[np.intp]], numeric: Sequence[int]) -> Floats:
    rows = np.array(rows, np.float64)
    for f, own in table.items():
        known = ~np.isnan(rows[:, f])
        number = np.clip(np.where(known, rows[:, f], 0), 0, len(own) - 1).astype(np.intp)
        rows[:, f] = 0.0 if f in numeric else np.where(known, own[number], np.nan)
    return rows


def _asked_with(source: Source, forest: Forest, to_own: Any) -> Source:
    """The source with another forest; the model itself is asked about rows in its own columns and numbers."""

    def moved(answer: Answer | None) -> Answer | None:
        return None if answer is None else lambda rows: answer(to_own(rows))

    return replace(
        source, forest=forest, predict=moved(source.predict), scores=moved(source.scores),
        probabilities=moved(source.probabilities), orders=None, with_words=None,
    )  # fmt: skip
