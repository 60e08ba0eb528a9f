"""Deadlocks that pass through waits of pgaq: a session of the circle gets the server's error, and the others go on."""

from __future__ import annotations

from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from conftest import PATIENCE, put, until
from pgaq import db

# no wait ends by its own limit
SETTINGS = {
    "pgaq.buffered_message_limit": "3",
    "pgaq.flow_control_timeout": "10 min",
    "pgaq.message_cache_size": "4MB",
    "deadlock_timeout": "100ms",
    "max_prepared_transactions": "2",
}

STOPS = "aq: queue in use"
FLOWS = "Streams AQ: enqueue blocked due to flow control"
FULL = "aq: message cache full"
BUFFERED = {"delivery_mode": "buffered"}


@pytest.fixture(scope="module", autouse=True)
def table(server):
    with server.connect() as conn:
        conn.execute("CREATE TABLE work (id integer PRIMARY KEY, n integer); INSERT INTO work VALUES (1, 0), (2, 0)")


class Sessions:
    """Sessions in transactions; each executes its statements in a thread of its own."""

    def __init__(self, server, conn):
        self.server, self.conn = server, conn
        self.stack = ExitStack()
        self.pool = self.stack.enter_context(ThreadPoolExecutor())
        self.ended = False

    def new(self) -> db.Connection:
        session = self.stack.enter_context(self.server.connect())
        session.execute("BEGIN")
        return session

    def start(self, session: db.Connection, statement: str, *parameters: Any) -> Future:
        return self.pool.submit(lambda: session.execute(statement, parameters).fetchall())

    def row(self, session: db.Connection, number: int = 1) -> Future:
        return self.start(session, "UPDATE work SET n = n + 1 WHERE id = %s RETURNING n", number)

    def wait_for_lock(self, session: db.Connection) -> None:
        query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        until(lambda: db.value(self.conn, query, [session.info.backend_pid]), "the wait for a lock")

    def wait_for(self, session: db.Connection, event: str) -> None:
        query = "SELECT count(*) FROM aq.sessions WHERE waiting AND pid = %s AND event = %s"
        until(lambda: db.value(self.conn, query, [session.info.backend_pid, event]), event)


