"""Shares of the server's memory: a role that uses its share up gets the error, and others go on."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import put, put_many, take, until, waiting_for
from pgaq import db

SETTINGS = {
    "pgaq.max_queues": "64",
    "pgaq.max_streams": "64",
    "pgaq.max_partitions": "128",
    "pgaq.message_cache_size": "4MB",
    "pgaq.role_share": "50",
    "max_prepared_transactions": "20",
}


@pytest.fixture(scope="module")
def roles(server):
    """A role that takes all it can get, and another one, both without a special right but to create queues."""
    with server.connect() as conn:
        for role in ("hog", "other"):
            db.execute(conn, f"CREATE ROLE {role} LOGIN")
            db.execute(conn, f"GRANT EXECUTE ON FUNCTION aq.create_queue TO {role}")


@pytest.fixture()
def hog(server, roles):
    with server.connect(user="hog") as conn:
        conn.execute("SET statement_timeout = '1 min'")
        yield conn


@pytest.fixture()
def other(server, roles):
    with server.connect(user="other") as conn:
        conn.execute("SET statement_timeout = '1 min'")
        yield conn
        conn.execute("SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE owner = 'other' AND exception_queue IS NOT NULL")


def usage(conn, resource, role="hog"):
    query = "SELECT coalesce(sum(used), 0) FROM aq.role_usage WHERE role = %s AND resource = %s"
    return int(db.value(conn, query, [role, resource]))


@contextlib.contextmanager
def small_partitions(conn):
    conn.execute("ALTER SYSTEM SET pgaq.partition_size = '64kB'")
    conn.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        conn.execute("ALTER SYSTEM RESET pgaq.partition_size")
        conn.execute("SELECT pg_reload_conf()")


def refused(error, parameter):
    assert error.value.sqlstate == "53400" and 'queues of role "hog"' in str(error.value), error.value
    hint = error.value.diag.message_hint
    assert parameter in hint and "pgaq.role_share" in hint, hint


def test_streams(server, conn, hog, other):
    """Temporary queues with all priorities: the call over the share fails, the other role makes its streams."""
    made = 0
    with server.connect(user="hog") as end, pytest.raises(db.Error) as error:
        for _ in range(5):
            queue = db.value(end, "SELECT aq.create_temporary_queue('text')")
            for priority in range(10):
                db.execute(end, "SELECT aq.enqueue(%s, 'x'::text, priority => %s)", [queue, priority])
                made += 1
    refused(error, "pgaq.max_streams")
    assert made == 32
    db.execute(other, "SELECT aq.create_queue('theirs', payload_type => 'text')")
    for priority in range(10):
        db.execute(other, "SELECT aq.enqueue('theirs', 'x'::text, priority => %s)", [priority])
    assert usage(other, "streams", "other") == 10
    assert usage(other, "streams") == 0  # not shown to it
    until(lambda: usage(conn, "streams") == 0, "the end of the temporary queues")


def test_a_small_share(conn, other):
    """One percent of 64 queues, 64 streams, and a cache of 4 MB is less than one, but a role gets its first one."""
    conn.execute("ALTER SYSTEM SET pgaq.role_share = 1")
    conn.execute("SELECT pg_reload_conf()")
    try:
        until(lambda: db.value(other, "SHOW pgaq.role_share") == "1", "the new share")
        db.execute(other, "SELECT aq.create_queue('only', shards => 1)")
        put(other, "only", 1)
        assert take(other, "only") == [1]
    finally:
        conn.execute("ALTER SYSTEM RESET pgaq.role_share")
        conn.execute("SELECT pg_reload_conf()")
    until(lambda: db.value(other, "SHOW pgaq.role_share") == "50", "the former share")


def test_owner_answers(conn, hog, other):
    """What counts is the owner at the time: a queue that changes hands takes its use along."""
    db.execute(hog, "SELECT aq.create_queue('goods')")
    put(hog, "goods", 1)
    assert (usage(conn, "streams"), usage(conn, "streams", "other")) == (1, 0)
    db.execute(conn, "SELECT aq.alter_queue('goods', new_owner => 'other')")
    assert take(other, "goods") == [1]
    assert (usage(conn, "streams"), usage(conn, "streams", "other")) == (0, 1)


@pytest.mark.sharded("queue tables have no partitions")
def test_partitions(conn, hog, other):
    """A backlog that needs too many tables fails; what is there can be dequeued, and then there is room."""
    with small_partitions(conn):
        db.execute(hog, "SELECT aq.create_queue('backlog')")
        stored = 0
        with pytest.raises(db.Error) as error:
            for stored in range(100):
                put(hog, "backlog", "x" * 100_000)
        refused(error, "pgaq.max_partitions")
        assert stored >= 60
        db.execute(other, "SELECT aq.create_queue('room')")
        put(other, "room", 1)
        assert take(other, "room") == [1]
        assert len(take(hog, "backlog", number=100)) == stored
    db.execute(hog, "SELECT aq.drop_queue('backlog')")


@pytest.mark.sharded("queue tables have no message cache")
def test_message_cache(conn, hog, other):
    """A transaction that dequeues from all partitions of a large backlog; meanwhile another role uses its own queue."""
    db.execute(hog, "SELECT aq.create_queue('large')")
    for start in range(1, 131_072, 16_384):
        put_many(hog, "large", start, start + 16_383)
    db.execute(other, "SELECT aq.create_queue('small')")
    hog.execute("BEGIN")
    with pytest.raises(db.Error) as error:
        for _ in range(8):
            assert len(take(hog, "large", number=16_384)) == 16_384
    refused(error, "pgaq.message_cache_size")
    hog.execute("ROLLBACK")
    hog.execute("BEGIN")
    taken = 0
    while taken < 3 * 16_384:  # after a rollback in smaller batches
        taken += len(take(hog, "large", number=3 * 16_384 - taken))
    assert 1536 <= usage(conn, "message_cache") <= 2048
    for start in range(0, 60_000, 20_000):
        put_many(other, "small", start, start + 19_999)
        assert len(take(other, "small", number=20_000)) == 20_000
    hog.execute("COMMIT")
    assert usage(conn, "message_cache") == 0
    rest = list(range(3 * 16_384 + 1, 131_073))
    while rest:
        got = take(conn, "large", number=10_000)
        assert got == rest[: len(got)] and got
        rest = rest[len(got) :]


@pytest.mark.sharded("queue tables have no message cache")
def test_large_enqueue(conn, hog, other):
    """A transaction enqueues more than its share of the cache; the error is its own."""
    db.execute(hog, "SELECT aq.create_queue('heap', payload_type => 'text')")
    db.execute(other, "SELECT aq.create_queue('few')")
    hog.execute("BEGIN")
    with pytest.raises(db.Error) as error:
        for _ in range(8):
            hog.execute("SAVEPOINT before")
            db.execute(hog, "SELECT aq.enqueue_array('heap', array_fill(''::text, ARRAY[16384]))")
    refused(error, "pgaq.message_cache_size")
    hog.execute("ROLLBACK TO before")
    assert 1024 <= usage(conn, "message_cache") <= 2560  # not refused while half is free
    put_many(other, "few", 1, 20_000)
    assert len(take(other, "few", number=20_000)) == 20_000
    hog.execute("COMMIT")
    assert usage(conn, "message_cache") == 0


@pytest.mark.sharded("queue tables have no message cache")
def test_many_transactions(conn, hog, other):
    """Prepared transactions that keep a partition each: together they keep no more than the role's share."""
    db.execute(hog, "SELECT aq.create_queue('parts', payload_type => 'text', shards => 1)")
    db.execute(other, "SELECT aq.create_queue('free')")

    def prepare():
        for n in range(8):
            hog.execute("BEGIN")
            db.execute(hog, "SELECT aq.enqueue_array('parts', array_fill(''::text, ARRAY[16384]))")
            hog.execute(f"PREPARE TRANSACTION 'part {n}'")

    with ThreadPoolExecutor(1) as thread:
        preparing = thread.submit(prepare)
        until(lambda: waiting_for(conn, "aq: message cache full"), "a transaction that waits for others of its role")
        conn.execute("SELECT pg_cancel_backend(%s)", [hog.info.backend_pid])
        with pytest.raises(db.Error, match="canceling statement"):
            preparing.result()
    hog.execute("ROLLBACK")
    assert 1024 <= usage(conn, "message_cache") <= 2048
    put_many(other, "free", 1, 20_000)
    assert len(take(other, "free", number=20_000)) == 20_000
    for (name,) in conn.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        hog.execute(f"COMMIT PREPARED '{name}'")
    until(lambda: usage(conn, "message_cache") == 0, "the end of the prepared transactions")
    db.execute(hog, "SELECT aq.drop_queue('parts', force => true)")


