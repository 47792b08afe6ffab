"""DACE (Kanamori et al., IJCAI 2020): the cheapest answer that is not an outlier, by mixed-integer programming.

The objective is the Mahalanobis distance in its l1 form, sum over d of |U_d (y - z)| with U'U the inverse covariance
(U its transposed Cholesky factor), plus lambda times the 1-LOF of y among training rows. With the
nearest of the training rows chosen by mu_n in {0, 1}, the 1-LOF is reach(y, n) * density(n), where reach is the
larger of |y - n|_1 and n's own distance to its nearest, and density(n) is 1 / reach(n, nearest of n).

What is chosen here, and why:

- A feature takes values of a finite "action set", as in DACE: cut the axis at the forest's thresholds and at `steps`
  quantiles of the training rows, and take the value closest to x of every cell. Without the quantiles a feature that
  the forest does not look at could not move along with one it is correlated with.
- Cells are told by cumulated indicators u_k = [y_f <= t_k], u_k <= u_{k+1}, and a tree by one continuous weight a leaf
  with two rows a split (weight on the left <= u, on the right <= 1 - u; Misic, 2020): the same points
  as DACE's one-indicator-a-value form, with a tighter relaxation.
- "n is the nearest" compares |y - n| with the minimum m over all sampled rows (m <= |y - n| for all n, and
  |y - n| <= m where mu_n = 1) instead of with each of them: linear in the sample, not quadratic.
- The LOF looks at `examples` training rows, drawn by the run's seed: an integer variable each.
- HiGHS (scipy.optimize.milp) solves it. Whatever it returns counts only if the real forest agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.kernels.inputs import Batch
from treefocus.model.forest import Floats, Forest
from treefocus.model.grid import Grid, floor_to, next_above
from treefocus.model.variants import variant
from treefocus.problem.distances import Mahalanobis
from treefocus.problem.problem import Problem
from treefocus.schema.schema import INTEGER, STEPPED
from treefocus.search.base import Outcome, Run, Strategy, check_positive, require_numbers, require_one_model
from treefocus.search.limits import DefaultSeconds, check_time_limit, seconds_left, time_limit_of

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

_MARGIN = 1e-6  # by how much, as a share of all weights, the wanted class must win: above HiGHS's tolerance


@dataclass(frozen=True)
class Dace(Strategy):
    """A baseline of the paper.

    The row's covariance comes from the distance, if that is Mahalanobis, else from the training rows. Rows with missing
    values get no answer.

    Parameters
    ----------
    lambda_ : float
        What being an outlier costs.
    examples : int
        Training rows the LOF looks at.
    steps : int
        Quantiles of the training rows that enter each feature's action set, besides the forest's thresholds.
    time_limit : float, optional
        Seconds a row, which its programs share; the tighter of this one and `explain(time_limit=...)` counts, and 60
        only where neither is given. The best answer by then counts.
    gap : float
        How far, as a share, the answer's objective may be from the optimum.

    Examples
    --------
    >>> from treefocus import Dace
    >>> Dace(examples=50).examples
    50
    """

    lambda_: float = 0.01
    examples: int = 30
    steps: int = 9
    time_limit: float | None = DefaultSeconds(60.0)
    gap: float = 1e-4

    def __post_init__(self) -> None:
        check_positive(self, "examples")
        check_time_limit(self.time_limit, "Dace.time_limit")
        for name in ("lambda_", "gap", "steps"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                reject(f"Dace.{name}", "a finite number of at least 0", getattr(self, name))

    def solve(self, problem: Problem, run: Run) -> Outcome:
        """One program a row and wanted class, the closest answer of a row's programs kept."""
        require_one_model(problem, "Dace")
        examples = problem.examples
        if examples is None:
            raise InvalidInput("Dace needs data=: the training rows, for its covariance and its outlier factor.")
        require_numbers(problem.forest, "Dace")
        if problem.forest.missing_is_choice is not None:  # rows with missing values get no answer here
            problem = replace(problem, forest=variant(problem.forest, missing_is_choice=None))
        trees = _Trees(problem.forest, finer_grid(problem.forest, examples.rows, self.steps))
        costs = _Costs.of(problem, self.lambda_, self.examples, run.seed)
        seconds = seconds_left(time_limit_of(self.time_limit, run.time_limit), run.clock)
        points = np.full_like(problem.batch.rows, np.nan)
        options = {"time_limit": seconds, "mip_rel_gap": self.gap}
        with run.kept():
            for i in range(len(problem)):  # one after the other: scipy's HiGHS does not run two at once
                points[i] = _best(problem.subset(np.array([i])), trees, costs, options)
                if run.progress is not None:
                    run.progress(i + 1)
        return Outcome.of_points(problem, points)


