"""Universal Binary JSON, as XGBoost writes it: objects, strings, numbers, and typed arrays as NumPy arrays."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_SINGLE = {mark: Struct(">" + form) for mark, form in zip(_NUMBERS, "bBhiqfd", strict=True)}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_DEEPEST = 64


def parse(data: bytes) -> Any:
    """The value that the bytes hold; `InvalidInput` if they are cut short or something else."""
    reader = _Reader(data)
    return reader.value(reader.take(1), 0)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.at:
            raise InvalidInput("The UBJSON file is cut short or damaged.")
        self.at += size
        return self.data[self.at - size : self.at]

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def number(self, mark: bytes) -> Any:
        form = _SINGLE[mark]
        return form.unpack(self.take(form.size))[0]

    def count(self) -> int:
        mark = self.take(1)
        if mark not in _NUMBERS or mark in b"dD":
            raise InvalidInput("The UBJSON file is damaged: a length is not a whole number.")
        return int(self.number(mark))

    def text(self) -> str:
        return self.take(self.count()).decode("utf-8", "replace")

    def value(self, mark: bytes, depth: int) -> Any:
        if depth > _DEEPEST:
            raise InvalidInput("The UBJSON file is damaged: it is nested too deeply.")
        if mark == b"{":
            return self.object(depth)
        if mark == b"[":
            return self.array(depth)
        if mark == b"S":
            return self.text()
        if mark in _NUMBERS:
            return self.number(mark)
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        raise InvalidInput(f"The UBJSON file is damaged: {mark!r} stands where a value should.")

    def object(self, depth: int) -> dict[str, Any]:
        found = {}
        while self.peek() != b"}":
            name = self.text()
            found[name] = self.value(self.take(1), depth + 1)
        self.take(1)
        return found

    def array(self, depth: int) -> Any:
        kind = None
        if self.peek() == b"$":
            self.take(1)
            kind = self.take(1)
        if self.peek() == b"#":
            self.take(1)
            size = self.count()
            if kind in _NUMBERS:
                dtype = np.dtype(_NUMBERS[kind])
                return np.frombuffer(self.take(size * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
            if size > len(self.data):
                raise InvalidInput("The UBJSON file is damaged: an array is longer than the file.")
            return [self.value(kind or self.take(1), depth + 1) for _ in range(size)]
        items = []
        while self.peek() != b"]":
            items.append(self.value(self.take(1), depth + 1))
        self.take(1)
        return items
