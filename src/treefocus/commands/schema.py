"""`treefocus schema`: a first guess at what a file's columns are, to be corrected by hand and given to `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treefocus.commands.written import Decimal, Delimiter, Encoding, written_in
from treefocus.constraints.suggest import suggest_constraints
from treefocus.errors import InvalidInput
from treefocus.schema.schema import Schema
from treefocus.tables.files import TABLE_FILES, check_suffix, read_columns
from treefocus.tables.text import STANDARD

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
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Also list constraints that the rows seem to obey, to accept or to leave.")
    ] = False,
    exceptions: Annotated[
        float, typer.Option(metavar="SHARE", help="With --suggest: the share of rows that may break a constraint.")
    ] = 0.0,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="A column that names the rows; not the model's.")
    ] = None,
    encoding: Encoding = STANDARD.encoding,
    delimiter: Delimiter = STANDARD.delimiter,
    decimal: Decimal = STANDARD.decimal,
) -> None:
    """Guess what the columns of DATA are: whole numbers, steps, categories, one-hot groups.

    Prints a table. With -o the guess goes to a YAML file as well: correct it, add units and words, and give it to
    explain with --schema.

    With --suggest, relations between columns follow, a line each with what speaks for it: give those that you accept
    to explain with --constraint.

    \b
      treefocus schema rows.csv -o schema.yaml
      treefocus schema rows.csv --suggest
      treefocus explain model.json rows.csv --schema schema.yaml
    """
    check_suffix(data, TABLE_FILES)
    if output is not None:
        check_suffix(output, SCHEMA_FILES)
        if not output.parent.is_dir():
            raise InvalidInput(f"There is no folder {output.parent}.")
    left_out = (*(ignore or ()), *([] if id_ is None else [id_]))
    columns = read_columns(data, left_out, written_in(encoding, delimiter, decimal))
    guessed = Schema.infer(columns)
    typer.echo(str(guessed))
    if suggest:
        found = suggest_constraints(columns, exceptions=exceptions)
        typer.echo(
            f"\nThe rows seem to obey:\n{found.to_text()}" if found else "\nNo relation between columns stands out."
        )
    if output is not None:
        guessed.save(output)
        typer.echo(f"\nWritten to {output}. Correct it there, and add units and words.")


def read_schema(path: Path | None) -> Schema | None:
    """The schema of a file that a command line names."""
    if path is None:
        return None
    check_suffix(path, SCHEMA_FILES)
    return Schema.load(path)
