"""A hash of all that decides a forest's predictions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from treefocus.model.forest import Forest


def fingerprint(forest: Forest) -> str:
    """SHA-256 of all that decides a forest's predictions, and of what it reads and shows."""
    digest = digest_of_trees(forest)
    rest = (forest.cut_high, forest.favoured, forest.link, forest.takes_missing)
    digest.update(repr(rest).encode())
    if forest.maps or forest.rounding:
        digest.update(repr((forest.maps, forest.rounding)).encode())
    if forest.voices:
        digest.update(repr(forest.voices).encode())
    for array in (forest.reads, forest.refuses_missing):
        digest.update(repr(None if array is None else array.tolist()).encode())
    return digest.hexdigest()


def digest_of_trees(forest: Forest) -> hashlib._Hash:
    """The running SHA-256 of trees, scores and classes."""
    digest = hashlib.sha256()
    arrays: Sequence[Any] = (
        forest.feature, forest.threshold, forest.left, forest.right, forest.default_left, forest.tree_start,
        forest.leaf_value, forest.base_score,
    )  # fmt: skip
    for array in arrays:
        digest.update(str((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    rest = (
        forest.classes.tolist(), forest.n_features, forest.divisor, forest.decision, forest.cut,
        forest.input_dtype, forest.score_dtype,
    )  # fmt: skip
    digest.update(repr(rest).encode())
    if forest.categories is not None:
        digest.update(json.dumps(forest.categories.to_record(), default=str).encode())
    return digest
