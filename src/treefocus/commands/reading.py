"""What a command line names: models, rows, constraints, targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treefocus.constraints.kinds import Constraint, Decreasing, Fixed, Increasing, Range
from treefocus.constraints.text import as_constraints
from treefocus.errors import InvalidInput, reject
from treefocus.model.forest import Forest
from treefocus.problem.targets import Interval, Probability
from treefocus.schema.dates import read_date
from treefocus.schema.schema import INTEGER
from treefocus.tables.columns import check_columns
from treefocus.tables.files import read_columns, read_names, read_table
from treefocus.tables.labels import Coding
from treefocus.tables.table import Table
from treefocus.tables.text import STANDARD, TextFormat

Say = Callable[[str], None]


def read_rows(
    path: Path,
    ignore: Sequence[str] | None,
    forest: Forest,
    known: Table | None,
    text: TextFormat = STANDARD,
    say: Say | None = None,
) -> Table:
    """The rows of a file, its columns in the model's order, or in that of the training rows.

    Columns that are not the model's are left out; `say` hears which.
    """
    names = [name for name in read_names(path, text) if name not in (ignore or ())]
    wanted = forest.feature_names or (names if known is None else known.names) or ()
    surplus = [name for name in names if name not in wanted]
    check_columns(str(path), names, wanted, may_have_others=True)
    if surplus and say is not None:
        say(f"Note: {', '.join(surplus)} in {path} {'is no column' if len(surplus) == 1 else 'are no columns'} of the "
            "model's and left out.")  # fmt: skip
    names = [name for name in names if name in wanted]
    if names and len(names) != forest.n_features:
        raise InvalidInput(
            f"{path} has {len(names)} columns and the model takes {forest.n_features}; --ignore leaves columns out."
        )
    table = read_table(path, (*(ignore or ()), *surplus), Coding.of(forest), text).select(wanted)
    if known is None:
        return table
    seems_whole = (table.grain == INTEGER) & (known.grain != INTEGER)  # few rows can be whole numbers by chance
    return replace(table, grain=np.where(seems_whole, known.grain, table.grain))


def read_training_rows(
    path: Path | None, ignore: Sequence[str], forest: Forest, text: TextFormat = STANDARD
) -> Table | None:
    """The rows that --train names, where it names any.

    text: how DATA is written. The training rows were often written by others, with commas and decimal points: so they
    are read where their line of names has such commas and none of the delimiter that was told.
    """
    if path is None:
        return None
    return read_rows(path, ignore, forest, None, STANDARD if _is_cut_by_commas_alone(path, text) else text)


def _is_cut_by_commas_alone(path: Path, text: TextFormat) -> bool:
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open("rb") as file:
        names = file.readline()
    told = text.delimiter or (";" if text.decimal == "," else ",")
    return told != "," and told.encode() not in names and b"," in names


def labels_of(path: Path, column: str | None, text: TextFormat = STANDARD) -> tuple[str, ...] | None:
    """What --id names: the rows' names, from a column of the file; a question mark where it is empty."""
    if column is None:
        return None
    names = read_names(path, text)
    if column not in names:
        reject("--id", f"a column of {path}: {', '.join(names)}", repr(column))
    written = read_columns(path, [name for name in names if name != column], text)[column]
    cells = written.tolist() if isinstance(written, np.ndarray) else written.to_pylist()
    return tuple(map(_as_name, cells))


def _as_name(cell: Any) -> str:
    if cell is None or cell != cell:
        return "?"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def tokens_of(token: str | None, path: Path | None) -> dict[str, str]:
    """What --token and --tokens say: tokens by name."""
    found = {} if token is None else {"default": token}
    if path is None:
        return found
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--tokens cannot be read from {path}.") from error
    for number, line in enumerate(lines, start=1):
        name, _, own = line.strip().partition(" ")
        if not name or name.startswith("#"):
            continue
        if not own.strip() or name in found:
            reject(f"--tokens, line {number}", "a new name, a space and a token", "something else")
        found[name] = own.strip()
    return found


def constraints_of(
    fix: Sequence[str] | None,
    increasing: Sequence[str] | None,
    decreasing: Sequence[str] | None,
    ranges: Sequence[str] | None,
    texts: Sequence[str] | None = None,
) -> list[Constraint]:
    """The constraints behind --fix, --increasing, --decreasing, --range and --constraint."""
    kinds: tuple[tuple[Callable[..., Constraint], Sequence[str] | None], ...] = (
        (Fixed, fix), (Increasing, increasing), (Decreasing, decreasing),
    )  # fmt: skip
    found = [kind(*names) for kind, names in kinds if names] + [_range(text) for text in ranges or ()]
    return [*found, *as_constraints(texts or ())]


def _range(text: str) -> Range:
    """COLUMN:LOW:HIGH, numbers or dates; the column's name may hold colons itself."""
    column, *sides = text.rsplit(":", 2)
    moments = [read_date(side) for side in sides]
    if (
        len(sides) == 2
        and any(moments)
        and all(moment or not side.strip() for moment, side in zip(moments, sides, strict=True))
    ):
        return Range(column, moments[0] or -np.inf, moments[1] or np.inf)
    return Range(column, *numbers_of("--range", text, sides))


def numbers_of(option: str, text: str, sides: Sequence[str]) -> tuple[float, float]:
    """Two numbers; an empty side is no limit."""
    try:
        low, high = (float(side) if side.strip() else None for side in sides)
    except ValueError:
        form = "COLUMN:LOW:HIGH" if option == "--range" else "LOW:HIGH"
        reject(option, form, repr(text))
    return -np.inf if low is None else low, np.inf if high is None else high


def weights_of(texts: Sequence[str] | None) -> dict[str, float] | None:
    """What --weight says: COLUMN:NUMBER each."""
    found: dict[str, float] = {}
    for text in texts or ():
        column, colon, number = text.rpartition(":")
        if not (colon and column and _is_number(number)):
            reject("--weight", "COLUMN:NUMBER", repr(text))
        found[column] = float(number)
    return found or None


def target_of(label: str | None, at_least: float | None, between: str | None, forest: Forest) -> Any:
    """What --target, --at-least and --between ask for together."""
    if between is not None:
        if label is not None or at_least is not None:
            raise InvalidInput("--between is about a predicted number, --target and --at-least are about a class.")
        return Interval(*numbers_of("--between", between, between.split(":")))
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number: say which is wanted with --between LOW:HIGH.")
    if at_least is None:
        return None if label is None else label_of(label, forest)
    if label is None:
        raise InvalidInput("--at-least is the probability of a class: say which with --target.")
    return Probability(label_of(label, forest), at_least)


def label_of(text: str, forest: Forest) -> Any:
    """The class that is written like this, whatever its type."""
    labels = forest.classes.tolist()
    for label in labels:
        if str(label) == text:
            return label
    for label in labels:
        if not isinstance(label, str) and _is_number(text) and float(text) == float(label):
            return label
    raise InvalidInput(f"--target must be one of {', '.join(map(str, labels))}, got {text!r}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
