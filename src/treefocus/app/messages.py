"""What callers send: rows, and what is asked about them.

Types are checked here; whether a value makes sense is for the library to say, in its own sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field, FiniteFloat, StrictInt, StrictStr, create_model

from treefocus.app.limits import Limits, OverLimit
from treefocus.app.options import (
    Body,
    ConstraintBody,
    Label,
    MeasureBody,
    TargetBody,
    constraint_body,
    measure_body,
    target_body,
    target_of,
)
from treefocus.app.question import ExplainOptions
from treefocus.constraints.text import as_constraints
from treefocus.errors import InvalidInput, reject
from treefocus.explanation.audit.audit import Audit
from treefocus.explanation.batch import Explanation, Explanations
from treefocus.options import HOLD_FOR_PEOPLE, OPTIONS, REST, names_at
from treefocus.render.phrases import DEFAULT, languages

Cell = FiniteFloat | str | bool | None  # text and truth are categories
Row = dict[str, Cell] | list[Cell]


def _one_of(name: str, default: str | None) -> Any:
    """A field that takes one of the option's names."""
    option = OPTIONS[name]
    return Field(default, description=option.told(), json_schema_extra={"examples": list(option.values)})


class RowsBody(Body):
    """Rows."""

    rows: list[Row] = Field(
        description="Each row an object by column name, or a list in the model's order; null is a missing value."
    )


_PLAIN = {name: option for name, option in OPTIONS.items() if option.wire is not None}
_FIELDS: Any = {name: (one.wire, Field(one.default, description=one.told())) for name, one in _PLAIN.items()}
PlainOptions: Any = create_model("PlainOptions", __base__=RowsBody, **_FIELDS)  # that need no words of their own here


class ExplainBody(PlainOptions):  # type: ignore[misc]
    """Rows and what is asked about them: the options of `Explainer` and of `Explainer.explain`."""

    target: TargetBody | None = Field(
        None,
        description=OPTIONS["target"].told(
            "; null for any other than the present one; or an object: a class with some probability, an interval of "
            "the predicted number, or of the raw score. Or a list, one a row"
        ),
    )
    distance: str | None = _one_of("distance", None)
    constraints: list[ConstraintBody] | None = Field(
        None,
        description=OPTIONS["constraints"].told(
            ', as objects or in words, "income <= 2 * savings", "at most 3 changes"; '
            "the server's own constraints if not given"
        ),
    )
    strategy: str = _one_of("strategy", OPTIONS["strategy"].default)
    time_limit: FiniteFloat | None = Field(
        None, description=OPTIONS["time_limit"].told(), json_schema_extra={"exclusiveMinimum": 0}
    )
    seed: int = Field(OPTIONS["seed"].default, description=OPTIONS["seed"].told(), ge=0, lt=2**32)
    n: int = Field(OPTIONS["n"].default, description=OPTIONS["n"].told(), json_schema_extra={"minimum": 1})
    scale: str | list[FiniteFloat] | None = Field(
        OPTIONS["scale"].default,
        description=OPTIONS["scale"].told(': "range", "std", "mad", null for values as they are, or sizes'),
    )
    bounds: list[FiniteFloat | list[FiniteFloat]] | None = Field(
        None, description=OPTIONS["bounds"].told(": low and high, each a number or one a column"),
        json_schema_extra={"minItems": 2, "maxItems": 2},
    )  # fmt: skip
    weights: dict[str, FiniteFloat] | None = Field(
        None,
        description=OPTIONS["weights"].told(
            ": by its name, the factor of the change, of its square under euclidean and mahalanobis; else 1"
        ),
    )
    plausibility: MeasureBody | None = Field(
        None, description=OPTIONS["plausibility"].told(", as a limit or as a cost")
    )

    ids: list[StrictInt | StrictStr] | None = Field(
        None, description="The rows' own names, one a row, which answers carry as `row`; else 0, 1, 2, ...."
    )

    @property
    def names(self) -> Sequence[Any]:
        """What the rows are called in the answers."""
        if self.ids is None:
            return range(len(self.rows))
        if len(self.ids) != len(self.rows):
            reject("ids", f"a name for each of the {len(self.rows)} rows", len(self.ids))
        return self.ids

    @classmethod
    def of(cls, question: ExplainOptions, rows: list[Row], ids: list[Any] | None = None) -> ExplainBody:
        """The body that asks this question."""
        own = {name: getattr(question, name) for name in names_at(REST)}
        return cls(rows=rows, ids=ids, **{name: _TO_WIRE.get(name, _as_it_is)(value) for name, value in own.items()})

    def question(self, default: ExplainOptions) -> ExplainOptions:
        """What is asked, with the server's choices where the caller made none."""
        own = {name: getattr(self, name) for name in names_at(REST) if not self._leaves(name)}
        return replace(default, **{name: _FROM_WIRE.get(name, _as_it_is)(value) for name, value in own.items()})

    def _leaves(self, name: str) -> bool:
        """Whether the caller leaves this to the server."""
        if name in _SERVERS_UNLESS_SAID:
            return name not in self.model_fields_set
        return name in _SERVERS_IF_NULL and getattr(self, name) is None


