"""What model, schema and data together say of the columns: names, categories, orders, numbers and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from treefocus.constraints.kinds import Constraint, Fixed, OneOf
from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.problem.distances import Distance, as_distance, weighted
from treefocus.problem.numbers import number_features
from treefocus.problem.words import held_words
from treefocus.schema.schema import Schema, fitted_to, schema_of
from treefocus.tables.columns import check_columns
from treefocus.tables.table import Table

EXAMPLES = 10_000  # training rows kept to start from


def labels_of(forest: Forest) -> Labels:
    """Per column its categories, None where it holds numbers."""
    known = forest.categories
    return (None,) * forest.n_features if known is None else known.labels


def checked(table: Table, parameter: str, n_features: int, wanted: tuple[str, ...] | None) -> Table:
    """The table, if it has the wanted columns; where one side has no names, as many columns."""
    names = table.names
    if names is None or wanted is None:
        if table.values.shape[1] != n_features:
            reject(parameter, f"{n_features} columns wide", table.values.shape[1])
        return table
    check_columns(parameter, names, wanted)
    return table


def named(
    schema: Schema | None, table: Table | None, forest: Forest, constraints: Sequence[Constraint]
) -> tuple[Schema, tuple[str, ...] | None]:
    """The schema, and the names every table must have: the model's, else the schema's, else the data's."""
    n_features, names, labels = forest.n_features, forest.feature_names, labels_of(forest)
    if schema is not None and len(schema) != n_features:
        reject("schema", f"of {n_features} columns", len(schema))
    if schema is not None and names is not None and names != schema.names:
        reject("schema", f"of the model's columns {', '.join(names)}", ", ".join(schema.names))
    names = names if schema is None else schema.names
    if table is not None:
        names = checked(table, "data", n_features, names).names or names
    held = held_words(forest, table, constraints, names)
    if schema is not None:
        return fitted_to(schema, labels, held), names
    labels = tuple(held.get(j, own) for j, own in enumerate(labels))
    numbers = None if table is None else number_features(table, constraints, names)
    return schema_of(names or tuple(f"feature {j}" for j in range(n_features)), labels, numbers), names


def numbers_of(table: Table, names: Sequence[str]) -> Floats:
    """(n_rows, n_features) the data with NaN for what is no number, at least one number in every column."""
    known = np.where(np.isfinite(table.values), table.values, np.nan)
    empty = np.flatnonzero(np.isnan(known).all(axis=0))
    if empty.size:
        lacking = ", ".join(names[j] for j in empty.tolist())
        raise InvalidInput(
            f"data must be a table with at least one number in every column, got none in {lacking}: scale and domain "
            "come from there. Give rows in which they are known, or leave out data and give scale= and bounds=."
        )
    return known


def examples_of(numbers: Floats) -> Floats:
    """The rows without missing values, at most EXAMPLES of them, evenly over the data."""
    examples = numbers[~np.isnan(numbers).any(axis=1)]
    if len(examples) <= EXAMPLES:
        return examples
    return examples[np.linspace(0, len(examples) - 1, EXAMPLES).astype(np.intp)]


def first_order(n_columns: int, *orders: Labels | None) -> Labels:
    """Per column the first order of its categories that somebody knows."""
    known = [own for own in orders if own is not None]
    return tuple(next((own[j] for own in known if own[j] is not None), None) for j in range(n_columns))


def has_fractions(schema: Schema, constraints: Sequence[Constraint]) -> Bools:
    """(n_features,) columns of which the schema's steps or values, or a list, name a number that is not whole."""
    values = [[*own.values, *([own.step, own.low] if own.step else [])] for own in schema.features]
    for one in constraints:
        if isinstance(one, OneOf):
            values[schema.index(one.column)] += one.values
    return np.array([any(isinstance(v, float) and not v.is_integer() for v in own) for own in values], bool)


def fixed_besides(vary: str | int | Sequence[str | int] | None, schema: Schema) -> tuple[Constraint, ...]:
    """The constraint that only these columns may change; none where all of them may."""
    if vary is None:
        return ()
    free = schema.positions([vary] if isinstance(vary, str | int) else vary)
    others = [name for j, name in enumerate(schema.names) if j not in free]
    return (Fixed(*others),) if others else ()


def distance_of(
    distance: Any, weights: Mapping[str | int, float] | None, schema: Schema, data: Floats | None
) -> Distance:
    """What small means, with every column's weight; data: (n_rows, n_features) the scaled training rows."""
    measured = as_distance(distance)
    if weights is not None:
        measured = weighted(measured, _by_column(weights, schema))
    return measured.fitted(len(schema), data)


def _by_column(weights: Mapping[str | int, float], schema: Schema) -> Floats:
    """(n_features,) the weights, 1 for a column without one."""
    all_weights = np.ones(len(schema))
    for name, weight in weights.items():
        if not (isinstance(weight, Real) and np.isfinite(float(weight)) and float(weight) > 0):
            reject(f"weights[{name!r}]", "a finite number above 0", repr(weight))
        all_weights[schema.index(name)] = float(weight)
    return all_weights
