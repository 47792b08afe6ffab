"""Tables in files: .csv, .tsv and .parquet, read and written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject
from treefocus.model.categories import are_categories
from treefocus.schema.schema import ANY_FLOAT, INTEGER
from treefocus.tables.labels import Coding, encode_text, label_or_text
from treefocus.tables.table import Table, TextColumns, as_table, one_line

TABLE_FILES = (".csv", ".tsv", ".parquet")


def read_table(path: str | Path, ignore: Sequence[str] = (), coding: Coding | None = None) -> Table:
    """Read a .csv, .tsv or .parquet file, without the columns named in `ignore`; categories by the coding."""
    path = Path(path)
    kept = [name for name in read_names(path) if name not in ignore]
    if not kept:
        raise InvalidInput(f"{path} has no column left: all are ignored.")
    doubled = sorted({name for name in kept if kept.count(name) > 1})
    if doubled:
        reject(str(path), "a table of columns with different names", f"{', '.join(doubled)} more than once")
    with _complaining(path):
        if path.suffix == ".parquet":
            return as_table(import_pyarrow("Reading").read_table(path, columns=list(kept)), str(path), coding)
        return _read_text(path, ignore, coding)


def read_columns(path: str | Path, ignore: Sequence[str] = ()) -> Any:
    """The columns of a file for which no model is known: a pyarrow table, or arrays by name; text stays text."""
    path = Path(path)
    kept = [name for name in read_names(path) if name not in ignore]
    with _complaining(path):
        if path.suffix == ".parquet":
            return import_pyarrow("Reading").read_table(path, columns=kept)
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, delimiter=delimiter(path), restval=""))
        return {name: _numbers_or_text([row[name].strip() for row in rows]) for name in kept}


def _numbers_or_text(cells: list[str]) -> NDArray[Any]:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells], np.float64)
    except ValueError:
        return np.array([cell or None for cell in cells], object)


def read_names(path: str | Path) -> tuple[str, ...]:
    """The names of the columns of a .csv, .tsv or .parquet file."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    with _complaining(path):
        if path.suffix == ".parquet":
            return tuple(import_pyarrow("Reading").read_schema(path).names)
        with path.open("rb") as file:  # line by line: what follows the names is not looked at
            lines = (line.decode("utf-8-sig") for line in file)
            header = next(csv.reader(lines, delimiter=delimiter(path)), None)
    if not header:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    return tuple(header)


def write_columns(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length to a .csv, .tsv or .parquet file; None is an empty cell or a null."""
    path = Path(path)
    check_suffix(path, TABLE_FILES)
    if path.suffix == ".parquet":
        import_pyarrow("Writing").write_table(_arrow_table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter(path), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def check_suffix(path: Path, allowed: Sequence[str]) -> None:
    """The file's name must end in one of these."""
    if path.suffix not in allowed:
        reject(str(path), f"a file whose name ends in {', '.join(allowed)}", repr(path.suffix))


def import_pyarrow(doing: str) -> Any:
    """`pyarrow.parquet`, or an error that says how to get it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInput(f"{doing} .parquet needs pyarrow: pip install pyarrow.") from error
    return parquet


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file's content, or in reading it, as one sentence."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError, csv.Error) as error:  # pyarrow's own errors are of these kinds
        raise InvalidInput(f"{path} cannot be read as a table: {one_line(error)}.") from error


def _arrow_table(columns: Mapping[str, Sequence[Any]]) -> Any:
    import pyarrow

    return pyarrow.table({name: list(column) for name, column in columns.items()})


def _read_text(path: Path, ignore: Sequence[str], coding: Coding | None) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter(path))
        header = next(reader)
        kept = [j for j, name in enumerate(header) if name not in ignore]
        names = tuple(header[j] for j in kept)
        labels = None if coding is None else coding.for_columns(names, len(names))
        texts: dict[int, list[str]] = {kept[k]: [] for k, own in enumerate(labels or ()) if own is not None}
        rows = [_numbers(path, reader.line_num, header, cells, kept, texts) for cells in reader if cells]
    values = np.array(rows).reshape(-1, len(kept))
    cells: dict[str, list[Any]] = {}
    for k, j in enumerate(kept):
        if labels is not None and (own := labels[k]) is not None:
            values[:, k] = encode_text(texts[j], own)
            cells[names[k]] = [label_or_text(c, own, t) for c, t in zip(values[:, k], texts[j], strict=True)]
    is_whole = ~np.isnan(values).any(axis=0) & (values == np.rint(values)).all(axis=0) & (len(values) > 0)
    is_whole |= are_categories(labels, len(kept))
    grain = np.where(is_whole, INTEGER, ANY_FLOAT).astype(np.int8)
    return Table(values, names, grain, TextColumns(names, cells), labels)


def delimiter(path: Path) -> str:
    """What stands between the cells of a text file."""
    return "\t" if path.suffix == ".tsv" else ","


def _numbers(
    path: Path, line: int, header: list[str], cells: list[str], kept: list[int], texts: dict[int, list[str]]
) -> list[float]:
    """A line's numbers; the cells of columns of categories are put aside."""
    if len(cells) != len(header):
        raise InvalidInput(f"{path}, line {line}: {len(header)} cells were expected, {len(cells)} came.")
    numbers = []
    for j in kept:
        if j in texts:
            texts[j].append(cells[j])
            numbers.append(0.0)
            continue
        try:
            numbers.append(float(cells[j]) if cells[j].strip() else np.nan)
        except ValueError:
            raise InvalidInput(f"{path}, line {line}, column {header[j]!r}: {cells[j]!r} is not a number.") from None
    return numbers
