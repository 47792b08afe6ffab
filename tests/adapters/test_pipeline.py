"""Pipelines: the forest in the raw columns says what the pipeline's own predict says, for every row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier

from treefocus import Explainer, InvalidInput, MayBeMissing, Status, UnsupportedModel
from treefocus.adapters import translate
from treefocus.adapters.pipeline import UNUSED
from treefocus.adapters.pipeline_probe import pull_back
from treefocus.kernels import reference
from treefocus.model.forest import LARGEST, Bools, Floats, Forest
from treefocus.model.grid import readable
from treefocus.tables.labels import Coding, is_null
from treefocus.tables.table import as_table

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")  # the encoders', which are asked about them

N_ROWS = 4000
NUMBERS = ["age", "income"]
HOUSING, JOBS = ["free", "own", "rent"], [1, 2, 3, 4, 5, 6]


def people(n_rows: int = 500, seed: int = 0, *, missing: float = 0.0) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Numbers, text, a category written as a number, and a name that no model should use."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n_rows).round(),
            "income": rng.lognormal(10, 1, n_rows),
            "housing": rng.choice(HOUSING, n_rows),
            "job": rng.choice(JOBS, n_rows, p=[0.35, 0.3, 0.2, 0.1, 0.03, 0.02]),
            "name": [f"person {i}" for i in range(n_rows)],
        }
    )
    score = (rows["age"] > 40) * 1.0 + (rows["housing"] == "own") + (rows["income"] > 2e4) + (rows["job"] % 2)
    answer = (score + rng.normal(0, 0.4, n_rows) > 2).to_numpy().astype(np.int64)
    if missing:
        for name in ("age", "income", "housing"):
            rows.loc[rng.random(n_rows) < missing, name] = np.nan
    return rows, answer


def nasty(pipeline: Pipeline, forest: Forest, rng: np.random.Generator, rows: pd.DataFrame) -> pd.DataFrame:
    """Raw rows on the thresholds and one float beside them, every category, unseen ones and missing values."""
    made: dict[str, Any] = {}
    nothing = np.full(forest.n_features, np.nan)
    takes = readable(nothing[None, :], forest)[0]
    for j, name in enumerate(rows.columns):
        own = None if forest.categories is None else forest.categories.labels[j]
        if own is None:
            cuts = np.unique(forest.threshold[(forest.feature == j) & (np.abs(forest.threshold) < 1e20)])
            cuts = np.concatenate([cuts, rows[name].dropna().to_numpy()[:50], [0.0, 1.0, 1e6]])
            base = rng.choice(cuts, N_ROWS)
            beside = [base, np.nextafter(base, np.inf), np.nextafter(base, -np.inf), base * rng.uniform(0.9, 1.1)]
            column: Any = np.choose(rng.integers(4, size=N_ROWS), beside)
            column = np.where((rng.random(N_ROWS) < 0.1) & takes[j], np.nan, column)
            if any(isinstance(s, PowerTransformer) and s.method == "box-cox" for s in steps_of(pipeline)):
                column = np.abs(column) + 1e-3
        elif own == UNUSED:
            column = [*rows[name].iloc[:1]] * N_ROWS
        else:
            assert forest.categories is not None
            refuses = forest.categories.refuses_unseen
            choices: list[Any] = [*own]
            if refuses is None or not refuses[j]:
                choices += ["castle"] if isinstance(own[0], str) else [max(own) + 7]
            if takes[j]:
                choices.append(np.nan)
            column = [choices[k] for k in rng.integers(len(choices), size=N_ROWS)]
        made[name] = column
    return pd.DataFrame(made)


def steps_of(step: Any) -> list[Any]:
    """Every transformer inside, however deep."""
    if isinstance(step, Pipeline):
        return [inner for _, own in step.steps for inner in steps_of(own)]
    if isinstance(step, ColumnTransformer):
        return [inner for _, own, _ in step.transformers_ for inner in steps_of(own)]
    return [step]


def check(pipeline: Pipeline, rows: pd.DataFrame, answer: Any, *, seed: int = 1) -> Forest:
    """Fit, translate, and compare on nasty rows: answers, and the last step's own probabilities."""
    pipeline.fit(rows, answer)
    source = translate(pipeline)
    forest = source.forest
    asked = pd.concat([rows, nasty(pipeline, forest, np.random.default_rng(seed), rows)], ignore_index=True)
    asked = asked.astype(dict.fromkeys(NUMBERS, "float64"))
    table = as_table(asked, "X", Coding.of(forest))
    assert readable(table.values, forest).all()
    own = pipeline.predict(asked)
    ours = forest.classes[reference.predict(forest, table.values)]
    assert (ours == own).all(), f"{(ours != own).sum()} rows differ"
    assert source.predict is not None
    assert (source.predict(table.values) == own).all()
    if forest.decision == "argmax":
        scores = reference.hard_scores(forest, table.values)
        np.testing.assert_allclose(scores, pipeline.predict_proba(asked), atol=1e-12)
    return forest


