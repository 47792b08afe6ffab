"""The figures: what they show is true, and they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from treefocus import kernels
from treefocus.evaluation import figures, illustrations
from treefocus.evaluation.illustrations import _toy
from treefocus.search.base import History

pytest.importorskip("matplotlib")


def test_activations_are_those_of_the_paper() -> None:
    twin = illustrations.twin()
    forest, is_leaf = twin.forest, twin.forest.left < 0
    assert twin.hard[0] == twin.soft[0] == 1.0
    assert sorted(twin.hard[is_leaf]) == [0.0, 0.0, 0.0, 1.0]
    assert twin.soft[is_leaf].sum() == pytest.approx(1.0)
    for node in np.flatnonzero(~is_leaf):
        assert twin.soft[node] == pytest.approx(twin.soft[forest.left[node]] + twin.soft[forest.right[node]])
    reached = forest.leaf_value[np.flatnonzero(twin.hard[is_leaf])[0]]
    assert kernels.predict(forest, twin.row[None])[0] == reached.argmax()


def test_a_steeper_twin_comes_closer_to_the_tree() -> None:
    soft, sharp = illustrations.twin(2.0), illustrations.twin(500.0)
    assert np.abs(sharp.soft - sharp.hard).max() < 0.05 < np.abs(soft.soft - soft.hard).max()


@pytest.fixture(scope="module")
def shown() -> illustrations.Boundary:
    return illustrations.boundary(n_grid=40)


def test_no_candidate_of_feature_tweaking_flips_and_focus_s_answer_does(shown: illustrations.Boundary) -> None:
    forest = next(
        forest for forest in map(_toy, range(200))
        if np.array_equal(kernels.predict(forest, _grid(shown.axis)).reshape(40, 40), shown.predicted)
    )  # fmt: skip
    own = kernels.predict(forest, shown.row[None])[0]
    assert len(shown.candidates) >= 3
    assert (kernels.predict(forest, shown.candidates) == own).all()
    assert kernels.predict(forest, shown.found[None])[0] != own
    assert kernels.predict(forest, shown.optimum[None])[0] != own
    assert np.linalg.norm(shown.optimum - shown.row) <= np.linalg.norm(shown.found - shown.row)


def _grid(axis: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(axis, axis), axis=2).reshape(-1, 2)


def test_focus_s_way_ends_near_its_answer(shown: illustrations.Boundary) -> None:
    assert np.linalg.norm(shown.path[0] - shown.row) < 0.02
    assert np.linalg.norm(shown.path - shown.found, axis=1).min() < 0.02


def test_trees_boundary_and_iterations_are_drawn(shown: illustrations.Boundary) -> None:
    from matplotlib import pyplot

    history = History(np.array([0.0, 0.5, 1.0]), np.array([np.nan, 0.4, 0.3]))
    drawn = [
        figures.tree_and_twin(illustrations.twin()), figures.boundary(shown), figures.iterations({"a run": history}),
    ]  # fmt: skip
    assert [len(figure.axes) for figure in drawn] == [2, 4, 2]
    texts = [text.get_text() for text in drawn[0].axes[1].texts]
    assert sum("activation" in text for text in texts) == 7
    for figure in drawn:
        pyplot.close(figure)


def test_the_case_study_and_its_bars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from matplotlib import pyplot

    study = illustrations.case_study()
    assert list(study.explanations) == ["euclidean", "cosine", "manhattan", "mahalanobis"]
    moves, any_moves = illustrations.signed_moves(study)
    for name, found in study.explanations.items():
        assert found.outcome[0] == "approved"
        assert not np.abs(moves[name][~any_moves]).any()
    text = figures.case_study_text(study)
    assert text.count("approved") >= 4
    assert text.count("\n- **") == 4
    figure = figures.four_distances(study)
    for ax, move in zip(figure.axes, moves.values(), strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], 100 * move[any_moves])
    pyplot.close(figure)
    monkeypatch.setattr(illustrations, "case_study", lambda: study)
    monkeypatch.setattr(illustrations, "loan_history", lambda: {"run": History(np.ones(2), np.ones(2))})
    names = [path.name for path in figures.draw_all(tmp_path)]
    assert names == ["tree-and-twin.png", "boundary.png", "iterations.png", "four-distances.png", "case-study.md"]
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
