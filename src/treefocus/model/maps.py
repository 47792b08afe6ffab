"""Monotone maps: what a wrapper around a model makes of the number that the model shows.

A calibration turns a score into a probability, and a transformed target is turned back: both grow with the number they
are given. So the trees stay as they are, and a question about the wrapper's number is one about the model's.
A map is a tuple, its name and its numbers, so that a forest with maps can be written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import reject

Map = tuple[Any, ...]
# The name of every map -> how many numbers or lists of numbers follow it.
_NUMBERS = {"affine": 2, "shifted": 2, "exp": 0, "expm1": 0, "platt": 2, "isotonic": 2, "above": 1, "at_least": 1}


def mapped(maps: Sequence[Map], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values after all maps, in the operations of the library that has them."""
    for name, *numbers in maps:
        values = _MAPS[name](values, *numbers)
    return values


def _platt(values: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    from scipy.special import expit  # not cheap to import

    return np.asarray(expit(-(a * values + b)))


def _isotonic(values: NDArray[np.float64], x: Sequence[float], y: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(np.interp(np.clip(values, x[0], x[-1]), x, y))


_MAPS: dict[str, Callable[..., Any]] = {
    "affine": lambda values, a, b: values * a + b,
    "shifted": lambda values, a, b: (values - b) / a,
    "exp": np.exp,
    "expm1": np.expm1,
    "platt": _platt,
    "isotonic": _isotonic,
    "above": lambda values, cut: (values > cut).astype(np.float64),  # a vote: 1 or 0
    "at_least": lambda values, cut: (values >= cut).astype(np.float64),
}


def as_maps(maps: Any) -> tuple[Map, ...]:
    """Maps as a file or an adapter gives them, if each is known and grows with what it is given."""
    if not isinstance(maps, list | tuple):
        reject("Forest.maps", "a list of maps", type(maps).__name__)
    found = []
    for one in maps:
        name, *numbers = one if isinstance(one, list | tuple) and one else ("",)
        if name not in _NUMBERS or len(numbers) != _NUMBERS[name]:
            reject("Forest.maps", f"one of {', '.join(_NUMBERS)}, with its numbers", repr(one)[:80])
        found.append((name, *(tuple(map(_finite, own)) if name == "isotonic" else _finite(own) for own in numbers)))
        if not _grows(found[-1]):
            reject("Forest.maps", "maps that grow with what they are given", repr(one)[:80])
    return tuple(found)


def _finite(number: Any) -> float:
    if not isinstance(number, Real) or not np.isfinite(float(number)):
        reject("Forest.maps", "of finite numbers", repr(number))
    return float(number)


def _grows(one: Map) -> bool:
    name, *numbers = one
    if name == "isotonic":
        x, y = (np.asarray(own) for own in numbers)
        return len(x) == len(y) > 0 and bool((np.diff(x) > 0).all() and (np.diff(y) >= 0).all())
    if name == "platt":
        return bool(numbers[0] < 0)
    return not numbers or name in ("above", "at_least") or bool(numbers[0] > 0)
