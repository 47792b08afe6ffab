"""A value from a file that knows where it stands, so that an error can point at its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from treefocus.errors import InvalidInput

if TYPE_CHECKING:
    import yaml  # slow to import, and only a file needs it

T = TypeVar("T")


class Located:
    """A value from a file and where it stands; parts of it know their places too."""

    def __init__(self, value: Any, source: str, node: yaml.Node | None = None) -> None:
        self.value: Any = value
        self._source, self._node = source, node

    def refuse(self, why: str) -> NoReturn:
        """Raise `InvalidInput` with the place."""
        place = "" if self._node is None else f", line {self._node.start_mark.line + 1}"
        raise InvalidInput(f"{self._source}{place}: {why}.")

    def built(self, make: Callable[[], T]) -> T:
        """What `make` gives; its error gets the place."""
        try:
            return make()
        except InvalidInput as error:
            self.refuse(str(error).removesuffix("."))

    def check(self, *allowed: str, required: tuple[str, ...] = ()) -> None:
        """Refuse anything but a mapping of these fields."""
        if not isinstance(self.value, Mapping):
            self.refuse(f"fields were expected ({', '.join(allowed)}), got {self.value!r}")
        for key in self.value:
            if key not in allowed:
                close = get_close_matches(str(key), allowed, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"the fields are {', '.join(allowed)}"
                self[key].refuse(f"there is no field {key!r}; {hint}")
        for key in required:
            if key not in self.value:
                self.refuse(f"the field {key!r} is missing")

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def get(self, key: str, default: Any) -> Any:
        """The plain value of a field."""
        found = self.value.get(key)
        return default if found is None else found

    def __getitem__(self, key: Any) -> Located:
        if key not in self.value:
            self.refuse(f"the field {key!r} is missing")
        return Located(self.value[key], self._source, self._node_of(key))

    def __iter__(self) -> Iterator[Located]:
        if not isinstance(self.value, list | tuple):
            self.refuse(f"a list was expected, got {self.value!r}")
        nodes = self._node.value if self._node is not None else [None] * len(self.value)
        return (Located(value, self._source, node) for value, node in zip(self.value, nodes, strict=True))

    def _node_of(self, key: Any) -> yaml.Node | None:
        if self._node is None:
            return None
        return next((node for own, node in self._node.value if own.value == str(key)), self._node)
