"""Immediate visibility: the pool of helpers, who gets one, and what is known of a call that does not end well."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conftest import PATIENCE, held, server_with_points, until
from pgaq import db
from test_launcher import make_database

SETTINGS = {"max_connections": "300"}

pytestmark = pytest.mark.own_tables

SETUP = """
CREATE SCHEMA i;
CREATE TYPE i.job_t AS (id integer, note text);
CALL dbms_aqadm.create_queue_table('i.jobs_table', 'i.job_t');
CALL dbms_aqadm.create_queue('i.jobs', 'i.jobs_table');
CALL dbms_aqadm.start_queue('i.jobs');
CREATE TABLE i.seen (what text, value text);
GRANT ALL ON SCHEMA i TO public;
GRANT ALL ON i.seen TO public;
CREATE SEQUENCE i.numbers;
GRANT ALL ON i.numbers TO public;
-- what calls execute in the helper: arbitrary code with the caller's rights
CREATE FUNCTION i.run(job i.job_t) RETURNS i.job_t LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE job.note;
    RETURN job;
END $$;
-- a CALL that is not alone in its transaction
CREATE PROCEDURE i.enqueue(id integer, note text, OUT msgid uuid) LANGUAGE plpgsql AS $$
BEGIN
    CALL dbms_aq.enqueue('i.jobs', dbms_aq.enqueue_options_t(visibility => 1), NULL, ROW(id, note)::i.job_t, msgid);
END $$;
CREATE PROCEDURE i.run_now(id integer, note text, OUT msgid uuid) LANGUAGE plpgsql AS $$
BEGIN
    CALL dbms_aq.enqueue('i.jobs', dbms_aq.enqueue_options_t(visibility => 1, transformation => 'i.run'), NULL, ROW(id, note)::i.job_t, msgid);
END $$;
CREATE PROCEDURE i.dequeue(wait numeric, OUT payload i.job_t) LANGUAGE plpgsql AS $$
DECLARE
    properties dbms_aq.message_properties_t;
    msgid uuid;
BEGIN
    CALL dbms_aq.dequeue('i.jobs', dbms_aq.dequeue_options_t(visibility => 1, wait => $1), properties, payload, msgid);
