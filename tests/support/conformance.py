"""The conformance list: every kind of model, task and data that a library has, and rows that try to break it.

`tests/adapters/test_conformance.py` runs it with a few thousand rows a model, `benchmarks/adapters.py` with 100,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from support.forests import adversarial_rows
from treefocus import kernels
from treefocus.adapters import Source, translate
from treefocus.model.forest import Floats

TASKS = ("binary", "multi-class", "regression")
Model = Any


@dataclass(frozen=True)
class Data:
    """Training rows, as the library likes them."""

    X: Any
    y: NDArray[Any]
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """One line of the list."""

    library: str
    kind: str
    task: str
    data: str
    fit: Callable[[str, Data], Model]
    is_exact: bool = True  # scores to the last bit; else to `Source.precision`

    def __str__(self) -> str:
        return f"{self.kind}, {self.task}, {self.data}"


def table(task: str, kind: str, *, n_rows: int = 300, frame: bool = True) -> Data:
    """Rows on mixed scales with a noisy rule: "plain" numbers, "missing" ones, "categorical" columns or "words"."""
    rng = np.random.default_rng(TASKS.index(task))
    X = rng.normal(size=(n_rows, 5)) * np.array([1.0, 1e-4, 1e5, 1.0, 30.0])
    X[:, 3:] = np.round(X[:, 3:])
    score = X[:, 0] + X[:, 1] * 1e4 + 0.05 * X[:, 4] + rng.normal(0, 0.5, n_rows)
    city = rng.integers(0, 12, n_rows)
    colour = rng.integers(0, 3, n_rows)
    if kind in ("categorical", "words"):
        score = score + 1.5 * np.sin(city * 2.0) + np.array([1.0, -1.0, 0.0])[colour]
    y = score if task == "regression" else np.digitize(score, [0.0] if task == "binary" else [-0.8, 0.8])
    if kind != "plain":
        holes = rng.random(X.shape) < 0.15
        holes[:, 2] |= (score < 0) & (rng.random(n_rows) < 0.5)  # being missing tells
        X[holes] = np.nan
    if kind not in ("categorical", "words"):
        return Data(X, y)
    names = np.array([f"town {letter}" for letter in "KCAFBLDEHGIJ"], object)[city]
    names[rng.random(n_rows) < 0.1] = None
    if kind == "words":  # plain strings, none missing
        texts = np.where(names == None, "nowhere", names)  # noqa: E711
        columns = {"size": X[:, 0], "colour": np.array(["red", "green", "blue"], object)[colour]}
        columns |= {"debt": X[:, 2], "town": texts, "age": X[:, 4], "children": rng.integers(0, 4, n_rows)}
        return Data(pd.DataFrame(columns), y, (1, 3, 5))
    columns = {"size": X[:, 0], "colour": pd.Categorical(np.array(["red", "green", "blue"])[colour])}
    columns |= {"debt": X[:, 2], "town": pd.Categorical(names), "age": X[:, 4]}
    return Data(pd.DataFrame(columns), y, (1, 3))


def hard_rows(source: Source, rng: np.random.Generator, n_rows: int) -> Floats:
    """Rows in the forest's coding: on thresholds and beside them, every category and an unseen one, NaN, infinities."""
    forest = source.forest
    with np.errstate(over="ignore"):  # CatBoost has borders at the end of float32
        rows = adversarial_rows(forest, rng, n_rows, missing=0.0)
    if forest.reads is not None:
        rows = np.clip(rows, *forest.reads)
    if source.takes_infinite:
        rows = np.where(rng.random(rows.shape) < 0.03, rng.choice([-np.inf, np.inf], rows.shape), rows)
    if forest.categories is not None:
        for f in np.flatnonzero(forest.categories.is_categorical):
            refuses = forest.categories.refuses_unseen
            unseen = int(refuses is None or not refuses[f])
            rows[:, f] = rng.integers(0, forest.categories.n_labels(int(f)) + unseen, n_rows)
    if forest.takes_missing:
        holes = rng.random(rows.shape) < 0.1
        if forest.refuses_missing is not None:
            holes &= ~forest.refuses_missing
        rows[holes] = np.nan
    return rows


def coded(source: Source, X: Any) -> Floats:
    """A table as the forest reads it: numbers for categories."""
    if isinstance(X, np.ndarray):
        return X
    labels = source.forest.categories.labels if source.forest.categories is not None else [None] * X.shape[1]
    columns = []
    for name, own in zip(X.columns, labels, strict=True):
        if own is None:
            columns.append(X[name].to_numpy(np.float64))
        else:
            values = X[name].astype(object)
            if all(isinstance(label, int) for label in own):  # XGBoost before 3.1 does not keep the names
                values = X[name].cat.codes.where(X[name].notna()).astype(object)
            number = {label: code for code, label in enumerate(own)}
            columns.append(np.array([np.nan if pd.isna(v) else number.get(v, len(own)) for v in values], np.float64))
    return np.stack(columns, axis=1)


def differing(source: Source, rows: Floats) -> NDArray[np.bool_]:
    """(n_rows,) where the model's own predict and the forest disagree; of a regressor, in the predicted value."""
    assert source.predict is not None
    scores, said = kernels.hard_scores(source.forest, rows), source.predict(rows)
    if source.forest.decision != "value":
        return source.forest.classes[kernels.decide(source.forest, scores)] != said
    shown = kernels.reference.shown(source.forest, scores)[:, 0]
    last_bit = 2e-7 if _is_single(source) else 1e-15
    return ~np.isclose(shown, said, rtol=max(source.precision, last_bit), atol=last_bit * np.abs(said).max())


def score_error(source: Source, rows: Floats) -> float:
    """The largest difference of scores, as a share of the largest score."""
    assert source.scores is not None
    own, theirs = kernels.hard_scores(source.forest, rows), source.scores(rows).astype(np.float64)
    assert own.shape == theirs.shape
    return float(np.abs(own - theirs).max() / max(np.abs(theirs).max(), 1e-300))


def _is_single(source: Source) -> bool:
    """Whether the library shows float32."""
    return source.forest.score_dtype == "float32"


@cache
def fitted(case: Case) -> tuple[Model, Data, Source]:
    """The model of a case, trained once a process, its data, and what treefocus makes of it."""
    data = table(case.task, case.data)
    model = case.fit(case.task, data)
    source = translate(model)
    if source.with_words is not None:
        words = {f: tuple(dict.fromkeys(map(str, data.X.iloc[:, f]))) for f in data.categorical}
        source = source.with_words(words)
    return model, data, source


def product(
    library: str, kind: str, fit: Callable[[str, Data], Model], tasks: tuple[str, ...] = TASKS, *,
    data: tuple[str, ...] = ("plain", "missing"), is_exact: bool = True,
) -> list[Case]:  # fmt: skip
    """One case for every task and every kind of data."""
    return [Case(library, kind, task, own, fit, is_exact) for task in tasks for own in data]
