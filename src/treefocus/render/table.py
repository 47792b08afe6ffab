"""Explanations as tables for the terminal (rich). Computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from treefocus.render.text import quantity

if TYPE_CHECKING:
    from treefocus.explanation import Explanation, Explanations


def changes_table(explanation: Explanation) -> Table:
    """Before, after and change of every feature that moves."""
    table = Table(title=f"Row {explanation.label}: {explanation.predicted} → {explanation.outcome}")
    table.add_column("feature")
    for heading in ("before", "after", "change", "share"):
        table.add_column(heading, justify="right")
    for change in explanation.changes:
        difference = change.after - change.before
        table.add_row(
            change.feature,
            quantity(change.before, change.unit),
            quantity(change.shown, change.unit),
            f"{difference:+,.4g}",
            f"{change.share:.0%}",
        )
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
        table.add_row(
            str(one.label),
            str(one.predicted),
            str(one.outcome) if has_answer else "-",
            changes or one.reason,
            f"{one.distance:.4g}" if has_answer else "-",
            one.status.name,
        )
    return table
