"""Latches and mutexes in a running server: what they count, who blocks whom, how they wait, system call by system call."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading

import psycopg
import pytest

from conftest import generation, until
from pgaq import db

SETTINGS = {"max_worker_processes": "20"}
SESSIONS = 4


@pytest.fixture(scope="module", autouse=True)
def lab(server):
    with server.connect() as conn:
        conn.execute("CREATE EXTENSION pgaq_lab")


def differences(conn, query, run):
    """The increase of each number of a row of counters by run()."""
    before = conn.execute(query).fetchone()
    run()
    return [after - first for after, first in zip(conn.execute(query).fetchone(), before)]


# -- what is counted is what was done, also by sessions that have ended


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
@pytest.mark.parametrize(
    "settings", ["", "SET pgaq.latch_classes = 'lab:1'; SET pgaq.latch_class_1 = '20 1 1 100'"], ids=["posted", "timed"]
)
def test_latch_counters_add_up(server, conn, mode, settings):
    """Gets are the sessions' gets; a miss ends by spinning or by sleeping; each sleep is a wait and has its two places."""
    child = 1 if mode == "exclusive" else 2
    latch = f"""SELECT gets, misses, spin_gets, sleeps, waiters_woken, spin_time FROM sys."v$latch_children" WHERE name = 'lab' AND "child#" = {child}"""
    places = """SELECT coalesce(sum(sleep_count), 0), coalesce(sum(wtr_slp_count), 0), coalesce(sum(longhold_count), 0) FROM sys."v$latch_misses" WHERE parent_name = 'lab'"""
    waits = """SELECT coalesce(sum(total_waits), 0)::bigint FROM sys."v$system_event" WHERE event = 'latch free'"""
    others = """SELECT sum(sleeps)::bigint FROM sys."v$latch" WHERE name <> 'lab' AND NOT EXISTS (SELECT FROM sys."v$event_name" e WHERE e.name = 'latch: ' || "v$latch".name)"""
    done = []

    def hammer():
        query = f"SELECT sum(gets)::bigint FROM aq_lab.hammer_latch('lab', {child}, '{mode}', {SESSIONS}, 0.2, hold_us => 2)"
        done.append(db.value(conn, query))

    with conn.transaction():
        conn.execute(settings or "SELECT")
        read = [latch, places, waits, others]
        width = [6, 3, 1, 1]
        query = "SELECT * FROM " + ", ".join(
            f"({q}) q{n}({', '.join(f'c{n}_{i}' for i in range(w))})" for n, (q, w) in enumerate(zip(read, width))
        )
        gets, misses, spin_gets, sleeps, woken, spin_time, by_holder, by_waiter, long, waited, elsewhere = differences(conn, query, hammer)
        conn.execute("RESET pgaq.latch_classes; RESET pgaq.latch_class_1")
    assert gets == done[0] > 0
    assert 0 <= spin_gets <= misses <= gets
    assert misses - spin_gets <= sleeps
    assert by_holder == by_waiter == sleeps == waited - elsewhere
    assert 0 <= long <= sleeps
    if not settings:
        # whoever gets the latch in its last try before it would sleep may be posted all the same
        assert sleeps <= woken <= sleeps + spin_gets
    if mode == "exclusive":
        assert misses > 0 and spin_time > 0


