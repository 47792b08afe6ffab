"""A problem of one row as plain values, and read again under the forest that it speaks of: what a certificate asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.errors import reject
from treefocus.kernels.inputs import Batch, Choices, Lists
from treefocus.kernels.rules import ImpliesRule, LinearRule, Rules
from treefocus.model.forest import Floats, Forest
from treefocus.model.variants import variant
from treefocus.problem.compile import with_cuts
from treefocus.problem.distance_record import distance_record, read_distance
from treefocus.problem.isolation import Isolation
from treefocus.problem.joint import Companion, put_to_all, put_within
from treefocus.problem.outlier_limit import KIND as OUTLIERS
from treefocus.problem.outlier_limit import OutlierLimit
from treefocus.problem.problem import Problem
from treefocus.problem.targets import Interval, Probability, Put, Score, Slack, put
from treefocus.problem.tolerance import Room
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED
from treefocus.schema.steps import is_sound

_ASKED = ("decision", "cut", "cut_high", "favoured", "link", "divisor")  # fields in which a question changes a forest


def problem_record(problem: Problem, target: Any) -> dict[str, Any]:
    """A problem of one row as plain values; `target` as the user put it, where it is no class."""
    batch = problem.batch
    measure = problem.isolation or problem.outliers
    limit = {} if measure is None else {"plausibility": measure.to_record()}
    return {
        "question": _question_record(problem, target),
        "row": written_numbers(batch.rows[0]),
        "low": written_numbers(batch.low[0]),
        "high": written_numbers(batch.high[0]),
        "offset": written_numbers(batch.offset),
        "scale": written_numbers(batch.scale),
        "grain": batch.grain.tolist(),
        "choices": _choices_record(batch.choices),
        "lists": {name: getattr(batch.lists, name).tolist() for name in ("start", "value", "is_strict")},
        "rules": batch.rules.to_record(),
        "leave": int(batch.origin[0]),
        "reach": int(batch.target[0]),
        "distance_function": distance_record(problem.distance),
        **limit,
        **({} if problem.room is None else {"room": _room_record(problem.room)}),
    }


def read_problem(record: dict[str, Any], forest: Forest, also: tuple[Companion, ...]) -> Problem:
    """The problem that `problem_record` wrote, once everything in it fits the forest."""
    row, low, high = (read_numbers(record[key])[None, :] for key in ("row", "low", "high"))
    batch = Batch(
        rows=row,
        low=low,
        high=high,
        offset=read_numbers(record["offset"]),
        scale=read_numbers(record["scale"]),
        grain=np.array(record["grain"], np.int8),
        origin=np.array([record["leave"]], np.int32),
        target=np.array([record["reach"]], np.int32),
        first=row,
        choices=_choices(record["choices"]),
        lists=_lists(record["lists"]),
        rules=Rules.from_record(record["rules"]),
    )
    _check_columns(batch, forest.n_features)
    reach = int(record["reach"])
    if also and not 0 <= reach < max(forest.n_classes, 2):
        reject("The certificate's class", f"from 0 to {max(forest.n_classes, 2) - 1}", reach)
    isolation, outliers = _limits(record.get("plausibility"), forest.n_features)
    plain, slack = _question(record["question"], forest, also, reach)
    distance = read_distance(record["distance_function"], forest.n_features)
    room = _room(record["room"], forest.n_features) if "room" in record else None
    if isolation is None:
        asked = _with_cells(plain, record["question"], batch)
        _check_cells(batch, asked)
        return Problem(asked, batch, distance, forest, None, slack, also, room=room, outliers=outliers)
    relaxed = Problem(plain, batch, distance, model=forest, slack=slack, also=also, room=room)
    within = put_within(Put(plain, batch.target, slack), isolation)
    asked = _with_cells(within.forest, record["question"], batch)
    batch = replace(batch, disagreed=asked.n_classes - 1)
    _check_cells(batch, asked)
    return Problem(
        asked, batch, distance, model=forest, slack=within.slack, also=also, isolation=isolation, relaxed=relaxed,
        room=room,
    )  # fmt: skip


def _limits(record: dict[str, Any] | None, n_features: int) -> tuple[Isolation | None, OutlierLimit | None]:
    """The limit of plausibility, on one measure or on the other."""
    if record is not None and record["kind"] == OUTLIERS:
        return None, OutlierLimit.from_record(record)
    return None if record is None else Isolation.from_record(record, n_features), None


def _room_record(room: Room) -> dict[str, Any]:
    """What of the change, and how many units besides, every column has on both sides of an answer."""
    return {one.name: written_numbers(getattr(room, one.name)) for one in fields(room)}


def _room(record: dict[str, Any], n: int) -> Room:
    room = Room(**{one.name: read_numbers(record[one.name]) for one in fields(Room)})
    for one in fields(room):
        sizes = getattr(room, one.name)
        if sizes.shape != (n,) or not (sizes >= 0).all() or (one.name == "below_share" and not (sizes < 1).all()):
            reject(f"The certificate's {one.name}", f"{n} numbers, 0 or more, shares below 1", sizes.tolist())
    return room


def _with_cells(asked: Forest, record: dict[str, Any], batch: Batch) -> Forest:
    """The forest that decides on the cells of the question: cut by its rules, with the missing values it chooses."""
    asked = with_cuts(asked, batch.rules)
    if "missing_is_choice" not in record:
        return asked
    return variant(asked, missing_is_choice=np.array(record["missing_is_choice"], bool))


def is_other(asked: Forest, model: Forest) -> bool:
    """Whether the question is another than the model's own classes."""
    return any(getattr(asked, name) != getattr(model, name) for name in _ASKED)


