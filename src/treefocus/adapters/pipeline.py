"""scikit-learn pipelines, taken apart: a forest in the raw columns, whatever scalers, imputers and encoders do to them.

A split of the last step's model on a feature becomes a split on the raw column behind that feature. Of a number: the
largest raw number that the fitted steps send to the left is its threshold. Of a category: every category is sent
through the fitted steps, and those that end up on the left are its set. A missing value goes where its replacement
goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from treefocus.adapters.pipeline_probe import Probe, RawRows, pull_back
from treefocus.adapters.pipeline_steps import Track, Walk
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.categories import UNUSED, Categories, Labels
from treefocus.model.forest import Bools, Floats, Forest
from treefocus.model.grid import as_input
from treefocus.model.source import Source, asked
from treefocus.tables.labels import encode

SUPPORTED = (Pipeline,)
REFUSED: dict[type, str] = {}


def to_source(pipeline: Pipeline) -> Source:
    """Translate a fitted pipeline whose last step is a supported model."""
    from treefocus.adapters.registry import translate

    try:
        check_is_fitted(pipeline)
    except NotFittedError as error:
        raise InvalidInput("The Pipeline is not fitted: call its fit first.") from error
    inner = translate(pipeline[-1])
    n_columns = int(pipeline.n_features_in_)
    walk, tracks = Walk(), [Track(j) for j in range(n_columns)]
    for name, step in pipeline.steps[:-1]:
        tracks = walk.through(step, name, tracks)
    assert len(tracks) == inner.forest.n_features, "every feature of the model has a raw column"
    names = getattr(pipeline, "feature_names_in_", None)
    named = None if names is None else tuple(str(name) for name in names)
    labels = _labels(walk, tracks, inner.forest, named or tuple(f"number {j}" for j in range(n_columns)))
    raw = RawRows(named, labels, [walk.absent.get(j, np.nan) for j in range(n_columns)])
    probe = Probe(pipeline[:-1].transform if len(pipeline.steps) > 1 else lambda rows: rows, raw)
    forest = _Rewriting(inner.forest, probe, tracks).forest(named, f"Pipeline of {inner.forest.source}")
    if forest.categories is not None:
        forest = replace(forest, categories=_with_words(forest.categories, walk))
    own_scores = inner.scores
    return replace(
        inner,
        forest=forest,
        predict=asked(lambda rows: pipeline.predict(raw.of(rows))),
        scores=None if own_scores is None else lambda rows: own_scores(_coded(inner.forest, probe.features(rows))),
        probabilities=None if inner.probabilities is None else asked(lambda rows: pipeline.predict_proba(raw.of(rows))),
        takes_infinite=False,
        orders=tuple(walk.orders.get(j) for j in range(n_columns)),
    )


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
        known = tuple(walk.labels.get(j, ())) or next((own for own in bare if own is not None), ())
        if known and (j in walk.numeric or any(own is None for own in bare)):
            raise UnsupportedModel(
                f"The pipeline uses column {name} both as a category and as a number; give it two columns."
            )
        found.append(known or (None if j in walk.touched else UNUSED))
    return tuple(found)


def _is_bare(track: Track) -> bool:
    return not track.is_encoded and not track.is_scaled


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
        threshold[by_threshold] = self._thresholds(by_threshold, np.flatnonzero(~is_category).tolist())
        missing = [self._features_of_missing(j) for j in range(len(labels))]
        refuses_missing = np.array([made is None for made in missing])
        reading = nodes[~refuses_missing[feature[nodes]]]
        if reading.size:
            nothing = np.zeros(inner.n_features)
            made = np.stack([nothing if own is None else own for own in missing])
            default_left[reading] = self._goes_left(reading, made[feature[reading], inner.feature[reading]])
        return replace(
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
            reads=self.probe.reads(np.flatnonzero(~is_category).tolist(), inner.input_dtype),
            feature_names=names,
            source=source,
        )

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

    def _thresholds(self, nodes: NDArray[np.intp], numeric: list[int]) -> Floats:
        """(n,) the raw threshold of each of these nodes."""
        if not nodes.size:
            return np.empty(0)
        inner = self.inner
        pairs = np.stack([inner.feature[nodes].astype(np.float64), inner.threshold[nodes]], axis=1)
        cuts, at_first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        feature = cuts[:, 0].astype(np.intp)
        column = np.array([self.tracks[f].column for f in feature])
        place = np.zeros(len(cuts), np.intp)  # of the cut among its column's, so that a row tries one cut a column
        for j in np.unique(column):
            place[column == j] = np.arange((column == j).sum())
        low, high = self.probe.reach(numeric)
        witness, n_places = nodes[at_first], int(place.max()) + 1

        def goes_left(values: Floats) -> Bools:
            rows = np.repeat(self.probe.usual[None, :], len(values) * n_places, axis=0)
            at = place + n_places * np.arange(len(values))[:, None]
            rows[at, column] = values
            made = self.probe.features(rows)[at, feature]
            return self._goes_left(np.tile(witness, len(values)), made.reshape(-1)).reshape(values.shape)

        return pull_back(goes_left, low[column], high[column])[np.asarray(inverse).reshape(-1)]

    def _features_of_missing(self, column: int) -> NDArray[Any] | None:
        """(n_features,) what becomes of a missing value in a column; None where it is refused."""
        made = self.probe.varied(column, np.array([np.nan]))
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
