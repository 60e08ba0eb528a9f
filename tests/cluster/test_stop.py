"""Stopping a queue: aq.stop_queue(wait => true) and who uses the queue meanwhile."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, put, stopped_worker, take, until
from pgaq import db
from test_wait import Waiter, asleep, stable

SETTINGS = {"max_prepared_transactions": "10"}

STOP = "SELECT aq.stop_queue(%s, wait => true)"


def waits(conn):
    """Does a session wait for the users of a queue?"""
    return db.value(conn, """SELECT count(*) FROM sys."v$session_wait" WHERE event = 'aq: queue in use'""") > 0


@pytest.fixture
def stopping(server, conn, queue):
    """Begins to stop the queue in a separate session, when called; returns the pending result."""
    with server.connect() as stopper, ThreadPoolExecutor() as pool:

        def begin(statement=STOP):
            result = pool.submit(lambda: stopper.execute(statement, [queue]).fetchall())
            until(lambda: waits(conn), "the wait")
            return result

        begin.session = stopper
        yield begin


@pytest.mark.parametrize("use", ["enqueue", "dequeue"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_waits_for_transactions(server, conn, queue, stopping, use, end):
    put(conn, queue, 1)
    with server.connect() as user:
        user.execute("BEGIN")
        if use == "enqueue":
            put(user, queue, 2)
        else:
            assert take(user, queue) == [1]
        stopped = stopping()
        # users of the queue continue, other sessions are refused
        put(user, queue, 3)
        with pytest.raises(db.Error, match="being stopped for enqueue"):
            put(conn, queue, 4)
        with pytest.raises(db.Error, match="being stopped for dequeue"):
            take(conn, queue)
        user.execute(end)
        stopped.result(PATIENCE)
    with pytest.raises(db.Error, match="is stopped for enqueue"):
        put(conn, queue, 5)
    db.execute(conn, "SELECT aq.start_queue(%s)", [queue])
    left = [1] if end == "ROLLBACK" else [1, 2, 3] if use == "enqueue" else [3]
    assert sorted(take(conn, queue)) == left


def lease(conn, queue):
    return conn.execute("SELECT msgid, receipt FROM aq.dequeue(%s, lease => '1 hour')", [queue]).fetchone()


def acknowledge(conn, queue, lease):
    return db.value(conn, "SELECT result FROM aq.acknowledge(%s, ARRAY[%s], %s)", [queue, *lease])


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_waits_for_acknowledgements(server, conn, queue, stopping, end):
    """But not for those that begin later, which a stopped queue does not refuse."""
    put(conn, queue, 1, 2)
    first, second = lease(conn, queue), lease(conn, queue)
    with server.connect() as user, server.connect() as late:
        user.execute("BEGIN")
        assert acknowledge(user, queue, first) == "done"
        stopped = stopping()
        late.execute("BEGIN")
        assert acknowledge(late, queue, second) == "done"
        assert waits(conn)
        user.execute(end)
        stopped.result(PATIENCE)
        late.execute("COMMIT")
        assert acknowledge(late, queue, second) == "stale"
        assert acknowledge(late, queue, first) == ("stale" if end == "COMMIT" else "done")


def test_does_not_wait_for_stale_acknowledgements(server, conn, queue):
    """They have changed nothing."""
    put(conn, queue, 1)
    msgid, receipt = lease(conn, queue)
    with server.connect() as user:
        user.execute("BEGIN")
        assert acknowledge(user, queue, (msgid, receipt + 1)) == "stale"
        db.execute(conn, STOP, [queue])


def test_waits_for_prepared_transactions(server, conn, queue, stopping):
    with server.connect() as user:
        user.execute("BEGIN")
        put(user, queue, 1)
        user.execute("PREPARE TRANSACTION 'stop'")
    stopped = stopping()
    conn.execute("COMMIT PREPARED 'stop'")
    stopped.result(PATIENCE)


def test_waits_for_prepared_transactions_after_a_restart(server, queue):
    with server.connect() as user:
        user.execute("BEGIN")
        put(user, queue, 1)
        user.execute("PREPARE TRANSACTION 'stop'")
    server.restart("immediate")
    with server.connect() as conn, server.connect() as stopper, ThreadPoolExecutor() as pool:
        stopped = pool.submit(lambda: stopper.execute(STOP, [queue]).fetchall())
        until(lambda: waits(conn), "the wait")
        conn.execute("ROLLBACK PREPARED 'stop'")
        stopped.result(PATIENCE)


def test_a_cancelled_stop_lets_everybody_in_again(server, conn, queue, stopping):
    with server.connect() as user:
        user.execute("BEGIN")
        put(user, queue, 1)
        stopped = stopping()
        db.execute(conn, "SELECT pg_cancel_backend(%s)", [stopping.session.info.backend_pid])
        with pytest.raises(db.Error, match="canceling statement"):
            stopped.result(PATIENCE)
        put(conn, queue, 2)
        user.execute("COMMIT")
    assert sorted(take(conn, queue)) == [1, 2]


def test_who_waits_for_messages_does_not_use_the_queue(server, conn, queue):
    """A waiting consumer gets an error when the queue is stopped; its transaction does not delay the stop."""
    with server.connect() as consumer, ThreadPoolExecutor() as pool:
        consumer.execute("BEGIN")
        assert take(consumer, queue) == []
        waiting = pool.submit(lambda: consumer.execute("SELECT payload FROM aq.dequeue(%s, wait => '1 min')", [queue]).fetchall())
        until(lambda: db.value(conn, "SELECT waiting FROM aq.subscribers WHERE queue_name = %s", [queue]) == 1, "the consumer")
        db.execute(conn, STOP, [queue])
        with pytest.raises(db.Error, match="stopped for dequeue"):
            waiting.result(PATIENCE)


def test_own_messages_do_not_matter(conn, queue):
    """As the transaction of the stop itself: it commits them with it."""
    conn.execute("BEGIN")
    put(conn, queue, 1)
    db.execute(conn, STOP, [queue])
    conn.execute("COMMIT")
    db.execute(conn, "SELECT aq.start_queue(%s)", [queue])
    assert take(conn, queue) == [1]


def test_dbms_aqadm(server, conn, queue):
    with server.connect() as user:
        user.execute("BEGIN")
        put(user, queue, 1)
        with pytest.raises(db.Error, match="ORA-24018"):
            db.execute(conn, "CALL dbms_aqadm.stop_queue(%s, wait => false)", [queue])
        user.execute("COMMIT")
    db.execute(conn, "CALL dbms_aqadm.stop_queue(%s)", [queue])
    assert db.value(conn, "SELECT enqueue_enabled FROM aq.queues WHERE queue_name = %s", [queue]) is False


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_purge_that_waits(server, conn, queue, end):
    """A purge waits for messages in flight, and purges them if they are rolled back; sessions that come meanwhile wait,
    and continue."""
    put(conn, queue, 1, 2)
    blocked = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND pid = %s"
    with server.connect() as user, server.connect() as purger, server.connect() as late, ThreadPoolExecutor() as pool:
        user.execute("BEGIN")
        assert len(take(user, queue, number=1)) == 1
        purged = pool.submit(lambda: db.value(purger, "SELECT aq.purge_queue(%s, block => true)", [queue]))
        until(lambda: db.value(conn, blocked, [purger.info.backend_pid]), "the purge")
        found = pool.submit(take, late, queue)
        until(lambda: db.value(conn, blocked, [late.info.backend_pid]) or found.done(), "who comes late")
        user.execute(end)
        # who has come late may have been faster
        assert purged.result(PATIENCE) + len(found.result(PATIENCE)) == (1 if end == "COMMIT" else 2)
    assert take(conn, queue) == []


# --- dropping beside sessions that wait ------------------------------------------------

WAITS = {
    "wait": "CALL aq.wait('{0}', NULL, '1 min', NULL)",
    "listen": "CALL aq.listen(ARRAY['{0}'], NULL, '1 min')",
    "dequeue": "SELECT payload FROM aq.dequeue('{0}', wait => '1 min')",
    "receive": "CALL aq_jms.receive(ARRAY['{0}'], ARRAY[NULL], ARRAY[NULL], ARRAY[1], '1 min', messages => NULL)",
}
DROPPED = "42704"


@pytest.fixture
def waiter(server):
    made = []

    def make(queue, kind="receive"):
        made.append(Waiter(server, queue, statement=WAITS[kind].format(queue)))
        return made[-1].wait()

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("table", [False, True], ids=["", "table"])
@pytest.mark.parametrize("kind", WAITS)
def test_a_drop_with_force_ends_waits(server, conn, waiter, kind, table):
    """A session that waits has locks of the tables; the drop does not wait for its time limit."""
    name = f"drop_{kind}"
    if table:
        db.execute(conn, "SELECT aq.create_queue_table(%s)", [name])
    db.execute(conn, "SELECT aq.create_queue(%s, queue_table => %s)", [name, name if table else None])
    waiting = [waiter(name, kind) for _ in range(3)]
    asleep(conn, waiting)
    with server.connect(options=f"-c statement_timeout={PATIENCE}s") as dropper:
        db.execute(dropper, f"SELECT aq.drop_queue{'_table' if table else ''}(%s, force => true)", [name])
    # by this error, or because the queue is not there
    assert [one.answer() for one in waiting] == [DROPPED] * 3


@pytest.mark.parametrize("table", [False, True], ids=["", "table"])
@pytest.mark.parametrize("kind", ["dequeue", "receive"])
def test_a_drop_with_force_ends_waits_for_retry_counts(server, conn, waiter, kind, table):
    """Also those have locks of the tables, for seconds, or until a worker is there that writes the counts."""
    name = f"counts_{kind}_{table}".lower()
    if table:
        db.execute(conn, "SELECT aq.create_queue_table(%s)", [name])
    db.execute(conn, "SELECT aq.create_queue(%s, queue_table => %s)", [name, name if table else None])
    put(conn, name, 1)
    with server.connect() as user:
        user.execute("BEGIN")
        assert take(user, name) == [1]
        with stopped_worker(conn):
            user.execute("ROLLBACK")
            waiting = waiter(name, kind)
            counting = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = %s AND event = 'aq: retry count write'"""
            until(lambda: db.value(conn, counting, [waiting.pid]) == 1, "the wait for the retry count")
            with server.connect(options=f"-c statement_timeout={PATIENCE}s") as dropper:
                dropper.execute("BEGIN")
                dropper.execute("SELECT aq.drop_queue(%s, force => true)", [name])
                assert waiting.answer() == DROPPED
                dropper.execute("ROLLBACK")
    db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


