"""Names that are cut short stay different."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from treefocus.render.apart import joined_apart, told_apart

LETTERS = st.text("ab ", min_size=0, max_size=60)


@given(st.text("ab", max_size=40), st.lists(LETTERS, max_size=12), st.text("ab", max_size=40), st.integers(20, 40))
def test_different_names_stay_different_and_short(before: str, middles: list[str], after: str, longest: int) -> None:
    names = [f"{before}{middle}{after}" for middle in middles]
    cut = told_apart(names, longest)
    assert all(len(one) <= longest for one in cut)
    assert len(set(cut)) == len(set(names))
    assert all(own == name for own, name in zip(cut, names, strict=True) if len(name) <= longest)


def test_what_tells_them_apart_is_shown() -> None:
    names = [f"region = A very long name of region {k}, with its district and more words" for k in range(12)]
    cut = told_apart(names, 30)
    assert all(f"region {k}" in one or f" {k}" in one for k, one in enumerate(cut))


def test_crossings_are_told_apart_by_either_part() -> None:
    regions = [f"region = A very long name of region {k}, with its district and more words" for k in range(12)]
    names = [["all"], *([one] for one in regions), *([one, two] for one in regions for two in ("family = a", "none"))]
    cut = joined_apart(names, 40)
    assert len(set(cut)) == len(names)
    assert all(len(one) <= 40 for one in cut)
