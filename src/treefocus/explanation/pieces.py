"""Why nothing closer has room to move, written down: the domain cut into pieces, as `search/tolerant.py` cuts it.

A piece without a closer answer is proven as it is without room. In any other one, an answer has a point in its room
that the model refuses; that point grows to a box of refused points, and what is near it is cut out of the piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.explanation.cells import ProofCells
from treefocus.kernels.inputs import Batch, CompiledDistance, Norms
from treefocus.problem.around import deciders
from treefocus.problem.problem import Problem
from treefocus.search.parts import Subdomain, cut, put_to_parts
from treefocus.search.refused import Refused
from treefocus.search.tolerant import refused_near

_MOST_PIECES = 3000


@dataclass(frozen=True, eq=False)
class CutOff:
    """A split: its first side is a piece, which differs from the other side in one column."""

    column: int
    piece: Subdomain

    def holds(self, cells: ProofCells, batch: Batch) -> NDArray[np.bool_]:
        """Which cells of the column are on the first side."""
        choices = batch.choices
        place = np.flatnonzero(choices.column == self.column)
        is_open = np.ones(len(cells.code), bool)
        if place.size:
            own = self.piece.is_open[choices.start[place[0]] : choices.start[place[0] + 1]]
            is_open = np.asarray(own[cells.code], bool)
            if choices.is_category[place[0]]:
                return is_open
        inside = (cells.first >= self.piece.low[self.column]) & (cells.last <= self.piece.high[self.column])
        return np.asarray(is_open & (inside | np.isnan(cells.first)))


@dataclass(frozen=True, eq=False)
class Near:
    """What is left of a piece is near a box of points that a model refuses."""

    refused: Refused

    def holds(self, column: int, cells: ProofCells) -> NDArray[np.bool_]:
        """Which cells of a column are in that box."""
        if column in self.refused.categories:
            return np.asarray(self.refused.categories[column][cells.code])
        low, high = self.refused.low[column], self.refused.high[column]
        return np.asarray(np.isnan(cells.first) if np.isnan(low) else (cells.first >= low) & (cells.last <= high))


Searched = list[kernels.RecordedGoal]  # a piece without a closer answer, goal by goal; no goals: nothing is in it
Written = CutOff | Near | Searched


def cuts_of(one: Written, batch: Batch) -> Iterator[tuple[int, float]]:
    """Columns, and numbers at which their cells have to begin; column -1 is the length along the row."""
    if isinstance(one, CutOff):
        ends = [(one.column, one.piece.low[one.column], one.piece.high[one.column])]
    elif isinstance(one, Near):
        ends = list(zip(range(len(one.refused.low)), one.refused.low, one.refused.high, strict=True))
    else:
        ends = [(column, value, value) for _, values, _ in one for column, value in values]
    for column, low, high in ends:
        if column < 0 or not batch.is_category[column]:
            yield column, float(low)
        if column >= 0 and not batch.is_category[column]:
            yield column, float(np.nextafter(high, np.inf))


def cut_to_pieces(problem: Problem, distance: Norms | CompiledDistance, limit: float, node_limit: int) -> list[Written]:
    """Splits and pieces of a problem of one row, in pre-order; nothing if there are too many, or one is undecided."""
    plain = problem.without_room()
    waiting: list[Written | Subdomain] = [Subdomain.whole(plain.batch, 0, 0.0)]
    written: list[Written] = []
    n_pieces = n_boxes = 0
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Subdomain):
            written.append(one)
            continue
        n_pieces += 1
        made = _of_piece(problem, put_to_parts(plain, np.zeros(1, np.intp), [one]), one, distance, limit, node_limit)
        n_boxes += sum(len(boxes) for step in made if isinstance(step, list) for boxes, _, _ in step)
        if not made or n_pieces > _MOST_PIECES or n_boxes > node_limit:
            return []
        waiting += reversed(made)
    return written


def _of_piece(
    problem: Problem, asked: Problem, piece: Subdomain, distance: Norms | CompiledDistance, limit: float, n: int
) -> list[Written | Subdomain]:
    """What is written of a piece, and the pieces that it is cut into; nothing if it stays undecided."""
    if not asked.has_box[0]:
        return [[]]
    found = kernels.exact(asked.forest, distance, asked.batch, asked.batch.rows, np.array([limit]), node_limit=n)
    if not found.distance[0] < limit:
        goals = kernels.record_proof(asked.forest, distance, asked.batch, limit, node_limit=n)
        return [goals] if goals else []
    point = found.points[0]
    around = problem.looked_around(point[None])
    if around.by[0] < 0 or problem.room is None:
        return []
    decider = deciders((problem.relaxed or problem).forest)[around.by[0]]
    refused = refused_near(decider, problem.batch, point, around.bad[0])
    made: list[Written | Subdomain] = []
    for column, own in cut(piece, problem.batch, problem.room, point, refused):
        made += [CutOff(column, own), own]
    return [*made, Near(refused)]
