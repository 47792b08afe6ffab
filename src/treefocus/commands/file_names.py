"""Names of files that are about one row each: by the row's number, or by its id as far as a file can be called so."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_LONGEST = 50  # of up to four bytes each
_UNSAFE = re.compile(r"[^\w.-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names of devices on Windows


def file_names(n_rows: int, ids: Sequence[Any] | None) -> list[str]:
    """A name for every row, without an ending; no two are the same, not even where capitals do not count."""
    if ids is None:
        return [f"row-{number}" for number in range(1, n_rows + 1)]
    taken: set[str] = set()
    return [_untaken(_safe(str(one)) or f"row-{number}", taken) for number, one in enumerate(ids, start=1)]


def _safe(text: str) -> str:
    """The id in characters that every system takes in a name, and that lead to no other folder."""
    kept = _UNSAFE.sub("_", unicodedata.normalize("NFKC", text)).strip("._ ")[:_LONGEST].rstrip("._ ")
    return f"id-{kept}" if _RESERVED.fullmatch(kept) else kept


def _untaken(name: str, taken: set[str]) -> str:
    """The name, with a number behind it where another row has it."""
    own, number = name, 1
    while own.casefold() in taken:
        number += 1
        own = f"{name}-{number}"
    taken.add(own.casefold())
    return own
