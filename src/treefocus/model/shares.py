"""Whether a forest's scores are probabilities themselves."""

from __future__ import annotations

import numpy as np

from treefocus.model.forest import Forest


def has_shares(forest: Forest) -> bool:
    """Whether the scores are probabilities themselves: shares of a whole in every leaf."""
    if forest.voices or forest.link != "identity" or (forest.leaf_value < 0).any() or (forest.base_score < 0).any():
        return False
    sums = forest.leaf_value.sum(axis=1)
    first = np.searchsorted(forest.tree_of_leaf, np.arange(forest.n_trees))
    is_same = np.abs(sums - sums[first][forest.tree_of_leaf]) <= 1e-6 * np.abs(sums)
    whole = (sums[first].sum() + forest.base_score.sum()) / forest.divisor
    return bool(is_same.all() and abs(whole - 1.0) <= 1e-6)
