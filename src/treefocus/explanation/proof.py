"""The proof of a certificate: why no answer is nearer than is claimed, box by box (docs/proof.md).

One more search, at the claim itself, writes down every split and every reason. Here its cells are told as ranges of
allowed values, so that `treefocus.check`, which reads it, needs to know nothing of grids, and believes none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.explanation.cells import ProofCells
from treefocus.explanation.pieces import CutOff, Near, Written, cut_to_pieces, cuts_of
from treefocus.kernels.inputs import CompiledDistance, Metric, Norms
from treefocus.kernels.rules import LinearRule
from treefocus.model.forest import Floats
from treefocus.problem.around import deciders, opposite
from treefocus.problem.distances import L1, L2, LINF
from treefocus.problem.problem import Problem

FORMAT = "treefocus-proof-3"
_BELOW = 1e-9  # of the bound: the search is right to 1e-10, and is asked a little less than what it has proven
_CLAIMED = 4e-9  # of the bound: and what is claimed is a little less again
_NOISE = {Metric.COSINE: 5e-11, Metric.MAHALANOBIS: 1e-9, Metric.MAHALANOBIS_SQUARED: 1e-18}  # and this besides
_MOST_BOXES = 300_000  # more would be no proof that anybody wants to keep: about two million bytes
_DIGITS = 14  # of a point: the bound that it gives is right to many more than are claimed
_BEYOND = 1e-6  # of the way that a column can go under Mahalanobis: a cell begins so much behind it
_ABOVE, _BELOW_IT, _CELLS, _FROM, _UP_TO, _STAY, _SLICE = range(4, 11)  # splits, as proof.hpp has them
_EMPTY, _SCORE, _WEIGH, _SPLIT, _NEAR = 0, 1, 3, 4, 5  # what the boxes are written in; 2 is one more reason
_FINEST = 4096  # parts of a cosine's length; a column has an eighth of them


def prove(problem: Problem, lower_bound: float, point: Floats | None = None) -> Iterator[dict[str, Any]]:
    """Proofs of a problem of one row, the shortest first; none where there is nothing to prove, or nothing to write.

    point: the answer, around which there may have to be room to move. The last proof may be of that alone.
    """
    distance = problem.distance.compiled if problem.distance.norms is None else problem.distance.norms
    models = problem.model, *(one.forest for one in problem.also)
    is_wrapped = any(bool(own.maps or own.rounding or own.voices) for own in models)  # no sum of leaves is its number
    below = lower_bound * (1 - _CLAIMED) - (_NOISE[distance.metric] if isinstance(distance, CompiledDistance) else 0.0)
    if distance is None or is_wrapped:
        return
    around: dict[str, Any] = {}
    if problem.room is not None and point is not None:
        found = _around(problem, point)
        if not found:
            return
        around = {"around": found}
    written = _searched(problem.loosened(), distance, lower_bound * (1 - _BELOW)) if below > 0 else []
    n_parts = 64 if isinstance(distance, CompiledDistance) and distance.metric is Metric.COSINE else _FINEST
    while written and n_parts <= _FINEST:
        yield _InCells(problem.loosened(), distance, written, below, n_parts).record() | around
        n_parts *= 8
    if around:
        yield {"format": FORMAT, "lengths": [], **around}


def _searched(problem: Problem, distance: Norms | CompiledDistance, limit: float) -> list[Written]:
    """Why no answer is nearer than this, in the order in which it is written; nothing if it came to no end."""
    if problem.room is not None:
        return cut_to_pieces(problem, distance, limit, _MOST_BOXES)
    if not problem.has_box[0]:
        return [[]]
    goals = kernels.record_proof(problem.forest, distance, problem.batch, limit, node_limit=_MOST_BOXES)
    return [goals] if goals else []


def _around(problem: Problem, point: Floats) -> list[dict[str, Any]]:
    """Of every model, that it gives the wanted outcome everywhere around a point; nothing if that is not sure."""
    asked = problem.tightened() or problem
    asked = asked.relaxed or asked
    assert problem.room is not None
    ends = problem.room.boxes(asked.batch, point[None])
    norms = Norms(np.eye(4, 1) * np.ones(len(point)))
    found = []
    for decider in deciders(asked.forest):
        batch = opposite(decider, asked.batch, np.zeros(1, np.intp), point[None], ends)
        goals = kernels.record_proof(decider.forest, norms, batch, np.inf, node_limit=_MOST_BOXES)
        if not goals:
            return []
        own = replace(asked, forest=decider.forest, batch=batch, room=None)
        if batch.target[0] >= 0 and decider.forest.decision == "argmax":  # the checker knows no class that is ahead
            ahead, to = int(batch.origin[0]), int(batch.target[0])
            goals = [_in_order(goal, ahead, to, decider.forest.n_classes) for goal in goals]
        found.append(_InCells(own, norms, [goals], np.inf, _FINEST).record())
    return found


class _InCells:
    """What the search has recorded, in the cells of the proof."""

    def __init__(
        self, problem: Problem, distance: Norms | CompiledDistance, written: list[Written], below: float, n_parts: int
    ) -> None:
        batch = problem.batch
        self.batch, self.written, self.below = batch, written, below
        self.n_goals = next((len(one) for one in written if isinstance(one, list) and one), _n_goals(problem))
        n = batch.rows.shape[1]
        at: list[set[float]] = [set() for _ in range(n + 1)]
        for column, value in (cut for one in written for cut in cuts_of(one, batch)):
            at[column].add(value)
        compiled = distance if isinstance(distance, CompiledDistance) else None
        lengths = at.pop()
        if compiled is not None and compiled.metric is not Metric.COSINE:
            self._reach(problem, compiled, below, at)
        self.lengths: list[float] = []
        self.n_parts = n_parts
        if compiled is not None and compiled.metric is Metric.COSINE:
            weight = np.where(~batch.is_category & ~np.isnan(batch.rows[0]), compiled.weight, 0.0)
            for f in np.flatnonzero(weight).tolist():
                at[f] |= set(np.linspace(*self._seen(problem, f), n_parts // 8 + 1).tolist())
            self.row_length, self.lengths = self._lengths(problem, weight, lengths)
        self.cells = [ProofCells.of(problem.forest, batch, f, own) for f, own in enumerate(at)]
        norms = None if isinstance(distance, CompiledDistance) else distance
        if norms is not None and np.isfinite(below) and problem.room is None:  # no split looks at what is too far
            sizes = np.sqrt(norms.weights[L2]), norms.weights[L1], norms.weights[LINF]
            with np.errstate(divide="ignore"):
                reach = below * batch.scale / np.maximum.reduce(sizes) * (1 + _BEYOND)
            self.cells = [
                own if batch.is_category[f] else own.merged(float(batch.rows[0, f]), float(reach[f]))
                for f, own in enumerate(self.cells)
            ]
        self.is_priced = [
            not any(np.isnan(self.cells[f].begin).any() for f in rule.columns)
            for rule in batch.rules.all
            if isinstance(rule, LinearRule)
        ]

    @staticmethod
    def _reach(problem: Problem, distance: CompiledDistance, below: float, at: list[set[float]]) -> None:
        """How far a column alone can go below the claim: what is farther is a cell of its own."""
        if not np.isfinite(below):
            return
        limit = below**2 if distance.metric is Metric.MAHALANOBIS else below
        away = np.sqrt(limit * np.diag(np.linalg.inv(distance.inverse))) * problem.batch.scale * (1 + _BEYOND)
        for f, x in enumerate(problem.batch.rows[0]):
            if np.isfinite(x + away[f]):
                at[f] |= {float(x - away[f]), float(x + away[f])}

    def _lengths(self, problem: Problem, weight: Floats, cuts: set[float]) -> tuple[float, list[float]]:
        """The row's length, and where the lengths along it are cut: where the search has, and evenly in between."""
        batch, row = problem.batch, _in_space(problem)
        length = float(np.sqrt((weight * row**2).sum()))
        ends = np.zeros(2)
        for f in np.flatnonzero(weight * row).tolist():
            place = (np.array([*self._seen(problem, f)], np.float64) - batch.offset[f]) / batch.scale[f]
            ends += np.sort(weight[f] * row[f] * place)
        known = [float(cut * length) for cut in cuts]
        low, high = max(float(ends[0]), 0.0), max(float(ends[1]), *known, 0.0)
        even = [*np.linspace(low, high, self.n_parts + 1), *(high * 2.0 ** np.arange(1, 20))]
        return length, sorted({float(one) for one in (*known, *even) if one > 0 and np.isfinite(one)})

    @staticmethod
    def _seen(problem: Problem, f: int) -> tuple[float, float]:
        """From where to where a column's values are looked at closely: its ends, or some way around where it is cut."""
        grid, batch = kernels.grid_of(problem.forest), problem.batch
        cuts = grid.threshold[grid.start[f] : grid.start[f + 1]]
        about = np.append(cuts[np.isfinite(cuts)], batch.rows[0, f])
        far = 4 * (np.abs(about).max() + abs(batch.offset[f]) + batch.scale[f])
        return max(float(batch.low[0, f]), -far), min(float(batch.high[0, f]), far)

    def record(self) -> dict[str, Any]:
        """The proof as it stands in the certificate."""
        near = [one for one in self.written if isinstance(one, Near)]
        refused = [[_edges(one.holds(f, own)) for f, own in enumerate(self.cells)] for one in near]
        return {
            "format": FORMAT,
            "below": self.below if np.isfinite(self.below) else str(self.below),
            "cells": [[[_number(a), _number(b)] for a, b in zip(c.first, c.last, strict=True)] for c in self.cells],
            "lengths": self.lengths,
            "goals": [self._goal(number) for number in range(self.n_goals)],
            **({"refused": refused} if refused else {}),
        }

    def _goal(self, number: int) -> dict[str, Any]:
        """The boxes of a goal and their weights."""
        boxes: list[int] = []
        weights: list[tuple[list[float], list[float]]] = []
        n_near = 0
        for one in self.written:
            if isinstance(one, CutOff):
                boxes += self._split_off(one.column, one.holds(self.cells[one.column], self.batch))
            elif isinstance(one, Near):
                boxes += [_NEAR, n_near]
                n_near += 1
            elif not one:
                boxes.append(_EMPTY)
            else:
                tokens, values, own = one[number]
                boxes += self._boxes(tokens, values, len(weights))
                weights += [self._weights(*pair) for pair in own]
        return {"boxes": boxes, "weights": weights}

    def _boxes(self, tokens: list[int], values: list[tuple[int, float]], n_weights: int) -> list[int]:
        """What the search has recorded of a goal; its weights come after so many others."""
        boxes: list[int] = []
        for token, *numbers in _steps(tokens):
            if token == _WEIGH:
                boxes += [token, numbers[0] + n_weights]
            elif token < _ABOVE:
                boxes += [token, *numbers]
            else:
                boxes += self._split(token, numbers, values)
        return boxes

    def _split(self, token: int, numbers: list[int], values: list[tuple[int, float]]) -> list[int]:
        """A split as ranges of cells on the first side."""
        if token == _SLICE:
            begin = 1 + self.lengths.index(float(values[numbers[0]][1] * self.row_length))
            return [_SPLIT, len(self.cells), 1, begin, len(self.lengths) + 1]
        f = numbers[0]
        value = values[numbers[1]][1] if token in (_FROM, _UP_TO) else 0.0
        return self._split_off(f, _first_side(self.cells[f], token, numbers[1:], value))

    @staticmethod
    def _split_off(column: int, is_first: NDArray[np.bool_]) -> list[int]:
        """A split into some cells of a column and all others."""
        edges = _edges(is_first)
        return [_SPLIT, column, len(edges) // 2, *edges]

    def _weights(self, point: list[float], prices: list[float]) -> tuple[list[float], list[float]]:
        """A point to some digits, any where none is the closest.

        A rule asks nothing where one of its values may be missing, and has no price then.
        """
        rounded = [float(f"{value:.{_DIGITS}g}") if isfinite(value) else 0.0 for value in point]
        return rounded, [price * own for price, own in zip(prices, self.is_priced, strict=False)]


def _first_side(cells: ProofCells, token: int, codes: list[int], value: float) -> NDArray[np.bool_]:
    """Which cells of a column are on the first side of a split; a missing value is on the second of one at a value."""
    if token == _STAY:
        return cells.is_own
    if token == _CELLS:
        return np.isin(cells.code, codes[1:])
    if token in (_ABOVE, _BELOW_IT):
        return np.asarray((cells.code >= codes[0]) == (token == _ABOVE))
    with np.errstate(invalid="ignore"):
        return np.asarray(cells.begin >= value if token == _FROM else cells.begin <= value)


def _steps(tokens: list[int]) -> Iterator[list[int]]:
    """What the search has recorded, one by one."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        n_more = 2 + tokens[at + 2] if token == _CELLS else 2
        if token < _ABOVE or token in (_STAY, _SLICE):
            n_more = 0 if token < _ABOVE and token not in (_SCORE, _WEIGH) else 1
        yield tokens[at : at + 1 + n_more]
        at += 1 + n_more


def _in_order(goal: kernels.RecordedGoal, ahead: int, to: int, n_classes: int) -> kernels.RecordedGoal:
    """The same where the tests against other classes stand in the classes' order, and not one class ahead of them."""
    tokens, values, weights = goal
    order = [ahead, *(k for k in range(n_classes) if k not in (ahead, to))]
    steps = [[_SCORE, sorted(order).index(order[one[1]])] if one[0] == _SCORE else one for one in _steps(tokens)]
    return [number for step in steps for number in step], values, weights


def _edges(is_in: NDArray[np.bool_]) -> list[int]:
    """Where ranges of cells begin, and where they end."""
    return [int(at) for at in np.flatnonzero(np.diff(is_in.astype(np.int8), prepend=0, append=0))]


def _in_space(problem: Problem) -> Floats:
    """(n_features,) the row where distance is measured; 0 where it is no number."""
    batch = problem.batch
    place = (batch.rows[0] - batch.offset) / batch.scale
    return np.where(batch.is_category | np.isnan(place), 0.0, place)


def _number(value: Floats) -> float | str:
    return "nan" if np.isnan(value) else float(value)


def _n_goals(problem: Problem) -> int:
    """How many ways there are to be an answer."""
    forest = (problem.relaxed or problem).forest
    return forest.n_classes - 1 if problem.batch.target[0] < 0 and forest.decision == "argmax" else 1
