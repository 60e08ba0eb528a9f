"""Figures of views and reports against counts of the clients, of PostgreSQL and of the operating system."""

from __future__ import annotations

import json
import threading

import psycopg
import pytest

from conftest import put, put_many, take, until
from pgaq import db
from test_reports import lines, report
from test_snapshots import snapshot

SETTINGS = {"max_worker_processes": "20", "pgaq.ash_interval": "100ms"}

GATE = 4711


@pytest.fixture(scope="module", autouse=True)
def lab(server):
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION pgaq_lab")


def system(conn):
    return dict(conn.execute("SELECT name, value FROM aq.statistics").fetchall())


def of_session(conn, pid):
    return dict(conn.execute("SELECT name, value FROM aq.session_statistics WHERE pid = %s", [pid]).fetchall())


def connect(server):
    """Without prepared statements: the driver would prepare one in a transaction of its own."""
    conn = server.connect()
    conn.prepare_threshold = None
    return conn


class Counted:
    """A connection that counts the statements it executes, each a transaction."""

    def __init__(self, server):
        self.conn = connect(server)
        self.calls = 0

    def execute(self, *args):
        self.calls += 1
        return self.conn.execute(*args)

    def value(self, *args):
        return self.execute(*args).fetchone()[0]


class Running:
    """A statement that another session executes, up to the gate that this one keeps closed."""

    def __init__(self, server, keeper, statement):
        self.session = server.connect()
        self.pid = self.session.info.backend_pid
        keeper.execute("SELECT pg_advisory_lock(%s)", [GATE])
        self.keeper = keeper
        self.error = None
        self.thread = threading.Thread(target=self.run, args=[statement])
        self.thread.start()
        until(lambda: keeper.value("SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = %s", [self.pid]), "the end of the loop")

    def run(self, statement):
        try:
            self.session.execute(statement)
        except psycopg.Error as error:
            self.error = error

    def end(self):
        self.keeper.execute("SELECT pg_advisory_unlock(%s)", [GATE])
        self.thread.join()
        self.session.close()
        assert self.error is None


# -- CPU time of spins


@pytest.mark.parametrize(
    "call",
    [
        "hammer_mutex('lab 1', 'exclusive', 6, 1.5, 20, 0, '{pgaq.mutex_wait_scheme, 3}')",
        "hammer_mutex('lab 1', 'exclusive', 6, 1.5, 20, 0, '{pgaq.mutex_wait_scheme, 0}')",
        "hammer_latch('lab', 1, 'exclusive', 6, 1.5, 20, 0, '{pgaq.spin_count, 20000}')",
        "hammer_latch('lab', 1, 'exclusive', 6, 1.5, 20, 0, '{pgaq.spin_count, 200}')",
    ],
)
def test_spins_take_no_more_than_the_cpu(server, call):
    """Six sessions that spin for one latch or mutex: not more than the CPU time that the kernel gave them."""
    query = "SELECT sum(spin_us)::bigint FROM (SELECT spin_us FROM aq.latches UNION ALL SELECT spin_us FROM aq.mutexes) s"
    with server.connect() as conn:
        begin, before = snapshot(conn), db.value(conn, query)
        cpu = db.value(conn, f"SELECT sum(cpu_us)::bigint FROM aq_lab.{call}")
        spun, end = db.value(conn, query) - before, snapshot(conn)
        assert 0 < spun <= cpu
        shares = [row["% of CPU"] for row in lines(report(conn, begin, end), "spin_time")]
        assert sum(shares) <= 100


# -- calls that wait


@pytest.mark.parametrize(
    "call",
    [
        "CALL dbms_aq.dequeue('{}', dbms_aq.dequeue_options_t(correlation => 'wanted'), NULL, NULL::jsonb, NULL)",
        "CALL dbms_aq.dequeue('{}', dbms_aq.dequeue_options_t(correlation => 'wanted', visibility => 1), NULL, NULL::jsonb, NULL)",
        "SELECT * FROM aq.dequeue('{}', wait => '1 min', correlation => 'wanted')",
        "CALL aq.receive('{}', timeout => '1 min', correlation => 'wanted')",
        "CALL aq.jms_receive(ARRAY['{}'], ARRAY[NULL], ARRAY[$$correlation = 'wanted'$$], ARRAY[1], '1 min')",
    ],
    ids=["dbms_aq", "immediate", "aq.dequeue", "aq.receive", "aq.jms_receive"],
)
def test_a_call_that_waits_counts_once(server, conn, queue, call):
    """It tries again at each message, and only the last one is for it."""
    before = system(conn)
    asleep = "SELECT count(*) FROM aq.sessions WHERE pid = %s AND event = 'Streams AQ: waiting for messages in the queue' AND waiting"
    with server.connect() as waiter:
        thread = threading.Thread(target=waiter.execute, args=[call.format(queue)], daemon=True)
        thread.start()
        for n in range(1, 4):
            until(lambda: db.value(conn, asleep, [waiter.info.backend_pid]), "the waiter")
            put(conn, queue, n, correlation="other")
            until(lambda: system(conn)["queue wake-ups false"] - before["queue wake-ups false"] == n, "an attempt in vain")
        put(conn, queue, 0, correlation="wanted")
        thread.join()
    after = system(conn)
    assert (after["queue messages returned"] - before["queue messages returned"], after["queue dequeue calls"] - before["queue dequeue calls"]) == (1, 1)


