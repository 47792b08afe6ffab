"""What the columns mean: names, kinds, units and words, so that answers can be given in the user's own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats
from treefocus.grid import floor_to

ANY_FLOAT, FLOAT32, INTEGER = 0, 1, 2  # grains: which values a column can hold


def snapped_down(values: Floats, grain: int | NDArray[np.int8]) -> Floats:
    """The largest value that a column of that grain can hold, not above the given one."""
    single = np.where(grain == FLOAT32, floor_to(values, "float32"), values)
    return np.where(grain == INTEGER, np.floor(values), single)


Kind = Literal["continuous", "integer"]
_KINDS = ("continuous", "integer")


@dataclass(frozen=True)
class Feature:
    """One column: "income" of kind "integer" in "EUR", "gross income a year".

    The rest is what sentences need. label: the column as it stands in a sentence, "your revolving utilisation";
    without one, its name. unit_one: the unit of exactly one, "year" where unit is "years". one, many: what a column
    of whole numbers counts, "recent inquiry" and "recent inquiries"; sentences then say "2 fewer recent inquiries".
    """

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    description: str = ""
    label: str = ""
    unit_one: str = ""
    one: str = ""
    many: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            reject(f"Feature({self.name!r}).kind", f"one of {_KINDS}", repr(self.kind))
        if bool(self.one) != bool(self.many):
            reject(f"Feature({self.name!r}).one and .many", "given together", repr((self.one, self.many)))


@dataclass(frozen=True)
class Schema:
    """The columns, in the model's order, and how to speak of a decision.

    subject: what is decided on, "your application". outcomes: for each class the word for that decision, as in "would
    be approved": {"approved": "approved", 0: "declined"}. translations: the same schema in other languages, by code:
    {"de": Schema([...], subject="Ihr Antrag", ...)}.
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
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            reject("Schema", "of columns with different names", f"{', '.join(doubled)} more than once")
        for language, schema in self.translations.items():
            if not isinstance(schema, Schema) or schema.names != names:
                reject(f"Schema.translations[{language!r}]", "a Schema of the same columns", repr(schema))

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Schema:
        """A schema that knows only the names."""
        return cls(Feature(str(name)) for name in names)

    def in_language(self, language: str) -> Schema:
        """The translation into that language, or the schema itself where there is none."""
        return self.translations.get(language, self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.features)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

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
