"""What CatBoost writes into its JSON model files, read without the library: symmetric trees and others.

It compares in float32 and goes right on x > border; a missing value is below or above every border, as the column's
mode says. It adds up float64, tree after tree, and the bias at the end. Of categories it keeps hashes: their words come
from a file that names them, or from a table. Splits on one category, or on statistics of categories (catboost_ctr.py),
are splits on sets of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters.catboost_ctr import Growth, SplitTable, ctr_tables, known_hashes
from treefocus.adapters.nodes import Nodes, check_sizes
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.categories import NO_CATEGORY, Labels
from treefocus.model.forest import Forest, Link, join_trees

_BINARY = ("Logloss", "CrossEntropy")
_MULTI: dict[str, Link] = {"MultiClass": "softmax", "MultiClassOneVsAll": "sigmoid"}
_REGRESSION: dict[str, Link] = {
    **dict.fromkeys(("RMSE", "MAE", "Quantile", "MAPE", "Lq", "Expectile", "Huber", "LogCosh"), "identity"),
    **dict.fromkeys(("Poisson", "Tweedie"), "exp"),
}
Words = Mapping[int, Sequence[str]]  # by column
_ONLY_HASHES = (
    "This CatBoost model has categories and keeps only their hashes; give the model itself with data=, whose words are "
    "then known, or save it with the training rows, model.save_model('model.json', format='json', pool=Pool(...)), and "
    "load that file."
)
_DEEPEST = 20  # of a symmetric tree, which has 2 ** depth leaves; CatBoost itself stops at 16


def read(
    record: dict[str, Any], *, classes: Any = None, cut: float | None = None, source: str = "CatBoost",
    words: Words | None = None,
) -> Forest:  # fmt: skip
    """The forest of a parsed JSON model; `cut` is the raw score above which a row is of the second class.

    `words` are the categories of a table, by column; without them, those that the file names.
    """
    info = record["model_info"]
    loss = info["params"]["loss_function"]["type"]
    features = _Features(record, words)
    scale, bias = record["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, np.float64))
    trees = record["oblivious_trees"] if "oblivious_trees" in record else record["trees"]
    if not trees:
        raise UnsupportedModel("This CatBoost model has no trees; train it for one iteration or more.")
    is_symmetric = "oblivious_trees" in record
    if features.is_taken_apart:
        parts = [_taken_apart(tree, features, is_symmetric) for tree in trees]
    else:
        parts = [(_symmetric if is_symmetric else _asymmetric)(tree, features) for tree in trees]
    n_outputs = parts[0].value.shape[1]
    answer = _answer(loss, n_outputs, info, classes, cut)
    nodes = _joined(parts, float(scale), np.broadcast_to(bias, (n_outputs,)))
    return nodes.to_forest(
        features.labels,
        features.refuses_unseen,
        base_score=np.zeros(n_outputs),
        n_features=features.n_features,
        input_dtype="float32",
        takes_missing=True,
        refuses_missing=features.refuses_missing,
        feature_names=features.names,
        source=source,
        **answer,
    )


def _answer(loss: str, n_outputs: int, info: dict[str, Any], classes: Any, cut: float | None) -> dict[str, Any]:
    """Classes, decision and link."""
    known = (*_BINARY, *_MULTI, *_REGRESSION)
    if loss not in known or (loss in _REGRESSION and n_outputs > 1):
        raise UnsupportedModel(
            f"CatBoost with the loss {loss} is not supported: its answer is not one class or one value to reach. "
            f"Supported are {', '.join(known)}."
        )
    if loss in _REGRESSION:
        return {"classes": np.empty(0), "decision": "value", "link": _REGRESSION[loss]}
    names = classes if classes is not None else info.get("class_params", {}).get("class_names")
    if loss in _BINARY:
        if cut is None:
            cut = raw_cut(float(info.get("binclass_probability_threshold", 0.5)))
        known_classes = np.arange(2) if names is None else np.asarray(names)
        return {"classes": known_classes, "decision": "above", "cut": cut, "link": "sigmoid"}
    return {
        "classes": np.arange(n_outputs) if names is None else np.asarray(names),
        "decision": "argmax",
        "link": _MULTI[loss],
    }


def raw_cut(probability: float) -> float:
    """The raw score at this probability."""
    return -math.log(1.0 / probability - 1.0)


class _Features:
    """Columns of the model: where each kind's numbers stand in the row, missing modes, labels."""

    def __init__(self, record: dict[str, Any], words: Words | None = None) -> None:
        info = record["features_info"]
        numeric, categorical = info.get("float_features") or [], info.get("categorical_features") or []
        for name, what in (("text_features", "text"), ("embedding_features", "embedding")):
            if info.get(name):
                raise UnsupportedModel(
                    f"This CatBoost model has {what} columns, which it turns into numbers by a model of its own; "
                    "compute numeric columns from them and train on those."
                )
        self.n_features = 1 + max(int(own["flat_feature_index"]) for own in (*numeric, *categorical))
        check_sizes(self.n_features, 1, 1)
        self.column = {int(own["feature_index"]): int(own["flat_feature_index"]) for own in numeric}
        self.missing_left = {int(own["feature_index"]): own.get("nan_value_treatment") != "AsTrue" for own in numeric}
        self.category_column = {int(own["feature_index"]): int(own["flat_feature_index"]) for own in categorical}
        names = {int(own["flat_feature_index"]): own.get("feature_id", "") for own in (*numeric, *categorical)}
        all_names = [names.get(f, "") for f in range(self.n_features)]
        is_named = all(all_names) and all_names != [str(f) for f in range(self.n_features)]
        self.names = tuple(all_names) if is_named else None
        self.is_taken_apart = bool(categorical) and (words is not None or bool(info.get("ctrs")))
        self.refuses_missing: NDArray[np.bool_] | None = None
        self.refuses_unseen: NDArray[np.bool_] | None = None
        text_of = {int(own["hash"]) & 0xFFFFFFFF: str(own["value"]) for own in info.get("cat_features_hash") or []}
        if not self.is_taken_apart:
            self.labels, self.number_of = self._labels(text_of, categorical)
            return
        if words is None:
            words = self._named_in_tables(record, text_of)
        self._with_words(words, text_of)
        hashes = {column: np.array(list(own), np.uint64) for column, own in self.number_of.items()}
        self.tables = ctr_tables(record, hashes, self.column, self.category_column)

    def _with_words(self, words: Words, text_of: dict[int, str]) -> None:
        """Labels of categorical columns, and their hashes; a column without a word reads unseen ones only."""
        hash_of = {text: value for value, text in text_of.items()}
        labels: list[tuple[str, ...] | None] = [None] * self.n_features
        self.number_of = {}
        is_category = np.zeros(self.n_features, bool)
        for column in self.category_column.values():
            own = tuple(words.get(column, ()))
            labels[column], is_category[column] = own or NO_CATEGORY, True
            self.number_of[column] = {hash_of[text]: number for number, text in enumerate(own)} if own else {0: 0}
        self.labels = tuple(labels)
        self.refuses_missing = is_category
        self.refuses_unseen = is_category if words else None

    def _named_in_tables(self, record: dict[str, Any], text_of: dict[int, str]) -> Words:
        """The words of every column: those that its own statistics or its splits know."""
        if not text_of:
            raise UnsupportedModel(_ONLY_HASHES)
        info = record["features_info"]
        words: dict[int, tuple[str, ...]] = {}
        for own in info["categorical_features"]:
            index, column = int(own["feature_index"]), int(own["flat_feature_index"])
            known = {int(value) & 0xFFFFFFFF for value in own.get("values") or []}
            for ctr in info.get("ctrs") or []:
                if [each.get("cat_feature_index") for each in ctr["elements"]] == [index]:
                    known |= known_hashes(record["ctr_data"][ctr["identifier"]], list(text_of))
            if len(self.category_column) == 1:
                known |= set(text_of)
            if not known:
                raise UnsupportedModel(
                    f"The CatBoost file does not say which words column {own.get('feature_id') or column} holds; give "
                    "the model itself with data=, or save it after training with max_ctr_complexity=1."
                )
            words[column] = tuple(text for value, text in text_of.items() if value in known)
        return words

    def question(self, split: dict[str, Any]) -> SplitTable:
        """What a split asks, as a table of what its columns can hold."""
        if split["split_type"] == "FloatFeature":
            key = self.column[int(split["float_feature_index"])], float(split["border"])
            return SplitTable((key,), np.array([False, True]))
        if split["split_type"] == "OneHotFeature":
            column = self.category_column[int(split["cat_feature_index"])]
            is_it = [value == int(split["value"]) & 0xFFFFFFFF for value in self.number_of[column]]
            return SplitTable(((column, None),), np.array([*is_it, False]))
        if split["split_type"] != "OnlineCtr":
            raise UnsupportedModel(
                f"This CatBoost model splits on {split['split_type']}, which is not supported; on numbers and "
                "categories it is."
            )
        return self.tables[int(split["split_index"])]

    def growth(self) -> Growth:
        """An empty tree in these columns."""
        side = {self.column[index]: is_left for index, is_left in self.missing_left.items()}
        sizes = {column: len(own) + 1 for column, own in self.number_of.items()}
        return Growth(lambda key: 2 if key[1] is not None else sizes[key[0]], lambda key: side[key[0]])

    def _labels(
        self, text_of: dict[int, str], categorical: list[Any]
    ) -> tuple[Labels | None, dict[int, dict[int, int]]]:
        if not categorical:
            return None, {}
        labels: list[tuple[str, ...] | None] = [None] * self.n_features
        number_of = {}
        for own in categorical:
            hashes = [int(value) & 0xFFFFFFFF for value in own.get("values") or []]
            if any(value not in text_of for value in hashes):
                raise UnsupportedModel(_ONLY_HASHES)
            column = int(own["flat_feature_index"])
            if len(categorical) == 1:  # all that the file names is its own; of several, nobody knows whose it is
                hashes += [value for value in text_of if value not in hashes]
            labels[column] = tuple(text_of[value] for value in hashes) or NO_CATEGORY
            number_of[column] = {value: number for number, value in enumerate(hashes)}
        return tuple(labels), number_of

    def split(self, split: dict[str, Any]) -> tuple[int, float, bool, list[int] | None]:
        """Column, threshold, whether missing goes left, and the categories that go left."""
        if split["split_type"] == "FloatFeature":
            index = int(split["float_feature_index"])
            return self.column[index], float(split["border"]), self.missing_left[index], None
        if split["split_type"] == "OneHotFeature":
            column = self.category_column[int(split["cat_feature_index"])]
            own = self.number_of[column][int(split["value"]) & 0xFFFFFFFF]
            n_labels = len((self.labels or ())[column] or ())
            return column, 0.0, True, [number for number in range(n_labels + 1) if number != own]
        raise UnsupportedModel(f"This CatBoost model splits on {split['split_type']}, which is not supported.")


