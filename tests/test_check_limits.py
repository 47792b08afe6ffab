"""Proofs under a limit on the isolation score, and with a margin on another model's score."""

from __future__ import annotations

import copy
import json
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from treefocus import Explainer, IsolationScore, Probability, Score, Tolerance
from treefocus.check import ACCEPTED, REJECTED, UNPROVEN, judge

ROWS, LABELS = load_breast_cancer(return_X_y=True)
ROWS = ROWS[:, :8]


@cache
def model():
    return RandomForestClassifier(8, max_depth=3, random_state=0).fit(ROWS, LABELS)


def usual(limit, **options):
    return Explainer(model(), ROWS, plausibility=IsolationScore(limit=limit, trees=8), **options)


def certified(explainer, rows, target=None, **options):
    """Certificates with their proofs, and the files that they are about."""
    found = explainer.explain(rows, target, **options)
    records = [json.loads(json.dumps(one.certificate(proof=True), allow_nan=False)) for one in found]
    others = explainer.also or ([explainer.pool] if "hold" in options else [])
    return records, [json.loads(json.dumps(own.to_record())) for own in (explainer.forest, *others)]


def accepted(explainer, rows, target=None, **options):
    records, files = certified(explainer, rows, target, **options)
    for record in records:
        assert judge(record, *files)[0] == ACCEPTED
        assert "goals" in record["proof"]
    return records, files


@pytest.mark.parametrize("distance", ["manhattan", "euclidean", "l0"])
def test_what_is_proven_under_a_limit_is_accepted(distance):
    accepted(usual(0.5, distance=distance), ROWS[[1, 20]])


def test_targets_under_a_limit():
    rows, labels = load_iris(return_X_y=True)
    forest = RandomForestClassifier(6, max_depth=3, random_state=0).fit(rows, labels)
    explainer = Explainer(forest, rows, plausibility=IsolationScore(limit=0.55, trees=8))
    for target in (None, 2, Probability(2, 0.6)):
        accepted(explainer, rows[:90:30], target)
    boosting = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(ROWS, LABELS)
    accepted(Explainer(boosting, ROWS, plausibility=IsolationScore(limit=0.55, trees=8)), ROWS[:2], Score(low=0.2))


def test_room_and_several_models_under_a_limit():
    accepted(usual(0.5), ROWS[[1, 20]], tolerance=Tolerance(above=0.2))
    others = [GradientBoostingClassifier(n_estimators=6, random_state=0).fit(ROWS, LABELS)]
    accepted(usual(0.55, also=others), ROWS[20:22], 0)


@cache
def limited():
    """A certificate under a limit, the model file, and the answer without the limit, which is closer."""
    (record,), files = certified(usual(0.5), ROWS[1:2])
    closer = Explainer(model(), ROWS).explain(ROWS[1:2])[0]
    assert judge(record, *files)[0] == ACCEPTED
    assert closer.distance < record["distance"] * 0.99
    return record, files, closer


def test_more_than_is_true_under_a_limit_is_rejected():
    record, files, closer = limited()
    for by in (1 + 1e-5, 1.1, 3.0):
        bad = copy.deepcopy(record) | {"status": "NOT_FOUND", "point": None, "distance": None}
        bad["lower_bound"] = bad["proof"]["below"] = record["distance"] * by
        assert judge(bad, *files)[0] == REJECTED
    for limit in (None, 0.52, 0.9, -1.0, "nan"):
        bad = copy.deepcopy(record)
        bad["plausibility"]["limit"] = limit
        assert judge(bad, *files)[0] == REJECTED
    bad = copy.deepcopy(record)
    del bad["plausibility"]
    assert judge(bad, *files)[0] == REJECTED
    bad = copy.deepcopy(record) | {"status": "FOUND", "lower_bound": 0.0}
    bad |= {"point": closer.counterfactual.tolist(), "distance": closer.distance}
    code, sentences = judge(bad, *files)
    assert (code, "wanted answer" in sentences[0]) == (REJECTED, True)


def test_of_other_paths_only_what_is_true_is_accepted():
    """Longer paths make more points usual: the proof of the true ones says nothing of these."""
    record, files, closer = limited()
    bad = copy.deepcopy(record)
    bad["plausibility"]["forest"]["leaf_value"] = [
        [v + 1.0 for v in own] for own in record["plausibility"]["forest"]["leaf_value"]
    ]
    assert judge(bad, *files)[0] == REJECTED
    assert closer.distance < record["distance"]


@cache
def held():
    """Certificates with a margin on pooled refits, and the files of model and pool."""
    made = [RandomForestClassifier(8, max_depth=3, random_state=seed).fit(ROWS, LABELS) for seed in range(1, 9)]
    explainer = Explainer(model(), ROWS, labels=LABELS, refits=made)
    return accepted(explainer, ROWS[:4], hold=0.9)


def test_what_is_proven_with_a_margin_is_accepted_and_nothing_more():
    records, files = held()
    margins = [record["also"][0]["margin"] for record in records]
    assert max(margins) > 0
    found = []
    for record in records:
        less = copy.deepcopy(record)
        less["also"][0]["margin"] -= 0.2  # closer answers are enough then
        found.append(judge(less, *files)[0])
        more = copy.deepcopy(record) | {"status": "FOUND", "lower_bound": 0.0}
        more["also"][0]["margin"] += 0.2  # and this one is none
        assert judge(more, *files)[0] == REJECTED
        assert judge(record, files[0])[0] == UNPROVEN
    assert REJECTED in found


def test_a_margin_is_that_of_its_own_model():
    (record, *_), (first, pool) = held()
    other = copy.deepcopy(pool)
    other["leaf_value"] = [list(reversed(own)) for own in pool["leaf_value"]]
    assert judge(record, first, other)[0] == REJECTED
    assert judge(record | {"question": {"target": {"kind": "Score", "low": 0.0, "high": 1.0}}}, first, pool)[0] in (
        REJECTED,
        UNPROVEN,
    )
    assert np.isfinite(record["distance"])
