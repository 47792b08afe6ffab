"""Small random questions over every kind of column and model, with every point tried on the model's own predict.

Nothing here comes from the search: what a column can hold, what a constraint allows and what a change costs are written
down once more, in the user's own values.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from treefocus import (
    Condition,
    Decreasing,
    Explainer,
    Feature,
    Fixed,
    Implies,
    Increasing,
    MayBeMissing,
    OneOf,
    Range,
    Schema,
    UnsupportedModel,
    load_model,
)
from treefocus.adapters import translate
from treefocus.constraints.kinds import Constraint

Rng = np.random.Generator
Predict = Callable[[pd.DataFrame], NDArray[Any]]
WORDS = ("S", "M", "L", "XL")  # in their order, which is not the alphabet's
TOWNS = ("Ulm", "Bonn", "Jena", "Kiel")
NUMBERS = ("integer", "step", "list")
KINDS = (*NUMBERS, "category", "ordinal", "one-hot")
COUPLED = ("mahalanobis", "cosine")
MOST_POINTS = 3000


@dataclass
class Column:
    """One column as a user knows it."""

    name: str
    kind: str
    values: list[Any]  # all that it can hold, in their order if it has one
    has_missing: bool
    is_strange: bool = False  # rows may hold a category that the model has not seen

    @property
    def is_number(self) -> bool:
        return self.kind in NUMBERS

    def feature(self, is_ordered_by_dtype: bool) -> Feature:
        if self.kind == "integer":
            return Feature(self.name, "integer", low=self.values[0], high=self.values[-1])
        if self.kind == "step":
            step = round(self.values[1] - self.values[0], 1)
            return Feature(self.name, "step", step=step, low=self.values[0], high=self.values[-1])
        if self.kind == "list":
            return Feature(self.name, values=self.values)
        if self.kind == "one-hot":
            return Feature(self.name, "one-hot", columns=[f"{self.name}_{v}" for v in self.values], values=self.values)
        if self.kind == "ordinal" and not is_ordered_by_dtype:
            return Feature(self.name, "ordinal", values=self.values)
        return Feature(self.name, "categorical")


@dataclass
class Asked:
    """A question, and all that is needed to answer it by trying."""

    columns: list[Column]
    data: pd.DataFrame  # in the user's values, groups not yet one-hot
    rows: pd.DataFrame
    constraints: list[Constraint]
    distance: str
    explainer: Explainer
    frame: Callable[[pd.DataFrame], pd.DataFrame]  # as the model takes it
    predict: Predict
    model: str

    @property
    def is_coupled(self) -> bool:
        """Whether the distance cannot measure a change of anything but known numbers, so that the rest stays."""
        return self.distance in COUPLED


def is_missing(value: Any) -> bool:
    return value is None or value != value


def as_before(a: Any, b: Any) -> bool:
    return bool(a == b) or (is_missing(a) and is_missing(b))


# ---- what is allowed, and what it costs


def may_be(column: Column, own: Any, value: Any, constraints: Sequence[Constraint]) -> bool:
    """Whether a column may end up there, as far as it alone decides."""
    mine = [c for c in constraints if column.name in getattr(c, "columns", (getattr(c, "column", None),))]
    kinds = {type(c) for c in mine}
    if is_missing(value):
        if is_missing(own):
            return OneOf not in kinds or MayBeMissing in kinds
        return MayBeMissing in kinds and Fixed not in kinds
    if is_missing(own) and kinds & {Fixed, Increasing, Decreasing}:
        return False
    for one in mine:
        if isinstance(one, Fixed) and value != own:
            return False
        if isinstance(one, OneOf) and value not in one.values:
            return False
        if isinstance(one, Range) and not one.low <= value <= one.high:
            return False
        if isinstance(one, Increasing | Decreasing) and value != own:
            if column.is_number:
                is_above = value > own
            elif own not in column.values:
                return False
            else:
                is_above = column.values.index(value) > column.values.index(own)
            if is_above != isinstance(one, Increasing):
                return False
    return True


def meets(condition: Condition, point: dict[str, Any]) -> bool:
    value = point[str(condition.column)]
    if is_missing(value):
        return False
    if condition.values is not None:
        return value in condition.values
    return bool(condition.low <= value <= condition.high)


def points_of(asked: Asked, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Every point that obeys the constraints."""
    choices = []
    for column in asked.columns:
        own = row[column.name]
        held = [*column.values, None]
        if not any(as_before(own, value) for value in held):
            held.append(own)
        if asked.is_coupled and (is_missing(own) or not column.is_number):
            held = [own]
        elif asked.is_coupled:
            held.remove(None)
        choices.append([v for v in held if may_be(column, own, v, asked.constraints)])
    names = [column.name for column in asked.columns]
    found = [dict(zip(names, values, strict=True)) for values in product(*choices)]
    rules = [c for c in asked.constraints if isinstance(c, Implies)]
    return [p for p in found if all(not meets(r.cause, p) or meets(r.effect, p) for r in rules)]


