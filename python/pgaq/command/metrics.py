"""pgaq metrics: numbers for Prometheus, and health, over HTTP."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

import click
import typer

from pgaq import db, text
from pgaq.command.common import VERSION, Failure, command, conninfo, duration, span
from pgaq.metrics.exporter import Exporter
from pgaq.metrics.serve import Server

ADDRESS = "HOST:PORT"


def add_to(app: typer.Typer) -> None:
    command(app, "metrics")(metrics)


def address(word: str, example: str = "127.0.0.1:9188") -> tuple[str, int]:
    """Host and port of HOST:PORT or [HOST]:PORT."""
    host, colon, port = word.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"'{word}' is not HOST:PORT, such as {example}")
    return host.strip("[]"), int(port)


def listen(default: str, help: str) -> Any:
    """The option for the address of a server."""

    def known(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if not context.resilient_parsing:
            address(value, default)
        return value

    return typer.Option(default, "--listen", metavar=ADDRESS, callback=known, help=help)


def exporter(timeout: str, limit: int) -> Exporter:
    """It opens its connections itself, by libpq's rules and the option -d, whenever it needs one."""
    info = conninfo()

    def connect(seconds: float) -> db.Connection:
        more = {"client_encoding": "UTF8", "fallback_application_name": "pgaq metrics", "prepare_threshold": None}
        return db.connect(info, connect_timeout=str(max(2, round(seconds))), **more)

    return Exporter(connect, version=VERSION, timeout=span(timeout).total_seconds(), limit=limit)


def at(host: str, port: int) -> str:
    """An address in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


TIMEOUT: Any = duration("5s", "--timeout", help="Time in which the database must answer.")
LIMIT: Any = typer.Option(
    500, "--queue-label-limit", min=0, help="Queues, schedules and destinations with series of their own; the rest is summed as other."
)


def metrics(
    where: str = listen("127.0.0.1:9188", "Address to listen on; port 0 is any free one."), timeout: str = TIMEOUT, limit: int = LIMIT
) -> int:
    """Serve metrics for Prometheus at /metrics, and health at /healthz and /readyz, until SIGTERM or Ctrl-C.

    The role needs membership in pg_monitor and nothing else. If the database does not answer, pgaq_up is 0 and /readyz is 503.
    """
    host, port = address(where)
    source = exporter(timeout, limit)
    try:
        server = Server(host, port, source)
    except OSError as error:
        raise Failure(f"cannot listen on {where}: {error.strerror or error}", "Choose another address with --listen") from None

    def stop(*_: object) -> None:
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    text.say(f"pgaq: metrics at http://{at(*server.server_address[:2])}/metrics", sys.stderr)
    try:
        server.serve_forever()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        server.server_close()
        source.close()
    return 0
