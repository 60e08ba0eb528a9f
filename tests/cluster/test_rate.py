"""rate: how many messages a consumer gets in a time; sessions that wait are woken when it gets the next one."""

from __future__ import annotations

import contextlib
import random
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, put, put_many, take, until
from pgaq import db
from test_max_running import WAITS, waiter  # noqa: F401
from test_wait import stable

pytestmark = pytest.mark.sharded("queue tables have no rate")

EARLY = """SELECT count(*) FROM sys."v$session_wait" WHERE pid = ANY (%s) AND state = 'WAITING' AND event = 'aq: rate'"""

SESSIONS = 6

# a wake-up that is lost is not made up for by the worker's check of clients that do not fetch what they were told of
SETTINGS = {"pgaq.fetch_patience": "-1"}


def rate(conn, queue, text):
    db.execute(conn, "SELECT aq.alter_queue(%s, rate => %s)", [queue, text])


def early(conn, waiting):
    """Do all of them wait for their rate, asleep?"""
    return db.value(conn, EARLY, [[one.pid for one in waiting]]) == len(waiting) and all(stable(one) for one in waiting)


@pytest.mark.parametrize("broadcast", [False, True])
def test_messages_wake_no_session_that_has_no_token(conn, queue, waiter, broadcast):
    """Nor do they ask the worker; the end of the rate wakes it."""
    if broadcast:
        db.execute(conn, "ALTER ROLE CURRENT_USER SET pgaq.listen_wakeup = 'broadcast'")
    rate(conn, queue, "1/day")
    put(conn, queue, 1)
    take(conn, queue)
    put(conn, queue, 2)
    waiting = [waiter(queue, kind) for kind in WAITS if not (broadcast and kind == "listen")]
    until(lambda: early(conn, waiting), "the wait for a token")
    before = [one.switches() for one in waiting]
    put(conn, queue, *range(3, 40))
    assert [one.switches() for one in waiting] == before
    rate(conn, queue, "none")
    assert all(one.answer() not in (None, "f") for one in waiting)
    if broadcast:
        db.execute(conn, "ALTER ROLE CURRENT_USER RESET pgaq.listen_wakeup")


@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("text", ["20/second burst 1", "2000/second", "7/700 milliseconds burst 2"])
def test_each_wait_is_woken(conn, queue, waiter, kind, text):
    rate(conn, queue, text)
    put_many(conn, queue, 1, 9000)
    for _ in range(4):
        one = waiter(queue, kind)
        assert one.answer() not in (None, "f")
        take(conn, queue, number=1000)


def test_a_message_that_comes_later(conn, queue, waiter):
    """Sessions slept because there was no message, then there was no token when it came."""
    rate(conn, queue, "4/second burst 1")
    waiting = [waiter(queue) for _ in range(3)]
    until(lambda: all(stable(one) for one in waiting), "sleep")
    put(conn, queue, *range(3))
    assert sorted(int(one.answer()) for one in waiting) == [0, 1, 2]


@pytest.mark.parametrize("kinds", [["dequeue"], ["condition", "dequeue"]], ids="-".join)
def test_each_token_wakes_one(conn, queue, waiter, kinds):
    """Sessions slept because there was no token; each takes one message and ends."""
    rate(conn, queue, "10/second burst 1")
    put(conn, queue, *range(8))
    take(conn, queue, number=1)
    waiting = [waiter(queue, kinds[n % len(kinds)]) for n in range(7)]
    assert sorted(int(one.answer()) for one in waiting) == list(range(1, 8))


def test_tokens_that_are_not_used(server, conn, queue):
    """A call that may take more messages than it can see gives the tokens for the others back."""
    rate(conn, queue, "6/day")
    put(conn, queue, 1)
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1 FROM aq.queues")
        put(conn, queue, 2, 3, 4, 5, 6, 7)
        assert take(other, queue, number=10) == [1]
        other.execute("COMMIT")
    assert take(conn, queue, number=10) == [2, 3, 4, 5, 6]


def ledger(server, queue, seed, sessions, ends):
    """Sessions wait for messages; yields the list of all that were taken, then those that were committed."""
    taken = []

    def work(number):
        rnd = random.Random(seed * 100 + number)
        done = []
        while True:
            with contextlib.suppress(psycopg.OperationalError), server.connect() as conn:
                while True:
                    conn.execute("BEGIN")
                    more = rnd.choice(("", "", ", condition => 'true'"))
                    query = f"SELECT payload FROM aq.dequeue(%s, max_messages => %s, wait => '20 s'{more})"
                    got = [row[0] for row in conn.execute(query, [queue, rnd.choice((1, 1, 2, 5))]).fetchall()]
                    assert got, "no message within 20 s: a wake-up was lost"
                    if -1 in got:
                        conn.execute("ROLLBACK")
                        return done
                    taken.extend(got)
                    how = rnd.choice(ends)
                    if how == "terminate":
                        conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                    conn.execute(how)
                    if how == "COMMIT":
                        done += got

    with ThreadPoolExecutor() as pool:
        workers = [pool.submit(work, number) for number in range(sessions)]
        yield taken
        yield [each for one in workers for each in one.result(timeout=PATIENCE * 3)]


