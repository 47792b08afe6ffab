"""The checker accepts what is proven, and nothing that is false, whatever is written in the proof."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import treefocus.check
from treefocus import (
    AtMost,
    Condition,
    Decreasing,
    Explainer,
    Fixed,
    Forest,
    Implies,
    Increasing,
    Interval,
    Linear,
    MayBeMissing,
    OneOf,
    Probability,
    Score,
    Status,
    Together,
)
from treefocus.check import ACCEPTED, CELL, EMPTY, MISUSE, REJECTED, SCORE, UNPROVEN, judge
from treefocus.cli import app
from treefocus.problem.distances import Chebyshev, Euclidean, FewestFeatures, Mahalanobis, Manhattan
from truth.claims import answered, judged
from truth.problems import drawn

ROWS, LABELS = load_breast_cancer(return_X_y=True)
ROWS = ROWS[:, :8]
DISTANCES = {
    "manhattan": "manhattan",
    "euclidean": "euclidean",
    "chebyshev": "chebyshev",
    "l0": "l0",
    "weighted": Euclidean(weights=np.linspace(1, 2, 8)),
    "manhattan + l0": Manhattan() + 0.2 * FewestFeatures(),
    "sum": 0.5 * Manhattan() + Euclidean() + 0.3 * Chebyshev() + 0.1 * FewestFeatures(),
}
MODELS = {
    "forest": lambda: RandomForestClassifier(12, max_depth=4, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=15, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=15, random_state=0),
    "adaboost": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0),
}


@cache
def model(name="forest"):
    return MODELS[name]().fit(ROWS, LABELS)


def through_json(record):
    return json.loads(json.dumps(record, allow_nan=False))


def files_of(explainer):
    """The files of the model and of the others that have to agree."""
    return [json.loads(json.dumps(own.to_record())) for own in (explainer.forest, *explainer.also)]


def certified(explainer, rows, target=None, **options):
    """The certificate of every row with its proof, and the model file."""
    found = explainer.explain(rows, target, **options)
    return [through_json(one.certificate(proof=True)) for one in found], files_of(explainer)[0]


def accepted(explainer, rows, target=None, at_least=1):
    certificates, file = certified(explainer, rows, target)
    n_proven, files = 0, files_of(explainer)
    for record in certificates:
        code, sentences = judge(record, *files)
        assert code in (ACCEPTED, UNPROVEN), sentences
        n_proven += code == ACCEPTED and "proof" in record
    assert n_proven >= at_least
    return certificates, file


@pytest.mark.parametrize("name", DISTANCES)
def test_what_is_proven_is_accepted_under_every_sum_over_columns(name):
    accepted(Explainer(model(), ROWS, distance=DISTANCES[name]), ROWS[:6], at_least=6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("distance", ["manhattan", "euclidean"])
def test_what_is_proven_is_accepted_for_every_model(name, distance):
    accepted(Explainer(model(name), ROWS, distance=distance), ROWS[:6], at_least=6)


RULES = {
    "at most": [AtMost(2)],
    "together": [Together(0, 1, 2)],
    "implies": [Implies(Condition(0, high=14.0), Condition(1, low=18.0))],
    "directions": [Fixed(0, 1), Increasing(2)],
    "nothing may change": [Fixed(*range(8))],
    "several": [AtMost(3), Together(0, 2), Fixed(5)],
    "a sum": [Linear({0: 1.0, 1: -1.0}, at_most=-2.0)],
    "two sums": [Linear({0: 1.0, 1: -1.0}, at_most=-2.0), Linear({2: -1.0, 3: -0.1}, at_most=-150.0)],
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("distance", ["manhattan", "euclidean", "chebyshev"])
def test_what_is_proven_is_accepted_under_rules(name, distance):
    explainer = Explainer(model(), ROWS, distance=distance, constraints=RULES[name])
    is_decided = "sum" not in name or distance != "chebyshev"  # of any numbers, under a maximum: docs/exact.md
    accepted(explainer, ROWS[15:21], at_least=4 if is_decided else 0)


def test_several_classes():
    rows, labels = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(rows, labels)
    for target in (None, 2):
        accepted(Explainer(forest, rows, distance="manhattan"), rows[:100:20], target, at_least=5)


@pytest.mark.parametrize("name", ["forest", "boosting", "histogram"])
@pytest.mark.parametrize("label", [0, 1])
def test_probabilities(name, label):
    explainer = Explainer(model(name), ROWS, distance="euclidean")
    others = ROWS[model(name).predict(ROWS) != label][:4]
    accepted(explainer, others, Probability(label, 0.7), at_least=3)


def test_probabilities_of_several_classes():
    rows, labels = load_iris(return_X_y=True)
    for made in (
        GradientBoostingClassifier(n_estimators=6, random_state=0),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, random_state=0),
    ):
        explainer = Explainer(made.fit(rows, labels), rows, distance="manhattan")
        accepted(explainer, rows[:50:10], Probability(2, 0.5), at_least=4)


def test_intervals_and_scores():
    rows, value = ROWS[:, 1:], ROWS[:, 0]
    middle = float(np.median(value))
    forest = RandomForestRegressor(8, max_depth=4, random_state=0).fit(rows, value)
    low = rows[value < middle - 2][:4]
    accepted(Explainer(forest, rows, distance="manhattan"), low, Interval(middle, middle + 3), at_least=4)
    counts = HistGradientBoostingRegressor(loss="poisson", max_iter=10, random_state=0).fit(rows, value)
    accepted(Explainer(counts, rows, distance="manhattan"), low, Interval(middle, middle + 3), at_least=4)
    scores = Explainer(model("boosting"), ROWS, distance="manhattan")
    accepted(scores, ROWS[:4], Score(low=0.5), at_least=3)


def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "home": pd.Categorical(rng.choice(["rent", "own", "free"], 300)),
        "age": rng.integers(18, 80, 300),
        "income": rng.normal(30, 9, 300).round(1),
    })  # fmt: skip
    frame.loc[::7, "income"] = np.nan
    wanted = (frame["income"].fillna(20) + 9 * (frame["home"] == "own") + frame["age"] / 8 > 38).astype(int)
    return frame, HistGradientBoostingClassifier(max_iter=12, categorical_features="from_dtype").fit(frame, wanted)


@pytest.mark.parametrize("constraints", [[], [MayBeMissing("income")], [AtMost(1)], [Together("home", "age")]])
def test_categories_whole_numbers_and_missing_values(constraints):
    frame, made = mixed()
    accepted(Explainer(made, frame, distance="manhattan", constraints=constraints), frame.iloc[:15], at_least=10)


def test_forests_whose_leaves_hold_whole_votes():
    """Sums are whole numbers here, and one vote less than what is asked is less."""
    rows, labels = load_iris(return_X_y=True)
    kept = labels != 1
    forest = RandomForestClassifier(5, random_state=0).fit(rows[kept], labels[kept])
    accepted(Explainer(forest, rows, distance="manhattan"), rows[::20], at_least=8)


def test_a_value_may_become_missing():
    frame, made = mixed()
    frame["income"] = frame["income"].fillna(20.0)
    frame.loc[frame["income"] < 30, "income"] = np.nan  # a missing value is what the answer hangs on
    made.fit(frame, frame["income"].isna())
    explainer = Explainer(made, frame, distance="manhattan", constraints=[MayBeMissing("income"), Fixed("home")])
    asked = frame[frame["income"] > 40].iloc[:4]
    certificates, _ = accepted(explainer, asked, at_least=4)
    assert "nan" in {record["point"][2] for record in certificates}


def test_a_missing_value_of_a_list_stays_where_it_may_only_fall():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"term": rng.choice([12.0, 24.0, 36.0, np.nan], 200), "income": rng.normal(size=200)})
    made = HistGradientBoostingClassifier(max_iter=8).fit(frame, frame["income"] + (frame["term"] == 24) > 0.5)
    constraints = [OneOf("term", [12, 24, 36]), Decreasing("term")]
    explainer = Explainer(made, frame, distance="manhattan", constraints=constraints)
    accepted(explainer, frame[frame["term"].isna()].iloc[:5], at_least=5)


def test_a_condition_is_asked_of_its_own_column_alone():
    frame, made = mixed()
    frame["income"] -= 100  # no such number is a category's
    rule = Implies(Condition("income", low=-68.0), Condition("home", values=["own"]))
    explainer = Explainer(made.fit(frame, frame["home"] == "own"), frame, distance="manhattan", constraints=[rule])
    accepted(explainer, frame.iloc[:12], at_least=8)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_proof_of_a_drawn_problem_is_rejected(first):
    """Problems over all distances, constraints, columns, targets and libraries, as the truth campaign draws them."""
    n_proven = 0
    for seed in range(first, first + 20):
        try:
            explainer, found = answered(drawn(seed))
        except treefocus.InvalidInput:
            continue
        files = files_of(explainer)
        for one in found:
            if one.status is not Status.INVALID:
                record = through_json(one.certificate(proof=True))
                code, sentences = judge(record, *files)
                assert code != REJECTED, (seed, sentences)
                n_proven += code == ACCEPTED and "proof" in record
    assert n_proven >= 5


# ------------------------------------------------------------------------------------------------------ what is false


def leaves_of(boxes):
    """Where the reasons stand in a proof's numbers."""
    check, at, found = treefocus.check, 0, []
    while at < len(boxes):
        token = boxes[at]
        if token <= CELL:
            found.append(at)
        at += 3 + 2 * boxes[at + 2] if token == check.SPLIT else {EMPTY: 1, CELL: 1}.get(token, 2)
    return found


