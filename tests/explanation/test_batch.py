"""The answer: frames, JSON, sentences and tables say what was found, and applying what they say flips the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from support.forests import SEEDS
from support.questions import FAST, random_question, stump
from support.rows import ShownRow
from treefocus import (
    Change,
    Explainer,
    Explanation,
    Explanations,
    Feature,
    Range,
    Schema,
    Status,
    kernels,
)
from treefocus.render.table import changes_table, difference, overview_table
from treefocus.render.text import quantity
from treefocus.search import Outcome

SCHEMA = Schema([Feature("age", "integer", "years"), Feature("net income", unit="EUR", description="a month")])
ROWS = pd.DataFrame({"age": [20, 45, 30, 12], "net income": [1000.5, 2500.25, np.inf, 800.0]}, index=list("abcd"))
DATA = pd.DataFrame({"age": [10, 60], "net income": [0.0, 5000.0]})


@pytest.fixture(scope="module")
def found() -> Explanations:
    """Three answers and a row the model cannot read; "d" also has to move to obey a constraint."""
    forest = stump(39.5, feature_names=SCHEMA.names)
    explainer = Explainer(forest, DATA, schema=SCHEMA, constraints=Range("net income", low=900.0), distance="manhattan")
    return explainer.explain(ROWS, target=["yes", None, "yes", "no"])


def numbers_in(sentence: str, schema: Schema) -> Iterator[tuple[int, float, float]]:
    """The changes a sentence names: column, after, before."""
    for j, feature in enumerate(schema.features):
        number = rf"(-?[\d.,]+(?:e[+-]?\d+)?){re.escape(' ' + feature.unit) if feature.unit else ''}"
        for after, before in re.findall(
            rf"{re.escape(feature.name)} were {number} instead of (?:{number}|unknown)(?:,| and |\.)", sentence
        ):
            yield j, *(float(text.rstrip(",.").replace(",", "") or "nan") for text in (after, before))


# Rows


def test_length_order_and_indexing(found: Explanations) -> None:
    assert len(found) == 4
    assert [one.label for one in found] == list("abcd")
    assert found[-1].label == found[3].label == found[np.int64(3)].label == "d"
    assert [one.label for one in found[1:3]] == ["b", "c"]
    assert found[:0] == ()
    for i in (4, -5):
        with pytest.raises(IndexError, match=rf"^There are 4 explanations, no number {i}\.$"):
            found[i]


def test_one_row_has_its_part_of_everything(found: Explanations) -> None:
    for i, one in enumerate(found):
        assert isinstance(one, Explanation)
        assert one.status is found.status[i]
        assert one.reason == found.reasons[i]
        assert one.predicted == found.predicted[i]
        assert one.outcome == found.outcome[i]
        assert one.lower_bound == found.lower_bound[i]
        if one.status.has_answer:
            assert one.counterfactual is not None
            np.testing.assert_array_equal(one.counterfactual, found.counterfactuals.iloc[i].to_numpy(float))
            assert one.distance == found.distance[i]
        else:
            assert one.counterfactual is None
            assert one.distance is None
            assert one.gap is None
            assert one.changes == ()


def test_predictions_and_outcomes_are_the_models_labels(found: Explanations) -> None:
    assert found.predicted.tolist() == ["no", "yes", None, "no"]
    assert found.outcome.tolist() == ["yes", "no", None, "no"]
    assert found.has_answer.tolist() == [True, True, False, True]
    assert type(found[0].predicted) is str


def test_changes_are_the_differences_largest_first(found: Explanations) -> None:
    assert [change.feature for change in found[0].changes] == ["age"]
    [change] = found[0].changes
    assert (change.before, change.after, change.shown, change.share, change.unit) == (20.0, 40.0, 40.0, 1.0, "years")
    assert [change.feature for change in found[3].changes] == ["net income"]


@settings(max_examples=40)
@given(SEEDS)
def test_changes_lead_from_the_row_to_the_counterfactual(seed: int) -> None:
    explainer, rows = random_question(seed)
    for one in explainer.explain(rows, strategy=FAST):
        if one.counterfactual is None:
            continue
        moved = one.row.copy()
        for change in one.changes:
            j = explainer.schema.index(change.feature)
            assert moved[j] == change.before or (change.before is None and np.isnan(moved[j]))
            assert change.after != change.before
            moved[j] = change.after
        np.testing.assert_array_equal(moved, one.counterfactual)
        shares = [change.share for change in one.changes]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1.0)


def test_a_float32_value_is_told_as_it_was_written() -> None:
    rows = np.array([[0.1, 0.7]], np.float32)
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]])).explain(rows)
    assert found[0].changes[0].before == 0.1
    assert "instead of 0.1 " in found.to_text() or "instead of 0.1." in found.to_text()
    assert len(repr(found[0].changes[0].shown)) <= 6
    assert np.float32(found[0].changes[0].shown) > 0.5


# Bounds


@pytest.mark.parametrize(
    ("distance", "lower_bound", "gap"),
    [
        (2.0, 1.5, 0.25),
        (2.0, 0.0, 1.0),
        (2.0, 2.0, 0.0),
        (2.0, 2.1, 0.0),
        (0.0, 0.0, 0.0),
        (np.nan, 0.0, np.nan),
        (np.nan, np.inf, np.nan),
    ],
)
def test_gap_is_the_share_that_could_be_saved(distance: float, lower_bound: float, gap: float) -> None:
    status = np.full(1, Status.BOUNDED, object)
    found = Outcome(np.zeros((1, 1)), np.array([distance]), np.array([lower_bound]), status)
    np.testing.assert_array_equal(found.gap, [gap])


@settings(max_examples=30)
@given(SEEDS)
def test_status_distance_and_bound_agree(seed: int) -> None:
    explainer, rows = random_question(seed)
    found = explainer.explain(rows)
    for one in found:
        assert (one.distance is not None) == (one.outcome is not None) == one.status.has_answer
        if one.distance is None:
            assert one.lower_bound == (np.inf if one.status is Status.INFEASIBLE else 0.0)
            continue
        assert 0.0 <= one.lower_bound <= one.distance * (1 + 1e-6)
        assert one.gap is not None
        assert 0.0 <= one.gap <= 1.0
        if one.status is Status.OPTIMAL:
            assert one.gap <= 1e-3
    np.testing.assert_array_equal(np.isnan(found.gap), ~found.has_answer)


# Sentences


def test_sentences(found: Explanations) -> None:
    one, two, three, four = found.to_text().splitlines()
    assert one.startswith(
        "Row a is predicted 'no'. It would be predicted 'yes' if age were 40 years instead of 20 years. "
    )
    assert one.endswith("No smaller change would be enough.")
    assert found[0].to_text(proof=True).endswith(f"(manhattan distance {found.distance[0]:.4g}).")
    assert two.startswith(
        "Row b is predicted 'yes'. It would be predicted 'no' if age were 39 years instead of 45 years. "
    )
    assert three == "Row c gets no prediction: the model cannot read net income = inf."
    assert four.startswith(
        "Row d is predicted 'no' already, but breaks a constraint. "
        "It would obey them all if net income were 900 EUR instead of 800 EUR. "
    )
    assert found.to_text(limit=2).splitlines() == [one, two]
    assert found.to_text(limit=99) == found.to_text()
    assert found[1].to_text() == two


def test_a_row_that_is_there_already_has_nothing_to_change() -> None:
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]])).explain([[0.7, 0.2]], target="yes")
    assert found[0].reason == "the row has the wanted answer already"
    assert found.to_text() == "Row 0 is predicted 'yes' already; nothing has to change."


@pytest.mark.parametrize(
    ("status", "lower_bound", "enough", "proof"),
    [
        (
            Status.OPTIMAL,
            0.25,
            "No smaller change would be enough.",
            "Every smaller change was ruled out, with the model itself (euclidean distance 0.25).",
        ),
        (
            Status.BOUNDED,
            0.2,
            "A smaller change may be enough, too.",
            "Every change that is more than 20.0% smaller was ruled out, with the model itself; those in between were "
            "not all looked at (euclidean distance 0.25).",
        ),
        (
            Status.FOUND,
            0.0,
            "A smaller change may be enough, too.",
            "The search found this change, and did not rule out smaller ones (euclidean distance 0.25).",
        ),
    ],
)
def test_a_sentence_ends_with_how_sure_we_are(
    found: Explanations, status: Status, lower_bound: float, enough: str, proof: str
) -> None:
    one = replace(
        ShownRow.of(found[0]),
        label=7,
        changes=(Change("x", 1.0, 1.5, 1.5, 1.0),),
        predicted=0,
        outcome=1,
        status=status,
        distance=0.25,
        lower_bound=lower_bound,
        distance_name="euclidean",
    )
    told = f"Row 7 is predicted '0'. It would be predicted '1' if x were 1.5 instead of 1. {enough}"
    assert one.to_text() == told
    assert one.to_text(proof=True) == f"{told} How do we know? {proof}"


@settings(max_examples=60)
@given(SEEDS)
def test_applying_the_numbers_of_a_sentence_flips_the_model(seed: int) -> None:
    explainer, rows = random_question(seed)
    found = explainer.explain(rows, strategy=FAST)
    for one in found:
        if one.counterfactual is None:
            continue
        row = one.row.copy()
        told = list(numbers_in(one.to_text(), explainer.schema))
        assert len(told) == len(one.changes)
        for j, after, before in told:
            # The row's own value is told in few digits, too: to half a per cent of the change.
            assert abs(row[j] - before) <= 0.0051 * abs(row[j] - after) or np.isnan(row[j] - before)
            row[j] = after
        assert explainer.forest.classes[kernels.predict(explainer.forest, row[None, :])[0]] == one.outcome


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (3.0, "3"), (0.25, "0.25"), (-0.25, "-0.25"), (52000.0, "52,000"),
        (-52000.0, "-52,000"),
        (52000.5, "52,000.5"), (-1234.5, "-1,234.5"), (999.5, "999.5"), (1e-7, "1e-07"), (1e20, "1e+20"),
    ],
)  # fmt: skip
def test_quantities(value: float, text: str) -> None:
    assert quantity(value) == text
    assert quantity(value, "EUR") == f"{text} EUR"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_quantity_has_all_its_digits(value: float) -> None:
    assert float(quantity(value).replace(",", "")) == value


# Frames and JSON


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table, np.ndarray])
def test_a_frame_has_a_line_a_row(kind: type[Any]) -> None:
    rows: Any = {"age": [20, 45], "status": [0.5, 0.25]}
    if kind is np.ndarray:
        rows = np.column_stack(list(rows.values()))
    else:
        rows = pa.table(rows) if kind is pa.Table else kind(rows)
    schema = Schema.of_names(["age", "status"])
    data = np.array([[10.0, 0.0], [60.0, 1.0]])
    found = Explainer(stump(39.5), data, schema=schema).explain(rows)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame if kind is np.ndarray else kind)
    names = list(frame.column_names if kind is pa.Table else frame.columns)
    assert names == [
        "row", "predicted", "outcome", "status", "distance", "lower_bound", "gap", "reason", "age", "status (value)",
    ]  # fmt: skip
    columns = {name: (frame[name].to_pylist() if kind is pa.Table else list(frame[name])) for name in names}
    assert columns["row"] == [0, 1]
    assert columns["predicted"] == ["no", "yes"]
    assert columns["outcome"] == ["yes", "no"]
    assert columns["status"] == [status.name for status in found.status]
    assert columns["distance"] == found.distance.tolist()
    assert columns["status (value)"] == [0.5, 0.25]
    if kind is not np.ndarray:
        assert columns["age"] == [40, 39]
        assert "int" in str(frame["age"].type if kind is pa.Table else frame["age"].dtype).lower()


def test_a_frame_has_nulls_where_there_is_no_answer(found: Explanations) -> None:
    frame = found.to_frame()
    assert frame["row"].tolist() == list("abcd")
    assert frame["age"].isna().tolist() == [False, False, True, False]
    assert frame["distance"].isna().tolist() == [False, False, True, False]
    assert frame["predicted"].isna().tolist() == [False, False, True, False]


def plain(value: Any) -> bool:
    """Whether JSON that was read again holds only numbers that JSON knows."""
    if isinstance(value, dict):
        return all(map(plain, value.values()))
    if isinstance(value, list):
        return all(map(plain, value))
    return not isinstance(value, float) or bool(np.isfinite(value))


def test_json_is_json_and_holds_every_row(found: Explanations, tmp_path: Path) -> None:
    text = found.to_json(tmp_path / "found.json")
    assert (tmp_path / "found.json").read_text(encoding="utf-8") == text
    record = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert plain(record)
    assert record["format"] == "treefocus-explanations-1"
    assert record["distance"] == "manhattan"
    assert record["features"][1] == {
        "name": "net income",
        "kind": "continuous",
        "unit": "EUR",
        "description": "a month",
    }
    first, _, third, _ = record["rows"]
    assert first["row"] == "a"
    assert first["counterfactual"] == found[0].counterfactual.tolist()  # type: ignore[union-attr]
    assert first["changes"][0]["after"] == 40.0
    assert (third["status"], third["distance"], third["gap"], third["counterfactual"]) == ("INVALID", None, None, None)


@settings(max_examples=25)
@given(SEEDS)
def test_json_reads_back_what_was_found(seed: int) -> None:
    explainer, rows = random_question(seed)
    found = explainer.explain(rows, strategy=FAST)
    record = json.loads(found.to_json())
    for one, again in zip(found, record["rows"], strict=True):
        assert plain(again)
        assert again["status"] == one.status.name
        assert again["distance"] == one.distance
        assert again["predicted"] == one.predicted
        assert again["lower_bound"] == (None if np.isinf(one.lower_bound) else one.lower_bound)
        if one.counterfactual is not None:
            point = [np.nan if value is None else value for value in again["counterfactual"]]
            np.testing.assert_array_equal(point, one.counterfactual)


@pytest.mark.parametrize(
    ("index", "label"),
    [
        (pd.to_datetime(["2024-02-29"]), "2024-02-29 00:00:00"),
        (pd.Index([7]), 7),
        (pd.Index([np.nan]), "nan"),
        (pd.Index([2.5]), 2.5),
        (pd.MultiIndex.from_tuples([("x", 1)]), "('x', 1)"),
    ],
)
def test_any_index_goes_to_json(index: Any, label: Any) -> None:
    rows = pd.DataFrame([[0.2, 0.3]], index=index)
    found = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]])).explain(rows)
    assert json.loads(found.to_json())["rows"][0]["row"] == label


@pytest.mark.parametrize("classes", [[False, True], [0, 1], [-1.5, 2.5], ["nein", "ja"]])
def test_labels_of_any_kind_go_everywhere(classes: list[Any]) -> None:
    found = Explainer(stump(classes=classes), np.array([[0.0, 0.0], [1.0, 1.0]])).explain([[0.2, 0.3]])
    row = json.loads(found.to_json())["rows"][0]
    assert (row["predicted"], row["outcome"]) == tuple(classes)
    assert f"'{classes[1]}'" in found.to_text()
    assert found.to_frame()["outcome"].tolist() == [classes[1]]


# Summaries


def test_a_summary_counts(found: Explanations) -> None:
    summary = found.summary()
    assert summary["rows"] == 4
    assert sum(summary["status"].values()) == 4
    assert summary["status"]["INVALID"] == 1
    assert summary["share_found"] == 0.75
    assert summary["mean_distance"] == pytest.approx(np.nanmean(found.distance))
    assert summary["mean_gap"] == pytest.approx(np.nanmean(found.gap))
    assert summary["mean_features_changed"] == 1.0
    assert summary["rows_per_second"] == pytest.approx(4 / summary["seconds"])
    assert repr(found).startswith("Explanations(4 rows: ")
    assert "1 INVALID" in repr(found)
    assert repr(found[0]) == f"Explanation(row='a', {found.status[0].name}, distance={found.distance[0]})"


def test_a_summary_of_nothing_is_not_an_error() -> None:
    explainer = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]]))
    for rows in (np.empty((0, 2)), np.array([[np.nan, 0.0]])):
        summary = explainer.explain(rows).summary()
        assert summary["rows"] == len(rows)
        assert np.isnan(summary["mean_distance"])
        assert np.isnan(summary["mean_gap"])
        assert np.isnan(summary["mean_features_changed"])


# Tables for the terminal


def shown(table: Any) -> str:
    console = Console(file=StringIO(), width=160, force_terminal=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_a_table_of_changes(found: Explanations) -> None:
    text = shown(changes_table(found[0]))
    assert "Row a: no → yes" in text
    for cell in ("age", "20 years", "40 years", "+20", "100%"):
        assert cell in text


def test_an_overview_has_a_line_a_row(found: Explanations) -> None:
    text = shown(overview_table(found))
    assert "4 of 4 rows" in text
    assert "age 20 → 40 years" in text
    assert "the model cannot read net income = inf" in text
    assert "None" not in text
    short = shown(overview_table(found, limit=1))
    assert "1 of 4 rows" in short
    assert "INVALID" not in short


def test_brackets_in_names_are_not_markup() -> None:
    schema = Schema.of_names(["width [cm]", "[red]"])
    explainer = Explainer(stump(classes=["[a]", "[b]"]), np.array([[0.0, 0.0], [1.0, 1.0]]), schema=schema)
    found = explainer.explain(pd.DataFrame([[0.2, 0.3]], columns=["width [cm]", "[red]"], index=["[x]"]))
    for text in (shown(changes_table(found[0])), shown(overview_table(found))):
        for word in ("width [cm]", "[a]", "[b]", "[x]"):
            assert word in text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(0.0, 0.025123, "+0.02512"), (5.0, 3.0, "-2"), (48200.0, 52000.0, "+3,800"), (0.0, -1e16, "-1e+16")],
)
def test_differences_read_well(before: float, after: float, text: str) -> None:
    assert difference(Change("x", before, after, after, 1.0)) == text


def test_a_table_of_two_hundred_features_has_only_what_changes() -> None:
    names = [f"column {j}" for j in range(200)]
    data = np.vstack([np.zeros(200), np.ones(200)])
    explainer = Explainer(stump(n_features=200), data, schema=Schema.of_names(names))
    found = explainer.explain(np.full((3, 200), 0.2))
    for text in (shown(changes_table(found[0])), shown(found[0]), shown(overview_table(found)), shown(found)):
        assert "column 0" in text
        assert "column 1" not in text
        assert len(text.splitlines()) < 12
    frame = found.changes_frame()
    assert list(frame.columns) == ["row", "feature", "before", "after", "change", "share", "unit"]
    assert frame["row"].tolist() == [0, 1, 2]
    assert set(frame["feature"]) == {"column 0"}
    np.testing.assert_allclose(frame["after"], frame["before"] + frame["change"])


def test_the_changes_of_one_row_are_a_frame(found: Explanations) -> None:
    frame = found[0].to_frame()
    assert frame.to_dict("records") == [
        {"row": "a", "feature": "age", "before": 20.0, "after": 40.0, "change": 20.0, "share": 1.0, "unit": "years"}
    ]
    assert len(found[2].to_frame()) == 0


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table])
def test_the_changes_of_many_rows_are_a_frame_like_the_input(kind: type[Any]) -> None:
    rows: Any = {"age": [20, 45], "income": [0.5, 0.25]}
    rows = pa.table(rows) if kind is pa.Table else kind(rows)
    found = Explainer(stump(39.5), np.array([[10.0, 0.0], [60.0, 1.0]])).explain(rows)
    assert isinstance(found.changes_frame(), kind)


@pytest.mark.parametrize(("language", "words"), [("de", ("Merkmal", "vorher", "20 years")), ("fr", ("avant", "part"))])
def test_tables_in_other_languages(found: Explanations, language: str, words: tuple[str, ...]) -> None:
    text = shown(changes_table(found[0], language))
    assert all(word in text for word in words)
    assert "Zeilen" in shown(overview_table(found, language="de"))
    assert "keine" not in shown(changes_table(found[2], language))
    assert "net income = inf" in shown(changes_table(found[2], language))
