"""Certificates hold for what the search returns, and fail for anything that was changed."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from typer.testing import CliRunner

from treefocus import (
    Chebyshev,
    Euclidean,
    Explainer,
    FewestFeatures,
    Fixed,
    Forest,
    Increasing,
    Interval,
    InvalidInput,
    Manhattan,
    Probability,
    Range,
    UnsupportedModel,
    verify,
)
from treefocus.cli import app
from treefocus.explanation.certificate import certify
from treefocus.model.fingerprint import fingerprint
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
        assert not verify(through_json(one.certificate()), explainer.forest).failed


def test_a_trained_model_is_checked_against_as_its_forest_is():
    explainer, found = explained()
    certificate = through_json(found[0].certificate())
    assert verify(certificate, MODEL) == verify(certificate, explainer.forest)
    other = RandomForestClassifier(15, max_depth=4, random_state=1).fit(ROWS, LABELS)
    assert "it speaks of this model" in [check.claim for check in verify(certificate, other).failed]
    assert verify(certificate, MODEL, also=[other]) == verify(certificate, explainer.forest)
    with pytest.raises(UnsupportedModel, match=r"supported are .*explainer\.forest"):
        verify(certificate, explainer)
    with pytest.raises(InvalidInput, match="certificate must be a dict"):
        verify("certificate.json", MODEL)


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


def farther(one):
    """A valid point that is farther than the row's optimum, and its distance."""
    for column in range(ROWS.shape[1]):
        for end in (ROWS[:, column].min(), ROWS[:, column].max()):
            point = np.array(one.counterfactual)
            point[column] = end
            distance = float(one.problem.distance_to(point[None])[0])
            if one.problem.is_valid(point[None])[0] and distance > 1.1 * one.distance:
                return point, distance
    raise AssertionError("every farther point is no answer")


def test_a_far_point_that_is_called_optimal_does_not_hold():
    explainer, found = explained()
    point, distance = farther(found[0])
    lie = through_json(certify(found[0].problem, point, distance, distance, Status.OPTIMAL))
    unproven = verify(lie, explainer.forest)
    assert not unproven.holds
    assert not unproven.is_checked
    assert not unproven.failed  # what can be checked of the point itself holds
    assert "NOT CHECKED  nothing is closer than" in unproven.to_text()
    proven = verify(lie, explainer.forest, reprove=True)
    assert proven.is_checked
    assert [check.claim for check in proven.failed] == [
        f"nothing is closer than {distance:.9g}: there is an answer at {found[0].distance:.9g}"
    ]


def test_a_forged_infeasible_row_does_not_hold():
    explainer, found = explained()
    lie = through_json(certify(found[0].problem, None, None, np.inf, Status.INFEASIBLE))
    unproven = verify(lie, explainer.forest)
    assert not unproven.holds
    assert not unproven.is_checked
    assert "NOT CHECKED  there is no answer" in unproven.to_text()
    assert verify(lie, explainer.forest, reprove=True).failed


@pytest.mark.parametrize(
    ("status", "has_point", "bound"),
    [(Status.INFEASIBLE, True, np.inf), (Status.INFEASIBLE, False, 0.0), (Status.OPTIMAL, False, 0.0),
     (Status.NOT_FOUND, False, np.inf), (Status.NOT_FOUND, True, 0.0), (Status.FOUND, True, -1.0)],
)  # fmt: skip
def test_what_contradicts_itself_fails(status, has_point, bound):
    explainer, found = explained()
    point, distance = (found[0].counterfactual, found[0].distance) if has_point else (None, None)
    lie = certify(found[0].problem, point, distance, bound, status)
    assert any("goes together" in check.claim for check in verify(through_json(lie), explainer.forest).failed)


def test_a_proof_that_comes_to_no_end_is_not_a_failure():
    explainer, found = explained("euclidean")
    checked = verify(through_json(found[0].certificate()), explainer.forest, reprove=True, time_limit=1e-9)
    assert not checked.holds
    assert not checked.is_checked
    assert not checked.failed
    assert "came to no end" in checked.to_text()


def test_what_claims_nothing_about_other_points_holds_without_a_proof():
    explainer, found = explained(strategy="focus")
    assert found[0].status is Status.FOUND
    assert verify(through_json(found[0].certificate()), explainer.forest).holds


def test_a_row_without_an_allowed_value_is_proven_again():
    explainer = Explainer(MODEL, ROWS, constraints=[Range(0, 1.0, 2.0), Increasing(0)])
    found = explainer.explain(ROWS[:1])
    assert found[0].status is Status.INFEASIBLE
    assert verify(through_json(found[0].certificate()), explainer.forest, reprove=True).holds


def test_a_row_that_the_model_cannot_read_has_no_certificate():
    explainer = Explainer(MODEL, ROWS)
    unreadable = ROWS[:1].copy()
    unreadable[0, 0] = np.inf
    with pytest.raises(InvalidInput, match="nothing to certify"):
        explainer.explain(unreadable)[0].certificate()