@pytest.mark.parametrize("mode", ["exclusive", "shared", "examine"])
@pytest.mark.parametrize("scheme", [0, 1, 2, 3])
def test_mutex_counters_add_up(server, conn, mode, scheme):
    """Gets are the sessions' gets; waits are those of the event; a wait has one step or more; the history is of this mutex."""
    place = "mutex_type = 'Lab' AND location = 'lab: hammer'"
    event = "aq: lab mutex " + ("S" if mode == "shared" else "X")
    query = f"""SELECT sum(gets)::bigint, sum(misses)::bigint, sum(spin_gets)::bigint, sum(waits)::bigint, sum(sleeps)::bigint, sum(wait_time)::bigint, sum(spin_time)::bigint,
        (SELECT coalesce(sum(total_waits), 0)::bigint FROM sys."v$system_event" WHERE event = '{event}') FROM sys."v$mutex" WHERE {place}"""
    done = []
    conn.execute("SELECT FROM aq_lab.hammer_mutex('lab 3', sessions => 1, seconds => 0.01)")
    conn.execute(f"SET pgaq.mutex_wait_scheme = {scheme}")

    def hammer():
        done.append(db.value(conn, f"SELECT sum(gets)::bigint FROM aq_lab.hammer_mutex('lab 3', '{mode}', {SESSIONS}, 0.15, hold_us => 5)"))

    gets, misses, spin_gets, waits, sleeps, wait_time, spin_time, waited = differences(conn, query, hammer)
    assert gets == done[0] > 0
    assert misses == spin_gets + waits and waits == waited
    assert sleeps >= waits
    assert wait_time == 0 or (waits > 0 and scheme <= 2)
    if mode != "shared":
        assert misses > 0 and spin_time > 0
    rows = conn.execute(
        """SELECT mutex_identifier, requesting_session, sleeps, gets FROM sys."v$mutex_sleep_history" WHERE mutex_type = 'Lab'"""
    ).fetchall()
    assert all(session > 0 and slept > 0 and got > 0 for _, session, slept, got in rows)
    assert waits == 0 or any(identifier == 3 for identifier, *_ in rows)


def test_parents_and_children(conn):
    """v$latch is the sum of v$latch_parent and v$latch_children."""
    query = """SELECT count(*) FROM sys."v$latch" l JOIN sys."v$latch_parent" p USING ("latch#")
        WHERE l.gets < p.gets + (SELECT coalesce(sum(gets), 0) FROM sys."v$latch_children" c WHERE c."latch#" = l."latch#")"""
    kinds = (
        """SELECT count(*) FROM sys."v$latch" l FULL JOIN sys."v$latch_parent" p USING ("latch#") WHERE l.name IS DISTINCT FROM p.name"""
    )
    with conn.transaction():
        # a later read of the children may see more
        assert db.value(conn, kinds) == 0
        assert db.value(conn, query.replace("l.gets <", "l.gets > 0 AND p.addr IS NULL AND l.gets <")) >= 0
        assert db.value(conn, """SELECT sum(gets) FROM sys."v$latch_parent" WHERE name IN ('lab', 'shard stream')""") == 0


# -- who blocks whom, while it lasts and afterwards


class Session:
    """A statement in a thread of its own."""

    def __init__(self, server, *statements):
        self.conn = server.connect()
        self.pid = self.conn.info.backend_pid
        self.conn.execute("SELECT aq_lab.hold_latch('lab', 0, child => 8)")
        for statement in statements[:-1]:
            self.conn.execute(statement)
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(statements[-1],))
        self.thread.start()

    def run(self, statement):
        try:
            self.conn.execute(statement)
        except Exception as error:
            self.error = error

    def end(self):
        self.thread.join()
        self.conn.close()


@contextlib.contextmanager
def held(server, conn, what, *sessions):
    """Sessions that hold a latch or mutex, until the block ends; yields them."""
    query = f"""SELECT count(*) FROM sys."v${what}holder" WHERE pid = ANY(%s)"""
    holders = [Session(server, statement) for statement in sessions]
    pids = [holder.pid for holder in holders]
    try:
        until(lambda: db.value(conn, query, [pids]) == len(holders), "the holders")
        yield holders
    finally:
        for holder in holders:
            conn.execute("SELECT pg_cancel_backend(%s)", [holder.pid])
            holder.end()


def blockers(conn, waiter):
    """Process ids of who blocks it, as the views say now."""
    query = """SELECT h.pid FROM sys."v$session_wait" w JOIN aq_internal.sync_held() h ON h.session = w.blocking_session WHERE w.pid = %s AND w.state = 'WAITING'"""
    return {pid for (pid,) in conn.execute(query, [waiter.pid])}


