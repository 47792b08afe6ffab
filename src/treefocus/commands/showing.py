"""What a command line shows: sentences, a table, a bar where somebody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from treefocus.explanation.batch import Explanations

if TYPE_CHECKING:
    from rich.console import Console

    from treefocus.scale.work import Advance


def console_of(stderr: bool = False) -> Console:
    """Where text goes."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def say(console: Console, text: str) -> None:
    """Text as it is: a column may well be named [red]. Lines are broken only where somebody watches."""
    console.print(text, markup=False, emoji=False, soft_wrap=not console.is_terminal)


@contextmanager
def progress_bar(title: str, n_rows: int) -> Iterator[Callable[[int], None] | bool]:
    """A bar on stderr where somebody watches, else nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = console_of(stderr=True)
    if not console.is_terminal:
        yield False
        return
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=n_rows)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def rate_bar() -> Iterator[Callable[[Advance], None]]:
    """The bar of a long run on stderr: rows, rows a second, share found, time left; nothing where nobody watches."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = console_of(stderr=True)
    if not console.is_terminal:
        yield lambda advance: None
        return
    text = TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s  {task.fields[found]:.1%} found")
    columns = (TextColumn("explaining"), BarColumn(), text, TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("explaining", total=1.0, rows=0, rate=0.0, found=0.0)

        def show(advance: Advance) -> None:
            rate = advance.rows_now / max(time.monotonic() - began, 1e-9)
            found = advance.found / max(advance.rows, 1)
            bar.update(task, completed=advance.share, rows=advance.rows, rate=rate, found=found)

        yield show


def show_overview(console: Console, found: Explanations, limit: int = 10) -> None:
    """The first rows as a table."""
    from treefocus.render.table import overview_table

    console.print(overview_table(found, limit))


def summary_line(found: Explanations) -> str:
    """The batch in a line."""
    numbers = found.summary()
    counts = ", ".join(f"{count} {name}" for name, count in numbers["status"].items())
    mean = numbers["mean_distance"]
    shown = "" if np.isnan(mean) else f" Mean {found.distance_name} distance {mean:.4g}."
    return f"{numbers['rows']:,} rows: {counts or 'none'}.{shown} {numbers['rows_per_second']:,.0f} rows per second."