def _taken_apart(tree: dict[str, Any], features: _Features, is_symmetric: bool) -> Nodes:
    """A tree whose splits ask about several categories at once: each question becomes as many splits as it takes."""
    growth = features.growth()
    if is_symmetric:
        questions = [features.question(split) for split in tree.get("splits") or []]
        n_leaves = 2 ** min(len(questions), _DEEPEST)
        values = np.asarray(tree["leaf_values"], np.float64).reshape(n_leaves, -1)
        depth = len(questions)
        # a state: a 1, and below it the answers so far, the last one lowest
        growth.grow(
            lambda state: questions[state.bit_length() - 1] if state.bit_length() - 1 < depth else _reversed(state),
            1, lambda state, answer: 2 * state + answer,
        )  # fmt: skip
    else:
        records = _records(tree)
        values = np.array([np.atleast_1d(own["value"]) for own, _ in records if "value" in own], np.float64)
        leaf_number = np.cumsum(["value" in own for own, _ in records]) - 1
        growth.grow(
            lambda at: features.question(records[at][0]["split"]) if records[at][1] else int(leaf_number[at]),
            0, lambda at, answer: records[at][1][answer],
        )  # fmt: skip
    feature, threshold, missing_left, sets = zip(*growth.rows, strict=True)
    children, leaf = np.array(growth.children), np.array(growth.leaf)
    value = np.where((leaf >= 0)[:, None], values[np.maximum(leaf, 0)], 0.0)
    return Nodes(
        np.array(feature), np.array(threshold), children[:, 0], children[:, 1], np.array(missing_left), value,
        np.array([0, len(leaf)]), list(sets),
    )  # fmt: skip


