"""What callers send: rows, and what is asked about them.

Types are checked here; whether a value makes sense is for the library to say, in its own sentences.
"""

from __future__ import annotations

from pydantic import Field, FiniteFloat

from treefocus.app.options import (
    Body,
    ConstraintBody,
    MeasureBody,
    TargetBody,
    constraint_body,
    measure_body,
    target_body,
    target_of,
)
from treefocus.app.question import ExplainOptions
from treefocus.constraints.kinds import Constraint
from treefocus.constraints.text import as_constraints
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.search import NAMED as STRATEGIES

Cell = FiniteFloat | str | bool | None  # text and truth are categories
Row = dict[str, Cell] | list[Cell]


class RowsBody(Body):
    """Rows."""

    rows: list[Row] = Field(
        description="Each row an object by column name, or a list in the model's order; null is a missing value."
    )


class ExplainBody(RowsBody):
    """Rows and what is asked about them: the options of `Explainer` and of `Explainer.explain`."""

    target: TargetBody | None = Field(
        None,
        description="The class to reach; null for any other than the present one; or an object: a class with some "
        "probability, an interval of the predicted number, or of the raw score. Or a list, one a row.",
    )
    distance: str | None = Field(None, description="What small means.", json_schema_extra={"examples": list(DISTANCES)})
    constraints: list[ConstraintBody] | None = Field(
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
    weights: dict[str, FiniteFloat] | None = Field(
        None,
        description="By column, the factor of a change there, of its square under euclidean and mahalanobis; else 1.",
    )
    plausibility: MeasureBody | None = Field(
        None, description="How like the training rows an answer has to be, as a limit or as a cost."
    )

    @classmethod
    def of(cls, question: ExplainOptions, rows: list[Row]) -> ExplainBody:
        """The body that asks this question."""
        return cls(
            rows=rows, target=target_body(question.target), distance=question.distance, strategy=question.strategy,
            constraints=[constraint_body(constraint) for constraint in question.constraints],
            time_limit=question.time_limit, seed=question.seed, n=question.n, scale=question.scale,
            bounds=question.bounds, weights=question.weights, plausibility=measure_body(question.plausibility),
        )  # fmt: skip

    def question(self, default: ExplainOptions) -> ExplainOptions:
        """What is asked, with the server's choices where the caller made none."""
        said, measure = self.model_fields_set, self.plausibility
        return ExplainOptions(
            distance=default.distance if self.distance is None else self.distance,
            constraints=default.constraints if self.constraints is None else self._own_constraints(),
            target=target_of(self.target) if "target" in said else default.target,
            strategy=self.strategy,
            time_limit=default.time_limit if self.time_limit is None else self.time_limit,
            seed=self.seed,
            n=self.n,
            scale=self.scale,
            bounds=self.bounds,
            weights=self.weights if "weights" in said else default.weights,
            plausibility=(None if measure is None else measure.to_measure())
            if "plausibility" in said
            else default.plausibility,
        )

    def _own_constraints(self) -> tuple[Constraint, ...]:
        return as_constraints([one if isinstance(one, str) else one.to_constraint() for one in self.constraints or ()])
