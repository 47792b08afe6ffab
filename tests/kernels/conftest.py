"""What the tests of the kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sklearn.utils._openmp_helpers  # noqa: F401  # so that there is an OpenMP to be set free
from threadpoolctl import threadpool_limits

from treefocus import kernels


@pytest.fixture
def every_core(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """As if OMP_NUM_THREADS had not been there when the tests were started; gives the number of cores."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    n_cores = kernels.n_threads(-1)
    with threadpool_limits(n_cores, user_api="openmp"):
        yield n_cores
