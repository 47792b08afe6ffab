"""PMML files say what the specification says, evaluated by hand: on cuts, one float beside them, nothing at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support.forests import adversarial_rows
from support.pmml_evaluator import Evaluator
from treefocus import Explainer, Forest, InvalidInput, UnsupportedModel, load_model
from treefocus.adapters.pmml_model import is_pmml
from treefocus.kernels import decide, hard_scores, reference
from treefocus.tables.labels import label_of

FOLDER = Path(__file__).parents[1] / "support" / "pmml"  # written by SkLearn2PMML of small models
FILES = sorted(path.name for path in FOLDER.glob("*.pmml"))


def named_rows(forest: Forest, rows: Any) -> list[dict[str, Any]]:
    labels = [None] * forest.n_features if forest.categories is None else forest.categories.labels
    return [
        {
            name: None if np.isnan(value) else float(value) if own is None else label_of(value, own)
            for name, value, own in zip(forest.feature_names or (), row, labels, strict=True)
        }
        for row in rows.tolist()
    ]


def telling_rows(forest: Forest, n: int) -> Any:
    rows = adversarial_rows(forest, np.random.default_rng(0), n, missing=0.1 if forest.takes_missing else 0.0)
    rows = np.where(np.abs(rows) < 1e-30, 0.0, rows)  # libraries take denormals for 0, or not
    if forest.refuses_missing is not None:
        rows[:, forest.refuses_missing] = np.where(
            np.isnan(rows[:, forest.refuses_missing]), 0.0, rows[:, forest.refuses_missing]
        )
    for j, own in enumerate(forest.categories.labels if forest.categories is not None else ()):
        if own is not None:
            codes = np.random.default_rng(j).integers(0, len(own), len(rows))
            rows[:, j] = np.where(np.isnan(rows[:, j]), np.nan, codes)
    return rows


def hold(forest: Forest, text: bytes, n: int = 300) -> None:
    """Hold a forest against the document it was read from."""
    rows = telling_rows(forest, n)
    scores = hard_scores(forest, rows)
    shown, evaluate = reference.shown(forest, scores), Evaluator(text)
    for row, score, own in zip(named_rows(forest, rows), scores, shown, strict=True):
        told = evaluate(row)
        assert told is not None
        if forest.decision == "value":
            assert abs(own[0] - told) <= forest.rounding + 1e-12 * abs(told)
            continue
        classes = [str(label) for label in forest.classes.tolist()]
        given = [told.get(name, 0.0) for name in classes]
        np.testing.assert_allclose(own if len(own) > 1 else [1 - own[0], own[0]], given, atol=forest.rounding + 1e-7)
        best = sorted(given)
        if best[-1] - best[-2] > 1e-6:
            assert classes[int(decide(forest, score[None])[0])] == told["winner"]


@pytest.mark.parametrize("name", FILES)
def test_files_of_a_converter(name: str) -> None:
    text = (FOLDER / name).read_bytes()
    assert is_pmml(text)
    forest = load_model(FOLDER / name)
    assert forest.source.startswith("PMML")
    hold(forest, text)


@pytest.mark.parametrize("name", [name for name in FILES if name != "rfr.pmml"])  # which predicts numbers
def test_answers_flip_the_document(name: str) -> None:
    forest, evaluate = load_model(FOLDER / name), Evaluator((FOLDER / name).read_bytes())
    rows = np.clip(telling_rows(forest, 400), -5, 5)  # categories have small numbers
    rows = rows[~np.isnan(rows).any(axis=1)]
    table = pd.DataFrame(named_rows(forest, rows))
    found = Explainer(forest, table).explain(table[:12])
    assert found.has_answer.sum() > 6
    for before, after in zip(named_rows(forest, rows[:12][found.has_answer]), named_rows(
            forest, found.points[found.has_answer]), strict=True):  # fmt: skip
        assert evaluate(before)["winner"] != evaluate(after)["winner"]


# --- random trees


def random_predicate(rng: np.random.Generator) -> str:
    if rng.random() < 0.3:
        words = " ".join(rng.choice(["u", "v", "x"], rng.integers(1, 3), replace=False))
        operator = rng.choice(["isIn", "isNotIn"])
        array = f'<Array type="string" n="1">{words}</Array>'
        return f'<SimpleSetPredicate field="w" booleanOperator="{operator}">{array}</SimpleSetPredicate>'
    name, value = rng.choice(["a", "b"]), round(float(rng.normal()), 1)
    kind = rng.random()
    if kind < 0.1:
        return f'<SimplePredicate field="{name}" operator="{rng.choice(["isMissing", "isNotMissing"])}"/>'
    if kind < 0.25:
        pair = "".join(f'<SimplePredicate field="{name}" operator="{operator}" value="{value + shift}"/>'
                       for operator, shift in (("greaterThan", -0.5), ("lessOrEqual", 0.5)))  # fmt: skip
        return f'<CompoundPredicate booleanOperator="{rng.choice(["and", "or", "xor"])}">{pair}</CompoundPredicate>'
    operator = rng.choice(["lessOrEqual", "lessThan", "greaterOrEqual", "greaterThan", "equal", "notEqual"])
    return f'<SimplePredicate field="{name}" operator="{operator}" value="{value}"/>'


def opposite(predicate: str) -> str:
    for one, other in (("lessOrEqual", "greaterThan"), ("lessThan", "greaterOrEqual"), ('"isIn"', '"isNotIn"')):
        if one in predicate and "Compound" not in predicate:
            return predicate.replace(one, other)
    return "<True/>"


def random_node(rng: np.random.Generator, depth: int, predicate: str, kind: str, number: list[int]) -> str:
    number[0] += 1
    own = number[0]
    score = rng.choice(["no", "yes"]) if kind == "classification" else round(float(rng.normal()), 3)
    share = round(float(rng.uniform(0.1, 0.9)), 2)
    shares = "" if kind == "regression" else "".join(
        f'<ScoreDistribution value="{name}" recordCount="{count}"/>'
        for name, count in (("no", 1 - share), ("yes", share)))  # fmt: skip
    if kind == "classification":
        score = "yes" if share > 1 - share else "no"
    inside, first = "", number[0] + 1
    if depth:
        questions = [random_predicate(rng) for _ in range(rng.integers(1, 3))]
        questions.append(opposite(questions[0]) if len(questions) == 1 else "<True/>")
        ids = []
        for question in questions:
            ids.append(number[0] + 1)
            inside += random_node(rng, depth - 1, question, kind, number)
        first = int(rng.choice(ids))
    return f'<Node id="{own}" score="{score}" defaultChild="{first}">{predicate}{shares}{inside}</Node>'


FIELDS = """<DataDictionary><DataField name="a" optype="continuous" dataType="double"/>
<DataField name="b" optype="continuous" dataType="float"/><DataField name="w" optype="categorical" dataType="string">
<Value value="u"/><Value value="v"/><Value value="x"/></DataField>{target}</DataDictionary>"""
WORDS = '<Value value="no"/><Value value="yes"/>'
TARGETS = {
    "classification": f'<DataField name="y" optype="categorical" dataType="string">{WORDS}</DataField>',
    "regression": '<DataField name="y" optype="continuous" dataType="double"/>',
}
SCHEMA = """<MiningSchema><MiningField name="a"/><MiningField name="b" {more}/><MiningField name="w"/>
<MiningField name="y" usageType="target"/></MiningSchema>"""


def document(model: str, kind: str) -> bytes:
    return f'<?xml version="1.0"?><PMML version="4.4">{FIELDS.format(target=TARGETS[kind])}{model}</PMML>'.encode()


def random_tree(rng: np.random.Generator, kind: str, strategy: str, more: str = "") -> str:
    node = random_node(rng, int(rng.integers(1, 4)), "<True/>", kind, [0])
    return (
        f'<TreeModel functionName="{kind}" missingValueStrategy="{strategy}" '
        f'noTrueChildStrategy="returnLastPrediction">{SCHEMA.format(more=more)}{node}</TreeModel>'
    )


@pytest.mark.parametrize("strategy", ["none", "defaultChild", "lastPrediction", "nullPrediction"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_random_trees(strategy: str, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(sum(map(ord, strategy + kind)))
    path = tmp_path / "model.pmml"
    for k in range(25):
        text = document(random_tree(rng, kind, strategy, 'missingValueReplacement="0.5"' if k % 5 == 4 else ""), kind)
        path.write_bytes(text)
        forest = load_model(path)
        hold(forest, text, 120)


@pytest.mark.parametrize("method", ["average", "weightedAverage", "majorityVote", "weightedMajorityVote", "sum"])
def test_ensembles(method: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "model.pmml"
    kind = "regression" if method == "sum" else "classification"
    for _ in range(8):
        trees = "".join(
            f'<Segment weight="{rng.uniform(0.5, 2):.2f}"><True/>{random_tree(rng, kind, "defaultChild")}</Segment>'
            for _ in range(5)
        )
        inner = f'<Segmentation multipleModelMethod="{method}">{trees}</Segmentation>'
        more = '<Targets><Target rescaleFactor="2" rescaleConstant="0.5"/></Targets>' if kind == "regression" else ""
        text = document(f'<MiningModel functionName="{kind}">{SCHEMA.format(more="")}{more}{inner}</MiningModel>', kind)
        path.write_bytes(text)
        hold(load_model(path), text, 100)


# --- what is refused

PLAIN = SCHEMA.format(more="")
LESS = '<SimplePredicate field="{name}" operator="lessThan" value="1"/>'
BOTH = f'<CompoundPredicate booleanOperator="and">{LESS.format(name="a")}{LESS.format(name="b")}</CompoundPredicate>'


def tree_of(predicate: str) -> str:
    """A tree whose only child has that predicate."""
    node = f'<Node score="1"><True/><Node score="2">{predicate}</Node></Node>'
    return f'<TreeModel functionName="regression">{PLAIN}{node}</TreeModel>'


SEGMENT = f"<Segment><True/>{tree_of('<True/>')}</Segment>"
LARGEST_OF = f'<Segmentation multipleModelMethod="max">{SEGMENT}</Segmentation>'
REFUSED = {
    "clusters": ('<ClusteringModel functionName="clustering"/>', "has ClusteringModel; TreeModel and MiningModel"),
    "nothing": (tree_of(LESS.format(name="a")), "predicts nothing for some rows"),
    "two columns": (tree_of(BOTH), "asks for 2 columns at once"),
    "another column": (tree_of(LESS.format(name="q")), "'q', which is none of its columns"),
    "the largest": (
        f'<MiningModel functionName="regression">{PLAIN}{LARGEST_OF}</MiningModel>',
        "by 'max' of numbers is not supported",
    ),
}


@pytest.mark.parametrize(("model", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_read_says_why(model: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "model.pmml").write_bytes(document(model, "regression"))
    with pytest.raises(UnsupportedModel, match=why):
        load_model(tmp_path / "model.pmml")


def test_missing_values_that_lead_nowhere_are_refused_as_input(tmp_path: Path) -> None:
    """Two predicates on a number, and none that a missing one meets: the document predicts nothing there."""
    pair = "".join(
        f'<Node score="{k}">{LESS.format(name="a").replace("lessThan", operator)}</Node>'
        for k, operator in enumerate(("lessThan", "greaterOrEqual"))
    )
    text = document(f'<TreeModel functionName="regression">{PLAIN}<Node><True/>{pair}</Node></TreeModel>', "regression")
    (tmp_path / "model.pmml").write_bytes(text)
    forest = load_model(tmp_path / "model.pmml")
    a = (forest.feature_names or ()).index("a")
    assert not forest.takes_missing or (forest.refuses_missing is not None and forest.refuses_missing[a])
    assert Evaluator(text)({"a": None, "b": 0.0, "w": "u"}) is None
    hold(forest, text)


BOMB = """<?xml version="1.0"?><!DOCTYPE PMML [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><PMML version="4.4"><Header description="&c;"/></PMML>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE PMML SYSTEM "file:///etc/passwd"><PMML version="4.4"/>"""
DEEP = '<?xml version="1.0"?><PMML version="4.4">' + "<Node>" * 5000 + "</Node>" * 5000 + "</PMML>"


@pytest.mark.parametrize(("text", "why"), [
    (BOMB, "has a document type, whose entities are not read"), (OUTSIDE, "has a document type"),
    (DEEP, "elements inside each other"), ("<PMML", "cannot be read"), ('<PMML version="4.4"/>', "no model"),
])  # fmt: skip
def test_hostile_xml_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "model.pmml").write_text(text, encoding="utf-8")
    with pytest.raises((InvalidInput, UnsupportedModel), match=why):
        load_model(tmp_path / "model.pmml")


def test_damage_is_said_of_the_file(tmp_path: Path) -> None:
    data, rng = (FOLDER / "words.pmml").read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), 4):
            broken[place] = rng.integers(32, 127)
        (tmp_path / "model.pmml").write_bytes(bytes(broken))
        with suppress(InvalidInput, UnsupportedModel):
            load_model(tmp_path / "model.pmml")
    (tmp_path / "model.pmml").write_bytes(data[:-10])
    with pytest.raises(InvalidInput, match=r"model\.pmml: The XML cannot be read"):
        load_model(tmp_path / "model.pmml")
