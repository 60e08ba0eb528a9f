"""max_running: the end of work wakes who waits for a place; what is in work is counted when a limit is set."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PATIENCE, held, put, take, until
from pgaq import db
from test_leases import Leased
from test_metrics import evict
from test_wait import Waiter, stable

pytestmark = pytest.mark.sharded("queue tables have no max_running")

SETTINGS = {"pgaq.message_cache_size": "8MB", "max_prepared_transactions": "20"}

LIMITED = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = ANY (%s) AND state = 'WAITING' AND event = 'aq: max_running'"""

WAITS = {
    "dequeue": "SELECT payload FROM aq.dequeue('{0}', wait => '1 min')",
    "condition": "SELECT payload FROM aq.dequeue('{0}', condition => 'true', wait => '1 min')",
    "wait": "CALL aq.wait('{0}', NULL, '1 min', NULL)",
    "listen": "CALL aq.listen(ARRAY['{0}'], NULL, '1 min', NULL, NULL)",
}


def running(conn, queue, consumer=None):
    query = "SELECT running FROM aq.subscribers WHERE queue_name = %s AND consumer IS NOT DISTINCT FROM %s"
    return db.value(conn, query, [queue, consumer])


def limit(conn, queue, number):
    db.execute(conn, "SELECT aq.alter_queue(%s, max_running => %s)", [queue, number])


def limited(conn, waiting):
    """Do all of them wait for a place, asleep?"""
    return db.value(conn, LIMITED, [[one.pid for one in waiting]]) == len(waiting) and all(stable(one) for one in waiting)


@pytest.fixture
def waiter(server):
    made = []

    def make(queue, kind="dequeue"):
        made.append(Waiter(server, queue, statement=WAITS[kind].format(queue)))
        return made[-1].wait()

    yield make
    for one in made:
        one.close()


def end(server, queue, how):
    """One message is in work; ends this by the returned function."""
    other = server.connect()
    if how in ("acknowledge", "release", "end_leases"):
        leased = Leased(other, queue, "1 hour", 1)
        call = {
            "acknowledge": lambda: leased.acknowledge(other),
            "release": lambda: leased.call(other, "release"),
            "end_leases": lambda: db.execute(other, "SELECT aq.end_leases(%s, %s::uuid[])", [queue, leased.ids]),
        }[how]
    else:
        other.execute("BEGIN")
        assert len(take(other, queue, number=1)) == 1
        if "PREPARED" in how:
            other.execute("PREPARE TRANSACTION 'p'")
        call = {"error": lambda: pytest.raises(db.Error, other.execute, "SELECT 1 / 0") and other.execute("ROLLBACK")}.get(
            how, lambda: other.execute(f"{how} 'p'" if "PREPARED" in how else how)
        )

    def finish():
        call()
        other.close()

    return finish


ENDS = ("COMMIT", "ROLLBACK", "error", "COMMIT PREPARED", "ROLLBACK PREPARED", "acknowledge", "release", "end_leases")


@pytest.mark.parametrize("how", ENDS)
def test_every_end_of_work_wakes_one(server, conn, queue, waiter, how):
    """Messages do not wake sessions that wait for a place; the end of work wakes as many as there are places."""
    server.expect_log("division by zero")
    limit(conn, queue, 1)
    put(conn, queue, 1)
    finish = end(server, queue, how)
    waiting = [waiter(queue) for _ in range(3)]
    until(lambda: limited(conn, waiting), "the wait for a place")
    before = [one.switches() for one in waiting]
    put(conn, queue, 2, 3, 4)
    assert [one.switches() for one in waiting] == before
    assert running(conn, queue) == 1
    finish()
    # each is alone in its transaction, which ends at once, and so wakes the next one
    assert all(one.answer() is not None for one in waiting)
    until(lambda: running(conn, queue) == 0, "all places")


@pytest.mark.parametrize("kind", WAITS)
def test_kinds_of_waits(server, conn, queue, waiter, kind):
    limit(conn, queue, 2)
    put(conn, queue, 1, 2, 3)
    with server.connect() as other:
        other.execute("BEGIN")
        assert take(other, queue) == [1, 2]
        one = waiter(queue, kind)
        until(lambda: limited(conn, [one]), "the wait for a place")
        other.execute("COMMIT")
        assert one.answer() is not None


def test_changing_the_limit(server, conn, queue, waiter):
    """A higher one, or none, wakes; a lower one takes effect as work ends."""
    limit(conn, queue, 1)
    put(conn, queue, *range(1, 9))
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(server.connect()) for _ in range(5)]
        for one in busy:
            one.execute("BEGIN")
        assert take(busy[0], queue) == [1]
        assert take(busy[1], queue) == []
        waiting = [waiter(queue, "wait") for _ in range(2)]
        until(lambda: limited(conn, waiting), "the wait for a place")
        limit(conn, queue, 3)
        assert [one.answer() for one in waiting] == ["t", "t"]
        assert take(busy[1], queue) == [2, 3]
        assert take(busy[2], queue) == []
        limit(conn, queue, -1)
        assert take(busy[2], queue, number=1) == [4]
        limit(conn, queue, 2)
        one = waiter(queue, "wait")
        until(lambda: limited(conn, [one]), "the wait for a place")
        busy[2].execute("COMMIT")
        assert running(conn, queue) == 3
        busy[1].execute("COMMIT")
        assert one.answer() == "t"
        assert running(conn, queue) == 1
        assert take(busy[3], queue, number=1) == [5]
        busy[0].execute("COMMIT")
        busy[3].execute("COMMIT")
        assert running(conn, queue) == 0


def test_a_limit_for_a_queue_with_evicted_leases(server, conn, topic):
    """What is in work when the limit is set is counted, wherever it is."""
    put(conn, topic, 1, 2, 3, 4)
    leased = Leased(conn, topic, "1 hour", 2, consumer="a")
    evict(conn, [topic])
    with server.connect() as other:
        other.execute("BEGIN")
        assert take(other, topic, "b", number=3) == [1, 2, 3]
        limit(conn, topic, 3)
        with conn.transaction():
            assert take(conn, topic, "a") == [3]
            assert take(conn, topic, "b") == []
            assert [running(conn, topic, each) for each in "ab"] == [3, 3]
        other.execute("COMMIT")
    assert [running(conn, topic, each) for each in "ab"] == [2, 0]
    assert leased.acknowledge(conn) == "done"
    assert [running(conn, topic, each) for each in "ab"] == [0, 0]


# -- moments inside the code


@pytest.mark.test_build
def test_two_sessions_count(points_server):
    """Each partition is counted once, also what other sessions take and load meanwhile."""
    server = points_server
    with server.connect() as conn, server.connect() as other, ThreadPoolExecutor() as pool:
        db.execute(conn, "SELECT aq.create_queue('q')")
        for priority in range(4):
            put(conn, "q", *range(4), priority=priority)
        assert len(take(conn, "q", number=2)) == 2
        leased = Leased(conn, "q", "1 hour", 3)
        limit(conn, "q", 5)
        with held(server, "work-counted") as holder:
            calls = [pool.submit(take, one, "q") for one in (conn, other)]
            assert db.value(holder, "SELECT aq.point_await('work-counted', 2)")
            put(holder, "q", 100, priority=5)
        assert sum(len(one.result(timeout=PATIENCE)) for one in calls) >= 2
        assert running(conn, "q") == 3
        assert leased.acknowledge(conn) == "done"
        assert db.value(conn, "SELECT count(*) FROM aq.check('0')") == 0
        db.execute(conn, "SELECT aq.drop_queue('q', force => true)")
