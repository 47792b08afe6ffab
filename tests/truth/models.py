"""Small models of every library, asked through their own predict, with the thresholds that the library itself reports.

A threshold becomes the last float64 number that goes left of it: found by bisection over the float64 numbers, with the
library's own cast and, behind a pipeline, with the fitted steps themselves. `Atlas` holds what the model says in every
cell between thresholds, and refuses to be built where two points of one cell get different answers. Points are looked
up there, and put to the model's own predict later, many at once: `Model.contradicted`.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from treefocus import load_model
from treefocus.model.forest import Floats
from truth.columns import DESIGNS, Column, frame_of

LIBRARIES = (
    "decision tree", "random forest", "extra trees", "gradient boosting", "histogram boosting", "AdaBoost", "XGBoost",
    "LightGBM", "CatBoost", "pipeline", "calibrated", "voting",
    "calibrated folds", "mean of probabilities", "hard votes",
)  # fmt: skip
TAKES_CATEGORIES = ("histogram boosting", "XGBoost", "LightGBM", "CatBoost", "pipeline", "calibrated")
READS_UNSEEN = ("histogram boosting", "LightGBM", "CatBoost", "pipeline", "calibrated")
NO_MISSING = ("gradient boosting", "AdaBoost", "mean of probabilities", "hard votes")
MEANS = ("calibrated folds", "mean of probabilities", "hard votes")  # of two classes, through curves
SINGLE = ("gradient boosting", "histogram boosting", "XGBoost", "LightGBM", "CatBoost")  # score of 2 classes
N_ROWS = 60
LARGEST = 1e38  # what every library reads without an overflow
FAR = float(np.finfo(np.float32).max)  # no threshold lies behind it
_ZERO = float(np.float32(1e-35))  # LightGBM's predict leaves out what is no further from 0
Splits = list[tuple[int, float]]  # the number of a column as the model sees it, and a threshold


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model, the table it was fitted on, and what it says."""

    library: str
    columns: tuple[Column, ...]
    model: Any
    data: Floats  # (n_rows, n_columns) as the oracle writes it
    classes: tuple[Any, ...]  # () where it predicts a number
    given: Any  # to treefocus: the model itself, or what was read from its file
    looked_up: list[Floats] = field(default_factory=list)  # points of which the model itself is still to be asked

    @property
    def is_from_file(self) -> bool:
        """Whether treefocus cannot ask the model itself."""
        return self.given is not self.model

    @property
    def is_value(self) -> bool:
        return not self.classes

    @cached_property
    def frame(self) -> pd.DataFrame:
        return frame_of(self.columns, self.data)

    @property
    def takes_missing(self) -> bool:
        return self.library not in NO_MISSING

    def answers(self, points: Floats) -> NDArray[Any]:
        """(n,) the class, or the number, of points."""
        cells = self._cells(points)
        return self.own_answers(points) if cells is None else self.atlas.answer[cells]

    def probabilities(self, points: Floats) -> Floats:
        """(n, n_classes) the probabilities of points."""
        cells = self._cells(points)
        if cells is None or self.atlas.likely is None:
            return self.own_probabilities(points)
        return np.asarray(self.atlas.likely[cells])

    def scores(self, points: Floats) -> Floats:
        """(n,) the raw scores of points, before any link."""
        cells = self._cells(points)
        if cells is None or self.atlas.score is None:
            return self.own_scores(points)
        return np.asarray(self.atlas.score[cells])

    def _cells(self, points: Floats) -> tuple[NDArray[np.intp], ...] | None:
        """The cells of points, of which the model is to be asked later; None where it has to be asked now."""
        if not self.atlas.has(points):
            return None
        self.looked_up.append(np.array(points))
        return self.atlas.cells(points)

    def contradicted(self) -> list[int]:
        """The places in `looked_up` that hold a point of which the model itself says otherwise than was said of it.

        All of them are put to the library's own predict at once, and forgotten.
        """
        if not self.looked_up:
            return []
        place = np.repeat(np.arange(len(self.looked_up)), [len(points) for points in self.looked_up])
        points, first = np.unique(np.concatenate(self.looked_up), axis=0, return_index=True)
        cells = self.atlas.cells(points)
        differs = np.zeros(len(points), bool)
        for said, own in zip(self.atlas.said, _everything(self, points), strict=True):
            if said is not None and own is not None:
                differs |= (said[cells] != own).reshape(len(points), -1).any(axis=1)
        self.looked_up.clear()
        return sorted(set(place[first[differs]].tolist()))

    def own_answers(self, points: Floats) -> NDArray[Any]:
        """(n,) the class, or the number, that the model's own predict gives."""
        said = np.asarray(self._asked("predict", points)).reshape(-1)
        return said.astype(np.float64) if self.is_value else said

    def own_probabilities(self, points: Floats) -> Floats:
        """(n, n_classes) the model's own predict_proba."""
        return np.asarray(self._asked("predict_proba", points), np.float64)

    def own_scores(self, points: Floats) -> Floats:
        """(n,) the model's own raw score, before any link."""
        name, options = _RAW.get(self.library, ("decision_function", {}))
        if self.is_value and self.library not in _RAW:
            name = "predict"
        return np.asarray(self._asked(name, points, **options), np.float64).reshape(-1)

    def _asked(self, name: str, points: Floats, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(self.model, name)(frame_of(self.columns, points), **options)

    @cached_property
    def cuts(self) -> tuple[Floats, ...]:
        """By column, the last number of each cell but the last; none for categories."""
        return _cuts(self)

    @cached_property
    def atlas(self) -> Atlas:
        return Atlas.of(self)


_RAW: dict[str, tuple[str, dict[str, Any]]] = {
    "XGBoost": ("predict", {"output_margin": True}),
    "LightGBM": ("predict", {"raw_score": True}),
    "CatBoost": ("predict", {"prediction_type": "RawFormulaVal"}),
}


@dataclass(frozen=True, eq=False)
class Atlas:
    """What a model says in each of its cells: the product of every column's cells, a missing value's last."""

    cuts: tuple[Floats, ...]
    is_category: tuple[bool, ...]
    has_missing: tuple[bool, ...]
    shape: tuple[int, ...]
    answer: NDArray[Any]  # of that shape
    likely: Floats | None  # with the classes last; None where there are no probabilities
    score: Floats | None  # None where there is no single score

    @classmethod
    def of(cls, model: Model) -> Atlas:
        sides = [_ends(model, j) for j in range(len(model.columns))]
        shape = tuple(len(low) for low, _ in sides)
        rng = np.random.default_rng(0)
        low, high = (
            np.stack([g.ravel() for g in np.meshgrid(*ends, indexing="ij")], axis=1)
            for ends in zip(*sides, strict=True)
        )
        chosen = np.where(rng.random(low.shape) < 0.5, low, high)
        said = [_everything(model, points) for points in (low, high, chosen)]
        for other in said[1:]:
            for one, two in zip(said[0], other, strict=True):
                if one is not None and not np.array_equal(one, two):
                    raise AssertionError(f"{model.library}: two points of one cell get different answers")
        answer, likely, score = said[0]
        likely = None if likely is None else likely.reshape(*shape, -1)
        is_category = tuple(column.is_category for column in model.columns)
        has_missing = tuple(column.has_missing for column in model.columns)
        score = None if score is None else score.reshape(shape)
        return cls(model.cuts, is_category, has_missing, shape, answer.reshape(shape), likely, score)

    @property
    def said(self) -> tuple[NDArray[Any], Floats | None, Floats | None]:
        """All that is known of cells."""
        return self.answer, self.likely, self.score

    def has(self, points: Floats) -> bool:
        """Whether each of the points lies in a cell, beyond doubt."""
        for j, is_category in enumerate(self.is_category):
            values = points[:, j]
            missing = np.isnan(values)
            if missing.any() and not self.has_missing[j]:
                return False
            known = values[~missing]
            if not is_category and (np.abs(known) > LARGEST).any():
                return False
            n_labels = self.shape[j] - self.has_missing[j]
            if is_category and not ((known >= 0) & (known < n_labels) & (known == np.rint(known))).all():
                return False
        return True

    def cells(self, points: Floats) -> tuple[NDArray[np.intp], ...]:
        """The cells of points, column by column."""
        return tuple(self.cell(j, points[:, j]) for j in range(len(self.shape)))

    def cell(self, j: int, values: Floats) -> NDArray[np.intp]:
        """The cells of values of one column."""
        known = np.nan_to_num(values)
        cell = known.astype(np.intp) if self.is_category[j] else np.searchsorted(self.cuts[j], known, side="left")
        return np.where(np.isnan(values), self.shape[j] - 1, cell)


def _product(values: list[Floats]) -> Floats:
    """(n, d) every combination of the columns' values."""
    return np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")], axis=1)


def _everything(model: Model, points: Floats) -> tuple[NDArray[Any], Floats | None, Floats | None]:
    has_score = model.is_value or (len(model.classes) == 2 and model.library in SINGLE)
    return (
        model.own_answers(points),
        None if model.is_value or not hasattr(model.model, "predict_proba") else model.own_probabilities(points),
        model.own_scores(points) if has_score else None,
    )


def _ends(model: Model, j: int) -> tuple[Floats, Floats]:
    """The first and the last value of every cell of a column."""
    column, cuts = model.columns[j], model.cuts[j]
    if column.is_category:
        has_unseen = column.kind == "category" and model.library in READS_UNSEEN
        low = high = np.arange(float(len(column.values) + has_unseen))
    else:
        own = model.data[:, j]
        far = float(np.nanmax(own) - np.nanmin(own)) + 1.0
        edge = [*cuts, np.nanmin(own), np.nanmax(own)]
        low = np.concatenate([[min(edge) - far], np.nextafter(cuts, np.inf)])
        high = np.concatenate([cuts, [max(edge) + far]])
    if column.has_missing:
        low, high = np.append(low, np.nan), np.append(high, np.nan)
    return low, high


# ---- thresholds


def _cuts(model: Model) -> tuple[Floats, ...]:
    """By column, the last number to the left of each threshold: all by one bisection over the float64 numbers."""
    splits, compare = _of_several(_inside(model)) if model.library in MEANS else _thresholds(_final(model))
    place = [_column_of(model, number) for number, _ in splits]
    kept = [k for k, j in enumerate(place) if j is not None]
    if not kept:
        return tuple(np.empty(0) for _ in model.columns)
    column = np.array([place[k] for k in kept])
    threshold = np.array([splits[k][1] for k in kept])
    seen = np.array([splits[k][0] for k in kept])

    is_single = np.array([model.columns[j].kind == "float32" for j in column])

    def goes_left(value: Floats) -> Any:
        value = np.where(is_single, value.astype(np.float32), value)
        return compare(_sent(model, column, seen, value) if model.library == "pipeline" else value, threshold)

    low, high = np.full(len(kept), _bits(-FAR)), np.full(len(kept), _bits(FAR))
    if model.library == "pipeline":
        low, high = _around(model, column, seen, threshold, goes_left)
    while (high > low + 1).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        is_left = goes_left(_floats(middle))
        low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
    last = _floats(low)
    return tuple(np.unique(last[column == j]) for j in range(len(model.columns)))


def _final(model: Model) -> Any:
    """What holds the trees: the last step of a pipeline, what is calibrated."""
    if model.library == "pipeline":
        return model.model[-1]
    return model.model.calibrated_classifiers_[0].estimator if model.library == "calibrated" else model.model


def _around(
    model: Model,
    column: NDArray[np.intp],
    seen: NDArray[np.intp],
    threshold: Floats,
    goes_left: Callable[[Floats], Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where to look for the raw thresholds: beside where a straight line through two values puts them."""
    first, last = np.nanmin(model.data, axis=0)[column], np.nanmax(model.data, axis=0)[column]
    at_first, at_last = (_sent(model, column, seen, value) for value in (first, last))
    guess = first + (threshold - at_first) * (last - first) / (at_last - at_first)
    room = 1e-5 * (np.abs(guess) + last - first)
    low, high = guess - room, guess + room
    is_between = goes_left(low) & ~goes_left(high)
    low, high = np.where(is_between, low, -1e30), np.where(is_between, high, 1e30)
    return np.array([_bits(value) for value in low]), np.array([_bits(value) for value in high])


def _sent(model: Model, column: NDArray[np.intp], seen: NDArray[np.intp], value: Floats) -> Floats:
    """What the fitted steps make of raw values, each of its column."""
    row = model.data[~np.isnan(model.data).any(axis=1)][:1]
    points = np.repeat(row, len(value), axis=0)
    every = np.arange(len(value))
    points[every, column] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sent = np.asarray(model.model[:-1].transform(frame_of(model.columns, points)), np.float64)
    return sent[every, seen]


def _column_of(model: Model, number: int) -> int | None:
    """The column of numbers that the model's own column is; None where it is one of categories."""
    if model.library == "pipeline":
        part, name = model.model[:-1].get_feature_names_out()[number].split("__", 1)
        names = [column.name for column in model.columns]
        return names.index(name) if part == "numbers" else None
    fields = [(j, column) for j, column in enumerate(model.columns) for _ in column.fields]
    if type(_final(model)).__name__.startswith("Hist"):  # it moves categories to the front
        fields = sorted(fields, key=lambda own: own[1].kind != "category")
    j, column = fields[number]
    return None if column.is_category else j


def _thresholds(model: Any) -> tuple[Splits, Callable[[Floats, Floats], Any]]:
    """The thresholds of a model on numbers, and whether values go left of them, in the library's own arithmetic."""
    kind = type(model).__module__.split(".")[0]
    if kind == "xgboost":
        return _of_xgboost(model), lambda v, t: v.astype(np.float32) < t.astype(np.float32)
    if kind == "lightgbm":
        return _of_lightgbm(model), lambda v, t: np.where(np.abs(v) > _ZERO, v, 0.0) <= t
    if kind == "catboost":
        borders = [(int(f), float(t)) for f, own in model.get_borders().items() for t in own]
        return borders, lambda v, t: v.astype(np.float32) <= t.astype(np.float32)
    if type(model).__name__.startswith("Hist"):
        return _of_histograms(model), lambda v, t: v <= t
    return _of_trees(model), lambda v, t: v.astype(np.float32).astype(np.float64) <= t


def _inside(model: Model) -> list[Any]:
    """The models whose answers are averaged."""
    if model.library == "calibrated folds":
        return [fold.estimator for fold in model.model.calibrated_classifiers_]
    return [getattr(own, "_final_estimator", own) for own in model.model.estimators_]


def _of_several(models: Sequence[Any]) -> tuple[Splits, Callable[[Floats, Floats], Any]]:
    """The same of models that all compare alike."""
    each = [_thresholds(own) for own in models]
    return [split for splits, _ in each for split in splits], each[0][1]


def _of_trees(model: Any) -> Splits:
    if hasattr(model, "tree_"):
        inner = model.tree_.children_left >= 0
        return list(zip(model.tree_.feature[inner].tolist(), model.tree_.threshold[inner].tolist(), strict=True))
    return [split for tree in np.ravel(np.array(model.estimators_, object)) for split in _of_trees(tree)]


def _of_histograms(model: Any) -> Splits:
    found: Splits = []
    for trees in model._predictors:
        for tree in trees:
            inner = tree.nodes[(tree.nodes["is_leaf"] == 0) & (tree.nodes["is_categorical"] == 0)]
            found += zip(inner["feature_idx"].tolist(), inner["num_threshold"].tolist(), strict=True)
    return found


def _of_xgboost(model: Any) -> Splits:
    record = json.loads(bytes(model.get_booster().save_raw("json")))
    found: Splits = []
    for tree in record["learner"]["gradient_booster"]["model"]["trees"]:
        for k, left in enumerate(tree["left_children"]):
            if left >= 0 and tree["split_type"][k] == 0:
                found.append((tree["split_indices"][k], tree["split_conditions"][k]))
    return found


def _of_lightgbm(model: Any) -> Splits:
    found: Splits = []
    text = model.booster_.model_to_string()
    for block in text.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if not fields.get("split_feature"):
            continue
        splits = zip(*(fields[name].split() for name in ("split_feature", "threshold", "decision_type")), strict=True)
        found += [(int(f), float(t)) for f, t, kind in splits if int(kind) & 1 == 0]
    return found


def _bits(value: float) -> int:
    """The place of a number among all float64 numbers."""
    own = int(np.float64(value).view(np.int64))
    return own if own >= 0 else -(own & 0x7FFF_FFFF_FFFF_FFFF)


def _floats(place: NDArray[np.int64]) -> Floats:
    """The numbers at these places."""
    return np.copysign(np.abs(place).view(np.float64), place)


# ---- fitting


@cache
def why_no_model(library: str, design: str, n_classes: int) -> str | None:
    """Why there is no such model; None where there is one."""
    columns = DESIGNS[design]
    has_group = any(column.kind == "one-hot" for column in columns)
    if has_words(columns) and library not in TAKES_CATEGORIES:
        return f"{library} takes numbers only"
    if library == "CatBoost" and any(column.kind == "category" and column.has_missing for column in columns):
        return "a label that CatBoost reads is never missing"
    if any(column.kind == "float32" for column in columns) and library == "pipeline":
        return "scalers round float32 tables in their own way"
    if has_group and library == "pipeline":
        return "behind a pipeline the encoder makes the groups"
    if library in ("calibrated", *MEANS) and n_classes != 2:
        return "what is calibrated, or voted on, is of two classes"
    if any(column.has_missing for column in columns) and library in NO_MISSING:
        return f"{library} takes no missing values"
    if library == "AdaBoost" and n_classes == 0:
        return "AdaBoostRegressor is not a sum of trees"
    return None


@lru_cache(maxsize=80)
def fitted(library: str, design: str, n_classes: int, seed: int) -> Model:
    """A small model; n_classes 0: one that predicts a number."""
    columns = DESIGNS[design]
    rng = np.random.default_rng([seed, zlib.crc32(f"{library}, {design}".encode()), n_classes])
    data = np.stack([column.drawn(rng, N_ROWS) for column in columns], axis=1)
    score = np.zeros(N_ROWS)
    for j, column in enumerate(columns):
        own = data[:, j]
        effect = rng.normal(size=len(column.values)) if column.is_category else None
        part = (own - own.mean()) / (own.std() or 1.0) if effect is None else effect[own.astype(int)]
        score += part * rng.choice([-1.0, 1.0]) + 0.7 * np.sin(3 * part)
    score += rng.normal(0, 0.3, N_ROWS)
    for j, column in enumerate(columns):
        if column.has_missing:
            holes = rng.random(N_ROWS) < 0.25
            score[holes] += rng.normal() * (5.0 if design == "parted by missing" else 1.0)
            data[holes, j] = np.nan
            shown = np.flatnonzero(~holes)
            assert len(np.unique(data[shown, j])) > 1
    if n_classes:
        labels = np.array(["no", "yes", "maybe"], object)[:n_classes]
        y: Any = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
        classes: tuple[Any, ...] = tuple(range(n_classes))
        if library not in ("XGBoost",) and seed % 2:
            y, classes = labels[y].astype(str), tuple(sorted(map(str, labels)))
    else:
        y, classes = np.round(score, 2), ()
    frame = frame_of(columns, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _FIT[library](columns, n_classes, seed).fit(frame, y)
        given = _from_file(model, frame, y) if library == "CatBoost" and has_words(columns) else model
    return Model(library, columns, model, data, classes, given)


def has_words(columns: Sequence[Column]) -> bool:
    """Whether there is a column of words, which a one-hot group is not."""
    return any(column.kind == "category" for column in columns)


def _from_file(model: Any, frame: pd.DataFrame, y: Any) -> Any:
    """A CatBoost model with categories, as treefocus reads it: from a file that was saved with the rows."""
    from catboost import Pool

    words = [name for name in frame if frame[name].dtype == "category"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=Pool(frame, y, cat_features=words))
        return load_model(path)


def _pick(n_classes: int, classifier: Any, regressor: Any, **options: Any) -> Any:
    return classifier(**options) if n_classes else regressor(**options)


def _trees(name: str) -> Callable[..., Any]:
    def make(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
        from sklearn import ensemble, tree

        kinds = {
            "decision tree": (tree.DecisionTreeClassifier, tree.DecisionTreeRegressor, {"max_depth": 3}),
            "random forest": (
                ensemble.RandomForestClassifier, ensemble.RandomForestRegressor, {"n_estimators": 4, "max_depth": 3},
            ),
            "extra trees": (
                ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor, {"n_estimators": 4, "max_depth": 3},
            ),
            "gradient boosting": (
                ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor,
                {"n_estimators": 4, "max_depth": 2, "learning_rate": 0.7},
            ),
        }  # fmt: skip
        classifier, regressor, options = kinds[name]
        return _pick(n_classes, classifier, regressor, random_state=seed, **options)

    return make


def _histograms(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return _pick(
        n_classes, HistGradientBoostingClassifier, HistGradientBoostingRegressor, max_iter=4, max_leaf_nodes=5,
        min_samples_leaf=3, learning_rate=0.7, random_state=seed, categorical_features="from_dtype",
        early_stopping=False,
    )  # fmt: skip


def _ada(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=seed)


def _xgboost(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    return _pick(
        n_classes, XGBClassifier, XGBRegressor, n_estimators=4, max_depth=2, learning_rate=0.7, n_jobs=1,
        random_state=seed, enable_categorical=True, tree_method="hist",
    )  # fmt: skip


def _lightgbm(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return _pick(
        n_classes, LGBMClassifier, LGBMRegressor, n_estimators=4, num_leaves=5, learning_rate=0.7, n_jobs=1,
        min_child_samples=3, min_data_per_group=2, cat_smooth=1.0, random_state=seed, verbose=-1,
    )  # fmt: skip


def _catboost(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    return _pick(
        n_classes, CatBoostClassifier, CatBoostRegressor, iterations=4, depth=2, learning_rate=0.7, thread_count=1,
        random_seed=seed, verbose=False, allow_writing_files=False, border_count=8, one_hot_max_size=10,
        cat_features=[column.name for column in columns if column.kind == "category"] or None,
    )  # fmt: skip


def _pipeline(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """A scaler, an imputer where values are missing, an encoder where there are words, and trees."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

    words = [column for column in columns if column.is_category]
    numbers = [column for column in columns if not column.is_category]
    scaler = StandardScaler() if seed % 2 else MinMaxScaler()
    if any(column.has_missing for column in numbers):
        scaler = make_pipeline(SimpleImputer(strategy="median"), scaler)
    before = [("numbers", scaler, [column.name for column in numbers])]
    if words:
        is_missing = any(column.has_missing for column in words)
        encoder: Any = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        if is_missing and seed % 2:  # the word for a missing label is one that nobody wrote
            encoder = make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), encoder)
        elif not is_missing and seed % 2:
            encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        before.append(("words", encoder, [column.name for column in words]))
    kinds = ("random forest", "gradient boosting", "decision tree")
    return Pipeline([("before", ColumnTransformer(before)), ("model", _FIT[kinds[seed % 3]](columns, n_classes, seed))])


def _calibrated(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """One model, whose score is sent through a curve."""
    from sklearn.calibration import CalibratedClassifierCV

    kind = "random forest" if seed % 2 and not has_words(columns) else "histogram boosting"
    inner = _FIT[kind](columns, n_classes, seed)
    return CalibratedClassifierCV(inner, method=("sigmoid", "isotonic")[seed // 2 % 2], cv=2, ensemble=False)


def _voting(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """Several models, whose probabilities, numbers or votes are averaged."""
    from sklearn.ensemble import VotingClassifier, VotingRegressor

    kinds = ["decision tree", "extra trees", "random forest"]
    is_hard = n_classes == 3 and seed % 3 == 0
    kinds = kinds[:1] * 3 if is_hard else kinds[: 2 + seed % 2]
    if not any(column.has_missing for column in columns) and not is_hard and n_classes == 0:
        kinds[-1] = "gradient boosting"
    inner = [(f"{k}", _FIT[kind](columns, n_classes, seed + k)) for k, kind in enumerate(kinds)]
    weights = [1.0, 2.0, 1.5][: len(inner)] if seed % 4 == 1 else None
    if n_classes:
        return VotingClassifier(inner, voting="hard" if is_hard else "soft", weights=weights)
    return VotingRegressor(inner, weights=weights)


def _folds(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """A model a fold, each sent through a curve of its own."""
    from sklearn.calibration import CalibratedClassifierCV

    kinds = ["histogram boosting", "random forest", "XGBoost"]
    if any(column.has_missing for column in columns):
        kinds = kinds[:1]
    kind = kinds[seed % len(kinds)]
    inner = _FIT["random forest" if kind == "XGBoost" and seed % 2 else kind](columns, n_classes, seed)  # odd: words
    return CalibratedClassifierCV(inner, method=("sigmoid", "isotonic")[seed // 2 % 2], cv=2)


def _mean(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """Boosters whose probabilities are averaged, with a forest's or among themselves."""
    from imblearn.ensemble import EasyEnsembleClassifier
    from sklearn.ensemble import BaggingClassifier, VotingClassifier

    if seed % 3 == 0:
        return EasyEnsembleClassifier(2, estimator=_ada(columns, n_classes, seed), random_state=seed)
    if seed % 3 == 1:
        return BaggingClassifier(_FIT["gradient boosting"](columns, n_classes, seed), 2, random_state=seed)
    kinds = ("random forest", "gradient boosting", "AdaBoost")
    inner = [(kind, _FIT[kind](columns, n_classes, seed)) for kind in kinds]
    return VotingClassifier(inner, voting="soft", weights=[1.0, 2.0, 1.5] if seed % 2 else None)


def _votes(columns: tuple[Column, ...], n_classes: int, seed: int) -> Any:
    """Models of several kinds, each with a vote."""
    from sklearn.ensemble import VotingClassifier

    kinds = ("random forest", "gradient boosting", "AdaBoost", "extra trees")[: 2 + seed % 3]
    inner = [(kind, _FIT[kind](columns, n_classes, seed)) for kind in kinds]
    return VotingClassifier(inner, weights=[0.1, 0.2, 0.3, 0.3][: len(inner)] if seed % 2 else None)


_FIT: dict[str, Callable[..., Any]] = {
    **{name: _trees(name) for name in ("decision tree", "random forest", "extra trees", "gradient boosting")},
    "histogram boosting": _histograms,
    "AdaBoost": _ada,
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
    "CatBoost": _catboost,
    "pipeline": _pipeline,
    "calibrated": _calibrated,
    "voting": _voting,
    "calibrated folds": _folds,
    "mean of probabilities": _mean,
    "hard votes": _votes,
}
