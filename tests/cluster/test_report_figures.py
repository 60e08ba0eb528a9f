"""Figures of views and reports against counts of the clients, of PostgreSQL and of the operating system."""

from __future__ import annotations

import json
import threading
import time

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
        until(
            lambda: keeper.value("SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = %s", [self.pid]), "the end of the loop"
        )

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


# -- transactions, WAL, reads


def test_each_transaction_of_one_call_counts(server, queue):
    """700 commits and 70 rollbacks in a statement that has not ended: the snapshot has them all, and no others."""
    mine = Counted(server)
    mine.execute("CREATE TABLE IF NOT EXISTS filled (n int, payload text)")
    before, begin, lsn = system(mine), snapshot(mine), mine.value("SELECT pg_current_wal_insert_lsn() - '0/0'")
    calls = mine.calls
    running = Running(server, mine, f"""DO $$ BEGIN
        FOR i IN 1 .. 700 LOOP
            PERFORM aq.enqueue('{queue}', '1');
            INSERT INTO filled SELECT n, repeat('x', 100) FROM generate_series(1, 100) n;
            COMMIT;
            IF i % 10 = 0 THEN INSERT INTO filled VALUES (i, ''); ROLLBACK; END IF;
        END LOOP;
        PERFORM pg_advisory_lock({GATE});
    END $$""")  # fmt: skip
    wal = mine.value("SELECT pg_current_wal_insert_lsn() - '0/0'") - lsn
    end, after = snapshot(mine), system(mine)
    own = mine.calls - calls
    grown = {name: after[name] - before[name] for name in after}
    counted = of_session(mine, running.pid)
    running.end()
    assert (counted["user commits"], counted["user rollbacks"]) == (700, 70)
    # the statement that reads the counters is not over
    assert grown["user commits"] - 700 in (own + 2, own + 1, own), "the commits of this session, and no others"
    assert grown["user rollbacks"] == 70
    assert 0.9 * float(wal) <= counted["redo size"] <= float(wal)
    load = {row[""].partition(" (")[0]: row for row in lines(report(mine.conn, begin, end), "load_profile")}
    per_second = load["Transactions"]["Per Second"]
    assert load["Rollbacks"]["Per Second"] / per_second == pytest.approx(70 / (770 + own), rel=0.1)
    assert load["WAL"]["Per Transaction"] == pytest.approx(float(wal) / (770 + own), rel=0.15)
    # a row of 128 bytes in WAL and more; PostgreSQL's own counters have none of them yet
    assert load["WAL"]["Per Transaction"] > 8000


def test_reads_of_a_running_statement_count(server, queue):
    """A loop that reads a table 50 times in one transaction: the blocks are those of the table, before the loop has ended."""
    mine = Counted(server)
    mine.execute("CREATE TABLE wide AS SELECT n, repeat('x', 1000) AS payload FROM generate_series(1, 3000) n")
    mine.execute("VACUUM ANALYZE wide")
    blocks = mine.value("SELECT relpages FROM pg_class WHERE relname = 'wide'")
    statement = f"""DO $$ BEGIN
        PERFORM aq.enqueue('{queue}', '1');
        FOR i IN 1 .. 50 LOOP PERFORM count(payload) FROM wide; END LOOP;
        PERFORM pg_advisory_lock({GATE});
    END $$"""
    running = Running(server, mine, statement)
    counted = of_session(mine, running.pid)
    running.end()
    assert 50 * blocks <= counted["session logical reads"] <= 50 * blocks + 2000
    assert counted["physical reads"] < blocks
    mine.execute("DROP TABLE wide")


