"""Which raw column every feature behind a pipeline's preprocessing comes from, step by step.

Every supported step treats each column alone: it may make several features of a column, never one of several columns.
So a feature has one raw column, and what a step does to it can be asked of the fitted step itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
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
    StandardScaler,
    TargetEncoder,
)

from treefocus.adapters.pipeline_functions import INSTEAD, ways_of
from treefocus.errors import UnsupportedModel
from treefocus.tables.labels import is_null

SCALERS: tuple[type, ...] = (
    StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler, PowerTransformer, QuantileTransformer, Binarizer,
)  # fmt: skip
ENCODERS: tuple[type, ...] = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
_STEPS = (
    ColumnTransformer, FeatureUnion, Pipeline, SimpleImputer, MissingIndicator, FunctionTransformer, KBinsDiscretizer,
    *SCALERS, *ENCODERS,
)  # fmt: skip


@dataclass(frozen=True)
class Track:
    """A feature on its way through the steps: the raw column it comes from and what has been done to it."""

    column: int
    is_scaled: bool = False
    is_encoded: bool = False
    is_falling: bool = False  # the larger the raw number, the smaller the feature


@dataclass
class Walk:
    """What is learnt about the raw columns on the way."""

    labels: dict[int, list[Any]] = field(default_factory=dict)  # the categories that encoders know, per raw column
    numeric: set[int] = field(default_factory=set)  # columns that some step reads as numbers
    dates: set[int] = field(default_factory=set)  # columns that some step reads as dates
    touched: set[int] = field(default_factory=set)  # columns that some step reads at all
    absent: dict[int, Any] = field(default_factory=dict)  # how a missing category is written, where it is not NaN
    fillers: dict[int, list[Any]] = field(default_factory=dict)  # what imputers write for a missing category
    blanks: dict[int, list[Any]] = field(default_factory=dict)  # what imputers take for a missing category
    orders: dict[int, tuple[Any, ...]] = field(
        default_factory=dict
    )  # the categories as an OrdinalEncoder was told them

    def through(self, step: Any, name: str, tracks: Sequence[Track]) -> list[Track]:
        """The features behind a fitted step."""
        if is_sampler(step):
            return list(tracks)
        if step is None or _is_word(step, "passthrough"):
            self.touched.update(track.column for track in tracks)
            return list(tracks)
        if isinstance(step, Pipeline):
            for inner_name, inner in step.steps:
                tracks = self.through(inner, f"{name}: {inner_name}" if name else inner_name, tracks)
            return list(tracks)
        if isinstance(step, ColumnTransformer):
            return self._column_transformer(step, name, tracks)
        if isinstance(step, FeatureUnion):
            return [
                t for own, inner in step.transformer_list if inner != "drop" for t in self.through(inner, own, tracks)
            ]
        self.touched.update(track.column for track in tracks)
        if isinstance(step, FunctionTransformer) and step.func is None:
            return list(tracks)
        if isinstance(step, SelectorMixin):
            return [track for track, is_kept in zip(tracks, step.get_support(), strict=True) if is_kept]
        if isinstance(step, SimpleImputer):
            return self._imputer(step, name, tracks)
        if isinstance(step, MissingIndicator):
            return [replace(tracks[j], is_scaled=True) for j in step.features_]
        if isinstance(step, FunctionTransformer):
            ways = ways_of(step, name, len(tracks))
            tracks = [
                replace(track, is_falling=track.is_falling != falls)
                for track, falls in zip(tracks, ways.falls, strict=True)
            ]
            if ways.is_of_dates:
                return self._of_dates(name, tracks)
        if isinstance(step, KBinsDiscretizer) and step.encode != "ordinal":
            raise UnsupportedModel(
                f"The pipeline's step {name!r} is a KBinsDiscretizer with a column a bin, so that one number decides "
                "in two directions; use KBinsDiscretizer(encode='ordinal'), by which trees split as well."
            )
        if isinstance(step, (*SCALERS, FunctionTransformer, KBinsDiscretizer)):
            self.numeric.update(track.column for track in tracks if not track.is_encoded)
            return [replace(track, is_scaled=True) for track in tracks]
        if isinstance(step, ENCODERS):
            return self._encoder(step, name, tracks)
        raise UnsupportedModel(_unknown(step, name))

    def _of_dates(self, name: str, tracks: Sequence[Track]) -> list[Track]:
        """The features that a function makes of raw dates."""
        if any(track.is_scaled or track.is_encoded for track in tracks):
            raise UnsupportedModel(
                f"The pipeline's step {name!r} takes dates that a step before it has changed; give it the dates."
            )
        self.dates.update(track.column for track in tracks)
        return [replace(track, is_scaled=True) for track in tracks]

    def _column_transformer(self, step: ColumnTransformer, name: str, tracks: Sequence[Track]) -> list[Track]:
        found: list[Track] = []
        names = getattr(step, "feature_names_in_", None)
        for inner_name, inner, columns in step.transformers_:
            own = [tracks[j] for j in _positions(columns, names, len(tracks))]
            if own and not _is_word(inner, "drop"):
                made = self.through(inner, f"{name}: {inner_name}" if name else inner_name, own)
                place = step.output_indices_[inner_name]
                assert len(made) == place.stop - place.start, f"{inner_name} makes other features than expected"
                found += made
        return found

    def _imputer(self, step: SimpleImputer, name: str, tracks: Sequence[Track]) -> list[Track]:
        marker = step.missing_values
        if marker is None:
            self.absent.update((track.column, None) for track in tracks)
        elif not is_null(marker):
            if not isinstance(marker, str):
                raise UnsupportedModel(
                    f"The pipeline's step {name!r} takes the number {marker!r} for a missing value, so that it is no "
                    "longer a number like others; write missing values as NaN and fit it again."
                )
            for track in tracks:
                self._learn(track.column, [marker])
                self.blanks.setdefault(track.column, []).append(marker)
        if step.strategy != "most_frequent":  # which is a category of the table
            for track, fill in zip(tracks, step.statistics_, strict=True):
                if not (track.is_encoded or track.is_scaled or is_null(fill)):
                    self.fillers.setdefault(track.column, []).append(_plain(fill))
        is_kept = [step.keep_empty_features or not is_null(fill) for fill in step.statistics_]
        kept = [track for track, is_there in zip(tracks, is_kept, strict=True) if is_there]
        indicated = (
            [] if step.indicator_ is None else [replace(tracks[j], is_scaled=True) for j in step.indicator_.features_]
        )
        return kept + indicated

    def _encoder(self, step: Any, name: str, tracks: Sequence[Track]) -> list[Track]:
        if isinstance(step, OneHotEncoder):
            widths = list(step._n_features_outs)
        elif isinstance(step, TargetEncoder) and step.target_type_ == "multiclass":
            widths = [len(step.classes_)] * len(tracks)
        else:
            widths = [1] * len(tracks)
        found = []
        for track, known, width in zip(tracks, step.categories_, widths, strict=True):
            if track.is_scaled:
                raise UnsupportedModel(
                    f"The pipeline's step {name!r} ({type(step).__name__}) encodes numbers that a step before it has "
                    "changed; encode the column as it is."
                )
            if not track.is_encoded:
                labels = [_plain(label) for label in known if not is_null(label)]
                self._learn(track.column, labels)
                if isinstance(step, OrdinalEncoder) and not _is_word(step.categories, "auto"):
                    self.orders[track.column] = tuple(labels)
                if any(label is None for label in known):
                    self.absent[track.column] = None
            found += [replace(track, is_encoded=True)] * width
        return found

    def _learn(self, column: int, labels: Sequence[Any]) -> None:
        known = self.labels.setdefault(column, [])
        known += [label for label in labels if label not in known]


def is_sampler(step: Any) -> bool:
    """Whether a step chooses or makes training rows, as imbalanced-learn's do, and does nothing at prediction."""
    return hasattr(step, "fit_resample") and not hasattr(step, "transform")


