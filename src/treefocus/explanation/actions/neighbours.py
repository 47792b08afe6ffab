"""Actions around a good one: a few to look at first, and all that lie one or two small changes away."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import combinations

import numpy as np

from treefocus.explanation.actions.candidates import DOWN, TO, UP, Levers, longer
from treefocus.explanation.actions.marks import Marks
from treefocus.explanation.actions.steps import AT_LEAST, AT_MOST, BY, SET, Action, ActionStep

_POOL = 24  # levers that are looked at
_MOST_DIGITS = 6  # of numbers that are told
_FINE = np.linspace(0.05, 1.0, 20)  # quantiles among which a neighbour is looked for


def neighbours(action: Action, levers: Levers) -> list[Action]:
    """Actions with one step less, one more, or one that goes less far or further."""
    found = [action.without(step) for step in action.steps if len(action.steps) > 1]
    columns = {step.column for step in action.steps}
    is_by = any(step.kind == BY for step in action.steps)
    for lever in levers.every()[:_POOL]:
        if lever[0] not in columns:
            found += [action.having(levers.step(lever, level, is_by=is_by)) for level in (0.5, 0.9)]
    if is_by:
        found += [longer(action, times) for times in (0.8, 1.25)]
    for step in action.steps:
        found += [action.having(other) for other in _other_values(step, levers)]
        if step.kind == BY and len(action.steps) > 1:
            alone = Action((step,))
            found += [action.having(*longer(alone, times).steps) for times in (0.8, 1.25)]
    return list(dict.fromkeys(found))


def _other_values(step: ActionStep, levers: Levers) -> list[ActionStep]:
    """The same step to the values that are next to its own, two on each side."""
    if step.kind == SET:
        return [levers.step(lever, 1.0) for lever in levers.values if lever[0] == step.column and lever[1] == TO]
    way = UP if step.kind == AT_LEAST or (step.kind == BY and step.value > 0) else DOWN
    lever = (step.column, way, 0.0)
    if lever not in levers.values:
        return []
    every = sorted({levers.step(lever, float(level), is_by=step.kind == BY).value for level in _FINE})
    place = int(np.searchsorted(every, step.value))
    near = [value for value in every[max(place - 2, 0) : place + 3] if value != step.value]
    return [ActionStep(step.column, step.kind, value, step.feature) for value in near]


def all_around(action: Action, levers: Levers, marks: Marks) -> list[Action]:
    """All actions with one step less, more, exchanged or changed, and with two changed a little at once."""
    found = [action.without(step) for step in action.steps if len(action.steps) > 1]
    columns = {step.column for step in action.steps}
    others = [step for column in marks.columns if column not in columns for step in _anywhere(column, marks)]
    others += [levers.step(lever, 1.0) for lever in levers.values if lever[1] == TO and lever[0] not in columns]
    for rest in [action, *(action.without(step) for step in action.steps)]:
        found += [rest.having(other) for other in others]
    near = {step: _near(step, levers, marks) for step in action.steps}
    for step in action.steps:
        found += [action.having(other) for other in near[step]]
        if (step.column, AT_LEAST) in marks.values:
            found += [action.having(other) for other in _anywhere(step.column, marks)]
    for one, two in combinations(action.steps, 2):
        found += [action.having(a).having(b) for a in _nearest(one, near[one]) for b in _nearest(two, near[two])]
    return [other for other in dict.fromkeys(found) if other.steps]


def _anywhere(column: int, marks: Marks) -> list[ActionStep]:
    return [step for kind in (AT_LEAST, AT_MOST, BY, SET) for step in marks.spread(column, kind)]


def _near(step: ActionStep, levers: Levers, marks: Marks) -> list[ActionStep]:
    own = _other_values(step, levers)
    if (step.column, step.kind) in marks.values:
        own += marks.near(step.column, step.kind, step.value)
    return [other for other in dict.fromkeys(own) if other != step]


def _nearest(step: ActionStep, near: list[ActionStep]) -> list[ActionStep]:
    """Of the steps of the same kind, two on each side."""
    order = sorted((other.value, other) for other in near if other.label is None)
    place = int(np.searchsorted([value for value, _ in order], step.value))
    return [other for _, other in order[max(place - 2, 0) : place + 2]]


def plainer(action: Action, column: int) -> list[Action]:
    """The action without its step of a column, and with that to a number of fewer digits, the fewest first."""
    (step,) = (own for own in action.steps if own.column == column)
    found = [action.without(step)] if len(action.steps) > 1 else []
    if step.label is not None or not step.value:
        return found
    further = Decimal(repr(step.value))
    rounding = ROUND_CEILING if step.kind == AT_LEAST or (step.kind == BY and step.value > 0) else ROUND_FLOOR
    for digits in range(1, _MOST_DIGITS):
        short = Context(digits, rounding).create_decimal(further)
        if short == further:
            break
        found.append(action.having(replace(step, value=float(short))))
    return found
