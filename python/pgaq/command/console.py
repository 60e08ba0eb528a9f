"""pgaq console: queues, messages and waits in the browser."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path
from typing import Any, Optional

import typer

from pgaq import text
from pgaq.command.common import USAGE, Failure, command, conninfo
from pgaq.command.metrics import LIMIT, TIMEOUT, address, at, exporter, listen


def add_to(app: typer.Typer) -> None:
    command(app, "console")(console)


def console(
    where: str = listen("127.0.0.1:8410", "Address to listen on; port 0 is any free one."),
    read_only: bool = typer.Option(False, "--read-only", help="Nothing can be changed, whatever the role may do."),
    certificate: Optional[Path] = typer.Option(None, "--tls-cert", metavar="FILE", help="Certificate chain for HTTPS.", show_default=False),
    key: Optional[Path] = typer.Option(None, "--tls-key", metavar="FILE", help="Its private key.", show_default=False),
    behind_proxy: bool = typer.Option(
        False, "--behind-proxy", help="A proxy on the way speaks HTTPS, and sets X-Forwarded-For; nothing else reaches this port."
    ),
    hosts: Optional[list[str]] = typer.Option(
        None,
        "--host",
        metavar="NAME",
        help="Host name in requests that are answered; can be repeated.",
        show_default="of this machine only, or any",
    ),
    metrics: bool = typer.Option(False, "--metrics", help="Also serve /metrics and /readyz, with a connection of this process."),
    timeout: str = TIMEOUT,
    limit: int = LIMIT,
) -> int:
    """Serve a console for the browser: queues, messages, dead letters, waits, schedules, reports.

    People log in as roles of the server, with their passwords, and see and do what these roles may.
    """
    host, port = address(where)
    if not (_is_local(host) or (certificate and key) or behind_proxy):
        raise Failure(
            f"{host} can be reached from other machines, and passwords would travel in clear text",
            "Add --tls-cert and --tls-key, or --behind-proxy with a proxy that speaks HTTPS",
            USAGE,
        )
    if bool(certificate) != bool(key):
        raise Failure("a certificate and its key belong together", "Give both --tls-cert and --tls-key", USAGE)
    try:
        from pgaq.console.app import Settings, application  # noqa: PLC0415 - the other commands do not need it
        from pgaq.console.serve import Server  # noqa: PLC0415
    except ImportError as error:
        raise Failure(
            f"the console cannot be loaded: {error}",
            "apt-get install python3-starlette python3-uvicorn python3-jinja2, or pip install 'pgaq[console]'",
        ) from None
    local: tuple[str, ...] = () if behind_proxy or certificate else ("localhost", "127.0.0.1", "::1", host)
    settings: Any = Settings(
        dsn=conninfo(), read_only=read_only, secure=bool(certificate) or behind_proxy, behind_proxy=behind_proxy, hosts=tuple(hosts or local),
        exporter=exporter(timeout, limit) if metrics else None,
    )  # fmt: skip
    try:
        server = Server(application(settings), host, port, certificate, key)
    except OSError as error:
        raise Failure(f"cannot listen on {where}: {error.strerror or error}", "Choose another address with --listen") from None
    text.say(f"pgaq: console at {'https' if certificate else 'http'}://{at(*server.address)}/", sys.stderr)
    server.run()
    return 0


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
