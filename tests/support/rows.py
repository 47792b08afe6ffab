"""One row's answer with whatever a test wants it to say, as renderers see it (`render.views.RowView`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treefocus import Change, Explanation, Schema, Status
from treefocus.explanation.facts import LetterFacts
from treefocus.explanation.reasons import ByStatus, Reason
from treefocus.render import letter, text


@dataclass(frozen=True)
class ShownRow:
    """What a renderer may ask of an answer."""

    label: Any = 4
    changes: tuple[Change, ...] = ()
    predicted: Any = "declined"
    outcome: Any = "approved"
    status: Status = Status.OPTIMAL
    why: Reason = ByStatus(Status.OPTIMAL)  # noqa: RUF009 - it cannot change
    distance: float | None = 0.5
    lower_bound: float = 0.5
    distance_name: str = "manhattan"
    schema: Schema = Schema(())  # noqa: RUF009 - it cannot change
    is_last_way: bool = False
    is_value: bool = False
    favoured: Any = None
    likelihood: tuple[float, float | None] | None = None
    larger: float | None = None
    held: tuple[int, int] | None = None
    price: float | None = None
    is_demanding: bool = False
    tolerance: Any = None
    is_sliver: bool = False

    @classmethod
    def of(cls, one: Explanation) -> ShownRow:
        """What an answer shows."""
        return cls(**{name: getattr(one, name) for name in cls.__dataclass_fields__})

    @property
    def gap(self) -> float | None:
        return None if self.distance is None else (self.distance - self.lower_bound) / self.distance

    @property
    def ways(self) -> tuple[ShownRow, ...]:
        return (self,) if self.status.has_answer else ()

    @property
    def pictured_class(self) -> Any:
        return self.predicted if self.outcome is None else self.outcome

    def to_text(self, language: str = "en", *, proof: bool = False) -> str:
        return text.sentence(self, language, with_proof=proof)

    def to_letter(self, language: str = "en", *, recipient: str | None = None, sender: str | None = None) -> str:
        return letter.letter(LetterFacts(self), letter.template_of("plain", language), language, recipient, sender)
