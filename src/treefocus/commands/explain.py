"""`treefocus explain`: the rows of a file, answered on the screen, in one file, or bit by bit into a folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from treefocus.adapters import load_model, translate
from treefocus.commands import explain_options as options
from treefocus.commands.explain_options import OUTPUTS
from treefocus.commands.file_names import file_names
from treefocus.commands.invalid import MostInvalid, reasons_of
from treefocus.commands.monitoring import Monitor
from treefocus.commands.question import TypedQuestion, takes_question
from treefocus.commands.reading import labels_of, read_rows, read_training_rows
from treefocus.commands.showing import console_of, progress_bar, say, show_overview, summary_line
from treefocus.commands.streaming import stream
from treefocus.errors import InvalidInput
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.render.letter import template_of
from treefocus.render.phrases import DEFAULT
from treefocus.search import Status
from treefocus.tables.files import check_suffix, import_pyarrow, write_columns

if TYPE_CHECKING:
    pass

N_PEOPLE = 3  # whose answers are given as sentences


@takes_question()
def explain(
    model: options.Model,
    data: options.Data,
    asked: TypedQuestion,
    max_invalid: options.MaxInvalid = "1%",
    keep: options.Keep = None,
    part_rows: options.PartRows = None,
    shard: options.ShardText = "1/1",
    allow_upgrade: options.AllowUpgrade = False,
    log_format: options.LogFormat = "text",
    metrics_file: options.MetricsFile = None,
    certificates: options.Certificates = None,
    proof: options.WithProof = False,
    letters: options.Letters = None,
    template: options.LetterTemplate = "plain",
    language: options.Language = DEFAULT,
    output: options.Output = None,
) -> None:
    """Explain every row of DATA: the smallest change that gets another prediction from MODEL.

    Prints a table, sentences for the first rows and a summary, or writes every row's answer to a file with -o.
    Columns that hold whole numbers, cents, tenths or True and False are answered in such numbers. Columns of the
    files that are not the model's are left out, which is said once; --id gives the rows the names in one of them.

    With a folder after -o (a name without an ending, or with a / at its end) DATA is read bit by bit and answered in
    Parquet files in that folder. Stopped or killed, the same command goes on where it was. Without --time-limit the
    proof is limited in steps and not in seconds, so that the answers do not depend on the machine.

    Letters ask for an answer that holds, --hold 0.95, where the model is a forest that votes or --refits are given;
    --at-least 0.5 asks for the smallest change that a majority is enough for.

    \b
      treefocus explain model.json rows.csv --train train.csv --target approved
      treefocus explain model.json rows.csv --target approved --at-least 0.8 --ways 3
      treefocus explain prices.json rows.csv --train train.csv --between 200000:
      treefocus explain model.json rows.csv --fix age --range income:0:200000 -o answers.csv
      treefocus explain model.json rows.csv --vary income --vary debt
      treefocus explain model.json rows.csv --target approved --also last-year.json
      treefocus explain model.json customers.parquet --train train.csv --keep customer -o answers/
      treefocus explain model.json "s3://bank/in/*.parquet" --train train.csv --shard 3/16 -o shard-3/
      treefocus explain model.json rows.csv --train train.csv --certificates proofs --proof
    """
    most, made = MostInvalid(max_invalid), asked.building()
    if output is not None and is_folder(output):
        if letters is not None:
            raise InvalidInput("--letters are for answers in a file or on the screen, not in a folder.")
        if asked.ways > 1:
            raise InvalidInput("Answers in a folder are one way out a row; --ways is for a file or the screen.")
        kept = list(dict.fromkeys([*([] if asked.id_ is None else [asked.id_]), *(keep or ())]))
        how = {
            "part_rows": part_rows, "shard": shard, "allow_upgrade": allow_upgrade, "certificates": certificates,
            "proof": proof, "told": asked.told(made),
        }  # fmt: skip
        monitor = Monitor(log_format, metrics_file)
        most.check(*stream(model, data, asked, Path(output), made, kept, how, monitor))
        return
    if keep or part_rows or shard != "1/1" or metrics_file is not None:
        raise InvalidInput("--keep, --part-rows, --shard and --metrics-file are for answers in a folder: -o FOLDER.")
    if proof and certificates is None:
        raise InvalidInput("--proof needs --certificates FOLDER, in which the proofs are written.")
    template_of(template, language)  # refused now, not after an hour's work
    path = None if output is None else Path(output)
    _check_output(path)
    found = explained(model, data, asked, made, is_for_people=letters is not None)
    _report(found, path, language)
    names = file_names(len(found), None if asked.id_ is None else [one.label for one in found])
    if letters is not None:
        _write_letters(found, letters, names, template, language)
    if certificates is not None:
        _certify(found, certificates, names, proof)
    reasons = reasons_of(found)
    most.check(len(found), len(reasons), reasons)


def is_folder(output: str) -> bool:
    """Whether the answers go into a folder: one that is there, or a name that no file would have."""
    path = Path(output)
    if path.suffix in OUTPUTS:
        return output.endswith(("/", "\\"))
    return output.endswith(("/", "\\")) or path.is_dir() or not path.suffix


def explained(
    model_file: Path, data: str, asked: TypedQuestion, made: dict[str, Any], *, is_for_people: bool = False
) -> Explanations:
    """All rows at once; for people with a margin, unless they are to have another one."""
    model = load_model(model_file, allow_pickle=asked.allow_pickle)
    forest, text = translate(model).forest, asked.text
    known = read_training_rows(asked.train, asked.left_out, forest, text)
    table = read_rows(Path(data), asked.left_out, forest, known, text, partial(typer.echo, err=True))
    labels = labels_of(Path(data), asked.id_, text)
    if known is None:
        typer.echo(
            f"Note: no --train, so the scale and the range that answers stay in come from {data} itself.",
            err=True,
        )
    explainer = Explainer(model, table if known is None else known, **made)
    target, how = asked.wanted(forest), asked.searching()
    if is_for_people and how["hold"] is None:
        how["hold"] = explainer.hold_for_people(target)
    with progress_bar("explaining", len(table.values)) as progress:
        found = explainer.explain(table, target=target, n=asked.ways, progress=progress, **how)
        return found.labelled(labels)


def _report(found: Explanations, output: Path | None, language: str) -> None:
    console = console_of()
    if output is not None:
        _write(found, output)
    else:
        show_overview(console, found)
        say(console, "\n" + found.to_text(N_PEOPLE, language, proof=True) + "\n")
    say(console, summary_line(found) + ("" if output is None else f" Written to {output}."))


def _write_letters(found: Explanations, folder: Path, names: list[str], template: str, language: str) -> None:
    """A letter to everybody whose row the model can read."""
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, one in zip(names, found, strict=True):
            if one.predicted is not None:
                text = one.to_letter(language, template=template)
                (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
                written += 1
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}.") from error
    say(console_of(), f"{written:,} letter{'s' * (written != 1)} written to {folder}.")


def _certify(found: Explanations, folder: Path, names: list[str], with_proof: bool) -> None:
    """A certificate a row; rows that the model cannot read have none."""
    n_proven = n_written = 0
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, one in zip(names, found, strict=True):
            if one.status is Status.INVALID:
                continue
            record = one.certificate(proof=with_proof, time=made_at)
            n_written, n_proven = n_written + 1, n_proven + ("proof" in record)
            (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}.") from error
    proofs = f", {n_proven} with a proof" if with_proof else ""
    say(console_of(), f"{n_written} certificates{proofs} in {folder}.")


def _check_output(path: Path | None) -> None:
    """Say now, not after an hour's work, that the answers cannot be written."""
    if path is None:
        return
    check_suffix(path, OUTPUTS)
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent}.")
    if path.suffix == ".parquet":
        import_pyarrow("Writing")


def _write(found: Explanations, path: Path) -> None:
    try:
        if path.suffix == ".json":
            found.to_json(path)
        elif path.suffix == ".html":
            found.to_html(path)
        else:
            write_columns(path, found.records())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
