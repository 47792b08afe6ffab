"""What holds for every test file."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("treefocus", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("treefocus")

# A shell that starts the tests in the background has them, and the programs that they stop by it, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