@pytest.mark.parametrize("end", ["ROLLBACK", "SELECT pg_terminate_backend(pg_backend_pid())"])
def test_waits_go_on_after_a_drop_that_is_rolled_back(server, conn, queue, waiter, end):
    """What says that a queue is dropped ends with the transaction, also if its session dies."""
    waiting = waiter(queue, "wait")
    asleep(conn, [waiting])
    with server.connect() as dropper:
        pid = dropper.info.backend_pid
        dropper.execute("BEGIN")
        dropper.execute("SELECT aq.drop_queue(%s, force => true)", [queue])
        assert waiting.answer() == DROPPED
        with contextlib.suppress(psycopg.OperationalError):
            dropper.execute(end)
    until(lambda: not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]), "its end")
    waiting.wait()
    asleep(conn, [waiting])
    put(conn, queue, 1)
    assert waiting.answer() == "t"


# --- pausing ---------------------------------------------------------------------------

PAUSED = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = ANY (%s) AND state = 'WAITING' AND event = 'aq: consumer paused'"""


def paused(conn, waiting):
    """Do all of them wait for aq.resume?"""
    return db.value(conn, PAUSED, [[one.pid for one in waiting]]) == len(waiting)


@pytest.mark.parametrize("table", [False, True], ids=["", "table"])
@pytest.mark.parametrize("kind", WAITS)
def test_a_pause_keeps_waiting_consumers_asleep(server, conn, waiter, kind, table):
    """Messages do not wake them, the end of the pause does."""
    name = f"pause_{kind}"
    if table:
        db.execute(conn, "SELECT aq.create_queue_table(%s)", [name])
    db.execute(conn, "SELECT aq.create_queue(%s, queue_table => %s)", [name, name if table else None])
    early = waiter(name, kind)
    asleep(conn, [early])
    db.execute(conn, "SELECT aq.pause(%s)", [name])
    waiting = [early, waiter(name, kind)]
    until(lambda: paused(conn, waiting), "the wait for the end of the pause")
    until(lambda: all(stable(one) for one in waiting), "everybody asleep")
    before = [one.switches() for one in waiting]
    put(conn, name, 1, 2)
    assert paused(conn, waiting)
    assert [one.switches() for one in waiting] == before
    db.execute(conn, "SELECT aq.resume(%s)", [name])
    for one in waiting:
        assert one.answer() is not None
    assert len(take(conn, name)) == (0 if kind in ("dequeue", "receive") else 2)
    db.execute(conn, "SELECT aq.drop_queue(%s, force => true)", [name])


def test_a_paused_consumer_of_a_topic(server, conn, topic, waiter):
    """The others go on; the pause is there after a crash."""
    statement = "SELECT payload FROM aq.dequeue('{0}', consumer => '{1}', wait => '1 min')"
    db.execute(conn, "SELECT aq.pause(%s, 'a', 'a test')", [topic])
    a, b = (Waiter(server, topic, statement=statement.format(topic, name)).wait() for name in "ab")
    until(lambda: paused(conn, [a]), "the paused one")
    put(conn, topic, 1)
    assert b.answer() == "1"
    assert not a.done()
    a.close()
    b.close()
    server.restart("immediate")
    with server.connect() as again:
        assert db.value(again, "SELECT pause_reason FROM aq.subscribers WHERE queue_name = %s AND paused IS NOT NULL", [topic]) == "a test"
        assert take(again, topic, "a") == []
        a = Waiter(server, topic, statement=statement.format(topic, "a")).wait()
        until(lambda: paused(again, [a]), "the paused one")
        db.execute(again, "SELECT aq.resume(%s, 'a')", [topic])
        assert a.answer() == "1"
        a.close()