@pytest.mark.parametrize("mode, holders", [("exclusive", 1), ("shared", 2)])
@pytest.mark.parametrize("what", ["latch", "mutex"])
def test_who_blocks_whom(server, conn, what, mode, holders):
    """Each holder is shown, sharers too, and a waiter's blocker is one of them."""
    call = f"aq_lab.hold_latch('lab', %s, '{mode}', child => 4)" if what == "latch" else f"aq_lab.hold_mutex('lab 4', %s, '{mode}')"
    with held(server, conn, what, *[f"SELECT {call % 60}"] * holders) as holding:
        rows = conn.execute(f"""SELECT mode, location FROM sys."v${what}holder" WHERE location = 'lab: hold'""").fetchall()
        assert rows == [(mode.upper(), "lab: hold")] * holders
        waiter = Session(server, f"SELECT {call % 0}".replace(mode, "exclusive"))
        found = until(lambda: blockers(conn, waiter), "a blocker")
        assert found <= {holder.pid for holder in holding}
    waiter.end()
    assert waiter.error is None
    assert blockers(conn, waiter) == set()


def test_blocker_in_the_history(server, conn):
    """After the wait the history still says who waited for whom."""
    with held(server, conn, "mutex", "SELECT aq_lab.hold_mutex('lab 5', 60, 'examine')"):
        holder = db.value(conn, """SELECT sid FROM sys."v$mutexholder" WHERE mutex_identifier = 5""")
        waiter = Session(server, "SELECT aq_lab.hold_mutex('lab 5', 0)")
        session = until(
            lambda: db.value(
                conn,
                """SELECT sid FROM sys."v$session_wait" WHERE pid = %s AND state = 'WAITING' UNION ALL SELECT NULL LIMIT 1""",
                [waiter.pid],
            ),
            "the waiter",
        )
    waiter.end()
    rows = conn.execute(
        """SELECT requesting_session, blocking_session, mode, location, wait_time > 0 FROM sys."v$mutex_sleep_history" WHERE mutex_identifier = 5"""
    ).fetchall()
    assert (session, holder, "EXCLUSIVE", "lab: hold", True) in rows


# -- how they wait


@contextlib.contextmanager
def waiting(server, conn, get, waiter):
    """The connection waits for what another session holds, until the block ends; get: the call without its seconds."""
    holder = Session(server, f"SELECT aq_lab.{get}" % 600)
    until(lambda: db.value(conn, "SELECT count(*) FROM aq_internal.sync_held() WHERE pid = %s", [holder.pid]), "the holder")
    thread = threading.Thread(target=waiter.execute, args=(f"SELECT aq_lab.{get}" % 0,))
    thread.start()
    try:
        yield
    finally:
        conn.execute("SELECT pg_cancel_backend(%s)", [holder.pid])
        thread.join()
        holder.end()


def sleeps_of_one_wait(server, conn, waiter, least):
    """How often a running session sleeps for a latch; it is let go on when it has begun its least-th sleep."""
    query = """SELECT sleeps, misses FROM sys."v$latch_children" WHERE name = 'lab' AND "child#" = 5"""
    number = """SELECT coalesce(max("seq#"), 0) FROM sys."v$session_wait" WHERE pid = %s"""
    begun = db.value(conn, number, [waiter.info.backend_pid])

    def wait():
        with waiting(server, conn, "hold_latch('lab', %s, child => 5)", waiter):
            until(lambda: db.value(conn, number, [waiter.info.backend_pid]) >= begun + least, "the sleeps")

    sleeps, misses = differences(conn, query, wait)
    assert misses == 1
    return sleeps


