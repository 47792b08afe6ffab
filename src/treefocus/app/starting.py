"""A start without what a start does not need, half of which is importing; and memory kept for those who are there."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# With these the page's framework could call other servers, or be another one; it is served without any of them.
_NOT_USED = ("aiohttp", "requests", "tornado")


def import_page_framework() -> None:
    """Import the page's framework, in two thirds of the time; ImportError where it is not installed."""
    with _hidden(*_NOT_USED), suppress(ImportError):
        import nicegui
    import nicegui  # noqa: F401  (one that cannot do without them gets them)


@contextmanager
def in_one_go() -> Iterator[None]:
    """For imports: what they make is there to stay, so it is not looked through for garbage, neither now nor later."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def settle_memory() -> None:
    """What is there now stays: only visits are looked through for garbage, which is then done often enough.

    Python looks through everything when what is new has grown by a quarter of what is old, so that a large model would
    have the pages of visitors who left wait for hundreds of others.
    """
    gc.collect()
    gc.freeze()


def give_back_memory() -> None:
    """Find what is held in circles only; give free memory back to the system, where glibc takes the request."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


@contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """As if these were not installed."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
