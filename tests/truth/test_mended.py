"""Problems in which a claim was false once: none is now."""

from __future__ import annotations

import pytest

from truth.campaign import total
from truth.problems import Spec, made

MENDED = {
    "an equation between 1e30 and whole numbers, where prices cancel": Spec(
        seed=106648, library="AdaBoost", design="huge and tiny", n_classes=2, model_seed=0,
        measure="mahalanobis squared", weights="weights", target="any",
        constraints=(("relative range", (0,)), ("equality", (0, 2))), domain="infinite bounds",
        asked=("prices", "rounded"),
    ),
    "a region of listed float32 values, whose ends no float32 can be": Spec(
        seed=154680, library="LightGBM", design="singles", n_classes=3, model_seed=0, measure="euclidean",
        weights="no weights", target="probability", constraints=(("one of", (0,)), ("together", (0, 2))),
        domain="of the data", asked=("why not", "region"),
    ),
    "an equation that a box obeys at one point only, where prices rise without an end": Spec(
        seed=49464, library="extra trees", design="finite", n_classes=2, model_seed=3, measure="mahalanobis",
        weights="no weights", target="probability",
        constraints=(("implies", (1, 0)), ("one of", (0,)), ("equality", (0, 1))), domain="infinite bounds",
        asked=("ways", "plausibility"),
    ),
    "a change beyond what float32 holds, of which the model cannot be asked": Spec(
        seed=51968, library="random forest", design="huge and tiny", n_classes=0, model_seed=0,
        measure="mahalanobis squared", weights="no weights", target="score", constraints=(("two linears", (1, 2)),),
        domain="infinite bounds", asked=("prices", "rounded"),
    ),
}  # fmt: skip


LONG = {"a change beyond what float32 holds, of which the model cannot be asked"}  # half a minute


@pytest.mark.parametrize(
    "spec",
    [pytest.param(spec, id=name, marks=pytest.mark.campaign if name in LONG else ()) for name, spec in MENDED.items()],
)
def test_no_claim_is_false(spec: Spec) -> None:
    tally = total([made(spec)])
    assert tally.checked.total()
    assert not tally.false, tally.to_text()