def forest_of(n_trees: int = 6) -> RandomForestClassifier:
    return RandomForestClassifier(n_trees, max_depth=6, random_state=0)


SCALERS = {
    "standard": StandardScaler(),
    "min-max": MinMaxScaler((-1, 3)),
    "min-max clipped": MinMaxScaler(clip=True),
    "robust": RobustScaler(),
    "max-abs": MaxAbsScaler(),
    "yeo-johnson": PowerTransformer(),
    "yeo-johnson as it is": PowerTransformer(standardize=False),
    "box-cox": PowerTransformer("box-cox"),
    "quantile": QuantileTransformer(n_quantiles=50),
    "quantile normal": QuantileTransformer(n_quantiles=50, output_distribution="normal"),
    "two": make_pipeline(MinMaxScaler(), StandardScaler()),
    "identity": FunctionTransformer(),
    "a function of NumPy's": FunctionTransformer(np.arcsinh),
    "a function of one's own": FunctionTransformer(lambda x: np.cbrt(x) * 2 + 1),
    "a function that falls": FunctionTransformer(np.negative),
    "a function that falls, scaled": make_pipeline(FunctionTransformer(lambda x: 100.0 - x), StandardScaler()),
    "a function that falls twice": make_pipeline(
        FunctionTransformer(np.negative), FunctionTransformer(lambda x: 3 - x)
    ),
    "a function that falls for some": FunctionTransformer(lambda x: np.asarray(x) * np.array([1.0, -1.0])),
    "bins": KBinsDiscretizer(7, encode="ordinal", strategy="uniform"),
    "binary": Binarizer(threshold=25.0),
}


@pytest.mark.parametrize("scaler", SCALERS.values(), ids=SCALERS.keys())
def test_scalers(scaler: Any) -> None:
    rows, answer = people()
    rows["age"] = rows["age"].abs() + 1.0
    pre = ColumnTransformer([("scaled", scaler, NUMBERS), ("coded", OneHotEncoder(), ["housing"])])
    forest = check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)
    assert forest.input_dtype == "float64"
    assert forest.feature_names == tuple(rows.columns)


IMPUTERS = {
    "mean": SimpleImputer(),
    "median, told apart": SimpleImputer(strategy="median", add_indicator=True),
    "most frequent": SimpleImputer(strategy="most_frequent"),
    "constant": SimpleImputer(strategy="constant", fill_value=-5.0),
    "scaled": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    "scaled before": make_pipeline(StandardScaler(), SimpleImputer()),
    "union": FeatureUnion([("fill", SimpleImputer()), ("hole", MissingIndicator(features="all"))]),
    "none, the model takes it": "passthrough",
}


@pytest.mark.parametrize("imputer", IMPUTERS.values(), ids=IMPUTERS.keys())
def test_missing_numbers_go_where_their_replacement_goes(imputer: Any) -> None:
    rows, answer = people(missing=0.15)
    pre = ColumnTransformer([("filled", imputer, NUMBERS), ("coded", OneHotEncoder(), ["housing"])])
    forest = check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)
    assert forest.takes_missing