def test_class_changes_at_reload(server, conn):
    """A session that runs already waits in the class's way after a reload, for that kind of latch only, and in the old way again later."""

    def reload(*statements):
        before = db.value(conn, "SELECT pg_conf_load_time()")
        for statement in statements:
            conn.execute(statement)
        conn.execute("SELECT pg_reload_conf()")
        until(lambda: db.value(conn, "SELECT pg_conf_load_time()") > before, "the reload")

    with server.connect() as waiter:
        assert sleeps_of_one_wait(server, conn, waiter, 1) == 1
        reload("ALTER SYSTEM SET pgaq.latch_class_2 = '50 0 1 1000'", "ALTER SYSTEM SET pgaq.latch_classes = 'session traces:2'")
        until(lambda: db.value(waiter, "SHOW pgaq.latch_classes") == "session traces:2", "the reload in the waiter")
        assert sleeps_of_one_wait(server, conn, waiter, 1) == 1
        reload("ALTER SYSTEM SET pgaq.latch_classes = 'lab:2'")
        until(lambda: db.value(waiter, "SHOW pgaq.latch_classes") == "lab:2", "the reload in the waiter")
        assert sleeps_of_one_wait(server, conn, waiter, 5) >= 5
        reload("ALTER SYSTEM RESET pgaq.latch_classes", "ALTER SYSTEM RESET pgaq.latch_class_2")
        until(lambda: db.value(waiter, "SHOW pgaq.latch_classes") == "", "the reload in the waiter")
        assert sleeps_of_one_wait(server, conn, waiter, 1) == 1


CALL = re.compile(r"^(sched_yield|poll|futex)\((.*?)(?:\)\s+= |$)", re.M)
DEADLINE = re.compile(r"tv_sec=(\d+), tv_nsec=(\d+)")


def system_calls(server, conn, tmp_path, lock, enough, *settings):
    """What a session does, call by call, while it waits for what another session holds: (name, milliseconds).

    It is let go on when it has made so many calls.

    A semaphore's time-out is a deadline.  Each wait that timed out began after the deadline of the one before it, so the
    distance is what was asked for or more; 0 for the first one.
    """
    output = tmp_path / "strace"
    with server.connect() as waiter:
        waiter.execute(f"SELECT aq_lab.{lock}" % 0)
        for setting in settings:
            waiter.execute(f"SET {setting}")
        command = ["strace", "-e", "trace=sched_yield,poll,futex", "-o", str(output), "-p", str(waiter.info.backend_pid)]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            first = tracer.stderr.readline()
            if "attached" not in first:
                pytest.skip(f"missing: strace cannot attach: {first.strip()}")
            with waiting(server, conn, lock, waiter):
                until(lambda: len(CALL.findall(output.read_text())) >= enough, "the calls")
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()
    calls, last = [], None
    for name, arguments in CALL.findall(output.read_text()):
        time = 0.0
        deadline = DEADLINE.search(arguments)
        if name == "poll":
            time = int(arguments.rsplit(",", 1)[1])
        elif deadline:
            until_ms = int(deadline[1]) * 1000 + int(deadline[2]) / 1e6
            time, last = until_ms - (last or until_ms), until_ms
        if name != "futex" or "WAIT" in arguments:
            calls.append((name, time))
    return calls


strace = pytest.mark.skipif(shutil.which("strace") is None, reason="missing: strace")
MUTEX = "hold_mutex('lab 6', %s)"
LATCH = "hold_latch('lab', %s, child => 6)"


def names(calls):
    return [name for name, _ in calls]


def polls(calls):
    return {time for name, time in calls if name == "poll"}


@strace
def test_system_calls_of_scheme_2(server, conn, tmp_path):
    """Two yields, then semaphore waits of 10 ms; with a limit of 300 ms they grow as in seed 003."""
    calls = system_calls(server, conn, tmp_path, MUTEX, 8, "pgaq.mutex_wait_scheme = 2")
    assert names(calls) == ["sched_yield"] * 2 + ["futex"] * (len(calls) - 2) and len(calls) >= 8
    assert all(time >= 10 for _, time in calls[3:])
    calls = system_calls(server, conn, tmp_path, MUTEX, 10, "pgaq.mutex_wait_scheme = 2", "pgaq.mutex_wait_time = 30")
    assert names(calls) == ["sched_yield"] * 2 + ["futex"] * (len(calls) - 2)
    least = [10, 28, 28, 70, 70, 145, 145, 290]
    assert len(calls) >= 10 and all(time >= wanted for (_, time), wanted in zip(calls[3:], least))


