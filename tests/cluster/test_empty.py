"""A stream that has nothing for a consumer is passed by without its latch, until something may be ready: every way in which
that happens, before a dequeue, and while a session that has found nothing is going to wait.  Needs a library built with TEST_POINTS=1."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, put, put_many, server_with_points, take, until
from pgaq import db

pytestmark = [pytest.mark.test_build, pytest.mark.sharded("a queue table has no streams")]

GETS = """SELECT coalesce(sum(gets), 0)::bigint FROM sys."v$latch" WHERE name = 'shard stream'"""
PARTITION = 16384


SETTINGS = {"pgaq.reuse_grace": "0", "max_prepared_transactions": "5", "pgaq.message_cache_size": "4MB"}


@pytest.fixture(scope="module")
def points(library):
    with pytest.MonkeyPatch.context() as patch, server_with_points(patch, library, "empty", **SETTINGS) as server:
        yield server


@pytest.fixture
def conn(points):
    with points.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', shards => 1, retry_delay => '0', max_retries => 100)")
        yield conn
        db.execute(conn, "SELECT aq.point_reset()")
        db.execute(conn, "SELECT aq.drop_queue('q', force => true)")


# Each: what stands in the queue and is not ready, then the end of that.  `conn` sees an empty queue in between.


def enqueued(conn, other):
    yield
    put(other, "q", 1)


def enqueued_before(conn, other):
    """The enqueue is older than the look; its commit is not."""
    other.execute("BEGIN")
    put(other, "q", 1)
    yield
    other.execute("COMMIT")


def rolled_back(conn, other):
    """The worker counts the retry first."""
    put(other, "q", 1)
    other.execute("BEGIN")
    assert take(other, "q") == [1]
    yield
    other.execute("ROLLBACK")


def rolled_back_to_savepoint(conn, other):
    put(other, "q", 1)
    other.execute("BEGIN; SAVEPOINT s")
    assert take(other, "q") == [1]
    yield
    other.execute("ROLLBACK TO s; COMMIT")


def locked(conn, other):
    """Messages become ready again without an attempt."""
    put(other, "q", 1)
    other.execute("BEGIN")
    assert len(other.execute("SELECT 1 FROM aq.dequeue('q', mode => 'locked')").fetchall()) == 1
    yield
    other.execute("COMMIT")


def terminated(conn, other):
    put(other, "q", 1)
    other.execute("BEGIN")
    assert take(other, "q") == [1]
    pid = other.info.backend_pid
    yield
    db.execute(conn, "SELECT pg_terminate_backend(%s, 60000)", [pid])


def delayed(conn, other):
    put(other, "q", 1, delay="1 s")
    yield


def enqueue_prepared(conn, other):
    other.execute("BEGIN")
    put(other, "q", 1)
    other.execute("PREPARE TRANSACTION 'empty'")
    yield
    other.execute("COMMIT PREPARED 'empty'")


def dequeue_prepared(conn, other):
    put(other, "q", 1)
    other.execute("BEGIN")
    assert take(other, "q") == [1]
    other.execute("PREPARE TRANSACTION 'empty'")
    yield
    other.execute("ROLLBACK PREPARED 'empty'")


def held_back(conn, other):
    """A later message of a session whose earlier one a prepared transaction has taken."""
    put(other, "q", 0, 1)
    other.execute("BEGIN")
    assert take(other, "q", number=1) == [0]
    other.execute("PREPARE TRANSACTION 'empty'")
    yield
    other.execute("COMMIT PREPARED 'empty'")


WAYS = [
    enqueued,
    enqueued_before,
    rolled_back,
    rolled_back_to_savepoint,
    locked,
    terminated,
    delayed,
    enqueue_prepared,
    dequeue_prepared,
    held_back,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_found_after_an_empty_dequeue(points, conn, way):
    other = points.connect()
    steps = way(conn, other)
    next(steps)
    assert take(conn, "q") == [] and take(conn, "q") == []
    next(steps, None)
    got = until(lambda: take(conn, "q"), "the message")
    assert got == [1]
    other.close()


@pytest.mark.parametrize("looks", [1, 2, 3])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_found_before_it_sleeps(points, conn, way, looks):
    """A session that has found nothing this many times, the third time as a waiter, stops before its next step."""
    other = points.connect()
    with points.connect() as waiter, ThreadPoolExecutor() as pool:
        steps = way(conn, other)
        next(steps)
        assert take(waiter, "q") == []
        db.execute(conn, "SELECT aq.point_hold('nothing-ready')")
        found = pool.submit(lambda: waiter.execute("CALL aq.wait('q', NULL, '60 s', NULL)").fetchone()[0])
        for look in range(1, looks + 1):
            assert db.value(conn, "SELECT aq.point_await('nothing-ready')")
            if look < looks:
                db.execute(conn, "SELECT aq.point_hold('nothing-ready')")
        next(steps, None)
        db.execute(conn, "SELECT aq.point_reset()")
        assert found.result(PATIENCE) is True
        assert until(lambda: take(waiter, "q"), "the message") == [1]
    other.close()


def test_found_when_its_partition_is_loaded(points, conn):
    """Another consumer's backlog drives the frames out: what comes back is looked at again."""
    db.execute(conn, "SELECT aq.create_queue('t', multiple_consumers => true, shards => 1), aq.subscribe('t', 'a'), aq.subscribe('t', 'b')")
    for first in range(1, 12 * PARTITION, PARTITION):
        put_many(conn, "t", first, first + PARTITION - 1)
    while take(conn, "t", "a", PARTITION):
        pass
    assert take(conn, "t", "a") == []
    assert len(take(conn, "t", "b", 6 * PARTITION)) == 6 * PARTITION
    assert take(conn, "t", "a") == []
    put(conn, "t", 0)
    assert take(conn, "t", "a") == [0]
    assert len(take(conn, "t", "b", 7 * PARTITION)) == 6 * PARTITION + 1
    db.execute(conn, "SELECT aq.drop_queue('t', force => true)")


def test_no_latch(points, conn):
    """Streams without anything cost no latch; one message costs that of its stream."""
    db.execute(conn, "SELECT aq.create_queue('many', multiple_consumers => true), aq.subscribe('many', 'a')")
    for priority in range(10):
        put(conn, "many", priority, priority=priority)
    assert take(conn, "many", "a") == list(range(10))
    assert take(conn, "many", "a") == []
    before = db.value(conn, GETS)
    for _ in range(100):
        assert take(conn, "many", "a") == []
    gets = db.value(conn, GETS) - before
    assert gets < 100, gets
    put(conn, "many", 1, priority=3)
    assert take(conn, "many", "a") == [1]
    db.execute(conn, "SELECT aq.drop_queue('many', force => true)")