ENCODERS: dict[str, Any] = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "one-hot, strict": OneHotEncoder(),
    "one-hot, dense": OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    "one-hot, first dropped": OneHotEncoder(drop="first", handle_unknown="ignore"),
    "one-hot, binary": OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    "one-hot, infrequent": OneHotEncoder(min_frequency=0.05, handle_unknown="infrequent_if_exist"),
    "one-hot, at most two": OneHotEncoder(max_categories=2, handle_unknown="ignore"),
    "ordinal": OrdinalEncoder(),
    "ordinal, unknown": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "ordinal, holes": OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=-2
    ),
    "ordinal, infrequent": OrdinalEncoder(min_frequency=40, handle_unknown="use_encoded_value", unknown_value=99),
    "target": TargetEncoder(),
    "scaled": make_pipeline(OneHotEncoder(sparse_output=False, handle_unknown="ignore"), StandardScaler()),
    "filled": make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore")
    ),
    "filled by the usual": make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()),
}


@pytest.mark.parametrize("name", ENCODERS.keys())
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_encoders(name: str, missing: float) -> None:
    rows, answer = people(missing=missing)
    columns = ["housing"] if name == "filled" else ["housing", "job"]
    pre = ColumnTransformer([("coded", ENCODERS[name], columns), ("numbers", SimpleImputer(), NUMBERS)])
    forest = check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)
    assert forest.categories is not None
    housing = forest.categories.labels[2]
    assert housing is not None
    assert set(housing) >= set(HOUSING)
    if name in ("one-hot, strict", "ordinal"):
        assert forest.categories.refuses_unseen is not None
        assert forest.categories.refuses_unseen[2]


def test_an_encoder_of_several_classes_makes_several_features() -> None:
    rows, _ = people()
    answer = np.random.default_rng(0).integers(3, size=len(rows)) + (rows["housing"] == "own") * 2
    pre = ColumnTransformer([("coded", TargetEncoder(), ["housing", "job"])], remainder="drop")
    check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)


SELECTIONS: dict[str, Any] = {
    "names": NUMBERS,
    "numbers": [0, 1],
    "from behind": [-5, -4],
    "mask": [True, True, False, False, False],
    "slice of names": slice("age", "income"),
    "slice": slice(0, 2),
    "selector": make_column_selector(pattern="age|income"),
    "function": lambda frame: ["income", "age"],
}


@pytest.mark.parametrize("columns", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_columns_are_selected_in_every_way(columns: Any) -> None:
    rows, answer = people()
    pre = ColumnTransformer([("scaled", StandardScaler(), columns), ("coded", OneHotEncoder(), ["housing"])])
    check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)


def test_one_column_by_its_bare_name_and_an_empty_selection() -> None:
    rows, answer = people()
    pre = ColumnTransformer(
        [("none", StandardScaler(), []), ("age", "passthrough", ["age"]), ("gone", "drop", ["job"])]
    )
    check(Pipeline([("pre", pre), ("model", forest_of())]), rows, answer)


@pytest.mark.parametrize("remainder", ["passthrough", "drop", MinMaxScaler()], ids=str)
def test_the_remainder(remainder: Any) -> None:
    rows, answer = people()
    rows = rows.drop(columns="name")
    pre = make_column_transformer((OneHotEncoder(), ["housing"]), (StandardScaler(), ["age"]), remainder=remainder)
    check(make_pipeline(pre, forest_of()), rows, answer)


