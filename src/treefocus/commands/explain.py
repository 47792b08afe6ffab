"""`treefocus explain`: the rows of a file, answered on the screen, in one file, or bit by bit into a folder."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from treefocus.adapters import load_model, translate
from treefocus.commands import explain_options as options
from treefocus.commands.explain_options import OUTPUTS
from treefocus.commands.invalid import N_REASONS, MostInvalid, reasons_of
from treefocus.commands.monitoring import Monitor
from treefocus.commands.reading import constraints_of, labels_of, numbers_of, read_rows, target_of, weights_of
from treefocus.commands.schema import read_schema
from treefocus.commands.showing import console_of, progress_bar, say, show_overview, summary_line
from treefocus.errors import InvalidInput
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.model.forest import Forest
from treefocus.options import OPTIONS
from treefocus.render.letter import template_of
from treefocus.render.phrases import DEFAULT
from treefocus.search import Status
from treefocus.tables.columns import check_columns
from treefocus.tables.files import check_suffix, import_pyarrow, write_columns
from treefocus.tables.text import STANDARD, TextFormat

if TYPE_CHECKING:
    from treefocus.scale.work import Advance

N_PEOPLE = 3  # whose answers are given as sentences
INTERRUPTED, TERMINATED = 130, 143  # exit codes
PATIENCE = 0.3  # seconds that a search may take to notice Ctrl-C
Wanted = Callable[[Forest], Any]  # the target, once the model is known


def explain(
    model: options.Model,
    data: options.Data,
    train: options.Train = None,
    also: options.Also = None,
    refits: options.Refits = None,
    hold: options.Hold = None,
    schema: options.SchemaFile = None,
    distance: options.DistanceName = OPTIONS["distance"].default,
    fix: options.Fix = None,
    vary: options.Vary = None,
    increasing: options.Increase = None,
    decreasing: options.Decrease = None,
    range_: options.Ranges = None,
    constraint: options.InWords = None,
    target: options.Target = None,
    at_least: options.AtLeast = None,
    between: options.Between = None,
    ways: options.Ways = OPTIONS["n"].default,
    weight: options.Weights = None,
    strategy: options.StrategyName = OPTIONS["strategy"].default,
    scale: options.Scale = OPTIONS["scale"].default,
    bounds: options.Bounds = None,
    ignore: options.Ignore = None,
    id_: options.Id = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Threads = None,
    seed: options.Seed = OPTIONS["seed"].default,
    allow_pickle: options.AllowPickle = False,
    encoding: options.Encoding = STANDARD.encoding,
    delimiter: options.Delimiter = STANDARD.delimiter,
    decimal: options.Decimal = STANDARD.decimal,
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
    text = TextFormat(encoding, "\t" if delimiter == "tab" else delimiter, decimal)
    asked = NamedFiles(model, data, train, tuple(ignore or ()), allow_pickle, text, id_)
    most = MostInvalid(max_invalid)
    made = {
        "distance": distance,
        "constraints": constraints_of(fix, increasing, decreasing, range_, constraint),
        "scale": None if scale == "none" else scale,
        "bounds": None if bounds is None else numbers_of("--bounds", bounds, bounds.split(":")),
        "schema": read_schema(schema),
        "weights": weights_of(weight),
        "vary": vary,
        "also": [load_model(path, allow_pickle=allow_pickle) for path in also or ()],
        "refits": [load_model(path, allow_pickle=allow_pickle) for path in refits or ()],
    }
    wanted = partial(target_of, target, at_least, between)
    search = {"strategy": strategy, "time_limit": time_limit, "n_jobs": n_jobs, "seed": seed, "hold": hold}
    if output is not None and is_folder(output):
        if letters is not None:
            raise InvalidInput("--letters are for answers in a file or on the screen, not in a folder.")
        if ways > 1:
            raise InvalidInput("Answers in a folder are one way out a row; --ways is for a file or the screen.")
        kept = list(dict.fromkeys([*([] if id_ is None else [id_]), *(keep or ())]))
        how = {
            "part_rows": part_rows, "shard": shard, "allow_upgrade": allow_upgrade, "certificates": certificates,
            "proof": proof, "told": told_of(made, asked, constraint, at_least, between),
        }  # fmt: skip
        monitor = Monitor(log_format, metrics_file)
        most.check(*stream(asked, Path(output), made, search, wanted, kept, how, monitor))
        return
    if keep or part_rows or shard != "1/1" or metrics_file is not None:
        raise InvalidInput("--keep, --part-rows, --shard and --metrics-file are for answers in a folder: -o FOLDER.")
    if proof and certificates is None:
        raise InvalidInput("--proof needs --certificates FOLDER, in which the proofs are written.")
    template_of(template, language)  # refused now, not after an hour's work
    path = None if output is None else Path(output)
    _check_output(path)
    found = explained(asked, made, search | {"n": ways}, wanted)
    _report(found, path, language)
    if letters is not None:
        _write_letters(found, letters, template, language)
    if certificates is not None:
        _certify(found, certificates, proof)
    reasons = reasons_of(found)
    most.check(len(found), len(reasons), reasons)


@dataclass(frozen=True)
class NamedFiles:
    """The files that a command line names."""

    model: Path
    data: str  # a path, or whatever else names rows
    train: Path | None
    ignore: tuple[str, ...]
    allow_pickle: bool
    text: TextFormat = STANDARD
    id: str | None = None  # the column that names the rows

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns of the files that are not read as the model's."""
        return self.ignore if self.id is None else (*self.ignore, self.id)