@cache
def true_one():
    """A certificate whose proof has several boxes, and not many: every change of it is one more check."""
    certificates, file = certified(Explainer(model(), ROWS, distance="manhattan"), ROWS[:20])
    n_leaves = [len(leaves_of(record["proof"]["goals"][0]["boxes"])) for record in certificates]
    _, at = min((n, at) for at, n in enumerate(n_leaves) if n >= 8)
    assert judge(certificates[at], file)[0] == ACCEPTED
    return certificates[at], file


def changed(**fields):
    record, file = true_one()
    return copy.deepcopy(record) | fields, file


def claiming(bound):
    """The same proof under a claim about more points than it is about."""
    record, file = changed(lower_bound=bound, status="NOT_FOUND", point=None, distance=None)
    record["proof"]["below"] = bound
    return record, file


def test_a_bound_above_the_optimum_is_rejected():
    record, _ = true_one()
    for raised in (1 + 1e-6, 1.01, 2.0):
        assert judge(*claiming(record["distance"] * raised))[0] == REJECTED
    record, file = changed(lower_bound="inf", status="INFEASIBLE", point=None, distance=None)
    assert judge(record, file)[0] == REJECTED
    record["proof"]["below"] = "inf"
    assert judge(record, file)[0] == REJECTED


def test_a_proof_of_less_is_no_proof_of_more():
    record, file = changed()
    record["proof"]["below"] *= 0.9
    assert judge(record, file)[0] == REJECTED


