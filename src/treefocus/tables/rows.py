"""What people pass as rows, as a table that can be read: one row as a Series or a dict, lazy and Arrow frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from treefocus.errors import reject
from treefocus.tables.frames import frame_of


def as_frame(rows: Any, parameter: str) -> Any:
    """A dict, a Series, a list of dicts, a lazy frame or an Arrow batch as a table; anything else as it is.

    A dict of cells by column is one row, a dict of lists is a table; a pandas Series is one row by its index, a polars
    Series one row in the model's order.
    """
    if isinstance(rows, np.ndarray):
        return rows
    if isinstance(rows, Mapping):
        return _of_mapping(rows, parameter)
    if isinstance(rows, Sequence) and not isinstance(rows, str) and rows and all(isinstance(r, Mapping) for r in rows):
        return _of_records(rows, parameter)
    if nw.dependencies.is_polars_lazyframe(rows):
        return rows.collect()
    if nw.dependencies.is_pandas_series(rows):
        frame = frame_of({str(name): [cell] for name, cell in rows.items()}, rows.to_frame())
        return frame.set_axis([rows.name if rows.name is not None else 0], axis=0)
    if nw.dependencies.is_polars_series(rows):
        cells = rows.to_list()
        is_text = any(isinstance(cell, str) for cell in cells)
        return np.array([[np.nan if cell is None and not is_text else cell for cell in cells]])
    if type(rows).__name__ == "RecordBatch" and type(rows).__module__.startswith("pyarrow"):
        import pyarrow

        return pyarrow.Table.from_batches([rows])
    return rows


def _of_mapping(rows: Mapping[Any, Any], parameter: str) -> Any:
    columns = {str(name): _column(cells) for name, cells in rows.items()}
    lengths = {None if cells is None else len(cells) for cells in columns.values()}
    if len(lengths) != 1:
        reject(parameter, "a cell a column, or a list a column, all of one length", "a mixture")
    if lengths == {None}:
        return frame_of({str(name): [cell] for name, cell in rows.items()})
    return frame_of({name: cells or [] for name, cells in columns.items()})


def _column(cells: Any) -> list[Any] | None:
    """The cells of a column, None where it is one cell."""
    if isinstance(cells, str) or np.ndim(cells) == 0:
        return None
    return list(cells)


def _of_records(rows: Sequence[Mapping[Any, Any]], parameter: str) -> Any:
    names = list(rows[0])
    for i, row in enumerate(rows):
        if set(row) != set(names):
            reject(f"{parameter}[{i}]", f"of the columns of {parameter}[0], {', '.join(map(str, names))}", list(row))
    return frame_of({str(name): [row[name] for row in rows] for name in names})
