"""What the page draws: bars, meters and tables as HTML, with everything foreign escaped. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from treefocus.explanation.batch import Change, Explanation, Explanations
from treefocus.render.phrases import catalogue
from treefocus.render.plain import plain
from treefocus.render.table import change_cells, difference
from treefocus.render.text import how_known, measured, words_of

_HEADS = ("feature", "before", "after", "change", "share")
_TONES = {"OPTIMAL": "good", "BOUNDED": "fair", "FOUND": "fair"}


def prediction(name: str, label: Any, shares: Sequence[float] | None, classes: Sequence[Any]) -> str:
    """What the model says of a row: a class, with a bar for each of them, or a number."""
    if label is None:
        return f"<p>{_safe(name)}: <strong>the model cannot read it</strong></p>"
    if shares is None:
        return f"<p>{_safe(name)} is predicted <strong>{_safe(catalogue().amount(label))}</strong>.</p>"
    bars = "".join(
        f'<div class="tf-meter"><span>{_safe(one)}</span><span class="tf-track"><span class="tf-fill" '
        f'style="width:{100 * share:.1f}%"></span></span><span>{100 * share:.0f}%</span></div>'
        for one, share in zip(classes, shares, strict=True)
    )
    told = f"<p>{_safe(name)} is predicted <strong>{_safe(label)}</strong>.</p>"
    return f'{told}<div class="tf-meters">{bars}</div>'


def status(one: Explanation, language: str) -> str:
    """What is proven, as a badge and a line of numbers."""
    phrases = catalogue(language)
    words = phrases.words
    facts = [
        f'<span class="tf-badge tf-{_TONES.get(one.status.name, "none")}">{phrases.statuses[one.status.name]}</span>'
    ]
    if one.distance is not None:
        facts.append(f"{_safe(words['distance'])} {phrases.rounded(one.distance)} ({_safe(one.distance_name)})")
        facts.append(f"{_safe(words['lower bound'])} {phrases.rounded(one.lower_bound)}")
    line, known = f'<p class="tf-proof">{" · ".join(facts)}</p>', how_known(one, language)
    if not known:
        return line
    return f"{line}<details><summary>{_safe(words['proof'])}</summary><p>{_safe(known)}</p></details>"


def changes(one: Explanation, language: str) -> str:
    """Before, after and a bar for each feature that changes: to the right more, to the left less."""
    if not one.changes:
        return ""
    words = catalogue(language).words
    heads = "".join(f'<th scope="col">{_safe(words[key])}</th>' for key in _HEADS)
    lines = []
    for cells, change in zip(change_cells(one, language), one.changes, strict=True):
        before, after, moved, share = map(_safe, cells[1:])
        side = _side(change)
        bar = f'<span class="tf-bar tf-{side}" style="width:{max(1.0, 50 * change.share):.1f}%"></span>'
        lines.append(
            f'<tr><th scope="row">{breakable(change.feature)}</th><td>{before}</td><td>{after}</td><td>{moved}</td>'
            f'<td class="tf-bars" title="{share}">{bar}<span class="tf-hidden">{share}</span></td></tr>'
        )
    return (
        f'<table class="tf-changes"><caption>{_safe(words["picture"])}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def side_by_side(found: Mapping[str, Explanations], language: str) -> str:
    """One row under several distances: a column a distance, a line a feature that any of them changes."""
    phrases = catalogue(language)
    answers = {name: answer[0] for name, answer in found.items()}
    features = list(dict.fromkeys(change.feature for one in answers.values() for change in one.changes))
    heads = "".join(f'<th scope="col">{_safe(name)}</th>' for name in answers)
    status_line = "".join(f"<td>{_safe(phrases.statuses[one.status.name])}</td>" for one in answers.values())
    lines = [f'<tr><th scope="row">{_safe(phrases.words["status"])}</th>{status_line}</tr>']
    for feature in features:
        cells = []
        for one in answers.values():
            change = next((change for change in one.changes if change.feature == feature), None)
            if change is None:
                cells.append('<td><span class="tf-faint" aria-label="stays">·</span></td>')
                continue
            after = measured(change.shown, words_of(one, change, language), phrases)
            moved = difference(change, language) if _side(change) != "other" else ""
            cells.append(f"<td>{_safe(after)}<br><small>{_safe(moved)}</small></td>")
        lines.append(f'<tr><th scope="row">{breakable(feature)}</th>{"".join(cells)}</tr>')
    return (
        '<div class="tf-scroll" tabindex="0" role="region" aria-label="Distances side by side">'
        f'<table class="tf-compare"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _side(change: Change) -> str:
    """Where a change goes: "up", "down", or "other" where there is no more and no less."""
    if not all(isinstance(value, int | float) for value in (change.before, change.after)):
        return "other"
    return "up" if change.after > change.before else "down"


def breakable(name: Any) -> str:
    """A column's name that may be broken after its underscores."""
    return _safe(name).replace("_", "_<wbr>")


def _safe(text: Any) -> str:
    return escape(plain(text))