def _question_record(problem: Problem, target: Any) -> dict[str, Any]:
    """What is asked for, where it is no class, and what else the forest that decides has other than the model's own."""
    asked, model = (problem.relaxed or problem).forest, problem.model
    record: dict[str, Any] = {}
    if isinstance(target, Probability):
        number = model.classes.tolist().index(target.label.item() if hasattr(target.label, "item") else target.label)
        label = {"class": number, "label": str(target.label)}
        record["target"] = {"kind": "Probability", **label, "at_least": float(target.at_least)}
    elif isinstance(target, Interval):
        ends = {"low": written_number(target.low), "high": written_number(target.high)}
        record["target"] = {"kind": type(target).__name__, **ends}
    elif not problem.also:
        record |= {name: getattr(asked, name) for name in _ASKED if getattr(asked, name) != getattr(model, name)}
    if asked.missing_is_choice is not None:
        record["missing_is_choice"] = asked.missing_is_choice.tolist()
    return record


def _question(
    record: dict[str, Any], forest: Forest, also: Sequence[Companion], reach: int
) -> tuple[Forest, Slack | None]:
    """The forest that decides, and how far it may be from the library's own numbers."""
    if also:
        target = _target(record["target"], forest) if "target" in record else forest.classes.tolist()[reach]
        joint = put_to_all(target, forest, also, 1, None)
        return joint.forest, joint.slack
    changes: dict[str, Any] = {name: record[name] for name in _ASKED if name in record}
    slack = None
    if "target" in record:
        asked = put(_target(record["target"], forest), forest, 1)
        forest, slack = asked.forest, asked.slack
    if "decision" in changes or "cut" in changes:
        changes["classes"] = np.array([False, True])
    return variant(forest, **changes), slack


def _target(record: dict[str, Any], forest: Forest) -> Probability | Interval:
    if record["kind"] == "Probability":
        if not 0 <= int(record["class"]) < forest.n_classes:
            reject("The certificate's class", f"from 0 to {forest.n_classes - 1}", record["class"])
        return Probability(forest.classes.tolist()[int(record["class"])], float(record["at_least"]))
    kind = Score if record["kind"] == "Score" else Interval
    return kind(float(record["low"]), float(record["high"]))


