"""The categories of LightGBM's columns, from what its model files say of them.

pandas' categories stand at the end of a file, a list for each column of that dtype, in the columns' order. Unordered
ones are split by sets. Ordered ones are numbers to LightGBM, split by thresholds on their codes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.categories import NO_CATEGORY, Labels

_MOST_PAIRS = 10_000_000  # of columns and lists


def labels_of(header: dict[str, str], text: str) -> tuple[Labels | None, bool]:
    """Labels per column, and whether they are the values themselves: whole numbers, where pandas has not named them."""
    infos, is_categorical = header["feature_infos"].split(" "), _is_categorical(header, text)
    last = text.rstrip().rpartition("\n")[2]
    known = json.loads(last.partition(":")[2]) if last.startswith("pandas_categorical:") else None
    if not known:
        each = zip(infos, is_categorical, strict=True)
        return (tuple(_integers(i) if is_one else None for i, is_one in each) if any(is_categorical) else None), True
    labels: list[tuple[Any, ...] | None] = [None] * len(infos)
    for column, own in zip(_columns_of_lists(infos, is_categorical, known), known, strict=True):
        labels[column] = tuple(own) or NO_CATEGORY
    return tuple(labels), False


def columns_of_codes(text: str) -> list[int]:
    """The columns of pandas categories that the model takes as numbers: ordered ones."""
    header = fields_of(text.split("\nTree=")[0])
    labels, is_categorical = labels_of(header, text)[0], _is_categorical(header, text)
    return [j for j, own in enumerate(labels or ()) if own is not None and not is_categorical[j]]


def codes_left(n_labels: int, threshold: float, zero_left: bool, missing_left: bool) -> list[int]:
    """The categories that a threshold on their codes sends left; an unseen one goes where a missing one goes."""
    is_left = np.arange(n_labels + 1) <= threshold
    is_left[0] = zero_left
    is_left[n_labels] = missing_left
    return np.flatnonzero(is_left).tolist()


def fields_of(block: str) -> dict[str, str]:
    """The lines `name=value` of a part of the file."""
    pairs = (line.partition("=") for line in block.split("\n"))
    return {name: value for name, equals, value in pairs if equals}


def _is_categorical(header: dict[str, str], text: str) -> list[bool]:
    """Which columns the model splits by sets."""
    infos = header["feature_infos"].split(" ")
    is_categorical = [not info.startswith("[") and info != "none" for info in infos]
    for index in _setting(text, "categorical_feature").split(","):
        if index.isdigit() and int(index) < len(infos):
            is_categorical[int(index)] = True
    return is_categorical


def _columns_of_lists(infos: list[str], is_categorical: list[bool], known: list[list[Any]]) -> list[int]:
    """The column of every list of pandas categories, both in their order.

    A column that the model splits by sets has one. So has an ordered one, which the model takes as a number, and the
    file does not say which column that is: it is told by its range, if only one fits.
    """
    n, m = len(infos), len(known)
    if m == sum(is_categorical):
        found = [j for j, is_one in enumerate(is_categorical) if is_one]
        if all(_fits(infos[j], True, len(own)) for j, own in zip(found, known, strict=True)):
            return found
    if m <= sum(is_categorical):
        raise UnsupportedModel(
            "This LightGBM model mixes pandas categories with columns of whole numbers named in categorical_feature; "
            "make all of them pandas categories and train it again."
        )
    if n * m > _MOST_PAIRS:
        raise InvalidInput(f"The LightGBM file is damaged: {m:,} lists of categories for {n:,} columns.")
    ways = np.zeros(
        (n + 1, m + 1), np.int64
    )  # to give the lists from the second number on to columns from the first on
    ways[n, m] = 1
    for j in range(n - 1, -1, -1):
        for k in range(m, -1, -1):
            taken = ways[j + 1, k + 1] if k < m and _fits(infos[j], is_categorical[j], len(known[k])) else 0
            ways[j, k] = min(2, taken + (0 if is_categorical[j] else ways[j + 1, k]))
    if ways[0, 0] != 1:
        raise UnsupportedModel(
            "This LightGBM model takes some pandas categories as numbers (ordered ones, or such that "
            "categorical_feature leaves out), and its file does not say which columns they are; make them unordered, "
            "X[name].cat.as_unordered(), or write their codes as numbers, and train it again."
        )
    found = []
    for j in range(n):
        if is_categorical[j] or not ways[j + 1, len(found)]:  # it cannot be left out
            found.append(j)
    return found


def _fits(info: str, is_categorical: bool, n_labels: int) -> bool:
    """Whether what a column holds can be the codes of so many categories."""
    if info == "none":
        return True
    if is_categorical and not info.startswith("["):
        return all(int(part) < n_labels for part in info.split(":"))
    low, high = (float(end) for end in info.strip("[]").split(":"))
    return low == int(low) >= 0 and high == int(high) < n_labels


def _integers(info: str) -> tuple[int, ...]:
    seen = sorted(int(part) for part in info.split(":")) if info != "none" else []
    return tuple(part for part in seen if part >= 0) or (0,)


def _setting(text: str, name: str) -> str:
    _, found, rest = text.partition(f"\n[{name}: ")
    return rest.partition("]")[0] if found else ""