def _positions(columns: Any, names: Any, n_columns: int) -> list[int]:
    """The numbers of the columns that a fitted ColumnTransformer gives to one of its transformers."""
    if callable(columns):
        raise UnsupportedModel("The ColumnTransformer is not fitted: its columns are still to be chosen.")
    if isinstance(columns, slice):
        known = [] if names is None else list(names)
        start, stop = (known.index(end) if isinstance(end, str) else end for end in (columns.start, columns.stop))
        if isinstance(columns.stop, str):
            stop += 1  # a slice of names has its last one
        return list(range(n_columns))[slice(start, stop, columns.step)]
    chosen = [columns] if np.ndim(columns) == 0 else list(columns)
    if chosen and all(isinstance(one, bool | np.bool_) for one in chosen):
        return [j for j, is_chosen in enumerate(chosen) if is_chosen]
    if chosen and isinstance(chosen[0], str):
        position = {name: j for j, name in enumerate(names)}
        return [position[name] for name in chosen]
    return [int(one) % n_columns for one in chosen]


def _is_word(step: Any, word: str) -> bool:
    return isinstance(step, str) and step == word


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _unknown(step: Any, name: str) -> str:
    known = ", ".join(sorted(each.__name__ for each in _STEPS))
    return (
        f"The pipeline's step {name!r} is a {type(step).__name__}, which cannot be taken apart column by column; known "
        f"are {known}. {INSTEAD}"
    )