def test_every_number_that_is_left_out_is_missed():
    record, file = true_one()
    boxes = record["proof"]["goals"][0]["boxes"]
    leaves = leaves_of(boxes)
    for at in (0, *leaves[:: max(1, len(leaves) // 20)]):
        bad = copy.deepcopy(record)
        del bad["proof"]["goals"][0]["boxes"][at]
        assert judge(bad, file)[0] == REJECTED


def verdict(record, file, at, reason):
    bad = copy.deepcopy(record)
    boxes = bad["proof"]["goals"][0]["boxes"]
    boxes[at : at + (2 if boxes[at] == SCORE else 1)] = reason
    return judge(bad, file)[0]


def test_every_wrong_reason_is_rejected():
    record, file = true_one()
    # A box of which the checker finds nothing left is closed whatever is said of it; the others are a few of many.
    places = leaves_of(record["proof"]["goals"][0]["boxes"])
    full = [at for at in places if verdict(record, file, at, [EMPTY]) == REJECTED][:8]
    assert len(full) >= 3
    for at in full:
        assert {verdict(record, file, at, reason) for reason in ([SCORE, 1], [SCORE, -1])} == {REJECTED}
    assert REJECTED in {verdict(record, file, at, [CELL]) for at in full}  # in a single cell it is a reason, too


def test_a_rule_that_is_not_asked_for_closes_nothing():
    explainer = Explainer(model(), ROWS, distance="manhattan", constraints=[AtMost(1)])
    certificates, file = certified(explainer, ROWS[:12])
    with_rules = [one for one in certificates if one["status"] == "INFEASIBLE" and "proof" in one]
    assert with_rules
    for record in with_rules:
        assert judge(record, file)[0] == ACCEPTED
        record["rules"] = []
        assert judge(record, file)[0] == REJECTED


def with_cells(record, column, cells):
    """The same with other cells of a column in its proof."""
    bad = copy.deepcopy(record)
    bad["proof"]["cells"][column] = cells
    return bad


@pytest.mark.parametrize("constraints", [[], [MayBeMissing("income")]])
def test_cells_that_leave_out_an_allowed_value_are_rejected(constraints):
    """Numbers, whole numbers, categories and missing values: whatever is dropped, narrowed or thrown together."""
    frame, made = mixed()
    frame["age"] = frame["age"].astype(int)
    certificates, file = certified(
        Explainer(made, frame, distance="manhattan", constraints=constraints), frame.iloc[:8]
    )
    proven = [one for one in certificates if "proof" in one]
    assert len(proven) >= 4
    for record in proven:
        for column, cells in enumerate(record["proof"]["cells"]):
            for i in {0, len(cells) // 2, len(cells) - 1}:
                assert judge(with_cells(record, column, cells[:i] + cells[i + 1 :]), file)[0] == REJECTED
                low, high = cells[i]
                if low != "nan" and low < high:
                    narrower = [*cells[:i], [low + (high - low) / 2, high], *cells[i + 1 :]]
                    assert judge(with_cells(record, column, narrower), file)[0] == REJECTED
            numbers = [one for one in cells if one[0] != "nan"]
            if len(numbers) > 1 and record["row"][column] != "nan":  # the row's own value is in it with others
                whole = [[numbers[0][0], numbers[-1][1]], *cells[len(numbers) :]]
                assert judge(with_cells(record, column, whole), file)[0] == REJECTED


def with_weights(record, change):
    """The same with other points and prices in its proof."""
    bad = copy.deepcopy(record)
    for goal in bad["proof"]["goals"]:
        goal["weights"] = [change(point, prices) for point, prices in goal["weights"]]
    return bad


def test_other_prices_of_a_sum_prove_nothing():
    explainer = Explainer(model(), ROWS, distance="manhattan", constraints=RULES["a sum"])
    certificates, file = certified(explainer, ROWS[19:21])
    with_sums = [one for one in certificates if any(goal["weights"] for goal in one["proof"]["goals"])]
    assert with_sums
    for record in with_sums:
        assert judge(record, file)[0] == ACCEPTED
        for by in (0.0, -1.0):
            bad = with_weights(record, lambda point, prices, by=by: (point, [by * price for price in prices]))
            assert judge(bad, file)[0] == REJECTED
        bad = copy.deepcopy(record)
        bad["rules"][0]["bound"] += 1e6
        assert judge(bad, file)[0] == REJECTED


COUPLED = {"mahalanobis": "mahalanobis", "squared": Mahalanobis(squared=True), "cosine": "cosine"}


@cache
def coupled(name):
    """Certificates of a small forest under a distance that couples its columns."""
    if name == "cosine":  # a drawn one: where scaling the row flips the model, an angle of 0 is enough
        explainer, found = answered(drawn(36))
        (file,) = files_of(explainer)
        certificates = [through_json(one.certificate(proof=True)) for one in found]
        assert [judge(record, file)[0] for record in certificates] == [ACCEPTED] * 2
        assert all(record["distance"] > 0 for record in certificates)
        return certificates, file
    rows = np.random.default_rng(0).normal(size=(200, 4))
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(rows, rows[:, 0] > rows[:, 1])
    explainer = Explainer(forest, rows, distance=COUPLED[name])
    certificates, file = certified(explainer, rows[:3])
    assert [judge(record, file)[0] for record in certificates] == [ACCEPTED] * 3
    assert all(any(goal["weights"] for goal in record["proof"]["goals"]) for record in certificates)
    return certificates, file


@pytest.mark.parametrize("name", COUPLED)
def test_what_is_proven_under_a_coupled_distance_is_accepted_and_nothing_more(name):
    certificates, file = coupled(name)
    for record in certificates:
        bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
        for by in (1.0001, 1.5):
            bad["lower_bound"] = bad["proof"]["below"] = record["distance"] * by
            assert judge(bad, file)[0] == REJECTED
        assert judge(copy.deepcopy(record) | {"distance": record["distance"] * 1.001}, file)[0] == REJECTED


@pytest.mark.parametrize("name", ["mahalanobis", "squared"])
def test_under_a_coupled_distance_other_points_prove_nothing(name):
    certificates, file = coupled(name)
    for change in (lambda point, prices: ([0.0] * 4, prices), lambda point, prices: ([-v for v in point], prices)):
        assert REJECTED in {judge(with_weights(record, change), file)[0] for record in certificates}
    junk = with_weights(certificates[0], lambda point, prices: ([1.0], prices))
    assert judge(junk, file)[0] == REJECTED


@pytest.mark.parametrize("name", ["mahalanobis", "squared"])
def test_under_another_coupled_distance_a_proof_is_none(name):
    certificates, file = coupled(name)
    for record in certificates:
        bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
        distance = bad["distance_function"]
        moved = [f for f in range(4) if record["point"][f] != record["row"][f]]
        for f in moved:  # that move counts for nearly nothing
            distance["weight"][f] *= 1e-6
        distance["inverse"] = [[0.01 * value for value in row] for row in distance["inverse"]]
        assert judge(bad, file)[0] == REJECTED
        for matrix in ([[-1.0] * 4] * 4, [[1.0] * 4] * 4, np.triu(np.ones((4, 4))).tolist()):
            distance["inverse"] = matrix  # of no distance
            assert judge(bad, file)[0] == REJECTED


def tied(extra=0.0):
    """Two trees whose votes are a tie where both columns are high, and a tie goes to the first class."""
    return {
        "format": "treefocus-forest-1", "n_features": 2, "classes": ["no", "yes"], "decision": "argmax",
        "feature": [0, -1, -1, 1, -1, -1], "threshold": [0.5, 0.0, 0.0, 0.5, 0.0, 0.0], "left": [1, -1, -1, 4, -1, -1],
        "right": [2, -1, -1, 5, -1, -1], "default_left": [True] * 6, "tree_start": [0, 3, 6],
        "leaf_value": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0 + extra]], "base_score": [0.0, 0.0],
    }  # fmt: skip


def test_a_single_cell_is_computed_as_the_model_computes():
    explainer = Explainer(Forest.from_record(tied()), np.array([[0.0, 0.0], [1.0, 1.0]]), distance="manhattan")
    (record,), _ = certified(explainer, np.zeros((1, 2)))
    assert record["status"] == "INFEASIBLE"
    assert CELL in record["proof"]["goals"][0]["boxes"]
    assert judge(record, tied())[0] == ACCEPTED
    assert judge(record, tied(1e-12))[0] == REJECTED


def nearest(forest_record, record):
    """What the search says of a changed model or question: the distance of the closest answer, infinity if none."""
    explainer = Explainer(Forest.from_record(forest_record), ROWS, distance="manhattan")
    found = explainer.explain(np.array([record["row"]]), strategy="exact")[0]
    return np.inf if found.distance is None else found.distance


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(-1, 1))
def test_of_another_model_only_what_is_true_is_accepted(leaf, by):
    record, file = changed()
    file = copy.deepcopy(file)
    values = file["leaf_value"][leaf % len(file["leaf_value"])]
    values[0], values[1] = values[0] + by, values[1] - by
    if judge(record, file)[0] == ACCEPTED:
        assert nearest(file, record) >= record["lower_bound"] * (1 - 1e-7)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(ROWS) - 1))