def _best(one: Problem, trees: _Trees, costs: _Costs, options: dict[str, Any]) -> Floats:
    """(n_features,) the closest of the answers for one row, NaN where there is none."""
    batch, forest = one.batch, one.forest
    best: Floats = np.full(forest.n_features, np.nan)
    if np.isnan(batch.rows).any():
        return best
    asked, origin = int(batch.target[0]), int(batch.origin[0])
    wanted = [asked] if asked >= 0 else [k for k in range(forest.n_classes) if k != origin]
    cells, closest = _Cells.of(trees.grid, batch), np.inf
    options = options | {"time_limit": options["time_limit"] / len(wanted)}
    for target in wanted:
        point = _program(cells, trees, costs, target, options)
        if point is not None and one.is_valid(point[None])[0]:
            distance = float(one.distance_to(point[None])[0])
            if distance < closest:
                best, closest = point, distance
    return best


@dataclass(frozen=True, eq=False)
class _Cells:
    """For one row and every cell of the grid (feature f's begin at start[f] + f): the value there, if any."""

    value: Floats  # (n_cells,) in the user's units
    moved: Floats  # (n_cells,) how far from the row, in the scaled space
    z: Floats  # (n_cells,) the value in the scaled space
    is_open: NDArray[np.bool_]  # (n_cells,)
    feature: NDArray[np.intp]  # (n_cells,)

    @classmethod
    def of(cls, grid: Grid, batch: Batch) -> _Cells:
        feature = np.repeat(np.arange(len(grid.start) - 1), np.diff(grid.start) + 1)
        x, scale = batch.rows[0, feature], batch.scale[feature]
        low = np.maximum(grid.low, batch.low[0, feature])
        high = np.minimum(grid.high, batch.high[0, feature])
        is_open = low <= high
        value = np.where(is_open, np.clip(x, low, np.maximum(low, high)), x)
        grained = _on_grain(batch, feature, value, low, high)
        is_open &= (low <= grained) & (grained <= high)
        value = np.where(is_open, grained, x)
        return cls(value, (value - x) / scale, (value - batch.offset[feature]) / scale, is_open, feature)


def _on_grain(batch: Batch, feature: NDArray[np.intp], value: Floats, low: Floats, high: Floats) -> Floats:
    """Whole numbers and steps where a column holds only those: the nearest to x inside the cell."""
    x, grain, result = batch.rows[0, feature], batch.grain[feature], value.copy()
    whole = np.where(value > x, np.ceil(low), np.where(value < x, np.floor(high), value))
    result[grain == INTEGER] = whole[grain == INTEGER]
    for column in np.flatnonzero(batch.grain == STEPPED).tolist():
        steps, up, down = (
            batch.lists.steps_of(column),
            (feature == column) & (value > x),
            (feature == column) & (value < x),
        )
        result[up], result[down] = steps.up(low[up]), steps.down(high[down])
    return result


