"""The lines of a text file, with a way back for lines that were looked at too early."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

BUFFER = 1 << 20  # bytes read at a time


class Lines:
    """Lines of a file that may be of a kind that only goes forward: packed, or a pipe. Only b"\\n" ends a line."""

    def __init__(self, file: BinaryIO, *, is_hashed: bool = False) -> None:
        self._file = file
        self._hash = hashlib.sha256() if is_hashed else None
        self._log: list[bytes] = []  # what was given away and is not in the hash yet
        self._ready: list[bytes] = []
        self._at = 0  # the next of these
        self._rest: list[bytes] = []  # the beginning of the line behind them, in pieces
        self.n_ends = 0  # of lines, counted in the bytes as they came: nothing here knows of cells

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._at == len(self._ready) and not self._read():
            raise StopIteration
        self._at += 1
        line = self._ready[self._at - 1]
        if self._hash is not None:
            self._log.append(line)
        return line

    def take(self, n: int) -> list[bytes]:
        """The next so many, or as many as there are."""
        found: list[bytes] = []
        while len(found) < n and (self._at < len(self._ready) or self._read()):
            more = self._ready[self._at : self._at + n - len(found)]
            self._at += len(more)
            found += more
        if self._hash is not None:
            self._log += found
        return found

    def unread(self, lines: list[bytes]) -> None:
        """Lines that come again."""
        self._ready, self._at = [*lines, *self._ready[self._at :]], 0
        if self._hash is not None:
            del self._log[len(self._log) - len(lines) :]

    def skip(self, n_bytes: int) -> None:
        """Go on behind so many bytes, which end a line."""
        while n_bytes > 0 and (line := next(self, b"")):
            n_bytes -= len(line)

    def digest(self) -> str:
        """The SHA-256 of all lines that were given away, where it was asked for."""
        if self._hash is None:
            return ""
        for line in self._log:
            self._hash.update(line)
        self._log.clear()
        return self._hash.hexdigest()

    def _read(self) -> bool:
        """More lines; whether there are any."""
        while block := self._file.read(BUFFER):
            ends = block.count(b"\n")
            self.n_ends += ends
            self._rest.append(block)
            if ends:
                *whole, last = b"".join(self._rest).split(b"\n")
                self._ready, self._at = [line + b"\n" for line in whole], 0
                self._rest = [last] if last else []
                return True
        self._ready, self._at, self._rest = self._rest and [b"".join(self._rest)], 0, []
        self.n_ends += len(self._ready)
        return bool(self._ready)
