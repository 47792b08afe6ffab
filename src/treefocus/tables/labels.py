"""Categories as numbers and back: a column of labels becomes the numbers a forest knows them by.

Number n of a column's n labels stands for every category the model has not seen, NaN for a missing one
(`treefocus.model.categories`). A cell that an answer leaves alone comes back as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from treefocus.model.categories import Labels
from treefocus.model.forest import Floats, Forest


@dataclass(frozen=True, eq=False)
class Coding:
    """The labels of a model's columns, by name where the model has names."""

    labels: Labels
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, forest: Forest, names: tuple[str, ...] | None = None) -> Coding | None:
        """A forest's coding, None where all of its columns are numbers."""
        if forest.categories is None:
            return None
        return cls(forest.categories.labels, forest.feature_names or names)

    def for_columns(self, names: Sequence[str] | None, n_columns: int) -> Labels:
        """The labels of a table's columns, None where a column holds numbers."""
        if names is not None and self.names is not None:
            own = dict(zip(self.names, self.labels, strict=True))
            return tuple(own.get(name) for name in names)
        return tuple(self.labels[j] if j < len(self.labels) else None for j in range(n_columns))


def encode(values: Iterable[Any], labels: Sequence[Any]) -> Floats:
    """(n,) the number of every value among the labels; where these are texts, a whole number is what it prints as."""
    number = {label: float(k) for k, label in enumerate(labels)}
    unseen, are_texts = float(len(labels)), all(isinstance(label, str) for label in labels)

    def one(value: Any) -> float:
        try:
            found = number.get(value)
        except TypeError:  # a list, say, which is nobody's label
            return unseen
        if found is not None:
            return found
        if is_null(value):
            return np.nan
        return number.get(str(int(value)), unseen) if are_texts and isinstance(value, Integral) else unseen

    return np.array([one(value) for value in values], np.float64)


def encode_text(cells: Iterable[str], labels: Sequence[Any]) -> Floats:
    """(n,) the same for the cells of a text file, where a label stands as it prints; an empty cell is missing."""
    by_text = {str(label): float(k) for k, label in enumerate(labels)}
    numbers = {float(label): float(k) for k, label in enumerate(labels) if isinstance(label, int | float)}
    unseen = float(len(labels))

    def one(cell: str) -> float:
        if cell in by_text:
            return by_text[cell]
        text = cell.strip()
        if not text:
            return np.nan
        try:
            return by_text[text] if text in by_text else numbers.get(float(text), unseen)
        except ValueError:
            return unseen

    return np.array([one(cell) for cell in cells], np.float64)


def decode(codes: Floats, labels: Sequence[Any], before: Floats, cells: Sequence[Any]) -> list[Any]:
    """The labels behind the numbers; where a number is as it was `before`, the cell as it was written."""
    whole = next((type(cell) for cell in cells if isinstance(cell, Integral)), None)
    kind = whole if all(isinstance(label, str) for label in labels) else None
    return [
        cell if code == old or (code != code and old != old) else _as_whole(label_of(code, labels), kind)
        for code, old, cell in zip(codes.tolist(), before.tolist(), cells, strict=True)
    ]


def _as_whole(label: Any, kind: Any) -> Any:
    """A text as the whole number of that kind that it prints, for a column that holds such."""
    return kind(int(label)) if kind is not None and label is not None and _is_whole(label) else label


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def label_of(code: float, labels: Sequence[Any]) -> Any:
    """The label behind one number, None for a missing value and for an unseen one."""
    return labels[int(code)] if 0 <= code < len(labels) else None


def is_null(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or a library's own word for it."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA does not say whether it equals itself; an array says it too often
        return type(value).__name__ == "NAType"


def label_or_text(code: float, labels: Sequence[Any], text: str) -> Any:
    """The category of a number, or the text as it was written where there is none."""
    known = label_of(code, labels)
    return known if known is not None or np.isnan(code) else text