def test_nested_and_repeated_columns() -> None:
    rows, answer = people(missing=0.1)
    inner = ColumnTransformer([("a", RobustScaler(), [0]), ("b", "passthrough", [1, 0])])
    numbers = make_pipeline(SimpleImputer(), inner, make_union(StandardScaler(), QuantileTransformer(n_quantiles=20)))
    pre = ColumnTransformer(
        [
            ("numbers", numbers, NUMBERS),
            ("again", SimpleImputer(strategy="constant", fill_value=1e4), ["income"]),
            ("one-hot", OneHotEncoder(handle_unknown="ignore"), ["housing", "job"]),
            ("ordinal", OrdinalEncoder(), ["job"]),
        ]
    )
    chosen = Pipeline(
        [("pre", pre), ("varied", VarianceThreshold()), ("best", SelectKBest(k=9)), ("model", forest_of())]
    )
    forest = check(chosen, rows, answer)
    assert len(np.unique(forest.feature)) <= 5


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=5, random_state=0),
        ExtraTreesClassifier(10, max_depth=6, random_state=0),
        GradientBoostingClassifier(n_estimators=15, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_ends_a_pipeline(model: Any) -> None:
    rows, answer = people(missing=0.1)
    pre = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            ("coded", OneHotEncoder(handle_unknown="ignore"), ["housing", "job"]),
        ]
    )
    check(Pipeline([("pre", pre), ("model", model)]), rows, answer)


def test_a_pipeline_of_matrices() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    answer = (rows[:, 0] + rows[:, 2] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), forest_of()).fit(rows, answer)
    forest = translate(pipeline).forest
    assert forest.feature_names is None
    cuts = np.concatenate([forest.threshold[forest.feature == 0], forest.threshold[forest.feature == 2]])
    asked = rng.choice(cuts, (N_ROWS, 3))
    asked = np.where(rng.random(asked.shape) < 0.5, asked, np.nextafter(asked, np.inf))
    assert (reference.predict(forest, asked) == pipeline.predict(asked)).all()
    text = np.array([["a", 1.0], ["b", 2.0], ["a", 3.0], ["c", 4.0]] * 10, object)
    pre = ColumnTransformer([("coded", OneHotEncoder(), [0])], remainder=StandardScaler())
    pipeline = make_pipeline(pre, DecisionTreeClassifier()).fit(text, [0, 1, 1, 0] * 10)
    forest = translate(pipeline).forest
    table = as_table(text, "X", Coding.of(forest))
    assert (reference.predict(forest, table.values) == pipeline.predict(text)).all()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "mixing": (lambda: PCA(2), r"^The pipeline's step 'odd' is a PCA, which cannot be taken apart.*pipeline\[-1\]"),
    "neighbours": (lambda: make_pipeline(KNNImputer()), r"step 'odd: knnimputer' is a KNNImputer"),
    "a function that turns": (
        lambda: FunctionTransformer(np.square),
        r"'odd' is a Func.* neither grows nor falls with its number",
    ),
    "a function of rows": (lambda: FunctionTransformer(lambda x: x - x.mean(axis=0)), r"mixes columns, or rows"),
    "a function of columns": (lambda: FunctionTransformer(lambda x: np.cumsum(x, axis=1)), r"mixes columns, or rows"),
    "a function that adds": (lambda: FunctionTransformer(lambda x: np.hstack([x, x])), r"makes \(4,\) of 2 columns"),
    "a column a bin": (lambda: KBinsDiscretizer(3, strategy="uniform"), r"use KBinsDiscretizer\(encode='ordinal'\)"),
    "splines": (lambda: SplineTransformer(), r"is a SplineTransformer, which cannot be taken apart.*Z\.toarray\(\)"),
    "a number for nothing": (
        lambda: SimpleImputer(missing_values=0.0),
        r"'odd' takes the number 0.0 for a missing value",
    ),
    "coding what was scaled": (
        lambda: make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore")),
        r"'odd: onehotencoder' \(OneHotEncoder\) encodes numbers that a step before it has changed",
    ),
    "both": (
        lambda: make_union(StandardScaler(), OrdinalEncoder()),
        r"uses column age both as a category and as a number",
    ),
}


