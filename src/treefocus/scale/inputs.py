"""What a user names as input, as files: a file, a folder, a glob or a list of these, here or on a cloud's storage.

    rows.parquet                 rows.csv.gz                  customers/
    customers/*.parquet          s3://bank/customers/         hf://datasets/bank/customers/*.parquet

Files of a folder come in the order of their names. What begins with `_` or `.` is not looked at, as in Spark, Hive and
Arrow. Folders named `year=2026` give their files a column.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import fs

from treefocus.errors import InvalidInput, reject
from treefocus.tables.files import TABLE_FILES

PACKED = ".gz"  # after the name of a text file
ENDINGS = (*TABLE_FILES, *(name + PACKED for name in TABLE_FILES if name != ".parquet"))
STDIN = "-"
_SAMPLES, _SAMPLE = 64, 65_536  # blocks of a file, and bytes a block, that its fingerprint reads
_GLOB = re.compile(r"[*?\[]")
_AT = ("abfs", "abfss")  # where what stands before an @ is a container
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
Named = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class RowFile:
    """One file of rows."""

    name: str  # as messages call it
    path: str  # on its file system
    system: Any = None  # a file system of pyarrow; None for this machine's own
    partition: tuple[tuple[str, str | None], ...] = ()  # what the folders above it say: column and value

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """The kind of table: .csv, .tsv or .parquet."""
        return PurePosixPath(self.path.removesuffix(PACKED)).suffix

    @property
    def is_packed(self) -> bool:
        """Whether its bytes are compressed as a whole."""
        return self.path.endswith(PACKED)

    def raw(self) -> BinaryIO:
        """The bytes as they lie there."""
        return open(self.path, "rb") if self.system is None else self.system.open_input_file(self.path)

    @contextmanager
    def unpacked(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """The bytes of the table, and as they lie there."""
        with self.raw() as raw:
            if not self.is_packed:
                yield raw, raw
                return
            with gzip.GzipFile(fileobj=raw) as file:
                yield cast(BinaryIO, file), raw

    def size(self) -> int:
        """Bytes, as they lie there."""
        if self.system is None:
            return Path(self.path).stat().st_size
        return int(self.system.get_file_info(self.path).size)

    def fingerprint(self) -> str:
        """A hash of the size and of blocks spread over the file: enough to notice that it is another one."""
        size = self.size()
        n_samples = _SAMPLES if self.system is None else 2  # far away every block is a request
        digest = hashlib.sha256(str(size).encode())
        with self.raw() as file:
            for start in np.unique(np.linspace(0, max(size - _SAMPLE, 0), n_samples).astype(np.int64)).tolist():
                file.seek(start)
                digest.update(file.read(_SAMPLE))
        return digest.hexdigest()


def files_of(named: Named) -> tuple[RowFile, ...]:
    """The files that a name stands for, all of one kind; refuses a name that stands for none."""
    if not isinstance(named, str | Path):
        found = [file for one in named for file in files_of(one)]
        if not found:
            reject("The input", "at least one file", "none")
    else:
        found = list(_found(str(named)))
    kinds = sorted({file.suffix for file in found})
    if len(kinds) > 1:
        raise InvalidInput(
            f"{shown_of(named)} holds files of different kinds, {' and '.join(kinds)}; name those of one."
        )
    return tuple(found)


def shown_of(named: Named) -> str:
    """What was named, without what may be secret in it."""
    return _public(str(named))[0] if isinstance(named, str | Path) else ", ".join(map(shown_of, named))


def _found(named: str) -> Iterator[RowFile]:
    named, query, login = _public(named)
    fixed, pattern = _parted(named)
    system, base = _system_of(fixed, query, login)
    try:
        info = (system or fs.LocalFileSystem()).get_file_info(base)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{named} cannot be reached: {' '.join(str(error).split())}.") from error
    if info.type == fs.FileType.File and not pattern:
        yield _checked(RowFile(named, base, system), named)
        return
    if info.type != fs.FileType.Directory:
        raise InvalidInput(f"There is no file {named}." if not pattern else f"No file is called {named}.")
    paths = sorted(_paths_below(system, base, named))
    if not pattern and any("/_delta_log/" in f"/{path}" for path in paths):
        raise InvalidInput(f"{named} is a Delta table: in Python, explain_file takes deltalake.DeltaTable({named!r}).")
    shown = [path for path in paths if not any(part[0] in "._" for part in PurePosixPath(path).parts)]
    chosen = [path for path in shown if not pattern or _matches(path, pattern)]
    if not chosen:
        raise InvalidInput(f"{named} holds no file of rows." if not pattern else f"No file is called {named}.")
    for path in chosen:
        whole, name = f"{base.rstrip('/')}/{path}", f"{fixed.rstrip('/')}/{path}"
        yield _checked(RowFile(name, whole, system, _partition(path)), named)


def _public(named: str) -> tuple[str, str, str]:
    """A name that may be shown; and what says how to come there, and may be secret: the query, and who asks."""
    scheme, mark, rest = named.partition("://")
    if not mark:
        return named, "", ""
    rest, question, query = rest.partition("?")
    login, at, place = rest.partition("@") if "@" in rest.partition("/")[0] and scheme not in _AT else ("", "", rest)
    return f"{scheme}://{place}", question + query, login + at


def _parted(named: str) -> tuple[str, str]:
    """The part of a name without marks of a glob, and the glob below it."""
    if not _GLOB.search(named) or ("://" not in named and Path(named).exists()):
        return named, ""
    parts = named.split("/")
    first = next(k for k, part in enumerate(parts) if _GLOB.search(part))
    return "/".join(parts[:first]) or ("/" if named.startswith("/") else "."), "/".join(parts[first:])


def _matches(path: str, pattern: str) -> bool:
    """Whether a path is one of a glob: * stays within a folder, ** goes through any number of them."""
    return _fits(PurePosixPath(path).parts, PurePosixPath(pattern).parts)


def _fits(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_fits(parts[k:], patterns[1:]) for k in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _fits(parts[1:], patterns[1:])


def _system_of(named: str, query: str, login: str) -> tuple[Any, str]:
    """Where a name lies, and what it is called there."""
    if "://" not in named:
        return None, named
    scheme, mark, place = named.partition("://")
    try:
        return fs.FileSystem.from_uri(scheme + mark + login + place + query)  # type: ignore[no-any-return,unused-ignore]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        first = " ".join(str(error).split())
    except (OSError, ImportError) as error:
        raise InvalidInput(f"{named} cannot be reached: {' '.join(str(error).split())}.") from error
    try:
        import fsspec

        system, path = fsspec.url_to_fs(named)
    except (ImportError, ValueError) as error:
        told = f"{first} {error}".rstrip(". ")
        raise InvalidInput(f'{scheme}:// needs pip install "treefocus[cloud]", or a package more: {told}.') from error
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def _paths_below(system: Any, base: str, named: str) -> Iterator[str]:
    selector = fs.FileSelector(base, recursive=True)
    try:
        infos = (system or fs.LocalFileSystem()).get_file_info(selector)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{named} cannot be listed: {' '.join(str(error).split())}.") from error
    begin = base.replace("\\", "/").rstrip("/") + "/" if base not in ("", ".") else ""
    for info in infos:
        if info.type == fs.FileType.File:
            yield info.path.replace("\\", "/").removeprefix(begin).removeprefix("./")


def _checked(file: RowFile, named: str) -> RowFile:
    """A file of another kind among the rows is said and not passed over."""
    if not file.path.endswith(ENDINGS):
        what = "a file whose name ends" if file.name == named else "files whose names end"
        reject(named, f"{what} in {', '.join(ENDINGS)}", repr(PurePosixPath(file.path).name))
    return file


def _partition(path: str) -> tuple[tuple[str, str | None], ...]:
    pairs = [part.partition("=") for part in PurePosixPath(path).parts[:-1] if "=" in part]
    return tuple((unquote(key), None if value == _HIVE_NULL else unquote(value)) for key, _, value in pairs)
