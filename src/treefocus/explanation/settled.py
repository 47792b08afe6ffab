"""Rows that need no search: a model cannot read them, they are answers as they are, or nothing is allowed."""

from __future__ import annotations

import numpy as np

from treefocus.explanation.reasons import (
    AlreadyThere,
    NoAllowedValue,
    NoOtherWay,
    Reason,
    Unreadable,
    UnreadableElsewhere,
)
from treefocus.model.forest import Bools
from treefocus.model.grid import readable
from treefocus.problem.problem import Problem
from treefocus.problem.question import Group
from treefocus.search.base import Outcome, Status
from treefocus.search.confirmed import Confirm
from treefocus.tables.table import Table

Reasons = dict[int, Reason]  # of rows that have one besides their status


def settled(table: Table, group: Group, confirm: Confirm) -> tuple[Outcome, Reasons]:
    """What is known of a group's rows without a search, and why; the others are NOT_FOUND."""
    problem, names = group.problem, group.question.schema.names
    model, others = group.question.forest, (other.forest for other in group.question.also)
    values = table.values[group.rows]
    is_read = readable(values, model, *others)
    is_readable = np.asarray(is_read.all(axis=1))
    outcome = Outcome.nothing(problem)
    already = _is_there(problem.relaxed or problem, confirm) & is_readable  # what stays need not be like the data
    outcome.points[already] = problem.batch.rows[already]
    outcome.distance[already] = 0.0
    outcome.status[already] = Status.OPTIMAL
    contradicted = ~problem.has_box & is_readable
    outcome.status[contradicted], outcome.lower_bound[contradicted] = Status.INFEASIBLE, np.inf
    outcome.status[~is_readable] = Status.INVALID
    reasons: Reasons = dict.fromkeys(np.flatnonzero(already).tolist(), AlreadyThere())
    for i in np.flatnonzero(contradicted).tolist():
        reasons[i] = NoAllowedValue(tuple(names[j] for j in np.flatnonzero(~problem.has_value[i])))
    for i in np.flatnonzero(~is_readable).tolist():
        row, is_own = int(group.rows[i]), readable(values[[i]], model)[0]
        kind, is_read_there = (Unreadable, is_own) if not is_own.all() else (UnreadableElsewhere, is_read[i])
        cells = (f"{names[j]} = {_written(table, row, j)}" for j in np.flatnonzero(~is_read_there).tolist())
        reasons[i] = kind(tuple(cells))
    return outcome, reasons


def no_other(outcome: Outcome, reasons: Reasons) -> Reasons:
    """Why rows have no further way out."""
    proven = np.flatnonzero(outcome.status == Status.INFEASIBLE).tolist()
    return dict.fromkeys(proven, NoOtherWay()) | reasons


def _is_there(problem: Problem, confirm: Confirm) -> Bools:
    """(n_rows,) whether each row is an answer as it is."""
    rows = problem.batch.rows
    if problem.slack is None:
        is_there = np.asarray(problem.batch.target == problem.batch.origin)
        return is_there & problem.batch.obeys(rows) if is_there.any() else is_there
    is_there = problem.loosened().is_valid(rows)
    near = np.flatnonzero(is_there)
    if near.size:
        is_there[near] = confirm(problem.subset(near), rows[near])
    return is_there


def _written(table: Table, row: int, column: int) -> str:
    cell = table.cell(row, column)
    return "nan" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)
