"""Work kept in numbered parts: each is there whole or not at all, and whoever was stopped goes on behind them.

part-00000.parquet, part-00001.parquet, ...       answers to a file, which a manifest tells of
part-000000.json, part-000001.json, ...           answers of a job, until it is done
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from treefocus.storage.atomic import TEMPORARY, write_atomically, write_whole


@dataclass(frozen=True)
class Parts:
    """The parts in one folder."""

    folder: Path
    suffix: str  # of their names, ".json"
    digits: int  # of their numbers

    def name(self, number: int) -> str:
        """The name of a part."""
        return f"part-{number:0{self.digits}d}{self.suffix}"

    def path(self, number: int) -> Path:
        """Where a part is, or will be."""
        return self.folder / self.name(number)

    def has(self, number: int) -> bool:
        """Whether a part is there, and so whole."""
        return self.path(number).is_file()

    def write(self, number: int, content: str | bytes | Callable[[Path], None]) -> None:
        """Keep a part: its text or bytes, or what fills a file of that name."""
        if callable(content):
            write_atomically(self.path(number), content)
        else:
            write_whole(self.path(number), content)

    def is_one(self, path: Path) -> bool:
        """Whether a file's name is that of a part, or of one that is being written."""
        return self._form.fullmatch(path.name.removesuffix(TEMPORARY)) is not None

    def keep_only(self, names: Collection[str]) -> None:
        """Remove every part but these, and what a killed run left half written."""
        for path in self.folder.iterdir():
            if self.is_one(path) and path.name not in names:
                path.unlink()

    @cached_property
    def _form(self) -> re.Pattern[str]:
        return re.compile(rf"part-\d+{re.escape(self.suffix)}")
