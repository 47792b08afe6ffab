"""What is computed about answers before it is drawn or told: probabilities, maps, paths, and views of a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import reject
from treefocus.explanation.rounding import difference, short_before
from treefocus.model.forest import Bools, Floats
from treefocus.render import summary as text_of_summary
from treefocus.schema.schema import Feature, Schema
from treefocus.search.base import Status
from treefocus.tables.frames import frame_of
from treefocus.tables.labels import label_of
from treefocus.tables.table import Table


@dataclass(frozen=True)
class AskedFeature:
    """How often a feature is asked to change in a batch, and by how much, or to which category."""

    feature: str
    unit: str
    rows: int
    share: float  # of the rows with an answer
    n_up: int
    n_down: int
    typical_up: float | None  # the median step where it grows
    typical_down: float | None  # the median step where it shrinks, negative
    n_other: int = 0  # to another category, or from or to a missing value
    typical_other: Any = None  # the most common of those values, None for a missing one

    @property
    def typical(self) -> float:
        """The median step in the direction that is asked for more often."""
        step = self.typical_up if self.n_up >= self.n_down else self.typical_down
        return 0.0 if step is None else step

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


class BatchSummary(dict[str, Any]):
    """A batch in numbers: a mapping that prints as a table; `to_frame` has the features, a line each.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import explain
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
    >>> summary = explain(model, data, data).summary()
    >>> summary["rows"], summary["status"]
    (4, {'OPTIMAL': 4})
    >>> print(str(summary).splitlines()[0])
    4 rows: 4 OPTIMAL
    """

    def __repr__(self) -> str:
        return text_of_summary.summary_text(self)

    def __str__(self) -> str:
        return text_of_summary.summary_text(self)

    def _repr_html_(self) -> str:
        return text_of_summary.summary_html(self)

    def to_dict(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return dict(self)

    def to_frame(self) -> Any:
        """The features that are asked to change as a DataFrame, the most asked-for first, a line each."""
        names = [own.name for own in fields(AskedFeature)]
        columns: dict[str, list[Any]] = {name: [one[name] for one in self["features"]] for name in names}
        others = columns["typical_other"]
        if any(other is not None and not isinstance(other, float) for other in others):
            columns["typical_other"] = [None if other is None else str(other) for other in others]
        return frame_of(columns)


def asked(schema: Schema, table: Table, shown: Floats, moved: Bools, n_answered: int) -> list[AskedFeature]:
    """Every feature that changes in some answer, the most asked-for first; moved: (n_rows, n_features)."""
    counts = moved.sum(axis=0)
    result = []
    for j in np.argsort(-counts, kind="stable"):
        if not counts[j]:
            break
        own = None if table.labels is None else table.labels[j]
        after = shown[moved[:, j], j]
        step = (
            np.full(len(after), np.nan)
            if own is not None
            else _told(table.values[moved[:, j], j], after, schema.features[j])
        )
        up, down, other = step[step > 0], step[step < 0], after[np.isnan(step)]
        found = AskedFeature(
            schema.features[j].name, _unit(schema.features[j]), int(counts[j]), float(counts[j] / n_answered),
            len(up), len(down), _median(up), _median(down), len(other), _commonest(other, own),
        )  # fmt: skip
        result.append(found)
    return result


def _commonest(values: Floats, labels: Sequence[Any] | None) -> Any:
    if not values.size:
        return None
    found, counts = np.unique(values, return_counts=True)
    value = float(found[np.argmax(counts)])
    return label_of(value, labels) if labels is not None else None if np.isnan(value) else value


def _unit(feature: Feature) -> str:
    """What the steps of a column are counted in: dates in days."""
    return "days" if feature.is_date else feature.unit


def _told(before: Floats, after: Floats, feature: Feature) -> Floats:
    """How far numbers move, as they are told: 0.1 from 0.2 to 0.3; dates in days."""
    steps, decimals = [], feature.decimals
    if feature.counting is not None:
        return (after - before) / feature.counting.per_day
    for own, shown in zip(before.tolist(), after.tolist(), strict=True):
        is_number = own == own and shown == shown
        steps.append(difference(short_before(own, shown, decimals), shown) if is_number else np.nan)
    return np.array(steps, np.float64)


def _median(values: Floats) -> float | None:
    """The lower of the middle ones, so that it is a step that somebody was really asked to take."""
    return float(np.quantile(values, 0.5, method="lower")) if values.size else None


def burdens(groups: Sequence[Any], status: NDArray[np.object_], distance: Floats) -> dict[Any, dict[str, Any]]:
    """What each group is asked for: rows, share with an answer, share proven to have none, mean and median distance."""
    if len(groups) != len(status):
        reject("groups", f"a label for each of the {len(status)} rows", len(groups))
    answered = np.array([one.has_answer for one in status], bool)
    infeasible = np.array([one is Status.INFEASIBLE for one in status], bool)
    members: dict[Any, list[int]] = {}
    for i, label in enumerate(groups):
        key = label.item() if isinstance(label, np.generic) else label
        members.setdefault(None if key != key else key, []).append(i)
    result = {}
    for label in sorted(members, key=lambda name: (name is None, str(type(name)), name) if _sorts(name) else (True,)):
        own = np.array(members[label])
        far = distance[own][answered[own]]
        result[label] = {
            "rows": len(own),
            "share_found": float(answered[own].mean()),
            "share_infeasible": float(infeasible[own].mean()),
            "mean_distance": float(far.mean()) if far.size else float("nan"),
            "median_distance": float(np.median(far)) if far.size else float("nan"),
        }
    return result


def _sorts(name: Any) -> bool:
    return isinstance(name, str | int | float)
