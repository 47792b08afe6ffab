"""What a table's columns probably are, from their dtypes, values and names: the fields of a `Feature` for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.schema.dates import DAY, dates_of, micros_of
from treefocus.schema.steps import Steps

_STEPS = (1000.0, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01)
_ROWS = 3  # fewer say nothing of what a column of floats holds
_FEWEST = 20  # different values, before a common step beyond the decimals is more than chance
_FEW = 10  # different values that make a scale, from 1 to 5 say, or a list, 36 and 60 say
_OFTEN = 5  # how often each of a list occurs
_DECIMALS = 12  # after the point, at most
_DIGITS, _DIGITS_SINGLE = 12, 6  # that people write; numbers that were computed have more
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
        return {"name": name, "kind": "boolean"}
    if dtype.is_numeric():
        numbers = _numbers(column)
        assert numbers is not None
        is_single = str(dtype) in ("Float32", "Float16")
        return {"name": name} | guess_numbers(numbers, is_whole=dtype.is_integer(), is_single=is_single)
    native: Any = getattr(column.to_native(), "dtype", None)
    if getattr(native, "categories", None) is not None:  # pandas' categorical, polars' Enum
        return _of_labels(name, list(native.categories), bool(getattr(native, "ordered", False)))
    if isinstance(dtype, nw.Datetime):
        cells: list[Any] = column.to_list()
        return _of_dates(name, dates_of(cells) or []) | ({"unit": "UTC"} if dtype.time_zone else {})
    if dtype in (nw.Date, nw.String, nw.Object) and (found := dates_of(column.to_list())) is not None:
        return _of_dates(name, found)
    if dtype in (nw.String, nw.Object, nw.Categorical):
        return _of_labels(name, _distinct(column.to_list()))
    if column.null_count() == len(column):  # polars' and Arrow's dtype of a column of nulls
        return {"name": name, "kind": "continuous"}
    raise InvalidInput(f"Column {name!r} is of dtype {dtype}; a schema knows numbers and categories.")


def _of_array(name: str, column: NDArray[Any]) -> Guess:
    numbers = _as_numbers(column)
    if numbers is None and column.dtype.kind in "OU" and (found := dates_of(column.tolist())) is not None:
        return _of_dates(name, found)
    if numbers is None:
        return _of_labels(name, _distinct(column.tolist()))
    if column.dtype.kind == "b":
        return {"name": name, "kind": "boolean"}
    is_single = column.dtype in (np.float32, np.float16)
    return {"name": name} | guess_numbers(numbers, is_whole=column.dtype.kind in "iu", is_single=is_single)


def _of_dates(name: str, known: Sequence[date | None]) -> Guess:
    """Days, unless one of them has a time of the day."""
    has_times = any(isinstance(one, datetime) and micros_of(one) % (DAY * 10**6) for one in known)
    return {"name": name, "kind": "datetime" if has_times else "date"}


def _distinct(values: list[Any]) -> list[Any]:
    labels = {value for value in values if value is not None and value == value}
    return sorted(labels, key=lambda label: (str(type(label)), label))


def _of_labels(name: str, labels: list[Any], is_ordered: bool = False) -> Guess:
    is_ordinal = is_ordered and len(labels) > 1
    return {"name": name, "kind": "ordinal" if is_ordinal else "categorical", "values": tuple(labels)}


def guess_numbers(numbers: NDArray[np.float64], *, is_whole: bool = False, is_single: bool = False) -> Guess:
    """Kind and domain of a column of numbers, from its values: whatever its dtype, whole numbers are whole.

    is_whole: its dtype holds whole numbers only. is_single: its values are float32 values.
    """
    seen, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if not seen.size or (len(numbers) < _ROWS and not is_whole):
        return {"kind": "integer" if is_whole else "continuous"}
    decimals = 0 if is_whole else _decimals(seen, is_single)
    if _is_list(seen, counts, decimals):
        return {"kind": "integer" if decimals == 0 else "continuous", "values": tuple(_as_written(seen, is_single))}
    if decimals is None:
        return {"kind": "continuous"}
    finest = 10.0**-decimals if decimals == 0 else float(f"1e-{decimals}")
    step = _round_step(seen, is_single) if len(seen) >= _FEWEST else None
    step = finest if step is None else max(step, finest)
    if step != 1.0:
        return {"kind": "step", "step": int(step) if step > 1 else step}
    is_scale = len(seen) <= _FEW and len(numbers) > len(seen)
    return {"kind": "integer"} | ({"low": int(seen[0]), "high": int(seen[-1])} if is_scale else {})


def _is_list(seen: NDArray[np.float64], counts: NDArray[np.intp], decimals: int | None) -> bool:
    """Whether a few values, each of them often, are all there are: no two of them are neighbours in their decimals."""
    if not (1 < len(seen) <= _FEW and counts.min() >= _OFTEN):
        return False
    return decimals is None or bool((np.diff(seen) > 1.5 * 10.0**-decimals).all())


def _as_written(seen: NDArray[np.float64], is_single: bool) -> list[float]:
    """The values as their owner wrote them: 0.1 as a float32 is 0.1."""
    values = [float(str(np.float32(value))) if is_single else value for value in seen.tolist()]
    return [int(value) if value.is_integer() and abs(value) < 2**53 else value for value in values]


def _decimals(seen: NDArray[np.float64], is_single: bool) -> int | None:
    """The fewest decimals in which all values can be written, None where that takes more digits than people write."""
    most = float(np.abs(seen).max())
    few = seen[[0, len(seen) // 2, -1]]  # settle most columns, before all values are asked
    near = list(zip(few.tolist(), (3.0 * _spacing(few, is_single)).tolist(), strict=True))
    for decimals in range(_DECIMALS + 1):
        if decimals and most * 10.0**decimals >= 10.0 ** (_DIGITS_SINGLE if is_single else _DIGITS):
            return None
        can_be = all(abs(round(value, decimals) - value) <= far for value, far in near)
        if can_be and _are_multiples(seen, _steps(float(f"1e-{decimals}"), is_single)):
            return decimals
    return None


def _round_step(seen: NDArray[np.float64], is_single: bool) -> float | None:
    """The largest round step of which all values are multiples."""
    return next((step for step in _STEPS if _are_multiples(seen, _steps(step, is_single))), None)


@cache
def _steps(step: float, is_single: bool) -> Steps:
    """The multiples of one of the few steps that columns are tried with, made once."""
    return Steps.of(step, is_single=is_single)


def _are_multiples(seen: NDArray[np.float64], steps: Steps) -> bool:
    """Whether all values are, but for the rounding of a sum or two."""
    return bool((np.abs(steps.nearest(seen) - seen) <= 2.0 * _spacing(seen, steps.is_single)).all())


def _spacing(values: NDArray[np.float64], is_single: bool) -> NDArray[np.float64]:
    """How far the next float is from each value."""
    held = np.abs(values).astype(np.float32) if is_single else np.abs(values)
    return np.asarray(np.spacing(held), np.float64)


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
