"""What goes over the wire: the bodies of calls and answers, as the OpenAPI document describes them.

Types are checked here; whether a value makes sense is for the library to say, in its own sentences.
"""

from __future__ import annotations

import math
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from treefocus.app.service import Question
from treefocus.constraint_text import as_constraints
from treefocus.constraint_words import written
from treefocus.constraints import Constraint, Decreasing, Fixed, Increasing, Range
from treefocus.distances import NAMED as DISTANCES
from treefocus.search import NAMED as STRATEGIES

Label = str | bool | int | FiniteFloat
Number = FiniteFloat | None
Cell = FiniteFloat | str | bool | None  # text and truth are categories
Row = dict[str, Cell] | list[Cell]
Column = str | int
_KINDS: dict[str, type[Fixed | Increasing | Decreasing]] = {
    "fixed": Fixed, "increasing": Increasing, "decreasing": Decreasing,
}  # fmt: skip


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class OnColumns(_Body):
    """Columns that must not change, may only grow, or may only shrink."""

    kind: Literal["fixed", "increasing", "decreasing"]
    columns: list[Column] = Field(description="Names or numbers of columns.", json_schema_extra={"minItems": 1})

    def to_constraint(self) -> Constraint:
        """The library's own object."""
        return _KINDS[self.kind](*self.columns)


class InRange(_Body):
    """Where a column must end up; a side that is left out has no limit."""

    kind: Literal["range"]
    column: Column
    low: Number = None
    high: Number = None

    def to_constraint(self) -> Constraint:
        """The library's own object."""
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        return Range(self.column, low, high)


class RowsBody(_Body):
    """Rows."""

    rows: list[Row] = Field(
        description="Each row an object by column name, or a list in the model's order; null is a missing value."
    )


class ExplainBody(RowsBody):
    """Rows and what is asked about them: the options of `Explainer` and of `Explainer.explain`."""

    target: Label | list[Label | None] | None = Field(
        None, description="The class to reach, or one a row; null for any other than the present one."
    )
    distance: str | None = Field(None, description="What small means.", json_schema_extra={"examples": list(DISTANCES)})
    constraints: list[str | Annotated[OnColumns | InRange, Field(discriminator="kind")]] | None = Field(
        None,
        description='What an answer may not do, as objects or in words, "income <= 2 * savings", "at most 3 changes"; '
        "the server's own constraints if not given.",
    )
    strategy: str = Field("auto", description="How to search.", json_schema_extra={"examples": list(STRATEGIES)})
    time_limit: FiniteFloat | None = Field(
        None, description="Seconds a row.", json_schema_extra={"exclusiveMinimum": 0}
    )
    seed: int = Field(0, description="Start of the random numbers, where any are used.", ge=0, lt=2**32)
    n: int = Field(1, description="How many ways out to look for, a row.", json_schema_extra={"minimum": 1})
    scale: str | list[FiniteFloat] | None = Field(
        "range", description='What a change of 1 means: "range", "std", "mad", null for values as they are, or sizes.'
    )
    bounds: list[FiniteFloat | list[FiniteFloat]] | None = Field(
        None, description="Domain of the answers: low and high, each a number or one a column.",
        json_schema_extra={"minItems": 2, "maxItems": 2},
    )  # fmt: skip

    @classmethod
    def of(cls, question: Question, rows: list[Row]) -> ExplainBody:
        """The body that asks this question."""
        return cls(
            rows=rows, target=question.target, distance=question.distance, strategy=question.strategy,
            constraints=[_constraint_body(constraint) for constraint in question.constraints],
            time_limit=question.time_limit, seed=question.seed, n=question.n, scale=question.scale,
            bounds=question.bounds,
        )  # fmt: skip

    def question(self, default: Question) -> Question:
        """What is asked, with the server's choices where the caller made none."""
        constraints = self.constraints
        return Question(
            distance=default.distance if self.distance is None else self.distance,
            constraints=default.constraints
            if constraints is None
            else as_constraints([one if isinstance(one, str) else one.to_constraint() for one in constraints]),
            target=self.target if "target" in self.model_fields_set else default.target,
            strategy=self.strategy,
            time_limit=default.time_limit if self.time_limit is None else self.time_limit,
            seed=self.seed,
            n=self.n,
            scale=self.scale,
            bounds=self.bounds,
        )


