"""The kernels, compiled. This is the only module that imports the C++ core; `reference` holds their NumPy twins."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import reject
from treefocus.kernels import _core
from treefocus.kernels.inputs import Batch, CompiledDistance, Descent, Int8s, Metric, Norms, SoftForest
from treefocus.kernels.reference import decide, mean_shown
from treefocus.kernels.rules import AtMostRule, LinearRule, Rules, TogetherRule
from treefocus.model.forest import Floats, Forest, Ints
from treefocus.model.grid import Grid
from treefocus.model.members import Member
from treefocus.model.voices import Voice

__all__ = [
    "BOUNDED", "INFEASIBLE", "NOTHING", "OPTIMAL", "Proofs", "compiled", "decide", "descend", "exact", "grid_of",
    "hard_scores", "n_threads", "polish", "predict", "record_proof", "soft_loss",
]  # fmt: skip

_DECISION = {"argmax": 0, "above": 1, "at_least": 2, "between": 3, "likely": 4, "agreed": 5}
_DECISION["value"] = 1  # never decided
_DECIDED_HERE = ("likely", "value", "agreed")  # by a softmax, which libraries take in NumPy's powers; or refused
_LINK = {"identity": 0, "sigmoid": 1, "softmax": 2, "exp": 3}
_MAP = {
    "affine": 0, "shifted": 1, "exp": 2, "expm1": 3, "platt": 4, "isotonic": 5, "above": 6, "at_least": 7,
}  # fmt: skip
_grids: WeakKeyDictionary[Forest, Grid] = WeakKeyDictionary()
_compiled: WeakKeyDictionary[Forest, _core.Forest] = WeakKeyDictionary()


def n_threads(n_jobs: int | None) -> int:
    """How many threads to use: `n_jobs`, -1 for all cores, None for OMP_NUM_THREADS or else all cores.

    None also heeds a limit that threadpoolctl has set, which scikit-learn's OpenMP knows of.
    """
    if n_jobs is not None and n_jobs != -1:
        if not isinstance(n_jobs, Integral) or n_jobs < 1:
            reject("n_jobs", "None, -1 or at least 1", n_jobs)
        return int(n_jobs)
    affinity = getattr(os, "sched_getaffinity", None)
    n_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    if n_jobs == -1:
        return n_cores
    asked = os.environ.get("OMP_NUM_THREADS", "")
    wanted = int(asked) if asked.isdigit() and int(asked) > 0 else n_cores
    limit = _openmp_threads()
    return wanted if limit is None or limit >= n_cores else min(wanted, limit)


def _threads_for(rows: Floats, n_jobs: int | None) -> int:
    """How many threads to ask a forest with; for one row nobody has to be asked how many there are."""
    return n_threads(n_jobs) if len(rows) > 1 else 1


def _openmp_threads() -> int | None:
    """How many threads OpenMP would start here, where scikit-learn has loaded it."""
    helpers = sys.modules.get("sklearn.utils._openmp_helpers")
    ask = getattr(helpers, "_openmp_effective_n_threads", None)
    return None if ask is None else int(ask())


@contextmanager
def _interruptible(on_interrupt: Callable[[], None] | None) -> Iterator[None]:
    """Around a kernel, which leaves what it has done in its arrays: Ctrl-C goes to `on_interrupt` if there is one."""
    try:
        yield
    except KeyboardInterrupt:
        if on_interrupt is None:
            raise
        on_interrupt()


def grid_of(forest: Forest) -> Grid:
    """The forest's grid, derived once."""
    if forest not in _grids:
        _grids[forest] = Grid.of(forest)
    return _grids[forest]


def compiled(forest: Forest) -> _core.Forest:
    """The forest as the core holds it, derived once."""
    if forest not in _compiled:
        grid = grid_of(forest)
        _compiled[forest] = _core.Forest(
            forest.feature,
            grid.split,
            forest.right,
            forest.default_left.view(np.uint8),
            forest.tree_start,
            forest.leaf_value,
            forest.base_score,
            grid.start,
            grid.threshold,
            grid.cell_start,
            grid.has_sets.view(np.uint8),
            grid.set_of_node,
            grid.sets,
            forest.n_classes,
            forest.divisor,
            _DECISION[forest.decision],
            forest.cut,
            forest.cut_high,
            forest.favoured,
            _LINK[forest.link],
            forest.input_dtype == "float32",
            forest.score_dtype == "float32",
            [_held_member(member) for member in forest.members],
            [_held_voice(voice) for voice in forest.voices],
        )
    return _compiled[forest]


def _held_member(member: Member) -> _core.Member:
    return _core.Member(
        member.n_trees, member.n_outputs, member.divisor, _DECISION[member.decision], member.cut, member.cut_high,
        member.favoured, _LINK[member.link], member.score_dtype == "float32", np.array(member.to_class, np.int32),
        [_held_voice(voice) for voice in member.voices],
    )  # fmt: skip


