"""Which answer is wanted instead: any other class, or a given one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from treefocus.errors import reject
from treefocus.forest import Forest, Ints

ANY_OTHER = -1


def as_targets(target: Any, forest: Forest, n_rows: int) -> Ints:
    """(n_rows,) index of the class to reach, `ANY_OTHER` where `target` is None; one label, or one a row."""
    if target is None:
        return np.full(n_rows, ANY_OTHER, np.int32)
    labels = [target] if np.ndim(target) == 0 else list(target)
    if len(labels) not in (1, n_rows):
        reject("target", f"one class, or one a row ({n_rows})", f"{len(labels)}")
    position = {label: index for index, label in enumerate(forest.classes.tolist())}
    found = []
    for label in labels:
        plain = label.item() if isinstance(label, np.generic) else label
        if plain is not None and (not isinstance(plain, Hashable) or plain not in position):
            reject("target", f"one of {', '.join(map(repr, position))}", repr(plain))
        found.append(ANY_OTHER if plain is None else position[plain])
    return np.broadcast_to(np.array(found, np.int32), (n_rows,)).copy()