@pytest.mark.sharded("queue tables have no message cache")
def test_superusers_queue(conn, hog, other):
    """A role that may only enqueue into a superuser's queue has the limit that the superuser has not."""
    db.execute(conn, "SELECT aq.create_queue('public', payload_type => 'text')")
    db.execute(conn, "SELECT aq.grant_queue('public', 'hog', 'enqueue')")
    db.execute(other, "SELECT aq.create_queue('few')")
    hog.execute("BEGIN")
    with pytest.raises(db.Error) as error:
        for _ in range(8):
            hog.execute("SAVEPOINT before")
            db.execute(hog, "SELECT aq.enqueue_array('public', array_fill(''::text, ARRAY[16384]))")
    assert error.value.sqlstate == "53400" and 'queues of role "postgres"' in str(error.value), error.value
    hog.execute("ROLLBACK TO before")
    put_many(other, "few", 1, 20_000)
    assert len(take(other, "few", number=20_000)) == 20_000
    hog.execute("ROLLBACK")
    db.execute(conn, "SELECT aq.enqueue_array('public', array_fill(''::text, ARRAY[16384])) FROM generate_series(1, 5)")
    db.execute(conn, "SELECT aq.drop_queue('public', force => true)")


def use_until_refused(session, prefix):
    """Its transaction looks into one queue after the other, of forty; the first one above the share is refused."""
    with pytest.raises(db.Error) as error:
        for n in range(1, 41):
            session.execute("SAVEPOINT before")
            assert take(session, f"{prefix}{n}") == []
    refused(error, "pgaq.max_queues")


