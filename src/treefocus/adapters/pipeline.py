"""scikit-learn pipelines, taken apart: a forest in the raw columns, whatever scalers, imputers and encoders do to them.

A split of the last step's model on a feature becomes a split on the raw column behind that feature. Of a number: the
largest raw number that the fitted steps send to the left is its threshold. Of a category: every category is sent
through the fitted steps, and those that end up on the left are its set. A missing value goes where its replacement
goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from treefocus.adapters.pipeline_probe import Line, Probe, RawRows, Reach, pull_back
from treefocus.adapters.pipeline_steps import Track, Walk
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.categories import UNUSED, Categories, Labels
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.grid import as_input, cell_ends, floor_to
from treefocus.model.source import Source, asked
from treefocus.schema.dates import AS_READ
from treefocus.tables.labels import encode

SUPPORTED: tuple[type, ...] = (Pipeline,)
REFUSED: dict[type, str] = {}
# The forest of a pipeline that was taken apart before, and what the pipeline held then. Trust asks the pipeline again.
_kept: WeakKeyDictionary[Pipeline, tuple[list[Any], Forest | None]] = WeakKeyDictionary()
_one_at_a_time = Lock()  # a server asks from several threads


def to_source(pipeline: Pipeline) -> Source:
    """Translate a fitted pipeline whose last step is a supported model."""
    from treefocus.adapters.registry import translated_inside

    try:
        check_is_fitted(pipeline)
    except NotFittedError as error:
        raise InvalidInput("The Pipeline is not fitted: call its fit first.") from error
    inner = translated_inside(pipeline[-1], pipeline)
    n_columns = int(pipeline.n_features_in_)
    walk, tracks = Walk(), [Track(j) for j in range(n_columns)]
    for name, step in pipeline.steps[:-1]:
        tracks = walk.through(step, name, tracks)
    walk.touched.update(track.column for track in tracks)
    assert len(tracks) == inner.forest.n_features, "every feature of the model has a raw column"
    names = getattr(pipeline, "feature_names_in_", None)
    named = None if names is None else tuple(str(name) for name in names)
    labels = _labels(walk, tracks, inner.forest, named or tuple(f"number {j}" for j in range(n_columns)))
    raw = RawRows(named, labels, [walk.absent.get(j, np.nan) for j in range(n_columns)], frozenset(walk.dates))
    probe = Probe(_before_the_model(pipeline), raw)
    parts = _parts(pipeline)
    with _one_at_a_time:
        kept, forest = _kept.get(pipeline, ([], None))
    if forest is None or len(kept) != len(parts) or any(a is not b for a, b in zip(kept, parts, strict=True)):
        forest = _Rewriting(inner.forest, probe, tracks).forest(named, f"Pipeline of {inner.forest.source}")
        if forest.categories is not None:
            forest = replace(forest, categories=_with_words(forest.categories, walk))
        with _one_at_a_time:
            _kept[pipeline] = parts, forest
    own_scores = inner.scores
    return replace(
        inner,
        forest=forest,
        predict=asked(lambda rows: pipeline.predict(raw.of(rows))),
        scores=None if own_scores is None else lambda rows: own_scores(_coded(inner.forest, probe.features(rows))),
        probabilities=None if inner.probabilities is None else asked(lambda rows: pipeline.predict_proba(raw.of(rows))),
        takes_infinite=False,
        orders=tuple(walk.orders.get(j) for j in range(n_columns)),
        counts=tuple(AS_READ.name if j in walk.dates else None for j in range(n_columns)) if walk.dates else (),
        to_rows=raw.of,
    )


def _parts(step: Any) -> list[Any]:
    """All that a fitted step holds, and the steps in it: fitted again, it holds other objects."""
    if isinstance(step, list | tuple):
        return [part for one in step for part in _parts(one)]
    if hasattr(step, "get_params") and not isinstance(step, type):
        return [step, *(part for own in vars(step).values() for part in _parts(own))]
    return [step]


def _before_the_model(pipeline: Pipeline) -> Callable[[Any], Any]:
    """What all steps but the last make of rows; those that only choose training rows do nothing."""
    steps = [step for _, step in pipeline.steps[:-1] if hasattr(step, "transform")]

    def transform(rows: Any) -> Any:
        with config_context(skip_parameter_validation=True):  # fitted steps are asked often, with few rows
            for step in steps:
                rows = step.transform(rows)
        return rows

    return transform


def _with_words(categories: Categories, walk: Walk) -> Categories:
    """The categories with the words that imputers write for a missing value, and those they take for one."""

    def of(known: dict[int, list[Any]]) -> Labels | None:
        own = [j in known and labels is not None for j, labels in enumerate(categories.labels)]
        return tuple(tuple(known[j]) if is_own else None for j, is_own in enumerate(own)) if any(own) else None

    return replace(categories, fillers=of(walk.fillers), blanks=of(walk.blanks))


def _coded(forest: Forest, features: NDArray[Any]) -> Floats:
    """Features as the model's forest knows them: its own categories as numbers."""
    labels: Labels = (None,) * forest.n_features if forest.categories is None else forest.categories.labels
    coded = np.empty(features.shape)
    for f, own in enumerate(labels):
        coded[:, f] = features[:, f] if own is None else encode(features[:, f].tolist(), own)
    return coded


