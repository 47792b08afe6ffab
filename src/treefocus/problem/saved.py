"""What an explainer knows, as one JSON object: no pickles, nothing in a file runs.

The model as its forest, what the columns are, what an answer may not do, what small means, and what the training rows
said: scale, domain, orders of categories, and the rows from which searches start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from treefocus.constraints.text import as_constraints
from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import Labels
from treefocus.model.forest import Forest
from treefocus.model.source import Source
from treefocus.problem.distance_record import distance_record, read_distance
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor
from treefocus.problem.space import Space
from treefocus.schema.schema import Schema
from treefocus.tables.labels import Coding
from treefocus.tables.onehot import Folding

FORMAT = "treefocus-explainer-1"
_MEASURES = {one.__name__: one for one in (LocalOutlierFactor, IsolationScore)}
_ARRAYS = ("_integer", "_has_fractions")
_PLAIN = ("distance_name", "_has_data")
_REBUILT = ("_folding", "_coding")  # from the model and the schema
_LIVE = ("_judge", "_training")  # the source model's, which stays behind, and its refits
_OBJECTS = (
    "forest",
    "schema",
    "constraints",
    "distance",
    "space",
    "plausibility",
    "_names",
    "_orders",
    "_examples",
    "_also",
)
KNOWN = frozenset((*_OBJECTS, *_ARRAYS, *_PLAIN, *_REBUILT, *_LIVE))


def state_record(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an explainer, as `Explainer.__getstate__` gives it, as plain values."""
    strange = sorted(state.keys() - KNOWN)
    if strange:
        raise InvalidInput(f"An explainer with {', '.join(strange)} cannot be written as a file.")
    folding, measure = state["_folding"], state["plausibility"]
    model: Forest = state["forest"] if folding is None else folding.model
    return {
        "format": FORMAT,
        "model": model.to_record(),
        "schema": state["schema"].to_record(),
        "constraints": [one.to_text() for one in state["constraints"]],
        "distance": distance_record(state["distance"]),
        "space": {one.name: _written(getattr(state["space"], one.name)) for one in fields(Space)},
        "plausibility": None if measure is None else {"kind": type(measure).__name__} | asdict(measure),
        "names": None if state["_names"] is None else list(state["_names"]),
        "orders": [None if own is None else list(own) for own in state["_orders"]],
        "examples": _written(state["_examples"]),
        "also": [one.forest.to_record() for one in state["_also"]],
        **{name.strip("_"): state[name].tolist() for name in _ARRAYS},
        **{name.strip("_"): state[name] for name in _PLAIN},
    }


def read_state(record: Any) -> dict[str, Any]:
    """The state that `state_record` wrote."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        found = record.get("format") if isinstance(record, dict) else record
        reject("The explainer's format", repr(FORMAT), repr(found))
    try:
        return _read(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"The file does not hold an explainer: {error!r}.") from error


def _read(record: dict[str, Any]) -> dict[str, Any]:
    model, schema = Forest.from_record(record["model"]), Schema.from_record(record["schema"])
    folding, names = Folding.of(schema, model), _tuple(record["names"])
    forest = model if folding is None else folding.forest
    n_features = forest.n_features
    space = Space(**{one.name: _floats(record["space"][one.name]) for one in fields(Space)})
    examples = _floats(record["examples"])
    state = {
        "forest": forest,
        "schema": schema,
        "constraints": as_constraints(record["constraints"]),
        "distance": read_distance(record["distance"], n_features),
        "space": space,
        "plausibility": _measure(record["plausibility"]),
        "_names": names,
        "_orders": _labels(record["orders"]),
        "_examples": None if examples is None else examples.reshape(-1, n_features),
        "_also": tuple(Source(Forest.from_record(one)) for one in record.get("also", ())),
        "_folding": folding,
        "_coding": Coding.of(model, schema.columns),
        **{name: np.array(record[name.strip("_")], bool) for name in _ARRAYS},
        **{name: record[name.strip("_")] for name in _PLAIN},
        **dict.fromkeys(_LIVE),
    }
    _check_widths(state, n_features)
    return state


def _check_widths(state: Mapping[str, Any], n_features: int) -> None:
    """A file may say anything: everything that goes by column is as wide as the model."""
    space: Space = state["space"]
    arrays = [space.offset, space.scale, space.low, space.high, *(state[name] for name in _ARRAYS)]
    arrays += [] if space.typical is None else [space.typical]
    widths = {len(own) for own in (*arrays, state["_orders"], state["schema"].features)}
    if widths != {n_features}:
        reject("The explainer's columns", f"{n_features} everywhere", sorted(widths))
    if not (np.isfinite(space.scale).all() and (space.scale > 0).all() and np.isfinite(space.offset).all()):
        reject("The explainer's scale and offset", "finite, the scale above 0", "something else")


def _measure(record: Mapping[str, Any] | None) -> LocalOutlierFactor | IsolationScore | None:
    if record is None:
        return None
    values = dict(record)
    return _MEASURES[values.pop("kind")](**values)


def _labels(record: list[Any]) -> Labels:
    return tuple(_tuple(own) for own in record)


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _written(values: Any) -> list[Any] | None:
    """Numbers as JSON can hold them: infinities and NaN as words."""
    if values is None:
        return None
    return [float(value) if np.isfinite(value) else str(float(value)) for value in np.ravel(values)]


def _floats(values: list[Any] | None) -> Any:
    return None if values is None else np.array(values, dtype=np.float64)
