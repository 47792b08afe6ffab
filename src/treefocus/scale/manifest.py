"""A folder of answers in parts, with a manifest that says what is in it, safe against being killed at any moment.

A part is written under another name, brought to the disk and renamed, and only then does the manifest, by the same
way, tell of it. So whatever the manifest tells of is whole; a part that it does not tell of is written again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from treefocus.errors import InvalidInput
from treefocus.scale.sources import Place
from treefocus.storage.atomic import TEMPORARY, write_whole
from treefocus.storage.parts import Parts

FORMAT = "treefocus-answers-1"
NAME, DRAFT = "manifest.json", "draft.arrow"


@dataclass(frozen=True)
class Part:
    """One file of answers: how many rows, how they came out, and where in the input the next part begins."""

    name: str
    rows: int
    status: dict[str, int]
    next: Place


@dataclass
class Manifest:
    """What a folder of answers holds. Nothing in it depends on when or how fast the work was done."""

    question: dict[str, Any]  # fingerprints of input, model and question, and the options
    parts: list[Part] = field(default_factory=list)
    is_complete: bool = False

    @property
    def place(self) -> Place:
        """Where in the input to go on."""
        return self.parts[-1].next if self.parts else Place()

    def counts(self) -> dict[str, int]:
        """Rows per status over all parts."""
        total: dict[str, int] = {}
        for part in self.parts:
            for name, count in part.status.items():
                total[name] = total.get(name, 0) + count
        return total

    def to_bytes(self) -> bytes:
        """As JSON."""
        record = {"format": FORMAT, "complete": self.is_complete, "question": self.question}
        return (json.dumps(record | {"parts": [asdict(part) for part in self.parts]}, indent=1) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """From JSON."""
        record = json.loads(data)
        if record.get("format") != FORMAT:
            raise ValueError(f"its format is {record.get('format')!r}")
        parts = [Part(**part | {"next": Place(**part["next"])}) for part in record["parts"]]
        return cls(record["question"], parts, record["complete"])


def opened(folder: Path, question: dict[str, Any]) -> Manifest:
    """The manifest of a folder, new or as far as it had come; refuses a folder with the answers to something else."""
    path = folder / NAME
    if not path.is_file():
        strangers = sorted(entry.name for entry in folder.iterdir() if not _is_ours(folder, entry))
        if strangers:
            raise InvalidInput(f"{folder} is not empty and holds no {NAME}, but {strangers[0]}; give another folder.")
        return Manifest(question)
    try:
        manifest = Manifest.from_bytes(path.read_bytes())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path} is not a manifest of answers: {error}.") from error
    names = sorted(question.keys() | manifest.question.keys())
    others = [name for name in names if question.get(name) != manifest.question.get(name)]
    if others:
        raise InvalidInput(
            f"{folder} holds the answers to another question (other: {', '.join(others)}); give another folder."
        )
    lost = [part.name for part in manifest.parts if not (folder / part.name).is_file()]
    if lost:
        raise InvalidInput(f"{folder} lacks {lost[0]}, of which its manifest tells; give another folder.")
    return manifest


def tidy(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed run left behind: files half written, and parts that the manifest does not tell of."""
    parts_in(folder).keep_only({part.name for part in manifest.parts})
    for name in (NAME, DRAFT):
        (folder / (name + TEMPORARY)).unlink(missing_ok=True)


def save(manifest: Manifest, folder: Path) -> None:
    """Write the manifest."""
    write_whole(folder / NAME, manifest.to_bytes())


def parts_in(folder: Path) -> Parts:
    """The files of answers in a folder, whether the manifest tells of them or not."""
    return Parts(folder, ".parquet", 5)


def _is_ours(folder: Path, entry: Path) -> bool:
    return entry.name.removesuffix(TEMPORARY) in (NAME, DRAFT) or parts_in(folder).is_one(entry)
