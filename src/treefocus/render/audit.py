"""An audit as text and as columns. Computes nothing: it takes the record that `Audit.to_json` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plain import bare, plain
from treefocus.render.summary import aligned

MANY = 12  # features and groups that are listed
GROUP_HEADS = ("group", "rows", "with a way out", "without (proven)", "open", "mean distance", "median", "changes")
FEATURE_HEADS = ("feature", "rows", "share", "up", "on average", "down", "on average", "other")
_MEASURES = {"burden": "mean distance", "preclusion": "share without a way out"}
Record = Mapping[str, Any]


def audit_text(facts: Record, warnings: Sequence[str]) -> str:
    """The whole audit."""
    whole = facts["whole"]
    if whole["is_hidden"]:
        return f"Fewer than {facts['min_group']} rows: nothing is shown."
    blocks = ["\n".join(headline(facts))]
    if facts["features"]:
        blocks.append(aligned(FEATURE_HEADS, feature_cells(facts["features"])))
    if facts["groups"]:
        blocks.append(aligned(GROUP_HEADS, group_cells(facts)))
        blocks.append("\n".join(findings(facts)))
    if warnings:
        blocks.append("\n".join(f"Note: {warning}" for warning in warnings))
    return "\n\n".join(blocks)


def headline(facts: Record) -> list[str]:
    """What is asked of all, in sentences."""
    whole, phrases = facts["whole"], catalogue(DEFAULT)
    there = f", {whole['already']:,} of which have what is wanted already" if whole["already"] else ""
    unread = f", {whole['unreadable']:,} cannot be read by the model" if whole["unreadable"] else ""
    lines = [f"{_rows(whole['rows'])}{there}{unread}."]
    if not whole["asked"]:
        return lines
    others = "Of the others" if whole["already"] or whole["unreadable"] else "Of these"
    is_open = f", and of {whole['open']:,} neither is known" if whole["open"] else ""
    lines.append(
        f"{others} {whole['helped']:,} have a way out, {whole['precluded']:,} "
        f"{'has' if whole['precluded'] == 1 else 'have'} provably none ({between(whole['preclusion'], share)})"
        f"{is_open}."
    )
    if whole["helped"]:
        lines.append(
            f"The way out is {between(whole['burden'], number)} away on average ({plain(facts['distance'])}), "
            f"and changes {phrases.rounded(whole['changes'], 3)} features."
        )
    return lines + obstacle_lines(facts["preclusion"])


def obstacle_lines(preclusion: Record) -> list[str]:
    """What stands in the way of those without a way out."""
    if not preclusion["rows"]:
        return []
    if not preclusion["asked_why"]:
        return ["Why they have none was not asked."]
    lines = [
        f"Why they have none, asked for {preclusion['asked_why']:,} of them, by the fewest constraints in the way:"
    ]
    for one in preclusion["obstacles"][:MANY]:
        least = "" if one["is_proven"] else " (perhaps fewer)"
        lines.append(f"  - {one['rows']:,}: {' and '.join(map(plain, one['constraints']))}{least}")
    if preclusion["obstacles_of_few"]:
        lines.append(f"  - {preclusion['obstacles_of_few']:,} other sets, of too few people to be shown")
    return lines


def findings(facts: Record) -> list[str]:
    """What can be concluded of the groups, in sentences."""
    tested = [one for one in facts["disparities"] if one["p"] is not None]
    found = [one for one in tested if one["is_found"]]
    if not facts["disparities"]:
        return ["There are no two groups to compare."]
    if not tested:
        return ["No comparison has enough rows for a conclusion."]
    counted = "1 comparison" if len(tested) == 1 else f"{len(tested)} comparisons, corrected for their number (Holm)"
    head = f"{counted}, at {share(facts['level'])}:"
    if not found:
        return [f"{head} none of the differences is more than chance can do."]
    return [head, *(f"  - {finding(one, facts)}" for one in found)]


def finding(one: Record, facts: Record) -> str:
    """One disparity as a sentence."""
    group, other = name_of(one["columns"], one["group"]), name_of(one["columns"], one["reference"])
    told = share if one["measure"] == "preclusion" else number
    ratio = "" if one["ratio"][0] is None else f" {between(one['ratio'], number)} times that of {other};"
    size = "" if one["effect"] is None else f"; effect size {number(one['effect'])} ({_size(one['effect'])})"
    measure = _MEASURES[one["measure"]]
    return (
        f"{group}: the {measure} is{ratio or f' another than that of {other};'} "
        f"the difference is {between(one['difference'], told)} "
        f"({share(facts['level'])} interval {_signed(one['interval'], told)}); p = {_p(one['adjusted'])}{size}."
    )


def warnings(facts: Record) -> tuple[str, ...]:
    """What keeps conclusions from being drawn."""
    whole, told = facts["whole"], []
    if whole["is_hidden"]:
        return ()
    if whole["open"]:
        told.append(
            f"{_rows(whole['open'])} without an answer, and none ruled out: they are in no mean distance, and the "
            "share without a way out has two ends."
        )
    if whole["burden"][0] is not None and whole["burden"][1] > whole["burden"][0] * (1 + 1e-9):
        told.append(
            "Some answers are not proven to be the smallest: distances have two ends, and tests take the worse."
        )
    hidden = [group for group in facts["groups"] if group["is_hidden"]]
    if hidden:
        told.append(
            f"{len(hidden)} group{'s are' if len(hidden) > 1 else ' is'} not shown: fewer than {facts['min_group']} "
            "people are behind one of the numbers, or it is needed to hide one that is."
        )
    small = [group for group in facts["groups"] if not group["is_hidden"] and group["is_small"]]
    if small:
        names = ", ".join(f"{name_of(group['columns'], group['labels'])} ({group['asked']})" for group in small[:MANY])
        more = f" and {len(small) - MANY} more" if len(small) > MANY else ""
        told.append(f"Too few rows (below 20) for a conclusion: {names}{more}.")
    return tuple(told)


def comparison_text(record: Record) -> str:
    """Two audits of the same people, in sentences."""
    lines, counts = [], record["counts"]
    if counts is not None:
        lines.append(
            f"{counts['lost']:,} lost their way out, {counts['gained']:,} gained one; for {counts['cheaper']:,} it "
            f"became cheaper, for {counts['dearer']:,} dearer, for {counts['same']:,} nothing changed."
        )
        if counts["freed"] or counts["caught"]:
            lines.append(
                f"{counts['freed']:,} have what is wanted now, {counts['caught']:,} had it and need a way out now."
            )
        if counts["unknown"]:
            lines.append(f"Of {counts['unknown']:,} it is not proven.")
    for measure, told in (("burden", number), ("preclusion", share)):
        one = record[measure]
        if one["before"][0] is not None and one["after"][0] is not None:
            lines.append(
                f"The {_MEASURES[measure]} went from {between(one['before'], told)} to {between(one['after'], told)} "
                f"({share(record['level'])} interval of the change: {_signed(one['interval'], told)})."
            )
    return "\n".join(lines)


# --- cells


def group_cells(facts: Record) -> list[tuple[str, ...]]:
    """A line for all rows and for each group."""
    lines: list[tuple[str, ...]] = [("all", *_cells(facts["whole"]))]
    for group in facts["groups"]:
        name = name_of(group["columns"], group["labels"])
        lines.append((name, *(("not shown",) + ("",) * 6 if group["is_hidden"] else _cells(group))))
    return lines


def _cells(group: Record) -> tuple[str, ...]:
    return (
        f"{group['rows']:,}", f"{group['helped']:,}",
        f"{group['precluded']:,} ({between(group['preclusion'], share)})" if group["asked"] else "",
        f"{group['open']:,}" if group["open"] else "",
        _spread(group["burden"], group["burden_interval"]), between(group["median"], number),
        "" if group["changes"] is None else number(group["changes"]),
    )  # fmt: skip


def feature_cells(features: Sequence[Record]) -> list[tuple[str, ...]]:
    """A line a feature."""
    phrases = catalogue(DEFAULT)
    lines: list[tuple[str, ...]] = []
    for one in features[:MANY]:
        steps = [
            "" if one[key] is None else phrases.step(phrases.difference(one[key]), plain(one["unit"]))
            for key in ("mean_up", "mean_down")
        ]
        lines.append(
            (
                plain(one["feature"]), f"{one['rows']:,}", phrases.share(one["share"]), _count(one["up"]), steps[0],
                _count(one["down"]), steps[1], _count(one["other"]),
            )
        )  # fmt: skip
    return lines


def group_columns(facts: Record) -> dict[str, list[Any]]:
    """For a DataFrame, a line for all rows and for each group."""
    lines = [facts["whole"], *facts["groups"]]
    columns: dict[str, list[Any]] = {
        "groups": [" x ".join(one["columns"]) for one in lines],
        "group": [name_of(one["columns"], one["labels"], bare=True) for one in lines],
        "is_hidden": [one["is_hidden"] for one in lines],
    }
    for key in ("rows", "asked", "helped", "precluded", "open", "already", "unreadable", "changes"):
        columns[key] = [one.get(key) for one in lines]
    for key in ("preclusion", "preclusion_interval", "burden", "burden_interval", "median"):
        for side, end in enumerate(("low", "high")):
            columns[f"{key}_{end}"] = [one[key][side] if key in one else None for one in lines]
    return columns


def feature_columns(facts: Record) -> dict[str, list[Any]]:
    """For a DataFrame, a line a feature of all rows and of each group."""
    every = [{"columns": [], "labels": []} | one for one in facts["features"]] + list(facts["group_features"])
    names = ("feature", "unit", "rows", "share", "up", "mean_up", "down", "mean_down", "other", "share_of_burden")
    return {
        "groups": [" x ".join(one["columns"]) for one in every],
        "group": [name_of(one["columns"], one["labels"], bare=True) for one in every],
    } | {name: [one[name] for one in every] for name in names}


def disparity_columns(facts: Record) -> dict[str, list[Any]]:
    """For a DataFrame, a line a disparity."""
    lines = facts["disparities"]
    columns: dict[str, list[Any]] = {
        "groups": [" x ".join(one["columns"]) for one in lines],
        "group": [name_of(one["columns"], one["group"], bare=True) for one in lines],
        "reference": [name_of(one["columns"], one["reference"], bare=True) for one in lines],
        "measure": [one["measure"] for one in lines],
    }
    for key in ("difference", "interval", "ratio", "ratio_interval"):
        for side, end in enumerate(("low", "high")):
            columns[f"{key}_{end}"] = [one[key][side] for one in lines]
    return columns | {key: [one[key] for one in lines] for key in ("effect", "p", "adjusted", "is_found")}


def name_of(columns: Sequence[str], labels: Sequence[Any], *, bare: bool = False) -> str:
    """A group's name: "sex = female, age_band = young", or its labels alone."""
    if not columns:
        return "all"
    words = ["missing" if label is None else plain(label) for label in labels]
    pairs = zip(columns, words, strict=True)
    return ", ".join(words if bare else [f"{plain(column)} = {word}" for column, word in pairs])


