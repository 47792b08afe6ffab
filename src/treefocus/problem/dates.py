"""Columns of dates: which of a table's they are, and how the model counts them.

A model that reads dates reads numbers. Where the data hold dates, its splits say how it counts them: they lie between
the dates of the data in one way of counting, and far off in all others.
"""

from __future__ import annotations

import numpy as np

from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats, Forest
from treefocus.schema.dates import AS_READ, COUNTINGS, Counting, are_days
from treefocus.schema.feature import Feature
from treefocus.schema.schema import Schema
from treefocus.tables.dates import recounted
from treefocus.tables.table import Table

_FAR = 1e300
_WIDER = 2.0  # times the range of the data, to each side: data= may be some of the training rows only


def date_feature(table: Table, j: int) -> Feature:
    """What a column of dates holds, under no name: days or seconds, as the data have them."""
    is_day = are_days(table.values[:, j], table.counts_of(j) or AS_READ)
    return Feature("", "date" if is_day else "datetime", "UTC" if table.is_zoned[j] and not is_day else "")


def with_counts(schema: Schema, table: Table | None, forest: Forest, known: tuple[str | None, ...]) -> Schema:
    """The schema with the counting of every column of dates; known: what the model itself says of it."""
    for j, feature in enumerate(schema.features):
        own = COUNTINGS[known[j] or ""] if known and known[j] else None
        if own is not None and table is None and feature.kind == "continuous":
            schema = schema.with_feature(feature.name, kind="date", counts=own.name)
            continue
        if own is not None and not feature.is_date:
            raise InvalidInput(
                f"Column {feature.name!r} must hold dates, as the pipeline reads them; it is of kind {feature.kind!r}."
            )
        if own is not None and feature.counts not in ("", own.name):
            raise InvalidInput(f"Feature({feature.name!r}).counts must be {own.name!r} or left out: the model says so.")
        if not feature.is_date or feature.counts:
            continue
        if own is None and table is not None and table.counts_of(j) is not None:
            own = _counting_of(forest, table, j, feature.name)
        if own is None:
            raise InvalidInput(
                f"Feature({feature.name!r}).counts must be one of {', '.join(COUNTINGS)}: the column is a date, and no "
                "data= that hold dates tell how the model counts them."
            )
        schema = schema.with_feature(feature.name, counts=own.name)
    return schema


def check_dates(table: Table, schema: Schema, parameter: str) -> None:
    """Refuse dates in a column that the model does not read as such, and a time of the day in one of days."""
    for j, feature in enumerate(schema.features):
        if table.counts_of(j) is None:
            continue
        if not feature.is_date:
            raise InvalidInput(
                f"{parameter}: column {feature.name!r} holds dates, and nobody has said how the model counts them: "
                f"give data= with dates, or schema= with Feature({feature.name!r}, 'date', counts='days')."
            )
        if feature.kind == "datetime" and table.holds_days[j]:
            raise InvalidInput(
                f"{parameter}: column {feature.name!r} holds days, but answers are seconds: it is of kind 'datetime'. "
                f"Give datetimes, or schema= with Feature({feature.name!r}, 'date')."
            )


def _counting_of(forest: Forest, table: Table, j: int, name: str) -> Counting:
    """The one way of counting in which a column's splits lie where its dates do."""
    cuts = forest.threshold[(forest.feature == j) & (forest.left >= 0)]
    cuts = cuts[np.abs(cuts) < _FAR]  # a split by whether a value is missing has no number
    if not cuts.size:  # the model does not ask for it
        return AS_READ
    days = table.values[:, j]
    for wider in (0.0, _WIDER):
        fitting = [own for own in COUNTINGS.values() if _is_inside(cuts, days, own, wider)]
        if len(fitting) == 1:
            return fitting[0]
    raise InvalidInput(
        f"data: column {name!r} holds dates, and the model splits it between {cuts.min():g} and {cuts.max():g}, which "
        f"is no known way to count these: say it in the schema, Feature({name!r}, 'date', counts=...), one of "
        f"{', '.join(COUNTINGS)}; or explain a table with the column as the model was trained on it."
    )


def _is_inside(cuts: Floats, values: Floats, counting: Counting, wider: float) -> bool:
    numbers = recounted(values, AS_READ, counting)
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    room = wider * (high - low) + 1e-6 * abs(high)  # a split is read in single precision by some models
    return bool(((cuts >= low - room) & (cuts <= high + room)).all())
