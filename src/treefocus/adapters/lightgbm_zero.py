"""LightGBM's zero_as_missing, exactly: values within 1e-35 of zero go where the node sends missing values.

A node that would send zero to the other side by its threshold becomes up to three, of which the middle one catches
zero. Its subtrees then stand twice, so trees grow; beyond a limit the model is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters.nodes import Nodes
from treefocus.errors import UnsupportedModel

ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold
BELOW = float(np.nextafter(-ZERO, -np.inf))
_MOST_NODES = 4_000_000


def with_zero_as_missing(nodes: Nodes, is_odd: NDArray[np.bool_]) -> Nodes:
    """The same trees, in which the nodes marked `is_odd` send zero against their threshold."""
    grown = _Grown(nodes, is_odd)
    starts = [0]
    for tree in range(len(nodes.tree_start) - 1):
        grown.copy(int(nodes.tree_start[tree]))
        starts.append(len(grown.origin))
    origin = np.array(grown.origin)
    return Nodes(
        nodes.feature[origin], np.array(grown.threshold), np.array(grown.left), np.array(grown.right),
        np.array(grown.default_left), nodes.value[origin], np.array(starts),
        None if nodes.sets is None else [nodes.sets[i] for i in origin],
    )  # fmt: skip


class _Grown:
    """Nodes under construction."""

    def __init__(self, nodes: Nodes, is_odd: NDArray[np.bool_]) -> None:
        self.source = nodes
        self.feature, self.value = nodes.feature.tolist(), nodes.threshold.tolist()
        self.child = nodes.left.tolist(), nodes.right.tolist()
        self.goes_left, self.is_odd = nodes.default_left.tolist(), is_odd.tolist()
        self.origin: list[int] = []
        self.threshold: list[float] = []
        self.default_left: list[bool] = []
        self.left: list[int] = []
        self.right: list[int] = []

    def copy(self, root: int) -> None:
        """Copy a tree; what is still to do is a node and the place that waits for its number."""
        todo: list[tuple[Any, list[int] | None, int]] = [(root, None, 0)]
        while todo:
            node, waiting, place = todo.pop()
            number = len(self.origin)
            if number > _MOST_NODES:
                raise UnsupportedModel(
                    "This LightGBM model with zero_as_missing=True becomes too large when zero is told apart exactly; "
                    "write NaN for the missing zeros and train without zero_as_missing."
                )
            if waiting is not None:
                waiting[place] = number
            own, threshold, goes_left, branches = self.parts(node)
            self.origin.append(own)
            self.threshold.append(threshold)
            self.default_left.append(goes_left)
            self.left.append(-1)
            self.right.append(-1)
            if branches is not None:
                todo += [(branches[1], self.right, number), (branches[0], self.left, number)]

    def parts(self, node: Any) -> tuple[int, float, bool, tuple[Any, Any] | None]:
        """A node's origin, threshold, missing side and children; a made-up node is a tuple of just these."""
        if isinstance(node, tuple):
            return node
        left, right = self.child[0][node], self.child[1][node]
        if left < 0:
            return node, 0.0, False, None
        if not self.is_odd[node]:
            return node, self.value[node], self.goes_left[node], (left, right)
        t = self.value[node]
        if t >= ZERO:  # zero is below the threshold and goes right all the same
            beyond = right if t == ZERO else (node, ZERO, True, (right, (node, t, False, (left, right))))
            return node, BELOW, False, (left, beyond)
        if t == BELOW:
            return node, ZERO, True, (left, right)
        return node, BELOW, False, ((node, t, True, (left, right)), (node, ZERO, True, (left, right)))