@strace
def test_system_calls_of_scheme_1(server, conn, tmp_path):
    """A yield, then polls of mutex_wait_time milliseconds."""
    for time in (1, 30):
        calls = system_calls(server, conn, tmp_path, MUTEX, 5, "pgaq.mutex_wait_scheme = 1", f"pgaq.mutex_wait_time = {time}")
        assert names(calls) == ["sched_yield"] + ["poll"] * (len(calls) - 1) and len(calls) >= 5
        assert polls(calls) == {time}


@strace
def test_system_calls_of_scheme_0(server, conn, tmp_path):
    """99 yields, a poll of 1 ms, 99 yields, ...; in mode sleep it is the other way round."""
    calls = system_calls(server, conn, tmp_path, MUTEX, 202, "pgaq.mutex_wait_scheme = 0")
    assert all(name == ("poll" if n % 100 == 0 else "sched_yield") for n, name in enumerate(names(calls), 1)) and len(calls) > 200
    assert polls(calls) == {1}
    calls = system_calls(
        server, conn, tmp_path, MUTEX, 42, "pgaq.mutex_wait_scheme = 0", "pgaq.wait_yield_mode = sleep", "pgaq.wait_yield_sleep_time = 2"
    )
    assert all(name == ("sched_yield" if n % 20 == 0 else "poll") for n, name in enumerate(names(calls), 1)) and len(calls) > 20
    assert polls(calls) == {2}


@strace
def test_system_calls_with_high_priority(server, conn, tmp_path):
    """Where the others sleep, a session with high priority yields; and the other way round."""
    sleeps = ("pgaq.mutex_wait_scheme = 0", "pgaq.wait_yield_mode = sleep")
    calls = system_calls(server, conn, tmp_path, MUTEX, 202, *sleeps, "pgaq.high_priority = on")
    assert all(name == ("poll" if n % 100 == 0 else "sched_yield") for n, name in enumerate(names(calls), 1)) and len(calls) > 200
    calls = system_calls(
        server, conn, tmp_path, MUTEX, 42, "pgaq.mutex_wait_scheme = 0", "pgaq.wait_yield_hp_mode = sleep", "pgaq.high_priority = on"
    )
    assert all(name == ("sched_yield" if n % 20 == 0 else "poll") for n, name in enumerate(names(calls), 1)) and len(calls) > 20


@strace
def test_system_calls_of_another_scheme(server, conn, tmp_path):
    """Nothing but a yield each 65,536 steps."""
    calls = system_calls(server, conn, tmp_path, MUTEX, 2, "pgaq.mutex_wait_scheme = 3", "pgaq.mutex_spin_count = 1")
    assert set(names(calls)) == {"sched_yield"}


@strace
def test_system_calls_by_type_of_mutex(server, conn, tmp_path):
    """A type of mutex has its own scheme; the others do not change."""
    calls = system_calls(server, conn, tmp_path, MUTEX, 4, "pgaq.mutex_types = 'Lab:scheme=1 time=20'")
    assert set(names(calls[1:])) == {"poll"} and calls[1][1] == 20
    calls = system_calls(server, conn, tmp_path, MUTEX, 4, "pgaq.mutex_types = 'Library Cache:scheme=1 time=20'")
    assert set(names(calls[2:])) == {"futex"}


@strace
def test_system_calls_of_latches(server, conn, tmp_path):
    """A wait for a latch of class 0 is one sleep; another class yields and sleeps according to its settings."""
    assert names(system_calls(server, conn, tmp_path, LATCH, 1)) == ["futex"]
    calls = system_calls(
        server, conn, tmp_path, LATCH, 12, "pgaq.latch_classes = 'lab:1'", "pgaq.latch_class_1 = '100 2 1 5000 40000 100000'"
    )
    assert names(calls[:6]) == ["sched_yield", "sched_yield", "futex"] * 2
    slept = [time for name, time in calls if name == "futex"]
    assert len(slept) > 3 and slept[1] >= 40 and all(time >= 100 for time in slept[2:])


