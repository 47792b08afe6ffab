"""The answer: rows in the user's units, with status, distance and what is proven about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput
from treefocus.explanation import json as interchange
from treefocus.explanation import predictions, summary
from treefocus.explanation.change import Change, as_written, changes_of, plain
from treefocus.explanation.json import FORMAT
from treefocus.explanation.reasons import Reason
from treefocus.explanation.row import Explanation, before_and_after, change_columns, gap_of
from treefocus.explanation.summary import AskedFeature
from treefocus.model.forest import Bools, Floats
from treefocus.problem.problem import Problem
from treefocus.problem.question import Group, Question
from treefocus.render import html, plot
from treefocus.render import table as tables
from treefocus.render.phrases import DEFAULT
from treefocus.schema.schema import INTEGER, Schema
from treefocus.search.base import History, Outcome, Status
from treefocus.tables.frames import frame_of
from treefocus.tables.labels import is_null
from treefocus.tables.table import Table

_LONE = re.compile("[\ud800-\udfff]")

__all__ = ["FORMAT", "Change", "Explanation", "Explanations", "gap_of"]


@dataclass(frozen=True, eq=False)
class Explanations:
    """The answers to a batch, in the order of its rows. Index it for one row; `counterfactuals` is the whole table.

    Attributes
    ----------
    predicted : array of shape (n_rows,)
        Labels or numbers before, None where the model cannot read the row.
    outcome : array of shape (n_rows,)
        Labels or numbers after, None where there is no answer.
    reasons : tuple of str
        What is said of each row: how it came out, or why it has no answer.
    seconds : float
        How long all of them took.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import explain
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
    >>> found = explain(model, data, data)
    >>> len(found), found[0].outcome, found[3].outcome
    (4, 'high', 'low')
    """

    table: Table
    schema: Schema
    points: Floats  # (n_rows, n_features), NaN where none
    shown: Floats  # (n_rows, n_features), the same cells in the shortest numbers
    parts: Floats  # (n_rows, n_features), each feature's part of the change in the scaled space
    predicted: np.ndarray[Any, Any]  # (n_rows,) labels or numbers before, None where the model cannot read the row
    outcome: np.ndarray[Any, Any]  # (n_rows,) labels or numbers after, None where none
    found: Outcome
    why: tuple[Reason, ...]
    distance_name: str
    problem: Problem | None  # None where they were read from JSON
    seconds: float
    row_labels: tuple[Any, ...] | None = None  # where the table does not have them
    question: Question | None = None  # as the user put it; None where they were read from JSON
    others: tuple[Explanations, ...] = ()  # every row's second way out, third, ..., as far as they were asked for
    is_value: bool = False  # the answers are predicted numbers, not classes
    favoured: Any = None  # the class whose probability was asked for
    likelihood: Floats | None = None  # (n_rows, 2) its probability before and after, NaN where none
    favoured_of: tuple[Any, ...] | None = None  # the same, one a row, where they differ
    groups: tuple[Group, ...] = ()  # the questions, where rows were asked different ones

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each row came out as it did, in English."""
        return tuple(map(str, self.why))

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, i: int) -> Explanation: ...

    @overload
    def __getitem__(self, i: slice) -> tuple[Explanation, ...]: ...

    def __getitem__(self, i: int | slice) -> Explanation | tuple[Explanation, ...]:
        if isinstance(i, slice):
            return tuple(self[k] for k in range(len(self))[i])
        if not -len(self) <= i < len(self):
            raise IndexError(f"There are {len(self)} explanations, no number {i}.")
        i = i % len(self)
        has_answer = self.status[i].has_answer
        question, position = self._asked_of(i)
        changes = changes_of(self.schema, self.table, i, self.points[i], self.shown[i], self.parts[i])
        return Explanation(
            label=plain(self.labels[i]),
            row=self.table.values[i],
            counterfactual=self.points[i] if has_answer else None,
            changes=changes if has_answer else (),
            predicted=plain(self.predicted[i]),
            outcome=plain(self.outcome[i]),
            status=self.status[i],
            why=self.why[i],
            distance=float(self.distance[i]) if has_answer else None,
            lower_bound=float(self.lower_bound[i]),
            distance_name=self.distance_name,
            schema=self.schema,
            batch=self.problem,
            position=position,
            limits=self.found.limits,
            question=question,
            others=tuple(other[i] for other in self.others),
            cells=() if self.table.labels is None else self.table.row(i),
            labels=self.table.labels,
            is_value=self.is_value,
            favoured=self.favoured if self.favoured_of is None else self.favoured_of[i],
            likelihood=self._likelihood(i),
            table=self.table,
            place=i,
        )

    def _asked_of(self, i: int) -> tuple[Question | None, int]:
        """The question that row i was asked, and its place in it."""
        if not self.groups:
            return self.question, i
        group, place = self._places[i]
        return self.groups[group].question, int(place)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """(n_rows, 2) the group of each row, and its place there."""
        places = np.empty((len(self), 2), np.intp)
        for number, group in enumerate(self.groups):
            places[group.rows, 0], places[group.rows, 1] = number, np.arange(len(group.rows))
        return places

    def _likelihood(self, i: int) -> tuple[float, float | None] | None:
        if self.likelihood is None or self.predicted[i] is None:
            return None
        return before_and_after(self.likelihood[i])

    @cached_property
    def is_moved(self) -> Bools:
        """(n_rows, n_features) whether a value changes, where there is an answer."""
        rows = self.table.values
        return np.asarray((rows != self.points) & ~(np.isnan(rows) & np.isnan(self.points)))

    @cached_property
    def counterfactuals(self) -> Any:
        """The answers as a table like the one that was asked about; missing where there is none."""
        return self.table.like(self.points)

    @property
    def labels(self) -> Any:
        """(n_rows,) the rows' names: a DataFrame's index, else 0, 1, ..."""
        if self.row_labels is not None:
            return self.row_labels
        index = getattr(self.table.native, "index", None)
        return range(len(self)) if index is None or callable(index) else index

    @property
    def ways(self) -> tuple[Explanations, ...]:
        """The first way out of every row, the second, and so on, as far as `explain(n=...)` asked for them."""
        return (replace(self, others=()), *self.others)

    @property
    def status(self) -> Any:
        """(n_rows,) of Status."""
        return self.found.status

    @property
    def distance(self) -> Floats:
        """(n_rows,) how far each answer is, NaN where there is none."""
        return self.found.distance

    @property
    def lower_bound(self) -> Floats:
        """(n_rows,) proven: no answer is closer than this; infinity where none exists."""
        return self.found.lower_bound

    @property
    def gap(self) -> Floats:
        """(n_rows,) how much smaller, at most, each change could be, as a share of it; NaN where there is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.maximum(0.0, (self.distance - self.lower_bound) / self.distance)
        return np.where(self.distance == 0, 0.0, gap)

    @property
    def history(self) -> History | None:
        """Share found and mean distance per iteration, where the strategy kept them."""
        return self.found.history

    @property
    def has_answer(self) -> Any:
        """(n_rows,) whether there is a counterfactual."""
        return self.found.has_answer

    def to_frame(self) -> Any:
        """The counterfactuals with status, distance, lower bound, gap and both predictions, a row a row.

        A DataFrame of the same library as the input; NumPy input gives one of whichever library is installed.
        """
        return frame_of(self.records(), self.table.native)

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name. Where several ways out were asked for, a line a way, with its number."""
        if self.others:
            return _interleaved([way.records() for way in self.ways])
        points = {name: self._answers_of(j) for j, name in enumerate(self.schema.names)}
        return {
            "row": [plain(label) for label in self.labels],
            "predicted": [plain(label) for label in self.predicted],
            "outcome": [plain(label) for label in self.outcome],
            "status": [status.name for status in self.status],
            "distance": _nullable(self.distance),
            "lower_bound": self.lower_bound.tolist(),
            "gap": _nullable(self.gap),
            "reason": list(self.reasons),
        } | {(name if name not in _OWN_COLUMNS else f"{name} (value)"): column for name, column in points.items()}

    def _answers_of(self, j: int) -> list[Any]:
        """A column of the counterfactuals as plain values, None where there is none."""
        if self.table.labels_of(j) is None:
            return _nullable(self.points[:, j], is_whole=self.table.grain[j] == INTEGER)
        cells = zip(self.table.labelled(j, self.points[:, j]), self.has_answer, strict=True)
        return [plain(cell) if is_there and not is_null(cell) else None for cell, is_there in cells]

    def changes_frame(self) -> Any:
        """Every change of every row as a DataFrame like the input: row, feature, before, after, change, share, unit."""
        return frame_of(change_columns(self), self.table.native)

    def rounded(self, digits: int = 2, *, extra: float = 0.1) -> tuple[Explanation, ...]:
        """Every row's answer in round numbers; see `Explanation.rounded`."""
        return tuple(one.rounded(digits, extra=extra) for one in self)

    def to_json(self, path: str | Path | None = None) -> str:
        """All answers as JSON (docs/schema/explanations-1.json), written to `path` if given."""
        rows = [one.to_dict() for one in self]
        grain = self.table.grain.tolist()
        record = interchange.batch_record(self.schema, grain, self.distance_name, self.seconds, rows)
        record |= interchange.answers_record(self.table.labels, self.is_value, self.favoured, self.favoured_of)
        result = json.dumps(record, ensure_ascii=False, allow_nan=False)
        if not result.isascii() and _LONE.search(result):  # half a letter, which no file can hold
            result = json.dumps(record, allow_nan=False)
        if path is not None:
            Path(path).write_text(result, encoding="utf-8")
        return result

    @classmethod
    def from_json(cls, source: str | Path) -> Explanations:
        """Read what `to_json` wrote, from a file or from the text itself.

        All that was found comes back; the model does not, so whatever has to ask it (probabilities, maps,
        certificates) is refused.
        """
        is_text = isinstance(source, str) and source.lstrip()[:1] == "{"
        try:
            record = json.loads(str(source) if is_text else Path(source).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"The explanations are not readable JSON: {error}.") from error
        pieces = [cls(**one) for one in interchange.batch_pieces(record)]
        return replace(pieces[0], others=tuple(pieces[1:]))

    def to_html(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        language: str = DEFAULT,
        groups: str | Sequence[Any] | None = None,
    ) -> Path:
        """Write one self-contained page: summary, search and sort, and for each row sentence, table, picture, proof.

        groups: as in `summary`.
        """
        target = Path(path)
        target.write_text(html.report(self, self.summary(groups), title, language), encoding="utf-8")
        return target

    def to_text(self, limit: int | None = None, language: str = DEFAULT) -> str:
        """Sentences, a line a row, for the first `limit` rows or all."""
        n_rows = len(self) if limit is None else min(limit, len(self))
        return "\n".join(self[i].to_text(language) for i in range(n_rows))

    def asked(self) -> list[AskedFeature]:
        """Which features are asked to change, how often and by how much; the most asked-for first."""
        moved = self.is_moved & self.has_answer[:, None]
        return summary.asked(self.schema, self.table, self.shown, moved, int(self.has_answer.sum()))

    def probabilities(self) -> Floats:
        """(n_rows,) the model's probability, before any change, of what each row would become; NaN where no answer."""
        model = self.groups[0].question.forest if self.groups else predictions.known(self.problem).model
        answered = np.flatnonzero(self.has_answer)
        result = np.full(len(self), np.nan)
        if answered.size:
            every = predictions.probabilities(model, self.table.values[answered])
            asked: Any = self.favoured_of if self.favoured is None else [self.favoured] * len(self)
            told = self.outcome if asked is None else asked
            reached = [predictions.class_index(model, plain(told[i])) for i in answered]
            result[answered] = every[np.arange(len(answered)), reached]
        return result

    def plot(self, ax: Any = None, *, limit: int = 20, language: str = DEFAULT) -> Any:
        """Which features are asked to change, how often and by how much (needs matplotlib); returns the axes."""
        return plot.asked_bars(self, self.asked()[:limit], ax, language)

    def plot_distances(self, ax: Any = None, *, language: str = DEFAULT) -> Any:
        """The distance of every answer against the model's probability, or predicted number, before; returns axes."""
        if self.is_value:
            before = np.array([np.nan if value is None else value for value in self.predicted], np.float64)
            return plot.distance_points(self, before, ax, language)
        return plot.distance_points(self, self.probabilities(), ax, language)

    def _repr_html_(self) -> str:
        return html.overview_table(self)

    def __rich__(self) -> Any:
        return tables.overview_table(self)

    def summary(self, groups: str | Sequence[Any] | None = None) -> dict[str, Any]:
        """The batch in numbers: rows, rows per status, share found, mean distance and gap, most asked-for features.

        groups: a column's name or a label a row; the summary then has each group's burden (mean and median distance,
        share with an answer, share proven to have none) under "groups".
        """
        answered = self.has_answer
        result: dict[str, Any] = {
            "rows": len(self),
            "status": self._counts(),
            "share_found": float(answered.mean()) if len(self) else float("nan"),
            "mean_distance": float(self.distance[answered].mean()) if answered.any() else float("nan"),
            "mean_gap": float(self.gap[answered].mean()) if answered.any() else float("nan"),
            "mean_features_changed": float(self.is_moved[answered].sum(axis=1).mean())
            if answered.any()
            else float("nan"),
            "seconds": self.seconds,
            "rows_per_second": len(self) / self.seconds if self.seconds > 0 else float("inf"),
            "features": [one.to_dict() for one in self.asked()],
        }
        if groups is not None:
            labels = self._column(groups) if isinstance(groups, str) else list(groups)
            result["groups"] = summary.burdens(labels, self.status, self.distance)
        return result

    def _counts(self) -> dict[str, int]:
        """Rows per status, of those that occur."""
        counts = {status.name: int((self.status == status).sum()) for status in Status}
        return {name: count for name, count in counts.items() if count}

    def _column(self, name: str) -> list[Any]:
        """A column of the rows that were asked about; whole numbers as such."""
        j = self.schema.index(name)
        cells = [self.table.cell(i, j) for i in range(len(self))]
        if self.table.labels_of(j) is not None:
            return cells
        values = [float("nan") if cell is None else as_written(cell, self.table.grain[j]) for cell in cells]
        return [int(value) if value.is_integer() else value for value in values]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self._counts().items())
        size = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"Explanations({size}{': ' if counts else ''}{counts})"


