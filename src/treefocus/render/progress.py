"""A bar that shows how many rows are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Listener = Callable[[int], None]  # hears how many rows are done


def progress_bar(
    progress: bool | Listener, n_rows: int, doing: str = "explaining"
) -> AbstractContextManager[Listener | None]:
    """The function that hears progress: the user's, a bar's, or none."""
    if callable(progress):
        return nullcontext(progress)
    return _bar(n_rows, doing) if progress else nullcontext()


@contextmanager
def _bar(n_rows: int, doing: str) -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=n_rows)
        yield lambda done: bar.update(task, completed=done)
        bar.update(task, completed=n_rows)
