"""What the data say of columns of numbers: whole numbers, steps, lists of few values, True and False.

A column of whole numbers with one empty cell is a column of floats to most libraries, and to people still one of whole
numbers. So the values decide, and not the dtype. Where a constraint lists numbers itself, its list decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from treefocus.constraints.kinds import Constraint, OneOf
from treefocus.problem.dates import date_feature
from treefocus.schema.feature import Feature
from treefocus.schema.infer import guess_numbers
from treefocus.schema.schema import FLOAT32, INTEGER
from treefocus.tables.table import Table

_DOMAIN = ("low", "high")  # the range of the data is the domain, unless somebody says another


def number_features(table: Table, constraints: Sequence[Constraint], names: Sequence[str] | None) -> dict[int, Feature]:
    """By column what it holds, under no name; columns of categories are left out, and those that a constraint lists."""
    listed = {one.column for one in constraints if isinstance(one, OneOf)}
    is_boolean = table.is_boolean
    found = {}
    for j in range(table.values.shape[1]):
        is_listed = j in listed or (names is not None and names[j] in listed)
        if table.labels_of(j) is not None or (is_listed and table.counts_of(j) is None):
            continue
        if table.counts_of(j) is not None:
            found[j] = date_feature(table, j)
            continue
        if is_boolean[j]:
            found[j] = Feature("", "boolean")
            continue
        is_whole = bool(table.grain[j] == INTEGER and table.has_dtypes)
        known = guess_numbers(table.values[:, j], is_whole=is_whole, is_single=bool(table.grain[j] == FLOAT32))
        found[j] = Feature("", **{key: value for key, value in known.items() if key not in _DOMAIN})
    return found