END $$;
"""
# by pg_terminate_backend, of a process that has ended just before
GONE = "is not a PostgreSQL backend process"
HELPERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq helper'"
NOW = "dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate())"
ALONE = f"CALL dbms_aq.enqueue('i.jobs', {NOW}, NULL, ROW(%s, %s)::i.job_t, NULL)"
ENQUEUE = "CALL i.enqueue(%s, %s, NULL)"
RUN = "CALL i.run_now(%s, %s, NULL)"
DEQUEUE = "CALL i.dequeue(%s, NULL)"
TAKE_ALL = "SELECT (payload).id FROM aq.dequeue('i.jobs', NULL::i.job_t, max_messages => 100000)"


def set_up(conn, *roles):
    conn.execute(SETUP)
    for role in roles:
        conn.execute(f"CREATE ROLE {role} LOGIN")
        grant(conn, role)


def grant(conn, role):
    conn.execute(f"GRANT aq_user_role TO {role}")
    conn.execute(f"CALL dbms_aqadm.grant_queue_privilege('ALL', 'i.jobs', '{role}')")


@pytest.fixture(scope="module", autouse=True)
def jobs(server):
    server.expect_log(GONE)
    with server.connect() as conn:
        set_up(conn, "ann", "bob")


@pytest.fixture(autouse=True)
def nothing_left(server):
    """Every test begins with an empty queue and without helpers."""
    yield
    with server.connect() as conn:
        conn.execute("ALTER SYSTEM RESET ALL")
        server.reload()
        conn.execute("SELECT aq.purge_queue('i.jobs'); TRUNCATE i.seen")
        end_helpers(conn)


def end_helpers(conn):
    until(
        lambda: db.value(conn, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'pgaq helper'") == 0,
        "the helpers to end",
    )


def limited(server, conn, number, idle=None):
    """Sets the maximum number of helpers."""
    conn.execute(f"ALTER SYSTEM SET pgaq.immediate_helpers = {number}")
    if idle:
        conn.execute(f"ALTER SYSTEM SET pgaq.immediate_idle_timeout = '{idle}'")
    server.reload()
    until(lambda: db.value(conn, "SHOW pgaq.immediate_helpers") == str(number), "the reload")


class Caller:
    """A session that executes one statement in a thread."""

    def __init__(self, server, statement, parameters=None, transaction=False, **connection):
        self.connection = server.connect(autocommit=not transaction, **connection)
        self.pid = self.connection.info.backend_pid
        self.row = self.error = None
        self.thread = threading.Thread(target=self.run, args=(statement, parameters), daemon=True)
        self.thread.start()

    def run(self, statement, parameters):
        try:
            self.row = self.connection.execute(statement, parameters).fetchone()
        except psycopg.Error as error:
            self.error = error

    def join(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        self.connection.close()
        return self

    def end(self):
        self.join()
        assert self.error is None, self.error
        return self.row


def waits(conn, pid, event):
    query = "SELECT 1 FROM sys.v$session_wait WHERE pid = %s AND state = 'WAITING' AND event = %s"
    return db.value(conn, query, [pid, event])


def in_line(conn, caller):
    until(lambda: waits(conn, caller.pid, "aq: free helper"), "the caller waits for a helper")


def at_work(conn, caller):
    until(lambda: waits(conn, caller.pid, "aq: helper call"), "the caller waits for its helper")


def ids(conn):
    return [number for (number,) in conn.execute(TAKE_ALL)]


# --- who gets a helper -------------------------------------------------------------------


def test_sessions_share_helpers(server, conn):
    sessions = [server.connect() for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: [sessions[n].execute(ENQUEUE, [n * 10 + i, "x"]) for i in range(10)], range(20)))
    assert 1 <= db.value(conn, HELPERS) <= 3
    assert sorted(ids(conn)) == list(range(200))
    for session in sessions:
        session.close()


def test_a_waiting_dequeue_holds_no_helper(server, conn):
    limited(server, conn, 1)
    consumers = [Caller(server, DEQUEUE, [60]) for _ in range(3)]
    for consumer in consumers:
        until(lambda: waits(conn, consumer.pid, "Streams AQ: waiting for messages in the queue"), "the consumer waits")
    for number in range(3):
        conn.execute(ENQUEUE, [number, "came"])
    assert all("came" in str(consumer.end()) for consumer in consumers)
    assert db.value(conn, HELPERS) == 1


def test_line(server, conn):
    """Sessions get the helper in the order in which they have asked; one that gives up lets the others pass."""
    limited(server, conn, 1)
    conn.execute("SELECT pg_advisory_lock(7)")
    first = Caller(server, RUN, [0, "SELECT pg_advisory_xact_lock(7)"])
    at_work(conn, first)
    late = Caller(server, ENQUEUE, [9, "x"])
    in_line(conn, late)
    line = []
    for number in range(1, 5):
        line.append(Caller(server, ENQUEUE, [number, "x"]))
        in_line(conn, line[-1])
    late.connection.cancel()
    assert late.join().error.sqlstate == "57014" and late.error.diag.message_detail is None
    conn.execute("SELECT pg_advisory_unlock(7)")
    first.end()
    for caller in line:
        caller.end()
    order = conn.execute("SELECT (payload).id FROM aq.browse('i.jobs', NULL::i.job_t) ORDER BY enqueue_time").fetchall()
    assert order == [(0,), (1,), (2,), (3,), (4,)]


def test_users_take_turns(server, conn):
    """One helper for two users that both always want it: neither starves the other, nor is a process started for each call."""
    limited(server, conn, 1)
    calls, pids = Counter(), set()
    end = time.monotonic() + 2

    def work(user):
        with server.connect(user=user) as session:
            while time.monotonic() < end:
                session.execute(ENQUEUE, [0, "x"])
                calls[user] += 1

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(work, user) for user in ("ann", "bob", "ann", "bob")]
        while time.monotonic() < end:
            pids.update(pid for (pid,) in conn.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq helper'"))
            time.sleep(0.005)
        for each in done:
            each.result()
    print(calls, len(pids))
    assert min(calls.values()) * 10 > max(calls.values())
    assert len(pids) * 3 < sum(calls.values())


def test_160_sessions_of_16_roles(new_server):
    """With default settings but for the number of connections."""
    server = new_server("many", max_connections="200", max_worker_processes="8")
    roles = [f"r{n}" for n in range(16)]
    with server.connect() as conn:
        set_up(conn, *roles)
        sessions = [server.connect(user=roles[n % 16]) for n in range(160)]
        with ThreadPoolExecutor(160) as pool:
            list(pool.map(lambda n: [sessions[n].execute(ENQUEUE, [n * 3 + i, "x"]) for i in range(3)], range(160)))
            got = list(pool.map(lambda n: [sessions[n].execute(DEQUEUE, [60]).fetchone() for _ in range(3)], range(160)))
        assert sum(len(rows) for rows in got) == 480 and ids(conn) == []
        for session in sessions:
            session.close()


ALL_PLACES = "SELECT count(*) = %s FROM pg_stat_activity WHERE backend_type LIKE 'pgaq %%' OR backend_type LIKE 'logical%%'"


def full_server(new_server, places, *databases):
    """The workers of the databases have the last places."""
    own = new_server("full", max_worker_processes=str(places), max_logical_replication_workers="1")
    with own.connect() as conn:
        set_up(conn)
        conn.execute("CALL dbms_aq.enqueue('i.jobs', NULL, NULL, ROW(1, 'x')::i.job_t, NULL)")  # the worker is there
        for name in databases:
            make_database(own, name)
        until(lambda: db.value(conn, ALL_PLACES, [places]), "all places are taken")
    return own


def test_an_idle_worker_makes_room_for_a_helper(new_server):
    own = full_server(new_server, 5, "other")
    with own.connect(options="-c statement_timeout=20s") as conn, own.connect("other", options="-c statement_timeout=20s") as other:
        for number in range(2, 5):
            conn.execute(ENQUEUE, [number, "x"])
            # which may need the worker
            for each in (conn, other):
                db.execute(each, "SELECT aq.create_queue(%s)", [f"more{number}"])
                db.execute(each, "SELECT aq.enqueue(%s, '1')", [f"more{number}"])
        assert sorted(ids(conn)) == [1, 2, 3, 4]


def test_no_place_for_a_process(new_server):
    """The call waits, under a name, and its client is told; other work goes on, because the last worker stays."""
    own = full_server(new_server, 4)
    with own.connect() as conn:
        caller = Caller(own, ENQUEUE, [2, "x"], options="-c statement_timeout=6s")
        told = []
        caller.connection.add_notice_handler(lambda notice: told.append((notice.message_primary, notice.message_hint)))
        in_line(conn, caller)
        conn.execute("CALL dbms_aq.enqueue('i.jobs', NULL, NULL, ROW(3, 'x')::i.job_t, NULL)")
        assert caller.join().error.sqlstate == "57014"
        assert told == [("waiting for a background worker for immediate visibility", "Raise max_worker_processes (now 4).")]
        assert "could not start a background worker for immediate visibility" in own.log_text()
        assert sorted(ids(conn)) == [1, 3]


def test_a_call_that_calls(server, conn):
    """A helper that needs another one gets it first; where there is none, it says so instead of waiting for itself."""
    nested = f"DO $$ DECLARE id uuid; BEGIN CALL i.enqueue(2, 'inner', id); END $$"
    limited(server, conn, 2)
    conn.execute(RUN, [1, nested])
    assert sorted(ids(conn)) == [1, 2]
    end_helpers(conn)
    limited(server, conn, 1)
    with pytest.raises(psycopg.Error) as error:
        conn.execute(RUN, [1, nested])
    assert error.value.sqlstate == "AQ026" and "pgaq.immediate_helpers" in error.value.diag.message_hint
    conn.execute(ENQUEUE, [3, "x"])
    assert ids(conn) == [3]


# --- what a helper is ---------------------------------------------------------------------------


def seen(conn, what="who"):
    return [value for (value,) in conn.execute("SELECT value FROM i.seen WHERE what = %s ORDER BY ctid", [what])]


WHO = "INSERT INTO i.seen VALUES ('who', concat_ws(' ', session_user, current_user, current_setting('is_superuser'), pg_has_role('postgres', 'usage')))"


def test_users_of_a_helper(server, conn):
    """The session's user and the current user are the caller's, whatever has made them so."""
    conn.execute("GRANT bob TO ann")
    with server.connect(user="ann") as ann:
        ann.execute(RUN, [1, WHO])
        ann.execute("SET ROLE bob")
        ann.execute(RUN, [2, WHO])
    conn.execute("SET SESSION AUTHORIZATION ann")
    conn.execute(RUN, [3, WHO])
    conn.execute("RESET SESSION AUTHORIZATION")
    conn.execute(
        "CREATE FUNCTION i.for_bob(statement text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$"
        " DECLARE id uuid; BEGIN CALL dbms_aq.enqueue('i.jobs', dbms_aq.enqueue_options_t(visibility => 1, transformation => 'i.run'),"
        " NULL, ROW(4, statement)::i.job_t, id); END $$"
    )
    conn.execute("ALTER FUNCTION i.for_bob OWNER TO bob")
    with server.connect(user="ann") as ann:
        ann.execute("SELECT i.for_bob(%s)", [WHO])
    assert seen(conn) == ["ann ann off f", "ann bob off f", "ann ann off f", "ann bob off f"]
    conn.execute("DROP FUNCTION i.for_bob; REVOKE bob FROM ann")


@pytest.mark.parametrize("statement", ["SET ROLE postgres", "SET SESSION AUTHORIZATION postgres", "RESET SESSION AUTHORIZATION"])
def test_a_helper_stays_who_it_is(server, conn, statement):
    """Also one whose session's user a superuser has chosen."""
    conn.execute("SET SESSION AUTHORIZATION ann")
    with pytest.raises(psycopg.Error) as error:
        conn.execute(RUN, [1, statement])
    assert "cannot set parameter" in str(error.value) and "security" in str(error.value)


