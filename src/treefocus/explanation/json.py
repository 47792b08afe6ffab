"""Explanations as JSON and back: the format that docs/schema/explanations-1.json describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.explanation.answers import Answers, Description
from treefocus.explanation.change import plain, told_value
from treefocus.explanation.json_values import cell, name, number, numbers
from treefocus.explanation.predictions import Predicted, likelihood_of
from treefocus.explanation.reasons import read_reason
from treefocus.explanation.stability import Stability
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats
from treefocus.schema.dates import Counting, read_date
from treefocus.schema.schema import Schema
from treefocus.search.base import Outcome, Status
from treefocus.tables.labels import encode
from treefocus.tables.table import Table

FORMAT = "treefocus-explanations-1"
_GRAINS = ("float64", "float32", "integer")  # by number, see `treefocus.schema.schema`
_SCHEMA_KEYS = ("features", "subject", "outcomes", "translations")
_OF_THE_ROW = ("row", "predicted", "values")  # what a further way out has in common with the first
_WHOLE_WORDS = {"Infinity": np.inf, "-Infinity": -np.inf}

A = TypeVar("A", bound=Answers)
__all__ = ["FORMAT", "batch_record", "cell", "name", "number", "read_batch", "row_record", "schema_record"]


def schema_record(schema: Schema) -> dict[str, Any]:
    """A schema as JSON can hold it."""
    record = schema.to_record()
    if "outcomes" in record:
        record["outcomes"] = [[name(label), word] for label, word in record["outcomes"]]
    for feature in record["features"]:
        feature |= {key: feature.get(key, "") for key in ("unit", "description")}
        if "values" in feature:
            feature["values"] = [name(value) for value in feature["values"]]
    if schema.translations:
        record["translations"] = {code: schema_record(other) for code, other in schema.translations.items()}
    return record


def row_record(answers: Answers, i: int) -> dict[str, Any]:
    """One row's answer, with every further way out."""
    point, says, table = answers.written(i), answers.model_says, answers.table
    record = {
        "row": name(plain(answers.labels[i])),
        "predicted": name(plain(says.before[i])),
        "outcome": name(plain(says.after[i])),
        "status": answers.status[i].name,
        "reason": str(answers.why[i]),
        "distance": None if point is None else number(answers.distance[i]),
        "lower_bound": float(answers.lower_bound[i]) if np.isfinite(answers.lower_bound[i]) else None,
        "gap": None if point is None else float(answers.gap[i]),
        "changes": [change.to_dict() for change in answers.changes(i)],
        "counterfactual": None if point is None else _cells(answers, point),
        "values": _cells(answers, table.row(i)) if _has_words(answers) else numbers(table.values[i]),
    }
    likelihood = likelihood_of(says, i)
    if likelihood is not None:
        record["likelihood"] = list(likelihood)
    record |= _beyond(answers, i)
    if answers.others:
        ways = [row_record(other, i) for other in answers.others]
        record["ways"] = [{key: way[key] for key in way if key not in _OF_THE_ROW} for way in ways]
    return record


def _beyond(answers: Answers, i: int) -> dict[str, Any]:
    """What is known of a row besides, where more was asked for than the smallest change, or round numbers were."""
    record: dict[str, Any] = {"is_demanding": True} if answers.is_demanding(i) else {}
    for key, known in (("smallest", answers.smallest), ("larger", answers.larger)):
        if known is not None and np.isfinite(known[i]):
            record[key] = float(known[i])
    if answers.held is not None and answers.status[i].has_answer:
        record["agrees"] = answers.held.agrees[:, i].tolist()
    return record


def _has_words(answers: Answers) -> bool:
    """Whether some cells are no numbers."""
    return answers.table.labels is not None or any(feature.is_date for feature in answers.schema.features)


def _cells(answers: Answers, row: Sequence[Any]) -> list[Any]:
    """A row as JSON can hold it; of dates, the text."""
    features = answers.schema.features
    return [cell(told_value(value, own) if own.is_date else value) for value, own in zip(row, features, strict=True)]


def batch_record(answers: Answers) -> dict[str, Any]:
    """The whole file."""
    labels, says = answers.table.labels, answers.model_says
    record: dict[str, Any] = {"format": FORMAT} | schema_record(answers.schema)
    record["grains"] = [_GRAINS[g] for g in answers.table.grain.tolist()]
    record |= {"distance": answers.distance_name, "seconds": float(answers.seconds)}
    record["rows"] = [row_record(answers, i) for i in range(len(answers))]
    if labels is not None and any(own is not None for own in labels):
        record["labels"] = [None if own is None else [name(label) for label in own] for own in labels]
    if says.is_value:
        record["answers"] = {"kind": "value"}
    if says.favoured is not None:
        record["answers"] = {"kind": "probability", "of": name(says.favoured)}
    if says.favoured_of is not None:
        record["answers"] = {"kind": "probability", "of_row": [name(label) for label in says.favoured_of]}
    return record


