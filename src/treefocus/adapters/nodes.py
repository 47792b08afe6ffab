"""Trees as a library lays them out, on their way to a `Forest`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.model.categories import Categories, Labels
from treefocus.model.forest import MOST_FEATURES, Forest, join_trees

Array = NDArray[Any]
MOST_LABELS = 1 << 20


@dataclass
class Nodes:
    """Nodes of all trees, tree after tree, in any order within one; children are counted over all of them."""

    feature: Array
    threshold: Array
    left: Array  # negative at a leaf
    right: Array
    default_left: Array
    value: Array  # (n_nodes, n_outputs)
    tree_start: Array
    sets: list[Iterable[int] | None] | None = None  # categories that go left, where a node splits on them

    def reached(self) -> Nodes:
        """Only the nodes that a root leads to: pruning can leave others behind."""
        left, right, starts = self.left, self.right, self.tree_start
        is_reached = np.zeros(len(left), bool)
        frontier = np.asarray(starts[:-1])
        while frontier.size:
            if is_reached[frontier].any():
                raise InvalidInput("The model's trees have a cycle, or a node with two parents.")
            is_reached[frontier] = True
            inner = frontier[left[frontier] >= 0]
            frontier = np.concatenate([left[inner], right[inner]])
            if frontier.size and not 0 <= frontier.min() <= frontier.max() < len(left):
                raise InvalidInput("The model's trees point to nodes that are not there.")
        if is_reached.all():
            return self
        number = np.cumsum(is_reached) - 1

        def child(ids: Array) -> Array:
            return np.where(ids < 0, -1, number[np.maximum(ids, 0)])[is_reached]

        tree = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return Nodes(
            self.feature[is_reached], self.threshold[is_reached], child(left), child(right),
            self.default_left[is_reached], self.value[is_reached],
            join_trees(np.bincount(tree[is_reached], minlength=len(starts) - 1).tolist()),
            None if self.sets is None else [self.sets[i] for i in np.flatnonzero(is_reached)],
        )  # fmt: skip

    def to_forest(self, labels: Labels | None, refuses_unseen: Array | None = None, **rest: Any) -> Forest:
        """The forest of these nodes; `labels` are those of its categorical features, None if it has none."""
        kept = self.reached()
        categories = None
        if labels is not None and any(own is not None for own in labels):
            categories = Categories.of_sets(labels, kept.sets or [None] * len(kept.left))
            categories = replace(categories, refuses_unseen=refuses_unseen)
        return Forest.from_nodes(
            feature=kept.feature,
            threshold=kept.threshold,
            left=kept.left,
            right=kept.right,
            default_left=kept.default_left,
            tree_start=kept.tree_start,
            node_value=kept.value,
            categories=categories,
            **rest,
        )


def check_sizes(n_features: int, n_outputs: int, n_trees: int, n_labels: int = 0) -> None:
    """Refuse numbers that only a damaged file has, before memory is taken for them."""
    if not 1 <= n_features <= MOST_FEATURES or n_labels > MOST_LABELS:
        raise InvalidInput(f"The model has {n_features:,} columns and {n_labels:,} categories; it must be damaged.")
    if not 1 <= n_outputs <= max(n_trees, 1):
        raise InvalidInput(f"The model has {n_outputs:,} scores and {n_trees:,} trees; it must be damaged.")


def end_to_end(trees: Sequence[Array], starts: Array) -> Array:
    """Children of trees laid end to end: counted within a tree before, over all nodes after; -1 at a leaf."""
    sizes = [len(own) for own in trees]
    ids = np.concatenate([np.asarray(own, np.int64) for own in trees])
    own_size = np.repeat(sizes, sizes)
    if (ids >= own_size).any():
        raise InvalidInput("The model's trees point to nodes that are not there.")
    return np.where(ids < 0, -1, ids + np.repeat(starts[:-1], sizes))
