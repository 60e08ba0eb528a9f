"""Workers run from the server's start on: what is due happens without a session that uses a queue."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import arrived, background, generation, held, install, put, ready, take, until
from pgaq import db

WORKERS = "SELECT coalesce(array_agg(datname::text ORDER BY datname), '{}') FROM pg_stat_activity WHERE backend_type = 'pgaq worker'"


def workers(conn):
    """Databases that have a worker."""
    return db.value(conn, WORKERS)


def all_asked(conn):
    """Has the launcher asked every database whether it has queues?"""
    query = """SELECT p1 = 0 AND state = 'WAITING' FROM sys."v$session_wait" WHERE event = 'aq: launcher idle'"""
    return db.value(conn, query)


def connect(server):
    """A connection, or None while the server does not take any."""
    try:
        return server.connect()
    except db.Error:
        return None


def make_database(server, name, queue=True, like=None):
    """A database with the extension and perhaps a queue; a copy of a database that has the extension and no queue takes an eighth of the time."""
    with server.connect() as conn:
        conn.execute(f"CREATE DATABASE {name} TEMPLATE {like or 'template1'}")
    with server.connect(name) as there:
        if like is None:
            install(there)
        if queue:
            db.execute(there, "SELECT aq.create_queue('q')")
            put(there, "q", name)
    with server.connect() as conn:
        query = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        until(lambda: db.value(conn, query, [name]), "our session's end")


def leave_expired_in_doubt(conn):
    """A message that is to go to an exception queue as soon as its prepared transaction is committed."""
    conn.execute("SELECT aq.create_queue('dead'), aq.create_queue('q', exception_queue => 'dead')")
    conn.execute("BEGIN")
    put(conn, "q", "late", expiration="1 millisecond")
    conn.execute("PREPARE TRANSACTION 'late'")


def stored(conn, queue):
    """The number of rows in the tables of a queue, read as tables, so that the queue is not used."""
    tables = conn.execute(
        """SELECT format('aq_data.q%%s_%%s', t.queue_id, t.table_no) FROM aq_internal.message_table t JOIN aq_internal.queue q USING (queue_id) WHERE q.queue_name = %s
           UNION ALL SELECT format('aq_data.t%%s', queue_table_id) FROM aq_internal.queue WHERE queue_name = %s AND store = 'c'""",
        [queue, queue],
    )
    return sum(db.value(conn, f"SELECT count(*) FROM {table}") for (table,) in tables.fetchall())


def resolve_and_expire(conn):
    """Commit the prepared transaction; the worker finds out and moves the message."""
    assert stored(conn, "dead") == 0
    conn.execute("COMMIT PREPARED 'late'")
    until(lambda: stored(conn, "dead") == 1, "the message in the exception queue")
    assert take(conn, "q") == []
    assert take(conn, "dead") == ["late"]


@pytest.mark.parametrize("how", ["fast", "crash", "kill"])
def test_expiration_after_a_start(new_server, how):
    """In doubt at the stop, expired after the start: moved, though no session uses the queue."""
    own = new_server("start")
    own.expect_log(r"terminat|crash")
    with own.connect() as conn:
        leave_expired_in_doubt(conn)
        before = generation(own)
        if how == "crash":
            os.kill(conn.info.backend_pid, signal.SIGKILL)
            until(lambda: "reinitializing" in own.log_text(), "the crash")
            until(lambda: generation(own) not in (None, before), "the server has started anew")
    if how == "kill":
        own.kill()
        own.start()
    elif how == "fast":
        own.restart()
    with until(lambda: connect(own), "the server is back") as conn:
        resolve_and_expire(conn)


def test_expiration_after_promotion(new_server, throw_away):
    """A standby has no launcher and no worker; from its promotion on it has."""
    own = new_server("primary")
    copy = throw_away(own.basebackup("standby"))
    copy.expect_log(r"WARNING:.*standby")
    with own.connect() as conn:
        leave_expired_in_doubt(conn)
    copy.start()
    copy.wait_for_replay(own)
    with copy.connect() as there:
        # the sampler looks at queries of a standby, too
        processes = "SELECT coalesce(string_agg(backend_type, ','), '') FROM pg_stat_activity WHERE backend_type LIKE 'pgaq%%'"
        until(lambda: db.value(there, processes) == "pgaq sampler", "the sampler, and nobody else")
        copy.promote()
        resolve_and_expire(there)


def test_databases_with_queues_have_workers(new_server):
    """These, and no others; templates and closed databases are left alone."""
    own = new_server("several")
    make_database(own, "without_queue", queue=False)
    for name in ("used", "also_used", "used_too", "template", "closed"):
        make_database(own, name, like="without_queue")
    with own.connect() as conn:
        conn.execute("CREATE DATABASE without_extension")
        conn.execute("ALTER DATABASE template IS_TEMPLATE true")
        conn.execute("ALTER DATABASE closed ALLOW_CONNECTIONS false")
    own.restart()
    with own.connect() as conn:
        until(lambda: all_asked(conn) and workers(conn) == ["also_used", "used", "used_too"], "the workers")
        # each of them lets the next one be asked: the launcher never waits until its patience is over
        assert db.value(conn, """SELECT sum(total_timeouts) FROM sys."v$session_event" WHERE event = 'aq: launcher idle'""") == 0
        # postgres has the extension, and from the first queue on a worker
        db.execute(conn, "SELECT aq.create_queue('q')")
        put(conn, "q", 1)
        until(lambda: workers(conn) == ["also_used", "postgres", "used", "used_too"], "a worker")


def test_databases_are_free_for_their_owner_after_a_start(new_server):
    """DROP, RENAME and copying work at once, though the launcher may be asking the same database."""
    own = new_server("owner")
    for turn in range(2):
        for name in ("dropped", "renamed", "copied"):
            make_database(own, name)
        with own.connect() as conn:
            conn.execute("CREATE DATABASE empty")
        own.restart()
        with own.connect() as conn:
            conn.execute("DROP DATABASE empty")
            conn.execute("ALTER DATABASE renamed RENAME TO other_name")
            conn.execute("CREATE DATABASE copy TEMPLATE copied")
            conn.execute("DROP DATABASE dropped")
            for name in ("other_name", "copied", "copy"):
                conn.execute(f"DROP DATABASE {name}")


def test_worker_returns_to_a_renamed_database(new_server):
    """Without a session that asks for it; likewise after a copy, and after a drop that was refused."""
    own = new_server("renamed")
    make_database(own, "old_name")
    with own.connect() as conn:
        until(lambda: workers(conn) == ["old_name"], "the worker")
        conn.execute("ALTER DATABASE old_name RENAME TO new_name")
        until(lambda: workers(conn) == ["new_name"], "the worker after RENAME")
        conn.execute("CREATE DATABASE copy TEMPLATE new_name")
        until(lambda: workers(conn) == ["copy", "new_name"], "the worker after CREATE DATABASE, and the copy's")
        with own.connect("new_name"):
            with pytest.raises(db.Error) as caught:
                conn.execute("DROP DATABASE new_name")
            assert caught.value.sqlstate == "55006"
        until(lambda: workers(conn) == ["copy", "new_name"], "the worker after DROP DATABASE")
    with own.connect("new_name") as there:
        assert take(there, "q") == ["old_name"]


def test_databases_are_created_beside_queues_in_the_template(new_server):
    """By roles that may create databases, without naming the template; the worker is back, and ends with the extension."""
    own = new_server("template")
    with own.connect() as conn:
        conn.execute("CREATE ROLE builder CREATEDB")
        with own.connect("template1") as there:
            install(there)
            db.execute(there, "SELECT aq.create_queue('q')")
            put(there, "q", "copied")
        until(lambda: workers(conn) == ["template1"], "the worker")
        until(
            lambda: (
                not db.value(conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'template1' AND backend_type = 'client backend'")
            ),
            "our session's end",
        )
        conn.execute("CREATE DATABASE first")
        with own.connect("first") as there:
            assert take(there, "q") == ["copied"]
        until(lambda: "template1" in workers(conn), "the worker again")
        conn.execute("SET ROLE builder")
        conn.execute("CREATE DATABASE second")
        conn.execute("RESET ROLE")
        until(lambda: "template1" in workers(conn), "the worker again")


def test_no_worker_without_the_extension(new_server):
    """It ends with the extension, whichever session drops it, and is there again with the next one."""
    own = new_server("uninstalled")
    make_database(own, "used")
    for turn in range(3):
        with own.connect("used") as there, own.connect() as conn:
            until(lambda: workers(conn) == ["used"], "the worker")
            there.execute("BEGIN; DROP EXTENSION pgaq CASCADE; ROLLBACK")
            assert take(there, "q") == ["used"] and workers(conn) == ["used"]
            there.execute("DROP EXTENSION pgaq CASCADE")
            until(lambda: workers(conn) == [], "the worker's end")
            there.execute("BEGIN")
            install(there)
            db.execute(there, "SELECT aq.create_queue('q')")
            put(there, "q", "used", delay="0.01 s")
            there.execute("COMMIT")
            assert arrived(there, "q", 1) == ["used"]
            put(there, "q", "used")


def rounds(conn):
    """How often the worker has been woken; 0 when it is busy or not there."""
    query = """SELECT coalesce(sum(e.total_waits), 0) FROM sys."v$session_wait" w JOIN sys."v$session_event" e USING (sid, event)
               WHERE w.event = 'aq: worker idle' AND w.state = 'WAITING'"""
    return db.value(conn, query)


def another_round(conn, before):
    """Has the worker been woken, and found nothing more to do; or ended?"""
    return workers(conn) == [] or rounds(conn) > before


def test_others_drop_while_the_extension_is_made(new_server):
    """Neither they nor the worker see the extension yet: that does not mean that it was dropped."""
    own = new_server("unseen", max_prepared_transactions=2)
    with own.connect() as conn:
        conn.execute("CREATE DATABASE used")
        with own.connect("used") as there, own.connect("used") as other:
            other.execute("CREATE TABLE x (); CREATE SCHEMA y")
            for command in ("DROP TABLE x", "DROP SCHEMA y"):
                there.execute("BEGIN")
                install(there)
                db.execute(there, "SELECT aq.create_queue('q')")
                put(there, "q", command, delay="0.01 s")
                before = until(lambda: rounds(conn), "the worker at rest")
                other.execute(command)
                # which has the worker look
                for each in ("BEGIN", "CREATE TABLE z ()", "PREPARE TRANSACTION 'z'", "ROLLBACK PREPARED 'z'"):
                    other.execute(each)
                until(lambda: another_round(conn, before), "the worker has looked")
                there.execute("COMMIT")
                until(lambda: workers(conn) == ["used"], "the worker")
                assert arrived(there, "q", 1) == [command]
                there.execute("DROP EXTENSION pgaq CASCADE")
                until(lambda: workers(conn) == [], "the worker's end")


def test_extension_dropped_by_a_prepared_transaction(new_server):
    """The worker stays until COMMIT PREPARED, in whichever session that is, and ends then."""
    own = new_server("prepared", max_prepared_transactions=2)
    make_database(own, "used")
    with own.connect() as conn:
        for end in ("ROLLBACK", "COMMIT"):
            before = until(lambda: rounds(conn), "the worker at rest")
            with own.connect("used") as there:
                there.execute("BEGIN")
                there.execute("DROP EXTENSION pgaq CASCADE")
                there.execute("PREPARE TRANSACTION 'gone'")
            until(lambda: another_round(conn, before), "the worker has looked")
            assert workers(conn) == ["used"]
            with own.connect("used") as there:
                there.execute(f"{end} PREPARED 'gone'")
                if end == "ROLLBACK":
                    assert take(there, "q") == ["used"] and workers(conn) == ["used"]
        until(lambda: workers(conn) == [], "the worker's end")


def test_terminated_worker_returns(new_server):
    """Without a session that asks for it; the launcher is back, too."""
    own = new_server("terminated")
    make_database(own, "used")
    with own.connect("used") as conn:
        for kind in ("worker", "launcher", "worker"):
            old = until(lambda: background(conn, kind), kind)
            conn.execute("SELECT pg_terminate_backend(%s)", [old])
            until(lambda: background(conn, kind) not in (None, old), f"another {kind}")


def test_no_place_for_all_workers(new_server):
    """They take turns, without a word in the log."""
    own = new_server("places", max_worker_processes="3", max_logical_replication_workers="0")
    make_database(own, "one")
    make_database(own, "two")
    own.restart()
    with own.connect() as conn:
        until(lambda: all_asked(conn), "all were asked")
        [lucky] = until(lambda: workers(conn), "a worker")
        other = "one" if lucky == "two" else "two"
        with own.connect(other) as there:
            put(there, "q", "delayed", delay="0.01 s")
            until(lambda: workers(conn) == [other], "the other one's worker")
            # of two sessions, so in any order
            assert sorted(arrived(there, "q", 2)) == sorted([other, "delayed"])


@pytest.mark.sharded("a queue table has an exception queue, which needs a place, too")
def test_more_queues_than_places(new_server):
    """They take turns: what has nothing to do makes room, and delays, expirations and prepared transactions of all are looked after."""
    own = new_server("many", **{"pgaq.max_queues": "64"})
    with own.connect() as conn:
        leave_expired_in_doubt(conn)
        conn.execute("SELECT aq.create_queue('q' || n) FROM generate_series(1, 40) n")
    own.configure(**{"pgaq.max_queues": "16"})
    own.restart()
    with own.connect() as conn:
        resolve_and_expire(conn)
    assert "Raise pgaq.max_queues" not in own.log_text()


def test_dropped_database_has_no_worker_any_more(new_server):
    """Nothing tries to connect to it, also when its worker has just died by itself."""
    own = new_server("gone")
    make_database(own, "gone")
    make_database(own, "kept")
    with own.connect() as conn:
        until(lambda: workers(conn) == ["gone", "kept"], "the workers")
        there = "SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = %s"
        for name in ("gone", "kept"):
            pid = db.value(conn, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgaq worker' AND datname = %s", [name])
            conn.execute("SELECT pg_terminate_backend(%s)", [pid])
            until(lambda: not db.value(conn, there, [pid]), "the worker's end")
            if name == "gone":
                conn.execute("DROP DATABASE gone")
        until(lambda: workers(conn) == ["kept"], "the worker")
    assert not [line for line in own.log_text().splitlines() if "FATAL" in line and "does not exist" in line]
    with own.connect("kept") as there:
        assert arrived(there, "q", 1) == ["kept"]


AT_MESSAGE_TABLES = """
CREATE FUNCTION public.at_message_tables() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE schema_name = 'aq_data') THEN
        {do};
    END IF;
