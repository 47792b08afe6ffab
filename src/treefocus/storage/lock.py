"""One process at a time: a lock that ends with the process, however it ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from treefocus.errors import InvalidInput


def locked(path: Path, complaint: str) -> int:
    """A handle on a file, made if need be, or on a folder; whoever else asks for one is told the complaint.

    The lock ends with `os.close`, or with the process. On Windows a folder cannot be locked, and nobody is kept out.
    """
    is_folder = path.is_dir()
    if is_folder and os.name != "posix":
        return os.open(os.devnull, os.O_RDONLY)
    handle = os.open(path, os.O_RDONLY) if is_folder else os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.close(handle)
        raise InvalidInput(complaint) from error
    return handle


@contextlib.contextmanager
def held(path: Path, complaint: str) -> Iterator[None]:
    """The same for as long as a block runs."""
    handle = locked(path, complaint)
    try:
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
