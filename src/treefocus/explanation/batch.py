"""The answer: rows in the user's units, with status, distance and what is proven about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.explanation import json as interchange
from treefocus.explanation import predictions, summary
from treefocus.explanation.agreement import stability_of
from treefocus.explanation.answers import Answers
from treefocus.explanation.audit.audit import Audit, audit_of
from treefocus.explanation.audit.preclusion import SAMPLE
from treefocus.explanation.change import Change, as_written
from treefocus.explanation.frame import answer_columns, change_columns, nullable
from treefocus.explanation.json import FORMAT
from treefocus.explanation.row import Explanation
from treefocus.explanation.stability import Stability
from treefocus.explanation.summary import AskedFeature, BatchSummary
from treefocus.model.forest import Floats
from treefocus.render import html, plot
from treefocus.render import table as tables
from treefocus.render.phrases import DEFAULT
from treefocus.search.base import History, Status
from treefocus.tables.frames import frame_of

_LONE = re.compile("[\ud800-\udfff]")

__all__ = ["FORMAT", "Change", "Explanation", "Explanations"]


@dataclass(frozen=True, eq=False)
class Explanations(Answers):
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

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each row came out as it did, in English."""
        said = {id(reason): str(reason) for reason in {id(reason): reason for reason in self.why}.values()}
        return tuple([said[id(reason)] for reason in self.why])  # most rows share theirs

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
        return Explanation(self, i % len(self))

    @cached_property
    def counterfactuals(self) -> Any:
        """The answers as a table like the one that was asked about; missing where there is none."""
        return self.table.like(self.points)

    @property
    def ways(self) -> tuple[Explanations, ...]:
        """The first way out of every row, the second, and so on, as far as `explain(n=...)` asked for them."""
        return (replace(self, others=()), *self.others)

    @property
    def history(self) -> History | None:
        """Share found and mean distance per iteration, where the strategy kept them."""
        return self.found.history

    def to_frame(self) -> Any:
        """The counterfactuals with status, distance, lower bound, gap and both predictions, a row a row.

        A DataFrame of the same library as the input; NumPy input gives one of whichever library is installed.
        """
        return frame_of(self.records(), self.table.native)

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name. Where several ways out were asked for, a line a way, with its number."""
        columns = answer_columns(self)
        if self.held is None or self.others:
            return columns
        added = {"stability": self.held.share, "stability_low": self.held.low, "stability_high": self.held.high}
        return columns | {name: nullable(own) for name, own in added.items() if name not in columns}

    def changes_frame(self) -> Any:
        """Every change of every row as a DataFrame like the input: row, feature, before, after, change, share, unit."""
        return frame_of(change_columns(self), self.table.native)

    def rounded(self, digits: int = 2, *, extra: float = 0.1) -> tuple[Explanation, ...]:
        """Every row's answer in round numbers; see `Explanation.rounded`."""
        return tuple(one.rounded(digits, extra=extra) for one in self)

    def to_json(self, path: str | Path | None = None) -> str:
        """All answers as JSON (docs/schema/explanations-1.json), written to `path` if given."""
        record = interchange.batch_record(self)
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
        return interchange.read_batch(record, cls)

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

    def to_text(self, limit: int | None = None, language: str = DEFAULT, *, proof: bool = False) -> str:
        """Sentences, a line a row, for the first `limit` rows or all."""
        n_rows = len(self) if limit is None else min(limit, len(self))
        return "\n".join(self[i].to_text(language, proof=proof) for i in range(n_rows))

    def asked(self) -> list[AskedFeature]:
        """Which features are asked to change, how often and by how much; the most asked-for first."""
        moved = self.is_moved & self.has_answer[:, None]
        return summary.asked(self.schema, self.table, self.shown, moved, int(self.has_answer.sum()))

    def probabilities(self) -> Floats:
        """(n_rows,) the model's probability, before any change, of what each row would become; NaN where no answer."""
        model, answered, result = self.model, np.flatnonzero(self.has_answer), np.full(len(self), np.nan)
        if answered.size:
            every = predictions.probabilities(model, self.table.values[answered])
            reached = [predictions.class_index(model, self[i].pictured_class) for i in answered.tolist()]
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

    def summary(self, groups: str | Sequence[Any] | None = None) -> BatchSummary:
        """The batch in numbers: rows, rows per status, share found, mean distance and gap, most asked-for features.

        A mapping that prints as a table, with `to_dict()` and `to_frame()`.

        groups: a column's name or a label a row; the summary then has each group's burden (mean and median distance,
        share with an answer, share proven to have none) under "groups".
        """
        answered = self.has_answer
        result = BatchSummary(
            {
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
        )
        if self.held is not None:
            low, high = self.held.interval
            result["stability"] = {"models": self.held.n_models, "mean": self.held.mean, "low": low, "high": high}
        if groups is not None:
            labels = self._column(groups) if isinstance(groups, str) else list(groups)
            result["groups"] = summary.burdens(labels, self.status, self.distance)
        return result

    def audit(
        self,
        groups: Any = None,
        *,
        reference: Mapping[str, Any] | None = None,
        min_group: int = 0,
        level: float = 0.95,
        why: int = SAMPLE,
        first_row: int = 0,
        n_jobs: int | None = None,
    ) -> Audit:
        """What the model demands of these people: who has no way out, what is asked of the others, and of whom more.

        Parameters
        ----------
        groups : column, DataFrame, mapping of columns, or a label a row, optional
            To whom the rows belong; columns of the rows by name, or anything else that has a label a row. The search
            has not seen them, unless they are columns of the model.
        reference : mapping of columns to labels, optional
            The group that the others of a column are compared with; its largest if not given.
        min_group : int
            Groups are not shown if fewer people stand behind one of their numbers, nor others from which they could be
            computed.
        level : float
            Of the intervals, and the chance of no false finding at all.
        why : int
            How many of the rows without a way out are asked which constraints stand in it.
        first_row : int
            The number of the first row, where these are a part of more rows whose audits will be merged.
        n_jobs : int, optional
            Threads; all cores if not given.

        Returns
        -------
        Audit
            To read (`to_text`, `to_frame`, `to_html`, `plot`), to merge and to compare.
        """
        return audit_of(
            self, groups, own_column=self._column, reference=reference, min_group=min_group, level=level, why=why,
            first_row=first_row, n_jobs=n_jobs,
        )  # fmt: skip

    def stability(self, models: Sequence[Any]) -> Stability:
        """How many of these models give every answer the same class, or a number where it was asked for.

        Parameters
        ----------
        models : sequence of fitted models
            As `treefocus.refits` makes them: they read the same table as the model.

        Returns
        -------
        Stability
            A share a row with its confidence interval; `with_stability` keeps it with the answers.
        """
        return stability_of(self, models)

    def with_stability(self, models: Sequence[Any]) -> Explanations:
        """The same, with what these models say of the answers: in `to_frame`, `summary` and `to_html`."""
        return replace(self, held=stability_of(self, models))

    def labelled(self, labels: Sequence[Any] | None) -> Explanations:
        """The same with other names for the rows; None leaves them."""
        if labels is None:
            return self
        if len(labels) != len(self):
            reject("labels", f"a name for each of the {len(self)} rows", len(labels))
        others = tuple(replace(other, row_labels=tuple(labels)) for other in self.others)
        return replace(self, row_labels=tuple(labels), others=others)

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