END$$;
CREATE EVENT TRIGGER at_message_tables ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.at_message_tables()"""


def test_worker_ends_within_a_job(new_server):
    """DROP DATABASE and a fast shutdown do not wait for a job that takes long, and the next worker does what was left."""
    own = new_server("within")
    for name in ("sleepy", "kept"):
        make_database(own, name)
    with own.connect() as conn:
        for name in ("sleepy", "kept"):
            with own.connect(name) as there:
                there.execute(AT_MESSAGE_TABLES.format(do="PERFORM pg_sleep(3600)"))
                db.execute(there, "SELECT aq.create_queue('other')")
                there.execute("SET statement_timeout = '50 ms'")
                with pytest.raises(db.Error):
                    put(there, "other", 1)
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgaq worker' AND wait_event = 'PgSleep'"
        until(lambda: db.value(conn, asleep) == 2, "both workers are within a job")
        conn.execute("DROP DATABASE sleepy")
        until(lambda: db.value(conn, asleep) == 1, "the worker of the other database is still there")
    own.restart("fast")
    assert "canceling statement" not in own.log_text().replace("canceling statement due to statement timeout", "")
    with own.connect("kept") as there:
        there.execute("DROP EVENT TRIGGER at_message_tables")
        there.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        put(there, "other", 2)
        assert take(there, "other") == [2] and take(there, "q") == ["kept"]


def comes_to(conn, point):
    until(lambda: db.value(conn, "SELECT aq.point_waiting(%s)", [point]) > 0, f"a session at {point}")


def starting(server, kind):
    """Processes of this kind, also those that pg_stat_activity does not show yet."""
    titles = (Path(f"/proc/{pid}/cmdline") for pid in server.child_pids())
    return [title for title in titles if title.exists() and kind in title.read_text()]


@pytest.mark.test_build
def test_drop_database_ends_the_worker_first(points_server):
    """When the other processes of the database are told to end, there is no worker that could start new ones."""
    make_database(points_server, "dropped")
    with points_server.connect() as conn, ThreadPoolExecutor(1) as pool:
        until(lambda: workers(conn) == ["dropped"], "the worker")
        with held(points_server, "database-wanted") as control:
            dropping = pool.submit(conn.execute, "DROP DATABASE dropped")
            comes_to(control, "database-wanted")
            assert workers(control) == []
        dropping.result()


@pytest.mark.test_build
def test_drop_database_while_the_process_of_propagation_starts(points_server):
    """It comes after the others were told to end, and ends before it connects."""
    make_database(points_server, "dropped")
    with points_server.connect() as conn, ThreadPoolExecutor(1) as pool, held(points_server, "propagator-starts") as control:
        with points_server.connect("dropped") as there:
            db.execute(there, "SELECT aq.create_queue('target')")
            db.execute(there, "SELECT aq.create_propagation('q', 'target')")
        comes_to(control, "propagator-starts")
        db.execute(control, "SELECT aq.point_hold('database-wanted')")
        dropping = pool.submit(conn.execute, "DROP DATABASE dropped")
        comes_to(control, "database-wanted")
        db.execute(control, "SELECT aq.point_release('propagator-starts')")
        until(lambda: not starting(points_server, "pgaq propagation"), "the process's end")
        db.execute(control, "SELECT aq.point_release('database-wanted')")
        dropping.result()


@pytest.mark.sharded("queue tables are made by the session")
def test_no_space_for_tables(server):
    """The worker cannot create tables: sessions wait, then get the error; it is logged once, and the worker continues
    as soon as it can."""
    server.expect_log("No space left")
    make_database(server, "no_space", queue=False)
    with server.connect("no_space") as conn, server.connect("no_space") as waiter, ThreadPoolExecutor(1) as pool:
        conn.execute(AT_MESSAGE_TABLES.format(do="RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'"))
        db.execute(conn, "SELECT aq.create_queue('q')")
        before = server.log_text().count("No space left")
        for _ in range(100):
            # until the transaction has failed: the timeout could also hit the statement that resets it
            with pytest.raises(db.Error), conn.transaction():
                conn.execute("SET LOCAL statement_timeout = '5 ms'")
                put(conn, "q", 0)
        with pytest.raises(db.Error) as caught:
            put(conn, "q", 0)
        assert caught.value.sqlstate == "53100" and "No space left on device" in caught.value.diag.message_detail
        # a line of the error, one of the error the session got, of which the second is in its detail
        logged = [line for line in server.log_text().splitlines() if "ERROR:  No space left" in line]
        assert before == 0 and len(logged) == 1, logged
        waiting = pool.submit(put, waiter, "q", "at last")
        until(
            lambda: db.value(
                conn, """SELECT count(*) FROM sys."v$session_wait" WHERE event = 'aq: waiting for a partition' AND state = 'WAITING'"""
            ),
            "a named wait",
        )
        conn.execute("DROP EVENT TRIGGER at_message_tables")
        waiting.result()
        assert take(conn, "q") == ["at last"]
        assert conn.execute("SELECT min(table_no) FROM aq.partitions").fetchone() == (1,), "failures use up no numbers"
    with server.connect() as conn:
        conn.execute("DROP DATABASE no_space")


HOSTILE = {
    "lock_timeout": "1", "statement_timeout": "1", "idle_in_transaction_session_timeout": "1", "idle_session_timeout": "1",
    "default_transaction_read_only": "on", "default_transaction_isolation": "serializable", "default_transaction_deferrable": "on",
    "search_path": "trap", "role": "nobody_at_all", "DateStyle": "German", "IntervalStyle": "sql_standard", "TimeZone": "Asia/Kolkata",
    "bytea_output": "escape", "default_tablespace": "pg_global", "row_security": "off", "synchronous_commit": "on", "session_replication_role": "replica",
}  # fmt: skip


def test_settings_of_the_database(server):
    """Settings of ALTER DATABASE and ALTER ROLE IN DATABASE do not affect the worker."""
    with server.connect() as conn:
        conn.execute("CREATE ROLE nobody_at_all")
        conn.execute("CREATE DATABASE hostile")
        with server.connect("hostile") as there:
            install(there)
            there.execute(
                "CREATE SCHEMA trap; CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT '-infinity'::timestamptz$$"
            )
        for name, value in HOSTILE.items():
            for of in ("DATABASE hostile", "ROLE postgres IN DATABASE hostile"):
                conn.execute(f"ALTER {of} SET {name} = '{value}'")
        names = [*HOSTILE]
        if conn.info.server_version >= 170000:
            conn.execute("ALTER DATABASE hostile SET transaction_timeout = 1")
            names.append("transaction_timeout")
        usual = {name: db.value(conn, f"SHOW {name}") for name in names}
    options = " ".join(f"-c {name}={value.replace(' ', chr(92) * 2 + ' ')}" for name, value in usual.items() if value)
    with server.connect("hostile", options=options) as conn, server.connect("hostile", options=options) as other:
        for session in (conn, other):
            session.execute("SET default_tablespace = ''; SET search_path = public")
        db.execute(
            conn,
            "SELECT aq.create_queue('dead'), aq.create_queue('q', exception_queue => 'dead', retry_delay => '0.01 s', max_retries => 1)",
        )
        db.execute(conn, "SELECT aq.create_queue('topic', multiple_consumers => true)")
        conn.execute("SELECT aq.create_queue_table('tab'); SELECT aq.create_queue('classic', queue_table => 'tab')")
        for queue in ("q", "classic"):
            put(conn, queue, "delayed", delay="0.05 s")
            assert arrived(conn, queue, 1) == ["delayed"]
        put(conn, "q", "mortal", expiration="0.01 s")
        assert arrived(conn, "dead", 1) == ["mortal"]
        put(conn, "q", "failing")
        for _ in range(2):
            until(lambda: ready(other, "q"), "ready, again")
            conn.execute("BEGIN")
            assert take(conn, "q") == ["failing"]
            conn.execute("ROLLBACK")
        assert arrived(conn, "dead", 1) == ["failing"]
        put(conn, "topic", "named", recipients=["new one"])
        assert take(conn, "topic", "new one") == ["named"]
        put(conn, "q", "buffered", delivery_mode="buffered")
        assert db.value(conn, "SELECT payload FROM aq.dequeue('q', delivery_mode => 'buffered')") == "buffered"
        # snapshots, for which the worker calls a function with its own rights
        first = db.value(conn, "SELECT aq.take_snapshot()")
        conn.execute("UPDATE aq_internal.snapshot SET taken = taken - interval '2 hours' WHERE snap_id = %s", [first])
        conn.execute("SELECT aq.set_snapshots(every => '1 hour')")
        until(
            lambda: db.value(conn, "SELECT count(*) FROM aq_internal.snapshot WHERE snap_id > %s", [first]) == 1, "a snapshot by the worker"
        )
    with server.connect() as conn:
        conn.execute("DROP DATABASE hostile")
        conn.execute("DROP ROLE nobody_at_all")