def cost(asked: Asked, row: dict[str, Any], point: dict[str, Any]) -> float:
    steps = []
    for column in asked.columns:
        before, after = row[column.name], point[column.name]
        if as_before(before, after):
            steps.append(0.0)
        elif not column.is_number or is_missing(before) or is_missing(after):
            steps.append(1.0)
        else:
            held = asked.data[column.name].astype(float)
            spread = float(held.max() - held.min())
            steps.append(abs(after - before) / (spread if spread > 0 else 1.0))
    size = np.array(steps)
    if asked.distance == "manhattan":
        return float(size.sum())
    return float(np.sqrt((size**2).sum())) if asked.distance == "euclidean" else float((size > 0).sum())


def best(asked: Asked, row: dict[str, Any]) -> tuple[float, set[tuple[Any, ...]]]:
    """The smallest cost of an answer (0 under a coupled distance), infinity where there is none, and all answers."""
    points = points_of(asked, row)
    if not points:
        return np.inf, set()
    said = asked.predict(asked.frame(pd.DataFrame([row, *points], dtype=object)))
    flips = [point for point, other in zip(points, said[1:], strict=True) if other != said[0]]
    least = min((0.0 if asked.is_coupled else cost(asked, row, point) for point in flips), default=np.inf)
    return least, {_key(point) for point in flips}


