"""Whether two tables are the same."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl


def same_frame(left: Any, right: Any) -> bool:
    """Equal values, dtypes, names and (pandas) index."""
    if isinstance(left, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right)
        return True
    if isinstance(left, pl.DataFrame):
        return bool(left.schema == right.schema and left.equals(right))
    return bool(left.equals(right))
