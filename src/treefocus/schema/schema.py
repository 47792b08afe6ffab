"""What the columns mean: names, kinds, units and words, so that answers can be given in the user's own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Labels
from treefocus.model.forest import Floats
from treefocus.model.grid import floor_to
from treefocus.schema.dates import Counting
from treefocus.schema.feature import FIELDS, WORDS
from treefocus.schema.feature import Feature as Feature
from treefocus.schema.infer import guess
from treefocus.schema.located import Located
from treefocus.schema.steps import Steps

ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED = 0, 1, 2, 3, 4  # grains: which values a column can hold
FORMAT = "treefocus-schema-1"


def snapped_down(values: Floats, grain: int | NDArray[np.int8]) -> Floats:
    """The largest value that a column of that grain can hold, not above the given one; of lists and steps, any."""
    is_single = grain == FLOAT32
    held = np.where(is_single, floor_to(values, "float32"), values) if np.any(is_single) else values
    return np.where(grain == INTEGER, np.floor(values), held)


def snapped_inside(low: Floats, high: Floats, grain: NDArray[np.int8]) -> tuple[Floats, Floats]:
    """The ends of boxes, moved inwards to values that columns of that grain can hold; of lists and steps, any."""
    return -snapped_down(-low, grain), snapped_down(high, grain)


@dataclass(frozen=True)
class Schema:
    """The columns, in the model's order, and how to speak of a decision.

    Parameters
    ----------
    features : iterable of Feature
        The columns.
    subject : str
        What is decided on, "your application".
    outcomes : mapping, optional
        For each class the word for that decision, as in "would be approved": {"approved": "approved", 0: "declined"}.
    translations : mapping, optional
        The same schema in other languages, by code: {"de": Schema([...], subject="Ihr Antrag", ...)}.

    Examples
    --------
    >>> from treefocus import Feature, Schema
    >>> Schema([Feature("income", "integer", "EUR"), Feature("age", "integer")]).names
    ('income', 'age')
    """

    features: tuple[Feature, ...]
    subject: str
    outcomes: Mapping[Any, str] = field(hash=False)
    translations: Mapping[str, Schema] = field(hash=False)

    def __init__(
        self,
        features: Iterable[Feature],
        subject: str = "",
        outcomes: Mapping[Any, str] | None = None,
        translations: Mapping[str, Schema] | None = None,
    ) -> None:
        object.__setattr__(self, "features", tuple(features))
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "outcomes", dict(outcomes or {}))
        object.__setattr__(self, "translations", dict(translations or {}))
        for feature in self.features:
            if not isinstance(feature, Feature):
                reject("Schema", "of Features (Schema.of_names takes names)", repr(feature))
        names = self.names
        every = [*self.columns, *(one.name for one in self.features if one.columns)]
        doubled = sorted({name for name in every if every.count(name) > 1})
        if doubled:
            reject("Schema", "of columns with different names", f"{', '.join(doubled)} more than once")
        for language, schema in self.translations.items():
            if not isinstance(schema, Schema) or schema.names != names:
                reject(f"Schema.translations[{language!r}]", "a Schema of the same columns", repr(schema))

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Schema:
        """A schema that knows only the names."""
        return cls(Feature(str(name)) for name in names)

    @classmethod
    def infer(cls, data: Any) -> Schema:
        """A first guess from a table: kinds by dtype and values, one-hot groups by name and sum. Print it, correct it.

        Text is categorical, an ordered dtype ordinal; whole numbers are integers, numbers that lie a round step apart
        are of kind "step"; columns of 0 and 1 with a common beginning of their names that add up to 1 are a group.
        """
        return cls(Feature(**own) for own in guess(data))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a YAML file as `save` writes it; an error says in which line."""
        from treefocus.schema.yaml import read_yaml  # slow to import, and only a file needs it

        return cls.from_record(read_yaml(path), str(path))

    def save(self, path: str | Path) -> None:
        """Write the schema as YAML, to be read and corrected by people."""
        from treefocus.schema.yaml import write_yaml

        write_yaml(path, {"format": FORMAT} | self.to_record())

    def to_record(self) -> dict[str, Any]:
        """The schema as plain values; words only where there are some."""
        record: dict[str, Any] = {"features": list(map(dict, self._feature_records))}
        if self.subject:
            record["subject"] = self.subject
        if self.outcomes:
            record["outcomes"] = [[label, word] for label, word in self.outcomes.items()]
        if self.translations:
            record["translations"] = {code: other.to_record() for code, other in self.translations.items()}
        return record

    @classmethod
    def from_record(cls, given: Located | Mapping[str, Any], source: str = "The schema") -> Schema:
        """From what `to_record` gave, or from a file that knows its lines."""
        record = given if isinstance(given, Located) else Located(given, source)
        record.check("format", "features", "subject", "outcomes", "translations")
        if "format" in record and record["format"].value != FORMAT:
            record["format"].refuse(f"the format must be {FORMAT!r}, got {record['format'].value!r}")
        made = []
        for one in record["features"]:
            one.check(*FIELDS, required=("name",))
            made.append(one.built(partial(Feature, **one.value)))
        outcomes = record.get("outcomes", [])
        pairs = outcomes.items() if isinstance(outcomes, Mapping) else [tuple(pair) for pair in outcomes]
        translations = {code: cls.from_record(record["translations"][code]) for code in record.get("translations", {})}
        return record.built(lambda: cls(made, record.get("subject", ""), dict(pairs), translations))

    def with_feature(self, name: str, **changes: Any) -> Schema:
        """The same schema with something else about one column: `schema.with_feature("age", kind="integer")`."""
        unknown = [key for key in changes if key not in FIELDS]
        if unknown:
            reject("Schema.with_feature", f"given fields of Feature ({', '.join(FIELDS)})", unknown[0])
        j = self.index(name)
        if "kind" in changes:  # what belongs to the old kind alone goes with it
            changes = {"step": None, "columns": ()} | changes
        if changes.get("columns"):  # and are named anew, unless they are
            changes = {"values": ()} | changes
        made = replace(self.features[j], **changes)
        kept = {key: value for key, value in changes.items() if key not in WORDS}
        translations = {code: other.with_feature(name, **kept) for code, other in self.translations.items()}
        features = (*self.features[:j], made, *self.features[j + 1 :])
        return Schema(features, self.subject, self.outcomes, translations)

    def in_language(self, language: str) -> Schema:
        """The translation into that language, or the schema itself where there is none."""
        return self.translations.get(language, self)

    @cached_property
    def _feature_records(self) -> tuple[dict[str, Any], ...]:
        """Every answer in JSON holds them."""
        return tuple(one.to_record() for one in self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def countings(self) -> tuple[Counting | None, ...]:
        """By column how its dates are counted, None where it holds none, or nobody has said it yet."""
        return tuple(feature.counting for feature in self.features)

    @cached_property
    def steps(self) -> tuple[Steps | None, ...]:
        """By column the numbers that it can hold, where these lie a step apart."""
        return tuple(feature.steps for feature in self.features)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns: the same, with the columns of a one-hot group in its place."""
        return tuple(name for feature in self.features for name in feature.columns or (feature.name,))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def __str__(self) -> str:
        heads = ("column", "kind", "domain", "unit", "description")
        lines = [(one.name, one.kind, one.domain, one.unit, one.description) for one in self.features]
        used = [k for k in range(len(heads)) if k < 2 or any(line[k] for line in lines)]
        table = [[line[k] for k in used] for line in (heads, *lines)]
        widths = [max(len(line[k]) for line in table) for k in range(len(used))]
        table.insert(1, ["-" * width for width in widths])
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def positions(self, names: Iterable[Any]) -> list[int]:
        """The positions of columns, by name or number."""
        return [self.index(name) for name in names]

    def index(self, name: Any) -> int:
        """The position of a column, by name or number."""
        if isinstance(name, Integral):
            if not 0 <= int(name) < len(self):
                reject("A column number", f"from 0 to {len(self) - 1}", name)
            return int(name)
        if not isinstance(name, str):
            reject("A column", "a name or a number", repr(name))
        if name in self._position:
            return self._position[name]
        close = get_close_matches(name, self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" The columns are {_listed(self.names)}."
        raise InvalidInput(f"There is no column {name!r}.{hint}")


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"


def schema_of(names: Sequence[str], labels: Labels, numbers: Mapping[int, Feature] | None = None) -> Schema:
    """What a model alone knows of its columns, their names and the categories of some; and of the others what the data
    say of their numbers.
    """
    made = []
    for j, (name, own) in enumerate(zip(names, labels, strict=True)):
        number = (numbers or {}).get(j, Feature(""))
        made.append(replace(number, name=str(name)) if own is None else Feature(str(name), "categorical", values=own))
    return Schema(made)


def fitted_to(schema: Schema, labels: Labels, held: Mapping[int, tuple[Any, ...]]) -> Schema:
    """A schema as far as a model bears it out: what the model takes as a category is one; the opposite is refused.

    held: by column those of the labels that are values to people, if not all are: its domain where the schema has none.
    """
    for j, (feature, own) in enumerate(zip(schema.features, labels, strict=True)):
        if own is None and feature.is_categorical:
            raise InvalidInput(
                f"Feature({feature.name!r}) is of kind {feature.kind!r}, but the model takes that column as a number; "
                "an ordinal feature with numbers as values may be what is meant."
            )
        if own is not None and feature.is_categorical:
            strange = [value for value in feature.values if value not in own]
            if strange:
                known = _listed(tuple(map(str, own)))
                reject(f"Feature({feature.name!r}).values", f"of the model's: {known}", repr(strange[0]))
        if own is not None and not feature.is_categorical and feature.kind != "ordinal":
            schema = schema.with_feature(feature.name, kind="categorical", low=None, high=None, values=held.get(j, own))
        elif j in held and not feature.values:
            schema = schema.with_feature(feature.name, values=held[j])
    return schema