# -- sessions that die


@pytest.mark.parametrize("what", ["latch", "mutex"])
def test_waiter_is_terminated(server, conn, what):
    """A waiter that is terminated leaves when it has got what it waits for, and leaves nothing behind."""
    call = "aq_lab.hold_latch('lab', %s, child => 7)" if what == "latch" else "aq_lab.hold_mutex('lab 7', %s)"
    with held(server, conn, what, f"SELECT {call % 60}"):
        waiter = Session(server, f"SELECT {call % 0}")
        until(lambda: blockers(conn, waiter), "the waiter")
        conn.execute("SELECT pg_terminate_backend(%s)", [waiter.pid])
    waiter.end()
    until(lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [waiter.pid]) == 0, "its end")
    conn.execute(f"SELECT {call % 0}")
    assert db.value(conn, "SELECT count(*) FROM aq_internal.sync_held() WHERE location LIKE 'lab%'") == 0


NOTHING_HELD = "SELECT count(*) = 0 FROM aq_internal.sync_held() WHERE name ILIKE 'lab'"


def test_error_while_holding(conn):
    """After an error, the session's latches are freed at the end of its transaction or subtransaction; the session
    continues."""
    conn.execute("SELECT aq_lab.hold_latch('lab', 0, child => 3)")
    with pytest.raises(psycopg.errors.InternalError_, match="failed while holding"):
        conn.execute("SELECT aq_lab.fail_holding(3)")
    assert db.value(conn, NOTHING_HELD)
    with conn.transaction():
        conn.execute("DO $$ BEGIN PERFORM aq_lab.fail_holding(3); EXCEPTION WHEN internal_error THEN NULL; END $$")
        assert db.value(conn, NOTHING_HELD)
        conn.execute("SELECT aq_lab.hold_latch('lab', 0, child => 3), aq_lab.hold_mutex('lab 3', 0)")
    # interrupts are served again
    conn.execute("SET statement_timeout = '10 ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        conn.execute("SELECT pg_sleep(60)")


def test_session_ends_while_holding(server, conn):
    """A FATAL error too leaves nothing held, and a waiter gets what it waits for."""
    with server.connect() as dying:
        with pytest.raises(psycopg.Error):
            dying.execute("SELECT aq_lab.fail_holding(4, fatal => true)")
    conn.execute("SELECT aq_lab.hold_latch('lab', 0, child => 4), aq_lab.hold_mutex('lab 4', 0)")
    assert db.value(conn, NOTHING_HELD)


@pytest.mark.parametrize("what", ["latch", "mutex"])
def test_waiter_is_killed(new_server, what):
    """A waiter is killed, in the wait list or in the wait loop: the server restarts, and no session hangs."""
    own = new_server("killed")
    own.expect_log(r"terminat|crash|signal 9")
    call = "aq_lab.hold_latch('lab', %s, child => 5)" if what == "latch" else "aq_lab.hold_mutex('lab 5', %s)"
    with own.connect() as looker:
        looker.execute("CREATE EXTENSION pgaq_lab")
        before = generation(own)
        holder = Session(own, f"SELECT {call % 60}")
        until(lambda: db.value(looker, "SELECT count(*) FROM aq_internal.sync_held() WHERE pid = %s", [holder.pid]), "the holder")
        waiter = Session(own, f"SELECT {call % 0}")
        until(lambda: blockers(looker, waiter), "the waiter")
        os.kill(waiter.pid, signal.SIGKILL)
        holder.end()
        waiter.end()
    until(lambda: generation(own) not in (None, before), "the server's recovery")
    with own.connect() as looker:
        looker.execute(f"SELECT {call % 0}")
        assert db.value(looker, NOTHING_HELD)
