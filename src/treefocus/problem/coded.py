"""The forest that answers speak of, from the model alone and what is written down of its columns.

An explainer makes categories of words that only the data hold, and folds one-hot groups into one column each, so that
its forest is another one than the model's file has. What it did is written down in few words beside certificates and
answers (`coding_record`), and done again where they are checked (`coded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treefocus.errors import InvalidInput
from treefocus.model.forest import Forest
from treefocus.problem.words import with_words, words_added
from treefocus.schema.schema import Feature, Schema
from treefocus.tables.onehot import Folding


def coding_record(schema: Schema, forest: Forest) -> dict[str, Any]:
    """The columns, the words that came from the data, and the groups that are one column each."""
    record: dict[str, Any] = {"columns": list(schema.names)}
    words = words_added(forest)
    if words:
        record["words"] = [[column, list(own)] for column, own in words.items()]
    groups = [[j, list(one.values), list(one.columns)] for j, one in enumerate(schema.features) if one.columns]
    return record | ({"groups": groups} if groups else {})


def coded(record: Mapping[str, Any], forest: Forest) -> Forest:
    """The forest with these words and groups; as it is, where it has them already."""
    try:
        words = {int(column): tuple(own) for column, own in record.get("words", ())}
        folding = _folding(record, forest)
        if words and not words_added(forest):
            places = {column: column if folding is None else folding.places[column][0] for column in words}
            forest = with_words(forest, {places[column]: own for column, own in words.items()})
        return forest if folding is None else Folding(folding.schema, forest, folding.places).forest
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error


def _folding(record: Mapping[str, Any], forest: Forest) -> Folding | None:
    """How the groups are folded; None where there are none, or the forest is not over their columns."""
    groups = {int(column): (tuple(values), tuple(columns)) for column, values, columns in record.get("groups", ())}
    features = [Feature(name) for name in record.get("columns", ())]
    for column, (values, columns) in groups.items():
        features[column] = Feature(features[column].name, "one-hot", values=values, columns=columns)
    schema = Schema(features)
    names = forest.feature_names or schema.columns
    if not groups or sorted(names) != sorted(schema.columns) or len(names) != forest.n_features:
        return None
    return Folding.of(schema, forest)
