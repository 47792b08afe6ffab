"""Ordinary jobs as a newcomer has them: a default model of every kind on a mixed table, and the first answers.

    python benchmarks/newcomer.py                every job, each in a process of its own
    python benchmarks/newcomer.py --job NAME     one of them, here

The table has whole numbers with an empty cell, cents, a decimal, booleans, dates, words, categories and missing values,
as they come out of pandas. A job trains a model on the columns that its library takes, saves it, and starts a new
process that imports treefocus, explains three rows and prints the first sentence. Told of each: seconds from the import
to the first answer; whether the model's own predict flips on every answer; numbers with more digits than their column;
whole numbers that are not whole. A model that is refused is told with its reason.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N_ROWS, ASKED = 600, 3
SECONDS = 2.0  # asked for, from the import to the first answer
NUMBERS = ["age", "late_payments", "income", "rent", "years", "has_guarantor"]
Job = tuple[Any, pd.DataFrame]


def table() -> tuple[pd.DataFrame, pd.Series]:
    """Loan applications as a clerk's spreadsheet holds them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N_ROWS),
            "late_payments": rng.poisson(1.5, N_ROWS).astype(float),
            "income": rng.normal(3200, 900, N_ROWS).round(2).clip(600),
            "rent": rng.normal(900, 250, N_ROWS).round(2).clip(100),
            "years": rng.gamma(2, 3, N_ROWS).round(1),
            "has_guarantor": rng.random(N_ROWS) < 0.3,
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3600, N_ROWS), unit="D"),
            "job": rng.choice(["clerk", "nurse", "driver", "teacher"], N_ROWS),
            "housing": pd.Categorical(rng.choice(["own", "rent", "free"], N_ROWS)),
        }
    )
    score = frame["income"] / 800 - frame["rent"] / 500 + frame["years"] / 4 - frame["late_payments"]
    score += 2 * frame["has_guarantor"] + (frame["housing"] == "own") + rng.normal(0, 0.5, N_ROWS)
    frame.loc[5, "late_payments"] = np.nan  # one empty cell, and whole numbers are floats
    frame.loc[::40, "years"] = np.nan
    return frame, pd.Series(np.where(score > score.median(), "approved", "declined"), name="decision")


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of numbers; no value is missing."""
    return frame[NUMBERS].fillna(frame[NUMBERS].median())


def sklearn_model(make: Callable[[], Any], is_number: bool = False) -> Callable[[], Job]:
    """A model of scikit-learn on columns of numbers."""

    def job() -> Job:
        frame, y = table()
        data = numbers_of(frame)
        return make().fit(data, data["income"] * 0.3 if is_number else y), data

    return job


def forest(**options: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**{"random_state": 0} | options)


def of(module: str, name: str, *arguments: Any, **options: Any) -> Any:
    """A class by its name, so that every job imports only what it needs."""
    from importlib import import_module

    return getattr(import_module(module), name)(*arguments, **options)


def with_missing() -> Job:
    frame, y = table()
    return forest().fit(frame[NUMBERS], y), frame[NUMBERS]


def hist_with_categories() -> Job:
    frame, y = table()
    data = frame[[*NUMBERS, "housing"]]
    return of("sklearn.ensemble", "HistGradientBoostingClassifier", categorical_features="from_dtype").fit(
        data, y
    ), data


def xgboost_with_categories() -> Job:
    frame, y = table()
    data = frame[[*NUMBERS, "housing"]]
    model = of("xgboost", "XGBClassifier", enable_categorical=True)
    return model.fit(data, (y == "approved").astype(int)), data


def lightgbm_with_categories() -> Job:
    frame, y = table()
    data = frame[[*NUMBERS, "housing"]]
    return of("lightgbm", "LGBMClassifier", verbose=-1).fit(data, y), data


def catboost_with_categories() -> Job:
    frame, y = table()
    data = frame[[*NUMBERS, "job", "housing"]].astype({"housing": str})
    model = of(
        "catboost", "CatBoostClassifier", verbose=False, cat_features=["job", "housing"], allow_writing_files=False
    )
    return model.fit(data, y), data


def search(name: str, grid: str = "param_grid") -> Callable[[], Job]:
    def make() -> Any:
        if name.startswith("Halving"):
            from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        options = {grid: {"max_depth": [3, 5]}, "cv": 2}
        return of(
            "sklearn.model_selection",
            name,
            forest(n_estimators=50),
            **options | ({"n_iter": 2} if "Random" in name else {}),
        )

    return sklearn_model(make)


def calibrated(method: str, **options: Any) -> Callable[[], Job]:
    return sklearn_model(
        lambda: of("sklearn.calibration", "CalibratedClassifierCV", forest(n_estimators=50), method=method, **options)
    )


def voted(voting: str) -> Callable[[], Job]:
    def make() -> Any:
        models = [("rf", forest(n_estimators=30)), ("et", of("sklearn.ensemble", "ExtraTreesClassifier", 30))]
        return of("sklearn.ensemble", "VotingClassifier", models, voting=voting)

    return sklearn_model(make)


def many_outputs() -> Job:
    frame, y = table()
    data = numbers_of(frame)
    outputs = np.column_stack([y == "approved", data["income"] > 3000]).astype(int)
    model = of("sklearn.multioutput", "MultiOutputClassifier", forest(n_estimators=30)).fit(data, outputs)
    return model.estimators_[0], data


def pipeline(**steps: Any) -> Callable[[], Job]:
    """A forest behind encoders of words and categories, with one step for the numbers."""

    def job() -> Job:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        frame, y = table()
        data = frame[[*NUMBERS, "job", "housing"]]
        step = steps["numbers"]()
        encoder = steps["words"]() if "words" in steps else OneHotEncoder(handle_unknown="ignore")
        before = make_column_transformer(
            (make_pipeline(SimpleImputer(), step), NUMBERS[:-1]), (encoder, ["job", "housing"]), remainder="passthrough"
        )
        after = [steps["after"]()] if "after" in steps else []
        return make_pipeline(before, *after, forest(n_estimators=50)).fit(data, y), data

    return job


def step(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: of("sklearn.preprocessing", name, **options)


def dates() -> Job:
    frame, y = table()
    data = frame[["income", "since"]].copy()
    return of("sklearn.ensemble", "HistGradientBoostingClassifier").fit(
        data.assign(since=data["since"].astype("int64")), y
    ), data


def onnx_file() -> Job:
    from skl2onnx import to_onnx

    frame, y = table()
    data = numbers_of(frame).astype(np.float32)
    model = forest(n_estimators=50).fit(data.to_numpy(), y)
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    path.write_bytes(to_onnx(model, data.to_numpy()[:1], options={"zipmap": False}).SerializeToString())
    return path, data


def pmml_file() -> Job:
    """A forest as PMML, a node an element: what a converter would write."""
    frame, y = table()
    data = numbers_of(frame).astype(float)
    model = forest(n_estimators=20).fit(data, y)
    names, classes = list(data.columns), list(model.classes_)

    def node(tree: Any, k: int, predicate: str) -> str:
        shares = "".join(f'<ScoreDistribution value="{c}" recordCount="{n!r}"/>' for c, n in zip(
            classes, tree.value[k, 0].tolist(), strict=True))  # fmt: skip
        left, right = int(tree.children_left[k]), int(tree.children_right[k])
        if left < 0:
            return f'<Node score="{classes[int(tree.value[k, 0].argmax())]}">{predicate}{shares}</Node>'
        compare = (
            f'<SimplePredicate field="{names[tree.feature[k]]}" operator="{{}}" value="{float(tree.threshold[k])!r}"/>'
        )
        children = node(tree, left, compare.format("lessOrEqual")) + node(tree, right, compare.format("greaterThan"))
        return f"<Node>{predicate}{children}</Node>"

    fields = "".join(f'<DataField name="{name}" optype="continuous" dataType="float"/>' for name in names)
    values = "".join(f'<Value value="{c}"/>' for c in classes)
    fields += f'<DataField name="decision" optype="categorical" dataType="string">{values}</DataField>'
    mining = "".join(f'<MiningField name="{name}"/>' for name in names)
    mining = f'<MiningSchema>{mining}<MiningField name="decision" usageType="target"/></MiningSchema>'
    head = f'<Segment><True/><TreeModel functionName="classification">{mining}'
    trees = "".join(f"{head}{node(one.tree_, 0, '<True/>')}</TreeModel></Segment>" for one in model.estimators_)
    ensemble = f'<Segmentation multipleModelMethod="average">{trees}</Segmentation>'
    path = Path(tempfile.mkdtemp()) / "model.pmml"
    path.write_text(
        f'<PMML version="4.4"><DataDictionary>{fields}</DataDictionary><MiningModel functionName="classification">'
        f"{mining}{ensemble}</MiningModel></PMML>",
        encoding="utf-8",
    )
    return path, data


JOBS: dict[str, Callable[[], Job]] = {
    "RandomForest, missing values": with_missing,
    "ExtraTrees": sklearn_model(lambda: of("sklearn.ensemble", "ExtraTreesClassifier")),
    "GradientBoosting": sklearn_model(lambda: of("sklearn.ensemble", "GradientBoostingClassifier")),
    "HistGradientBoosting, categories": hist_with_categories,
    "AdaBoost": sklearn_model(lambda: of("sklearn.ensemble", "AdaBoostClassifier")),
    "XGBoost, categories": xgboost_with_categories,
    "LightGBM, categories": lightgbm_with_categories,
    "CatBoost, cat_features": catboost_with_categories,
    "GridSearchCV": search("GridSearchCV"),
    "RandomizedSearchCV": search("RandomizedSearchCV", "param_distributions"),
    "HalvingGridSearchCV": search("HalvingGridSearchCV"),
    "imbalanced-learn pipeline": sklearn_model(
        lambda: of("imblearn.pipeline", "make_pipeline", of("imblearn.under_sampling", "RandomUnderSampler"), forest())
    ),
    "FixedThresholdClassifier": sklearn_model(
        lambda: of("sklearn.model_selection", "FixedThresholdClassifier", forest(), threshold=0.6, pos_label="approved")
    ),
    "TunedThresholdClassifierCV": sklearn_model(
        lambda: of("sklearn.model_selection", "TunedThresholdClassifierCV", forest(n_estimators=50))
    ),
    "CalibratedClassifierCV, sigmoid": calibrated("sigmoid", ensemble=False),
    "CalibratedClassifierCV, isotonic": calibrated("isotonic", ensemble=False),
    "CalibratedClassifierCV, five folds": calibrated("sigmoid"),
    "VotingClassifier, soft": voted("soft"),
    "VotingClassifier, hard": voted("hard"),
    "OneVsRestClassifier": sklearn_model(
        lambda: of("sklearn.multiclass", "OneVsRestClassifier", forest(n_estimators=50))
    ),
    "TransformedTargetRegressor": sklearn_model(
        lambda: of(
            "sklearn.compose",
            "TransformedTargetRegressor",
            of("sklearn.ensemble", "GradientBoostingRegressor"),
            func=np.log1p,
            inverse_func=np.expm1,
        ),
        is_number=True,
    ),
    "MultiOutputClassifier, one output": many_outputs,
    "BalancedRandomForest": sklearn_model(lambda: of("imblearn.ensemble", "BalancedRandomForestClassifier")),
    "RUSBoost": sklearn_model(lambda: of("imblearn.ensemble", "RUSBoostClassifier")),
    "EasyEnsemble": sklearn_model(lambda: of("imblearn.ensemble", "EasyEnsembleClassifier")),
    "StackingClassifier": sklearn_model(
        lambda: of("sklearn.ensemble", "StackingClassifier", [("rf", forest(n_estimators=10))])
    ),
    "pipeline, scaler": pipeline(numbers=step("StandardScaler")),
    "pipeline, log1p": pipeline(numbers=step("FunctionTransformer", func=np.log1p)),
    "pipeline, bins": pipeline(numbers=step("KBinsDiscretizer", n_bins=8, encode="ordinal")),
    "pipeline, power": pipeline(numbers=step("PowerTransformer")),
    "pipeline, quantiles": pipeline(numbers=step("QuantileTransformer", n_quantiles=50)),
    "pipeline, robust": pipeline(numbers=step("RobustScaler")),
    "pipeline, target encoder": pipeline(numbers=step("MaxAbsScaler"), words=step("TargetEncoder", random_state=0)),
    "pipeline, selected": pipeline(
        numbers=step("StandardScaler"), after=lambda: of("sklearn.feature_selection", "SelectKBest", k=6)
    ),
    "pipeline, splines": pipeline(numbers=step("SplineTransformer")),
    "dates": dates,
    "ONNX": onnx_file,
    "PMML": pmml_file,
}


def decimals(values: pd.Series) -> int:
    """How many digits behind the point a column is written with; many where it is any number."""
    known = values.dropna()
    texts = (repr(float(value)) for value in known[:200])
    return max(
        (len(text.split(".")[1]) if not text.endswith(".0") and "e" not in text else 0 for text in texts), default=0
    )


def look(model_path: str, data_path: str) -> None:
    """What a newcomer does, in a process of its own: import, explain, read."""
    began = time.perf_counter()
    import treefocus

    import_seconds = time.perf_counter() - began
    data = pd.read_pickle(data_path)
    if model_path.endswith(".pickle"):
        model = pickle.loads(Path(model_path).read_bytes())
        began = time.perf_counter() - import_seconds  # reading somebody's pickle is not ours
    else:
        model = treefocus.load_model(model_path)
    explainer = treefocus.Explainer(model, data)
    target = None
    if explainer.forest.decision == "value":  # a number has no other one: say which
        target = treefocus.Interval(low=float(np.median(model.predict(data))) * 1.1)
    found = explainer.explain(data[:ASKED], target)
    seconds = time.perf_counter() - began
    told, wrong = found[0].to_text(), []
    predict = getattr(model, "predict", None)
    if predict is not None and target is None:
        rows, asked = found.counterfactuals[found.has_answer], data[:ASKED][found.has_answer]
        if "since" in data and getattr(model, "n_features_in_", 0) == len(data.columns) and not hasattr(model, "steps"):
            rows, asked = (own.assign(since=own["since"].astype("int64")) for own in (rows, asked))  # as it was trained
        same = np.asarray(predict(rows)).ravel() == np.asarray(predict(asked)).ravel()
        wrong += [f"{int(same.sum())} of {len(rows)} do not flip"] if same.any() else []
    for one in found:
        for change in one.changes:
            column, shown = data[change.feature], change.shown
            if isinstance(shown, bool | str) or shown is None or not pd.api.types.is_numeric_dtype(column):
                continue
            digits = decimals(column)
            if digits < 6 and round(float(shown), digits) != float(shown):
                wrong.append(f"{change.feature} {shown} has more digits than its column")
    print(f"{seconds:.2f}|{'; '.join(wrong) or 'ok'}|{[status.name for status in found.status]}|{told}")


def run(name: str) -> tuple[str, float]:
    """Train, and start the process that explains."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data = JOBS[name]()
        data_path = Path(folder) / "data.pickle"
        data.to_pickle(data_path)
        model_path = model
        if not isinstance(model, Path):
            model_path = Path(folder) / "model.pickle"
            model_path.write_bytes(pickle.dumps(model))
        command = [sys.executable, "-W", "ignore", __file__, "--look", str(model_path), str(data_path)]
        result = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if result.returncode:
        return f"REFUSED  {result.stderr.strip().splitlines()[-1][:300]}", 0.0
    seconds, verdict, statuses, told = result.stdout.strip().split("|", 3)
    slow = "" if float(seconds) < SECONDS else "  SLOW"
    return f"{seconds} s{slow}  {verdict}  {statuses}\n    {told}", float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", choices=list(JOBS))
    parser.add_argument("--look", nargs=2, metavar=("MODEL", "DATA"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.look:
        return look(*chosen.look)
    for name in [chosen.job] if chosen.job else JOBS:
        print(f"{name}: {run(name)[0]}", flush=True)


if __name__ == "__main__":
    main()
