"""One-hot groups of the user's own table, folded: K columns of 0 and 1 become one column of K categories.

The forest is folded with the rows. A split "housing_rent <= 0.5" sends left every category but rent, so it becomes that
set, and an answer can only ever be one of the K categories: one-hot groups stay one-hot in every search. Answers are
unfolded again into the K columns they came in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Categories, Labels
from treefocus.model.forest import LARGEST, Bools, Floats, Forest
from treefocus.model.source import Source
from treefocus.schema.dates import Counting
from treefocus.schema.schema import INTEGER, Schema
from treefocus.tables.dates import Counts, or_nothing
from treefocus.tables.labels import Coding
from treefocus.tables.table import Table


@dataclass(frozen=True, eq=False)
class Folding:
    """Which columns of the table stand behind each column of the schema: one, or a group."""

    schema: Schema
    model: Forest  # over the table's columns
    places: tuple[tuple[int, ...], ...]  # per column of the schema

    @classmethod
    def of(cls, schema: Schema | None, model: Forest) -> Folding | None:
        """The folding that a schema asks for, None where it has no one-hot group."""
        if schema is None or not any(feature.columns for feature in schema.features):
            return None
        names = model.feature_names or schema.columns
        if sorted(names) != sorted(schema.columns) or len(names) != model.n_features:
            reject("schema", f"of the model's {model.n_features} columns {', '.join(names)}", ", ".join(schema.columns))
        position = {name: j for j, name in enumerate(names)}
        places = [tuple(position[name] for name in one.columns or (one.name,)) for one in schema.features]
        folding = cls(schema, model, tuple(places))
        for feature, place in zip(schema.features, places, strict=True):
            if feature.columns and any(folding.labels[j] is not None for j in place):
                raise InvalidInput(f"{feature.name} is a one-hot group, but the model takes its columns as categories.")
        return folding

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the table's columns, in the model's order."""
        return self.model.feature_names or self.schema.columns

    @property
    def labels(self) -> Labels:
        """Per column of the table its categories, None where it holds numbers."""
        known = self.model.categories
        return (None,) * self.model.n_features if known is None else known.labels

    @property
    def coding(self) -> Coding | None:
        """How the table's own categories are read."""
        return Coding.of(self.model, self.names)

    def source(self, source: Source) -> Source:
        """The model over the schema's columns."""
        predict, scores, shares = source.predict, source.scores, source.probabilities
        return replace(
            source,
            forest=self.forest,
            orders=None if source.orders is None else self._of_single(source.orders),
            counts=tuple(source.counts[place[0]] if len(place) == 1 else None for place in self.places)
            if source.counts
            else (),
            predict=None if predict is None else lambda rows: predict(self.unfolded(rows)),
            scores=None if scores is None else lambda rows: scores(self.unfolded(rows)),
            probabilities=None if shares is None else lambda rows: shares(self.unfolded(rows)),
        )

    @property
    def forest(self) -> Forest:
        """The model's forest with every group as one column of categories."""
        model, column_of = self.model, np.full(self.model.n_features + 1, -1)
        sets: list[Any] = [None] * len(model.feature)
        known = model.categories
        for column, place in enumerate(self.places):
            column_of[list(place)] = column
            for number, j in enumerate(place):
                for node in np.flatnonzero(model.feature == j):
                    if self._is_group(column):
                        is_one = np.arange(len(place)) == number
                        sets[node] = np.flatnonzero(is_one.astype(np.float64) <= model.threshold[node])
                    elif known is not None and known.labels[j] is not None:
                        sets[node] = known.members(int(known.set_of_node[node]))
        labels = [
            feature.values if feature.columns else self.labels[place[0]]
            for feature, place in zip(self.schema.features, self.places, strict=True)
        ]
        return replace(
            model,
            feature=column_of[model.feature],
            threshold=np.where([own is None for own in sets], model.threshold, 0.0),
            categories=replace(
                Categories.of_sets(labels, sets), refuses_unseen=self._refuses_unseen(), **self._words()
            ),
            n_features=len(self.places),
            feature_names=None if model.feature_names is None else self.schema.names,
            refuses_missing=self._refuses_missing() if model.takes_missing else None,
            missing_is_choice=None,
            reads=self._reads(),
        )

    def _of_single(self, orders: Labels) -> Labels:
        """What is known of the table's columns, by the schema's; None for a group."""
        return tuple(orders[place[0]] if len(place) == 1 else None for place in self.places)

    def _words(self) -> dict[str, Any]:
        """The words that stand for a missing value, where the model has some."""
        known = self.model.categories
        own = {name: None if known is None else getattr(known, name) for name in ("fillers", "blanks")}
        return {name: None if words is None else self._of_single(words) for name, words in own.items()}

    def _is_group(self, column: int) -> bool:
        return len(self.places[column]) > 1

    def _refuses_unseen(self) -> Bools:
        """A group that is not one-hot is read as a category that nobody has seen, and refused."""
        known = self.model.categories
        own = None if known is None else known.refuses_unseen
        return np.array([len(place) > 1 or (own is not None and bool(own[place[0]])) for place in self.places])

    def _refuses_missing(self) -> Bools:
        own = self.model.refuses_missing
        return np.array([len(place) > 1 or (own is not None and bool(own[place[0]])) for place in self.places])

    def _reads(self) -> Floats | None:
        if self.model.reads is None:
            return None
        ends = [(-LARGEST, LARGEST) if len(place) > 1 else self.model.reads[:, place[0]] for place in self.places]
        return np.array(ends).T

    def table(self, table: Table) -> FoldedTable:
        """A table over the schema's columns that gives back the user's own."""
        columns, grain = [], []
        for place in self.places:
            columns.append(_folded(table.values[:, list(place)]) if len(place) > 1 else table.values[:, place[0]])
            grain.append(INTEGER if len(place) > 1 else int(table.grain[place[0]]))
        values = np.ascontiguousarray(np.stack(columns, axis=1))
        labels = [
            feature.values if feature.columns else table.labels_of(place[0])
            for feature, place in zip(self.schema.features, self.places, strict=True)
        ]
        names = None if table.names is None else self.schema.names
        counts = or_nothing([table.counts_of(place[0]) if len(place) == 1 else None for place in self.places])
        return FoldedTable(
            values, names, np.array(grain, np.int8), table.native, tuple(labels), counts=counts, own=table, folding=self
        )

    def unfolded(self, rows: Floats) -> Floats:
        """(n_rows, n_columns of the table) rows over the schema's columns in the user's own; NaN fills its group."""
        result = np.empty((len(rows), self.model.n_features))
        for column, place in enumerate(self.places):
            if len(place) == 1:
                result[:, place[0]] = rows[:, column]
                continue
            for number, j in enumerate(place):
                result[:, j] = np.where(np.isnan(rows[:, column]), np.nan, rows[:, column] == number)
        return result