def _choices_record(choices: Choices) -> dict[str, Any]:
    names = ("column", "is_category", "start")
    cells = {name: written_numbers(getattr(choices, name)[0]) for name in ("value", "delta")}
    return {name: getattr(choices, name).tolist() for name in names} | cells


def _choices(record: dict[str, Any]) -> Choices:
    return Choices(
        np.array(record["column"], np.intp),
        np.array(record["is_category"], bool),
        np.array(record["start"], np.intp),
        read_numbers(record["value"])[None, :],
        read_numbers(record["delta"])[None, :],
    )


def _lists(record: dict[str, Any]) -> Lists:
    return Lists(
        np.array(record["start"], np.int32), read_numbers(record["value"]), np.array(record["is_strict"], bool)
    )


def _check_columns(batch: Batch, n: int) -> None:
    """A file may say anything: every array as wide as the forest, every column one of its columns."""
    for name in ("rows", "low", "high", "offset", "scale", "grain"):
        if getattr(batch, name).shape[-1] != n:
            reject(f"The certificate's {name.removesuffix('s')}", f"{n} numbers", getattr(batch, name).shape[-1])
    if not (np.isfinite(batch.scale).all() and (batch.scale > 0).all() and np.isfinite(batch.offset).all()):
        reject("The certificate's scale and offset", "finite, the scale above 0", "something else")
    if not np.isin(batch.grain, (ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED)).all():
        reject("The certificate's grain", f"from {ANY_FLOAT} to {STEPPED}", batch.grain.tolist())
    start = batch.lists.start
    if start.shape != (n + 1,) or (np.diff(start, prepend=0) < 0).any() or start[-1] != len(batch.lists.value):
        reject("The certificate's lists", f"those of {n} columns", start.tolist())
    for column in np.flatnonzero(batch.grain == STEPPED).tolist():
        numbers = batch.lists.of(column)
        if len(numbers) != 4 or not is_sound(numbers):
            reject("The certificate's steps", "a beginning, a step and a divisor above 0, and 0 or 1", numbers.tolist())
    if batch.lists.is_strict.shape != (n,):
        reject("The certificate's lists", f"{n} times strict or not", batch.lists.is_strict.shape)
    for rule in batch.rules.all:
        columns = (rule.cause.column, rule.effect.column) if isinstance(rule, ImpliesRule) else rule.columns.tolist()
        if not all(0 <= column < n for column in columns):
            reject("The certificate's rules", f"about columns 0 to {n - 1}", columns)
        if isinstance(rule, LinearRule) and rule.coefficient.shape != rule.columns.shape:
            reject("The certificate's rules", "with a coefficient a column", rule.coefficient.tolist())


def _check_cells(batch: Batch, asked: Forest) -> None:
    """Classes and cells are those of the forest that decides."""
    leave, reach = int(batch.origin[0]), int(batch.target[0])
    if not (0 <= leave < asked.n_classes and -1 <= reach < asked.n_classes):
        reject("The certificate's classes", f"from 0 to {asked.n_classes - 1}", f"{leave} and {reach}")
    grid, choices = kernels.grid_of(asked), batch.choices
    columns = np.flatnonzero(grid.has_sets)
    start = np.concatenate([[0], np.cumsum(np.diff(grid.cell_start)[columns])])
    is_same = np.array_equal(choices.column, columns) and np.array_equal(choices.start, start)
    if not (is_same and choices.is_category.shape == columns.shape):
        reject("The certificate's choices", f"those of columns {columns.tolist()}", choices.column.tolist())
    for cells in (choices.value, choices.delta):
        if cells.shape != (1, start[-1]):
            reject("The certificate's choices", f"{start[-1]} cells", cells.shape[-1])


def written_number(value: float) -> float | str:
    """JSON has no infinities and no NaN: they are written as words."""
    return float(value) if np.isfinite(value) else str(float(value))


def written_numbers(values: Floats) -> list[float | str]:
    """Numbers for JSON."""
    return [written_number(value) for value in values]


def read_numbers(values: Any) -> Floats:
    """What `written_numbers` wrote."""
    return np.array(values, dtype=np.float64)