def _held_voice(voice: Voice) -> _core.Voice:
    held = _core.Voice(
        voice.n_trees, voice.divisor, voice.weight, voice.score_dtype == "float32", _LINK[voice.link], voice.rounding,
        voice.moved,
    )  # fmt: skip
    for name, *numbers in voice.maps:
        points = [np.array(own, np.float64) for own in numbers] if name == "isotonic" else [np.empty(0)] * 2
        plain = [0.0, 0.0] if name == "isotonic" else [*numbers, 0.0, 0.0][:2]
        held.add_map(_MAP[name], *plain, *points)
    return held


def hard_scores(forest: Forest, rows: Floats, n_jobs: int | None = None) -> Floats:
    """(n_rows, n_outputs) the model's own scores, added up tree after tree."""
    scores = np.empty((len(rows), forest.n_scores))
    _core.hard_scores(compiled(forest), _floats(rows), scores, _threads_for(rows, n_jobs))
    return mean_shown(forest, scores) if forest.voices else scores


def predict(forest: Forest, rows: Floats, n_jobs: int | None = None) -> Ints:
    """(n_rows,) index of the predicted class."""
    if forest.decision in _DECIDED_HERE or forest.voices:
        return decide(forest, hard_scores(forest, rows, n_jobs))
    predicted = np.empty(len(rows), np.int32)
    _core.predict(compiled(forest), _floats(rows), predicted, _threads_for(rows, n_jobs))
    return predicted


def soft_loss(
    forest: Forest, soft: SoftForest, z: Floats, label: Ints, sign: Int8s, n_jobs: int | None = None
) -> tuple[Floats, Floats]:
    """The paper's prediction loss on the soft forest, and its gradient; see `reference.soft_loss`."""
    loss, gradient = np.empty(len(z)), np.empty(z.shape)
    _core.soft_loss(
        compiled(forest), soft.threshold, soft.value, soft.n_trees, soft.sigma, soft.tau, soft.use_softmax,
        _floats(z), label, sign, loss, gradient, n_threads(n_jobs),
    )  # fmt: skip
    return loss, gradient


def descend(
    forest: Forest,
    soft: SoftForest,
    distance: CompiledDistance,
    descent: Descent,
    batch: Batch,
    *,
    trace: Floats | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> tuple[Floats, Floats]:
    """FOCUS's loop; see `reference.descend`. `progress` hears how many rows are done."""
    n_rows, n_features = batch.rows.shape
    best, best_distance = np.full((n_rows, n_features), np.nan), np.full(n_rows, np.inf)
    with _interruptible(on_interrupt):
        _core.descend(
            compiled(forest), soft.threshold, soft.value, soft.n_trees, soft.sigma, soft.tau, soft.use_softmax,
            int(distance.metric), distance.weight, distance.inverse, descent.beta, descent.alpha, descent.iterations,
            descent.gradient_scale, _held(forest, batch), best, best_distance, trace, n_threads(n_jobs), progress,
        )  # fmt: skip
    return best, best_distance


@dataclass(frozen=True, eq=False)
class Spent:
    """Work by row, counted: the same on every machine. A step takes about a nanosecond on one core of 2026."""

    boxes: NDArray[np.int64]  # (n_rows,) of the exact search
    steps: NDArray[np.int64]  # (n_rows,) of everything

    @classmethod
    def nothing(cls, n_rows: int) -> Spent:
        """Nothing yet."""
        return cls(np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64))

    def of(self, rows: NDArray[np.intp]) -> Spent:
        """What some of the rows have spent; a copy."""
        return Spent(self.boxes[rows], self.steps[rows])

    def put(self, rows: NDArray[np.intp], spent: Spent) -> None:
        """What some of the rows have spent by now."""
        self.boxes[rows], self.steps[rows] = spent.boxes, spent.steps


@dataclass(frozen=True, eq=False)
class Proofs:
    """What the exact search returns: answers, what is proven of each, and what each row has spent of its work."""

    points: Floats  # (n_rows, n_features), NaN where none
    distance: Floats  # (n_rows,), infinity where none
    lower_bound: Floats  # (n_rows,)
    proof: Int8s  # (n_rows,) OPTIMAL, BOUNDED, INFEASIBLE or NOTHING
    is_undecided: NDArray[np.bool_]  # (n_rows,) boxes were left that no split decides
    spent: Spent


RecordedGoal = tuple[list[int], list[tuple[int, float]], list[tuple[list[float], list[float]]]]  # see docs/proof.md
OPTIMAL, BOUNDED, INFEASIBLE, NOTHING = range(4)
ALL, SHORT_TRY, REST = range(3)  # parts of a search


