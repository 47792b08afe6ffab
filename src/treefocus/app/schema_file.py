"""A schema from a file: YAML or JSON with `features`, and the words of `Schema`, by the names they have in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from treefocus.errors import InvalidInput, reject
from treefocus.schema import Feature, Schema

_SUFFIXES = (".yaml", ".yml", ".json")
_KEYS = ("features", "subject", "outcomes", "translations")


def read_schema(path: Path) -> Schema:
    """Read a schema; what is wrong with it is told in one sentence."""
    if path.suffix not in _SUFFIXES:
        reject(str(path), f"a file whose name ends in {', '.join(_SUFFIXES)}", repr(path.suffix))
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        return _schema(_parsed(path))
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{path} is not a schema: {' '.join(str(error).split())}.") from error


def _parsed(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    try:
        import yaml
    except ImportError as error:
        raise InvalidInput(f"Reading {path} needs PyYAML: pip install pyyaml, or write it as .json.") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _schema(record: Any) -> Schema:
    unknown = sorted(set(record) - set(_KEYS))
    if unknown:
        reject("A schema", f"made of {', '.join(_KEYS)}", ", ".join(map(str, unknown)))
    outcomes = record.get("outcomes") or {}
    return Schema(
        [Feature(**feature) if isinstance(feature, dict) else Feature(str(feature)) for feature in record["features"]],
        record.get("subject", ""),
        outcomes if isinstance(outcomes, dict) else dict(outcomes),  # pairs, as in the JSON of explanations
        {code: _schema(other) for code, other in (record.get("translations") or {}).items()},
    )