def _labels(walk: Walk, tracks: list[Track], forest: Forest, names: tuple[str, ...]) -> Labels:
    """Every raw column's categories, None for numbers."""
    found: list[tuple[Any, ...] | None] = []
    native: Labels = (None,) * len(tracks) if forest.categories is None else forest.categories.labels
    for j, name in enumerate(names):
        bare = [native[f] for f, track in enumerate(tracks) if track.column == j and _is_bare(track)]
        if j in walk.dates and (bare or j in walk.numeric or j in walk.labels):
            raise UnsupportedModel(
                f"The pipeline uses column {name} both as a date and otherwise; give it two columns."
            )
        known = tuple(walk.labels.get(j, ())) or next((own for own in bare if own is not None), ())
        if known and (j in walk.numeric or any(own is None for own in bare)):
            raise UnsupportedModel(
                f"The pipeline uses column {name} both as a category and as a number; give it two columns."
            )
        found.append(known or (None if j in walk.touched else UNUSED))
    return tuple(found)


def _is_bare(track: Track) -> bool:
    return not track.is_encoded and not track.is_scaled


def _places(column: NDArray[np.intp]) -> tuple[NDArray[np.intp], int]:
    """(n,) the number of each cut among its column's, and how many there are at most."""
    order = np.argsort(column, kind="stable")
    _, begin, count = np.unique(column[order], return_index=True, return_counts=True)
    place = np.empty(len(column), np.intp)
    place[order] = np.arange(len(column)) - np.repeat(begin, count)
    return place, int(count.max())