def test_of_another_row_only_what_is_true_is_accepted(i):
    record, file = changed(row=ROWS[i].tolist(), point=None, distance=None, status="NOT_FOUND")
    if judge(record, file)[0] == ACCEPTED:
        assert nearest(file, record) >= record["lower_bound"] * (1 - 1e-7)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_proof_of_what_is_false_is_accepted(data):
    """The claim is false, and the proof is whatever comes out of changes to a true one."""
    true, _ = true_one()
    record, file = claiming(true["distance"] * data.draw(st.sampled_from([1.00001, 1.1, 3.0])))
    boxes = record["proof"]["goals"][0]["boxes"]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(boxes) - 1))
        kind = data.draw(st.sampled_from(["change", "drop", "add", "cut"]))
        if kind == "change":
            boxes[at] = data.draw(st.integers(-1, 12))
        elif kind == "drop" and len(boxes) > 1:
            del boxes[at]
        elif kind == "add":
            boxes.insert(at, data.draw(st.integers(0, 9)))
        elif kind == "cut" and at:
            del boxes[at:]
    assert judge(record, file)[0] == REJECTED


def forged(record, rng):
    """A claim of more than is true, with a proof that was made of a true one by some changes, or by none."""
    bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
    bad["lower_bound"] = record["distance"] * rng.choice([1 + 1e-5, 1.01, 1.5, 10.0])
    if rng.random() < 0.2:
        bad |= {"lower_bound": "inf", "status": "INFEASIBLE"}
    proof = bad["proof"]
    proof["below"] = bad["lower_bound"]
    for _ in range(rng.integers(0, 4)):
        goal = proof["goals"][rng.integers(len(proof["goals"]))]
        boxes, kind = goal["boxes"], rng.choice(["change", "drop", "add", "cells", "lengths", "weights"])
        at = int(rng.integers(len(boxes))) if boxes else 0
        if kind == "change" and boxes:
            boxes[at] = int(rng.integers(0, 8))
        elif kind == "drop" and boxes:
            del boxes[at]
        elif kind == "add":
            boxes.insert(at, int(rng.integers(0, 5)))
        elif kind == "cells":
            cells = proof["cells"][rng.integers(len(proof["cells"]))]
            if cells and rng.random() < 0.5:
                del cells[rng.integers(len(cells))]
            elif cells:
                i = int(rng.integers(len(cells)))
                cells[i] = [cells[i][0], cells[-1][1]] if rng.random() < 0.5 else [cells[0][0], cells[i][1]]
        elif kind == "lengths" and proof["lengths"]:
            proof["lengths"] = proof["lengths"][:: int(rng.integers(2, 9))]
        elif kind == "weights" and goal["weights"]:
            by = float(rng.choice([-1.0, 0.0, 0.5, 3.0]))
            goal["weights"] = [[[by * v for v in part] for part in pair] for pair in goal["weights"]]
    return bad


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.campaign) for k in range(100, 2000, 100))])
def test_no_false_claim_about_a_drawn_problem_is_accepted(first):
    """Over all distances, constraints, columns, targets, libraries: more than the optimum is not accepted."""
    rng, n_forged, seeds = np.random.default_rng(first), 0, count(first)
    while n_forged < 90:
        seed = next(seeds)
        try:
            explainer, found = answered(drawn(seed))
        except treefocus.InvalidInput:
            continue
        files = files_of(explainer)
        for one in found:
            if one.status is Status.OPTIMAL and one.distance > 1e-6:
                record = through_json(one.certificate(proof=True))
                for _ in range(15 if "proof" in record else 0):
                    bad = forged(record, rng)
                    code, sentences = judge(bad, *files)
                    assert code == REJECTED, (seed, sentences, bad["proof"])
                    n_forged += 1


