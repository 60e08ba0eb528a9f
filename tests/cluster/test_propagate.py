"""Propagation: the process and the server end while messages go on, databases and extensions are dropped under it."""

from __future__ import annotations

import contextlib

import pytest

from conftest import arrived, generation, put_many, until
from pgaq import db
from pgaq_proof import faults

BATCH = 400
POINTS = ["move-taken", "move-put", "propagated"]
STORES = {
    "sharded to sharded": (False, False),
    "sharded to queue table": (False, True),
    "queue table to sharded": (True, False),
    "queue table to queue table": (True, True),
}


def process(conn, database="postgres"):
    """The pid of the database's process; None while there is none."""
    query = "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq propagation' AND datname = %s"
    return db.value(conn, query, [database])


def make_queue(conn, name, on_table):
    if on_table:
        db.execute(conn, "SELECT aq.create_queue_table(%s, 'jsonb')", [f"t.{name}"])
        db.execute(conn, "SELECT aq.create_queue(%s, queue_table => %s)", [name, f"t.{name}"])
    else:
        db.execute(conn, "SELECT aq.create_queue(%s)", [name])


def drop_queue(conn, name, on_table):
    db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])
    if on_table:
        db.execute(conn, "SELECT aq.drop_queue_table(%s)", [f"t.{name}"])


@contextlib.contextmanager
def chain(server, stores="sharded to sharded"):
    """Two queues, and a schedule from the first to the second."""
    tables = STORES[stores]
    with server.connect() as conn:
        db.execute(conn, "CREATE SCHEMA IF NOT EXISTS t")
        make_queue(conn, "source", tables[0])
        make_queue(conn, "target", tables[1])
        db.execute(conn, "SELECT aq.create_propagation('source', 'target')")
    yield
    with server.connect() as conn:
        drop_queue(conn, "source", tables[0])
        drop_queue(conn, "target", tables[1])


def send(server, first):
    with server.connect() as conn:
        for n in range(first, first + BATCH, 20):
            put_many(conn, "source", n, n + 19)


def check_arrived(server, first, what):
    """Each message once, in the order in which they were sent."""
    with server.connect() as conn:
        assert arrived(conn, "target", BATCH) == list(range(first, first + BATCH)), what


@pytest.mark.parametrize("stores", STORES)
def test_process_ends_under_load(server, stores):
    """It is terminated while messages go on; another one takes over, and each message arrives once, in order."""
    server.expect_log("terminating background worker")
    with chain(server, stores):
        for first in (1, 1 + BATCH, 1 + 2 * BATCH):
            with server.connect() as conn:
                before = until(lambda: process(conn), "the process")
                send(server, first)
                db.execute(conn, "SELECT pg_terminate_backend(%s)", [before])
                until(lambda: process(conn) not in (None, before), "another process")
            check_arrived(server, first, stores)


def test_server_restarts(server):
    """The schedule goes on after a crash and a restart, without a session that uses the queues."""
    with chain(server):
        for first, mode in ((1, "fast"), (1 + BATCH, "immediate")):
            with server.connect() as conn:
                until(lambda: process(conn), "the process")
                db.execute(conn, "SELECT aq.stop_queue('target', dequeue => false)")
            send(server, first)
            server.restart(mode)
            with server.connect() as conn:
                db.execute(conn, "SELECT aq.start_queue('target')")
                db.execute(conn, "SELECT aq.alter_propagation('source', 'target', enabled => true)")
            check_arrived(server, first, mode)


def test_database_is_dropped(server):
    """DROP DATABASE does not wait for the process, nor does DROP EXTENSION."""
    server.expect_log("terminating background worker")
    with server.connect() as conn:
        db.execute(conn, "CREATE DATABASE dropped")
        for command in ("DROP EXTENSION pgaq CASCADE", None):
            with server.connect("dropped") as other:
                db.execute(other, "CREATE EXTENSION pgaq")
                db.execute(other, "SELECT aq.create_queue('a'), aq.create_queue('b')")
                db.execute(other, "SELECT aq.create_propagation('a', 'b')")
                until(lambda: process(conn, "dropped"), "the process")
                if command:
                    db.execute(other, command)
                    until(lambda: process(conn, "dropped") is None, "no process")
        db.execute(conn, "DROP DATABASE dropped")
        assert process(conn, "dropped") is None


@pytest.mark.long
@pytest.mark.test_build
@pytest.mark.parametrize("stores", STORES)
def test_ends_at_points(points_server, stores):
    """An error, a cancellation, a termination and a crash at each point: each message arrives once, in order."""
    points_server.expect_log("test point|canceling|terminating|crash|signal 9")
    first = 1
    with chain(points_server, stores):
        for point in POINTS:
            for action in ("error", "cancel", "terminate", "crash"):
                before = generation(points_server)
                with points_server.connect() as conn:
                    db.execute(conn, "SELECT aq.alter_propagation('source', 'target', enabled => false)")
                    until(lambda: process(conn) is None, "no process")
                    send(points_server, first)
                    faults.arm(points_server, point, action)
                    db.execute(conn, "SELECT aq.alter_propagation('source', 'target', enabled => true)")
                    if action != "crash":
                        until(lambda: db.value(conn, "SELECT aq.point_reached(%s)", [point]) > 0, f"{action} at {point}")
                if action == "crash":
                    until(lambda: generation(points_server) not in (None, before), f"a crash at {point}")
                check_arrived(points_server, first, f"{action} at {point}")
                first += BATCH
