"""The service pgaq notify: what becomes of messages, and how it ends."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest

from conftest import until
from pgaq import db, places
from pgaq_proof.sink import Sink, mail_sink

KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()
STOPPING = "pgaq: stopping when the deliveries in progress have ended\n"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers /ok, /fail, and /hold when the test lets it."""

    def do_POST(self) -> None:  # noqa: N802
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with server.lock:
            server.running += 1
            server.most = max(server.most, server.running)
            server.got.append((self.path, self.headers["Idempotency-Key"], body))
        if self.path == "/hold":
            server.go.wait(60)
        with server.lock:
            server.running -= 1
        with contextlib.suppress(OSError):
            self.send_response(500 if self.path == "/fail" else 204)
            self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as made:
        made.got, made.go, made.lock, made.running, made.most = [], threading.Event(), threading.Lock(), 0, 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.go.set()  # type: ignore[attr-defined]
        made.shutdown()
        thread.join()


@pytest.fixture
def sink() -> Iterator[Sink]:
    with mail_sink() as made:
        yield made


class Service(subprocess.Popen[str]):
    """A running pgaq notify; a test that fails ends it."""

    def __exit__(self, failure: Any, *more: Any) -> None:
        if self.poll() is None:
            self.kill()
        super().__exit__(failure, *more)


