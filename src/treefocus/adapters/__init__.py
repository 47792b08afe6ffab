"""From a trained model to a `Forest`: one file a library, imported when a model of that library comes along."""

from __future__ import annotations

from treefocus.adapters.files import load_forest, load_model
from treefocus.adapters.registry import supported, translate
from treefocus.model.source import Source

__all__ = ["Source", "load_forest", "load_model", "supported", "translate"]
