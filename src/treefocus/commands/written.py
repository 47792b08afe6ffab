"""How the text files that a command line names are written: the options for it, and what they say together."""

from __future__ import annotations

from typing import Annotated

import typer

from treefocus.tables.text import TextFormat

Encoding = Annotated[str, typer.Option(metavar="NAME", help="Of text files: utf-8, latin-1, cp1252, ...")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Between cells, tab for a tab. If not given, a tab in .tsv, a comma in .csv, a semicolon with --decimal ,",
    ),
]
Decimal = Annotated[str, typer.Option(metavar="CHARACTER", help="Before the fraction of a number: . or ,")]


def written_in(encoding: str, delimiter: str | None, decimal: str) -> TextFormat:
    """The format that these options describe."""
    return TextFormat(encoding, "\t" if delimiter in ("tab", "\\t") else delimiter, decimal)