def timed(found: Explanations, seconds: float) -> Explanations:
    """The same, with how long it took."""
    return replace(found, seconds=seconds, others=tuple(timed(other, seconds) for other in found.others))


def joined(pieces: Sequence[Explanations], groups: tuple[Group, ...], n_rows: int) -> Explanations:
    """One batch of the answers to its groups, whose rows were asked different questions."""
    first = pieces[0]

    def scattered(of_group: Sequence[Any]) -> Any:
        """(n_rows, ...) every group's lines where they belong."""
        whole = np.empty((n_rows, *of_group[0].shape[1:]), of_group[0].dtype)
        for group, lines in zip(groups, of_group, strict=True):
            whole[group.rows] = lines
        return whole

    def each(name: str) -> Any:
        return scattered([getattr(piece, name) for piece in pieces])

    names = ("points", "distance", "lower_bound", "status")
    found = {name: scattered([getattr(piece.found, name) for piece in pieces]) for name in names}
    favoured = [piece.favoured for piece in pieces]
    is_same = all(label == favoured[0] for label in favoured)
    by_row = scattered([np.array([piece.favoured] * len(piece) + [None], object)[:-1] for piece in pieces])
    reasons = scattered([np.array([*piece.why, None], object)[:-1] for piece in pieces])
    return replace(
        first,
        points=found["points"],
        shown=each("shown"),
        parts=each("parts"),
        predicted=each("predicted"),
        outcome=each("outcome"),
        found=Outcome(**found, limits=first.found.limits),
        why=tuple(reasons.tolist()),
        problem=None,
        question=None,
        others=tuple(joined([piece.others[k] for piece in pieces], groups, n_rows) for k in range(len(first.others))),
        favoured=favoured[0] if is_same else None,
        favoured_of=None if is_same else tuple(by_row.tolist()),
        likelihood=None if first.likelihood is None else each("likelihood"),
        groups=groups,
    )


_OWN_COLUMNS = ("row", "way", "predicted", "outcome", "status", "distance", "lower_bound", "gap", "reason")


def _interleaved(ways: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """One table of several with the same rows, row by row; a further way only where there is one."""
    lines = [
        (k, i)
        for i in range(len(ways[0]["row"]))
        for k, way in enumerate(ways)
        if k == 0 or way["distance"][i] is not None
    ]
    first, *names = ways[0]
    columns = {name: [ways[k][name][i] for k, i in lines] for name in (first, *names)}
    return {first: columns.pop(first), "way": [k + 1 for k, _ in lines]} | columns


def _nullable(values: Floats, is_whole: bool = False) -> list[float | None]:
    kind = int if is_whole else float
    return [None if np.isnan(value) else kind(value) for value in values]
