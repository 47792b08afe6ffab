"""Logs that say nothing about rows: of an exception they keep its kind and where it was raised, not its message."""

from __future__ import annotations

import logging

from treefocus.app.problems import told


class Discreet(logging.Filter):
    """Takes the message and the traceback's values out of what frameworks log about exceptions."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; keep it."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            error = next((one for one in _arguments(record) if isinstance(one, BaseException)), None)
        if isinstance(record.msg, BaseException):
            error, record.msg = record.msg, "unexpected"
        if error is not None:
            record.msg, record.args = f"unexpected: {told(error)}", ()
            record.exc_info, record.exc_text, record.stack_info = None, None, None
        return True


def be_discreet() -> None:
    """Put the filter on every logger that may hear of an exception in a call or in the page."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi", "nicegui", "asyncio", "engineio", "socketio"):
        logger = logging.getLogger(name)
        if not any(isinstance(one, Discreet) for one in logger.filters):
            logger.addFilter(Discreet())
    logging.getLogger("nicegui").setLevel(logging.ERROR)  # its warnings name addresses that were asked for


def _arguments(record: logging.LogRecord) -> tuple[object, ...]:
    return record.args if isinstance(record.args, tuple) else ()
