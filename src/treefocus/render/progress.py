"""A bar that shows how many rows are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    progress: bool | Callable[[int], None], n_rows: int, doing: str = "explaining"
) -> Iterator[Callable[[int], None] | None]:
    """The function that hears progress: the user's, a bar's, or none."""
    if not progress:
        yield None
    elif callable(progress):
        yield progress
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(doing, total=n_rows)
            yield lambda done: bar.update(task, completed=done)
            bar.update(task, completed=n_rows)
