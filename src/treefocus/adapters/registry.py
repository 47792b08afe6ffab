"""Which adapter knows a model."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from treefocus.errors import UnsupportedModel
from treefocus.model.forest import Forest
from treefocus.model.source import Source

# The module of a model's class, or a package around it -> the adapter that knows it. An adapter has SUPPORTED, a tuple
# of classes, to_source(model), and REFUSED, classes with the reason and what to do instead.
_ADAPTERS = {
    "sklearn": "treefocus.adapters.sklearn",
    "xgboost": "treefocus.adapters.xgboost",
    "lightgbm": "treefocus.adapters.lightgbm",
    "catboost": "treefocus.adapters.catboost",
    "treelite": "treefocus.adapters.treelite",
    "sklearn.pipeline": "treefocus.adapters.pipeline",
    "sklearn.model_selection": "treefocus.adapters.wrappers",
    "sklearn.frozen": "treefocus.adapters.wrappers",
    "sklearn.multioutput": "treefocus.adapters.wrappers",
    "sklearn.compose": "treefocus.adapters.transformed_target",
    "sklearn.calibration": "treefocus.adapters.calibrated",
    "sklearn.ensemble._voting": "treefocus.adapters.voting",
    "sklearn.multiclass": "treefocus.adapters.one_vs_rest",
}


def translate(model: Any) -> Source:
    """Translate a model, or pass a `Forest` through."""
    if isinstance(model, Forest):
        return Source(model)
    for owner in type(model).__mro__:
        for adapter in _adapters_of(owner.__module__):
            module = import_module(adapter)
            why = next((text for kind, text in module.REFUSED.items() if isinstance(model, kind)), None)
            if why is not None:
                raise UnsupportedModel(f"A {type(model).__name__} is not supported: {why}")
            if isinstance(model, module.SUPPORTED):
                source: Source = module.to_source(model)
                return source
    raise UnsupportedModel(f"A {type(model).__name__} is not supported; supported are {', '.join(supported())}.")


def translated_inside(model: Any, wrapper: Any) -> Source:
    """The source of a model inside another one, which has to know its own categories."""
    source = translate(model)
    if source.with_words is not None:
        raise UnsupportedModel(
            f"A {source.forest.source} with categories inside a {type(wrapper).__name__} is not supported, because it "
            "keeps only hashes of them; explain the model alone, or encode the categories in a pipeline before it."
        )
    return source


def _adapters_of(module: str) -> list[str]:
    """The adapters that may know a class of this module: its own, its package's, and so on upward."""
    parts = module.split(".")
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [_ADAPTERS[name] for name in names if name in _ADAPTERS]


def supported() -> list[str]:
    """The names of all model classes that can be explained, of the libraries that are installed."""
    names = []
    for library, adapter in _ADAPTERS.items():
        if find_spec(library.partition(".")[0]) is not None:
            names += [kind.__name__ for kind in import_module(adapter).SUPPORTED]
    return [*dict.fromkeys(names), "treefocus.Forest"]
