"""An explanation as sentences. Computes nothing: every number is in the explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treefocus.explanation import Change, Explanation


def sentence(explanation: Explanation) -> str:
    """What would have to change, and how sure we are that nothing smaller would do."""
    before, after = f"{explanation.predicted}", f"{explanation.outcome}"
    if not explanation.status.has_answer:
        return f"Row {explanation.label} is predicted {before!r}. {_capitalised(explanation.reason)}."
    if not explanation.changes:
        return f"Row {explanation.label} is predicted {before!r} already; nothing has to change."
    parts = [change_phrase(change) for change in explanation.changes]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    proof = f"This is {explanation.reason}"
    if explanation.gap is not None and explanation.status.name == "BOUNDED":
        proof += f" (at most {explanation.gap:.1%} smaller)"
    return (
        f"Row {explanation.label} is predicted {before!r}. It would be predicted {after!r} if {listed}. "
        f"{proof}; {explanation.distance_name} distance {explanation.distance:.4g}."
    )


def change_phrase(change: Change) -> str:
    """One change: "income were 52,000 EUR instead of 48,200 EUR"."""
    return f"{change.feature} were {quantity(change.shown, change.unit)} instead of {quantity(change.before, change.unit)}"


def quantity(value: float, unit: str = "") -> str:
    """A number as people write it, with its unit: all its digits, no more."""
    text = f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else _decimal(value)
    if unit == "%":
        return f"{text} %"
    return f"{text} {unit}" if unit else text


def _decimal(value: float) -> str:
    shortest = repr(float(value))
    if "e" in shortest:
        return shortest
    whole, _, digits = shortest.partition(".")
    return f"{int(whole):,}.{digits}" if abs(float(whole)) >= 1000 else shortest


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
