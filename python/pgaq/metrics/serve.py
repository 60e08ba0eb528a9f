"""The HTTP server of pgaq metrics.  It needs nothing but Python: GET and HEAD of three paths."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pgaq.metrics.exporter import CONTENT_TYPE, Exporter

CLIENTS = 32  # connections at a time; further ones are closed
PATIENCE = 10.0  # seconds in which a client sends its request
INDEX = "/metrics  numbers for Prometheus (OpenMetrics)\n/healthz  200: this process lives\n/readyz   200: the database answers, 503: it does not\n"


def answer(exporter: Exporter, path: str) -> tuple[int, str, str]:
    """Status, type and text for a path; the console answers the same."""
    if path == "/metrics":
        return 200, CONTENT_TYPE, exporter.scrape()
    if path == "/healthz":
        return 200, "text/plain; charset=utf-8", "ok\n"
    if path == "/readyz":
        is_ready, state = exporter.ready()
        return 200 if is_ready else 503, "application/json", json.dumps(state) + "\n"
    return (200, "text/plain; charset=utf-8", INDEX) if path == "/" else (404, "text/plain; charset=utf-8", "not found\n")


class Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "pgaq", ""
    timeout = PATIENCE
    server: "Server"

    def do_GET(self) -> None:
        status, kind, text = answer(self.server.exporter, self.path.partition("?")[0])
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass  # a line for each scrape says nothing


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, exporter: Exporter) -> None:
        self.exporter = exporter
        self._free = threading.BoundedSemaphore(CLIENTS)
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__(address[:2], Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that left
