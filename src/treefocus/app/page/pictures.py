"""What the page draws: bars, meters and tables as HTML, with everything foreign escaped. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from treefocus.app.page.words import words
from treefocus.app.service import Service
from treefocus.explanation.batch import Change, Explanation
from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plain import plain
from treefocus.render.table import difference
from treefocus.render.text import how_known, measured, words_of

_MOST_CLASSES = 6
_Said = tuple[Any, Sequence[float] | None]
_HEADS = ("feature", "before", "after", "change", "share")
_TONES = {"OPTIMAL": "good", "BOUNDED": "fair", "FOUND": "fair"}


def prediction(row: str, label: Any, shares: Sequence[float] | None, service: Service, language: str) -> str:
    """What the model says of a row: a class, with a bar for each of them, or a number."""
    own = words(language)
    if label is None:
        return f"<p>{_safe(row)}: <strong>{_safe(own['unreadable'])}</strong></p>"
    return said(own["is_predicted"].format(row=row), label, shares, service, language)


def said(
    told: str, label: Any = None, shares: Sequence[float] | None = None, service: Service | None = None,
    language: str = DEFAULT,
) -> str:  # fmt: skip
    """Words, then a class or a number, and a bar for each class."""
    if service is None:
        return f"<p>{_safe(told)}</p>"
    if label is None:
        return f"<p>{_safe(told)}: <strong>{_safe(words(language)['unreadable'])}</strong></p>"
    phrases = catalogue(language)
    if shares is None:
        return f"<p>{_safe(told)} <strong>{_safe(phrases.amount(label))}</strong>.</p>"
    bars = "".join(
        f'<div class="tf-meter"><span>{_safe(one)}</span><span class="tf-track"><span class="tf-fill" '
        f'style="width:{100 * share:.1f}%"></span></span><span>{_safe(phrases.share(share))}</span></div>'
        for one, share in _most_likely(service.classes, shares)
    )
    return f'<p>{_safe(told)} <strong>{_safe(label)}</strong>.</p><div class="tf-meters">{bars}</div>'


def _most_likely(classes: Sequence[Any], shares: Sequence[float]) -> list[tuple[Any, float]]:
    """All of a few classes; of many those with the largest shares."""
    pairs = list(zip(classes, shares, strict=True))
    return pairs if len(pairs) <= _MOST_CLASSES else sorted(pairs, key=lambda pair: -pair[1])[:_MOST_CLASSES]


def shift(before: _Said, after: _Said, service: Service, language: str) -> str:
    """From one prediction to the other: "declined 95% -> approved 62%", and a bar of the new class's share."""
    (old, old_shares), (new, new_shares) = before, after
    phrases = catalogue(language)
    if old_shares is None or new_shares is None:
        told = [_safe("-" if label is None else phrases.amount(label)) for label in (old, new)]
        return f'<p class="tf-shift">{told[0]} → <strong>{told[1]}</strong></p>'
    k = service.classes.index(new)
    first = f"{_safe(old)} {_safe(phrases.share(old_shares[service.classes.index(old)]))}"
    second = f"{_safe(new)} {_safe(phrases.share(new_shares[k]))}"
    low, high = sorted((100 * old_shares[k], 100 * new_shares[k]))
    return (
        f'<p class="tf-shift"><span>{first}</span> → <strong>{second}</strong></p>'
        f'<div class="tf-gauge" role="img" aria-label="{_safe(new)}: {_safe(phrases.share(old_shares[k]))} → '
        f'{_safe(phrases.share(new_shares[k]))}"><span class="tf-before" style="width:{low:.1f}%"></span>'
        f'<span class="tf-gain" style="left:{low:.1f}%;width:{high - low:.1f}%"></span></div>'
    )


def proof(one: Explanation, language: str) -> str:
    """What is proven, as a badge; distance, bound and the argument behind it."""
    phrases = catalogue(language)
    told_as = phrases.words
    tone = _TONES.get(one.status.name, "none")
    badge = f'<span class="tf-badge tf-{tone}">{_safe(phrases.statuses[one.status.name])}</span>'
    facts = []
    if one.distance is not None:
        facts.append(f"{_safe(told_as['distance'])} {phrases.rounded(one.distance)} ({_safe(one.distance_name)})")
        facts.append(f"{_safe(told_as['lower bound'])} {phrases.rounded(one.lower_bound)}")
    known = how_known(one, language)
    told = f"<p>{_safe(known)}</p>" if known else ""
    line = f'<p class="tf-proof">{" · ".join(facts)}</p>' if facts else ""
    if not (told or line):
        return f"<p>{badge}</p>"
    return f"<details><summary>{badge} {_safe(told_as['proof'])}</summary>{line}{told}</details>"


def changes_head(language: str) -> str:
    """The heads of the table of changes."""
    told = catalogue(language).words
    heads = [_safe(told[key]) for key in _HEADS[:-1]]
    picture = f'<span class="tf-hidden">{_safe(told["picture"])}</span>'
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f'<tr>{cells}<th scope="col">{_safe(told["share"])}{picture}</th><td></td></tr>'


def change_row(cells: Sequence[str], change: Change) -> list[tuple[str, str]]:
    """Before, after, how much, and a bar, to the right more, to the left less; each with its class."""
    before, after, moved, share = map(_safe, cells[1:])
    bar = f'<span class="tf-bar tf-{side_of(change)}" style="width:{max(1.0, 50 * change.share):.1f}%"></span>'
    return [
        (before, "tf-cell"), (f"<strong>{after}</strong>", "tf-cell"), (moved, "tf-cell tf-wide"),
        (f'{bar}<span class="tf-hidden">{share}</span>', "tf-bars"),
    ]  # fmt: skip


def side_by_side(answers: Mapping[str, Explanation], language: str, labels: Mapping[str, str]) -> str:
    """Several answers: a column each, a line a feature that any of them changes."""
    phrases = catalogue(language)
    features = list(dict.fromkeys(change.feature for one in answers.values() for change in one.changes))
    heads = "".join(f'<th scope="col">{_safe(name)}</th>' for name in answers)
    status_line = "".join(f"<td>{_safe(phrases.statuses[one.status.name])}</td>" for one in answers.values())
    lines = [f'<tr><th scope="row">{_safe(phrases.words["status"])}</th>{status_line}</tr>']
    for feature in features:
        cells = []
        for one in answers.values():
            change = next((change for change in one.changes if change.feature == feature), None)
            if change is None:
                cells.append(f'<td><span class="tf-faint" title="{_safe(labels["stays"])}">·</span></td>')
                continue
            after = measured(change.shown, words_of(one, change, language), phrases)
            moved = difference(change, language) if side_of(change) != "other" else ""
            cells.append(f"<td>{_safe(after)}<br><small>{_safe(moved)}</small></td>")
        lines.append(f'<tr><th scope="row">{breakable(feature)}</th>{"".join(cells)}</tr>')
    return (
        f'<div class="tf-scroll" tabindex="0" role="region" aria-label="{_safe(labels["side_by_side"])}">'
        f'<table class="tf-compare"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def side_of(change: Change) -> str:
    """Where a change goes: "up", "down", or "other" where there is no more and no less."""
    if not all(isinstance(value, int | float) for value in (change.before, change.after)):
        return "other"
    return "up" if change.after > change.before else "down"


def breakable(name: Any) -> str:
    """A column's name that may be broken after its underscores."""
    return _safe(name).replace("_", "_<wbr>")


def _safe(text: Any) -> str:
    return escape(plain(text))