LEAVINGS = {
    "setting": ("SELECT set_config('work_mem', '77MB', false)", "SELECT current_setting('work_mem')", "4MB"),
    "own setting": ("SELECT set_config('i.own', 'left', false)", "SELECT coalesce(current_setting('i.own', true), '') ", ""),
    "temporary table": ("CREATE TEMP TABLE left_behind AS SELECT 1", "SELECT to_regclass('pg_temp.left_behind')::text IS NULL", "true"),
    "prepared statement": ("PREPARE left_behind AS SELECT 1", "SELECT count(*) FROM pg_prepared_statements", "0"),
    "cursor": ("DECLARE left_behind CURSOR WITH HOLD FOR SELECT 1", "SELECT count(*) FROM pg_cursors WHERE name = 'left_behind'", "0"),
    "advisory lock": ("SELECT pg_advisory_lock(99)", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "0"),
    "sequence": ("SELECT nextval('i.numbers')", "SELECT i.lastval()", "none"),
}


@pytest.mark.parametrize("what", LEAVINGS)
@pytest.mark.parametrize("fails", [False, True], ids=["commit", "error"])
def test_nothing_is_left_for_the_next_caller(server, conn, what, fails):
    leave, look, clean = LEAVINGS[what]
    limited(server, conn, 1)
    conn.execute(
        "CREATE OR REPLACE FUNCTION i.lastval() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN lastval(); EXCEPTION WHEN OTHERS THEN RETURN 'none'; END $$"
    )
    with server.connect(user="ann") as one, server.connect(user="ann") as other:
        if fails:
            with pytest.raises(psycopg.Error):
                one.execute(RUN, [1, f"DO $$ BEGIN EXECUTE $s${leave}$s$; PERFORM 1 / 0; END $$"])
        else:
            one.execute(RUN, [1, leave])
        pid = db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq helper'")
        other.execute(RUN, [2, f"INSERT INTO i.seen SELECT '{what}', ({look})::text"])
        assert db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq helper'") == pid
    assert seen(conn, what) == [clean]