@pytest.fixture
def start(server, receiver, sink, tmp_path):
    """Starts the service for a queue whose failed messages are tried twice."""

    def make(*name: str) -> Service:
        path = Path(tmp_path / "notify.toml")
        http = f'[[http]]\nhost = "127.0.0.1"\nports = [{receiver.server_port}]\nkey = "{KEY}"\nplain = true\nprivate = true\n'
        mail = f'[mail]\nserver = "127.0.0.1"\nport = {sink.port}\nsecurity = "none"\nsender = "pgaq@example.org"\nrecipients = ["ann@example.org"]\n'
        path.write_text(f"parallel = 3\ntimeout = 60\n{http}{mail}")
        os.chmod(path, 0o600)
        environment = {**os.environ, **server.environment()}
        return Service(
            [sys.executable, "-m", "pgaq", "notify", *name, "--settings", str(path)],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return make


@pytest.fixture
def outgoing(server):
    """A queue with one retry; its name."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('outgoing', max_retries => 1, retry_delay => '0.1 s', retry_delay_factor => 1)")
        yield "outgoing"
        conn.execute("SELECT aq.drop_queue('outgoing', force => true)")


def send(conn: db.Connection, receiver: Any, path: str, body: Any = None) -> str:
    payload = {"to": f"http://127.0.0.1:{receiver.server_port}{path}", "body": body}
    return str(db.value(conn, "SELECT aq.enqueue('outgoing', %s::jsonb)", [json.dumps(payload)]))


def left(conn: db.Connection) -> int:
    return db.value(conn, "SELECT count(*) FROM aq.messages WHERE queue_name = 'outgoing' AND state <> 'PROCESSED'")


def test_delivered(server, receiver, outgoing, start):
    """Messages arrive with their ids, are gone, and SIGTERM ends the service with exit code 0."""
    with server.connect() as conn, start(outgoing) as service:
        ids = [send(conn, receiver, "/ok", {"n": n}) for n in range(10)]
        until(lambda: len(receiver.got) == 10 and left(conn) == 0, "ten deliveries")
        assert sorted(key for _, key, _ in receiver.got) == sorted(ids)
        assert sorted(json.loads(body)["n"] for _, _, body in receiver.got) == list(range(10))
        service.send_signal(signal.SIGTERM)
        out, err = service.communicate(timeout=60)
        assert (service.returncode, out, err) == (0, "", STOPPING)


@pytest.fixture
def registered(server):
    """Queues events and pgaq_outgoing; a role without other privileges that may register for the one, and enqueue into the other."""
    with server.connect() as conn:
        conn.execute("SELECT aq.create_queue('events'); SELECT aq.create_queue('pgaq_outgoing', max_retries => 1, retry_delay => '0.1 s')")
        conn.execute(
            "CREATE ROLE hooks LOGIN; SELECT aq.grant_queue('events', 'hooks', 'dequeue'); SELECT aq.grant_queue('pgaq_outgoing', 'hooks', 'enqueue')"
        )
        yield conn
        conn.execute("SELECT aq.drop_queue('events', force => true); SELECT aq.drop_queue('pgaq_outgoing', force => true); DROP ROLE hooks")


def register(conn: db.Connection, to: str, options: str = "with_payload => true") -> None:
    conn.execute("SET SESSION AUTHORIZATION hooks")
    conn.execute(f"SELECT aq.register('events', %s, {options})", [to])
    conn.execute("RESET SESSION AUTHORIZATION")


def test_registered_addresses(server, receiver, sink, registered, start):
    """Each message of a queue is delivered once to each address registered for it, and stays in the queue."""
    with start() as service:
        register(registered, f"http://127.0.0.1:{receiver.server_port}/ok")
        register(registered, "mailto:ann@example.org")
        ids = [str(db.value(registered, "SELECT aq.enqueue('events', %s::text::jsonb)", [str(n)])) for n in range(3)]
        until(lambda: len(receiver.got) == 3 and len(sink.got) == 3, "three requests and three mails")
        bodies = [json.loads(body) for _, _, body in receiver.got]
        assert sorted((body["payload"], body["msgids"]) for body in bodies) == [(n, [id]) for n, id in enumerate(ids)]
        assert len({key for _, key, _ in receiver.got}) == 3
        assert all("Subject: Notification: events" in text and "To: ann@example.org" in text for text in sink.got)
        assert sorted(id for id in ids for text in sink.got if id in text) == sorted(ids)
        assert db.value(registered, "SELECT count(*) FROM aq.browse('events')") == 3
        service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=60) == 0 and len(receiver.got) == len(sink.got) == 3


def test_a_registered_group(receiver, registered, start):
    """The messages of a group are one request, which has their ids."""
    with start():
        ids = sorted(str(db.value(registered, "SELECT aq.enqueue('events', '{}')")) for _ in range(3))
        register(registered, f"http://127.0.0.1:{receiver.server_port}/ok", "group_time => '1 s'")
        until(lambda: len(receiver.got) == 1, "a request")
        body = json.loads(receiver.got[0][2])
        assert sorted(body["msgids"]) == ids and body["message_count"] == 3 and "payload" not in body


def test_a_registered_address_that_is_not_allowed(receiver, registered, start):
    """The notification is a dead letter, which names the address; the registration goes on."""
    with start():
        register(registered, f"http://localhost:{receiver.server_port}/ok")
        registered.execute("SELECT aq.enqueue('events', '1'), aq.enqueue('events', '2')")
        query = "SELECT reason, last_error FROM aq.dead_letters WHERE queue_name = 'pgaq_outgoing'"
        found = until(lambda: (rows := registered.execute(query).fetchall()) and len(rows) == 2 and rows, "two dead letters")
        assert set(found) == {("rejected", f"host localhost, port {receiver.server_port} is not in the list of allowed hosts")}
        assert receiver.got == [] and db.value(registered, "SELECT status FROM aq.registrations") == "enabled"


def test_failures_become_dead_letters(server, receiver, outgoing, start):
    """What fails is tried again, with the same id; what is not allowed is not tried; both keep their error."""
    with server.connect() as conn, start(outgoing):
        failing = send(conn, receiver, "/fail")
        refused = str(db.value(conn, "SELECT aq.enqueue('outgoing', '{\"to\": \"https://example.org/\"}')"))
        query = "SELECT coalesce(original_msgid, msgid)::text, reason, last_error FROM aq.dead_letters WHERE queue_name = 'outgoing'"
        found = until(lambda: (rows := conn.execute(query).fetchall()) and len(rows) == 2 and rows, "two dead letters")
        assert sorted(found) == sorted(
            [
                (failing, "retries", "HTTP status 500"),
                (refused, "rejected", "host example.org, port 443 is not in the list of allowed hosts"),
            ]
        )
        assert [(path, key) for path, key, _ in receiver.got] == [("/fail", failing)] * 2


def test_parallel(server, receiver, outgoing, start):
    """Three requests at a time, as set; SIGTERM lets them end and takes no other message."""
    with server.connect() as conn, start(outgoing) as service:
        for _ in range(5):
            send(conn, receiver, "/hold")
        until(lambda: receiver.running == 3, "three requests")
        service.send_signal(signal.SIGTERM)
        assert service.stderr.readline() == STOPPING
        receiver.go.set()
        assert service.wait(timeout=60) == 0
        assert receiver.most == 3 and len(receiver.got) == 3 and left(conn) == 2
    with server.connect() as conn, start(outgoing):
        until(lambda: left(conn) == 0, "the others")
        assert len({key for _, key, _ in receiver.got}) == len(receiver.got) == 5


def test_killed(server, receiver, outgoing, start):
    """A message whose delivery was cut off comes again when its lease is ended, with the same id; no second attempt runs before."""
    with server.connect() as conn, start(outgoing) as service:
        msgid = send(conn, receiver, "/hold")
        until(lambda: receiver.running == 1, "the request")
        service.kill()
        service.wait()
    with server.connect() as conn, start(outgoing):
        other = send(conn, receiver, "/ok")
        until(lambda: ("/ok", other) in [each[:2] for each in receiver.got], "the other message")
        assert [key for path, key, _ in receiver.got if path == "/hold"] == [msgid]
        receiver.go.set()
        conn.execute("SELECT aq.end_leases('outgoing', ARRAY[%s::uuid])", [msgid])
        until(lambda: left(conn) == 0, "the message")
        assert [key for path, key, _ in receiver.got if path == "/hold"] == [msgid] * 2


def test_the_connection_is_lost(server, receiver, outgoing, start):
    """The service ends with an error, so that its manager starts it again; what it was delivering comes again, the rest once."""
    with server.connect() as conn, start(outgoing) as service:
        held = send(conn, receiver, "/hold")
        until(lambda: receiver.running == 1, "the request")
        server.expect_log("terminating connection due to administrator command")
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgaq'")
        receiver.go.set()
        _, said = service.communicate(timeout=60)
        assert service.returncode != 0 and "terminating connection" in said
    with server.connect() as conn, start(outgoing):
        other = send(conn, receiver, "/ok")
        conn.execute("SELECT aq.end_leases('outgoing', ARRAY[%s::uuid])", [held])
        until(lambda: left(conn) == 0, "both messages")
        assert sorted(key for _, key, _ in receiver.got) == sorted([held, held, other])
