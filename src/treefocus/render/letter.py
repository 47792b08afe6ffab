"""A letter to the person a row is about, from a template: text with ${fields}, and no code. Computes nothing.

A field that is alone on its line and has nothing to say takes the line with it, and a paragraph whose fields all have
nothing to say is left out. What only the sender can say (`SENDER_FIELDS`) stands as a marked blank until it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from treefocus.errors import InvalidInput, reject
from treefocus.render import text
from treefocus.render.phrases import Catalogue, catalogue
from treefocus.render.plain import plain
from treefocus.render.views import FactorView, LetterView
from treefocus.schema.schema import Feature, Schema

TEMPLATES = ("plain", "eu", "us")
ANSWER_FIELDS = (
    "greeting", "decision", "change", "details", "unchanged", "enough", "ways", "reasons", "procedure", "data",
    "may_change", "closing", "sender",
)  # fmt: skip
SENDER_FIELDS = ("date", "role", "contact", "authority", "creditor", "bureau", "score")
FIELDS = (*ANSWER_FIELDS, *SENDER_FIELDS)


def template_of(template: str | Path, language: str) -> str:
    """The text of a template: of one of `TEMPLATES`, or of a file; with no field that is not one of `FIELDS`."""
    catalogue(language)
    if isinstance(template, str) and template in TEMPLATES:
        return _named(template, language)
    path = Path(template)
    if not path.is_file():
        reject("template", f"one of {', '.join(TEMPLATES)}, or a file", repr(str(template)))
    try:
        found = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The template {path} cannot be read: {error}.") from error
    made = Template(found)
    if not made.is_valid():
        reject(f"The template {path}", "text with ${fields}, and $$ for a dollar sign", "another use of $")
    unknown = [name for name in made.get_identifiers() if name not in FIELDS]
    if unknown:
        reject(f"The template {path}", f"made of the fields {', '.join(FIELDS)}", f"${{{unknown[0]}}}")
    return found


@cache
def _named(template: str, language: str) -> str:
    return files("treefocus.render").joinpath("letters", f"{template}.{language}.txt").read_text(encoding="utf-8")


def fields_of(template: str) -> frozenset[str]:
    """The fields that a template has."""
    return frozenset(Template(template).get_identifiers())


def check_given(given: Mapping[str, str]) -> None:
    """Refuse what is no field that the sender fills, or no text."""
    for name, value in given.items():
        if name not in SENDER_FIELDS:
            reject("fields", f"some of {', '.join(SENDER_FIELDS)}", repr(name))
        if not isinstance(value, str):
            reject(f"fields[{name!r}]", "a text", repr(value))


def letter(
    facts: LetterView,
    template: str,
    language: str,
    recipient: str | None = None,
    sender: str | None = None,
    given: Mapping[str, str] | None = None,
) -> str:
    """The letter: a template with its fields filled."""
    phrases = catalogue(language)
    values = _of_the_answer(facts, phrases)
    greeted = phrases.greeting_name.format(recipient=plain(recipient)) if recipient else phrases.greeting
    values |= {"greeting": greeted, "closing": phrases.closing, "sender": plain(sender or "")}
    for name in SENDER_FIELDS:
        said = (given or {}).get(name)
        values[name] = phrases.letters["blank"].format(field=name) if said is None else _lines(said)
    paragraphs = (_filled(paragraph, values) for paragraph in template.strip().split("\n\n"))
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _filled(paragraph: str, values: Mapping[str, str]) -> str:
    """A paragraph with its fields; nothing where all of them have nothing to say."""
    names = Template(paragraph).get_identifiers()
    if names and not any(values[name] for name in names):
        return ""
    lines = []
    for line in paragraph.split("\n"):
        own = Template(line).get_identifiers()
        if not own or any(values[name] for name in own):
            lines.append(Template(line).substitute(values))
    return "\n".join(lines)


def _of_the_answer(facts: LetterView, phrases: Catalogue) -> dict[str, str]:
    """The fields that tell of the answer."""
    one, words = facts.answer, phrases.letters
    schema = one.schema.in_language(phrases.code)
    values = dict.fromkeys(ANSWER_FIELDS, "") | text.decision_and_change(one, phrases)
    values["data"] = "\n".join(_data_line(schema, name, value, phrases) for name, value in facts.cells)
    lines = [_reason(schema, factor, phrases) for factor in facts.factors]
    values["reasons"] = "\n".join([*lines, words["reasons"]]) if lines else words["no reason"]
    if facts.n_trees:
        key = "procedure one" if facts.n_trees == 1 else "procedure"
        values["procedure"] = words[key].format(trees=phrases.number(facts.n_trees))
    if not one.changes:
        return values
    ways = text.further_ways(one, phrases.code, is_person=True)
    return values | {
        "details": text.details(one, phrases),
        "unchanged": phrases.stays,
        "enough": text.sureness(one, phrases),
        "ways": " ".join(ways),
        "may_change": words["may change"],
    }


def _data_line(schema: Schema, name: str, value: object, phrases: Catalogue) -> str:
    feature = schema[name]
    return phrases.letters["data"].format(feature=_titled(feature), value=text.measured(value, feature, phrases))


def _reason(schema: Schema, factor: FactorView, phrases: Catalogue) -> str:
    feature = schema[factor.feature]
    value, typical = (text.measured(one, feature, phrases) for one in (factor.value, factor.typical))
    return phrases.letters["reason"].format(feature=_titled(feature), value=value, typical=typical)


def _titled(feature: Feature) -> str:
    """A column at the start of a line: "Your income", "Late payments"."""
    return text.capitalised(plain(feature.many) if feature.many and not feature.label else text.called(feature))


def _lines(given: str) -> str:
    """What the sender says, with its lines, each without commands."""
    return "\n".join(plain(line) for line in given.strip().splitlines())
