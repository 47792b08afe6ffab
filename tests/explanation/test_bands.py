"""Several targets at once: each band's answers are those of a call of its own, or closer, and just as proven."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from treefocus import Exact, Explainer, Interval, InvalidInput, LocalOutlierFactor, Probability, Score, Status


def table(seed: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 9, (120, 3)), columns=["a", "b", "c"])


def test_every_band_is_answered_as_alone() -> None:
    data = table(0)
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(data, data.sum(axis=1) > 12)
    explainer = Explainer(model, data, distance="manhattan")
    bands = {"A": Score(low=0.8), "B": Score(-0.2, 0.8), "C": Score(high=-0.2), "sure": Probability(True, 0.75)}
    found = explainer.bands(data[:8], bands, Exact())
    assert list(found) == list(bands)
    for name, target in bands.items():
        alone = explainer.explain(data[:8], target, Exact())
        assert [one.status for one in found[name]] == [one.status for one in alone]
        np.testing.assert_allclose(found[name].distance, alone.distance)
    scores = model.decision_function(found["B"].counterfactuals[found["B"].has_answer].astype(int))
    assert ((scores >= -0.2) & (scores <= 0.8)).all()
    frame = found.to_frame()
    assert frame["band"].tolist() == list(bands) * 8
    assert isinstance(frame, pd.DataFrame)
    assert found.to_text(0).splitlines()[1].startswith("B: ")


def test_a_list_of_targets_will_do_and_plausible_answers_stay_like_the_data() -> None:
    data = table(1)
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(data, data.sum(axis=1))
    plausible = Explainer(model, data, distance="manhattan", plausibility=LocalOutlierFactor(limit=2.0))
    found = plausible.bands(data[:3], [Interval(low=15), Interval(high=9)])
    for every in found.values():
        for one in every:
            assert not one.status.has_answer or one.plausibility.local_outlier_factor <= 2.0
    assert len(found) == 2
    assert found[str(Interval(low=15))][0].status in (Status.OPTIMAL, Status.BOUNDED, Status.NOT_FOUND)


@pytest.mark.parametrize("bands", [{}, [], "A", {1: Score(low=0)}, None])
def test_misuse_is_told(bands: object) -> None:
    data = table(2)
    model = GradientBoostingRegressor(n_estimators=2, random_state=0).fit(data, data.sum(axis=1))
    with pytest.raises(InvalidInput, match="bands must be targets by name"):
        Explainer(model, data).bands(data[:1], bands)