@pytest.mark.parametrize(("step", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_step_that_cannot_be_taken_apart_is_named(step: Callable[[], Any], text: str) -> None:
    rows, answer = people()
    pipeline = Pipeline([("odd", step()), ("model", forest_of())]).fit(rows[NUMBERS], answer)
    with pytest.raises(UnsupportedModel, match=text):
        translate(pipeline)


def test_a_pipeline_must_be_fitted_and_end_in_a_known_model() -> None:
    with pytest.raises(InvalidInput, match=r"^The Pipeline is not fitted: call its fit first\.$"):
        translate(make_pipeline(StandardScaler(), forest_of()))
    rows, answer = people()
    with pytest.raises(UnsupportedModel, match="PCA"):
        translate(make_pipeline(StandardScaler(), PCA()).fit(rows[NUMBERS], answer))


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("scaler", [StandardScaler(), PowerTransformer(), PowerTransformer("box-cox")], ids=str)
def test_what_a_step_makes_too_large_is_not_read(scaler: Any) -> None:
    rows, answer = people()
    frame = rows[NUMBERS].abs() + 1e-3
    frame["age"] = 1.0 + 1e-4 * frame["age"]  # so narrow that powers of it explode
    pipeline = make_pipeline(scaler, GradientBoostingClassifier(n_estimators=3)).fit(frame, answer)
    forest = translate(pipeline).forest
    assert forest.reads is not None
    pipeline.predict(pd.DataFrame(forest.reads, columns=NUMBERS))  # does not complain
    inside = np.array([[1.001, 20.0]])
    for side in np.flatnonzero(np.abs(forest.reads[:, 0]) < LARGEST):
        beyond = inside.copy()
        beyond[0, 0] = [-1.01, 1.01][side] * max(abs(forest.reads[side, 0]), 1.0)
        assert readable(beyond, forest).tolist() == [[False, True]]
        with pytest.raises(ValueError, match=r"infinity|positive"):
            pipeline.predict(pd.DataFrame(beyond, columns=NUMBERS))


def test_only_columns_that_are_read_without_a_value_may_become_missing() -> None:
    rows, answer = people()
    frame = rows[NUMBERS]
    half = make_column_transformer((SimpleImputer(), NUMBERS[:1]), remainder="passthrough")
    pipeline = make_pipeline(half, GradientBoostingClassifier(n_estimators=5)).fit(frame.fillna(0.0), answer)
    frame = frame.fillna(0.0)
    found = Explainer(pipeline, frame, constraints=[MayBeMissing(NUMBERS[0])]).explain(frame[:3])
    assert found.has_answer.all()
    with pytest.raises(InvalidInput, match=f"^'{NUMBERS[1]}' may not become missing: the Pipeline of Gradient"):
        Explainer(pipeline, frame, constraints=[MayBeMissing(NUMBERS[1])]).explain(frame[:3])


def test_a_cut_is_pulled_back_to_the_last_float_that_goes_left() -> None:
    cuts = np.array([0.0, -0.0, 1.0, -1e-300, 5e-324, 1e200, -1e200, np.pi, -3.0])

    def below(values: Floats, which: NDArray[np.intp]) -> Bools:
        return np.asarray(values <= cuts[which])

    wide = np.full(len(cuts), 1e300)
    np.testing.assert_array_equal(pull_back(below, -wide, wide), cuts)
    rng = np.random.default_rng(0)
    for guess in (cuts, -cuts, cuts * (1 + 1e-9), cuts + rng.normal(size=len(cuts)), np.full(len(cuts), np.nan), wide):
        np.testing.assert_array_equal(pull_back(below, -wide, wide, guess), cuts)
    assert pull_back(lambda v, _: v <= np.inf, np.array([-1.0]), np.array([1.0])) == LARGEST
    assert pull_back(lambda v, _: v < -np.inf, np.array([-1.0]), np.array([1.0])) == -LARGEST


def test_what_is_missing_is_known_by_every_library() -> None:
    assert [is_null(value) for value in (None, np.nan, pd.NA, pd.NaT, "", 0, "nan", [1])] == [True] * 4 + [False] * 4


def test_a_refusal_names_what_works() -> None:
    rows, answer = people()
    before = ColumnTransformer(
        [("curves", SplineTransformer(), NUMBERS), ("words", OneHotEncoder(), ["housing"])], sparse_threshold=1.0
    )
    pipeline = Pipeline([("before", before), ("model", forest_of())]).fit(rows, answer)
    with pytest.raises(UnsupportedModel, match=r"Z = pipeline\[:-1\]\.transform\(X\).*Z\.toarray\(\) if it is sparse"):
        translate(pipeline)
    transformed = pipeline[:-1].transform(rows).toarray()
    assert Explainer(pipeline[-1], transformed).explain(transformed[:2]).has_answer.all()


def test_a_pipeline_is_taken_apart_once_and_again_after_another_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, answer = people()
    pipeline = make_pipeline(StandardScaler(), forest_of()).fit(rows[NUMBERS], answer)
    first = translate(pipeline).forest
    assert translate(pipeline).forest is first
    pipeline.fit(rows[NUMBERS] * 2.0, answer)
    again = translate(pipeline).forest
    assert again is not first
    check(make_pipeline(StandardScaler(), forest_of()), rows[NUMBERS] * 2.0, answer)
    pipeline[0].mean_ = pipeline[0].mean_ + 1.0
    assert translate(pipeline).forest is not again


def test_functions_of_numbers_that_exist_for_some_only() -> None:
    """A logarithm has no number below 0: the pipeline does not read it, and no answer goes there."""
    rows, answer = people()
    rows = rows.assign(age=rows["age"].abs() + 1)
    pipeline = make_pipeline(FunctionTransformer(np.log), forest_of()).fit(rows[NUMBERS], answer)
    forest = translate(pipeline).forest
    assert forest.reads is not None
    assert (forest.reads[0] > 0).all()
    found = Explainer(pipeline, rows[NUMBERS], bounds=(-1e6, 1e6)).explain(rows[NUMBERS][:5])
    assert found.has_answer.all()
    assert (np.asarray(found.counterfactuals) > 0).all()


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        ([FunctionTransformer(lambda x: np.log(np.asarray(x) - 1))], (1.0, np.inf)),
        ([FunctionTransformer(lambda x: np.log(np.asarray(x) - 1)), StandardScaler()], (1.0, np.inf)),
        ([FunctionTransformer(lambda x: np.sqrt(np.asarray(x) - 3500))], (3500.0, np.inf)),
        ([FunctionTransformer(lambda x: -np.sqrt(-10 - np.asarray(x)))], (-np.inf, -10.0)),
        ([FunctionTransformer(lambda x: np.log(np.asarray(x) / (1 - np.asarray(x))))], (0.0, 1.0)),
    ],
    ids=["log(x - 1)", "log(x - 1), scaled", "far up", "below 0", "logit"],
)
def test_functions_that_make_nothing_of_one(steps: list[Any], ends: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    low, high = (-20.0 if ends[0] == -np.inf else ends[0]), (ends[0] + 50 if ends[1] == np.inf else ends[1])
    rows = pd.DataFrame(rng.uniform(low + 0.01 * (high - low), high - 0.01 * (high - low), (300, 2)), columns=NUMBERS)
    answer = (rows.sum(axis=1) > rows.sum(axis=1).mean()).to_numpy().astype(int)
    pipeline = make_pipeline(*steps, forest_of()).fit(rows, answer)
    forest = translate(pipeline).forest
    assert forest.reads is not None
    assert (forest.reads[0] >= ends[0]).all()
    assert (forest.reads[1] <= ends[1]).all()
    spread = pd.DataFrame(rng.uniform(rows.min(), rows.max(), (N_ROWS, 2)), columns=NUMBERS)
    assert readable(spread.to_numpy(), forest).all()
    assert (reference.predict(forest, spread.to_numpy()) == pipeline.predict(spread)).all()
    found = Explainer(pipeline, rows, bounds=(-1e9, 1e9)).explain(rows[:5])
    assert (found.status == Status.OPTIMAL).all()
    assert (pipeline.predict(found.counterfactuals) != pipeline.predict(rows[:5])).all()
