"""The console's HTTP, without a database: addresses of clients, names of hosts, connections that say nothing."""

from __future__ import annotations

import contextlib
import socket

import pytest

from conftest import until

pytest.importorskip("httpx", reason="missing: python3-httpx")
pytest.importorskip("starlette", reason="missing: python3-starlette")

from starlette.requests import Request  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from pgaq.console import serve as serving  # noqa: E402
from pgaq.console.app import Console, Settings, application  # noqa: E402
from test_console import answers, serve  # noqa: E402


@pytest.mark.parametrize(
    "header, address",
    [
        ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:5123", "192.0.2.1"), ("1.1.1.1, 192.0.2.1:5123", "192.0.2.1"), ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"), ("[2001:db8::1]", "2001:db8::1"), ("unknown", "unknown"), ("[", ""), (":", ""),
    ],
)  # fmt: skip
def test_address_behind_a_proxy(header, address):
    """A port that a proxy adds does not make each connection another client."""
    request = Request({"type": "http", "headers": [(b"x-forwarded-for", header.encode())], "client": ("10.0.0.1", 1)})
    assert Console(Settings(behind_proxy=True)).client(request) == address
    assert Console(Settings()).client(request) == "10.0.0.1"


def test_host_names_have_no_case():
    with TestClient(application(Settings(hosts=("Console.Example",)))) as made:
        assert [
            made.get("/healthz", headers={"Host": host}).status_code for host in ("console.example", "CONSOLE.example:8410", "other")
        ] == [200, 200, 400]


def test_silent_connections_are_closed(monkeypatch):
    """There is a limited number of connections: one without a request does not keep its place, nor one in the middle of a head."""
    monkeypatch.setattr(serving, "PATIENCE", 1.0)
    monkeypatch.setattr(serving, "CONNECTIONS", 10)
    made, url, end = serve(Settings())
    try:
        silent = [socket.create_connection(made.address, timeout=60) for _ in range(12)]
        for each in silent[:5]:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
        until(lambda: answers(url), "the console")
        for each in silent:
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(10) == b""
            each.close()
    finally:
        end()
