"""Forests of several models in the same columns, end to end: the trees of wrappers that add models up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treefocus.errors import UnsupportedModel
from treefocus.model.categories import UNUSED, Categories, Labels
from treefocus.model.forest import Floats, Forest
from treefocus.model.grid import floor_to


def joined(forests: Sequence[Forest], values: Sequence[Floats], base: Floats, **rest: Any) -> Forest:
    """One forest of all trees, a leaf's value as given: `values` are (n_leaves, n_outputs), one a forest."""
    first = forests[0]
    if any(forest.n_features != first.n_features for forest in forests):
        raise UnsupportedModel("The models inside were trained on different columns; train them on the same table.")
    parts = _in_one_dtype(forests)
    offset = np.cumsum([0, *(len(part.left) for part in parts)])

    def along(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    def children(name: str) -> Any:
        own = [getattr(part, name).astype(np.int64) for part in parts]
        return np.concatenate([np.where(ids < 0, -1, ids + n) for ids, n in zip(own, offset, strict=False)])

    starts = [part.tree_start[:-1] + n for part, n in zip(parts, offset, strict=False)]
    return replace(
        first,
        feature=along("feature"),
        threshold=along("threshold"),
        left=children("left"),
        right=children("right"),
        default_left=along("default_left"),
        tree_start=np.concatenate([*starts, offset[-1:]]),
        leaf_value=np.concatenate(values),
        base_score=base,
        input_dtype=parts[0].input_dtype,
        takes_missing=all(part.takes_missing for part in parts),
        refuses_missing=_either([part.refuses_missing for part in parts]),
        reads=_narrowest([part.reads for part in parts]),
        categories=_categories(parts),
        leaf_distribution=None,
        tree_weight=None,
        feature_names=next((part.feature_names for part in parts if part.feature_names is not None), None),
        **rest,
    )


def _in_one_dtype(forests: Sequence[Forest]) -> list[Forest]:
    """The forests, all comparing in float64 where one of them does."""
    if len({forest.input_dtype for forest in forests}) == 1:
        return list(forests)
    return [forest if forest.input_dtype == "float64" else _widened(forest) for forest in forests]


def _widened(forest: Forest) -> Forest:
    """The same forest for float64 numbers: a threshold is the last one that rounds to the left side."""
    last = _last_left(floor_to(forest.threshold, "float32"))
    is_split = forest.left >= 0
    if forest.categories is not None:
        is_split = is_split & (forest.categories.set_of_node < 0)
    most = np.full(forest.n_features, float(np.finfo(np.float32).max))
    reads = _narrowest([forest.reads, np.stack([-most, most])])
    return replace(forest, threshold=np.where(is_split, last, 0.0), input_dtype="float64", reads=reads)


def _last_left(threshold: Floats) -> Floats:
    """The largest float64 that rounds to a float32 threshold or below it, among denormal numbers too."""
    with np.errstate(over="ignore", under="ignore"):
        beyond = np.nextafter(threshold.astype(np.float32), np.float32(np.inf)).astype(np.float64)
        middle = threshold + (beyond - threshold) / 2
        last = np.where(middle.astype(np.float32) > threshold, np.nextafter(middle, -np.inf), middle)
    return np.where(np.isfinite(beyond), last, threshold)


def _either(masks: Sequence[Any]) -> Any:
    known = [mask for mask in masks if mask is not None]
    return np.any(known, axis=0) if known else None


def _narrowest(ranges: Sequence[Any]) -> Any:
    known = [each for each in ranges if each is not None]
    if not known:
        return None
    return np.stack([np.max([each[0] for each in known], axis=0), np.min([each[1] for each in known], axis=0)])


def _categories(parts: Sequence[Forest]) -> Categories | None:
    """The categories of all forests, which must agree on their labels; a column that one does not use is another's."""
    if all(part.categories is None for part in parts):
        return None
    labels = _labels(parts)
    sets: list[Any] = []
    for part in parts:
        own = part.categories
        numbers = np.full(len(part.left), -1) if own is None else own.set_of_node
        sets += [None if number < 0 or own is None else own.members(int(number)) for number in numbers]
    known = [part.categories for part in parts if part.categories is not None]
    words: dict[str, Any] = {name: _first([getattr(own, name) for own in known]) for name in ("fillers", "blanks")}
    refuses = _either([own.refuses_unseen for own in known])
    return replace(Categories.of_sets(labels, sets), refuses_unseen=refuses, **words)


def _labels(parts: Sequence[Forest]) -> Labels:
    found: list[tuple[Any, ...] | None] = []
    for f in range(parts[0].n_features):
        every = [None if part.categories is None else part.categories.labels[f] for part in parts]
        used = [own for own, part in zip(every, parts, strict=True) if own != UNUSED and _uses(part, f)]
        kinds = list(dict.fromkeys(used)) or [every[0]]
        if len(kinds) > 1:
            raise UnsupportedModel(
                f"The models inside know different categories of column number {f}, or one takes it for numbers; "
                "train them on the same table, with the same encoding."
            )
        found.append(kinds[0])
    return tuple(found)


def _uses(part: Forest, feature: int) -> bool:
    return bool((part.feature == feature).any())


def _first(known: Sequence[Labels | None]) -> Labels | None:
    return next((own for own in known if own is not None), None)
