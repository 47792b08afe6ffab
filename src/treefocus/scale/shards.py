"""One input over several machines without a cluster: each answers the parts that are its own.

A part is the same file whoever writes it, and has the same number. So the parts of all shards, put side by side, are
the folder that one machine alone would have written. Where the number of rows is known beforehand (Parquet) a shard's
parts lie side by side, and it reads no others; else it takes every n-th part and reads past those of the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from treefocus.errors import reject

_FORM = re.compile(r"([0-9]+)/([0-9]+)")


@dataclass(frozen=True)
class Shard:
    """One of so many shares of the work, counted from 1."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            reject("shard", "K/N with K from 1 to N, such as 3/16", f"{self.number}/{self.count}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def of(cls, text: str) -> Shard:
        """From "3/16"."""
        form = _FORM.fullmatch(text.strip())
        if form is None:
            reject("shard", "K/N with K from 1 to N, such as 3/16", repr(text))
        return cls(int(form[1]), int(form[2]))

    def span(self, n_parts: int) -> tuple[int, int]:
        """The first part of its own, and the one behind its last, where there are so many in all."""
        return n_parts * (self.number - 1) // self.count, n_parts * self.number // self.count

    def owns(self, part: int, n_parts: int | None) -> bool:
        """Whether a part is its own. n_parts: how many there are, where that is known."""
        if n_parts is None:
            return part % self.count == self.number - 1
        first, end = self.span(n_parts)
        return first <= part < end


WHOLE = Shard()
