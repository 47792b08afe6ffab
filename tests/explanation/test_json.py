"""JSON: it obeys its published schema, and what is read back is what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from support.forests import SEEDS
from support.interchange import check_same, check_schema
from support.questions import FAST, random_question, stump
from treefocus import Explainer, Explanations, Feature, Focus, InvalidInput, Range, Schema, Status, loans


@settings(max_examples=40)
@given(SEEDS)
def test_what_is_read_is_what_was_written(seed: int) -> None:
    explainer, rows = random_question(seed)
    found = explainer.explain(rows, strategy=FAST)
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))


def test_words_in_every_language_survive(tmp_path: Path) -> None:
    trained = loans.train()
    rows = trained.X_test[:20].astype(np.float32)
    explainer = Explainer(trained.model, trained.X_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    found = explainer.explain(rows, target="approved", strategy=Focus(iterations=100))
    found.to_json(tmp_path / "found.json")
    check_schema(found.to_json())
    for source in (tmp_path / "found.json", str(tmp_path / "found.json"), found.to_json()):
        check_same(found, Explanations.from_json(source))


def test_every_status_and_every_nasty_value_survives() -> None:
    names = ['a "quoted" </script>', "שכר 💰\nline"]
    schema = Schema([Feature(names[0], "integer", "<b>"), Feature(names[1], unit="\u202e")])
    data = np.array([[0.0, 0.0], [10.0, 1.0]])
    rows = pd.DataFrame([[2, 0.5], [8, np.inf], [3, np.nan], [9, 0.1]], columns=names, index=["x", "y", "🙂", "\\"])
    explainer = Explainer(stump(4.5), data, schema=schema, constraints=Range(names[0], high=4))
    found = explainer.explain(rows, target="yes")
    assert set(found.status) >= {Status.INFEASIBLE, Status.INVALID}
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))
    assert list(Explanations.from_json(found.to_json()).labels) == ["x", "y", "🙂", "\\"]


def test_a_name_that_no_file_can_hold_survives(tmp_path: Path) -> None:
    schema = Schema.of_names(["lone \ud800", "b"])
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]]), schema=schema).explain([[0.2, 0.3]])
    found.to_json(tmp_path / "found.json")
    check_same(found, Explanations.from_json(tmp_path / "found.json"))
    assert found.to_html(tmp_path / "report.html").is_file()


def test_an_empty_batch_survives() -> None:
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]])).explain(np.empty((0, 2)))
    check_schema(found.to_json())
    check_same(found, Explanations.from_json(found.to_json()))


def test_what_was_read_has_frames_and_pages_but_no_model(tmp_path: Path) -> None:
    explainer = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]]))
    again = Explanations.from_json(explainer.explain([[0.2, 0.3]]).to_json())
    assert len(again.to_frame()) == 1
    assert len(again.changes_frame()) == 1
    assert again.to_html(tmp_path / "report.html").is_file()
    np.testing.assert_array_equal(again.counterfactuals, again.points)
    for ask in (again[0].certificate, again[0].probabilities, again.probabilities, again[0].map):
        with pytest.raises(InvalidInput, match=r"^This needs the model, and explanations read from JSON have none"):
            ask()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not readable JSON"),
        ('{"format": "else"}', r"^The explanations' format must be 'treefocus-explanations-1', got 'else'\.$"),
        ('{"format": "treefocus-explanations-1"}', "does not hold explanations"),
        ('{"format": "treefocus-explanations-1", "features": 7}', "does not hold explanations"),
        ('{"format": "treefocus-explanations-1", "features": [{"no": 1}]}', "does not hold explanations"),
    ],
)
def test_what_is_no_explanations_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Explanations.from_json(text)


@pytest.mark.parametrize("change", [{"rows": [{}]}, {"rows": [None]}, {"grains": ["x", "y"]}, {"distance": ...}])
def test_a_file_with_a_hole_is_refused(change: dict[str, Any]) -> None:
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]])).explain([[0.2, 0.3]])
    record = json.loads(found.to_json()) | change
    record = {key: value for key, value in record.items() if value is not ...}
    with pytest.raises(InvalidInput, match="does not hold explanations"):
        Explanations.from_json(json.dumps(record))