def test_positions_and_order_are_the_sessions(server, conn):
    """Two sessions read through one helper, each from its own position; a session's messages keep their order, whichever helper enqueues them."""
    limited(server, conn, 2)
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(conn.execute, RUN, [1000, "SELECT pg_sleep(0.5)"])
        with server.connect() as producer:
            for number in range(40):
                producer.execute(ENQUEUE, [number, "a" if number % 2 else "b"])
        busy.result()
    assert [number for number in ids(conn) if number < 1000] == list(range(40))
    for number in range(4):
        conn.execute(ENQUEUE, [number, "x"])
    step = "CALL dbms_aq.dequeue('i.jobs', dbms_aq.dequeue_options_t(visibility => 1, wait => 0, navigation => %s, correlation => %s), NULL, NULL::i.job_t, NULL)"
    put = f"CALL dbms_aq.enqueue('i.jobs', {NOW}, dbms_aq.message_properties_t(correlation => %s), ROW(%s, 'x')::i.job_t, NULL)"
    ids(conn)
    for number, correlation in enumerate("ababab"):
        conn.execute(put, [correlation, number])
    with server.connect(autocommit=False) as one, server.connect(autocommit=False) as other:
        one.execute(step, [1, "a"])
        other.execute(step, [1, "b"])
        one.execute(step, [3, "a"])
        other.execute(step, [3, "b"])
        with pytest.raises(psycopg.Error) as error:
            one.execute(step, [3, "b"])
        assert error.value.diag.sqlstate == "AQ056" or "ORA-25241" in str(error.value)


