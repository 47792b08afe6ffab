"""Explanations as HTML: small tables for notebooks, and a report that is one file. Computes nothing.

The report carries its rows as JSON and lists them with a short script, a page at a time. Nothing foreign is ever
parsed as markup: what Python writes is escaped, what the script writes goes through textContent, and the page's
policy allows no script, style or address but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from treefocus.render.palette import coloured
from treefocus.render.phrases import DEFAULT, Catalogue, catalogue
from treefocus.render.plain import bare, plain
from treefocus.render.table import MANY, change_cells, overview_cells, title
from treefocus.render.text import how_known, measured, sentence
from treefocus.render.views import BatchView, RowView

_MOST_FEATURES = 15
_WORDS = (
    "feature", "before", "after", "change", "share", "previous", "next", "page x of y", "matches", "picture",
    "no changes", "distance", "lower bound", "proof",
)  # fmt: skip


def changes_table(explanation: RowView, language: str = DEFAULT) -> str:
    """One row's changes as an HTML table, for notebooks."""
    words = catalogue(language).words
    heads = [words[key] for key in ("feature", "before", "after", "change", "share")]
    told = f"<p>{_safe(sentence(explanation, language))}</p>"
    if not explanation.changes:
        return f"<div>{told}</div>"
    return f"<div>{_table(heads, change_cells(explanation, language), title(explanation, language))}{told}</div>"


def overview_table(found: BatchView, limit: int = MANY, language: str = DEFAULT) -> str:
    """The first rows of a batch as an HTML table, for notebooks."""
    words = catalogue(language).words
    n_rows = min(limit, len(found))
    heads = [words[key] for key in ("row", "predicted", "would be", "if", "distance", "status")]
    caption = words["x of y rows"].format(shown=n_rows, rows=len(found))
    return f"<div>{_table(heads, (overview_cells(found[i], language) for i in range(n_rows)), caption)}</div>"


def report(found: BatchView, summary: Mapping[str, Any], heading: str | None, language: str = DEFAULT) -> str:
    """The whole page."""
    phrases = catalogue(language)
    words = phrases.words
    style, script = coloured(_part("report.css")), _part("report.js")
    data = {
        "words": {key: words[key] for key in _WORDS},
        "statuses": dict(phrases.statuses),
        "decimal": phrases.decimal,
        "rows": [_row(one, phrases) for one in found],
    }
    options = "".join(
        f'<option value="{name}">{_safe(phrases.statuses[name])} ({count})</option>'
        for name, count in summary["status"].items()
    )
    places = {
        "language": language,
        "policy": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'",
        "title": _safe(heading or words["report"]),
        "style": style,
        "script": script,
        "summary": _summary(found, summary, phrases),
        "statuses": options,
        "data": _embedded(data),
    } | {f"word {key}": _safe(word) for key, word in words.items()}
    pieces = _part("report.html").split("@@")  # text, place, text, place, ..., text
    pieces[1::2] = [places[name] for name in pieces[1::2]]
    return "".join(pieces)


def _row(one: RowView, phrases: Catalogue) -> list[Any]:
    """One row for the script: title, status, sentence, distance, its text, bound, how we know, and the changes."""
    cells = change_cells(one, phrases.code)
    changes = [
        [*texts, round(change.share, 4) * (-1 if change.is_down else 1)]
        for texts, change in zip(cells, one.changes, strict=True)
    ]
    distance = one.distance if one.distance is not None and one.distance < float("inf") else None
    bound = phrases.rounded(one.lower_bound) if one.distance is not None else ""
    told = "" if one.distance is None else phrases.rounded(one.distance)
    code = phrases.code
    known = how_known(one, code)
    return [title(one, code), one.status.name, sentence(one, code), distance, told, bound, known, changes]


def _summary(found: BatchView, summary: Mapping[str, Any], phrases: Catalogue) -> str:
    words = phrases.words
    facts = [
        (words["rows"], phrases.number(summary["rows"])),
        (words["rows with an answer"], _share(summary["share_found"], phrases)),
        (words["mean distance"], phrases.rounded(summary["mean_distance"])),
        (words["features changed"], phrases.rounded(summary["mean_features_changed"], 3)),
    ]
    if summary.get("stability"):
        known = summary["stability"]
        facts.append((words["other models that agree"].format(models=known["models"]), _share(known["mean"], phrases)))
    facts += [(phrases.statuses[name], phrases.number(count)) for name, count in summary["status"].items()]
    parts = ["<dl>", *(f"<div><dt>{_safe(name)}</dt><dd>{_safe(value)}</dd></div>" for name, value in facts), "</dl>"]
    if summary["features"]:
        parts.append(_features(found, summary["features"][:_MOST_FEATURES], phrases))
    if summary.get("groups"):
        parts.append(_groups(summary["groups"], phrases))
    return "".join(parts)


def _features(found: BatchView, features: Sequence[Mapping[str, Any]], phrases: Catalogue) -> str:
    words, schema = phrases.words, found.schema.in_language(phrases.code)
    lines = []
    for one in features:
        unit = schema[one["feature"]].unit
        steps = [
            phrases.step(phrases.difference(one[key]), plain(unit))
            for key in ("typical_up", "typical_down")
            if one[key] is not None
        ]
        if one["n_other"]:
            steps.append(words["to"].format(value=measured(one["typical_other"], schema[one["feature"]], phrases)))
        lines.append(
            (plain(one["feature"]), phrases.number(one["rows"]), _share(one["share"], phrases), "; ".join(steps))
        )
    heads = [words[key] for key in ("feature", "rows asked", "share", "median step")]
    return f"<h3>{_safe(words['asked-for features'])}</h3>" + _table(heads, lines, "")


def _groups(groups: Mapping[Any, Mapping[str, Any]], phrases: Catalogue) -> str:
    words = phrases.words
    heads = [words[key] for key in ("group", "rows asked", "share found", "share infeasible", "mean distance")]
    lines = [
        (
            "-" if label is None else plain(label),
            phrases.number(one["rows"]),
            _share(one["share_found"], phrases),
            _share(one["share_infeasible"], phrases),
            phrases.rounded(one["mean_distance"]),
        )
        for label, one in groups.items()
    ]
    return f"<h3>{_safe(words['groups'])}</h3>" + _table(heads, lines, "")


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]], caption: str) -> str:
    head = "".join(f'<th scope="col">{_safe(cell)}</th>' for cell in heads)
    body = "".join(
        f'<tr><th scope="row">{_safe(line[0])}</th>{"".join(f"<td>{_safe(cell)}</td>" for cell in line[1:])}</tr>'
        for line in lines
    )
    named = f"<caption>{_safe(caption)}</caption>" if caption else ""
    return f"<table>{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _share(value: float, phrases: Catalogue) -> str:
    return phrases.share(value, 1) if value == value else "-"


def _safe(text: str) -> str:
    """Escaped, right-to-left text kept apart."""
    return f"<bdi>{escape(bare(text))}</bdi>" if text != bare(text) else escape(text)


def _embedded(data: Any) -> str:
    """JSON that can stand in a script element, whatever is in it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _part(name: str) -> str:
    return files("treefocus.render").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
