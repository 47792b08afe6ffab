"""Proofs of answers with room to move: accepted where they hold, and no claim that is false is, whatever is written."""

from __future__ import annotations

import copy
import json
from functools import cache
from itertools import count

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

import treefocus
from treefocus import AtMost, Explainer, Interval, MayBeMissing, Probability, Score, Status, Together, Tolerance
from treefocus.check import ACCEPTED, REJECTED, UNPROVEN, judge
from truth.claims import answered
from truth.problems import drawn

ROWS, LABELS = load_breast_cancer(return_X_y=True)
ROWS = ROWS[:, :8]
ROOMS = {
    "beyond": Tolerance(above=0.2),
    "both": Tolerance(above=0.1, below=0.05),
    "more is fine": Tolerance(above=np.inf),
    "units": Tolerance(above={0: 0.3, 2: 4.0}, below={2: 1.0}),
}


@cache
def model(name="forest"):
    made = {
        "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=12, random_state=0),
        "histogram": HistGradientBoostingClassifier(max_iter=12, random_state=0),
    }
    return made[name].fit(ROWS, LABELS)


def files_of(explainer):
    return [json.loads(json.dumps(own.to_record())) for own in (explainer.forest, *explainer.also)]


def certified(explainer, rows, target=None, **options):
    found = explainer.explain(rows, target, **options)
    return [json.loads(json.dumps(one.certificate(proof=True), allow_nan=False)) for one in found]


def accepted(explainer, rows, target=None, at_least=1, **options):
    """The certificates, of which so many have the whole proof; each is accepted, or says what it does not hold."""
    certificates, n_proven, files = certified(explainer, rows, target, **options), 0, files_of(explainer)
    for record in certificates:
        code, sentences = judge(record, *files)
        assert code in (ACCEPTED, UNPROVEN), sentences
        n_proven += code == ACCEPTED and "goals" in record.get("proof", {})
        if code == ACCEPTED and record["point"] not in (None, record["row"]):
            assert "around" in record["proof"]
            assert record["proof"]["around"]
    assert n_proven >= at_least
    return certificates


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("distance", ["manhattan", "euclidean", "chebyshev", "l0"])
def test_what_is_proven_is_accepted(distance, room):
    explainer = Explainer(model(), ROWS, distance=distance)
    accepted(explainer, ROWS[[0, 1, 3, 22]], tolerance=ROOMS[room], at_least=4)


def test_the_rooms_around_answers_need_cuts_and_boxes_that_are_refused():
    certificates = accepted(Explainer(model(), ROWS), ROWS[:8], tolerance=ROOMS["both"], at_least=7)
    assert sum("refused" in record["proof"] for record in certificates) >= 4


@pytest.mark.parametrize("name", ["boosting", "histogram"])
@pytest.mark.parametrize("target", [None, Probability(1, 0.7), Probability(0, 0.7), Score(low=0.3)])
def test_targets_of_one_score(name, target):
    wanted = 0 if isinstance(target, Probability) and target.label == 0 else 1
    rows = ROWS[wanted != LABELS][:3]
    accepted(Explainer(model(name), ROWS), rows, target, tolerance=ROOMS["beyond"], at_least=2)


def test_intervals():
    rows, value = ROWS[:, 1:], ROWS[:, 0]
    middle = float(np.median(value))
    forest = RandomForestRegressor(6, max_depth=4, random_state=0).fit(rows, value)
    low = rows[value < middle - 2][:4]
    accepted(Explainer(forest, rows), low, Interval(middle, middle + 3), tolerance=ROOMS["beyond"], at_least=4)


def test_several_classes():
    rows, labels = load_iris(return_X_y=True)
    for made in (
        RandomForestClassifier(8, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=6, random_state=0),
    ):
        explainer = Explainer(made.fit(rows, labels), rows)
        for target in (None, 2, Probability(2, 0.6)):
            accepted(explainer, rows[:100:20], target, tolerance=ROOMS["both"], at_least=4)


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
    explainer = Explainer(made, frame, distance="manhattan", constraints=constraints)
    room = Tolerance(above={"age": 3, "income": 2.5}, below={"age": 1})
    accepted(explainer, frame.iloc[:12], tolerance=room, at_least=8)


@pytest.mark.parametrize("distance", ["manhattan", "euclidean"])
def test_several_models(distance):
    explainer = Explainer(model(), ROWS, also=[model("boosting"), model("histogram")], distance=distance)
    certificates = accepted(explainer, ROWS[[20, 22, 36]], 1 - LABELS[20], tolerance=ROOMS["beyond"])
    assert all(len(own["proof"]["around"]) == 3 for own in certificates if own["point"] not in (None, own["row"]))


