"""max_running: never more of a consumer's messages in work, and no place is lost, however work ends."""

from __future__ import annotations

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, arrived, generation, held, put, put_many, take, until
from pgaq import db
from test_leases import Leased
from test_metrics import evict
from test_wait import Waiter, asleep, stable

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
        made.append(Waiter(server, queue, statement=WAITS.get(kind, kind).format(queue)))
        return made[-1].wait()

    yield make
    for one in made:
        one.close()


def test_who_sees_what_is_in_work(server, conn):
    """Roles with a privilege on the queue, and members of pg_monitor; others read the view as well, without the queue."""
    db.execute(conn, "SELECT aq.create_queue('seen', max_running => 2)")
    conn.execute("CREATE ROLE consumer LOGIN; CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE stranger LOGIN")
    db.execute(conn, "SELECT aq.grant_queue('seen', 'consumer', 'dequeue')")
    put(conn, "seen", 1)
    conn.execute("BEGIN")
    assert take(conn, "seen") == [1]
    for role, expected in (("consumer", [(1,)]), ("monitor", [(1,)]), ("stranger", [])):
        with server.connect(user=role) as other:
            assert other.execute("SELECT running FROM aq.subscribers WHERE queue_name = 'seen'").fetchall() == expected, role
    conn.execute("COMMIT")
    db.execute(conn, "SELECT aq.drop_queue('seen', force => true)")


def end(server, conn, queue, how):
    """One message is in work; ends this by the returned function."""
    other = server.connect()
    if how in ("acknowledge", "release", "end_leases", "time"):
        leased = Leased(other, queue, "1 s" if how == "time" else "1 hour", 1)
        call = {
            "acknowledge": lambda: leased.acknowledge(other),
            "release": lambda: leased.call(other, "release"),
            "end_leases": lambda: db.execute(other, "SELECT aq.end_leases(%s, %s::uuid[])", [queue, leased.ids]),
            "time": lambda: None,
        }[how]
    else:
        other.execute("BEGIN")
        assert len(take(other, queue, number=1)) == 1
        if "PREPARED" in how:
            other.execute("PREPARE TRANSACTION 'p'")
        call = {
            "terminate": lambda: db.execute(conn, "SELECT pg_terminate_backend(%s, 10000)", [other.info.backend_pid]),
            "error": lambda: pytest.raises(db.Error, other.execute, "SELECT 1 / 0") and other.execute("ROLLBACK"),
        }.get(how, lambda: other.execute(f"{how} 'p'" if "PREPARED" in how else how))

    def finish():
        call()
        other.close()

    return finish


ENDS = ("COMMIT", "ROLLBACK", "error", "terminate", "COMMIT PREPARED", "ROLLBACK PREPARED", "acknowledge", "release", "end_leases", "time")


@pytest.mark.parametrize("how", ENDS)
def test_every_end_of_work_wakes_one(server, conn, queue, waiter, how):
    """Messages do not wake sessions that wait for a place; the end of work wakes as many as there are places."""
    server.expect_log("division by zero|terminating connection")
    limit(conn, queue, 1)
    put(conn, queue, 1)
    finish = end(server, conn, queue, how)
    waiting = [waiter(queue) for _ in range(3)]
    if how != "time":
        until(lambda: limited(conn, waiting), "the wait for a place")
        before = [one.switches() for one in waiting]
        put(conn, queue, 2, 3, 4)
        assert [one.switches() for one in waiting] == before
        assert running(conn, queue) == 1
    else:
        put(conn, queue, 2, 3, 4)
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


def test_browsing_waits_for_no_place(server, conn, queue, waiter):
    limit(conn, queue, 1)
    put(conn, queue, 1)
    with server.connect() as other:
        other.execute("BEGIN")
        assert take(other, queue) == [1]
        one = waiter(queue, "SELECT payload FROM aq.dequeue('{0}', mode => 'browse', wait => '1 min')")
        asleep(conn, [one])
        put(conn, queue, 2)
        assert one.answer() == "2"
        other.execute("COMMIT")


