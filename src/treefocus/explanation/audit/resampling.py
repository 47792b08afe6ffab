"""Bootstrap by row number: every row weighs a Poisson number in each resample, drawn by a hash of its number.

A sum over rows under such weights needs no other row, so that the resamples of parts add up to those of the whole, on
whatever machine they were made (Chamandy et al. 2012 describe the Poisson bootstrap for streams). Two audits of the
same rows have the same weights, so that their difference is a paired one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Floats

RESAMPLES = 400
Numbers = NDArray[np.uint64]
_PER_WORD = 4  # draws of 16 bits in a hash of 64
_ROWS = 4_096  # at a time, so that the weights stay small


def hashed(numbers: Numbers, salt: int = 0) -> Numbers:
    """(n,) a well mixed number for each (SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64((salt * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _poisson_table() -> NDArray[np.uint8]:
    """(65536,) the Poisson number of mean 1 behind each 16 bits."""
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(below, (np.arange(65536) + 0.5) / 65536).astype(np.uint8)


_TABLE = _poisson_table()


def weights(numbers: Numbers, n_resamples: int = RESAMPLES) -> NDArray[np.uint8]:
    """(n_rows, n_resamples) how often each row is in each resample."""
    n_words = -(-n_resamples // _PER_WORD)
    own = hashed(numbers)
    words = np.stack([hashed(own, word + 1) for word in range(n_words)], axis=1)
    return np.asarray(_TABLE[words.view(np.uint16)][:, :n_resamples])


def resampled_sums(numbers: Numbers, values: Floats, n_resamples: int = RESAMPLES) -> Floats:
    """(n_resamples, n_values) the sums of values (n_rows, n_values) in every resample."""
    result = np.zeros((n_resamples, values.shape[1]))
    for begin in range(0, len(numbers), _ROWS):
        part = slice(begin, begin + _ROWS)
        result += weights(numbers[part], n_resamples).T.astype(np.float64) @ values[part]
    return result
