"""Every model of the conformance list: the forest says what the library says, on thousands of adversarial rows."""

from __future__ import annotations

import numpy as np
import pytest

from support.conformance import Case, coded, differing, fitted, hard_rows, score_error
from support.conformance_catboost import CATBOOST
from support.conformance_lightgbm import LIGHTGBM
from support.conformance_pipeline import PIPELINES
from support.conformance_sklearn import SKLEARN
from support.conformance_treelite import TREELITE
from support.conformance_wrappers import WRAPPERS
from support.conformance_xgboost import XGBOOST
from treefocus import kernels

N_ROWS = 3_000
CASES = [*SKLEARN, *XGBOOST, *LIGHTGBM, *CATBOOST, *TREELITE, *PIPELINES, *WRAPPERS]
LABELLED = [
    case for case in CASES if case.data == "categorical" and "numbers" not in case.kind and "Booster" not in case.kind
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_forest_is_the_model(case: Case) -> None:
    _, _, source = fitted(case)
    rows = hard_rows(source, np.random.default_rng(0), N_ROWS)
    wrong = differing(source, rows)
    assert not wrong.any(), rows[wrong][:3]
    error = score_error(source, rows)
    assert error == 0.0 if case.is_exact else error <= source.precision
    if source.forest.decision != "value":
        scores = kernels.hard_scores(source.forest, rows)
        assert len(np.unique(kernels.decide(source.forest, scores))) == source.forest.n_classes


@pytest.mark.parametrize("case", LABELLED, ids=str)
def test_labels_are_the_tables_own(case: Case) -> None:
    model, data, source = fitted(case)
    assert source.forest.categories is not None
    rows = coded(source, data.X)
    assert np.nanmax(rows[:, 3]) == 11
    shown = kernels.reference.shown(source.forest, kernels.hard_scores(source.forest, rows))
    if source.forest.decision == "value":
        np.testing.assert_allclose(shown[:, 0], model.predict(data.X), rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_allclose(shown[:, -1], np.asarray(model.predict_proba(data.X))[:, -1], rtol=1e-5)
