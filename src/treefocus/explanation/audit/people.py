"""The rows behind an audit, where they are at hand: what is known of each, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.explanation.audit.sums import AuditedRows
from treefocus.model.forest import Floats


@dataclass(frozen=True, eq=False)
class People:
    """What is known of each row: its name, how it counts, and the proven ends of its distance."""

    labels: tuple[Any, ...]
    kind: NDArray[np.int8]  # (n_rows,) as in `sums`
    low: Floats  # (n_rows,) NaN where there is no answer
    high: Floats  # (n_rows,)

    @classmethod
    def of(cls, labels: Any, rows: AuditedRows) -> People:
        """Of rows with these names."""
        return cls(tuple(labels), rows.kind, rows.low, rows.high)

    def __len__(self) -> int:
        return len(self.labels)
