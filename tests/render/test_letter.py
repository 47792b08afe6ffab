"""Letters by template: every field filled or marked, round numbers that flip, and no template that can do more."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from support.numbers import read
from treefocus import Explainer, Explanations, InvalidInput, Status, kernels, loans, verify
from treefocus.render.letter import FIELDS, SENDER_FIELDS, TEMPLATES, fields_of, template_of
from treefocus.render.phrases import catalogue, languages

EVERY = [(template, language) for template in TEMPLATES for language in languages()]
NUMBER = r"[+-]?\d[\d.,\u202f]*"


@pytest.fixture(scope="module")
def found() -> Explanations:
    X, _ = loans.load()
    answer = loans.forest().classes[kernels.predict(loans.forest(), X)]
    explainer = Explainer(loans.forest(), X, distance="manhattan", schema=loans.SCHEMA, constraints=loans.CONSTRAINTS)
    return explainer.explain(X[answer == "declined"][:6], target="approved", n=2, time_limit=0.5)


@pytest.mark.parametrize(("template", "language"), EVERY)
def test_the_numbers_of_every_letter_flip_and_obey(found: Explanations, template: str, language: str) -> None:
    phrases = catalogue(language)
    for one in found:
        letter = one.to_letter(language, template=template)
        lines = letter.split(phrases.in_detail)[1].split(phrases.stays)[0].strip().splitlines()
        made = one.rounded()
        assert len(lines) == len(made.changes)
        row = one.row.copy()
        for line, change in zip(lines, made.changes, strict=True):
            after, before, _ = re.findall(NUMBER, line)
            j = loans.SCHEMA.index(change.feature)
            assert read(before, language) == one.row[j]
            row[j] = read(after, language)
        assert loans.forest().classes[kernels.predict(loans.forest(), row[None])[0]] == "approved"
        assert made.problem.obeys(row[None]).all()
        assert made.distance is not None
        assert one.distance is not None
        assert made.distance <= one.distance * 1.1 * (1 + 1e-9)


@pytest.mark.parametrize(("template", "language"), EVERY)
def test_what_is_not_given_is_marked_and_what_is_empty_is_left_out(
    found: Explanations, template: str, language: str
) -> None:
    phrases, own = catalogue(language), fields_of(template_of(template, language))
    blank = found[0].to_letter(language, template=template)
    full = found[0].to_letter(language, template=template, fields={name: f"<{name}>" for name in SENDER_FIELDS})
    bare = found[0].to_letter(language, template=template, fields=dict.fromkeys(SENDER_FIELDS, ""))
    for name in SENDER_FIELDS:
        assert (phrases.letters["blank"].format(field=name) in blank) == (name in own)
        assert (f"<{name}>" in full) == (name in own)
    for letter in (blank, full, bare):
        assert "$" not in letter
        assert "\n\n\n" not in letter
        assert phrases.letters["may change"] in letter
    assert " 60 " not in bare
    assert "[" not in bare


def test_named_templates_are_made_of_known_fields_in_every_language() -> None:
    for template in TEMPLATES:
        own = [fields_of(template_of(template, language)) for language in languages()]
        assert own[0] <= set(FIELDS)
        assert len(set(own)) == 1


def test_reasons_and_changes_stand_apart(found: Explanations) -> None:
    letter = found[0].to_letter(template="us")
    reasons, changes = letter.split("WHAT WOULD CHANGE THE DECISION")
    assert "would be approved if" not in reasons
    assert "These are not the reasons" in changes


def test_a_template_of_ones_own(found: Explanations, tmp_path: Path) -> None:
    path = tmp_path / "ours.txt"
    path.write_text("Ours, $$5\n\n${decision}\n\nDate:\n${date}\n\n${sender}\n", encoding="utf-8")
    assert found[0].to_letter(template=path, fields={"date": ""}) == "Ours, $5\n\nYour application was declined.\n"
    told = found[0].to_letter(template=str(path), sender="${decision}", fields={"date": "1\n2\x1b"})
    assert told.endswith("Date:\n1\n2\n\n${decision}\n") or told.endswith("Date:\n1\n2 \n\n${decision}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${income}", r"made of the fields greeting, decision, .*, got \$\{income\}\."),
        ("costs $ 5", r"text with \$\{fields\}, and \$\$ for a dollar sign"),
        ("${decision.__class__}", r"text with \$\{fields\}"),
    ],
)
def test_what_is_no_template_is_refused(found: Explanations, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=message):
        found[0].to_letter(template=path)


def test_misuse_is_told(found: Explanations) -> None:
    with pytest.raises(InvalidInput, match=r"^template must be one of plain, eu, us, or a file, got 'uk'\.$"):
        found[0].to_letter(template="uk")
    with pytest.raises(InvalidInput, match=r"^fields must be some of date, .*, got 'datum'\.$"):
        found[0].to_letter(fields={"datum": "x"})
    with pytest.raises(InvalidInput, match=r"^fields\['date'\] must be a text, got 3\.$"):
        found[0].to_letter(fields={"date": 3})  # type: ignore[dict-item]


def test_the_price_of_rounding_is_in_the_certificate(found: Explanations) -> None:
    for one in found:
        made = one.rounded()
        certificate = made.certificate()
        assert certificate["larger"] == made.larger
        assert "larger" not in one.certificate()
        assert not verify(certificate, loans.forest()).failed
        tampered = verify(certificate | {"larger": 0.5}, loans.forest())
        assert tampered.failed
        assert one.distance is not None
        assert made.distance == pytest.approx(one.distance * (1 + certificate["larger"]))


def test_round_numbers_keep_the_other_ways(found: Explanations) -> None:
    for one in found:
        made = one.rounded()
        assert len(made.ways) == len(one.ways)
        assert made.is_last_way == one.is_last_way
        for way in made.ways:
            assert way.counterfactual is not None
            assert way.problem.is_valid(way.counterfactual[None]).all()
            assert way.status in (Status.OPTIMAL, Status.BOUNDED, Status.FOUND)


def test_rows_without_an_answer_have_letters_too() -> None:
    X, _ = loans.load()
    answer = loans.forest().classes[kernels.predict(loans.forest(), X)]
    fixed = Explainer(loans.forest(), X, schema=loans.SCHEMA, constraints=[f"{n} fixed" for n in loans.SCHEMA.names])
    one = fixed.explain(X[answer == "declined"][:1], target="approved")[0]
    assert one.status is Status.INFEASIBLE
    for template, language in EVERY:
        letter = one.to_letter(language, template=template)
        assert catalogue(language).no_way["INFEASIBLE"][1:] in letter
        assert catalogue(language).in_detail not in letter
    assert np.isfinite(one.row).all()
