"""One batch of answers as Arrow columns, under a schema that the explainer alone decides: the same in every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treefocus.errors import reject
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.explanation.change import told_value
from treefocus.explanation.predictions import is_number
from treefocus.model.categories import are_categories
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.schema.dates import iso
from treefocus.schema.schema import FLOAT32

Indices = NDArray[np.intp]
OWN_COLUMNS = ("predicted", "outcome", "status", "reason", "distance", "lower_bound", "gap", "changes")
CHANGE = pa.struct(
    [("feature", pa.string()), ("before", pa.float64()), ("after", pa.float64()), ("shown", pa.float64()),
     ("share", pa.float64()), ("category_before", pa.string()), ("category_after", pa.string())]
)  # fmt: skip
_DATES = {"date": pa.date32(), "datetime": pa.timestamp("us")}
_LABELS = {"U": pa.string(), "b": pa.bool_(), "i": pa.int64(), "u": pa.int64(), "f": pa.float64()}


def answer_schema(explainer: Explainer, kept: Sequence[pa.Field] = (), target: Any = None) -> pa.Schema:
    """Columns of the answers: those kept of the input, what is known of the row, the counterfactual, the changes."""
    label = pa.float64() if is_number(explainer.forest, target) else label_type(explainer.forest)
    fields = [
        *kept,
        pa.field("predicted", label),
        pa.field("outcome", label),
        pa.field("status", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("distance", pa.float64()),
        pa.field("lower_bound", pa.float64()),
        pa.field("gap", pa.float64()),
    ]
    columns = zip(explainer.schema.features, explainer.whole_columns, explainer.labels, strict=True)
    for feature, is_whole, labels in columns:
        kind = _DATES[feature.kind] if feature.is_date else pa.int64() if is_whole else pa.float64()
        fields.append(pa.field(column_of(feature.name), kind if labels is None else pa.string()))
    fields.append(pa.field("changes", pa.list_(CHANGE)))
    names = [field.name for field in fields]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        reject("keep", "columns whose names the answers do not have", ", ".join(doubled))
    return pa.schema(fields)


def column_of(feature: str) -> str:
    """The counterfactual's column of a feature: its name, or "name (value)" where the answers have a use for that."""
    return f"{feature} (value)" if feature in OWN_COLUMNS else feature


def label_type(forest: Forest) -> pa.DataType:
    """The type of the classes' labels."""
    return _LABELS.get(forest.classes.dtype.kind, pa.string())


def answer_batch(
    found: Explanations, schema: pa.Schema, kept: Sequence[pa.Array] = (), reasons: Mapping[int, str] | None = None
) -> pa.RecordBatch:
    """The answers under that schema. reasons: what is wrong with rows that could not be read."""
    sentences = list(found.reasons)
    for i, reason in (reasons or {}).items():
        sentences[i] = reason
    label = schema.field("predicted").type
    names = {status: status.name for status in set(found.status)}
    columns = [
        *kept,
        _labels(found.predicted, label),
        _labels(found.outcome, label),
        pa.array([names[status] for status in found.status], pa.string()),
        pa.array(sentences, pa.string()),
        _numbers(found.distance),
        pa.array(found.lower_bound),
        _numbers(found.gap),
    ]
    first = len(columns)
    for j in range(found.points.shape[1]):
        kind = schema.field(first + j).type
        if found.schema.features[j].is_date:
            cells = (_date(found, j, value) for value in found.points[:, j].tolist())
            columns.append(pa.array(list(cells), kind))
        else:
            columns.append(_words(found, j, found.points) if kind == pa.string() else _as(kind, found.points[:, j]))
    columns.append(_changes(found))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _numbers(values: Floats) -> pa.Array:
    """Null where there is none."""
    return pa.array(values, pa.float64(), from_pandas=True)


def _as(kind: pa.DataType, values: Floats) -> pa.Array:
    return _numbers(values).cast(kind, safe=False)


def _words(found: Explanations, j: int, values: Floats) -> pa.Array:
    """A column of categories as they are written; null where there is no answer."""
    cells = found.table.labelled(j, values[:, j])
    has_answer = found.has_answer
    return pa.array(
        [None if cell is None or not has_answer[i] else str(cell) for i, cell in enumerate(cells)], pa.string()
    )


def _date(found: Explanations, j: int, value: float) -> Any:
    """A number of a column of dates as one; null where there is none."""
    told = None if np.isnan(value) else told_value(value, found.schema.features[j])
    return told if isinstance(told, date) else None


def _labels(labels: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    plain = labels.tolist()
    if kind == pa.string():
        plain = [None if label is None else str(label) for label in plain]
    return pa.array(plain, kind)


def _changes(found: Explanations) -> pa.Array:
    """A list a row, the largest change first; null where there is no answer."""
    moved = found.is_moved & found.has_answer[:, None]
    i, j = np.nonzero(moved)
    size = np.abs(found.parts[i, j])
    order = np.lexsort((j, -size, i))
    i, j, size = i[order], j[order], size[order]
    total = np.bincount(i, weights=size, minlength=len(found))
    share = size / np.where(total > 0, total, 1.0)[i]
    before = found.table.values[i, j]
    is_single = found.table.grain[j] == FLOAT32
    before[is_single] = before[is_single].astype(np.float32).astype(str).astype(np.float64)  # as its owner wrote it
    names = pa.array(found.schema.names, pa.string()).take(pa.array(j))
    is_date = np.array([feature.is_date for feature in found.schema.features], bool)
    is_number = ~(are_categories(found.table.labels, len(found.schema)) | is_date)[j]
    numbers = [pa.array(values, mask=~is_number) for values in (before, found.points[i, j], found.shown[i, j])]
    words = [_categories(found, i, j, is_number, values) for values in (found.table.values, found.points)]
    structs = pa.StructArray.from_arrays([names, *numbers, pa.array(share), *words], fields=list(CHANGE))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=len(found)))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), structs, pa.list_(CHANGE), mask=pa.array(~found.has_answer))


def _categories(found: Explanations, i: Indices, j: Indices, is_number: Bools, values: Floats) -> pa.Array:
    """What the changed cells of columns of categories say, before or after; null for numbers."""
    if is_number.all():
        return pa.nulls(len(i), pa.string())
    written = {int(k): _cells(found, int(k), values[:, k]) for k in np.unique(j[~is_number])}
    cells = (None if is_number[k] else written[int(j[k])][i[k]] for k in range(len(i)))
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _cells(found: Explanations, j: int, values: Floats) -> list[Any]:
    """The cells of a column of categories or of dates."""
    if not found.schema.features[j].is_date:
        return found.table.labelled(j, values)
    moments = [_date(found, j, value) for value in values.tolist()]
    return [None if moment is None else iso(moment) for moment in moments]
