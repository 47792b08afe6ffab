"""An explainer in a file: the same answers, and nothing that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from treefocus import (
    Explainer,
    FewestFeatures,
    InvalidInput,
    IsolationScore,
    LocalOutlierFactor,
    Manhattan,
    Schema,
    load_explainer,
    loans,
)
from treefocus.problem.saved import KNOWN

TRAINED = loans.train()
MODEL = RandomForestClassifier(5, max_depth=4, random_state=0).fit(TRAINED.X_train[:800], TRAINED.y_train[:800])
ROWS = TRAINED.X_test[:40][MODEL.predict(TRAINED.X_test[:40]) == "declined"][:3]


def same(explainer: Explainer, rows: Any, path: Path, **asked: Any) -> Explainer:
    """Saved and loaded, it gives the same answers."""
    explainer.save(path)
    loaded = load_explainer(path)
    one, two = explainer.explain(rows, **asked), loaded.explain(rows, **asked)
    assert [a.name for a in one.status] == [b.name for b in two.status]
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_array_equal(one.distance, two.distance)
    assert [a.to_text() for a in one] == [b.to_text() for b in two]
    return loaded


@pytest.mark.parametrize(
    "distance",
    ["manhattan", "euclidean", "chebyshev", "l0", "cosine", "mahalanobis", Manhattan() + 0.1 * FewestFeatures()],
    ids=str,
)
def test_the_same_answers_under_every_distance(distance: Any, tmp_path: Path) -> None:
    made = Explainer(
        MODEL, TRAINED.X_train[:400], distance=distance, schema=loans.SCHEMA, constraints=loans.CONSTRAINTS,
        weights={"savings": 2.0} if distance != "mahalanobis" else None,
    )  # fmt: skip
    loaded = same(made, ROWS, tmp_path / "explainer.json.gz", target="approved")
    assert loaded.constraints == made.constraints
    assert repr(loaded) == repr(made)


@pytest.mark.parametrize("measure", [IsolationScore(limit=0.6), LocalOutlierFactor(limit=2.0)], ids=repr)
def test_likeness_goes_with_it(measure: Any, tmp_path: Path) -> None:
    made = Explainer(MODEL, TRAINED.X_train[:400], schema=loans.SCHEMA, plausibility=measure)
    assert same(made, ROWS[:1], tmp_path / "explainer.json", target="approved").plausibility == measure


def housing() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "rent": draw.integers(0, 2, 200),
            "income": draw.normal(30, 9, 200).round(1),
            "size": pd.Categorical(draw.choice(["S", "M", "L"], 200), ["S", "M", "L"], ordered=True).codes,
        }
    )


def test_one_hot_groups_stay_groups(tmp_path: Path) -> None:
    data = housing().rename(columns={"rent": "home_rent"}).assign(home_own=lambda table: 1 - table["home_rent"])
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(data, data["income"] + 9 * data["home_own"] > 33)
    schema = Schema.infer(data)
    assert any(one.columns for one in schema.features)
    made = Explainer(model, data, schema=schema)
    loaded = same(made, data[:4], tmp_path / "explainer.json")
    assert loaded.column_names == made.column_names


def test_words_stay(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    data = housing()
    data["size"] = pd.Categorical.from_codes(data["size"], ["S", "M", "L"])
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1, min_child_samples=5)
    model.fit(data, (data["income"] + 5 * data["size"].cat.codes > 34).astype(int))
    made = Explainer(model, data, constraints="size in {S, L}")
    same(made, data[:4], tmp_path / "explainer.json")


def test_every_part_of_an_explainer_is_written() -> None:
    data = np.array([[20.0], [30.0], [50.0], [60.0]])
    made = Explainer(DecisionTreeClassifier().fit(data, [0, 0, 1, 1]), data)
    assert made.__getstate__().keys() == KNOWN


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    class Own:
        def value(self, x: Any, y: Any) -> Any:
            return np.abs(x - y).sum(axis=1)

        def gradient(self, x: Any, y: Any) -> Any:
            return np.sign(y - x)

    data = np.array([[20.0], [30.0], [50.0], [60.0]])
    made = Explainer(DecisionTreeClassifier().fit(data, [0, 0, 1, 1]), data, distance=Own())
    with pytest.raises(InvalidInput, match="a user's own function cannot"):
        made.save(tmp_path / "explainer.json")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda record: record.update(format="x"), "format must be 'treefocus-explainer-1', got 'x'"),
        (lambda record: record.pop("space"), "does not hold an explainer"),
        (lambda record: record["space"].update(scale=[1.0]), "columns must be 12 everywhere"),
        (lambda record: record["space"].update(scale=[0.0] * 12), "scale and offset must be finite"),
        (lambda record: record.update(orders=3), "does not hold an explainer"),
        (lambda record: record.update(constraints=["nobody fixed"]), "no column 'nobody'"),
        (lambda record: record["model"].pop("feature"), "lacks feature"),
    ],
)
def test_a_damaged_file_is_refused(change: Any, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "explainer.json"
    Explainer(MODEL, TRAINED.X_train[:50], schema=loans.SCHEMA).save(path)
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(InvalidInput, match=complaint):
        load_explainer(path)
