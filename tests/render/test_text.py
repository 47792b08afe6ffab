"""Sentences and letters: in the reader's words, and true. Applying exactly the numbers printed flips the model."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings

from support.forests import SEEDS
from support.numbers import read
from support.questions import FAST, random_question, stump
from support.rows import ShownRow
from treefocus import (
    Change,
    Explainer,
    Explanations,
    Feature,
    Focus,
    Range,
    Schema,
    Status,
    kernels,
    loans,
)
from treefocus.explanation.reasons import AlreadyThere, ByStatus
from treefocus.model.forest import Floats, Forest
from treefocus.render.phrases import catalogue, languages

NUMBER = r"-?\d[\d.,\u202f]*(?:e[+-]?\d+)?"
MANY = 10_000
WORDLESS = Schema(Feature(f.name, f.kind, f.unit, step=f.step) for f in loans.SCHEMA.features)


@pytest.fixture(scope="module")
def found() -> Explanations:
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    explainer = Explainer(
        trained.model, trained.X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    return explainer.explain(declined[:40], target="approved", strategy=Focus(iterations=200))


@pytest.fixture(scope="module")
def one(found: Explanations) -> ShownRow:
    """The example: utilisation and inquiries of somebody who was declined."""
    changes = (
        Change("utilisation", 72.0, 34.0, 34.0, 0.7, "%"),
        Change("recent_inquiries", 5.0, 3.0, 3.0, 0.3),
    )
    shown = ShownRow.of(found[0])
    return replace(shown, label=7, changes=changes, status=Status.OPTIMAL, distance=0.25, lower_bound=0.25)


def pattern(phrase: str, places: dict[str, str]) -> str:
    """A phrase of a catalogue as a regular expression."""
    parts = re.split(r"\{(\w+)\}", phrase)
    return "".join(places[part] if k % 2 else re.escape(part) for k, part in enumerate(parts))


def applied(text: str, row: Floats, schema: Schema, language: str) -> tuple[Floats, int]:
    """The row after all that a text tells to change, read from nothing but the text; and how many changes that is."""
    phrases, schema = catalogue(language), schema.in_language(language)
    result, n_told = row.copy(), 0
    for j, feature in enumerate(schema.features):
        units = "|".join(re.escape(unit) for unit in (feature.unit, feature.unit_one) if unit)
        number = f"({NUMBER}){f' (?:{units})' if units else ''}"
        name = re.escape(feature.label or feature.name)
        told = {"feature": rf"(?<!\w){name}", "after": number, "before": number}
        ways = told | {"way": f"(?:{re.escape(feature.up)}|{re.escape(feature.down)})"}
        plain = phrases.change_worded if feature.unit in ("years", "Jahre", "ans") else phrases.change
        phrase = pattern(phrases.change_way, ways) if feature.up else pattern(plain, told)
        for match in re.findall(phrase, text):
            values = [read(value.rstrip(".,"), language) for value in match]
            assert abs(values[1] - row[j]) <= 0.0051 * abs(values[0] - row[j])  # told in few digits
            result[j] = values[0]
            n_told += 1
        unknown = told | {"before": re.escape(phrases.words["unknown"])}
        for match in re.findall(pattern(phrases.change_category, unknown), text):
            assert np.isnan(row[j])
            result[j] = read(match.rstrip(".,"), language)
            n_told += 1
        if not feature.one:
            continue
        things = f"(?:{re.escape(feature.one)}|{re.escape(feature.many)})(?!\\w)"
        for key, sign in (("fewer", -1), ("more", 1)):
            phrase = pattern(getattr(phrases, f"said_{key}"), {"number": f"({NUMBER})", "things": things})
            neutral = pattern(getattr(phrases, key), {"number": f"({NUMBER})", "things": things})
            for match in re.findall(phrase, text) or re.findall(neutral, text):
                result[j] = row[j] + sign * read(match, language)
                n_told += 1
    return result, n_told


def flips(forest: Forest, row: Floats, outcome: object) -> bool:
    return bool(forest.classes[kernels.predict(forest, row[None, :])[0]] == outcome)


# Words


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            "Your application would be approved if your revolving utilisation were 34 % instead of 72 % and you had "
            "2 fewer recent inquiries. No smaller change would be enough.",
        ),
        (
            "de",
            "Ihr Antrag würde bewilligt, wenn Ihre Kreditauslastung bei 34 % statt 72 % läge und Sie 2 Anfragen "
            "weniger hätten. Eine kleinere Änderung würde nicht genügen.",
        ),
        (
            "fr",
            "Votre demande serait acceptée si votre taux d'utilisation était de 34 % au lieu de 72 % et si vous aviez "
            "2 demandes récentes de moins. Un changement plus petit ne suffirait pas.",
        ),
    ],
)
def test_the_sentence_of_the_specification(one: ShownRow, language: str, text: str) -> None:
    assert one.to_text(language) == text


def test_one_of_a_thing_is_singular_and_more_is_more(one: ShownRow) -> None:
    changes = (Change("open_credit_lines", 1.0, 2.0, 2.0, 0.6), Change("loan_years", 3.0, 1.0, 1.0, 0.4, "years"))
    text = replace(one, changes=changes).to_text()
    assert "you had 1 more open credit line and the time to pay back were 1 year instead of 3 years." in text
    assert "vous aviez 1 crédit ouvert de plus" in replace(one, changes=changes).to_text("fr")
    assert "1 Jahr statt 3 Jahre" in replace(one, changes=changes).to_text("de")


def test_without_a_subject_a_sentence_speaks_of_the_row(one: ShownRow) -> None:
    plain = replace(one, schema=WORDLESS)
    assert plain.to_text().startswith(
        "Row 7 is predicted 'declined'. It would be predicted 'approved' if utilisation were 34 % instead of 72 % and "
        "recent_inquiries were 3 instead of 5."
    )
    counted = Schema([Feature("recent_inquiries", one="inquiry", many="inquiries")])
    text = replace(one, schema=counted, changes=one.changes[1:]).to_text()
    assert "if there were 2 fewer inquiries." in text


def test_what_is_counted_has_to_be_whole(one: ShownRow) -> None:
    text = replace(one, changes=(Change("recent_inquiries", 2.5, 1.0, 1.0, 1.0),)).to_text()
    assert "recent_inquiries were 1 instead of 2.5" in text


@pytest.mark.parametrize("language", languages())
def test_rows_without_an_answer_are_told_in_every_language(one: ShownRow, language: str) -> None:
    phrases = catalogue(language)
    for status in (Status.INFEASIBLE, Status.NOT_FOUND, Status.INVALID):
        none = replace(
            one, changes=(), outcome=None, distance=None, status=status, why=ByStatus(status),
            predicted=None if status is Status.INVALID else one.predicted,
        )  # fmt: skip
        for text in (none.to_text(language), none.to_letter(language)):
            assert phrases.without_answer(ByStatus(status)).lower() in text.lower()
            assert "None" not in text
    there = replace(one, changes=(), outcome=one.predicted, why=AlreadyThere())
    assert phrases.nothing in there.to_letter(language)
    for schema in (WORDLESS, loans.SCHEMA):
        assert "{" not in replace(there, schema=schema).to_text(language)


@pytest.mark.parametrize("language", languages())
def test_a_letter_has_greeting_decision_change_detail_proof_and_closing(one: ShownRow, language: str) -> None:
    phrases = catalogue(language)
    letter = one.to_letter(language, recipient="Ada Example", sender="The Bank")
    paragraphs = letter.rstrip("\n").split("\n\n")
    assert "Ada Example" in paragraphs[0]
    assert one.to_text(language).startswith(paragraphs[2])
    assert paragraphs[3].splitlines()[0] == phrases.in_detail
    assert len(paragraphs[3].splitlines()) == 1 + len(one.changes)
    may_change = phrases.letters["may change"]
    assert paragraphs[-4:] == [phrases.stays, phrases.smallest, may_change, f"{phrases.closing}\nThe Bank"]
    assert one.to_letter(language).startswith(phrases.greeting)
    assert replace(one, status=Status.FOUND).to_letter(language).count(phrases.maybe_smaller) == 1
    assert phrases.slightly_smaller in replace(one, status=Status.BOUNDED, lower_bound=0.24).to_letter(language)
    assert phrases.quoted.format(text="approved") in replace(one, schema=WORDLESS).to_letter(language)


def test_a_row_that_breaks_a_rule_is_told_so() -> None:
    schema = Schema([Feature("age"), Feature("income")], "your case", {"no": "refused", "yes": "granted"})
    data = np.array([[0.0, 0.0], [1.0, 1.0]])
    explainer = Explainer(stump(), data, schema=schema, constraints=Range("income", low=0.5))
    one = explainer.explain([[0.2, 0.3]], target="no")[0]
    assert one.to_text().startswith(
        "Your case is refused already, but breaks a rule. It would obey them all if income were 0.5 instead of 0.3."
    )
    assert "breaks a rule" in one.to_letter()
    assert "breaks a constraint" in replace(ShownRow.of(one), schema=Schema(schema.features)).to_letter()


JARGON = ("distan", "abstand", "proven", "bewiesen", "prouv", "bound", "schranke", "borne", "manhattan")


@pytest.mark.parametrize("language", languages())
def test_sentences_and_letters_are_without_distances_bounds_and_jargon(found: Explanations, language: str) -> None:
    for answer in found:
        for text in (answer.to_text(language), answer.to_letter(language)):
            assert not [word for word in JARGON if word in text.lower()], text
        if answer.changes:
            assert catalogue(language).words["proof"] not in answer.to_text(language)
            assert catalogue(language).words["proof"] in answer.to_text(language, proof=True)
            assert "manhattan" in answer.to_text(language, proof=True)


def test_four_changes_are_told_first_and_the_others_after(one: ShownRow) -> None:
    changes = tuple(Change(f"x{k}", 1.0, 2.0, 2.0, 0.2) for k in range(6))
    six = replace(one, changes=changes, schema=Schema([Feature(f"x{k}") for k in range(6)]))
    assert (
        "x2 were 2 instead of 1 and x3 were 2 instead of 1, and if in addition x4 were 2 instead of 1 and x5 were"
        in six.to_text()
    )
    assert "und x3 bei 2 statt 1 läge und wenn außerdem x4 bei 2 statt 1 läge und x5" in six.to_text("de")
    assert "et si x3 était de 2 au lieu de 1, et si en outre x4 était de 2 au lieu de 1 et si x5" in six.to_text("fr")
    assert "in addition" not in replace(six, changes=changes[:4]).to_text()


def test_a_bound_is_never_told_tighter_than_it_is(one: ShownRow) -> None:
    bounded = replace(one, status=Status.BOUNDED, distance=1.0, lower_bound=0.6796)
    assert "more than 32.1% smaller was ruled out" in bounded.to_text(proof=True)
    assert "did not rule out smaller ones" in replace(bounded, lower_bound=1e-6).to_text(proof=True)


def test_french_elides_and_repeats_its_si(one: ShownRow) -> None:
    counted = Schema([Feature("a", "integer", one="crédit", many="crédits"), Feature("b")])
    changes = (Change("b", 1.0, 2.0, 2.0, 0.6), Change("a", 3.0, 1.0, 1.0, 0.4))
    text = replace(one, schema=counted, changes=changes).to_text("fr")
    assert "si b était de 2 au lieu de 1 et si l'on comptait 2 crédits de moins." in text
    assert catalogue("fr").listed(["a", "b", "c"]) == "a, b et c"


# Truth


@pytest.mark.parametrize("language", languages())
def test_applying_the_words_of_the_loan_data_flips_the_model(found: Explanations, language: str) -> None:
    assert found.problem is not None
    for answer in found:
        if answer.counterfactual is None:
            continue
        letter = answer.to_letter(language).split("\n\n")[2]
        for text, changes in ((answer.to_text(language), answer.changes), (letter, answer.rounded().changes)):
            row, n_told = applied(text, answer.row, loans.SCHEMA, language)
            assert n_told == len(changes)
            assert flips(found.problem.forest, row, answer.outcome)


@pytest.mark.parametrize("language", languages())
def test_applying_the_details_of_a_letter_flips_the_model(found: Explanations, language: str) -> None:
    phrases = catalogue(language)
    assert found.problem is not None
    for answer in found:
        lines = answer.to_letter(language).split("\n\n")[3].splitlines()[1:]
        changes = answer.rounded().changes
        told, moved = answer.row.copy(), answer.row.copy()
        for line, change in zip(lines, changes, strict=True):
            j = loans.SCHEMA.index(change.feature)
            after, before, step = re.findall(rf"[+-]?{NUMBER}", line)
            assert read(before, language) == answer.row[j]
            told[j] = read(after, language)
            plain = step.replace(phrases.group, "").replace(phrases.decimal, ".")
            moved[j] = float(Decimal(repr(float(answer.row[j]))) + Decimal(plain))
        assert flips(found.problem.forest, told, answer.outcome)
        np.testing.assert_array_equal(moved, told)


def test_every_sentence_is_true_over_many_random_explanations() -> None:
    n_told, seed = 0, 0
    while n_told < MANY:
        explainer, rows = random_question(seed, n_rows=200)
        schema = _worded(len(explainer.schema), seed)
        explainer = Explainer(explainer.forest, rows[np.isfinite(rows).all(axis=1)], schema=schema)
        for answer in explainer.explain(rows, strategy=FAST):
            if answer.counterfactual is None:
                continue
            language = languages()[n_told % len(languages())]
            row, n_changes = applied(answer.to_text(language), answer.row, schema, language)
            assert n_changes == len(answer.changes), answer.to_text(language)
            assert flips(explainer.forest, row, answer.outcome), answer.to_text(language)
            n_told += 1
        seed += 1
    assert n_told >= MANY


def _worded(n_features: int, seed: int) -> Schema:
    """Columns of every kind of words: with and without unit, label and things to count, some with whole numbers."""
    rng = np.random.default_rng(seed)
    features = []
    for j in range(n_features):
        unit = str(rng.choice(["", "EUR", "%"]))
        kind = "integer" if rng.random() < 0.3 else "continuous"
        words = {"one": f"thing{j}", "many": f"things{j}"} if kind == "integer" and rng.random() < 0.7 else {}
        label = f"your column {j} ✓" if rng.random() < 0.5 else ""
        features.append(Feature(f"c{j}x", kind, unit, label=label, **words))  # type: ignore[arg-type]
    return Schema(features)


@settings(max_examples=30)
@given(SEEDS)
def test_sentences_in_other_languages_are_true(seed: int) -> None:
    explainer, rows = random_question(seed)
    for answer in explainer.explain(rows, strategy=FAST):
        for language in languages():
            if answer.counterfactual is not None:
                row, n_told = applied(answer.to_text(language), answer.row, explainer.schema, language)
                assert n_told == len(answer.changes)
                assert flips(explainer.forest, row, answer.outcome)


# Foreign text

NASTY = (
    "{before} {0}",
    "a\nb",
    "<b>x</b>",
    "'quoted\"",
    "שכר",
    "x\u202egnissel",
    "💰",
    "\x1b[31m",
    "%s $x$ \\n",
    "[red]",
)


@pytest.mark.parametrize("name", NASTY)
def test_nasty_names_stay_within_their_place(one: ShownRow, name: str) -> None:
    changes = (Change(name, 1.0, 2.0, 2.0, 1.0, name),)
    schema = Schema([Feature(name, unit=name, label=name)], name, {"declined": name, "approved": name})
    nasty = replace(one, changes=changes, schema=schema, label=name)
    for language in languages():
        text = nasty.to_text(language)
        assert "\n" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert text.count("\u2068") == text.count("\u2069")
        letter = nasty.to_letter(language, recipient=name, sender=name)
        assert len(letter.split("\n\n")) == 8
        assert "\x1b" not in letter
    if name.isprintable() and name.isascii():
        assert name in nasty.to_text()
