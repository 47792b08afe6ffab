"""The runs behind the figures: small models, explained for real, as plain values that `figures` draws.

They need no data but the loan applications carried with the package, and a toy of two features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels, loans
from treefocus.adapters import translate
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.problem.distances import Mahalanobis, as_distance
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.space import Space
from treefocus.schema.schema import Schema
from treefocus.search.base import History, Run
from treefocus.search.exact import Exact
from treefocus.search.feature_tweaking import FeatureTweaking, Paths
from treefocus.search.focus import Focus

DISTANCES = ("euclidean", "cosine", "manhattan", "mahalanobis")


@dataclass(frozen=True, eq=False)
class Twin:
    """A tree, one row, and the activation of every node: 0 or 1 in the tree, between them in its soft twin."""

    forest: Forest
    names: tuple[str, ...]
    units: tuple[str, ...]
    row: Floats  # (n_features,)
    hard: Floats  # (n_nodes,)
    soft: Floats  # (n_nodes,)
    sigma: float


def twin(sigma: float = 8.0) -> Twin:
    """A tree of four leaves on three columns of the loan applications, and one declined applicant."""
    from sklearn.tree import DecisionTreeClassifier

    X, y = loans.load()
    columns = [loans.SCHEMA.index(name) for name in ("savings", "utilisation", "late_payments")]
    X = X[:, columns]
    forest = translate(DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)).forest
    names = tuple(loans.SCHEMA.names[j] for j in columns)
    units = tuple(loans.SCHEMA.features[j].unit for j in columns)
    space = Space.of(X, "range", None, forest.n_features)
    declined = X[kernels.predict(forest, X) == list(forest.classes).index("declined")]
    row = declined[len(declined) // 2]
    return Twin(forest, names, units, row, *activations(forest, row, space, sigma), sigma)


def activations(forest: Forest, row: Floats, space: Space, sigma: float) -> tuple[Floats, Floats]:
    """(n_nodes,) t_j(x) and t~_j(x): the paper's node activations, the root's is 1."""
    hard, soft = np.ones(len(forest.left)), np.ones(len(forest.left))
    for node in np.flatnonzero(forest.left >= 0):
        f, threshold = forest.feature[node], forest.threshold[node]
        is_left = float(row[f] <= threshold)
        to_left = 1.0 / (1.0 + np.exp(sigma * (row[f] - threshold) / space.scale[f]))
        for child, share, soft_share in (
            (forest.left[node], is_left, to_left),
            (forest.right[node], 1.0 - is_left, 1.0 - to_left),
        ):
            hard[child], soft[child] = hard[node] * share, soft[node] * soft_share
    return hard, soft


@dataclass(frozen=True, eq=False)
class Boundary:
    """A three-tree AdaBoost on two features, a row that Feature Tweaking fails on, and what FOCUS does with it."""

    axis: Floats  # (n,) the grid's positions on either feature
    predicted: Ints  # (n, n) class at (axis[j], axis[i])
    leaves: Floats  # (n_leaves, 4) the boxes of the leaves that vote otherwise than the row: x0, y0, x1, y1
    row: Floats  # (2,)
    candidates: Floats  # (n_candidates, 2) Feature Tweaking's, none of which flips the ensemble
    loss: Floats  # (n, n) the soft prediction loss
    arrows: Floats  # (m, m, 2) downhill, at evenly spaced points
    arrow_axis: Floats  # (m,)
    path: Floats  # (n_iterations, 2) where FOCUS stood
    found: Floats  # (2,) its answer
    optimum: Floats  # (2,)


def boundary(sigma: float = 7.0, n_grid: int = 240) -> Boundary:
    """The first of a fixed series of toys on which Feature Tweaking finds nothing and FOCUS does."""
    focus = Focus(sigma=sigma, tau=3.0, beta=0.01, alpha=0.005, iterations=400, retry=False, polish=False)
    for seed in range(200):
        forest = _toy(seed)
        chosen = _failed_row(forest, focus, seed)
        if chosen is not None:
            return _boundary(forest, chosen, focus, n_grid)
    raise RuntimeError("no toy on which Feature Tweaking fails")  # pragma: no cover


def _toy(seed: int) -> Forest:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    X = rng.random((300, 2))
    centre = rng.uniform(0.55, 0.75, 2)
    y = (((X - centre) ** 2).sum(axis=1) < 0.1).astype(int)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    return translate(AdaBoostClassifier(tree, n_estimators=3, random_state=0).fit(X, y)).forest


def _ask(forest: Forest, rows: Floats) -> Problem:
    return Question(
        forest, rows, space=Space.of(None, None, (0.0, 1.0), 2), distance=as_distance("euclidean").fitted(2, None),
        constraints=(), schema=Schema.of_names(["first", "second"]), grain=np.zeros(2, np.int8), target=None,
    ).problem()  # fmt: skip


def _failed_row(forest: Forest, focus: Focus, seed: int) -> Floats | None:
    """A row of class 0, off the edge, with two failed candidates or more, that FOCUS has an answer for."""
    rows = np.random.default_rng(seed).uniform(0.1, 0.6, (200, 2))
    problem = _ask(forest, rows)
    tweaked = FeatureTweaking(0.02).solve(problem, Run()).distance
    n_candidates = Paths.of(forest).changes_vote(problem).sum(axis=1)
    near = focus.solve(problem, Run()).distance
    good = (problem.batch.origin == 0) & np.isnan(tweaked) & (n_candidates >= 3) & (near > 0.12) & (near < 0.45)
    return rows[np.flatnonzero(good)[0]] if good.any() else None


def _boundary(forest: Forest, row: Floats, focus: Focus, n_grid: int) -> Boundary:
    axis = np.linspace(0.0, 1.0, n_grid)
    everywhere = np.stack(np.meshgrid(axis, axis), axis=2).reshape(-1, 2)
    problem = _ask(forest, row[None])
    paths = Paths.of(forest)
    counts = paths.changes_vote(problem)[0]
    soft = focus.soft_forest(forest, problem.batch)
    arrow_axis = np.linspace(0.04, 0.96, 18)
    at = np.stack(np.meshgrid(arrow_axis, arrow_axis), axis=2).reshape(-1, 2)

    def loss(points: Floats) -> tuple[Floats, Floats]:
        label = np.zeros(len(points), np.int32)
        return kernels.soft_loss(forest, soft, points, label, np.ones(len(points), np.int8))

    track = np.array([focused(problem, replace(focus, iterations=n)) for n in range(1, focus.iterations, 4)])
    return Boundary(
        axis,
        kernels.predict(forest, everywhere).reshape(n_grid, n_grid),
        _boxes(paths)[counts],
        row,
        paths.tweaked(problem, np.full(2, 0.02))[0][counts],
        loss(everywhere)[0].reshape(n_grid, n_grid),
        -loss(at)[1].reshape(len(arrow_axis), len(arrow_axis), 2),
        arrow_axis,
        track,
        focus.solve(problem, Run()).points[0],
        Exact().solve(problem, Run()).points[0],
    )


def focused(problem: Problem, focus: Focus) -> Floats:
    """(n_features,) where FOCUS stands after its iterations: the reference loop, read at its last step."""
    from treefocus.kernels import reference
    from treefocus.kernels.inputs import Descent

    class Last:
        """The distance, remembering where it was last asked: in the loop's last step, at the last point."""

        at: Any = None

        def value(self, z: Floats, y: Floats) -> Floats:
            self.at = y
            return problem.distance.value(z, y)

        def gradient(self, z: Floats, y: Floats) -> Floats:
            return problem.distance.gradient(z, y)

    last = Last()
    descent = Descent(focus.beta, focus.alpha, focus.iterations)
    soft = focus.soft_forest(problem.forest, problem.batch)
    reference.descend(
        problem.forest, soft, last, descent, problem.batch, soft_loss=kernels.soft_loss, predict=kernels.predict
    )
    return np.asarray(problem.batch.from_z(last.at)[0])