def test_queues(conn, hog, other):
    """A transaction uses more queues than its share of those in memory; then they are given back."""
    db.execute(hog, "SELECT aq.create_queue('many' || n) FROM generate_series(1, 40) n")
    db.execute(other, "SELECT aq.create_queue('one')")
    hog.execute("BEGIN")
    use_until_refused(hog, "many")
    assert 30 <= usage(conn, "queues") <= 32
    hog.execute("ROLLBACK TO before")
    put(other, "one", 1)
    assert take(other, "one") == [1]
    hog.execute("COMMIT")
    for n in range(1, 41):
        assert take(hog, f"many{n}") == []
        db.execute(hog, "SELECT aq.drop_queue(%s)", [f"many{n}"])


def test_queues_that_are_in_memory(server, conn, hog, other):
    """They do not have to be loaded, and count all the same when a transaction uses them: whether its session knows them or not."""
    db.execute(hog, "SELECT aq.create_queue('warm' || n) FROM generate_series(1, 40) n")
    db.execute(other, "SELECT aq.create_queue('one')")
    put(other, "one", 1)
    for n in range(1, 41):
        assert take(hog, f"warm{n}") == []
    with server.connect(user="hog") as unknowing:
        for session in (hog, unknowing):
            session.execute("BEGIN")
            use_until_refused(session, "warm")
            session.execute("ROLLBACK TO before")
            assert 30 <= usage(conn, "queues") <= 32
            session.execute("COMMIT")
    assert take(other, "one") == [1]
    for n in range(1, 41):
        db.execute(hog, "SELECT aq.drop_queue(%s)", [f"warm{n}"])


# --- dequeues from queue tables


@pytest.fixture()
def tables(server, conn, roles):
    """A queue of each role, with messages, and a topic with 600 consumers, in queue tables."""
    for name in ("theirs", "hogs", "wide"):
        db.execute(conn, "SELECT aq.create_queue_table(%s, multiple_consumers => %s)", [name + "_t", name == "wide"])
        db.execute(conn, "SELECT aq.create_queue(%s, queue_table => %s)", [name, name + "_t"])
        db.execute(conn, "SELECT aq.grant_queue(%s, %s, 'all')", [name, "other" if name == "theirs" else "hog"])
    db.execute(conn, "SELECT aq.subscribe('wide', 'c' || n) FROM generate_series(1, 600) n")
    put_many(conn, "theirs", 1, 10)
    yield
    with server.connect() as end:  # the server may have been killed meanwhile
        # a test that has failed leaves a transaction open
        end.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hog'")
        for name in ("theirs", "hogs", "wide"):
            db.execute(end, "SELECT aq.drop_queue_table(%s, force => true)", [name + "_t"])


def test_dequeues_below_savepoints(conn, hog, other, tables):
    """A rollback to each savepoint would be an attempt of its own."""
    number = 1500  # more than the limit of a server of any version: it grows with the number of processes
    put_many(conn, "hogs", 1, number)
    hog.execute("BEGIN")
    with pytest.raises(db.Error) as error:
        for n in range(number):
            hog.execute(f"SAVEPOINT s{n}")
            assert take(hog, "hogs", number=1) == [n + 1]
    assert error.value.sqlstate == "53400" and 'transactions of role "hog"' in str(error.value), error.value
    assert "max_connections" in error.value.diag.message_hint and "pgaq.role_share" in error.value.diag.message_hint
    assert (
        usage(conn, "dequeues") == n == db.value(conn, "SELECT role_limit FROM aq.role_usage WHERE resource = 'dequeues' AND role = 'hog'")
    )
    assert take(other, "theirs", number=1) == [1]
    hog.execute("ROLLBACK")
    until(lambda: usage(conn, "dequeues") == 0, "all attempts counted")
    attempts = "SELECT attempts, count(*)::int FROM aq.messages WHERE queue_name = 'hogs' GROUP BY 1 ORDER BY 1"
    assert [tuple(row) for row in conn.execute(attempts)] == [(0, number - n), (1, n)]
    assert db.rows(conn, "SELECT * FROM aq.check()") == []


