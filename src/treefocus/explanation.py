"""The answer: rows in the user's units, with status, distance and what is proven about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from treefocus.certificate import certify
from treefocus.errors import InvalidInput
from treefocus.forest import Bools, Floats
from treefocus.problem import Problem
from treefocus.render import text
from treefocus.render.plot import change_bars
from treefocus.schema import FLOAT32, INTEGER, Schema
from treefocus.search.base import History, Limits, Outcome, Status
from treefocus.tables import Table

FORMAT = "treefocus-explanations-1"


@dataclass(frozen=True)
class Change:
    """One feature that has to move.

    `shown` is the shortest number that the model cannot tell from `after`, at most 0.5 % of the change away from it.
    """

    feature: str
    before: float
    after: float
    shown: float
    share: float  # of the total change, measured in the scaled space
    unit: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "feature": self.feature, "before": self.before, "after": self.after, "shown": self.shown,
            "share": self.share, "unit": self.unit,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Explanation:
    """One row's answer."""

    label: Any  # the row's name in its table
    row: Floats
    counterfactual: Floats | None
    changes: tuple[Change, ...]
    predicted: Any
    outcome: Any  # the class the counterfactual gets, None where there is none
    status: Status
    reason: str
    distance: float | None
    lower_bound: float
    distance_name: str
    problem: Problem | None = None  # the question it answers, of this row alone
    limits: Limits | None = None  # of the search that proved it

    @property
    def gap(self) -> float | None:
        """How much smaller, at most, a change could be: (distance - lower_bound) / distance; None without a change."""
        return gap_of(self.distance, self.lower_bound)

    def to_text(self) -> str:
        """The answer as sentences."""
        return text.sentence(self)

    def plot(self, ax: Any = None) -> Any:
        """The changes as signed bars (needs matplotlib); returns the axes."""
        return change_bars(self, ax)

    def certificate(self) -> dict[str, Any]:
        """The answer with all that is needed to check it, for `json.dump` and `treefocus verify`."""
        if self.problem is None:
            raise InvalidInput("This explanation does not know its question, so there is nothing to certify.")
        point, bound = self.counterfactual, self.lower_bound
        return certify(self.problem, point, self.distance, bound, self.status, self.limits)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values for JSON."""
        return {
            "row": _for_json(self.label),
            "predicted": _for_json(self.predicted),
            "outcome": _for_json(self.outcome),
            "status": self.status.name,
            "reason": self.reason,
            "distance": self.distance,
            "lower_bound": _finite(self.lower_bound),
            "gap": self.gap,
            "changes": [change.to_dict() for change in self.changes],
            "counterfactual": None if self.counterfactual is None else [_finite(v) for v in self.counterfactual],
        }

    def __repr__(self) -> str:
        return f"Explanation(row={self.label!r}, {self.status.name}, distance={self.distance})"


@dataclass(frozen=True, eq=False)
class Explanations:
    """The answers to a batch, in the order of its rows. Index it for one row; `counterfactuals` is the whole table."""

    table: Table
    schema: Schema
    points: Floats  # (n_rows, n_features), NaN where none
    shown: Floats  # (n_rows, n_features), the same cells in the shortest numbers
    parts: Floats  # (n_rows, n_features), each feature's part of the change in the scaled space
    predicted: np.ndarray[Any, Any]  # (n_rows,) labels before, None where the model cannot read the row
    outcome: np.ndarray[Any, Any]  # (n_rows,) labels after, None where none
    found: Outcome
    reasons: tuple[str, ...]
    distance_name: str
    problem: Problem
    seconds: float

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
        return Explanation(
            label=_plain(self.labels[i]),
            row=self.table.values[i],
            counterfactual=self.points[i] if has_answer else None,
            changes=self._changes(i) if has_answer else (),
            predicted=_plain(self.predicted[i]),
            outcome=_plain(self.outcome[i]),
            status=self.status[i],
            reason=self.reasons[i],
            distance=float(self.distance[i]) if has_answer else None,
            lower_bound=float(self.lower_bound[i]),
            distance_name=self.distance_name,
            problem=self.problem.subset(np.array([i])),
            limits=self.found.limits,
        )

    def _changes(self, i: int) -> tuple[Change, ...]:
        row, point = self.table.values[i], self.points[i]
        moved = np.flatnonzero(self._is_moved[i])
        part = np.abs(self.parts[i])
        order = moved[np.argsort(-part[moved], kind="stable")]
        total = part[moved].sum() or 1.0
        return tuple(
            Change(
                feature=self.schema.features[j].name,
                before=_as_written(row[j], self.table.grain[j]),
                after=float(point[j]),
                shown=float(self.shown[i, j]),
                share=float(part[j] / total),
                unit=self.schema.features[j].unit,
            )
            for j in order
        )

    @cached_property
    def _is_moved(self) -> Bools:
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
        index = getattr(self.table.native, "index", None)
        return range(len(self)) if index is None or callable(index) else index

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
        return np.array([np.nan if g is None else g for g in map(gap_of, self.distance, self.lower_bound)])

    @property
    def history(self) -> History | None:
        """Share found and mean distance per iteration, where the strategy kept them."""
        return self.found.history

    @property
    def has_answer(self) -> Any:
        """(n_rows,) whether there is a counterfactual."""
        return np.array([status.has_answer for status in self.status], dtype=bool)

    def to_frame(self) -> Any:
        """The counterfactuals with status, distance, lower bound, gap and both predictions, a row a row.

        A DataFrame of the same library as the input; NumPy input gives one of whichever library is installed.
        """
        return frame_like(self.table, self.records())

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name."""
        points = {
            name: _nullable(self.points[:, j], is_whole=self.table.grain[j] == INTEGER)
            for j, name in enumerate(self.schema.names)
        }
        return {
            "row": [_plain(label) for label in self.labels],
            "predicted": [_plain(label) for label in self.predicted],
            "outcome": [_plain(label) for label in self.outcome],
            "status": [status.name for status in self.status],
            "distance": _nullable(self.distance),
            "lower_bound": self.lower_bound.tolist(),
            "gap": _nullable(self.gap),
            "reason": list(self.reasons),
        } | {(name if name not in _OWN_COLUMNS else f"{name} (value)"): column for name, column in points.items()}

    def to_json(self, path: str | Path | None = None) -> str:
        """All answers as JSON, written to `path` if given."""
        record = {
            "format": FORMAT,
            "features": [
                {"name": f.name, "kind": f.kind, "unit": f.unit, "description": f.description}
                for f in self.schema.features
            ],
            "distance": self.distance_name,
            "rows": [one.to_dict() for one in self],
        }
        result = json.dumps(record, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(result, encoding="utf-8")
        return result

    def to_text(self, limit: int | None = None) -> str:
        """Sentences, a line a row, for the first `limit` rows or all."""
        n_rows = len(self) if limit is None else min(limit, len(self))
        return "\n".join(self[i].to_text() for i in range(n_rows))

    def summary(self) -> dict[str, Any]:
        """The batch in numbers: rows, rows per status, share found, mean distance and gap, rows per second."""
        answered = self.has_answer
        names = [status.name for status in self.status]
        return {
            "rows": len(self),
            "status": {status.name: names.count(status.name) for status in Status if status.name in names},
            "share_found": float(answered.mean()) if len(self) else float("nan"),
            "mean_distance": float(self.distance[answered].mean()) if answered.any() else float("nan"),
            "mean_gap": float(self.gap[answered].mean()) if answered.any() else float("nan"),
            "mean_features_changed": float(self._is_moved[answered].sum(axis=1).mean())
            if answered.any()
            else float("nan"),
            "seconds": self.seconds,
            "rows_per_second": len(self) / self.seconds if self.seconds > 0 else float("inf"),
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.summary()["status"].items())
        size = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"Explanations({size}{': ' if counts else ''}{counts})"


_OWN_COLUMNS = ("row", "predicted", "outcome", "status", "distance", "lower_bound", "gap", "reason")


def gap_of(distance: float | None, lower_bound: float) -> float | None:
    """(distance - lower_bound) / distance, 0 for a distance of 0, None without one."""
    if distance is None or np.isnan(distance):
        return None
    return float(max(0.0, (distance - lower_bound) / distance)) if distance > 0 else 0.0


def frame_like(table: Table, columns: dict[str, list[Any]]) -> Any:
    """Columns as a DataFrame of the same library as the table's, else of one that is installed."""
    import importlib

    import narwhals as nw

    frame = nw.from_native(table.native, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.from_dict(columns, backend=nw.get_native_namespace(frame)).to_native()
    for name in ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(columns, backend=importlib.import_module(name)).to_native()
        except ImportError:
            continue
    raise ImportError("to_frame needs pandas, polars or pyarrow; records() gives plain columns without them.")


def _nullable(values: Floats, is_whole: bool = False) -> list[float | None]:
    kind = int if is_whole else float
    return [None if np.isnan(value) else kind(value) for value in values]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _as_written(value: float, grain: int) -> float:
    """A float32 value as its owner wrote it: 0.1, and not 0.10000000149011612."""
    return float(str(np.float32(value))) if grain == FLOAT32 else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _for_json(label: Any) -> Any:
    """A row's or class's name as JSON can hold it: a date, say, as text."""
    plain = _plain(label)
    is_plain = plain is None or isinstance(plain, str | int) or (isinstance(plain, float) and np.isfinite(plain))
    return plain if is_plain else str(plain)
