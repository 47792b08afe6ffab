"""Which answer is wanted instead: another class, a given one, a probability, or an interval of what is predicted.

A question of the last two kinds is put to a variant of the forest that has two classes, no and yes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from operator import ge, le
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.forest import LARGEST, Forest, Ints
from treefocus.kernels.reference import shown

ANY_OTHER = -1
NO, YES = 0, 1
_KEPT = 8  # variants of a forest that are kept for the next question
_variants: WeakKeyDictionary[Forest, dict[Any, Forest]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # a server asks from several threads


@dataclass(frozen=True)
class Probability:
    """A class with at least this probability: `Probability("approved", 0.7)`, a margin against a model's noise."""

    label: Any
    at_least: float

    def __post_init__(self) -> None:
        if not (isinstance(self.at_least, Real) and 0 < self.at_least < 1):
            reject("Probability.at_least", "a number between 0 and 1", repr(self.at_least))


@dataclass(frozen=True)
class Interval:
    """A predicted value from low to high, both included: `Interval(low=50_000)`; for models that predict a number."""

    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not isinstance(bound, Real) or np.isnan(float(bound)):
                reject(f"{type(self).__name__}", "from a number to a number", repr(bound))
        if not (self.low <= self.high and (self.low > -np.inf or self.high < np.inf)):
            reject(
                f"{type(self).__name__}", "from a low to a high value, one of them finite", f"{self.low}, {self.high}"
            )


@dataclass(frozen=True)
class Score(Interval):
    """A raw score from low to high, before any link function: `Score(low=0.5)`; for models with a single score."""


def put(target: Any, forest: Forest, n_rows: int) -> tuple[Forest, Ints]:
    """The forest that decides the question, and (n_rows,) the class to reach, `ANY_OTHER` for any but a row's own."""
    if forest.decision == "value" and isinstance(target, tuple) and len(target) == 2:
        target = Interval(*target)
    if isinstance(target, Probability):
        asked, answer = _likely(target, forest)
    elif isinstance(target, Interval):
        asked, answer = _between(target, forest), YES
    elif forest.decision == "value":
        raise InvalidInput(
            f"A {forest.source} predicts a number: say which is wanted, target=Interval(low, high), got {target!r}."
        )
    else:
        return forest, as_targets(target, forest, n_rows)
    return asked, np.full(n_rows, answer, np.int32)


def as_targets(target: Any, forest: Forest, n_rows: int) -> Ints:
    """(n_rows,) index of the class to reach, `ANY_OTHER` where `target` is None; one label, or one a row."""
    if target is None:
        return np.full(n_rows, ANY_OTHER, np.int32)
    labels = [target] if np.ndim(target) == 0 else list(target)
    if len(labels) not in (1, n_rows):
        reject("target", f"one class, or one a row ({n_rows})", f"{len(labels)}")
    found = [ANY_OTHER if label is None else _position(label, forest, "target") for label in labels]
    return np.broadcast_to(np.array(found, np.int32), (n_rows,)).copy()


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


def _position(label: Any, forest: Forest, parameter: str) -> int:
    plain = label.item() if isinstance(label, np.generic) else label
    position = {own: index for index, own in enumerate(forest.classes.tolist())}
    if not isinstance(plain, Hashable) or plain not in position:
        reject(parameter, f"one of {', '.join(map(repr, position)) or 'no classes'}", repr(plain))
    return position[plain]


def _likely(target: Probability, forest: Forest) -> tuple[Forest, int]:
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number, not a probability: give target=Interval(low, high).")
    label = _position(target.label, forest, "Probability.label")
    labels = np.array([False, True])
    if forest.decision == "argmax":
        return variant(forest, decision="likely", favoured=label, cut=float(target.at_least), classes=labels), YES
    if forest.link != "sigmoid":
        raise InvalidInput(f"A {forest.source} gives no probabilities; ask for a class or for Score(low, high).")
    p = float(target.at_least)
    if label == 1:
        cut = _up_to(np.log(p / (1.0 - p)), p, forest)
        return variant(forest, decision="at_least", cut=cut, classes=labels), YES
    cut = -_up_to(np.log(p / (1.0 - p)), p, forest)  # 1 - sigmoid(s) = sigmoid(-s)
    return variant(forest, decision="above", cut=cut, classes=labels), NO


def _between(target: Interval, forest: Forest) -> Forest:
    if forest.n_outputs != 1:
        raise InvalidInput(f"A {forest.source} has {forest.n_outputs} scores; ask for a class or for a Probability.")
    low, high = float(target.low), float(target.high)
    if not isinstance(target, Score):
        if forest.decision != "value":
            raise InvalidInput(f"A {forest.source} predicts a class: ask for one, for a Probability or for a Score.")
        low, high = _inside(low, high, forest)
    ends = max(low, -LARGEST), min(high, LARGEST)
    return variant(forest, decision="between", cut=ends[0], cut_high=ends[1], classes=np.array([False, True]))


def _inside(low: float, high: float, forest: Forest) -> tuple[float, float]:
    """The scores whose shown values lie in the interval."""
    if forest.link == "identity":
        return low, high
    inverse = np.log if forest.link == "exp" else lambda p: np.log(p / (1.0 - p))
    ends = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for value, inward, is_inside in ((low, np.inf, ge), (high, -np.inf, le)):
            end = float(inverse(np.float64(value))) if value > 0 else -np.inf
            end = np.inf if np.isnan(end) else end  # beyond what the link can show
            if np.isfinite(end):
                end = _first(end, inward, partial(_fits, forest, is_inside, value))
            ends.append(end)
    if not ends[0] <= ends[1]:
        reject("Interval", f"one that a {forest.source} can predict", f"{low} to {high}")
    return ends[0], ends[1]


def _up_to(score: float, probability: float, forest: Forest) -> float:
    """The smallest score from here on whose probability, as the library rounds it, is large enough."""
    margin = 1e-6 * (1.0 - probability) if forest.score_dtype == "float32" else 0.0
    return _first(score, np.inf, lambda tried: _shown(tried, forest) >= probability + margin)


def _first(start: float, way: float, holds: Callable[[float], bool]) -> float:
    """The first number from `start` on towards `way`, plus or minus infinity, of which something holds.

    What holds of a number holds of all beyond it. Steps double until it does, then the last one is halved.
    """
    if holds(start):
        return start
    before, step = start, float(np.spacing(abs(start)))
    while not holds(beyond := before + np.copysign(step, way)):
        if np.isinf(beyond):
            return float(beyond)
        before, step = float(beyond), 2 * step
    while (middle := before + (beyond - before) / 2) not in (before, beyond):
        before, beyond = (before, middle) if holds(middle) else (middle, beyond)
    return float(beyond)


def _fits(forest: Forest, is_inside: Callable[[float, float], bool], end: float, score: float) -> bool:
    return is_inside(_shown(score, forest), end)


def _shown(score: float, forest: Forest) -> float:
    return float(shown(forest, np.array([[score]]))[0, 0])