def test_newer_than_the_snapshot(server, conn, queue, waiter):
    """A session that may not take the message sleeps on: it wakes itself no more than others."""
    limit(conn, queue, 1)
    one = waiter(queue, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT payload FROM aq.dequeue('{0}', wait => '1 min')")
    asleep(conn, [one])
    before = one.switches()
    put(conn, queue, 1)
    until(lambda: one.switches() > before, "the wake-up")
    asleep(conn, [one])
    assert take(conn, queue) == [1]


def test_a_retry_delay_that_cannot_be_leased(server, conn, queue, waiter):
    """The same for a message by its id: the session sleeps until the delay ends."""
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '1 hour', max_retries => 9, max_running => 1)", [queue])
    put(conn, queue, 1)
    msgid = db.value(conn, "SELECT msgid FROM aq.browse(%s)", [queue])
    conn.execute("BEGIN")
    assert take(conn, queue) == [1]
    conn.execute("ROLLBACK")
    one = waiter(queue, f"SELECT payload FROM aq.dequeue('{{0}}', msgid => '{msgid}', lease => '1 min', wait => '1 min')")
    asleep(conn, [one])


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


@pytest.mark.parametrize("how", ["fast", "immediate", "promotion"])
def test_restarts(server, queue, throw_away, how):
    """What leases and prepared transactions have is counted before the first dequeue, also in a standby that takes over."""
    with server.connect() as conn:
        limit(conn, queue, 5)
        put_many(conn, queue, 1, 40_000)
        leased = Leased(conn, queue, "1 hour", 2)
        conn.execute("BEGIN")
        assert len(take(conn, queue, number=2)) == 2
        conn.execute("PREPARE TRANSACTION 'p'")
        with server.connect() as other:  # later messages of the session wait for the prepared transaction
            put(other, queue, *range(10))
    there = server
    if how == "promotion":
        there = throw_away(server.basebackup("standby"))
        there.start()
        there.wait_for_replay(server)
        there.promote()
    else:
        server.restart(how)
    with there.connect() as conn:
        assert running(conn, queue) is None
        with conn.transaction():
            assert len(take(conn, queue, number=3)) == 1
            assert running(conn, queue) == 5
            with there.connect() as other:
                assert take(other, queue) == []
        conn.execute("ROLLBACK PREPARED 'p'")
        until(lambda: running(conn, queue) == 2, "the places of the prepared transaction")
        assert leased.acknowledge(conn, leased.ids[:1]) == "done"
        assert running(conn, queue) == 1
        with conn.transaction():
            assert len(take(conn, queue)) == 4
        assert db.value(conn, "SELECT count(*) FROM aq.check('0')") == 0
    if there is not server:
        with server.connect() as conn:
            conn.execute("ROLLBACK PREPARED 'p'")


def test_eviction_and_loading(server, conn, topic):
    """Leased messages count also while their partitions are not in memory, and when their leases end there."""
    limit(conn, topic, 3)
    put(conn, topic, 1, 2, 3, 4)
    a = Leased(conn, topic, "1 hour", 2, consumer="a")
    b = Leased(conn, topic, "2 s", 3, consumer="b")
    assert (a.payloads, b.payloads) == ([1, 2], [1, 2, 3])
    for _ in range(2):
        evict(conn, [topic])
        assert [running(conn, topic, each) for each in "ab"] == [2, 3]
        assert db.value(conn, "SELECT count(*) FROM aq.check('0')") == 0
        assert take(conn, topic, "b") == []
    until(lambda: running(conn, topic, "b") == 0, "the ends of leases")
    evict(conn, [topic])
    assert a.acknowledge(conn, a.ids[:1]) == "done"
    evict(conn, [topic])
    assert [running(conn, topic, each) for each in "ab"] == [1, 0]
    db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
    # its position's next consumer has all places
    db.execute(conn, "SELECT aq.subscribe(%s, 'c')", [topic])
    put(conn, topic, 5, 6, 7, 8)
    until(lambda: running(conn, topic, "c") in (None, 0), "the end of the removed consumer's lease")
    with conn.transaction():
        assert take(conn, topic, "c") == [5, 6, 7]
    until(lambda: db.value(conn, "SELECT count(*) FROM aq.check('0')") == 0, "the removed consumer's messages")


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


LEASE_ENDS = ("acknowledge", "release")


