"""uvicorn, with a socket that is there before it starts, and live pages that end with it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 400  # at a time
PATIENCE = 10.0  # seconds in which a client sends the head of its request


class Protocol(H11Protocol):
    """Connections on which no request arrives are closed: there can be a limited number of them."""

    _timer: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Any) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Until a request is there.  Between requests, uvicorn's own timer runs."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self._give_up)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self.transport.abort()


class Server(uvicorn.Server):
    def __init__(self, app: Any, host: str, port: int, certificate: Path | None = None, key: Path | None = None) -> None:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(address)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self._console = app.state.console
        super().__init__(
            uvicorn.Config(
                app, http=Protocol, log_level="warning", access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=30, limit_concurrency=CONNECTIONS,
                lifespan="on", ssl_certfile=str(certificate) if certificate else None, ssl_keyfile=str(key) if key else None,
            )
        )  # fmt: skip

    def run(self, sockets: Any = None) -> None:
        super().run(sockets or [self.socket])

    def handle_exit(self, *arguments: Any) -> None:
        self._console.closing = True
        super().handle_exit(*arguments)
