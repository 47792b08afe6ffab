"""What holds for every test file."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("treefocus", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("treefocus")
