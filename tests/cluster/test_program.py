"""The kind of program that comes from Oracle (program.sql), with many sessions and both ways to dequeue."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from pgaq import db

SETTINGS = {"max_connections": "300"}
PROGRAM = Path(__file__).with_name("program.sql").read_text()
METHODS = {"listen": "listen_deq", "subscriber": "subscr_deq"}


class Clients:
    """Sessions in threads; what they have committed is noted here, outside of the database."""

    def __init__(self, server):
        self.server = server
        self.threads, self.errors = [], []
        self.sent, self.got = Counter(), Counter()
        self.numbers = {}  # of messages, by subscriber, once all are sent

    def start(self, work):
        def run():
            try:
                with self.server.connect() as conn:
                    conn.execute("SET search_path = k, public, sys")
                    work(conn)
            except BaseException as error:
                self.errors.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join(300)
        assert not self.errors, self.errors

    def enqueue(self, subscriber, number, seconds=None):
        """Sends this many messages, or as many as possible in a time."""
        end = time.monotonic() + seconds if seconds else None

        def work(conn):
            sent = 0
            while time.monotonic() < end if end else sent < number:
                self.sent[subscriber, db.value(conn, "CALL enq(%s, NULL)", [subscriber])] += 1
                sent += 1
            self.numbers[subscriber] = sent

        self.start(work)

    def dequeue(self, subscriber, procedure):
        """Consumes until it has got all messages that were sent to it."""

        def work(conn):
            got = 0
            while got != self.numbers.get(subscriber) and not self.errors:
                msgid = db.value(conn, f"CALL {procedure}(%s, 2, NULL)", [subscriber])
                if msgid is not None:
                    self.got[subscriber, msgid] += 1
                    got += 1

        self.start(work)


@pytest.mark.parametrize("method", METHODS)
def test_program(new_server, is_long, method):
    """The long form is the size and the minute that such programs are measured with."""
    subscribers, sessions, messages, seconds = (100, 80, None, 60) if is_long else (20, 8, 30, None)
    server = new_server("program", **SETTINGS)
    with server.connect() as conn:
        conn.execute(PROGRAM)
        conn.execute("CALL create_subscribers('msg_queue', %s)", [subscribers])
        clients = Clients(server)
        for number in range(1, sessions + 1):
            clients.dequeue(number, METHODS[method])
            clients.enqueue(number, messages, seconds)
        clients.join()
        total = sum(clients.numbers.values())
        print(f"{method}: {total} messages, {sessions} + {sessions} sessions, {subscribers} subscribers")
        # every message once, and for its subscriber
        assert clients.sent == clients.got and len(clients.got) == total and set(clients.got.values()) == {1}
        # the views say the same
        assert conn.execute("SELECT msg_state, count(*) FROM aq$messages_qtab GROUP BY 1").fetchall() == [("PROCESSED", total)]
        assert db.value(conn, "SELECT count(*) FROM messages_qtab WHERE q_name = 'MSG_QUEUE'") == total
        rows = conn.execute(
            "SELECT count(*), sum(enqueued_msgs)::int, sum(dequeued_msgs)::int FROM v$persistent_subscribers WHERE queue_name = 'MSG_QUEUE'"
        ).fetchall()
        assert rows == [(subscribers, total, total)]
        assert db.value(conn, "SELECT enqueued_msgs FROM v$persistent_queues WHERE queue_name = 'MSG_QUEUE'") == total
        assert db.value(conn, "SELECT count(*) FROM dba_queue_subscribers WHERE queue_name = 'MSG_QUEUE'") == subscribers
        conn.execute("CALL remove_subscribers('MSG_QUEUE')")
        assert db.value(conn, "SELECT count(*) FROM dba_queue_subscribers WHERE queue_name = 'MSG_QUEUE'") == 0


def test_program_with_immediate_visibility(new_server):
    """The same with each enqueue and dequeue in a separate transaction, by the server's helpers: 160 sessions with
    default settings."""
    server = new_server("immediate", **SETTINGS)
    sessions, messages = 80, 3
    with server.connect() as conn:
        conn.execute(PROGRAM.replace("dbms_aq.on_commit()", "dbms_aq.immediate()"))
        conn.execute("CALL create_subscribers('msg_queue', %s)", [sessions])
        clients = Clients(server)
        for number in range(1, sessions + 1):
            clients.dequeue(number, METHODS["listen"])
            clients.enqueue(number, messages)
        clients.join()
        assert clients.sent == clients.got and set(clients.got.values()) == {1}
        assert conn.execute("SELECT msg_state, count(*) FROM aq$messages_qtab GROUP BY 1").fetchall() == [
            ("PROCESSED", sessions * messages)
        ]


def test_loops(new_server, is_long):
    """The server's own loops, both methods at once; what is left over is READY."""
    server = new_server("loops", **SETTINGS)
    sessions, seconds = (80, 60) if is_long else (4, 2)
    with server.connect() as conn:
        conn.execute(PROGRAM)
        conn.execute("CALL create_subscribers('msg_queue', %s)", [sessions])
        clients = Clients(server)
        counts = Counter()
        lock = threading.Lock()

        def loop(what, statement, arguments):
            def work(session):
                number = db.value(session, statement, arguments)
                with lock:
                    counts[what] += number

            clients.start(work)

        for number in range(1, sessions + 1):
            loop("enqueued", "CALL enq_loop(%s, %s, NULL)", [number, seconds])
            loop("dequeued", "CALL deq_loop(%s, %s, %s, NULL)", [number, number % 2 + 1, seconds])
        clients.join()
        states = dict(conn.execute("SELECT msg_state, count(*) FROM aq$messages_qtab GROUP BY 1").fetchall())
        assert counts["dequeued"] > 0
        assert states.get("PROCESSED", 0) == counts["dequeued"]
        assert sum(states.values()) == counts["enqueued"]
        conn.execute("CALL purge_queue_table()")
        assert db.value(conn, "SELECT count(*) FROM aq$messages_qtab WHERE msg_state = 'READY'") == 0
