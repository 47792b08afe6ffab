"""No number has more digits than its column, wherever it is shown; and what is shown still flips and obeys."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier

from treefocus import Explainer, loans

MODELS = (RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier)
DECIMALS = {"count": 0, "flag": 0, "tenths": 1, "cents": 2, "quarters": 2, "thousands": 0, "term": 0}
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def random_table(rng: np.random.Generator, n: int = 150) -> pd.DataFrame:
    """Columns as people have them, whole numbers as floats because a cell is empty, some as float32."""
    columns: dict[str, Any] = {
        "count": rng.poisson(2.0, n).astype(float),
        "flag": rng.integers(0, 2, n).astype(float),
        "tenths": np.round(rng.uniform(0, 9, n), 1),
        "cents": np.round(rng.lognormal(6, 1, n), 2),
        "quarters": rng.integers(0, 60, n) / 4,
        "thousands": rng.integers(9, 90, n) * 1000.0,
        "term": rng.choice([12.0, 36.0, 60.0], n),
    }
    names = [str(name) for name in rng.permutation(list(columns))[:4]]
    frame = pd.DataFrame({name: columns[name] for name in names})
    for name in names:
        if rng.random() < 0.25:
            frame[name] = frame[name].astype(np.float32)
    return frame


def decimals(text: str) -> int:
    return max(0, -int(Decimal(text.replace(",", "")).normalize().as_tuple().exponent))


def shown_numbers(text: str, columns: list[str]) -> list[tuple[str, str]]:
    """(column, number) for every number that a text tells of a column, up to the next column."""
    found = []
    for piece in re.split(r"(?=\b(?:" + "|".join(columns) + r")\b)", text):
        column = next((name for name in columns if piece.startswith(name)), None)
        told = re.split(r"(?<=[a-z\d])\. |\n\n|\(manhattan", piece)[0]
        if column is not None:
            found += [(column, number) for number in NUMBER.findall(told)]
    return found


def everything_shown(found: Any, folder: Path) -> list[str]:
    console = Console(width=300, file=open(folder / "table.txt", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(found)
    for one in found:
        console.print(one)
    console.file.close()
    letters = [one.to_letter(language) for one in found for language in ("en",)]
    table = (folder / "table.txt").read_text(encoding="utf-8")
    table = re.sub(r"[│┃]\s*[\d.]+%?\s*[│┃]\s*OPTIMAL.*", "", table)  # the distance and the status
    table = re.sub(r"\d+%", "", table)  # the share
    return [found.to_text(), *letters, table]


@pytest.mark.parametrize("seed", range(9))
def test_no_number_has_more_digits_than_its_column(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    data = random_table(rng)
    z = ((data - data.mean()) / data.std()).sum(axis=1) + rng.normal(0, 0.3, len(data))
    model = MODELS[seed % len(MODELS)](n_estimators=15, random_state=0).fit(data, z > 0)
    found = Explainer(model, data).explain(data[:6])
    assert found.has_answer.any()
    columns = list(data.columns)
    for text in everything_shown(found, tmp_path):
        for column, number in shown_numbers(text, columns):
            assert decimals(number) <= DECIMALS[column], (column, number, text)
    for one in found:
        row = one.row.copy()
        for change in one.changes:
            most = DECIMALS[change.feature]
            for value in (change.before_shown, change.shown, change.moved):
                assert decimals(repr(float(value))) <= most, change
            row[columns.index(change.feature)] = change.shown
        told = pd.DataFrame([row], columns=columns).astype(data.dtypes.to_dict())
        if one.changes:
            assert model.predict(told)[0] == one.outcome
    for record in json.loads(found.to_json())["rows"]:
        for change in record["changes"]:
            assert decimals(repr(change["shown"])) <= DECIMALS[change["feature"]]
    for column, values in found.counterfactuals.items():
        for value in values.dropna().to_numpy():
            assert decimals(str(value)) <= DECIMALS[str(column)], (column, value)


@pytest.mark.campaign
def test_the_loans_are_told_in_the_digits_they_have() -> None:
    X, _ = loans.load()
    forest = loans.forest()
    found = Explainer(forest, X, schema=loans.SCHEMA, constraints=loans.CONSTRAINTS).explain(X[:150])
    for one in found:
        for change in one.changes:
            most = 1 if change.feature.endswith("history_years") or change.feature.startswith("employment") else 0
            assert decimals(repr(float(change.shown))) <= most
            assert decimals(repr(float(change.before_shown))) <= most


def test_a_value_of_many_digits_is_told_in_as_few_as_the_change_needs() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"ldl": rng.normal(130, 20, 300)})
    model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(data, data.ldl > 140)
    row = pd.DataFrame({"ldl": [135.80828268704954]})
    change = Explainer(model, data).explain(row)[0].changes[0]
    assert change.before == 135.80828268704954
    assert len(repr(change.before_shown)) <= 7
    assert len(repr(change.shown)) <= 7


def test_a_value_beside_the_steps_may_stay_and_is_told() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"a": rng.integers(0, 9, 200).astype(float), "b": rng.integers(0, 9, 200).astype(float)})
    model = RandomForestClassifier(9, random_state=0).fit(data, data.a + data.b > 8)
    explainer = Explainer(model, data)
    rows = pd.DataFrame({"a": [2.5, 4.0], "b": [3.0, 4.0]})
    found = explainer.explain(rows)
    assert explainer.schema["a"].kind == "integer"
    for i, one in enumerate(found):
        for name, value in zip(("a", "b"), one.counterfactual, strict=True):
            assert value.is_integer() or value == rows[name][i]
        assert one.status.name == "OPTIMAL"
