"""Explanations as tables for the terminal (rich). Computes nothing, and shows only what changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plain import plain
from treefocus.render.text import bare_value, measured, words_of
from treefocus.render.views import BatchView, ChangeView, RowView

if TYPE_CHECKING:
    from rich.table import Table  # slow to import, and only a terminal needs it

MANY = 10  # rows in an overview


def changes_table(explanation: RowView, language: str = DEFAULT) -> Table:
    """Before, after and change of every feature that moves, and its share of the whole change."""
    from rich.markup import escape
    from rich.table import Table

    words = catalogue(language).words
    table = Table(title=escape(title(explanation, language)))
    table.add_column(words["feature"])
    for heading in ("before", "after", "change", "share"):
        table.add_column(words[heading], justify="right")
    for cells in change_cells(explanation, language):
        table.add_row(*map(escape, cells))
    if not explanation.changes:
        table.caption = escape(plain(catalogue(language).reason(explanation.why)))
    return table


def overview_table(found: BatchView, limit: int = MANY, language: str = DEFAULT) -> Table:
    """The first rows of a batch: what changes, how far, how sure."""
    from rich.markup import escape
    from rich.table import Table

    words = catalogue(language).words
    n_rows = min(limit, len(found))
    table = Table(title=words["x of y rows"].format(shown=n_rows, rows=len(found)))
    for heading in ("row", "predicted", "would be", "if"):
        table.add_column(words[heading])
    table.add_column(words["distance"], justify="right")
    table.add_column(words["status"])
    for i in range(n_rows):
        table.add_row(*map(escape, overview_cells(found[i], language)))
    return table


def title(explanation: RowView, language: str = DEFAULT) -> str:
    """The row, its prediction and, where something changes, what it would be."""
    name = catalogue(language).row.format(row=plain(explanation.label))
    would = explanation.changes and explanation.outcome is not None
    return f"{name}: {said(explanation, language)}" + (f" → {said_after(explanation, language)}" if would else "")


def said(explanation: RowView, language: str = DEFAULT) -> str:
    """What the model says of the row, in short: a class, a number, a probability if that was asked, or a dash."""
    likelihood = None if explanation.likelihood is None else explanation.likelihood[0]
    return _said(explanation, explanation.predicted, likelihood, language)


def said_after(explanation: RowView, language: str = DEFAULT) -> str:
    """The same of the answer."""
    likelihood = None if explanation.likelihood is None else explanation.likelihood[1]
    return _said(explanation, explanation.outcome, likelihood, language)


def _said(explanation: RowView, label: Any, likelihood: float | None, language: str) -> str:
    if label is None:
        return "-"
    if explanation.is_value:
        return catalogue(language).amount(float(label))
    if likelihood is not None:
        return f"{plain(explanation.favoured)} {catalogue(language).share(likelihood, 1)}"
    return plain(label)


def change_cells(explanation: RowView, language: str = DEFAULT) -> list[tuple[str, ...]]:
    """For each change: feature, before, after, change and share, as text."""
    phrases = catalogue(language)
    cells: list[tuple[str, ...]] = []
    for change in explanation.changes:
        feature = words_of(explanation, change, language)
        before, after = (measured(value, feature, phrases) for value in (change.before_shown, change.shown))
        cells.append((plain(change.feature), before, after, difference(change, language), phrases.share(change.share)))
    return cells


def overview_cells(explanation: RowView, language: str = DEFAULT) -> tuple[str, ...]:
    """Row, prediction, outcome, changes in short, distance and status, as text."""
    phrases = catalogue(language)
    has_answer = explanation.status.has_answer
    return (
        plain(explanation.label),
        said(explanation, language),
        said_after(explanation, language) if has_answer else "-",
        ", ".join(from_to(explanation, change, language) for change in explanation.changes)
        or plain(phrases.reason(explanation.why)),
        "-" if explanation.distance is None else phrases.rounded(explanation.distance),
        explanation.status.name,
    )


def from_to(explanation: RowView, change: ChangeView, language: str = DEFAULT) -> str:
    """One change in short: "income 48,200 → 52,000 EUR"."""
    phrases, feature = catalogue(language), words_of(explanation, change, language)
    before, after = bare_value(change.before_shown, feature, phrases), measured(change.shown, feature, phrases)
    return f"{plain(change.feature)} {before} → {after}"


def difference(change: ChangeView, language: str = DEFAULT) -> str:
    """How far a number moves, to four digits: "+3,800" or "-0.02512"; of a date "+12 days"; nothing for others."""
    if change.days is not None:
        return catalogue(language).days(change.days)
    return (
        "" if change.moved is None or isinstance(change.shown, bool) else catalogue(language).difference(change.moved)
    )