@dataclass(frozen=True, eq=False)
class FoldedTable(Table):
    """A table with one-hot groups as columns of categories."""

    is_folded: ClassVar[bool] = True
    own: Table | None = None  # as the user gave it
    folding: Folding | None = None

    @property
    def _given(self) -> tuple[Table, Folding]:
        assert self.own is not None, "a folded table knows what it was folded from"
        assert self.folding is not None, "a folded table knows how it was folded"
        return self.own, self.folding

    def like(self, values: Floats) -> Any:
        """`values` as a table like the user's, with every group in its columns of 0 and 1."""
        own, folding = self._given
        unfolded = folding.unfolded(values)
        for column, place in enumerate(folding.places):
            if len(place) > 1:  # a group that is not one-hot was never asked about, and stays as it was
                is_odd = values[:, column] == len(place)
                unfolded[np.ix_(is_odd, list(place))] = own.values[np.ix_(is_odd, list(place))]
        return own.like(unfolded)

    def counted(self, counts: Counts) -> FoldedTable:
        """The same rows with their dates counted in other ways, column by column."""
        own, folding = self._given
        every: list[Counting | None] = [None] * own.values.shape[1]
        for wanted, place in zip(counts, folding.places, strict=True):
            every[place[0]] = wanted
        return folding.table(own.counted(tuple(every)))

    def only(self, row: int) -> FoldedTable:
        """One row alone."""
        own = self._given[0].only(row)
        return replace(self, values=self.values[[row]], native=own.native, own=own)

    @property
    def limits(self) -> tuple[Floats, Floats]:
        """(n_columns,) the smallest and the largest value that a column holds."""
        own, folding = self._given
        low, high = own.limits
        ends = [(0.0, len(p) - 1.0) if len(p) > 1 else (low[p[0]], high[p[0]]) for p in folding.places]
        both = np.array(ends, np.float64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def is_boolean(self) -> Bools:
        """(n_columns,) whether a column holds True and False; a group does not."""
        own, folding = self._given
        given = own.is_boolean
        return np.array([len(place) == 1 and bool(given[place[0]]) for place in folding.places], bool)

    @property
    def _dtypes(self) -> list[Any]:
        """Per column its dtype, None for a group."""
        own, folding = self._given
        return [own._dtypes[place[0]] if len(place) == 1 else None for place in folding.places]

    @property
    def orders(self) -> Labels:
        """Per column its categories in their order, None where its dtype has none."""
        own, folding = self._given
        return folding._of_single(own.orders)

    def _cells(self, column: int) -> list[Any]:
        """A column as it was written; a group that is not one-hot as its values."""
        own, folding = self._given
        place = folding.places[column]
        if len(place) == 1:
            return own._cells(place[0])
        labels = self.labels_of(column) or ()
        rows = own.values[:, list(place)].tolist()
        codes = self.values[:, column].tolist()
        return [labels[int(c)] if c < len(labels) else _told(row) for c, row in zip(codes, rows, strict=True)]

    def select(self, names: Any) -> Table:
        """Columns are selected before they are folded."""
        raise InvalidInput("A table with one-hot groups folded has no other columns to select.")


def _folded(group: Floats) -> Floats:
    """(n_rows,) which of a group's columns is 1, their number where it is not exactly one or another is not 0."""
    is_one: NDArray[np.bool_] = group == 1.0
    is_one_hot = (is_one.sum(axis=1) == 1) & ((group == 0.0) | is_one).all(axis=1)
    return np.asarray(np.where(is_one_hot, is_one.argmax(axis=1), group.shape[1]), np.float64)


def _told(row: list[float]) -> str:
    """A group that is not one-hot, for people."""
    return f"({', '.join('missing' if value != value else f'{value:g}' for value in row)}), which is not one-hot"