@pytest.mark.parametrize("field", ["row", "low", "high", "scale", "grain", "lists", "rules", "proof", "status"])
def test_what_is_not_whole_is_rejected_and_no_error(field):
    for junk in (None, [], {}, "x", [1.0], -1):
        if (field, junk) not in (("rules", []), ("proof", None)):
            assert judge(*changed(**{field: junk}))[0] in (REJECTED, UNPROVEN)
            assert judge(*changed(**{field: junk}))[0] == REJECTED or field == "proof"
    assert judge({}, {})[0] == REJECTED


def test_a_certificate_without_a_proof_is_not_proven():
    record, file = changed()
    del record["proof"]
    code, sentences = judge(record, file)
    assert code == UNPROVEN
    assert "holds no proof" in sentences[0]


def test_a_point_that_is_no_answer_is_rejected():
    record, file = true_one()
    for bad in (record["row"], [0.0] * 8, [np.nan] * 8):
        assert judge(copy.deepcopy(record) | {"point": bad}, file)[0] == REJECTED
    assert judge(copy.deepcopy(record) | {"distance": record["distance"] * 1.001}, file)[0] == REJECTED


# ---------------------------------------------------------------------------------------------------- several models


JOINT_RULES = {"none": [], "at most": [AtMost(3)], "together": [Together(0, 2)], "a sum": RULES["a sum"]}


