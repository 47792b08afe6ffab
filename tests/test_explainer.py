"""The explainer: good rows get answers that the model itself confirms, bad ones a status or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import treefocus
from support.questions import FAST, random_question, stump
from treefocus import Auto, Explainer, Feature, Fixed, Focus, InvalidInput, Schema, Status, UnsupportedModel
from treefocus.model.forest import Floats

DATA = np.array([[0.0, 0.0], [1.0, 5.0], [0.4, 2.0]])
NAMED = pd.DataFrame(DATA, columns=["age", "income"])


def named_stump(**changes: Any) -> Any:
    return stump(feature_names=("age", "income"), **changes)


# The model's own word

LOADERS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
MODELS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(12, max_depth=4, random_state=0),
    "extra trees": ExtraTreesClassifier(12, max_depth=4, random_state=0),
    "boosted": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0),
}


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "cosine", "mahalanobis"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("data", LOADERS)
def test_every_answer_flips_the_model_itself(data: str, model: str, distance: str) -> None:
    X, y = LOADERS[data](return_X_y=True, as_frame=True)
    X = X.iloc[:, :8]
    fitted = MODELS[model].fit(X, y)
    asked = X.iloc[:: len(X) // 12]
    # Whether answers flip is asked here, not whether they are proven: a part of the default work will do.
    found = Explainer(fitted, X, distance=distance).explain(asked, strategy=Auto(work_limit=20_000_000))
    assert found.has_answer.all(), found.summary()
    after = fitted.predict(found.counterfactuals)
    np.testing.assert_array_equal(found.predicted, fitted.predict(asked))
    np.testing.assert_array_equal(found.outcome, after)
    assert (after != found.predicted).all()


@pytest.mark.parametrize("model", MODELS)
def test_every_answer_has_the_target_it_was_asked_for(model: str) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    fitted = MODELS[model].fit(X, names[y])
    found = Explainer(fitted, X).explain(X[::20], target="virginica")
    assert found.has_answer.all()
    assert (fitted.predict(found.counterfactuals) == "virginica").all()
    already = fitted.predict(X[::20]) == "virginica"
    assert already.any()
    assert (found.distance[already] == 0).all()
    assert all(status is Status.OPTIMAL for status in found.status[already])
    assert (found.distance[~already] > 0).all()


class Liar(DecisionTreeClassifier):
    """A model whose own predict disagrees with its tree, once it `lies`."""

    lies = False

    def predict(self, X: Any, check_input: bool = True) -> Any:
        return np.full(len(X), self.classes_[0]) if self.lies else super().predict(X)


def test_an_answer_that_the_model_does_not_confirm_is_not_returned() -> None:
    model = Liar(max_depth=1).fit(DATA, ["no", "yes", "no"])
    explainer = Explainer(model, DATA)
    model.lies = True
    found = explainer.explain(DATA)
    assert found.outcome.tolist() == [None, "no", None]
    assert found.status[0] is Status.NOT_FOUND
    assert np.isnan(found.counterfactuals[0]).all()
    assert found.lower_bound[0] == 0.0
    assert "the model itself does not confirm it" in found[0].reason


# The same types come back


@pytest.fixture(scope="module")
def typed() -> pd.DataFrame:
    """Columns of several dtypes; the class hangs on all of them."""
    rng = np.random.default_rng(0)
    n_rows = 200
    return pd.DataFrame(
        {
            "years": rng.integers(0, 40, n_rows),
            "rooms": rng.integers(1, 6, n_rows).astype(np.int8),
            "owner": rng.random(n_rows) < 0.5,
            "income": rng.uniform(0, 1e5, n_rows),
            "share": rng.random(n_rows).astype(np.float32),
        }
    )


@pytest.fixture(scope="module")
def typed_model(typed: pd.DataFrame) -> Any:
    score = typed["years"] / 40 + typed["rooms"] / 5 + typed["owner"] + typed["income"] / 1e5 + typed["share"]
    return RandomForestClassifier(20, max_depth=5, random_state=0).fit(typed, score > score.median())


def test_pandas_keeps_index_names_and_dtypes(typed: pd.DataFrame, typed_model: Any) -> None:
    asked = typed.iloc[:20].set_axis([f"row {i}" for i in range(20)])
    found = Explainer(typed_model, typed).explain(asked)
    answers = found.counterfactuals
    assert isinstance(answers, pd.DataFrame)
    assert answers.index.equals(asked.index)
    assert answers.dtypes.equals(asked.dtypes)
    assert (typed_model.predict(answers) != typed_model.predict(asked)).all()
    assert (answers["years"] != asked["years"]).any()
    assert found[3].label == "row 3"


def test_polars_keeps_names_and_dtypes(typed: pd.DataFrame, typed_model: Any) -> None:
    asked = pl.DataFrame({name: typed[name].to_numpy()[:20] for name in typed.columns})
    found = Explainer(typed_model, typed).explain(asked)
    answers = found.counterfactuals
    assert isinstance(answers, pl.DataFrame)
    assert answers.schema == asked.schema
    again = pd.DataFrame({name: answers[name].to_numpy() for name in answers.columns})
    assert (typed_model.predict(again) != typed_model.predict(typed.iloc[:20])).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
def test_numpy_keeps_its_dtype_and_the_flip(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 50, (150, 4)).astype(dtype)
    y = X.sum(axis=1) > 100
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, y)
    answers = Explainer(model, X).explain(X[:20]).counterfactuals
    assert isinstance(answers, np.ndarray)
    assert answers.dtype == dtype
    assert (model.predict(answers) != model.predict(X[:20])).all()


def test_rows_in_other_types_get_the_same_answers(typed: pd.DataFrame, typed_model: Any) -> None:
    explainer = Explainer(typed_model, typed)
    asked = typed.iloc[:10].astype({"share": np.float64})
    reference = explainer.explain(asked).points
    as_floats = asked.astype(float)
    for rows in (
        as_floats,
        pl.DataFrame(as_floats.to_dict("list")),
        as_floats.to_numpy(),
        as_floats.to_numpy().tolist(),
    ):
        np.testing.assert_array_equal(explainer.explain(rows).points, reference)


@pytest.mark.parametrize(
    ("dtype", "threshold", "value"), [(np.uint8, -0.5, 3), (np.int8, 127.5, 3), (np.bool_, 1.5, 1)]
)
def test_an_answer_that_the_column_cannot_hold_is_none(dtype: Any, threshold: float, value: int) -> None:
    rows = np.full((1, 2), value, dtype)
    scale = 2 * abs(threshold - value)  # near enough to be found
    found = Explainer(stump(threshold), scale=scale, bounds=(-1e5, 1e5)).explain(rows)
    assert not found.has_answer.any(), found.counterfactuals
    schema = Schema([Feature(name, low=-1e5, high=1e5) for name in ("x0", "x1")])  # a domain does not widen the column
    found = Explainer(stump(threshold), scale=scale, schema=schema).explain(rows)
    assert not found.has_answer.any(), found.counterfactuals


def test_half_floats_flip_too() -> None:
    model = DecisionTreeClassifier(max_depth=1).fit([[0.1], [0.10001]], [0, 1])
    rows = np.array([[0.09]], np.float16)
    found = Explainer(model, scale=None, bounds=(0, 1)).explain(rows)
    assert model.predict(found.counterfactuals).tolist() == [1]


# Rows the model cannot read, and other lone rows: nothing else in the batch is lost


@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (1e300, "1e+300"), (4e38, "4e+38")]
)
def test_a_row_the_model_cannot_read_is_a_status(value: float, shown: str) -> None:
    rows = np.array([[0.2, 1.0], [0.2, value], [0.9, 1.0]])
    explainer = Explainer(named_stump(input_dtype="float32"), NAMED)
    found = explainer.explain(rows)
    assert found.status[1] is Status.INVALID
    assert found.has_answer.tolist() == [True, False, True]
    assert found.predicted.tolist() == ["no", None, "yes"]
    assert found[1].reason == f"the model cannot read income = {shown}"
    assert found[1].to_text() == f"Row 1 gets no prediction: the model cannot read income = {shown}."
    np.testing.assert_array_equal(found.points[[0, 2]], explainer.explain(rows[[0, 2]]).points)


def test_a_model_that_takes_missing_values_takes_no_infinite_ones() -> None:
    found = Explainer(named_stump(takes_missing=True), NAMED).explain([[0.2, np.nan], [0.2, np.inf], [np.nan, np.nan]])
    assert found.status[1] is Status.INVALID
    assert found.status[0].has_answer
    assert found[2].counterfactual is not None  # what is missing may become known
    fixed = Explainer(named_stump(takes_missing=True), NAMED, constraints=[Fixed("age", "income")])
    assert fixed.explain([[np.nan, np.nan]]).status[0] is Status.INFEASIBLE


def test_huge_values_that_the_model_can_read_are_fine() -> None:
    rows = np.array([[1e300, -1e300], [-1e300, 1e300]])
    found = Explainer(stump(), DATA).explain(rows)
    assert found.predicted.tolist() == ["yes", "no"]
    assert set(found.status) <= {Status.OPTIMAL, Status.BOUNDED, Status.FOUND, Status.NOT_FOUND}
    big = np.array([[1e30, 0.0], [3e30, 1.0], [2e30, 3.0]])
    again = Explainer(stump(1.5e30, input_dtype="float32"), big).explain(big)
    assert again.has_answer.all()


@pytest.mark.parametrize("rows", [DATA[:0], NAMED[:0], pl.DataFrame(NAMED.to_dict("list"))[:0]])
def test_no_rows_give_no_explanations(rows: Any) -> None:
    found = Explainer(named_stump(), NAMED).explain(rows)
    assert len(found) == 0
    assert list(found) == []
    assert type(found.counterfactuals) is type(rows)
    assert found.counterfactuals.shape == (0, 2)
    assert found.to_text() == ""
    assert len(found.to_frame()) == 0
    assert repr(found) == "Explanations(0 rows)"


def test_one_row_is_a_batch_of_one() -> None:
    found = Explainer(named_stump(), NAMED).explain(NAMED[:1])
    assert len(found) == 1
    assert found[0].predicted == "no"
    assert found[0].outcome == "yes"


def test_a_constant_feature_is_left_alone() -> None:
    rows = np.column_stack([np.linspace(0, 1, 30), np.full(30, 7.0)])
    model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(rows, rows[:, 0] > 0.5)
    for distance in ("euclidean", "mahalanobis", "cosine"):
        found = Explainer(model, rows, distance=distance).explain(rows[::3])
        assert found.has_answer.all()
        assert (found.points[:, 1] == 7.0).all()


def test_a_model_that_always_says_the_same_is_a_status() -> None:
    forest = stump(leaf_value=[[1.0, 0.0]] * 2)
    found = Explainer(forest, DATA).explain(DATA)
    assert found.status.tolist() == [Status.INFEASIBLE] * 3
    assert found.lower_bound.tolist() == [np.inf] * 3
    assert np.isnan(found.distance).all()
    assert found[0].reason == Status.INFEASIBLE.value
    assert found[0].to_text() == "Row 0 is predicted 'no'. No change that is allowed leads to the wanted answer."
    assert "ruled out" in found[0].to_text(proof=True)


def test_a_model_of_one_class_is_a_status() -> None:
    model = DecisionTreeClassifier().fit(DATA, [1, 1, 1])
    assert Explainer(model, DATA).explain(DATA).status.tolist() == [Status.INFEASIBLE] * 3


def test_bounds_that_exclude_the_row_let_it_stay_or_come_in() -> None:
    explainer = Explainer(stump(), DATA, bounds=(0.0, 1.0))
    found = explainer.explain([[-3.0, 4.0], [0.2, -2.0], [7.0, 0.5]])
    assert found.has_answer.all()
    assert (found.points[:2, 0] > 0.5).all()
    assert (found.points[:, 0] <= 1.0).all()
    assert 0.0 <= found.points[2, 0] <= 0.5
    assert 0.0 <= found.points[0, 1] <= 4.0
    assert -2.0 <= found.points[1, 1] <= 1.0


def test_an_all_missing_row_of_data_is_no_trouble() -> None:
    holes = np.array([[0.0, np.nan], [np.nan, 5.0], [1.0, np.nan], [np.nan, 0.0]])
    explainer = Explainer(stump(takes_missing=True), holes)
    np.testing.assert_array_equal(explainer.space.high, [1.0, 5.0])
    assert explainer.explain(DATA).has_answer.all()


# Misuse

MISUSE: dict[str, tuple[Any, str]] = {
    "too few columns": (lambda e: e.explain(DATA[:, :1]), r"^X must be 2 columns wide, got 1\.$"),
    "too many columns": (lambda e: e.explain(np.zeros((1, 3))), r"^X must be 2 columns wide, got 3\.$"),
    "a missing column": (lambda e: e.explain(NAMED[["age"]]), r"^X must have the columns .*: income missing\.$"),
    "an unknown column": (lambda e: e.explain(NAMED.assign(z=1)), r"^X must have the columns .*: z unknown\.$"),
    "another column": (
        lambda e: e.explain(NAMED.rename(columns={"age": "Age"})),
        r"^X must have the columns the model was trained on: Age unknown; age missing\.$",
    ),
    "one row of one dimension": (lambda e: e.explain(DATA[0]), r"^X must be two-dimensional, .*reshape\(1, -1\)"),
    "text": (lambda e: e.explain(NAMED.assign(age="old")), r"^X: column 'age' must be numeric, got dtype String\.$"),
    "no table": (lambda e: e.explain(None), r"^X must be two-dimensional"),
    "doubled names": (
        lambda e: e.explain(pd.DataFrame(DATA, columns=["age", "age"])),
        r"^X.*\bage\b",
    ),
    "an unknown target": (
        lambda e: e.explain(DATA, target="maybe"),
        r"^target must be one of 'no', 'yes', got 'maybe'",
    ),
    "too few targets": (lambda e: e.explain(DATA, target=["no"] * 2), r"^target must be one class, or one a row \(3\)"),
    "an unknown strategy": (lambda e: e.explain(DATA, strategy="best"), r"^strategy must be one of auto, .*got 'best'"),
    "no strategy": (lambda e: e.explain(DATA, strategy=None), r"^strategy must be one of auto, .*got None"),
    "no time": (
        lambda e: e.explain(DATA, time_limit=0),
        r"^time_limit must be a number of seconds above 0, or None, got 0",
    ),
    "no number": (lambda e: e.explain(DATA, time_limit="1"), r"^time_limit must be a number of seconds above 0"),
    "NaN seconds": (lambda e: e.explain(DATA, time_limit=np.nan), r"^time_limit must be a number of seconds above 0"),
    "no threads": (lambda e: e.explain(DATA, n_jobs=0), r"^n_jobs must be None, -1 or .*at least 1, got 0\.$"),
    "half a thread": (lambda e: e.explain(DATA, n_jobs=1.5), r"^n_jobs must be .*, got 1\.5\.$"),
    "bad sigma": (lambda e: e.explain(DATA, strategy=Focus(sigma=0)), r"^Focus\.sigma must be a finite number above 0"),
    "data of other width": (lambda e: Explainer(stump(), np.zeros((2, 3))), r"^data must be 2 columns wide, got 3\.$"),
    "no data": (lambda e: Explainer(stump(), DATA[:0]), r"^data must be a table with at least one number in every"),
    "a column without data": (
        lambda e: Explainer(named_stump(), NAMED.assign(income=np.nan)),
        r"^data must be a table with at least one number in every column, got none in income: .* and bounds=\.$",
    ),
    "no data for the scale": (lambda e: Explainer(stump()), r"^scale='range' needs data="),
    "no data for the covariance": (
        lambda e: Explainer(stump(), distance="mahalanobis", scale=None),
        r"^Mahalanobis needs data= for its covariance",
    ),
    "an unknown distance": (lambda e: Explainer(stump(), DATA, distance="l7"), r"^distance must be one of euclidean"),
    "a constraint on nothing": (
        lambda e: Explainer(named_stump(), NAMED, constraints=Fixed("aeg")),
        r"^There is no column 'aeg'\. Did you mean 'age'\?$",
    ),
    "a model that is not fitted": (
        lambda e: Explainer(RandomForestClassifier(), DATA),
        r"^The RandomForestClassifier is not fitted: call its fit first\.$",
    ),
}


@pytest.mark.parametrize(("misuse", "text"), MISUSE.values(), ids=MISUSE.keys())
def test_misuse_says_what_is_wrong(misuse: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        misuse(Explainer(named_stump(), NAMED))


@pytest.mark.parametrize("model", [None, "model.pkl", LogisticRegression(), object])
def test_what_is_no_tree_ensemble_is_refused(model: Any) -> None:
    with pytest.raises(UnsupportedModel, match=r"supported are DecisionTreeClassifier, .*treefocus\.Forest\.$"):
        Explainer(model, DATA)


def test_names_come_from_the_model_the_schema_or_the_data_and_are_held_to() -> None:
    for explainer in (
        Explainer(named_stump(), DATA),
        Explainer(stump(), DATA, schema=Schema.of_names(["age", "income"])),
        Explainer(stump(), NAMED),
    ):
        assert explainer.schema.names == ("age", "income")
        turned, straight = explainer.explain(NAMED[["income", "age"]]), explainer.explain(NAMED)
        np.testing.assert_array_equal(turned.points, straight.points)
        assert list(turned.counterfactuals.columns) == ["income", "age"]
        pd.testing.assert_frame_equal(turned.counterfactuals[["age", "income"]], straight.counterfactuals)
        assert len(explainer.explain(DATA)) == 3
    nameless = Explainer(stump(), DATA)
    assert nameless.schema.names == ("feature 0", "feature 1")
    assert len(nameless.explain(NAMED[["income", "age"]])) == 3


# How it works, as opposed to what it finds


def answers(found: Any) -> tuple[Floats, ...]:
    return found.points, found.shown, found.distance, found.lower_bound


@pytest.mark.parametrize("seed", range(4))
def test_the_same_question_gets_the_same_bytes(seed: int) -> None:
    explainer, rows = random_question(seed)
    first = explainer.explain(rows, strategy=FAST)
    for again in (
        explainer.explain(rows, strategy=FAST, n_jobs=1),
        explainer.explain(rows, strategy=FAST, n_jobs=2, progress=lambda done: None),
        explainer.explain(rows.copy(order="F"), strategy=FAST, seed=7),
    ):
        assert [array.tobytes() for array in answers(again)] == [array.tobytes() for array in answers(first)]
        assert again.status.tolist() == first.status.tolist()


def test_the_rows_are_left_as_they_were() -> None:
    rows, data = DATA.copy(), DATA.copy()
    Explainer(stump(), data).explain(rows)
    np.testing.assert_array_equal(rows, DATA)
    np.testing.assert_array_equal(data, DATA)


def test_one_shot_is_the_explainer_in_one_call() -> None:
    explainer, rows = random_question(3)
    options = {"distance": "manhattan", "scale": "std", "constraints": [Fixed(0)], "bounds": (-9, 9)}
    at_once = treefocus.explain(explainer.forest, rows, np.nan_to_num(rows), strategy=FAST, target=None, **options)
    in_two = Explainer(explainer.forest, np.nan_to_num(rows), **options).explain(rows, strategy=FAST)
    for one, other in zip(answers(at_once), answers(in_two), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(TypeError, match="colour"):
        treefocus.explain(explainer.forest, rows, rows, colour="red")


@pytest.fixture(scope="module")
def long_work() -> tuple[Explainer, Any]:
    """Work that takes much longer than the 50 ms between two reports."""
    X, y = load_breast_cancer(return_X_y=True)
    return Explainer(RandomForestClassifier(100, max_depth=8, random_state=0).fit(X, y), X), X


def test_progress_hears_rising_numbers_of_rows(long_work: tuple[Explainer, Any]) -> None:
    explainer, X = long_work
    heard: list[int] = []
    explainer.explain(X, strategy=Focus(iterations=500, retry=False, polish=False), progress=heard.append)
    assert heard
    assert heard == sorted(heard)
    assert all(0 <= done <= len(X) for done in heard)


def test_an_error_in_progress_reaches_the_caller(long_work: tuple[Explainer, Any]) -> None:
    def stop(done: int) -> None:
        raise RuntimeError("enough")

    explainer, X = long_work
    with pytest.raises(RuntimeError, match="enough"):
        explainer.explain(X, strategy=Focus(iterations=500, retry=False, polish=False), progress=stop)


def test_a_progress_bar_says_nothing_in_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    Explainer(stump(), DATA).explain(DATA, progress=True)
    assert "Traceback" not in capsys.readouterr().err


def test_an_explainer_shows_itself() -> None:
    text = repr(Explainer(named_stump(source="stump"), NAMED, distance="cosine", constraints=Fixed("age")))
    assert text == (
        "Explainer(Forest(stump: 1 trees, 2 leaves, 2 features, 2 classes), "
        "distance='cosine', constraints=[Fixed('age')])"
    )


def test_calling_it_is_explaining():
    data = np.array([[20.0], [30.0], [50.0], [60.0]])
    explainer = Explainer(DecisionTreeClassifier().fit(data, [0, 0, 1, 1]), data)
    called = explainer(data[:2], 1, n_jobs=1)
    np.testing.assert_array_equal(called.counterfactuals, explainer.explain(data[:2], 1).counterfactuals)
    assert called.has_answer.all()
