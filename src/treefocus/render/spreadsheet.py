"""Answers for spreadsheets: CSV, and Excel where openpyxl is installed. No cell is ever a formula."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from treefocus.errors import InvalidInput
from treefocus.tables.text import guarded

_Columns = Mapping[str, Sequence[Any]]


def csv_of(columns: _Columns) -> bytes:
    """Columns of equal length as CSV, with a mark of its encoding that Excel looks for; None is an empty cell."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(map(guarded, columns))
    writer.writerows(map(guarded, row) for row in zip(*columns.values(), strict=True))
    return file.getvalue().encode("utf-8-sig")


def xlsx_of(columns: _Columns) -> bytes:
    """Columns of equal length as an Excel file: numbers as numbers, all else as text, the first line fixed."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError as error:
        raise InvalidInput("Excel files need openpyxl: pip install 'treefocus[excel]'.") from error
    book = Workbook(write_only=True)
    sheet = book.create_sheet("answers")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        own = WriteOnlyCell(sheet, _cell(value))
        if isinstance(own.value, str):
            own.data_type = "s"  # whatever it begins with
        return own

    for row in ([*columns], *zip(*columns.values(), strict=True)):
        sheet.append([cell(value) for value in row])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _cell(value: Any) -> Any:
    """What Excel can hold: a finite number, a truth value or text without control characters."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else str(value)
    return "".join(letter for letter in str(value) if letter >= " " or letter in "\t\n\r")
