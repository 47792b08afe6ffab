"""The model's answer over two features, and the way FOCUS took there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.kernels import reference
from treefocus.kernels.inputs import Descent
from treefocus.model.forest import LARGEST, Floats, Forest, Ints
from treefocus.problem.problem import Problem
from treefocus.schema.schema import Schema
from treefocus.search.focus import Focus

_PIECES = 400  # intervals a side of a map; more cannot be seen


@dataclass(frozen=True, eq=False)
class DecisionMap:
    """The model's answer over two features, the others held; exact, for the model is constant on each rectangle."""

    x_name: str
    y_name: str
    x_edges: Floats  # (n_x + 1,)
    y_edges: Floats  # (n_y + 1,)
    answer: Ints  # (n_y, n_x) index of the class
    classes: tuple[Any, ...]
    row: tuple[float, float]
    point: tuple[float, float] | None
    path: Floats | None  # (n_steps, 2) where FOCUS went
    x_labels: tuple[Any, ...] | None  # the categories at 0, 1, ..., None for numbers
    y_labels: tuple[Any, ...] | None
    is_through_answer: bool  # the other features have the answer's values, not the row's


def map_columns(
    schema: Schema, changed: list[int], asked: tuple[str | int | None, str | int | None]
) -> tuple[int, int]:
    """The two columns of a map: those asked for, else those that change most, else the first ones."""
    chosen = [None if name is None else schema.index(name) for name in asked]
    ranked = [*changed, *(j for j in range(len(schema)) if j not in changed)]
    free = (j for j in ranked if j not in chosen)
    first, second = (next(free, 0) if j is None else j for j in chosen)
    return first, second


def decision_map(
    problem: Problem, schema: Schema, point: Floats | None, columns: tuple[int, int], with_path: bool
) -> DecisionMap:
    """Map a problem of one row over two columns; other features as in the answer where it changes them."""
    problem = problem.relaxed or problem
    row = problem.batch.rows[0]
    others = np.delete(np.arange(len(row)), columns)
    is_through = point is not None and not np.array_equal(point[others], row[others], equal_nan=True)
    base = row if point is None else point
    path = focus_path(problem)[:, list(columns)] if with_path else None
    if path is not None:
        path = path[~np.isnan(path).any(axis=1)]
    known = problem.model.categories
    labels = [None if known is None else known.labels[j] for j in columns]
    edges = [
        _edges(problem, point, path, j, side) if own is None else np.arange(len(own) + 1, dtype=np.float64) - 0.5
        for side, (j, own) in enumerate(zip(columns, labels, strict=True))
    ]
    middle_x, middle_y = ((edge[:-1] + edge[1:]) / 2 for edge in edges)
    points = np.repeat(base[None, :], len(middle_x) * len(middle_y), axis=0)
    points[:, columns[0]] = np.tile(middle_x, len(middle_y))
    points[:, columns[1]] = np.repeat(middle_y, len(middle_x))
    answer = kernels.predict(problem.forest, points).reshape(len(middle_y), len(middle_x))
    x, y = columns
    return DecisionMap(
        schema.names[x], schema.names[y], edges[0], edges[1], answer, tuple(problem.forest.classes.tolist()),
        (float(row[x]), float(row[y])), None if point is None else (float(point[x]), float(point[y])), path,
        labels[0], labels[1], is_through,
    )  # fmt: skip


def _edges(problem: Problem, point: Floats | None, path: Floats | None, column: int, side: int) -> Floats:
    """The thresholds of a column around the row, the answer and the path, with some room at both ends."""
    grid = kernels.grid_of(problem.forest)
    cuts = grid.threshold[grid.start[column] : grid.start[column + 1]]
    cuts = cuts[np.abs(cuts) < LARGEST]
    seen = [problem.batch.rows[:, column], [] if point is None else [point[column]]]
    seen += [[] if path is None else path[:, side]]
    marks = np.concatenate([np.asarray(part, np.float64) for part in seen])
    marks = marks[np.isfinite(marks)]
    if not marks.size:  # missing, before and after
        marks = cuts[[0, -1]] if cuts.size else np.zeros(1)
    scale = problem.batch.scale[column]
    low, high = marks.min() - 0.08 * scale, marks.max() + 0.08 * scale
    inside = cuts[(cuts > low) & (cuts < high)]
    if len(inside) > _PIECES:
        inside = inside[np.linspace(0, len(inside) - 1, _PIECES).astype(np.intp)]
    return np.unique(np.concatenate([[low], inside, [high]]))


def focus_path(problem: Problem, focus: Focus | None = None) -> Floats:
    """(n_steps, n_features) where FOCUS goes from the row of a problem of one row, in the user's units."""
    chosen = Focus(iterations=300) if focus is None else focus
    path: list[Floats] = []

    def watched(forest: Forest, points: Floats) -> Ints:
        path.append(points[0].copy())
        return kernels.predict(forest, points)

    descent = Descent(float(chosen.beta), float(chosen.alpha), int(chosen.iterations))
    reference.descend(
        problem.forest, chosen.soft_forest(problem.forest, problem.batch), problem.distance, descent, problem.batch,
        soft_loss=kernels.soft_loss, predict=watched,
    )  # fmt: skip
    return np.array(path)
