"""JSON held to its published schema, and explanations to what was read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from treefocus import Explanations

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "docs" / "schema" / "explanations-1.json").read_text(encoding="utf-8"))


def check_schema(text: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    jsonschema.Draft202012Validator(PUBLISHED).validate(json.loads(text))


def check_same(found: Explanations, again: Explanations) -> None:
    assert len(found) == len(again)
    assert again.schema == found.schema
    assert again.distance_name == found.distance_name
    assert again.seconds == found.seconds
    assert again.reasons == found.reasons
    assert again.status.tolist() == found.status.tolist()
    assert again.predicted.tolist() == found.predicted.tolist()
    assert again.outcome.tolist() == found.outcome.tolist()
    for name in ("points", "distance", "lower_bound", "gap"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    np.testing.assert_array_equal(again.shown[again.has_answer], found.shown[found.has_answer])
    np.testing.assert_array_equal(again.table.values, found.table.values)
    for one, other in zip(found, again, strict=True):
        assert other.changes == one.changes
        assert other.to_dict() == one.to_dict()
        for language in ("en", "de", "fr"):
            assert other.to_text(language) == one.to_text(language)
            # Round numbers need the model, which is not in a file.
            assert other.to_letter(language) == one.to_letter(language, digits=None)
    assert again.to_json() == found.to_json()
    assert repr(again) == repr(found)
    assert str(again.summary()) == str(found.summary())