def is_folder(output: str) -> bool:
    """Whether the answers go into a folder: one that is there, or a name that no file would have."""
    path = Path(output)
    if path.suffix in OUTPUTS:
        return output.endswith(("/", "\\"))
    return output.endswith(("/", "\\")) or path.is_dir() or not path.suffix


def explained(asked: NamedFiles, made: dict[str, Any], search: dict[str, Any], wanted: Wanted) -> Explanations:
    """All rows at once."""
    model = load_model(asked.model, allow_pickle=asked.allow_pickle)
    forest = translate(model).forest
    known = None if asked.train is None else read_rows(asked.train, asked.left_out, forest, None, asked.text)
    table = read_rows(Path(asked.data), asked.left_out, forest, known, asked.text, partial(typer.echo, err=True))
    labels = labels_of(Path(asked.data), asked.id, asked.text)
    if known is None:
        typer.echo(
            f"Note: no --train, so the scale and the range that answers stay in come from {asked.data} itself.",
            err=True,
        )
    explainer = Explainer(model, table if known is None else known, **made)
    target = wanted(forest)
    with progress_bar("explaining", len(table.values)) as progress:
        return explainer.explain(table, target=target, progress=progress, **search).labelled(labels)


def stream(
    asked: NamedFiles,
    folder: Path,
    made: dict[str, Any],
    search: dict[str, Any],
    wanted: Wanted,
    keep: Sequence[str],
    how: dict[str, Any],
    monitor: Monitor,
) -> tuple[int, int, list[str]]:
    """Bit by bit, into a folder; how many rows there are, how many could not be read, and why the first could not."""
    import_pyarrow("Writing")
    from treefocus.scale.files import explain_file, first_reasons

    forest = translate(load_model(asked.model, allow_pickle=asked.allow_pickle)).forest
    explainer = _streaming_explainer(asked, forest, made, keep)
    target = wanted(forest)
    began, done = time.perf_counter(), 0
    try:
        with terminable(), monitor.running() as show:

            def progress(advance: Advance) -> None:
                nonlocal done
                done = advance.rows_now
                show(advance)

            manifest = explain_file(
                explainer,
                asked.data,
                folder,
                keep=keep,
                target=target,
                text=asked.text,
                progress=progress,
                model_file=asked.model,
                **how,
                **search,
            )
    except KeyboardInterrupt as stop:
        typer.echo(f"Stopped. What is done is kept in {folder}; the same command goes on from there.", err=True)
        code = TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
        leave_soon(code)
        raise typer.Exit(code) from stop
    counts = ", ".join(f"{count:,} {name}" for name, count in manifest.counts().items())
    total, parts = sum(manifest.counts().values()), len(manifest.parts)
    speed = f" {done / (time.perf_counter() - began):,.0f} rows per second." if done else ""
    said = f"{total:,} rows: {counts or 'none'}.{speed} Written to {folder} in {parts} part{'s' * (parts != 1)}."
    say(console_of(), said)
    return total, manifest.counts().get(Status.INVALID.name, 0), first_reasons(manifest, folder, N_REASONS)


