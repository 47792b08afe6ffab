"""Options that are objects over the wire: constraints, targets and measures of plausibility, from and to the library's.

Each has a `kind`; the other fields are named as in Python.
"""

from __future__ import annotations

import math
from datetime import date
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, FiniteFloat, Tag

from treefocus.constraints.kinds import Constraint, Decreasing, Fixed, Increasing, Range
from treefocus.problem import targets
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor, Measure

Label = str | bool | int | FiniteFloat
Number = FiniteFloat | None
Column = str | int
_ON_COLUMNS: dict[str, type[Fixed | Increasing | Decreasing]] = {
    "fixed": Fixed, "increasing": Increasing, "decreasing": Decreasing,
}  # fmt: skip


class Body(BaseModel):
    """What callers send: nothing that is not known here, and no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


# --- constraints


class OnColumns(Body):
    """Columns that must not change, may only grow, or may only shrink."""

    kind: Literal["fixed", "increasing", "decreasing"]
    columns: list[Column] = Field(description="Names or numbers of columns.", json_schema_extra={"minItems": 1})

    def to_constraint(self) -> Constraint:
        """The library's own object."""
        return _ON_COLUMNS[self.kind](*self.columns)


class InRange(Body):
    """Where a column must end up; a side that is left out has no limit."""

    kind: Literal["range"]
    column: Column
    low: Number = None
    high: Number = None

    def to_constraint(self) -> Constraint:
        """The library's own object."""
        return Range(self.column, *_sides(self.low, self.high))


ConstraintBody = str | Annotated[OnColumns | InRange, Field(discriminator="kind")]


def constraint_body(constraint: Constraint) -> str | OnColumns | InRange:
    """A constraint as it goes over the wire; those without an object of their own in words."""
    is_dated = isinstance(constraint, Range) and any(isinstance(end, date) for end in (constraint.low, constraint.high))
    if isinstance(constraint, Range) and not constraint.relative and not is_dated:
        low, high = _numbers(float(constraint.low), float(constraint.high))  # type: ignore[arg-type]
        return InRange(kind="range", column=constraint.column, low=low, high=high)
    for name, kind in _ON_COLUMNS.items():
        if isinstance(constraint, kind):
            return OnColumns.model_validate({"kind": name, "columns": list(constraint.columns)})
    return constraint.to_text()


# --- targets


class ProbabilityBody(Body):
    """A class with at least this probability."""

    kind: Literal["probability"]
    label: Label = Field(description="The class.")
    at_least: FiniteFloat = Field(
        description="Its probability, from 0 to 1.", json_schema_extra={"exclusiveMinimum": 0, "exclusiveMaximum": 1}
    )

    def to_target(self) -> targets.Probability:
        """The library's own object."""
        return targets.Probability(self.label, self.at_least)


class IntervalBody(Body):
    """A predicted number from low to high, for models that predict one; a side that is left out has no limit."""

    kind: Literal["interval"]
    low: Number = None
    high: Number = None

    def to_target(self) -> targets.Interval:
        """The library's own object."""
        return targets.Interval(*_sides(self.low, self.high))


class ScoreBody(Body):
    """A raw score from low to high, before any link function, for models with a single score."""

    kind: Literal["score"]
    low: Number = None
    high: Number = None

    def to_target(self) -> targets.Score:
        """The library's own object."""
        return targets.Score(*_sides(self.low, self.high))


def _form(target: Any) -> str:
    return "an object" if isinstance(target, dict | BaseModel) else "one a row" if isinstance(target, list) else "one"


TargetObject = Annotated[ProbabilityBody | IntervalBody | ScoreBody, Field(discriminator="kind")]
TargetOfRow = Annotated[
    Annotated[Label | None, Tag("one")] | Annotated[TargetObject, Tag("an object")], Discriminator(_form)
]
TargetBody = Annotated[
    Annotated[Label, Tag("one")]
    | Annotated[list[TargetOfRow], Tag("one a row")]
    | Annotated[TargetObject, Tag("an object")],
    Discriminator(_form),
]


def target_of(body: Any) -> Any:
    """The library's target."""
    if isinstance(body, list):
        return [target_of(one) for one in body]
    return body.to_target() if isinstance(body, ProbabilityBody | IntervalBody | ScoreBody) else body


def target_body(target: Any) -> Any:
    """A target as it goes over the wire; classes as they are."""
    if isinstance(target, list):
        return [target_body(one) for one in target]
    if isinstance(target, targets.Probability):
        return ProbabilityBody(kind="probability", label=target.label, at_least=float(target.at_least))
    if isinstance(target, targets.Interval):
        low, high = _numbers(target.low, target.high)
        if isinstance(target, targets.Score):
            return ScoreBody(kind="score", low=low, high=high)
        return IntervalBody(kind="interval", low=low, high=high)
    return target


# --- plausibility


class LocalOutlierFactorBody(Body):
    """How much sparser the training rows are at an answer than around its nearest ones: 1 is like them."""

    kind: Literal["local_outlier_factor"]
    limit: Number = Field(None, description="Answers above it are not given.", json_schema_extra={"examples": [1.5]})
    cost: FiniteFloat = Field(0.0, description="What 1 of it costs, in units of distance.")
    neighbours: int = Field(1, description="Training rows it is compared with.", json_schema_extra={"minimum": 1})

    def to_measure(self) -> Measure:
        """The library's own object."""
        return LocalOutlierFactor(self.limit, self.cost, self.neighbours)


class IsolationBody(Body):
    """How easily random cuts part an answer from the training rows: 0.5 is usual, 1 is alone."""

    kind: Literal["isolation"]
    limit: Number = Field(None, description="Answers above it are not given.", json_schema_extra={"examples": [0.6]})
    cost: FiniteFloat = Field(0.0, description="What 1 of it costs, in units of distance.")
    trees: int = Field(100, description="Of the isolation forest.", json_schema_extra={"minimum": 1})
    seed: int = Field(0, description="Of the isolation forest.", json_schema_extra={"minimum": 0})

    def to_measure(self) -> Measure:
        """The library's own object."""
        return IsolationScore(self.limit, self.cost, self.trees, self.seed)


MeasureBody = Annotated[LocalOutlierFactorBody | IsolationBody, Field(discriminator="kind")]


def measure_body(measure: Measure | None) -> LocalOutlierFactorBody | IsolationBody | None:
    """A measure as it goes over the wire."""
    if measure is None:
        return None
    record = vars(measure) | {"kind": "isolation" if isinstance(measure, IsolationScore) else "local_outlier_factor"}
    kind = IsolationBody if isinstance(measure, IsolationScore) else LocalOutlierFactorBody
    return kind.model_validate(record, strict=False)


KINDS = frozenset((*_ON_COLUMNS, "range", "probability", "interval", "score", "local_outlier_factor", "isolation"))


def _sides(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high


def _numbers(low: float, high: float) -> tuple[float | None, float | None]:
    return float(low) if isfinite(low) else None, float(high) if isfinite(high) else None
