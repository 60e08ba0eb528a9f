"""A mail server for tests, which keeps what it gets."""

from __future__ import annotations

import contextlib
import socketserver
import ssl
import threading
from typing import Any, Iterator


class Sink(socketserver.ThreadingTCPServer):
    """Refuses the recipient nobody; with a context, speaks TLS from the start, or after STARTTLS."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None, at_once: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.port = self.server_address[1]
        self.context, self.at_once = context, at_once
        self.got: list[str] = []
        self.secure: list[bool] = []  # of each mail: did it come over TLS?


class _Session(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        sink: Any = self.server
        with contextlib.suppress(OSError):
            if sink.context is not None and sink.at_once:
                self._start_tls()
            self._talk(sink)

    def _start_tls(self) -> None:
        self.request = self.server.context.wrap_socket(self.request, server_side=True)  # type: ignore[attr-defined]

    def _say(self, line: str) -> None:
        self.request.sendall(line.encode() + b"\r\n")

    def _talk(self, sink: Sink) -> None:
        self._say("220 sink")
        lines = self.request.makefile("rb")
        while line := lines.readline():
            word = line.strip().upper()
            if word == b"DATA":
                self._say("354 go on")
                text = b"".join(iter(lines.readline, b".\r\n"))
                sink.secure.append(isinstance(self.request, ssl.SSLSocket))
                sink.got.append(text.decode())
            if word == b"STARTTLS":
                self._say("220 go on")
                self._start_tls()
                lines = self.request.makefile("rb")
            elif word.startswith(b"EHLO") and sink.context is not None:
                self._say("250-sink")
                self._say("250 STARTTLS")
            else:
                self._say("221 bye" if word == b"QUIT" else "550 no" if word.startswith(b"RCPT") and b"NOBODY" in word else "250 ok")


@contextlib.contextmanager
def mail_sink(context: ssl.SSLContext | None = None, at_once: bool = False) -> Iterator[Sink]:
    with Sink(context, at_once) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()
