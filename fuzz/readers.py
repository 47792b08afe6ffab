"""What is fuzzed: for every kind of file that `load_model` reads, a few small whole files to damage.

A reader is one line in `READERS`: its name, the ending of its files, and a function that makes the files. A library
that is not installed leaves its lines out.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from treefocus import Explainer

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3))
BINARY = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)
THREE = np.digitize(ROWS[:, 0], [-0.5, 0.5])


@dataclass(frozen=True)
class Reader:
    """One kind of file."""

    name: str
    suffix: str
    make: Callable[[], Iterator[bytes]]
    needs: str = "sklearn"  # the library that writes the files
    weight: float = 1.0  # its share of the executions; small where each needs a process

    @property
    def is_here(self) -> bool:
        """Whether that library is installed."""
        return find_spec(self.needs) is not None


def _saved(save: Callable[[Path], Any], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(path)
        return path.read_bytes()


def own_files() -> Iterator[bytes]:
    """Forests in our own format: one output, several, weights, missing values."""
    missing = ROWS.copy()
    missing[::5, 1] = np.nan
    models = [
        RandomForestClassifier(2, max_depth=2, random_state=0).fit(ROWS, THREE),
        AdaBoostClassifier(n_estimators=3, random_state=0).fit(ROWS, BINARY),
        HistGradientBoostingClassifier(max_iter=2, max_depth=2, min_samples_leaf=5).fit(missing, BINARY),
    ]
    for model in models:
        yield _saved(Explainer(model, ROWS).forest.save, "model.json")


def focus_trees() -> Iterator[bytes]:
    """The paper's models: a tree, a forest, a boosted one."""
    for kind, n_trees in (("dt", 1), ("rf", 2), ("ab", 2)):
        model = RandomForestClassifier(n_trees, max_depth=2, random_state=0).fit(ROWS, BINARY)
        trees = [
            {
                "feature": tree.tree_.feature.tolist(),
                "threshold": tree.tree_.threshold.tolist(),
                "children_left": tree.tree_.children_left.tolist(),
                "children_right": tree.tree_.children_right.tolist(),
                "value": tree.tree_.value[:, 0].tolist(),
            }
            for tree in model.estimators_
        ]
        record = {"format": "focus-trees-1", "kind": kind, "n_features": 3, "classes": [0, 1], "trees": trees}
        yield json.dumps(record | {"estimator_weights": [0.5] * n_trees}).encode()


def xgboost_files(name: str) -> Iterator[bytes]:
    """Two classes and three, with categories and without."""
    import xgboost

    mixed = pandas.DataFrame({"a": ROWS[:, 0], "b": pandas.Categorical(["u", "v", "w"] * 20)})
    yield _saved(xgboost.XGBClassifier(n_estimators=2, max_depth=2).fit(ROWS, BINARY).save_model, name)
    yield _saved(xgboost.XGBClassifier(n_estimators=1, max_depth=2).fit(ROWS, THREE).save_model, name)
    categories = xgboost.XGBClassifier(n_estimators=2, max_depth=2, enable_categorical=True).fit(mixed, BINARY)
    yield _saved(categories.save_model, name)


def lightgbm_files() -> Iterator[bytes]:
    """Two classes and three, with categories."""
    import lightgbm

    options = {"n_estimators": 2, "num_leaves": 4, "min_child_samples": 5, "verbose": -1}
    mixed = pandas.DataFrame({"a": ROWS[:, 0], "b": pandas.Categorical(["u", "v", "w"] * 20)})
    for rows, labels in ((ROWS, BINARY), (ROWS, THREE), (mixed, BINARY)):
        yield lightgbm.LGBMClassifier(**options).fit(rows, labels).booster_.model_to_string().encode()


def catboost_files(form: str) -> Iterator[bytes]:
    """Two classes and three, and as JSON categories."""
    import catboost

    for labels in (BINARY, THREE):
        model = catboost.CatBoostClassifier(iterations=2, depth=2, verbose=False, allow_writing_files=False)
        model.fit(ROWS, labels)
        yield _saved(lambda path, model=model: model.save_model(str(path), format=form), f"model.{form}")
    if form == "json":  # categories, with the tables of their statistics
        words = pandas.DataFrame({"a": ROWS[:, 0], "b": ["u", "v", "w"] * 20, "c": ["x", "y"] * 30})
        pool = catboost.Pool(words, BINARY, cat_features=["b", "c"])
        model = catboost.CatBoostClassifier(iterations=3, depth=3, verbose=False, allow_writing_files=False).fit(pool)
        yield _saved(lambda path: model.save_model(str(path), format=form, pool=pool), "model.json")


