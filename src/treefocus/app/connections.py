"""Connections that are not kept waiting: a request has to arrive, or it is closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SLOWEST_HEAD = 10.0  # seconds that a request's first lines and headers may take, from its first byte
_Base: Any = AutoHTTPProtocol  # uvicorn's, in the faster of its two forms that is installed


class ImpatientProtocol(_Base):  # type: ignore[misc]
    """uvicorn's protocol, which by itself waits without end for the rest of a request."""

    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """The first request is due."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """A head that is complete is no longer waited for; what follows is the body's, which `Guard` waits for."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect()
        else:
            self._relax()

    def handle_websocket_upgrade(self, *arguments: Any) -> None:
        """From here on it is the socket's."""
        self._relax()
        self._closing = None
        super().handle_websocket_upgrade(*arguments)
        self._is_socket = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._relax()
        super().connection_lost(exc)

    _is_socket = False

    def _expect(self) -> None:
        if self._closing is None and not self._is_socket and not self.transport.is_closing():
            self._closing = self.loop.call_later(SLOWEST_HEAD, self.transport.close)

    def _relax(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
