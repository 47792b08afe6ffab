"""A limit on the local outlier factor, as a problem and its certificate know of it: without the rows that it is about.

Training rows are other people's: a certificate says that there was a limit, and leaves the rows out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.errors import reject

KIND = "local outlier factor"


@dataclass(frozen=True)
class OutlierLimit:
    """What the factor of an answer may be, and how many neighbours it is about."""

    limit: float
    neighbours: int

    def to_record(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": KIND, "limit": self.limit, "neighbours": self.neighbours}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> OutlierLimit:
        """What `to_record` wrote."""
        limit, neighbours = float(record["limit"]), int(record["neighbours"])
        if not (np.isfinite(limit) and limit > 0 and neighbours > 0):
            reject("The certificate's plausibility", "a limit and neighbours above 0", (limit, neighbours))
        return cls(limit, neighbours)