def _as_it_is(value: Any) -> Any:
    return value


_SERVERS_IF_NULL = ("distance", "constraints", "time_limit")
_SERVERS_UNLESS_SAID = ("target", "weights", "plausibility", *_PLAIN)
_TO_WIRE: dict[str, Callable[[Any], Any]] = {
    "target": target_body,
    "constraints": lambda constraints: [constraint_body(one) for one in constraints],
    "plausibility": measure_body,
}
_FROM_WIRE: dict[str, Callable[[Any], Any]] = {
    "target": target_of,
    "constraints": lambda own: as_constraints([one if isinstance(one, str) else one.to_constraint() for one in own]),
    "plausibility": lambda measure: None if measure is None else measure.to_measure(),
}


class LettersBody(Body):
    """Rows, what is asked about them, and how the letters are written: the options of `Explanation.to_letter`."""

    question: ExplainBody = Field(
        description=f"As for /explain, but hold is {HOLD_FOR_PEOPLE} where it can be asked for; null for the smallest "
        "change."
    )
    template: Literal["plain", "eu", "us"] = Field("plain", description="docs/letters.md says what each covers.")
    language: str = Field(
        DEFAULT, description="The language of the letters.", json_schema_extra={"enum": list(languages())}
    )
    sender: str | None = Field(None, description="Who signs.")
    recipients: list[str | None] | None = Field(None, description="Whom each letter greets, one a row.")
    fields: dict[str, str] | None = Field(
        None, description="What only the sender can say: date, role, contact, authority, creditor, bureau, score."
    )
    digits: int | None = Field(2, description="Digits of round numbers; null for the numbers as they are.", ge=1)

    def names(self) -> list[str | None]:
        """Whom each letter greets."""
        n_rows = len(self.question.rows)
        if self.recipients is not None and len(self.recipients) != n_rows:
            reject("recipients", f"a name, or null, for each of the {n_rows} rows", len(self.recipients))
        return [None] * n_rows if self.recipients is None else self.recipients

    @property
    def leaves_hold(self) -> bool:
        """Whether the caller says nothing of `hold`, not even that it is null."""
        return "hold" not in self.question.model_fields_set

    def letter(self, found: Explanation, recipient: str | None) -> str:
        """The letter of one answer."""
        return found.to_letter(
            self.language, template=self.template, recipient=recipient, sender=self.sender, fields=self.fields,
            digits=self.digits,
        )  # fmt: skip


class AuditBody(Body):
    """Whose answers are audited, and by which groups: the options of `Explanations.audit`."""

    question: ExplainBody | None = Field(None, description="As for /explain; its rows are answered, then audited.")
    job: str | None = Field(None, description="Instead of a question, a job that is done: its answers are audited.")
    groups: list[str] | dict[str, list[Label | None]] | None = Field(
        None, description="To whom the rows belong: columns of the rows by name, or by any name a label a row."
    )
    reference: dict[str, Label] | None = Field(
        None, description="By column, the group that its others are compared with; the largest if not given."
    )
    min_group: int = Field(0, description="Groups of fewer rows are not shown.", ge=0)
    level: FiniteFloat = Field(
        0.95, description="Of the intervals and of the conclusions.", json_schema_extra={"minimum": 0.5, "maximum": 1}
    )
    why: int = Field(
        20, description="How many rows without a way out are asked what stands in it; none of a job's.", ge=0
    )

    @property
    def asked(self) -> ExplainBody | str:
        """The question, or the job that was one."""
        if self.question is not None and self.job is None:
            return self.question
        if self.job is not None and self.question is None:
            return self.job
        raise InvalidInput("Either question or job must be given.")

    def check(self, limits: Limits) -> None:
        """No more questions why than a call may have rows."""
        if self.why > limits.rows_per_call:
            raise OverLimit(f"why must be at most {limits.rows_per_call}, got {self.why}.")

    def audit(self, found: Explanations) -> Audit:
        """What is demanded of those who have these answers."""
        return found.audit(
            self.groups, reference=self.reference, min_group=self.min_group, level=self.level, why=self.why, n_jobs=1
        )
