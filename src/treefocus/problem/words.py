"""Words that the data hold and no split of the model names.

To the model they are all alike, each one a category that it has not seen. To people they are values: where a model goes
one way on "rent" and another way on anything else, "own" is an answer if the data hold it. So they become labels of the
forest, and go where an unseen category goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from treefocus.adapters.trust import trusted
from treefocus.constraints.kinds import Condition, Constraint, Implies, MayBeMissing, OneOf
from treefocus.errors import InvalidInput
from treefocus.model.categories import NO_CATEGORY, UNUSED, Categories
from treefocus.model.forest import Floats, Forest
from treefocus.model.source import Answer, Source
from treefocus.tables.table import Table

MOST_WORDS = 1000  # of a column; more are names rather than categories

Words = Mapping[int, Sequence[Any]]  # by column


def words_of(forest: Forest, table: Table) -> dict[int, tuple[Any, ...]]:
    """The categories of a table that the forest reads and has no label for, by column, as they come."""
    categories, found = forest.categories, {}
    if categories is None or table.values.shape[1] != forest.n_features:
        return {}
    if None not in (table.names, forest.feature_names) and table.names != forest.feature_names:
        return {}
    for f in np.flatnonzero(categories.is_categorical).tolist():
        labels = categories.labels[f] or ()
        is_refused = categories.refuses_unseen is not None and bool(categories.refuses_unseen[f])
        if labels == UNUSED or is_refused:
            continue
        cells = table.unseen(f)
        are_numbers = labels != NO_CATEGORY and all(isinstance(label, Real) for label in labels)
        words = dict.fromkeys(_number(cell) if are_numbers else _text(cell, labels) for cell in cells)
        words.pop(None, None)
        if words and len(words) <= MOST_WORDS:
            found[f] = tuple(words)
    return found


def with_words(forest: Forest, words: Words) -> Forest:
    """The forest with more labels, which go where an unseen category goes."""
    categories = forest.categories
    if categories is None or not words:
        return forest
    labels, set_of_node = list(categories.labels), categories.set_of_node.copy()
    sets = [categories.members(number) for number in range(categories.n_sets)]
    n_added = np.zeros(forest.n_features, np.int32)
    for f, own in words.items():
        nodes, known = np.flatnonzero((forest.feature == f) & (forest.left >= 0)), _own_labels(forest, f)
        unseen = np.arange(len(known), len(known) + len(own) + 1)
        for number in np.unique(set_of_node[nodes]).tolist():
            if len(known) in sets[number]:
                set_of_node[nodes[set_of_node[nodes] == number]] = len(sets)
                sets.append(np.union1d(sets[number], unseen))
        labels[f] = (*known, *own)
        n_added[f] = len(own)
    made = Categories.of_shared(labels, set_of_node, sets)
    kept = {name: getattr(categories, name) for name in ("refuses_unseen", "fillers", "blanks")}
    return replace(forest, categories=replace(made, n_added=n_added, **kept))


def words_added(forest: Forest) -> dict[int, tuple[Any, ...]]:
    """What `with_words` added."""
    known = forest.categories
    if known is None or known.n_added is None:
        return {}
    return {f: (known.labels[f] or ())[-int(n) :] for f, n in enumerate(known.n_added) if n}


def widened(source: Source, table: Table | None) -> Source:
    """A model with the words of the data as labels; the model itself is asked about a category it has not seen."""
    if source.with_words is not None:
        if table is None:
            raise InvalidInput(
                f"A {source.forest.source} with categories keeps only hashes of them: give data=, whose words are then "
                "known."
            )
        return trusted(source.with_words(words_of(source.forest, table)))
    words = {} if table is None else words_of(source.forest, table)
    if not words:
        return source
    forest = source.forest

    def narrowed(rows: Floats) -> Floats:
        """Rows in the model's own numbers, in which every word of the data is a category that it has not seen."""
        rows = np.array(rows, np.float64)
        for f in words:
            unseen = 0 if forest.categories is None else forest.categories.n_labels(f)
            rows[rows[:, f] >= len(_own_labels(forest, f)), f] = unseen
        return rows

    def narrow(answer: Answer | None) -> Answer | None:
        return None if answer is None else lambda rows: answer(narrowed(rows))

    return replace(
        source,
        forest=with_words(forest, words),
        predict=narrow(source.predict),
        scores=narrow(source.scores),
        probabilities=narrow(source.probabilities),
    )


def held_words(
    forest: Forest, table: Table | None, constraints: Sequence[Constraint], names: Sequence[str] | None
) -> dict[int, tuple[Any, ...]]:
    """The labels that are values to people, by column, where not all of them need to be.

    A word that an imputer writes for a missing value is one only if the data hold it, or the user names it. A word that
    says that a value is missing is one only if the user names it, or the column may be missing.
    """
    categories, found = forest.categories, {}
    for f, labels in enumerate(() if categories is None else categories.labels):
        withheld = set() if categories is None else set(categories.withheld(f))
        if labels is None or categories is None or not withheld:
            continue
        blanks = () if categories.blanks is None else categories.blanks[f] or ()
        if table is not None:
            held = [label for k, label in enumerate(labels) if (table.values[:, f] == k).any()]
            withheld -= set(held) - set(blanks)
        for constraint in constraints:
            for column, values in _named_by(constraint):
                if column == f or (names is not None and column == names[f]):
                    withheld -= set(blanks if values is None else values)
        found[f] = tuple(label for label in labels if label not in withheld)
    return found


def _named_by(constraint: Constraint) -> list[tuple[str | int, Sequence[Any] | None]]:
    """The columns of which a constraint names categories, and these; None for a column that may be missing."""
    if isinstance(constraint, MayBeMissing):
        return [(column, None) for column in constraint.columns]
    parts = (constraint.cause, constraint.effect) if isinstance(constraint, Implies) else (constraint,)
    return [(part.column, part.values) for part in parts if isinstance(part, OneOf | Condition) and part.values]


def _own_labels(forest: Forest, f: int) -> tuple[Any, ...]:
    """The labels that a column has from the model; none where what stands there stands for none."""
    labels = () if forest.categories is None else forest.categories.labels[f] or ()
    return () if labels == NO_CATEGORY and not (forest.feature == f).any() else labels


def _number(cell: Any) -> Any:
    """A cell as a label among numbers, None where it is none."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(number):
        return None
    return int(number) if number == int(number) else number


def _text(cell: Any, labels: Sequence[Any]) -> Any:
    """A cell as a label among texts: a whole number as it prints, where all labels are texts."""
    if isinstance(cell, str) or not all(isinstance(label, str) for label in labels):
        return cell
    return str(int(cell)) if isinstance(cell, Integral) else None
