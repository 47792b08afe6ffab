"""Text files of rows, read strictly: every line is a row or part of one, and what cannot be read says where it stands.

A quoted cell may hold line breaks. A quote that opens and is not closed as it should be swallows no other line: the
line on which it opens is a record that cannot be read, and the next line begins another one.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np

from treefocus.errors import InvalidInput, reject

LONGEST_CELL = 131_072  # characters: a cell in quotes that is longer was never closed
_SHOWN = 80  # characters of a bad cell that are told
_ASCII = ' \n\r\t,;|"0123456789.-+eE'  # what lines are cut by, and numbers are made of


class Suffixed(Protocol):
    """A path, or what has a name like one."""

    @property
    def suffix(self) -> str:
        """The end of its name."""


@dataclass(frozen=True)
class TextFormat:
    """How a .csv or .tsv file is written.

    delimiter: between cells; None for a tab in .tsv and, in .csv, a comma, or a semicolon where the comma stands in
    numbers. decimal: the mark before the fraction.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        try:
            is_plain = _ASCII.encode(self.encoding) == _ASCII.encode("ascii")
        except (LookupError, UnicodeError, TypeError, ValueError):
            is_plain = False
        if not is_plain:
            reject("encoding", "one that writes digits and line ends as ASCII does, such as utf-8", repr(self.encoding))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            reject("delimiter", "one character, and no quote or line end", repr(self.delimiter))
        if self.decimal not in (".", ","):
            reject("decimal", "'.' or ','", repr(self.decimal))
        if self.delimiter == self.decimal:
            reject("delimiter", "another character than decimal", repr(self.delimiter))

    def delimiter_of(self, path: Suffixed) -> str:
        """What stands between the cells of a file."""
        return self.delimiter or ("\t" if path.suffix == ".tsv" else ";" if self.decimal == "," else ",")

    def decoded(self, line: bytes, number: int, path: object) -> str:
        """A line of a file, without the mark that some programs put before the first one."""
        if number == 1:
            _check_kind(line, path)
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            before = line[: error.start].decode(self.encoding, "replace")[-20:]
            raise InvalidInput(
                f"{path}, line {number}: the byte 0x{line[error.start]:02x} after {before!r} is not {self.encoding}; "
                "say which encoding the file has, such as latin-1 or cp1252."
            ) from error

    def number(self, text: str) -> float | None:
        """The number that a cell holds, 1 and 0 for True and False: NaN where it is empty, None where it holds another
        thing.
        """
        if is_truth(text):
            return TRUTH[text.strip().lower()]
        if self.decimal != ".":
            if "." in text:
                return None
            text = text.replace(self.decimal, ".")
        try:
            return float(text) if text.isascii() and "_" not in text else None  # Python's own takes other digits too
        except ValueError:
            return None if text.strip() else np.nan


def _check_kind(line: bytes, path: object) -> None:
    """Refuse a file of another kind by its first line: one of two bytes a letter, or without line feeds."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput(f"{path} is written in UTF-16, two bytes a letter; save it as UTF-8.")
    if b"\0" in line:
        raise InvalidInput(f"{path}, line 1 holds bytes of 0: it is no text in UTF-8 or a like encoding.")
    names, returns, _ = line.rstrip(b"\r\n").partition(b"\r")
    if returns and names.count(b'"') % 2 == 0:  # not inside a cell
        raise InvalidInput(f"{path}: carriage returns alone end its lines; save it with line feeds, or with both.")


STANDARD = TextFormat()
TRUTH = {"true": 1.0, "false": 0.0}  # how programs write them, in any case of letters


def is_truth(text: str) -> bool:
    """Whether a cell says True or False."""
    return text.strip().lower() in TRUTH


# What a spreadsheet would take for a formula: OWASP's list ("CSV Injection"), behind any number of guards.
_FORMULA, _GUARDED = re.compile(r"'*[=+\-@\t\r]"), re.compile(r"'+[=+\-@\t\r]")


def guarded(cell: Any) -> Any:
    """A cell as it is written: an apostrophe before a text that a spreadsheet would run; reading takes it off."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unguarded(cells: list[str]) -> list[str]:
    """Cells as they were before they were written."""
    return [cell[1:] if _GUARDED.match(cell) else cell for cell in cells]


