"""scikit-learn's IsolationForest: a row is an inlier (1) if its paths through the trees are long, else an outlier (-1).

The library turns the sum of path lengths into 2 ** (-sum / usual) and compares that with its offset; the sum at which
the answer changes is found by bisection through these very steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._iforest import _average_path_length

from treefocus.adapters.sklearn_trees import assemble, reads_missing
from treefocus.errors import UnsupportedModel
from treefocus.model.source import Source, asked


def to_source(model: Any) -> Source:
    """Translate a fitted IsolationForest."""
    usual = usual_sum(model)
    if usual == 0:
        raise UnsupportedModel("An IsolationForest of max_samples=1 has one answer for every row.")
    pairs = zip(model._decision_path_lengths, model._average_path_length_per_tree, strict=True)
    forest = assemble(
        model,
        model.estimators_,
        node_value=[np.reshape(path + rest - 1.0, (-1, 1)) for path, rest in pairs],
        features=model.estimators_features_,
        classes=np.array([-1, 1]),
        decision="at_least",
        cut=_first_inlier(usual, float(model.offset_), sum(map(np.max, model._decision_path_lengths)) * 2.0),
        takes_missing=all(reads_missing(own) for own in model.estimators_),
    )
    sums = asked(lambda rows: -usual * np.log2(-model.score_samples(rows))[:, None])
    return Source(forest, asked(model.predict), sums, takes_infinite=True)


def usual_sum(model: Any) -> float:
    """The sum of path lengths that the library finds usual: of such a row the score is 2 ** -1."""
    return len(model.estimators_) * float(_average_path_length([model._max_samples])[0])


def _first_inlier(usual: float, offset: float, most: float) -> float:
    """The smallest sum of path lengths that the library calls an inlier."""

    def is_inlier(total: float) -> bool:
        score = 2 ** (-np.divide(np.array([total]), usual))
        return bool(not (-score - offset < 0)[0])

    low, high = -1.0, 2.0 * most + 1.0  # no sum is below 0, none above the longest paths
    if is_inlier(low):
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if is_inlier(middle) else (middle, high)
    return high
