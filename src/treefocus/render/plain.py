"""Foreign text, such as a column's name, made safe to stand inside our own: one line, no hidden commands."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

_FIRST, _LAST = "\u2068", "\u2069"  # between these, writing direction is nobody else's business
_COMMANDS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # turn the direction of what follows
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")  # end a line, or speak to the terminal
_RIGHT_TO_LEFT = ("R", "AL", "AN")


@lru_cache(maxsize=10_000)
def _plain(text: str) -> str:
    text = _BREAKS.sub(" ", _COMMANDS.sub("", text))
    turns = not text.isascii() and any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text)
    return f"{_FIRST}{text}{_LAST}" if turns else text


def plain(value: Any) -> str:
    """The text without line breaks and control characters; right-to-left text is kept apart from its neighbours."""
    return _plain(str(value))


def bare(value: Any) -> str:
    """The same without the marks that keep right-to-left text apart, where the medium does that itself."""
    return _COMMANDS.sub("", plain(value))