def _streaming_explainer(asked: NamedFiles, forest: Forest, made: dict[str, Any], keep: Sequence[str]) -> Explainer:
    """The explainer, once it is clear that the file has its columns."""
    known = None if asked.train is None else read_rows(asked.train, asked.left_out, forest, None, asked.text)
    if known is None and made["scale"] is not None:
        raise InvalidInput("Answers in a folder need --train, which sets the scale and the domain, or --scale none.")
    wanted = forest.feature_names or (None if known is None else known.names)
    if wanted is None:
        raise InvalidInput(
            f"The model does not know the names of its columns; --train tells which are in {asked.data}."
        )
    from treefocus.scale.dataset import names_of

    names = names_of(asked.data, asked.text)
    if names:  # of the standard input they are not known yet
        check_columns(str(asked.data), names, wanted, may_have_others=True)
    surplus = [name for name in names if name not in (*wanted, *keep, *asked.ignore)]
    if surplus:
        ways = " ".join(f"--keep {shlex.quote(name)}" for name in surplus)
        typer.echo(f"Note: columns that are not the model's are left out; {ways} carries them along.", err=True)
    return Explainer(forest, known, **made)


def told_of(
    made: dict[str, Any], asked: NamedFiles, words: Sequence[str] | None, at_least: float | None, between: str | None
) -> dict[str, Any]:
    """Options as they were given, for the manifest; what an explainer still knows it tells itself."""
    given = {
        "train": None if asked.train is None else str(asked.train),
        "ignore": list(asked.ignore) or None,
        "scale": made["scale"] if made["scale"] is not None else "none",
        "bounds": made["bounds"],
        "weights": made["weights"],
        "vary": made["vary"],
        "constraints in words": list(words or ()) or None,
        "at_least": at_least,
        "between": between,
    }
    return {name: value for name, value in given.items() if value is not None}


class Terminated(KeyboardInterrupt):
    """SIGTERM, by which a scheduler stops a run: it ends as by Ctrl-C, with what is done kept."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM is `Terminated` inside, where a signal can be heard."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def leave_soon(code: int) -> None:
    """Leave at once if searches are still at work after a moment: nothing they do is wanted any more."""
    until = time.monotonic() + PATIENCE
    while any(thread.name.startswith("treefocus") for thread in threading.enumerate()):
        if time.monotonic() > until:
            sys.stderr.flush()
            os._exit(code)
        time.sleep(0.01)


def _report(found: Explanations, output: Path | None, language: str) -> None:
    console = console_of()
    if output is not None:
        _write(found, output)
    else:
        show_overview(console, found)
        say(console, "\n" + found.to_text(N_PEOPLE, language, proof=True) + "\n")
    say(console, summary_line(found) + ("" if output is None else f" Written to {output}."))


def _write_letters(found: Explanations, folder: Path, template: str, language: str) -> None:
    """A letter to everybody whose row the model can read."""
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(found, start=1):
            if one.predicted is not None:
                text = one.to_letter(language, template=template)
                (folder / f"row-{number}.txt").write_text(text, encoding="utf-8", newline="\n")
                written += 1
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}.") from error
    say(console_of(), f"{written:,} letter{'s' * (written != 1)} written to {folder}.")


def _certify(found: Explanations, folder: Path, with_proof: bool) -> None:
    """A certificate a row, row-1.json and so on; rows that the model cannot read have none."""
    n_proven = n_written = 0
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for i, one in enumerate(found, start=1):
            if one.status is Status.INVALID:
                continue
            record = one.certificate(proof=with_proof, time=made_at)
            n_written, n_proven = n_written + 1, n_proven + ("proof" in record)
            (folder / f"row-{i}.json").write_text(json.dumps(record), encoding="utf-8")
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
