"""Jakarta Messaging clients: large messages, and the load of the sources' figures."""

from __future__ import annotations

import json
import secrets
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

from pgaq import db
from pgaq.lab.site import Site, Unsuitable
from pgaq.load import java, machine
from pgaq.load.workload import NoSource
from pgaq.server import Server

HEAP, SMALL_HEAP = "512m", "24m"  # a stream does not need a heap of its size
WARM_UP = 2.0  # seconds in which Java compiles the client
ROLE = "lab_jms"
QUEUE, TABLE = "lab_jms_load", "public.lab_jms_table"
SUBSCRIBERS = 10
CLIENTS = "SELECT array_agg(pid) FROM pg_stat_activity WHERE usename = %s"


def _java(
    server: Server, program: str, arguments: Callable[[str], list[str]], sees: Callable[[str], None], heap: str = HEAP
) -> dict[str, Any]:
    """Run a program of the load, which has the server's URL among its arguments; `sees` hears of each line of its output."""
    try:
        classes = java.class_path()
    except NoSource as error:
        raise Unsuitable(str(error)) from None
    password = secrets.token_hex(12)
    with server.connect() as conn:
        db.execute(conn, f"DROP ROLE IF EXISTS {ROLE}")
        db.execute(conn, f"CREATE ROLE {ROLE} SUPERUSER LOGIN PASSWORD '{password}'")
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user={ROLE}&password={password}"
    command = [
        "java",
        f"-Xmx{heap}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        classes,
        f"{java.PACKAGE}.{program}",
        *arguments(url),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    outcome: dict[str, Any] = {}
    try:
        for line in process.stdout:  # type: ignore[union-attr]
            sees(line.strip())
            if line.startswith("{"):
                outcome = json.loads(line)
    finally:
        process.kill()
        said = process.communicate()[1]
    if not outcome:
        raise RuntimeError(f"the Jakarta Messaging client has ended: {said.strip()[-500:]}")
    return outcome


class Watch:
    """The most memory of their own that the server's processes for the clients have used."""

    def __init__(self, site: Site) -> None:
        self.site, self.kilobytes, self.going = site, 0, True
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        with self.site.server.connect() as look:
            while self.going:
                used = sum(_anonymous(pid) for pid in db.value(look, CLIENTS, [ROLE]) or [])
                self.kilobytes = max(self.kilobytes, used)
                time.sleep(0.002)

    def end(self) -> float:
        """In megabytes."""
        self.going = False
        self.thread.join()
        return self.kilobytes / 1024


def _anonymous(pid: int) -> int:
    """Kilobytes of a process without the shared memory that it has touched."""
    try:
        return next(
            (int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon")), 0
        )
    except OSError:
        return 0


def large(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One large message, sent and received as a stream or as a whole: the memory of the client and of the server."""
    size, how = int(point["mb"]), str(point["how"])
    heap = SMALL_HEAP if how == "stream" else HEAP
    with site.server.connect() as look:
        db.execute(look, "SELECT aq.create_queue('lab_large', 'aq.jms_message')")
        watch = Watch(site)
        try:
            outcome = _java(site.server, "Large", lambda url: [url, "lab_large", str(size), how], lambda line: None, heap)
        finally:
            server = watch.end()
            db.execute(look, "SELECT aq.drop_queue('lab_large', force => true)")
    return {
        "server_mb": server,
        "client_mb": outcome["client"] / 2**20,
        "message_mb": outcome["bytes"] / 2**20,
        "intact": float(outcome["intact"]),
        "mb": float(size),
    }


def _create(conn: db.Connection, store: str, topic: bool) -> None:
    if store == "table":
        db.execute(conn, f"SELECT aq.create_queue_table('{TABLE}', 'aq.jms_message', NULL, %s)", [topic])
        db.execute(conn, f"SELECT aq.create_queue(%s, queue_table => '{TABLE}')", [QUEUE])
    else:
        db.execute(conn, "SELECT aq.create_queue(%s, 'aq.jms_message', multiple_consumers => %s)", [QUEUE, topic])


def _drop(conn: db.Connection) -> None:
    db.execute(conn, "SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name = %s", [QUEUE])
    if db.value(conn, "SELECT count(*) FROM aq.queue_tables WHERE queue_table = %s", [TABLE]):
        db.execute(conn, f"SELECT aq.drop_queue_table('{TABLE}', force => true)")


def figures(site: Site, point: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The load of the sources' figures by their kind of client; every message is checked."""
    given = {"kind": "queue", "batch": 10, "rate": 0, **site.options, **point}
    topic = given["kind"] == "topic"
    marks: dict[str, float] = {}

    def sees(line: str) -> None:
        if line in ("begin", "end"):
            marks[line] = machine.cpu(site.server).server

    with site.server.connect() as look:
        _drop(look)
        _create(look, str(given["store"]), topic)
        words = [
            QUEUE,
            str(given["batch"]),
            "receive",
            str(SUBSCRIBERS if topic else 0),
            str(given["sessions"]),
            str(given["rate"]),
            str(min(WARM_UP, 2 * seconds)),
            str(seconds),
        ]
        try:
            outcome = _java(site.server, "Load", lambda url: [java.FACTORY, url, *words], sees)
        finally:
            _drop(look)
    if outcome["failure"]:
        raise RuntimeError(outcome["failure"])
    sent, delivered = (outcome[figure] / outcome["seconds"] for figure in ("sent", "delivered"))
    used = (marks["end"] - marks["begin"]) / outcome["seconds"]
    return {
        "enqueued_per_s": sent, "delivered_per_s": delivered, "both_per_s": sent + delivered, "p50_ms": outcome["p50_us"] / 1000, "p99_ms": outcome["p99_us"] / 1000,
        "server_cpus": used, "per_cpu_s": delivered / used if used else 0.0, "cpu_us_per_message": 1e6 * used / delivered if delivered else 0.0,
        "missing": float(outcome["missing"]), "duplicates": float(outcome["duplicates"]),
    }  # fmt: skip
