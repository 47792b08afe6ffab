"""How the rows of a model are read: its columns by name, kind and category, whatever kind of table brings them.

A table of pandas, polars, NumPy or a file becomes numbers once, here: columns in the model's order, categories by the
model's own numbers, one-hot groups folded, dates counted as the model counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.constraints.kinds import Constraint
from treefocus.model.categories import Labels
from treefocus.model.forest import Bools, Forest
from treefocus.model.source import Source
from treefocus.problem.compile import dry_run
from treefocus.problem.dates import check_dates, with_counts
from treefocus.problem.fitting import checked, first_order, has_fractions, labels_of, named
from treefocus.problem.words import widened
from treefocus.schema.schema import ANY_FLOAT, INTEGER, Schema
from treefocus.tables.labels import Coding
from treefocus.tables.onehot import Folding
from treefocus.tables.table import Table, as_table


@dataclass(frozen=True, eq=False)
class Reading:
    """What is known of a model's columns, and how tables are read by it."""

    forest: Forest  # with one-hot groups folded
    schema: Schema
    names: tuple[str, ...] | None  # that a table must have, groups folded
    folding: Folding | None
    coding: Coding | None
    orders: Labels  # per column the order of its categories, as far as it is known
    integer: Bools  # (n_features,) columns that are answered in whole numbers, whatever table comes
    has_fractions: Bools  # (n_features,) of which a number is named that is not whole
    has_data: bool  # whether training rows have been seen

    @classmethod
    def of(
        cls, source: Source, schema: Schema | None, data: Table | None, constraints: Sequence[Constraint]
    ) -> tuple[Reading, Table | None]:
        """What model, schema and training rows together say of the columns, and the training rows read by it."""
        model, columns = source.forest, None if schema is None else schema.columns
        folding, coding, names = Folding.of(schema, model), Coding.of(model, columns), model.feature_names or columns
        source = source if folding is None else folding.source(source)
        forest, n_features = source.forest, source.forest.n_features
        table = None if data is None else _ordered(data, "data", names, folding, coding)
        schema, names = named(schema, table, forest, constraints)
        schema = with_counts(schema, table, forest, source.counts)
        table = None if table is None else _counted(table, "data", schema)
        orders = first_order(n_features, None if table is None else table.orders, source.orders)
        # A column that does not exist is reported here, and one without an order, unless rows may still bring it.
        dry_run(constraints, schema, forest, labels_of(forest) if table is None else orders)
        integer = np.array([feature.kind in ("integer", "boolean") for feature in schema.features])
        fractions = has_fractions(schema, constraints) & ~integer
        if table is not None:
            integer |= _is_whole(table, fractions)
        return cls(forest, schema, names, folding, coding, orders, integer, fractions, table is not None), table

    def table(self, rows: Any, parameter: str) -> Table:
        """The rows as the search takes them: categories by their numbers, one-hot groups folded, dates counted."""
        table = as_table(rows, parameter, self.coding)
        if table.is_folded:
            return table
        return _counted(_ordered(table, parameter, self.names, self.folding, self.coding), parameter, self.schema)

    def complete(self, rows: Any, parameter: str) -> Table:
        """The same, refused if a column is missing."""
        return checked(self.table(rows, parameter), parameter, self.forest.n_features, self.names)

    def grain_of(self, table: Table) -> NDArray[np.int8]:
        """(n_features,) which numbers a column's answers may be, by what is known of it and by the table's dtypes."""
        whole = self.integer | _is_whole(table, self.has_fractions)
        return np.where(whole, INTEGER, np.where(table.grain == INTEGER, ANY_FLOAT, table.grain)).astype(np.int8)

    def orders_of(self, table: Table) -> Labels:
        """Per column the order of its categories; the table's own where no training rows have said it."""
        return self.orders if self.has_data else first_order(len(self.orders), self.orders, table.orders)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names that every table must have, None where the model knows its columns by number only."""
        return self.names if self.folding is None else self.folding.names

    @property
    def column_labels(self) -> Labels:
        """Per column of a table its categories, None where it holds numbers; one-hot groups are not folded here."""
        return labels_of(self.forest) if self.folding is None else self.folding.labels

    @property
    def has_order(self) -> Bools:
        """(n_features,) whether a column can be asked to grow or to shrink: numbers, and categories in an order."""
        draft = dry_run((), self.schema, self.forest, self.orders)
        return np.array([own is None or draft.order_of(j) is not None for j, own in enumerate(draft.labels)], bool)

    def state(self) -> dict[str, Any]:
        """Its fields by the names that files and fingerprints have for them."""
        return {name: getattr(self, own) for own, name in _STATE.items()}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Reading:
        """The one that `state` has told of."""
        return cls(forest=state["forest"], **{own: state[name] for own, name in _STATE.items()})


_STATE = {one.name: one.name if one.name == "schema" else f"_{one.name}" for one in fields(Reading)[1:]}


def opened(source: Source, data: Any, schema: Schema | None) -> tuple[Source, Table | None]:
    """The model and its training rows, if any, each with the words of the other."""
    columns = None if schema is None else schema.columns
    if data is None:
        return widened(source, None), None
    table = as_table(data, "data", Coding.of(source.forest, columns))
    table = table.in_order(source.forest.feature_names or columns)
    return widened(source, table), table


def _ordered(
    table: Table, parameter: str, names: tuple[str, ...] | None, folding: Folding | None, coding: Coding | None
) -> Table:
    """The columns in the model's order, their categories by the model's numbers, one-hot groups folded."""
    if table.is_folded:
        return table
    table = table.in_order(names if folding is None else folding.names)
    if coding is not None:
        table = table.recoded(coding.for_columns(table.names, table.values.shape[1]))
    if folding is not None:
        table = folding.table(checked(table, parameter, folding.model.n_features, folding.names))
    return table


def _counted(table: Table, parameter: str, schema: Schema) -> Table:
    """The rows with their dates counted as the model does."""
    counts = schema.countings
    if table.values.shape[1] != len(counts) or not (table.counts or any(counts)):
        return table
    check_dates(table, schema, parameter)
    return table.expecting(counts).counted(counts)


def _is_whole(table: Table, has_fractions: Bools) -> Bools:
    """(n_features,) columns of whole numbers; where a file only seems to hold them, unless fractions are listed."""
    return np.asarray((table.grain == INTEGER) & (table.has_dtypes | ~has_fractions))
