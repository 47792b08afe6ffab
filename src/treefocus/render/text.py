"""An explanation as sentences. Computes nothing: every number is in the explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefocus.explanation import Change, Explanation


def sentence(explanation: Explanation) -> str:
    """What would have to change, and how sure we are that nothing smaller would do."""
    name = f"Row {explanation.label}"
    before, after = f"'{explanation.predicted}'", f"'{explanation.outcome}'"
    if explanation.predicted is None:
        return f"{name} gets no prediction: {explanation.reason}."
    if not explanation.status.has_answer:
        return f"{name} is predicted {before}. {_capitalised(explanation.reason)}."
    if not explanation.changes:
        return f"{name} is predicted {before} already; nothing has to change."
    parts = [change_phrase(change) for change in explanation.changes]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    if before == after:
        change = f"{name} is predicted {before} already, but breaks a constraint. It would obey them all if {listed}."
    else:
        change = f"{name} is predicted {before}. It would be predicted {after} if {listed}."
    return f"{change} {proof(explanation)}."


def proof(explanation: Explanation) -> str:
    """How sure we are that no smaller change would do, and the distance."""
    distance = f"{explanation.distance_name} distance {explanation.distance:.4g}"
    if explanation.status.name == "OPTIMAL":
        return f"No smaller change does that, which is proven ({distance})"
    if explanation.status.name == "BOUNDED":
        return f"The smallest change is at most {explanation.gap:.1%} smaller, which is proven ({distance})"
    return f"A smaller change may exist ({distance})"


def change_phrase(change: Change) -> str:
    """One change: "income were 52,000 EUR instead of 48,200 EUR"."""
    after, before = quantity(change.shown, change.unit), quantity(change.before, change.unit)
    return f"{change.feature} were {after} instead of {before}"


def quantity(value: float, unit: str = "") -> str:
    """A number as people write it, with its unit: all its digits, no more."""
    text = f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else _decimal(value)
    return f"{text} {unit}" if unit else text


def _decimal(value: float) -> str:
    shortest = repr(float(value))
    if "e" in shortest:
        return shortest
    whole, _, digits = shortest.partition(".")
    return f"{int(whole):,}.{digits}" if abs(float(whole)) >= 1000 else shortest


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