def finer_grid(forest: Forest, examples: Floats, steps: int) -> Grid:
    """The forest's grid, cut also at the quantiles of the training rows."""
    grid = kernels.grid_of(forest)
    cuts = np.quantile(examples, np.arange(1, steps + 1) / (steps + 1), axis=0).reshape(steps, forest.n_features)
    own = [
        np.union1d(grid.threshold[begin:end], floor_to(cut, forest.input_dtype))
        for begin, end, cut in zip(grid.start[:-1], grid.start[1:], cuts.T, strict=True)
    ]
    start = np.concatenate([[0], np.cumsum([len(values) for values in own])]).astype(np.int32)
    split = np.full_like(grid.split, -1)
    for node in np.flatnonzero(grid.split >= 0):
        f = forest.feature[node]
        split[node] = start[f] + np.searchsorted(own[f], grid.threshold[grid.split[node]])
    low = [np.concatenate([[-np.inf], next_above(values, forest.input_dtype)]) for values in own]
    high = [np.concatenate([values, [np.inf]]) for values in own]
    cell_start = (start + np.arange(len(start))).astype(np.int32)
    return replace(
        grid, start=start, threshold=np.concatenate(own), split=split, cell_start=cell_start,
        low=np.concatenate(low), high=np.concatenate(high),
    )  # fmt: skip


class _Trees:
    """The constraints that only the forest decides: indicators u, one a threshold, and weights, one a leaf."""

    def __init__(self, forest: Forest, grid: Grid) -> None:
        self.forest, self.grid = forest, grid
        self.n_thresholds, self.n_leaves = len(grid.threshold), forest.n_leaves
        inner = np.flatnonzero(forest.left >= 0)
        leaves_before = np.concatenate([[0], np.cumsum(forest.left < 0)])
        node_end = _subtree_end(forest)
        upper: list[tuple[NDArray[Any], NDArray[Any], float, float]] = []
        for node in inner:
            left, right = forest.left[node], forest.right[node]
            split = self.n_leaves + grid.split[node]
            on_left = np.arange(leaves_before[left], leaves_before[right])
            on_right = np.arange(leaves_before[right], leaves_before[node_end[node]])
            upper.append((np.append(on_left, split), np.append(np.ones(len(on_left)), -1.0), -np.inf, 0.0))
            upper.append((np.append(on_right, split), np.append(np.ones(len(on_right)), 1.0), -np.inf, 1.0))
        bounds = leaves_before[forest.tree_start]
        for first, last in pairwise(bounds):
            upper.append((np.arange(first, last), np.ones(last - first), 1.0, 1.0))
        feature = np.repeat(np.arange(forest.n_features), np.diff(grid.start))
        for k in np.flatnonzero(feature[1:] == feature[:-1]):
            upper.append((self.n_leaves + np.array([k, k + 1]), np.array([1.0, -1.0]), -np.inf, 0.0))
        self.rows = _Rows.of(upper)

    def wins(self, target: int) -> list[tuple[NDArray[Any], NDArray[Any], float, float]]:
        """The rows by which `target` comes out of the decision."""
        forest = self.forest
        leaves, value, base = np.arange(self.n_leaves), forest.leaf_value, forest.base_score
        total = np.abs(value).sum() + np.abs(base).sum() + abs(forest.cut)
        margin = _MARGIN * max(total / max(forest.n_trees, 1), 1e-9)
        if forest.decision == "argmax":
            others = [k for k in range(forest.n_classes) if k != target]
            return [(leaves, value[:, target] - value[:, k], margin - (base[target] - base[k]), np.inf) for k in others]
        sign = 1.0 if target == 1 else -1.0
        return [(leaves, sign * value[:, 0], margin + sign * (forest.cut * forest.divisor - base[0]), np.inf)]


def _subtree_end(forest: Forest) -> NDArray[np.intp]:
    """(n_nodes,) the node after each node's subtree."""
    end = np.arange(1, len(forest.left) + 1)
    for node in range(len(end) - 1, -1, -1):
        if forest.left[node] >= 0:
            end[node] = end[forest.right[node]]
    return end


