"""Groups of people: read from whatever the user has, and put in an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.explanation.change import plain
from treefocus.tables.labels import is_null

MOST_GROUPS = 1_000  # crossings; more are no groups any more
GroupColumns = dict[str, list[Any]]  # per column a label a row
Key = tuple[Any, ...]  # a label a column


def as_group_columns(groups: Any, n_rows: int, own_column: Callable[[str], list[Any]]) -> GroupColumns:
    """What `groups=` says: names of columns of the rows, a DataFrame, a mapping, or a label a row."""
    if groups is None:
        return {}
    if isinstance(groups, str):
        return {groups: own_column(groups)}
    frame = nw.from_native(groups, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        found = {str(name): frame.get_column(name).to_list() for name in frame.columns}
    elif isinstance(frame, nw.Series):
        found = {str(frame.name or "group"): frame.to_list()}
    elif isinstance(groups, Mapping):
        found = {str(name): list(labels) for name, labels in groups.items()}
    else:
        listed = list(groups)
        if len(listed) != n_rows and listed and all(isinstance(one, str) for one in listed):
            return {name: own_column(name) for name in listed}
        found = {"group": listed}
    for name, labels in found.items():
        if len(labels) != n_rows:
            reject(f"groups[{name!r}]", f"a label for each of the {n_rows} rows", len(labels))
    return {name: [_label(one) for one in labels] for name, labels in found.items()}


def keyed_rows(columns: Mapping[str, Sequence[Any]], n_rows: int) -> dict[Key, NDArray[np.intp]]:
    """The rows of every crossing of groups; without columns all rows are one."""
    rows: dict[Key, list[int]] = {}
    for i, key in enumerate(zip(*columns.values(), strict=True) if columns else [()] * n_rows):
        rows.setdefault(tuple(map(_label, key)), []).append(i)
    check_many(len(rows))
    return {key: np.array(own, np.intp) for key, own in rows.items()}


def check_many(n_groups: int) -> None:
    """Refuse what are no groups, such as an age in years by an income."""
    if n_groups > MOST_GROUPS:
        raise InvalidInput(
            f"groups must have at most {MOST_GROUPS:,} different crossings, got more than that: put numbers into bands."
        )


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Keys by their labels: numbers by size, text by the alphabet, missing ones last."""
    return sorted(keys, key=lambda key: tuple(map(_rank, key)))


def _rank(label: Any) -> tuple[int, float, str]:
    if label is None:
        return 2, 0.0, ""
    if isinstance(label, bool | int | float):
        return 0, float(label), ""
    return 1, 0.0, str(label)


def _label(value: Any) -> Any:
    """A label as Python's own value, None where it is missing, whole numbers as such."""
    if is_null(value):
        return None
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
