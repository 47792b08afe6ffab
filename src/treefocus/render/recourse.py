"""What constraints forbid and cost, regions and round numbers, as sentences. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from treefocus.render.phrases import DEFAULT, Catalogue, catalogue
from treefocus.render.plain import plain
from treefocus.render.text import called, listed_changes, measured
from treefocus.render.views import LeewayView, MenuView, PriceView, RegionView, RowView, WhyNotView


def why_not(found: WhyNotView, language: str = DEFAULT) -> str:
    """Which constraints stand in the way, and what would do without them."""
    phrases = catalogue(language)
    words = phrases.recourse
    if found.constraints is None:
        return words["bounds proven" if found.is_proven else "bounds unproven"]
    if found.models:
        return _models(found, phrases)
    if not found.constraints:
        return words["nothing in the way"]
    listed = phrases.listed([phrases.quoted.format(text=plain(text)) for text in found.written])
    told = words["without one" if len(found.written) == 1 else "without several"].format(constraints=listed)
    if found.explanation is not None and found.explanation.changes:
        told = words["then"].format(told=told, changes=listed_changes(found.explanation, phrases, is_person=False))
    sure = words["fewer proven" if found.is_proven else "fewer unproven"]
    return f"{told} {sure}" if len(found.written) > 1 else told


def _models(found: WhyNotView, phrases: Catalogue) -> str:
    """Which of several models stand in the way; the first one is the model itself."""
    words, listed = phrases.recourse, phrases.listed([str(number + 2) for number in found.models])
    told = words["model in the way" if len(found.models) == 1 else "models in the way"].format(models=listed)
    if found.explanation is not None and found.explanation.changes:
        told = words["then"].format(told=told, changes=listed_changes(found.explanation, phrases, is_person=False))
    return told


def price(found: PriceView, language: str = DEFAULT) -> str:
    """What one constraint costs."""
    phrases = catalogue(language)
    words = phrases.recourse
    constraint = phrases.quoted.format(text=plain(found.written))
    if found.distance is None:
        return words["price none" if found.is_proven else "price not found"].format(constraint=constraint)
    if found.saving == float("inf"):
        return words["price possible"].format(constraint=constraint)
    if found.saving == 0:
        return words["price nothing" if found.is_proven else "price unknown"].format(constraint=constraint)
    told = words["price" if found.is_proven else "price at least"]
    return told.format(constraint=constraint, share=phrases.share(found.saving))


def menu(items: Sequence[MenuView], language: str = DEFAULT) -> str:
    """What each lever can do alone, and some together, a line each."""
    phrases = catalogue(language)
    return "\n".join(_menu_line(item, phrases) for item in items)


def changes(explanation: RowView, language: str = DEFAULT) -> str:
    """The changes of a row as an enumeration; nothing where there are none."""
    return listed_changes(explanation, catalogue(language), is_person=False) if explanation.changes else ""


def _menu_line(item: MenuView, phrases: Catalogue) -> str:
    words, one = phrases.recourse, item.explanation
    levers, fewer = (
        " + ".join(phrases.quoted.format(text=plain(name)) for name in names) for names in (item.levers, item.needed)
    )
    if not one.status.has_answer:
        return words["menu none" if one.status.name == "INFEASIBLE" else "menu not found"].format(levers=levers)
    if not one.changes:
        return words["menu already"]
    if len(item.needed) < len(item.levers):
        return words["menu nothing more"].format(levers=levers, fewer=fewer)
    sure = words["menu proven" if one.status.name == "OPTIMAL" else "menu unproven"]
    return words["menu answer"].format(levers=levers, changes=changes(one, phrases.code), proof=sure)


def region(found: RegionView, language: str = DEFAULT) -> str:
    """Where each changed feature may end up."""
    phrases = catalogue(language)
    if not found.leeways:
        return phrases.nothing
    told = [_leeway(one, found, phrases) for one in found.leeways]
    return phrases.recourse["region"].format(intervals=phrases.listed(told))


def _leeway(one: LeewayView, found: RegionView, phrases: Catalogue) -> str:
    feature = found.schema.in_language(phrases.code)[one.feature]
    words, name = phrases.recourse, called(feature)
    if one.categories:
        values = phrases.comma.join(phrases.quoted.format(text=plain(value)) for value in one.categories)
        return words["one of"].format(feature=name, values=values)
    if one.low is None and one.high is None:
        return words["anything"].format(feature=name)
    low, high = (measured(end, feature, phrases) for end in one.shown)
    key = "at least" if one.high is None else "at most" if one.low is None else "between"
    if key == "between" and one.shown[0] == one.shown[1]:
        return words["exactly"].format(feature=name, value=low)
    return words[key].format(
        **{"feature": name} | ({"low": low} if key != "at most" else {}) | ({"high": high} if key != "at least" else {})
    )
