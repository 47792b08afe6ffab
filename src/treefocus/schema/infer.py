"""What a table's columns probably are, from their dtypes, values and names: the fields of a `Feature` for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject

_STEPS = (1000.0, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01)
_FEWEST = 20  # different values, before a common step is more than chance
_FEW_WHOLE = 10  # different whole numbers that make a scale, from 1 to 5 say
_MARKS = "_=.:- "  # between a group's name and the category

Guess = dict[str, Any]


def guess(data: Any) -> list[Guess]:
    """Name, kind and domain of every column of a DataFrame, a matrix, or arrays by name; groups are folded."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        made = [_of_series(frame.get_column(name)) for name in frame.columns]
        numbers = [_numbers(frame.get_column(name)) for name in frame.columns]
    else:
        columns = data if isinstance(data, Mapping) else _columns(data)
        made = [_of_array(name, column) for name, column in columns.items()]
        numbers = [_as_numbers(column) for column in columns.values()]
    return _grouped(made, numbers)


def _columns(data: Any) -> dict[str, NDArray[Any]]:
    array = np.asarray(data)
    if array.ndim != 2:
        reject("Schema.infer", "given a table, rows by columns", f"{array.ndim} dimensions")
    return {f"feature {j}": array[:, j] for j in range(array.shape[1])}


def _of_series(column: nw.Series[Any]) -> Guess:
    name, dtype = str(column.name), column.dtype
    if dtype == nw.Boolean:
        return {"name": name, "kind": "integer", "low": 0, "high": 1}
    if dtype.is_numeric():
        numbers = _numbers(column)
        assert numbers is not None
        return _of_numbers(name, numbers, is_whole=dtype.is_integer())
    native: Any = getattr(column.to_native(), "dtype", None)
    if getattr(native, "categories", None) is not None:  # pandas' categorical, polars' Enum
        return _of_labels(name, list(native.categories), bool(getattr(native, "ordered", False)))
    if dtype in (nw.String, nw.Object, nw.Categorical):
        return _of_labels(name, _distinct(column.to_list()))
    if column.null_count() == len(column):  # polars' and Arrow's dtype of a column of nulls
        return {"name": name, "kind": "continuous"}
    raise InvalidInput(f"Column {name!r} is of dtype {dtype}; a schema knows numbers and categories.")


def _of_array(name: str, column: NDArray[Any]) -> Guess:
    numbers = _as_numbers(column)
    if numbers is None:
        return _of_labels(name, _distinct(column.tolist()))
    return _of_numbers(name, numbers, is_whole=column.dtype.kind in "iub")


def _distinct(values: list[Any]) -> list[Any]:
    labels = {value for value in values if value is not None and value == value}
    return sorted(labels, key=lambda label: (str(type(label)), label))


def _of_labels(name: str, labels: list[Any], is_ordered: bool = False) -> Guess:
    is_ordinal = is_ordered and len(labels) > 1
    return {"name": name, "kind": "ordinal" if is_ordinal else "categorical", "values": tuple(labels)}


def _of_numbers(name: str, numbers: NDArray[np.float64], is_whole: bool) -> Guess:
    seen = np.unique(numbers[np.isfinite(numbers)])
    if not seen.size:
        return {"name": name, "kind": "integer" if is_whole else "continuous"}
    step = _step(seen)
    if not (is_whole or step is not None):
        return {"name": name, "kind": "continuous"}
    if step is not None and step != 1.0 and len(seen) >= _FEWEST:
        return {"name": name, "kind": "step", "step": int(step) if step > 1 else step}
    if not is_whole and (step is None or step < 1.0):
        return {"name": name, "kind": "continuous"}
    found: Guess = {"name": name, "kind": "integer"}
    if len(seen) <= _FEW_WHOLE and len(numbers) > len(seen):
        found |= {"low": int(seen[0]), "high": int(seen[-1])}
    return found


def _step(seen: NDArray[np.float64]) -> float | None:
    """The largest round step of which all values are multiples."""
    for step in _STEPS:
        multiples = seen / step
        if (np.abs(multiples - np.rint(multiples)) <= 1e-9 * np.maximum(1.0, np.abs(multiples))).all():
            return step
    return None


def _numbers(column: nw.Series[Any]) -> NDArray[np.float64] | None:
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        return None
    return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)


def _as_numbers(column: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return None if column.dtype.kind in "US" else column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _grouped(made: list[Guess], numbers: list[NDArray[np.float64] | None]) -> list[Guess]:
    """One-hot groups folded: columns of 0 and 1 whose names begin alike and of which every row has one."""
    binary = [j for j, own in enumerate(numbers) if own is not None and own.size and np.isin(own, (0.0, 1.0)).all()]
    starts = {
        name[: k + 1] for j in binary if (name := made[j]["name"]) for k, mark in enumerate(name) if mark in _MARKS
    }
    groups: dict[int, list[int]] = {}
    taken: set[int] = set()
    for start in sorted(starts, key=lambda text: (-len(text), text)):
        members = [j for j in binary if j not in taken and made[j]["name"].startswith(start)]
        held = [column for j in members if (column := numbers[j]) is not None]
        if len(held) > 1 and (np.sum(held, axis=0) == 1.0).all():
            groups[members[0]] = members
            taken.update(members)
    result: list[Guess] = []
    names = {own["name"] for own in made}
    for j, own in enumerate(made):
        if j in groups:
            columns = tuple(made[k]["name"] for k in groups[j])
            result.append({"name": _group_name(columns, names), "kind": "one-hot", "columns": columns})
        elif j not in taken:
            result.append(own)
    return result


def _group_name(columns: tuple[str, ...], names: set[str]) -> str:
    length = 0
    while len({name[: length + 1] for name in columns}) == 1:
        length += 1
    cut = max(columns[0].rfind(mark, 0, length) for mark in _MARKS)
    name = columns[0][:cut].rstrip(_MARKS) or "group"
    while name in names:
        name += " group"
    return name
