"""Protocol Buffers as they lie in a file, without a schema: fields by number, read as far as a reader asks for them.

A message is a run of fields, each a number, a wire type and a value: a varint, 8 or 4 bytes, or a length and so many
bytes, which are a text, another message or packed numbers. Nothing is run, and no length is believed beyond the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_LONGEST_VARINT = 10


class Message:
    """The fields of a message, in their order."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.fields: dict[int, list[tuple[int, Any]]] = {}
        for number, kind, value in _fields(memoryview(data)):
            self.fields.setdefault(number, []).append((kind, value))

    def messages(self, number: int) -> list[Message]:
        """The messages in a field."""
        return [Message(value) for kind, value in self.fields.get(number, ()) if kind == _BYTES]

    def texts(self, number: int) -> list[str]:
        """The texts in a field."""
        return [bytes(value).decode("utf-8") for kind, value in self.fields.get(number, ()) if kind == _BYTES]

    def text(self, number: int) -> str:
        """The text in a field, empty if there is none."""
        return next(iter(self.texts(number)[-1:]), "")

    def integers(self, number: int) -> list[int]:
        """Signed numbers of 64 bits, packed or not."""
        found: list[int] = []
        for kind, value in self.fields.get(number, ()):
            if kind == _VARINT:
                found.append(_signed(value))
            elif kind == _BYTES:
                at = 0
                while at < len(value):
                    own, at = _varint(value, at)
                    found.append(_signed(own))
        return found

    def integer(self, number: int, default: int = 0) -> int:
        """The number in a field."""
        return next(iter(self.integers(number)[-1:]), default)

    def floats(self, number: int) -> NDArray[np.float64]:
        """Numbers of 4 bytes, packed or not."""
        return self._numbers(number, "<f4", _FOUR)

    def doubles(self, number: int) -> NDArray[np.float64]:
        """Numbers of 8 bytes, packed or not."""
        return self._numbers(number, "<f8", _EIGHT)

    def raw(self, number: int) -> bytes:
        """The bytes in a field."""
        return b"".join(bytes(value) for kind, value in self.fields.get(number, ()) if kind == _BYTES)

    def _numbers(self, number: int, dtype: str, plain: int) -> NDArray[np.float64]:
        runs = [bytes(value) for kind, value in self.fields.get(number, ()) if kind in (plain, _BYTES)]
        return np.frombuffer(b"".join(runs), dtype).astype(np.float64)


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise InvalidInput("The file is damaged: a field has no number.")
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        if kind not in (_EIGHT, _BYTES, _FOUR):
            raise InvalidInput(f"The file is damaged: a field has the kind {kind}.")
        length, at = (8, at) if kind == _EIGHT else (4, at) if kind == _FOUR else _varint(data, at)
        if length > len(data) - at:
            raise InvalidInput("The file is cut short or damaged: a field is longer than what is left.")
        yield number, kind, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for k in range(_LONGEST_VARINT):
        if at + k >= len(data):
            break
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + k + 1
    raise InvalidInput("The file is cut short or damaged: a number has no end.")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
