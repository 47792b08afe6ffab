"""Files that are there whole or not at all, even when the process is killed or the machine stops in between."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

TEMPORARY = ".tmp"  # after the name of a file that is being written


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, bring it to the disk and put it in place."""
    beside = path.with_name(path.name + TEMPORARY)
    try:
        write(beside)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)  # on a full disk it would take the room that others need
        raise
    sync_folder(path.parent)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file of this content; text as UTF-8."""
    data = content.encode() if isinstance(content, str) else content

    def write(beside: Path) -> None:
        beside.write_bytes(data)

    write_atomically(path, write)


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of names to the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened, and renames are written through
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
