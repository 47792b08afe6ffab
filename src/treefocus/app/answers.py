"""What the server sends, as the OpenAPI document describes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from treefocus.app.options import Label, MeasureBody, TargetBody


class Health(BaseModel):
    """The server is there, and whether it can answer."""

    status: Literal["ok", "not ready"]
    ready: bool
    checks: dict[str, bool] = Field(
        description="`places` for calls are free, `jobs` are worked on, the `disk` takes files, it is `staying`."
    )


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
    target: TargetBody | None
    time_limit: float | None
    weights: dict[str, float] | None
    plausibility: MeasureBody | None


class CardLimits(BaseModel):
    """What one call may ask for."""

    rows_per_call: int
    rows_per_job: int
    seconds_per_row: float
    ways_per_row: int
    isolation_trees: int
    body_bytes: int
    jobs_open: int


class Card(BaseModel):
    """The model: its columns, classes and size."""

    title: str
    fingerprint: str = Field(description="SHA-256 of the forest, as in certificates.")
    source: str
    predicts: Literal["class", "number"]
    classes: list[Label] = Field(description="None where a number is predicted.")
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

    predicted: Label | None = Field(description="The class, or the number; null where the model cannot read the row.")
    probabilities: list[float] | None = Field(
        description="One a class, in the order of `classes`; null where a number is predicted."
    )


class PredictAnswer(BaseModel):
    """What the model says of the rows."""

    classes: list[Label]
    rows: list[RowPrediction]


Answered = float | str | bool | None  # a number, a category or an infinity by its name, nothing


class Asked(BaseModel):
    """What `predicted` and `outcome` tell, where it is not a class: a number, or that a class has some probability."""

    kind: Literal["value", "probability"]
    of: Label | None = Field(None, description="The class whose probability was asked for.")
    of_row: list[Label] | None = Field(None, description="The same, one a row, where they differ.")


class Change(BaseModel):
    """One feature that moves."""

    feature: str
    before: Answered
    after: Answered
    shown: Answered = Field(description="The shortest allowed number that the model cannot tell from `after`.")
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
    likelihood: list[float | None] | None = Field(
        None, description="Where a probability was asked for: that of the class, before and after."
    )
    is_demanding: bool | None = Field(
        None, description="True where more was asked for than the model's own answer: hold, room to move, other models."
    )
    smallest: float | None = Field(None, description="How far the smallest change is, where more was asked for.")
    larger: float | None = Field(None, description="By how much, as a share, round numbers make the change larger.")
    agrees: list[bool] | None = Field(
        None, description="What each model says that was trained again and had no part in the answer, under hold."
    )


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
    answers: Asked | None = Field(None, description="Left out where classes are told.")
    distance: str
    seconds: float
    rows: list[RowAnswer]


class Letter(BaseModel):
    """The letter to one row."""

    row: Any = Field(description="The row's name.")
    status: str = Field(description="What is known of its answer.")
    text: str


class LettersAnswer(BaseModel):
    """A letter a row."""

    letters: list[Letter]


class AuditAnswer(BaseModel):
    """What `Audit.to_json` writes; docs/schema/audit-1.json has every detail."""

    format: Literal["treefocus-audit-1"]
    distance: str
    level: float
    min_group: int
    columns: list[str] = Field(description="That make the groups.")
    whole: dict[str, Any] = Field(description="All rows.")
    features: list[dict[str, Any]] = Field(description="What each column is asked for.")
    groups: list[dict[str, Any]]
    group_features: list[dict[str, Any]]
    disparities: list[dict[str, Any]] = Field(description="Every group beside the reference.")
    preclusion: dict[str, Any] = Field(description="What stands in the way of those without a way out.")
    warnings: list[str] = Field(description="What keeps conclusions from being drawn.")


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
