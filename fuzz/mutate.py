"""Small damage to files: to their bytes, and, where they are JSON, to what they say."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TOKENS = (
    b"NaN", b"Infinity", b"-Infinity", b"-1", b"0", b"1", b"2147483648", b"1000000000", b"18446744073709551616",
    b"1e999", b"null", b"true", b'"x"', b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\u0000", b"\xff", b"\x00", b"\n",
)  # fmt: skip
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: -1, lambda: 0, lambda: 1, lambda: 7, lambda: 1.5, lambda: 10**9, lambda: 2**31,
    lambda: -(2**31), lambda: 2**63, lambda: 2**64, lambda: math.nan, lambda: math.inf, lambda: -math.inf,
    lambda: 1e308, lambda: 5e-324, lambda: "", lambda: "x", lambda: "1", lambda: "1e400", lambda: [], lambda: {},
    lambda: [[]], lambda: [0] * 50, lambda: {"x": []}, lambda: "argmax", lambda: "float32",
)  # fmt: skip


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to four small changes."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_BYTE_CHANGES)(result, rng)
    return bytes(result)


def _flip(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _put(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.choice((1, 2, 4, 16, 64))]


def _double(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 2, 4, 16, 64))]
    data[start:start] = piece


def _insert(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = rng.choice(TOKENS)


def _replace_number(data: bytearray, rng: random.Random) -> None:
    """A run of digits becomes another number."""
    start = rng.randrange(len(data) + 1)
    while start < len(data) and data[start] not in b"0123456789":
        start += 1
    end = start
    while end < len(data) and data[end] in b"0123456789.eE+-":
        end += 1
    data[start:end] = rng.choice(TOKENS)


_BYTE_CHANGES = (_flip, _put, _cut, _remove, _double, _insert, _replace_number, _replace_number)


class Record:
    """A parsed JSON file that can be damaged and made whole again."""

    def __init__(self, data: bytes) -> None:
        self.value = json.loads(data)
        self._places = list(_places(self.value))

    @contextmanager
    def damaged(self, rng: random.Random) -> Iterator[bytes]:
        """The file with one to three changed places, as bytes."""
        undo: list[tuple[Any, Any, Any]] = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            holder, key = rng.choice(self._places)
            if isinstance(holder, list) and key >= len(holder):
                continue
            old = holder[key]
            undo.append((holder, key, old))
            holder[key] = self._instead(old, rng)
        try:
            yield json.dumps(self.value).encode()
        finally:
            for holder, key, old in reversed(undo):
                holder[key] = old

    def _instead(self, old: Any, rng: random.Random) -> Any:
        pick = rng.random()
        if isinstance(old, list) and pick < 0.5:
            return _changed_list(old, rng)
        if isinstance(old, dict) and pick < 0.5:
            lost = rng.choice(list(old) or [""])
            return {key: value for key, value in old.items() if key != lost}
        if isinstance(old, int | float) and not isinstance(old, bool) and pick < 0.4:
            return old + rng.choice((-2, -1, 1, 2, 1000))
        if pick < 0.6:
            holder, key = rng.choice(self._places)
            return copy.deepcopy(holder[key]) if key in holder or isinstance(holder, list) else None
        return rng.choice(VALUES)()


def _changed_list(items: list[Any], rng: random.Random) -> list[Any]:
    """Shorter, longer, in another order, or with a stranger in it."""
    changed = list(items)
    at = rng.randrange(len(changed) + 1)
    pick = rng.randrange(5)
    if pick == 0:
        del changed[at:]
    elif pick == 1:
        changed[at:at] = [rng.choice(VALUES)()]
    elif pick == 2:
        del changed[at : at + 1]
    elif pick == 3:
        changed += changed[:at]
    else:
        rng.shuffle(changed)
    return changed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) of a nested value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)