@dataclass(frozen=True, eq=False)
class _Costs:
    """What the objective needs of the training rows."""

    factor: Floats  # (n_features, n_features) U with U'U = inverse covariance
    rows: Floats  # (n_examples, n_features) in the scaled space
    reach: Floats  # (n_examples,) distance to the nearest other
    density: Floats  # (n_examples,) 1 / reachability from the nearest other
    lambda_: float

    @classmethod
    def of(cls, problem: Problem, lambda_: float, n_examples: int, seed: int) -> _Costs:
        batch, examples = problem.batch, problem.examples
        assert examples is not None
        z = (examples.rows - batch.offset) / batch.scale
        distance: Any = problem.distance
        inverse = getattr(distance, "inverse", None)
        if inverse is None:
            fitted: Any = Mahalanobis().fitted(problem.forest.n_features, z)
            inverse = fitted.inverse
        different = np.unique(z, axis=0)
        chosen = np.random.default_rng(seed).permutation(len(different))[: max(2, n_examples)]
        rows = different[np.sort(chosen)]
        if len(rows) < 2:
            raise InvalidInput("Dace needs data= with at least two different rows, for its outlier factor.")
        between = np.abs(rows[:, None, :] - rows[None, :, :]).sum(axis=2)
        np.fill_diagonal(between, np.inf)
        nearest = between.argmin(axis=1)
        reach = between.min(axis=1)
        density = 1.0 / np.maximum(reach, reach[nearest])
        return cls(np.linalg.cholesky(inverse).T, rows, reach, density, lambda_)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Linear constraints as triplets."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[NDArray[Any], NDArray[Any], float, float]]) -> _Rows:
        sizes = [len(columns) for columns, _, _, _ in rows]
        return cls(
            np.repeat(np.arange(len(rows)), sizes),
            np.concatenate([columns for columns, _, _, _ in rows]).astype(np.intp),
            np.concatenate([values for _, values, _, _ in rows]).astype(np.float64),
            np.array([low for _, _, low, _ in rows]),
            np.array([high for _, _, _, high in rows]),
        )

    def constraint(self, n_columns: int, *others: _Rows) -> LinearConstraint:
        from scipy import sparse
        from scipy.optimize import LinearConstraint

        parts = (self, *others)
        first = np.concatenate([[0], np.cumsum([len(part.low) for part in parts])])
        row = np.concatenate([part.row + start for part, start in zip(parts, first, strict=False)])
        column = np.concatenate([part.column for part in parts])
        value = np.concatenate([part.value for part in parts])
        matrix = sparse.csr_array((value, (row, column)), shape=(int(first[-1]), n_columns))
        low, high = (np.concatenate([getattr(part, side) for part in parts]) for side in ("low", "high"))
        return LinearConstraint(matrix, low, high)


def _program(cells: _Cells, trees: _Trees, costs: _Costs, target: int, options: dict[str, Any]) -> Floats | None:
    """Build and solve the program of one row: the point, or None."""
    from scipy.optimize import Bounds, milp  # not cheap to import, and only needed here

    n_features, n_examples = costs.factor.shape[0], len(costs.rows)
    sizes = [trees.n_leaves, trees.n_thresholds, n_features, n_examples, n_examples, n_examples, 1]
    first = np.concatenate([[0], np.cumsum(sizes)])
    n_columns = int(first[-1])
    u, delta, away, nearest, reach, least = first[1:7]
    rows: list[tuple[NDArray[Any], NDArray[Any], float, float]] = list(trees.wins(target))
    linear = _Linear(cells, trees.grid, int(u))
    rows += linear.closed_cells()
    for d in range(n_features):  # delta_d >= |U_d (y - z)|
        columns, values, constant = linear.weighted(costs.factor[d][cells.feature] * cells.moved)
        for sign in (1.0, -1.0):
            rows.append((np.append(columns, delta + d), np.append(sign * values, -1.0), -np.inf, -sign * constant))
    most = np.empty(n_examples)
    for n in range(n_examples):
        to_cell = np.abs(cells.z - costs.rows[n, cells.feature])
        most[n] = np.where(cells.is_open, to_cell, 0.0)[_largest_of_feature(cells, to_cell)].sum()
        columns, values, constant = linear.weighted(to_cell)
        rows.append((np.append(columns, away + n), np.append(values, -1.0), -constant, -constant))
        rows.append((np.array([least, away + n]), np.array([1.0, -1.0]), -np.inf, 0.0))
        rows.append((np.array([away + n, least, nearest + n]), np.array([1.0, -1.0, most[n]]), -np.inf, most[n]))
        rows.append((np.array([reach + n, nearest + n]), np.array([-1.0, costs.reach[n]]), -np.inf, 0.0))
        rows.append((np.array([away + n, reach + n, nearest + n]), np.array([1.0, -1.0, most[n]]), -np.inf, most[n]))
    rows.append((nearest + np.arange(n_examples), np.ones(n_examples), 1.0, 1.0))
    cost, is_integer = np.zeros(n_columns), np.zeros(n_columns, np.int64)
    cost[delta : delta + n_features] = 1.0
    cost[reach : reach + n_examples] = costs.lambda_ * costs.density
    high = np.full(n_columns, np.inf)
    high[:delta], high[nearest:reach] = 1.0, 1.0
    is_integer[u:delta], is_integer[nearest:reach] = 1, 1
    found = milp(
        cost,
        integrality=is_integer,
        bounds=Bounds(np.zeros(n_columns), high),
        constraints=trees.rows.constraint(n_columns, _Rows.of(rows)),
        options=options,  # type: ignore[arg-type]
    )
    return None if found.x is None else linear.point(np.asarray(found.x))


