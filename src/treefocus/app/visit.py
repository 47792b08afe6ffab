"""What one visitor of the page has chosen: a row, rules for its columns, and how to ask. Knows nothing of the page."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.app.wish import Wish
from treefocus.constraints.kinds import Constraint, Decreasing, Fixed, Increasing, Range
from treefocus.constraints.text import as_constraints, lines_of
from treefocus.errors import reject
from treefocus.explanation.batch import Explanation, Explanations
from treefocus.model.forest import Floats
from treefocus.options import HOLD_FOR_PEOPLE
from treefocus.problem.plausibility import Measure
from treefocus.problem.tolerance import as_tolerance
from treefocus.render.phrases import DEFAULT
from treefocus.schema.dates import counted
from treefocus.tables.cells import CellTable

_CHOICES = (
    "values", "label", "rules", "more", "wish", "hold", "distance", "time_limit", "n_ways", "weights", "measure",
    "most", "room",
)  # fmt: skip
FREE, FIXED, UP, DOWN = "free", "fixed", "up", "down"
TYPED = "typed in"
EXPECTED = 1.0  # seconds a row that the default budget of counted work is meant as
_KINDS: dict[str, type[Fixed | Increasing | Decreasing]] = {FIXED: Fixed, UP: Increasing, DOWN: Decreasing}


@dataclass
class Rule:
    """What an answer may do to one column; a side of the range that is None has no limit."""

    moves: str = FREE
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False)
class EarlierQuestion:
    """A question that was asked, with its answer, to come back to."""

    name: str
    query: str
    number: int | None
    choices: dict[str, Any]  # of the visit
    found: Explanations

    @classmethod
    def of(cls, visit: Visit, row_name: str, query: str) -> EarlierQuestion:
        """What a visit asks now and has the answer of."""
        assert visit.found is not None
        told = [row_name, *([] if visit.wish.label is None else [f"→ {visit.wish.label}"])]
        told += [] if visit.wish.percent is None else [f"{visit.wish.percent:g}%"]
        told += [] if visit.own_hold is None else [f"≥ {100 * visit.own_hold:g}%"]
        told += [visit.distance, f"({visit.found[0].distance:.3g})" if visit.found[0].distance is not None else "(-)"]
        return cls(" ".join(told), query, visit.number, deepcopy({name: getattr(visit, name) for name in _CHOICES}),
                   visit.found)  # fmt: skip

    def restore(self, visit: Visit) -> None:
        """Make the visit ask it again."""
        for name, own in deepcopy(self.choices).items():
            setattr(visit, name, own)
        visit.number = self.number


@dataclass
class Visit:
    """One visitor's choices and the last answers."""

    service: Service
    values: Floats
    label: Any = TYPED
    number: int | None = None  # of the row among the server's, None where it was typed in
    rules: list[Rule] = field(default_factory=list)
    more: str = ""  # further constraints in words, one a line
    wish: Wish = field(default_factory=Wish)
    hold: float | None = None  # the share of future models that has to agree, where that can be asked for
    distance: str = ExplainOptions.distance
    time_limit: float | None = None  # a clock; without one a budget of work, the same alone and among many
    n_ways: int = 1
    weights: list[float | None] = field(default_factory=list)  # a column; None and 1 are the same
    measure: Measure | None = None  # of how like the training rows an answer has to be
    most: float | None = None  # of that measure
    room: str = ""  # to move, in words: "above 20%"
    language: str = DEFAULT
    is_rounded: bool = True  # whether answers are shown in round numbers
    found: Explanations | None = None  # of one row, with its ways
    compared: dict[str, Explanations] = field(default_factory=dict)

    @classmethod
    def begin(cls, service: Service) -> Visit:
        """A new visit: the first row that does not have the wanted answer, under the server's own rules."""
        asked, labels = service.asked, service.predictions.labels
        middle = np.where(np.isfinite(service.space.low), (service.space.low + service.space.high) / 2, 0.0)
        own = asked.weights or {}
        visit = cls(
            service, middle, wish=Wish.of(service), hold=HOLD_FOR_PEOPLE if asked.hold is None else asked.hold,
            distance=asked.distance, time_limit=asked.time_limit,
            rules=[Rule() for _ in service.schema.features],
            weights=[float(own.get(name, 1.0)) for name in service.schema.names],
            room=_written(asked.tolerance),
            measure=asked.plausibility, most=None if asked.plausibility is None else asked.plausibility.limit,
        )  # fmt: skip
        for constraint in asked.constraints:
            visit.take(constraint)
        if labels:
            visit.pick(next((i for i, label in enumerate(labels) if not visit.wish.is_met_by(label)), 0))
        return visit

    def take(self, constraint: Constraint) -> None:
        """Make a constraint of the server's one of the visitor's rules, or a line of words where these have one."""
        schema, index = self.service.schema, self.service.schema.index
        if isinstance(constraint, Range) and not constraint.relative:
            j = index(constraint.column)
            rule, counting = self.rules[j], schema.features[j].counting
            if rule.low is None and rule.high is None:
                low, high = (counted(end, counting) for end in (constraint.low, constraint.high))
                rule.low, rule.high = low if np.isfinite(low) else None, high if np.isfinite(high) else None
                return
        for moves, kind in _KINDS.items():
            if isinstance(constraint, kind):
                rules = [self.rules[index(column)] for column in constraint.columns]
                if all(rule.moves in (FREE, moves) for rule in rules):
                    for rule in rules:
                        rule.moves = moves
                    return
        self.more += f"{constraint.to_text()}\n"

    def pick(self, i: int) -> None:
        """Ask about a row of the server's."""
        self.values, self.label = self.service.rows.values[i].copy(), self.service.name_of(i)
        self.number = i
        self.forget()

    def type_in(self, values: Floats) -> None:
        """Ask about a row of the visitor's own."""
        self.values, self.label, self.number = values.copy(), TYPED, None
        self.forget()

    def forget(self) -> None:
        """The answers were to another question."""
        self.found, self.compared = None, {}

    def free_all(self) -> None:
        """Lift every rule."""
        self.rules, self.more = [Rule() for _ in self.service.schema.features], ""

    def lift(self, constraint: Constraint) -> None:
        """Take back one rule."""
        index = self.service.schema.index
        if isinstance(constraint, Range) and not constraint.relative:
            rule = self.rules[index(constraint.column)]
            rule.low = rule.high = None
        elif isinstance(constraint, Fixed | Increasing | Decreasing):
            for column in constraint.columns:
                self.rules[index(column)].moves = FREE
        gone = constraint.to_text()
        kept = [line for line in lines_of(self.more) if as_constraints([line])[0].to_text() != gone]
        self.more = "".join(f"{line}\n" for line in kept)

    @property
    def can_be_safer(self) -> bool:
        """Whether there is a choice of how safe an answer is: where a class is wanted."""
        return not self.wish.predicts_number and self.wish.label is not None

    @property
    def can_hold(self) -> bool:
        """Whether the answer can be asked to hold: where a class is wanted, and no probability of it."""
        is_class = not self.wish.predicts_number and (self.wish.label is None or self.wish.percent is None)
        return is_class and self.service.hold_for_people(self.wish.label) is not None

    @property
    def own_hold(self) -> float | None:
        """The share of future models that has to agree, None where that is not asked for, or cannot be."""
        return self.hold if self.can_hold else None

    @property
    def promise(self) -> float | None:
        """For what share of future models an answer could be asked to hold; None where none can be promised."""
        return None if self.service.hold_for_people(self.wish.label) is None else self.hold or HOLD_FOR_PEOPLE

    def anew(self) -> Visit:
        """A new visit of the same visitor's."""
        return replace(Visit.begin(self.service), language=self.language)

    def constraints(self) -> list[Constraint]:
        """The rules in the library's words."""
        names = self.service.schema.names
        constraints: list[Constraint] = []
        for moves, kind in _KINDS.items():
            own = [name for name, rule in zip(names, self.rules, strict=True) if rule.moves == moves]
            if own:
                constraints.append(kind(*own))
        for name, rule in zip(names, self.rules, strict=True):
            if rule.low is not None or rule.high is not None:
                low, high = -math.inf if rule.low is None else rule.low, math.inf if rule.high is None else rule.high
                constraints.append(Range(name, low, high))
        return [*constraints, *as_constraints(lines_of(self.more))]

    def question(self) -> ExplainOptions:
        """The question in the library's words."""
        return replace(
            self.service.asked, constraints=tuple(self.constraints()), target=self.wish.to_target(),
            distance=self.distance, n=self.n_ways, weights=self._own_weights(), hold=self.own_hold,
            time_limit=checked_seconds(self.time_limit, self.service.limits.seconds_per_row),
            plausibility=None if self.measure is None else replace(self.measure, limit=self.most),
            tolerance=checked_room(self.room),
        )  # fmt: skip

    def _own_weights(self) -> dict[str, float] | None:
        names = self.service.schema.names
        return {n: float(w) for n, w in zip(names, self.weights, strict=True) if w is not None and w != 1} or None

    @property
    def seconds(self) -> float:
        """How long one search is expected to take at most."""
        return self.time_limit or EXPECTED

    @property
    def ways(self) -> list[Explanation]:
        """The ways out, the closest first; of a row that has none, the first says why."""
        shown = self.shown
        if shown is None:
            return []
        first, *others = (way[0] for way in shown.ways)
        return [first, *(other for other in others if other.status.has_answer)]

    @property
    def shown(self) -> Explanations | None:
        """The answers as they are shown: in round numbers, unless they are to be exact."""
        return self.service.in_round_numbers(self.found) if self.found is not None and self.is_rounded else self.found

    @property
    def row(self) -> CellTable:
        """The row that is asked about, as a table of one."""
        return self.service.row_of(self.values.copy())

    @property
    def prediction(self) -> tuple[Any, list[float] | None]:
        """Class and probabilities of the row, or its number."""
        said = self.service.predict(self.values[None, :])
        return said.labels[0], said.probabilities[0]


def _written(tolerance: Any) -> str:
    room = as_tolerance(tolerance)
    return "" if room is None else room.to_text()


def checked_seconds(value: float | None, most: float) -> float | None:
    """A time limit that was typed, None for none."""
    if value is not None and not 0 < value <= most:
        reject("The time limit", f"above 0 and at most {most:g} seconds", value)
    return None if value is None else float(value)


def checked_room(text: str) -> str | None:
    """Room to move that was typed, None for none."""
    room = as_tolerance(text) if text.strip() else None
    return None if room is None or room.is_none else room.to_text()


def checked_count(value: float | None) -> int:
    """How many are meant, where a number was typed."""
    if value is None or not 1 <= value < math.inf or value != int(value):
        reject("How many at most", "a whole number above 0", "nothing" if value is None else f"{value:g}")
    return int(value)
