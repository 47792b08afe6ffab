"""`treefocus explain -o FOLDER`: rows of any number, answered bit by bit, and what stops it keeps what is done."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from treefocus.adapters import load_model, translate
from treefocus.commands.invalid import N_REASONS
from treefocus.commands.monitoring import Monitor
from treefocus.commands.question import TypedQuestion
from treefocus.commands.reading import read_training_rows
from treefocus.commands.showing import console_of, say
from treefocus.errors import InvalidInput
from treefocus.explainer import Explainer
from treefocus.model.forest import Forest
from treefocus.search import Status
from treefocus.tables.columns import check_columns
from treefocus.tables.files import import_pyarrow

if TYPE_CHECKING:
    from treefocus.scale.work import Advance

INTERRUPTED, TERMINATED = 130, 143  # exit codes
PATIENCE = 0.3  # seconds that a search may take to notice Ctrl-C


def stream(
    model_file: Path,
    data: str,
    asked: TypedQuestion,
    folder: Path,
    made: dict[str, Any],
    keep: Sequence[str],
    how: dict[str, Any],
    monitor: Monitor,
) -> tuple[int, int, list[str]]:
    """Bit by bit, into a folder; how many rows there are, how many could not be read, and why the first could not."""
    import_pyarrow("Writing")
    from treefocus.scale.files import explain_file, first_reasons

    forest = translate(load_model(model_file, allow_pickle=asked.allow_pickle)).forest
    explainer = _explainer(data, asked, forest, made, keep)
    target = asked.wanted(forest)
    began, done = time.perf_counter(), 0
    try:
        with terminable(), monitor.running() as show:

            def progress(advance: Advance) -> None:
                nonlocal done
                done = advance.rows_now
                show(advance)

            manifest = explain_file(
                explainer,
                data,
                folder,
                keep=keep,
                target=target,
                text=asked.text,
                progress=progress,
                model_file=model_file,
                **how,
                **asked.searching(),
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


def _explainer(data: str, asked: TypedQuestion, forest: Forest, made: dict[str, Any], keep: Sequence[str]) -> Explainer:
    """The explainer, once it is clear that the file has its columns."""
    known = read_training_rows(asked.train, asked.left_out, forest, asked.text)
    if known is None and made["scale"] is not None:
        raise InvalidInput("Answers in a folder need --train, which sets the scale and the domain, or --scale none.")
    wanted = forest.feature_names or (None if known is None else known.names)
    if wanted is None:
        raise InvalidInput(f"The model does not know the names of its columns; --train tells which are in {data}.")
    from treefocus.scale.dataset import names_of

    names = names_of(data, asked.text)
    if names:  # of the standard input they are not known yet
        check_columns(data, names, wanted, may_have_others=True)
    surplus = [name for name in names if name not in (*wanted, *keep, *(asked.ignore or ()))]
    if surplus:
        ways = " ".join(f"--keep {shlex.quote(name)}" for name in surplus)
        typer.echo(f"Note: columns that are not the model's are left out; {ways} carries them along.", err=True)
    return Explainer(forest, known, **made)


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
