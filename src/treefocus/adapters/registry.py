"""Which adapter knows a model."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Forest
from treefocus.model.source import Source

# The module or top-level package of a model's class -> the adapter that knows it. An adapter has SUPPORTED, a tuple of
# classes, to_source(model), and REFUSED, classes with the reason and what to do instead.
_ADAPTERS = {
    "sklearn": "treefocus.adapters.sklearn",
    "xgboost": "treefocus.adapters.xgboost",
    "lightgbm": "treefocus.adapters.lightgbm",
    "catboost": "treefocus.adapters.catboost",
    "treelite": "treefocus.adapters.treelite",
    "sklearn.pipeline": "treefocus.adapters.pipeline",
}


def translate(model: Any) -> Source:
    """Translate a model, or pass a `Forest` through."""
    if isinstance(model, Forest):
        return Source(model)
    for owner in type(model).__mro__:
        adapter = _ADAPTERS.get(owner.__module__) or _ADAPTERS.get(owner.__module__.partition(".")[0])
        if adapter is not None:
            module = import_module(adapter)
            why = next((text for kind, text in module.REFUSED.items() if isinstance(model, kind)), None)
            if why is not None:
                raise UnsupportedModel(f"A {type(model).__name__} is not supported: {why}")
            if isinstance(model, module.SUPPORTED):
                source: Source = module.to_source(model)
                return source
    raise UnsupportedModel(f"A {type(model).__name__} is not supported; supported are {', '.join(supported())}.")


def supported() -> list[str]:
    """The names of all model classes that can be explained, of the libraries that are installed."""
    names = []
    for library, adapter in _ADAPTERS.items():
        if find_spec(library) is not None:
            names += [kind.__name__ for kind in import_module(adapter).SUPPORTED]
    return [*dict.fromkeys(names), "treefocus.Forest"]