def name_parts(groups: Sequence[Record]) -> list[list[str]]:
    """The groups' names beside pictures, a part a column."""
    return [
        [bare(name_of([column], [label])) for column, label in zip(one["columns"], one["labels"], strict=True)]
        or [name_of((), ())]
        for one in groups
    ]


def between(ends: Sequence[float | None], told: Any) -> str:
    """A number with two ends; one where they are the same."""
    low, high = ends
    if low is None or high is None:
        return "-"
    return told(low) if told(low) == told(high) else f"{told(low)} to {told(high)}"


def number(value: float) -> str:
    """To three digits."""
    return catalogue(DEFAULT).rounded(value, 3)


def share(value: float) -> str:
    """As per cent."""
    return catalogue(DEFAULT).share(value, 0 if value in (0.0, 0.95, 0.99, 0.9, 1.0) else 1)


def _spread(ends: Sequence[float | None], interval: Sequence[float | None]) -> str:
    if ends[0] is None:
        return ""
    around = "" if interval[0] is None else f" [{between(interval, number)}]"
    return f"{between(ends, number)}{around}"


def _signed(ends: Sequence[float | None], told: Any) -> str:
    return "-" if ends[0] is None or ends[1] is None else f"{told(ends[0])} to {told(ends[1])}"


def _size(effect: float) -> str:
    """Cohen's words for it."""
    size = abs(effect)
    return "large" if size >= 0.8 else "medium" if size >= 0.5 else "small" if size >= 0.2 else "very small"


def _p(value: float) -> str:
    return "below 0.0001" if value < 1e-4 else number(value)


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
