"""The columns that a model was trained on: the one place that says which of them a table lacks."""

from __future__ import annotations

from collections.abc import Sequence

from treefocus.errors import InvalidInput

DELIMITERS = (";", "\t", "|", ",")  # what people put between cells


def check_columns(
    what: str, names: Sequence[str], wanted: Sequence[str], *, may_have_others: bool = False, hint: str = ""
) -> None:
    """Refuse names that lack some of the wanted columns or, unless they may, have others.

    what: the table as the user knows it. hint: what else to say of rows by name.
    """
    missing = [name for name in wanted if name not in names]
    unknown = [] if may_have_others else [name for name in names if name not in wanted]
    if may_have_others and missing:
        raise InvalidInput(f"{what} lacks the columns {', '.join(missing)}{_other_delimiter(names, wanted)}.")
    if unknown or missing:
        told = [f"{', '.join(own)} {word}" for own, word in ((unknown, "unknown"), (missing, "missing")) if own]
        raise InvalidInput(f"{what} must have the columns the model was trained on: {'; '.join(told)}{hint}.")


def _other_delimiter(names: Sequence[str], wanted: Sequence[str]) -> str:
    """What to say of a line of names that was not cut where it should have been, nothing of others."""
    for mark in DELIMITERS:
        if any(mark in name and not set(name.split(mark)).isdisjoint(wanted) for name in names):
            return f"; its names stand with {mark!r} between them: say the delimiter {mark!r}"
    return ""
