"""Problems in which a claim was false once: none is now."""

from __future__ import annotations

import pytest

from truth.campaign import run

MENDED = {
    "an equation between 1e30 and whole numbers, where prices cancel": 106648,
    "a region of listed float32 values, whose ends no float32 can be": 154680,
    "an equation that a box obeys at one point only, where prices rise without an end": 49464,
    "a change beyond what float32 holds, of which the model cannot be asked": 51968,
}


@pytest.mark.parametrize("seed", MENDED.values(), ids=MENDED.keys())
def test_no_claim_is_false(seed: int) -> None:
    tally = run([seed])
    assert tally.checked.total()
    assert not tally.false, tally.to_text()
