"""CatBoost's statistics of categories (CTRs) as sets of categories.

A model keeps, for every category or combination of categories that it saw, how often it came with which target; a split
asks whether a number made of these counts is above a border. The counts do not change once the model is trained, so the
answer is a table: one entry a category, or one a combination. A split on one column is a set of its categories. A
combination becomes several splits, one column after the other, until what is left of the table is all on one side;
on the way to a node only the categories count that can still come there, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, UnsupportedModel

_MULTIPLIER = np.uint64(0x4906BA494954CB65)
_NO_HASH = 0xFFFFFFFFFFFFFFFF  # marks an empty place in the file's tables
MOST_ENTRIES = 1 << 18  # of one table
MOST_NODES = 1 << 20  # of one tree

Key = tuple[int, float | None]  # a column of categories, or one of numbers with a border
Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SplitTable:
    """A question: for every combination of what its columns can hold, whether the answer is yes, and x goes right."""

    keys: tuple[Key, ...]
    is_right: Bits  # one axis a key: the categories and an unseen one, or below and above a border


def ctr_tables(
    record: dict[str, Any], hashes: dict[int, NDArray[np.uint64]], number_column: dict[int, int],
    category_column: dict[int, int],
) -> dict[int, SplitTable]:  # fmt: skip
    """The tables of all splits on statistics, by the number that splits have in the file.

    `hashes` are those of a column's categories; the columns are known by their numbers in the file.
    """
    info = record["features_info"]
    number = sum(len(own.get("borders") or []) for own in info.get("float_features") or [])
    number += sum(len(own.get("values") or []) for own in info.get("categorical_features") or [])
    tables = {}
    for ctr in info.get("ctrs") or []:
        keys, hashed, is_seen = _hashed(ctr["elements"], hashes, number_column, category_column)
        values = _values(ctr, record["ctr_data"][ctr["identifier"]], hashed, is_seen)
        for border in ctr["borders"]:
            tables[number] = SplitTable(keys, values > np.float32(border))
            number += 1
    return tables


def _hashed(
    elements: Sequence[dict[str, Any]], hashes: dict[int, NDArray[np.uint64]], number_column: dict[int, int],
    category_column: dict[int, int],
) -> tuple[tuple[Key, ...], NDArray[np.uint64], Bits]:  # fmt: skip
    """The keys of a combination, the hash of each of its values, and which hold no unseen category."""
    keys: list[Key] = []
    for element in elements:
        if element["combination_element"] == "float_feature":
            key: Key = (number_column[int(element["float_feature_index"])], float(element["border"]))
        else:
            key = (category_column[int(element["cat_feature_index"])], None)
        keys += [key] if key not in keys else []
    shape = [2 if border is not None else len(hashes[column]) + 1 for column, border in keys]
    if np.prod(np.array(shape, float)) > MOST_ENTRIES:
        raise UnsupportedModel(
            f"This CatBoost model has statistics of combinations of {' x '.join(map(str, shape))} categories, more "
            f"than {MOST_ENTRIES:,}; train it with max_ctr_complexity=1, or on fewer categories."
        )
    hashed: NDArray[Any] = np.zeros(shape, np.uint64)
    is_seen = np.ones(shape, bool)
    for element in elements:
        kind = element["combination_element"]
        if kind == "float_feature":
            axis = keys.index((number_column[int(element["float_feature_index"])], float(element["border"])))
            own: NDArray[Any] = np.arange(2, dtype=np.uint64)
        else:
            column = category_column[int(element["cat_feature_index"])]
            axis = keys.index((column, None))
            signed = hashes[column].astype(np.uint32).view(np.int32).astype(np.int64).view(np.uint64)
            own = np.append(signed, np.uint64(0))
            if kind == "cat_feature_exact_value":
                own = np.append(hashes[column] == (int(element["value"]) & 0xFFFFFFFF), False).astype(np.uint64)
            else:
                is_seen &= _along(np.append(np.ones(len(signed), bool), False), axis, len(shape))
        with np.errstate(over="ignore"):
            hashed = _MULTIPLIER * (hashed + _MULTIPLIER * _along(own, axis, len(shape)))
    return tuple(keys), hashed, is_seen


def _along(values: NDArray[Any], axis: int, n_axes: int) -> NDArray[Any]:
    return values.reshape([-1 if k == axis else 1 for k in range(n_axes)])


def _values(
    ctr: dict[str, Any], data: dict[str, Any], hashed: NDArray[np.uint64], is_seen: Bits
) -> NDArray[np.float32]:
    """The statistic of every combination, in float32 as the library takes it."""
    stride, flat = int(data["hash_stride"]), data["hash_map"]
    if stride < 2 or len(flat) % stride:
        raise InvalidInput("The CatBoost file is damaged: a table of statistics is cut short.")
    known = np.array([int(own) for own in flat[::stride]], np.uint64)
    counts = np.array([[float(one) for one in flat[k + 1 : k + stride]] for k in range(0, len(flat), stride)])
    counts = counts.reshape(len(known), stride - 1)
    order = np.argsort(known, kind="stable")
    order = order[known[order] != _NO_HASH]
    place = np.searchsorted(known[order], hashed)
    is_found = is_seen & (place < len(order))
    place = np.minimum(place, max(len(order) - 1, 0))
    if len(order):
        is_found &= known[order][place] == hashed
    else:
        is_found &= False
    own = np.where(is_found[..., None], counts[order][place] if len(order) else 0.0, 0.0).astype(np.float32)
    in_class, total = _counted(ctr, data, own)
    numerator, denominator = np.float32(ctr["prior_numerator"]), np.float32(ctr["prior_denomerator"])
    shown = (in_class + numerator) / (total + denominator)
    return np.asarray((shown + np.float32(ctr["shift"])) * np.float32(ctr["scale"]), np.float32)


def _counted(ctr: dict[str, Any], data: dict[str, Any], own: NDArray[np.float32]) -> tuple[Any, Any]:
    """What is divided by what, before the prior."""
    kind, border = ctr["ctr_type"], int(ctr.get("target_border_idx", 0))
    if kind in ("Counter", "FeatureFreq"):
        return own[..., 0], np.float32(data["counter_denominator"])
    if kind in ("BinarizedTargetMeanValue", "FloatTargetMeanValue"):
        return own[..., 0], own[..., 1]
    if kind == "Buckets":
        return own[..., border], own.sum(axis=-1)
    if kind == "Borders":
        return own[..., border + 1 :].sum(axis=-1), own.sum(axis=-1)
    raise UnsupportedModel(f"CatBoost's statistic {kind} is not supported; Borders, Buckets, Counter and means are.")


def known_hashes(data: dict[str, Any], hashes: Sequence[int]) -> set[int]:
    """Which of these hashes of categories a table of one column's statistics holds."""
    given = np.array(hashes, np.uint64)
    signed = given.astype(np.uint32).view(np.int32).astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):
        keys = _MULTIPLIER * (_MULTIPLIER * signed)
    known = {int(own) for own in data["hash_map"][:: int(data["hash_stride"])]}
    return {int(value) for value, key in zip(given.tolist(), keys.tolist(), strict=True) if key in known}


