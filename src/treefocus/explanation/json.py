"""Explanations as JSON and back: the format that docs/schema/explanations-1.json describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.explanation.reasons import read_reason
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats
from treefocus.schema.schema import Schema
from treefocus.search.base import Outcome, Status
from treefocus.tables.labels import encode
from treefocus.tables.table import Table

FORMAT = "treefocus-explanations-1"
_GRAINS = ("float64", "float32", "integer")  # by number, see `treefocus.schema.schema`
_SCHEMA_KEYS = ("features", "subject", "outcomes", "translations")
_WHOLE_WORDS = {"Infinity": np.inf, "-Infinity": -np.inf}


def number(value: float | None) -> float | str | None:
    """A number as JSON can hold it: null for NaN, words for the infinities."""
    if value is None or value != value:
        return None
    return float(value) if np.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def numbers(values: Floats) -> list[float | str | None]:
    """The same for many."""
    if np.isfinite(values).all():
        return values.tolist()  # type: ignore[no-any-return]
    return [number(value) for value in values.tolist()]


def cell(value: Any) -> Any:
    """A cell as JSON can hold it: a number, or a category."""
    return number(value) if isinstance(value, float) else name(value)


def name(label: Any) -> Any:
    """A row's or class's name as JSON can hold it: a date, say, as text."""
    is_plain = label is None or isinstance(label, str | int) or (isinstance(label, float) and np.isfinite(label))
    return label if is_plain else str(label)


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


def batch_record(
    schema: Schema, grain: Sequence[int], distance_name: str, seconds: float, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """The whole file."""
    head = {"format": FORMAT} | schema_record(schema)
    grains = [_GRAINS[g] for g in grain]
    return head | {"grains": grains, "distance": distance_name, "seconds": float(seconds), "rows": rows}


def answers_record(
    labels: Labels | None, is_value: bool, favoured: Any, favoured_of: Sequence[Any] | None = None
) -> dict[str, Any]:
    """What else must be known of the answers: the columns' categories, and what the model was asked for."""
    record: dict[str, Any] = {}
    if labels is not None and any(own is not None for own in labels):
        record["labels"] = [None if own is None else [name(label) for label in own] for own in labels]
    if is_value:
        record["answers"] = {"kind": "value"}
    if favoured is not None:
        record["answers"] = {"kind": "probability", "of": name(favoured)}
    if favoured_of is not None:
        record["answers"] = {"kind": "probability", "of_row": [name(label) for label in favoured_of]}
    return record


def batch_pieces(record: Any) -> list[dict[str, Any]]:
    """What `Explanations` is made of, from the parsed file: first the answers, then every further way out."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        came = record.get("format") if isinstance(record, dict) else type(record).__name__
        reject("The explanations' format", repr(FORMAT), repr(came))
    try:
        own = {key: record[key] for key in _SCHEMA_KEYS if key in record}
        schema = Schema.from_record(own, "The file does not hold explanations")
        rows = record["rows"]
        n_ways = max((len(row.get("ways", ())) for row in rows), default=0)
        others = [[row | row["ways"][k] for row in rows] for k in range(n_ways)]
        return [_pieces(record, schema, mine) for mine in (rows, *others)]
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidInput(f"The file does not hold explanations: {error!r}.") from error


def _pieces(record: Mapping[str, Any], schema: Schema, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    width = len(schema)
    labels = _categories(record, width)
    cells = [row["values"] for row in rows]
    values = _matrix(cells, labels)
    points = _matrix([row["counterfactual"] or [None] * width for row in rows], labels)
    points = np.where(_is_kept(rows, labels), values, points)
    shown, parts = points.copy(), np.full_like(points, np.nan)
    for i, row in enumerate(rows):
        if row["counterfactual"] is not None:
            parts[i] = np.where(np.isnan(points[i]), np.nan, 0.0)
        for change in row["changes"]:
            j = schema.index(change["feature"])
            parts[i, j] = _float(change["part"])
            if labels[j] is None:
                shown[i, j] = _float(change["shown"])
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
    return {
        "table": table,
        "schema": schema,
        "points": points,
        "shown": shown,
        "parts": parts,
        "predicted": _labels(rows, "predicted"),
        "outcome": _labels(rows, "outcome"),
        "found": outcome,
        "why": tuple(read_reason(row["reason"]) for row in rows),
        "distance_name": record["distance"],
        "problem": None,
        "seconds": float(record["seconds"]),
        "row_labels": tuple(row["row"] for row in rows),
        **_answers(record, rows),
    }


def _answers(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the model was asked for, where it is not a class."""
    told = record.get("answers", {})
    if told.get("kind") != "probability":
        return {"is_value": told.get("kind") == "value"}
    pairs = [row.get("likelihood") or [None, None] for row in rows]
    of_row = told.get("of_row")
    if of_row is not None and len(of_row) != len(rows):
        raise ValueError(f"probabilities of {len(of_row)} classes for {len(rows)} rows")
    one_a_row = None if of_row is None else tuple(of_row)
    favoured = told["of"] if of_row is None else None
    return {"favoured": favoured, "favoured_of": one_a_row, "likelihood": _matrix(pairs, (None, None))}


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


def _matrix(rows: Sequence[Sequence[Any]], labels: Labels) -> Floats:
    """Cells as numbers: categories by the labels of their column."""
    if any(len(row) != len(labels) for row in rows):
        raise ValueError(f"a row without {len(labels)} values")
    result = np.empty((len(rows), len(labels)))
    for j, own in enumerate(labels):
        column = [row[j] for row in rows]
        result[:, j] = [_float(value) for value in column] if own is None else encode(column, own)
    return result


def _float(value: Any) -> float:
    if value is None:
        return np.nan
    return _WHOLE_WORDS[value] if isinstance(value, str) else float(value)
