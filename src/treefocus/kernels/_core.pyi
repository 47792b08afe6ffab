"""The compiled core (cpp/bindings.cpp)."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

_Array = NDArray[Any]

class Voice:
    def __init__(
        self,
        n_trees: int,
        divisor: float,
        weight: float,
        has_float32_sum: bool,
        link: int,
        rounding: float,
        moved: float,
    ) -> None: ...
    def add_map(self, kind: int, a: float, b: float, x: _Array, y: _Array) -> None: ...

class Member:
    def __init__(
        self,
        n_trees: int,
        n_outputs: int,
        divisor: float,
        decision: int,
        cut: float,
        cut_high: float,
        favoured: int,
        link: int,
        has_float32_sum: bool,
        to_class: _Array,
        voices: list[Voice],
    ) -> None: ...

class Forest:
    def __init__(
        self,
        feature: _Array,
        split: _Array,
        right: _Array,
        default_left: _Array,
        tree_start: _Array,
        leaf_value: _Array,
        base_score: _Array,
        start: _Array,
        threshold: _Array,
        cell_start: _Array,
        has_sets: _Array,
        set_of_node: _Array,
        sets: _Array,
        n_classes: int,
        divisor: float,
        decision: int,
        cut: float,
        cut_high: float,
        favoured: int,
        link: int,
        is_float32: bool,
        has_float32_sum: bool,
        members: list[Member],
        voices: list[Voice],
    ) -> None: ...

class Rules:
    def __init__(self) -> None: ...
    def add_at_most(self, features: _Array, n: int) -> None: ...
    def add_together(self, features: _Array) -> None: ...
    def add_linear(self, features: _Array, coefficient: _Array, bound: float) -> None: ...
    def add_implies(
        self,
        cause: int,
        cause_low: float,
        cause_high: float,
        cause_cells: _Array,
        effect: int,
        effect_low: float,
        effect_high: float,
        effect_cells: _Array,
    ) -> None: ...

class Batch:
    def __init__(
        self,
        rows: _Array,
        low: _Array,
        high: _Array,
        offset: _Array,
        scale: _Array,
        grain: _Array,
        origin: _Array,
        target: _Array,
        first: _Array,
        set_value: _Array,
        set_delta: _Array,
        list_start: _Array,
        list_value: _Array,
        is_strict: _Array,
        rules: Rules | None,
    ) -> None: ...

def hard_scores(forest: Forest, rows: _Array, scores: _Array, n_threads: int) -> None: ...
def predict(forest: Forest, rows: _Array, predicted: _Array, n_threads: int) -> None: ...
def soft_loss(
    forest: Forest,
    threshold: _Array,
    value: _Array,
    n_trees: int,
    sigma: float,
    tau: float,
    use_softmax: bool,
    z: _Array,
    label: _Array,
    sign: _Array,
    loss: _Array,
    gradient: _Array,
    n_threads: int,
) -> None: ...
def descend(
    forest: Forest,
    threshold: _Array,
    value: _Array,
    n_trees: int,
    sigma: float,
    tau: float,
    use_softmax: bool,
    metric: int,
    weight: _Array,
    inverse: _Array,
    beta: float,
    alpha: float,
    iterations: int,
    gradient_scale: float,
    batch: Batch,
    best: _Array,
    best_distance: _Array,
    trace: _Array | None,
    n_threads: int,
    progress: Callable[[int], None] | None,
) -> int: ...
def exact(
    forest: Forest,
    cell_low: _Array,
    cell_high: _Array,
    norm_weights: _Array | None,
    metric: int,
    weight: _Array,
    inverse: _Array,
    seconds: float,
    node_limit: int,
    step_limit: int,
    memory: float,
    patience: int,
    batch: Batch,
    part: int,
    best: _Array,
    distances: _Array,
    lower_bound: _Array,
    proof: _Array,
    is_undecided: _Array,
    nodes: _Array,
    steps: _Array,
    n_threads: int,
    progress: Callable[[int], None] | None,
) -> int: ...
def record_proof(
    forest: Forest,
    cell_low: _Array,
    cell_high: _Array,
    norm_weights: _Array | None,
    metric: int,
    weight: _Array,
    inverse: _Array,
    seconds: float,
    node_limit: int,
    batch: Batch,
    distance: float,
) -> list[tuple[list[int], list[tuple[int, float]], list[tuple[list[float], list[float]]]]]: ...
def prepare(forest: Forest) -> None: ...
def polish(
    forest: Forest,
    cell_low: _Array,
    cell_high: _Array,
    norm_weights: _Array,
    seconds: float,
    memory: float,
    batch: Batch,
    with_trades: bool,
    points: _Array,
    steps: _Array,
    n_threads: int,
    progress: Callable[[int], None] | None,
) -> int: ...
def nearest(
    forest: Forest,
    batch: Batch,
    kind: _Array,
    examples: _Array,
    answer: _Array,
    index: _Array,
    n_threads: int,
) -> None: ...
def memory(forest: Forest) -> tuple[float, float]: ...
