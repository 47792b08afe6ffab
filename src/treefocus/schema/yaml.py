"""Schemas as YAML files: read with their lines, written for people.

Only plain values are read (`yaml.SafeLoader`): nothing in a file runs. `yes`, `no`, `on` and `off` stay text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from treefocus.errors import InvalidInput
from treefocus.schema.located import Located

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
