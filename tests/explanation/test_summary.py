"""What is computed before it is drawn: probabilities are the model's own, maps are exact, burdens are counted right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from support.questions import stump
from treefocus import Explainer, Explanations, Focus, InvalidInput, Range, Status, kernels, loans
from treefocus.explanation.predictions import probabilities

MODELS = [
    DecisionTreeClassifier(max_depth=3, random_state=0),
    RandomForestClassifier(7, max_depth=3, random_state=0),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=0),
    GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
]


@pytest.fixture(scope="module")
def found() -> Explanations:
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    rows = pd.DataFrame(declined[:60], columns=loans.SCHEMA.names)
    explainer = Explainer(
        trained.model, trained.X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    return explainer.explain(rows, target="approved", strategy=Focus(iterations=200))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_probabilities_are_the_models_own(model: Any, n_classes: int) -> None:
    X, y = make_classification(200, 6, n_informative=4, n_classes=n_classes, random_state=0)
    model.fit(X, y)
    np.testing.assert_allclose(probabilities(Explainer(model, X).forest, X), model.predict_proba(X), atol=1e-12)


def test_probabilities_along_the_way_start_at_the_row_and_end_at_the_shown_numbers(found: Explanations) -> None:
    assert found.problem is not None
    forest = found.problem.forest
    for i, one in enumerate(found):
        along = one.probabilities()
        ends = probabilities(forest, np.stack([one.row, found.shown[i]]))
        assert (along[0], along[-1]) == tuple(ends[:, 0])  # "approved" comes first
        assert along[0] == found.probabilities()[i]


def test_a_map_says_what_the_model_says(found: Explanations) -> None:
    one = found[0]
    drawn = one.map("savings", "loan_amount")
    assert (drawn.x_name, drawn.y_name) == ("savings", "loan_amount")
    rng = np.random.default_rng(0)
    forest = one.problem.forest
    assert one.counterfactual is not None
    points = np.repeat(one.counterfactual[None, :], 300, axis=0)
    for column, edges in ((4, drawn.x_edges), (5, drawn.y_edges)):
        points[:, column] = rng.uniform(edges[0], edges[-1], 300)
    at_x = np.searchsorted(drawn.x_edges, points[:, 4], side="left") - 1
    at_y = np.searchsorted(drawn.y_edges, points[:, 5], side="left") - 1
    np.testing.assert_array_equal(drawn.answer[at_y, at_x], kernels.predict(forest, points))
    others = {change.feature for change in one.changes} - {"savings", "loan_amount"}
    assert drawn.is_through_answer == bool(others)
    assert drawn.point == (one.counterfactual[4], one.counterfactual[5])


def test_a_map_takes_the_two_largest_changes_unless_told(found: Explanations) -> None:
    one = next(one for one in found if len(one.changes) > 1)
    drawn = one.map(path=False)
    assert (drawn.x_name, drawn.y_name) == tuple(change.feature for change in one.changes[:2])
    assert drawn.path is None
    assert one.map("age", path=False).x_name == "age"
    other = one.map(y=one.changes[0].feature, path=False)
    assert (other.x_name, other.y_name) == (one.changes[1].feature, one.changes[0].feature)


def test_the_path_starts_at_the_row(found: Explanations) -> None:
    one = found[0]
    drawn = one.map()
    assert drawn.path is not None
    assert tuple(drawn.path[0]) == drawn.row
    assert len(drawn.path) == 301


def test_asked_features_are_counted(found: Explanations) -> None:
    asked = found.asked()
    assert [one.rows for one in asked] == sorted((one.rows for one in asked), reverse=True)
    for one in asked:
        changes = [change for answer in found for change in answer.changes if change.feature == one.feature]
        assert one.rows == len(changes) == one.n_up + one.n_down
        assert one.share == one.rows / found.has_answer.sum()
        steps = [change.shown - change.before for change in changes]
        up = sorted(step for step in steps if step > 0)
        assert one.n_up == len(up)
        if up:
            assert one.typical_up == pytest.approx(up[(len(up) - 1) // 2])
        assert one.typical in (one.typical_up, one.typical_down)
    assert found.summary()["features"] == [one.to_dict() for one in asked]
    assert all(one.n_down == 0 for one in asked if one.feature in ("income", "savings"))


def test_a_summary_has_each_groups_burden(found: Explanations) -> None:
    groups = found.summary("dependants")["groups"]
    labels = found.table.values[:, 1]
    assert list(groups) == sorted(set(labels.astype(int).tolist()))
    for label, one in groups.items():
        own = labels == label
        assert one["rows"] == own.sum()
        assert one["mean_distance"] == pytest.approx(np.nanmean(found.distance[own]))
        assert one["share_found"] == 1.0
        assert one["share_infeasible"] == 0.0
    assert "groups" not in found.summary()


def test_groups_may_be_labels_of_any_kind() -> None:
    data = np.array([[0.0, 0.0], [1.0, 1.0]])
    explainer = Explainer(stump(), data, constraints=Range(0, high=0.4))
    found = explainer.explain([[0.2, 0.3], [0.9, 0.3], [0.3, 0.1], [0.1, 0.1]])
    assert found.status[0] is Status.INFEASIBLE
    groups = found.summary(["x", "y", None, np.nan])["groups"]
    assert list(groups) == ["x", "y", None]
    assert groups["x"]["share_infeasible"] == 1.0
    assert np.isnan(groups["x"]["mean_distance"])
    assert groups["y"]["share_found"] == 1.0
    assert groups[None]["rows"] == 2
    assert found.summary(np.array([1, 1, 2, 2]))["groups"][1]["share_infeasible"] == 0.5
    assert list(found.summary(pd.Series([True, False, True, False]))["groups"]) == [False, True]
    assert len(found.summary([(1, 2), "a", 3, 2.5])["groups"]) == 4
    with pytest.raises(InvalidInput, match=r"^groups must be a label for each of the 4 rows, got 1\.$"):
        found.summary(["x"])
    with pytest.raises(InvalidInput, match="There is no column"):
        found.summary("nothing")