def test_flow_control_holds_no_helper(server, conn):
    """A producer that waits for room for buffered messages leaves the helper to the consumer that makes it."""
    limited(server, conn, 1)
    put = (
        "CALL dbms_aq.enqueue('i.jobs', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), NULL, ROW(%s, 'x')::i.job_t, NULL)"
    )
    take = "CALL dbms_aq.dequeue('i.jobs', dbms_aq.dequeue_options_t(visibility => 1, delivery_mode => 2, navigation => 1, wait => 0), NULL, NULL::i.job_t, NULL)"
    options = "-c pgaq.buffered_message_limit=2"
    with server.connect(options=options, autocommit=False) as producer:
        for number in range(2):
            producer.execute(put, [number])
    waiting = Caller(server, put, [2], transaction=True, options=options)
    until(lambda: waits(conn, waiting.pid, "Streams AQ: enqueue blocked due to flow control"), "the producer waits")
    conn.execute(take)
    waiting.end()
    late = Caller(server, put, [3], transaction=True, options=options + " -c pgaq.flow_control_timeout=200ms")
    assert late.join().error.sqlstate == "AQ118"
    for _ in range(2):
        conn.execute(take)


# --- calls without a helper -----------------------------------------------------------------


def test_a_call_that_is_its_whole_transaction_needs_no_helper(server, conn):
    take = "CALL dbms_aq.dequeue('i.jobs', dbms_aq.dequeue_options_t(visibility => 1, wait => 0), NULL, NULL::i.job_t, NULL)"
    for number in range(3):
        conn.execute(ALONE, [number, "x"])
    assert conn.execute(take).fetchone()[1].startswith("(0,")
    assert db.value(conn, HELPERS) == 0 and ids(conn) == [1, 2]


def test_a_committed_call_stays_when_its_pipeline_fails(server, conn):
    """A first call is committed by itself, not with what follows; a later one does not commit what was before."""
    insert = "INSERT INTO i.seen VALUES ('pipeline', %s)"
    for number, statements in enumerate([["insert", ALONE], [ALONE, "insert"], ["insert", ALONE, "insert"]]):
        with server.connect() as piped:
            with pytest.raises(psycopg.errors.DivisionByZero):
                with piped.pipeline():
                    for statement in statements:
                        if statement == "insert":
                            piped.execute(insert, [str(number)])
                        else:
                            piped.execute(statement, [number, "x"])
                    piped.execute("SELECT 1 / 0")
        assert seen(conn, "pipeline") == [] and ids(conn) == [number], statements


NESTED = {
    "one string": "INSERT INTO i.seen VALUES ('nested', 'x'); {call}; SELECT 1 / 0",
    "first of one string": "{call}; INSERT INTO i.seen VALUES ('nested', 'x'); SELECT 1 / 0",
    "block": "BEGIN; INSERT INTO i.seen VALUES ('nested', 'x'); {call}; SELECT 1 / 0",
    "DO": "DO $$ DECLARE id uuid; BEGIN INSERT INTO i.seen VALUES ('nested', 'x'); {call_into}; PERFORM 1 / 0; END $$",
    "EXECUTE": "DO $$ BEGIN INSERT INTO i.seen VALUES ('nested', 'x'); EXECUTE $s${call}$s$; PERFORM 1 / 0; END $$",
    "subtransaction": "DO $$ DECLARE id uuid; BEGIN BEGIN INSERT INTO i.seen VALUES ('nested', 'x'); {call_into}; EXCEPTION WHEN division_by_zero THEN NULL; END; PERFORM 1 / 0; END $$",
    "procedure": "CREATE PROCEDURE pg_temp.p() LANGUAGE plpgsql AS $$ DECLARE id uuid; BEGIN INSERT INTO i.seen VALUES ('nested', 'x'); {call_into}; PERFORM 1 / 0; END $$"
    "\nCALL pg_temp.p()",
    "procedure that has committed": "CREATE PROCEDURE pg_temp.p() LANGUAGE plpgsql AS $$ DECLARE id uuid; BEGIN COMMIT; INSERT INTO i.seen VALUES ('nested', 'x'); {call_into}; PERFORM 1 / 0; END $$"
    "\nCALL pg_temp.p()",
}


