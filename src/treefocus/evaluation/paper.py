"""The paper's 42 settings with what it published: tables 1 and 2, the fidelity table and the hyperparameter tables.

Numbers of "FOCUS: Flexible Optimizable Counterfactual Explanations for Tree Ensembles" (Lucic et al., AAAI 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DatasetName = Literal["wine", "heloc", "compas", "shopping"]
ModelKind = Literal["dt", "rf", "ab"]

DATASETS: tuple[DatasetName, ...] = ("wine", "heloc", "compas", "shopping")
MODELS: tuple[ModelKind, ...] = ("dt", "rf", "ab")
DISTANCES = ("euclidean", "cosine", "manhattan", "mahalanobis")
TITLES = {"wine": "Wine Quality", "heloc": "HELOC", "compas": "COMPAS", "shopping": "Shopping"}

EPSILONS = (0.001, 0.005, 0.01, 0.1)  # tried for Feature Tweaking
LAMBDAS = (0.001, 0.01, 0.1, 0.5, 1.0)  # tried for DACE
ITERATIONS = 1000
SOFT_TREES = 100  # of a forest that enter the authors' soft forest

# (trees, depth) of the 12 models as the paper gives them. Its Shopping forest has 100 trees in fact.
SIZES: dict[tuple[DatasetName, ModelKind], tuple[int, int]] = {
    ("wine", "dt"): (1, 2), ("wine", "rf"): (500, 4), ("wine", "ab"): (100, 4),
    ("heloc", "dt"): (1, 4), ("heloc", "rf"): (500, 4), ("heloc", "ab"): (100, 8),
    ("compas", "dt"): (1, 4), ("compas", "rf"): (500, 4), ("compas", "ab"): (100, 2),
    ("shopping", "dt"): (1, 4), ("shopping", "rf"): (500, 8), ("shopping", "ab"): (100, 2),
}  # fmt: skip


@dataclass(frozen=True)
class Published:
    """What the paper says of a setting. The baseline is Feature Tweaking in table 1 and DACE in table 2."""

    baseline_mean: float
    focus_mean: float
    relative_mean: float
    percent_closer: float
    mark: str  # "-" FOCUS significantly closer than the baseline, "+" significantly farther, "=" neither
    fidelity: float
    baseline_found: int | None  # rows, where published
    is_complete: bool  # whether the baseline found an answer for every row


@dataclass(frozen=True)
class Setting:
    """One of the 42: a data set, a model, a distance, and FOCUS's parameters for them."""

    dataset: DatasetName
    model: ModelKind
    distance: str
    sigma: float
    tau: float
    beta: float
    alpha: float
    published: Published

    @property
    def id(self) -> str:
        """Such as "wine-ab-euclidean"."""
        return f"{self.dataset}-{self.model}-{self.distance}"

    @property
    def experiment(self) -> int:
        """The table it stands in, 1 or 2."""
        return 2 if self.distance == "mahalanobis" else 1


def _row(
    dataset: DatasetName, model: ModelKind, distance: str, sigma: float, tau: float, beta: float, alpha: float,
    baseline: float, focus: float, relative: float, closer: float, mark: str, fidelity: float, found: int | None = None,
) -> Setting:  # fmt: skip
    """A line of the table below; `found` is -1 where the baseline was incomplete by an unpublished number."""
    known = None if found is None or found < 0 else found
    published = Published(baseline, focus, relative, closer, mark, fidelity, known, found is None)
    return Setting(dataset, model, distance, sigma, tau, beta, alpha, published)