def ledger(server, queue, most, seconds_of_work, seed, ends):
    """Sessions take messages and end in all ways; returns the payloads of those that were committed."""
    lock = threading.Lock()
    done, in_work, worst = [], [0], [0]

    def count(number):
        with lock:
            in_work[0] += number
            worst[0] = max(worst[0], in_work[0])

    def work(number):
        rnd = random.Random(seed * 100 + number)
        while True:
            with contextlib.suppress(psycopg.OperationalError), server.connect() as conn:
                while True:
                    conn.execute("BEGIN")
                    wanted = rnd.choice((1, 1, 2, 5))
                    how = rnd.choice(ends)
                    more = rnd.choice(("", "", ", condition => 'true'")) + (", lease => '1 hour'" if how in LEASE_ENDS else "")
                    query = f"SELECT payload, msgid, receipt FROM aq.dequeue(%s, max_messages => %s, wait => '20 s'{more})"
                    rows = conn.execute(query, [queue, wanted]).fetchall()
                    got = [row[0] for row in rows]
                    if -1 in got or not got:
                        assert got, "no message within 20 s: a wake-up or a place was lost"
                        conn.execute("ROLLBACK")
                        return
                    count(len(got))
                    if how in LEASE_ENDS:
                        conn.execute("COMMIT")
                    if rnd.random() < 0.3:
                        conn.execute("SELECT pg_sleep(%s)", [rnd.random() * seconds_of_work])
                    if how in ("COMMIT", "PREPARE", "acknowledge"):
                        with lock:
                            done.extend(got)
                    if how == "PREPARE":
                        gid = f"{number}_{rnd.random()}"
                        conn.execute(f"PREPARE TRANSACTION '{gid}'")
                        how = f"COMMIT PREPARED '{gid}'"
                    count(-len(got))
                    if how == "terminate":
                        conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                    if how in LEASE_ENDS:
                        ended = conn.execute(
                            f"SELECT result FROM aq.{how}(%s, %s::uuid[], %s)", [queue, [row[1] for row in rows], rows[0][2]]
                        )
                        assert {row[0] for row in ended} == {"done"}
                    else:
                        conn.execute(how)

    with ThreadPoolExecutor() as pool:
        workers = [pool.submit(work, number) for number in range(most * 2 + 2)]
        yield workers
        for one in workers:
            one.result(timeout=PATIENCE * 3)
    assert worst[0] <= most
    yield done


@pytest.mark.parametrize(("most", "least"), [(1, 1), (3, 3), (3, 1)])
def test_ledger(server, conn, queue, seed, most, least):
    """Under any load there are never more in work, each message is consumed once, and all sessions go on."""
    server.expect_log("terminating connection")
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0', max_retries => -1, max_running => %s)", [queue, most])
    total = 600
    run = ledger(server, queue, most, 0.01, seed, ("COMMIT", "COMMIT", "COMMIT", "PREPARE", "ROLLBACK", "terminate", *LEASE_ENDS))
    workers = next(run)
    for first in range(1, total, 20):
        with server.connect() as other:  # another session, so another shard
            put_many(other, queue, first, first + 19, priority=first % 3)
        if least < most:
            limit(conn, queue, least + first // 20 % (most - least + 1))
    until(lambda: db.value(conn, "SELECT lag FROM aq.metrics(%s)", [queue]) == 0, "all messages consumed")
    with contextlib.suppress(StopIteration):
        # a message that ends each of them, which they give back
        db.execute(conn, "SELECT aq.alter_queue(%s, max_running => -1)", [queue])
        put(conn, queue, *[-1] * len(workers))
        done = next(run)
    assert sorted(done) == list(range(1, total + 1))
    # a call takes fewer messages the more often they have failed
    assert arrived(conn, queue, len(workers)) == [-1] * len(workers)


# -- moments inside the code


@pytest.mark.test_build
@pytest.mark.parametrize("action", ["terminate", "crash", "error"])
def test_counting_ends_early(points_server, action):
    """The first dequeue of a limited queue ends while it counts: the next one counts."""
    server = points_server
    with server.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q', retry_delay => '0')")
        put(conn, "q", 1, 2, 3)
        put(conn, "q", 4, priority=0)
        leased = Leased(conn, "q", "1 hour", 2)
        limit(conn, "q", 3)
    before = generation(server)
    with contextlib.suppress(db.Error), server.connect() as other:
        other.execute(f"SET pgaq.test_point = 'work-counted:{action}'")
        take(other, "q")
    if action == "crash":
        until(lambda: generation(server) not in (None, before), "a crash")
    with server.connect() as conn:
        with conn.transaction():
            assert len(take(conn, "q")) == 1
            assert running(conn, "q") == 3
        assert running(conn, "q") == 2
        assert leased.acknowledge(conn) == "done"
        db.execute(conn, "SELECT aq.drop_queue('q', force => true)")


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