_UNCLOSED = "a quote opens here and is closed nowhere"
_MISPLACED = "a quote opens here and other text follows where it is closed"
_RETURNS = "a carriage return stands inside the line; a line ends with a line feed, or with both"
_SWALLOWS = "a quote opens here and would take the next lines with it"


@dataclass(frozen=True)
class Record:
    """The cells of one row."""

    cells: list[str]  # as far as they can be told
    line: int  # on which it begins
    n_lines: int = 1
    complaint: str = ""  # why the cells are not to be used

    @property
    def is_empty(self) -> bool:
        """Whether it is a line without anything, which is no row."""
        return not self.cells and not self.complaint


def records(lines: Iterator[str], first: int, delimiter: str, width: int | None = None) -> Iterator[Record]:
    """The records of some lines, empty lines among them.

    first: the number of the first line. width: how many cells a record has to have, where that is known.
    """
    ahead: deque[str] = deque()  # lines that were looked at and belong to no record yet
    while True:
        record = _record(_looked_at(ahead, lines), first, delimiter, width)
        if not ahead:
            return
        first += record.n_lines
        for _ in range(record.n_lines):
            ahead.popleft()
        yield record


def _record(lines: Iterator[str], number: int, delimiter: str, width: int | None) -> Record:
    """The record that begins with the first of the lines."""
    first = next(lines, "")
    plain = first.rstrip("\r\n")
    if not plain:
        return Record([], number)
    if '"' not in plain and "\r" not in plain and len(plain) <= LONGEST_CELL:  # as nearly all are
        cells = plain.split(delimiter)
        return Record(unguarded(cells) if "'" in plain else cells, number)
    taken: list[str] = []
    reader = csv.reader(_noted(chain([first], lines), taken), delimiter=delimiter, strict=True)
    try:
        cells = next(reader)
    except csv.Error as error:
        return Record(plain.split(delimiter), number, 1, _complaint(str(error), reader.line_num))
    is_wide = width is not None and len(cells) != width
    if len(taken) > 1 and (is_wide or _are_rows(taken, delimiter, len(cells))):
        return Record(plain.split(delimiter), number, 1, _SWALLOWS)
    return Record(unguarded(cells), number, len(taken))


def _complaint(error: str, n_lines: int) -> str:
    if "end of data" in error or (n_lines > 1 and "limit" in error):
        return _UNCLOSED
    if "new-line character" in error:
        return _RETURNS
    return _MISPLACED if "expected after" in error else error


def _are_rows(lines: list[str], delimiter: str, width: int) -> bool:
    """Whether lines of one record look like a record each, so that a quote seems to have swallowed them."""
    return width > 1 and all(line.count(delimiter) == width - 1 for line in lines)


def _noted(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _looked_at(ahead: deque[str], lines: Iterator[str]) -> Iterator[str]:
    """Lines, as far as a cell may reach; they stay in `ahead`."""
    size = k = 0
    while size <= LONGEST_CELL:
        if k == len(ahead):
            line = next(lines, None)
            if line is None:
                return
            ahead.append(line)
        yield ahead[k]
        size, k = size + len(ahead[k]), k + 1


def complaint_of(record: Record, width: int) -> str:
    """What is wrong with a record of that width, empty where nothing is."""
    if record.complaint:
        return f"line {record.line}: {record.complaint}"
    if len(record.cells) != width:
        return f"line {record.line}: {width} cells were expected, {len(record.cells)} came"
    return ""


def shown(text: str) -> str:
    """A cell for a sentence, not all of it where it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