def _reversed(state: int) -> int:
    """The number of a leaf: bit k answers split k."""
    answers = bin(state)[3:]
    return sum(int(bit) << k for k, bit in enumerate(answers))


def _records(tree: dict[str, Any]) -> list[tuple[dict[str, Any], list[int]]]:
    """The nodes of nested records in one list, each with the places of its left and its right side; none at a leaf."""
    found: list[tuple[dict[str, Any], list[int]]] = [(tree, [])]
    for node, sides in found:
        if "split" in node:
            for side in ("left", "right"):
                sides.append(len(found))
                found.append((node[side], []))
    return found


def _symmetric(tree: dict[str, Any], features: _Features) -> Nodes:
    """A symmetric tree asks one question a level: level d has 2 ** d equal nodes; bit k of a leaf answers split k."""
    splits = [features.split(split) for split in tree.get("splits") or []]
    depth = len(splits)
    if depth > _DEEPEST:
        raise InvalidInput(f"The CatBoost file is damaged: a symmetric tree of depth {depth}.")
    n_inner, n_leaves = 2**depth - 1, 2**depth
    given = np.asarray(tree["leaf_values"], np.float64)
    if given.ndim != 1 or not len(given) or len(given) % n_leaves:
        raise InvalidInput(f"The CatBoost file is damaged: {len(given)} leaf values for {n_leaves} leaves.")
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    node = np.arange(n_inner)
    leaf = np.zeros(n_leaves, np.int64)
    for k in range(depth):
        leaf |= ((np.arange(n_leaves) >> (depth - 1 - k)) & 1) << k
    padding = np.full(n_leaves, -1)
    value = np.zeros((n_inner + n_leaves, len(given) // n_leaves))
    value[n_inner:] = given.reshape(n_leaves, -1)[leaf]

    def spread(which: int, dtype: Any) -> NDArray[Any]:
        own = np.array([split[which] for split in splits], dtype)
        return np.concatenate([own[level], np.zeros(n_leaves, dtype)])

    sets: list[Any] = [splits[d][3] for d in level] + [None] * n_leaves
    return Nodes(
        spread(0, np.int64), spread(1, np.float64), np.concatenate([2 * node + 1, padding]),
        np.concatenate([2 * node + 2, padding]), spread(2, bool), value, np.array([0, n_inner + n_leaves]), sets,
    )  # fmt: skip


def _asymmetric(tree: dict[str, Any], features: _Features) -> Nodes:
    """A tree of nested records, each a leaf with its value or a split with its sides."""
    rows: list[tuple[int, float, bool, Any]] = []
    values: list[Any] = []
    children: list[list[int]] = [[], []]
    todo: list[tuple[dict[str, Any], int, int]] = [(tree, -1, 0)]
    while todo:
        node, parent, side = todo.pop()
        number = len(rows)
        if parent >= 0:
            children[side][parent] = number
        is_leaf = "split" not in node
        rows.append((0, 0.0, False, None) if is_leaf else features.split(node["split"]))
        values.append(node["value"] if is_leaf else None)
        children[0].append(-1)
        children[1].append(-1)
        if not is_leaf:
            todo += [(node["right"], number, 1), (node["left"], number, 0)]
    n_outputs = np.size(next(value for value in values if value is not None))
    value = np.zeros((len(rows), n_outputs))
    for number, own in enumerate(values):
        if own is not None:
            value[number] = own
    feature, threshold, missing_left, sets = zip(*rows, strict=True)
    return Nodes(
        np.array(feature), np.array(threshold), np.array(children[0]), np.array(children[1]),
        np.array(missing_left), value, np.array([0, len(rows)]), list(sets),
    )  # fmt: skip


def _joined(parts: list[Nodes], scale: float, bias: NDArray[np.float64]) -> Nodes:
    """The trees end to end, and a last one of a single leaf, the bias, which the library adds at the end too."""
    if bias.any():
        leaf, none = np.array([-1]), np.zeros(1)
        parts = [*parts, Nodes(leaf, none, leaf, leaf, none.astype(bool), bias[None, :] / scale, np.arange(2), [None])]
    start = join_trees([len(part.left) for part in parts])

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    def children(name: str) -> NDArray[Any]:
        own = joined(name)
        return np.where(own < 0, -1, own + np.repeat(start[:-1], np.diff(start)))

    value = joined("value") * scale
    if bias.any():
        value[-1] = bias
    return Nodes(
        joined("feature"), joined("threshold"), children("left"), children("right"), joined("default_left"), value,
        start, [own for part in parts for own in part.sets or []],
    )  # fmt: skip