def _side(key: Key, is_right: Bits, whole: Bits) -> int | tuple[Key, Bits]:
    """The side of all that can come to a question about one column, or what of it goes left."""
    to_left = whole & ~is_right
    if not to_left.any():
        return 1
    return (key, to_left) if (whole & is_right).any() else 0


class Growth:
    """Nodes of one tree, added as questions come: numbers of nodes, sets, and what can still come to a node."""

    def __init__(self, size: Callable[[Key], int], missing_left: Callable[[Key], bool]) -> None:
        self.rows: list[tuple[int, float, bool, list[int] | None]] = []
        self.children: list[list[int]] = []
        self.leaf: list[int] = []  # the number of a leaf's value, -1 at a split
        self._size, self._missing_left = size, missing_left
        self._members: dict[bytes, list[int]] = {}
        self._whole: dict[Key, Bits] = {}
        self._sides: dict[tuple[Key, bytes, bytes], int | tuple[Key, Bits]] = {}

    def grow(self, ask: Callable[[int], SplitTable | int], state: int, step: Callable[[int, int], int]) -> None:
        """Add the tree of a state: `ask` has its question, or its leaf's number; `step(state, side)` the next state."""
        todo: list[tuple[int, int, int, dict[Key, Bits]]] = [(state, -1, 0, {})]
        while todo:
            state, parent, side, left_over = todo.pop()
            split: int | tuple[Key, Bits] = 0
            while not isinstance(question := ask(state), int):
                split = self._split(question, left_over)
                if not isinstance(split, int):
                    break
                state = step(state, split)
            number = len(self.rows)
            self._check_size(number)
            if parent >= 0:
                self.children[parent][side] = number
            self.children.append([-1, -1])
            self.leaf.append(question if isinstance(question, int) else -1)
            if isinstance(question, int) or isinstance(split, int):
                self.rows.append((0, 0.0, False, None))
                continue
            key, to_left = split
            self.rows.append(self._row(key, to_left))
            whole = self._left_over(key, left_over)
            todo.append((state, number, 1, left_over | {key: whole & ~to_left}))
            todo.append((state, number, 0, left_over | {key: to_left}))

    def _row(self, key: Key, to_left: Bits) -> tuple[int, float, bool, list[int] | None]:
        """A node: column, threshold, whether missing goes left, categories that go left; equal lists are one object."""
        column, border = key
        if border is not None:
            return column, border, self._missing_left(key), None
        members = self._members.setdefault(to_left.tobytes(), np.flatnonzero(to_left).tolist())
        return column, 0.0, True, members

    def _split(self, question: SplitTable, left_over: dict[Key, Bits]) -> int | tuple[Key, Bits]:
        """The side of all that can come here, or else a column to split on and what of it goes left.

        Of several columns the first of which values differ: those like its first value go left.
        """
        if len(question.keys) == 1:  # asked again on every path of a symmetric tree
            key = question.keys[0]
            whole = self._left_over(key, left_over)
            asked = key, question.is_right.tobytes(), whole.tobytes()
            if asked not in self._sides:
                self._sides[asked] = _side(key, question.is_right, whole)
            return self._sides[asked]
        values = [np.flatnonzero(self._left_over(key, left_over)) for key in question.keys]
        part = question.is_right[np.ix_(*values)]
        if part.all() or not part.any():
            return int(part.flat[0])
        for axis, key in enumerate(question.keys):
            slices = np.moveaxis(part, axis, 0).reshape(part.shape[axis], -1)
            is_like = (slices == slices[0]).all(axis=1)
            if not is_like.all():
                to_left = np.zeros(self._size(key), bool)
                to_left[values[axis][is_like]] = True
                return key, to_left
        raise AssertionError("a question with both answers differs in some column")

    def _left_over(self, key: Key, left_over: dict[Key, Bits]) -> Bits:
        known = left_over.get(key)
        if known is not None:
            return known
        if key not in self._whole:
            self._whole[key] = np.ones(self._size(key), bool)
        return self._whole[key]

    @staticmethod
    def _check_size(number: int) -> None:
        if number >= MOST_NODES:
            raise UnsupportedModel(
                f"A tree of this CatBoost model has more than {MOST_NODES:,} nodes once its statistics of categories "
                "are taken apart; train it with max_ctr_complexity=1, or with a smaller depth."
            )
