"""Jobs on disk. Every file appears whole or not at all, so a server that dies loses at most the rows it worked on.

jobs/<id>/request.json     what was asked; a job exists from the moment its folder gets its name
jobs/<id>/part-<n>.json    the answers of some rows, while the job runs
jobs/<id>/result.json      all answers: the job is done
jobs/<id>/failed.json      or why it failed
jobs/<id>/cancelled.json   or that it was called off
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treefocus.app.limits import DiskFull
from treefocus.errors import InvalidInput
from treefocus.storage.atomic import sync_folder, write_whole
from treefocus.storage.lock import locked
from treefocus.storage.parts import Parts

ENDS = {"done": "result.json", "failed": "failed.json", "cancelled": "cancelled.json"}
_FULL = {errno.ENOSPC, *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else [])}
_IDENTIFIER = re.compile("[0-9a-f]{32}")


class JobFolder:
    """One folder that one server works in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = locked(path / "lock", f"Another server works in the jobs folder {path}; name another one.")
        except OSError as error:
            raise InvalidInput(f"The jobs folder {path} cannot be used: {error.strerror or error}.") from error
        for left in path.glob(".new-*"):  # of a server that died while it took a job
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Let another server in."""
        os.close(self._lock)

    def identifiers(self) -> list[str]:
        """The jobs there are, the oldest first."""
        found = []
        for one in self.path.iterdir():
            if _IDENTIFIER.fullmatch(one.name):
                with contextlib.suppress(OSError, ValueError, KeyError):  # somebody's own file is not a job
                    found.append((self.request(one.name)["submitted"], one.name))
        return [name for _, name in sorted(found)]

    def create(self, identifier: str, request: dict[str, Any]) -> None:
        """Take a job: it is there with its request, or it is not there."""
        new = self.path / f".new-{identifier}"
        with told_when_full():
            try:
                new.mkdir(mode=0o700)
                write_whole(new / "request.json", json.dumps(request))
                new.rename(self.path / identifier)
            except OSError:
                shutil.rmtree(new, ignore_errors=True)
                raise
        sync_folder(self.path)

    def can_write(self) -> bool:
        """Whether there is room for a small file."""
        probe = self.path / ".new-probe"
        try:
            probe.write_bytes(b"probe")
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return True

    def request(self, identifier: str) -> dict[str, Any]:
        """What was asked."""
        return _read(self.path / identifier / "request.json")

    def status(self, identifier: str) -> str:
        """How the job ended, or "waiting"."""
        for status, name in ENDS.items():
            if (self.path / identifier / name).is_file():
                return status
        return "waiting"

    def end(self, identifier: str, status: str, record: dict[str, Any]) -> None:
        """Write how the job ended, then drop its parts."""
        write_whole(self.path / identifier / ENDS[status], json.dumps(record, allow_nan=False))
        self.parts(identifier).keep_only(())

    def ended(self, identifier: str, status: str) -> dict[str, Any]:
        """What `end` wrote."""
        return _read(self.result_path(identifier) if status == "done" else self.path / identifier / ENDS[status])

    def result_path(self, identifier: str) -> Path:
        """Where the answers of a job that is done lie."""
        return self.path / identifier / ENDS["done"]

    def parts(self, identifier: str) -> Parts:
        """The answers that a job has so far."""
        return Parts(self.path / identifier, ".json", 6)

    def read_part(self, identifier: str, number: int) -> dict[str, Any]:
        """The answers of some rows."""
        return _read(self.parts(identifier).path(number))

    def remove(self, identifier: str) -> None:
        """Forget a job and all that belongs to it."""
        gone = self.path / f".new-{identifier}"
        (self.path / identifier).rename(gone)  # from here on it is no job, whatever happens
        shutil.rmtree(gone, ignore_errors=True)


@contextlib.contextmanager
def told_when_full() -> Iterator[None]:
    """A full disk as an error that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFull("The disk that the server keeps jobs on is full.") from error


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