def joint(distance="manhattan", constraints=(), names=("forest", "boosting", "histogram"), **options):
    """Models that compare and add up in different types of numbers, some with a softmax and some with one score."""
    first, *others = [model(name) for name in names]
    return Explainer(first, ROWS, also=others, distance=distance, constraints=constraints, **options)


@pytest.mark.parametrize(
    ("distance", "rules"),
    [
        ("manhattan", "a sum"),
        ("euclidean", "none"),
        ("chebyshev", "together"),
        ("l0", "none"),
        ("manhattan + l0", "at most"),
        ("sum", "none"),
    ],
)
def test_what_is_proven_of_several_models_is_accepted(distance, rules):
    explainer = joint(DISTANCES[distance], JOINT_RULES[rules])
    certificates, _ = accepted(explainer, ROWS[15:21], at_least=4)
    assert all(len(record["also"]) == 2 for record in certificates)


@pytest.mark.parametrize("distance", COUPLED)
def test_what_is_proven_of_several_models_is_accepted_under_coupled_distances(distance):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    models = [DecisionTreeClassifier(max_depth=2).fit(rows, rows[:, 0] + by * rows[:, 1] > 0.5) for by in (-0.5, 0.5)]
    models.append(HistGradientBoostingClassifier(max_iter=3, max_depth=2).fit(rows, rows[:, 0] > 0.4))
    explainer = Explainer(models[0], rows, also=models[1:], distance=COUPLED[distance])
    accepted(explainer, rows[:6], True, at_least=1 if distance == "cosine" else 5)