def _boxes(paths: Paths) -> Floats:
    """(n_leaves, 4) the box of every leaf of two features, within [0, 1]."""
    boxes = np.tile(np.array([0.0, 0.0, 1.0, 1.0]), (len(paths.vote), 1))
    for step in range(paths.feature.shape[1]):
        for f in (0, 1):
            mine = paths.feature[:, step] == f
            left = mine & paths.goes_left[:, step]
            right = mine & ~paths.goes_left[:, step]
            boxes[left, 2 + f] = np.minimum(boxes[left, 2 + f], paths.threshold[left, step])
            boxes[right, f] = np.maximum(boxes[right, f], paths.threshold[right, step])
    return boxes


@dataclass(frozen=True, eq=False)
class CaseStudy:
    """One declined loan applicant under the four distances."""

    explanations: dict[str, Explanations]  # of one row, by distance
    names: tuple[str, ...]

    def sentences(self) -> dict[str, str]:
        """What the applicant is told, by distance."""
        return {name: found[0].to_text(proof=True) for name, found in self.explanations.items()}


def case_study(applicant: int = 49) -> CaseStudy:
    """The smallest changes that would get one declined applicant the loan."""
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    found = {}
    for name in DISTANCES:
        distance: Any = Mahalanobis() if name == "mahalanobis" else name
        explainer = Explainer(
            trained.model, trained.X_train, distance=distance, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
        )
        found[name] = explainer.explain(declined[applicant : applicant + 1], target="approved", time_limit=5)
    return CaseStudy(found, loans.SCHEMA.names)


def loan_history(iterations: int = 1000) -> dict[str, History]:
    """FOCUS on the declined loan applicants, iteration by iteration, for two steepnesses."""
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    explainer = Explainer(trained.model, trained.X_train, distance="manhattan")
    runs = {
        f"loans, sigma {sigma:g}": Focus(sigma=sigma, iterations=iterations, retry=False, polish=False, history=True)
        for sigma in (5.0, 20.0)
    }
    return {name: _known(explainer.explain(declined, strategy=focus).history) for name, focus in runs.items()}


def _known(history: History | None) -> History:
    assert history is not None
    return history


def signed_moves(study: CaseStudy) -> tuple[dict[str, Floats], Bools]:
    """By distance (n_features,) how far each feature moves as a share of its range; and which move in any."""
    moves = {name: np.asarray(found.parts[0]) for name, found in study.explanations.items()}
    any_moves: NDArray[np.bool_] = np.any([np.abs(move) > 1e-9 for move in moves.values()], axis=0)
    return moves, any_moves