@pytest.mark.parametrize("how", NESTED)
def test_a_call_commits_nothing_of_its_caller(server, conn, how):
    call = ALONE % (1, "'x'")
    with server.connect() as session:
        with pytest.raises(psycopg.errors.DivisionByZero):
            for statement in NESTED[how].format(call=call, call_into=call.removesuffix("NULL)") + "id)").split("\n"):
                session.execute(statement)
    assert seen(conn, "nested") == [] and ids(conn) == [1]


def test_an_argument_that_writes_is_not_committed_by_the_call(server, conn):
    """Its function writes, then the call fails: by a helper, as in a longer transaction."""
    conn.execute(
        "CREATE OR REPLACE FUNCTION i.noted(id integer) RETURNS i.job_t LANGUAGE sql AS $$"
        " INSERT INTO i.seen VALUES ('argument', id::text); SELECT ROW(id, 'x')::i.job_t $$"
    )
    conn.execute(f"CALL dbms_aq.enqueue('i.jobs', {NOW}, NULL, i.noted(1), NULL)")
    assert db.value(conn, HELPERS) == 1
    assert seen(conn, "argument") == ["1"] and ids(conn) == [1]


# --- when helpers end ---------------------------------------------------------------------------------


def test_an_idle_helper_ends(server, conn):
    conn.execute(ENQUEUE, [1, "x"])
    assert db.value(conn, HELPERS) == 1
    limited(server, conn, 3, idle="50ms")
    until(lambda: db.value(conn, HELPERS) == 0, "the end of the idle helper")
    conn.execute(ENQUEUE, [2, "x"])
    assert sorted(ids(conn)) == [1, 2]


def test_idle_helpers_are_in_the_way_of_no_command(server, conn):
    conn.execute("CREATE DATABASE apart")
    with server.connect("apart") as there:
        there.execute("CREATE EXTENSION IF NOT EXISTS pgaq_oracle CASCADE")
        set_up(there)
        there.execute("CREATE ROLE carl LOGIN")
        grant(there, "carl")
        with server.connect("apart", user="carl") as carl:
            carl.execute(ENQUEUE, [1, "x"])
        there.execute(ENQUEUE, [2, "x"])
    assert db.value(conn, HELPERS) == 2
    conn.execute("CREATE DATABASE copy TEMPLATE apart")
    with server.connect("apart") as there:
        there.execute(ENQUEUE, [3, "x"])
    conn.execute("ALTER DATABASE apart RENAME TO away")
    with server.connect("away") as there:
        there.execute(ENQUEUE, [4, "x"])
        assert db.value(conn, HELPERS) == 1
    conn.execute("DROP DATABASE away")
    until(lambda: db.value(conn, HELPERS) == 0, "no helper is left")
    conn.execute("DROP DATABASE copy")
    conn.execute("DROP ROLE carl")


def test_a_dropped_role_and_a_dropped_extension_have_no_helper(new_server):
    server = new_server("dropped")
    with server.connect() as conn:
        set_up(conn, "dora")
        with server.connect(user="dora") as dora:
            dora.execute(ENQUEUE, [1, "x"])
        assert db.value(conn, HELPERS) == 1
        conn.execute("DROP OWNED BY dora; DROP ROLE dora")
        until(lambda: db.value(conn, HELPERS) == 0, "the end of the helper of the dropped role")
        conn.execute(ENQUEUE, [2, "x"])
        assert db.value(conn, HELPERS) == 1
        conn.execute("CALL dbms_aqadm.drop_queue_table('i.jobs_table', force => true)")
        conn.execute("DROP SCHEMA i CASCADE; DROP EXTENSION pgaq CASCADE")
        until(lambda: db.value(conn, HELPERS) == 0, "the end of the helper of the dropped extension")
        conn.execute("CREATE EXTENSION pgaq")


@pytest.mark.parametrize("setting", ["ROLE ann", "ROLE ann IN DATABASE postgres", "DATABASE postgres"])
def test_a_helper_that_starts_before_a_setting_is_committed(server, conn, setting):
    """It has the old value, and ends."""
    with server.connect(autocommit=False) as other:
        other.execute(f"ALTER {setting} SET work_mem = '77MB'")
        with server.connect(user="ann") as ann:
            ann.execute(RUN, [1, "SELECT 1"])
        other.commit()
    with server.connect(user="ann") as ann:
        ann.execute(RUN, [2, "INSERT INTO i.seen VALUES ('setting', current_setting('work_mem'))"])
    conn.execute(f"ALTER {setting} RESET work_mem")
    assert seen(conn, "setting") == ["77MB"]


