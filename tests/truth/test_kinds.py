"""Every kind of column and rule, on every library that has them: what is said is what trying finds."""

from __future__ import annotations

import pytest

from support import kinds

N_PROBLEMS = 84


@pytest.mark.parametrize("part", range(7))
def test_what_is_said_is_what_trying_finds(part: int) -> None:
    found = []
    for seed in range(part, N_PROBLEMS, 7):
        asked = kinds.draw(seed)
        found += [f"{seed}, {asked.model}, {asked.constraints}: {wrong}" for wrong in kinds.wrong_of(asked)]
    assert not found, "\n".join(found)


def test_the_check_sees_a_wrong_answer() -> None:
    asked = kinds.draw(1)
    assert not kinds.wrong_of(asked)
    asked.predict = lambda rows: (rows.index.to_numpy() == 0).astype(int)  # says that every other point is an answer
    assert kinds.wrong_of(asked)