@pytest.fixture
def sessions(server, conn):
    sessions = Sessions(server, conn)
    yield sessions
    # a thread that still waits would keep the test
    conn.execute(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    sessions.stack.close()


def stop(sessions, session, queue):
    stopped = sessions.start(session, "SELECT aq.stop_queue(%s, wait => true)", queue)
    sessions.wait_for(session, STOPS)
    return stopped


def enqueue_buffered(sessions, session, queue):
    enqueued = sessions.start(session, "SELECT aq.enqueue(%s, '9', delivery_mode => 'buffered')", queue)
    sessions.wait_for(session, FLOWS)
    return enqueued


def take_buffered(session, queue, number=1):
    assert (
        len(
            session.execute(
                "SELECT payload FROM aq.dequeue(%s, max_messages => %s, delivery_mode => 'buffered')", [queue, number]
            ).fetchall()
        )
        == number
    )


def deadlock(result: Future) -> db.Error:
    with pytest.raises(db.Error) as caught:
        result.result(PATIENCE)
    assert caught.value.sqlstate == "40P01", caught.value
    return caught.value


def end(*conns: db.Connection) -> None:
    for conn in conns:
        conn.execute("ROLLBACK")


def checked_again(sessions, session):
    """Returns when the session's wait has looked for a deadlock several more times, each between two sleeps."""
    query = 'SELECT "seq#" FROM sys.v$session_wait WHERE pid = %s'
    before = db.value(sessions.conn, query, [session.info.backend_pid])
    until(lambda: db.value(sessions.conn, query, [session.info.backend_pid]) > before + 4, "more sleeps")


def test_a_stop_and_a_user(queue, sessions):
    """The queue's user waits for a row of the session that stops it."""
    stopper, user = sessions.new(), sessions.new()
    sessions.row(stopper).result(PATIENCE)
    put(user, queue, 1)
    stopped = stop(sessions, stopper, queue)
    changed = sessions.row(user)
    error = deadlock(stopped)
    a, b = stopper.info.backend_pid, user.info.backend_pid
    number = db.value(sessions.conn, "SELECT queue_id FROM aq.queues WHERE queue_name = %s", [queue])
    assert error.diag.message_detail.splitlines()[0] == f'Process {a} waits for "{STOPS}", queue id {number}; blocked by process {b}.'
    assert error.diag.message_detail.splitlines()[1].startswith(f"Process {b} waits for ShareLock on transaction ")
    assert error.diag.message_detail.endswith(f"; blocked by process {a}.")
    end(stopper)
    assert changed.result(PATIENCE)
    end(user)


def test_a_stop_and_a_user_through_others(queue, sessions):
    """The user waits for a third session, which waits for the one that stops."""
    stopper, user, third = sessions.new(), sessions.new(), sessions.new()
    sessions.row(stopper, 1).result(PATIENCE)
    sessions.row(third, 2).result(PATIENCE)
    put(user, queue, 1)
    stopped = stop(sessions, stopper, queue)
    sessions.row(user, 2)
    thirds = sessions.row(third, 1)
    assert len(deadlock(stopped).diag.message_detail.splitlines()) == 3
    end(stopper)
    assert thirds.result(PATIENCE)


def test_two_stops(queue, topic, sessions):
    """Each session uses the queue that the other one stops: one of them gets the error."""
    one, two = sessions.new(), sessions.new()
    put(one, queue, 1)
    two.execute("SELECT aq.subscribe(%s, 's')", [topic])
    two.execute("COMMIT; BEGIN")
    put(two, topic, 1)
    stops = {one: stop(sessions, one, topic)}
    stops[two] = sessions.start(two, "SELECT aq.stop_queue(%s, wait => true)", queue)
    lower, higher = sorted([one, two], key=lambda session: session.info.backend_pid)
    deadlock(stops[lower])
    end(lower)
    stops[higher].result(PATIENCE)


def test_a_stop_waits_for_a_user_that_goes_on(queue, sessions):
    """A session that waits for the stopping one, and does not use the queue, is no reason; the view names the user."""
    stopper, user, other = sessions.new(), sessions.new(), sessions.new()
    sessions.row(stopper).result(PATIENCE)
    put(user, queue, 1)
    stopped = stop(sessions, stopper, queue)
    changed = sessions.row(other)
    sessions.wait_for_lock(other)
    query = "SELECT b.pid FROM aq.sessions s JOIN aq.sessions b ON b.session = s.blocking_session WHERE s.waiting AND s.event = %s"
    assert until(lambda: db.value(sessions.conn, query, [STOPS])) == user.info.backend_pid
    checked_again(sessions, stopper)
    user.execute("COMMIT")
    stopped.result(PATIENCE)
    stopper.execute("COMMIT")
    assert changed.result(PATIENCE)


@pytest.fixture
def many(conn):
    names = [f"deadlock_{n}" for n in range(20)]
    conn.execute("SELECT count(aq.create_queue(name, shards => 1)) FROM unnest(%s::text[]) name", [names])
    yield names
    conn.execute("SELECT count(aq.drop_queue(name, force => true)) FROM unnest(%s::text[]) name", [names])


def test_many_queues(queue, many, sessions):
    """A transaction that uses very many queues is found, too."""
    stopper, user = sessions.new(), sessions.new()
    sessions.row(stopper).result(PATIENCE)
    for name in [*many, queue]:
        put(user, name, 1)
    stopped = stop(sessions, stopper, queue)
    sessions.row(user)
    deadlock(stopped)
    end(stopper)
    until(lambda: user.info.transaction_status.name == "INTRANS")
    end(user)
    # it uses none any more
    put(user, queue, 1)
    sessions.conn.execute("SELECT aq.stop_queue(%s, wait => true)", [many[0]])


def test_many_other_queues(queue, many, sessions):
    """A transaction that uses very many queues, but not this one, is no reason."""
    stopper, user, other = sessions.new(), sessions.new(), sessions.new()
    sessions.row(stopper).result(PATIENCE)
    put(user, queue, 1)
    for name in many:
        put(other, name, 1)
    stopped = stop(sessions, stopper, queue)
    changed = sessions.row(other)
    sessions.wait_for_lock(other)
    checked_again(sessions, stopper)
    user.execute("COMMIT")
    stopped.result(PATIENCE)
    stopper.execute("COMMIT")
    assert changed.result(PATIENCE)
    end(other)


def test_flow_control_and_a_consumer(queue, sessions):
    """The consumer, which has taken all messages, waits for a row of the session that waits for room."""
    producer, consumer = sessions.new(), sessions.new()
    for n in range(3):
        put(sessions.conn, queue, n, **BUFFERED)
    sessions.row(producer).result(PATIENCE)
    take_buffered(consumer, queue, 3)
    enqueued = enqueue_buffered(sessions, producer, queue)
    changed = sessions.row(consumer)
    assert FLOWS in deadlock(enqueued).diag.message_detail
    end(producer)
    assert changed.result(PATIENCE)


@pytest.mark.parametrize(
    "other", ["another consumer", "a prepared one", "a new one", "one that got it by a rollback", "one that got it by a savepoint"]
)
def test_flow_control_and_a_consumer_that_goes_on(queue, sessions, other):
    """There is no deadlock while another consumer has taken a message, or can take one."""
    producer, consumer, free = sessions.new(), sessions.new(), sessions.new()
    for n in range(3):
        put(sessions.conn, queue, n, **BUFFERED)
    sessions.row(producer).result(PATIENCE)
    take_buffered(consumer, queue, 2)
    if other == "one that got it by a savepoint":
        consumer.execute("SAVEPOINT before")
        take_buffered(consumer, queue)
        consumer.execute("ROLLBACK TO before")
    elif other != "a new one":
        take_buffered(free, queue)
    if other == "one that got it by a rollback":
        free.execute("ROLLBACK; BEGIN")
    if other == "a prepared one":
        free.execute("PREPARE TRANSACTION 'free'")
    enqueued = enqueue_buffered(sessions, producer, queue)
    changed = sessions.row(consumer)
    sessions.wait_for_lock(consumer)
    checked_again(sessions, producer)
    if other not in ("another consumer", "a prepared one"):
        take_buffered(free, queue)
    free.execute("COMMIT PREPARED 'free'" if other == "a prepared one" else "COMMIT")
    enqueued.result(PATIENCE)
    producer.execute("COMMIT")
    assert changed.result(PATIENCE)


def test_flow_control_and_own_messages(queue, sessions):
    """Messages that a transaction has enqueued itself are not those for which others wait."""
    producer, consumer = sessions.new(), sessions.new()
    put(sessions.conn, queue, 1, **BUFFERED)
    sessions.row(producer).result(PATIENCE)
    for n in range(2):
        put(consumer, queue, n, **BUFFERED)
    take_buffered(consumer, queue, 3)
    for n in range(2):
        put(sessions.conn, queue, n, **BUFFERED)
    enqueued = enqueue_buffered(sessions, producer, queue)
    changed = sessions.row(consumer)
    sessions.wait_for_lock(consumer)
    checked_again(sessions, producer)
    take_buffered(sessions.conn, queue)
    enqueued.result(PATIENCE)
    producer.execute("COMMIT")
    assert changed.result(PATIENCE)


def test_flow_control_and_another_subscriber(topic, sessions):
    """A consumer that cannot make room for the slow one does not count."""
    producer, consumer = sessions.new(), sessions.new()
    sessions.conn.execute(
        "SELECT aq.subscribe(%s, 'slow', delivery_mode => 'buffered'), aq.subscribe(%s, 'fast', delivery_mode => 'buffered')",
        [topic, topic],
    )
    for n in range(3):
        put(sessions.conn, topic, n, **BUFFERED)
    sessions.row(producer).result(PATIENCE)
    take = "SELECT payload FROM aq.dequeue(%s, consumer => %s, delivery_mode => 'buffered')"
    assert consumer.execute(take, [topic, "fast"]).fetchall()
    enqueued = enqueue_buffered(sessions, producer, topic)
    changed = sessions.row(consumer)
    sessions.wait_for_lock(consumer)
    checked_again(sessions, producer)
    for consumer_name in ("slow", "fast"):
        assert sessions.conn.execute(take, [topic, consumer_name]).fetchall()
    enqueued.result(PATIENCE)
    producer.execute("COMMIT")
    assert changed.result(PATIENCE)


# --- the message cache: messages of a transaction keep a frame of 16384 in memory, seven of which fit

FRAME = 16384


def start_many(sessions, session, queue, number):
    return sessions.start(session, "SELECT cardinality(aq.enqueue_array(%s, array_fill('1'::text, ARRAY[%s::int])))", queue, number)


def keep(sessions, session, queue, frames):
    for _ in range(frames):
        start_many(sessions, session, queue, FRAME).result(PATIENCE)


def fill(sessions, session, queue):
    """The session waits for the message cache."""
    enqueued = start_many(sessions, session, queue, 2 * FRAME)
    sessions.wait_for(session, FULL)
    return enqueued


@pytest.mark.sharded("queue tables have no message cache")
def test_a_full_cache_and_a_transaction(queue, sessions):
    """The transaction that keeps most of the cache waits for a row of the session that waits for memory.

    A walsender in a transaction, which is no worker either, cannot end the wait.
    """
    waiter, keeper = sessions.new(), sessions.new()
    walsender = sessions.server.connect(replication="database")
    sessions.stack.callback(walsender.close)
    walsender.execute("BEGIN")
    walsender.execute(f"SELECT count(*) FROM aq.dequeue('{queue}')")  # it understands no parameters
    sessions.row(waiter).result(PATIENCE)
    keep(sessions, keeper, queue, 6)
    filled = fill(sessions, waiter, queue)
    changed = sessions.row(keeper)
    assert FULL in deadlock(filled).diag.message_detail
    end(waiter)
    assert changed.result(PATIENCE)
    end(keeper)


@pytest.mark.sharded("queue tables have no message cache")
def test_a_full_cache_and_one_that_goes_on(queue, many, sessions):
    """Another transaction keeps a part of it, and can end."""
    waiter, keeper, free = sessions.new(), sessions.new(), sessions.new()
    sessions.row(waiter).result(PATIENCE)
    keep(sessions, keeper, queue, 4)
    keep(sessions, free, many[0], 2)
    filled = fill(sessions, waiter, many[1])
    changed = sessions.row(keeper)
    sessions.wait_for_lock(keeper)
    checked_again(sessions, waiter)
    free.execute("COMMIT")
    filled.result(PATIENCE)
    waiter.execute("COMMIT")
    assert changed.result(PATIENCE)
    end(keeper)


@pytest.mark.sharded("queue tables have no message cache")
def test_a_full_cache_and_two_that_wait(queue, many, sessions):
    """Two sessions wait for memory, and each of the two that keep it waits for one of them."""
    waiters, keepers = [sessions.new(), sessions.new()], [sessions.new(), sessions.new()]
    filled, changed = [], []
    for n in range(2):
        sessions.row(waiters[n], n + 1).result(PATIENCE)
        keep(sessions, keepers[n], many[n], 3)
    for n in range(2):
        filled.append(fill(sessions, waiters[n], many[2 + n]))
    for n in range(2):
        changed.append(sessions.row(keepers[n], n + 1))
    ended = list(futures.wait(filled, PATIENCE, futures.FIRST_COMPLETED).done)
    for result in ended:
        deadlock(result)
        n = filled.index(result)
        end(waiters[n])
        assert changed[n].result(PATIENCE)
        end(keepers[n])
    for n in range(2):
        if filled[n] not in ended:
            assert filled[n].result(PATIENCE)
            waiters[n].execute("COMMIT")
            assert changed[n].result(PATIENCE)
            end(keepers[n])
