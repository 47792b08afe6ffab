"""A folder of answers in parts, with a manifest that says what is in it, safe against being killed at any moment.

A part is written under another name, brought to the disk and renamed, and only then does the manifest, by the same
way, tell of it. So whatever the manifest tells of is whole; a part that it does not tell of is written again. What
begins with an underscore is passed over by pandas, polars, Arrow, DuckDB and Spark when they open the folder.

    part-00000.parquet, ...      the answers
    _manifest.json               what was asked, with what, and what each part holds
    _draft.arrow                 the part under way, while the work goes on
    _certificates/               their certificates, where they were asked for and put here
    _SUCCESS                     empty; there once every row has its answer
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from treefocus.errors import InvalidInput
from treefocus.scale.shards import WHOLE, Shard
from treefocus.scale.sources import Place
from treefocus.storage.atomic import TEMPORARY, write_whole
from treefocus.storage.parts import Parts

FORMAT, EARLIER = "treefocus-answers-2", "treefocus-answers-1"
NAME, DRAFT, DONE = "_manifest.json", "_draft.arrow", "_SUCCESS"
PACKS = "_certificates"  # where certificates lie, if they lie in the folder itself
EARLIER_NAME = "manifest.json"  # of the format before, without hashes, versions and times
_EVERY_NAME = (NAME, DRAFT, DONE, PACKS, EARLIER_NAME)


@dataclass(frozen=True)
class Part:
    """One file of answers: how many rows, how they came out, and where in the input the next part begins."""

    name: str
    rows: int
    status: dict[str, int]
    next: Place
    sha256: str = ""  # of the file; "" in the format before
    bytes: int = 0
    certificates: str = ""  # SHA-256 of the file of its certificates, where some were asked for

    @property
    def number(self) -> int:
        """Its place among the parts of all shards."""
        return int(self.name.removeprefix("part-").partition(".")[0])


@dataclass
class Manifest:
    """What a folder of answers holds. Nothing but `run` depends on when, where or how fast the work was done."""

    question: dict[str, Any]  # fingerprints of input, model and question, and the options
    parts: list[Part] = field(default_factory=list)
    is_complete: bool = False
    run: dict[str, Any] = field(default_factory=dict)  # versions, files, options in words, times
    shard: Shard = WHOLE
    format: str = FORMAT

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
        record = {"format": FORMAT, "complete": self.is_complete, "shard": str(self.shard), "question": self.question}
        parts = [asdict(part) for part in self.parts]
        return (json.dumps(record | {"run": self.run, "parts": parts}, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """From JSON, of this format or of the one before."""
        record = json.loads(data)
        if record.get("format") not in (FORMAT, EARLIER):
            raise ValueError(f"its format is {record.get('format')!r}, and {FORMAT} and {EARLIER} are read")
        parts = [Part(**part | {"next": Place(**part["next"])}) for part in record["parts"]]
        shard = Shard.of(record.get("shard", str(WHOLE)))
        return cls(record["question"], parts, record["complete"], record.get("run", {}), shard, record["format"])


def load(folder: Path) -> Manifest:
    """The manifest of a folder that has one, of this format or of the one before."""
    for name in (NAME, EARLIER_NAME):
        path = folder / name
        if path.is_file():
            try:
                return Manifest.from_bytes(path.read_bytes())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InvalidInput(f"{path} is not a manifest of answers: {error}.") from error
    raise InvalidInput(f"{folder} is no folder of answers: it holds no {NAME}.")


def opened(folder: Path, new: Manifest, *, allow_upgrade: bool = False) -> Manifest:
    """The manifest of a folder, new or as far as it had come; refuses a folder with the answers to something else."""
    if not any((folder / name).is_file() for name in (NAME, EARLIER_NAME)):
        strangers = sorted(entry.name for entry in folder.iterdir() if not _is_ours(folder, entry))
        if strangers:
            raise InvalidInput(f"{folder} is not empty and holds no {NAME}, but {strangers[0]}; give another folder.")
        return new
    manifest = load(folder)
    if manifest.format != FORMAT:
        raise InvalidInput(
            f"{folder} was begun by an earlier version of treefocus ({manifest.format}); its answers can be read and "
            "verified, but not continued: give another folder."
        )
    asked, known = new.question | {"shard": str(new.shard)}, manifest.question | {"shard": str(manifest.shard)}
    others = [name for name in sorted(asked.keys() | known.keys()) if asked.get(name) != known.get(name)]
    if others:
        raise InvalidInput(
            f"{folder} holds the answers to another question (other: {', '.join(others)}); give another folder."
        )
    lost = [part.name for part in manifest.parts if not (folder / part.name).is_file()]
    if lost:
        raise InvalidInput(f"{folder} lacks {lost[0]}, of which its manifest tells; give another folder.")
    _check_version(folder, manifest, new, allow_upgrade)
    return manifest


def _check_version(folder: Path, manifest: Manifest, new: Manifest, allow_upgrade: bool) -> None:
    """Answers of two versions do not come into one folder unless somebody wants it."""
    before, now = (one.run["versions"]["treefocus"] for one in (manifest, new))
    if manifest.is_complete or before == now:
        return
    if not allow_upgrade:
        raise InvalidInput(
            f"{folder} was begun with treefocus {before}, and this is {now}: the rows that are left could be answered "
            "in another way. --allow-upgrade (allow_upgrade=True) goes on all the same, or give another folder."
        )
    manifest.run["upgrades"] = [*manifest.run.get("upgrades", []), {"part": len(manifest.parts), "from": before}]
    manifest.run["versions"] = new.run["versions"]


def tidy(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed run left behind: files half written, and parts that the manifest does not tell of."""
    parts_in(folder).keep_only({part.name for part in manifest.parts})
    for name in (NAME, DRAFT, DONE):
        (folder / (name + TEMPORARY)).unlink(missing_ok=True)


def save(manifest: Manifest, folder: Path) -> None:
    """Write the manifest."""
    write_whole(folder / NAME, manifest.to_bytes())


def mark(manifest: Manifest, folder: Path) -> None:
    """Put the mark into a folder that is complete, also where a run was killed just before it did."""
    if manifest.is_complete and not (folder / DONE).is_file():
        write_whole(folder / DONE, b"")


def parts_in(folder: Path) -> Parts:
    """The files of answers in a folder, whether the manifest tells of them or not."""
    return Parts(folder, ".parquet", 5)


def sha256_of(path: Path) -> str:
    """Of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_ours(folder: Path, entry: Path) -> bool:
    return entry.name.removesuffix(TEMPORARY) in _EVERY_NAME or parts_in(folder).is_one(entry)