def _distinct(feature: NDArray[Any], threshold: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A place of every cut that there is, in order, and the number of each place's cut among them."""
    order = np.lexsort((threshold, feature))
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.logical_or.reduce([own[order][1:] != own[order][:-1] for own in (feature, threshold)])
    number = np.empty(len(order), np.intp)
    number[order] = np.cumsum(is_new) - 1
    return order[is_new], number


_OF_NODES = {
    "feature", "threshold", "left", "right", "default_left", "tree_start", "leaf_value", "leaf_distribution",
    "categories",
}  # fmt: skip


def _turned(forest: Forest, chosen: Bools) -> Forest:
    """The forest with the children of some nodes changed over: what is left of a threshold goes right there."""
    leaf_of_node = np.cumsum(forest.left < 0) - 1
    shares = forest.leaf_distribution
    return Forest.from_nodes(
        feature=forest.feature,
        threshold=forest.threshold,
        left=np.where(chosen, forest.right, forest.left),
        right=np.where(chosen, forest.left, forest.right),
        tree_start=forest.tree_start,
        node_value=forest.leaf_value[np.maximum(leaf_of_node, 0)],
        default_left=forest.default_left != chosen,
        node_distribution=None if shares is None else shares[np.maximum(leaf_of_node, 0)],
        categories=forest.categories,
        **{field.name: getattr(forest, field.name) for field in fields(forest) if field.name not in _OF_NODES},
    )


@dataclass(frozen=True, eq=False)
class _Rewriting:
    """The model's splits on features, rewritten as splits on raw columns."""

    inner: Forest
    probe: Probe
    tracks: list[Track]

    def forest(self, names: tuple[str, ...] | None, source: str) -> Forest:
        """The whole forest in the raw columns."""
        inner, labels = self.inner, self.probe.raw.labels
        is_category = np.array([own is not None for own in labels])
        column_of = np.array([track.column for track in self.tracks] + [-1])
        feature = column_of[inner.feature]
        nodes = np.flatnonzero(inner.feature >= 0)
        by_set = nodes[is_category[feature[nodes]]]
        by_threshold = nodes[~is_category[feature[nodes]]]
        threshold, default_left = np.zeros(len(feature)), np.zeros(len(feature), bool)
        numeric = np.flatnonzero(~is_category).tolist()
        line = self.probe.line(numeric, column_of[:-1]) if numeric else None
        reach = self.probe.reach(numeric)
        threshold[by_threshold] = self._thresholds(by_threshold, reach, line)
        missing = self._features_of_missing(len(labels))
        refuses_missing = np.array([made is None for made in missing])
        is_falling = np.zeros(len(feature), bool)
        is_falling[by_threshold] = self._falls[inner.feature[by_threshold]]
        reading = nodes[~refuses_missing[feature[nodes]]]
        if reading.size:
            nothing = np.zeros(inner.n_features)
            made = np.stack([nothing if own is None else own for own in missing])
            default_left[reading] = self._goes_left(reading, made[feature[reading], inner.feature[reading]])
        forest = replace(
            inner,
            feature=feature,
            threshold=threshold,
            default_left=default_left,
            categories=self._categories(by_set) if is_category.any() else None,
            n_features=len(labels),
            input_dtype="float64",
            takes_missing=not refuses_missing.all(),
            refuses_missing=refuses_missing if refuses_missing.any() and not refuses_missing.all() else None,
            missing_is_choice=None,
            reads=self.probe.reads(numeric, inner.input_dtype, reach, line),
            feature_names=names,
            source=source,
        )
        return _turned(forest, is_falling) if is_falling.any() else forest

    @cached_property
    def _falls(self) -> Bools:
        """(n_features,) which features fall as their raw number grows."""
        return np.array([track.is_falling for track in self.tracks], bool)

    def _goes_left(self, node: NDArray[np.intp], value: NDArray[Any]) -> Bools:
        """(n,) whether each of the model's nodes sends a value of its feature left, as the model itself reads it."""
        inner, feature = self.inner, self.inner.feature[node]
        result = np.zeros(len(node), bool)
        for f in np.unique(feature):
            mine = feature == f
            own, at = value[mine], node[mine]
            labels = None if inner.categories is None else inner.categories.labels[f]
            if labels is None or inner.categories is None:
                seen = as_input(own.astype(np.float64), inner.input_dtype)
                result[mine] = np.where(np.isnan(seen), inner.default_left[at], seen <= inner.threshold[at])
            else:
                codes = encode(own.tolist(), labels)
                sets = [inner.categories.members(int(inner.categories.set_of_node[n])) for n in at]
                inside = [bool((members == code).any()) for members, code in zip(sets, codes, strict=True)]
                result[mine] = np.where(np.isnan(codes), inner.default_left[at], inside)
        return result

    def _thresholds(self, nodes: NDArray[np.intp], reach: Reach, line: Line | None) -> Floats:
        """(n,) the raw threshold of each of these nodes."""
        if not nodes.size:
            return np.empty(0)
        inner = self.inner
        at_first, inverse = _distinct(inner.feature[nodes], inner.threshold[nodes])
        witness = nodes[at_first]
        feature, cuts = inner.feature[witness].astype(np.intp), inner.threshold[witness]
        column = np.array([self.tracks[f].column for f in feature])
        low, high = reach

        def made_of(values: Floats, which: NDArray[np.intp]) -> NDArray[Any]:
            """(m, k) the features that (m, k) raw numbers become, k of the cuts; a row tries one cut a column."""
            own = column[which]
            place, n_places = _places(own)
            rows = np.repeat(self.probe.usual[None, :], len(values) * n_places, axis=0)
            at = place + n_places * np.arange(len(values))[:, None]
            rows[at, own] = values
            return np.asarray(self.probe.features(rows)[at, feature[which]])

        def goes_left(values: Floats, which: NDArray[np.intp]) -> Bools:
            made = made_of(values, which)
            is_left = self._goes_left(np.tile(witness[which], len(values)), made.reshape(-1)).reshape(values.shape)
            return np.asarray(is_left != self._falls[feature[which]])  # small numbers go right where the feature falls

        guess = None
        if line is not None:
            wanted = cell_ends(floor_to(cuts, inner.input_dtype), inner.input_dtype)[0]  # the last to go left
            guess = line.raw(feature, wanted)
            every = np.arange(len(cuts))
            inside = np.clip(np.where(np.isfinite(guess), guess, line.usual[feature]), low[column], high[column])
            with np.errstate(all="ignore"):  # once more from there, as Newton would
                guess = inside + (wanted - made_of(inside[None], every)[0]) / line.slope[feature]
        return pull_back(goes_left, low[column], high[column], guess)[inverse]

    def _features_of_missing(self, n_columns: int) -> list[NDArray[Any] | None]:
        """Per column (n_features,) what becomes of a missing value; None where it is refused."""
        rows = np.repeat(self.probe.usual[None, :], n_columns, axis=0)
        np.fill_diagonal(rows, np.nan)
        try:
            made = self.probe.features(rows)
        except (ValueError, TypeError):  # some column refuses it: each is asked alone
            return [self._missing_in(j, self.probe.varied(j, np.array([np.nan]))) for j in range(n_columns)]
        return [self._missing_in(j, made[[j]]) for j in range(n_columns)]

    def _missing_in(self, column: int, made: NDArray[Any] | None) -> NDArray[Any] | None:
        """What becomes of a missing value in a column, where the model reads it."""
        if made is None:
            return None
        for f, track in enumerate(self.tracks):
            is_missing = track.column == column and made[0, f] != made[0, f]
            refused = self.inner.refuses_missing is not None and self.inner.refuses_missing[f]
            if is_missing and (not self.inner.takes_missing or refused):
                return None
        return np.asarray(made[0])

    def _categories(self, nodes: NDArray[np.intp]) -> Categories:
        """The sets of categories that go left at these nodes, and which columns refuse an unseen one."""
        labels = self.probe.raw.labels
        sets: list[Any] = [None] * len(self.inner.feature)
        refuses = np.zeros(len(labels), bool)
        column_of = np.array([track.column for track in self.tracks])
        for j, own in enumerate(labels):
            if own is None or own is UNUSED:
                continue
            made = self.probe.varied(j, np.arange(len(own), dtype=np.float64))
            if made is None:
                raise UnsupportedModel(f"The pipeline refuses a category of its own in column number {j}.")
            unseen = self._features_of_unseen(j, len(own))
            refuses[j] = unseen is None
            made = made if unseen is None else np.concatenate([made, unseen])
            found: dict[Any, NDArray[np.intp]] = {}
            for node in nodes[column_of[self.inner.feature[nodes]] == j].tolist():
                cut = self._cut(node)
                if cut not in found:
                    value = made[:, cut[0]]
                    found[cut] = np.flatnonzero(self._goes_left(np.full(len(value), node), value))
                sets[node] = found[cut]
        return replace(Categories.of_sets(labels, sets), refuses_unseen=refuses if refuses.any() else None)

    def _cut(self, node: int) -> tuple[int, float, int, bool]:
        """What decides at a node of the model."""
        inner = self.inner
        number = -1 if inner.categories is None else int(inner.categories.set_of_node[node])
        return int(inner.feature[node]), float(inner.threshold[node]), number, bool(inner.default_left[node])

    def _features_of_unseen(self, column: int, number: int) -> NDArray[Any] | None:
        """(1, n_features) what becomes of a category that the encoders have not seen; None where it is refused."""
        made = self.probe.varied(column, np.array([float(number)]))
        if made is None:
            return None
        for f, track in enumerate(self.tracks):
            known = None if self.inner.categories is None else self.inner.categories.labels[f]
            refused = known is not None and self._refuses_unseen(f) and encode([made[0, f]], known)[0] == len(known)
            is_missing = made[0, f] != made[0, f] and not self.inner.takes_missing
            if track.column == column and (refused or is_missing):
                return None
        return made

    def _refuses_unseen(self, feature: int) -> bool:
        refuses = None if self.inner.categories is None else self.inner.categories.refuses_unseen
        return refuses is not None and bool(refuses[feature])
