"""All float64 numbers in their order, as whole numbers: to halve the way between two, or step to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Floats


def rank(values: Floats) -> NDArray[np.int64]:
    """Numbers in the order of the floats; neighbours differ by 1."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def ranked(rank: NDArray[np.int64]) -> Floats:
    """The float with that rank."""
    return np.where(rank < 0, np.int64(-(2**63)) - rank, rank).view(np.float64)


def middle(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Half way between two ranks, rounded down."""
    return np.asarray((low >> 1) + (high >> 1) + (low & high & 1))
