"""`treefocus schema`: a first guess at what a file's columns are, to be corrected by hand and given to `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treefocus.errors import InvalidInput
from treefocus.schema.schema import Schema
from treefocus.tables.files import TABLE_FILES, check_suffix, read_columns

SCHEMA_FILES = (".yaml", ".yml")


def schema(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows: .csv, .tsv or .parquet, with column names.")],
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that is not the model's. Repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the schema to a .yaml file.")
    ] = None,
) -> None:
    """Guess what the columns of DATA are: whole numbers, steps, categories, one-hot groups.

    Prints a table. With -o the guess goes to a YAML file as well: correct it, add units and words, and give it to
    explain with --schema.

    \b
      treefocus schema rows.csv -o schema.yaml
      treefocus explain model.json rows.csv --schema schema.yaml
    """
    check_suffix(data, TABLE_FILES)
    if output is not None:
        check_suffix(output, SCHEMA_FILES)
        if not output.parent.is_dir():
            raise InvalidInput(f"There is no folder {output.parent}.")
    guessed = Schema.infer(read_columns(data, ignore or ()))
    typer.echo(str(guessed))
    if output is not None:
        guessed.save(output)
        typer.echo(f"\nWritten to {output}. Correct it there, and add units and words.")


def read_schema(path: Path | None) -> Schema | None:
    """The schema of a file that a command line names."""
    if path is None:
        return None
    check_suffix(path, SCHEMA_FILES)
    return Schema.load(path)
