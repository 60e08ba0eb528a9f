"""uvicorn, with a socket that is there before it starts, and live pages that end with it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import uvicorn


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
                app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, timeout_keep_alive=30, limit_concurrency=400,
                lifespan="on", ssl_certfile=str(certificate) if certificate else None, ssl_keyfile=str(key) if key else None,
            )
        )  # fmt: skip

    def run(self, sockets: Any = None) -> None:
        super().run(sockets or [self.socket])

    def handle_exit(self, *arguments: Any) -> None:
        self._console.closing = True
        super().handle_exit(*arguments)