def test_other_targets_of_several_models():
    rows, labels = load_iris(return_X_y=True)
    words = np.array(["a", "b", "c"])[labels]
    forests = [RandomForestClassifier(5, max_depth=3, random_state=seed) for seed in range(3)]
    kept = words != "b"  # to this one "c" is the second class, to the others the third
    also = [forests[1].fit(rows, words), forests[2].fit(rows[kept], words[kept])]
    explainer = Explainer(forests[0].fit(rows, words), rows, also=also, distance="manhattan")
    accepted(explainer, rows[:50:10], "c", at_least=5)
    accepted(explainer, rows[:50:10], Probability("c", 0.6), at_least=5)
    value = ROWS[:, 0]
    numbers = [RandomForestRegressor(4, max_depth=3, random_state=seed).fit(ROWS[:, 1:], value) for seed in (0, 1)]
    middle = float(np.median(value))
    explainer = Explainer(numbers[0], ROWS[:, 1:], also=numbers[1:], distance="euclidean")
    accepted(explainer, ROWS[value < middle - 2][:4, 1:], Interval(middle, middle + 3), at_least=4)
    accepted(joint(names=("boosting", "histogram")), ROWS[:4], Score(low=0.3), at_least=3)


@pytest.mark.parametrize("seed", [150, 213, 230, 237, 243, 275, 291, 357, 396, 412, 413, 651])
def test_what_is_accepted_of_several_drawn_models_is_true(seed):
    """Every claim is held against the oracle of the truth campaign, and its proof is followed."""
    problem = drawn(seed)
    assert problem.also
    assert not judged(problem).false
    explainer, found = answered(problem)
    files = files_of(explainer)
    for one in found:
        record = through_json(one.certificate(proof=True))
        assert judge(record, *files)[0] == ACCEPTED
        assert "proof" in record or record["lower_bound"] == 0
        assert judge(record, files[0])[0] == UNPROVEN


@cache
def joint_one():
    """A joint certificate that is farther away than an answer to any two of its models, and the models' files."""
    names, row = ("forest", "boosting", "histogram"), ROWS[22:23]
    (record,), _ = certified(joint(), row)
    files = files_of(joint())
    assert judge(record, *files)[0] == ACCEPTED
    target = int(record["reach"])
    fewer = [joint(names=[own for own in names if own != gone]).explain(row, target)[0] for gone in names]
    assert max(one.distance for one in fewer) < record["distance"] * 0.999
    return record, files


def test_of_several_models_no_more_than_is_true_is_accepted():
    record, files = joint_one()
    for by in (1 + 1e-6, 1.01, 2.0):
        bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
        bad["lower_bound"] = bad["proof"]["below"] = record["distance"] * by
        assert judge(bad, *files)[0] == REJECTED
    bad |= {"status": "INFEASIBLE", "lower_bound": "inf"}
    bad["proof"]["below"] = "inf"
    assert judge(bad, *files)[0] == REJECTED
    rng = np.random.default_rng(0)
    assert {judge(forged(record, rng), *files)[0] for _ in range(30)} == {REJECTED}


def test_the_models_are_those_that_the_certificate_is_about():
    record, files = joint_one()
    first, second, third = files
    for others in ([], [second], [third], [second, third, third]):
        assert judge(record, first, *others)[0] == UNPROVEN
    for order in ([first, third, second], [second, first, third], [first, second, second], [first, first, third]):
        assert judge(record, *order)[0] == REJECTED
    bad = copy.deepcopy(record)
    del bad["also"][0]  # without any of them there are nearer answers
    for fewer in ([first, second], [first, third], [second, third]):
        assert judge(bad, *fewer)[0] == REJECTED
    del bad["also"]
    assert REJECTED in {judge(bad, own)[0] for own in files}
    assert judge(bad, *files)[0] == UNPROVEN


def test_a_point_has_to_be_an_answer_to_every_model():
    record, files = joint_one()
    target = int(record["reach"])
    for gone in ("boosting", "histogram"):
        two = joint(names=[own for own in ("forest", "boosting", "histogram") if own != gone])
        near = two.explain(ROWS[22:23], target)[0]
        bad = copy.deepcopy(record) | {"status": "BOUNDED", "lower_bound": 0.0}
        bad |= {"point": near.counterfactual.tolist(), "distance": near.distance}
        code, sentences = judge(bad, *files)
        assert (code, "wanted answer" in sentences[0]) == (REJECTED, True)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2), st.integers(0, 10**6), st.floats(-1, 1))
