"""Explanations as JSON and back: the format that docs/schema/explanations-1.json describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats
from treefocus.schema import Schema
from treefocus.search.base import Outcome, Status
from treefocus.tables import Table

FORMAT = "treefocus-explanations-1"
_GRAINS = ("float64", "float32", "integer")  # by number, see `treefocus.schema`
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
    nothing = [None] * width
    values = _matrix([row["values"] for row in rows], width)
    points = _matrix([row["counterfactual"] or nothing for row in rows], width)
    shown, parts = points.copy(), np.full_like(points, np.nan)
    for i, row in enumerate(rows):
        if row["counterfactual"] is not None:
            parts[i] = np.where(np.isnan(points[i]), np.nan, 0.0)
        for change in row["changes"]:
            j = schema.index(change["feature"])
            shown[i, j], parts[i, j] = _float(change["shown"]), _float(change["part"])
    status = np.array([Status[row["status"]] for row in rows] + [None], object)[:-1]
    bounds = [
        np.inf if s is Status.INFEASIBLE else _float(row["lower_bound"]) for s, row in zip(status, rows, strict=True)
    ]
    outcome = Outcome(
        points, np.array([_float(row["distance"]) for row in rows], np.float64), np.array(bounds, np.float64), status
    )
    return {
        "table": Table(values, None, np.array([_GRAINS.index(g) for g in record["grains"]], np.int8), values),
        "schema": schema,
        "points": points,
        "shown": shown,
        "parts": parts,
        "predicted": _labels(rows, "predicted"),
        "outcome": _labels(rows, "outcome"),
        "found": outcome,
        "reasons": tuple(row["reason"] for row in rows),
        "distance_name": record["distance"],
        "problem": None,
        "seconds": float(record["seconds"]),
        "row_labels": tuple(row["row"] for row in rows),
    }


def _labels(rows: Sequence[Mapping[str, Any]], key: str) -> np.ndarray[Any, Any]:
    labels = np.empty(len(rows), object)
    labels[:] = [row[key] for row in rows]
    return labels


def _matrix(rows: Sequence[Sequence[Any]], width: int) -> Floats:
    result = np.array([[_float(value) for value in row] for row in rows], np.float64)
    return result.reshape(len(rows), width)


def _float(value: Any) -> float:
    if value is None:
        return np.nan
    return _WHOLE_WORDS[value] if isinstance(value, str) else float(value)
