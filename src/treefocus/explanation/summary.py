"""What is computed about answers before it is drawn or told: probabilities, maps, paths, and views of a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.kernels import reference
from treefocus.kernels.inputs import Descent
from treefocus.model.forest import LARGEST, Bools, Floats, Forest, Ints
from treefocus.problem.problem import Problem
from treefocus.problem.targets import has_shares
from treefocus.schema.schema import Schema
from treefocus.search.base import Status
from treefocus.search.focus import Focus
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table

_PIECES = 400  # intervals a side of a map; more cannot be seen


def probabilities(forest: Forest, rows: Floats) -> Floats:
    """(n_rows, n_classes) what the source model's `predict_proba` says, as far as the forest knows.

    Where the forest has a link, by that; shares of votes are probabilities already, weighted votes and raw scores go
    through a softmax, a single score through a sigmoid around its cut.
    """
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number and has no probabilities; see predictions().")
    scores = kernels.hard_scores(forest, rows)
    if forest.n_outputs == 1 and forest.link == "sigmoid":
        second = reference.shown(forest, scores)[:, 0].astype(forest.score_dtype)
        return np.stack([1 - second, second], axis=1).astype(np.float64)
    if forest.n_outputs == 1:
        with np.errstate(over="ignore"):
            second = 1.0 / (1.0 + np.exp(forest.cut - scores[:, 0]))
        return np.stack([1.0 - second, second], axis=1)
    if forest.link in ("softmax", "sigmoid") or has_shares(forest):
        return reference.shown(forest, scores)
    if forest.tree_weight is not None and forest.leaf_distribution is None and (forest.leaf_value >= 0).all():
        total = scores.sum(axis=1, keepdims=True)
        return np.asarray(scores / np.where(total > 0, total, 1.0))
    if forest.leaf_distribution is not None:  # weighted votes, as AdaBoost counts them
        scores = scores / (forest.n_classes - 1)
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def predictions(forest: Forest, rows: Floats) -> Floats:
    """(n_rows,) the number that a model with a single score shows: what a regressor predicts, else the raw score."""
    scores = kernels.hard_scores(forest, rows)
    return (reference.shown(forest, scores) if forest.decision == "value" else scores)[:, 0]


def class_index(forest: Forest, label: Any) -> int:
    """The position of a class among the forest's."""
    return int(forest.classes.tolist().index(label))


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


def decision_map(
    problem: Problem, schema: Schema, point: Floats | None, columns: tuple[int, int], with_path: bool
) -> DecisionMap:
    """Map a problem of one row over two columns; other features as in the answer where it changes them."""
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


@dataclass(frozen=True)
class AskedFeature:
    """How often a feature is asked to change in a batch, and by how much, or to which category."""

    feature: str
    unit: str
    rows: int
    share: float  # of the rows with an answer
    n_up: int
    n_down: int
    typical_up: float | None  # the median step where it grows
    typical_down: float | None  # the median step where it shrinks, negative
    n_other: int = 0  # to another category, or from or to a missing value
    typical_other: Any = None  # the most common of those values, None for a missing one

    @property
    def typical(self) -> float:
        """The median step in the direction that is asked for more often."""
        step = self.typical_up if self.n_up >= self.n_down else self.typical_down
        return 0.0 if step is None else step

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


def asked(schema: Schema, table: Table, shown: Floats, moved: Bools, n_answered: int) -> list[AskedFeature]:
    """Every feature that changes in some answer, the most asked-for first; moved: (n_rows, n_features)."""
    counts = moved.sum(axis=0)
    result = []
    for j in np.argsort(-counts, kind="stable"):
        if not counts[j]:
            break
        own = None if table.labels is None else table.labels[j]
        after = shown[moved[:, j], j]
        step = np.full(len(after), np.nan) if own is not None else after - table.values[moved[:, j], j]
        up, down, other = step[step > 0], step[step < 0], after[np.isnan(step)]
        found = AskedFeature(
            schema.features[j].name, schema.features[j].unit, int(counts[j]), float(counts[j] / n_answered),
            len(up), len(down), _median(up), _median(down), len(other), _commonest(other, own),
        )  # fmt: skip
        result.append(found)
    return result


def _commonest(values: Floats, labels: Sequence[Any] | None) -> Any:
    if not values.size:
        return None
    found, counts = np.unique(values, return_counts=True)
    value = float(found[np.argmax(counts)])
    return label_of(value, labels) if labels is not None else None if np.isnan(value) else value


def _median(values: Floats) -> float | None:
    """The lower of the middle ones, so that it is a step that somebody was really asked to take."""
    return float(np.quantile(values, 0.5, method="lower")) if values.size else None


def burdens(groups: Sequence[Any], status: NDArray[np.object_], distance: Floats) -> dict[Any, dict[str, Any]]:
    """What each group is asked for: rows, share with an answer, share proven to have none, mean and median distance."""
    if len(groups) != len(status):
        reject("groups", f"a label for each of the {len(status)} rows", len(groups))
    answered = np.array([one.has_answer for one in status], bool)
    infeasible = np.array([one is Status.INFEASIBLE for one in status], bool)
    members: dict[Any, list[int]] = {}
    for i, label in enumerate(groups):
        key = label.item() if isinstance(label, np.generic) else label
        members.setdefault(None if key != key else key, []).append(i)
    result = {}
    for label in sorted(members, key=lambda name: (name is None, str(type(name)), name) if _sorts(name) else (True,)):
        own = np.array(members[label])
        far = distance[own][answered[own]]
        result[label] = {
            "rows": len(own),
            "share_found": float(answered[own].mean()),
            "share_infeasible": float(infeasible[own].mean()),
            "mean_distance": float(far.mean()) if far.size else float("nan"),
            "median_distance": float(np.median(far)) if far.size else float("nan"),
        }
    return result


def _sorts(name: Any) -> bool:
    return isinstance(name, str | int | float)


def known(problem: Problem | None) -> Problem:
    """The question, which explanations that were read from a file do not have."""
    if problem is None:
        raise InvalidInput("This needs the model, and explanations read from JSON have none; explain the rows again.")
    return problem