# -- the lab's own waits


def test_a_holder_sleeps_and_is_idle(server):
    """A session that holds a latch for the lab is shown in its wait, and is neither sampled as active nor part of DB time."""
    with server.connect() as conn, server.connect() as holder:
        begin = snapshot(conn)
        thread = threading.Thread(target=holder.execute, args=["SELECT aq_lab.hold_latch('lab', 1.5, child => 1)"])
        thread.start()
        pid = holder.info.backend_pid
        until(lambda: conn.execute("SELECT event, wait_class FROM aq.sessions WHERE pid = %s AND waiting", [pid]).fetchall() == [("aq: lab hold", "Idle")], "the holder")
        thread.join()
        end = snapshot(conn)
        assert db.value(conn, "SELECT count(*) FROM aq.session_history WHERE pid = %s", [pid]) <= 2
        assert db.value(conn, "SELECT waits FROM aq.session_waits WHERE pid = %s AND event = 'aq: lab hold'", [pid]) == 1
        assert db.value(conn, "SELECT time_us FROM aq.session_time WHERE pid = %s AND name = 'DB time'", [pid]) < 1_000_000
        assert all(row["Total Wait Time"] < 1 for row in lines(report(conn, begin, end), "top_events"))


def test_the_caller_of_a_hammer_is_idle(server):
    with server.connect() as conn, server.connect() as caller:
        thread = threading.Thread(target=caller.execute, args=["SELECT aq_lab.hammer_latch('lab', sessions => 2, seconds => 1.5)"])
        thread.start()
        pid = caller.info.backend_pid
        until(lambda: conn.execute("SELECT event, wait_class FROM aq.sessions WHERE pid = %s AND waiting", [pid]).fetchall() == [("aq: lab sessions", "Idle")], "the caller")
        thread.join()
        assert db.value(conn, "SELECT time_us FROM aq.session_time WHERE pid = %s AND name = 'DB time'", [pid]) < 1_000_000


# -- what belongs to the interval


def test_waits_for_mutexes_before_the_interval_do_not_count(server):
    """The same mutex is waited for before, between and after two snapshots: only what ended between them counts."""
    hammer = "SELECT count(*) FROM aq_lab.hammer_mutex('lab 2', sessions => 3, seconds => 0.3, hold_us => 20000)"
    ended = "SELECT count(*), sum(sleeps)::bigint FROM aq.mutex_waits WHERE mutex_type = 'Lab' AND ended >= %s AND ended < %s"
    with server.connect() as conn:
        conn.execute(hammer)
        begin = snapshot(conn)
        conn.execute(hammer)
        end = snapshot(conn)
        conn.execute(hammer)
        taken = [db.value(conn, "SELECT taken FROM aq.snapshots WHERE snap_id = %s", [n]) for n in (begin, end)]
        wanted = conn.execute(ended, taken).fetchone()
        everything = db.value(conn, "SELECT count(*) FROM aq.mutex_waits")
        assert 0 < wanted[0] < everything < 256
        rows = [row for row in lines(report(conn, begin, end), "hot_mutexes") if row["Mutex Type"] == "Lab"]
        assert [(row["Requests"], row["Sleeps"]) for row in rows] == [wanted]


def test_backlog_is_that_of_all_consumers(server, conn, topic):
    """Ten messages for two consumers, of which one takes three: 17 are to be done, 10 by the slower one."""
    begin = snapshot(conn)
    put_many(conn, topic, 1, 10)
    assert len(take(conn, topic, "a", number=3)) == 3
    end = snapshot(conn)
    row = next(row for row in lines(report(conn, begin, end), "queues") if row["Queue"] == topic)
    assert (row["Backlog Begin"], row["Backlog End"], row["Slowest Consumer"]) == (0, 17, 10)
    assert row["Backlog End"] - row["Backlog Begin"] == 2 * row["Enqueued"] - row["Done"]