def test_of_other_models_only_what_is_true_is_accepted(which, leaf, by):
    record, files = joint_one()
    record, files = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}, list(files)
    files[which] = copy.deepcopy(files[which])
    values = files[which]["leaf_value"][leaf % len(files[which]["leaf_value"])]
    values[0] += by
    if judge(record, *files)[0] == ACCEPTED:
        first, *others = [Forest.from_record(own) for own in files]
        explainer = Explainer(first, ROWS, also=others, distance="manhattan")
        found = explainer.explain(np.array([record["row"]]), int(record["reach"]), strategy="exact")[0]
        assert found.distance is None or found.distance >= record["lower_bound"] * (1 - 1e-7)


def test_models_in_other_columns_or_categories_are_not_judged():
    frame, made = mixed()
    other = HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype")
    explainer = Explainer(made, frame, also=[other.fit(frame, made.predict(frame))], distance="manhattan")
    certificates, first = certified(explainer, frame.iloc[:5])
    second = files_of(explainer)[1]
    assert ACCEPTED in {judge(record, first, second)[0] for record in certificates}
    moved, recoded = copy.deepcopy(second), copy.deepcopy(second)
    moved["feature_names"] = moved["feature_names"][::-1]
    recoded["categories"]["labels"][0].reverse()
    for record in certificates:
        assert {judge(record, first, bad)[0] for bad in (moved, recoded)} == {UNPROVEN}


# ------------------------------------------------------------------------------------------------------------- doors


def test_it_runs_alone(tmp_path):
    record, file = true_one()
    certificate, forest = tmp_path / "certificate.json", tmp_path / "model.json"
    certificate.write_text(json.dumps(record))
    forest.write_text(json.dumps(file))

    def run(*paths):
        command = [sys.executable, "-I", "-S", treefocus.check.__file__, *map(str, paths)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(certificate, forest)
    assert (done.returncode, done.stderr) == (ACCEPTED, "")
    assert "No answer is closer than" in done.stdout
    assert "This holds if the question" in done.stdout
    assert run(certificate).returncode == MISUSE
    assert run(certificate, tmp_path / "none.json").returncode == MISUSE
    certificate.write_text(json.dumps(claiming(record["distance"] * 2)[0]))
    assert run(certificate, forest).returncode == REJECTED


def test_the_command_line_writes_and_checks(tmp_path):
    frame = pd.DataFrame(ROWS, columns=[f"c{j}" for j in range(8)])
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame[:2].to_csv(tmp_path / "rows.csv", index=False)
    explainer = Explainer(model(), ROWS)
    explainer.forest.save(tmp_path / "model.json")
    folder, runner = tmp_path / "proofs", CliRunner()
    names = [str(tmp_path / name) for name in ("model.json", "rows.csv", "train.csv")]
    command = ["explain", names[0], names[1], "--train", names[2], "--certificates", str(folder), "--proof"]
    told = runner.invoke(app, command)
    assert told.exit_code == 0, told.output
    assert "2 certificates, 2 with a proof" in told.output
    told = runner.invoke(app, ["check", str(folder / "row-1.json"), names[0]])
    assert told.exit_code == 0
    assert told.output.startswith("ACCEPTED.")
    record = json.loads((folder / "row-2.json").read_text())
    (folder / "row-2.json").write_text(json.dumps(record | {"lower_bound": record["distance"] * 0.5, "proof": None}))
    assert runner.invoke(app, ["check", str(folder / "row-2.json"), names[0]]).exit_code == REJECTED
    assert runner.invoke(app, ["check", str(folder / "none.json"), names[0]]).exit_code == MISUSE
    assert runner.invoke(app, [*command[:-3], "--proof"]).exit_code == MISUSE


def test_the_command_line_takes_other_models_in_any_order(tmp_path):
    record, files = joint_one()
    paths = [str(tmp_path / f"{name}.json") for name in ("certificate", "first", "second", "third")]
    for path, own in zip(paths, (record, *files), strict=True):
        Path(path).write_text(json.dumps(own))
    told = CliRunner().invoke(app, ["check", *paths[:2], "--also", paths[3], "--also", paths[2]])
    assert told.exit_code == ACCEPTED, told.output
    for others in ([], paths[2:3], [paths[2], paths[2]], [paths[2], paths[1]], [paths[1], *paths[2:]]):
        named = [word for path in others for word in ("--also", path)]
        told = CliRunner().invoke(app, ["check", *paths[:2], *named])
        assert (told.exit_code, "NOT PROVEN" in told.output) == (UNPROVEN, True)
    command = [sys.executable, "-I", "-S", treefocus.check.__file__]
    for own, code in ((paths, ACCEPTED), (paths[:2], UNPROVEN), (paths[:1], MISUSE)):
        assert subprocess.run([*command, *own], capture_output=True, check=False).returncode == code