def _constraint_body(constraint: Constraint) -> str | OnColumns | InRange:
    if isinstance(constraint, Range) and not constraint.relative:
        low, high = (side if isfinite(side) else None for side in (constraint.low, constraint.high))
        return InRange(kind="range", column=constraint.column, low=low, high=high)
    for name, kind in _KINDS.items():
        if isinstance(constraint, kind):
            return OnColumns.model_validate({"kind": name, "columns": list(constraint.columns)})
    return written(constraint)


# --- answers; they document what is sent


class Health(BaseModel):
    """The server is there."""

    status: Literal["ok"]


class CardFeature(BaseModel):
    """One column."""

    name: str
    kind: str
    unit: str
    description: str
    low: float | None = Field(description="The smallest value that answers go to.")
    high: float | None = Field(description="The largest value that answers go to.")


class Defaults(BaseModel):
    """What is asked where the caller does not say."""

    distance: str
    strategy: str
    target: Label | None
    time_limit: float | None


class CardLimits(BaseModel):
    """What one call may ask for."""

    rows_per_call: int
    rows_per_job: int
    seconds_per_row: float
    body_bytes: int
    jobs_open: int


class Card(BaseModel):
    """The model: its columns, classes and size."""

    title: str
    fingerprint: str = Field(description="SHA-256 of the forest, as in certificates.")
    source: str
    classes: list[Label]
    features: list[CardFeature]
    trees: int
    nodes: int
    leaves: int
    takes_missing: bool
    constraints: list[str] = Field(description="Those that hold unless a call brings its own.")
    distances: list[str]
    strategies: list[str]
    defaults: Defaults
    limits: CardLimits


class RowPrediction(BaseModel):
    """What the model says of one row."""

    predicted: Label | None = Field(description="The class; null where the model cannot read the row.")
    probabilities: list[float] | None = Field(description="One a class, in the order of `classes`.")


class PredictAnswer(BaseModel):
    """What the model says of the rows."""

    classes: list[Label]
    rows: list[RowPrediction]


Answered = float | str | bool | None  # a number, a category or an infinity by its name, nothing


class Change(BaseModel):
    """One feature that moves."""

    feature: str
    before: Answered
    after: Answered
    shown: Answered = Field(description="The shortest number the model cannot tell from `after`.")
    share: float = Field(description="Of the whole change.")
    unit: str
    part: float | Literal["Infinity", "-Infinity"] | None


class WayAnswer(BaseModel):
    """One way out of a row."""

    outcome: Label | None
    status: Literal["OPTIMAL", "BOUNDED", "FOUND", "INFEASIBLE", "NOT_FOUND", "INVALID"]
    reason: str
    distance: float | Literal["Infinity", "-Infinity"] | None
    lower_bound: float | None = Field(description="No answer is closer; null stands for infinity.")
    gap: float | None
    changes: list[Change] = Field(description="The largest first.")
    counterfactual: list[Answered] | None


class RowAnswer(WayAnswer):
    """One row's answer."""

    row: Label
    predicted: Label | None
    values: list[Answered]
    ways: list[WayAnswer] | None = Field(None, description="Further ways, where n was above 1; the closest first.")


class ExplainAnswer(BaseModel):
    """What `Explanations.to_json` writes; docs/schema/explanations-1.json has every detail."""

    format: Literal["treefocus-explanations-1"]
    features: list[dict[str, Any]]
    grains: list[str]
    distance: str
    seconds: float
    rows: list[RowAnswer]


class Job(BaseModel):
    """A job and how far it is."""

    id: str
    status: Literal["waiting", "running", "done", "failed", "cancelled"]
    rows: int
    done: int = Field(description="Rows that have their answer.")
    submitted: str = Field(description="When, in UTC.")
    detail: str | None = Field(description="Why it failed.")


class JobList(BaseModel):
    """Every job the server knows, the oldest first."""

    jobs: list[Job]


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = Field(description="A sentence: which parameter, what is allowed, what came.")
    errors: list[str] | None = None