def exact(
    forest: Forest,
    distance: CompiledDistance | Norms,
    batch: Batch,
    points: Floats,
    distances: Floats,
    *,
    seconds: float = math.inf,
    node_limit: int = 0,
    step_limit: int = 0,
    memory: float = 1e9,
    spent: Spent | None = None,
    part: int = ALL,
    patience: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> Proofs:
    """Branch and bound from known answers (distance infinity where none); limits are per row, memory per process.

    spent: what each row has had of its work before, and in the end; part: `ALL` of the search, the `SHORT_TRY` that it
    begins with, or the `REST`; patience: boxes of plain search before a box is priced and split, 0 as usual.
    """
    n_rows, n_features = batch.rows.shape
    points, distances = points.copy(), distances.copy()
    bound, proof = np.zeros(n_rows), np.full(n_rows, NOTHING, np.int8)
    proof[np.isfinite(distances)] = BOUNDED
    is_undecided, spent = np.zeros(n_rows, np.uint8), Spent.nothing(n_rows) if spent is None else spent
    grid = grid_of(forest)
    norms, coupled = _either(distance, n_features)
    with _interruptible(on_interrupt):
        _core.exact(
            compiled(forest), grid.low, grid.high, norms,
            int(coupled.metric), coupled.weight, coupled.inverse, seconds, node_limit, step_limit,
            memory, patience, _held(forest, batch), part, points, distances, bound, proof, is_undecided,
            spent.boxes, spent.steps, n_threads(n_jobs), progress,
        )  # fmt: skip
    return Proofs(points, distances, bound, proof, is_undecided.astype(bool), spent)


def record_proof(
    forest: Forest,
    distance: CompiledDistance | Norms,
    batch: Batch,
    below: float,
    *,
    seconds: float = math.inf,
    node_limit: int = 0,
) -> list[RecordedGoal]:
    """Why a batch's only row has no answer nearer than this: boxes, values, weights a goal; none if it has no end."""
    grid = grid_of(forest)
    norms, coupled = _either(distance, batch.rows.shape[1])
    return _core.record_proof(
        compiled(forest), grid.low, grid.high, norms, int(coupled.metric), coupled.weight, coupled.inverse, seconds,
        node_limit, _held(forest, batch), below,
    )  # fmt: skip


def _either(distance: CompiledDistance | Norms, n_features: int) -> tuple[Floats | None, CompiledDistance]:
    """The weights of norms, None for a coupled distance; and a coupled distance, any for norms."""
    if isinstance(distance, Norms):
        return distance.weights, CompiledDistance(Metric.EUCLIDEAN, np.ones(n_features), np.zeros((0, 0)))
    return None, distance


def polish(
    forest: Forest,
    norms: Norms,
    batch: Batch,
    points: Floats,
    *,
    with_trades: bool = True,
    seconds: float = math.inf,
    memory: float = 1e9,
    steps: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> Floats:
    """(n_rows, n_features) answers that no move of one feature and no trade between two improves; NaN stays NaN.

    A forest that does not fit into the memory (bytes) leaves the points as they are. steps: (n_rows,) of work, which
    grow.
    """
    points = points.copy()
    grid = grid_of(forest)
    steps = np.zeros(len(points), np.int64) if steps is None else steps
    with _interruptible(on_interrupt):
        _core.polish(
            compiled(forest), grid.low, grid.high, norms.weights, seconds, memory, _held(forest, batch),
            with_trades, points, steps, n_threads(n_jobs), None,
        )  # fmt: skip
    return points


def prepare(forest: Forest) -> None:
    """Derive what searches of this forest share, so that none of them has to."""
    _core.prepare(compiled(forest))


@dataclass(frozen=True)
class Memory:
    """Bytes that one thread takes, about, on top of the model."""

    search: float
    descent: float


def memory_of(forest: Forest) -> Memory:
    """What the exact search and a descent take."""
    return Memory(*_core.memory(compiled(forest)))


def nearest(
    forest: Forest, batch: Batch, examples: Floats, answer: Ints, n_wanted: int, n_jobs: int | None = None
) -> Ints:
    """(n_rows, n_wanted) numbers of the nearest examples with a wanted answer; see `reference.nearest`."""
    index = np.empty((len(batch.rows), n_wanted), np.int32)
    kind = np.zeros(batch.rows.shape[1], np.int8)
    kind[batch.choices.column] = np.where(batch.choices.is_category, 1, 2)
    _core.nearest(
        compiled(forest), _held(forest, batch), kind, _floats(examples), answer, index, n_threads(n_jobs)
    )  # fmt: skip
    return index


def _held(forest: Forest, batch: Batch) -> _core.Batch:
    """The batch as the core holds it."""
    lists = batch.lists
    return _core.Batch(
        batch.rows, batch.low, batch.high, batch.offset, batch.scale, batch.grain, batch.origin, batch.target,
        batch.first, batch.choices.value, batch.choices.delta, lists.start, lists.value,
        lists.is_strict.view(np.uint8), _held_rules(batch.rules, grid_of(forest)),
    )  # fmt: skip


def _held_rules(rules: Rules, grid: Grid) -> _core.Rules | None:
    """The rules as the core holds them; None if there are none."""
    if not rules.all:
        return None
    held = _core.Rules()
    for rule in rules.all:
        if isinstance(rule, AtMostRule):
            held.add_at_most(rule.columns, rule.n)
        elif isinstance(rule, TogetherRule):
            held.add_together(rule.columns)
        elif isinstance(rule, LinearRule):
            held.add_linear(rule.columns, rule.coefficient, rule.bound)
        else:
            held.add_implies(rule.cause.column, *rule.cause.on(grid), rule.effect.column, *rule.effect.on(grid))
    return held


def _floats(values: Floats) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)
