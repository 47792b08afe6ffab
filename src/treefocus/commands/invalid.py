"""Rows that could not be read: how many of them a command lets pass before it says that something is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from treefocus.errors import reject
from treefocus.explanation.batch import Explanations
from treefocus.search import Status

TOO_MANY_INVALID = 3  # exit code
N_REASONS = 10  # that are told
_FORM = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<percent>%?)")


@dataclass(frozen=True)
class MostInvalid:
    """What --max-invalid says: a share of the rows, "1%", or a number of them, "25"."""

    text: str

    def __post_init__(self) -> None:
        form = _FORM.fullmatch(self.text.strip())
        is_number = form is not None and (form["percent"] or form["number"].isdecimal())
        if not is_number or (form is not None and form["percent"] and float(form["number"]) > 100):
            reject("--max-invalid", "a share from 0% to 100%, or a whole number of rows", repr(self.text))

    def allows(self, n_invalid: int, n_rows: int) -> bool:
        """Whether so many of the rows may be INVALID."""
        number = float(self.text.strip().removesuffix("%"))
        return n_invalid <= (number / 100 * n_rows if self.text.strip().endswith("%") else number)

    def check(self, n_rows: int, n_invalid: int, reasons: Sequence[str]) -> None:
        """Leave with `TOO_MANY_INVALID` and the first reasons where there are too many."""
        if self.allows(n_invalid, n_rows):
            return
        most = f"more than --max-invalid {self.text} allows"
        typer.echo(f"Error: {n_invalid:,} of {n_rows:,} rows are INVALID, {most}. The first:", err=True)
        for reason in reasons[:N_REASONS]:
            typer.echo(f"  {reason}", err=True)
        raise typer.Exit(TOO_MANY_INVALID)


def reasons_of(found: Explanations) -> list[str]:
    """Why rows are INVALID."""
    pairs = zip(found.labels, found.status, found.reasons, strict=True)
    return [f"row {name}: {reason}" for name, status, reason in pairs if status is Status.INVALID]
