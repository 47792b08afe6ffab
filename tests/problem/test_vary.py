"""Only some columns may change: the opposite of Fixed, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from support.forests import SEEDS
from support.questions import FAST, random_question
from treefocus import AtMost, Explainer, Feature, Fixed, Increasing, InvalidInput, Range, Schema, loans, verify
from treefocus.app.demo import demo_service
from treefocus.app.messages import ExplainBody
from treefocus.app.question import ExplainOptions
from treefocus.cli import app

X, _ = loans.load()
ROWS = X[:6]


def explainer(**options: Any) -> Explainer:
    return Explainer(loans.forest(), X[:200], schema=loans.SCHEMA, **options)


@settings(max_examples=25)
@given(SEEDS)
def test_nothing_else_changes_and_all_else_is_as_under_fixed(seed: int) -> None:
    asked, rows = random_question(seed)
    rng = np.random.default_rng(seed)
    n = len(asked.schema)
    free = sorted(rng.choice(n, size=rng.integers(1, n + 1), replace=False).tolist())
    names = asked.schema.names
    others = [name for j, name in enumerate(names) if j not in free]
    options: dict[str, Any] = {"scale": None, "bounds": (asked.space.low, asked.space.high), "schema": asked.schema}
    only = Explainer(asked.forest, vary=[names[j] for j in free], **options)
    fixed = Explainer(asked.forest, constraints=[Fixed(*others)] if others else [], **options)
    found, same = only.explain(rows, strategy=FAST), fixed.explain(rows, strategy=FAST)
    assert not found.is_moved[found.has_answer][:, [j for j in range(n) if j not in free]].any()
    assert found.points.tobytes() == same.points.tobytes()
    assert found.status.tolist() == same.status.tolist()


def test_columns_go_by_name_by_number_or_alone() -> None:
    names = loans.SCHEMA.names
    by_name = explainer(vary=["savings", "income"])
    assert by_name.constraints == explainer(vary=[names.index("income"), names.index("savings")]).constraints
    assert explainer(vary="income").constraints == (Fixed(*(name for name in names if name != "income")),)
    assert explainer(vary=names).constraints == ()
    assert explainer(vary=None).constraints == ()


def test_what_is_no_column_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"There is no column 'incom'\. Did you mean 'income'"):
        explainer(vary=["incom"])
    with pytest.raises(InvalidInput, match="vary must be at least one column, got"):
        explainer(vary=[])
    with pytest.raises(InvalidInput, match="A column number must be from 0 to"):
        explainer(vary=[99])


def test_constraints_hold_as_well() -> None:
    own = [Increasing("income"), AtMost(1), Range("savings", high=1e6)]
    found = explainer(constraints=own, vary=["income", "savings"]).explain(ROWS)
    is_free = np.isin(loans.SCHEMA.names, ["income", "savings"])
    moved = found.is_moved[found.has_answer]
    assert not moved[:, ~is_free].any()
    assert (moved.sum(axis=1) <= 1).all()
    income = loans.SCHEMA.index("income")
    assert (found.points[found.has_answer, income] >= ROWS[found.has_answer, income]).all()


def test_a_one_hot_group_is_one_column() -> None:
    rng = np.random.default_rng(0)
    kind, age = rng.integers(0, 3, 200), rng.integers(20, 60, 200)
    data = pd.DataFrame({"age": age} | {f"kind_{k}": (kind == k).astype(int) for k in range(3)})
    model = RandomForestClassifier(5, random_state=0).fit(data, np.where((kind == 1) | (age > 45), "yes", "no"))
    group = Feature("kind", "one-hot", columns=("kind_0", "kind_1", "kind_2"))
    schema = Schema([Feature("age", "integer"), group])
    rows = data[model.predict(data) == "no"][:5]
    found = Explainer(model, data, schema=schema, vary=["kind"]).explain(rows)
    assert found.has_answer.any()
    assert (found.counterfactuals["age"][found.has_answer] == rows["age"][found.has_answer]).all()
    with pytest.raises(InvalidInput, match="There is no column 'kind_1'"):
        Explainer(model, data, schema=schema, vary=["kind_1"])


@pytest.mark.campaign
def test_what_may_not_vary_is_an_obstacle_by_its_name() -> None:
    asked = explainer(vary=["age"])
    none = next(one for one in asked.explain(ROWS) if not one.status.has_answer)
    obstacle = none.why_not()
    assert obstacle.constraints
    assert all(text.endswith("fixed") and not text.startswith("age") for text in obstacle.written)


def test_a_certificate_proves_it_for_these_columns_alone() -> None:
    one = next(one for one in explainer(vary=["income", "savings"]).explain(ROWS) if one.status.has_answer)
    certificate = json.loads(json.dumps(one.certificate()))
    assert not verify(certificate, loans.forest()).failed
    certificate["point"][loans.SCHEMA.index("age")] += 1.0
    assert "the point obeys every constraint" in [check.claim for check in verify(certificate, loans.forest()).failed]


def test_the_service_takes_it_and_keeps_its_own_unless_told() -> None:
    service = demo_service()
    table = service.table_of([service.rows.values[0].tolist()])
    body = ExplainBody(rows=[[0.0]], vary=["income"])
    asked = body.question(service.asked)
    assert list(asked.vary) == ["income"]
    assert ExplainBody.of(asked, [[0.0]]).vary == ["income"]
    found = service.explain(table, asked)
    moved = np.isin(service.schema.names, ["income"], invert=True)
    assert not found.is_moved[found.has_answer][:, moved].any()
    own = ExplainOptions(vary=("savings",))
    assert ExplainBody(rows=[[0.0]]).question(own).vary == ("savings",)
    assert ExplainBody(rows=[[0.0]], vary=None).question(own).vary is None


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    model, rows = tmp_path / "model.json", tmp_path / "rows.csv"
    loans.forest().save(model)
    pd.DataFrame(X[:40], columns=loans.SCHEMA.names).to_csv(rows, index=False)
    words = ["explain", str(model), str(rows), "--vary", "income", "--vary", "savings"]
    told = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "answers.json")])
    assert told.exit_code == 0, told.output
    lines = json.loads((tmp_path / "answers.json").read_text())["rows"]
    changed = {change["feature"] for line in lines for change in line["changes"]}
    assert changed
    assert changed <= {"income", "savings"}
