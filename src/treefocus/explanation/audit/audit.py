"""The audit: what a model demands of people, of all and of each group, and what can be concluded from that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, product
from numbers import Integral, Real
from operator import add
from pathlib import Path
from typing import Any

from treefocus.errors import reject
from treefocus.explanation.answers import Answers
from treefocus.explanation.audit.comparison import AuditComparison, compared
from treefocus.explanation.audit.disparities import Disparity, corrected, disparities_of
from treefocus.explanation.audit.groups import Key, as_group_columns, check_many, in_order, keyed_rows
from treefocus.explanation.audit.lines import AuditedGroup
from treefocus.explanation.audit.people import People
from treefocus.explanation.audit.preclusion import (
    SAMPLE,
    Obstacle,
    PreclusionSample,
    preclusion_record,
    sampled,
)
from treefocus.explanation.audit.reading import audited_rows
from treefocus.explanation.audit.sums import PARTS, GroupSums, Part
from treefocus.explanation.audit.suppression import is_few, suppressed, totals_of
from treefocus.explanation.change import plain
from treefocus.render import audit as told
from treefocus.render import audit_html, audit_plot
from treefocus.tables.frames import frame_of

FORMAT = "treefocus-audit-1"


@dataclass(frozen=True)
class AuditFrame:
    """What parts of an audit have to have in common to be merged, and how it is shown."""

    columns: tuple[str, ...]  # that make the groups
    features: tuple[str, ...]
    units: tuple[str, ...]
    distance: str
    reference: tuple[tuple[str, Any], ...] = ()  # the group that others are compared with, by column
    min_group: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.min_group, Integral) or isinstance(self.min_group, bool) or self.min_group < 0:
            reject("min_group", "a whole number from 0 up", repr(self.min_group))
        if not isinstance(self.level, Real) or not 0.5 <= float(self.level) < 1:
            reject("level", "a number from 0.5 to below 1", repr(self.level))
        unknown = [column for column, _ in self.reference if column not in self.columns]
        if unknown:
            reject("reference", f"labels by column of groups ({', '.join(self.columns) or 'none'})", unknown[0])


@dataclass(frozen=True, eq=False)
class Audit:
    """What a model demands of people: who has no way out, what is asked of the others, and of whom more.

    It is made by `Explanations.audit`, and by `treefocus.scale.audits` from streams and from answers in parts. Audits
    of parts merge: `audit.merged(other)`.

    Attributes
    ----------
    whole : AuditedGroup
        All rows.
    groups : tuple of AuditedGroup
        Each group of each column, then each crossing where there are several columns.
    disparities : tuple of Disparity
        Every group beside the reference, with `is_found` where that cannot be chance.
    obstacles : tuple of Obstacle
        The smallest sets of constraints that stand in the way of those without a way out, in a sample of them.
    warnings : tuple of str
        What keeps conclusions from being drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import Explainer
    >>> data = pd.DataFrame({"income": [20.0, 30.0, 50.0, 60.0], "debt": [5.0, 1.0, 4.0, 2.0]})
    >>> model = DecisionTreeClassifier().fit(data, ["declined", "declined", "approved", "approved"])
    >>> found = Explainer(model, data).explain(data, target="approved")
    >>> audit = found.audit(groups=["a", "b", "a", "b"])
    >>> audit.whole.rows, audit.whole.asked, audit.whole.precluded
    (4, 2, 0)
    >>> [(group.labels, group.helped) for group in audit.groups]
    [(('a',), 1), (('b',), 1)]
    """

    frame: AuditFrame
    sums: Mapping[Key, GroupSums]
    sample: PreclusionSample
    people: People | None = None

    def merged(self, *others: Audit) -> Audit:
        """The audit of all rows of these audits, which were made the same way and of other rows (`first_row`)."""
        every = (self, *others)
        for other in others:
            if other.frame != self.frame:
                reject("others", "audits of the same groups, features, distance and options", repr(other.frame))
        sums: dict[Key, GroupSums] = {}
        for key, own in chain.from_iterable(one.sums.items() for one in every):
            sums[key] = sums[key] + own if key in sums else own
        check_many(len(sums))
        return Audit(self.frame, sums, reduce(add, (one.sample for one in every)))

    def compare(self, other: Audit) -> AuditComparison:
        """The same people under another model, or at another date: who lost their way out, whose became cheaper.

        Parameters
        ----------
        other : Audit
            The later one, of the same rows, by their names.

        Returns
        -------
        AuditComparison
            Counts, a line a person, and sentences.
        """
        return compared(self.whole, other.whole, self.people, other.people, self.frame.level)

    # --- what it says

    @cached_property
    def whole(self) -> AuditedGroup:
        """All rows."""
        sums = reduce(add, self.sums.values())
        few = self.frame.min_group
        return AuditedGroup((), (), sums, self.frame.level, sums.people[0] < few or is_few(sums.people, few))

    @cached_property
    def groups(self) -> tuple[AuditedGroup, ...]:
        """Each group of each column, then each crossing; those that are not shown say so."""
        columns, level = self.frame.columns, self.frame.level
        return tuple(
            AuditedGroup(names, key, sums, level, (names, key) in self._hidden)
            for names, own in self._levels.items()
            for key, sums in own.items()
            if columns
        )

    @cached_property
    def disparities(self) -> tuple[Disparity, ...]:
        """Every group beside the reference of its column, by both measures, corrected for their number."""
        found: list[Disparity] = []
        for names, own in self._levels.items():
            shown = {key: sums for key, sums in own.items() if (names, key) not in self._hidden}
            reference = self._reference(names, shown)
            for key, sums in shown.items():
                if reference is not None and key != reference:
                    found += disparities_of(names, key, sums, reference, shown[reference], self.frame.level)
        return corrected(found, self.frame.level)

    @property
    def findings(self) -> tuple[Disparity, ...]:
        """Those disparities that cannot be chance."""
        return tuple(one for one in self.disparities if one.is_found)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """What stands in the way of those without a way out, in a sample of them."""
        return self.sample.obstacles()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What keeps conclusions from being drawn."""
        return told.warnings(self._facts)

    @cached_property
    def _levels(self) -> dict[tuple[str, ...], dict[Key, GroupSums]]:
        """Sums by group, of each column and of the crossing of all."""
        columns = self.frame.columns
        levels = [(name,) for name in columns] + ([columns] if len(columns) > 1 else [])
        result = {}
        for names in levels:
            places = [columns.index(name) for name in names]
            own: dict[Key, list[GroupSums]] = {}
            for key, sums in self.sums.items():
                own.setdefault(tuple(key[k] for k in places), []).append(sums)
            result[names] = {key: reduce(add, own[key]) for key in in_order(own)}
        return result

    @cached_property
    def _hidden(self) -> set[tuple[tuple[str, ...], Key]]:
        """Columns and labels of the groups that are not shown."""
        hidden: set[tuple[tuple[str, ...], Key]] = set()
        if not self.frame.min_group:
            return hidden
        for names, own in self._levels.items():
            counts = {key: sums.people for key, sums in own.items()}
            gone = {
                key for key in own for k, name in enumerate(names) if ((name,), (key[k],)) in hidden and len(names) > 1
            }
            totals = totals_of(list(own), names, hidden)
            hidden |= {(names, key) for key in suppressed(counts, totals, self.frame.min_group, gone)}
        return hidden

    @cached_property
    def _personal(self) -> dict[tuple[tuple[str, ...], Key], set[Part]]:
        """Of each group, the parts of features whose means tell of too few people, or give away those of another."""
        found: dict[tuple[tuple[str, ...], Key], set[Part]] = {}
        for names, own in ({(): {(): self.whole.sums}} | self._levels).items() if self.frame.min_group else ():
            gone = {key for key in own if (names, key) in self._hidden}
            for part in product(range(len(self.frame.features)), PARTS):
                counts = {key: (sums.asked_for(*part),) for key, sums in own.items()}
                asked = {key: count for key, count in counts.items() if count != (0,)}
                totals = totals_of(list(asked), names, self._hidden)
                for key in suppressed(asked, totals, self.frame.min_group, gone & set(asked)):
                    found.setdefault((names, key), set()).add(part)
        return found

    def _features(self, group: AuditedGroup) -> list[dict[str, Any]]:
        kept_back = self._personal.get((group.columns, group.labels), set())
        return group.features(self.frame.features, self.frame.units, kept_back)

    def _reference(self, names: tuple[str, ...], shown: Mapping[Key, GroupSums]) -> Key | None:
        """The group that was named, or the largest."""
        wanted = dict(self.frame.reference)
        if all(name in wanted for name in names):
            key = tuple(wanted[name] for name in names)
            if key in shown:
                return key
            if len(names) == 1 and key not in self._levels[names]:
                reject(f"reference[{names[0]!r}]", f"one of {', '.join(map(str, shown))}", repr(key[0]))
        return max(shown, key=lambda key: shown[key].n_asked, default=None)

    # --- how it is shown

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """All that is shown, for JSON and for whoever draws; nothing of groups that are not shown."""
        whole, shown = self.whole, [group for group in self.groups if not group.is_hidden]
        return {
            "format": FORMAT,
            "distance": self.frame.distance,
            "level": float(self.frame.level),
            "min_group": int(self.frame.min_group),
            "columns": list(self.frame.columns),
            "whole": whole.record(),
            "features": [] if whole.is_hidden else self._features(whole),
            "groups": [group.record() for group in self.groups],
            "group_features": [
                {"columns": list(group.columns), "labels": list(group.labels)} | one
                for group in shown
                for one in self._features(group)
            ],
            "disparities": [one.record() for one in self.disparities],
            "preclusion": preclusion_record(
                PreclusionSample(0) if whole.is_hidden else self.sample,
                0 if whole.is_hidden else whole.precluded,
                int(self.frame.min_group),
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        """All that is shown, as plain values for JSON (docs/schema/audit-1.json)."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self, path: str | Path | None = None) -> str:
        """The audit as JSON (docs/schema/audit-1.json), written to `path` if given."""
        text = json.dumps(self._facts | {"warnings": list(self.warnings)}, default=str, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_text(self) -> str:
        """The audit as sentences and tables."""
        return told.audit_text(self._facts, self.warnings)

    def to_html(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write the audit as one self-contained page with charts."""
        target = Path(path)
        target.write_text(audit_html.audit_page(self._facts, self.warnings, title), encoding="utf-8")
        return target

    def to_frame(self) -> Any:
        """All rows and each group as a DataFrame, a line each."""
        return frame_of(told.group_columns(self._facts))

    def features_frame(self) -> Any:
        """What each feature is asked for, of all rows and of each group, a line each."""
        return frame_of(told.feature_columns(self._facts))

    def disparities_frame(self) -> Any:
        """Every group beside the reference, a line a measure."""
        return frame_of(told.disparity_columns(self._facts))

    def plot(self, ax: Any = None) -> Any:
        """The burden of each group with its interval (needs matplotlib); returns the axes."""
        return audit_plot.burden_bars(self._facts, ax)

    def plot_preclusion(self, ax: Any = None) -> Any:
        """The share without a way out of each group with its interval; returns the axes."""
        return audit_plot.preclusion_bars(self._facts, ax)

    def plot_features(self, ax: Any = None) -> Any:
        """How often each feature is asked to change; returns the axes."""
        return audit_plot.feature_bars(self._facts, ax)

    def _repr_html_(self) -> str:
        return audit_html.audit_body(self._facts, self.warnings)

    def __repr__(self) -> str:
        return self.to_text()


def audit_of(
    answers: Answers,
    groups: Any = None,
    *,
    own_column: Callable[[str], list[Any]],
    reference: Mapping[str, Any] | None = None,
    min_group: int = 0,
    level: float = 0.95,
    why: int = SAMPLE,
    first_row: int = 0,
    n_jobs: int | None = None,
    asked_before: PreclusionSample | None = None,
) -> Audit:
    """The audit of these answers; see `Explanations.audit`. asked_before: the sample of the parts before this one."""
    columns = as_group_columns(groups, len(answers), own_column)
    schema = answers.schema
    frame = AuditFrame(
        tuple(columns), tuple(schema.names), tuple(feature.unit for feature in schema.features),
        answers.distance_name, tuple((name, plain(label)) for name, label in (reference or {}).items()),
        min_group, level,
    )  # fmt: skip
    if not isinstance(why, Integral) or isinstance(why, bool) or why < 0:
        reject("why", "a whole number from 0 up", repr(why))
    rows = audited_rows(answers, first_row)
    sums = {key: GroupSums.of(rows.subset(own)) for key, own in keyed_rows(columns, len(answers)).items()}
    if not sums:
        sums = {(None,) * len(columns): GroupSums.of(rows)}
    sample = sampled(answers, rows, PreclusionSample(int(why)) if asked_before is None else asked_before, n_jobs)
    return Audit(frame, sums, sample, People.of(map(plain, answers.labels), rows))