# --- calls that do not end well ----------------------------------------------------------------------------


def test_an_own_lock_is_named(server):
    with server.connect(autocommit=False) as holder:
        holder.execute("LOCK TABLE aq_internal.queue")
        with pytest.raises(psycopg.Error) as error:
            holder.execute(ENQUEUE, [1, "never"])
        assert error.value.sqlstate == "55P03" and "itself holds" in str(error.value)
        assert "rolled back" in error.value.diag.message_detail


def test_a_deadlock_through_another_session(server, conn):
    """The helper waits for a session that waits for the caller."""
    with server.connect(autocommit=False) as other:
        other.execute("LOCK TABLE i.seen")
        caller = Caller(server, "SELECT pg_advisory_xact_lock(8); " + RUN % (1, "'LOCK TABLE i.seen'"))
        at_work(conn, caller)
        other.execute("SELECT pg_advisory_xact_lock(8)")
        error = caller.join().error
        assert error.sqlstate == "40P01", error
        assert error.diag.message_detail.startswith(f'Process {caller.pid} waits for "aq: helper call", process# ')
        other.execute("ROLLBACK")


def test_a_helper_that_cannot_start(server, conn):
    with server.connect(user="bob") as bob:
        conn.execute("ALTER ROLE bob NOLOGIN")
        with pytest.raises(psycopg.Error) as error:
            bob.execute(ENQUEUE, [1, "x"])
        assert error.value.sqlstate == "AQ026" and "could not start" in str(error.value)
        conn.execute("ALTER ROLE bob LOGIN")
        bob.execute(ENQUEUE, [2, "x"])
    assert ids(conn) == [2]


def test_a_helper_that_ends_between_calls_is_not_noticed(server, conn):
    """Another helper is used.  If the ended one had already begun, the call was rolled back."""
    sent = []
    for number in range(50):
        try:
            conn.execute(ENQUEUE, [number, "x"])
            sent.append(number)
        except psycopg.Error as error:
            assert "rolled back" in error.diag.message_detail
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgaq helper'")
    assert sorted(ids(conn)) == sent and len(sent) > 40


@pytest.fixture(scope="module")
def points(library):
    with pytest.MonkeyPatch.context() as patch, server_with_points(patch, library, "helpers", f"terminat|cancel|{GONE}") as server:
        with server.connect() as conn:
            set_up(conn, "ann", "bob")
        yield server


def waiting_at(conn, point):
    until(lambda: db.value(conn, "SELECT aq.point_waiting(%s)", [point]) > 0, f"a session at {point}")


@pytest.mark.test_build
@pytest.mark.parametrize("end", ["cancel", "terminate", "helper", "helper cancelled"])
@pytest.mark.parametrize("point", ["helper-began", "helper-executed", "helper-committed"])
def test_a_call_ends_in_the_middle(points, point, end):
    """Caller or helper is cancelled or terminated: the error says whether the call was committed, and that is true."""
    committed = point == "helper-committed"
    with points.connect() as conn:
        conn.execute(ENQUEUE, [0, "before"])
        with held(points, point) as control:
            caller = Caller(points, ENQUEUE, [1, "x"])
            waiting_at(control, point)
            at_work(conn, caller)
            helper = db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq helper'")
            ended = {
                "cancel": "pg_cancel_backend",
                "terminate": "pg_terminate_backend",
                "helper": "pg_terminate_backend",
                "helper cancelled": "pg_cancel_backend",
            }[end]
            conn.execute(f"SELECT {ended}(%s)", [helper if end.startswith("helper") else caller.pid])
            if committed and end.startswith("helper"):
                time.sleep(0.2)  # nothing can be seen: the helper serves no interrupt here
            else:
                caller.join()
                # the client has its error before the process has told the helper
                until(
                    lambda: end != "terminate" or db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [caller.pid]) == 0,
                    "the end of the caller's process",
                )
        caller.join()
        if end == "cancel":
            assert caller.error.sqlstate == "57014"
            assert ("was committed" if committed else "rolled back") in caller.error.diag.message_detail
        elif end == "terminate":
            assert caller.error is not None
        elif end == "helper":
            if caller.error is not None:
                assert caller.error.sqlstate in ("AQ026", "57P01")
                assert ("was committed" if committed else "rolled back") in str(
                    caller.error.diag.message_detail
                ) or caller.error.sqlstate == "57P01"
            else:
                assert committed or point == "helper-began"
        elif committed:
            assert caller.error is None
        else:
            assert caller.error.sqlstate == "57014"
        # the pool is as before
        conn.execute(ENQUEUE, [2, "after"])
        until(
            lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq helper' AND state = 'active'") == 0,
            "the helper at rest",
        )
        expected = [0, 1, 2] if committed or (end == "helper" and caller.error is None) else [0, 2]
        assert sorted(ids(conn)) == expected


