"""Explanations as tables for the terminal (rich). Computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from treefocus.render.text import quantity

if TYPE_CHECKING:
    from treefocus.explanation import Change, Explanation, Explanations


def changes_table(explanation: Explanation) -> Table:
    """Before, after and change of every feature that moves."""
    table = Table(title=escape(f"Row {explanation.label}: {explanation.predicted} → {explanation.outcome}"))
    table.add_column("feature")
    for heading in ("before", "after", "change", "share"):
        table.add_column(heading, justify="right")
    for change in explanation.changes:
        cells = (
            change.feature,
            quantity(change.before, change.unit),
            quantity(change.shown, change.unit),
            difference(change),
            f"{change.share:.0%}",
        )
        table.add_row(*map(escape, cells))
    return table


def overview_table(found: Explanations, limit: int = 10) -> Table:
    """The first rows of a batch: what changes, how far, how sure."""
    table = Table(title=f"{min(limit, len(found))} of {len(found)} rows")
    table.add_column("row")
    table.add_column("predicted")
    table.add_column("would be")
    table.add_column("if")
    table.add_column("distance", justify="right")
    table.add_column("status")
    for i in range(min(limit, len(found))):
        one = found[i]
        changes = ", ".join(
            f"{change.feature} {quantity(change.before)} → {quantity(change.shown, change.unit)}"
            for change in one.changes
        )
        has_answer = one.status.has_answer
        cells = (
            str(one.label),
            "-" if one.predicted is None else str(one.predicted),
            str(one.outcome) if has_answer else "-",
            changes or one.reason,
            f"{one.distance:.4g}" if has_answer else "-",
            one.status.name,
        )
        table.add_row(*map(escape, cells))
    return table


def difference(change: Change) -> str:
    """How far a feature moves, to four digits: "+3,800" or "-0.02512"."""
    moved = change.shown - change.before
    return f"{moved:+,.0f}" if 1000 <= abs(moved) < 1e15 else f"{moved:+.4g}"