def test_distances_that_couple_columns():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(rows, rows[:, 0] > rows[:, 1])
    accepted(Explainer(forest, rows, distance="mahalanobis"), rows[:4], tolerance=ROOMS["beyond"], at_least=3)
    _, record, files = next(with_room(76))
    assert record["distance_function"]["kind"] == "COSINE"
    assert (judge(record, *files)[0], "goals" in record["proof"]) == (ACCEPTED, True)


def with_room(first):
    """Certificates of drawn problems with room, each with the model files, from a seed on."""
    for seed in count(first):
        problem = drawn(seed)
        if problem.tolerance is None:
            continue
        try:
            explainer, found = answered(problem)
        except treefocus.InvalidInput:
            continue
        files = files_of(explainer)
        for one in found:
            if one.status is not Status.INVALID:
                yield seed, json.loads(json.dumps(one.certificate(proof=True))), files


def test_no_proof_of_a_drawn_problem_is_rejected():
    n_proven = 0
    for seed, record, files in with_room(0):
        code, sentences = judge(record, *files)
        assert code != REJECTED, (seed, sentences)
        n_proven += code == ACCEPTED and "goals" in record.get("proof", {})
        if seed > 150:
            break
    assert n_proven >= 15


# ------------------------------------------------------------------------------------------------------ what is false


@cache
def true_one():
    """A certificate with several refused boxes, the model file, and an answer that is closer and has no such room."""
    explainer = Explainer(model(), ROWS)
    certificates = certified(explainer, ROWS[:8], tolerance=ROOMS["both"])
    n_refused = [len(own["proof"].get("refused", ())) for own in certificates]
    _, at = min((n, at) for at, n in enumerate(n_refused) if n >= 4)
    record, files = certificates[at], files_of(explainer)
    assert judge(record, *files)[0] == ACCEPTED
    closer = explainer.explain(ROWS[at : at + 1])[0]
    assert closer.distance < record["distance"] * 0.99
    return record, files, closer


def claiming(by):
    record, files, _ = true_one()
    bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
    bad["lower_bound"] = bad["proof"]["below"] = record["distance"] * by
    return bad, files


def changes_of(proof, rng):
    """The proof after some changes anywhere in it."""
    parts = [proof, *proof.get("around", [])]
    for _ in range(rng.integers(0, 4)):
        part = parts[rng.integers(len(parts))]
        kind = rng.choice(["change", "drop", "add", "cells", "refused", "no refused", "around", "swap"])
        boxes = part["goals"][rng.integers(len(part["goals"]))]["boxes"] if part.get("goals") else []
        at = int(rng.integers(len(boxes))) if boxes else 0
        if kind == "change" and boxes:
            boxes[at] = int(rng.integers(0, 8))
        elif kind == "drop" and boxes:
            del boxes[at]
        elif kind == "add":
            boxes.insert(at, int(rng.integers(0, 6)))
        elif kind == "cells" and part.get("cells"):
            cells = part["cells"][rng.integers(len(part["cells"]))]
            if cells:
                i = int(rng.integers(len(cells)))
                cells[i] = [cells[i][0], cells[-1][1]] if rng.random() < 0.5 else [cells[0][0], cells[i][1]]
        elif kind == "refused" and part.get("refused"):
            box = part["refused"][rng.integers(len(part["refused"]))]
            own = int(rng.integers(len(box)))
            box[own] = [[], [0, 1], [0, len(part["cells"][own])]][rng.integers(3)]
        elif kind == "no refused":
            part.pop("refused", None)
        elif kind == "around" and proof.get("around"):
            proof["around"] = [copy.deepcopy(parts[rng.integers(len(parts))]) for _ in proof["around"]]
        elif kind == "swap" and len(part.get("refused", ())) > 1:
            part["refused"].reverse()
    return proof


def test_more_than_is_true_is_rejected():
    for by in (1 + 1e-6, 1.01, 2.0):
        assert judge(*_flat(claiming(by)))[0] == REJECTED
    bad, files = claiming(1.0)
    bad |= {"status": "INFEASIBLE", "lower_bound": "inf"}
    bad["proof"]["below"] = "inf"
    assert judge(bad, *files)[0] == REJECTED


def _flat(pair):
    return pair[0], *pair[1]


def test_with_less_room_closer_answers_have_it():
    record, files, closer = true_one()
    for by in (0.0, 0.3):
        bad = copy.deepcopy(record)
        bad["room"] = {name: [by * size for size in sizes] for name, sizes in bad["room"].items()}
        assert judge(bad, *files)[0] == REJECTED
    bad = copy.deepcopy(record)
    del bad["room"]
    assert judge(bad, *files)[0] == REJECTED
    assert closer.distance < record["distance"]


