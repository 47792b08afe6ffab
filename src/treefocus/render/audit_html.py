"""An audit as one page. Computes nothing: it takes the record that `Audit.to_json` writes, and draws its bars as SVG.

Nothing foreign is parsed as markup, the page has no script, and its policy allows no style but its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from treefocus.render.apart import joined_apart, told_apart
from treefocus.render.audit import (
    FEATURE_HEADS,
    GROUP_HEADS,
    MANY,
    between,
    feature_cells,
    finding,
    findings,
    group_cells,
    headline,
    name_parts,
    number,
    share,
)
from treefocus.render.html import _digest, _part, _safe, _table
from treefocus.render.palette import coloured
from treefocus.render.plain import bare

Record = Mapping[str, Any]
_NAMES, _BAR, _LINE = 260, 380, 26  # widths and height in the pictures
_LONGEST = 38  # letters of a name there


def audit_page(facts: Record, warnings: Sequence[str], title: str | None = None) -> str:
    """The whole page."""
    style = coloured(_part("report.css") + "\n" + _part("audit.css"))
    named = _safe(title or "Audit: what the model asks of people")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{named}</title>\n<style>{style}</style>\n</head>\n'
        f"<body>\n<header><h1>{named}</h1></header>\n<main>\n{audit_body(facts, warnings)}\n</main>\n</body>\n</html>\n"
    )


def audit_body(facts: Record, warnings: Sequence[str]) -> str:
    """What is between the headings, for a page, a report and a notebook."""
    if facts["whole"]["is_hidden"]:
        return f"<p>Fewer than {facts['min_group']} rows: nothing is shown.</p>"
    parts = ["<section><h2>Everybody</h2>", *_paragraphs(headline(facts))]
    if facts["features"]:
        parts += [feature_chart(facts), _scrolled(FEATURE_HEADS, feature_cells(facts["features"]))]
    parts.append("</section>")
    if facts["groups"]:
        parts += ["<section><h2>Groups</h2>", _told_findings(facts)]
        parts += [
            burden_chart(facts),
            preclusion_chart(facts),
            _scrolled(GROUP_HEADS, group_cells(facts)),
            "</section>",
        ]
    if warnings:
        parts += ["<section><h2>What limits this</h2>", *(f'<p class="quiet">{_safe(one)}</p>' for one in warnings)]
        parts.append("</section>")
    return "\n".join(parts)


def burden_chart(facts: Record) -> str:
    """The mean distance of each group."""
    caption = f"What is asked of each group: mean {bare(facts['distance'])} distance of those with a way out"
    return _interval_chart(facts, "burden", caption, number)


def preclusion_chart(facts: Record) -> str:
    """The share of each group without a way out."""
    return _interval_chart(facts, "preclusion", "Who has no way out: share of rows", share)


def feature_chart(facts: Record) -> str:
    """How often each feature is asked to change."""
    bars = []
    for one in facts["features"][:MANY]:
        up, rest = one["up"] / max(one["rows"], 1), one["share"]
        bars.append((bare(one["feature"]), share(one["share"]), (rest * up, "up"), (rest * (1 - up), "down")))
    return _figure("What is asked to change, of those with a way out (to grow: first part of the bar)", bars)


def _figure(caption: str, bars: Sequence[tuple[str, str, tuple[float, str], tuple[float, str]]]) -> str:
    """Bars of two parts each, of a whole of 1."""
    marks, names = [], told_apart([name for name, *_ in bars], _LONGEST)
    for k, (_, told, *parts) in enumerate(bars):
        name = names[k]
        y, x = k * _LINE, float(_NAMES)
        marks.append(_text(_NAMES - 8, y, name, "end"))
        for width, kind in parts:
            marks.append(_bar(x, y, width * _BAR, kind))
            x += width * _BAR
        marks.append(_text(x + 6, y, told, "start"))
    return _drawn(caption, marks, len(bars))


def _interval_chart(facts: Record, measure: str, caption: str, told: Any) -> str:
    groups = [one for one in (facts["whole"], *facts["groups"]) if not one["is_hidden"] and one[measure][0] is not None]
    if not any(one[measure][1] for one in groups):
        return ""
    ends = [end for one in groups for end in (*one[measure], *one[f"{measure}_interval"]) if end is not None]
    unit = _BAR / (max(ends) or 1.0)
    names = joined_apart(name_parts(groups), _LONGEST)
    marks = []
    for k, one in enumerate(groups):
        y, (low, high), interval = k * _LINE, one[measure], one[f"{measure}_interval"]
        marks.append(_text(_NAMES - 8, y, names[k], "end"))
        marks.append(_bar(_NAMES, y, low * unit, f"low {'precluded' if measure == 'preclusion' else ''}".strip()))
        if high > low:
            marks.append(_bar(_NAMES + low * unit, y, (high - low) * unit, "high"))
        end = high
        if interval[0] is not None:
            middle, left, right = y + _LINE / 2, _NAMES + interval[0] * unit, _NAMES + interval[1] * unit
            marks.append(f'<line class="interval" x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>')
            end = max(end, interval[1])
        marks.append(_text(_NAMES + end * unit + 6, y, between(one[measure], told), "start"))
    return _drawn(f"{caption}; {share(facts['level'])} interval as a line", marks, len(groups))


def _drawn(caption: str, marks: Iterable[str], n_lines: int) -> str:
    height = n_lines * _LINE + 4
    picture = f'<svg viewBox="0 0 {_NAMES + _BAR + 130} {height}" role="img" aria-label="{escape(bare(caption))}">'
    return f"<figure><figcaption>{_safe(caption)}</figcaption>{picture}{''.join(marks)}</svg></figure>"


def _bar(x: float, y: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y + 4}" width="{max(width, 0.0):.1f}" height="{_LINE - 8}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f'<text x="{x:.1f}" y="{y + _LINE / 2 + 4.5}" text-anchor="{anchor}">{escape(short)}</text>'


def _told_findings(facts: Record) -> str:
    found = [one for one in facts["disparities"] if one["is_found"]]
    head, *_ = findings(facts)
    if not found:
        return f'<p class="quiet">{_safe(head)}</p>'
    told = "".join(f'<p class="finding">{_safe(finding(one, facts))}</p>' for one in found)
    return f"<p>{_safe(head)}</p>{told}"


def _scrolled(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    kept = [k for k in range(len(heads)) if any(line[k] for line in lines)]
    shown = [[line[k] for k in kept] for line in lines]
    return f'<div class="scroll">{_table([heads[k] for k in kept], shown, "")}</div>'


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """Sentences as paragraphs, those with a dash before them as a list."""
    told = [f"<p>{_safe(line)}</p>" for line in lines if not line.startswith("  - ")]
    listed = "".join(f"<li>{_safe(line[4:])}</li>" for line in lines if line.startswith("  - "))
    return [*told, f"<ul>{listed}</ul>"] if listed else told
