"""A hash of what an answer depends on, by content: the same today, tomorrow and on another machine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np

from treefocus.explainer import Explainer
from treefocus.explanation.training import Training
from treefocus.model.fingerprint import fingerprint
from treefocus.model.forest import Forest
from treefocus.search.judge import Judge

_EARLIER = ("_own_predict", "_own_scores", "_own_probabilities")  # so that folders of earlier versions are known again
_APART = (Forest, Judge, Training)  # which have fingerprints of their own, or matter where they are asked for


def digest_of(value: Any) -> str:
    """SHA-256 over the parts of a value: arrays by their bytes, records by their fields, the rest by its repr."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def explainer_fingerprints(explainer: Explainer) -> dict[str, str]:
    """Of the model, and of everything else that the explainer was made with."""
    state = explainer.__getstate__()
    others = {name: value for name, value in state.items() if not isinstance(value, _APART) and name != "_also"}
    others |= dict.fromkeys(_EARLIER)
    if explainer.also:
        others["_also"] = [fingerprint(forest) for forest in explainer.also]
    return {"model": fingerprint(explainer.forest), "question": digest_of(others)}


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype} {value.shape}".encode()
        plain = value.tolist() if value.dtype.kind in "OU" else None
        yield repr(plain).encode() if plain is not None else np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key in sorted(value, key=repr):
            yield from _parts(key)
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from _parts(item)
    elif value is None or isinstance(value, str | int | float | np.generic | Enum):
        yield f"{type(value).__name__} {value!r}".encode()
    else:
        yield f"record {type(value).__name__}".encode()
        yield from _parts(_fields(value))


def _fields(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):  # without what a record keeps for itself once it was asked for
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return vars(value) if hasattr(value, "__dict__") else {"repr": repr(value)}