@pytest.mark.test_build
@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_caller_ends_before_its_helper_begins(points, end):
    """The call is not executed, and the next session in line gets the helper."""
    with points.connect() as conn:
        limited(points, conn, 1)
        end_helpers(conn)
        with held(points, "helper-next") as control:
            caller = Caller(points, ENQUEUE, [1, "x"])
            waiting_at(control, "helper-next")
            next_one = Caller(points, ENQUEUE, [2, "x"])
            in_line(conn, next_one)
            conn.execute(f"SELECT {end}(%s)", [caller.pid])
            caller.join()
            assert caller.error is not None
            if end == "pg_cancel_backend":
                assert "rolled back" in caller.error.diag.message_detail
            at_work(conn, next_one)
        next_one.end()
        assert ids(conn) == [2]
        conn.execute("ALTER SYSTEM RESET ALL")
        points.reload()


def test_a_call_survives_a_crash(new_server):
    """A helper commits asynchronously, and its caller waits for the flush: nothing else flushes the WAL here."""
    server = new_server("durable", wal_writer_delay="10s", autovacuum="off")
    with server.connect() as conn:
        set_up(conn)
        conn.execute(ENQUEUE, [0, "starts the helper"])
        conn.execute("CHECKPOINT")
        conn.execute(ENQUEUE, [1, "x"])
        server.kill()
    server.start()
    with server.connect() as conn:
        assert ids(conn) == [0, 1]


def test_what_is_said_of_calls_is_true(new_server, is_long, seed):
    """Callers are cancelled and terminated, helpers are terminated; each message is there exactly if its call says so."""
    rng = random.Random(seed)
    server = new_server("fates", max_connections="100")
    server.expect_log(f"terminat|cancel|{GONE}")
    sessions, seconds = (16, 60) if is_long else (8, 6)
    there, absent, unknown = set(), set(), set()
    end = time.monotonic() + seconds
    lock = threading.Lock()

    def fate(error, number):
        detail = (error.diag.message_detail or "") if error.diag else ""
        with lock:
            if "was committed" in detail:
                there.add(number)
            elif "rolled back" in detail:
                absent.add(number)
            else:  # the session was ended, or its statement cancelled before or after the call
                unknown.add(number)

    def work(first, user):
        session, number = server.connect(user=user), first
        while time.monotonic() < end:
            try:
                session.execute(ENQUEUE, [number, "x"])
                with lock:
                    there.add(number)
            except psycopg.Error as error:
                fate(error, number)
            if session.closed or session.broken:
                session = server.connect(user=user)
            number += sessions
        session.close()

    with server.connect() as conn:
        set_up(conn, "ann", "bob", "carl", "dora")
        with ThreadPoolExecutor(sessions) as pool:
            done = [pool.submit(work, n, ["ann", "bob", "carl", "dora"][n % 4]) for n in range(sessions)]
            while time.monotonic() < end:
                kind = rng.choice(["client backend", "client backend", "pgaq helper"])
                how = "pg_terminate_backend" if kind == "pgaq helper" or rng.random() < 0.2 else "pg_cancel_backend"
                conn.execute(
                    f"SELECT {how}(pid) FROM pg_stat_activity WHERE backend_type = %s AND usename <> 'postgres' ORDER BY random() LIMIT 1",
                    [kind],
                )
                time.sleep(rng.random() * 0.02)
            for each in done:
                each.result()
        until(
            lambda: db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq helper' AND state = 'active'") == 0,
            "the helpers at rest",
        )
        found = Counter(ids(conn))
        print(f"{len(there)} there, {len(absent)} absent, {len(unknown)} unknown")
        assert set(found.values()) == {1}
        assert there <= set(found) and not absent & set(found), (there - set(found), absent & set(found))
        assert set(found) <= there | unknown
        assert len(absent) > 0