# data set, model, distance, sigma, tau, beta, alpha, baseline's mean, FOCUS's mean, mean ratio, % closer, mark,
# fidelity, rows found by the baseline
SETTINGS: tuple[Setting, ...] = (
    _row("wine", "dt", "euclidean", 1, 10, 0.05, 0.001, 0.269, 0.268, 0.99, 100, "=", 0.836),
    _row("wine", "dt", "cosine", 1, 10, 0.05, 0.005, 0.03, 0.003, 0.066, 100, "-", 0.836),
    _row("wine", "dt", "manhattan", 1, 10, 0.05, 0.001, 0.269, 0.268, 0.99, 100, "=", 0.836),
    _row("wine", "rf", "euclidean", 10, 2, 0.05, 0.005, 0.174, 0.188, 1.256, 21.0, "+", 0.94),
    _row("wine", "rf", "cosine", 10, 1, 0.05, 0.005, 0.017, 0.008, 0.821, 80.8, "-", 0.94),
    _row("wine", "rf", "manhattan", 10, 10, 0.01, 0.005, 0.223, 0.312, 1.977, 5.4, "+", 0.94),
    _row("wine", "ab", "euclidean", 5, 1, 0.05, 0.005, 0.267, 0.188, 0.649, 87.5, "-", 0.926, -1),
    _row("wine", "ab", "cosine", 1, 1, 0.01, 0.005, 0.034, 0.014, 0.312, 95.1, "-", 0.926, -1),
    _row("wine", "ab", "manhattan", 6, 1, 0.01, 0.005, 0.382, 0.36, 0.924, 58.6, "-", 0.926, -1),
    _row("heloc", "dt", "euclidean", 2, 10, 0.05, 0.001, 0.12, 0.133, 1.169, 16.6, "+", 0.836),
    _row("heloc", "dt", "cosine", 2, 10, 0.05, 0.005, 0.003, 0.001, 0.303, 91.6, "-", 0.836),
    _row("heloc", "dt", "manhattan", 2, 10, 0.05, 0.001, 0.135, 0.152, 1.252, 51.3, "+", 0.836),
    _row("heloc", "rf", "euclidean", 10, 5, 0.05, 0.005, 0.21, 0.186, 0.942, 57.9, "-", 0.954),
    _row("heloc", "rf", "cosine", 5, 5, 0.05, 0.005, 0.008, 0.002, 0.285, 91.5, "-", 0.887),
    _row("heloc", "rf", "manhattan", 5, 5, 0.01, 0.005, 0.278, 0.284, 1.144, 43.6, "=", 0.887),
    _row("heloc", "ab", "euclidean", 10, 1, 0.05, 0.001, 0.185, 0.136, 0.907, 71.9, "-", 0.936),
    _row("heloc", "ab", "cosine", 1, 1, 0.05, 0.005, 0.007, 0.001, 0.421, 92.9, "-", 0.744),
    _row("heloc", "ab", "manhattan", 4, 1, 0.05, 0.001, 0.198, 0.203, 1.364, 24.2, "=", 0.905),
    _row("compas", "dt", "euclidean", 6, 10, 0.05, 0.005, 0.082, 0.092, 1.162, 29.4, "+", 0.844),
    _row("compas", "dt", "cosine", 10, 10, 0.05, 0.005, 0.013, 0.008, 0.473, 82.7, "-", 0.894),
    _row("compas", "dt", "manhattan", 6, 10, 0.01, 0.005, 0.086, 0.093, 1.182, 65.8, "+", 0.807),
    _row("compas", "rf", "euclidean", 7, 3, 0.01, 0.001, 0.075, 0.079, 1.15, 22.6, "=", 0.742),
    _row("compas", "rf", "cosine", 10, 6, 0.01, 0.005, 0.014, 0.011, 0.965, 68.0, "-", 0.809),
    _row("compas", "rf", "manhattan", 4, 1, 0.05, 0.001, 0.078, 0.085, 1.236, 36.2, "=", 0.7),
    _row("compas", "ab", "euclidean", 10, 1, 0.01, 0.005, 0.081, 0.076, 1.062, 44.8, "-", 0.922),
    _row("compas", "ab", "cosine", 10, 1, 0.05, 0.005, 0.015, 0.007, 0.539, 84.8, "-", 0.922),
    _row("compas", "ab", "manhattan", 5, 10, 0.05, 0.005, 0.085, 0.09, 1.155, 66.9, "=", 0.814),
    _row("shopping", "dt", "euclidean", 2, 10, 0.05, 0.005, 0.119, 0.142, 1.051, 40.2, "+", 0.902),
    _row("shopping", "dt", "cosine", 10, 10, 0.05, 0.001, 0.05, 0.055, 0.795, 44.4, "+", 0.906),
    _row("shopping", "dt", "manhattan", 2, 10, 0.05, 0.005, 0.121, 0.128, 0.944, 55.8, "=", 0.902),
    _row("shopping", "rf", "euclidean", 5, 5, 0.05, 0.005, 0.028, 0.025, 1.053, 36.1, "-", 0.81),
    _row("shopping", "rf", "cosine", 1, 1, 0.01, 0.001, 0.027, 0.013, 0.482, 86.1, "-", 0.78),
    _row("shopping", "rf", "manhattan", 10, 1, 0.05, 0.001, 0.03, 0.026, 0.796, 81.9, "-", 0.871),
    _row("shopping", "ab", "euclidean", 10, 1, 0.05, 0.001, 0.126, 0.028, 0.218, 99.6, "-", 0.919, -1),
    _row("shopping", "ab", "cosine", 10, 5, 0.05, 0.001, 0.131, 0.006, 0.074, 99.5, "-", 0.919, -1),
    _row("shopping", "ab", "manhattan", 10, 1, 0.05, 0.001, 0.142, 0.046, 0.312, 97.1, "-", 0.919, -1),
    _row("wine", "dt", "mahalanobis", 5, 10, 0.01, 0.001, 1.325, 0.542, 0.42, 100, "-", 0.9, 241),
    _row("heloc", "dt", "mahalanobis", 5, 10, 0.01, 0.001, 1.427, 0.81, 0.622, 94.5, "-", 0.93, 1342),
    _row("compas", "dt", "mahalanobis", 5, 10, 0.01, 0.005, 0.814, 0.776, 1.18, 29.9, "=", 0.807, 842),
    _row("compas", "ab", "mahalanobis", 4, 2, 0.005, 0.001, 1.57, 0.636, 0.372, 96.1, "-", 0.814, 700),
    _row("shopping", "dt", "mahalanobis", 4, 10, 0.01, 0.005, 0.05, 0.023, 0.449, 99.4, "-", 0.902, 362),
    _row("shopping", "ab", "mahalanobis", 10, 1, 0.01, 0.001, 3.23, 0.303, 0.38, 90.8, "-", 0.919, 448),
)  # fmt: skip
BY_ID = {setting.id: setting for setting in SETTINGS}
