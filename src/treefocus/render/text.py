"""An explanation as sentences. Computes nothing: every number is in the explanation.

Every phrase comes from a catalogue (`render.phrases`), every word about columns and decisions from the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from math import ceil, isfinite
from numbers import Real
from typing import Any

from treefocus.render.phrases import DEFAULT, Catalogue, catalogue
from treefocus.render.plain import plain
from treefocus.render.views import ChangeView, RowView, ToleranceView
from treefocus.schema.schema import Feature, Schema

_CENTS = 2  # decimals, of which both are written: 4,431.50
_EXACT = 2.0**53  # whole numbers up to here have exact differences
_FIRST = 4  # changes that are told at once
_SLIGHTLY = 0.1  # a share of the change
_DEARER = 1.005  # times the smallest change, from which on it is told
_HARDLY_DEARER = 1.1  # up to which a further digit is


def sentence(explanation: RowView, language: str = DEFAULT, *, with_proof: bool = False) -> str:
    """What would have to change, and whether less would be enough; if asked, how we know that."""
    told = _told(explanation, language)
    if not (with_proof and (known := how_known(explanation, language))):
        return told
    phrases = catalogue(language)
    return f"{told} {phrases.words['proof']} {known}"


def _told(explanation: RowView, language: str) -> str:
    """The sentences without the proof."""
    phrases, schema = catalogue(language), explanation.schema.in_language(language)
    name = phrases.row.format(row=plain(explanation.label))
    before, after = (answer(phrases, explanation, label) for label in (explanation.predicted, explanation.outcome))
    subject = capitalised(plain(schema.subject))
    said_before, said_after = _said(schema, explanation.predicted), _said(schema, explanation.outcome)
    reason = plain(phrases.without_answer(explanation.why))
    if explanation.predicted is None:
        return phrases.no_prediction.format(name=name, reason=reason)
    if not explanation.status.has_answer:
        parts = {"reason": capitalised(reason)}
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
        likely = sentence_of_likelihood(explanation, phrases, changes)
        sure = [enough(explanation, phrases), *_holding(explanation, phrases)]
        return " ".join([likely, *_in_round_numbers(explanation, phrases), *sure])
    if said_before and said_after:
        phrase = phrases.said_obeys if is_same else phrases.said_would
        values = {"subject": subject, "before": said_before, "after": said_after}
    else:
        phrase = phrases.obeys if is_same else phrases.would
        values = {"name": name, "before": before, "after": after}
    is_person = bool(said_before and said_after)
    told = phrase.format(changes=listed_changes(explanation, phrases, is_person), **values)
    sure = [enough(explanation, phrases), *_holding(explanation, phrases)]
    told = " ".join([told, *_in_round_numbers(explanation, phrases), *sure])
    return " ".join([told, *further_ways(explanation, language, is_person=is_person)])


def _in_round_numbers(explanation: RowView, phrases: Catalogue) -> list[str]:
    """That numbers are rounded, where the answer was put into round ones."""
    return [] if explanation.larger is None else [phrases.recourse["rounded"]]


def _holding(explanation: RowView, phrases: Catalogue) -> list[str]:
    """For how many other models the answer holds, and what that costs."""
    words, price = phrases.recourse, explanation.price
    told = []
    if explanation.held is not None:
        told.append(words["holds for"].format(agree=explanation.held[0], models=explanation.held[1]))
    if price is not None and price >= _DEARER:
        told.append(words["times the smallest"].format(factor=times(price, phrases)))
    return told + _roomy(explanation.tolerance, phrases)


def times(price: float, phrases: Catalogue) -> str:
    """How many times the smallest change something is: 1.4, but 1.04."""
    return phrases.rounded(price, 2 if price >= _HARDLY_DEARER else 3)


def _roomy(tolerance: ToleranceView | None, phrases: Catalogue) -> list[str]:
    """How far one may go beyond the answer, and stop short of it, where that was asked for."""
    if tolerance is None:
        return []
    words, told = phrases.recourse, []
    for key, side in (("room above", tolerance.above), ("room below", tolerance.below)):
        if isinstance(side, Mapping):
            endless = [plain(column) for column, size in side.items() if size == float("inf")]
            told += [words["room without end of"].format(columns=", ".join(endless))] if endless else []
            sizes = [
                f"{phrases.amount(float(size))} ({plain(column)})"
                for column, size in side.items()
                if size and size != float("inf")
            ]
            told += [words[key].format(sizes=", ".join(sizes))] if sizes else []
        elif side == float("inf"):
            told.append(words["room without end"])
        elif side:
            told.append(words[key].format(sizes=words["room share"].format(share=phrases.share(float(side), 0))))
    return told


def further_ways(explanation: RowView, language: str = DEFAULT, *, is_person: bool = False) -> list[str]:
    """A sentence for every way out but the first, and whether there are more."""
    phrases = catalogue(language)
    told = [
        phrases.recourse["another way"].format(changes=listed_changes(way, phrases, is_person))
        for way in explanation.ways[1:]
    ]
    return [*told, phrases.recourse["no other way"]] if explanation.is_last_way and explanation.changes else told


def enough(explanation: RowView, phrases: Catalogue) -> str:
    """Whether a smaller change would be enough, in words."""
    if explanation.status.name == "OPTIMAL":
        return phrases.recourse["smallest that holds"] if explanation.is_demanding else phrases.smallest
    is_close = _has_bound(explanation) and (explanation.gap or 0.0) <= _SLIGHTLY
    return phrases.slightly_smaller if is_close else phrases.maybe_smaller


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


def decision_and_change(explanation: RowView, phrases: Catalogue) -> dict[str, str]:
    """What was decided, and what would change that, as a letter says it: its fields "decision" and "change"."""
    schema = explanation.schema.in_language(phrases.code)
    subject = capitalised(plain(schema.subject))
    before, after = _said(schema, explanation.predicted), _said(schema, explanation.outcome)
    reason = f"{capitalised(plain(phrases.without_answer(explanation.why)))}."
    if explanation.predicted is None:
        return {"decision": reason}
    said = before or answer(phrases, explanation, explanation.predicted)
    decided = (phrases.decided if before else phrases.decided_plain).format(subject=subject, before=said)
    if not explanation.status.has_answer:
        return {"decision": decided, "change": reason}
    if not explanation.changes:
        return {"decision": decided, "change": phrases.nothing}
    changes = listed_changes(explanation, phrases, is_person=True)
    if explanation.likelihood is not None and explanation.likelihood[1] is not None:
        return {"decision": decided, "change": sentence_of_likelihood(explanation, phrases, changes)}
    if explanation.predicted == explanation.outcome:
        name = phrases.row.format(row=plain(explanation.label))
        told = phrases.said_obeys if before else phrases.obeys
        return {"change": told.format(subject=subject, name=name, before=said, changes=changes)}
    would = phrases.said_would if after else phrases.would_plain
    said = after or answer(phrases, explanation, explanation.outcome)
    return {"decision": decided, "change": would.format(subject=subject, after=said, changes=changes)}


def details(explanation: RowView, phrases: Catalogue) -> str:
    """The changes, a line each."""
    return "\n".join([phrases.in_detail, *(f"  - {_line(explanation, one, phrases)}" for one in explanation.changes)])


def sureness(explanation: RowView, phrases: Catalogue) -> str:
    """Whether numbers are rounded, whether a smaller change would be enough, and what a margin costs."""
    return " ".join(
        [*_in_round_numbers(explanation, phrases), enough(explanation, phrases), *_holding(explanation, phrases)]
    )


def how_known(explanation: RowView, language: str = DEFAULT) -> str:
    """How we know that no smaller change is enough, with distance and bound; nothing where nothing was searched."""
    phrases = catalogue(language)
    words = phrases.recourse
    if not explanation.status.has_answer:
        key = f"known {explanation.status.name}"
        is_searched = explanation.why.code in (explanation.status.name, f"{explanation.status.name} undecided")
        return words[key] if is_searched and key in words else ""
    if not explanation.changes:
        return ""
    told = [_graded(explanation, phrases, phrases.proven, phrases.bounded, phrases.unproven)]
    if explanation.is_sliver:
        told.append(words["sliver"])
    if explanation.larger is not None:
        told.append(words["known rounded"].format(share=phrases.share(_ceiled(explanation.larger), 1)))
    for number, way in enumerate(explanation.ways[1:], start=2):
        graded = (words[f"way {word}"].replace("{number}", str(number)) for word in ("proven", "bounded", "unproven"))
        told.append(_graded(way, phrases, *graded))
    return " ".join([*told, words["known last"]] if explanation.is_last_way else told)


def _graded(explanation: RowView, phrases: Catalogue, proven: str, bounded: str, unproven: str) -> str:
    value = phrases.rounded(float("nan") if explanation.distance is None else explanation.distance)
    distance = phrases.distance.format(name=plain(explanation.distance_name), value=value)
    if explanation.status.name == "OPTIMAL":
        return proven.format(distance=distance)
    if _has_bound(explanation):
        return bounded.format(gap=phrases.share(_ceiled(explanation.gap or 0.0), 1), distance=distance)
    return unproven.format(distance=distance)


def _has_bound(explanation: RowView) -> bool:
    """Whether some smaller changes are ruled out, by a share that can be told."""
    is_bounded = explanation.status.name == "BOUNDED" and explanation.lower_bound > 0
    return is_bounded and _ceiled(explanation.gap or 0.0) < 1


def _ceiled(share: float) -> float:
    """A share to a tenth of a per cent, never less than it is: more than that is ruled out."""
    return ceil(round(share * 1000, 9)) / 1000


def is_open(explanation: RowView, change: ChangeView) -> bool:
    """Whether any more of a change was asked to be fine, too, and no less of it: "at least 52,000 EUR"."""
    room = explanation.tolerance
    if room is None or (change.moved is None and change.days is None) or isinstance(change.shown, bool):
        return False
    above, below = (
        side.get(change.feature, 0.0) if isinstance(side, Mapping) else side for side in (room.above, room.below)
    )
    return above == float("inf") and not below


def _at_least(value: str, change: ChangeView, phrases: Catalogue) -> str:
    """A value, or any further one."""
    side = (
        ("earlier" if change.is_down else "later") if change.days is not None else "less" if change.is_down else "more"
    )
    return phrases.recourse[f"or {side}"].format(value=value)


def change_phrase(
    change: ChangeView, feature: Feature, phrases: Catalogue, is_person: bool = False, *, with_more: bool = False
) -> str:
    """One change: "your income were 52,000 EUR instead of 48,200 EUR" or "you had 2 fewer recent inquiries".

    with_more: whether anything further is fine, too: "your income were at least 52,000 EUR".
    """
    moved, is_truth = change.moved, isinstance(change.shown, bool)
    if is_truth and feature.up:
        return plain(feature.up if change.shown else feature.down)
    if isinstance(change.shown, date) and isinstance(change.before_shown, date):
        return _date_phrase(change, feature, phrases, with_more)
    if moved is None:
        told = [_quoted(phrases, value) if _is_word(value) else measured(value, feature, phrases)
                for value in (change.shown, change.before_shown)]  # fmt: skip
        return phrases.change_category.format(feature=called(feature), after=told[0], before=told[1])
    if is_truth:
        after, before = (measured(value, feature, phrases) for value in (change.shown, change.before_shown))
        return phrases.change_category.format(feature=called(feature), after=after, before=before)
    # "1 more" adds to the row's own value, so that this has to be whole, and not only as it is told.
    is_counted = all(value == int(value) and abs(value) < _EXACT for value in (change.shown, change.before))
    if feature.one and is_counted:
        number = abs(moved)
        fewer, more = (phrases.said_fewer, phrases.said_more) if is_person else (phrases.fewer, phrases.more)
        things = plain(feature.one if phrases.is_one(number) else feature.many)
        counted = phrases.number(number)
        counted = phrases.recourse["or more"].format(value=counted) if with_more else counted
        return (fewer if moved < 0 else more).format(number=counted, things=things)
    phrase = phrases.change_worded if _is_worded(feature.unit) else phrases.change
    after = measured(change.shown, feature, phrases)
    if with_more:
        phrase = phrases.recourse["change worded or more" if _is_worded(feature.unit) else "change or more"]
        after = _at_least(after, change, phrases)
    return (phrases.change_way if feature.up else phrase).format(
        feature=called(feature),
        way=plain(feature.down if change.is_down else feature.up),
        after=after,
        before=measured(change.before_shown, feature, phrases),
    )


def _date_phrase(change: ChangeView, feature: Feature, phrases: Catalogue, with_more: bool) -> str:
    """A change of a date: "your first payment were 5 January 2020 instead of 3 March 2020"."""
    after = measured(change.shown, feature, phrases)
    return (phrases.change_way if feature.up else phrases.change_date).format(
        feature=called(feature),
        way=plain(feature.down if change.is_down else feature.up),
        after=_at_least(after, change, phrases) if with_more else after,
        before=measured(change.before_shown, feature, phrases),
    )


def _is_worded(unit: str) -> bool:
    """Whether a unit is a word, "years", and not a sign, "EUR" or "%"."""
    return len(unit) > 2 and unit.isalpha() and unit[1:].islower()


def called(feature: Feature) -> str:
    """The column as it stands in a sentence."""
    return plain(feature.label or feature.name)


def measured(value: Any, feature: Feature, phrases: Catalogue) -> str:
    """A value of a column: a number with its unit, a date, a category, or the word for True, False, a missing one."""
    if feature.counting is not None and isinstance(value, Real) and isfinite(value):
        value = feature.counting.told(float(value), feature.kind)
    if isinstance(value, date):
        is_timed = isinstance(value, datetime) and feature.unit
        return f"{phrases.date(value)} {plain(feature.unit)}" if is_timed else phrases.date(value)
    if value is None or isinstance(value, bool):
        return phrases.words["unknown" if value is None else "true" if value else "false"]
    if _is_word(value):
        return plain(value)
    unit = feature.unit_one if feature.unit_one and phrases.is_one(value) else feature.unit
    text = phrases.number(value, _CENTS if feature.decimals == _CENTS else 0)
    return f"{text} {plain(unit)}" if unit else text


def bare_value(value: Any, feature: Feature, phrases: Catalogue) -> str:
    """The same without a unit."""
    return measured(value, replace(feature, unit="", unit_one=""), phrases)


def _is_word(value: Any) -> bool:
    """Whether a value is a category and not a number; of categories that are numbers, numbers are shown."""
    return value is not None and not isinstance(value, date | Real)


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
    told = measured(change.shown, feature, phrases)
    told = _at_least(told, change, phrases) if is_open(explanation, change) else told
    if change.days is not None:
        return phrases.line.format(
            feature=called(feature),
            after=told,
            before=measured(change.before_shown, feature, phrases),
            change=phrases.days(change.days),
        )
    if change.moved is None or isinstance(change.shown, bool):
        after, before = (measured(value, feature, phrases) for value in (change.shown, change.before_shown))
        return phrases.line_plain.format(feature=called(feature), after=after, before=before)
    moved = phrases.exact_difference(change.before_shown, change.shown)
    return phrases.line.format(
        feature=plain(feature.many) if feature.many and not feature.label else called(feature),
        after=told,
        before=measured(change.before_shown, feature, phrases),
        change=phrases.step(moved, plain(feature.unit)),
    )


def listed_changes(explanation: RowView, phrases: Catalogue, is_person: bool) -> str:
    """The changes as an enumeration: the largest few first, the others after them."""
    told = [
        change_phrase(
            change,
            words_of(explanation, change, phrases.code),
            phrases,
            is_person,
            with_more=is_open(explanation, change),
        )
        for change in explanation.changes
    ]
    first, rest = phrases.conditions(told[:_FIRST]), told[_FIRST:]
    return phrases.also.format(first=first, rest=phrases.conditions(rest)) if rest else first


def _said(schema: Schema, label: object) -> str:
    """The word for a decision, or nothing where the schema has no subject or no word for this one."""
    return plain(schema.outcomes[label]) if schema.subject and label in schema.outcomes else ""


def _quoted(phrases: Catalogue, label: object) -> str:
    return phrases.quoted.format(text=plain(label))


def capitalised(text: str) -> str:
    """A text that starts a sentence."""
    return text[:1].upper() + text[1:]
