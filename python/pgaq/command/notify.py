"""pgaq notify: delivers the messages of a queue over HTTP and by mail, as a service."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional

import typer

from pgaq import db, text
from pgaq.command import common, output
from pgaq.command.common import CONSUMER, USAGE, Failure, asking, chosen, command
from pgaq.notify import deliver, settings

SETTINGS = Path("/etc/pgaq/notify.toml")
PAUSE = timedelta(seconds=5)  # of a wait: a signal that comes just before it is noticed then
MARGIN = 60.0  # seconds of a lease for what has no time limit of its own, such as name resolution
STEPS = 16  # most steps of a delivery by mail; each has the time limit
COLUMNS = """msgid::text AS msgid, receipt, payload ->> 'to' AS "to", payload ->> 'subject' AS subject,
    CASE jsonb_typeof(payload -> 'body') WHEN 'string' THEN payload ->> 'body' ELSE coalesce(payload -> 'body', 'null')::text END AS body,
    jsonb_typeof(payload -> 'body') = 'string' AS is_text"""


def add_to(app: typer.Typer) -> None:
    command(app, "notify")(notify)


def notify(
    queue: str = typer.Argument(
        "pgaq_outgoing", metavar="[QUEUE]", help="Name of the queue or topic.", autocompletion=common.names_of_queues
    ),
    consumer: Optional[str] = CONSUMER,
    path: Path = typer.Option(SETTINGS, "--settings", "-s", metavar="FILE", help="Allowed hosts, their keys, and the mail server."),
) -> int:
    """Deliver the messages of a queue over HTTP and by mail until SIGTERM or Ctrl-C.

    A message is {"to": "https://host/path" or "mailto:address", "body": ..., "subject": ...}. It is acknowledged when it was
    delivered, tried again after the queue's retry delays, and is a dead letter when that fails too often or is not allowed.
    """
    try:
        allowed = settings.read(path)
    except settings.Mistake as error:
        raise Failure(str(error), "docs/delivery.md describes the file", USAGE) from None
    with asking() as conn, asking() as settling:
        kind = common.queue_type(conn, queue)
        if kind["payload_type"] != "jsonb":
            raise Failure(f'queue "{queue}" has payloads of type {kind["payload_type"]}', "Name a queue of jsonb", USAGE)
        if kind["multiple_consumers"] and consumer is None:
            raise Failure(f'queue "{queue}" is a topic', "Name a consumer with --consumer", USAGE)
        _Service(conn, settling, allowed, queue, consumer).run()
    return 0


class _Service:
    """The main thread takes messages with leases on one connection; threads deliver, and settle on the other."""

    def __init__(self, conn: db.Connection, settling: db.Connection, allowed: settings.Settings, queue: str, consumer: str | None) -> None:
        self.conn, self.settling, self.allowed, self.queue, self.consumer = conn, settling, allowed, queue, consumer
        self.lease = allowed.timeout * STEPS + MARGIN * 2
        self.free = threading.Semaphore(allowed.parallel)
        self.stopped = False
        self.error: BaseException | None = None

    def run(self) -> None:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with ThreadPoolExecutor(self.allowed.parallel) as pool:  # at its end, what was begun is finished
                while not self.stopped:
                    self._round(pool)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self.error is not None:
            raise self.error

    def _stop(self, *_: object) -> None:
        if not self.stopped:  # not through sys.stderr, in whose middle the signal may have come
            os.write(2, b"pgaq: stopping when the deliveries in progress have ended\n")
        self.stopped = True
        self.conn.cancel()

    def _round(self, pool: ThreadPoolExecutor) -> None:
        if not self.free.acquire(timeout=1):
            return
        room = 1
        while self.free.acquire(blocking=False):
            room += 1
        taken: list[dict[str, Any]] = []
        try:
            taken = self._take(room) if not self.stopped else []
        except db.Canceled:
            if not self.stopped:
                raise
        finally:
            if room > len(taken):
                self.free.release(room - len(taken))
        until = time.monotonic() + MARGIN
        for message in taken:
            pool.submit(self._handle, message, until)

    def _take(self, most: int) -> list[dict[str, Any]]:
        query = f"SELECT {COLUMNS} FROM aq.dequeue(%s, consumer => %s, max_messages => %s, lease => %s)"
        given = [self.queue, self.consumer, most, timedelta(seconds=self.lease)]
        taken = db.rows(self.conn, query, given)
        if not taken and not self.stopped:
            db.execute(self.conn, "CALL aq.wait(%s, %s, %s, NULL)", [self.queue, self.consumer, PAUSE])
        return taken

    def _handle(self, message: dict[str, Any], until: float) -> None:
        """In a thread of the pool."""
        try:
            how, said = self._deliver(message, until)
            more = ", error => %(error)s" if how != "acknowledge" else ""
            given = {
                "queue": self.queue,
                "msgid": message["msgid"],
                "receipt": message["receipt"],
                "consumer": self.consumer,
                "error": said,
            }
            db.value(
                self.settling,
                f"SELECT result FROM aq.{how}(%(queue)s, ARRAY[%(msgid)s::uuid], %(receipt)s, consumer => %(consumer)s{more})",
                given,
            )
            self._tell(message["msgid"], how, said)
        except BaseException as error:  # noqa: BLE001 - the service ends; the leases expire, and the messages are delivered again
            self.error, self.stopped = self.error or error, True
        finally:
            self.free.release()

    def _deliver(self, message: dict[str, Any], until: float) -> tuple[str, str]:
        """What becomes of the message, and why."""
        if message["to"] is None:
            return "reject", 'the message has no "to"'
        kind = "text/plain; charset=utf-8" if message["is_text"] else "application/json"
        delivery = deliver.Delivery(message["msgid"], message["to"], message["body"].encode(), kind, message["subject"] or "")
        try:
            deliver.deliver(self.allowed, delivery, until)
        except deliver.Refused as refused:
            return "reject", str(refused)
        except deliver.Failed as failed:
            return "release", str(failed)
        return "acknowledge", ""

    def _tell(self, msgid: str, how: str, said: str) -> None:
        outcome = {"acknowledge": "delivered", "release": "failed", "reject": "refused"}[how]
        if chosen().json:
            output.write_json({"msgid": msgid, "outcome": outcome, "error": said or None}, indent=None)
        elif how != "acknowledge":
            text.say(f"pgaq: {msgid} {outcome}: {said}", sys.stderr)
