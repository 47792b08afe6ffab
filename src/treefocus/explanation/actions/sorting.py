"""A small tree that sorts people to actions by what is known of them: who should do what, in a few questions.

Kanamori, Takagi, Kobayashi and Ike (2022) sort people to actions by trees. Here each leaf has one of the plan's
actions, and a question is asked where it helps more people, or as many at less cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats

MOST_DEPTH = 3
_CUTS = 24  # values of a column that are tried
_FEWEST = 5  # rows of a leaf
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Leaf:
    """What these people should do: an action, by its number in the plan; None where none helps any of them."""

    action: int | None
    rows: int
    helped: int


@dataclass(frozen=True)
class Fork:
    """A question: is the column at most this value, or is it this category?"""

    column: int
    feature: str
    value: float
    label: Any  # the category; None where the column holds numbers
    yes: Fork | Leaf
    no: Fork | Leaf


@dataclass(frozen=True, eq=False)
class SortingTree:
    """People sorted to actions.

    Attributes
    ----------
    root : Fork or Leaf
        Where to begin.
    coverage : float
        The share of people whom the action that they are sorted to helps.
    mean_cost : float
        Of those; NaN where there are none.
    """

    root: Fork | Leaf
    coverage: float
    mean_cost: float

    @property
    def depth(self) -> int:
        """Questions on the longest way."""
        return _depth(self.root)

    def sorted(self, values: Floats) -> NDArray[np.intp]:
        """(n_rows,) the number of the action for each of these rows, in the search's coding; -1 for none."""
        found = np.full(len(values), -1)
        _send(self.root, values, np.arange(len(values)), found)
        return found


def sorting_tree(
    values: Floats, cost: Floats, names: Sequence[str], labels: Labels | None, max_depth: int = MOST_DEPTH
) -> SortingTree:
    """The tree for these rows (n_rows, n_features) and actions; cost: (n_actions, n_rows), infinity for no help."""
    root = _grown(values, cost, names, labels, np.arange(len(values)), max_depth)
    place = np.full(len(values), -1)
    _send(root, values, np.arange(len(values)), place)
    own = np.where(place >= 0, cost[np.maximum(place, 0), np.arange(len(values))], np.inf) if len(cost) else cost.sum(0)
    helped = np.isfinite(own)
    mean = float(own[helped].mean()) if helped.any() else float("nan")
    return SortingTree(root, float(helped.mean()) if len(values) else float("nan"), mean)


def _grown(
    values: Floats, cost: Floats, names: Sequence[str], labels: Labels | None, rows: Rows, depth: int
) -> Fork | Leaf:
    leaf = _leaf(cost, rows)
    if depth == 0 or len(rows) < 2 * _FEWEST or not len(cost):
        return leaf
    best, known = None, _worth(cost, rows)
    for column in range(values.shape[1]):
        known_labels = None if labels is None else labels[column]
        is_category = known_labels is not None
        for value in _cuts(values[rows, column], known_labels):
            is_yes = _answers(values[rows, column], value, is_category)
            yes, no = rows[is_yes], rows[~is_yes]
            if min(len(yes), len(no)) >= _FEWEST:
                worth = tuple(np.add(_worth(cost, yes), _worth(cost, no)))
                if worth > known and (best is None or worth > best[0]):
                    best = (worth, column, value, yes, no)
    if best is None:
        return leaf
    _, column, value, yes, no = best
    own = None if labels is None else labels[column]
    label = None if own is None else own[int(value)]
    branches = [_grown(values, cost, names, labels, sent, depth - 1) for sent in (yes, no)]
    if all(isinstance(one, Leaf) and one.action == leaf.action for one in branches):
        return leaf
    return Fork(column, names[column], value, label, *branches)


def _cuts(own: Floats, labels: Sequence[Any] | None) -> list[float]:
    """Values to ask about: categories that have a name, or numbers that somebody has."""
    known = np.unique(own[~np.isnan(own)])
    if labels is not None:
        return [float(value) for value in known if value < len(labels)]
    if len(known) < 2:
        return []
    middle = known[:-1]
    places = np.unique(np.linspace(0, len(middle) - 1, min(_CUTS, len(middle))).astype(np.intp))
    return [float(value) for value in middle[places]]


def _answers(own: Floats, value: float, is_category: bool) -> Bools:
    return np.asarray(own == value if is_category else own <= value)


def _worth(cost: Floats, rows: Rows) -> tuple[float, float]:
    """Rows helped by the best single action for them, and minus what that costs."""
    own = cost[:, rows]
    helped = np.isfinite(own)
    total = np.where(helped, own, 0.0).sum(axis=1)
    return max(zip(helped.sum(axis=1).astype(float).tolist(), (-total).tolist(), strict=True))


def _leaf(cost: Floats, rows: Rows) -> Leaf:
    if not len(cost) or not len(rows):
        return Leaf(None, len(rows), 0)
    own = cost[:, rows]
    helped = np.isfinite(own).sum(axis=1)
    total = np.where(np.isfinite(own), own, 0.0).sum(axis=1)
    best = int(np.lexsort((-total, helped))[-1])
    return Leaf(best if helped[best] else None, len(rows), int(helped[best]))


def _send(node: Fork | Leaf, values: Floats, rows: Rows, found: NDArray[np.intp]) -> None:
    if isinstance(node, Leaf):
        found[rows] = -1 if node.action is None else node.action
        return
    is_yes = _answers(values[rows, node.column], node.value, node.label is not None)
    _send(node.yes, values, rows[is_yes], found)
    _send(node.no, values, rows[~is_yes], found)


def _depth(node: Fork | Leaf) -> int:
    return 0 if isinstance(node, Leaf) else 1 + max(_depth(node.yes), _depth(node.no))
