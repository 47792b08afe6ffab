"""The catalogues: every language says the same things, and its numbers can be read back."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal, localcontext
from string import Formatter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.numbers import read
from treefocus import InvalidInput, Status
from treefocus.render.phrases import Catalogue, catalogue, languages
from treefocus.render.plain import bare, plain

OTHERS = [language for language in languages() if language != "en"]


def places(phrase: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(phrase) if name is not None}


def test_english_german_and_french_are_there() -> None:
    assert languages() == ("de", "en", "fr")
    with pytest.raises(InvalidInput, match=r"^language must be one of de, en, fr, got 'xx'\.$"):
        catalogue("xx")
    with pytest.raises(InvalidInput, match="language must be one of"):
        catalogue("../en")


@pytest.mark.parametrize("language", OTHERS)
def test_every_phrase_has_the_same_places_in_every_language(language: str) -> None:
    english, other = catalogue("en"), catalogue(language)
    assert other.code == language
    for field in fields(Catalogue):
        mine, theirs = getattr(english, field.name), getattr(other, field.name)
        if isinstance(mine, dict):
            assert set(mine) == set(theirs)
            for key in mine:
                assert places(mine[key]) == places(theirs[key]), key
                assert theirs[key]
        elif isinstance(mine, str):
            assert theirs
            assert places(mine) == places(theirs), field.name


@pytest.mark.parametrize("language", languages())
def test_every_status_has_words(language: str) -> None:
    assert set(catalogue(language).statuses) == {status.name for status in Status}


@pytest.mark.parametrize("language", languages())
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_has_all_its_digits_in_every_language(language: str, value: float) -> None:
    assert read(catalogue(language).number(value), language) == value


@pytest.mark.parametrize(
    ("language", "number", "share", "moved"),
    [
        ("en", "-1,234,567.25", "20.5%", "+3,800"),
        ("de", "-1.234.567,25", "20,5 %", "+3.800"),
        ("fr", "-1\u202f234\u202f567,25", "20,5\u00a0%", "+3\u202f800"),
    ],
)
def test_numbers_are_written_as_the_language_does(language: str, number: str, share: str, moved: str) -> None:
    phrases = catalogue(language)
    assert phrases.number(-1234567.25) == number
    assert phrases.share(0.205, 1) == share
    assert phrases.difference(3800.0) == moved
    assert phrases.number(np.inf) == "inf"


@pytest.mark.parametrize("language", languages())
@given(
    before=st.floats(allow_nan=False, allow_infinity=False, width=32),
    after=st.floats(allow_nan=False, allow_infinity=False, width=32),
)
def test_an_exact_difference_leads_from_one_number_to_the_other(language: str, before: float, after: float) -> None:
    told = catalogue(language).exact_difference(before, after)
    phrases = catalogue(language)
    plain = told.replace(phrases.group, "").replace(phrases.decimal, ".")
    with localcontext(prec=800):
        assert float(Decimal(repr(before)) + Decimal(plain)) == after


def test_exact_differences_read_well() -> None:
    english = catalogue("en")
    assert english.exact_difference(0.1, 0.3) == "+0.2"
    assert english.exact_difference(14501.0, 500.0) == "-14,001"
    assert english.exact_difference(3.9, 3.9501) == "+0.0501"
    assert english.exact_difference(0.0, 100.0) == "+100"
    assert catalogue("de").exact_difference(0.0, 12345.5) == "+12.345,5"


@pytest.mark.parametrize(("language", "ones"), [("en", [1.0]), ("de", [1.0]), ("fr", [0.0, 0.5, 1.0, 1.5])])
def test_what_counts_as_one(language: str, ones: list[float]) -> None:
    assert [value for value in (0.0, 0.5, 1.0, 1.5, 2.0, 5.0) if catalogue(language).is_one(value)] == ones


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        ("income", "income"),
        ("two\nlines\r\nand\ttabs", "two lines and tabs"),
        ("\x1b[31mred\x07", " [31mred "),
        ("turn\u202egnissel", "turngnissel"),
        ("דירה", "\u2068דירה\u2069"),
        ("rent \u2067x", "rent x"),
        ("🏠 home", "🏠 home"),
        ("lone \ud800", "lone  "),
        (7, "7"),
    ],
)
def test_foreign_text_is_one_line_without_commands(value: Any, safe: str) -> None:
    assert plain(value) == safe
    assert bare(value) == safe.strip("\u2068\u2069")
    assert plain(plain(value)) == plain(value)


@pytest.mark.parametrize(
    ("language", "told"),
    [("en", "-15 percentage points"), ("de", "-15 Prozentpunkte"), ("fr", "-15 points de pourcentage")],
)
def test_differences_of_shares_are_percentage_points(language: str, told: str) -> None:
    phrases = catalogue(language)
    assert phrases.step(phrases.exact_difference(72.0, 57.0), "%") == told
    assert phrases.step(phrases.difference(1.0), "%").startswith("+1 ")
    assert not phrases.step("+1", "%").endswith("s")
    assert phrases.step("+2", "EUR") == "+2 EUR"
    assert phrases.step("+2", "") == "+2"