def pmml_files() -> Iterator[bytes]:
    """A vote of trees with categories and missing values, and a chain as converters write boosting."""
    fields = """<DataDictionary><DataField name="a" optype="continuous" dataType="double"/>
        <DataField name="w" optype="categorical" dataType="string"><Value value="u"/><Value value="v"/></DataField>
        <DataField name="y" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/></DataField>
        </DataDictionary>"""
    schema = """<MiningSchema><MiningField name="a"/><MiningField name="w"/>
        <MiningField name="y" usageType="target"/></MiningSchema>"""
    tree = """<Segment><True/><TreeModel functionName="{kind}" missingValueStrategy="defaultChild">{schema}<Node><True/>
        <Node id="1"><SimplePredicate field="a" operator="lessOrEqual" value="{cut}"/>
          <Node score="{low}"><SimpleSetPredicate field="w" booleanOperator="isIn"><Array type="string">u</Array>
          </SimpleSetPredicate></Node><Node score="{high}"><True/></Node></Node>
        <Node score="{high}"><SimplePredicate field="a" operator="greaterThan" value="{cut}"/></Node></Node></TreeModel>
        </Segment>"""
    votes = "".join(tree.format(kind="classification", schema=schema, cut=k, low="no", high="yes") for k in range(3))
    sums = "".join(tree.format(kind="regression", schema=schema, cut=k, low=-1, high=0.5) for k in range(3))
    inner = f"""<MiningModel functionName="regression">{schema}<Output><OutputField name="z"/></Output>
        <Segmentation multipleModelMethod="sum">{sums}</Segmentation></MiningModel>"""
    table = '<RegressionTable targetCategory="yes"><NumericPredictor name="z" coefficient="1"/></RegressionTable>'
    last = f"""<RegressionModel functionName="classification" normalizationMethod="logit">{table}
        <RegressionTable targetCategory="no"/></RegressionModel>"""
    chain = f"<Segment><True/>{inner}</Segment><Segment><True/>{last}</Segment>"
    for method, segments in (("majorityVote", votes), ("modelChain", chain)):
        model = f"""<MiningModel functionName="classification">{schema}
            <Segmentation multipleModelMethod="{method}">{segments}</Segmentation></MiningModel>"""
        yield f'<?xml version="1.0"?><PMML version="4.4">{fields}{model}</PMML>'.encode()


def onnx_files() -> Iterator[bytes]:
    """A classifier of two classes and of three, and a regressor."""
    from skl2onnx import to_onnx

    rows = ROWS.astype(np.float32)
    for labels in (BINARY, THREE):
        yield bytes(to_onnx(RandomForestClassifier(2, max_depth=2).fit(rows, labels), rows[:1]).SerializeToString())
    values = RandomForestRegressor(2, max_depth=2, random_state=0).fit(rows, rows[:, 0])
    yield bytes(to_onnx(values, rows[:1]).SerializeToString())


def treelite_files() -> Iterator[bytes]:
    """A forest of scikit-learn's."""
    import treelite

    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(ROWS, BINARY)
    yield treelite.sklearn.import_model(model).serialize_bytes()


READERS: tuple[Reader, ...] = (
    Reader("treefocus-forest-1", ".json", own_files),
    Reader("focus-trees-1", ".json", focus_trees),
    Reader("xgboost-json", ".json", lambda: xgboost_files("model.json"), "xgboost"),
    Reader("xgboost-ubj", ".ubj", lambda: xgboost_files("model.ubj"), "xgboost"),
    Reader("lightgbm", ".txt", lightgbm_files, "lightgbm"),
    Reader("catboost-json", ".json", lambda: catboost_files("json"), "catboost"),
    Reader("catboost-cbm", ".cbm", lambda: catboost_files("cbm"), "catboost", weight=0.005),
    Reader("onnx", ".onnx", onnx_files, "skl2onnx"),
    Reader("pmml", ".pmml", pmml_files),
    Reader("treelite", ".tl", treelite_files, "treelite", weight=0.002),
)