def test_physical_reads_are_those_of_the_plan(new_server):
    """After a restart a table is read from disk: the same blocks as EXPLAIN counts."""
    own = new_server("cold")
    with own.connect() as conn:
        db.execute(conn, "SELECT aq.create_queue('q')")
        conn.execute("CREATE TABLE wide AS SELECT n, repeat('x', 1000) AS payload FROM generate_series(1, 3000) n")
        conn.execute("VACUUM wide")
    own.restart()
    with own.connect() as conn, own.connect() as look:
        version = conn.info.server_version
        db.execute(conn, "SELECT aq.enqueue('q', '1')")
        conn.execute("SELECT FROM wide LIMIT 0")
        before = of_session(look, conn.info.backend_pid)
        plan = db.value(conn, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(payload) FROM wide")[0]
        after = of_session(look, conn.info.backend_pid)
    read = plan["Plan"]["Shared Read Blocks"]
    assert read > 300
    for name in ("physical reads", *(["physical read IO requests"] if "physical read IO requests" in after else [])):
        assert read <= after[name] - before[name] <= read + 50, name
    assert version >= 170000 or "physical read IO requests" in after


def test_calls_and_executions(server, queue):
    """Ten calls of a function with five statements: 10 calls, 60 executions, also after errors."""
    with connect(server) as conn, server.connect() as look:
        pid = conn.info.backend_pid
        conn.execute("""CREATE FUNCTION five() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN
            FOR i IN 1 .. 5 LOOP EXECUTE 'SELECT count(*) FROM pg_am' INTO n; END LOOP; END $$""")
        conn.execute(
            """CREATE FUNCTION fails() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1 / (count(*) - count(*)) FROM pg_am'; END $$"""
        )
        put(conn, queue, 1)

        def grown(work):
            before = of_session(look, pid)
            work()
            after = of_session(look, pid)
            return {name: after[name] - before[name] for name in ("user calls", "execute count", "user commits", "user rollbacks")}

        def ten():
            for _ in range(10):
                conn.execute("SELECT five()")

        assert grown(ten) == {"user calls": 10, "execute count": 60, "user commits": 10, "user rollbacks": 0}

        def errors():
            for _ in range(3):
                with pytest.raises(psycopg.errors.DivisionByZero):
                    conn.execute("SELECT fails()")

        assert grown(errors) == {"user calls": 3, "execute count": 6, "user commits": 0, "user rollbacks": 3}
        caught = "DO $$ BEGIN PERFORM fails(); EXCEPTION WHEN division_by_zero THEN PERFORM five(); END $$"
        assert grown(lambda: conn.execute(caught)) == {"user calls": 1, "execute count": 1 + 2 + 6, "user commits": 1, "user rollbacks": 0}

        def transaction():
            with conn.transaction():
                conn.execute("SELECT five()")

        assert grown(transaction) == {"user calls": 3, "execute count": 8, "user commits": 1, "user rollbacks": 0}
        conn.execute("DROP FUNCTION five; DROP FUNCTION fails")


def test_response_time_report_has_calls_and_reads(server, queue):
    with connect(server) as conn:
        mark = db.value(conn, "SELECT aq.rtpctx_start()")
        for n in range(20):
            put(conn, queue, n)
        work = {
            row["Statistic"]: row["Interval Work"]
            for row in lines(db.value(conn, "SELECT aq.rtpctx_report(%s)", [json.dumps(mark)]), "work")
        }
        assert work["user calls"] in (20, 21)
        assert work["user commits"] in (20, 21)
        assert work["execute count"] > work["user calls"]


def test_prepared_transactions_count_once(server, queue):
    with server.connect() as conn, server.connect() as look:
        put(conn, queue, 0)
        before = of_session(look, conn.info.backend_pid)
        conn.execute("BEGIN")
        put(conn, queue, 1)
        conn.execute("PREPARE TRANSACTION 'once'")
        conn.execute("COMMIT PREPARED 'once'")
        after = of_session(look, conn.info.backend_pid)
        assert after["user commits"] - before["user commits"] == 1


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
        "CALL dbms_aq.dequeue('{}', dbms_aq.dequeue_options_t(correlation => 'wanted%'), NULL, NULL::jsonb, NULL)",
        "CALL dbms_aq.dequeue('{}', dbms_aq.dequeue_options_t(correlation => 'wanted%', visibility => 1), NULL, NULL::jsonb, NULL)",
        "SELECT * FROM aq.dequeue('{}', wait => '1 min', correlation => 'wanted%')",
        "CALL aq.receive('{}', timeout => '1 min', correlation => 'wanted%')",
        "CALL aq_jms.receive(ARRAY['{}'], ARRAY[NULL], ARRAY[$$correlation = 'wanted'$$], ARRAY[1], '1 min')",
    ],
    ids=["dbms_aq", "immediate", "aq.dequeue", "aq.receive", "aq_jms.receive"],
)
def test_a_call_that_waits_counts_once(server, conn, queue, call):
    """It tries again at each message, and only the last one is for it. (A message of another correlation does not wake those that name one.)"""
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
    assert (
        after["queue messages returned"] - before["queue messages returned"],
        after["queue dequeue calls"] - before["queue dequeue calls"],
    ) == (1, 1)