def test_a_point_without_the_room_is_rejected():
    record, files, closer = true_one()
    bad = copy.deepcopy(record) | {"status": "FOUND", "lower_bound": 0.0}
    bad |= {"point": closer.counterfactual.tolist(), "distance": closer.distance}
    assert judge(bad, *files)[0] == REJECTED
    for name in ("above_share", "below_share"):
        wide = copy.deepcopy(record) | {"status": "FOUND", "lower_bound": 0.0}
        wide["room"][name] = [0.9 + 30 * (name == "above_share")] * 8
        assert judge(wide, *files)[0] == REJECTED
    del bad["proof"]["around"]
    code, sentences = judge(bad, *files)
    assert (code, "room" in sentences[0]) == (UNPROVEN, True)


def test_a_proof_of_the_room_alone_is_no_proof_of_the_bound():
    record, files, _ = true_one()
    bad = copy.deepcopy(record)
    bad["proof"] = {name: bad["proof"][name] for name in ("format", "lengths", "around")}
    code, sentences = judge(bad, *files)
    assert (code, "holds no proof" in sentences[0]) == (UNPROVEN, True)
    bad |= {"status": "BOUNDED", "lower_bound": 0.0}
    assert judge(bad, *files)[0] == ACCEPTED


@pytest.mark.parametrize("by", [1 + 1e-5, 1.1, 3.0])
def test_no_proof_that_nothing_closer_has_room_is_accepted_where_something_has(by):
    for seed in range(40):
        bad, files = claiming(by)
        changes_of(bad["proof"], np.random.default_rng(seed))
        assert judge(bad, *files)[0] == REJECTED


@pytest.mark.parametrize("is_closer", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_no_proof_of_room_that_is_not_there_is_accepted(seed, is_closer):
    record, files, closer = true_one()
    bad = copy.deepcopy(record) | {"status": "FOUND", "lower_bound": 0.0}
    if is_closer:
        bad |= {"point": closer.counterfactual.tolist(), "distance": closer.distance}
    else:
        bad["room"]["above_share"] = [30.0] * 8
    for cells in bad["proof"]["around"][0]["cells"]:  # so that they hold all that is allowed
        cells[0][0], cells[-1][1] = cells[0][0] - 1e6, cells[-1][1] + 1e6
    changes_of(bad["proof"], np.random.default_rng(seed))
    assert judge(bad, *files)[0] in (REJECTED, UNPROVEN)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(-1, 1))
def test_of_another_model_only_what_is_true_is_accepted(leaf, by):
    record, (file,), _ = true_one()
    file = copy.deepcopy(file)
    values = file["leaf_value"][leaf % len(file["leaf_value"])]
    values[0], values[1] = values[0] + by, values[1] - by
    bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
    if judge(bad, file)[0] == ACCEPTED:
        explainer = Explainer(treefocus.Forest.from_record(file), ROWS)
        found = explainer.explain(np.array([record["row"]]), tolerance=ROOMS["both"])[0]
        assert found.distance is None or found.distance >= record["lower_bound"] * (1 - 1e-7)
    if judge(record | {"status": "FOUND", "lower_bound": 0.0}, file)[0] == ACCEPTED:
        explainer = Explainer(treefocus.Forest.from_record(file), ROWS)
        point, row = np.array(record["point"]), np.array(record["row"])
        ends = np.sort([point + 0.1 * (point - row), point - 0.05 * (point - row)], axis=0)
        inside = np.random.default_rng(0).uniform(*ends, (300, 8))
        digits = [max(len(str(own).partition(".")[2]) for own in ROWS[:, f]) for f in range(8)]  # of the data's steps
        inside = np.stack([np.round(inside[:, f], digits[f]) for f in range(8)], axis=1)
        inside = np.where(point == row, row, inside)
        inside = inside[((inside >= ends[0]) & (inside <= ends[1])).all(axis=1)]
        said = np.argmax(treefocus.kernels.hard_scores(explainer.forest, inside), axis=1)
        assert (said != int(record["leave"])).all()


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.campaign) for k in range(300, 3000, 300))])
def test_no_false_claim_about_a_drawn_problem_is_accepted(first):
    """More than the optimum is not accepted, nor an answer without room that is closer."""
    rng, n_forged = np.random.default_rng(first), 0
    for seed, record, files in with_room(first):
        if record["status"] == "OPTIMAL" and record["distance"] > 1e-6 and "goals" in record.get("proof", {}):
            for _ in range(12):
                bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
                bad["lower_bound"] = record["distance"] * rng.choice([1 + 1e-5, 1.01, 1.5, 10.0])
                if rng.random() < 0.2:
                    bad |= {"lower_bound": "inf", "status": "INFEASIBLE"}
                bad["proof"]["below"] = bad["lower_bound"]
                changes_of(bad["proof"], rng)
                code, sentences = judge(bad, *files)
                assert code == REJECTED, (seed, sentences, bad["proof"])
                n_forged += 1
        if n_forged >= 36:
            break
