"""Variants of a forest, with a question built in; kept, so that what is derived from them is too."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treefocus.model.forest import Forest

_KEPT = 8  # variants of a forest that are kept for the next question
_variants: WeakKeyDictionary[Forest, dict[Any, Forest]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # a server asks from several threads


def variant(forest: Forest, **changes: Any) -> Forest:
    """The forest with some fields changed; asked for again, the same one, with all that is derived from it."""
    if not changes:
        return forest
    key = tuple((name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in changes.items())
    with _one_at_a_time:
        kept = _variants.setdefault(forest, {})
        if key not in kept:
            if len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[key] = replace(forest, **changes)
        return kept[key]
