"""Reasons: every one has words in every language, and is known again by its English sentence."""

from __future__ import annotations

from typing import Any

import pytest

from treefocus import Status
from treefocus.explanation.reasons import (
    AlreadyThere,
    ByStatus,
    Foreign,
    NoAllowedValue,
    NoOtherWay,
    NotConfirmed,
    Reason,
    Undecided,
    Unreadable,
    UnreadableElsewhere,
    read_reason,
)
from treefocus.render.phrases import catalogue, languages

UNDECIDED = "; the constraints and this distance together leave cases that the search cannot decide"
ENGLISH: dict[Reason, str] = {
    AlreadyThere(): "the row has the wanted answer already",
    NoAllowedValue(("a", "b {}")): "the constraints and bounds together allow no value of a, b {}",
    Unreadable(("income = inf",)): "the model cannot read income = inf",
    UnreadableElsewhere(("income = nan",)): "another model that has to agree cannot read income = nan",
    NotConfirmed(): "a change was found, but the model itself does not confirm it",
    NoOtherWay(): "no other change leaves a feature of each way before it as it is, which is proven",
    Foreign("line 3: {0} is not a number"): "line 3: {0} is not a number",
    **{ByStatus(status): status.value for status in Status},
    **{Undecided(status): status.value + UNDECIDED for status in (Status.BOUNDED, Status.NOT_FOUND)},
}


def kinds_of(base: type[Any]) -> set[type[Any]]:
    """The reasons there are: those without reasons of their own."""
    return {base} if not base.__subclasses__() else set().union(*map(kinds_of, base.__subclasses__()))


def test_every_reason_is_here() -> None:
    assert {type(reason) for reason in ENGLISH} == kinds_of(Reason)


@pytest.mark.parametrize("reason", ENGLISH, ids=lambda reason: reason.code)
def test_a_reason_is_an_english_sentence_and_known_by_it(reason: Reason) -> None:
    assert str(reason) == ENGLISH[reason]
    again = read_reason(str(reason))
    assert type(again) is type(reason)
    assert str(again) == str(reason)


@pytest.mark.parametrize("language", languages())
def test_every_reason_has_words_in_every_language(language: str) -> None:
    phrases = catalogue(language)
    assert set(phrases.reasons) == {reason.code for reason in ENGLISH}
    said = {reason: phrases.reason(reason) for reason in ENGLISH}
    assert len(set(said.values())) == len(said)
    for reason, text in said.items():
        assert all(detail in text for detail in reason.details.values())
        assert (text == str(reason)) == (language == "en" or isinstance(reason, Foreign))


def test_reasons_keep_their_details() -> None:
    german = catalogue("de")
    assert german.reason(Unreadable(("income = inf",))) == "das Modell kann dies nicht lesen: income = inf"
    assert german.reason(Unreadable(("{} {0}",))).endswith("{} {0}")
    assert german.reason(Foreign("something else")) == "something else"
