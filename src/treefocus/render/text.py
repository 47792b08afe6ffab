"""An explanation as sentences and as a letter. Computes nothing: every number is in the explanation.

Every phrase comes from a catalogue (`render.phrases`), every word about columns and decisions from the schema.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from treefocus.render.phrases import DEFAULT, Catalogue, catalogue
from treefocus.render.plain import plain
from treefocus.render.views import ChangeView, RowView
from treefocus.schema.schema import Feature, Schema

_EXACT = 2.0**53  # whole numbers up to here have exact differences


def sentence(explanation: RowView, language: str = DEFAULT) -> str:
    """What would have to change, and how sure we are that nothing smaller would do."""
    phrases, schema = catalogue(language), explanation.schema.in_language(language)
    name = phrases.row.format(row=plain(explanation.label))
    before, after = (answer(phrases, explanation, label) for label in (explanation.predicted, explanation.outcome))
    subject = _capitalised(plain(schema.subject))
    said_before, said_after = _said(schema, explanation.predicted), _said(schema, explanation.outcome)
    reason = plain(phrases.reason(explanation.why))
    if explanation.predicted is None:
        return phrases.no_prediction.format(name=name, reason=reason)
    if not explanation.status.has_answer:
        parts = {"reason": _capitalised(reason)}
        if said_before:
            return phrases.said_no_answer.format(subject=subject, before=said_before, **parts)
        return phrases.no_answer.format(name=name, before=before, **parts)
    if not explanation.changes:
        if said_before:
            return phrases.said_already.format(subject=subject, before=said_before)
        return phrases.already.format(name=name, before=before)
    is_same = explanation.predicted == explanation.outcome
    if explanation.likelihood is not None and explanation.likelihood[1] is not None:
        changes = listed_changes(explanation, phrases, is_person=False)
        return f"{sentence_of_likelihood(explanation, phrases, changes)} {proof(explanation, language)}"
    if said_before and said_after:
        phrase = phrases.said_obeys if is_same else phrases.said_would
        values = {"subject": subject, "before": said_before, "after": said_after}
    else:
        phrase = phrases.obeys if is_same else phrases.would
        values = {"name": name, "before": before, "after": after}
    is_person = bool(said_before and said_after)
    told = phrase.format(changes=listed_changes(explanation, phrases, is_person), **values)
    told = " ".join([told, *_in_round_numbers(explanation, phrases), proof(explanation, language)])
    return " ".join([told, *further_ways(explanation, language, is_person=is_person)])


def _in_round_numbers(explanation: RowView, phrases: Catalogue) -> list[str]:
    """What round numbers cost, where the answer was put into some."""
    if explanation.larger is None:
        return []
    return [phrases.recourse["rounded"].format(share=phrases.share(explanation.larger, 1))]


def further_ways(explanation: RowView, language: str = DEFAULT, *, is_person: bool = False) -> list[str]:
    """A sentence or two for every way out but the first, and whether there are more."""
    phrases = catalogue(language)
    told = []
    for way in explanation.ways[1:]:
        changes = listed_changes(way, phrases, is_person)
        sure = _graded(way, phrases, *(phrases.recourse[f"way {word}"] for word in ("proven", "bounded", "unproven")))
        told.append(phrases.recourse["another way"].format(changes=changes, proof=sure))
    return [*told, phrases.recourse["no other way"]] if explanation.is_last_way and explanation.changes else told


def sentence_of_likelihood(explanation: RowView, phrases: Catalogue, changes: str) -> str:
    """How likely the class that was asked for is, and would be."""
    before, after = explanation.likelihood or (float("nan"), None)
    return phrases.likely.format(
        name=phrases.row.format(row=plain(explanation.label)),
        outcome=_quoted(phrases, explanation.favoured),
        before=phrases.share(before, 1),
        after="-" if after is None else phrases.share(after, 1),
        changes=changes,
    )


def answer(phrases: Catalogue, explanation: RowView, label: object) -> str:
    """What the model says: a class, or the number that it predicts."""
    if explanation.is_value and isinstance(label, Real):
        return phrases.amount(float(label))
    return _quoted(phrases, label)


def letter(
    explanation: RowView, language: str = DEFAULT, recipient: str | None = None, sender: str | None = None
) -> str:
    """A letter to the person the row is about: the decision, what would change it, in detail, and how sure that is."""
    phrases, schema = catalogue(language), explanation.schema.in_language(language)
    greeting = phrases.greeting_name.format(recipient=plain(recipient)) if recipient else phrases.greeting
    closing = f"{phrases.closing}\n{plain(sender)}" if sender else phrases.closing
    paragraphs = [greeting, *_body(explanation, phrases, schema), closing]
    return "\n\n".join(paragraphs) + "\n"


def _body(explanation: RowView, phrases: Catalogue, schema: Schema) -> list[str]:
    subject = _capitalised(plain(schema.subject))
    before, after = _said(schema, explanation.predicted), _said(schema, explanation.outcome)
    reason = _capitalised(plain(phrases.reason(explanation.why)))
    if explanation.predicted is None:
        return [f"{reason}."]
    if before:
        decided = phrases.decided.format(subject=subject, before=before)
    else:
        decided = phrases.decided_plain.format(before=answer(phrases, explanation, explanation.predicted))
    if not explanation.status.has_answer:
        return [decided, f"{reason}."]
    if not explanation.changes:
        return [decided, phrases.nothing]
    changes = listed_changes(explanation, phrases, is_person=True)
    if explanation.likelihood is not None and explanation.likelihood[1] is not None:
        start = [sentence_of_likelihood(explanation, phrases, changes)]
    elif explanation.predicted == explanation.outcome:
        told = phrases.said_obeys if before else phrases.obeys
        would = told.format(
            subject=subject, name=phrases.row.format(row=plain(explanation.label)), changes=changes,
            before=before or answer(phrases, explanation, explanation.predicted),
        )  # fmt: skip
        start = [would]
    elif after:
        start = [decided, phrases.said_would.format(subject=subject, after=after, changes=changes)]
    else:
        start = [
            decided,
            phrases.would_plain.format(after=answer(phrases, explanation, explanation.outcome), changes=changes),
        ]
    lines = [f"  - {_line(explanation, change, phrases)}" for change in explanation.changes]
    detail = "\n".join([phrases.in_detail, *lines])
    ways = further_ways(explanation, phrases.code, is_person=True)
    return [*start, detail, phrases.stays, _letter_proof(explanation, phrases), *ways]


def proof(explanation: RowView, language: str = DEFAULT) -> str:
    """How sure we are that no smaller change would do, and the distance."""
    phrases = catalogue(language)
    return _graded(explanation, phrases, phrases.proven, phrases.bounded, phrases.unproven)


def _graded(explanation: RowView, phrases: Catalogue, proven: str, bounded: str, unproven: str) -> str:
    value = phrases.rounded(float("nan") if explanation.distance is None else explanation.distance)
    distance = phrases.distance.format(name=plain(explanation.distance_name), value=value)
    if explanation.status.name == "OPTIMAL":
        return proven.format(distance=distance)
    if explanation.status.name == "BOUNDED" and explanation.lower_bound > 0:
        return bounded.format(gap=phrases.share(explanation.gap or 0.0, 1), distance=distance)
    return unproven.format(distance=distance)


def _letter_proof(explanation: RowView, phrases: Catalogue) -> str:
    if explanation.status.name == "OPTIMAL":
        return phrases.letter_proven
    if explanation.status.name == "BOUNDED" and explanation.lower_bound > 0:
        return phrases.letter_bounded.format(gap=phrases.share(explanation.gap or 0.0, 1))
    return phrases.letter_unproven


def change_phrase(change: ChangeView, feature: Feature, phrases: Catalogue, is_person: bool = False) -> str:
    """One change: "your income were 52,000 EUR instead of 48,200 EUR" or "you had 2 fewer recent inquiries"."""
    moved = change.moved
    if moved is None:
        told = [_quoted(phrases, value) if _is_word(value) else measured(value, feature, phrases)
                for value in (change.shown, change.before)]  # fmt: skip
        return phrases.change_category.format(feature=called(feature), after=told[0], before=told[1])
    is_counted = all(value == int(value) and abs(value) < _EXACT for value in (change.shown, change.before))
    if feature.one and is_counted:
        number = abs(moved)
        fewer, more = (phrases.said_fewer, phrases.said_more) if is_person else (phrases.fewer, phrases.more)
        things = plain(feature.one if phrases.is_one(number) else feature.many)
        return (fewer if moved < 0 else more).format(number=phrases.number(number), things=things)
    return (phrases.change_way if feature.up else phrases.change).format(
        feature=called(feature),
        way=plain(feature.down if change.is_down else feature.up),
        after=measured(change.shown, feature, phrases),
        before=measured(change.before, feature, phrases),
    )


def called(feature: Feature) -> str:
    """The column as it stands in a sentence."""
    return plain(feature.label or feature.name)


def measured(value: Any, feature: Feature, phrases: Catalogue) -> str:
    """A value of a column: a number with its unit, a category, or the word for a missing one."""
    if value is None or _is_word(value):
        return phrases.words["unknown"] if value is None else plain(value)
    unit = feature.unit_one if feature.unit_one and phrases.is_one(value) else feature.unit
    text = phrases.number(value)
    return f"{text} {plain(unit)}" if unit else text


def bare_value(value: Any, phrases: Catalogue) -> str:
    """The same without a unit."""
    return measured(value, Feature(""), phrases)


def _is_word(value: Any) -> bool:
    """Whether a value is a category and not a number; of categories that are numbers, numbers are shown."""
    return value is not None and (isinstance(value, bool) or not isinstance(value, Real))


def quantity(value: float, unit: str = "", language: str = DEFAULT) -> str:
    """A number as people write it, with its unit: all its digits, no more."""
    text = catalogue(language).number(value)
    return f"{text} {plain(unit)}" if unit else text


def words_of(explanation: RowView, change: ChangeView, language: str) -> Feature:
    """What the schema says of a changed column, in that language."""
    schema = explanation.schema.in_language(language)
    return schema[change.feature] if change.feature in schema else Feature(change.feature, unit=change.unit)


def _line(explanation: RowView, change: ChangeView, phrases: Catalogue) -> str:
    feature = words_of(explanation, change, phrases.code)
    if change.moved is None:
        after, before = (measured(value, feature, phrases) for value in (change.shown, change.before))
        return phrases.line_plain.format(feature=called(feature), after=after, before=before)
    moved = phrases.exact_difference(change.before, change.shown)
    return phrases.line.format(
        feature=plain(feature.many) if feature.many and not feature.label else called(feature),
        after=measured(change.shown, feature, phrases),
        before=measured(change.before, feature, phrases),
        change=f"{moved} {plain(feature.unit)}".rstrip(),
    )


def listed_changes(explanation: RowView, phrases: Catalogue, is_person: bool) -> str:
    """The changes as an enumeration."""
    return phrases.listed(
        [
            change_phrase(change, words_of(explanation, change, phrases.code), phrases, is_person)
            for change in explanation.changes
        ]
    )


def _said(schema: Schema, label: object) -> str:
    """The word for a decision, or nothing where the schema has no subject or no word for this one."""
    return plain(schema.outcomes[label]) if schema.subject and label in schema.outcomes else ""


def _quoted(phrases: Catalogue, label: object) -> str:
    return phrases.quoted.format(text=plain(label))


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