def test_regressions_are_certified():
    model = RandomForestRegressor(10, max_depth=3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1])
    explainer = Explainer(model, ROWS)
    predicted = model.predict(ROWS[:1])[0]
    for target in (Interval(low=predicted + 1.0), Interval(high=predicted + 1.0)):  # to move, and to stay
        found = explainer.explain(ROWS[:1], target=target, time_limit=2.0)
        checked = verify(through_json(found[0].certificate()), explainer.forest, reprove=True)
        assert checked.holds, checked.to_text()
        assert "the row is" in checked.to_text()


def test_a_probability_is_told_as_what_it_is():
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(ROWS, LABELS)
    explainer = Explainer(model, ROWS)
    found = explainer.explain(ROWS[:1], target=Probability(1, 0.6))
    assert explainer.forest.decision == found[0].problem.forest.decision  # the cut alone makes the question
    assert "the row is not where the question leads" in verify(found[0].certificate(), explainer.forest).to_text()


@pytest.mark.parametrize(
    "change",
    [{"link": "softmax"}, {"favoured": 1}, {"cut_high": 3.0}, {"takes_missing": False},
     {"reads": np.array([[0.0], [1.0]]) * np.ones(ROWS.shape[1])}, {"refuses_missing": np.ones(ROWS.shape[1], bool)}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_the_fingerprint_covers_all_that_decides(change):
    forest = Explainer(MODEL, ROWS).forest
    assert fingerprint(dataclasses.replace(forest, **change)) != fingerprint(forest)


def test_certificates_of_the_format_before_are_read():
    forest = Forest.from_nodes(
        feature=[0, -1, 1, -1, -1], threshold=[0.5, 0, 0.25, 0, 0], left=[1, -1, 3, -1, -1], right=[2, -1, 4, -1, -1],
        default_left=[True] * 5, tree_start=[0, 5], base_score=[0.0, 0.0], classes=np.array(["no", "yes"]),
        node_value=np.array([[0, 0], [1, 0], [0, 0], [0.75, 0.25], [0.25, 0.75]]), n_features=2,
        feature_names=("a", "b"), source="hand",
    )  # fmt: skip
    earlier = json.loads(CERTIFICATE_2)
    checked = verify(earlier, forest, reprove=True)
    assert checked.holds, checked.to_text()
    assert "a model with these trees and scores" in checked.to_text()
    assert not verify(earlier, Explainer(MODEL, ROWS).forest).holds


CERTIFICATE_2 = """{
    "format": "treefocus-certificate-2", "version": "0.1.0",
    "forest": "e6465d5d86cf6b5988ca2cdb1b164a9a3b492b83e06d5955e44ac7cd7507492a", "question": {}, "row": [0.0, 1.0],
    "low": [0.0, 0.0], "high": [1.0, 1.0], "offset": [0.0, 0.0], "scale": [1.0, 1.0], "grain": [0, 0],
    "choices": {"column": [], "is_category": [], "start": [0], "value": [], "delta": []},
    "lists": {"start": [0, 0, 0], "value": [], "is_strict": [false, false]},
    "rules": [{"kind": "AtMost", "columns": [0, 1], "n": 2}], "leave": 0, "reach": 1,
    "distance_function": {"kind": "norms", "weights": [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]},
    "status": "OPTIMAL", "point": [0.5000000000000001, 1.0], "distance": 0.5000000000000001,
    "lower_bound": 0.5000000000000001,
    "limits": {"time_limit": 1.0, "node_limit": null, "memory_limit": 1000000000.0},
    "fingerprint": "cbacde390091700ca4d0aa12107f817a9338be8fc17fd2330f9520b60eb35406"
}"""


@pytest.mark.parametrize(
    ("key", "value"),
    [("leave", 7), ("reach", 7), ("row", [0.0]), ("grain", [9] * 30), ("scale", [0.0] * 30), ("point", [1.0]),
     ("rules", [{"kind": "AtMost", "columns": [99], "n": 1}]),
     ("rules", [{"kind": "Linear", "columns": [1, 2], "coefficient": [1.0], "bound": 0.0}]),
     ("lists", {"start": [5] * 31, "value": [], "is_strict": [False] * 30}),
     ("choices", {"column": [0], "is_category": [True], "start": [0, 9], "value": [0.0] * 9, "delta": [0.0] * 9})],
)  # fmt: skip
def test_numbers_that_lead_nowhere_are_refused(key, value):
    explainer, found = explained(n_rows=1)
    with pytest.raises(InvalidInput, match="The certificate"):
        verify(found[0].certificate() | {key: value}, explainer.forest, reprove=True)


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
    unproven = CliRunner().invoke(app, ["verify", str(certificate), str(model)])
    assert unproven.exit_code == 3
    assert "NOT CHECKED" in unproven.output
    certificate.write_text(json.dumps(resealed(explainer, found, distance=1e-3)))
    bad = CliRunner().invoke(app, ["verify", str(certificate), str(model)])
    assert bad.exit_code == 1
    assert "FAILED" in bad.output
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "none.json"), str(model)]).exit_code == 2
