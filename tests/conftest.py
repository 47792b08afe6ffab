"""What holds for every test file."""

from __future__ import annotations

import os
import signal
from functools import cache

# The tests run in as many processes as there are cores, and the libraries that train their models start as many threads
# in each. A thread that waits for its turn sleeps, and does not keep a core busy; set before the libraries are loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

from support.examples import n_examples
from treefocus import loans

settings.register_profile("treefocus", deadline=None, derandomize=True, max_examples=n_examples(20))
settings.load_profile("treefocus")

# The loan model, which takes half a second, is trained once in each process; nobody writes to its data.
loans.train = cache(loans.train)

# A shell that starts the tests in the background has them, and the programs that they stop by it, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