def read_batch(record: Any, kind: type[A]) -> A:
    """The answers of a parsed file."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        came = record.get("format") if isinstance(record, dict) else type(record).__name__
        reject("The explanations' format", repr(FORMAT), repr(came))
    try:
        own = {key: record[key] for key in _SCHEMA_KEYS if key in record}
        schema = Schema.from_record(own, "The file does not hold explanations")
        rows = record["rows"]
        n_ways = max((len(row.get("ways", ())) for row in rows), default=0)
        others = [[row | row["ways"][k] for row in rows] for k in range(n_ways)]
        first, *further = (_read(record, schema, mine, kind) for mine in (rows, *others))
        return replace(first, others=tuple(further))
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidInput(f"The file does not hold explanations: {error!r}.") from error


def _read(record: Mapping[str, Any], schema: Schema, rows: Sequence[Mapping[str, Any]], kind: type[A]) -> A:
    """The answers of some rows: the first ways out, or further ones."""
    width = len(schema)
    labels = _categories(record, width)
    cells = [row["values"] for row in rows]
    countings = schema.countings
    values = _matrix(cells, labels, countings)
    points = _matrix([row["counterfactual"] or [None] * width for row in rows], labels, countings)
    points = np.where(_is_kept(rows, labels), values, points)
    shown, parts = points.copy(), np.full_like(points, np.nan)
    for i, row in enumerate(rows):
        if row["counterfactual"] is not None:
            parts[i] = np.where(np.isnan(points[i]), np.nan, 0.0)
        for change in row["changes"]:
            j = schema.index(change["feature"])
            parts[i, j] = _float(change["part"])
            if labels[j] is None:
                shown[i, j] = _float(change["shown"], countings[j])
    status = np.array([Status[row["status"]] for row in rows] + [None], object)[:-1]
    bounds = [
        np.inf if s is Status.INFEASIBLE else _float(row["lower_bound"]) for s, row in zip(status, rows, strict=True)
    ]
    outcome = Outcome(
        points, np.array([_float(row["distance"]) for row in rows], np.float64), np.array(bounds, np.float64), status
    )
    grain = np.array([_GRAINS.index(g) for g in record["grains"]], np.int8)
    table = Table(values, None, grain, values)
    if "labels" in record:
        table = Table(values, None, grain, np.array([*cells, [None] * width], object)[:-1], labels)
    return kind(
        table=table,
        schema=schema,
        found=outcome,
        described=Description(_predicted(record, rows), shown, parts),
        why=tuple(read_reason(row["reason"]) for row in rows),
        distance_name=record["distance"],
        seconds=float(record["seconds"]),
        row_labels=tuple(row["row"] for row in rows),
        held=_held(rows, np.array(outcome.has_answer, bool)),
        smallest=_known(rows, "smallest"),
        larger=_known(rows, "larger"),
        demanding=np.array([row.get("is_demanding") is True for row in rows], bool),
    )


def _known(rows: Sequence[Mapping[str, Any]], key: str) -> Floats | None:
    """(n_rows,) a number that some rows have; None where none has."""
    if not any(key in row for row in rows):
        return None
    return np.array([_float(row.get(key)) for row in rows], np.float64)


def _held(rows: Sequence[Mapping[str, Any]], has_answer: Bools) -> Stability | None:
    """What other models said of the answers."""
    n_models = max((len(row["agrees"]) for row in rows if "agrees" in row), default=0)
    if not n_models:
        return None
    agrees = [row.get("agrees", [False] * n_models) for row in rows]
    return Stability.of(np.array(agrees, bool).T, has_answer & np.array(["agrees" in row for row in rows], bool))


def _predicted(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Predicted:
    """What the model says, and what it was asked for, where that is not a class."""
    before, after, asked = _labels(rows, "predicted"), _labels(rows, "outcome"), record.get("answers", {})
    if asked.get("kind") != "probability":
        return Predicted(before, after, asked.get("kind") == "value")
    likelihood = _matrix([row.get("likelihood") or [None, None] for row in rows], (None, None))
    if asked.get("of_row") is None:
        return Predicted(before, after, False, asked["of"], likelihood)
    if len(asked["of_row"]) != len(rows):
        raise ValueError(f"probabilities of {len(asked['of_row'])} classes for {len(rows)} rows")
    return Predicted(before, after, False, None, likelihood, tuple(asked["of_row"]))


def _categories(record: Mapping[str, Any], width: int) -> Labels:
    labels = record.get("labels", [None] * width)
    if len(labels) != width:
        raise ValueError(f"labels of {len(labels)} columns for {width}")
    return tuple(None if own is None else tuple(own) for own in labels)


def _is_kept(rows: Sequence[Mapping[str, Any]], labels: Labels) -> Any:
    """Where an answer holds the row's own category: one that the model has not seen has no other name."""
    kept = np.zeros((len(rows), len(labels)), bool)
    for i, row in enumerate(rows):
        if row["counterfactual"] is not None:
            pairs = zip(labels, row["counterfactual"], row["values"], strict=True)
            kept[i] = [own is not None and after == before for own, after, before in pairs]
    return kept


def _labels(rows: Sequence[Mapping[str, Any]], key: str) -> np.ndarray[Any, Any]:
    labels = np.empty(len(rows), object)
    labels[:] = [row[key] for row in rows]
    return labels


def _matrix(rows: Sequence[Sequence[Any]], labels: Labels, countings: Sequence[Counting | None] = ()) -> Floats:
    """Cells as numbers: categories by the labels of their column, dates as they are counted."""
    if any(len(row) != len(labels) for row in rows):
        raise ValueError(f"a row without {len(labels)} values")
    result = np.empty((len(rows), len(labels)))
    for j, own in enumerate(labels):
        column, counting = [row[j] for row in rows], countings[j] if countings else None
        result[:, j] = [_float(value, counting) for value in column] if own is None else encode(column, own)
    return result


def _float(value: Any, counting: Counting | None = None) -> float:
    if value is None:
        return np.nan
    moment = read_date(value) if counting is not None and isinstance(value, str) else None
    if moment is not None and counting is not None:
        return counting.number(moment)
    return _WHOLE_WORDS[value] if isinstance(value, str) else float(value)
