"""Certificates hold for what the search returns, and fail for anything that was changed."""

from __future__ import annotations

import contextlib
import copy
import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from treefocus import (
    Chebyshev,
    Euclidean,
    Explainer,
    FewestFeatures,
    Fixed,
    Increasing,
    InvalidInput,
    Manhattan,
    verify,
)
from treefocus.certificate import certify, fingerprint
from treefocus.cli import app
from treefocus.search.base import Status

ROWS, LABELS = load_breast_cancer(return_X_y=True)
MODEL = RandomForestClassifier(15, max_depth=4, random_state=0).fit(ROWS, LABELS)
DISTANCES = {
    "euclidean": "euclidean",
    "manhattan": "manhattan",
    "chebyshev": "chebyshev",
    "l0": "l0",
    "cosine": "cosine",
    "mahalanobis": "mahalanobis",
    "weighted": Euclidean(weights=np.linspace(1, 2, ROWS.shape[1])),
    "sum": 0.5 * Manhattan() + 0.1 * FewestFeatures() + Chebyshev(),
}


def explained(distance="manhattan", n_rows=3, **options):
    explainer = Explainer(MODEL, ROWS, distance=distance, constraints=[Fixed(0), Increasing(3)])
    return explainer, explainer.explain(ROWS[:n_rows], time_limit=0.5, **options)


def through_json(certificate):
    return json.loads(json.dumps(certificate, allow_nan=False))


@pytest.mark.parametrize("name", DISTANCES)
def test_what_the_search_returns_is_certified(name):
    explainer, found = explained(DISTANCES[name])
    for one in found:
        assert verify(through_json(one.certificate()), explainer.forest).holds


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "sum"])
def test_bounds_are_proven_again(name):
    explainer, found = explained(DISTANCES[name])
    assert found[0].status is Status.OPTIMAL
    checked = verify(through_json(found[0].certificate()), explainer.forest, reprove=True)
    assert checked.holds
    assert "proven again" in checked.to_text()


def test_an_infeasible_row_is_certified_and_proven_again():
    explainer = Explainer(MODEL, ROWS, constraints=[Fixed(*range(ROWS.shape[1]))])
    found = explainer.explain(ROWS[:1])
    assert found[0].status is Status.INFEASIBLE
    assert verify(through_json(found[0].certificate()), explainer.forest, reprove=True).holds


def resealed(explainer, found, **changes):
    """A certificate that lies, with a fingerprint that fits the lie."""
    one = found[0]
    problem, point = one.problem, np.array(changes.get("point", one.counterfactual))
    distance = changes.get("distance", one.distance)
    return certify(problem, point, distance, changes.get("lower_bound", one.lower_bound), one.status)


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"point": ROWS[0]}, "wanted answer"),
        ({"distance": 1e-3}, "its distance is"),
        ({"lower_bound": 1e3}, "not above it"),
        ({"lower_bound": 0.0}, "an optimum's bound"),
    ],
)
def test_a_lie_is_found(changes, claim):
    explainer, found = explained()
    checked = verify(through_json(resealed(explainer, found, **changes)), explainer.forest)
    assert not checked.holds
    assert any(claim in check.claim for check in checked.checks if not check.holds)


def test_a_broken_constraint_is_found():
    explainer, found = explained()
    point = found[0].counterfactual.copy()
    point[0] += 1.0  # column 0 is fixed
    checked = verify(through_json(resealed(explainer, found, point=point)), explainer.forest)
    assert any("obeys" in check.claim for check in checked.checks if not check.holds)


def test_a_bound_that_is_too_high_is_not_proven_again():
    explainer, found = explained()
    one = found[0]
    far = certify(one.problem, one.counterfactual, one.distance, one.distance, one.status)
    worse = np.array(one.counterfactual)
    worse[5] = ROWS[:, 5].max()  # farther than needed
    if not one.problem.is_valid(worse[None, :])[0]:
        pytest.skip("the farther point does not flip")
    distance = float(one.problem.distance_to(worse[None, :])[0])
    lie = certify(one.problem, worse, distance, distance, Status.OPTIMAL)
    assert verify(through_json(far), explainer.forest, reprove=True).holds
    assert verify(through_json(lie), explainer.forest).holds  # taken on trust
    assert not verify(through_json(lie), explainer.forest, reprove=True).holds


def test_any_edit_breaks_the_seal():
    explainer, found = explained()
    certificate = through_json(found[0].certificate())
    for key in certificate:
        if key in ("fingerprint", "format"):
            continue
        edited = copy.deepcopy(certificate)
        edited[key] = "something else"
        with contextlib.suppress(InvalidInput):
            assert not verify(edited, explainer.forest).holds


def test_another_model_is_told_apart():
    explainer, found = explained()
    other = Explainer(RandomForestClassifier(15, max_depth=4, random_state=1).fit(ROWS, LABELS), ROWS).forest
    assert fingerprint(other) != fingerprint(explainer.forest)
    assert not verify(found[0].certificate(), other).holds


def test_something_else_is_no_certificate():
    explainer, _ = explained()
    with pytest.raises(InvalidInput, match="format"):
        verify({"format": "something"}, explainer.forest)


def test_limits_are_written_down():
    _, found = explained()
    assert found[0].certificate()["limits"]["time_limit"] == 0.5


def test_the_command_line_verifies(tmp_path):
    explainer, found = explained()
    model, certificate = tmp_path / "model.json", tmp_path / "certificate.json"
    explainer.forest.save(model)
    certificate.write_text(json.dumps(found[0].certificate()))
    good = CliRunner().invoke(app, ["verify", str(certificate), str(model), "--reprove"])
    assert good.exit_code == 0
    assert "proven again" in good.output
    certificate.write_text(json.dumps(resealed(explainer, found, distance=1e-3)))
    bad = CliRunner().invoke(app, ["verify", str(certificate), str(model)])
    assert bad.exit_code == 1
    assert "FAILED" in bad.output
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "none.json"), str(model)]).exit_code == 2
