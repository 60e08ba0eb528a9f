"""What is counted of queues and consumers: the latency of messages and its histogram, delays and expirations, also of prepared transactions.

Latencies are compared with the server's clock, read before and after each step, so no figure depends on how fast anything is.
"""

from __future__ import annotations

import pytest

from conftest import arrived, put, put_many, take, until
from pgaq import db

SETTINGS = {"max_prepared_transactions": "10"}


def clock(conn):
    """The server's, microseconds."""
    return db.value(conn, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


def latency(conn, queue, consumer=None):
    """Messages consumed, and their latency in all."""
    query = "SELECT consumed, latency_us FROM aq.subscribers WHERE queue_name = %s AND consumer IS NOT DISTINCT FROM %s"
    return conn.execute(query, [queue, consumer]).fetchone()


def waits(conn, queue, delivery_mode="persistent"):
    """How many messages had waited until they were taken, and how long in all, microseconds; the buckets agree."""
    query = """SELECT messages, round(total_seconds * 1000000)::bigint, (SELECT coalesce(sum(b), 0) FROM unnest(buckets) b) = messages,
            CASE WHEN messages > 0 THEN total_seconds * 1000000 / messages END,
            aq.latency_percentile(buckets, 0), coalesce(aq.latency_percentile(buckets, 1), 0), p50_seconds <= p99_seconds
        FROM aq.latencies WHERE queue_name = %s AND delivery_mode = %s"""
    number, micros, same, mean, low, high, ordered = conn.execute(query, [queue, delivery_mode]).fetchone()
    assert same
    if number:
        assert ordered and low * 1000000 <= mean <= high * 1000000
    return number, micros


def of_queue(conn, queue):
    return conn.execute("SELECT consumed, latency FROM aq_internal.queue_traffic(%s)", [queue]).fetchone()


def counted(conn, queue):
    """Messages enqueued and committed; of these: with an expiration, with a delay."""
    query = (
        """SELECT c.enqueued, t.enqueued_expiry, t.enqueued_delay FROM aq_internal.queue_counters(%s) c, aq_internal.queue_traffic(%s) t"""
    )
    return conn.execute(query, [queue, queue]).fetchone()


def remove(conn, queue, **options):
    """Dequeue one message by these options; its payload."""
    more = "".join(f", {name} => %s" for name in options)
    return db.value(conn, f"SELECT payload FROM aq.dequeue(%s{more})", [queue, *options.values()])


def by_calls(conn, queue):
    return [remove(conn, queue) for _ in range(3)]


def by_one_call(conn, queue):
    return take(conn, queue)


def by_condition(conn, queue):
    return [remove(conn, queue, condition=f"payload = '{n}'") for n in (1, 2, 3)]


def by_id_after_locking(conn, queue):
    locked = conn.execute("SELECT msgid FROM aq.dequeue(%s, max_messages => 3, mode => 'locked')", [queue]).fetchall()
    return [remove(conn, queue, msgid=msgid) for (msgid,) in locked]


def in_savepoints(conn, queue):
    conn.execute("SAVEPOINT s")
    taken = [remove(conn, queue)]
    conn.execute("RELEASE s")
    conn.execute("SAVEPOINT s")
    assert take(conn, queue) == [2, 3]
    conn.execute("ROLLBACK TO s")
    return taken + take(conn, queue)


@pytest.mark.parametrize("way", [by_calls, by_one_call, by_condition, by_id_after_locking, in_savepoints])
def test_latency(conn, queue, way):
    """The latency from the enqueue to the commit of the dequeue counts once for each message, however it was taken;
    rolled back dequeues do not count."""
    before = clock(conn)
    put(conn, queue, 1)
    put_many(conn, queue, 2, 3)
    behind = clock(conn)
    with conn.transaction(force_rollback=True):
        assert take(conn, queue) == [1, 2, 3]
    assert latency(conn, queue) == of_queue(conn, queue) == waits(conn, queue) == (0, 0)
    asked = clock(conn)
    with conn.transaction():
        assert way(conn, queue) == [1, 2, 3]
        taken = clock(conn)
        assert of_queue(conn, queue) == waits(conn, queue) == (0, 0), "before the commit"
    after = clock(conn)
    number, micros = latency(conn, queue)
    assert number == 3
    assert 3 * (taken - behind) <= micros <= 3 * (after - before)
    assert of_queue(conn, queue) == (number, micros)
    number, micros = waits(conn, queue)
    assert number == 3
    assert 3 * (asked - behind) <= micros <= 3 * (taken - before)


def test_waits_with_a_delay(conn, queue):
    """A wait begins at the end of the delay, also of a message whose first dequeue was rolled back."""
    before = clock(conn)
    put(conn, queue, 1, delay="300 ms")
    behind = clock(conn)
    with conn.transaction(force_rollback=True):
        assert remove(conn, queue, wait="10 s") == 1
    assert waits(conn, queue) == (0, 0)
    asked = clock(conn)
    assert arrived(conn, queue, 1) == [1]
    after = clock(conn)
    number, micros = waits(conn, queue)
    assert number == 1
    assert asked - behind - 300_000 <= micros <= after - before - 300_000


def test_waits_of_leases(conn, queue):
    """A lease counts when it is taken and committed, its end does not."""
    put(conn, queue, 1)
    with conn.transaction(force_rollback=True):
        assert conn.execute("SELECT payload FROM aq.dequeue(%s, lease => '1 hour')", [queue]).fetchall() == [(1,)]
    assert waits(conn, queue) == (0, 0)
    until(lambda: conn.execute("SELECT ready FROM aq.metrics(%s)", [queue]).fetchone()[0] != 0, "it is given back")
    msgid, receipt = conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 hour', wait => '10 s')", [queue]).fetchone()
    counted_once = waits(conn, queue)
    assert counted_once[0] == 1
    conn.execute("SELECT aq.acknowledge(%s, %s, %s)", [queue, msgid, receipt])
    assert waits(conn, queue) == counted_once


def test_waits_of_immediate_and_buffered(conn, queue):
    """Immediate visibility: it counts though the transaction is rolled back.  Buffered messages count apart."""
    put(conn, queue, 1)
    with conn.transaction(force_rollback=True):
        assert remove(conn, queue, visibility="immediate") == 1
    assert waits(conn, queue)[0] == 1
    put(conn, queue, 2, delivery_mode="buffered")
    assert remove(conn, queue, delivery_mode="buffered") == 2
    assert (waits(conn, queue)[0], waits(conn, queue, "buffered")[0]) == (1, 1)


def test_latency_of_own_messages(conn, queue):
    """Enqueued and dequeued by one transaction; what it leaves is counted when that is taken."""
    before = clock(conn)
    with conn.transaction():
        put(conn, queue, 1, 2)
        behind = clock(conn)
        assert take(conn, queue, number=1) == [1]
        taken = clock(conn)
    after = clock(conn)
    number, micros = latency(conn, queue)
    assert number == 1
    assert taken - behind <= micros <= after - before
    assert take(conn, queue) == [2]
    assert latency(conn, queue)[0] == 2


def test_latency_of_subscribers(conn, topic):
    """Each has its own; the queue's is the sum.  Purged messages were consumed by nobody."""
    put_many(conn, topic, 1, 4)
    behind = clock(conn)
    assert take(conn, topic, "a") == [1, 2, 3, 4]
    between = clock(conn)
    assert take(conn, topic, "b", number=2) == [1, 2]
    a, b = latency(conn, topic, "a"), latency(conn, topic, "b")
    assert (a[0], b[0]) == (4, 2)
    assert b[1] >= 2 * (between - behind)
    assert of_queue(conn, topic) == (a[0] + b[0], a[1] + b[1])
    assert db.value(conn, "SELECT aq.purge_queue(%s)", [topic]) == 2
    assert (latency(conn, topic, "a"), latency(conn, topic, "b")) == (a, b)


def test_latency_of_the_latest(conn, queue):
    """v$persistent_queues shows that of the message taken last, in seconds."""
    latest = "SELECT dequeued_msg_latency * 1000000 FROM sys.v$persistent_queues WHERE queue_name = upper(%s)"
    assert db.value(conn, latest, [queue]) is None
    put(conn, queue, 1)
    put(conn, queue, 2)
    assert take(conn, queue, number=1) == [1]
    first = latency(conn, queue)[1]
    assert db.value(conn, latest, [queue]) == first
    assert take(conn, queue) == [2]
    assert db.value(conn, latest, [queue]) == latency(conn, queue)[1] - first


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("how", ["at once", "after a restart"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_prepared(server, request, kind, how, committed):
    """The enqueues and dequeues of a prepared transaction count when it is committed, not when it is rolled back,
    whichever session resolves it."""
    name = request.getfixturevalue(kind)
    consumer = {"queue": None, "topic": "a"}[kind]
    with server.connect() as conn:
        before = clock(conn)
        put(conn, name, 1, 2, expiration="1 hour")
        behind = clock(conn)
        conn.execute("BEGIN")
        assert take(conn, name, consumer, number=1) == [1]
        put(conn, name, 3, expiration="1 hour")
        put(conn, name, 4, delay="1 ms")
        conn.execute("PREPARE TRANSACTION 'counted'")
        assert (counted(conn, name), of_queue(conn, name)) == ((2, 2, 0), (0, 0))
        prepared = clock(conn)
    if how == "after a restart":
        server.restart()
    with server.connect() as conn:
        old = counted(conn, name)
        conn.execute(f"{'COMMIT' if committed else 'ROLLBACK'} PREPARED 'counted'")
        expected = [2, 3, 4] if committed else [1, 2]
        assert sorted(arrived(conn, name, len(expected), consumer)) == expected
        number = len(expected) + committed
        until(lambda: latency(conn, name, consumer)[0] == number, "all are counted")
        after = clock(conn)
        assert 2 * (prepared - behind) <= latency(conn, name, consumer)[1] <= number * (after - before)
        assert waits(conn, name)[0] == number
        if how == "at once":
            assert [b - a for a, b in zip(old, counted(conn, name))] == ([2, 1, 1] if committed else [0, 0, 0])


def test_time_of_subscribers(conn, topic):
    """The time of dequeues is divided among the subscribers without loss; so are their transactions, and the searches
    for messages."""
    put_many(conn, topic, 1, 40)
    for number in range(20):
        with conn.transaction():
            assert len(take(conn, topic, "a", number=1)) == 1
            if number % 2:
                assert len(take(conn, topic, "b", number=1)) == 1
            assert len(take(conn, topic, "a", number=1)) == 1
    query = """SELECT t.dequeue_elapsed = sum(c.dequeue_elapsed), t.dequeue_cpu = sum(c.dequeue_cpu), t.executions = sum(c.executions), t.dequeue_transactions,
        array_agg(c.dequeue_transactions ORDER BY position), array_agg(c.executions ORDER BY position), min(c.dequeue_elapsed) > 0, min(c.dequeue_cpu) > 0
        FROM aq_internal.queue q, aq_internal.queue_traffic(q.queue_name) t, aq_internal.consumers() c WHERE q.queue_name = %s AND c.queue_id = q.queue_id
        GROUP BY t.dequeue_elapsed, t.dequeue_cpu, t.executions, t.dequeue_transactions"""
    assert conn.execute(query, [topic]).fetchone() == (True, True, True, 20, [20, 10], [40, 10], True, True)


def test_time_of_rules(conn, topic):
    """Enqueues book what the rules of subscribers took, which is part of what the enqueues took; without rules there is nothing to book."""
    query = "SELECT rules_elapsed, enqueue_elapsed FROM aq_internal.queue_traffic(%s)"
    put(conn, topic, 1)
    assert conn.execute(query, [topic]).fetchone()[0] == 0
    conn.execute("SELECT aq.subscribe(%s, 'c', rule => 'payload::int > 1')", [topic])
    before = conn.execute(query, [topic]).fetchone()
    put(conn, topic, 2)
    rules, enqueues = (b - a for a, b in zip(before, conn.execute(query, [topic]).fetchone()))
    assert 0 < rules < enqueues
    conn.execute("SET pgaq.timed_statistics = off")
    put(conn, topic, 3)
    conn.execute("RESET pgaq.timed_statistics")
    assert [b - a for a, b in zip(before, conn.execute(query, [topic]).fetchone())] == [rules, enqueues]