def _key(point: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(None if is_missing(value) else value for value in point.values())


# ---- drawing one


def draw(seed: int) -> Asked:
    """A question: columns, a model trained on them, rows, constraints."""
    rng = np.random.default_rng(seed)
    while True:
        name = str(rng.choice(list(MODELS)))
        kinds, takes_missing, takes_strange = ALLOWS[name]
        columns = [_column(rng, f"c{j}", str(rng.choice(kinds)), takes_missing, takes_strange) for j in range(3)]
        if np.prod([len(column.values) + 2 for column in columns]) <= MOST_POINTS:
            break
    data = _table(rng, columns, 60, strange=False)
    weight = {c.name: dict(zip(map(str, c.values), rng.normal(size=len(c.values)), strict=True)) for c in columns}
    score = sum(
        data[c.name].map(lambda v, c=c: 0.3 if is_missing(v) else weight[c.name][str(v)]).astype(float) for c in columns
    )
    classes = (score > score.median()).astype(int)
    if classes.nunique() < 2:
        return draw(seed + 1_000_003)
    is_by_dtype = bool(rng.random() < 0.5) and name not in ("tree", "catboost")
    frame = _framing(columns, is_by_dtype, name)
    model, predict = MODELS[name](frame(data), classes, columns, rng)
    if name == "lightgbm" and is_by_dtype and not _is_plain(model):
        return draw(seed + 1_000_003)
    distance = str(rng.choice(["manhattan", "manhattan", "euclidean", "euclidean", "l0", *COUPLED]))
    constraints = _constraints(rng, columns, takes_missing and distance not in COUPLED)
    schema = Schema([column.feature(is_by_dtype) for column in columns])
    explainer = Explainer(model, frame(data), schema=schema, constraints=constraints, distance=distance)
    rows = _table(rng, columns, 5, strange=True)
    return Asked(columns, data, rows, constraints, distance, explainer, frame, predict, name)


def _column(rng: Rng, name: str, kind: str, takes_missing: bool, takes_strange: bool) -> Column:
    n = int(rng.integers(2, 5))
    values: list[Any]
    if kind == "integer":
        begin = int(rng.integers(-3, 4))
        values = list(range(begin, begin + n + 1))
    elif kind == "step":
        step = float(rng.choice([0.1, 0.5, 5.0]))
        begin = int(rng.integers(-2, 3))
        values = [round((begin + k) * step, 1) for k in range(n + 2)]
    elif kind == "list":
        values = sorted(rng.choice([0.5, 1.0, 2.25, 3.0, 7.0, 12.0, 24.0], n, replace=False).tolist())
    else:
        values = list((WORDS if kind == "ordinal" else TOWNS)[:n])
    has_missing = takes_missing and kind != "one-hot" and bool(rng.random() < 0.5)
    is_strange = takes_strange and kind in ("category", "ordinal") and bool(rng.random() < 0.5)
    return Column(name, kind, values, has_missing, is_strange)


def _table(rng: Rng, columns: list[Column], n: int, strange: bool) -> pd.DataFrame:
    made = {}
    for column in columns:
        held = [column.values[k] for k in rng.integers(len(column.values), size=n)]
        if not strange:
            held[: len(column.values)] = column.values  # all of them are known
        rate = 0.2 if column.has_missing else 0.0
        held = [
            None if rng.random() < rate and k >= len(column.values) * (not strange) else v for k, v in enumerate(held)
        ]
        if strange and column.is_strange:
            held = ["castle" if rng.random() < 0.25 else v for v in held]
        made[column.name] = pd.Series(held, dtype=object)
    return pd.DataFrame(made)


def _framing(columns: list[Column], is_by_dtype: bool, model: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def frame(given: pd.DataFrame) -> pd.DataFrame:
        made: dict[str, Any] = {}
        for column in columns:
            own = given[column.name]
            if column.kind == "one-hot":
                for value in column.values:
                    made[f"{column.name}_{value}"] = (own == value).astype(int)
            elif column.is_number:
                whole = column.kind == "integer" and not own.isna().any()
                made[column.name] = own.astype("int64" if whole else "float64")
            elif model in ("hist", "lightgbm", "xgboost") or (is_by_dtype and column.kind == "ordinal"):
                more = [v for v in dict.fromkeys(own) if not is_missing(v) and v not in column.values]
                ordered = is_by_dtype and column.kind == "ordinal"
                made[column.name] = pd.Categorical(
                    own.where(own.notna(), None), [*column.values, *more], ordered=ordered
                )
            else:
                made[column.name] = own.where(own.notna(), np.nan)
        return pd.DataFrame(made)

    return frame


def _constraints(rng: Rng, columns: list[Column], takes_missing: bool) -> list[Constraint]:
    found: list[Constraint] = []
    for column in columns:
        kind = rng.choice(["none", "none", "fixed", "up", "down", "one of", "one of", "range"])
        has_order = column.is_number or column.kind == "ordinal"
        if kind == "fixed":
            found.append(Fixed(column.name))
        elif kind in ("up", "down") and has_order:
            found.append((Increasing if kind == "up" else Decreasing)(column.name))
        elif kind == "one of":
            n = int(rng.integers(1, len(column.values) + 1))
            own = [column.values[k] for k in rng.choice(len(column.values), n, replace=False)]
            if column.is_number and rng.random() < 0.5:
                own.append(own[0] + 0.25)
            found.append(OneOf(column.name, own))
        elif kind == "range" and column.is_number:
            low, high = np.sort(rng.choice(column.values, 2))
            found.append(Range(column.name, float(low), float(high)))
        if takes_missing and column.kind != "one-hot" and rng.random() < 0.25:
            found.append(MayBeMissing(column.name))
    if rng.random() < 0.4:
        first, second = rng.choice(len(columns), 2, replace=False)
        found.append(Implies(_condition(rng, columns[first]), _condition(rng, columns[second])))
    order = rng.permutation(len(found))
    return [found[k] for k in order]


def _condition(rng: Rng, column: Column) -> Condition:
    if column.is_number:
        cut = int(rng.choice(column.values))
        return Condition(column.name, low=cut) if rng.random() < 0.5 else Condition(column.name, high=cut)
    return Condition(column.name, values=[v for v in column.values if rng.random() < 0.5] or [column.values[0]])


# ---- models


def _words(columns: list[Column]) -> list[str]:
    return [column.name for column in columns if not column.is_number and column.kind != "one-hot"]


def _tree(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    if rng.random() < 0.5:
        model = RandomForestClassifier(3, max_depth=3, random_state=0)
    model.fit(frame, y)
    return model, model.predict


def _hist(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
    model = HistGradientBoostingClassifier(
        max_iter=3, max_leaf_nodes=5, min_samples_leaf=3, learning_rate=0.7, categorical_features="from_dtype"
    ).fit(frame, y)
    return model, model.predict


def _lightgbm(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        n_estimators=3, num_leaves=5, min_child_samples=3, learning_rate=0.7, verbose=-1, n_jobs=1,
        min_data_per_group=3, cat_smooth=1.0,
    ).fit(frame, y)  # fmt: skip
    return model, model.predict


def _is_plain(model: Any) -> bool:
    """Whether a LightGBM model says which of its columns are ordered categories."""
    try:
        return translate(model) is not None
    except UnsupportedModel:
        return False


def _xgboost(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=3, max_depth=3, learning_rate=0.7, enable_categorical=True, n_jobs=1)
    model.fit(frame, y)
    return model, model.predict


def _pipeline(is_one_hot: bool) -> Callable[..., tuple[Any, Predict]]:
    def made(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
        encoder: Any = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        if not is_one_hot:
            encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
        words: list[Any] = [encoder]
        if rng.random() < 0.6:
            words.insert(0, SimpleImputer(strategy="constant", fill_value="missing", missing_values=np.nan))
        parts = [("words", make_pipeline(*words), _words(columns))] if _words(columns) else []
        rest = [c for c in frame.columns if c not in _words(columns)]
        parts += [("numbers", SimpleImputer(), rest)] if rest else []
        steps = [("before", ColumnTransformer(parts)), ("model", DecisionTreeClassifier(max_depth=4, random_state=0))]
        model = Pipeline(steps).fit(frame, y)
        return model, model.predict

    return made


def _catboost(frame: pd.DataFrame, y: pd.Series, columns: list[Column], rng: Rng) -> tuple[Any, Predict]:
    from catboost import CatBoostClassifier, Pool

    words = _words(columns)
    pool = Pool(frame, y, cat_features=words)
    with tempfile.TemporaryDirectory() as folder:
        model = CatBoostClassifier(
            iterations=3, depth=2, learning_rate=0.7, verbose=0, one_hot_max_size=50, train_dir=folder, thread_count=1,
            allow_writing_files=False, random_seed=0,
        ).fit(pool)  # fmt: skip
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        record = json.loads(path.read_text())
        assert record, "the file is there"
        forest = load_model(path)
    return forest, lambda rows: np.asarray(model.predict(Pool(rows, cat_features=words))).reshape(-1)


MODELS: dict[str, Callable[..., tuple[Any, Predict]]] = {
    "tree": _tree,
    "hist": _hist,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "one-hot pipeline": _pipeline(True),
    "ordinal pipeline": _pipeline(False),
    "catboost": _catboost,
}
WITH_WORDS = (*NUMBERS, "category", "category", "ordinal", "ordinal")
ALLOWS: dict[str, tuple[tuple[str, ...], bool, bool]] = {  # kinds of columns; takes missing values; unseen categories
    "tree": ((*NUMBERS, "one-hot"), False, False),
    "hist": ((*KINDS, "ordinal"), True, True),
    "lightgbm": (WITH_WORDS, True, True),
    "xgboost": (WITH_WORDS, True, False),
    "one-hot pipeline": (WITH_WORDS, True, True),
    "ordinal pipeline": (WITH_WORDS, True, True),
    "catboost": (WITH_WORDS, False, True),
}


# ---- the check


def wrong_of(asked: Asked) -> list[str]:
    """What is said of a question that trying does not bear out."""
    found = asked.explainer.explain(asked.frame(asked.rows))
    wrong = []
    for i in range(len(asked.rows)):
        row = {name: (None if is_missing(v) else v) for name, v in asked.rows.iloc[i].to_dict().items()}
        least, answers = best(asked, row)
        status, told = found.status[i].name, f"row {i} {list(row.values())}"
        if status == "INFEASIBLE" and np.isfinite(least):
            wrong.append(f"{told}: INFEASIBLE, an answer costs {least}")
        if status in ("NOT_FOUND", "INVALID") or (status == "BOUNDED" and not asked.is_coupled):
            wrong.append(f"{told}: {status} ({found.reasons[i]}), the best is {least}")
        if found.has_answer[i]:
            point = _unframed(asked, found.points[i], row)
            if _key(point) not in answers:
                wrong.append(f"{told}: {list(point.values())} is no answer")
            elif not asked.is_coupled and abs(cost(asked, row, point) - found.distance[i]) > 1e-7:
                wrong.append(f"{told}: costs {cost(asked, row, point)}, not {found.distance[i]}")
            if status == "OPTIMAL" and not asked.is_coupled and found.distance[i] > least + 1e-7:
                wrong.append(f"{told}: {found.distance[i]} is called optimal, {least} is")
    return wrong


def _unframed(asked: Asked, point: NDArray[Any], row: dict[str, Any]) -> dict[str, Any]:
    """A point in the user's values."""
    made: dict[str, Any] = {}
    for column, value, labels in zip(asked.columns, point.tolist(), asked.explainer.labels, strict=True):
        if value != value:
            made[column.name] = None
        elif labels is None:
            made[column.name] = value
        else:
            made[column.name] = labels[int(value)] if value < len(labels) else row[column.name]
    return made
