"""Columns as a DataFrame: of the library the user's table came from, or of one that is installed."""

from __future__ import annotations

import importlib
from typing import Any

import narwhals as nw

from treefocus.tables.table import Table


def frame_like(like: Table, columns: dict[str, list[Any]]) -> Any:
    """Columns as a DataFrame of the same library as the table's, else of one that is installed."""
    frame = nw.from_native(like.native, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.from_dict(columns, backend=nw.get_native_namespace(frame)).to_native()
    return frame_of(columns)


def frame_of(columns: dict[str, list[Any]]) -> Any:
    """Columns as a DataFrame of a library that is installed."""
    for name in ("pandas", "polars", "pyarrow"):
        try:
            return nw.from_dict(columns, backend=importlib.import_module(name)).to_native()
        except ImportError:
            continue
    raise ImportError("to_frame needs pandas, polars or pyarrow; records() gives plain columns without them.")