def _largest_of_feature(cells: _Cells, value: Floats) -> NDArray[np.intp]:
    """(n_features,) the open cell of each feature where `value` is largest."""
    order = np.lexsort((np.where(cells.is_open, value, -1.0), cells.feature))
    last = np.flatnonzero(np.append(np.diff(cells.feature[order]) > 0, True))
    return order[last]


@dataclass(frozen=True, eq=False)
class _Linear:
    """Sums over the features of something that each cell has, as linear terms of the indicators u."""

    cells: _Cells
    grid: Grid
    u: int  # column of the first indicator

    @property
    def last(self) -> NDArray[np.intp]:
        """(n_features,) each feature's last cell, the one in which no indicator is 1."""
        return self.grid.start[1:].astype(np.intp) + np.arange(len(self.grid.start) - 1)

    def weighted(self, amount: Floats) -> tuple[NDArray[np.intp], Floats, float]:
        """Columns, values and constant of the sum of `amount` (n_cells,) over the chosen cells."""
        is_last = np.zeros(len(amount), bool)
        is_last[self.last] = True
        own = np.flatnonzero(~is_last)
        values = amount[own] - amount[own + 1]
        keep = values != 0
        return (self.u + np.arange(len(own)))[keep], values[keep], float(amount[self.last].sum())

    def closed_cells(self) -> list[tuple[NDArray[Any], NDArray[Any], float, float]]:
        """A cell without an allowed value is not chosen: its indicator equals the one before it."""
        rows: list[tuple[NDArray[Any], NDArray[Any], float, float]] = []
        for cell in np.flatnonzero(~self.cells.is_open):
            f = self.cells.feature[cell]
            k = cell - f  # the indicator of "up to this cell"
            terms = [(k, 1.0)] if k < self.grid.start[f + 1] else []
            terms += [(k - 1, -1.0)] if k > self.grid.start[f] else []
            total = 0.0 if k < self.grid.start[f + 1] else -1.0
            columns = np.array([self.u + index for index, _ in terms], np.intp)
            rows.append((columns, np.array([value for _, value in terms]), total, total))
        return rows

    def point(self, solution: Floats) -> Floats:
        """(n_features,) the value of the chosen cell of every feature."""
        chosen = np.empty(len(self.grid.start) - 1)
        for f in range(len(chosen)):
            begin, end = self.grid.start[f], self.grid.start[f + 1]
            above = int((solution[self.u + begin : self.u + end] < 0.5).sum())
            chosen[f] = self.cells.value[begin + f + above]
        return chosen