@pytest.mark.parametrize(("messages", "milliseconds", "burst"), [(100, 1000, 5), (1, 5, 1), (2000, 1000, 50)])
def test_ledger(server, conn, queue, seed, messages, milliseconds, burst):
    """Under any load the rate is kept, each message is consumed once, and all sessions go on."""
    server.expect_log("terminating connection")
    db.execute(conn, "SELECT aq.alter_queue(%s, retry_delay => '0', max_retries => -1)", [queue])
    rate(conn, queue, f"{messages}/{milliseconds} milliseconds burst {burst}")
    total = 150
    run = ledger(server, queue, seed, SESSIONS, ("COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "terminate"))
    begin = time.monotonic()
    taken = next(run)
    for first in range(1, total, 10):
        with server.connect() as other:  # another session, so another shard
            put_many(other, queue, first, first + 9, priority=first % 3)
    until(lambda: db.value(conn, "SELECT lag FROM aq.metrics(%s)", [queue]) == 0, "all messages consumed")
    most = burst + (time.monotonic() - begin) * 1000 * messages / milliseconds
    assert total <= len(taken) <= most
    rate(conn, queue, "none")
    put(conn, queue, *[-1] * SESSIONS)
    assert sorted(next(run)) == list(range(1, total + 1))


@pytest.mark.parametrize("how", ["fast", "immediate", "promotion"])
def test_restarts(server, queue, throw_away, how):
    """A restart, a crash and a failover give no second burst; a queue that is created later has all of its own."""
    with server.connect() as conn:
        rate(conn, queue, "20/day burst 10")
        put_many(conn, queue, 1, 30)
        assert len(take(conn, queue, number=30)) == 10
    there = server
    if how == "promotion":
        there = throw_away(server.basebackup("standby"))
        there.start()
        there.wait_for_replay(server)
        there.promote()
    else:
        server.restart(how)
    with there.connect() as conn:
        assert take(conn, queue, number=30) == []
        assert db.value(conn, "SELECT count(*) FROM aq.browse(%s, max_messages => 100)", [queue]) == 20
        until(lambda: db.value(conn, "SELECT count(*) FROM aq.workers WHERE pid IS NOT NULL") > 0, "a worker")
        db.execute(conn, "SELECT aq.create_queue('later', rate => '3/day')")
        put_many(conn, "later", 1, 5)
        assert len(take(conn, "later", number=5)) == 3
        db.execute(conn, "SELECT aq.drop_queue('later', force => true)")


def test_a_removed_consumers_bucket(conn, topic):
    """The next consumer at its position has one of its own."""
    rate(conn, topic, "2/day")
    put(conn, topic, 1, 2, 3)
    assert take(conn, topic, "a") == [1, 2] and take(conn, topic, "b") == [1, 2]
    position = "SELECT position FROM aq_internal.subscriber WHERE consumer = %s"
    before = db.value(conn, position, ["a"])
    db.execute(conn, "SELECT aq.unsubscribe(%s, 'a')", [topic])
    free = "SELECT count(*) FROM aq_internal.subscriber WHERE kind = 'removed'"
    until(lambda: db.value(conn, free) == 0, "the removed consumer's position")
    db.execute(conn, "SELECT aq.subscribe(%s, 'c')", [topic])
    assert db.value(conn, position, ["c"]) == before
    put(conn, topic, 4, 5, 6)
    assert take(conn, topic, "c") == [4, 5]


def test_a_rate_that_is_removed_leaves_nothing(conn, queue, waiter):
    """Messages wake sessions at once again, whatever was used of it."""
    rate(conn, queue, "1/day")
    put(conn, queue, 1)
    assert take(conn, queue) == [1]
    rate(conn, queue, "none")
    one = waiter(queue)
    until(lambda: stable(one), "sleep")
    put(conn, queue, 2)
    assert one.answer() == "2"


def test_the_object_cache_keeps_a_bucket_that_is_not_full(new_server):
    """Other queues push a queue out of memory only when its bucket is full again."""
    own = new_server("few", **{"pgaq.max_queues": "16"})
    with own.connect() as conn:
        for n in range(40):
            db.execute(conn, "SELECT aq.create_queue(%s)", [f"q{n}"])
        rate(conn, "q0", "5/day")
        put(conn, "q0", 1, 2, 3, 4, 5, 6, 7)
        assert take(conn, "q0", number=4) == [1, 2, 3, 4]
        for n in range(1, 40):
            put(conn, f"q{n}", n)
        assert take(conn, "q0", number=4) == [5]