# -- the lab's own waits


def test_a_holder_sleeps_and_is_idle(server):
    """A session that holds a latch for the lab is shown in its wait, and is neither sampled as active nor part of DB time."""
    began = time.monotonic_ns() // 1000
    with server.connect() as conn, server.connect() as holder:
        begin = snapshot(conn)
        thread = threading.Thread(target=holder.execute, args=["SELECT aq_lab.hold_latch('lab', 1.5, child => 1)"])
        thread.start()
        pid = holder.info.backend_pid
        until(
            lambda: (
                conn.execute("SELECT event, wait_class FROM aq.sessions WHERE pid = %s AND waiting", [pid]).fetchall()
                == [("aq: lab hold", "Idle")]
            ),
            "the holder",
        )
        thread.join()
        elapsed = time.monotonic_ns() // 1000 - began
        end = snapshot(conn)
        assert db.value(conn, "SELECT count(*) FROM aq.session_history WHERE pid = %s AND event = 'aq: lab hold'", [pid]) == 0
        waits, slept = conn.execute(
            "SELECT waits, total_us FROM aq.session_waits WHERE pid = %s AND event = 'aq: lab hold'", [pid]
        ).fetchone()
        assert waits == 1 and slept >= 1_500_000
        assert db.value(conn, "SELECT time_us FROM aq.session_time WHERE pid = %s AND name = 'DB time'", [pid]) <= elapsed - slept
        assert "aq: lab hold" not in [row["Event"] for row in lines(report(conn, begin, end), "top_events")]


def test_the_caller_of_a_hammer_is_idle(server):
    began = time.monotonic_ns() // 1000
    with server.connect() as conn, server.connect() as caller:
        thread = threading.Thread(target=caller.execute, args=["SELECT aq_lab.hammer_latch('lab', sessions => 2, seconds => 1.5)"])
        thread.start()
        pid = caller.info.backend_pid
        until(
            lambda: (
                conn.execute("SELECT event, wait_class FROM aq.sessions WHERE pid = %s AND waiting", [pid]).fetchall()
                == [("aq: lab sessions", "Idle")]
            ),
            "the caller",
        )
        thread.join()
        elapsed = time.monotonic_ns() // 1000 - began
        slept = db.value(conn, "SELECT total_us FROM aq.session_waits WHERE pid = %s AND event = 'aq: lab sessions'", [pid])
        assert slept > 0
        assert db.value(conn, "SELECT time_us FROM aq.session_time WHERE pid = %s AND name = 'DB time'", [pid]) <= elapsed - slept


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
        # the history still has some from before, so all of the interval, and some from after it
        before, after = conn.execute(
            "SELECT count(*) FILTER (WHERE ended < %s), count(*) FILTER (WHERE ended >= %s) FROM aq.mutex_waits", taken
        ).fetchone()
        assert min(before, wanted[0], after) > 0
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
