"""A batch in numbers, for the terminal and the notebook. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plain import plain

MANY = 12  # features that are listed
_HEADS = ("feature", "rows", "share", "up", "typically", "down", "typically", "other", "mostly to")
_GROUP_HEADS = ("group", "rows", "found", "infeasible", "mean distance", "median distance")


def summary_text(record: Mapping[str, Any]) -> str:
    """The batch in a few lines, the features that are asked for most, and the groups if there are some."""
    blocks = ["\n".join(_lines(record))]
    if record["features"]:
        blocks.append(aligned(_HEADS, feature_cells(record)))
        left = len(record["features"]) - MANY
        blocks += [f"and {left} more features; to_frame() has all"] if left > 0 else []
    if record.get("groups"):
        blocks.append(aligned(_GROUP_HEADS, _group_cells(record)))
    return "\n\n".join(blocks)


def summary_html(record: Mapping[str, Any]) -> str:
    """The same for a notebook."""
    head = "".join(f"<div>{escape(line)}</div>" for line in _lines(record))
    tables = [_table(_HEADS, feature_cells(record))] if record["features"] else []
    tables += [_table(_GROUP_HEADS, _group_cells(record))] if record.get("groups") else []
    return f"<div>{head}{''.join(tables)}</div>"


def _lines(record: Mapping[str, Any]) -> list[str]:
    phrases, rows = catalogue(DEFAULT), record["rows"]
    counts = ", ".join(f"{count:,} {name}" for name, count in record["status"].items())
    lines = [f"{rows:,} row{'' if rows == 1 else 's'}{': ' if counts else ''}{counts}"]
    if rows:
        lines.append(f"with an answer: {phrases.share(record['share_found'], 1)}")
    if record["mean_distance"] == record["mean_distance"]:
        lines.append(f"mean distance: {phrases.rounded(record['mean_distance'])}")
        lines.append(f"mean gap to the proven bound: {phrases.share(record['mean_gap'], 1)}")
        lines.append(f"features changed, on average: {phrases.rounded(record['mean_features_changed'], 3)}")
    if record.get("stability"):
        lines.append(stability_line(record["stability"]))
    lines.append(f"{phrases.rounded(record['seconds'], 3)} s")
    return lines


def stability_line(known: Mapping[str, Any]) -> str:
    """How many other models give the answers the wanted outcome."""
    share, ends = catalogue(DEFAULT).share, (known["low"], known["high"])
    told = f"holds for {share(known['mean'], 1)} of {known['models']} other models"
    return told if ends[0] != ends[0] else f"{told} (95 %: {share(ends[0], 1)} to {share(ends[1], 1)})"


def feature_cells(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """For each of the features that are asked for most: how often it grows, shrinks or changes, and how far."""
    phrases = catalogue(DEFAULT)
    cells: list[tuple[str, ...]] = []
    for one in record["features"][:MANY]:
        steps = [
            "" if step is None else phrases.step(phrases.difference(step), plain(one["unit"]))
            for step in (one["typical_up"], one["typical_down"])
        ]
        other = one["typical_other"]
        told = "" if not one["n_other"] else phrases.words["unknown"] if other is None else plain(other)
        cells.append(
            (
                plain(one["feature"]), f"{one['rows']:,}", phrases.share(one["share"]),
                _count(one["n_up"]), steps[0], _count(one["n_down"]), steps[1], _count(one["n_other"]), told,
            )
        )  # fmt: skip
    return cells


def _group_cells(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    phrases = catalogue(DEFAULT)
    return [
        (
            plain(label), f"{one['rows']:,}", phrases.share(one["share_found"], 1),
            phrases.share(one["share_infeasible"], 1), phrases.rounded(one["mean_distance"]),
            phrases.rounded(one["median_distance"]),
        )
        for label, one in record["groups"].items()
    ]  # fmt: skip


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _used(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Heads and cells without the columns that are empty."""
    kept = [k for k in range(len(heads)) if any(line[k] for line in cells)]
    return [[line[k] for k in kept] for line in (heads, *cells)]


def aligned(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table for the terminal, without the columns that are empty."""
    lines = _used(heads, cells)
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    told = [
        "  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(pairs))
        for pairs in ([*zip(line, widths, strict=True)] for line in lines)
    ]
    return "\n".join(line.rstrip() for line in told)


def _table(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    first, *lines = _used(heads, cells)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in first)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
