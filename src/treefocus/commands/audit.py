"""`treefocus audit`: what a model demands of the people in a file, of all and of each group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from treefocus.commands import explain_options as options
from treefocus.commands.explain import explained
from treefocus.commands.question import TypedQuestion, takes_question
from treefocus.commands.showing import console_of, say
from treefocus.errors import InvalidInput, reject
from treefocus.explanation.audit.audit import Audit
from treefocus.explanation.audit.preclusion import SAMPLE
from treefocus.tables.files import check_suffix, import_pyarrow, read_columns, read_names
from treefocus.tables.text import TextFormat

OUTPUTS = (".html", ".json", ".txt")

GroupNames = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of DATA that makes groups, the model's or not. Repeatable."),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN:LABEL", help="The group that others are compared with; the largest if not given."),
]
MinGroup = Annotated[int, typer.Option(min=0, metavar="N", help="Groups of fewer rows are not shown.")]
Level = Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals and of the conclusions.")]
Why = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many rows without a way out are asked what stands in it.")
]
DataFile = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="The rows: .csv, .tsv or .parquet; none where MODEL is a folder of answers."),
]
AuditOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=f"Write the audit to a file: {', '.join(OUTPUTS)}."),
]


@takes_question(without=("also", "refits", "hold", "ways", "id_"))
def audit(
    model: options.Model,
    data: DataFile = None,
    groups: GroupNames = None,
    reference: Reference = None,
    min_group: MinGroup = 0,
    level: Level = 0.95,
    why: Why = SAMPLE,
    *,
    asked: TypedQuestion,
    output: AuditOutput = None,
) -> None:
    """Audit what MODEL demands of the people in DATA: who has no way out, what it asks of the others, of whom more.

    Every row is explained first, with the options of `treefocus explain`. Instead of a model and rows, MODEL can be a
    folder of answers (treefocus explain ... --keep sex -o FOLDER).

    \b
      treefocus audit model.json rows.csv --train train.csv --target approved --groups sex -o audit.html
      treefocus audit model.json rows.csv --target approved --groups sex --groups region --min-group 20
      treefocus audit answers/ --groups sex
    """
    _check_output(output)
    shown: dict[str, Any] = {"reference": _references(reference), "min_group": min_group, "level": level}
    if model.is_dir():
        if data is not None:
            raise InvalidInput("A folder of answers is audited without DATA.")
        made = _of_answers(model, groups or [], shown)
    elif data is None:
        raise InvalidInput("DATA is missing: the rows to audit, unless MODEL is a folder of answers.")
    else:
        outside = _outside(data, groups or [], asked.text)
        found = explained(model, str(data), asked, asked.building())
        made = found.audit(outside or None, why=why, n_jobs=asked.n_jobs, **shown)
    _show(made, output)


def _of_answers(folder: Path, groups: list[str], shown: dict[str, Any]) -> Audit:
    import_pyarrow("Reading")
    from treefocus.scale.audits import audit_answers

    return audit_answers(folder, groups, **shown)


def _outside(path: Path, groups: list[str], text: TextFormat) -> dict[str, list[Any]]:
    """The columns that --groups names, as they are written."""
    names = read_names(path, text)
    for name in groups:
        if name not in names:
            reject("--groups", f"a column of {path}: {', '.join(names)}", repr(name))
    if not groups:
        return {}
    written = read_columns(path, [name for name in names if name not in groups], text)
    return {name: _cells(written[name]) for name in groups}


def _cells(column: Any) -> list[Any]:
    return list(column.tolist() if isinstance(column, np.ndarray) else column.to_pylist())


def _references(texts: list[str] | None) -> dict[str, Any]:
    """COLUMN:LABEL each; a number is one."""
    found: dict[str, Any] = {}
    for text in texts or ():
        column, colon, label = text.partition(":")
        if not (colon and column):
            reject("--reference", "COLUMN:LABEL", repr(text))
        found[column] = int(label) if label.lstrip("-").isdigit() else label
    return found


def _check_output(path: Path | None) -> None:
    """Say now, not after an hour's work, that the audit cannot be written."""
    if path is not None:
        check_suffix(path, OUTPUTS)
        if not path.parent.is_dir():
            raise InvalidInput(f"There is no folder {path.parent}.")


def _show(made: Audit, path: Path | None) -> None:
    if path is None:
        say(console_of(), made.to_text())
        return
    try:
        if path.suffix == ".html":
            made.to_html(path)
        elif path.suffix == ".json":
            made.to_json(path)
        else:
            path.write_text(made.to_text() + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    rows = made.whole.rows
    say(console_of(), f"Audit of {rows:,} row{'s' * (rows != 1)}: {len(made.findings)} findings. Written to {path}.")
