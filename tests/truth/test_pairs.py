"""Where two features meet: problems in which every pair of them meets five times, and no claim is false.

It takes minutes, so that it runs only where it is asked for: `pytest -m campaign`. `benchmarks/truth.py` draws more of
the same.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from truth.campaign import run, seldom
from truth.problems import Pair, Spec, chosen_seeds

N_PROBLEMS, N_MET, TRIES, CHUNK = 950, 5, 24, 25

pytestmark = pytest.mark.campaign


@cache
def seeds() -> tuple[int, ...]:
    return tuple(chosen_seeds(N_PROBLEMS, tries=TRIES, at_least=N_MET))


def test_every_pair_meets_five_times() -> None:
    met: Counter[Pair] = Counter()
    for seed in seeds():
        met.update(Spec.of(seed).pairs())
    assert not seldom(met, N_MET)


@pytest.mark.parametrize("chunk", range(N_PROBLEMS // CHUNK))
def test_no_claim_is_false(chunk: int) -> None:
    tally = run(seeds()[chunk * CHUNK : (chunk + 1) * CHUNK])
    assert tally.checked.total() > CHUNK
    assert not tally.false, tally.to_text()
