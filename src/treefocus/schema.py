"""What the columns mean: names, kinds and units, so that answers can be given in the user's own words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Literal

from treefocus.errors import InvalidInput, reject

ANY_FLOAT, FLOAT32, INTEGER = 0, 1, 2  # grains: which values a column can hold

Kind = Literal["continuous", "integer"]
_KINDS = ("continuous", "integer")


@dataclass(frozen=True)
class Feature:
    """One column: "income" of kind "integer" in "EUR", "gross income a year"."""

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            reject(f"Feature({self.name!r}).kind", f"one of {_KINDS}", repr(self.kind))


@dataclass(frozen=True)
class Schema:
    """The columns, in the model's order."""

    features: tuple[Feature, ...]

    def __init__(self, features: Iterable[Feature]) -> None:
        object.__setattr__(self, "features", tuple(features))
        for feature in self.features:
            if not isinstance(feature, Feature):
                reject("Schema", "of Features (Schema.of_names takes names)", repr(feature))
        names = self.names
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            reject("Schema", "of columns with different names", f"{', '.join(doubled)} more than once")

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Schema:
        """A schema that knows only the names."""
        return cls(Feature(str(name)) for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        return len(self.features)

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
        if name in self.names:
            return self.names.index(name)
        close = get_close_matches(name, self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else f" The columns are {_listed(self.names)}."
        raise InvalidInput(f"There is no column {name!r}.{hint}")


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
