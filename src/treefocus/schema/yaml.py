"""YAML that remembers its lines, so that an error can point at one.

Only plain values are read (`yaml.SafeLoader`): nothing in a file runs. `yes`, `no`, `on` and `off` stay text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from treefocus.errors import InvalidInput

T = TypeVar("T")


class Located:
    """A value from a file and where it stands; parts of it know their places too."""

    def __init__(self, value: Any, source: str, node: yaml.Node | None = None) -> None:
        self.value, self._source, self._node = value, source, node

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


_BOOL = "tag:yaml.org,2002:bool"


class _Loader(yaml.SafeLoader):
    """Plain values; true and false are the only words for them."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in known if tag != _BOOL]
    for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|false)$"), list("tf"))


def read_yaml(path: str | Path) -> Located:
    """The one document of a YAML file."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    loader = _Loader(path.read_text(encoding="utf-8"))
    try:
        node = loader.get_single_node()
        _refuse_doubles(node, str(path))
        return Located(None if node is None else loader.construct_document(node), str(path), node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise InvalidInput(f"{path}{place}: {getattr(error, 'problem', None) or error}.") from error
    finally:
        loader.dispose()


def _refuse_doubles(node: yaml.Node | None, source: str) -> None:
    """A field that stands twice would silently lose its first value."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                Located(None, source, key).refuse(f"the field {key.value!r} stands here a second time")
            seen.add(key.value)
            _refuse_doubles(value, source)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_doubles(value, source)


def write_yaml(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write plain values, short lists on one line."""
    text = yaml.dump(dict(record), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    Path(path).write_text(text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Lists of plain values stand on one line."""


def _represent_list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    is_plain = not any(isinstance(value, dict | list) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_plain)


_Dumper.add_representer(list, _represent_list)