def test_dequeues_of_a_rule(server, conn, hog, tables):
    """What a rule dequeues in a superuser's transaction is its author's: a superuser has no limit."""
    db.execute(conn, "CREATE SCHEMA lair AUTHORIZATION hog")
    db.execute(conn, "GRANT USAGE ON SCHEMA lair TO PUBLIC")
    db.execute(conn, "SELECT aq.enqueue('wide', '1')")
    hog.execute(
        "CREATE FUNCTION lair.eat() RETURNS boolean LANGUAGE plpgsql AS "
        "'BEGIN FOR n IN 1..600 LOOP PERFORM aq.dequeue(''wide'', ''c'' || n); END LOOP; RETURN true; END'"
    )
    db.execute(hog, "SELECT aq.create_queue('trap', multiple_consumers => true)")
    db.execute(hog, "SELECT aq.subscribe('trap', 'spider', rule => 'lair.eat()')")
    conn.execute("BEGIN")
    db.execute(conn, "SELECT aq.enqueue('trap', '1')")
    assert (usage(conn, "dequeues"), usage(conn, "dequeues", "postgres")) == (600, 0)
    conn.execute("ROLLBACK")
    until(lambda: usage(conn, "dequeues") == 0, "all attempts counted")
    db.execute(hog, "SELECT aq.drop_queue('trap', force => true)")
    db.execute(conn, "DROP SCHEMA lair CASCADE")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("how", ["nothing", "kill"])
def test_prepared_for_many_consumers(server, hog, tables, how, end):
    """A transaction with ten messages for each of 600 consumers and one more for some needs a few entries."""
    hog.execute("BEGIN")
    db.execute(hog, "SELECT aq.enqueue('wide', to_jsonb(n)) FROM generate_series(1, 10) n")
    db.execute(hog, "SELECT aq.enqueue('wide', '11', recipients => '{c1,c2,c3}')")
    hog.execute("PREPARE TRANSACTION 'wide'")
    if how == "kill":
        server.kill()
        server.start()
    with server.connect() as conn:
        assert db.rows(conn, "SELECT * FROM aq.browse('wide', 'c1')") == []
        # ten, eleven, and the queue's own
        assert usage(conn, "dequeues") <= 4
        conn.execute(f"{end} PREPARED 'wide'")
        until(lambda: usage(conn, "dequeues") == 0, "what is committed counted")
        number = {"COMMIT": [10, 11], "ROLLBACK": [0, 0]}[end]
        lags = "SELECT lag FROM aq.metrics() WHERE queue_name = 'wide' AND consumer = %s"
        assert [db.value(conn, lags, [consumer]) for consumer in ("c600", "c3")] == number
        assert db.rows(conn, "SELECT * FROM aq.check()") == []


def test_prepared_with_many_savepoints(server, hog, tables):
    """After a restart, a prepared transaction has one entry for all that it has dequeued for a consumer."""
    with server.connect() as conn:
        put_many(conn, "hogs", 1, 300)
        hog.execute("BEGIN")
        for n in range(1, 251):
            hog.execute("SAVEPOINT s")
            assert take(hog, "hogs", number=1) == [n]
            conn.execute("SELECT pg_current_xact_id()")
            hog.execute("RELEASE s")
        hog.execute("PREPARE TRANSACTION 'deep'")
    server.kill()
    server.start()
    with server.connect() as conn:
        assert take(conn, "hogs", number=1) == []  # behind those in doubt
        assert usage(conn, "dequeues") == 1
        conn.execute("ROLLBACK PREPARED 'deep'")
        until(lambda: usage(conn, "dequeues") == 0, "all attempts counted")
        attempts = "SELECT attempts, count(*)::int FROM aq.messages WHERE queue_name = 'hogs' GROUP BY 1 ORDER BY 1"
        assert [tuple(row) for row in conn.execute(attempts)] == [(0, 50), (1, 250)]
        assert db.rows(conn, "SELECT * FROM aq.check()") == []
