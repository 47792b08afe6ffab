"""Answers as columns of a DataFrame: a line a row, or a line a changed feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np

from treefocus.explanation.answers import Answers
from treefocus.explanation.change import as_truth, plain, told_value
from treefocus.model.forest import Floats
from treefocus.render.views import RowView
from treefocus.schema.schema import INTEGER
from treefocus.tables.labels import is_null

_OWN_COLUMNS = ("row", "way", "predicted", "outcome", "status", "distance", "lower_bound", "gap", "reason")


class FramedRow(RowView, Protocol):
    """A row's answer with its further ways out; see `row.Explanation`."""

    @property
    def others(self) -> Sequence[RowView]:
        """Further ways out, as far as they were asked for, with or without an answer."""
        ...


def answer_columns(answers: Answers) -> dict[str, list[Any]]:
    """The counterfactuals with status, distance, bound and predictions; a line a way where several were asked for."""
    if answers.others:
        return _interleaved([_columns(answers), *map(_columns, answers.others)])
    return _columns(answers)


def change_columns(explanations: Iterable[FramedRow]) -> dict[str, list[Any]]:
    """Changes as columns, a line a changed feature, rows in their order and the largest change first.

    Where further ways out were asked for, the column "way" numbers them. Where categories change, before and after are
    text, and the column "change" is empty.
    """
    lines, names = [], ["row", "feature", "before", "after", "change", "share", "unit"]
    for one in explanations:
        ways: Sequence[RowView] = one.ways if one.others else (one,)
        names = [*names, "way"] if one.others and "way" not in names else names
        for number, way in enumerate(ways, start=1):
            for c in way.changes:
                lines.append((one.label, c.feature, c.before_shown, c.shown, c.moved, c.share, c.unit, number))
    columns: dict[str, list[Any]] = {name: [line[k] for line in lines] for k, name in enumerate(names)}
    values = (*columns["before"], *columns["after"])
    if any(isinstance(value, bool) for value in values) and not all(isinstance(value, bool) for value in values):
        for key in ("before", "after"):  # next to numbers, True is 1
            columns[key] = [float(value) if isinstance(value, bool) else value for value in columns[key]]
    if any(not isinstance(value, Real) for value in values if value is not None):
        for key in ("before", "after"):
            columns[key] = [None if value is None else str(value) for value in columns[key]]
    return columns


def _columns(answers: Answers) -> dict[str, list[Any]]:
    points = {name: _answers_of(answers, j) for j, name in enumerate(answers.schema.names)}
    return {
        "row": [plain(label) for label in answers.labels],
        "predicted": [plain(label) for label in answers.predicted],
        "outcome": [plain(label) for label in answers.outcome],
        "status": [status.name for status in answers.status],
        "distance": nullable(answers.distance),
        "lower_bound": answers.lower_bound.tolist(),
        "gap": nullable(answers.gap),
        "reason": [str(reason) for reason in answers.why],
    } | {(name if name not in _OWN_COLUMNS else f"{name} (value)"): column for name, column in points.items()}


def _answers_of(answers: Answers, j: int) -> list[Any]:
    """A column of the counterfactuals as plain values, None where there is none."""
    table, points = answers.table, answers.points[:, j]
    feature = answers.schema.features[j]
    if table.is_boolean[j] or feature.kind == "boolean":
        return [None if np.isnan(value) else as_truth(value) for value in points.tolist()]
    if feature.counting is not None:
        return [None if np.isnan(value) else told_value(value, feature) for value in points.tolist()]
    if table.labels_of(j) is None:
        return nullable(points, is_whole=_is_whole(answers, j))
    cells = zip(table.labelled(j, points), answers.has_answer, strict=True)
    return [plain(cell) if is_there and not is_null(cell) else None for cell, is_there in cells]


def _is_whole(answers: Answers, j: int) -> bool:
    """Whether a column is written in whole numbers: by its dtype or, where a file has none, by what it holds."""
    table, values = answers.table, answers.points[~np.isnan(answers.points[:, j]), j]
    if table.grain[j] == INTEGER or table.has_dtypes:
        return bool(table.grain[j] == INTEGER)
    return answers.schema.features[j].kind == "integer" and bool((values == np.rint(values)).all())


def _interleaved(ways: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """One table of several with the same rows, row by row; a further way only where there is one."""
    lines = [
        (k, i)
        for i in range(len(ways[0]["row"]))
        for k, way in enumerate(ways)
        if k == 0 or way["distance"][i] is not None
    ]
    first, *names = ways[0]
    columns = {name: [ways[k][name][i] for k, i in lines] for name in (first, *names)}
    return {first: columns.pop(first), "way": [k + 1 for k, _ in lines]} | columns


def nullable(values: Floats, is_whole: bool = False) -> list[float | None]:
    """Numbers, None for a missing one."""
    kind = int if is_whole else float
    return [None if np.isnan(value) else kind(value) for value in values]
