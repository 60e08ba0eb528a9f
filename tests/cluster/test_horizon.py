"""Which old snapshots keep a consumed partition from being truncated: those that can read it, and no others."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest

from conftest import at_rest, put_many, server_with_points, take, until
from pgaq import db
from pgaq.load import holders
from test_reuse import TRUNCATED
from test_xmin import PARTITION

pytestmark = pytest.mark.sharded("a queue table has no partitions")

# only the horizon allows truncation here
SETTINGS = {
    "wal_level": "logical", "pgaq.reuse_grace": "1h", "autovacuum": "off", "max_replication_slots": "5", "max_wal_senders": "5",
    "max_prepared_transactions": "2",
}  # fmt: skip


@contextlib.contextmanager
def reader(server, name="postgres"):
    """A session that keeps its snapshot, of a database of the server."""
    with server.connect(dbname=name) as conn:
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SELECT 1")
        yield
        conn.execute("ROLLBACK")


@contextlib.contextmanager
def importer(server):
    """A session that has the snapshot of another one, which is over."""
    with server.connect() as conn:
        with server.connect() as exporter:
            exporter.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            name = db.value(exporter, "SELECT pg_export_snapshot()")
            conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            conn.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            exporter.execute("ROLLBACK")
        yield
        conn.execute("ROLLBACK")


COUNTS = {
    "reader": reader,
    "importer": importer,
    "standby with a slot": holders.standby,
    "standby without a slot": partial(holders.standby, with_slot=False),
}
DOES_NOT = {
    "reader of another database": partial(reader, name="template1"),
    "transaction without a snapshot": holders.idle,
    "prepared transaction": holders.prepared,
    "logical slot": holders.logical_slot,
    "abandoned slot": holders.slot,
}


def consume(conn, queue):
    """A full partition, and the beginning of the next."""
    put_many(conn, queue, 1, PARTITION + 1)
    assert len(take(conn, queue, number=PARTITION)) == PARTITION


@pytest.fixture
def queue(conn):
    db.execute(conn, "SELECT aq.create_queue('horizon', shards => 1)")
    yield "horizon"
    db.execute(conn, "SELECT aq.drop_queue('horizon', force => true)")


def xmin_is_old(conn):
    """The holder has taken effect."""
    return holders.oldest_xmin(conn) > 1 or db.value(
        conn, "SELECT max(age(backend_xmin)) > 1 FROM pg_stat_activity WHERE backend_type = 'walsender'"
    )


@pytest.mark.parametrize("what", COUNTS)
def test_what_can_read_it_keeps_it(server, conn, queue, what):
    with COUNTS[what](server):
        conn.execute("SELECT pg_current_xact_id()")
        conn.execute("SELECT pg_current_xact_id()")
        until(lambda: xmin_is_old(conn), "an old xmin")
        consume(conn, queue)
        until(lambda: at_rest(conn, "worker"), "the worker has tried")
        assert db.value(conn, TRUNCATED, [queue]) == 0
    until(lambda: db.value(conn, TRUNCATED, [queue]) == 1, "the partition truncated")


@pytest.mark.parametrize("what", DOES_NOT)
def test_what_cannot_read_it_does_not(server, conn, queue, what):
    with DOES_NOT[what](server):
        conn.execute("SELECT pg_current_xact_id()")
        conn.execute("SELECT pg_current_xact_id()")
        until(lambda: xmin_is_old(conn), "an old xmin")
        consume(conn, queue)
        until(lambda: db.value(conn, TRUNCATED, [queue]) == 1, "the partition truncated")


@pytest.mark.test_build
def test_a_partition_consumed_after_the_worker_has_looked(monkeypatch, library):
    """The worker has listed what is consumed and asks for the horizon: what is consumed in between is not in its list."""
    with server_with_points(monkeypatch, library, "horizon", **SETTINGS) as server, server.connect() as conn, server.connect() as taker:
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1)")
        put_many(conn, "q", 1, 2 * PARTITION + 1)
        taker.execute("BEGIN; SELECT pg_current_xact_id()")
        db.execute(conn, "SELECT aq.point_hold('consumed-listed')")
        assert len(take(conn, "q", number=PARTITION)) == PARTITION
        assert db.value(conn, "SELECT aq.point_await('consumed-listed')")
        assert len(take(taker, "q", number=PARTITION)) == PARTITION
        with reader(server):
            taker.execute("COMMIT")
            db.execute(conn, "SELECT aq.point_reset()")
            until(lambda: at_rest(conn, "worker"), "the worker has tried")
            assert db.value(conn, TRUNCATED, ["q"]) == 0
        until(lambda: db.value(conn, TRUNCATED, ["q"]) == 2, "both partitions truncated")


@pytest.mark.parametrize("resident", [True, False], ids=["resident", "after a restart"])
def test_a_removal_counts_as_a_dequeue(server, resident):
    """Messages that only removed consumers had not finished are not truncated under an earlier snapshot."""
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true, shards => 1)")
        db.execute(conn, "SELECT aq.subscribe('t', 'a'), aq.subscribe('t', 'b')")
        put_many(conn, "t", 1, PARTITION + 1)
        if resident:
            assert len(take(conn, "t", "a", PARTITION)) == PARTITION
    if not resident:
        server.restart()
    with server.connect() as conn:
        with reader(server):
            conn.execute("SELECT pg_current_xact_id()")
            db.execute(conn, "SELECT aq.unsubscribe('t', 'b')")
            if not resident:
                db.execute(conn, "SELECT aq.unsubscribe('t', 'a')")
            assert db.value(conn, TRUNCATED, ["t"]) == 0
            until(lambda: at_rest(conn, "worker"), "the worker has tried")
            assert db.value(conn, TRUNCATED, ["t"]) == 0
        if resident:
            until(lambda: db.value(conn, TRUNCATED, ["t"]) == 1, "the partition truncated")
        db.execute(conn, "SELECT aq.drop_queue('t', force => true)")
