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
    "a proof beside a value of 1e29, which took the digits of all sums": Spec(
        seed=1071936, library="random forest", design="huge and tiny", n_classes=2, model_seed=6,
        measure="mahalanobis", weights="weights", target="one a row",
        constraints=(("together", (2, 1)), ("implies", (2, 1))), domain="without data", asked=("certificate",),
        more="small budget",
    ),
    "a proof in a domain without an end, where a missing value stays and no point is the closest": Spec(
        seed=2078688, library="histogram boosting", design="parted by missing", n_classes=3, model_seed=7,
        measure="mahalanobis", weights="weights", target="class", constraints=(("fixed", (2,)), ("range", (1,))),
        domain="infinite bounds", asked=("region", "certificate"),
    ),
    "why not with room to move, of which fewer constraints leave more": Spec(
        seed=3066920, library="pipeline", design="huge and tiny", n_classes=2, model_seed=8, measure="chebyshev",
        weights="weights", target="probability",
        constraints=(("one of", (2,)), ("increasing", (2, 0)), ("range", (2,))), domain="of the data",
        asked=("why not", "plausibility"), more="tolerance",
    ),
    "votes of which one is tied, which the library breaks by its own rounding": Spec(
        seed=4004727, library="AdaBoost", design="huge and tiny", n_classes=2, model_seed=9,
        measure="euclidean + fewest", weights="weights", target="any",
        constraints=(("relative range", (1,)), ("increasing", (0,)), ("at most of some", (2, 0))),
        domain="without data", asked=("ways",), more="also",
    ),
    "a sum beside 1.6e9 that one point of a box obeys: steps from there had lost their digits to large prices": Spec(
        seed=4057624, library="calibrated", design="seconds", n_classes=2, model_seed=9,
        measure="mahalanobis squared", weights="weights", target="any", constraints=(("equality", (1, 0)),),
        domain="of the data", asked=("rounded", "certificate"), more="two threads",
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
